"""Expressions on columns: filters as masks with SPARQL's three truth values, and the values of any expression.

Comparisons, logic, `IN`, `BOUND`, `sameTerm`, `isIRI`, `isBLANK`, `isLITERAL` and `EXISTS` work on whole columns. Every other
expression is given to rdflib once for each distinct combination of the values it uses, and the answers are spread over
the rows: the functions of SPARQL depend on nothing else, but those in `PER_ROW`.
Trap: rdflib keeps the row it evaluates in the expression itself, so an expression is not for two threads at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from rdflib.namespace import XSD
from rdflib.plugins.sparql.evalutils import _eval
from rdflib.plugins.sparql.operators import EBV
from rdflib.plugins.sparql.parserutils import CompValue
from rdflib.plugins.sparql.sparql import FrozenBindings, QueryContext, SPARQLError
from rdflib.term import Identifier, URIRef, Variable

from evergraph.sparql.compare import OPERATORS as COMPARISONS
from evergraph.sparql.compare import Truth, compare
from evergraph.sparql.lexicon import Lexicon
from evergraph.sparql.solutions import UNBOUND, Solutions, codes, isin
from evergraph.sparql.tree import EXISTS, variables
from evergraph.sparql.view import View
from evergraph.terms import Ids
from evergraph.values import Mask

PER_ROW = frozenset(("Builtin_RAND", "Builtin_UUID", "Builtin_STRUUID", "Builtin_BNODE"))
"""Functions that give another value in every row."""
CASTS = frozenset((XSD.string, XSD.dateTime, XSD.float, XSD.double, XSD.decimal, XSD.integer, XSD.boolean))
KINDS = {"Builtin_isIRI": "<", "Builtin_isURI": "<", "Builtin_isBLANK": "_", "Builtin_isLITERAL": '"'}
LOGIC = ("ConditionalAndExpression", "ConditionalOrExpression", "UnaryNot")

_ERRORS = (SPARQLError, TypeError, ValueError, ArithmeticError, AttributeError)
"""What rdflib's functions raise on arguments they cannot take: all of it is a SPARQL error."""


