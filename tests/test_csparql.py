"""Continuous queries as text, and the comparison of durations that Figure 2 makes."""

from __future__ import annotations

from datetime import datetime, timedelta
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rdflib.namespace import RDF, XSD, Namespace
from rdflib.term import Literal, URIRef

from evergraph import KnowledgeGraph
from evergraph.errors import UserError
from evergraph.sparql.compare import OPERATORS, compare_terms
from evergraph.sparql.durations import FORMS, Duration
from evergraph.stream.csparql import Continuous, Form, Report, parse_continuous
from evergraph.stream.window import Window

EX = Namespace("http://example/")
FIGURE_2 = """\
REGISTER QUERY TotalAmountPerBroker COMPUTE EVERY 1sec AS
PREFIX ex: <http://example/>
SELECT DISTINCT ?user ?type ?x
FROM <http://mobileservice.org/meansOfTransportation.rdf>
FROM STREAM <http://mobileservice.org/positions.trdf>
[RANGE 10sec STEP 1sec]
WHERE {
  ?user ex:isIn ?x .
  ?user a ex:Commuter .
  ?x a ?type .
  ?user ex:remainingTravelTime ?t .
 FILTER (?t >= "PT30M"xsd:duration )
}
"""


def test_barbieri_figure_2() -> None:
    found = parse_continuous(FIGURE_2)
    assert (found.name, found.form, found.every, found.report) == ("TotalAmountPerBroker", Form.QUERY, 1_000_000, Report.ALL)
    assert found.windows == {"http://mobileservice.org/positions.trdf": Window(10_000_000, 1_000_000)}
    assert found.background == ("http://mobileservice.org/meansOfTransportation.rdf",)
    assert (found.kind, found.text) == ("SELECT", FIGURE_2)
    assert list(map(str, found.query.algebra.PV)) == ["user", "type", "x"]


def test_barbieri_figure_2_has_its_answers() -> None:
    kg = KnowledgeGraph("rhodf")
    for user, time in (("ann", "PT45M duration"), ("bob", "PT1H dayTimeDuration"), ("eve", "PT5M duration")):
        value = Literal(time.split()[0], datatype=XSD[time.split()[1]])
        kg.update(
            insert=[(EX[user], RDF.type, EX.Commuter), (EX[user], EX.isIn, EX.train), (EX[user], EX.remainingTravelTime, value)]
        )
    kg.update(insert=[(EX.train, RDF.type, EX.Train)])
    answers = {row.user for row in kg.query(parse_continuous(FIGURE_2).query)}
    assert answers == {EX.ann, EX.bob}


# -- each clause -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "name"),
    [("late", "late"), ("<http://ex/q>", "http://ex/q"), ("ex:late", "ex:late"), (":late", ":late"), ("too-late", "too-late"),
     ("Spät", "Spät"), ("stream", "stream"), ("every", "every"), ("from", "from")],
)  # fmt: skip
def test_names(written: str, name: str) -> None:
    assert parse_continuous(f"REGISTER QUERY {written} COMPUTE EVERY 1s AS ASK {{}}").name == name


@pytest.mark.parametrize(
    ("header", "body", "form", "report"),
    [
        ("QUERY", "SELECT *", Form.QUERY, Report.ALL),
        ("QUERY", "SELECT ISTREAM *", Form.QUERY, Report.NEW),
        ("QUERY", "ASK DSTREAM", Form.QUERY, Report.GONE),
        ("QUERY", "CONSTRUCT {?s ?p ?o}", Form.QUERY, Report.ALL),
        ("STREAM", "CONSTRUCT {?s ?p ?o}", Form.STREAM, Report.ALL),
        ("STREAM", "CONSTRUCT RSTREAM {?s ?p ?o}", Form.STREAM, Report.ALL),
        ("STREAM", "CONSTRUCT ISTREAM WHERE", Form.STREAM, Report.NEW),
        ("ISTREAM", "SELECT DISTINCT *", Form.QUERY, Report.NEW),
        ("ISTREAM", "SELECT ISTREAM REDUCED *", Form.QUERY, Report.NEW),
        ("DSTREAM", "ASK", Form.QUERY, Report.GONE),
        ("RSTREAM", "CONSTRUCT {?s ?p ?o}", Form.STREAM, Report.ALL),
        ("DSTREAM", "CONSTRUCT WHERE", Form.STREAM, Report.GONE),
    ],
)
def test_forms_and_reports(header: str, body: str, form: Form, report: Report) -> None:
    found = parse_continuous(f"REGISTER {header} q AS {body} {{ ?s ?p ?o }}")
    assert (found.form, found.report, found.kind) == (form, report, body.split()[0])


