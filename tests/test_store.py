"""The store: what is saved is what is opened, version by version, for every reader, with one writer at a time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from conftest import assert_same, everything
from evergraph import KnowledgeGraph, Program, UserError
from evergraph.engines.base import Which
from evergraph.rules.model import TRIPLE, Atom
from evergraph.rules.printer import print_atom
from evergraph.store import Store, layout, lock, store
from evergraph.store import read as store_read
from evergraph.store.layout import DICTIONARY, FACTS, RELATIONS, RULES
from evergraph.store.lock import SCRATCH, Scratch
from evergraph.store.log import TABLES
from evergraph.store.read import read_terms
from strategies import CLASSES, NAMES, NUMBERS, dense_changes, facts, layered_programs, programs

CLASSES_OF = "<http://www.w3.org/2000/01/rdf-schema#subClassOf>"
IS_A = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
FAMILY = f"<http://ex/A> {CLASSES_OF} <http://ex/B> .\n<http://ex/x> {IS_A} <http://ex/A> .\n"
WIDE = """
five(?a, ?b, ?c, ?d, ?e) :- wide(?a, ?b, ?c), edge(?c, ?d), edge(?d, ?e) .
four(?a, ?b, ?c, ?d) :- five(?a, ?b, ?c, ?d, ?e), NOT odd(?e) .
none() :- node(?x), NOT flag() .
"""
CHANGING = "alone(?x) :- node(?x), NOT linked(?x) . linked(?x) :- edge(?x, ?y) . none() :- node(?x), NOT edge(?x, ?x) ."
few = settings(max_examples=50, phases=[Phase.generate])


@st.composite
def wide_facts(draw: st.DrawFn) -> Atom:
    """Facts of the relations of the random programs, and of those with no, four and five arguments."""
    name, arity = draw(st.sampled_from([("flag", 0), ("none", 0), ("four", 4), ("five", 5)]))
    return Atom(name, tuple(draw(st.sampled_from(NAMES[:3] + CLASSES + NUMBERS)) for _ in range(arity)))


wide_updates = st.lists(st.lists(st.one_of(facts(), facts(), wide_facts()), min_size=1, max_size=8), min_size=1, max_size=4)


def widened(program: Program) -> Program:
    return Program((*program.rules, *Program.parse(WIDE).rules))


def assert_equal(got: KnowledgeGraph, want: KnowledgeGraph, what: str = "") -> None:
    for which in (Which.EXPLICIT, Which.DERIVED):
        assert_same(everything(got, which), everything(want, which), f"{which}\n{what}")


def triple(n: int, m: int = 0) -> str:
    return f"<http://ex/s{n}> <http://ex/p> <http://ex/o{m}> .\n"


def made(path: Path, *updates: str, rules: str | Program = "rhodf") -> KnowledgeGraph:
    """A store with these updates, and the graph that made it."""
    kg = KnowledgeGraph(rules, store=path)
    for text in updates:
        kg.update(insert=text)
    return kg


def files(path: Path) -> dict[str, bytes]:
    """Every file of a folder but the lock."""
    return {str(p.relative_to(path)): p.read_bytes() for p in path.rglob("*") if p.is_file() and p.name != ".writer"}


def paths(snapshot: Any, table: str) -> set[str]:
    return {str(file.path) for file in snapshot.files(table)}


# -- round trips -----------------------------------------------------------------------------------------------------


@given(programs, wide_updates)
@few
def test_what_is_saved_is_what_is_opened(program: Program, steps: list[list[Atom]]) -> None:
    kg = KnowledgeGraph(widened(program))
    for step in steps:
        kg.update(insert=step)
    with tempfile.TemporaryDirectory() as folder:
        kg.save(f"{folder}/g")
        opened = KnowledgeGraph.open(f"{folder}/g")
        assert_equal(opened, kg, str(program))
        assert opened.rules == kg.rules
        assert opened.verify() == sum(kg.counts().values())


@given(programs, wide_updates, st.lists(st.booleans(), min_size=4, max_size=4))
@few
def test_a_store_equals_the_reference_after_every_update(program: Program, steps: list[list[Atom]], fresh: list[bool]) -> None:
    """The writer is a graph that stays open and catches up, or one that was opened for this update."""
    program = widened(program)
    slow = KnowledgeGraph(program, engine="reference")
    with tempfile.TemporaryDirectory() as folder:
        stays = KnowledgeGraph(program, store=f"{folder}/g")
        for number, step in enumerate(steps):
            writer = KnowledgeGraph.open(f"{folder}/g") if number and fresh[number] else stays
            slow.update(insert=step)
            writer.update(insert=step)
            opened = KnowledgeGraph.open(f"{folder}/g")
            for kg in (writer, opened):
                assert_equal(kg, slow, f"{program}\n{steps}\nafter update {number}")
            assert opened.version == writer.version
            for table in TABLES:
                assert writer._snapshot.files(table) == opened._snapshot.files(table), "what a writer knows is what Delta says"


@given(programs, wide_updates)
@few
def test_the_feeds_of_all_versions_add_up_to_each_version(program: Program, steps: list[list[Atom]]) -> None:
    program = widened(program)
    with tempfile.TemporaryDirectory() as folder:
        kg = KnowledgeGraph(program, store=f"{folder}/g")
        held: list[tuple[set[str], set[str]]] = []
        for step in steps:
            kg.update(insert=step)
            if kg.version == len(held):
                held.append((everything(kg, Which.EXPLICIT), everything(kg, Which.DERIVED)))
        for version, want in enumerate(replayed(kg)):
            for got, expected in zip(want, held[version], strict=True):
                assert_same(got, expected, f"{program}\n{steps}\nversion {version}")


@given(layered_programs, st.randoms(use_true_random=False), st.lists(st.booleans(), min_size=4, max_size=4))
@few
def test_deletions_in_a_store_equal_the_reference_and_are_in_its_feeds(
    program: Program, rng: Random, fresh: list[bool]
) -> None:
    slow = KnowledgeGraph(program, engine="reference")
    with tempfile.TemporaryDirectory() as folder:
        kg = KnowledgeGraph(program, store=f"{folder}/g")
        held: dict[int, tuple[set[str], set[str]]] = {}
        for number, (insert, delete) in enumerate(dense_changes(program, rng)):
            if number and fresh[number]:
                kg = KnowledgeGraph.open(f"{folder}/g")
            slow.update(insert=insert, delete=delete)
            kg.update(insert=insert, delete=delete)
            for got in (kg, KnowledgeGraph.open(f"{folder}/g")):
                assert_equal(got, slow, f"{program}\nupdate {number}: {insert}\nless {delete}")
            held[kg.version] = everything(kg, Which.EXPLICIT), everything(kg, Which.DERIVED)
        for version, got in enumerate(replayed(kg)):
            assert got == held[version], f"{program}\nversion {version}"


def replayed(kg: KnowledgeGraph) -> Iterator[tuple[set[str], set[str]]]:
    """Explicit and derived facts of each version, by the changes of its feed alone."""
    held: tuple[set[str], set[str]] = (set(), set())
    names = {name for version in kg._store.history() for name in version.info.explicit | version.info.derived} | {TRIPLE}
    for version in range(kg.version + 1):
        for row in (row for name in names for row in changes_of(kg, version, name)):
            kind, fact, explicit = row
            place = held[0] if explicit else held[1]
            if kind in ("delete", "update_preimage"):
                place.remove(fact)
            else:
                assert fact not in held[0] | held[1], (version, row)
                place.add(fact)
        yield set(held[0]), set(held[1])


def changes_of(kg: KnowledgeGraph, version: int, relation: str = TRIPLE) -> list[tuple[str, str, bool]]:
    """Kind, fact and explicitness; what goes stands before what comes."""
    rows = kg.change_feed(version, version, relation).to_pylist()
    assert {row["_commit_version"] for row in rows} <= {version}
    terms = [
        tuple(row["arguments"] if relation != TRIPLE else (row[c] for c in ("subject", "predicate", "object"))) for row in rows
    ]
    found = [
        (row["_change_type"], print_atom(Atom(relation, term)), row["explicit"]) for row, term in zip(rows, terms, strict=True)
    ]
    return sorted(found, key=lambda change: change[0] not in ("delete", "update_preimage"))


def test_facts_among_the_rules_are_part_of_the_first_version(tmp_path: Path) -> None:
    program = Program.parse("edge(1, 2) . start(1) . reach(?y) :- start(?x), edge(?x, ?y) . always(1) :- 1 < 2 .")
    kg = KnowledgeGraph(program, store=tmp_path / "g")
    assert not (tmp_path / "g").exists() and kg.version is None
    with pytest.raises(UserError, match="EG103"):
        kg.update(insert="<http://a> <http://p> nonsense .")
    kg.update(insert="edge(1, 3) .")
    want = KnowledgeGraph(program)
    want.update(insert="edge(1, 3) .")
    opened = KnowledgeGraph.open(tmp_path / "g")
    for got in (kg, opened):
        assert_equal(got, want)
    assert opened.counts() == {"edge": 2, "start": 1, "reach": 2, "always": 1}
    opened.update(insert="edge(1, 4) .")
    assert KnowledgeGraph.open(tmp_path / "g").counts(Which.EXPLICIT) == {"edge": 3, "start": 1}


def test_facts_among_the_rules_make_a_version_of_an_empty_update(tmp_path: Path) -> None:
    kg = KnowledgeGraph(Program.parse("edge(1, 2) . path(?x, ?y) :- edge(?x, ?y) ."), store=tmp_path / "g")
    assert kg.update().version == 0
    assert KnowledgeGraph.open(tmp_path / "g").counts() == {"edge": 1, "path": 1}


@pytest.mark.parametrize("rules", ["rhodf", "owl2rl", ""])
def test_a_store_without_facts_opens_and_grows(tmp_path: Path, rules: str) -> None:
    kg = KnowledgeGraph(rules or Program(()), store=tmp_path / "g")
    assert kg.update().version == 0
    opened = KnowledgeGraph.open(tmp_path / "g")
    assert len(opened) == opened.change_feed().num_rows == opened.verify() == 0
    opened.update(insert=FAMILY)
    assert_equal(KnowledgeGraph.open(tmp_path / "g"), opened)


def test_a_derived_fact_that_becomes_explicit_is_rewritten_and_told(tmp_path: Path) -> None:
    kg = made(tmp_path / "g", FAMILY + "".join(map(triple, range(20))))
    before = kg._store.snapshot()
    fact = f"<http://ex/x> {IS_A} <http://ex/B> ."
    assert kg.counts(Which.DERIVED) == {TRIPLE: 1}
    kg.update(insert=fact)
    shown = print_atom(Atom(TRIPLE, tuple(fact.split()[:3])))
    assert changes_of(kg, 1) == [("update_preimage", shown, False), ("update_postimage", shown, True)]
    opened = KnowledgeGraph.open(tmp_path / "g")
    assert (opened.counts(Which.EXPLICIT), opened.counts(Which.DERIVED)) == ({TRIPLE: 23}, {})
    after = opened._store.snapshot()
    assert (after.info.explicit, after.info.derived) == ({TRIPLE: 23}, {})
    gone = paths(before, FACTS) - paths(after, FACTS)
    assert len(gone) == 1 < len(paths(before, FACTS))
    rows = pa.concat_tables(pq.ParquetFile(path).read() for path in sorted(paths(after, FACTS)))
    assert rows.num_rows == 23 and all(rows.column("explicit").to_pylist())
    assert KnowledgeGraph.open(tmp_path / "g", version=0).counts(Which.DERIVED) == {TRIPLE: 1}


def test_a_named_fact_that_becomes_explicit_is_told_too(tmp_path: Path) -> None:
    kg = made(tmp_path / "g", "node(1) . node(2) .", "alone(1) . none() .", "edge(1, 1) .", rules=Program.parse(CHANGING))
    one = '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'
    assert [(kind, explicit) for kind, _, explicit in changes_of(kg, 1, "none")] == [
        ("update_preimage", False),
        ("update_postimage", True),
    ]
    assert changes_of(kg, 2, "linked") == [("insert", print_atom(Atom("linked", (one,))), False)]
    assert changes_of(kg, 2, "alone") == [] == changes_of(kg, 2, "none")
    opened = KnowledgeGraph.open(tmp_path / "g")
    assert opened.counts(Which.EXPLICIT) == {"node": 2, "alone": 1, "none": 1, "edge": 1}
    assert opened.counts(Which.DERIVED) == {"alone": 1, "linked": 1}


def test_a_derived_fact_that_ceases_to_follow_is_a_delete(tmp_path: Path) -> None:
    kg = made(tmp_path / "g", "node(1) . node(2) .", "edge(1, 2) .", rules=Program.parse(CHANGING))
    assert [(kind, explicit) for kind, _, explicit in changes_of(kg, 1, "alone")] == [("delete", False)]
    assert KnowledgeGraph.open(tmp_path / "g").counts(Which.DERIVED) == {"alone": 1, "linked": 1, "none": 1}


@pytest.mark.parametrize("text", [triple(1), f"<http://ex/x> {IS_A} <http://ex/A> .", ""])
def test_an_update_that_changes_nothing_makes_no_version(tmp_path: Path, text: str) -> None:
    kg = made(tmp_path / "g", FAMILY + triple(1))
    before = files(tmp_path / "g")
    assert kg.update(insert=text).version == 0
    assert KnowledgeGraph.open(tmp_path / "g").update(insert=text).version == 0
    assert files(tmp_path / "g") == before


def test_a_failed_update_leaves_store_and_graph_as_they_were(tmp_path: Path) -> None:
    kg = made(tmp_path / "g", FAMILY)
    bad = tmp_path / "bad.nt"
    bad.write_text(triple(1) + "<http://ex/new> <http://ex/p> no .\n")
    before, held = files(tmp_path / "g"), everything(kg)
    for source in (bad.read_text(), bad, [tmp_path / "gone.nt"]):
        with pytest.raises(UserError, match=r"EG10[13]"):
            kg.update(insert=source)
        assert files(tmp_path / "g") == before
        assert_same(everything(kg), held)
        assert kg.version == 0 == KnowledgeGraph.open(tmp_path / "g").version
    kg.update(insert=triple(1))
    assert kg.version == 1 and len(kg) == 4
    assert_equal(KnowledgeGraph.open(tmp_path / "g"), kg)


@pytest.mark.parametrize("name", ["with space", "a#b", "é", "[1]", "it's"])
def test_a_store_may_stand_in_a_folder_of_any_name(tmp_path: Path, name: str) -> None:
    kg = made(tmp_path / name, FAMILY, triple(1))
    Store(tmp_path / name).compact()
    assert_equal(KnowledgeGraph.open(tmp_path / name), kg)
    rows = Store(tmp_path / name).create_view(duckdb.connect()).fetchall()
    assert len(rows) == 4
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", ["100%", "a%20b", "two\nlines"])
def test_a_folder_whose_name_delta_cannot_take_is_refused_before_anything_is_written(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError, match="EG401"):
        made(tmp_path / name, FAMILY)
    assert list(tmp_path.iterdir()) == []


# -- versions --------------------------------------------------------------------------------------------------------


def test_every_version_opens_as_it_was_and_its_totals_are_its_facts(tmp_path: Path) -> None:
    kg = KnowledgeGraph(Program.parse(CHANGING), store=tmp_path / "g")
    then = []
    for text in ("node(1) . node(2) .", "edge(1, 2) .", "edge(2, 2) .", "alone(2) .", "node(3) ."):
        kg.update(insert=text)
        then.append((everything(kg, Which.EXPLICIT), everything(kg, Which.DERIVED)))
    history = kg._store.history()
    assert [one.version for one in history] == [4, 3, 2, 1, 0]
    for one in history:
        old = KnowledgeGraph.open(tmp_path / "g", version=one.version)
        assert_same(everything(old, Which.EXPLICIT), then[one.version][0])
        assert_same(everything(old, Which.DERIVED), then[one.version][1])
        assert one.info.explicit == old.counts(Which.EXPLICIT) and one.info.derived == old.counts(Which.DERIVED)
        assert old.verify() == sum(map(len, then[one.version]))


def test_an_old_version_can_only_be_read(tmp_path: Path) -> None:
    made(tmp_path / "g", triple(1), triple(2))
    before = files(tmp_path / "g")
    old = KnowledgeGraph.open(tmp_path / "g", version=0)
    with pytest.raises(UserError, match="EG407"):
        old.update(insert=triple(3))
    assert files(tmp_path / "g") == before and len(old) == 1
    last = KnowledgeGraph.open(tmp_path / "g", version=1)
    assert last.update(insert=triple(3)).version == 2


@pytest.mark.parametrize("version", [2, -1, 99])
def test_an_unknown_version_is_refused(tmp_path: Path, version: int) -> None:
    made(tmp_path / "g", triple(1), triple(2))
    with pytest.raises(UserError, match=r"EG405.*versions 0 to 1"):
        KnowledgeGraph.open(tmp_path / "g", version=version)


def test_history_says_what_was_done(tmp_path: Path) -> None:
    kg = KnowledgeGraph("rhodf", store=tmp_path / "g")
    kg.update(insert=FAMILY, operation="load")
    kg.update(insert=triple(1))
    kg._store.compact()
    history = kg._store.history()
    assert [one.info.operation for one in history] == ["compact", "update", "load"]
    assert sorted(one.when for one in history) == [one.when for one in reversed(history)]
    assert history[1].info.terms == len(kg._dictionary)


def test_the_feed_has_the_columns_of_delta(tmp_path: Path) -> None:
    kg = made(tmp_path / "g", FAMILY, triple(1), "edge(1, 2) .")
    feed = kg.change_feed()
    when = ["_change_type", "_commit_version", "_commit_timestamp"]
    assert feed.column_names == ["subject", "predicate", "object", "explicit", *when]
    assert set(feed.column("_change_type").to_pylist()) == {"insert"}
    assert feed.column("_commit_version").to_pylist() == [0, 0, 0, 1]
    times = {one.version: one.when for one in kg._store.history()}
    rows = zip(*(feed.column(name).to_pylist() for name in when[1:]), strict=True)
    assert all(times[version] == stamp for version, stamp in rows)
    named = kg.change_feed(relation="edge")
    assert named.column_names == ["arguments", "explicit", *when] and named.column("_commit_version").to_pylist() == [2]
    assert kg.change_feed(1, 1).num_rows == 1 and kg.change_feed(1, 0).num_rows == 0
    assert KnowledgeGraph.open(tmp_path / "g", version=0).change_feed().num_rows == 3
    with pytest.raises(UserError, match="EG405"):
        kg.change_feed(7)


@pytest.mark.parametrize("operation", ["compact", "update", "save", ""])
def test_no_name_of_an_operation_hides_its_changes_from_the_feed(tmp_path: Path, operation: str) -> None:
    kg = KnowledgeGraph(Program.parse(CHANGING), store=tmp_path / "g")
    kg.update(insert="node(1) .\n" + "[<http://ex/s1>, <http://ex/p>, <http://ex/o0>] .", operation=operation)
    kg.update(insert=triple(2), operation=operation)
    kg.update(insert="node(2) .", operation=operation)
    kg.update(delete=triple(1), operation=operation)
    kg._store.compact()
    assert [len(changes_of(kg, version)) for version in range(5)] == [1, 1, 0, 1, 0]
    assert [len(changes_of(kg, version, "node")) for version in range(5)] == [1, 0, 1, 0, 0]
    assert list(replayed(kg))[-1] == (everything(kg, Which.EXPLICIT), everything(kg, Which.DERIVED))


def test_compaction_is_not_compared_file_by_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it costs to leave compaction out of the feed does not follow what was compacted."""
    kg = made(tmp_path / "g", FAMILY, *(triple(n) for n in range(4)), "edge(1, 2) .", "edge(2, 1) .")
    version = kg._store.compact().version

    def read(*_: Any) -> Any:
        raise AssertionError("a data file was read")

    monkeypatch.setattr(store_read, "read_table", read)
    assert changes_of(kg, version) == [] == changes_of(kg, version, "edge")


