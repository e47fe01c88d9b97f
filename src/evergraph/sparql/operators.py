"""Comparison, `&&` and `||` for expressions that rdflib evaluates, as the specification has them.

rdflib orders literals of different datatypes, takes `IN` for identity and lets an error on one side of `&&` win over a false
on the other. `correct` gives the expressions of one parsed query other functions; rdflib itself stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from types import MethodType
from typing import Any

from rdflib.plugins.sparql.operators import EBV
from rdflib.plugins.sparql.parserutils import Expr, value
from rdflib.plugins.sparql.sparql import SPARQLError
from rdflib.term import Literal

from evergraph.sparql.compare import OPERATORS, compare_terms
from evergraph.sparql.tree import nodes


def correct(query: Any) -> None:
    """Put the operators below into every expression of a query."""
    for node in nodes(query):
        if isinstance(node, Expr) and node.name in EVALUATORS:
            node._evalfn = MethodType(EVALUATORS[node.name], node)


def _relation(expression: Expr, context: Any) -> Literal:
    operator, left, right = (dict.get(expression, name) for name in ("op", "expr", "other"))
    term = _value(left, context)
    if operator in OPERATORS:
        return Literal(_compare(operator, term, right, context))
    among = right if isinstance(right, list) else []  # an empty list is rdf:nil
    return Literal(_any(partial(_compare, "=", term, one, context) for one in among) == (operator == "IN"))


def _or(expression: Expr, context: Any) -> Literal:
    return Literal(_any(partial(_is, True, operand, context) for operand in _operands(expression)))


def _and(expression: Expr, context: Any) -> Literal:
    return Literal(not _any(partial(_is, False, operand, context) for operand in _operands(expression)))


EVALUATORS: dict[str, Callable[[Expr, Any], Literal]] = {
    "RelationalExpression": _relation,
    "ConditionalOrExpression": _or,
    "ConditionalAndExpression": _and,
}


def _any(tests: Iterable[Callable[[], bool]]) -> bool:
    """Whether one test holds; if none does and one is an error, that error."""
    failed: SPARQLError | None = None
    for test in tests:
        try:
            if test():
                return True
        except SPARQLError as error:
            failed = error
    if failed is not None:
        raise failed
    return False


def _compare(operator: str, term: Any, operand: Any, context: Any) -> bool:
    answer = compare_terms(operator, term, _value(operand, context))
    if answer is None:
        raise SPARQLError("these terms cannot be compared")
    return answer


def _is(truth: bool, operand: Any, context: Any) -> bool:
    return bool(EBV(_value(operand, context))) == truth


def _operands(expression: Expr) -> list[Any]:
    return [dict.get(expression, "expr"), *dict.get(expression, "other", ())]


def _value(operand: Any, context: Any) -> Any:
    found = value(context, operand)
    if isinstance(found, SPARQLError):
        raise found
    return found
