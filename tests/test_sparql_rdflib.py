"""Evergraph as a store of rdflib: reading, adding, removing, folders, and its name."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import pytest
import rdflib

from evergraph import KnowledgeGraph, Program
from evergraph.errors import UserError
from evergraph.sparql.store import EvergraphStore
from sparql_cases import EX, SOME, TURTLE, Case, people_case  # noqa: F401 - a fixture


def test_a_store_for_rdflib(people: Case) -> None:
    graph = rdflib.Graph(store=EvergraphStore(people.graph))
    assert len(graph) == len(people.graph) and set(graph) == set(people.memory)
    for triple in people.memory:
        for mask in range(8):
            pattern = tuple(term if mask >> place & 1 else None for place, term in enumerate(triple))
            assert set(graph.triples(pattern)) == set(people.memory.triples(pattern))
    assert (rdflib.URIRef(EX + "ann"), None, rdflib.URIRef(EX + "nobody")) not in graph
    assert graph.isomorphic(people.memory)
    assert set(graph.query(SOME)) == set(people.memory.query(SOME))
    assert set(graph.query(SOME, use_store_provided=False)) == set(people.memory.query(SOME))


def test_adding_through_rdflib_draws_consequences_in_one_update() -> None:
    graph = rdflib.Graph(store=EvergraphStore())
    a, b, c = (rdflib.URIRef(f"x:{name}") for name in "abc")
    with patch.object(KnowledgeGraph, "update", autospec=True, side_effect=KnowledgeGraph.update) as update:
        graph.add((b, rdflib.RDFS.subClassOf, c))
        graph.add((a, rdflib.RDF.type, b))
        updates = update.call_count
        assert (a, rdflib.RDF.type, c) in graph and update.call_count <= updates + 2  # the axioms of the rules, and these
    graph.bind("ex", "x:")
    assert dict(graph.namespaces())["ex"] == rdflib.URIRef("x:")
    assert len(graph.query("SELECT ?c { ex:a a ?c }")) >= 2
    graph.add((a, rdflib.RDFS.label, rdflib.Literal("A")))
    graph.commit()
    graph.add((a, rdflib.RDFS.label, rdflib.Literal("B")))
    graph.rollback()
    assert [str(o) for o in graph.objects(a, rdflib.RDFS.label)] == ["A"]
    with pytest.raises(UserError, match="EG105"):
        graph.add((rdflib.Literal("A"), rdflib.RDFS.label, a))


def test_blank_nodes_of_the_graph_keep_their_identity(people: Case, tmp_path: Path) -> None:
    path = tmp_path / "people.ttl"
    path.write_text(TURTLE)
    kg = KnowledgeGraph(Program())
    kg.update(insert=[path])
    graph = rdflib.Graph(store=EvergraphStore(kg))
    eve = graph.value(predicate=rdflib.URIRef(EX + "name"), object=rdflib.Literal("Eve"))
    graph.add((eve, rdflib.URIRef(EX + "likes"), rdflib.BNode("f1_unheard")))
    assert len(list(graph.triples((eve, None, None)))) == 7
    assert all(str(o) != "f1_unheard" for o in graph.objects(eve))


def test_removing_deletes_the_explicit_triples_that_match() -> None:
    graph = rdflib.Graph(store=EvergraphStore(KnowledgeGraph("rhodf")))
    ann, student, person = (rdflib.URIRef(EX + name) for name in ("ann", "Student", "Person"))
    graph.add((student, rdflib.RDFS.subClassOf, person))
    graph.add((ann, rdflib.RDF.type, student))
    assert (ann, rdflib.RDF.type, person) in graph
    graph.remove((ann, rdflib.RDF.type, None))
    assert set(graph) == {(student, rdflib.RDFS.subClassOf, person)}


def test_the_store_opens_folders(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    graph = rdflib.Graph(store=EvergraphStore())
    graph.open(str(folder), create=True)
    graph.add((rdflib.URIRef("x:a"), rdflib.URIRef("x:p"), rdflib.URIRef("x:b")))
    graph.close()
    again = rdflib.Graph(store=EvergraphStore())
    again.open(str(folder))
    assert (rdflib.URIRef("x:a"), rdflib.URIRef("x:p"), rdflib.URIRef("x:b")) in again


def test_rdflib_finds_the_store_by_name() -> None:
    """Through the entry point of the installed package."""
    graph = rdflib.Graph(store="evergraph")
    ann, student, person = (rdflib.URIRef(EX + name) for name in ("ann", "Student", "Person"))
    graph.add((student, rdflib.RDFS.subClassOf, person))
    graph.add((ann, rdflib.RDF.type, student))
    assert (ann, rdflib.RDF.type, person) in graph