def test_a_graph_without_a_store_has_no_feed() -> None:
    with pytest.raises(UserError, match="EG401"):
        KnowledgeGraph("rhodf").change_feed()


# -- compaction ------------------------------------------------------------------------------------------------------


def small_files(snapshot: Any) -> int:
    """The most files that one table has at one shard."""
    found = [(table, file.shard) for table in (FACTS, RELATIONS, DICTIONARY) for file in snapshot.files(table)]
    return max(map(found.count, found))


def test_small_files_are_compacted_when_they_pile_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also: facts, ids and the feed are the same as without compaction, and old versions stay."""
    monkeypatch.setattr(store, "SMALL_FILES", 4)
    program = Program.parse(CHANGING)
    kg, plain = KnowledgeGraph(program, store=tmp_path / "g"), KnowledgeGraph(program)
    then: dict[int, set[str]] = {}
    for n in range(12):
        step = triple(n) if n % 3 else f"node({n}) . node({n + 1}) . edge({n}, {n + 1}) . "
        report = kg.update(insert=step)
        plain.update(insert=step)
        assert_equal(kg, plain)
        assert report.version == kg.version
        assert small_files(kg._snapshot) <= 4
        then[kg.version] = everything(kg)
    operations = [one.info.operation for one in kg._store.history()]
    assert 2 <= operations.count("compact") < 12 and operations.count("update") == 12
    opened = KnowledgeGraph.open(tmp_path / "g")
    assert_equal(opened, plain)
    assert opened._dictionary.since(0).to_pylist() == plain._dictionary.since(0).to_pylist()
    for version, want in then.items():
        assert_same(everything(KnowledgeGraph.open(tmp_path / "g", version=version)), want, f"version {version}")
    for one in kg._store.history():
        if one.info.operation == "compact":
            assert not any(changes_of(kg, one.version, name) for name in (TRIPLE, *kg.counts()))
    explicit, derived = list(replayed(kg))[-1]
    assert_same(explicit, everything(plain, Which.EXPLICIT))
    assert_same(derived, everything(plain, Which.DERIVED))


def test_compaction_keeps_facts_and_ids_and_leaves_few_files(tmp_path: Path) -> None:
    kg = made(
        tmp_path / "g", FAMILY, *(triple(n, n) for n in range(12)), f"<http://ex/x> {IS_A} <http://ex/B> .", "edge(1, 2) ."
    )
    before, terms = kg._store.snapshot(), read_terms(kg._store.snapshot()).to_pylist()
    after = kg._store.compact()
    assert after.version == before.version + 1 and small_files(after) == 1 < small_files(before)
    assert read_terms(after).to_pylist() == terms
    assert_equal(KnowledgeGraph.open(tmp_path / "g"), kg)
    assert (after.info.explicit, after.info.derived) == (before.info.explicit, before.info.derived)
    assert kg._store.compact().version == after.version, "there was nothing left to compact"
    kg.update(insert=triple(50))
    assert kg.version == after.version + 1 and len(kg) == len(KnowledgeGraph.open(tmp_path / "g"))


def test_compaction_deletes_files_of_no_version_and_no_others(tmp_path: Path) -> None:
    kg = made(tmp_path / "g", FAMILY, triple(1), triple(2), "edge(1, 2) .", "edge(2, 3) .")
    held = [everything(KnowledgeGraph.open(tmp_path / "g", version=n)) for n in range(5)]
    known = {path for path in (tmp_path / "g").rglob("*.parquet")}
    orphans = []
    for table in (FACTS, RELATIONS, DICTIONARY, RULES):
        for snapshot_file in kg._store.snapshot().files(table)[:1] or kg._store.snapshot(3).files(table)[:1]:
            orphan = snapshot_file.path.with_name("part-0123.parquet")
            orphan.write_bytes(snapshot_file.path.read_bytes())
            orphans.append(orphan)
    assert len(orphans) == 4
    kg._store.compact()
    assert not any(orphan.exists() for orphan in orphans)
    assert all(path.exists() for path in known)
    orphans[0].write_bytes(b"")
    kg._store.compact()
    assert not orphans[0].exists(), "also when there was nothing to merge"
    for version, want in enumerate(held):
        assert_same(everything(KnowledgeGraph.open(tmp_path / "g", version=version)), want, f"version {version}")


def test_a_committed_update_does_not_fail_with_its_compaction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception leaves the graph as it was: one after the commit would be a lie, and a retry would find its facts there."""
    kg = made(tmp_path / "g", FAMILY)

    def full(*_: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store, "SMALL_FILES", 1)
    monkeypatch.setattr(store, "merge_small", full)
    kg.update(insert=triple(1))
    assert kg.version == 1 and len(kg) == 4
    assert_equal(KnowledgeGraph.open(tmp_path / "g"), kg)