@pytest.mark.parametrize(
    ("written", "every"),
    [("1sec", 1_000_000), ("10 s", 10_000_000), ("5min", 300_000_000), ("PT10S", 10_000_000), ("PT1.5S", 1_500_000),
     ("1.5 min", 90_000_000), ("500\nms", 500_000)],
)  # fmt: skip
def test_compute_every(written: str, every: int) -> None:
    assert parse_continuous(f"REGISTER QUERY q COMPUTE EVERY {written} AS ASK {{}}").every == every
    assert parse_continuous("REGISTER QUERY q AS ASK {}").every is None


@pytest.mark.parametrize(
    ("written", "window"),
    [
        ("", None),
        ("[RANGE 10sec STEP 1sec]", Window(10_000_000, 1_000_000)),
        ("[ range 10 s\ntumbling ]", Window(10_000_000, 10_000_000)),
        ("[RANGE PT1M STEP 500ms]", Window(60_000_000, 500_000)),
        ("[RANGE 10s]", Window(10_000_000, 10_000_000)),
        ("[RANGE TRIPLES 100]", Window(100, 1_000_000, True)),
        ("[RANGE TRIPLES 100 STEP 2s]", Window(100, 2_000_000, True)),
        ("[RANGE 10s # of [the] last\n STEP 1s]", Window(10_000_000, 1_000_000)),
    ],
)
def test_windows(written: str, window: Window | None) -> None:
    assert parse_continuous(f"REGISTER QUERY q AS ASK FROM STREAM <http://ex/s>{written}{{}}").windows == {
        "http://ex/s": window
    }


@pytest.mark.parametrize(
    "query", ["SELECT *", "ASK", "CONSTRUCT { ?s ?p 'FROM <http://ex/no>' }", "SELECT (EXISTS { ?s ?p 1 } AS ?e)"]
)
@pytest.mark.parametrize("where", ["WHERE", ""])
def test_sources_in_any_order(query: str, where: str) -> None:
    found = parse_continuous(f"""
        REGISTER QUERY q AS BASE <http://base/> PREFIX ex: <http://ex/> {query}
        FROM STREAM ex:s FROM <http://ex/a> FROM STREAM <t> [RANGE 1s] FROM ex:b FROM <http://ex/a> {where} {{ ?s ?p ?o }}
    """)
    assert found.windows == {"http://ex/s": None, "http://base/t": Window(1_000_000, 1_000_000)}
    assert found.background == ("http://ex/a", "http://ex/b")
    assert found.query.algebra.datasetClause is None


def test_iris_with_escapes() -> None:
    found = parse_continuous("REGISTER QUERY q AS ASK FROM <http://ex/\\u00e9#g> { ?s a <http://ex/\\U000000e9#c> }")
    assert found.background == ("http://ex/é#g",) and _iris(found) >= {"http://ex/é#c"}


def test_construct_of_its_own_pattern() -> None:
    found = parse_continuous("REGISTER STREAM q AS CONSTRUCT FROM STREAM <http://ex/s> WHERE { ?s a ?c }")
    assert (found.kind, list(found.windows)) == ("CONSTRUCT", ["http://ex/s"])


def test_prefixes_that_need_no_declaration_can_have_one() -> None:
    body = "{ ?s a rdf:List, rdfs:Class, owl:Class, xsd:date }"
    assert _iris(parse_continuous(f"REGISTER QUERY q AS ASK {body}")) >= {str(XSD.date)}
    assert _iris(parse_continuous(f"REGISTER QUERY q AS PREFIX xsd: <http://my/> ASK {body}")) >= {"http://my/date"}


