"""SPARQL: the same answers as rdflib's evaluator over its own store, and as pyoxigraph.

Where these two differ from each other, a list says which of them follows the specification.
"""

from __future__ import annotations

from unittest.mock import patch

import pytest

from evergraph.sparql.prepare import prepare
from evergraph.sparql.support import unsupported
from sparql_cases import PREFIXES, Case, checked, people_case  # noqa: F401 - a fixture

BOTH = """
SELECT * { ?s ?p ?o }
SELECT ?s ?o { ?s :knows ?o }
SELECT ?s { ?s :knows ?s }
SELECT ?s { ?s ?s ?o }
SELECT * { ?s :knows ?o . ?o :knows ?t }
SELECT ?s { ?s :knows [] }
SELECT ?s { ?s :knows [ :age ?a ] }
SELECT ?s { ?s :knows _:x . _:x :age ?a }
SELECT ?s { ?s a :Person ; :age 21 }
SELECT ?s { ?s :nope ?o }
SELECT ?s { ?s :knows :nobody }
SELECT ?p { :ann ?p :bob }
SELECT ?p ?q { :ann ?p ?x . ?x ?q ?y }
SELECT ?p { ?s ?p ?o . ?p a rdf:Property }
SELECT ?s { ?s :name "Ann"@en }
SELECT ?s { ?s :name "Ann"@EN }
SELECT ?s { ?s :name "Ann" }
SELECT ?s { ?s :code "7"^^:Code }
SELECT ?s { ?s :joined "2020-05-01T10:00:00Z"^^xsd:dateTime }
SELECT ?n { ?s :name ?n }
SELECT DISTINCT ?s { ?s ?p ?o }
SELECT REDUCED ?s { ?s :age ?o }
SELECT ?s ?n { ?s a :Person OPTIONAL { ?s :name ?n } }
SELECT ?s ?n ?h { ?s a :Person OPTIONAL { ?s :name ?n } OPTIONAL { ?s :head ?h } }
SELECT ?s ?n { ?s a :Person OPTIONAL { ?s :name ?n FILTER(lang(?n) = "en") } }
SELECT ?s ?x ?y { ?s a :Person OPTIONAL { ?s :knows ?x . ?x :head ?y } }
SELECT ?s ?x ?y { ?s a :Person OPTIONAL { ?s :knows ?x OPTIONAL { ?x :head ?y } } }
SELECT ?s ?x { ?s a :Student OPTIONAL { ?s :likes ?x } OPTIONAL { ?s :knows ?x } }
SELECT ?s ?x { OPTIONAL { ?s :likes ?x } ?s :knows ?x }
SELECT ?s { { ?s a :Student } UNION { ?s :age ?a } }
SELECT ?s ?a ?b { { ?s :age ?a } UNION { ?s :height ?b } }
SELECT * { { ?s :age ?a } UNION { ?s :height ?a } UNION { ?s :weight ?a } }
SELECT ?s { ?s a :Person MINUS { ?s :name ?n } }
SELECT ?s { ?s a :Person MINUS { ?s :knows :cid } }
SELECT ?s { ?s a :Person MINUS { ?x :knows :cid } }
SELECT ?s { ?s a :Person MINUS { ?s a :Student . ?s :age ?a FILTER(?a > 25) } }
SELECT ?s ?h { ?s a :Person OPTIONAL { ?s :head ?h } MINUS { ?s :age ?a . ?t :head ?h } }
SELECT ?s { ?s :age ?a FILTER(?a < 40) }
SELECT ?s { ?s :age ?a FILTER(?a != 21) }
SELECT ?s { ?s :age ?a FILTER(?a = 55.5) }
SELECT ?s { ?s :age ?a FILTER(?a = 55.50) }
SELECT ?s { ?s :age ?a FILTER(!(?a > 21)) }
SELECT ?s { ?s :age ?a FILTER(?a > 100 || true) }
SELECT ?s { ?s :age ?a FILTER(!(?a > 21 && ?s = :nobody)) }
SELECT ?s { ?s :age ?a FILTER(?a > "a") }
SELECT ?s { ?s :age ?a FILTER(?a = "old") }
SELECT ?s ?t { ?s :age ?a . ?t :age ?b FILTER(?a = ?b) }
SELECT ?s ?t { ?s :age ?a . ?t :age ?b FILTER(?s != ?t) }
SELECT ?s { ?s :joined ?d FILTER(?d > "2019-06-01T00:00:00Z"^^xsd:dateTime) }
SELECT ?s { ?s :joined ?d FILTER(?d = "2020-05-01T12:00:00+02:00"^^xsd:dateTime) }
SELECT ?s { ?s :born ?d FILTER(?d > "1995-01-01"^^xsd:date) }
SELECT ?s { ?s :active ?d FILTER(?d) }
SELECT ?s { ?s :active ?d FILTER(!?d) }
SELECT ?s { ?s :active ?d FILTER(?d = true) }
SELECT ?s { ?s :code ?c FILTER(?c = "7"^^:Code) }
SELECT ?s { ?s :code ?c FILTER(?c != "7"^^:Code) }
SELECT ?s { ?s :age ?a FILTER(?a IN (21, 30)) }
SELECT ?s { ?s :age ?a FILTER(?a NOT IN (21, 30)) }
SELECT ?s { ?s :age ?a FILTER(?s IN (:ann, :bob)) }
SELECT ?s { ?s :age ?a FILTER(?s IN ()) }
SELECT ?s { ?s :knows ?o FILTER(sameTerm(?s, ?o)) }
SELECT ?s { ?s :age ?a FILTER(isIRI(?s)) }
SELECT ?s { ?s :age ?a FILTER(isURI(?s)) }
SELECT ?s { ?s :age ?a FILTER(isBlank(?s)) }
SELECT ?o { ?s ?p ?o FILTER(isLiteral(?o)) }
SELECT ?s ?a { ?s :age ?a FILTER(isNumeric(?a)) }
SELECT ?s { ?s a :Person OPTIONAL { ?s :head ?h } FILTER(!bound(?h)) }
SELECT ?s { ?s a :Person OPTIONAL { ?s :head ?h } FILTER(bound(?h)) }
SELECT ?s { ?s a :Person OPTIONAL { ?s :head ?h } FILTER(?h = :maths || ?s = :ann) }
SELECT ?s { ?s a :Person FILTER(?undefined = 1) }
SELECT ?s { ?s a :Person FILTER(!bound(?undefined)) }
SELECT ?n { ?s :name ?n FILTER(regex(?n, "^a", "i")) }
SELECT ?n { ?s :name ?n FILTER(strstarts(?n, "A")) }
SELECT ?n { ?s :name ?n FILTER(contains(str(?n), "n")) }
SELECT ?n { ?s :name ?n FILTER(langMatches(lang(?n), "*")) }
SELECT ?n { ?s :name ?n FILTER(strlen(?n) = 3) }
SELECT ?s { ?s :age ?a FILTER(?a + 1 = 22) }
SELECT ?s { ?s :age ?a FILTER(?a / 0 = 1) }
SELECT ?s { ?s :age ?a ; :height ?h FILTER(?a * ?h > 40) }
SELECT ?s { ?s :age ?a FILTER(datatype(?a) = xsd:integer) }
SELECT ?s { ?s a :Person FILTER EXISTS { ?s :head ?h } }
SELECT ?s { ?s a :Person FILTER NOT EXISTS { ?s :head ?h } }
SELECT ?s { ?s a :Person FILTER(NOT EXISTS { ?s :head ?h } && ?s != :ann) }
SELECT ?s { ?s a :Person FILTER EXISTS { { ?s :head ?h } UNION { ?s :likes ?h } } }
SELECT ?s { ?s a :Person FILTER EXISTS { ?s :knows ?k OPTIONAL { ?k :head ?h } FILTER(bound(?h)) } }
SELECT ?s { ?s a :Person FILTER EXISTS { ?s :knows ?k FILTER NOT EXISTS { ?k :head ?h } } }
SELECT ?s ?x { ?s :age ?a BIND(:ann AS ?x) }
SELECT ?s ?x ?o { ?s :age ?a BIND(:ann AS ?x) ?x :knows ?o }
SELECT ?s ?x { ?s a :Person OPTIONAL { ?s :head ?h } BIND(COALESCE(?h, :none) AS ?x) }
SELECT ?s ?x { ?s :name ?n BIND(CONCAT(STR(?n), "!") AS ?x) }
SELECT (?a + 1 AS ?b) { ?s :age ?a }
SELECT ?s ?x { BIND(1 AS ?x) ?s :age 21 }
SELECT (xsd:integer("5") AS ?x) { }
SELECT ?s ?a { VALUES ?s { :ann :bob :nobody } ?s :age ?a }
SELECT ?s ?a { ?s :age ?a VALUES (?s ?a) { (:ann 21) (:bob UNDEF) (UNDEF 55.5) } }
SELECT ?s ?a { ?s :age ?a } VALUES ?s { :ann :ann }
SELECT ?s ?x { ?s a :Student OPTIONAL { VALUES ?x { 1 2 } } }
SELECT (COUNT(*) AS ?n) { ?s :age ?a }
SELECT (COUNT(*) AS ?n) { ?s :nope ?a }
SELECT (COUNT(?h) AS ?n) { ?s a :Person OPTIONAL { ?s :head ?h } }
SELECT (COUNT(DISTINCT ?s) AS ?n) { ?s :knows ?o }
SELECT (COUNT(DISTINCT *) AS ?n) { { ?s :knows ?o } UNION { ?s :knows ?o } }
SELECT ?s (COUNT(*) AS ?n) { ?s :knows ?o } GROUP BY ?s
SELECT ?s (COUNT(*) AS ?n) { ?s :knows ?o } GROUP BY ?s HAVING(COUNT(*) > 1)
SELECT (SUM(?a) AS ?n) (AVG(?a) AS ?m) { ?s :age ?a FILTER(isNumeric(?a)) }
SELECT (SUM(?w) AS ?n) (AVG(?w) AS ?m) { ?s :weight ?w }
SELECT (SUM(?w) AS ?n) { { ?s :weight ?w } UNION { ?s :height ?w } }
SELECT (MIN(?a) AS ?n) (MAX(?a) AS ?m) { ?s :age ?a FILTER(isNumeric(?a)) }
SELECT (MIN(?a) AS ?n) (MAX(?a) AS ?m) { ?s :joined ?a }
SELECT (SUM(DISTINCT ?x) AS ?n) { VALUES ?x { 1 1 2 } }
SELECT (GROUP_CONCAT(?x) AS ?n) { VALUES ?x { "a" "b" } }
SELECT (GROUP_CONCAT(?x; SEPARATOR=", ") AS ?n) { VALUES ?x { "a" "b" } }
SELECT ?c (SAMPLE(?s) AS ?n) { VALUES (?c ?s) { (1 2) (3 4) } } GROUP BY ?c
SELECT ?c (COUNT(?s) AS ?n) { ?s a ?c } GROUP BY ?c ORDER BY DESC(?n) ?c
SELECT ?s ((COUNT(?o) + 1) AS ?n) { ?s :knows ?o } GROUP BY ?s
SELECT (MAX(?n) AS ?m) { { SELECT ?s (COUNT(*) AS ?n) { ?s :knows ?o } GROUP BY ?s } }
SELECT ?s ?n { ?s a :Student { SELECT ?s (COUNT(*) AS ?n) { ?s :knows ?o } GROUP BY ?s } }
SELECT ?s ?o { { SELECT ?s { ?s :age ?o } } ?s :knows ?o }
SELECT ?x { ?s :knows ?o { SELECT ?s (1 AS ?x) { ?s :knows ?z } } }
SELECT ?s { ?s :part+ :world }
SELECT ?s { ?s :part* :world }
SELECT ?o { :maths :part* ?o }
SELECT ?o { :maths :part+ ?o }
SELECT ?o { :maths :part? ?o }
SELECT ?s ?o { ?s :part+ ?o }
SELECT ?s ?o { ?s :part* ?o }
SELECT ?s ?o { ?s ^:part ?o }
SELECT ?s ?o { ?s :knows/:knows ?o }
SELECT ?s ?o { ?s (:knows|:likes)+ ?o }
SELECT ?s ?o { ?s !(:knows|rdf:type) ?o }
SELECT ?s ?o { ?s !:knows ?o . ?s a :Student }
SELECT ?x { :list rdf:rest*/rdf:first ?x }
SELECT ?s ?c { ?s a/rdfs:subClassOf* ?c . ?s :age ?a }
SELECT ?s { ?s :knows/(:part|:head) ?o }
SELECT ?s ?o { ?s (^:knows/:age)? ?o . ?s a :Student }
SELECT ?s { ?s :age ?a FILTER(1 = 1) }
SELECT ?s ?p { ?s ?p ?o FILTER(?o = 21) }
SELECT ?s { { ?s :age ?a } { ?s :height ?h } }
SELECT ?s ?n { ?s :name ?n FILTER(?n > "B"@en) }
SELECT ?s ?n { ?s :name ?n FILTER(?n = "Ann"@en) }
SELECT ?s ?n { ?s :name ?n FILTER(?n != "Ann"@en) }
SELECT ?s ?o { ?s :knows ?o FILTER(?o IN (:bob, :cid) && ?s NOT IN (:bob)) }
SELECT ?n ?x { ?s :name ?n BIND(LANG(?n) AS ?x) }
SELECT ?s ?x { ?s :age ?a BIND(xsd:string(?a) AS ?x) FILTER(isNumeric(?a)) }
SELECT ?x (COUNT(*) AS ?n) { ?s :knows ?o BIND(isBlank(?o) AS ?x) } GROUP BY ?x
SELECT ?s { ?s :knows ?o } GROUP BY ?s HAVING(COUNT(*) = 1 && COUNT(DISTINCT ?o) = 1)
SELECT ?s ?o { ?s :knows ?o { SELECT ?o (COUNT(*) AS ?n) { ?z :knows ?o } GROUP BY ?o HAVING(?n > 1) } }
SELECT ?s ?t { ?s :head ?h . ?h :part+ ?t . ?t :part ?u }
"""
"""Queries on which rdflib and pyoxigraph agree."""
AS_OXIGRAPH = """
SELECT ?s { ?s :name "Bob"^^xsd:string }
SELECT ?s { ?s :weight 6.0e1 }
SELECT ?s { ?s :age ?a FILTER(?a > 21) }
SELECT ?s { ?s :age ?a FILTER(?a >= 21) }
SELECT ?s { ?s :age ?a FILTER(?a > 21 || ?s = :ann) }
SELECT ?s { ?s :age ?a FILTER(?a > 21 && ?s != :bob) }
SELECT ?s ?t { ?s :age ?a . ?t :age ?b FILTER(?a < ?b) }
SELECT ?s ?t { ?s :name ?a . ?t :name ?b FILTER(?a < ?b) }
SELECT ?s { ?s :age ?a FILTER EXISTS { ?t :age ?b FILTER(?b > ?a) } }
SELECT ?s { ?s :age ?a FILTER NOT EXISTS { ?t :age ?b FILTER(?b > ?a) } }
SELECT ?s ?x { ?s :age ?a BIND(IF(?a > 25, "old", "young") AS ?x) }
SELECT ?s (COUNT(*) AS ?n) { ?s :nope ?o } GROUP BY ?s
SELECT (MIN(?s) AS ?n) (MAX(?s) AS ?m) { ?s a :Student }
SELECT (SUM(?a) AS ?n) { ?s :age ?a }
SELECT (COUNT(?s) AS ?n) { ?s :age ?a } GROUP BY (?a > 25)
SELECT ?b (COUNT(?s) AS ?n) { ?s :age ?a } GROUP BY (?a > 25 AS ?b)
SELECT ?s ?o { ?s (:knows/^:knows)* ?o . ?s a :Student }
SELECT ?s { FILTER(?a > 21) ?s :age ?a }
SELECT ?s { { ?s :age ?a FILTER(?a > 25) } UNION { ?s :height ?h FILTER(?h < 1.6) } }
SELECT ?s ?n { ?s :name ?n FILTER(?n > "B") }
SELECT ?s { ?s :age ?a FILTER(?a > 25 && EXISTS { ?s :knows ?o }) }
"""
"""rdflib orders what has no order, takes IN for identity, turns IRIs into literals, rewrites literals, or fails."""
AS_RDFLIB = """
SELECT ?s ?x { ?s :age ?a BIND(?a * 2 AS ?x) }
SELECT (AVG(?x) AS ?n) { VALUES ?x { 1 2 2 } }
SELECT ?s ?o { ?s :knows|:likes ?o }
"""
"""pyoxigraph rounds decimals to 18 places and counts alternatives once; in products rdflib makes decimals of integers."""