# -- other readers ---------------------------------------------------------------------------------------------------


@pytest.fixture
def mixed(tmp_path: Path) -> KnowledgeGraph:
    """A store with derived facts, a flip, named facts, literals and files that went."""
    kg = made(
        tmp_path / "mixed", FAMILY, triple(1) + '<http://ex/x> <http://ex/name> "Zoë \\"x\\""@en .\n', "edge(1, 2) . on() ."
    )
    kg.update(insert=f"<http://ex/x> {IS_A} <http://ex/B> . \n <http://ex/y> {IS_A} <http://ex/A> .")
    return kg


def rows_of(kg: KnowledgeGraph, which: str = "all") -> list[tuple[str, ...]]:
    return sorted(zip(*(kg.to_arrow(which).column(i).to_pylist() for i in range(3)), strict=True))


def decoded(facts: list[dict[str, Any]], terms: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    text = {row["id"]: row["term"] for row in terms}
    assert sorted(text) == list(range(len(terms)))
    return sorted(tuple(text[row[c]] for c in ("subject", "predicate", "object")) for row in facts)


def by_deltalake(path: Path) -> list[dict[str, Any]]:
    return DeltaTable(str(path)).to_pyarrow_table().to_pylist()


def by_pandas(path: Path) -> list[dict[str, Any]]:
    return DeltaTable(str(path)).to_pandas().to_dict("records")


def by_polars(path: Path) -> list[dict[str, Any]]:
    return pl.read_delta(str(path)).to_dicts()


def by_duckdb(path: Path) -> list[dict[str, Any]]:
    return duckdb.connect().read_parquet(DeltaTable(str(path)).file_uris()).to_arrow_table().to_pylist()


@pytest.mark.parametrize("read", [by_deltalake, by_pandas, by_polars, by_duckdb])
def test_readers_of_tables_see_the_facts(mixed: KnowledgeGraph, read: Any) -> None:
    path = mixed._store.path
    facts = read(path / FACTS)
    assert decoded(facts, read(path / DICTIONARY)) == rows_of(mixed)
    assert sum(row["explicit"] for row in facts) == mixed.counts(Which.EXPLICIT)[TRIPLE]
    assert {row.get("shard", 0) for row in facts} <= set(range(4))
    named = sorted((row["relation"], len(row["arguments"]), row["explicit"]) for row in read(path / RELATIONS))
    assert named == [("edge", 2, True), ("on", 0, True)]
    texts = [row["rule"] for row in sorted(read(path / RULES), key=lambda row: row["number"])]
    assert Program.parse("".join(texts)).rules == mixed.rules.rules


@pytest.mark.spark
def test_spark_reads_the_files_as_they_are(mixed: KnowledgeGraph, spark: Any) -> None:
    def read(table: str) -> list[dict[str, Any]]:
        uris = DeltaTable(str(mixed._store.path / table)).file_uris()
        return [row.asDict() for row in spark.read.parquet(*uris).collect()]

    assert decoded(read(FACTS), read(DICTIONARY)) == rows_of(mixed)
    assert len(read(RELATIONS)) == 2 and len(read(RULES)) == len(mixed.rules.rules)


@pytest.mark.parametrize("which", ["all", "explicit", "derived"])
def test_a_view_in_duckdb_has_the_rows_of_the_graph(mixed: KnowledgeGraph, which: str) -> None:
    con = duckdb.connect()
    view = mixed._store.create_view(con, "facts of mine", which)
    assert view.columns == ["subject", "predicate", "object"]
    assert sorted(view.fetchall()) == rows_of(mixed, which) != []
    mixed._store.create_view(con, "facts of mine", which, version=0)
    old = KnowledgeGraph.open(mixed._store.path, version=0)
    assert sorted(con.execute('SELECT * FROM "facts of mine"').fetchall()) == rows_of(old, which)


@pytest.mark.spark
@pytest.mark.parametrize("which", ["all", "explicit", "derived"])
def test_a_view_in_spark_has_the_rows_of_the_graph(mixed: KnowledgeGraph, spark: Any, which: str) -> None:
    mixed._store.create_view(spark, "mine", which)
    assert sorted(map(tuple, spark.sql("SELECT subject, predicate, object FROM mine").collect())) == rows_of(mixed, which)
    assert sorted(map(tuple, mixed.to_spark(spark, which).collect())) == rows_of(mixed, which)
    old = KnowledgeGraph.open(mixed._store.path, version=0)
    assert sorted(map(tuple, old.to_spark(spark, which).collect())) == rows_of(old, which)


@pytest.mark.spark
def test_views_of_an_empty_store_are_empty(tmp_path: Path, spark: Any) -> None:
    kg = KnowledgeGraph(Program(()), store=tmp_path / "g")
    kg.update()
    assert kg._store.create_view(duckdb.connect(), "t").fetchall() == kg._store.create_view(spark, "t").collect() == []


def test_a_view_elsewhere_is_refused(mixed: KnowledgeGraph) -> None:
    with pytest.raises(UserError, match=r"EG105.*DuckDB"):
        mixed._store.create_view(object())


def test_frames_have_the_rows_of_the_graph(mixed: KnowledgeGraph) -> None:
    assert sorted(map(tuple, mixed.to_pandas("derived").itertuples(index=False))) == rows_of(mixed, "derived") != []


def test_look_ups_touch_the_square_root_of_the_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By predicate and subject, and by predicate and object, as far as Parquet's statistics tell, over all shards."""
    monkeypatch.setattr(layout, "ROW_GROUP", 64)
    monkeypatch.setattr(layout, "FILE_ROWS", 4096)
    draw = np.random.default_rng(5)
    subjects, objects = draw.integers(0, 6000, 40_000), draw.integers(0, 3000, 40_000)
    large = [(f"<http://ex/s{s}>", "<http://ex/large>", f"<http://ex/o{o}>") for s, o in zip(subjects, objects, strict=True)]
    small = [(f"<http://ex/s{n}>", f"<http://ex/small{n % 7}>", "<http://ex/o1>") for n in range(500)]
    kg = KnowledgeGraph(Program(()), store=tmp_path / "g")
    kg.update(insert=pa.table(dict(zip(("subject", "predicate", "object"), zip(*large, *small, strict=True), strict=True))))
    groups = [group for file in kg._store.snapshot().files(FACTS) for group in statistics(file.path)]
    key = kg._dictionary.find("<http://ex/large>")
    mine = [group for group in groups if group["predicate"][0] <= key <= group["predicate"][1]]
    root = len(mine) ** 0.5
    assert root > 20
    for column, names in (("subject", subjects[:50]), ("object", objects[:50])):
        for number in names:
            value = kg._dictionary.find(f"<http://ex/{column[0]}{number}>")
            admitted = sum(group[column][0] <= value <= group[column][1] for group in mine)
            assert 1 <= admitted <= 4 * root, (column, number, admitted, len(mine))
    assert_equal(KnowledgeGraph.open(tmp_path / "g"), kg)


def statistics(path: Path) -> Iterator[dict[str, tuple[int, int]]]:
    """Lowest and highest value of the columns of each row group."""
    with pq.ParquetFile(path) as file:
        for number in range(file.num_row_groups):
            group = file.metadata.row_group(number)
            columns = [group.column(i) for i in range(3)]
            yield {c.path_in_schema: (c.statistics.min, c.statistics.max) for c in columns}


# -- writers ---------------------------------------------------------------------------------------------------------


def test_a_writer_sees_what_others_have_written(tmp_path: Path) -> None:
    first = made(tmp_path / "g", FAMILY)
    second = KnowledgeGraph.open(tmp_path / "g")
    first.update(insert=f"<http://ex/B> {CLASSES_OF} <http://ex/C> . \n <http://ex/new> <http://ex/p> _:b .")
    assert len(second) == 3 and second.version == 0, "reading stays at its version"
    second.update(insert=f"<http://ex/y> {IS_A} <http://ex/A> .")
    assert ("<http://ex/y>", IS_A, "<http://ex/C>") in second and second.version == 2
    first.update(insert=f"<http://ex/C> {CLASSES_OF} <http://ex/D> .")
    assert ("<http://ex/y>", IS_A, "<http://ex/D>") in first
    assert_equal(KnowledgeGraph.open(tmp_path / "g"), first)
    assert first.verify() == len(first)


def test_an_update_that_changes_nothing_still_catches_up(tmp_path: Path) -> None:
    first = made(tmp_path / "g", FAMILY)
    second = KnowledgeGraph.open(tmp_path / "g")
    first.update(insert=triple(1))
    assert second.update().version == 1
    assert_equal(second, first)


def test_writers_take_turns(tmp_path: Path) -> None:
    made(tmp_path / "g", FAMILY)
    failed: list[BaseException] = []

    def write(who: int) -> None:
        try:
            kg = KnowledgeGraph.open(tmp_path / "g")
            for n in range(5):
                kg.update(insert=triple(who, n))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=write, args=(who,)) for who in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    kg = KnowledgeGraph.open(tmp_path / "g")
    assert kg.version == 15 and len(kg) == 18 == kg.verify()


