"""SPARQL beyond patterns: order, limits, forms, bindings, results, what a query sees, mistakes, the guide, the benchmark."""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from decimal import Decimal
from importlib.resources import files
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
import rdflib
from rdflib.query import ResultRow

from evergraph import KnowledgeGraph, Program
from evergraph.bench import queries
from evergraph.bench.lubm import ontology, triples_of_university
from evergraph.engines.base import Which
from evergraph.errors import UserError
from evergraph.rules.model import TYPE
from evergraph.sparql import View, query
from evergraph.sparql.lexicon import Lexicon
from evergraph.sparql.prepare import prepare
from evergraph.sparql.store import EvergraphStore
from evergraph.sparql.support import unsupported
from evergraph.terms import Dictionary, Ids, to_rdflib
from sparql_cases import EX, PREFIXES, SOME, TURTLE, Case, canonical, checked, people_case  # noqa: F401 - a fixture

# -- modifiers, forms and bindings -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("SELECT ?a { ?s :age ?a FILTER(isNumeric(?a)) } ORDER BY ?a", "a"),
        ("SELECT ?a { ?s :age ?a FILTER(isNumeric(?a)) } ORDER BY DESC(?a)", "a"),
        ("SELECT ?s { ?s :knows ?o FILTER(isIRI(?s)) } ORDER BY ?s", "s"),
        ("SELECT ?h ?s { ?s a :Person OPTIONAL { ?s :head ?h } FILTER(isIRI(?s)) } ORDER BY DESC(?h) ?s", "hs"),
        ("SELECT ?d { ?s :joined ?d } ORDER BY ?d", "d"),
        ("SELECT ?o ?s { ?s :knows ?o FILTER(isIRI(?s) && isIRI(?o)) } ORDER BY ?o DESC(?s)", "os"),
        ("SELECT DISTINCT ?s { ?s :knows ?o FILTER(isIRI(?s)) } ORDER BY DESC(?s) LIMIT 2 OFFSET 1", "s"),
        ("SELECT ?n { ?s :name ?n FILTER(lang(?n) = '') } ORDER BY ?n", "n"),
        ("SELECT ?a { ?s :age ?a FILTER(isNumeric(?a)) } ORDER BY (0 - ?a)", "a"),
        ("SELECT ?s (COUNT(*) AS ?n) { ?s :knows ?o FILTER(isIRI(?s)) } GROUP BY ?s ORDER BY DESC(COUNT(*)) ?s", "ns"),
    ],
)
def test_order_is_that_of_both(people: Case, text: str, keys: str) -> None:
    def rows(found: Any) -> list[Any]:
        return [tuple(canonical(row[key]) for key in keys) for row in found]

    got = rows(query(View.of(people.graph), PREFIXES + text))
    assert got == rows(people.memory.query(PREFIXES + text)) == rows(people.oxigraph.query(PREFIXES + text))


def test_terms_of_all_kinds_have_an_order(people: Case) -> None:
    rows = [row.o for row in query(View.of(people.graph), "SELECT DISTINCT ?o { ?s ?p ?o } ORDER BY ?o")]
    kinds = [0 if isinstance(o, rdflib.BNode) else 1 if isinstance(o, rdflib.URIRef) else 2 for o in rows]
    assert kinds == sorted(kinds) and set(kinds) == {0, 1, 2}
    numbers = [o.value for o in rows if isinstance(o, rdflib.Literal) and isinstance(o.value, int | float | Decimal)]
    assert [n for n in numbers if not isinstance(n, bool)] == sorted(n for n in numbers if not isinstance(n, bool))


@pytest.mark.parametrize("pattern", ["?s ?p ?o", "?s :knows ?o . ?o ?p ?q", "?s :age ?a FILTER(regex(str(?a), '[0-9]'))"])
def test_limit_and_offset(people: Case, pattern: str) -> None:
    every = people.rows(PREFIXES + f"SELECT * {{ {pattern} }}")
    total = sum(every.values())
    for limit, offset in [(0, 0), (1, 0), (3, 2), (1000, 0), (5, total - 2), (5, 1000)]:
        some = people.rows(PREFIXES + f"SELECT * {{ {pattern} }} LIMIT {limit} OFFSET {offset}")
        assert some <= every and sum(some.values()) == max(0, min(limit, total - offset))


