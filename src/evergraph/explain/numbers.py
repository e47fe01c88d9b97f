"""Facts as dense numbers, so that a search can keep what it knows of them in arrays.

path(1, 2) → 0,    edge(1, 2) → 1,    path(2, 3) → 2, …    in order of first sight
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from evergraph.engines.arrays import Array, Arrays, Words
from evergraph.engines.relation import Run
from evergraph.plan.model import Key


class Numbers:
    """Cost: a sort of the rows asked for, and a copy of what is known of their relation when one of them is new.

    >>> numbers = Numbers(Arrays())
    >>> found, new = numbers.of("node", [np.array([7, 5, 7], np.uint64)], 3)
    >>> found.tolist(), len(new)
    ([1, 0, 1], 2)
    """

    def __init__(self, arrays: Arrays) -> None:
        self.arrays = arrays
        self.count = 0
        self._known: dict[Key, tuple[Words, Array]] = {}
        """Sorted rows, and the number of each."""

    def of(self, key: Key, columns: Sequence[Array], count: int) -> tuple[Array, Run]:
        """The number of each of `count` rows, and the rows not seen before: their numbers are the last ones, in order."""
        arity = len(columns)
        known, numbers = self._known.get(key, (self.arrays.empty(arity), np.zeros(0, np.int64)))
        rows = self.arrays.unique([self.arrays.pack(columns, count)])
        is_new = ~self.arrays.contains(known, rows)
        new = Run(self.arrays, arity, tuple(w[is_new] for w in rows))
        if len(new):
            at = self._places(known, [new.column(i) for i in range(arity)], len(new))
            numbers = np.insert(numbers, at, np.arange(self.count, self.count + len(new)))
            known = tuple(np.insert(old, at, word) for old, word in zip(known, new.words, strict=True))
            self._known[key] = known, numbers
            self.count += len(new)
        return numbers[self._places(known, columns, count)], new

    def _places(self, rows: Words, columns: Sequence[Array], count: int) -> Array:
        """Where rows stand among sorted ones, or would."""
        return self.arrays.find_ranges(rows, columns, count)[0] if columns else np.zeros(count, np.int64)


class Growing:
    """An array that is added to at its end. Cost: what is added, at times a copy of the whole."""

    def __init__(self, kind: Any) -> None:
        self._held = np.zeros(16, kind)
        self._count = 0

    @property
    def values(self) -> Array:
        """What is there, to read and to change in place; good until something is added."""
        return self._held[: self._count]

    def add(self, values: Array) -> None:
        count = self._count + len(values)
        if count > len(self._held):
            held = np.zeros(2 * count, self._held.dtype)
            held[: self._count] = self.values
            self._held = held
        self._held[self._count : count] = values
        self._count = count