def test_a_failed_catching_up_is_tried_again(tmp_path: Path) -> None:
    """A graph that could not read a version must not write the next one on top of it."""
    first = made(tmp_path / "g", triple(1))
    second = KnowledgeGraph.open(tmp_path / "g")
    first.update(insert=triple(2))
    (new,) = paths(first._snapshot, FACTS) - paths(second._snapshot, FACTS)
    Path(new).rename(f"{new}.gone")
    with pytest.raises(UserError, match="EG406"):
        second.update(insert=triple(3))
    assert (second.version, len(second)) == (0, 1), "it is what it was"
    Path(f"{new}.gone").rename(new)
    second.update(insert=triple(3))
    opened = KnowledgeGraph.open(tmp_path / "g")
    assert len(opened) == 3 and opened._snapshot.info.explicit == {TRIPLE: 3}
    assert_equal(second, opened)


def test_an_update_interrupted_before_it_began_leaves_the_graph_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(tmp_path / "g", FAMILY)
    kg = KnowledgeGraph.open(tmp_path / "g")
    held = everything(kg)

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(kg._engine, "prepare", interrupt)
        with pytest.raises(KeyboardInterrupt):
            kg.update(insert=triple(1))
    assert_same(everything(kg), held)
    kg.update(insert=triple(1))
    assert KnowledgeGraph.open(tmp_path / "g")._snapshot.info.explicit == {TRIPLE: 3}


