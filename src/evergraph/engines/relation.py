"""A relation: a large sorted base, and small sorted runs of what was added and removed since.

    relation = (base − minus) ∪ plus,    minus ⊆ base,    plus ∩ base = ∅

In words: an update never rewrites the base. It makes a new `Relation` that shares the base and has a longer `plus` or
`minus`; when these pass a fraction of the base they are merged into it. Nothing is written in place, so a snapshot is a
reference. Rows are kept in the order of their columns, and in further orders as joins ask for them.

    base        plus     minus       reads as
    1 2 5 9     3        5           1 2 3 9
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from evergraph.engines.arrays import LOW, SHIFT, U64, Array, Arrays, Column, Words

MERGE_FRACTION = 32
"""Runs are merged when they pass 1/32 of the base: a merge then costs some 32 row copies per row that came or went."""

BITMAP_FROM, BITMAP_BYTES = 1 << 16, 32
"""From so many derived pairs on, a bitmap of up to so many bytes a pair is used in place of a sort."""

Order = tuple[int, ...]


class Run:
    """An immutable sorted set of rows, in one or more column orders."""

    __slots__ = ("__weakref__", "_orders", "arity", "arrays", "count", "words")

    def __init__(self, arrays: Arrays, arity: int, words: Words, orders: dict[Order, Words] | None = None) -> None:
        self.arrays, self.arity, self.words, self.count = arrays, arity, words, len(words[0])
        self._orders = {tuple(range(arity)): words, **(orders or {})}

    def __len__(self) -> int:
        return self.count

    @property
    def orders(self) -> dict[Order, Words]:
        """The orders that exist so far, the natural one first."""
        return self._orders

    @property
    def nbytes(self) -> int:
        return sum(int(w.nbytes) for words in self._orders.values() for w in words)

    def in_order(self, order: Order) -> Words:
        """The rows with their columns in this order, sorted. Cost: a sort, the first time."""
        words = self._orders.get(order)
        if words is None:
            if order == (1, 0):
                words = (self.arrays.transpose(self.words[0]),)
            else:
                words = self.arrays.unique([self.arrays.pack([self.column(i) for i in order], len(self))])
            self._orders = {**self._orders, order: words}
        return words

    def column(self, position: int) -> Array:
        return self.arrays.column(self.words, position)

    def distinct(self, position: int) -> Array:
        """The distinct ids of one column, in order."""
        for order, words in self._orders.items():
            if order[0] == position:
                return self.arrays.distinct_first(words)
        return self.arrays.distinct(self.column(position))

    def beginning(self, order: Order, keys: Sequence[Column], gone: Run | None = None) -> Words:
        """The rows in this order that begin with these values and have not gone. Cost: two searches; one more for each."""
        words = self.in_order(order)
        if keys:
            low, high = self.arrays.find_range(words, keys)
            words = tuple(word[low:high] for word in words)
        return words if gone is None or not len(words[0]) else self.arrays.without(words, gone.in_order(order))

    def rather_repeats(self, position: int) -> bool:
        """Whether to leave out what a column says again would cost more than to carry it along."""
        module = self.arrays.module
        return len(self) < module.repeats or (module.whole and all(order[0] != position for order in self._orders))

    def contains(self, keys: Words) -> Array:
        return self.arrays.contains(self.words, keys)

    def lacks(self, keys: Words) -> Array:
        return self.arrays.lacks(self.words, keys)

    def where(self, mask: Array) -> Run:
        """The rows that a mask marks."""
        words = self.arrays.chosen(self.words, mask)
        return self if words[0] is self.words[0] else Run(self.arrays, self.arity, words)

    def within(self, other: Run | Relation) -> Run:
        """The rows that are in another set."""
        return self.where(other.contains(self.words))

    def without(self, other: Run | Relation | None) -> Run:
        """The rows that are not."""
        return self if other is None else self.where(other.lacks(self.words))

    def merge(self, other: Run) -> Run:
        """The union with a disjoint run, in every order that this one has."""
        orders = {o: self.arrays.merge(w, other.in_order(o)) for o, w in self._orders.items()}
        return self._with(orders)

    def filter(self, other: Run, keep: bool) -> Run:
        """The rows that are in `other` (keep) or not in it, in every order that this one has.

        Cost: a search for each row of the smaller, and a copy.
        """
        choose = self.arrays.within if keep else self.arrays.without
        return self._with({order: choose(words, other.in_order(order)) for order, words in self._orders.items()})

    def less(self, gone: Run) -> Run:
        """Without rows that are all there, in every order that this one has. Cost: a search for each of them, and a copy."""
        return self._with({order: self.arrays.less(words, gone.in_order(order)) for order, words in self._orders.items()})

    def _with(self, orders: dict[Order, Words]) -> Run:
        natural = tuple(range(self.arity))
        return Run(self.arrays, self.arity, orders.pop(natural), orders)


class Relation:
    """An immutable set of rows under small changes."""

    __slots__ = ("__weakref__", "arity", "base", "count", "minus", "plus")

    def __init__(self, base: Run, plus: Run | None = None, minus: Run | None = None) -> None:
        self.base, self.plus, self.minus, self.arity = base, plus, minus, base.arity
        self.count = base.count + (plus.count if plus is not None else 0) - (minus.count if minus is not None else 0)

    @property
    def nbytes(self) -> int:
        return sum(run.nbytes for run in (self.base, self.plus, self.minus) if run is not None)

    def __len__(self) -> int:
        return self.count

    def parts(self) -> Iterator[tuple[Run, Run | None]]:
        """Runs to read, each with the run of rows to leave out of it."""
        yield self.base, self.minus
        if self.plus is not None:
            yield self.plus, None

    def contains(self, keys: Words) -> Array:
        found = self.base.contains(keys)
        if self.minus is not None:
            found &= ~self.minus.contains(keys)
        if self.plus is not None:
            found |= self.plus.contains(keys)
        return found

    def lacks(self, keys: Words) -> Array:
        """For each row, whether it is not there."""
        if self.minus is None and self.plus is None:
            return self.base.arrays.lacks(self.base.words, keys)
        return ~self.contains(keys)

    def new(self, words: Words) -> Words:
        """Those of these sorted rows that are not in the relation."""
        return self.base.arrays.chosen(words, self.lacks(words))

    def novel(self, parts: Sequence[Words]) -> Run:
        """The distinct rows of all parts that are not in the relation. Cost: a sort; less where a bitmap does."""
        if self.arity == 2:
            run = self._novel_pairs([words[0] for words in parts])
            if run is not None:
                return run
        arrays = self.base.arrays
        if self.plus is None and self.minus is None:
            return Run(arrays, self.arity, arrays.fresh(parts, self.base.words))
        return Run(arrays, self.arity, self.new(arrays.unique(parts)))

    def _novel_pairs(self, parts: Sequence[Array]) -> Run | None:
        """The same for many pairs with few second ids, such as types: a bitmap of first ids for each second id.

        The bitmap says what is new in the order (second, first); the natural order is a merge of as many runs as there
        are second ids. None where it would not pay.
        """
        arrays = self.base.arrays
        count = sum(map(len, parts))
        if count < BITMAP_FROM or not arrays.module.bitmaps:
            return None
        width = max(int(part.max() >> SHIFT) for part in parts) + 1
        values = arrays.distinct(arrays.xp.concatenate([arrays.distinct(b & LOW) for b in arrays.blocks(parts)]))
        if len(values) * width > BITMAP_BYTES * count:
            return None
        marks = arrays.xp.zeros(len(values) * width, bool)
        for block in arrays.blocks(parts):
            marks[arrays.module.rank(values, block & LOW).astype(np.int64) * width + (block >> SHIFT).astype(np.int64)] = True
        for run, minus in self.parts():
            words = run.in_order((1, 0))
            low, high = arrays.find_ranges(words, [values], len(values))
            for row, start, stop in zip(range(len(values)), low.tolist(), high.tolist(), strict=True):
                known = words[0][start:stop]
                if minus is not None and len(known):
                    known = known[~arrays.contains(minus.in_order((1, 0)), (known,))]
                known = known & LOW
                marks[row * width + known[known < U64(width)].astype(np.int64)] = False
        found = arrays.xp.flatnonzero(marks)
        row = found // width
        major, minor = values[row], (found - row * width).astype(U64)
        natural = arrays.module.sort(minor << SHIFT | major)
        return Run(arrays, 2, (natural,), {(1, 0): (major << SHIFT | minor,)})

    def add(self, run: Run) -> Relation:
        """With these rows, none of which is in the relation. Cost: the size of the runs; at times a merge of the base."""
        if not len(run):
            return self
        minus = self.minus
        if minus is not None:
            back = minus.filter(run, keep=True)
            if len(back):
                minus, run = minus.filter(back, keep=False), run.filter(back, keep=False)
        return self._settle(self.plus.merge(run) if self.plus is not None else run, minus)

    def remove(self, run: Run) -> Relation:
        """Without these rows, all of which are in the relation."""
        if not len(run):
            return self
        plus = self.plus
        if plus is not None:
            run, plus = run.filter(plus, keep=False), plus.filter(run, keep=False)
        return self._settle(plus, self.minus.merge(run) if self.minus is not None else run)

    def _settle(self, plus: Run | None, minus: Run | None) -> Relation:
        plus = plus if plus is not None and len(plus) else None
        minus = minus if minus is not None and len(minus) else None
        size = (plus.count if plus is not None else 0) + (minus.count if minus is not None else 0)
        found = Relation(self.base, plus, minus)
        return found if size * MERGE_FRACTION * self.base.arrays.module.eager <= len(self.base) else found.settled()

    def settled(self) -> Relation:
        """The same rows in one run. Cost: linear, unless they are in one already."""
        if self.plus is None and self.minus is None:
            return self
        base = self.base if self.minus is None else self.base.less(self.minus)
        return Relation(base if self.plus is None else base.merge(self.plus))

    def has(self, place: int, values: Array) -> Array:
        """For each value, whether a row of this binary relation has it in this place. Cost: a search for each."""
        found = self.base.arrays.xp.zeros(len(values), bool)
        for run, minus in self.parts():
            low, high = run.arrays.find_ranges(run.in_order((place, 1 - place)), [values], len(values))
            count = high - low
            if minus is not None:
                low, high = run.arrays.find_ranges(minus.in_order((place, 1 - place)), [values], len(values))
                count = count - (high - low)
            found |= count > 0
        return found

    def meets(self, place: int, values: Array) -> bool:
        """Whether a row has one of these values in this place; rows that went may count. Cost: a search for each value."""
        order = (place, *(i for i in range(self.arity) if i != place))
        for run, _ in self.parts():
            low, high = run.arrays.find_ranges(run.in_order(order), [values], len(values))
            if bool((high > low).any()):
                return True
        return False

    def same(self, other: Relation) -> bool:
        """Whether both hold the same rows. Cost: linear in one."""
        return len(self) == len(other) and not len(self.less(other)[0])

    def less(self, other: Relation | None) -> Words:
        """The sorted rows that are not in `other`. Cost: the runs beside the base, when the two share it."""
        if other is None:
            return self.rows()
        if self.base is not other.base:
            return other.new(self.rows())
        arrays, found = self.base.arrays, self.base.arrays.empty(self.arity)
        if self.plus is not None:
            found = other.new(self.plus.words)
        if other.minus is not None:
            back = other.minus.words
            mine = self.contains(back)
            found = arrays.merge(found, other.new(arrays.chosen(back, mine)))
        return found

    def columns(self) -> list[Array]:
        """All rows, column by column; sorted when there are no runs beside the base."""
        words = self.rows()
        return [self.base.arrays.column(words, i) for i in range(self.arity)]

    def rows(self) -> Words:
        """All rows, packed and sorted."""
        arrays, words = self.base.arrays, self.base.words
        if self.minus is not None:
            words = arrays.less(words, self.minus.words)
        return words if self.plus is None else arrays.merge(words, self.plus.words)


def run_of(arrays: Arrays, columns: Sequence[Column], count: int) -> Run:
    """A run of the distinct rows of these columns."""
    return Run(arrays, len(columns), arrays.unique([arrays.pack(columns, count)]))


def how_many(arrays: Arrays, asked: Sequence[tuple[Relation, Words]]) -> list[int]:
    """How many of these distinct rows each relation has. Cost: a search for each row in each run, and one wait."""
    runs = [
        (number, sign, (run.words, words))
        for number, (relation, words) in enumerate(asked)
        for run, sign in ((relation.base, 1), (relation.minus, -1), (relation.plus, 1))
        if run is not None and len(run) and len(words[0])
    ]
    out = [0] * len(asked)
    for (number, sign, _), found in zip(runs, arrays.how_many([pair for *_, pair in runs]), strict=True):
        out[number] += sign * found
    return out


def alike(a: Relation | None, b: Relation | None) -> bool:
    """Whether both are known to hold the same rows without a look at them."""
    if a is None or b is None:
        return a is b
    return a is b or (a.base is b.base and a.plus is b.plus and a.minus is b.minus)
