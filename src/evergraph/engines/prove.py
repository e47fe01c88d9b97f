"""Whether doubtful facts still follow: backward from them to explicit facts, forward again, whole sets at a time.

    forward:   P ← P ∪ {f ∈ C : a rule derives f from explicit facts, settled facts and P}, until nothing is new
    backward:  C ← C ∪ {body facts of instances for unproved f ∈ C}

In words: a fact is proved when a rule derives it from what is certain. Where that fails, the facts that its instances use are
checked as well, one level further back in each turn, so that a proof found early ends the search. When nothing is left to look
back at, what is unproved does not follow.

Invariant: `proved` follow from the explicit facts as they are now; `disproved` do not. Both stay so while facts go, because a
proof uses nothing that is in doubt. No fact is expanded twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from evergraph.engines.fixpoint import Found
from evergraph.engines.kernel import Kernel
from evergraph.engines.relation import Relation, Run
from evergraph.engines.retreat import rederive
from evergraph.plan.model import Key, PlanRule, is_variable
from evergraph.plan.schedule import Component

Relations = Mapping[Key, Relation]


def derives(components: tuple[Component, ...]) -> Callable[[Key], bool]:
    """Whether one of these rules may derive facts of a relation."""
    heads = frozenset(key for c in components for t in c.tasks for key in t.heads or (t.rule.head.relation,))
    any_triple = any(is_variable(head) for head in heads)
    return lambda key: key in heads or (any_triple and isinstance(key, int))


class Prover:
    def __init__(self, kernel: Kernel, components: tuple[Component, ...], now: Relations, explicit: Relations) -> None:
        """`now` holds what is settled: relations that these components do not derive."""
        self.kernel, self.components, self.now, self.explicit = kernel, components, now, explicit
        self.derived_here = derives(components)
        self.certain: dict[Key, Relation] = {k: r for k, r in now.items() if not self.derived_here(k)}
        """What proofs may use: settled relations as they are; of others, explicit facts and what is proved."""
        self.certain |= {k: r for k, r in explicit.items() if self.derived_here(k)}
        self.proved: dict[Key, Relation] = {}
        self.checked: dict[Key, Relation] = {}
        self.expanded: dict[Key, Relation] = {}

    def unproved(self, goals: Mapping[Key, Run], held: Relations) -> dict[Key, Run]:
        """Of facts that `held` contains, those that do not follow."""
        _join(self.checked, goals)
        while True:
            self._saturate()
            if not any(len(run) for run in self._less(goals).values()):
                return {}
            frontier = self._unexpanded()
            if not frontier:
                return {key: run for key, run in self._less(goals).items() if len(run)}
            _join(self.expanded, frontier)
            _join(self.checked, self._behind(frontier, held))

    def _unexpanded(self) -> dict[Key, Run]:
        """Facts that are checked, not proved, and whose instances have not been looked at."""
        found = {key: run.without(self.expanded.get(key)) for key, run in self._less(_bases(self.checked)).items()}
        return {key: run for key, run in found.items() if len(run)}

    def _saturate(self) -> None:
        """Prove what follows from what is certain, over and over."""
        while True:
            open_ = {key: Relation(run) for key, run in self._less(_bases(self.checked)).items() if len(run)}
            found = rederive(self.kernel, self.components, open_, self.certain) if open_ else {}
            for key, relation in open_.items():
                known = self.explicit.get(key)
                given = relation.base.within(known) if known is not None else None
                if given:
                    found[key] = given.merge(found[key].without(given)) if key in found else given
            if not any(len(run) for run in found.values()):
                return
            _join(self.proved, found)
            _join(self.certain, found)

    def _less(self, runs: Mapping[Key, Run]) -> dict[Key, Run]:
        """Facts that are not proved."""
        return {key: run.without(self.proved.get(key)) for key, run in runs.items()}

    def _behind(self, facts: Mapping[Key, Run], held: Relations) -> dict[Key, Run]:
        """The facts that instances for these use, as far as they are in doubt themselves."""
        asked = {key: Relation(run) for key, run in facts.items() if len(run)}
        found = Found()
        for component in self.components if asked else ():
            for task in component.tasks:
                rule = task.rule
                if rule.head.relation not in asked and not (rule.head.open and any(isinstance(k, int) for k in asked)):
                    continue
                for atom in rule.body:
                    if atom.open or self.derived_here(atom.relation):
                        turned = PlanRule(rule.name, atom, (rule.head, *rule.body), rule.negated, rule.filters)
                        self.kernel.run(turned, [asked, *[held] * len(rule.body)], self.now, found.emit)
        arrays = self.kernel.arrays
        return {
            key: Run(arrays, held[key].arity, arrays.unique([words for _, words in parts]))
            for key, parts in found.rows.items()
            if self.derived_here(key)
        }


def _join(relations: dict[Key, Relation], runs: Mapping[Key, Run]) -> None:
    """Add what is not there yet."""
    for key, run in runs.items():
        known = relations.get(key)
        relations[key] = Relation(run) if known is None else known.add(run.without(known))


def _bases(relations: Relations) -> dict[Key, Run]:
    return {key: Run(r.base.arrays, r.arity, r.rows()) for key, r in relations.items()}
