"""`GROUP BY` and the aggregates (SPARQL 1.1 Query, §18.5.1), on columns.

Contract: `COUNT` leaves out errors and unbound values, `SAMPLE` takes any other; for the rest one error in a group makes
the aggregate of that group an error, that is, unbound. Sums of integers and decimals are exact. Cost: linear in the rows,
and a few operations on Python numbers for each row of a sum.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
from rdflib.namespace import XSD
from rdflib.plugins.sparql.parserutils import CompValue
from rdflib.term import Literal, Variable

from evergraph.sparql.expressions import Expressions
from evergraph.sparql.lexicon import Lexicon
from evergraph.sparql.order import ranks
from evergraph.sparql.solutions import UNBOUND, Index, Solutions, codes, ranked
from evergraph.terms import Ids
from evergraph.values import Mask

EXACT = (int, Decimal)
SINGLE, DOUBLE = 1, 2


class Group:
    """Rows as members of numbered groups, with the values that an aggregate is about."""

    def __init__(self, lexicon: Lexicon, count: int, member: Index, values: Ids) -> None:
        self.lexicon, self.count, self.member, self.values = lexicon, count, member, values

    @property
    def spoiled(self) -> Mask:
        """The groups that have an error among their values."""
        return np.bincount(self.member[self.values == UNBOUND], minlength=self.count) > 0


def aggregate(rows: Solutions, part: CompValue, expressions: Expressions) -> Solutions:
    """A row for each group: the variables that were grouped by, and the results of all aggregates."""
    lexicon, keys = expressions.lexicon, part.p.expr
    count, member = 1, np.zeros(rows.count, np.int64)
    columns: dict[str, Ids] = {}
    if keys is not None:
        found = [expressions.column(key, rows) for key in keys]
        _, first, member = np.unique(codes(found), return_index=True, return_inverse=True)
        count = len(first)
        columns = {str(key): column[first] for key, column in zip(keys, found, strict=True) if isinstance(key, Variable)}
    for each in part.A:
        whole = each.vars == "*"
        values = np.zeros(rows.count, np.uint64) if whole else expressions.column(each.vars, rows)
        members = member
        if each.distinct:
            what = [member.astype(np.uint64), *(rows.columns.values() if whole else [values])]
            _, first = np.unique(codes(what), return_index=True)
            members, values = member[first], values[first]
        group = Group(lexicon, count, members, values)
        columns[str(each.res)] = AGGREGATES[each.name](group, each)
    return Solutions(count, columns)


def _count(group: Group, _: CompValue) -> Ids:
    numbers = np.bincount(group.member[group.values != UNBOUND], minlength=group.count)
    distinct, place = ranked(numbers.astype(np.uint64))
    found: Ids = group.lexicon.column(map(Literal, distinct.tolist()))[place]
    return found


def _sample(group: Group, _: CompValue) -> Ids:
    out = np.full(group.count, UNBOUND)
    bound = np.flatnonzero(group.values != UNBOUND)
    members, first = np.unique(group.member[bound], return_index=True)
    out[members] = group.values[bound[first]]
    return out


def _extreme(sign: int) -> Callable[[Group, CompValue], Ids]:
    def find(group: Group, _: CompValue) -> Ids:
        out = np.full(group.count, UNBOUND)
        order = np.lexsort((sign * ranks(group.lexicon, group.values), group.member))
        members, first = np.unique(group.member[order], return_index=True)
        out[members] = group.values[order[first]]
        out[group.spoiled] = UNBOUND
        return out

    return find


def _total(average: bool) -> Callable[[Group, CompValue], Ids]:
    def find(group: Group, _: CompValue) -> Ids:
        distinct, place = ranked(group.values)
        numbers = list(map(_number, group.lexicon.terms(distinct)))
        totals: list[Any] = [0] * group.count
        levels = np.zeros(group.count, np.int64)
        for member, at in zip(group.member.tolist(), place.tolist(), strict=True):
            total, number = totals[member], numbers[at]
            if total is None or number is None:
                totals[member] = None
            elif isinstance(total, EXACT) and isinstance(number[0], EXACT):
                totals[member] = total + number[0]
            else:
                totals[member] = float(total) + float(number[0])
        known = np.array([number[1] if number else 0 for number in numbers], np.int64)
        np.maximum.at(levels, group.member, known[place])
        if average:
            sizes = np.bincount(group.member, minlength=group.count).tolist()
            totals = [_quotient(total, size) for total, size in zip(totals, sizes, strict=True)]
        return group.lexicon.column(map(_literal, totals, levels.tolist()))

    return find


def _concatenated(group: Group, part: CompValue) -> Ids:
    separator = " " if part.separator is None else str(part.separator)
    words: list[list[str]] = [[] for _ in range(group.count)]
    for member, term in zip(group.member.tolist(), group.lexicon.terms(group.values), strict=True):
        words[member].append(str(term))
    out = group.lexicon.column(Literal(separator.join(parts)) for parts in words)
    out[group.spoiled] = UNBOUND
    return out


AGGREGATES: dict[str, Callable[[Group, CompValue], Ids]] = {
    "Aggregate_Count": _count,
    "Aggregate_Sample": _sample,
    "Aggregate_Min": _extreme(1),
    "Aggregate_Max": _extreme(-1),
    "Aggregate_Sum": _total(average=False),
    "Aggregate_Avg": _total(average=True),
    "Aggregate_GroupConcat": _concatenated,
}


def _number(term: Any) -> tuple[Any, int] | None:
    """The value of a numeric literal, and how wide its type is: 0 for those that are exact, then float, then double."""
    if not isinstance(term, Literal) or term.ill_typed or isinstance(term.value, bool):
        return None
    if isinstance(term.value, float):
        return term.value, SINGLE if term.datatype == XSD.float else DOUBLE
    return (term.value, 0) if isinstance(term.value, EXACT) else None


def _quotient(total: Any, size: int) -> Any:
    if total is None or not size:
        return total
    return total / size if isinstance(total, float) else Decimal(total) / size


def _literal(total: Any, level: int) -> Literal | None:
    if total is None:
        return None
    return Literal(total, datatype=XSD.float) if level == SINGLE else Literal(total)
