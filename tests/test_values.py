"""The values of literals, against examples and against Python's own numbers, strings and datetimes."""

from __future__ import annotations

import operator as python
import pickle
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pyoxigraph as ox
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evergraph.rules.model import XSD
from evergraph.terms import Dictionary
from evergraph.values import BIT, BOUNDS, Values

OPERATORS = {"=": python.eq, "!=": python.ne, "<": python.lt, "<=": python.le, ">": python.gt, ">=": python.ge}
IRI, BLANK, TAGGED, UNKNOWN = "<http://a>", "_:b", '"a"@en', '"1"^^<http://unknown>'


def typed(lexical: object, datatype: str) -> str:
    return str(ox.Literal(str(lexical), datatype=ox.NamedNode(XSD + datatype)))


def iri(datatype: str) -> str:
    return f"<{XSD}{datatype}>"


def compare(operator: str, left: str, right: str) -> bool:
    dictionary = Dictionary()
    ids = dictionary.encode([left, right])
    return bool(Values(dictionary).compare(operator, ids[:1], ids[1:])[0])


def signs(left: str, right: str) -> set[str]:
    return {o for o in OPERATORS if compare(o, left, right)}


EQUAL, LESS, MORE, APART = {"=", "<=", ">="}, {"!=", "<", "<="}, {"!=", ">", ">="}, {"!="}
MIRRORED = {frozenset(EQUAL): EQUAL, frozenset(LESS): MORE, frozenset(MORE): LESS, frozenset(APART): APART}


def pairs_of(values: Values, dictionary: Dictionary, start: int = 0) -> list[tuple[str, str]]:
    left, right = values.same_values(start)
    assert left.dtype == right.dtype == np.uint64
    return [(dictionary.term(x), dictionary.term(y)) for x, y in zip(left.tolist(), right.tolist(), strict=True)]