@pytest.mark.parametrize("text", ["ASK { ?s :age 21 }", "ASK { ?s :age 22 }", "ASK { ?s :knows+ ?s }", "ASK {}"])
def test_ask(people: Case, text: str) -> None:
    answers = query(View.of(people.graph), PREFIXES + text)
    assert bool(answers) == answers.askAnswer == bool(people.oxigraph.query(PREFIXES + text)) == next(iter(answers))
    assert answers.to_arrow().to_pydict() == {"answer": [bool(answers)]}


@pytest.mark.parametrize(
    "text",
    [
        "CONSTRUCT { ?o :knownBy ?s } WHERE { ?s :knows ?o }",
        "CONSTRUCT { ?s :is [ :aged ?a ] } WHERE { ?s :age ?a }",
        "CONSTRUCT { ?a :of ?s . ?s :with ?h } WHERE { ?s :age ?a OPTIONAL { ?s :head ?h } }",
        "CONSTRUCT WHERE { ?s :knows ?o . ?o :name ?n }",
        "CONSTRUCT { ?s :rich true } WHERE { ?s :age ?a FILTER(RAND() < 2) }",
    ],
)
def test_construct(people: Case, text: str) -> None:
    answers = query(View.of(people.graph), PREFIXES + text)
    wanted = rdflib.Graph()
    for triple in people.oxigraph.query(PREFIXES + text):
        wanted.add(tuple(to_rdflib(str(term)) for term in triple))
    assert answers.graph is not None and answers.graph.isomorphic(wanted)
    assert len(answers) == len(wanted) == answers.to_arrow().num_rows
    assert answers.serialize(format="nt") is not None


def test_construct_where_with_a_limit(people: Case) -> None:
    assert len(query(View.of(people.graph), PREFIXES + "CONSTRUCT WHERE { ?s :knows ?o } LIMIT 2")) == 2


@pytest.mark.parametrize("text", ["DESCRIBE :ann", "DESCRIBE ?s WHERE { ?s :head ?h }", "DESCRIBE ?s WHERE { :dee :knows ?s }"])
def test_describe(people: Case, text: str) -> None:
    answers = query(View.of(people.graph), PREFIXES + text)
    assert answers.graph is not None and answers.graph.isomorphic(people.memory.query(PREFIXES + text).graph)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT ?s ?o { ?s :knows ?o }",
        "SELECT ?s ?n { ?s a :Person OPTIONAL { ?s :name ?n } }",
        "SELECT ?x { BIND(?s AS ?x) }",
        "SELECT ?o { { ?s :knows ?o } UNION { ?o :knows ?s } }",
        "SELECT ?o { ?s ?p ?o FILTER(?s = :ann) }",
        "SELECT (COUNT(*) AS ?n) { ?s :knows ?o }",
        "SELECT ?s ?v { VALUES (?s ?v) { (:ann 1) (:bob 2) } }",
    ],
)
@pytest.mark.parametrize("who", ["ann", "nobody"])
def test_bindings_given_beforehand(people: Case, text: str, who: str) -> None:
    given = {"s": rdflib.URIRef(EX + who)}
    answers = query(View.of(people.graph), PREFIXES + text, bindings=given)
    wanted = people.memory.query(PREFIXES + text, initBindings=given)
    assert Counter(map(tuple, answers)) == Counter(map(tuple, wanted))


def test_a_blank_node_of_an_answer_is_the_same_node_in_the_next_query(people: Case) -> None:
    view = View.of(people.graph)
    (row,) = query(view, PREFIXES + "SELECT ?s { ?s :name 'Eve' }")
    (again,) = query(view, PREFIXES + "SELECT ?age { ?s :age ?age }", bindings={"?s": row.s})
    assert again.age.value == 12


