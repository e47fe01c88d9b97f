"""Facts that live until a known time.

    a fact is there at `now` while now ≤ end(fact);     an end only ever rises

In words: beside each relation stand the ends of its facts, and a calendar says which facts were to go when. A fact that is
given a later end stays in the calendar under its old one, and is found to live on when that comes.
Invariant: `relations` holds the facts whose end has not passed at `now`, and no others.
Cost: each end that is given is looked at twice, once when it is given and once when it is due; large arrays are written anew
when a part of them has changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from heapq import heappop, heappush

import numpy as np

from evergraph.engines.arrays import U64, Array, Arrays, Words
from evergraph.engines.marks import Marks
from evergraph.engines.relation import Relation, Run
from evergraph.plan.model import Key

FOREVER = U64(2**64 - 1)
ZERO = 1 << 62
"""What instant 0 is as an end: no end is 0, which stands for none, and instants before 1970 have one too."""
FRACTION = 4
"""Ends are laid out anew when those that came later pass a quarter of the others: windows change all the time."""


def end_of(instant: int) -> int:
    return instant + ZERO


def instant_of(end: int) -> int:
    return end - ZERO


def ends_of(instants: Array) -> Array:
    """The same for a column of them."""
    return (instants + np.int64(ZERO)).astype(U64)


class Lives:
    def __init__(self, arrays: Arrays, width: int) -> None:
        """`width` is how much time one page of the calendar has."""
        self.arrays, self.width = arrays, width
        self.now = 0
        self.relations: dict[Key, Relation] = {}
        self._ends: dict[Key, Marks] = {}
        self._pages: dict[int, list[tuple[Key, Words]]] = {}
        self._numbers: list[int] = []
        """Numbers of pages, as a heap."""
        self._given: dict[Key, list[tuple[Words, Array]]] = {}
        """Ends that are not in the calendar yet."""

    @property
    def ends(self) -> Mapping[Key, Marks]:
        """Ends by relation. Of facts that have gone there may be some left: they have passed."""
        return self._ends

    def of(self, key: Key, words: Words) -> Array:
        """The ends of rows; of those that are not there, one that has passed. Cost: a search for each."""
        known = self._ends.get(key)
        return known.of(self.arrays, words) if known is not None else self.arrays.xp.zeros(len(words[0]), U64)

    def put(self, key: Key, arity: int, words: Words, ends: Array, new: Array) -> None:
        """Give distinct rows, which are in order, ends later than they had; `new` marks those that are not there yet."""
        known = self._ends.get(key)
        if known is None:
            nothing = self.arrays.empty(arity)
            known = Marks(nothing, nothing[0], nothing, nothing[0])
        self._ends[key] = self._laid_out(known.put(self.arrays, words, ends))
        come = Run(self.arrays, arity, words if bool(new.all()) else tuple(w[new] for w in words))
        if len(come):
            relation = self.relations.get(key)
            self.relations[key] = Relation(come) if relation is None else relation.add(come)
        self._given.setdefault(key, []).append((words, ends))

    def extend(self, key: Key, run: Run, ends: Array) -> Array:
        """Let facts live until these ends if that is longer than they would; returns which of them were not there."""
        before = self.of(key, run.words)
        better, new = ends > before, before < U64(self.now)
        if bool(better.any()):
            self.put(key, run.arity, tuple(w[better] for w in run.words), ends[better], new[better])
        return new

    def leave(self, now: int) -> dict[Key, Run]:
        """Let facts go whose end has passed; returns them. Cost: the ends that are due."""
        self.now = now
        self._enter()
        due: dict[Key, list[Words]] = {}
        while self._numbers and self._numbers[0] * self.width < now:
            for key, words in self._pages.pop(heappop(self._numbers)):
                due.setdefault(key, []).append(words)
        gone: dict[Key, Run] = {}
        for key, parts in due.items():
            words = self.arrays.unique(parts)
            ends = self.of(key, words)
            passed = ends < U64(now)
            if not bool(passed.all()):
                later = ~passed & (ends < U64(self._edge(now)))
                if bool(later.any()):
                    self._given.setdefault(key, []).append((tuple(w[later] for w in words), ends[later]))
            run = Run(self.arrays, self.relations[key].arity, tuple(w[passed] for w in words)).within(self.relations[key])
            if len(run):
                left = self.relations[key].remove(run)
                gone[key] = run
                if len(left):
                    self.relations[key] = left
                else:
                    del self.relations[key], self._ends[key]
        return gone

    @property
    def due(self) -> int | None:
        """No fact goes at or before this; None if none will go at all."""
        self._enter()
        return self._numbers[0] * self.width if self._numbers else None

    def rows(self) -> Iterator[tuple[Key, Relation, Array]]:
        """All facts, with the ends of their rows in order."""
        for key, relation in self.relations.items():
            yield key, relation, self.of(key, relation.rows())

    def _edge(self, now: int) -> int:
        """Where the last page that is due ends: facts of that page that live on are written down again."""
        return ((now - 1) // self.width + 1) * self.width

    def _enter(self) -> None:
        """Bring new ends into the calendar, all of a relation together."""
        for key, parts in self._given.items():
            words = tuple(self.arrays.xp.concatenate(w) for w in zip(*(words for words, _ in parts), strict=True))
            ends = self.arrays.xp.concatenate([ends for _, ends in parts])
            mortal = ends != FOREVER
            if not bool(mortal.any()):
                continue
            words, pages = tuple(w[mortal] for w in words), ends[mortal] // U64(self.width)
            order = self.arrays.module.stable_order(pages)
            (numbers,), starts = self.arrays.groups((pages[order],))
            words = tuple(w[order] for w in words)
            for number, start, end in zip(numbers.tolist(), starts.tolist(), [*starts[1:].tolist(), len(order)], strict=True):
                if number not in self._pages:
                    self._pages[number] = []
                    heappush(self._numbers, number)
                self._pages[number].append((key, tuple(w[start:end] for w in words)))
        self._given = {}

    def _laid_out(self, marks: Marks) -> Marks:
        """With one array of ends, when those that came later are many; ends that have passed are dropped."""
        if len(marks.more_values) * FRACTION <= len(marks.values):
            return marks
        arrays = self.arrays
        keep = marks.values >= U64(self.now)
        if len(marks.values):
            at, there = arrays.places(marks.words, marks.more)
            keep[at[there]] = False
        words, order = arrays.merge_order(tuple(w[keep] for w in marks.words), marks.more)
        nothing = arrays.empty(2 * len(words))
        return Marks(words, arrays.xp.concatenate([marks.values[keep], marks.more_values])[order], nothing, nothing[0])