# -- what is no clause -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "string",
    [
        '"FROM STREAM <x>"',
        "'FROM <x> # {'",
        '"""FROM\n"STREAM" \\""" <x> """',
        "'''it's FROM ''x''\n}'''",
        '"\\"FROM"',
        "''",
        '""""x"""',
    ],
)
def test_words_in_strings_are_no_clauses(string: str) -> None:
    found = parse_continuous(f"REGISTER QUERY q AS SELECT ({string} AS ?a) FROM <http://ex/g> {{ BIND({string} AS ?b) }}")
    assert (found.background, found.windows) == (("http://ex/g",), {})
    assert [str(row.a) for row in KnowledgeGraph("rhodf").query(found.query)] == [eval(string)]


def test_words_in_comments_iris_and_names_are_no_clauses() -> None:
    found = parse_continuous("""# REGISTER QUERY other AS
        REGISTER QUERY q # AS SELECT
        AS PREFIX from: <http://ex/#FROM> # FROM <http://ex/c>
        SELECT ?from # "
        FROM <http://ex/#g> # '
        { ?from from:FROM from:O\\'Neil\\#x ; a <http://ex/#FROM> FILTER(?a < ?b && ?from > 1) } # FROM STREAM <http://ex/d>
    """)
    assert (found.name, found.background, found.windows) == ("q", ("http://ex/#g",), {})


def test_literals_typed_without_a_sign() -> None:
    written = '"a"xsd:token "b"<http://ex/t> "c"^^xsd:token "d" xsd:token "e"@en'
    found = parse_continuous(f"REGISTER QUERY q AS SELECT ?x {{ VALUES ?x {{ {written} }} }}")
    rows = [row.x for row in KnowledgeGraph("rhodf").query(found.query)]
    assert rows == [
        Literal("a", datatype=XSD.token), Literal("b", datatype=URIRef("http://ex/t")), Literal("c", datatype=XSD.token),
        Literal("d"), XSD.token, Literal("e", lang="en"),
    ]  # fmt: skip


def test_a_string_before_a_comparison_is_not_typed() -> None:
    found = parse_continuous(
        """REGISTER QUERY q AS SELECT ?x { VALUES ?x { "b" } FILTER("a"<?x && "c">?x && ?x<"c"&&"a"<?x&&?x>"a") }"""
    )
    assert [str(row.x) for row in KnowledgeGraph("rhodf").query(found.query)] == ["b"]


# -- mistakes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", "1:1: error EG601: the query ends too early (hint: write REGISTER QUERY name AS before the query)"),
        ("\n SELECT * {}", "2:2: error EG601: unexpected 'SELECT' (hint: write REGISTER QUERY name AS before the query)"),
        ("REGISTER q AS", "1:10: error EG601: unexpected 'q' (hint: write REGISTER QUERY name AS, or REGISTER STREAM name AS)"),
        ("REGISTER QUERY AS ASK {}", "1:16: error EG601: unexpected 'AS' (hint: give the query a name)"),
        ("REGISTER QUERY q\nASK {}",
         "2:1: error EG601: unexpected 'ASK' (hint: write AS before the query, or COMPUTE EVERY 10s AS)"),
        ("REGISTER QUERY q COMPUTE 1s", "1:26: error EG601: unexpected '1' (hint: write COMPUTE EVERY 10s)"),
        ("REGISTER QUERY q COMPUTE EVERY AS", "1:32: error EG601: unexpected 'AS' (hint: write a duration such as 10s)"),
        ("REGISTER QUERY q COMPUTE EVERY 1s ASK {}", "1:35: error EG601: unexpected 'ASK' (hint: write AS before the query)"),
        ("REGISTER QUERY q AS DESCRIBE <x>",
         "1:21: error EG601: unexpected 'DESCRIBE' (hint: write a query with SELECT, ASK or CONSTRUCT)"),
        ("REGISTER QUERY q AS PREFIX <x>", "1:28: error EG601: unexpected '<x>' (hint: write PREFIX ex: <iri>)"),
        ("REGISTER QUERY q AS BASE ex:", "1:26: error EG601: unexpected 'ex:' (hint: write an <iri>)"),
        ("REGISTER QUERY q AS SELECT { }", "1:28: error EG601: unexpected '{' (hint: name the variables, or write *)"),
        ("REGISTER QUERY q AS SELECT ?x", "1:30: error EG601: the query ends too early (hint: write the pattern in { })"),
        ("REGISTER QUERY q AS SELECT (?x", "1:31: error EG601: the query ends too early (hint: close the bracket with ')')"),
        ("REGISTER QUERY q AS CONSTRUCT {", "1:32: error EG601: the query ends too early (hint: close the template with '}')"),
        ("REGISTER QUERY q AS CONSTRUCT FROM <http://x> {",
         "1:47: error EG601: unexpected '{' (hint: write CONSTRUCT { template } WHERE { pattern })"),
        ("REGISTER QUERY q AS ASK FROM NAMED <x> {}",
         "1:30: error EG601: unexpected 'NAMED' (hint: write FROM <iri> or FROM STREAM <iri>)"),
        ("REGISTER QUERY q AS ASK FROM STREAM {}", "1:37: error EG601: unexpected '{' (hint: write an <iri>)"),
        ("REGISTER QUERY q AS\nASK FROM STREAM no:s {}",
         "2:17: error EG601: unknown prefix 'no:' (hint: declare it with 'PREFIX no: <…>')"),
        ("REGISTER STREAM q AS\nSELECT * {}",
         "2:1: error EG601: a stream is made of triples, which SELECT does not give"
         " (hint: write REGISTER QUERY, or CONSTRUCT the triples of the stream)"),
        ("REGISTER ISTREAM q AS ask DStream {}",
         "1:27: error EG601: ISTREAM was said before DSTREAM (hint: write one of them)"),
        ("REGISTER QUERY q AS PREFIX : <http://x/> ASK FROM STREAM :s FROM STREAM\n <http://x/s> {}",
         "2:2: error EG601: the stream <http://x/s> is named twice (hint: give a stream one window)"),
    ],
)  # fmt: skip
def test_malformed_headers(text: str, shown: str) -> None:
    assert _mistake(text) == shown


