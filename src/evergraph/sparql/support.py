"""Which parts of a query are evaluated on columns, told before anything is evaluated.

Left to rdflib: functions that differ from row to row or that somebody registered, `EXISTS` inside of another function or
around more than basic graph patterns, their joins, unions and one filter, and some property paths.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rdflib.paths import Path
from rdflib.plugins.sparql.parserutils import CompValue

from evergraph.sparql.expressions import CASTS, LOGIC, PER_ROW
from evergraph.sparql.paths import is_known
from evergraph.sparql.tree import EXISTS, children

ELSEWHERE = {"Graph": "GRAPH", "ServiceGraphPattern": "SERVICE"}
"""Parts that one graph without network cannot answer at all."""


def unsupported(part: Any) -> str | None:
    """The name of something in a part of a query that is not evaluated on columns; None if all of it is."""
    if isinstance(part, Path):
        return None if is_known(part) else "a property path"
    if not isinstance(part, CompValue):
        return _first(children(part))
    if part.name in ELSEWHERE or part.name in PER_ROW or part.name in EXISTS:
        return str(part.name)
    if part.name == "Function" and part.iri not in CASTS:
        return f"the function {part.iri.n3()}"
    if part.name in ("Filter", "LeftJoin"):
        return _first([part.p, part.p1, part.p2]) or _condition(part.expr)
    return _first(children(part))


def _first(parts: Iterable[Any]) -> str | None:
    return next((found for found in map(unsupported, parts) if found), None)


def _condition(expression: Any) -> str | None:
    """The same for an expression that is used for its truth only, where `EXISTS` can be evaluated."""
    if isinstance(expression, CompValue) and expression.name in LOGIC:
        parts = (expression.expr, *(expression.other or ()))
        return next((found for found in map(_condition, parts) if found), None)
    if isinstance(expression, CompValue) and expression.name in EXISTS:
        graph = expression.graph
        inner = graph.p if graph.name == "Filter" else graph
        return unsupported(graph) or (None if _is_plain(inner) else str(expression.name))
    return unsupported(expression)


def _is_plain(part: CompValue) -> bool:
    """Whether joining a pattern with a row is the same as putting the row's values into the pattern."""
    if part.name in ("Join", "Union"):
        return _is_plain(part.p1) and _is_plain(part.p2)
    return bool(part.name == "BGP")
