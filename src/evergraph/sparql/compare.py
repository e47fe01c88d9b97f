"""`=`, `!=`, `<`, `<=`, `>`, `>=` between terms, with SPARQL's errors (SPARQL 1.1 Query, §17.3 and §17.4.1).

Numbers are compared by value in the wider of their types, strings by code point, booleans, and dateTimes on the timeline,
where one without time zone is taken for UTC. Terms that are not both literals are equal if they are the same, and have no
order. Literals of one language, or of one datatype that rdflib knows (dates, times), compare by value, and so do durations
(`durations.py`) as far as they have an order; those of different known datatypes are different and have no order; of one that
is ill-formed or of an unknown datatype nothing is known but that it equals itself.

`compare` does this for columns: by `Values` what that can compare, all at once, and what is left once per distinct pair.
`compare_terms` does it for two terms. Trap: rdflib's own operators order literals of different datatypes by the datatype, as
`ORDER BY` may and a filter must not; `operators.py` puts this one in their place.
"""

from __future__ import annotations

import operator as python
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from rdflib.namespace import XSD
from rdflib.term import Literal

from evergraph.engines.arrays import LOW, SHIFT
from evergraph.sparql.durations import FORMS, Duration
from evergraph.sparql.lexicon import Lexicon
from evergraph.sparql.solutions import UNBOUND, ranked
from evergraph.terms import Dictionary, Ids
from evergraph.values import Mask, Values

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "=": python.eq,
    "!=": python.ne,
    "<": python.lt,
    "<=": python.le,
    ">": python.gt,
    ">=": python.ge,
}


class Truth(NamedTuple):
    """What an expression is in each row: true, an error, or else false."""

    true: Mask
    error: Mask


def compare(values: Values, lexicon: Lexicon, operator: str, left: Ids, right: Ids) -> Truth:
    """How two equally long columns compare. Cost: linear, and some microseconds for each distinct pair that is left."""
    true, error = np.zeros(len(left), np.bool_), (left == UNBOUND) | (right == UNBOUND)
    rows = np.flatnonzero(~error)
    answers, comparable = _compare_values(values, lexicon, operator, left[rows], right[rows])
    true[rows] = answers
    rows = rows[~comparable]
    if not len(rows):
        return Truth(true, error)
    literals = lexicon.starting(left[rows], '"') & lexicon.starting(right[rows], '"')
    others, rows = rows[~literals], rows[literals]
    if operator in ("=", "!="):
        true[others] = OPERATORS[operator](left[others], right[others])
    else:
        error[others] = True
    pairs, place = ranked(left[rows] << SHIFT | right[rows])
    terms = zip(lexicon.terms(pairs >> SHIFT), lexicon.terms(pairs & LOW), strict=True)
    settled = [compare_terms(operator, a, b) for a, b in terms]
    true[rows] = np.array([answer is True for answer in settled], np.bool_)[place]
    error[rows] = np.array([answer is None for answer in settled], np.bool_)[place]
    return Truth(true, error)


def _compare_values(values: Values, lexicon: Lexicon, operator: str, left: Ids, right: Ids) -> tuple[Mask, Mask]:
    """What `Values` says, and of which rows it can say it."""
    if not (lexicon.stored(left).all() and lexicon.stored(right).all()):
        values, left, right = _together(values, lexicon, left, right)
    comparable = values.compare("<=", left, right) | values.compare(">", left, right)
    return values.compare(operator, left, right) & comparable, comparable


def _together(values: Values, lexicon: Lexicon, left: Ids, right: Ids) -> tuple[Values, Ids, Ids]:
    """Values over the terms of two columns, those that only the query knows included, and the columns in its numbers.

    Cost: the distinct terms; only those of the query are read anew.
    """
    distinct, place = ranked(np.concatenate([left, right]))
    texts = lexicon.texts(distinct)
    stored = int(lexicon.stored(distinct).sum())  # these come first
    own = Values(Dictionary(pa.chunked_array([texts[stored:]])))
    for each in (values, own):
        each._extend()
    rows = np.concatenate([values._rows[distinct[:stored]], own._rows])
    rows["first"][stored:] += np.uint64(1 << 32)  # no id of the graph
    numbers = place.astype(np.uint64)
    return Values.over(Dictionary(pa.chunked_array([texts])), rows), numbers[: len(left)], numbers[len(left) :]


def compare_terms(operator: str, a: Any, b: Any) -> bool | None:
    """Whether an operator holds between two rdflib terms; None is an error."""
    equality = operator in ("=", "!=")
    different = operator == "!=" if equality else None
    if not isinstance(a, Literal) or not isinstance(b, Literal):
        return (a == b) == (operator == "=") if equality else None
    if a.language or b.language:
        return _apply(operator, str(a), str(b)) if a.language == b.language else different
    x, y = _value(a), _value(b)
    if _is_number(x) and _is_number(y):
        types = (a.datatype, b.datatype)
        if XSD.double in types:
            return _apply(operator, float(x), float(y))
        return _apply(operator, _single(x), _single(y)) if XSD.float in types else _apply(operator, x, y)
    if equality and a == b:
        return operator == "="
    if x is None or y is None:
        return None
    if (a.datatype or XSD.string) != (b.datatype or XSD.string) and not (isinstance(x, Duration) and isinstance(y, Duration)):
        return different
    return _apply(operator, _in_time(x), _in_time(y))


def _value(literal: Literal) -> Any:
    """What a literal stands for; None where that is not known."""
    if literal.datatype in FORMS:
        return Duration.of(literal)
    if literal.ill_typed:
        return None
    return _single(literal.value) if literal.datatype == XSD.float and literal.value is not None else literal.value


def _single(number: Any) -> float:
    """The nearest number that a float has, as Python's floats are doubles."""
    with np.errstate(over="ignore"):
        return float(np.float32(number))


def _in_time(value: Any) -> Any:
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) and value.tzinfo is None else value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _apply(operator: str, x: Any, y: Any) -> bool | None:
    try:
        found = OPERATORS[operator](x, y)
    except (TypeError, ValueError, ArithmeticError):
        return None
    return None if found is NotImplemented else bool(found)