def datatypes_of(*terms: str) -> list[tuple[str, str]]:
    dictionary = Dictionary()
    dictionary.encode(terms)
    left, right = Values(dictionary).datatypes(0)
    assert left.dtype == right.dtype == np.uint64
    rows = zip(left.tolist(), right.tolist(), strict=True)
    return [(dictionary.term(x), dictionary.term(y).removeprefix(f"<{XSD}").removesuffix(">")) for x, y in rows]


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (typed(1, "integer"), typed("01", "integer"), EQUAL),
        (typed(1, "integer"), typed("+1.00", "decimal"), EQUAL),
        (typed(-5, "byte"), typed(5, "unsignedByte"), LESS),
        (typed("-0", "integer"), typed("0.0", "decimal"), EQUAL),
        (typed(".5", "decimal"), typed("0.50", "decimal"), EQUAL),
        (typed("1.", "decimal"), typed("1", "integer"), EQUAL),
        (typed(2**53, "integer"), typed(2**53 + 1, "integer"), LESS),
        (typed(2**64 - 1, "unsignedLong"), typed(2**64 - 2, "unsignedLong"), MORE),
        (typed("1" * 400, "integer"), typed("1" * 399 + "2", "integer"), LESS),
        (typed("0.1", "decimal"), typed("0.1000000000000000000001", "decimal"), LESS),
        # decimals are promoted to the type they meet
        (typed("0.1", "decimal"), typed("0.1", "double"), EQUAL),
        (typed("0.1", "decimal"), typed("0.1", "float"), EQUAL),
        (typed("0.1", "float"), typed("0.1", "double"), MORE),
        (typed(2**53 + 1, "integer"), typed(2**53, "double"), EQUAL),
        (typed(2**24 + 1, "integer"), typed(2**24, "float"), EQUAL),
        (typed("1.000000059604644775390625000001", "decimal"), typed("1.0000001", "float"), EQUAL),
        (typed("1.000000059604644775390625000001", "float"), typed("1.0000001", "float"), EQUAL),
        (typed("1e400", "double"), typed("INF", "double"), EQUAL),
        (typed("-INF", "double"), typed("-1e300", "double"), LESS),
        (typed("+INF", "float"), typed("INF", "double"), EQUAL),
        (typed("0.0", "double"), typed("-0.0", "double"), EQUAL),
        (typed("NaN", "double"), typed("NaN", "double"), {"="}),
        (typed("NaN", "double"), typed("NaN", "float"), APART),
        (typed("NaN", "double"), typed(1, "integer"), APART),
        (typed("true", "boolean"), typed("1", "boolean"), EQUAL),
        (typed("0", "boolean"), typed("true", "boolean"), LESS),
        (typed("true", "boolean"), typed("1", "integer"), APART),
        ('"a"', '"b"', LESS),
        ('"a"', '"a!"', LESS),
        ('"a"', '"a"', EQUAL),
        ('""', '"a"', LESS),
        ('"10"', '"9"', LESS),
        ('"a\\nb"', '"a!b"', LESS),
        ('"a\\\\nb"', '"a\\nb"', MORE),
        ('"\\u0001"', '"\\t"', LESS),
        ('"\\u007F"', '"\U0001f600"', LESS),
        ('"\uffff"', '"\U00010000"', LESS),
        ('"1"', typed(1, "integer"), APART),
        (IRI, "<http://b>", APART),
        (IRI, IRI, {"="}),
        (IRI, '"http://a"', APART),
        (BLANK, BLANK, {"="}),
        (TAGGED, '"a"', APART),
        (TAGGED, '"b"@en', APART),
        (UNKNOWN, '"2"^^<http://unknown>', APART),
        (UNKNOWN, UNKNOWN, {"="}),
        (typed("abc", "integer"), typed(1, "integer"), APART),
        (typed("abc", "integer"), typed("abc", "integer"), {"="}),
        (typed(" 1", "integer"), typed(1, "integer"), APART),
        (typed(300, "byte"), typed(300, "integer"), APART),
    ],
)
def test_comparisons(left: str, right: str, expected: set[str]) -> None:
    assert signs(left, right) == expected
    assert signs(right, left) == (expected if left == right else MIRRORED[frozenset(expected)])


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("2020-01-01T00:00:00Z", "2020-01-01T00:00:00", EQUAL),
        ("2020-01-01T12:00:00+02:00", "2020-01-01T05:00:00-05:00", EQUAL),
        ("2020-01-01T12:00:00+02:00", "2020-01-01T11:00:00Z", LESS),
        ("2020-12-31T24:00:00Z", "2021-01-01T00:00:00Z", EQUAL),
        ("2020-02-29T00:00:00.50Z", "2020-02-29T00:00:00.5Z", EQUAL),
        ("2020-01-01T00:00:00.0000000000001Z", "2020-01-01T00:00:00Z", MORE),
        ("2020-01-01T00:00:00.00000000000002Z", "2020-01-01T00:00:00.00000000000010Z", LESS),
        ("2020-01-01T00:00:00.99999999999999999999Z", "2020-01-01T00:00:01Z", LESS),
        ("9999-12-31T24:00:00Z", "10000-01-01T00:00:00Z", EQUAL),
        ("-0001-12-31T24:00:00Z", "0000-01-01T00:00:00Z", EQUAL),
        ("0000-02-29T00:00:00Z", "-0004-02-29T00:00:00Z", MORE),
        ("9" * 5000 + "-01-01T00:00:00Z", "9" * 5000 + "-01-02T00:00:00Z", LESS),
        ("-" + "9" * 5000 + "-01-01T00:00:00Z", "-0001-01-02T00:00:00Z", LESS),
    ],
)
def test_datetimes(left: str, right: str, expected: set[str]) -> None:
    assert signs(typed(left, "dateTime"), typed(right, "dateTime")) == expected
    assert signs(typed(right, "dateTime"), typed(left, "dateTime")) == MIRRORED[frozenset(expected)]