DURATION = "(hint: write 500ms, 10s, 5min, 2h, 1d or PT10S)"
WINDOW = "(hint: write RANGE 10s STEP 1s, RANGE 10s TUMBLING or RANGE TRIPLES 100)"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("REGISTER QUERY q COMPUTE EVERY\n soon AS ASK {}", f"2:2: error EG602: not a duration: 'soon' {DURATION}"),
        ("REGISTER QUERY q COMPUTE EVERY 10  parsec AS ASK {}", f"1:32: error EG602: not a duration: '10 parsec' {DURATION}"),
        ("REGISTER QUERY q COMPUTE EVERY 0s AS ASK {}",
         "1:32: error EG602: no time passes in 0s (hint: write COMPUTE EVERY 1s, or leave it out)"),
        ("REGISTER QUERY q AS ASK FROM STREAM <http://s>\n\t [RANGE ten] {}",
         f"2:3: error EG602: not a duration: 'ten' {DURATION}"),
        ("REGISTER QUERY q AS ASK FROM STREAM <http://s> [] {}", f"1:48: error EG602: not a window: '[]' {WINDOW}"),
        ("REGISTER QUERY q AS ASK FROM STREAM <http://s> [10s] {}", f"1:48: error EG602: not a window: '[10s]' {WINDOW}"),
        ("REGISTER QUERY q AS ASK FROM STREAM <http://s> [RANGE 10s {}",
         f"1:48: error EG602: not a window: '[RANGE 10s' {WINDOW}"),
        ("REGISTER QUERY q AS CONSTRUCT { [] a ?x } FROM STREAM <http://s> [RANGE 10s { [] a ?x }",
         f"1:66: error EG602: not a window: '[RANGE 10s' {WINDOW}"),
        ("REGISTER QUERY q AS ASK FROM STREAM <http://s> [RANGE", f"1:48: error EG602: not a window: '[RANGE' {WINDOW}"),
        ("REGISTER QUERY q AS ASK FROM STREAM <http://s> [RANGE -1s] {}",
         f"1:48: error EG602: not a window: '[RANGE' {WINDOW}"),
        ("REGISTER QUERY q AS ASK FROM STREAM <http://s> [RANGE 1s STEP 0s] {}",
         f"1:48: error EG602: a window has an extent and a step: RANGE 1s STEP 0s {WINDOW}"),
    ],
)  # fmt: skip
def test_windows_and_durations_that_are_none(text: str, shown: str) -> None:
    assert _mistake(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("REGISTER QUERY q AS ASK FROM <http://g>\nFROM STREAM <http://s> [RANGE 1s] { ?s ] }",
         "2:37: error EG601: malformed SPARQL at '?s ] }'"),
        ("REGISTER QUERY q AS SELECT ISTREAM ?x { ] }", "1:41: error EG601: malformed SPARQL at '] }'"),
        ("REGISTER QUERY q AS ASK {\t?s ?p ?o } ]", "1:38: error EG601: malformed SPARQL at ']'"),
        ('REGISTER QUERY q AS ASK { ?s ?p "a"xsd:b, "a"xsd:b ] }', "1:52: error EG601: malformed SPARQL at '] }'"),
        ('REGISTER QUERY q AS ASK {\n?s ?p """\n"""xsd:b, no:b }', "3:11: error EG601: unknown prefix 'no:'"),
        ('REGISTER QUERY q AS ASK { # "a"xsd:b no:b\n?s ?p no:b, "a"xsd:b }', "2:7: error EG601: unknown prefix 'no:'"),
        ('REGISTER QUERY q AS ASK {\n?s ?p "a"no:b }', "2:10: error EG601: unknown prefix 'no:'"),
        ("REGISTER QUERY q AS ASK { { SELECT * FROM <http://g> { ?s ?p ?o } } }",
         "1:27: error EG601: malformed SPARQL at '{ SELECT"),
        ("REGISTER QUERY q AS ASK { ?s ?p ?o", "1:35: error EG601: malformed SPARQL: it ends too early"),
        ("REGISTER QUERY q AS\n  ASK " + "{" * 3000 + "}" * 3000, "2:3: error EG601: the query is nested too deeply"),
    ],
)  # fmt: skip
def test_malformed_sparql_is_reported_where_it_was_written(text: str, shown: str) -> None:
    assert _mistake(text).startswith(shown)