@pytest.mark.parametrize("text", BOTH.strip().splitlines())
def test_answers_are_those_of_rdflib_and_of_pyoxigraph(people: Case, text: str) -> None:
    checked(people, PREFIXES + text, ["rdflib", "oxigraph"])


@pytest.mark.parametrize("text", AS_OXIGRAPH.strip().splitlines())
def test_answers_are_those_of_pyoxigraph_where_rdflib_departs_from_the_specification(people: Case, text: str) -> None:
    checked(people, PREFIXES + text, ["oxigraph"])


@pytest.mark.parametrize("text", AS_RDFLIB.strip().splitlines())
def test_answers_are_those_of_rdflib_where_pyoxigraph_has_others(people: Case, text: str) -> None:
    checked(people, PREFIXES + text, ["rdflib"])


@pytest.mark.parametrize("text", [text for text in (BOTH + AS_OXIGRAPH).split("\n") if text and "AS ?n" not in text])
def test_rdflib_finds_the_same_through_the_store(people: Case, text: str) -> None:
    """Every part by rdflib but basic graph patterns. Aggregates are left out: rdflib departs from the specification there."""
    wanted = people.rows(PREFIXES + text)
    with patch("evergraph.sparql.query.unsupported", lambda part: None if part.name == "BGP" else "left to rdflib"):
        assert people.rows(PREFIXES + text) == wanted


BY_RDFLIB = [
    "SELECT ?s { ?s a :Person FILTER EXISTS { ?s :knows ?k OPTIONAL { ?k :head ?h } FILTER(bound(?h)) } }",
    "SELECT ?s { ?s a :Person FILTER EXISTS { ?s :knows ?k FILTER NOT EXISTS { ?k :head ?h } } }",
    "SELECT ?s ?x { ?s :age ?a BIND(IF(EXISTS { ?s :knows ?o }, 1, 0) AS ?x) }",
    "SELECT ?s { ?s a :Person FILTER(RAND() < 2) }",
]


def test_all_but_a_few_queries_run_on_columns(people: Case) -> None:
    texts = [text for text in (BOTH + AS_OXIGRAPH + AS_RDFLIB).split("\n") if text]
    left = [text for text in texts if unsupported(prepare(PREFIXES + text).algebra.p)]
    assert set(left) <= set(BY_RDFLIB)
    for text in BY_RDFLIB:
        checked(people, PREFIXES + text, ["rdflib", "oxigraph"])
