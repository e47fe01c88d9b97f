"""Walking the tree that rdflib's parser makes of a query: nodes are `CompValue`, their parts other nodes, lists and terms.

Trap: the pattern of an `EXISTS` is an attribute that shadows an item of the same name, which is the pattern before its
translation. Whoever goes through the items sees the wrong one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from rdflib.plugins.sparql.parserutils import CompValue
from rdflib.term import Variable

EXISTS = {"Builtin_EXISTS": True, "Builtin_NOTEXISTS": False}


def children(part: Any) -> Iterable[Any]:
    if isinstance(part, CompValue):
        return [part.graph] if part.name in EXISTS else part.values()
    return part if isinstance(part, list | tuple) else ()


def nodes(part: Any) -> Iterator[CompValue]:
    """Every node of a tree."""
    if isinstance(part, CompValue):
        yield part
    for child in children(part):
        yield from nodes(child)


def variables(part: Any) -> Iterator[Variable]:
    """The variables that a part of a query mentions."""
    if isinstance(part, Variable):
        yield part
    for child in children(part):
        yield from variables(child)


def conjuncts(expression: Any) -> list[Any]:
    """The conditions of which all must hold."""
    if isinstance(expression, CompValue) and expression.name == "ConditionalAndExpression":
        return [one for part in (expression.expr, *expression.other) for one in conjuncts(part)]
    return [expression]
