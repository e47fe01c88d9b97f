"""Versions of a store: each opens as it was, the change feed tells them apart, compaction changes none of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conftest import assert_same, everything
from evergraph import KnowledgeGraph, Program, UserError
from evergraph.engines.base import Which
from evergraph.rules.model import TRIPLE
from evergraph.store import read as store_read
from evergraph.store import store
from evergraph.store.layout import DICTIONARY, FACTS, RELATIONS, RULES
from evergraph.store.read import read_terms
from stores import CHANGING, FAMILY, IS_A, assert_equal, changes_of, files, made, replayed, triple

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