@pytest.mark.parametrize(
    ("datatype", "forms"),
    [
        ("decimal", ["", ".", "+", "1e0", "1,0", "--1", "+-1", "INF", "1 ", "1.0.0", "\u0661"]),
        ("integer", ["", "abc", "1.0", "1.", "+", " 1", "0x1"]),
        ("byte", ["128", "-129", "300", "1.0"]),
        ("long", [str(2**63), str(-(2**63) - 1)]),
        ("unsignedLong", [str(2**64), "-1"]),
        ("positiveInteger", ["0", "-1"]),
        ("negativeInteger", ["0", "1"]),
        ("double", ["", "inf", "nan", "-NaN", "1e", "1e1.0", "0x1p3", "infinity", "1_0"]),
        ("float", ["", ".", "e1"]),
        ("boolean", ["", "TRUE", "yes", "2", "true "]),
        (
            "dateTime",
            [
                "",
                "2020-01-01",
                "2021-02-29T00:00:00",
                "1900-02-29T00:00:00",
                "2020-13-01T00:00:00",
                "2020-00-01T00:00:00",
                "2020-01-00T00:00:00",
                "2020-01-01T24:00:01",
                "2020-01-01T24:00:00.1",
                "2020-01-01T25:00:00",
                "2020-01-01T00:60:00",
                "2020-01-01T00:00:60",
                "2020-01-01T00:00:00.",
                "2020-01-01T00:00:00+14:01",
                "2020-01-01T00:00:00+01:60",
                "020-01-01T00:00:00",
                "02020-01-01T00:00:00",
                "2020-01-01 00:00:00",
            ],
        ),
    ],
)
def test_ill_formed_literals_have_no_value(datatype: str, forms: list[str]) -> None:
    terms = [typed(form, datatype) for form in forms]
    assert datatypes_of(*terms) == []
    for term in terms:
        assert signs(term, typed(1, "integer")) == APART
        assert compare("ILLTYPED", term, iri(datatype))
        assert compare("ILLTYPED", term, iri("string"))


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (typed("abc", "integer"), iri("integer"), True),
        (typed(300, "byte"), iri("byte"), True),
        (typed(5, "integer"), iri("byte"), False),
        (typed(5, "integer"), iri("integer"), False),
        (typed(300, "integer"), iri("byte"), True),
        (typed("1.5", "decimal"), iri("integer"), True),
        (typed("5.0", "decimal"), iri("positiveInteger"), False),
        (typed(5, "integer"), iri("decimal"), False),
        (typed(5, "integer"), iri("double"), True),
        (typed("1.0", "float"), iri("double"), True),
        (typed("1.0", "double"), iri("double"), False),
        (typed("2020-01-01T00:00:00", "dateTime"), iri("dateTime"), False),
        (typed("true", "boolean"), iri("string"), True),
        ('"a"', iri("string"), False),
        ('"5"', iri("integer"), True),
        ('"5"', "<http://unknown>", False),
        (typed("abc", "integer"), "<http://unknown>", False),
        (typed(5, "integer"), iri("date"), False),
        (typed(5, "integer"), '"5"', False),
        (TAGGED, iri("string"), False),
        (UNKNOWN, iri("integer"), False),
        (IRI, iri("integer"), False),
        (BLANK, iri("integer"), False),
        (iri("integer"), iri("integer"), False),
    ],
)
def test_ill_typed(left: str, right: str, expected: bool) -> None:
    assert compare("ILLTYPED", left, right) is expected


def test_datatypes() -> None:
    assert len(BIT) == 19
    assert datatypes_of(IRI, BLANK, TAGGED, UNKNOWN) == []
    assert datatypes_of('"a"') == [('"a"', "string")]
    for lexical, datatype in [
        ("1.0", "float"),
        ("NaN", "double"),
        ("0", "boolean"),
        ("2020-01-01T00:00:00", "dateTime"),
    ]:
        assert datatypes_of(typed(lexical, datatype)) == [(typed(lexical, datatype), datatype)]
    assert {d for _, d in datatypes_of(typed("-1.5", "decimal"))} == {"decimal"}
    assert {d for _, d in datatypes_of(typed("0.0", "decimal"))} == {*BOUNDS, "decimal"} - {
        "negativeInteger",
        "positiveInteger",
    }


