"""Commands over stores: what they print, what they leave behind, and how they say no."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from evergraph import KnowledgeGraph
from evergraph.engines.changes import Held, changes
from evergraph.engines.relation import run_of
from evergraph.store import Store
from evergraph.store.read import read_facts, read_terms
from evergraph.terms import Dictionary
from test_cli import DERIVED, EX, EXPLICIT, SUBCLASS, TYPE, Run, run_command, written  # noqa: F401 - a fixture

MORE = f"<{EX}bob> {TYPE} <{EX}Student> .\n"


@pytest.fixture
def store(run: Run) -> Path:
    """A store of two versions."""
    assert run("load", written("data.nt"), "--rules", "rhodf", "--store", "uni", "--engine", "memory").code == 0
    assert run("load", written("more.nt", MORE), "--store", "uni", "--engine", "memory").code == 0
    return Path("uni")


def test_load_tells_stages_rows_and_rates(run: Run) -> None:
    ended = run("load", written("data.nt"), "--rules", "rhodf", "--store", "uni", "--engine", "memory")
    assert ended.out.startswith("3 explicit and 1 derived facts in ")
    assert ended.out.endswith("uni is at version 0\n")
    header, *stages = [line.split() for line in ended.err.splitlines() if not line.endswith("…")]
    assert header == ["stage", "rows", "time", "rate"]
    assert {line[0] for line in stages} >= {"read", "insert", "stratum", "commit"}
    assert all(line[-1].endswith("/s") for line in stages)


def test_a_second_load_adds_and_other_rules_are_refused(run: Run, store: Path) -> None:
    assert len(KnowledgeGraph.open(store)) == 6
    ended = run("load", "more.nt", "--store", store, "--rules", "rdfs", "--engine", "memory")
    assert (ended.code, "EG408" in ended.err) == (2, True)
    again = run("load", "more.nt", "--store", store, "--rules", "rhodf", "--engine", "memory", "--output", "json")
    assert json.loads(again.out)["version"] == 1


def test_load_skips_bad_lines_into_a_file_beside_the_store(run: Run) -> None:
    bad = written("bad.nt", f"{EXPLICIT}<no\n{MORE}also bad\n")
    ended = run("load", bad, "--store", "uni", "--engine", "memory")
    assert ended.code == 2 and "bad.nt:4:" in ended.err and not KnowledgeGraph("rdfs", store="uni").version
    ended = run("load", bad, "--store", "uni", "--rules", "rhodf", "--engine", "memory", "--on-error", "skip")
    assert ended.code == 0 and "2 bad lines skipped, saved to uni.rejected.txt" in ended.out
    rejected = Path("uni.rejected.txt").read_text().splitlines()
    assert [line.split(": ")[0] for line in rejected[::2]] == ["# bad.nt:4:1", "# bad.nt:6:1"]
    assert rejected[1::2] == ["<no", "also bad"]


QUERY = "SELECT ?x WHERE { ?x a ex:Person } ORDER BY ?x"


@pytest.mark.parametrize(
    ("format_", "expected"),
    [
        ("table", f"x\n<{EX}ann>\n<{EX}bob>\n"),
        ("csv", f"x\r\n{EX}ann\r\n{EX}bob\r\n"),
        ("json", None),
    ],
)
def test_query_formats(run: Run, store: Path, format_: str, expected: str | None) -> None:
    ended = run("query", store, f"PREFIX ex: <{EX}> {QUERY}", "--format", format_)
    if expected is not None:
        assert ended.out == expected
        return
    found = json.loads(ended.out)
    assert [row["x"]["value"] for row in found["results"]["bindings"]] == [f"{EX}ann", f"{EX}bob"]


def test_query_asks_constructs_describes_and_reads_versions(run: Run, store: Path) -> None:
    ask = f"ASK {{ <{EX}bob> a <{EX}Person> }}"
    assert run("query", store, ask).out == "yes\n"
    assert run("query", store, ask, "--version", 0).out == "no\n"
    assert run("query", store, ask, "--facts", "explicit").out == "no\n"
    assert json.loads(run("query", store, ask, "--format", "json").out) == {"head": {}, "boolean": True}
    made = run("query", store, f"CONSTRUCT {{ ?x <{EX}is> <{EX}here> }} WHERE {{ ?x a <{EX}Person> }}", "--format", "nt").out
    assert set(made.splitlines()) == {f"<{EX}{name}> <{EX}is> <{EX}here> ." for name in ("ann", "bob")}
    assert f'<{EX}ann> <{EX}name> "Ann" .' in run("query", store, f"DESCRIBE <{EX}ann>").out.splitlines()


def test_query_from_a_file_and_its_mistakes(run: Run, store: Path) -> None:
    file = written("q.rq", f"ASK {{ <{EX}ann> ?p ?o }}")
    assert run("query", store, "--file", file).out == "yes\n"
    for arguments in ((), ("ASK {}", "--file", file)):
        ended = run("query", store, *arguments)
        assert ended.code == 2 and "EG302" in ended.err
    ended = run("query", store, "SELECT ?x WHERE {")
    assert ended.code == 2 and "EG501" in ended.err and len(ended.mistakes) == 1
    assert "EG101" in run("query", store, "--file", "none.rq").err
    assert "EG401" in run("query", "nowhere", "ASK {}").err
    assert "EG405" in run("query", store, "ASK {}", "--version", 9).err


def test_export_writes_triples(run: Run, store: Path) -> None:
    assert set(run("export", store, "--facts", "derived").out.splitlines()) == {
        DERIVED.strip(),
        DERIVED.strip().replace("ann", "bob"),
    }
    assert len(run("export", store, "--version", 0).out.splitlines()) == 4
    turtle = KnowledgeGraph("rhodf")
    Path("all.ttl").write_text(run("export", store, "--format", "ttl").out)
    turtle.update(insert="all.ttl")
    assert len(turtle) == 6
    assert run("export", store, "--to", "all.nt.gz").out == ""
    assert len(gzip.decompress(Path("all.nt.gz").read_bytes()).splitlines()) == 6


def test_stats_counts_predicates_classes_files_and_bytes(run: Run, store: Path) -> None:
    found = json.loads(run("stats", store, "--output", "json").out)
    assert (found["explicit"], found["derived"], found["version"]) == (4, 2, 1)
    assert found["predicates"][TYPE] == {"explicit": 2, "derived": 2}
    assert found["classes"] == {
        f"<{EX}Person>": {"explicit": 0, "derived": 2},
        f"<{EX}Student>": {"explicit": 2, "derived": 0},
    }
    assert found["tables"]["facts"]["rows"] == 6
    for table, numbers in found["tables"].items():
        if table != "relations":
            assert numbers["bytes"] == sum(p.stat().st_size for p in (store / table).rglob("*.parquet"))
    text = run("stats", store).out
    assert "version 1: 4 explicit and 2 derived facts" in text and f"<{EX}Person>" in text


def test_history_and_changes(run: Run, store: Path) -> None:
    versions = json.loads(run("history", store, "--output", "json").out)["versions"]
    assert [(v["version"], v["operation"], v["explicit"], v["derived"]) for v in versions] == [
        (1, "load", 4, 2),
        (0, "load", 3, 1),
    ]
    assert [line.split()[0] for line in run("history", store).out.splitlines()] == ["version", "1", "0"]
    rows = [json.loads(line) for line in run("changes", store, "--starting-version", 1, "--format", "json").out.splitlines()]
    told = {(r["subject"], r["object"], r["explicit"], r["_change_type"], r["_commit_version"]) for r in rows}
    assert told == {
        (f"<{EX}bob>", f"<{EX}Student>", True, "insert", 1),
        (f"<{EX}bob>", f"<{EX}Person>", False, "insert", 1),
    }
    assert run("changes", store, "--format", "csv").out.startswith('"subject","predicate","object","explicit","_change_type"')


def spoil(store: Path) -> None:
    """Commit a derived fact that does not follow."""
    base = Store(store).snapshot()
    facts, terms = read_facts(base), Dictionary(read_terms(base))
    subject, key, value = (int(terms.encode([term])[0]) for term in (f"<{EX}x>", TYPE, f"<{EX}Person>"))
    wrong = run_of(facts.all[key].base.arrays, [np.array([subject], np.uint64), np.array([value], np.uint64)], 1)
    after = Held({**facts.all, key: facts.all[key].add(wrong)}, facts.explicit)
    with Store(store).writing():
        info = replace(base.info, terms=len(terms))
        Store(store).commit(base, info, changes(facts, after), terms.since(base.info.terms))


def test_verify_says_yes_or_both_differences(run: Run, store: Path) -> None:
    assert run("verify", store).out == "verified: 6 facts are what recomputation gives\n"
    spoil(store)
    ended = run("verify", store)
    assert ended.code == 1
    assert ended.out.splitlines()[0] == f"+ <{EX}Person>[<{EX}x>]"
    assert "0 facts are missing and 1 do not follow" in ended.out
    assert json.loads(run("verify", store, "--output", "json").out)["extra"] == [f"<{EX}Person>[<{EX}x>]"]


def test_compact_and_rules_show(run: Run, store: Path) -> None:
    before = len(KnowledgeGraph.open(store))
    assert json.loads(run("compact", store, "--output", "json").out)["version"] in (1, 2)
    assert len(KnowledgeGraph.open(store)) == before
    shown = run("rules", "show", store).out
    assert SUBCLASS.strip("<>").rpartition("#")[2] in shown and shown == run("rules", "show", store, "--version", 0).out


def test_a_folder_that_is_something_else_is_left_alone(run: Run) -> None:
    Path("mine").mkdir()
    (Path("mine") / "diary.txt").write_text("secret")
    ended = run("load", written("data.nt"), "--store", "mine", "--engine", "memory")
    assert ended.code == 2 and "EG401" in ended.err
    assert [p.name for p in Path("mine").iterdir()] == ["diary.txt"]
