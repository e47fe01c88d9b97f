"""Whether doubtful facts still follow: backward from them to explicit facts, forward again, whole sets at a time.

    forward:   P ← P ∪ {f ∈ C : a rule derives f from explicit facts, settled facts and P}, until nothing is new
    backward:  C ← C ∪ {body facts of instances for unproved f ∈ C}

In words: a fact is proved when a rule derives it from what is certain. Where that fails, the facts that its instances use are
checked as well, one level further back in each turn, so that a proof found early ends the search. When nothing is left to look
back at, what is unproved does not follow. One shard takes its turns in a loop (`unproved`); many take them together, and tell
each other what they check and what they have proved (`spark.departures`).

Invariant: `proved` follow from the explicit facts as they are now; `disproved` do not. Both stay so while facts go, because a
proof uses nothing that is in doubt. No fact is expanded twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

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


class Search(NamedTuple):
    """How far a search is, by relation: facts asked about, those that follow, and those whose instances were looked at."""

    checked: dict[Key, Relation]
    proved: dict[Key, Relation]
    expanded: dict[Key, Relation]


class Prover:
    def __init__(
        self,
        kernel: Kernel,
        components: tuple[Component, ...],
        now: Relations,
        explicit: Relations,
        search: Search | None = None,
    ) -> None:
        """`now` holds what is settled: relations that these components do not derive. A search may go on where it was."""
        self.kernel, self.components, self.now, self.explicit = kernel, components, now, explicit
        self.derived_here = derives(components)
        self.checked, self.proved, self.expanded = search or Search({}, {}, {})
        self.certain: dict[Key, Relation] = {k: r for k, r in now.items() if not self.derived_here(k)}
        """What proofs may use: settled relations as they are; of others, explicit facts and what is proved."""
        self.certain |= {k: r for k, r in explicit.items() if self.derived_here(k)}
        _join(self.certain, _bases(self.proved))

    def unproved(self, goals: Mapping[Key, Run], held: Relations) -> dict[Key, Run]:
        """Of facts that `held` contains, those that do not follow. Cost: the instances looked at, some levels back."""
        self.check(goals)
        self.saturate()
        while self.open(goals) and self.look_back(held):
            self.saturate()
        return self.open(goals)

    def open(self, runs: Mapping[Key, Run]) -> dict[Key, Run]:
        """Facts that are not proved."""
        found = {key: run.without(self.proved.get(key)) for key, run in runs.items()}
        return {key: run for key, run in found.items() if len(run)}

    def check(self, runs: Mapping[Key, Run]) -> dict[Key, Run]:
        """Ask about facts; returns those that nobody has asked about."""
        return _join(self.checked, runs)

    def learn(self, runs: Mapping[Key, Run]) -> None:
        """Take facts for proved."""
        _join(self.proved, runs)
        _join(self.certain, runs)

    def saturate(self) -> dict[Key, Run]:
        """Prove what follows from what is certain, over and over; returns what is newly proved."""
        fresh: dict[Key, Relation] = {}
        while open_ := {key: Relation(run) for key, run in self.open(_bases(self.checked)).items()}:
            found = rederive(self.kernel, self.components, open_, self.certain, self.now)
            for key, relation in open_.items():
                known = self.explicit.get(key)
                given = relation.base.within(known) if known is not None else None
                if given:
                    found[key] = given.merge(found[key].without(given)) if key in found else given
            if not any(len(run) for run in found.values()):
                break
            self.learn(found)
            _join(fresh, found)
        return _bases(fresh)

    def look_back(self, held: Relations) -> dict[Key, Run]:
        """Ask about the facts that instances for unproved facts use; returns those that nobody has asked about."""
        frontier = self.unexpanded()
        _join(self.expanded, frontier)
        return self.check(self._behind(frontier, held))

    def unexpanded(self) -> dict[Key, Run]:
        """Facts that are checked, not proved, and whose instances have not been looked at."""
        found = {key: run.without(self.expanded.get(key)) for key, run in self.open(_bases(self.checked)).items()}
        return {key: run for key, run in found.items() if len(run)}

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


def _join(relations: dict[Key, Relation], runs: Mapping[Key, Run]) -> dict[Key, Run]:
    """Add what is not there yet; returns it."""
    out = {key: run.without(relations.get(key)) for key, run in runs.items()}
    out = {key: run for key, run in out.items() if len(run)}
    for key, run in out.items():
        known = relations.get(key)
        relations[key] = Relation(run) if known is None else known.add(run)
    return out


def _bases(relations: Relations) -> dict[Key, Run]:
    return {key: Run(r.base.arrays, r.arity, r.rows()) for key, r in relations.items()}
