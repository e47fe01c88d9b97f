"""One writer at a time, who sees what others wrote; scratch folders; and folders that are something else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from conftest import assert_same, everything
from evergraph import KnowledgeGraph, UserError
from evergraph.rules.model import TRIPLE
from evergraph.store import Store, lock
from evergraph.store.layout import FACTS
from evergraph.store.lock import SCRATCH, Scratch
from stores import CLASSES_OF, FAMILY, IS_A, assert_equal, files, made, paths, triple

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
        with patch.object(lock, "time", wraps=time) as clock:
            assert kg.update(insert=triple(2)).version == 1
        assert not clock.sleep.called, "the lock went with its process"
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