def test_prefixes_and_a_base_given_beforehand(people: Case) -> None:
    view = View.of(people.graph)
    assert len(query(view, "SELECT ?o { ex:ann ex:knows ?o }", namespaces={"ex": EX})) == 3
    assert len(query(view, "SELECT ?o { <ann> <knows> ?o }", base=EX)) == 3


# -- results ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["csv", "json", "xml", "txt"])
def test_answers_are_written_as_rdflib_writes_them(people: Case, form: str) -> None:
    wanted = people.memory.query(SOME).serialize(format=form)
    assert query(View.of(people.graph), SOME).serialize(format=form) == wanted


def test_answers_are_a_result_of_rdflib(people: Case) -> None:
    answers = query(View.of(people.graph), SOME)
    wanted = people.memory.query(SOME)
    assert isinstance(answers, rdflib.query.Result) and answers.type == "SELECT"
    assert answers.vars == wanted.vars and answers.bindings == wanted.bindings and len(answers) == len(wanted)
    for row, other in zip(answers, wanted, strict=True):
        assert isinstance(row, ResultRow) and row == other and row.asdict() == other.asdict() and row.s == row["s"] == row[0]
    assert list(answers) == list(answers) and bool(answers)
    assert not query(View.of(people.graph), "SELECT ?s { ?s <x:y> ?o }")


def test_answers_as_frames(people: Case) -> None:
    table = query(View.of(people.graph), SOME).to_arrow()
    assert table.schema == pa.schema([("s", pa.large_string()), ("n", pa.large_string())])
    rows = [tuple(row.values()) for row in table.to_pylist()]
    assert Counter((s, n) for s, n in rows) == people.rows(SOME)
    frame = query(View.of(people.graph), SOME).to_pandas()
    assert list(frame.columns) == ["s", "n"] and len(frame) == len(rows)
    own = query(View.of(people.graph), "SELECT ?x ?y { VALUES ?x { 'new' UNDEF <x:y> } BIND(1 AS ?y) }").to_arrow()
    assert own["x"].to_pylist() == ['"new"', None, "<x:y>"]


def test_every_variable_of_a_star_in_the_order_of_the_text(people: Case) -> None:
    assert query(View.of(people.graph), "SELECT * { ?zoo ?b ?a1 . ?a1 ?a ?q }").vars == list(
        map(rdflib.Variable, ["zoo", "b", "a1", "a", "q"])
    )


def test_a_solution_without_values_is_a_row(people: Case) -> None:
    answers = query(View.of(people.graph), "SELECT ?x { OPTIONAL { ?x <x:y> ?z } }")
    assert len(answers) == 1 and list(answers) == [(None,)] and answers.bindings == [{}]


def test_only_answers_are_decoded(people: Case) -> None:
    decoded: list[int] = []

    def decode(self: Dictionary, ids: Ids) -> pa.Array:
        decoded.append(len(ids))
        return original(self, ids)

    original = Dictionary.decode
    with patch.object(Dictionary, "decode", decode):
        answers = query(View.of(people.graph), PREFIXES + "SELECT ?o { :ann :knows ?x . ?x :knows ?o . ?o a :Person }")
        assert len(answers) == 4 and not decoded
        assert sum(1 for _ in answers) == 4
        assert sum(decoded) == 3  # bob, cid and ann, each once
        decoded.clear()
        assert len(list(query(View.of(people.graph), "SELECT ?s { ?s ?p ?o } LIMIT 2"))) == 2 and sum(decoded) <= 2


def test_the_first_rows_cost_the_first_block() -> None:
    graph = KnowledgeGraph(Program())
    graph.update(insert=[(f"<x:{n}>", "<x:p>", f"<x:{n + 1}>") for n in range(5000)])
    answers = iter(query(View.of(graph), "SELECT ?s { ?s <x:p> ?o }"))
    with patch.object(Lexicon, "terms", autospec=True, side_effect=Lexicon.terms) as terms:
        next(answers)
        assert sum(len(call.args[1]) for call in terms.call_args_list) <= 256


# -- graphs ----------------------------------------------------------------------------------------------------------


