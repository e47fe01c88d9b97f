"""What a store survives: kill -9 at every step of a writer, what such a writer leaves, and readers beside a writer."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from evergraph import KnowledgeGraph, UserError
from evergraph.engines.base import Which
from evergraph.store import Store, log, store
from evergraph.store.layout import DICTIONARY, FACTS, RELATIONS
from survival import (
    ALL,
    CHANGE,
    LARGE,
    NEXT,
    PROGRAM,
    TYPE,
    WRITERS,
    Facts,
    assert_facts,
    command,
    compact,
    complete,
    elsewhere,
    facts_of,
    orphans,
    template_for,
    update,
    versions_of,
)

# -- the writers that are killed, and where --------------------------------------------------------------------------


def crash_before_facts(path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[[Path], Any] = update) -> None:
    """Commit the other tables of a writer, and then no more."""
    real = log._commit_table

    def commit(store: Path, name: str, *rest: Any) -> None:
        if name == FACTS:
            raise KeyboardInterrupt
        real(store, name, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(log, "_commit_table", commit)
        with pytest.raises(KeyboardInterrupt):
            write(path)


@pytest.mark.parametrize("what", WRITERS)
def test_a_writer_killed_at_any_step_leaves_a_whole_version(tmp_path: Path, what: str) -> None:
    killed_everywhere(tmp_path, what, lambda path: template_for(what, path))


def test_a_writer_killed_while_it_puts_right_what_another_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def prepare(path: Path) -> None:
        template_for("update", path)
        crash_before_facts(path, monkeypatch)
        assert DeltaTable(str(path / DICTIONARY)).version() > Store(path).snapshot().info.tables[DICTIONARY]

    assert "after restore" in killed_everywhere(tmp_path, "update", prepare)


def killed_everywhere(folder: Path, what: str, prepare: Callable[[Path], None]) -> list[str]:
    prepare(folder / "template")
    before = len(versions_of(folder / "template"))
    if (folder / "template").exists():
        shutil.copytree(folder / "template", folder / "whole")
    WRITERS[what](folder / "whole")
    held = versions_of(folder / "whole")
    final = facts_of(complete())
    (folder / "killed").mkdir()
    names = elsewhere("kill_at_every_step", what, folder / "template", folder / "killed")
    assert len(names) > 6
    made = set()
    for number, name in enumerate(names, 1):
        path, where = folder / "killed" / str(number), f"{what} killed at step {number}, {name}"
        made.add(survivor(path, before, held, where))
        writer = KnowledgeGraph.open(path) if Store(path).exists else KnowledgeGraph(PROGRAM, store=path)
        writer.update(insert=f"{NEXT} {ALL}")  # in another order: terms of the dead writer must not keep their ids
        assert_facts(writer, final, where)
        after = KnowledgeGraph.open(path)
        assert after._snapshot.info.terms == sum(file.rows for file in after._snapshot.files(DICTIONARY)), where
        assert_facts(after, final, where)
        assert after.verify() == sum(map(len, final)), where
        Store(path).compact()
        assert orphans(path) == set(), where
        if before:
            assert_facts(KnowledgeGraph.open(path, version=before - 1), held[before - 1], where)
    assert made == set(range(before, len(held) + 1)), "some kills came before the commit, some after"
    return names


def survivor(path: Path, before: int, held: list[Facts], where: str) -> int:
    """Look at a store as a reader; returns how many versions it has."""
    if not Store(path).exists:
        assert before == 0, where
        with pytest.raises(UserError, match="EG401"):
            KnowledgeGraph.open(path)
        return 0
    kg = KnowledgeGraph.open(path)
    assert kg.version is not None and before - 1 <= kg.version < len(held), where
    assert_facts(kg, held[kg.version], where)
    assert kg._snapshot.info.explicit == kg.counts(Which.EXPLICIT), where
    assert kg.verify() == sum(map(len, held[kg.version])), where
    return kg.version + 1


def inserting(text: str) -> Callable[[Path], Any]:
    return lambda path: KnowledgeGraph.open(path).update(insert=text)


def test_compaction_deletes_what_was_taken_back_and_keeps_every_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Crashed commits stand between those of versions, merges and deletions among them; some files went and came again."""
    path = tmp_path / "g"
    template_for("update", path)
    for change in (CHANGE, NEXT):
        crash_before_facts(path, monkeypatch, inserting(change))
        crash_before_facts(path, monkeypatch, compact)
        inserting(change)(path)
        KnowledgeGraph.open(path).update(delete="node(3) . edge(1, 2) .", insert="edge(1, 1) .")
        crash_before_facts(path, monkeypatch, compact)
        KnowledgeGraph.open(path).update(insert="node(3) . edge(1, 2) .", delete="edge(1, 1) .")
    crash_before_facts(path, monkeypatch, inserting(LARGE))
    held, left = versions_of(path), orphans(path)
    assert all(any(table in Path(name).parts for name in left) for table in (DICTIONARY, RELATIONS))
    for _ in range(2):
        Store(path).compact()
        assert orphans(path) == set()
        assert versions_of(path)[: len(held)] == held
    for version in range(len(held)):
        for table in log.TABLES:
            assert len(Store(path).snapshot(version).table(table).to_pyarrow_table()) >= 0, "Delta's readers find every file"


@pytest.mark.parametrize("table", log.TABLES)
@pytest.mark.parametrize("text", [None, b"", b"{", b"\xff\xff"], ids=["missing", "empty", "cut", "no text"])
def test_compaction_deletes_nothing_when_it_cannot_tell_what_versions_have(
    tmp_path: Path, table: str, text: bytes | None
) -> None:
    template_for("compact", tmp_path / "g")
    Store(tmp_path / "g").compact()
    commit = log._log_file(tmp_path / "g", table, 0)
    commit.unlink() if text is None else commit.write_bytes(text)
    before = set((tmp_path / "g").rglob("*.parquet"))
    with pytest.raises(UserError, match="EG406") as caught:
        Store(tmp_path / "g").compact()
    assert str(tmp_path / "g" / table) in str(caught.value)
    assert set((tmp_path / "g").rglob("*.parquet")) == before


# -- readers beside a writer -----------------------------------------------------------------------------------------


def test_readers_beside_a_writer_see_whole_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "SMALL_FILES", 6)
    path, stop = tmp_path / "g", tmp_path / "stop"
    kg = KnowledgeGraph(PROGRAM, store=path)
    kg.update(insert=f"[<http://ex/A>, <http://ex/sub>, <http://ex/B>] . node(0) . [<http://ex/x>, {TYPE}, <http://ex/A>] .")
    words = command("read_until", path, stop)
    readers = [subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    for n in range(50):
        text = f"node({n}) . edge({n % 7}, {n % 5}) . [<http://ex/x{n}>, {TYPE}, <http://ex/A>] . "
        kg.update(insert=text + (f"[<http://ex/x{n - 1}>, {TYPE}, <http://ex/B>] ." if n % 3 == 0 else ""))
    stop.touch()
    for reader in readers:
        said, failed = reader.communicate(timeout=60)
        assert reader.returncode == 0, failed
        seen = json.loads(said)
        assert len(set(seen)) > 5 and seen[-1] == kg.version
    assert [one.info.operation for one in Store(path).history()].count("compact") > 1
    assert kg.verify() == sum(kg.counts().values())
