"""Solution mappings as columns of ids, and the operators of the SPARQL algebra on them.

A row is a solution; a variable without a column, or with `UNBOUND` in it, has no value there. Rows are a bag: every operator
keeps multiplicities as the specification counts them (SPARQL 1.1 Query, §18.5). Two rows are compatible when they agree on
every variable that both bind. Cost: a join sorts its smaller side and searches in it with the other.
Trap: rows that bind different variables must not be joined on the same key, so sides are first cut by which of the shared
variables they bind; as a rule that is one part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from evergraph.engines.arrays import SHIFT, Arrays
from evergraph.engines.modules import MANY
from evergraph.errors import UserError
from evergraph.terms import Ids
from evergraph.values import Mask

Index = npt.NDArray[np.int64]

UNBOUND = np.uint64(0xFFFFFFFF)
"""Stands for no value in a column; the dictionary's ids end below it."""
MOST_ROWS = 1 << 28
"""More rows than this in one table are refused before memory is asked for: two gigabytes a column."""
FIRST_BLOCK, LARGEST_BLOCK = 256, 1 << 16
"""Rows decoded at a time: at first, and at most."""
ARRAYS = Arrays()


class Solutions:
    """A bag of solutions.

    >>> people = Solutions(2, {"x": np.array([1, 2], np.uint64)})
    >>> names = Solutions(2, {"x": np.array([2, 2], np.uint64), "n": np.array([7, 8], np.uint64)})
    >>> {name: column.tolist() for name, column in left_join(people, names).columns.items()}
    {'x': [2, 2, 1], 'n': [7, 8, 4294967295]}
    """

    __slots__ = ("columns", "count")

    def __init__(self, count: int, columns: dict[str, Ids]) -> None:
        self.count, self.columns = count, columns

    def column(self, name: str) -> Ids:
        found = self.columns.get(name)
        return found if found is not None else np.full(self.count, UNBOUND)

    def take(self, rows: Index) -> Solutions:
        return Solutions(len(rows), {name: column[rows] for name, column in self.columns.items()})

    def select(self, mask: Mask) -> Solutions:
        return self if mask.all() else self.take(np.flatnonzero(mask))

    def keep(self, names: Iterable[str]) -> Solutions:
        return Solutions(self.count, {name: self.columns[name] for name in names if name in self.columns})

    def part(self, start: int, stop: int | None) -> Solutions:
        columns = {name: column[start:stop] for name, column in self.columns.items()}
        return Solutions(len(range(self.count)[start:stop]), columns)

    def blocks(self) -> Iterator[Solutions]:
        """All rows in parts, the first ones small, so that looking at a few costs little."""
        start, size = 0, FIRST_BLOCK
        while start < self.count:
            yield self.part(start, start + size)
            start, size = start + size, min(4 * size, LARGEST_BLOCK)


ONE = Solutions(1, {})
"""The solution that binds nothing."""
NONE = Solutions(0, {})


def concat(parts: Sequence[Solutions]) -> Solutions:
    """All rows of all parts."""
    parts = [part for part in parts if part.count]
    if len(parts) < 2:
        return parts[0] if parts else NONE
    names = dict.fromkeys(name for part in parts for name in part.columns)
    count = sum(part.count for part in parts)
    return Solutions(count, {name: np.concatenate([part.column(name) for part in parts]) for name in names})


def distinct(rows: Solutions, names: Iterable[str]) -> Solutions:
    """These variables of each different row once, the first of each in its place."""
    rows = rows.keep(names)
    if rows.count < 2:
        return rows
    if not rows.columns:
        return Solutions(1, {})
    _, first = np.unique(codes(list(rows.columns.values())), return_index=True)
    return rows if len(first) == rows.count else rows.take(np.sort(first))


def join(left: Solutions, right: Solutions) -> Solutions:
    return merge(left, right, *pairs(left, right))


def left_join(left: Solutions, right: Solutions, test: Callable[[Solutions], Mask] | None = None) -> Solutions:
    """Rows of both that are compatible and pass the test, and the rows of the left that have no such partner."""
    i, j = pairs(left, right)
    both = merge(left, right, i, j)
    if test is not None and both.count:
        passed = test(both)
        both, i = both.select(passed), i[passed]
    alone = np.ones(left.count, np.bool_)
    alone[i] = False
    rest = left.select(alone) if alone.any() else NONE
    return concat([both, rest])


def minus(left: Solutions, right: Solutions) -> Solutions:
    """The rows of the left but those that have a compatible row on the right which binds one of their variables."""
    return left.select(~matched(left, right, sharing=True))


def matched(left: Solutions, right: Solutions, sharing: bool = False) -> Mask:
    """Which rows of the left have a compatible row on the right; with `sharing`, one that has a variable in common."""
    found = np.zeros(left.count, np.bool_)
    for i, j, names in _parts(left, right):
        if names:
            a, b = _keys(left, right, i, j, names)
            found[i[isin(a, b)]] = True
        elif not sharing:
            found[i] = True
    return found