@given(st.sampled_from(sorted(BOUNDS)), st.sampled_from(sorted(BOUNDS)), st.integers(-3, 3))
def test_datatypes_are_exact_at_their_bounds(datatype: str, other: str, off: int) -> None:
    for bound in BOUNDS[datatype]:
        value = (bound or 0) + off
        contained = {
            name for name, (low, high) in BOUNDS.items() if (low is None or value >= low) and (high is None or value <= high)
        }
        found = {d for _, d in datatypes_of(typed(value, "integer"))}
        assert found == contained | {"decimal"}
        assert bool(datatypes_of(typed(value, other))) is (other in contained)


def test_same_values_lists_both_directions_once() -> None:
    dictionary = Dictionary()
    ones = [typed(1, "integer"), typed("01", "integer"), typed("1.0", "decimal"), typed("+1", "byte")]
    trues = [typed("true", "boolean"), typed("1", "boolean")]
    halves = [typed("0.5", "double"), typed("5e-1", "double")]
    instants = [
        typed("2020-12-31T24:00:00.0Z", "dateTime"),
        typed("2021-01-01T00:00:00+00:00", "dateTime"),
    ]
    others = [
        typed("0.5", "float"),
        typed("1", "double"),
        typed("1.5", "decimal"),
        typed("abc", "integer"),
        typed("abc", "byte"),
        typed("300", "byte"),
        typed("300", "integer"),
        '"1"',
        TAGGED,
        UNKNOWN,
        IRI,
        typed("2021-01-01T00:00:00", "dateTime"),
        typed("2021-01-01T01:00:00+01:00", "dateTime"),
        typed("0.0", "double"),
        typed("-0.0", "double"),
        typed("NaN", "double"),
        typed("NaN", "float"),
    ]
    dictionary.encode([*others[:5], *ones, *trues, *halves, *instants, *others[5:]])
    groups = (ones, trues, halves, instants)
    expected = sorted((x, y) for group in groups for x in group for y in group if x != y)
    assert sorted(pairs_of(Values(dictionary), dictionary)) == expected


def test_terms_that_come_later() -> None:
    dictionary = Dictionary()
    values = Values(dictionary)
    nothing = np.zeros(0, np.uint64)
    assert values.compare("=", nothing, nothing).tolist() == []
    assert [len(column) for column in (*values.datatypes(0), *values.same_values(0))] == [0, 0, 0, 0]
    dictionary.encode([typed(1, "integer"), IRI, typed("1.0", "decimal")])
    assert len(pairs_of(values, dictionary)) == 2
    assert pairs_of(values, dictionary, len(dictionary)) == []
    seen = len(dictionary)
    one, two = dictionary.encode([typed("01", "int"), typed(2, "byte")])
    first = dictionary.encode([typed(1, "integer")])
    assert values.compare("=", first, np.array([one])).tolist() == [True]
    assert values.compare("<", first, np.array([two])).tolist() == [True]
    assert sorted(pairs_of(values, dictionary, seen)) == sorted(
        pair
        for other in (typed(1, "integer"), typed("1.0", "decimal"))
        for pair in ((other, typed("01", "int")), (typed("01", "int"), other))
    )
    left, right = values.datatypes(seen)
    assert set(left.tolist()) == {one, two}
    assert {dictionary.term(d) for d in right.tolist()} >= {iri("byte"), iri("decimal")}
    assert values.compare("ILLTYPED", first, dictionary.encode([iri("float")])).tolist() == [True]


SPELLINGS = st.tuples(
    st.sampled_from(["", "-", "+"]),
    st.sampled_from(["", "0", "00"]),
    st.one_of(st.integers(0, 20), st.integers(2**53 - 2, 2**53 + 2), st.integers(0, 10**40)).map(str),
    st.sampled_from(["", ".", ".0", ".5", ".50", ".05", ".00000000000000000001", "." + "3" * 30]),
).map("".join)