# -- layout ------------------------------------------------------------------------------------------------------------

SPACED = """
    register IstreaM ex:q compute every 10 s as prefix ex: <http://ex/> select distinct ?x ( count ( ?y ) as ?n )
    from stream <http://ex/s> [ range 1.5 min step PT1S ] from <http://ex/g> from stream ex:t [ range triples 7 ]
    where { ?x ex:p ?y , 'from' , "where#"xsd:string ; <http://ex/#q> '''stream[''' . filter ( ?y < ?x ) } group by ?x
"""
TOKENS = SPACED.split()
CASED = {
    *("register", "istream", "compute", "every", "as", "prefix", "select", "distinct", "count"),
    *("from", "stream", "range", "step", "triples", "where", "filter", "group", "by"),
}
BLANKS = [" ", "\n", "\t", "\r\n", "#\n", "# from <x> [ } \" '''\n"]
GAPS = st.lists(st.sampled_from(BLANKS), min_size=1, max_size=3)


@given(st.data())
def test_layout_says_nothing(data: st.DataObject) -> None:
    parts = []
    for token in TOKENS:
        cased = token.lower() in CASED and data.draw(st.booleans())
        parts += [token.swapcase() if cased else token, *data.draw(GAPS)]
    found, plain = parse_continuous("".join(parts)), parse_continuous(" ".join(TOKENS))
    assert _meaning(found) == _meaning(plain)
    assert plain.name == "ex:q" and plain.report == Report.NEW and len(plain.windows) == 2
    assert plain.query.algebra != parse_continuous(SPACED.replace("?y < ?x", "?y < 1")).query.algebra


