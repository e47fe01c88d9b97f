"""Equality on the command line: which commands take it, what stores remember of it, and how it is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evergraph import KnowledgeGraph
from test_cli import EX, Run, run_command, written  # noqa: F401 - a fixture

SAME = "<http://www.w3.org/2002/07/owl#sameAs>"
RULES = f"[?y, owl:sameAs, ?z] :- [?x, <{EX}key>, ?y], [?x, <{EX}key>, ?z] .\n"
DATA = "".join(f"<{EX}k> <{EX}key> <{EX}n{i}> .\n" for i in range(3)) + f"<{EX}n2> <{EX}likes> <{EX}n1> .\n"
SHOWN = {"rewrite": 3 + 9 + 9 + 4, "axioms": 3 + 9 + 9 + 4, "off": 4 + 9}
"""Triples: keys, likes, equalities of one clique, reflexive ones; without equality, what was given and what the rule says."""


def rules() -> str:
    Path("rules.dlog").write_text(RULES)
    return "rules.dlog"


@pytest.fixture
def store(run: Run) -> Path:
    assert run("load", written("data.nt", DATA), "--rules", rules(), "--store", "uni", "--engine", "memory").code == 0
    return Path("uni")


@pytest.mark.parametrize("equality", SHOWN)
def test_materialise_writes_every_name(run: Run, equality: str) -> None:
    data = written("data.nt", DATA)
    ended = run("materialise", data, "--to", "all.nt", "--rules", rules(), "--equality", equality, "--output", "json")
    assert ended.code == 0 and json.loads(ended.out)["written"] == SHOWN[equality]
    assert len(Path("all.nt").read_text().splitlines()) == SHOWN[equality]


@pytest.mark.parametrize("equality", SHOWN)
def test_load_keeps_what_was_asked_for_and_updates_go_on_with_it(run: Run, equality: str) -> None:
    data = written("data.nt", DATA)
    loaded = run("load", data, "--rules", rules(), "--store", "uni", "--engine", "memory", "--equality", equality)
    assert loaded.code == 0
    kg = KnowledgeGraph.open("uni")
    assert (kg.equality, len(kg)) == (equality, SHOWN[equality])
    Path("less.nt").write_text(f"<{EX}k> <{EX}key> <{EX}n0> .\n")
    assert run("update", "uni", "--delete", "less.nt").code == 0
    assert run("load", data, "--store", "uni", "--engine", "memory", "--equality", equality).code == 0
    assert len(KnowledgeGraph.open("uni")) == SHOWN[equality]
    assert run("verify", "uni").code == 0
    versions = json.loads(run("history", "uni", "--output", "json").out)["versions"]
    assert {version["equality"] for version in versions} == {equality} and len(versions) == 3


def test_the_default_is_that_of_the_rules(run: Run, store: Path) -> None:
    assert KnowledgeGraph.open(store).equality == "rewrite"
    assert run("load", "data.nt", "--rules", "rhodf", "--store", "plain", "--engine", "memory").code == 0
    assert KnowledgeGraph.open("plain").equality == "off"


def test_another_equality_than_the_stores_is_refused(run: Run, store: Path) -> None:
    ended = run("load", "data.nt", "--store", store, "--engine", "memory", "--equality", "axioms")
    assert ended.code == 2 and ended.mistakes == [
        "error EG408: uni has equality rewrite, not axioms (hint: leave out --equality, or load into a new store)"
    ]
    assert KnowledgeGraph.open(store).version == 0


@pytest.mark.parametrize(
    "command", [["load", "--store", "new"], ["load", "--store", "uni"], ["materialise", "--to", "all.nt"], ["check"]]
)
def test_an_unknown_equality_is_one_line(run: Run, store: Path, command: list[str]) -> None:
    ended = run(command[0], "data.nt", *command[1:], "--equality", "maybe")
    assert ended.code == 2 and ended.mistakes == [
        "error EG302: no equality is called 'maybe' (hint: use one of rewrite, axioms, off)"
    ]
    assert not Path("new").exists() and not Path("all.nt").exists()


def test_check_finds_what_only_equality_shows(run: Run) -> None:
    contradiction = f"inconsistency(?x) :- [?x, <{EX}is>, <{EX}Cat>], [?x, <{EX}is>, <{EX}Dog>] .\n"
    Path("pets.dlog").write_text(RULES + contradiction)
    written("pets.nt", DATA + f"<{EX}n0> <{EX}is> <{EX}Cat> .\n<{EX}n1> <{EX}is> <{EX}Dog> .\n")
    found = {eq: run("check", "pets.nt", "--rules", "pets.dlog", "--equality", eq).code for eq in SHOWN}
    assert found == {"rewrite": 1, "axioms": 1, "off": 0}


def test_stats_tell_both_sizes_and_the_cliques(run: Run, store: Path) -> None:
    told = json.loads(run("stats", store, "--output", "json").out)
    assert told["equality"] == {"kept": "rewrite", "facts": 7, "cliques": 1, "names": 3, "largest": 3}
    assert told["explicit"] + told["derived"] == SHOWN["rewrite"]
    assert told["predicates"][SAME] == {"explicit": 0, "derived": 13}
    assert told["tables"]["names"]["rows"] == 2
    lines = run("stats", store).out.splitlines()
    assert lines[1] == "7 facts in normal form stand for all 25; 1 clique of 3 names, the largest of 3"
    run(
        "load", written("one.nt", f"<{EX}k> <{EX}key> <{EX}n0> .\n"), "--rules", rules(), "--store", "one", "--engine", "memory"
    )
    assert run("stats", "one").out.splitlines()[1].endswith("; no two names are the same")
    run("load", "one.nt", "--rules", "rhodf", "--store", "plain", "--engine", "memory")
    assert "normal form" not in run("stats", "plain").out


def test_changes_and_exports_show_every_name(run: Run, store: Path) -> None:
    Path("more.nt").write_text(f"<{EX}n0> <{EX}age> <{EX}old> .\n")
    assert run("update", store, "--insert", "more.nt").code == 0
    lines = run("changes", store, "--starting-version", 1, "--format", "json").out.splitlines()
    rows = [json.loads(line) for line in lines]
    ages = {row["subject"]: row["explicit"] for row in rows if row["predicate"] == f"<{EX}age>"}
    assert ages == {f"<{EX}n0>": True, f"<{EX}n1>": False, f"<{EX}n2>": False}
    assert len(run("export", store).out.splitlines()) == len(KnowledgeGraph.open(store)) == SHOWN["rewrite"] + 5
