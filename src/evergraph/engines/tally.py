"""Ranks and counts of a graph that has just been closed from its explicit facts.

In words: the closure has said in which order it derived what (`Fixpoint.trace`); that order is the rank. Then every rule is
evaluated once over all facts, every variable expanded, and each instance of lower rank is counted for its head. The closure
itself can so go on to skip what gives nothing new.
Cost: a search for each instance and each marked fact in it; a look into an array where pairs have few second ids, as types do.
Arrays are written in place here, before anyone else sees them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import pairwise

import numpy as np

from evergraph.engines.arrays import LOW, SHIFT, U64, Array, Arrays, Column, Words
from evergraph.engines.instances import highest_rank
from evergraph.engines.kernel import Kernel, Relations
from evergraph.engines.marks import Marks, rank_of
from evergraph.engines.relation import Relation, Run
from evergraph.engines.table import Table
from evergraph.plan.model import Key, PlanAtom, PlanRule, Value

PLANES_FROM, PLANES = 1 << 16, 1 << 10
"""Relations of so many pairs with at most so many second ids are counted plane by plane."""
DENSE = 7
"""More instances than one in 2⁷ of all first ids are counted in an array over those, fewer are searched for."""
STRETCH = 1 << 9
"""Shorter stretches than this are not worth a look of their own."""


def tally(
    kernel: Kernel, rules: Iterable[PlanRule], relations: Relations, trace: Sequence[tuple[Key, Run]]
) -> dict[Key, Marks]:
    """The marks of every relation that something was derived in."""
    counting = _Tally(kernel, relations, trace)
    for rule in rules:
        counting.add(rule)
    return counting.marks()


class _Tally:
    def __init__(self, kernel: Kernel, relations: Relations, trace: Sequence[tuple[Key, Run]]) -> None:
        self.kernel, self.arrays, self.relations = kernel, kernel.arrays, relations
        self.ranked = _ranked(self.arrays, relations, trace)
        """Marks with ranks and no counts yet, except of relations in `planes`."""
        self.planes = {
            key: planes
            for key, marks in self.ranked.items()
            if (planes := _planes(self.arrays, relations[key], marks)) is not None
        }

    def add(self, rule: PlanRule) -> None:
        sources = [self.relations] * len(rule.body)
        classes: set[Value] = {a.args[1] for a in (rule.head, *rule.body) if not a.open and a.relation in self.planes}

        def take(table: Table) -> None:
            for part in self._cut(table, [c for c in classes if c in table.columns]):
                self._take(rule, part)

        self.kernel.instances(rule, sources, self.relations, take)

    def _cut(self, table: Table, names: list[Value]) -> Iterable[Table]:
        """The table in stretches where these columns do not change, if they are long: joins leave it in such an order."""
        xp = self.kernel.xp
        if not names or table.count < PLANES_FROM:
            return [table]
        edges = xp.zeros(table.count - 1, bool)
        for name in names:
            edges |= table.columns[str(name)][1:] != table.columns[str(name)][:-1]
        cuts = (xp.flatnonzero(edges) + 1).tolist()
        if len(cuts) * STRETCH > table.count:
            return [table]
        return (self._stretch(table, names, a, b) for a, b in pairwise([0, *cuts, table.count]))

    def _stretch(self, table: Table, names: list[Value], start: int, stop: int) -> Table:
        columns = {name: column[start:stop] for name, column in table.columns.items() if name not in names}
        return Table(stop - start, columns, table.fixed | {str(n): table.columns[str(n)][start] for n in names})

    def marks(self) -> dict[Key, Marks]:
        for key, planes in self.planes.items():
            self.ranked[key].values[planes.order] = planes.values
        return self.ranked

    def _take(self, rule: PlanRule, table: Table) -> None:
        head = rule.head
        top = self._top(rule.body, table)
        if not head.open and head.relation in self.planes:
            first, second = _pair(table, head)
            planes = self.planes[head.relation]
            if _spread(first) and not _spread(second):
                planes.count(int(second), first, top)
                return
        words = self.arrays.pack([table.value(a) for a in head.args], table.count)
        tops = top if _spread(top) else self.kernel.xp.full(table.count, top, U64)
        for key, (*rows, highest) in self.kernel.cut(head, table, (*words, tops)):
            self._count(key, tuple(rows), highest)

    def _top(self, body: tuple[PlanAtom, ...], table: Table) -> Column:
        """The highest rank in each body: read off planes where that pays, searched for elsewhere."""
        top: Column = U64(0)
        rest = []
        for atom in body:
            planes = None if atom.open else self.planes.get(atom.relation)
            if planes is not None:
                first, second = _pair(table, atom)
                if _spread(first) and not _spread(second):
                    top = self.kernel.xp.maximum(top, planes.ranks(int(second), first))
                    continue
            rest.append(atom)
        return self.kernel.xp.maximum(top, highest_rank(self.kernel, self.ranked, tuple(rest), table)) if rest else top

    def _count(self, key: Key, rows: Words, top: Array) -> None:
        """Count instances one by one."""
        if key not in self.ranked:
            return
        marks = self.ranked[key]
        for words, values in ((marks.words, marks.values), (marks.more, marks.more_values)):
            if len(values):
                at, there = self.arrays.places(words, rows)
                there &= top < rank_of(values[at])
                planes = self.planes.get(key)
                if planes is not None and values is marks.values:
                    self.arrays.module.add_at(planes.values, planes.places[at[there]], 1)
                else:
                    self.arrays.module.add_at(values, at[there], 1)


class _Planes:
    """The marks of pairs, by second id: those of one second id stand together, in the order of their first ids."""

    def __init__(self, arrays: Arrays, words: Array, values: Array, seconds: Array) -> None:
        self.arrays = arrays
        which = arrays.module.rank(seconds, words & LOW)
        self.order = arrays.module.stable_order(which)
        """Where in the relation each pair stands."""
        self.values = values[self.order]
        self.firsts = words[self.order] >> SHIFT
        ends = arrays.xp.cumsum(arrays.xp.bincount(which, minlength=len(seconds))).tolist()
        self.slices = {s: slice(a, b) for s, a, b in zip(seconds.tolist(), [0, *ends[:-1]], ends, strict=True)}
        self.width = int(words[-1] >> SHIFT) + 1
        self._ranks: dict[int, Array] = {}

    @cached_property
    def places(self) -> Array:
        """Where in the planes each pair of the relation stands."""
        found = self.arrays.xp.empty_like(self.order)
        found[self.order] = self.arrays.xp.arange(len(self.order))
        return found

    def ranks(self, second: int, firsts: Array) -> Array:
        """The ranks of pairs of one plane."""
        if second not in self.slices:
            return self.arrays.xp.zeros(len(firsts), U64)
        mine = self.slices[second]
        if len(firsts) < self.width >> DENSE:
            at, there = self.arrays.places((self.firsts[mine],), (firsts,))
            return rank_of(self.values[mine][at]) * there
        return self._dense(second)[firsts.view(np.int64)]

    def _dense(self, second: int) -> Array:
        """The ranks of one plane, by first id; the last few are kept."""
        if second not in self._ranks:
            if len(self._ranks) >= 8:
                self._ranks.pop(next(iter(self._ranks)))
            mine = self.slices[second]
            found = self.arrays.xp.zeros(self.width, np.uint32)
            found[self.firsts[mine].view(np.int64)] = rank_of(self.values[mine])
            self._ranks[second] = found
        return self._ranks[second]

    def count(self, second: int, firsts: Array, top: Column) -> None:
        """Count instances with these first ids, and tops, for the pairs of one plane."""
        if second not in self.slices:
            return
        mine, xp = self.slices[second], self.arrays.xp
        if _spread(top):
            firsts = firsts[top < self.ranks(second, firsts)]
        if len(firsts) < self.width >> DENSE:
            at, there = self.arrays.places((self.firsts[mine],), (firsts,))
            found = xp.bincount(at[there], minlength=mine.stop - mine.start)
        else:
            found = xp.bincount(firsts.view(np.int64), minlength=self.width)[self.firsts[mine].view(np.int64)]
        found = found.astype(U64)
        if not _spread(top):
            found *= rank_of(self.values[mine]) > top
        self.values[mine] += found


def _ranked(arrays: Arrays, relations: Relations, trace: Sequence[tuple[Key, Run]]) -> dict[Key, Marks]:
    """Marks with the ranks that the order of derivation gives."""
    out: dict[Key, Marks] = {}
    for rank, (key, run) in enumerate(trace, start=1):
        relation = relations[key]
        if key not in out:
            more = relation.plus.words if relation.plus is not None else arrays.empty(relation.arity)
            zeros = (arrays.xp.zeros(len(w[0]), U64) for w in (relation.base.words, more))
            out[key] = Marks(relation.base.words, next(zeros), more, next(zeros))
        marks = out[key]
        for words, values in ((marks.words, marks.values), (marks.more, marks.more_values)):
            if len(values):
                at, there = arrays.places(words, run.words)
                values[at if bool(there.all()) else at[there]] = U64(rank) << SHIFT
    return out


def _planes(arrays: Arrays, relation: Relation, marks: Marks) -> _Planes | None:
    if relation.arity != 2 or len(marks.values) < PLANES_FROM:
        return None
    seconds = relation.base.distinct(1)
    return _Planes(arrays, marks.words[0], marks.values, seconds) if len(seconds) <= PLANES else None


def _pair(table: Table, atom: PlanAtom) -> tuple[Column, Column]:
    return table.value(atom.args[0]), table.value(atom.args[1])


def _spread(column: Column) -> bool:
    """Whether a column has a value for each row."""
    return bool(getattr(column, "ndim", 0))
