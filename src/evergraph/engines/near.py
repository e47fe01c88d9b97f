"""Components whose relations are all small, closed on the host whatever the others are: a GPU has little to do for them.

In words: most components of a schedule are about the schema, some rows each. They are evaluated where that costs least, and
what they derive goes to the device when a rule there reads it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evergraph.engines.arrays import Arrays
from evergraph.engines.kernel import Kernel, Values
from evergraph.engines.mirror import Mirror
from evergraph.engines.relation import Relation, Run
from evergraph.plan.model import Key
from evergraph.plan.schedule import Component

if TYPE_CHECKING:
    from evergraph.engines.fixpoint import Fixpoint


class Near:
    def __init__(self, xp: Any, values: Values | None) -> None:
        self.mirror = Mirror(xp)
        self.kernel = Kernel(Arrays(), values)

    def here(self, relation: Relation) -> Relation:
        """A relation on the host. Cost: its rows are carried over if they are not there yet."""
        return self.mirror.relation(relation, self.kernel.arrays)

    def takes(self, fixpoint: Fixpoint, component: Component) -> bool:
        """Whether a component reads and derives few facts, under names that all stand for themselves."""
        names, relations = fixpoint.kernel.names, fixpoint.relations
        if names is not None and len(names):
            return False
        for task in component.tasks:
            for atom in (task.rule.head, *task.rule.body, *task.rule.negated):
                if atom.open or len(relations.get(atom.relation, ())) > fixpoint.arrays.module.near:
                    return False
        return True

    def close(self, fixpoint: Fixpoint, component: Component, full: bool) -> None:
        """As `Fixpoint.close`. Cost: the component's; rows that are not on the host yet are carried over."""
        host, device, mirror = self.kernel.arrays, fixpoint.arrays, self.mirror
        atoms = (a for task in component.tasks for a in (task.rule.head, *task.rule.body, *task.rule.negated))
        keys = {atom.relation for atom in atoms}
        here = {key: self.here(fixpoint.relations[key]) for key in keys & fixpoint.relations.keys()}
        side = type(fixpoint)(self.kernel, dict(here))
        derived: list[tuple[Key, Run]] = []
        side.trace = derived
        if not full:
            for key in keys & fixpoint.arrived.keys():
                side.arrived.add(key, mirror.run(fixpoint.arrived[key], host))
                side.before[key] = self.here(fixpoint.before[key])
        derivations, examined = self.kernel.derivations, self.kernel.examined
        side.close((component,), full)
        there = [(key, mirror.run(run, device)) for key, run in derived]
        for key, run in there:
            fixpoint.arrive(key, run)
        for key, relation in side.relations.items():
            if relation is not here.get(key):
                fixpoint.relations[key] = mirror.relation(relation, device)
        if fixpoint.trace is not None:
            fixpoint.trace += there
        fixpoint.rounds += side.rounds
        fixpoint.kernel.derivations += self.kernel.derivations - derivations
        fixpoint.kernel.examined += self.kernel.examined - examined
