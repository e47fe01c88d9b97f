"""The array vocabulary of the kernel: set operations on rows of ids, over NumPy or CuPy.

A row of ids is packed into `uint64` words, two 32-bit ids a word, the first column highest; a set of rows is a tuple of
word arrays in lexicographic order. Unary and binary relations are one word, which is what all of this is fast for; wider
rows take a word for every two columns and go through the same functions.

`xp` is the array module. Where the two differ, `module` knows how (`engines.modules`), and nothing else does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from evergraph.engines.modules import LOW, SHIFT, U64, Array, Words, module_of

__all__ = ["LOW", "SHIFT", "U64", "Array", "Arrays", "Column", "Half", "Words"]

Column = Any
"""An array, or a scalar that stands for a column of equal values."""


class Half:
    """A column of packed rows that has not been cut out of them: what is packed again need not be."""

    __slots__ = ("high", "word")
    ndim = 1

    def __init__(self, word: Array, high: bool) -> None:
        self.word, self.high = word, high

    def __len__(self) -> int:
        return len(self.word)


class Arrays:
    """Set operations on packed rows over one array module. Every cost below is per element of the named argument."""

    def __init__(self, xp: Any = np) -> None:
        self.xp, self.module = xp, module_of(xp)

    # -- packing -----------------------------------------------------------------------------------------------------

    def pack(self, columns: Sequence[Column], count: int) -> Words:
        """Columns (arrays or scalars) of `count` rows as words."""
        if not columns:
            return (self.xp.zeros(count, U64),)
        return tuple(self._packed(columns[i : i + 2], count) for i in range(0, len(columns), 2))

    def _packed(self, columns: Sequence[Column], count: int) -> Array:
        """One or two columns as one word."""
        if not any(getattr(column, "ndim", 0) for column in columns):
            return self.xp.full(count, columns[0] << SHIFT | (columns[1] if len(columns) == 2 else U64(0)), U64)
        if len(columns) == 1 and not isinstance(columns[0], Half):
            return columns[0] << SHIFT
        first, second = columns if len(columns) == 2 else (columns[0], U64(0))
        if isinstance(first, Half) and not getattr(second, "ndim", 0):
            return self.module.half_to(first.word, first.high, second)
        if isinstance(second, Half) and not getattr(first, "ndim", 0):
            return self.module.half_from(first, second.word, second.high)
        if isinstance(first, Half) and isinstance(second, Half) and first.word is second.word and first.high != second.high:
            return first.word if first.high else self.module.swapped(first.word)
        return self.module.pair(self.whole(first), self.whole(second))

    def whole(self, column: Column) -> Column:
        """A column, cut out of its rows if it has not been."""
        return self.module.half(column.word, column.high) if isinstance(column, Half) else column

    def column(self, words: Words, position: int) -> Array:
        """One column out of packed rows."""
        return self.module.half(words[position // 2], position % 2 == 0)

    def column_at(self, words: Words, position: int, index: Array) -> Array:
        """One column out of some of the rows."""
        return self.module.half_at(words[position // 2], position % 2 == 0, index)

    def empty(self, arity: int) -> Words:
        return tuple(self.xp.empty(0, U64) for _ in range(max(1, (arity + 1) // 2)))

    def chosen(self, arrays: Sequence[Array], mask: Array) -> tuple[Array, ...]:
        """The elements of several arrays that a mask marks; the arrays themselves if it marks all."""
        keep = self.module.where(mask)
        return tuple(arrays) if keep is None else tuple(self.module.take(array, keep) for array in arrays)

    # -- sorting -----------------------------------------------------------------------------------------------------

    def unique(self, parts: Sequence[Words]) -> Words:
        """The distinct rows of all parts, in order. Cost: a sort that takes sorted runs as they come."""
        words = parts[0] if len(parts) == 1 else tuple(self.xp.concatenate(w) for w in zip(*parts, strict=True))
        if len(words[0]) < 2:
            return words
        words = self.sorted(words)
        return self.chosen(words, self.module.firsts(words))

    def fresh(self, parts: Sequence[Words], known: Words) -> Words:
        """The distinct rows of all parts that are not among sorted ones, in order."""
        if not len(known[0]):
            return self.unique(parts)
        if len(known) > 1:
            rows = self.unique(parts)
            return self.chosen(rows, self.lacks(known, rows))
        return (self.module.fresh([words[0] for words in parts], known[0]),)

    def sorted(self, words: Words) -> Words:
        """Rows in order."""
        if len(words) == 1:
            return (self.module.sort(words[0]),)
        order = self.module.lexsort(words)
        return tuple(w[order] for w in words)

    def merge(self, a: Words, b: Words) -> Words:
        """Two disjoint sorted sets of rows as one. Cost: linear for single words."""
        if not len(b[0]):
            return a
        if not len(a[0]):
            return b
        if len(a) == 1:
            return (self.module.merge(a[0], b[0]),)
        return self.sorted(tuple(self.xp.concatenate(pair) for pair in zip(a, b, strict=True)))

    def merge_order(self, a: Words, b: Words) -> tuple[Words, Array]:
        """Two disjoint sorted sets of rows as one, and where each row of it stands in `a` followed by `b`."""
        words = tuple(self.xp.concatenate(pair) for pair in zip(a, b, strict=True))
        order = self.module.stable_order(words[0]) if len(words) == 1 else self.module.lexsort(words)
        return tuple(w[order] for w in words), order

    def groups(self, words: Words) -> tuple[Words, Array]:
        """The distinct rows of sorted ones, and where each of them starts."""
        starts = self.xp.flatnonzero(self.module.firsts(words))
        return tuple(w[starts] for w in words), starts

    def distinct_sorted(self, values: Array) -> Array:
        """Sorted values without repetition."""
        return values if len(values) < 2 else self.module.distinct_sorted(values)

    def distinct_first(self, words: Words) -> Array:
        """The distinct ids of the first column of sorted rows, in order."""
        word = words[0]
        return word >> SHIFT if len(word) < 2 else self.module.distinct_first(word)

    def distinct(self, values: Array) -> Array:
        """The distinct ids of a column, in order."""
        return values if len(values) < 2 else self.module.distinct(values)

    def split(self, column: Array) -> list[tuple[int, Any]]:
        """The rows of each id of a column, in their order."""
        values = self.distinct(column)
        if len(values) == 1:
            return [(int(values[0]), slice(None))]
        rank = self.module.rank(values, column)
        order = self.module.stable_order(rank)
        ends = self.xp.cumsum(self.xp.bincount(rank, minlength=len(values))).tolist()
        starts = [0, *ends[:-1]]
        return [(v, order[a:b]) for v, a, b in zip(values.tolist(), starts, ends, strict=True)]

    def split_pairs(self, key: Array, first: Array, second: Array) -> list[tuple[int, Array]]:
        """The distinct pairs of each key, sorted. Cost: a sort."""
        return self.module.split_pairs(self, key, first, second)

    def transpose(self, word: Array) -> Array:
        """Sorted pairs (a, b) as sorted pairs (b, a)."""
        return self.module.transpose(word)

    def blocks(self, parts: Sequence[Array]) -> Iterator[Array]:
        """Arrays in pieces that stay in the cache, and whose temporaries need no fresh memory."""
        size = self.module.block
        for part in parts:
            for start in range(0, len(part), size):
                yield part[start : start + size]

    # -- searching ---------------------------------------------------------------------------------------------------

    def contains(self, rows: Words, keys: Words) -> Array:
        """For each key, whether it is one of the sorted rows."""
        if not len(rows[0]) or not len(keys[0]):
            return self.xp.zeros(len(keys[0]), bool)
        if len(rows) > 1:
            low, high = self.module.narrow(rows, keys, None)
            return low < high
        return self.module.contains(rows[0], keys[0])

    def lacks(self, rows: Words, keys: Words) -> Array:
        """For each key, whether it is none of the sorted rows."""
        if len(rows) == 1 and len(rows[0]) and len(keys[0]):
            return self.module.lacks(rows[0], keys[0])
        return ~self.contains(rows, keys)

    def less(self, rows: Words, gone: Words) -> Words:
        """Sorted rows without some of them, which are sorted and all there. Cost: a search for each of these, and a copy."""
        if len(rows) == 1:
            return (self.module.less(rows[0], gone[0]),) if len(gone[0]) else rows
        return self.without(rows, gone)

    def within(self, rows: Words, others: Words) -> Words:
        """Those of sorted distinct rows that are among others, which are sorted and distinct too."""
        return self.chosen(rows, self.among(rows, others))

    def without(self, rows: Words, others: Words) -> Words:
        """Those that are not."""
        if self.module.whole or len(others[0]) >= len(rows[0]):
            return self.chosen(rows, self.lacks(others, rows))
        return self.chosen(rows, ~self.among(rows, others))

    def among(self, rows: Words, others: Words) -> Array:
        """Which of these sorted distinct rows are among others, which are sorted and distinct too. Searches for the fewer."""
        if self.module.whole or len(others[0]) >= len(rows[0]):
            return self.contains(others, rows)
        mask = self.xp.zeros(len(rows[0]), bool)
        at, there = self.places(rows, others)
        mask[at[there]] = True
        return mask

    def places(self, rows: Words, keys: Words) -> tuple[Array, Array]:
        """For each key, a place among the sorted rows, which are not none, and whether it stands there."""
        if len(rows) == 1:
            return self.module.places(rows[0], keys[0])
        low, high = self.module.narrow(rows, keys, None)
        return self.xp.minimum(low, len(rows[0]) - 1), low < high

    def find_ranges(self, rows: Words, columns: Sequence[Column], count: int) -> tuple[Array, Array]:
        """For each of `count` keys (the first columns of a row), where its rows start and end."""
        whole, half = divmod(len(columns), 2)
        if whole == 0:
            return self.module.ranges(rows[0], columns[0])
        keys = self.pack(columns[: 2 * whole], count)
        return self.module.narrow(rows, keys, self.spread(columns[-1], count) if half else None)

    def find_range(self, rows: Words, values: Sequence[Any]) -> tuple[int, int]:
        """The same for one key of scalars."""
        if len(values) == 1:
            return self.module.range_of(rows[0], values[0])
        low, high = self.find_ranges(rows, [self.xp.asarray([int(v)], dtype=U64) for v in values], 1)
        return int(low[0]), int(high[0])

    def spread(self, column: Column, count: int) -> Array:
        """A column, or a scalar as a column."""
        return column if getattr(column, "ndim", 0) else self.xp.full(count, column, U64)

    def how_many(self, asked: Sequence[tuple[Words, Words]]) -> list[int]:
        """For each set of sorted rows, which is not empty, how many of some keys are among them. Cost: one wait."""
        if all(len(rows) == 1 for rows, _ in asked):
            return self.module.how_many([(rows[0], keys[0]) for rows, keys in asked])
        return [int(self.contains(rows, keys).sum()) for rows, keys in asked]

    def fetch(self, columns: Mapping[str, Array]) -> dict[str, Array]:
        """Columns of one length on the host. Cost: one wait."""
        return self.module.fetch(columns)

    def row(self, columns: Mapping[str, Array]) -> dict[str, Any]:
        """The only row of a table, as scalars."""
        return {name: column[0] for name, column in self.fetch(columns).items()}

    def expand(self, low: Array, high: Array) -> tuple[Array, Array]:
        """For ranges, the number of each range and the index of each element in them."""
        return self.module.expand(low, high)
