"""What is done to a store that must survive it: writers that are killed at every step, small disks, no rights.

Run as a script this file is the other process: it has everything imported and forks a child for each thing to try.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from conftest import assert_same, everything
from evergraph import KnowledgeGraph, Program, UserError
from evergraph.engines.base import Which
from evergraph.rules.model import TRIPLE
from evergraph.store import Store, layout, lock, log, store
from evergraph.store.layout import DICTIONARY, FACTS

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


def command(*words: Any) -> list[str]:
    """The command that calls a function of this file in another process."""
    return [sys.executable, __file__, *map(str, words)]


def elsewhere(*words: Any) -> Any:
    """What a function of this file, called in another process, returns."""
    done = subprocess.run(command(*words), capture_output=True, text=True, check=False)
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


@cache
def complete() -> KnowledgeGraph:
    kg = KnowledgeGraph(PROGRAM, engine="reference")
    kg.update(insert=ALL)
    return kg


def orphans(path: Path) -> set[str]:
    """Data files that no version of the store has."""
    known = {file.path for version in Store(path).history() for table in log.TABLES for file in version.files(table)}
    return {str(p) for table in log.TABLES for p in (path / table).rglob("part-*.parquet") if p not in known}


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


if __name__ == "__main__":
    import pandas  # noqa: F401, Arrow imports it at first use: once here, and not in every child

    complete()
    called = {f.__name__: f for f in (kill_at_every_step, read_until, insert_with_small_files, as_nobody)}
    print(json.dumps(called[sys.argv[1]](*sys.argv[2:])))
