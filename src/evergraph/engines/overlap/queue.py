"""Facts that wait for a step, each as the work of one epoch.

An epoch is what joined between two steps; what it brings about is its work as well. A fact that is the work of several epochs
is that of the oldest, which waits for nobody.
"""

from __future__ import annotations

from collections.abc import Mapping

from evergraph.engines.arrays import Array, Arrays, Words
from evergraph.engines.relation import Relation, Run
from evergraph.plan.model import Key


class Queue:
    def __init__(self, arrays: Arrays) -> None:
        self.arrays = arrays
        self.epochs: dict[int, dict[Key, Relation]] = {}
        """Facts by epoch and relation; what is empty is not there."""

    def has(self, key: Key, words: Words, since: int = 0) -> Array:
        """Which of these rows wait, for an epoch from a number on. Cost: a search for each, in all that have the relation."""
        found = self.arrays.xp.zeros(len(words[0]), bool)
        for epoch, facts in self.epochs.items():
            if key in facts and epoch >= since:
                found |= facts[key].contains(words)
        return found

    def size(self, epoch: int) -> int:
        return sum(map(len, self.epochs.get(epoch, {}).values()))

    @property
    def keys(self) -> set[Key]:
        return set().union(*self.epochs.values())

    def add(self, epoch: int, key: Key, run: Run) -> None:
        """Let facts wait, unless they do so for an older epoch; those of a younger one move."""
        for other in [number for number, facts in self.epochs.items() if key in facts]:
            if other > epoch:
                self._remove(other, key, run)
            else:
                run = run.without(self.epochs[other][key])
        if len(run):
            facts = self.epochs.setdefault(epoch, {})
            facts[key] = facts[key].add(run) if key in facts else Relation(run)

    def drop(self, key: Key, run: Run) -> None:
        """Let facts wait no longer, as far as they do."""
        for epoch in [number for number, facts in self.epochs.items() if key in facts]:
            self._remove(epoch, key, run)

    def take(self, epoch: int, most: int) -> dict[Key, Run]:
        """Up to so many facts of an epoch, which wait no longer. Cost: a copy of a relation's rows, where some of them stay."""
        out: dict[Key, Run] = {}
        facts = self.epochs.get(epoch, {})
        for key in list(facts):
            if most <= 0:
                break
            words = facts[key].rows()
            out[key] = Run(self.arrays, facts[key].arity, tuple(w[:most] for w in words))
            self._keep(epoch, key, Relation(Run(self.arrays, facts[key].arity, tuple(w[most:] for w in words))))
            most -= len(out[key])
        return out

    def all(self) -> dict[Key, Relation]:
        """Everything that waits, by relation. Cost: linear in it, where several epochs have some of a relation."""
        out: dict[Key, Relation] = {}
        for facts in self.epochs.values():
            for key, relation in facts.items():
                out[key] = _joined(out[key], relation) if key in out else relation
        return out

    def _remove(self, epoch: int, key: Key, run: Run) -> None:
        relation = self.epochs[epoch][key]
        self._keep(epoch, key, relation.remove(run.within(relation)))

    def _keep(self, epoch: int, key: Key, relation: Relation) -> None:
        if len(relation):
            self.epochs[epoch][key] = relation
            return
        del self.epochs[epoch][key]
        if not self.epochs[epoch]:
            del self.epochs[epoch]


def _joined(some: Relation, others: Relation) -> Relation:
    return some.add(Run(some.base.arrays, some.arity, others.rows()))


def without(relations: Mapping[Key, Relation], facts: Mapping[Key, Run]) -> dict[Key, Relation]:
    """Relations less facts that they all have."""
    return {**relations, **{key: relations[key].remove(run) for key, run in facts.items()}}