HOLD = """
import sys, time
from evergraph.store import Store
from evergraph.store.log import TABLES
from evergraph.store.lock import Scratch
if sys.argv[2] == "lock":
    with Store(sys.argv[1]).writing():
        print("held", flush=True)
        time.sleep(600)
scratch = Scratch(Store(sys.argv[1]).path)
print(scratch.path.name, flush=True)
time.sleep(600)
"""


@contextmanager
def holding(path: Path, what: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Another process that holds the store's lock, or a scratch folder, and the line it says."""
    with subprocess.Popen([sys.executable, "-c", HOLD, str(path), what], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Store.writing.__wrapped__, "__defaults__", (0.2,))  # type: ignore[attr-defined]


@pytest.mark.usefixtures("impatient")
def test_a_second_writer_is_told_who_writes_and_is_free_when_that_one_is_gone(tmp_path: Path) -> None:
    kg = made(tmp_path / "g", triple(1))
    with holding(tmp_path / "g", "lock") as (process, _):
        for write in (lambda: kg.update(insert=triple(2)), Store(tmp_path / "g").compact):
            with pytest.raises(UserError, match=f"EG402.*process {process.pid} on .* since 20"):
                write()
        assert len(kg) == len(KnowledgeGraph.open(tmp_path / "g")) == 1, "readers do not wait"
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        start = time.monotonic()
        assert kg.update(insert=triple(2)).version == 1
        assert time.monotonic() - start < 5
    assert len(KnowledgeGraph.open(tmp_path / "g")) == 2


def test_a_writer_waits_for_another(tmp_path: Path) -> None:
    kg = made(tmp_path / "g", triple(1))
    with holding(tmp_path / "g", "lock") as (process, _):
        threading.Timer(0.5, process.kill).start()
        assert kg.update(insert=triple(2)).version == 1


@pytest.mark.usefixtures("impatient")
def test_a_writer_does_not_wait_for_itself_for_ever(tmp_path: Path) -> None:
    kg = made(tmp_path / "g", triple(1))
    with kg._store.writing(), pytest.raises(UserError, match=f"EG402.*process {os.getpid()} "):
        kg.update(insert=triple(2))
    assert kg.update(insert=triple(2)).version == 1


def test_scratch_folders_go_with_their_processes(tmp_path: Path) -> None:
    """Those of the living stay, those of the dead go, also one whose maker died before it could lock it."""
    kg = made(tmp_path / "g", triple(1))
    with holding(tmp_path / "g", "scratch") as (_, alive), holding(tmp_path / "g", "scratch") as (process, dead):
        assert alive != dead
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        mine = Scratch(tmp_path / "g")
        (tmp_path / "g" / SCRATCH / "half").mkdir()
        kg.update(insert=triple(2))
        assert {p.name for p in (tmp_path / "g" / SCRATCH).iterdir()} == {alive, mine.path.name}
    path = mine.path
    del mine
    assert not path.exists()


@pytest.mark.parametrize("moment", ["mkdir", "open"])
def test_a_scratch_folder_that_is_swept_before_it_is_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """A writer sweeps in between: after the folder was made, or after the file to lock was."""
    kg = made(tmp_path / "g", triple(1))
    real, swept = getattr(Path, moment), []

    def and_sweep(path: Path, *given: Any, **named: Any) -> Any:
        found = real(path, *given, **named)
        if SCRATCH in path.parts[:-1] and not swept:
            swept.append(path)
            lock.sweep_scratch(tmp_path / "g")
        return found

    with monkeypatch.context() as patch:
        patch.setattr(Path, moment, and_sweep)
        scratch = Scratch(tmp_path / "g")
    assert swept and not swept[0].exists()
    kg.update(insert=triple(2))
    assert list((tmp_path / "g" / SCRATCH).iterdir()) == [scratch.path], "the one that is locked stays, the other left nothing"


def test_a_scratch_folder_that_cannot_be_made_is_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"EG403.*Not a directory"):
        Scratch(tmp_path / "file")
    with pytest.raises(UserError, match=r"EG403.*No such file"):
        Scratch(Path("/proc/none"))