def test_explicit_triples_alone() -> None:
    graph = KnowledgeGraph("rhodf")
    sub = "<http://www.w3.org/2000/01/rdf-schema#subClassOf>"
    graph.update(insert=f"<x:A> {sub} <x:B> .\n<x:a> {TYPE} <x:A> .")
    text = "SELECT ?c { <x:a> a ?c }"
    assert len(query(View.of(graph), text)) == 2
    assert [row.c for row in query(View.of(graph, Which.EXPLICIT), text)] == [rdflib.URIRef("x:A")]
    with pytest.raises(UserError, match="EG503"):
        View.of(graph, Which.DERIVED)


@pytest.mark.parametrize("engine", ["memory", "reference"])
def test_a_query_sees_every_update_before_it_and_none_after(engine: str) -> None:
    graph = KnowledgeGraph(Program.parse("[?x, <x:p>, ?z] :- [?x, <x:p>, ?y], [?y, <x:p>, ?z] ."), engine=engine)
    graph.update(insert="<x:a> <x:p> <x:b> .")
    before = query(View.of(graph), "SELECT ?s ?o { ?s <x:p> ?o }")
    graph.update(insert="<x:b> <x:p> <x:c> .")
    after = query(View.of(graph), "SELECT ?s ?o { ?s <x:p> ?o }")
    assert len(list(before)) == 1 and len(list(after)) == 3


def test_facts_whose_subject_is_a_literal(tmp_path: Path) -> None:
    path = tmp_path / "people.ttl"
    path.write_text(TURTLE)
    graph = KnowledgeGraph("rdfs")
    graph.update(insert=[path])
    answers = query(View.of(graph), "SELECT ?s ?c { ?s a ?c FILTER(isLiteral(?s)) }")
    assert len(answers) and all(isinstance(row.s, rdflib.Literal) for row in answers)
    assert answers.serialize(format="json") and answers.to_arrow().num_rows == len(answers)
    assert len(query(View.of(graph), "CONSTRUCT WHERE { ?s a ?c }")) == len(
        query(View.of(graph), "SELECT ?s ?c { ?s a ?c FILTER(!isLiteral(?s)) }")
    )
    assert len(list(rdflib.Graph(store=EvergraphStore(graph)))) == len(graph)


def test_literals_are_matched_as_they_are_written() -> None:
    graph = KnowledgeGraph(Program())
    xsd = "http://www.w3.org/2001/XMLSchema#"
    graph.update(insert=[("<x:a>", "<x:p>", f'"01"^^<{xsd}integer>'), ("<x:b>", "<x:p>", f'"1"^^<{xsd}integer>')])
    view = View.of(graph)
    assert [str(r.s) for r in query(view, f"SELECT ?s {{ ?s ?p '01'^^<{xsd}integer> }}")] == ["x:a"]
    assert [str(r.s) for r in query(view, "SELECT ?s { ?s ?p 1 }")] == ["x:b"]
    assert len(query(view, "SELECT ?s { ?s ?p ?o FILTER(?o = 1) }")) == 2
    assert rdflib.NORMALIZE_LITERALS


