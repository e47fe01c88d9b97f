"""What a store survives: kill -9 at every step of a writer, damaged files, full disks, and readers beside a writer.

Run as a script this file is the other process: it has everything imported and forks a child for each thing to try.
"""

from __future__ import annotations

import io
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from conftest import assert_same, everything
from evergraph import KnowledgeGraph, Program, UserError
from evergraph.engines.base import Which
from evergraph.rules.model import TRIPLE
from evergraph.store import Store, layout, lock, log, store
from evergraph.store.layout import DICTIONARY, FACTS, RELATIONS, RULES
from evergraph.store.read import read_facts, read_program, read_terms

TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
PROGRAM = Program.parse(f"""
path(?x, ?y) :- edge(?x, ?y) .
path(?x, ?z) :- path(?x, ?y), edge(?y, ?z) .
[?x, {TYPE}, ?b] :- [?x, {TYPE}, ?a], [?a, <http://ex/sub>, ?b] .
alone(?x) :- node(?x), NOT path(?x, ?x) .
""")
FIRST = "node(1) . node(2) . edge(1, 2) . [<http://ex/A>, <http://ex/sub>, <http://ex/B>] ."
SECOND = f"node(3) . [<http://ex/x>, {TYPE}, <http://ex/A>] ."
CHANGE = f"edge(2, 1) . path(3, 1) . [<http://ex/x>, {TYPE}, <http://ex/B>] . [<http://ex/new>, <http://ex/p>, <http://ex/x>] ."
"""New terms, a derived triple that becomes explicit, derived facts that cease to follow: every table of facts changes."""
NEXT = "edge(2, 3) . [<http://ex/last>, <http://ex/p>, <http://ex/x>] ."
LARGE = " ".join(
    f"edge({n + 10}, {n * 7919 + 5000}) . [<http://ex/s{n}>, <http://ex/p{n % 3}>, <http://ex/o{n * 104729}>] ."
    for n in range(400)
)
ALL = " ".join((FIRST, SECOND, CHANGE, NEXT))
Facts = tuple[set[str], set[str]]


def facts_of(kg: KnowledgeGraph) -> Facts:
    return everything(kg, Which.EXPLICIT), everything(kg, Which.DERIVED)


def versions_of(path: Path) -> list[Facts]:
    """What each version of a store holds."""
    if not Store(path).exists:
        return []
    return [facts_of(KnowledgeGraph.open(path, version=n)) for n in range(Store(path).snapshot().version + 1)]


def assert_facts(kg: KnowledgeGraph, want: Facts, what: str) -> None:
    for got, expected in zip(facts_of(kg), want, strict=True):
        assert_same(got, expected, what)


# -- the writers that are killed, and where --------------------------------------------------------------------------


def first_load(path: Path) -> None:
    KnowledgeGraph(PROGRAM, store=path).update(insert=ALL)


def save(path: Path) -> None:
    kg = KnowledgeGraph(PROGRAM)
    kg.update(insert=ALL)
    kg.save(path)


def update(path: Path) -> None:
    KnowledgeGraph.open(path).update(insert=CHANGE)


def update_that_compacts(path: Path) -> None:
    store.SMALL_FILES = 1
    try:
        update(path)
    finally:
        store.SMALL_FILES = 32


def compact(path: Path) -> None:
    Store(path).compact()


WRITERS: dict[str, Callable[[Path], None]] = {
    one.__name__: one for one in (first_load, save, update, update_that_compacts, compact)
}


class Steps:
    """Numbers everything a writer does to the disk, half of it and when it is done, and kills it at one of these."""

    def __init__(self, deadly: int, note: Path) -> None:
        self.deadly, self.note, self.done = deadly, note, 0
        self.watch(layout.pq, "write_table", torn=lambda _rows, target, **_: cut_in_half(target))
        self.watch(Path, "write_bytes", torn=lambda path, _data: cut_in_half(path))
        self.watch(log, "create_table_with_add_actions")
        self.watch(DeltaTable, "create_write_transaction")
        self.watch(DeltaTable, "restore")
        self.watch(lock, "_acquire")
        self.watch(os, "mkdir")
        self.watch(os, "unlink")
        self.watch(
            shutil, "rmtree", before=lambda folder: (next(iter(Path(folder).rglob("*.json")), Path("/none"))).unlink(True)
        )

    def watch(self, owner: Any, name: str, torn: Any = None, before: Any = None) -> None:
        real = getattr(owner, name)

        def watched(*given: Any, **named: Any) -> Any:
            if before is not None:
                self.step(f"half of {name}", lambda: before(*given))
            found = real(*given, **named)
            if torn is not None:
                self.step(f"half of {name}", lambda: torn(*given, **named))
            self.step(f"after {name}")
            return found

        setattr(owner, name, watched)

    def step(self, name: str, damage: Callable[[], Any] = lambda: None) -> None:
        self.done += 1
        if self.done == self.deadly:
            damage()
            self.note.write_text(name)
            os.kill(os.getpid(), signal.SIGKILL)


