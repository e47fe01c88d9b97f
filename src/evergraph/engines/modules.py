"""NumPy and CuPy, side by side: all that the kernel does differently on a GPU.

    Numpy    work in pieces that fit a cache, and look at the input first: sorted keys are found sooner
    Cupy     work on whole arrays in as few launches as can be: to start one, or to wait for one, takes longer than most take

In words: what both spell the same way is asked of the module itself, `xp`. The rest are the methods of these two classes, the
same in both; nothing else in the kernel knows which it has. On a GPU the searches, merges and expansions that a join is made of
are kernels of their own, one launch each, where NumPy's are made of several functions.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from evergraph.engines.gpu.sources import ALL, THREADS, TILE, Kernel, Scan, narrowing, source

Array = Any
"""A one-dimensional array of one of the two modules."""
Words = tuple[Array, ...]

U64 = np.uint64
SHIFT = U64(32)
LOW = U64(0xFFFFFFFF)

MANY = 4096
"""From here on a look at the whole input pays for itself."""
RADIX = 1 << 16
"""NumPy sorts 16-bit integers in linear time."""
LARGE = 1 << 20
"""Where half of so many words is room that is missed."""


class Numpy:
    xp: Any = np
    block = 1 << 17
    """How much is worked on at a time."""
    eager = 1
    """How many times as soon as else small runs are merged into large ones: to read two parts takes twice the launches."""
    whole = False
    """Whether to look at all of a large array is sooner than to search it for a few."""
    repeats = 0
    """Columns of fewer rows are read with their repetitions: to leave these out takes longer than to carry them along."""
    near = sys.maxsize
    """Tables and relations of up to so many rows are worked on where the host can see them."""
    bitmaps = True
    """Whether many pairs with few second ids are told apart sooner by marking than by sorting."""

    # -- where arrays are --------------------------------------------------------------------------------------------

    def host(self, values: Array) -> Any:
        """As an array of NumPy."""
        return values

    def fetch(self, columns: Mapping[str, Array]) -> dict[str, Any]:
        """Columns of one length, as arrays of NumPy."""
        return dict(columns)

    def values(self, values: Any) -> Any:
        """What compares terms."""
        return values

    # -- order -------------------------------------------------------------------------------------------------------

    def sort(self, values: Array) -> Array:
        """For what comes in sorted runs: a stable sort merges them."""
        return np.sort(values, kind="stable")

    def stable_order(self, values: Array) -> Array:
        return np.argsort(values, kind="stable")

    def lexsort(self, words: Words) -> Array:
        return np.lexsort(words[::-1])

    def merge(self, a: Array, b: Array) -> Array:
        """Two sorted arrays that have nothing in common as one."""
        return self.sort(np.concatenate([a, b]))

    def less(self, row: Array, gone: Array) -> Array:
        """Sorted elements without some of them, which are sorted and all there."""
        keep = np.ones(len(row), bool)
        keep[np.searchsorted(row, gone)] = False
        return row[keep]

    def swapped(self, word: Array) -> Array:
        """Pairs with their halves exchanged."""
        return word << SHIFT | word >> SHIFT

    def pair(self, first: Array, second: Array) -> Array:
        """Columns, one of which may be a scalar, as pairs."""
        return first << SHIFT | second

    def half(self, word: Array, high: bool) -> Array:
        """One half of pairs."""
        return word >> SHIFT if high else word & LOW

    def half_to(self, word: Array, high: bool, second: Any) -> Array:
        """One half of pairs, paired with one id."""
        return (word >> SHIFT << SHIFT if high else word << SHIFT) | second

    def half_from(self, first: Any, word: Array, high: bool) -> Array:
        """One id, paired with one half of pairs."""
        return first << SHIFT | self.half(word, high)

    def half_at(self, word: Array, high: bool, at: Array) -> Array:
        """One half of the pairs in some places."""
        return self.half(word[at], high)

    def take(self, values: Array, at: Array) -> Array:
        """The values in some places."""
        return values[at]

    def firsts(self, words: Words) -> Array:
        """A mask of the rows of sorted ones that are not those before them."""
        keep = np.ones(len(words[0]), bool)
        if len(keep) > 1:
            np.not_equal(words[0][1:], words[0][:-1], out=keep[1:])
            for word in words[1:]:
                keep[1:] |= word[1:] != word[:-1]
        return keep

    def where(self, mask: Array) -> Array:
        """What takes the marked elements out of any number of arrays; None if all are marked."""
        return None if mask.all() else mask

    def distinct(self, values: Array) -> Array:
        """The distinct ids of a column, in order: by marking in a bitmap when there are many, by sorting otherwise."""
        if len(values) >= MANY:
            top = int(values.max())
            if top <= 8 * len(values):
                seen = np.zeros(top + 1, bool)
                seen[values] = True
                return np.flatnonzero(seen).astype(U64)
        return self.distinct_sorted(self.sort(values))

    def distinct_first(self, word: Array) -> Array:
        """The distinct first halves of sorted pairs, of which there are some."""
        return self.distinct_sorted(word >> SHIFT)

    def split_pairs(self, arrays: Any, key: Array, first: Array, second: Array) -> list[tuple[int, Array]]:
        """The distinct pairs of each key, sorted: key by key, each in the cache."""
        return [(k, arrays.unique([(self.pair(first[part], second[part]),)])[0]) for k, part in arrays.split(key)]

    def distinct_sorted(self, values: Array) -> Array:
        """Sorted values without repetition."""
        keep = self.where(self.firsts((values,)))
        return values if keep is None else values[keep]

    def fresh(self, parts: Sequence[Array], known: Array) -> Array:
        """The distinct words of all parts that are not known, in order; known ones are sorted, and not none."""
        word = self.distinct_sorted(self.sort(parts[0] if len(parts) == 1 else np.concatenate(parts)))
        keep = self.where(self.lacks(known, word))
        return word if keep is None else word[keep]

    def rank(self, values: Array, column: Array) -> Array:
        """For each id of a column its place among the sorted distinct ids `values`, in 16 bits when that suffices."""
        kind = np.uint16 if len(values) < RADIX else np.int64
        if len(column) < MANY or int(values[-1]) > 8 * len(column):
            return np.searchsorted(values, column).astype(kind)
        place = np.zeros(int(values[-1]) + 1, kind)
        place[values] = np.arange(len(values), dtype=kind)
        return place[column]

    def transpose(self, word: Array) -> Array:
        """Sorted pairs (a, b) as sorted pairs (b, a): a stable sort by b, linear on 16-bit ranks if there are few."""
        if len(word) >= MANY:
            major = word & LOW
            values = self.distinct(major)
            if len(values) < RADIX and len(values) * 4 < len(word):
                order = self.stable_order(self.rank(values, major))
                return (major << SHIFT | word >> SHIFT)[order]
        return np.sort(self.swapped(word))

    # -- searching ---------------------------------------------------------------------------------------------------

    def contains(self, row: Array, key: Array) -> Array:
        """For each key, whether it is one of the sorted elements, which are not none. Cost: a search for each.

        Searching many unsorted keys in a large array misses the cache at every step, so that they are sorted first.
        """
        if len(key) > MANY and not bool((key[1:] >= key[:-1]).all()):
            order = np.argsort(key)
            out = np.empty(len(key), bool)
            out[order] = self.places(row, key[order])[1]
            return out
        return self.places(row, key)[1]

    def lacks(self, row: Array, key: Array) -> Array:
        """For each key, whether it is none of them."""
        return ~self.contains(row, key)

    def places(self, row: Array, key: Array) -> tuple[Array, Array]:
        """For each key, a place among the sorted elements, which are not none, and whether it stands there."""
        at: Array = np.searchsorted(row, key)
        at[at == len(row)] = 0
        return at, row[at] == key

    def how_many(self, asked: Sequence[tuple[Array, Array]]) -> list[int]:
        """For each array of sorted elements, which are not none, how many of some keys are among them."""
        return [int(self.contains(row, key).sum()) for row, key in asked]

    def ranges(self, row: Array, first: Array) -> tuple[Array, Array]:
        """For each id, where the sorted pairs that begin with it start and end: by pointers if that pays."""
        if len(first) > MANY:
            top = int(row[-1] >> SHIFT) + 2 if len(row) else 1
            if len(row) + top < 16 * len(first):
                starts = np.zeros(top + 1, np.int64)
                np.cumsum(np.bincount((row >> SHIFT).astype(np.int64), minlength=top), out=starts[1:])
                at = np.minimum(first, U64(top - 1)).astype(np.int64)
                return starts[at], starts[at + 1]
            if not bool((first[1:] >= first[:-1]).all()):
                order = np.argsort(first)
                low, high = self._ranges_sorted(row, first[order])
                back = np.empty_like(order)
                back[order] = np.arange(len(order))
                return low[back], high[back]
        return self._ranges_sorted(row, first)

    def _ranges_sorted(self, row: Array, first: Array) -> tuple[Array, Array]:
        key = first << SHIFT
        return np.searchsorted(row, key), np.searchsorted(row, key | LOW, side="right")

    def range_of(self, row: Array, first: Any) -> tuple[int, int]:
        """The same for one id."""
        key = U64(first) << SHIFT
        return int(np.searchsorted(row, key)), int(np.searchsorted(row, key | LOW, side="right"))

    def narrow(self, rows: Words, keys: Words, last: Array | None) -> tuple[Array, Array]:
        """Ranges of sorted rows that start with the key words and then, if `last` is given, with that id in the next word."""
        low = np.searchsorted(rows[0], keys[0])
        high = np.searchsorted(rows[0], keys[0], side="right")
        for row, key in zip(rows[1 : len(keys)], keys[1:], strict=True):
            low, high = self._bisect(row, low, high, key, False), self._bisect(row, low, high, key, True)
        if last is not None:
            key, row = last << SHIFT, rows[len(keys)]
            low, high = self._bisect(row, low, high, key, False), self._bisect(row, low, high, key | LOW, True)
        return low, high

    def _bisect(self, row: Array, low: Array, high: Array, key: Array, right: bool) -> Array:
        """Binary search inside a range per key, all at once."""
        low, high = low.copy(), high.copy()
        last = max(len(row) - 1, 0)
        while bool((open_ := low < high).any()):
            middle = (low + high) >> 1
            value = row[np.minimum(middle, last)]
            go = open_ & ((value <= key) if right else (value < key))
            low = np.where(go, middle + 1, low)
            high = np.where(open_ & ~go, middle, high)
        return low

    def expand(self, low: Array, high: Array) -> tuple[Array, Array]:
        """For ranges, the number of each range and the index of each element in them."""
        counts = high - low
        number = self.repeat(counts)
        ends = np.cumsum(counts)
        return number, np.arange(len(number)) + (low - (ends - counts))[number]

    def join(self, row: Array, first: Array) -> tuple[Array, Array]:
        """For each of the sorted pairs that begin with one of these ids, the number of the id, and what it ends with."""
        number, at = self.expand(*self.ranges(row, first))
        return number, self.half_at(row, False, at)

    def repeat(self, counts: Array) -> Array:
        """0 repeated counts[0] times, 1 repeated counts[1] times, …"""
        return np.repeat(np.arange(len(counts)), counts)

    # -- writing -----------------------------------------------------------------------------------------------------

    def add_at(self, values: Array, at: Array, more: Any) -> None:
        """Add at each of these places, as often as it is named."""
        np.add.at(values, at, more)

    def least_at(self, values: Array, at: Array, less: Array) -> None:
        """Let each of these places have the least value that is given for it, if that is less than what it has."""
        np.minimum.at(values, at, less)

    def greatest(self, values: Array, starts: Array) -> Array:
        """The greatest value of each group; groups follow each other, and none is empty."""
        return np.maximum.reduceat(values, starts) if len(starts) else values


class Cupy:
    """`xp` is CuPy, or what stands in for it."""

    block = 1 << 40
    eager = 32
    whole = True
    repeats = 1 << 20
    near = 1 << 12
    bitmaps = False

    def __init__(self, xp: Any) -> None:
        self.xp = xp

    # -- kernels -----------------------------------------------------------------------------------------------------

    @cached_property
    def _kernels(self) -> dict[str, Any]:
        """Compiled when the first of them is asked for, all at once."""
        return self._compiled(ALL)

    def _compiled(self, kernels: Mapping[str, Kernel | Scan]) -> dict[str, Any]:
        module = self.xp.RawModule(code=source(kernels), options=("-std=c++17",))
        return {name: module.get_function(f"eg_{name}") for name in kernels}

    def _run(self, name: str, size: int, *args: Any) -> None:
        """For so many elements: what a kernel is given, then what it makes."""
        if size:
            self._kernels[name]((-(-size // THREADS),), (THREADS,), (size, *args))

    def _made(self, name: str, size: int, *args: Any, dtype: Any = U64) -> Array:
        """The one array of so many elements that a kernel makes."""
        out = self.xp.empty(size, dtype)
        self._run(name, size, *args, out)
        return out

    def _scan(self, name: str, size: int, *args: Any) -> int:
        """How many all elements count for. Cost: one launch, and one wait."""
        if not size:
            return 0
        tiles = -(-size // TILE)
        state = self.xp.zeros(tiles + 2, U64)
        self._kernels[name]((tiles,), (THREADS,), (size, *args, state))
        return int(state[1])

    def _chosen(self, name: str, size: int, *args: Any, dtype: Any = U64) -> Array:
        """What a scan chooses of so many elements. What has room for many does not stay for few."""
        out = self.xp.empty(size, dtype)
        count = self._scan(name, size, *args, out)
        if count == size:
            return out
        return out[:count] if 2 * count > size or size < LARGE else out[:count].copy()

    # -- where arrays are --------------------------------------------------------------------------------------------

    def host(self, values: Array) -> Any:
        return self.xp.asnumpy(values)

    def fetch(self, columns: Mapping[str, Array]) -> dict[str, Any]:
        if len(columns) < 2:
            return {name: self.host(column) for name, column in columns.items()}
        return dict(zip(columns, self.host(self.xp.stack(list(columns.values()))), strict=True))

    def values(self, values: Any) -> Any:
        from evergraph.engines.gpu.values import DeviceValues

        return DeviceValues(values, self.xp) if values is not None else None

    # -- order -------------------------------------------------------------------------------------------------------

    def sort(self, values: Array) -> Array:
        return self.xp.sort(values)

    def stable_order(self, values: Array) -> Array:
        return self.xp.argsort(values)

    def lexsort(self, words: Words) -> Array:
        return self.xp.lexsort(self.xp.stack(words[::-1]))

    def merge(self, a: Array, b: Array) -> Array:
        out = self.xp.empty(len(a) + len(b), U64)
        self._run("merge", len(out), a, len(a), b, len(b), out)
        return out

    def less(self, row: Array, gone: Array) -> Array:
        """Where each goes is known, so that nothing is waited for."""
        out = self.xp.empty(len(row) - len(gone), U64)
        self._run("less", len(row), row, gone, len(gone), out)
        return out

    def swapped(self, word: Array) -> Array:
        return self._made("swap", len(word), word)

    def pair(self, first: Array, second: Array) -> Array:
        if not getattr(first, "ndim", 0):
            return self._made("pair_from", len(second), U64(first), second)
        if not getattr(second, "ndim", 0):
            return self._made("pair_to", len(first), first, U64(second))
        return self._made("pair", len(first), first, second)

    def half(self, word: Array, high: bool) -> Array:
        return self._made("high" if high else "low", len(word), word)

    def half_to(self, word: Array, high: bool, second: Any) -> Array:
        return self._made("high_to" if high else "pair_to", len(word), word, U64(second))

    def half_from(self, first: Any, word: Array, high: bool) -> Array:
        return self._made("from_high" if high else "from_low", len(word), U64(first), word)

    def half_at(self, word: Array, high: bool, at: Array) -> Array:
        return self._made("take_high" if high else "take_low", len(at), word, at)

    def take(self, values: Array, at: Array) -> Array:
        return self._made("take", len(at), values, at, dtype=values.dtype) if values.dtype.itemsize == 8 else values[at]

    def firsts(self, words: Words) -> Array:
        keep = self._made("firsts", len(words[0]), words[0], dtype=bool)
        for word in words[1:]:
            keep = self._made("differ", len(word), word, keep, dtype=bool)
        return keep

    def where(self, mask: Array) -> Array:
        found = self._chosen("where", len(mask), mask, dtype=np.int64)
        return None if len(found) == len(mask) else found

    def distinct(self, values: Array) -> Array:
        return self.distinct_sorted(self.xp.sort(values))

    def distinct_sorted(self, values: Array) -> Array:
        return self._chosen("distinct", len(values), values, dtype=values.dtype)

    def distinct_first(self, word: Array) -> Array:
        return self._chosen("distinct_first", len(word), word)

    def split_pairs(self, arrays: Any, key: Array, first: Array, second: Array) -> list[tuple[int, Array]]:
        """All keys at once: a stable sort by the key of what is sorted by the pair."""
        word, xp = self.pair(first, second), self.xp
        order = xp.argsort(word)
        order = order[xp.argsort(key[order])]
        keys, pairs = arrays.chosen((key[order], word[order]), self.firsts((key[order], word[order])))
        (found,), starts = arrays.groups((keys,))
        edges = [*starts.tolist(), len(keys)]
        return [(k, pairs[a:b]) for k, (a, b) in zip(found.tolist(), pairwise(edges), strict=True)]

    def fresh(self, parts: Sequence[Array], known: Array) -> Array:
        """What was put together here is sorted where it is, and looked at once where NumPy looks twice."""
        if len(parts) == 1:
            word = self.xp.sort(parts[0])
        else:
            word = self.xp.concatenate(parts)
            word.sort()
        return self._chosen("fresh", len(word), word, known, len(known))

    def rank(self, values: Array, column: Array) -> Array:
        return self.places(values, column)[0]

    def transpose(self, word: Array) -> Array:
        word = self.swapped(word)
        word.sort()
        return word

    # -- searching ---------------------------------------------------------------------------------------------------

    def contains(self, row: Array, key: Array) -> Array:
        return self._made("contains", len(key), row, len(row), key, dtype=bool)

    def lacks(self, row: Array, key: Array) -> Array:
        return self._made("lacks", len(key), row, len(row), key, dtype=bool)

    def places(self, row: Array, key: Array) -> tuple[Array, Array]:
        at, there = self.xp.empty(len(key), np.int64), self.xp.empty(len(key), bool)
        self._run("places", len(key), row, len(row), key, at, there)
        return at, there

    def how_many(self, asked: Sequence[tuple[Array, Array]]) -> list[int]:
        """All are waited for at once."""
        if not asked:
            return []
        counts = self.xp.zeros(len(asked), U64)
        for number, (row, key) in enumerate(asked):
            self._run("count", len(key), row, len(row), key, counts[number : number + 1])
        listed: list[int] = counts.tolist()
        return listed

    def ranges(self, row: Array, first: Array) -> tuple[Array, Array]:
        low, high = self.xp.empty(len(first), np.int64), self.xp.empty(len(first), np.int64)
        self._run("ranges", len(first), row, len(row), first, low, high)
        return low, high

    def range_of(self, row: Array, first: Any) -> tuple[int, int]:
        low, high = self._made("range", 2, row, len(row), U64(first), dtype=np.int64).tolist()
        return low, high

    def narrow(self, rows: Words, keys: Words, last: Array | None) -> tuple[Array, Array]:
        name, kernel = narrowing(len(keys), last is not None)
        if name not in self._kernels:
            self._kernels.update(self._compiled({name: kernel}))
        more = () if last is None else (last,)
        words, count = rows[: len(keys) + len(more)], len(keys[0])
        low, high = self.xp.empty(count, np.int64), self.xp.empty(count, np.int64)
        self._run(name, count, *words, len(rows[0]), *keys, *more, low, high)
        return low, high

    def expand(self, low: Array, high: Array) -> tuple[Array, Array]:
        ends = self.xp.empty(len(low), np.int64)
        size = self._scan("ends", len(low), low, high, ends)
        number, at = self.xp.empty(size, np.int64), self.xp.empty(size, np.int64)
        self._run("expand", size, ends, len(ends), low, number, at)
        return number, at

    def join(self, row: Array, first: Array) -> tuple[Array, Array]:
        """Where the rows of each id begin is written while they are counted."""
        low, ends = self.xp.empty(len(first), np.int64), self.xp.empty(len(first), np.int64)
        size = self._scan("starts", len(first), row, len(row), first, low, ends)
        number, second = self.xp.empty(size, np.int64), self.xp.empty(size, U64)
        self._run("joined", size, ends, len(ends), low, row, number, second)
        return number, second

    def repeat(self, counts: Array) -> Array:
        ends = self.xp.empty(len(counts), np.int64)
        size = self._scan("sums", len(counts), counts, ends)
        return self._made("repeat", size, ends, len(ends), dtype=np.int64)

    # -- writing -----------------------------------------------------------------------------------------------------

    def add_at(self, values: Array, at: Array, more: Any) -> None:
        """Atomic addition is of unsigned words; it is the same for signed ones."""
        self.xp.add.at(values.view(U64), at, U64(int(more) & 0xFFFFFFFFFFFFFFFF))

    def least_at(self, values: Array, at: Array, less: Array) -> None:
        """Values are not negative."""
        self.xp.minimum.at(values.view(U64), at, less.view(U64))

    def greatest(self, values: Array, starts: Array) -> Array:
        group = self.xp.zeros(len(values), U64)
        group[starts[1:]] = U64(1)
        order = self.lexsort((self.xp.cumsum(group), values))
        return values[order][self.xp.append(starts[1:], len(values)) - 1]


@cache
def module_of(xp: Any) -> Numpy | Cupy:
    return Numpy() if xp is np else Cupy(xp)
