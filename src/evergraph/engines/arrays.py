"""The array vocabulary of the kernel: what it asks of NumPy, and of CuPy in NumPy's place.

A row of ids is packed into `uint64` words, two 32-bit ids a word, the first column highest; a set of rows is a tuple of
word arrays in lexicographic order. Unary and binary relations are one word, which is what all of this is fast for; wider
rows take a word for every two columns and go through the same functions.
Trap: searching many unsorted keys in a large array misses the cache at every step. `find_ranges` and `contains` look at
their input first.

`xp` is the array module. What CuPy lacks is in the table `Differences` at the end and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

Array = Any
"""A one-dimensional array of the kernel's array module."""
Words = tuple[Array, ...]
"""Packed rows: one array per two columns."""
Column = Any
"""An array, or a scalar that stands for a column of equal values."""

U64 = np.uint64
SHIFT = U64(32)
LOW = U64(0xFFFFFFFF)

MANY = 4096
"""From here on a look at the whole input pays for itself."""
RADIX = 1 << 16
"""NumPy sorts 16-bit integers in linear time."""


class Arrays:
    """Set operations on packed rows over one array module. Every cost below is per element of the named argument."""

    def __init__(self, xp: Any = np) -> None:
        self.xp = xp
        self.differences = Differences(xp)

    # -- packing -----------------------------------------------------------------------------------------------------

    def pack(self, columns: Sequence[Column], count: int) -> Words:
        """Columns (arrays or scalars) of `count` rows as words."""
        if not columns:
            return (self.xp.zeros(count, U64),)
        words = []
        for i in range(0, len(columns), 2):
            word = columns[i] << SHIFT
            if i + 1 < len(columns):
                word = word | columns[i + 1]
            words.append(word if getattr(word, "ndim", 0) else self.xp.full(count, word, U64))
        return tuple(words)

    def column(self, words: Words, position: int) -> Array:
        """One column out of packed rows."""
        word = words[position // 2]
        return word >> SHIFT if position % 2 == 0 else word & LOW

    def empty(self, arity: int) -> Words:
        return tuple(self.xp.empty(0, U64) for _ in range(max(1, (arity + 1) // 2)))

    # -- sorting -----------------------------------------------------------------------------------------------------

    def unique(self, parts: Sequence[Words]) -> Words:
        """The distinct rows of all parts, in order. Cost: a sort that takes sorted runs as they come."""
        words = parts[0] if len(parts) == 1 else tuple(self.xp.concatenate(w) for w in zip(*parts, strict=True))
        if len(words) == 1:
            return (self.distinct_sorted(self.differences.sort(words[0])),)
        order = self.differences.lexsort(words)
        words = tuple(w[order] for w in words)
        keep = self.xp.ones(len(words[0]), bool)
        if len(keep) > 1:
            keep[1:] = self._differ(words)
        return tuple(w[keep] for w in words)

    def merge(self, a: Words, b: Words) -> Words:
        """Two disjoint sorted sets of rows as one. Cost: linear for single words."""
        if not len(b[0]):
            return a
        if not len(a[0]):
            return b
        words = tuple(self.xp.concatenate(pair) for pair in zip(a, b, strict=True))
        if len(words) == 1:
            return (self.differences.sort(words[0]),)
        order = self.differences.lexsort(words)
        return tuple(w[order] for w in words)

    def merge_order(self, a: Words, b: Words) -> tuple[Words, Array]:
        """Two disjoint sorted sets of rows as one, and where each row of it stands in `a` followed by `b`."""
        words = tuple(self.xp.concatenate(pair) for pair in zip(a, b, strict=True))
        order = self.differences.stable_order(words[0]) if len(words) == 1 else self.differences.lexsort(words)
        return tuple(w[order] for w in words), order

    def groups(self, words: Words) -> tuple[Words, Array]:
        """The distinct rows of sorted ones, and where each of them starts."""
        first = self.xp.ones(len(words[0]), bool)
        if len(first) > 1:
            first[1:] = self._differ(words)
        return tuple(w[first] for w in words), self.xp.flatnonzero(first)

    def _differ(self, words: Words) -> Array:
        out = words[0][1:] != words[0][:-1]
        for word in words[1:]:
            out |= word[1:] != word[:-1]
        return out

    def distinct_sorted(self, values: Array) -> Array:
        """Sorted values without repetition."""
        if len(values) < 2:
            return values
        keep = self.xp.empty(len(values), bool)
        keep[0] = True
        self.xp.not_equal(values[1:], values[:-1], out=keep[1:])
        return values if bool(keep.all()) else values[keep]

    def distinct(self, values: Array) -> Array:
        """The distinct ids of a column, in order: by marking in a bitmap when there are many, by sorting otherwise."""
        if len(values) < MANY:
            return self.distinct_sorted(self.differences.sort(values))
        top = int(values.max())
        if top > 8 * len(values):
            return self.distinct_sorted(self.differences.sort(values))
        seen = self.xp.zeros(top + 1, bool)
        seen[values] = True
        return self.xp.flatnonzero(seen).astype(U64)

    def rank(self, values: Array, column: Array) -> Array:
        """For each id of a column its place among the sorted distinct ids `values`, in 16 bits when that suffices."""
        kind = np.uint16 if len(values) < RADIX else np.int64
        if len(column) < MANY or int(values[-1]) > 8 * len(column):
            return self.xp.searchsorted(values, column).astype(kind)
        place = self.xp.zeros(int(values[-1]) + 1, kind)
        place[values] = self.xp.arange(len(values), dtype=kind)
        return place[column]

    def split(self, column: Array) -> list[tuple[int, Any]]:
        """The rows of each id of a column: a stable sort by the ids' ranks, which keeps what is in order in order."""
        values = self.distinct(column)
        if len(values) == 1:
            return [(int(values[0]), slice(None))]
        rank = self.rank(values, column)
        order = self.differences.stable_order(rank)
        ends = self.xp.cumsum(self.xp.bincount(rank, minlength=len(values))).tolist()
        starts = [0, *ends[:-1]]
        return [(v, order[a:b]) for v, a, b in zip(values.tolist(), starts, ends, strict=True)]

    def transpose(self, word: Array) -> Array:
        """Sorted pairs (a, b) as sorted pairs (b, a).

        A stable sort by b is enough; with few distinct b it is a linear one on 16-bit ranks.
        """
        if len(word) >= MANY:
            major = word & LOW
            values = self.distinct(major)
            if len(values) < RADIX and len(values) * 4 < len(word):
                order = self.differences.stable_order(self.rank(values, major))
                return (major << SHIFT | word >> SHIFT)[order]
        return self.xp.sort(word << SHIFT | word >> SHIFT)

    def blocks(self, parts: Sequence[Array]) -> Iterator[Array]:
        """Arrays in pieces that stay in the cache, and whose temporaries need no fresh memory."""
        size = self.differences.block
        for part in parts:
            for start in range(0, len(part), size):
                yield part[start : start + size]

    # -- searching ---------------------------------------------------------------------------------------------------

    def contains(self, rows: Words, keys: Words) -> Array:
        """For each key, whether it is one of the sorted rows."""
        count = len(rows[0])
        if not count or not len(keys[0]):
            return self.xp.zeros(len(keys[0]), bool)
        if len(rows) > 1:
            low, high = self._narrow(rows, keys, None)
            return low < high
        row, key = rows[0], keys[0]
        if len(key) > MANY and not bool((key[1:] >= key[:-1]).all()):
            order = self.xp.argsort(key)
            out = self.xp.empty(len(key), bool)
            out[order] = self._contains_sorted(row, key[order])
            return out
        return self._contains_sorted(row, key)

    def _contains_sorted(self, row: Array, key: Array) -> Array:
        at = self.xp.searchsorted(row, key)
        at[at == len(row)] = 0
        return row[at] == key

    def among(self, rows: Words, others: Words) -> Array:
        """Which of these sorted distinct rows are among others, which are sorted and distinct too. Searches for the fewer."""
        if len(others[0]) >= len(rows[0]):
            return self.contains(others, rows)
        mask = self.xp.zeros(len(rows[0]), bool)
        at, there = self.places(rows, others)
        mask[at[there]] = True
        return mask

    def places(self, rows: Words, keys: Words) -> tuple[Array, Array]:
        """For each key, a place among the sorted rows, which are not none, and whether it stands there."""
        if len(rows) == 1:
            at = self.xp.searchsorted(rows[0], keys[0])
            at[at == len(rows[0])] = 0
            return at, rows[0][at] == keys[0]
        low, high = self._narrow(rows, keys, None)
        return self.xp.minimum(low, len(rows[0]) - 1), low < high

    def find_ranges(self, rows: Words, columns: Sequence[Column], count: int) -> tuple[Array, Array]:
        """For each of `count` keys (the first columns of a row), where its rows start and end."""
        whole, half = divmod(len(columns), 2)
        if whole == 0:
            return self._prefix_ranges(rows[0], columns[0])
        keys = self.pack(columns[: 2 * whole], count)
        last = columns[-1] if half else None
        return self._narrow(rows, keys, last)

    def _prefix_ranges(self, row: Array, value: Array) -> tuple[Array, Array]:
        xp = self.xp
        if len(value) > MANY:
            top = int(row[-1] >> SHIFT) + 2 if len(row) else 1
            if len(row) + top < 16 * len(value):
                starts = xp.zeros(top + 1, np.int64)
                xp.cumsum(xp.bincount((row >> SHIFT).astype(np.int64), minlength=top), out=starts[1:])
                at = xp.minimum(value, U64(top - 1)).astype(np.int64)
                return starts[at], starts[at + 1]
            if not bool((value[1:] >= value[:-1]).all()):
                order = xp.argsort(value)
                low, high = self._prefix_ranges_sorted(row, value[order])
                back = xp.empty_like(order)
                back[order] = xp.arange(len(order))
                return low[back], high[back]
        return self._prefix_ranges_sorted(row, value)

    def _prefix_ranges_sorted(self, row: Array, value: Array) -> tuple[Array, Array]:
        key = value << SHIFT
        return self.xp.searchsorted(row, key), self.xp.searchsorted(row, key | LOW, side="right")

    def _narrow(self, rows: Words, keys: Words, last: Column | None) -> tuple[Array, Array]:
        """Ranges of rows that start with the key words and then, if `last` is given, with that id in the next word."""
        low = self.xp.searchsorted(rows[0], keys[0])
        high = self.xp.searchsorted(rows[0], keys[0], side="right")
        for row, key in zip(rows[1 : len(keys)], keys[1:], strict=True):
            low, high = self._bisect(row, low, high, key, False), self._bisect(row, low, high, key, True)
        if last is not None:
            key = self.xp.zeros(len(keys[0]), U64) | last << SHIFT
            row = rows[len(keys)]
            low, high = self._bisect(row, low, high, key, False), self._bisect(row, low, high, key | LOW, True)
        return low, high

    def _bisect(self, row: Array, low: Array, high: Array, key: Array, right: bool) -> Array:
        """Binary search inside a range per key, all at once."""
        low, high = low.copy(), high.copy()
        last = max(len(row) - 1, 0)
        while bool((open_ := low < high).any()):
            middle = (low + high) >> 1
            value = row[self.xp.minimum(middle, last)]
            go = open_ & ((value <= key) if right else (value < key))
            low = self.xp.where(go, middle + 1, low)
            high = self.xp.where(open_ & ~go, middle, high)
        return low

    def expand(self, low: Array, high: Array) -> tuple[Array, Array]:
        """For ranges, the number of each range and the index of each element in them."""
        counts = high - low
        number = self.differences.repeat(counts)
        ends = self.xp.cumsum(counts)
        index = self.xp.arange(len(number)) + (low - (ends - counts))[number]
        return number, index


class Differences:
    """What NumPy and CuPy spell differently, one method each."""

    def __init__(self, xp: Any) -> None:
        self.xp = xp
        self.numpy = xp is np
        self.block = 1 << 17 if self.numpy else 1 << 40
        """How much is worked on at a time: a CPU likes what fits its cache, a GPU whole arrays."""

    def sort(self, values: Array) -> Array:
        """For what comes in sorted runs: NumPy's stable sort merges them; CuPy's only sort is a radix sort."""
        return np.sort(values, kind="stable") if self.numpy else self.xp.sort(values)

    def stable_order(self, values: Array) -> Array:
        return np.argsort(values, kind="stable") if self.numpy else self.xp.argsort(values)

    def lexsort(self, words: Words) -> Array:
        return self.xp.lexsort(words[::-1]) if self.numpy else self.xp.lexsort(self.xp.stack(words[::-1]))

    def count_at(self, values: Array, at: Array) -> None:
        """Add one at each of these places, as often as it is named."""
        if self.numpy:
            np.add.at(values, at, U64(1))
        else:
            self.xp.add.at(values, at, U64(1))

    def greatest(self, values: Array, starts: Array) -> Array:
        """The greatest value of each group; groups follow each other, and none is empty."""
        if self.numpy:
            return np.maximum.reduceat(values, starts) if len(starts) else values
        group = self.xp.zeros(len(values), np.int64)
        group[starts[1:]] = 1
        order = self.lexsort((self.xp.cumsum(group), values))
        return values[order][self.xp.append(starts[1:], len(values)) - 1]

    def repeat(self, counts: Array) -> Array:
        """0 repeated counts[0] times, 1 repeated counts[1] times, …"""
        if self.numpy:
            return np.repeat(np.arange(len(counts)), counts)
        ends = self.xp.cumsum(counts)
        total = int(ends[-1]) if len(counts) else 0
        return self.xp.searchsorted(ends, self.xp.arange(total), side="right")
