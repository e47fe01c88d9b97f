"""Rule instances by head: how many there are, and how high the ranks of their bodies go.

    top(instance) = max {rank(f) : f in its body};    an instance counts for its head h when top(instance) < rank(h)

In words: counting asks of every instance, not only of every head; all variables of a body are expanded for it. Instances are
collected while rules run, then grouped by head, so that marks are read and written once a round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from evergraph.engines.arrays import U64, Array, Column, Words
from evergraph.engines.fixpoint import Found
from evergraph.engines.kernel import Kernel, Relations
from evergraph.engines.marks import Marks, rank_of
from evergraph.engines.table import Table
from evergraph.plan.model import Key, PlanAtom, PlanRule


@dataclass(frozen=True, slots=True)
class Heads:
    """The distinct heads of some instances, in order, and the tops of the instances, head by head and rising."""

    rows: Words
    tops: Array
    starts: Array
    ends: Array

    @property
    def highest(self) -> Array:
        return self.tops[self.ends - 1]

    @property
    def number(self) -> Array:
        return (self.ends - self.starts).astype(U64)

    def counted(self, ranks: Array, kernel: Kernel) -> Array:
        """For each head, given its rank, how many of its instances count."""
        xp = kernel.xp
        below = xp.zeros(len(self.tops) + 1, U64)
        of_head = ranks[kernel.arrays.module.repeat(self.ends - self.starts)]
        below[1:] = xp.cumsum(self.tops < of_head)
        return below[self.ends] - below[self.starts]


class Instances(Found):
    """Found by one round of rules; ranks are read from these marks."""

    def __init__(self, kernel: Kernel, marks: Mapping[Key, Marks]) -> None:
        super().__init__()
        self.kernel, self.marks = kernel, marks
        self.tops: dict[Key, list[Column]] = {}
        self.arities: dict[Key, int] = {}

    def run(self, rule: PlanRule, sources: list[Relations], below: Relations) -> None:
        self.kernel.instances(rule, sources, below, lambda table: self.take(rule.head, rule.body, table))

    def take(self, head: PlanAtom, body: tuple[PlanAtom, ...], table: Table) -> None:
        """Keep the heads and tops of instances; the body may be a part of what was joined."""
        top = highest_rank(self.kernel, self.marks, body, table)
        spread = top if getattr(top, "ndim", 0) else self.kernel.xp.full(table.count, top, U64)
        words = self.kernel.arrays.pack([table.value(a) for a in head.args], table.count)
        for key, (*rows, tops) in self.kernel.cut(head, table, (*words, spread)):
            self.emit(key, tuple(rows))
            self.arities[key] = len(head.args)
            self.tops.setdefault(key, []).append(tops)

    def heads(self) -> Iterator[tuple[Key, Heads]]:
        """By relation. Cost: a sort of the instances."""
        arrays = self.kernel.arrays
        for key, parts in self.rows.items():
            words = tuple(arrays.xp.concatenate(w) for w in zip(*(words for _, words in parts), strict=True))
            tops = arrays.xp.concatenate(self.tops[key])
            order = arrays.module.lexsort((*words, tops))
            rows, starts = arrays.groups(tuple(w[order] for w in words))
            ends = arrays.xp.append(starts[1:], len(tops))
            yield key, Heads(rows, tops[order], starts, ends)


def highest_rank(kernel: Kernel, marks: Mapping[Key, Marks], body: tuple[PlanAtom, ...], table: Table) -> Column:
    """The top of each instance: a column, or one value for all. Cost: a search for each instance and marked atom."""
    return folded(kernel, marks, body, table, rank_of, kernel.xp.maximum, U64(0))


def folded(
    kernel: Kernel,
    marks: Mapping[Key, Marks],
    body: tuple[PlanAtom, ...],
    table: Table,
    read: Callable[[Array], Array],
    join: Callable[[Column, Column], Column],
    start: Column,
    near: tuple[int, Mapping[Key, Marks]] | None = None,
) -> Column:
    """What the marks of its body say of each instance, put together: a column, or one value for all.

    Atoms of relations without marks say nothing. `near` are the marks for the atom in one place, where few are to be searched.
    Cost: a search for each instance and marked atom.
    """
    out, every = start, marks
    for place, atom in enumerate(body):
        marks = near[1] if near is not None and place == near[0] else every
        key: Any = table.value(atom.relation) if atom.open else atom.relation
        if not getattr(key, "ndim", 0):
            known = marks.get(int(key) if atom.open else key)
            if known is not None:
                values = [table.value(a) for a in atom.args]
                same = not any(getattr(value, "ndim", 0) for value in values)
                found = read(known.of(kernel.arrays, kernel.arrays.pack(values, 1 if same else table.count)))
                out = join(out, found[0] if same else found)
            continue
        words = kernel.arrays.pack([table.value(a) for a in atom.args], table.count)
        for value in kernel.arrays.distinct(key).tolist():
            known = marks.get(value)
            if known is not None:
                there = key == U64(value)
                found = kernel.xp.full(table.count, start, U64)
                found[there] = read(known.of(kernel.arrays, tuple(w[there] for w in words)))
                out = join(out, found)
    return out