# -- folders that are something else ---------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["memory", pytest.param("spark", marks=pytest.mark.spark)])
def test_a_folder_that_is_not_a_store_is_refused_and_untouched(
    tmp_path: Path, engine: str, request: pytest.FixtureRequest
) -> None:
    (tmp_path / "facts").mkdir()
    (tmp_path / "facts" / "mine.txt").write_text("mine")
    chosen = request.getfixturevalue("spark") if engine == "spark" else engine
    with pytest.raises(UserError, match=r"EG401.*not a store and not empty"):
        KnowledgeGraph("rhodf", store=tmp_path, engine=chosen).update(insert=triple(1))
    assert [str(p.relative_to(tmp_path)) for p in sorted(tmp_path.rglob("*"))] == ["facts", "facts/mine.txt"]


def test_saving_to_a_folder_that_is_not_a_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(UserError, match="EG401"):
        KnowledgeGraph("rhodf").save(tmp_path)
    with pytest.raises(UserError, match="EG401"):
        KnowledgeGraph("rhodf").save(tmp_path / "mine.txt")
    assert files(tmp_path) == {"mine.txt": b"mine"}


def test_saving_onto_a_store_is_refused(tmp_path: Path) -> None:
    kg = made(tmp_path / "g", triple(1))
    before = files(tmp_path / "g")
    for refused in (
        lambda: kg.save(tmp_path / "g"),
        lambda: KnowledgeGraph("rhodf").save(tmp_path / "g"),
        lambda: KnowledgeGraph("rhodf", store=tmp_path / "g"),
    ):
        with pytest.raises(UserError, match=r"EG401.*is a store already"):
            refused()
    assert files(tmp_path / "g") == before


def test_a_graph_that_lost_the_race_to_make_a_store_is_refused(tmp_path: Path) -> None:
    first, second = (KnowledgeGraph("rhodf", store=tmp_path / "g") for _ in range(2))
    first.update(insert=triple(1))
    with pytest.raises(UserError, match=r"EG401.*is a store already"):
        second.update(insert=triple(2))
    assert len(KnowledgeGraph.open(tmp_path / "g")) == 1


def test_saving_where_another_has_just_saved_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The look whether a store is there and the lock are two moments."""
    late = KnowledgeGraph("rhodf")
    late.update(insert=triple(1) + triple(2))
    made(tmp_path / "g", triple(3))
    looks = iter([False])
    real = Store.exists.fget
    monkeypatch.setattr(Store, "exists", property(lambda self: next(looks, real(self))))
    with pytest.raises(UserError, match="EG401"):
        late.save(tmp_path / "g")
    monkeypatch.undo()
    opened = KnowledgeGraph.open(tmp_path / "g")
    assert len(opened) == 1 == opened.verify()


def test_no_store_says_how_to_make_one(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "gone"):
        with pytest.raises(UserError, match=r"EG401.*no store at"):
            KnowledgeGraph.open(path)
    assert list(tmp_path.iterdir()) == []
