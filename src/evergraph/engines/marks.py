"""Ranks and counts of derived facts, 8 bytes a fact, under small changes.

    rank(f)   0 for a fact that was there before any rule derived it; else more than the rank of every body that counts for it
    count(f)  how many instances of rules derive f from facts of lower rank

In words: the rank says in which order facts came about, so that a count never counts a fact as its own support, however long
the way round. A relation without marks holds facts of rank 0 that no instance derives. Nothing is written in place: a snapshot
is a reference. What is said of a fact that has gone since stays, unread, until the marks are laid out again.
"""

from __future__ import annotations

from typing import NamedTuple

from evergraph.engines.arrays import LOW, SHIFT, U64, Array, Arrays, Words
from evergraph.engines.relation import MERGE_FRACTION, Relation
from evergraph.plan.model import Key


def mark(rank: Array, count: Array) -> Array:
    return rank << SHIFT | count


def rank_of(marks: Array) -> Array:
    return marks >> SHIFT


def count_of(marks: Array) -> Array:
    return marks & LOW


class Counted(NamedTuple):
    """Rows of one relation, in order, with their marks, as they are stored."""

    key: Key
    arity: int
    words: Words
    values: Array


class Marks(NamedTuple):
    """The marks of a relation's facts: of its base, in the order of that, and of others, which hold before those."""

    words: Words
    """The rows of the base: the relation's own array, as long as the relation keeps it."""
    values: Array
    more: Words
    """Rows whose marks came later, in order."""
    more_values: Array

    def of(self, arrays: Arrays, words: Words) -> Array:
        """The marks of these rows; 0 for those that have none. Cost: a search for each."""
        found = arrays.xp.zeros(len(words[0]), U64)
        for rows, values in ((self.words, self.values), (self.more, self.more_values)):
            if len(values):
                at, there = arrays.places(rows, words)
                found = arrays.xp.where(there, values[at], found)
        return found

    def put(self, arrays: Arrays, words: Words, values: Array) -> Marks:
        """With these marks for these rows, which are in order. Cost: the marks that came later."""
        keep = ~arrays.among(self.more, words)
        kept = tuple(w[keep] for w in self.more)
        merged, order = arrays.merge_order(kept, words)
        return self._replace(more=merged, more_values=arrays.xp.concatenate([self.more_values[keep], values])[order])

    def settle(self, arrays: Arrays, relation: Relation) -> Marks:
        """Laid out like the relation again, when that has changed its base or when too many marks came later."""
        words = relation.base.words
        few = len(self.more_values) * MERGE_FRACTION * arrays.module.eager <= len(relation.base)
        if few and (self.words is words or not len(self.values)):
            return self
        marks = Marks(words, self.of(arrays, words), arrays.empty(relation.arity), arrays.xp.empty(0, U64))
        return marks if relation.plus is None else marks.put(arrays, relation.plus.words, self.of(arrays, relation.plus.words))

    def less(self, arrays: Arrays, old: Marks | None, key: Key, relation: Relation) -> Counted:
        """The marks of a relation's facts that are not what they were. Cost: those that came later, if there are old ones."""
        words = relation.rows() if old is None else self.more
        values = self.of(arrays, words)
        changed = values != (old.of(arrays, words) if old is not None else U64(0))
        return Counted(key, relation.arity, tuple(w[changed] for w in words), values[changed])

    def unmarked(self, arrays: Arrays, key: Key, before: Relation | None, after: Relation | None) -> Counted:
        """Facts that had marks and went, with none: what is said of them must not be found when they come back."""
        if before is None or before is after:
            return Counted(key, 0, arrays.empty(0), arrays.xp.empty(0, U64))
        went = before.less(after)
        had = self.of(arrays, went) != 0
        return Counted(key, before.arity, tuple(w[had] for w in went), arrays.xp.zeros(int(had.sum()), U64))

    @property
    def nbytes(self) -> int:
        """Bytes beside the relation's own."""
        return int(self.values.nbytes + self.more_values.nbytes) + sum(int(w.nbytes) for w in self.more)