def test_queries_in_threads_do_not_disturb_each_other(people: Case) -> None:
    text = PREFIXES + "SELECT ?s ?x { ?s :age ?a BIND(CONCAT(STR(?a), '!') AS ?x) }"
    wanted = people.rows(text)
    found: list[Counter[Any]] = []
    threads = [threading.Thread(target=lambda: found.extend(people.rows(text) for _ in range(20))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 80 and all(one == wanted for one in found)


@pytest.fixture(scope="module")
def departments() -> Case:
    """The first two departments of LUBM(1), closed under OWL 2 RL."""
    lines = triples_of_university(0, 0)
    chosen = [line for line in lines if "www.Department" not in line or "Department0." in line or "Department1." in line]
    graph = KnowledgeGraph("owl2rl", equality="off")
    graph.update(insert=ontology() + "\n".join(chosen))
    return Case(graph)


QUERIES = sorted((p for p in files("evergraph.bench.lubm").joinpath("queries").iterdir()), key=lambda p: p.name)


@pytest.mark.parametrize("file", QUERIES, ids=lambda p: p.name)
def test_lubm(departments: Case, file: Any) -> None:
    text = file.read_text()
    assert len(QUERIES) == 14 and unsupported(prepare(text).algebra.p) is None
    slow = file.name in ("02.rq", "09.rq")  # rdflib joins their classes first, each with each
    checked(departments, text, ["oxigraph"] if slow else ["rdflib", "oxigraph"])
    assert departments.rows(text) or file.name in ("02.rq", "13.rq")  # which want more than one university


# -- mistakes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "code", "place", "said"),
    [
        ("SELECT ?s\nWHERE { ?s ?p }", "EG501", "<query>:2:9", "?s ?p }"),
        ("SELECT ?s\nWHERE {\n  ?s foo:bar ?o }", "EG501", "<query>:3:6", "'foo:'"),
        ("", "EG501", "<query>:1:1", "ends"),
        ("INSERT DATA { <x:a> <x:b> <x:c> }", "EG501", "<query>:1:1", "update"),
        ("SELECT ?s { ?s ?p ?o FILTER(?o > ) }", "EG501", "<query>:1:22", "FILTER"),
        ("SELECT ?s { GRAPH ?g { ?s ?p ?o } }", "EG503", "None", "GRAPH"),
        ("SELECT ?s FROM <x:g> { ?s ?p ?o }", "EG503", "None", "FROM"),
        ("SELECT ?s { SERVICE <http://localhost/> { ?s ?p ?o } }", "EG503", "None", "SERVICE"),
        ("SELECT ?s { FILTER EXISTS { GRAPH ?g { ?s ?p ?o } } }", "EG503", "None", "GRAPH"),
        ("SELECT ?s { ?s !(^<x:p>) ?o }", "EG503", "None", "rdflib"),
    ],
)
def test_mistakes(people: Case, text: str, code: str, place: str, said: str) -> None:
    with pytest.raises(UserError) as caught:
        query(View.of(people.graph), text)
    error = caught.value
    assert (error.code, str(error.position)) == (code, place) and said in error.message and error.hint


def test_products_without_bound_are_refused(people: Case) -> None:
    text = "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f }"
    for size in (100, 10**6):
        with patch("evergraph.sparql.solutions.MOST_ROWS", size):
            if size == 100:
                with pytest.raises(UserError, match="EG504"):
                    query(View.of(people.graph), text)
            else:
                assert next(iter(query(View.of(people.graph), text))).n.value == len(people.graph) ** 2


# -- the guide and the benchmark -------------------------------------------------------------------------------------


def test_the_guide_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    guide = (Path(__file__).parent.parent / "docs" / "sparql.md").read_text()
    namespace: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", guide, re.DOTALL):
        exec(compile(block, "sparql.md", "exec"), namespace)
    assert capsys.readouterr().out == "".join(re.findall(r"```text\n(.*?)```", guide, re.DOTALL)) != ""


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # a query that is stopped while it deletes
def test_the_benchmark_compares_all_answers(departments: Case, tmp_path: Path) -> None:
    file = tmp_path / "lubm1.nt"
    file.write_text("".join(f"{s.n3()} {p.n3()} {o.n3()} .\n" for s, p, o in departments.graph.explicit))
    assert queries.main(1, "owl2rl", 1, tmp_path, tmp_path) == 0
    saved = json.loads((tmp_path / "queries.json").read_text())
    assert [row["query"] for row in saved["rows"]] == list(range(1, 15)) and saved["totals_ms"].keys() == saved[
        "medians_ms"
    ].keys()
    assert saved["rows"][5]["answers"] == sum(departments.rows(queries.queries()[6]).values())


def test_the_benchmark_fails_when_answers_differ(tmp_path: Path) -> None:
    (tmp_path / "lubm1.nt").write_text("<x:a> <x:p> <x:b> .\n")
    pretended = [("evergraph", lambda text: iter([(rdflib.URIRef("x:a"),)])), ("rdflib", lambda text: iter([()]))]
    with patch("evergraph.bench.queries.systems", lambda graph: pretended):
        assert queries.main(1, "rhodf", 1, tmp_path, tmp_path) == 1