@given(st.lists(SPELLINGS, min_size=1, max_size=12, unique=True), st.data())
def test_decimals_compare_as_in_python(spellings: list[str], data: st.DataObject) -> None:
    dictionary = Dictionary()
    values = Values(dictionary)
    terms = [typed(s, "decimal" if "." in s else data.draw(st.sampled_from(["integer", "decimal"]))) for s in spellings]
    numbers = list(map(Decimal, spellings))
    cut = data.draw(st.integers(0, len(terms)))
    dictionary.encode(terms[:cut])
    values.same_values(0)
    ids = dictionary.encode(terms)
    left, right = (grid.ravel() for grid in np.meshgrid(ids, ids))
    for operator, exact in OPERATORS.items():
        expected = [exact(numbers[a], numbers[b]) for a, b in zip(left.tolist(), right.tolist(), strict=True)]
        assert values.compare(operator, left, right).tolist() == expected
    start = data.draw(st.integers(0, len(terms)))
    found = sorted(zip(*(column.tolist() for column in values.same_values(start)), strict=True))
    count = range(len(terms))
    assert found == [(a, b) for a in count for b in count if a != b and max(a, b) >= start and numbers[a] == numbers[b]]


@given(st.text(st.characters(exclude_categories=["Cs"])), st.text(st.characters(exclude_categories=["Cs"])))
@example('a"', "a!")
@example("a\\", "a\n")
def test_strings_compare_as_in_python(left: str, right: str) -> None:
    for operator, exact in OPERATORS.items():
        assert compare(operator, str(ox.Literal(left)), str(ox.Literal(right))) is exact(left, right)


@given(st.floats(), st.floats(), st.sampled_from(["float", "double"]))
def test_floats_compare_as_in_python(left: float, right: float, datatype: str) -> None:
    forms = [repr(number).replace("inf", "INF").replace("nan", "NaN") for number in (left, right)]
    terms = [typed(form, datatype) for form in forms]
    with np.errstate(over="ignore"):
        numbers = np.array([left, right], np.float32 if datatype == "float" else np.float64)
    for operator, exact in OPERATORS.items():
        same = terms[0] == terms[1] and operator in ("=", "!=")
        expected = operator == "=" if same else bool(exact(numbers[0], numbers[1]))
        assert compare(operator, terms[0], terms[1]) is expected


ZONES = st.one_of(st.none(), st.integers(-840, 840).map(lambda minutes: timezone(timedelta(minutes=minutes))))
MOMENTS = st.builds(lambda m, z: m.replace(tzinfo=z), st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1)), ZONES)


@given(MOMENTS, MOMENTS)
def test_datetimes_compare_as_in_python(left: datetime, right: datetime) -> None:
    terms = [typed(moment.isoformat(), "dateTime") for moment in (left, right)]
    left, right = (moment if moment.tzinfo else moment.replace(tzinfo=UTC) for moment in (left, right))
    for operator, exact in OPERATORS.items():
        assert compare(operator, terms[0], terms[1]) is exact(left, right)


def test_columns_of_many_kinds() -> None:
    dictionary = Dictionary()
    ids = dictionary.encode([IRI, '"a"', '"b"', typed(1, "integer"), typed("2.0", "double"), typed("x", "integer"), TAGGED])
    values = Values(dictionary)
    left, right = (grid.ravel() for grid in np.meshgrid(ids, ids, indexing="ij"))
    less = values.compare("<", left, right)
    assert less.dtype == np.bool_
    assert list(zip(left[less].tolist(), right[less].tolist(), strict=True)) == [(1, 2), (3, 4)]
    assert (values.compare("=", left, right) == (left == right)).all()
    assert (values.compare("!=", left, right) == (left != right)).all()
    with pytest.raises(ValueError, match="~"):
        values.compare("~", left, right)


def test_pickled_values_go_on() -> None:
    dictionary = Dictionary()
    values = Values(dictionary)
    dictionary.encode([typed(1, "integer"), typed("2020-01-01T00:00:00Z", "dateTime"), '"a"', typed("1.0", "decimal")])
    values.same_values(0)
    copy = pickle.loads(pickle.dumps(values))
    for mine, copied in zip(values.same_values(0), copy.same_values(0), strict=True):
        assert mine.tolist() == copied.tolist()
    assert copy.compare("=", np.array([0], np.uint64), np.array([3], np.uint64)).tolist() == [True]
