"""Facts that go, and what they take with them: semi-naive evaluation backwards.

    Δ₀ = facts to go;    Δᵢ₊₁ = heads of instances of the old facts that use Δᵢ, as far as `doom` lets them go

In words: an instance that used a fact that went no longer supports its head. The loop is that of `fixpoint`, over relations
that shrink: the atom that reads the delta has what is kept before it and the old facts after it, so that each instance
that is lost is looked at once. A rule may also lose an instance because a fact came that it negates.

Invariant: `relations` are the old facts less those that went; no instance over the old facts that used one of those is
unaccounted for. New facts are not in `relations`: an instance that never was is never lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from evergraph.engines.arrays import Words
from evergraph.engines.delta import Delta
from evergraph.engines.fixpoint import Fed, Fixpoint, Found, run_negated
from evergraph.engines.kernel import Kernel
from evergraph.engines.relation import Relation, Run
from evergraph.plan.model import Key
from evergraph.plan.schedule import Component, Task

Doom = Callable[[Key, Run], Run]
"""Of facts that have lost an instance, those that are not explicit."""


class Retreat(Fixpoint):
    """`arrived` holds what went, `before` the relations as they were."""

    def __init__(self, kernel: Kernel, old: Mapping[Key, Relation], doom: Doom) -> None:
        super().__init__(kernel, dict(old))
        self.old, self.doom = old, doom
        self.doom_all: Callable[[Mapping[Key, Run]], Mapping[Key, Run]] = dict
        """Of facts that are not explicit and have lost an instance, those that go."""

    def depart(self, runs: Mapping[Key, Run]) -> None:
        """Let facts go that are there."""
        for key, run in runs.items():
            if len(run):
                self._remove(key, run)

    def let_go(self, key: Key, run: Run) -> None:
        """A fact that has lost an instance goes."""
        self._remove(key, run)

    def lose_to(self, components: Iterable[Component], came: Mapping[Key, Relation]) -> None:
        """Let go what instances supported that negate one of the facts that came."""
        for component in components:
            found = Found()
            for number, task in enumerate(component.tasks):
                found.task = number
                run_negated(self.kernel, task, came, self.old, self.old, found)
            self._absorb(component.tasks, found, feed=False)

    def _absorb(self, tasks: tuple[Task, ...], found: Found, feed: bool) -> Fed | None:
        goals: dict[Key, Run] = {}
        for key, parts in found.rows.items():
            words = self.doubted(key, found.arity(key, tasks), self.arrays.unique([rows for _, rows in parts]))
            relation = self.relations.get(key)
            if relation is not None:
                run = self.doom(key, Run(self.arrays, relation.arity, words).within(relation))
                if len(run):
                    goals[key] = run
        deltas = self.doom_all(goals) if goals else {}
        older = {key: self.relations[key] for key in deltas}
        for key, run in deltas.items():
            self.let_go(key, run)
        return (dict(deltas), older, {}) if deltas and feed else None

    def doubted(self, key: Key, arity: int, words: Words) -> Words:
        """Of heads that have lost an instance, those to decide about here."""
        return words

    def _remove(self, key: Key, run: Run) -> None:
        relation = self.relations[key]
        self.before.setdefault(key, relation)
        self.relations[key] = relation.remove(run)
        self.arrived.add(key, run)


def rederive(
    kernel: Kernel,
    components: Iterable[Component],
    gone: Mapping[Key, Relation],
    now: Mapping[Key, Relation],
    below: Mapping[Key, Relation] | None = None,
) -> dict[Key, Run]:
    """Of facts that went, those that some rule derives from the facts there are. Cost: a look at each, by each of its rules.

    `below` is what negations read, if that is not the same: a proof uses less than there is, a negation must not.
    """
    gone, found = Delta(gone), Found()
    for component in components:
        for task in component.tasks:
            head = task.rule.head
            if head.relation in gone or (head.open and any(isinstance(key, int) for key in gone)):
                kernel.run(
                    task.rule.asked,
                    [gone, *[now] * len(task.rule.body)],
                    now if below is None else below,
                    found.emit,
                    task.heads,
                )
    return found.runs(kernel.arrays, gone)
