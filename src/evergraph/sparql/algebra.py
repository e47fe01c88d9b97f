"""The SPARQL algebra on columns: what rdflib's parser makes of a query, evaluated bottom-up as the specification says.

`unsupported` tells beforehand whether a part of a query can be evaluated here; what cannot is evaluated by rdflib, which
comes back here for the parts that can. Two things travel down, and neither changes an answer:

- `hint`: solutions that the result will be joined with. A part may leave out what is compatible with none of them; a
  basic graph pattern starts from them when they are fewer than what it would start from otherwise.
- `limit`: how many solutions are enough. A part may give more.

Trap: a hint must not pass an operator that looks at all solutions together (`Slice`, aggregates), nor name a variable that
a subquery does not project: inside it is another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from rdflib.plugins.sparql.parserutils import CompValue
from rdflib.plugins.sparql.sparql import QueryContext
from rdflib.term import BNode, Identifier, Variable

from evergraph.sparql.expressions import Expressions, is_quick
from evergraph.sparql.groups import aggregate
from evergraph.sparql.lexicon import Lexicon
from evergraph.sparql.order import ranks
from evergraph.sparql.paths import Triple, alternatives
from evergraph.sparql.patterns import Check, Pattern, match, size_of
from evergraph.sparql.solutions import (
    NONE,
    ONE,
    UNBOUND,
    Solutions,
    concat,
    distinct,
    join,
    left_join,
    matched,
    merge,
    minus,
    pairs,
)
from evergraph.sparql.tree import conjuncts, variables
from evergraph.sparql.view import View
from evergraph.values import Mask


class Algebra:
    """Evaluates parts of one query over one view; one method for each operator, by its name in the algebra."""

    def __init__(self, view: View, lexicon: Lexicon, context: QueryContext, given: Mapping[Any, Any]) -> None:
        """`given` are values that variables have in every pattern; `context` is what rdflib's functions ask for."""
        self.view, self.lexicon = view, lexicon
        self.given = Solutions(1, {name_of(key): lexicon.column([value]) for key, value in given.items()})
        self.expressions = Expressions(view, lexicon, context, self._exists)

    def solve(self, part: CompValue, hint: Solutions = ONE, limit: int | None = None) -> Solutions:
        operator: Callable[[CompValue, Solutions, int | None], Solutions] = getattr(self, f"_{part.name}")
        return operator(part, hint, limit)

    # -- patterns ------------------------------------------------------------------------------------------------------

    def _BGP(self, part: CompValue, hint: Solutions, limit: int | None, conditions: Sequence[Any] = ()) -> Solutions:
        return concat([self._match(way, hint, limit, conditions) for way in alternatives(part.triples)])

    def _match(self, triples: list[Triple], hint: Solutions, limit: int | None, conditions: Sequence[Any]) -> Solutions:
        patterns = [Pattern(*map(self._term, triple)) for triple in triples]
        names = self.given.columns.keys() | {name for pattern in patterns for name in pattern.variables}
        known = [name for name in names if name in hint.columns and not (hint.columns[name] == UNBOUND).any()]
        start = self.given
        if known and hint.count < size_of(self.view, patterns):
            start = join(start, distinct(hint, known))
        early, late = [], []
        for condition in conditions:
            if is_quick(condition) or limit is not None:
                early.append(self._check(condition, names))
            else:
                late.append(condition)
        return self._filtered(match(self.view, patterns, start, early, limit), late)

    def _term(self, term: Any) -> Any:
        if isinstance(term, Variable | BNode):
            return name_of(term)
        return self.lexicon.find(term) if isinstance(term, Identifier) else term

    def _check(self, condition: Any, names: Iterable[str]) -> Check:
        needed = frozenset(map(str, variables(condition))).intersection(names)
        return Check(needed, lambda rows: self.expressions.test(condition, rows))

    def _Filter(self, part: CompValue, hint: Solutions, limit: int | None) -> Solutions:
        if part.p.name == "BGP":
            return self._BGP(part.p, hint, limit, conjuncts(part.expr))
        return self._filtered(self.solve(part.p, hint), conjuncts(part.expr))

    def _filtered(self, rows: Solutions, conditions: Iterable[Any]) -> Solutions:
        for condition in conditions:
            if rows.count:
                rows = rows.select(self.expressions.test(condition, rows))
        return rows

    def _exists(self, part: CompValue, rows: Solutions) -> Mask:
        """For which rows a pattern has a solution; a filter in it sees the values of the row."""
        if part.name != "Filter":
            return matched(rows, self.solve(part, rows))
        found = self.solve(part.p, rows)
        i, j = pairs(rows, found)
        passed = np.zeros(rows.count, np.bool_)
        passed[i[self.expressions.test(part.expr, merge(rows, found, i, j))]] = True
        return passed

    # -- joins ---------------------------------------------------------------------------------------------------------

    def _Join(self, part: CompValue, hint: Solutions, _: int | None) -> Solutions:
        first, second = part.p1, part.p2
        if second.name == "ToMultiSet":  # constants, or the answers of a subquery: likely to be few
            first, second = second, first
        left = self.solve(first, hint)
        return join(left, self.solve(second, left)) if left.count else NONE

    def _LeftJoin(self, part: CompValue, hint: Solutions, limit: int | None) -> Solutions:
        left = self.solve(part.p1, hint, limit)
        if not left.count:
            return NONE
        test = None if part.expr.name == "TrueFilter" else lambda rows: self.expressions.test(part.expr, rows)
        return left_join(left, self.solve(part.p2, left), test)

    def _Union(self, part: CompValue, hint: Solutions, limit: int | None) -> Solutions:
        return concat([self.solve(part.p1, hint, limit), self.solve(part.p2, hint, limit)])

    def _Minus(self, part: CompValue, hint: Solutions, _: int | None) -> Solutions:
        left = self.solve(part.p1, hint)
        return minus(left, self.solve(part.p2, left)) if left.count else NONE

    # -- values --------------------------------------------------------------------------------------------------------

    def _Extend(self, part: CompValue, hint: Solutions, limit: int | None) -> Solutions:
        rows = self.solve(part.p, hint, limit)
        return Solutions(rows.count, {**rows.columns, str(part.var): self.expressions.column(part.expr, rows)})

    def _ToMultiSet(self, part: CompValue, hint: Solutions, limit: int | None) -> Solutions:
        return self.solve(part.p, hint, limit) if part.p else NONE

    def _values(self, part: CompValue, *_: Any) -> Solutions:
        terms = [{str(name): value for name, value in row.items() if value != "UNDEF"} for row in part.res]
        names = dict.fromkeys(name for row in terms for name in row)
        columns = {name: self.lexicon.column(row.get(name) for row in terms) for name in names}
        return join(self.given, Solutions(len(terms), columns))

    def _AggregateJoin(self, part: CompValue, *_: Any) -> Solutions:
        return aggregate(self.solve(part.p.p), part, self.expressions)

    # -- modifiers -----------------------------------------------------------------------------------------------------

    def _Project(self, part: CompValue, hint: Solutions, limit: int | None) -> Solutions:
        names = list(map(str, part.PV))
        return self.solve(part.p, hint.keep(names), limit).keep(names)

    def _Distinct(self, part: CompValue, hint: Solutions, _: int | None) -> Solutions:
        rows = self.solve(part.p, hint)
        return distinct(rows, rows.columns)

    def _Reduced(self, part: CompValue, hint: Solutions, limit: int | None) -> Solutions:
        return self.solve(part.p, hint, limit)

    def _OrderBy(self, part: CompValue, hint: Solutions, _: int | None) -> Solutions:
        rows = self.solve(part.p, hint)
        keys = []
        for condition in reversed(part.expr):
            rank = ranks(self.lexicon, self.expressions.column(condition.expr, rows))
            keys.append(-rank if condition.order == "DESC" else rank)
        return rows.take(np.lexsort(keys))

    def _Slice(self, part: CompValue, _: Solutions, limit: int | None) -> Solutions:
        stop = None if part.length is None else part.start + part.length
        return self.solve(part.p, ONE, stop).part(part.start, stop)


def name_of(term: Identifier) -> str:
    """The name of a column: that of a variable, or the label of a blank node in a pattern."""
    return f"_:{term}" if isinstance(term, BNode) else str(term)