def pairs(left: Solutions, right: Solutions) -> tuple[Index, Index]:
    """The numbers of compatible rows, pair by pair."""
    found: list[tuple[Index, Index]] = []
    for i, j, names in _parts(left, right):
        if not names:
            check_size(len(i) * len(j))
            found.append((np.repeat(i, len(j)), np.tile(j, len(i))))
            continue
        a, b = _keys(left, right, i, j, names)
        if len(b) <= len(a):
            at, to = _match(a, b)
            found.append((i[at], j[to]))
        else:
            to, at = _match(b, a)
            found.append((i[at], j[to]))
    if len(found) == 1:
        return found[0]
    nothing = np.zeros(0, np.int64)
    return np.concatenate([nothing, *(i for i, _ in found)]), np.concatenate([nothing, *(j for _, j in found)])


def codes(columns: Sequence[Ids]) -> Ids:
    """One number per row, equal where rows are equal."""
    code = columns[0]
    for number, column in enumerate(columns[1:]):
        code = (code if number == 0 else ranked(code)[1].astype(np.uint64)) << SHIFT | column
    return code


def ranked(values: Ids) -> tuple[Ids, Index]:
    """The distinct values in order, and the place of each value among them. Cost: linear where ids are dense."""
    if len(values) >= MANY and (top := int(values.max())) <= 8 * len(values):
        distinct = ARRAYS.distinct(values)
        place = np.zeros(top + 1, np.int64)
        place[distinct] = np.arange(len(distinct))
        return distinct, place[values]
    distinct, inverse = np.unique(values, return_inverse=True)
    return distinct, inverse


def isin(values: Ids, among: Ids) -> Mask:
    """Which values are among others. Cost: linear where ids are dense, otherwise a sort of the others and a search."""
    if not len(among) or not len(values):
        return np.zeros(len(values), np.bool_)
    if len(values) >= MANY and (top := int(among.max())) <= 8 * (len(values) + len(among)):
        marks = np.zeros(top + 2, np.bool_)
        marks[among] = True
        found: Mask = marks[np.minimum(values, np.uint64(top + 1))]
        return found
    ordered = among if bool((among[1:] >= among[:-1]).all()) else np.sort(among)
    contained: Mask = ARRAYS.contains((ordered,), (values,))
    return contained


def check_size(count: int) -> None:
    if count > MOST_ROWS:
        raise UserError(
            "EG504", f"a part of the query has {count:,} solutions", "join its patterns by a variable, or add a LIMIT"
        )


def expand(low: Index, high: Index) -> tuple[Index, Index]:
    """For ranges, the number of the range and the place of each element in them."""
    check_size(int((high - low).sum()))
    number, place = ARRAYS.expand(low, high)
    return number, place


def _parts(left: Solutions, right: Solutions) -> Iterator[tuple[Index, Index, list[str]]]:
    """Rows of both sides, cut by the shared variables they bind, with those that both parts bind."""
    shared = [name for name in left.columns if name in right.columns]
    ours, theirs = _by_bound(left, shared), _by_bound(right, shared)
    for bound, i in ours:
        for others, j in theirs:
            yield i, j, [name for name in shared if name in bound and name in others]


def _by_bound(rows: Solutions, names: list[str]) -> list[tuple[set[str], Index]]:
    if not rows.count:
        return []
    unbound = [rows.columns[name] == UNBOUND for name in names]
    pattern = np.zeros(rows.count, np.int64)
    for number, mask in enumerate(unbound):
        pattern |= mask.astype(np.int64) << number
    return [
        ({name for number, name in enumerate(names) if not value >> number & 1}, np.flatnonzero(pattern == value))
        for value in np.unique(pattern).tolist()
    ]


def _keys(left: Solutions, right: Solutions, i: Index, j: Index, names: list[str]) -> tuple[Ids, Ids]:
    """The values of these variables in rows of both sides, one number a row."""
    code = codes([np.concatenate([left.columns[name][i], right.columns[name][j]]) for name in names])
    return code[: len(i)], code[len(i) :]


def _match(keys: Ids, among: Ids) -> tuple[Index, Index]:
    """The places of equal values: in the first, in the second."""
    order = np.argsort(among, kind="stable")
    ordered = among[order]
    low, high = np.searchsorted(ordered, keys), np.searchsorted(ordered, keys, side="right")
    number, place = expand(low, high)
    return number, order[place]


def merge(left: Solutions, right: Solutions, i: Index, j: Index) -> Solutions:
    """Row i of the left with row j of the right, pair by pair."""
    columns = {name: column[i] for name, column in left.columns.items()}
    for name, column in right.columns.items():
        ours = columns.get(name)
        columns[name] = column[j] if ours is None else np.where(ours == UNBOUND, column[j], ours)
    return Solutions(len(i), columns)
