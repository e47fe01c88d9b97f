"""The benchmark compares like with like: peers with the same rules reach the same closure, and a difference is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evergraph import KnowledgeGraph, UserError
from evergraph.bench import insert, materialise, taxonomy
from evergraph.bench.materialise import Row, compare, run_apart
from evergraph.bench.peers import PEERS, Unsupported, find
from evergraph.bench.peers.patterns import portable
from evergraph.bench.run_one import run
from evergraph.rules.model import Program

SCHEMA = """
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix : <http://ex/> .
:Student rdfs:subClassOf :Person . :Person rdfs:subClassOf :Agent . :Person owl:equivalentClass :Human .
:headOf rdfs:subPropertyOf :worksFor . :worksFor rdfs:subPropertyOf :memberOf .
:memberOf rdfs:domain :Person ; rdfs:range :Organisation ; owl:inverseOf :member .
:partOf a owl:TransitiveProperty . :friendOf a owl:SymmetricProperty .
:email a owl:InverseFunctionalProperty . :mother a owl:FunctionalProperty .
:Chair owl:intersectionOf ( :Person [ a owl:Restriction ; owl:onProperty :headOf ; owl:someValuesFrom :Department ] ) .
:Creature owl:unionOf ( :Person :Animal ) .
:Local owl:onProperty :livesIn ; owl:hasValue :Ghent .
:grandmother owl:propertyChainAxiom ( :mother :mother ) .
:Person owl:hasKey ( :number :country ) .
:Animal owl:disjointWith :Organisation .
:Fan owl:onProperty :likes ; :valuesFrom :Student . :valuesFrom rdfs:subPropertyOf owl:someValuesFrom .
"""
FACTS = """
@prefix : <http://ex/> .
:ann a :Student ; :headOf :cs ; :email "ann@ex" ; :mother :bea ; :livesIn :Ghent ; :friendOf :dan .
:anna :email "ann@ex" ; :likes :dan . :bea :mother :cleo, :clea ; :number "7" ; :country :be .
:cs a :Department ; :partOf :faculty . :faculty :partOf :uni . :uni :partOf :world .
:dan a :Student, :Local ; :number "7" ; :country :be .
:rex a :Animal, :Organisation .
"""
SAME_RULES = [peer.name for peer in PEERS if peer.same_rules and "spark" not in peer.name and peer.name != "evergraph"]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from pyoxigraph import RdfFormat, parse, serialize

    quads = [q.triple for q in parse(SCHEMA + FACTS, format=RdfFormat.TURTLE)]
    path: Path = tmp_path_factory.mktemp("data") / "lubm1.nt"  # stands in for the file the benchmark would make
    serialize(quads, path, format=RdfFormat.N_TRIPLES)
    return path


def closure(file: Path, rules: str) -> int:
    graph = KnowledgeGraph(rules, equality="off")
    graph.update(insert=[file])
    return len(graph)


@pytest.mark.parametrize("rules", ["rhodf", "rdfs", "owl2rl"])
@pytest.mark.parametrize("system", SAME_RULES)
def test_peers_with_the_same_rules_reach_the_same_closure(system: str, rules: str, small: Path) -> None:
    for module in find(system).modules:
        pytest.importorskip(module)
    found = run(system, rules, small, cores=1)
    assert (found["status"], found["line"]) == ("ok", "")
    assert found["triples"] == closure(small, rules) > len(small.read_text().splitlines())


@pytest.mark.spark
@pytest.mark.parametrize("rules", ["rhodf"])
@pytest.mark.parametrize("system", ["spark-joins", "evergraph-spark"])
def test_spark_peers_reach_the_same_closure(system: str, rules: str, small: Path) -> None:
    pytest.importorskip("pyspark")
    found = run_apart(system, rules, small, cores=1, limit=300)
    assert (found["status"], found["line"]) == ("ok", "")
    assert found["triples"] == closure(small, rules)


def test_rules_about_values_are_left_out_only_where_they_cannot_fire(small: Path, tmp_path: Path) -> None:
    program = Program.load("owl2rl")
    kept, notes = portable(program, small)
    assert {r.name for r in program.rules} - {r.name for r in kept.rules} == {"dt-eq", "dt-not-type"}
    assert "dt-eq" in notes[0]
    typed = tmp_path / "typed.nt"
    typed.write_text('<http://a> <http://b> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .\n')
    with pytest.raises(Unsupported, match="dt-eq"):
        portable(program, typed)


def test_json_table_and_chart(small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("duckdb")
    pytest.importorskip("matplotlib")
    systems = ["evergraph", "duckdb", "owlrl"]
    assert materialise.main([1], ["rhodf"], systems, 1, 120, 2, tmp_path, data=small.parent) == 0
    found = json.loads((tmp_path / "materialise.json").read_text())
    assert {"machine", "date", "commit", "versions", "cores", "limit", "repeat", "rows"} <= found.keys()
    ours, duckdb, _ = found["rows"]
    assert (ours["system"], ours["rules"], ours["universities"], ours["status"]) == ("evergraph", "rhodf", 1, "ok")
    assert ours["ratio"] == 1.0 and len(ours["runs"]) == 2 and ours["memory"] > 2**20
    assert {"read", "insert", "stratum 1"} <= ours["phases"].keys()
    assert duckdb["triples"] == ours["triples"] and duckdb["ratio_of"] == "materialise"
    assert duckdb["total"] >= duckdb["load"] > 0
    assert (tmp_path / "materialise.png").stat().st_size > 1000
    assert "duckdb" in capsys.readouterr().out


def test_a_missing_peer_is_reported_with_what_to_install(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find("clingo"), "modules", ("no_such_module",))
    assert run("clingo", "rhodf", small, 1) == {"status": "missing", "line": "pip install clingo"}


def test_unknown_names_are_told_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"EG302.*'doesnotexist'"):
        materialise.main([1], ["rhodf"], ["doesnotexist"], 1, 10, 1, tmp_path, data=tmp_path)
    with pytest.raises(UserError, match="EG007"):
        materialise.main([1], ["doesnotexist"], None, 1, 10, 1, tmp_path, data=tmp_path)


def test_a_run_that_takes_too_long_is_stopped(small: Path) -> None:
    assert run_apart("evergraph", "rhodf", small, 1, limit=0) == {"status": "timeout", "line": "stopped after 0 s"}


def test_a_failure_is_one_line(tmp_path: Path) -> None:
    found = run("evergraph", "rhodf", tmp_path / "nowhere.nt", 1)
    assert found["status"] == "failed" and "\n" not in found["line"]


def test_another_closure_from_the_same_rules_fails_loudly(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def pretend(system: str, *_: Any) -> dict[str, Any]:
        triples = 100 if system in ("evergraph", "clingo") else 99
        return {"status": "ok", "load": 1.0, "materialise": 2.0, "total": 3.0, "triples": triples}

    monkeypatch.setattr(materialise, "run_apart", pretend)
    systems = ["evergraph", "duckdb", "clingo", "maplib"]
    assert materialise.main([1], ["rhodf"], systems, 1, 10, 1, tmp_path, data=small.parent) == 1
    rows = json.loads((tmp_path / "materialise.json").read_text())["rows"]
    assert [row["status"] for row in rows] == ["ok", "wrong", "ok", "ok"]
    assert "99 triples where evergraph has 100" in capsys.readouterr().out


def test_a_system_without_a_load_of_its_own_is_compared_by_totals() -> None:
    ours = Row("evergraph", "rhodf", "rhodf", True, 1, "ok", load=3.0, materialise=1.0, total=4.0, triples=10)
    nemo = Row("nemo", "rhodf", "rhodf", True, 1, "ok", total=8.0, triples=10)
    compare([ours, nemo])
    assert (nemo.ratio, nemo.ratio_of) == (2.0, "total")


def test_insertions_are_of_new_facts_only(small: Path, tmp_path: Path) -> None:
    assert insert.main([1], ["rhodf"], tmp_path, data=small.parent, updates=3) == 0
    (row,) = json.loads((tmp_path / "insert.json").read_text())["rows"]
    assert len(row["times_ms"]) == 3 and row["ratio"] == 1.0
    graph = KnowledgeGraph("rhodf")
    for number in range(3):
        assert graph.update(insert=list(insert.new_students(number))).inserted.explicit == {"[]": 100}


def test_taxonomy_as_triples_and_as_rules_give_the_same_types(tmp_path: Path) -> None:
    assert taxonomy.main(1000, 5000, tmp_path) == 0
    rows = json.loads((tmp_path / "taxonomy.json").read_text())["rows"]
    assert [(r["form"], r["classes"]) for r in rows] == [
        ("triples", 100),
        ("triples", 1000),
        ("rules", 100),
        ("rules", 1000),
    ]
    triples, rules = rows[1], rows[3]
    pairs = sum(_depth(c) - 1 for c in range(1, 1000))
    assert triples["derived"] == rules["derived"] + pairs


def _depth(number: int) -> int:
    return 1 + _depth((number - 1) // taxonomy.SUBCLASSES) if number else 0
