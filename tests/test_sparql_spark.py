"""Queries as Spark frames: the same answers as without Spark, or a refusal that names what cannot be compiled."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np
import pytest

from evergraph import KnowledgeGraph, Program
from evergraph.errors import UserError
from evergraph.sparql import View, query
from evergraph.sparql.spark import to_frame

pytestmark = pytest.mark.spark

FACTS = """
<http://e/ann> <http://e/knows> <http://e/bob> .
<http://e/ann> <http://e/knows> <http://e/ann> .
<http://e/bob> <http://e/knows> <http://e/cid> .
<http://e/cid> <http://e/likes> <http://e/ann> .
<http://e/ann> <http://e/name> "Ann" .
<http://e/bob> <http://e/name> "Bob"@en .
<http://e/cid> <http://e/age> "5"^^<http://www.w3.org/2001/XMLSchema#integer> .
"""
PREFIX = "PREFIX : <http://e/> "


class Frames(NamedTuple):
    view: View
    triples: Any
    dictionary: Any

    def rows(self, text: str) -> Counter[tuple[str | None, ...]]:
        frame = to_frame(PREFIX + text, self.triples, self.dictionary, self.view.dictionary.find)
        return Counter(tuple(row) for row in frame.collect())


@pytest.fixture(scope="module")
def frames(spark: Any) -> Frames:
    graph = KnowledgeGraph(Program())
    graph.update(insert=FACTS)
    view = View.of(graph)
    columns = graph._engine.rows("[]", "all")
    triples = [tuple(map(int, row)) for row in zip(*columns, strict=True)]
    terms = view.dictionary.decode(np.arange(len(view.dictionary), dtype=np.uint64)).to_pylist()
    return Frames(
        view,
        spark.createDataFrame(triples, "subject long, predicate long, object long"),
        spark.createDataFrame(list(enumerate(terms)), "id long, term string"),
    )


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * { ?s ?p ?o }",
        "SELECT ?s ?n { ?s :knows ?o . ?o :name ?n }",
        "SELECT ?s { ?s :knows ?s }",
        "SELECT ?s { ?s :knows [] }",
        "SELECT DISTINCT ?s { ?s :knows ?o }",
        "SELECT ?s { ?s :knows :nobody }",
        "SELECT ?s { ?s :name 'Bob'@en }",
        "SELECT ?x ?X { ?x :knows ?X }",
        "SELECT ?s ?missing { ?s :age 5 }",
        "SELECT ?s ?t { ?s :age ?a . ?t :name ?n }",
        "SELECT ?s { :ann :knows :bob . ?s :age ?a }",
        "SELECT ?s ?o { ?s :knows/:knows ?o }",
        "SELECT ?s ?o { ?s :knows|^:likes ?o }",
        "SELECT ?s ?o { ?s !(:knows|:nope) ?o }",
        "SELECT ?o { ?s :knows ?o FILTER(?s = :ann && ?o != :ann) }",
        "SELECT ?s { ?s ?p ?o FILTER(?o != :nobody) }",
        "SELECT ?s { ?s :knows ?o FILTER(sameTerm(?s, ?o)) }",
        "SELECT ?s { ?s :knows ?o } LIMIT 0",
    ],
)
def test_a_frame_has_the_answers_of_the_query(frames: Frames, text: str) -> None:
    rows = query(frames.view, PREFIX + text).to_arrow().to_pylist()
    assert frames.rows(text) == Counter(tuple(row.values()) for row in rows)


def test_limit_and_offset_leave_some_of_the_answers(frames: Frames) -> None:
    every = frames.rows("SELECT ?s ?o { ?s ?p ?o }")
    assert sum(frames.rows("SELECT ?s ?o { ?s ?p ?o } LIMIT 3").values()) == 3
    some = frames.rows("SELECT ?s ?o { ?s ?p ?o } LIMIT 100 OFFSET 5")
    assert some <= every and sum(some.values()) == 2


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("SELECT ?s { ?s ?p ?o OPTIONAL { ?s :age ?a } }", "OPTIONAL"),
        ("SELECT ?s { { ?s :age ?a } UNION { ?s :name ?a } }", "UNION"),
        ("SELECT ?s { ?s ?p ?o MINUS { ?s :age ?a } }", "MINUS"),
        ("SELECT ?s { ?s ?p ?o } ORDER BY ?s", "ORDER BY"),
        ("SELECT (COUNT(*) AS ?n) { ?s ?p ?o }", "expression"),
        ("SELECT ?s { ?s :knows+ ?o }", "path"),
        ("SELECT ?s { ?s :age ?a FILTER(?a > 4) }", "Relational"),
        ("SELECT ?s { ?s :age ?a FILTER(regex(?a, '5')) }", "REGEX"),
        ("SELECT ?s { ?s :age ?a FILTER(?b = :x) }", "?b"),
        ("SELECT ?s { VALUES ?s { :ann } ?s :age ?a }", "group"),
        ("SELECT * { }", "without triple patterns"),
        ("SELECT ?s FROM :g { ?s ?p ?o }", "FROM"),
        ("ASK { ?s ?p ?o }", "ASK"),
        ("CONSTRUCT WHERE { ?s ?p ?o }", "CONSTRUCT"),
    ],
)
def test_what_spark_cannot_compile_is_named(frames: Frames, text: str, named: str) -> None:
    with pytest.raises(UserError, match="EG502") as caught:
        frames.rows(text)
    assert named in caught.value.message and "default" in caught.value.hint


def test_a_graph_on_spark_answers_from_the_relations_that_a_query_reads(spark: Any) -> None:
    graph = KnowledgeGraph("rhodf", engine=spark)
    graph.update(insert=FACTS)
    view = View.of(graph)
    answers = query(view, PREFIX + "SELECT ?s ?n { ?s :knows ?o . ?o :name ?n } ORDER BY ?s ?n")
    assert [tuple(map(str, row)) for row in answers] == [
        ("http://e/ann", "Ann"),
        ("http://e/ann", "Bob"),
    ]
    gathered: dict[Any, Any] = view.relations._found  # type: ignore[attr-defined]
    assert len(gathered) == 2


def test_malformed_queries_are_mistakes_here_too(frames: Frames) -> None:
    with pytest.raises(UserError, match="EG501"):
        frames.rows("SELECT ?s { ?s }")
