"""Components whose relations are all small, closed on the host whatever the others are: a GPU has little to do for them.

In words: most components of a schedule are about the schema, some rows each. They are evaluated where that costs least, and
what they derive goes to the device when a rule there reads it. Relations never change, so that a component whose relations are
those of last time derives what it derived then: a recomputation after facts went costs nothing for the schema.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from evergraph.engines.arrays import U64, Arrays
from evergraph.engines.kernel import Kernel, Values
from evergraph.engines.mirror import Mirror
from evergraph.engines.relation import Relation, Run
from evergraph.engines.table import Table
from evergraph.plan.model import Key, PlanRule
from evergraph.plan.schedule import Component

if TYPE_CHECKING:
    from evergraph.engines.fixpoint import Fixpoint


MOST = 1024
"""Of so many components at most, and of so many beginnings of rules, is known what they derived."""
Asked = tuple[PlanRule, frozenset[str], frozenset[int] | None, tuple[int, ...]]
"""A rule, the variables that are asked for, a limit on predicates of its head, and which of its atoms are joined."""


class Derived(NamedTuple):
    """What a component made of all the facts that it reads."""

    component: Component
    given: Mapping[Key, Relation]
    runs: Sequence[tuple[Key, Run]]
    """What was new, in the order in which it was derived."""
    relations: Mapping[Key, Relation]
    """Those that became others."""
    rounds: int
    derivations: int
    examined: int


class Near:
    def __init__(self, xp: Any, values: Values | None) -> None:
        self.mirror = Mirror(xp)
        self.kernel = Kernel(Arrays(), values)
        self._derived: dict[int, Derived] = {}
        self._joined: dict[tuple[Any, ...], tuple[PlanRule, Sequence[Relation], Table]] = {}

    def here(self, relation: Relation) -> Relation:
        """A relation on the host. Cost: its rows are carried over if they are not there yet."""
        return self.mirror.relation(relation, self.kernel.arrays)

    def joined(self, asked: Asked, given: Sequence[Relation]) -> Table | None:
        """What the beginning of a rule gave, if its relations were these."""
        rule, known, table = self._joined.get((id(asked[0]), *asked[1:]), (None, (), None))
        return table if rule is asked[0] and known == given else None

    def keep(self, asked: Asked, given: Sequence[Relation], table: Table) -> Table:
        """Remember it. Of one row there is nothing to carry over: its values are the same everywhere."""
        if table.count == 1:
            table = Table(1, {}, table.fixed | {name: column[0] for name, column in table.columns.items()})
        table.near = bool(table.columns)
        if len(self._joined) >= MOST:
            self._joined.clear()
        self._joined[id(asked[0]), *asked[1:]] = asked[0], given, table
        return table

    def close(self, fixpoint: Fixpoint, component: Component, full: bool) -> bool:
        """As `Fixpoint.close` where a component reads and derives few facts; False, and nothing done, where it may not.

        Cost: the component's, or nothing; rows that are not on the host yet are carried over.
        """
        last = self._derived.get(id(component))
        if last is not None and (last.component is not component or not full):
            last = None
        given = self._read(fixpoint, component, full, last.given if last is not None else {})
        if given is None:
            return False
        derived = last if last is not None and last.given == given else self._derive(fixpoint, component, given, full)
        if full and derived is not last:
            if len(self._derived) >= MOST:
                self._derived.clear()
            self._derived[id(component)] = derived
        for key, run in derived.runs:
            fixpoint.arrive(key, run)
        fixpoint.relations.update(derived.relations)
        if fixpoint.trace is not None:
            fixpoint.trace += derived.runs
        fixpoint.rounds += derived.rounds
        fixpoint.kernel.derivations += derived.derivations
        fixpoint.kernel.examined += derived.examined
        return True

    def _read(
        self, fixpoint: Fixpoint, component: Component, full: bool, last: Mapping[Key, Relation]
    ) -> dict[Key, Relation] | None:
        """What a component reads, if that is little and all names stand for themselves: small relations and, of large ones,
        what constants pick out. Where that is what it was last time, it is that."""
        names, most = fixpoint.kernel.names, fixpoint.arrays.module.near
        if names is not None and len(names):
            return None
        given: dict[Key, Relation] = {}
        picked: dict[Key, set[tuple[int, int]]] = {}
        for task in component.tasks:
            for atom in (task.rule.head, *task.rule.body, *task.rule.negated):
                relation = None if atom.open else fixpoint.relations.get(atom.relation)
                if relation is not None and len(relation) <= most:
                    given[atom.relation] = relation
                elif atom.open or relation is not None:
                    constants = [(place, value) for place, value in enumerate(atom.args) if isinstance(value, int)]
                    if relation is None or not full or atom is task.rule.head or relation.arity != 2 or not constants:
                        return None
                    picked.setdefault(atom.relation, set()).add(constants[-1])
        for key, some in picked.items():
            found = self._picked(fixpoint.relations[key], some, most)
            if found is None:
                return None
            given[key] = last[key] if key in last and last[key].same(found) else found
        return given

    def _picked(self, relation: Relation, constants: set[tuple[int, int]], most: int) -> Relation | None:
        """The pairs with one of these constants in its place, on the host; None if they are many. Cost: two searches each."""
        arrays, host = relation.base.arrays, self.kernel.arrays
        words = [host.xp.empty(0, U64)]
        for place, value in constants:
            order = (place, 1 - place)
            for run, minus in relation.parts():
                (row,) = run.in_order(order)
                low, high = arrays.find_range((row,), [U64(value)])
                if high - low > most:
                    return None
                if low < high:
                    (row,) = (row[low:high],) if minus is None else arrays.without((row[low:high],), minus.in_order(order))
                    words.append(arrays.module.host(row if place == 0 else arrays.module.swapped(row)))
        return Relation(Run(host, 2, host.unique([(word,) for word in words])))

    def _derive(self, fixpoint: Fixpoint, component: Component, given: Mapping[Key, Relation], full: bool) -> Derived:
        host, device, mirror = self.kernel.arrays, fixpoint.arrays, self.mirror
        here = {key: self.here(relation) for key, relation in given.items()}
        side = type(fixpoint)(self.kernel, dict(here))
        trace: list[tuple[Key, Run]] = []
        side.trace = trace
        if not full:
            for key in given.keys() & fixpoint.arrived.keys():
                side.arrived.add(key, mirror.run(fixpoint.arrived[key], host))
                side.before[key] = self.here(fixpoint.before[key])
        derivations, examined = self.kernel.derivations, self.kernel.examined
        side.close((component,), full)
        return Derived(
            component,
            given,
            [(key, mirror.run(run, device)) for key, run in trace],
            {k: mirror.relation(relation, device) for k, relation in side.relations.items() if relation is not here.get(k)},
            side.rounds,
            self.kernel.derivations - derivations,
            self.kernel.examined - examined,
        )