class Expressions:
    def __init__(
        self, view: View, lexicon: Lexicon, context: QueryContext, exists: Callable[[CompValue, Solutions], Mask]
    ) -> None:
        """`exists` says for which rows a pattern has a solution."""
        self.values, self.lexicon, self.context, self.exists = view.values, lexicon, context, exists

    def test(self, expression: Any, rows: Solutions) -> Mask:
        """The rows for which an expression is true; an error is not."""
        return self.truth(expression, rows).true

    def truth(self, expression: Any, rows: Solutions) -> Truth:
        """What an expression is in each row: true, false or an error."""
        operator = OPERATORS.get(expression.name) if isinstance(expression, CompValue) else None
        found = operator(self, expression, rows) if operator else None
        if found is not None:
            return found
        answers, place = self._each(expression, rows, EBV)
        true = np.array([answer is True for answer in answers], np.bool_)
        error = np.array([answer is None for answer in answers], np.bool_)
        return Truth(true[place], error[place])

    def column(self, expression: Any, rows: Solutions) -> Ids:
        """The values of an expression, `UNBOUND` where it is an error."""
        if is_term(expression):
            return self._operand(expression, rows)
        answers, place = self._each(expression, rows, _term)
        found: Ids = self.lexicon.column(answers)[place]
        return found

    # -- on columns: each is the truth of one kind of expression, or None where there is more in it than terms ---------

    def _not(self, expression: CompValue, rows: Solutions) -> Truth:
        return _negated(self.truth(expression.expr, rows))

    def _or(self, expression: CompValue, rows: Solutions) -> Truth:
        return _any([self.truth(part, rows) for part in (expression.expr, *expression.other)])

    def _and(self, expression: CompValue, rows: Solutions) -> Truth:
        parts = (expression.expr, *expression.other)
        return _negated(_any([_negated(self.truth(part, rows)) for part in parts]))

    def _relation(self, expression: CompValue, rows: Solutions) -> Truth | None:
        operator, left, right = expression.op, expression.expr, expression.other
        if operator in COMPARISONS:
            return self._compare(operator, left, right, rows) if is_term(left) and is_term(right) else None
        among = right if isinstance(right, list) else []  # an empty list is rdf:nil
        if not all(map(is_term, [left, *among])):
            return None
        column = self._operand(left, rows)
        iris = self.lexicon.column(one for one in among if isinstance(one, URIRef))
        others = [self._compare("=", left, one, rows) for one in among if not isinstance(one, URIRef)]
        found = _any([Truth(isin(column, iris), column == UNBOUND), *others])
        return found if operator == "IN" else _negated(found)

    def _compare(self, operator: str, left: Any, right: Any, rows: Solutions) -> Truth:
        a, b = self._operand(left, rows), self._operand(right, rows)
        if operator in ("=", "!=") and (isinstance(left, URIRef) or isinstance(right, URIRef)):
            return _same(a, b) if operator == "=" else _negated(_same(a, b))
        return compare(self.values, self.lexicon, operator, a, b)

    def _same_term(self, expression: CompValue, rows: Solutions) -> Truth | None:
        if not is_term(expression.arg1) or not is_term(expression.arg2):
            return None
        return _same(self._operand(expression.arg1, rows), self._operand(expression.arg2, rows))

    def _kind(self, expression: CompValue, rows: Solutions) -> Truth | None:
        if not is_term(expression.arg):
            return None
        column = self._operand(expression.arg, rows)
        return Truth(self.lexicon.starting(column, KINDS[expression.name]), column == UNBOUND)

    def _bound(self, expression: CompValue, rows: Solutions) -> Truth:
        return _certain(self._operand(expression.arg, rows) != UNBOUND)

    def _exists(self, expression: CompValue, rows: Solutions) -> Truth:
        return _certain(self.exists(expression.graph, rows) == EXISTS[expression.name])

    def _operand(self, term: Identifier, rows: Solutions) -> Ids:
        if not isinstance(term, Variable):
            return np.full(rows.count, self.lexicon.find(term), np.uint64)
        column = rows.columns.get(str(term))
        if column is not None:
            return column
        outer = (self.context.initBindings or {}).get(term)
        return rows.column(str(term)) if outer is None else self._operand(outer, rows)

    # -- by rdflib -----------------------------------------------------------------------------------------------------

    def _each(self, expression: Any, rows: Solutions, convert: Callable[[Any], Any]) -> tuple[list[Any], Any]:
        """The converted values of an expression for each combination of values it depends on, None for an error; and the
        place of each row among them."""
        names = [name for name in dict.fromkeys(map(str, variables(expression))) if name in rows.columns]
        if names:
            _, first, place = np.unique(codes([rows.columns[name] for name in names]), return_index=True, return_inverse=True)
        else:
            first, place = np.zeros(1, np.int64), np.zeros(rows.count, np.int64)
        keys = [Variable(name) for name in names]
        columns = [self.lexicon.terms(rows.columns[name][first]) for name in names]
        answers = []
        for values in zip(*columns, strict=True) if names else [()]:
            bindings = FrozenBindings(self.context, ((k, v) for k, v in zip(keys, values, strict=True) if v is not None))
            try:
                answers.append(convert(_eval(expression, bindings)))
            except _ERRORS:
                answers.append(None)
        return answers, place


OPERATORS: dict[str, Callable[[Expressions, CompValue, Solutions], Truth | None]] = {
    "UnaryNot": Expressions._not,
    "ConditionalOrExpression": Expressions._or,
    "ConditionalAndExpression": Expressions._and,
    "RelationalExpression": Expressions._relation,
    "Builtin_sameTerm": Expressions._same_term,
    "Builtin_BOUND": Expressions._bound,
    **dict.fromkeys(KINDS, Expressions._kind),
    **dict.fromkeys(EXISTS, Expressions._exists),
}


def is_quick(expression: Any) -> bool:
    """Whether a condition is tested on columns alone, at some nanoseconds a row."""
    if is_term(expression):
        return True
    if isinstance(expression, list):
        return all(map(is_quick, expression))
    if not isinstance(expression, CompValue) or expression.name not in OPERATORS or expression.name in EXISTS:
        return False
    return all(is_quick(part) for name, part in expression.items() if name not in ("op", "_vars"))


def is_term(part: Any) -> bool:
    """A variable or a constant."""
    return isinstance(part, Identifier)


def _term(value: Any) -> Any:
    if isinstance(value, SPARQLError):
        raise value
    return value


def _same(a: Ids, b: Ids) -> Truth:
    error = (a == UNBOUND) | (b == UNBOUND)
    return Truth((a == b) & ~error, error)


def _certain(true: Mask) -> Truth:
    return Truth(true, np.zeros(len(true), np.bool_))


def _negated(truth: Truth) -> Truth:
    return Truth(~(truth.true | truth.error), truth.error)


def _any(parts: list[Truth]) -> Truth:
    """True where one is true, else an error where one is an error."""
    true, error = parts[0]
    for other in parts[1:]:
        true, error = true | other.true, error | other.error
    return Truth(true, error & ~true)
