"""Ontologies where programs are asked for: files of every format, includes, and the commands that look at rules."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyoxigraph as ox
import pytest

from conftest import triples
from evergraph import KnowledgeGraph, Program, UserError
from evergraph.rules.owl import compile_ontology
from ontologies import EX, HEADER, compiled
from test_cli import TYPE, Run, run_command, written  # noqa: F401 - a fixture
from test_owl import INSIDE

WINE = f"""{HEADER}
:Wine rdfs:subClassOf [ owl:intersectionOf (:PotableLiquid [ owl:onProperty :hasMaker ; owl:allValuesFrom :Winery ]) ],
    [ owl:onProperty :hasColor ; owl:someValuesFrom :Color ] .
"""
SHOWN = f"""@prefix : <{EX}> .
#[name(":Wine SubClassOf :PotableLiquid and (:hasMaker only :Winery)")]
:PotableLiquid[?x] :- :Wine[?x] .
#[name(":Wine SubClassOf :PotableLiquid and (:hasMaker only :Winery)")]
:Winery[?y] :- :Wine[?x], :hasMaker[?x, ?y] .
"""
COLOR = ":Wine SubClassOf :hasColor some :Color"
REASON = ":hasColor some :Color on the right: a rule cannot make up an individual"
COUNT = "1 axiom falls outside, in whole or in part"


@pytest.mark.parametrize(
    ("ending", "format_"),
    [
        (".nt", ox.RdfFormat.N_TRIPLES),
        (".nq", ox.RdfFormat.N_QUADS),
        (".trig", ox.RdfFormat.TRIG),
        (".rdf", ox.RdfFormat.RDF_XML),
        (".owl", ox.RdfFormat.RDF_XML),
        (".jsonld", ox.RdfFormat.JSON_LD),
        (".ttl.gz", ox.RdfFormat.TURTLE),
    ],
)
def test_an_ontology_of_any_format_is_a_program(tmp_path: Path, ending: str, format_: ox.RdfFormat) -> None:
    text = "\n".join(text for text, _ in INSIDE.values())
    quads = ox.parse(HEADER + text, format=ox.RdfFormat.TURTLE)
    data = ox.serialize((quad.triple for quad in quads), format=format_, prefixes={"ex": EX})
    path = tmp_path / f"other{ending}"
    path.write_bytes(gzip.compress(data) if ending.endswith(".gz") else data)
    got, want = Program.load(path), compiled(text)
    assert {(rule.head, rule.body) for rule in got.rules} == {(rule.head, rule.body) for rule in want.rules}
    assert got.facts == want.facts
    if format_ in (ox.RdfFormat.TURTLE, ox.RdfFormat.TRIG, ox.RdfFormat.RDF_XML):
        assert got.prefixes["ex"] == EX


def test_a_graph_takes_an_ontology_for_its_rules(tmp_path: Path) -> None:
    path = tmp_path / "wine.ttl"
    path.write_text(WINE, encoding="utf-8")
    kg = KnowledgeGraph(Program.load(path))
    kg.update(insert=f"<{EX}w> {TYPE} <{EX}Wine> .")
    assert f"<{EX}PotableLiquid>[<{EX}w>]" in triples(kg)


def test_rules_include_an_ontology_that_lies_beside_them(tmp_path: Path) -> None:
    (tmp_path / "wine.ttl").write_text(WINE, encoding="utf-8")
    rules = tmp_path / "rules.dlog"
    rules.write_text('@include "wine.ttl" .\n', encoding="utf-8")
    assert Program.load(rules).rules == compile_ontology([tmp_path / "wine.ttl"]).rules
    rules.write_text('\n@include "gone.ttl" .\n', encoding="utf-8")
    with pytest.raises(UserError) as raised:
        Program.load(rules)
    assert raised.value.code == "EG101"
    assert raised.value.position is not None
    assert raised.value.position.line == 2


def test_an_ontology_that_does_not_parse_is_an_error_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "broken.ttl"
    path.write_text(f"{HEADER}:A rdfs:subClassOf ;; .\n", encoding="utf-8")
    with pytest.raises(UserError) as raised:
        compile_ontology([path])
    assert raised.value.code == "EG103"
    assert raised.value.position is not None
    assert raised.value.position.line == HEADER.count("\n") + 1


def test_a_folder_is_one_ontology(tmp_path: Path) -> None:
    (tmp_path / "a.ttl").write_text(f"{HEADER}:A rdfs:subClassOf :B .", encoding="utf-8")
    (tmp_path / "b.nt").write_text("", encoding="utf-8")
    assert len(compile_ontology([tmp_path]).rules) == 1


# -- commands ----------------------------------------------------------------------------------------------------------


def test_rules_show_prints_the_program_and_says_what_falls_outside(run: Run) -> None:
    written("wine.ttl", WINE)
    ended = run("rules", "show", "wine.ttl")
    assert (ended.code, ended.out) == (0, SHOWN)
    assert ended.err == f"outside: {COLOR} ({REASON})\nwine.ttl: {COUNT}\n"


def test_the_page_shows_what_the_command_prints() -> None:
    page = (Path(__file__).parent.parent / "docs" / "ontologies.md").read_text(encoding="utf-8")
    assert f"$ evergraph rules show wine.ttl\n{SHOWN}outside: {COLOR} ({REASON})\nwine.ttl: {COUNT}\n" in page


def test_rules_show_of_rules_says_nothing_of_outside(run: Run) -> None:
    assert run("rules", "show", "rhodf").err == ""


def test_rules_check_counts_what_falls_outside(run: Run) -> None:
    written("wine.ttl", WINE)
    assert run("rules", "check", "wine.ttl").out == f"wine.ttl: 2 rules, 0 facts, 1 stratum, {COUNT}\n"
    answer = json.loads(run("rules", "check", "wine.ttl", "--output", "json").out)
    assert answer["outside"] == [{"axiom": COLOR, "reason": REASON}]


def test_rules_check_of_an_ontology_that_rules_say_in_whole(run: Run) -> None:
    written("small.ttl", f"{HEADER}:A rdfs:subClassOf :B .")
    assert run("rules", "check", "small.ttl").out.endswith("0 axioms fall outside, in whole or in part\n")
    assert json.loads(run("rules", "check", "small.ttl", "--output", "json").out)["outside"] == []


def test_commands_tell_of_an_ontology_that_is_not_there(run: Run) -> None:
    for command in ("show", "check"):
        ended = run("rules", command, "gone.ttl")
        assert ended.code == 2
        assert ended.mistakes == ["error EG101: no such file: gone.ttl (hint: check the path; globs and folders work too)"]
