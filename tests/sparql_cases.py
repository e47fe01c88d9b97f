"""One graph in three systems: ours, rdflib's evaluator over its own store, and pyoxigraph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from decimal import Decimal, InvalidOperation
from typing import Any

import pyoxigraph as ox
import pytest
import rdflib

from evergraph import KnowledgeGraph
from evergraph.sparql import View, query
from evergraph.sparql.lexicon import text_of
from evergraph.terms import to_rdflib

EX = "http://example.org/"
PREFIXES = """
PREFIX : <http://example.org/>
PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>
PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
"""
TURTLE = (
    PREFIXES.replace("PREFIX", "@prefix").replace(">\n", "> .\n")
    + """
:Student rdfs:subClassOf :Person . :Professor rdfs:subClassOf :Person . :knows rdfs:range :Person .
:ann a :Student ; :age 21 ; :name "Ann"@en, "Anna"@de ; :knows :bob, :cid, :ann ; :height 1.7 ; :weight 6.0e1 ; :likes :bob .
:bob a :Student ; :age 30 ; :name "Bob" ; :knows :cid ; :height 1.5 ; :joined "2020-05-01T10:00:00Z"^^xsd:dateTime .
:cid a :Professor ; :age 55.5 ; :name "Cid", "x\\"y\\n" ; :head :maths ; :joined "2019-01-01T00:00:00Z"^^xsd:dateTime .
:dee a :Professor ; :age "old" ; :knows _:e ; :active true ; :code "7"^^:Code ; :born "1990-02-03"^^xsd:date .
_:e :age 12 ; :name "Eve" ; :knows :dee ; :active false ; :code "8"^^:Code ; :born "2000-12-31"^^xsd:date .
:maths :part :science . :science :part :university . :university :part :world . :loop :part :loop .
:list rdf:first 1 ; rdf:rest ( 2 3 ) .
:knows a rdf:Property . :p :knows :knows .
"""
)


class Case:
    """One graph in three systems."""

    def __init__(self, graph: KnowledgeGraph) -> None:
        self.graph, self.memory, self.oxigraph = graph, rdflib.Graph(), ox.Store()
        for block in graph.blocks():
            for row in zip(*(column.to_pylist() for column in block), strict=True):
                if not row[0].startswith('"'):
                    self.memory.add(tuple(map(to_rdflib, row)))
                    self.oxigraph.extend(ox.parse(" ".join(row) + " .", format=ox.RdfFormat.N_QUADS))

    def rows(self, text: str) -> Counter[Any]:
        """Our answers, as a multiset of rows of terms."""
        return Counter(tuple(map(canonical, row)) for row in query(View.of(self.graph), text))

    def oracle(self, name: str, text: str) -> Counter[Any]:
        variables = query(View.of(self.graph), text).vars or []
        if name == "rdflib":
            return Counter(tuple(canonical(row.get(v)) for v in variables) for row in self.memory.query(text).bindings)
        found: Any = self.oxigraph.query(text)
        return Counter(tuple(canonical(row[str(v)]) for v in variables) for row in found)


def canonical(term: Any) -> str | None:
    """The text of a term, of numbers and instants in one spelling: pyoxigraph does not keep that of the data."""
    if term is None:
        return None
    text = str(term) if isinstance(term, ox.NamedNode | ox.BlankNode | ox.Literal) else text_of(term)
    if not text.startswith('"') or not text.endswith(">"):
        return text
    lexical, datatype = text[1 : text.rindex('"')], text[text.rindex("^^") :]
    if datatype.endswith("#dateTime>"):
        return lexical.replace("+00:00", "Z") + datatype
    try:
        return f"{Decimal(lexical).normalize():f}{datatype}"
    except (InvalidOperation, ValueError):
        return text


def checked(case: Case, text: str, oracles: Iterable[str]) -> None:
    found = case.rows(text)
    for oracle in oracles:
        wanted = case.oracle(oracle, text)
        assert found == wanted, f"{oracle}: missing {wanted - found}, not expected {found - wanted}"


@pytest.fixture(name="people", scope="module")
def people_case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    path = tmp_path_factory.mktemp("people") / "people.ttl"
    path.write_text(TURTLE)
    graph = KnowledgeGraph("rhodf")
    graph.update(insert=[path])
    return Case(graph)


SOME = PREFIXES + "SELECT ?s ?n { ?s a :Person OPTIONAL { ?s :name ?n } } ORDER BY ?s ?n"
XSD = "http://www.w3.org/2001/XMLSchema#"