def cut_in_half(target: Any) -> None:
    if isinstance(target, str | Path):
        os.truncate(target, os.path.getsize(target) // 2)


def kill_at_every_step(what: str, template: str, folder: str) -> list[str]:
    """Run a writer over copies of a store, killed at its first step, at its second, … until it gets through."""
    names = []
    for number in count(1):
        path = Path(folder, str(number))
        if Path(template).exists():
            shutil.copytree(template, path)
        note = Path(folder, f"{number}.step")

        def work(path: Path = path, note: Path = note, number: int = number) -> int:
            Steps(number, note)
            WRITERS[what](path)
            return 0

        if (ended := forked(work)) == 0:
            return names
        assert ended == -signal.SIGKILL, ended
        names.append(note.read_text())
    raise AssertionError("unreachable")


def forked(work: Callable[[], int]) -> int:
    """The exit code of work in a child; below zero: the signal that ended it."""
    child = os.fork()
    if not child:
        try:
            os._exit(work())
        except BaseException:
            traceback.print_exc()
            os._exit(99)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def elsewhere(*words: Any) -> Any:
    """What a function of this file, called in another process, returns."""
    done = subprocess.run([sys.executable, __file__, *map(str, words)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def template_for(what: str, path: Path) -> None:
    """The store that a writer starts from."""
    if what in ("first_load", "save"):
        return
    kg = KnowledgeGraph(PROGRAM, store=path)
    for text in (FIRST, SECOND):
        kg.update(insert=text)
    if what == "compact":
        kg.update(insert=CHANGE)
        for table in (FACTS, DICTIONARY):
            kept = Store(path).snapshot().files(table)[0].path
            shutil.copy(kept, kept.with_name("part-0123.parquet"))


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


@cache
def complete() -> KnowledgeGraph:
    kg = KnowledgeGraph(PROGRAM, engine="reference")
    kg.update(insert=ALL)
    return kg


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


def orphans(path: Path) -> set[str]:
    """Data files that no version of the store has."""
    known = {file.path for version in Store(path).history() for table in log.TABLES for file in version.files(table)}
    return {str(p) for table in log.TABLES for p in (path / table).rglob("part-*.parquet") if p not in known}


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


def read_until(path: str, stop: str) -> list[int]:
    """Open the store again and again; each time all of it must be one version."""
    seen = []
    while True:
        last = Path(stop).exists()
        kg = KnowledgeGraph.open(path)
        info = Store(path).snapshot(kg.version).info
        assert kg.counts(Which.EXPLICIT) == info.explicit, (kg.version, kg.counts(Which.EXPLICIT), info)
        assert kg.counts(Which.DERIVED) == info.derived, (kg.version, kg.counts(Which.DERIVED), info)
        assert len(kg) == kg.to_arrow().num_rows == info.explicit[TRIPLE] + info.derived.get(TRIPLE, 0)
        assert not seen or seen[-1] <= kg.version
        seen.append(kg.version)
        if last:
            return seen


def test_readers_beside_a_writer_see_whole_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "SMALL_FILES", 6)
    path, stop = tmp_path / "g", tmp_path / "stop"
    kg = KnowledgeGraph(PROGRAM, store=path)
    kg.update(insert=f"[<http://ex/A>, <http://ex/sub>, <http://ex/B>] . node(0) . [<http://ex/x>, {TYPE}, <http://ex/A>] .")
    words = [sys.executable, __file__, "read_until", str(path), str(stop)]
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


# -- damage ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """A store whose last version has a file of its own in every table of facts and terms."""
    kg = KnowledgeGraph(PROGRAM, store=tmp_path / "g")
    for text in (FIRST, CHANGE):
        kg.update(insert=text)
    return tmp_path / "g"


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """The same, with files whose middle is in their pages."""
    more = Program.parse(" ".join(f"more{n}(?x) :- edge(?x, ?y), node{n * 7919}(?y) ." for n in range(40)))
    kg = KnowledgeGraph(Program((*PROGRAM.rules, *more.rules)), store=tmp_path / "g")
    for text in (FIRST, CHANGE + LARGE):
        kg.update(insert=text)
    return tmp_path / "g"


def last_file(path: Path, table: str) -> Path:
    old = {file.path for file in Store(path).snapshot(0).files(table)} if table != RULES else set()
    return next(file.path for file in Store(path).snapshot().files(table) if file.path not in old)


def flip(data: bytes, place: int, bit: int = 0x10) -> bytes:
    return data[:place] + bytes([data[place] ^ bit]) + data[place + 1 :]


def end_of_column(data: bytes, number: int) -> int:
    """The place of the last byte of a column's pages."""
    with pq.ParquetFile(io.BytesIO(data)) as file:
        group = file.metadata.row_group(0)
        column = group.column(number % group.num_columns)
    return int((column.dictionary_page_offset or column.data_page_offset) + column.total_compressed_size - 1)


DAMAGE: dict[str, Callable[[bytes], bytes | None]] = {
    "flipped": lambda data: flip(data, end_of_column(data, 0)),
    "flipped in the last column": lambda data: flip(data, end_of_column(data, -1)),
    "in the middle": lambda data: flip(data, len(data) // 2),
    "truncated": lambda data: data[: len(data) // 2],
    "short": lambda data: data[:-1],
    "empty": lambda _: b"",
    "missing": lambda _: None,
}


@pytest.mark.parametrize("how", DAMAGE)
@pytest.mark.parametrize("table", [FACTS, RELATIONS, DICTIONARY, RULES])
def test_a_damaged_file_is_named_and_harms_no_other_version(large: Path, table: str, how: str) -> None:
    bad = last_file(large, table)
    data = bad.read_bytes()
    after = DAMAGE[how](data)
    bad.unlink() if after is None else bad.write_bytes(after)
    rest = {p: p.read_bytes() for p in large.rglob("*") if p.is_file() and p.name != ".writer"}
    for look in (
        lambda: KnowledgeGraph.open(large),
        lambda: KnowledgeGraph.open(large, engine="reference"),
        lambda: KnowledgeGraph.open(large, version=1),
    ):
        with pytest.raises(UserError, match="EG406") as caught:
            look()
        assert str(bad) in str(caught.value) and len(str(caught.value).splitlines()) == 1
    assert {p: p.read_bytes() for p in large.rglob("*") if p.is_file() and p.name != ".writer"} == rest
    if table != RULES:
        old = KnowledgeGraph.open(large, version=0)
        assert old.verify() == sum(old.counts().values()) > 0
    bad.write_bytes(data)
    KnowledgeGraph.open(large).update(insert=NEXT)
    assert KnowledgeGraph.open(large).version == 2


def test_a_file_that_is_damaged_while_a_graph_is_open_stops_its_rewriting(damaged: Path) -> None:
    kg = KnowledgeGraph.open(damaged)
    kg.update(insert=f"[<http://ex/y>, {TYPE}, <http://ex/A>] .")
    held, version = everything(kg), kg.version
    for file in Store(damaged).snapshot().files(FACTS):
        file.path.write_bytes(flip(file.path.read_bytes(), 10))
    with pytest.raises(UserError, match="EG406"):
        kg.update(insert=f"[<http://ex/y>, {TYPE}, <http://ex/B>] .")
    assert_same(everything(kg), held)
    assert Store(damaged).snapshot().version == version == kg.version


@pytest.mark.parametrize("table", [FACTS, RELATIONS, DICTIONARY, RULES])
def test_no_flipped_bit_of_a_file_changes_what_is_read(damaged: Path, table: str) -> None:
    """Wherever it is, in the pages or in the footer: it is told, as one line, or it does not matter."""
    Store(damaged).compact()
    snapshot = Store(damaged).snapshot()

    def read() -> Any:
        if table == RULES:
            return read_program(snapshot)
        if table == DICTIONARY:
            return read_terms(snapshot).to_pylist()
        facts = read_facts(snapshot)
        return [{key: r.rows()[0].tolist() for key, r in part.items()} for part in (facts.all, facts.explicit)]

    want, bad = read(), snapshot.files(table)[-1].path
    data = bad.read_bytes()
    unclear = []
    for place, bit in ((n, 1 << (n + more) % 8) for n in range(len(data)) for more in (0, 4)):
        bad.write_bytes(flip(data, place, bit))
        try:
            if read() != want:
                unclear.append(f"{place}: other facts")
        except UserError as error:
            if error.code != "EG406" or str(bad) not in str(error):
                unclear.append(f"{place}: {error}")
        except Exception as error:
            unclear.append(f"{place}: {type(error).__name__}: {error}")
    assert not unclear, f"{len(unclear)} of {2 * len(data)} bits\n" + "\n".join(unclear[:20])


def test_a_damaged_log_is_named(damaged: Path) -> None:
    commit = log._log_file(damaged, FACTS, 1)
    data = commit.read_bytes()
    for text in (b"", b"{", b'{"commitInfo": {}}\n', b"\xff\xff"):
        commit.write_bytes(text)
        with pytest.raises(UserError, match="EG406") as caught:
            KnowledgeGraph.open(damaged)
        assert str(commit) in str(caught.value)
    commit.write_bytes(data)
    assert KnowledgeGraph.open(damaged).version == 1


def test_a_newer_format_is_refused_and_untouched(damaged: Path) -> None:
    commit = log._log_file(damaged, FACTS, 1)
    lines = commit.read_text().splitlines(keepends=True)
    first = json.loads(lines[0])
    first["commitInfo"]["evergraph"] |= {"format": layout.FORMAT + 1, "something": "new"}
    commit.write_text(json.dumps(first) + "\n" + "".join(lines[1:]))
    kept = {p: p.read_bytes() for p in damaged.rglob("*") if p.is_file() and p.name != ".writer"}
    for look in (
        lambda: KnowledgeGraph.open(damaged),
        lambda: Store(damaged).history(),
        lambda: Store(damaged).compact(),
        lambda: Store(damaged).change_feed(),
    ):
        with pytest.raises(UserError, match=r"EG404.*format 2.*newer Evergraph"):
            look()
    assert {p: p.read_bytes() for p in damaged.rglob("*") if p.is_file() and p.name != ".writer"} == kept


# -- disks that are full or closed -----------------------------------------------------------------------------------

LIMITS = (0, 40, 200, 700, 1_500, 2_500, 4_000)


def insert(path: Path) -> int:
    """1: the store could not be written, and the graph says so and is as it was; 0: the facts are in."""
    new = not Store(path).exists
    kg = KnowledgeGraph(PROGRAM, store=path) if new else KnowledgeGraph.open(path)
    held = everything(kg)
    try:
        kg.update(insert=LARGE)
        return 0
    except UserError as error:
        assert error.code == "EG403" and str(path) in str(error) and everything(kg) == held, error
        return 1


def insert_with_small_files(folder: str, template: str) -> list[int]:
    """Exit codes under limits on the size of a file: each stops another file from being written."""
    codes = []
    for limit in LIMITS:
        path = Path(folder, str(limit))
        if template != "none":
            shutil.copytree(template, path)

        def work(path: Path = path, limit: int = limit) -> int:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            return insert(path)

        codes.append(forked(work))
    return codes


@pytest.mark.parametrize("start", ["none", "template"])
def test_a_write_that_does_not_fit_leaves_the_last_version(tmp_path: Path, start: str) -> None:
    if start == "template":
        template_for("update", tmp_path / start)
        start = str(tmp_path / start)
    held = versions_of(Path(start))
    (tmp_path / "limited").mkdir()
    codes = elsewhere("insert_with_small_files", tmp_path / "limited", start)
    assert codes == [1] * len(LIMITS)
    for limit in LIMITS:
        path = tmp_path / "limited" / str(limit)
        assert versions_of(path) == held
        assert insert(path) == 0
        kg = KnowledgeGraph.open(path)
        assert kg.version == len(held) and kg.verify() == sum(kg.counts().values()) > 800
        Store(path).compact()
        assert orphans(path) == set()


@contextmanager
def tiny_disk(path: Path, size: str) -> Iterator[None]:
    path.mkdir()
    if os.geteuid() or subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", path], check=False).returncode:
        pytest.skip("needs the right to mount a small disk")
    try:
        yield
    finally:
        subprocess.run(["umount", path], check=True)


def test_a_full_disk_leaves_the_last_version(tmp_path: Path) -> None:
    """With no room, a page, two, … until the update fits; after each failure room is made and taken again."""
    with tiny_disk(tmp_path / "disk", "1m"):
        path, filler = tmp_path / "disk" / "g", tmp_path / "disk" / "filler"
        template_for("update", path)
        held = versions_of(path)
        failures = 0
        for pages in count():
            fill(filler, pages * 4096)
            failed = insert(path)
            filler.unlink()
            if not failed:
                break
            failures += 1
            assert versions_of(path) == held
            KnowledgeGraph.open(path).verify()
        assert failures > 4
        kg = KnowledgeGraph.open(path)
        assert kg.verify() == sum(kg.counts().values()) > 800
        assert Store(path).compact().version >= kg.version
        assert orphans(path) == set()


def fill(path: Path, leave: int) -> None:
    """Take all room but some."""
    with path.open("wb") as out:
        stat = os.statvfs(path.parent)
        out.write(bytes(max(0, stat.f_bavail * stat.f_frsize - leave)))


def test_compacting_a_full_disk_leaves_the_last_version(tmp_path: Path) -> None:
    with tiny_disk(tmp_path / "disk", "1m"):
        path, filler = tmp_path / "disk" / "g", tmp_path / "disk" / "filler"
        template_for("update", path)
        held = versions_of(path)
        fill(filler, 4096)
        with pytest.raises(UserError, match="EG403"):
            Store(path).compact()
        filler.unlink()
        assert versions_of(path) == held
        Store(path).compact()
        assert versions_of(path) == [*held, held[-1]]


NOBODY = 65534


def as_nobody(path: str, source: str = "") -> str:
    """The mistake that stops an update by someone without rights; opening must work."""

    def work() -> int:
        if not os.geteuid():
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        kg = KnowledgeGraph.open(path) if Store(path).exists else KnowledgeGraph(PROGRAM, store=path)
        try:
            kg.update(insert=[Path(source)] if source else NEXT)
            return 0
        except UserError as error:
            return {"EG101": 1, "EG403": 3}.get(error.code, 2)

    return {0: "none", 1: "EG101", 3: "EG403"}.get(forked(work), "another")


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that everyone can enter."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def test_a_store_that_may_only_be_read_can_be_read(open_folder: Path) -> None:
    path = open_folder / "g"
    template_for("update", path)
    for folder in (path, *path.rglob("*")):
        folder.chmod(0o555 if folder.is_dir() else 0o444)
    held = versions_of(path)
    assert elsewhere("as_nobody", path) == "EG403"
    assert versions_of(path) == held
    for folder in (path, *path.rglob("*")):
        folder.chmod(0o755)


def test_a_store_cannot_be_made_where_nothing_may_be_written(open_folder: Path) -> None:
    open_folder.chmod(0o555)
    assert elsewhere("as_nobody", open_folder / "g") == "EG403"
    open_folder.chmod(0o755)
    assert list(open_folder.iterdir()) == []


def test_an_input_that_may_not_be_read_changes_nothing(open_folder: Path) -> None:
    template_for("update", open_folder / "g")
    held = versions_of(open_folder / "g")
    (open_folder / "g" / ".writer").chmod(0o666)
    (open_folder / "secret.nt").write_text("<http://a> <http://p> <http://b> .\n")
    (open_folder / "secret.nt").chmod(0o000)
    assert elsewhere("as_nobody", open_folder / "g", open_folder / "secret.nt") == "EG101"
    assert versions_of(open_folder / "g") == held


@pytest.mark.parametrize("target", ["nowhere", "/proc/self/mem"])
def test_an_input_that_cannot_be_read_is_named_and_changes_nothing(tmp_path: Path, target: str) -> None:
    """A link to nothing, and a file that gives an error when it is read."""
    template_for("update", tmp_path / "g")
    kept = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file() and p.name != ".writer"}
    (tmp_path / "bad.nt").symlink_to(target)
    for kg in (KnowledgeGraph.open(tmp_path / "g"), KnowledgeGraph(PROGRAM)):
        with pytest.raises(UserError, match=r"EG101.*bad\.nt"):
            kg.update(insert=tmp_path / "bad.nt")
    (tmp_path / "bad.nt").unlink()
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file() and p.name != ".writer"} == kept


if __name__ == "__main__":
    import pandas  # noqa: F401, Arrow imports it at first use: once here, and not in every child

    complete()
    called = {f.__name__: f for f in (kill_at_every_step, read_until, insert_with_small_files, as_nobody)}
    print(json.dumps(called[sys.argv[1]](*sys.argv[2:])))
