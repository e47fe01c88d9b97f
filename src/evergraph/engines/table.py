"""Bindings of a rule body while it is joined: the table that the kernel grows, atom by atom."""

from __future__ import annotations

from collections.abc import Callable
from operator import getitem
from typing import Any

from evergraph.engines.arrays import U64, Array, Column
from evergraph.plan.model import Value


class Table:
    """Bindings: a column per variable; a variable with one value everywhere is a scalar in `fixed`."""

    __slots__ = ("columns", "count", "fixed", "near", "over")

    def __init__(self, count: int, columns: dict[str, Array], fixed: dict[str, Any]) -> None:
        self.count, self.columns, self.fixed = count, columns, fixed
        self.near = False
        """Whether the columns are still on the host and relations are not."""
        self.over: Table | None = None
        """The same with columns where relations are, once somebody has asked for it."""

    def value(self, term: Value) -> Column | None:
        """A scalar, an array, or None for a variable that is not bound."""
        if isinstance(term, int):
            return U64(term)
        found = self.columns.get(term)
        return found if found is not None else self.fixed.get(term)

    def binds(self, term: Value) -> bool:
        return isinstance(term, int) or term in self.columns or term in self.fixed

    def take(self, index: Array, taken: Callable[[Array, Array], Array] = getitem) -> Table:
        """Rows by index or by mask."""
        columns = {v: taken(c, index) for v, c in self.columns.items()}
        chosen = next(iter(columns.values()), None)
        if chosen is None:
            return Table(int(index.sum()) if index.dtype == bool else len(index), {}, self.fixed)
        return Table(len(chosen), columns, self.fixed)

    def keep(self, needed: frozenset[str]) -> Table:
        if needed.issuperset(self.columns) and needed.issuperset(self.fixed):
            return self
        return Table(
            self.count,
            {v: c for v, c in self.columns.items() if v in needed},
            {v: c for v, c in self.fixed.items() if v in needed},
        )


def stacked(xp: Any, parts: list[Table]) -> Table:
    """The rows of several tables with the same variables."""
    parts = [p for p in parts if p.count]
    if not parts:
        return Table(0, {}, {})
    if len(parts) == 1:
        return parts[0]
    columns = {}
    for name in {n for p in parts for n in p.columns}:
        columns[name] = xp.concatenate(
            [p.columns[name] if name in p.columns else xp.full(p.count, p.fixed[name], U64) for p in parts]
        )
    fixed = {n: v for n, v in parts[0].fixed.items() if n not in columns}
    return Table(sum(p.count for p in parts), columns, fixed)