# -- durations ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "operators", "b"),
    [
        ("PT45M duration", "> >= !=", "PT30M duration"),
        ("PT1H dayTimeDuration", "> >= !=", "PT30M duration"),
        ("PT1H dayTimeDuration", "= <= >=", "PT60M duration"),
        ("P1D dayTimeDuration", "= <= >=", "PT24H dayTimeDuration"),
        ("PT0.10S duration", "= <= >=", "PT0.1S duration"),
        ("-PT1S duration", "< <= !=", "PT0S duration"),
        ("P1Y yearMonthDuration", "= <= >=", "P12M yearMonthDuration"),
        ("P1Y yearMonthDuration", "= <= >=", "P12M duration"),
        ("P11M yearMonthDuration", "< <= !=", "P1Y yearMonthDuration"),
        ("-P1M yearMonthDuration", "< <= !=", "P0M yearMonthDuration"),
        ("P0M yearMonthDuration", "= <= >=", "PT0S dayTimeDuration"),
        ("-P1Y2DT1S duration", "< <= !=", "P0D duration"),
        ("P1M duration", "!=", "P30D duration"),
        ("P1M duration", "> >= !=", "P27D duration"),
        ("P1M yearMonthDuration", "< <= !=", "P32D dayTimeDuration"),
        ("P1Y duration", "!=", "P365D duration"),
        ("P400Y duration", "!=", "P146097D duration"),
        ("P99999999Y duration", "> >= !=", "P1D duration"),
        ("P1Y dayTimeDuration", "", "P1Y duration"),
        ("P1Y dayTimeDuration", "= ", "P1Y dayTimeDuration"),
        ("P duration", "", "PT1S duration"),
        ("PT duration", "", "PT1S duration"),
        ("P1W duration", "", "PT1S duration"),
        ("P1.5Y duration", "", "PT1S duration"),
        ("PT1S duration", "!=", "PT1S string"),
        ("PT1S duration", "!=", "1 integer"),
    ],
)
def test_filters_compare_durations(a: str, operators: str, b: str) -> None:
    kg = KnowledgeGraph("rhodf")
    left, right = (f'"{form}"^^<{XSD}{name}>' for form, name in (a.split(), b.split()))
    kg.update(insert=f"<http://ex/s> <http://ex/p> {left} .\n<http://ex/s> <http://ex/q> {right} .")
    pattern = "?s <http://ex/p> ?a ; <http://ex/q> ?b"
    for operator in OPERATORS:
        for test in (f"?a {operator} ?b", f"?a {operator} {right}", f"COALESCE(?a {operator} ?b, false)"):
            assert bool(kg.query(f"ASK {{ {pattern} FILTER({test}) }}")) == (operator in operators.split()), test
    assert bool(kg.query(f"ASK {{ {pattern} FILTER(?a IN (?b, 1)) }}")) == ("=" in operators.split())


WRITTEN = st.builds(
    lambda sign, years, months, days, seconds: f"{sign}P{years}Y{months}M{days}DT{seconds}S",
    st.sampled_from(["", "-"]),
    st.integers(0, 5),
    st.integers(0, 30),
    st.integers(0, 2000),
    st.sampled_from(["0", "1", "86399.999", "86400"]),
)


@given(WRITTEN, WRITTEN)
def test_durations_are_ordered_as_their_ends(a: str, b: str) -> None:
    """By the definition in XML Schema, with Python's calendar."""
    left, right = (Literal(text, datatype=XSD.duration, normalize=False) for text in (a, b))
    x, y = Duration.of(left), Duration.of(right)
    assert x is not None and y is not None
    ends = [(_end(start, x), _end(start, y)) for start in ((1696, 9), (1697, 2), (1903, 3), (1903, 7))]
    less, greater = all(p < q for p, q in ends), all(p > q for p, q in ends)
    defined = less or greater or x == y
    assert compare_terms("<", left, right) == (less if defined else None)
    assert compare_terms(">=", left, right) == (not less if defined else None)
    assert compare_terms("=", left, right) == (x == y)


def test_durations_with_too_many_digits_have_no_value() -> None:
    assert Duration.of(Literal(f"P{'9' * 5000}D", datatype=XSD.duration)) is None
    assert len(FORMS) == 3


def _end(start: tuple[int, int], duration: Duration) -> datetime:
    year, month = divmod(start[0] * 12 + start[1] - 1 + duration.months, 12)
    return datetime(year, month + 1, 1) + timedelta(microseconds=int(duration.seconds * Fraction(1_000_000)))


def _meaning(found: Continuous) -> tuple[object, ...]:
    said = (found.name, found.form, found.every, found.report, found.windows, found.background, found.kind)
    return *said, found.query.algebra


def _iris(found: Continuous) -> set[str]:
    return {str(term) for triple in found.query.algebra.p.p.triples for term in triple}


def _mistake(text: str) -> str:
    with pytest.raises(UserError) as caught:
        parse_continuous(text, "q.rq")
    return str(caught.value).removeprefix("q.rq:")
