"""`Store`: a materialised graph on disk, in versions.

>>> import tempfile
>>> from evergraph import KnowledgeGraph
>>> folder = tempfile.mkdtemp() + "/family"
>>> kg = KnowledgeGraph("rhodf")
>>> report = kg.update(insert="<http://ex/ann> <http://ex/knows> <http://ex/bob> .")
>>> kg.save(folder)
>>> store = Store(folder)
>>> [version.info.operation for version in store.history()]
['save']
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from evergraph.engines.base import Which
from evergraph.engines.changes import Changed
from evergraph.engines.marks import Counted
from evergraph.errors import UserError
from evergraph.rules.model import TRIPLE
from evergraph.store import log
from evergraph.store.counts import merge_counts, write_counts
from evergraph.store.feed import change_feed
from evergraph.store.layout import COUNTS, DICTIONARY, FACTS, FILE_ROWS, NAMES, RELATIONS, RULES, NewFile, write_terms
from evergraph.store.lock import NAME, SCRATCH, WAIT_SECONDS, sweep_scratch, writing
from evergraph.store.log import Info, Snapshot, StoredFile
from evergraph.store.names import NameRows, merge_names, write_names
from evergraph.store.read import read_table
from evergraph.store.rules import RuleRows, merge_rules, write_rules
from evergraph.store.submitted import SUBMITTED
from evergraph.store.view import create_view
from evergraph.store.write import by_shard, merge_small, write_changes

SMALL_FILES = 32
"""A writer that leaves more small files than this at one shard, or in the dictionary, compacts the store."""
WRITERS = min(4, os.cpu_count() or 1)
"""Shards whose files are written at a time: to encode them takes most of a commit, and leaves Python to others."""


class Store:
    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def __repr__(self) -> str:
        return f"Store({str(self.path)!r})"

    @property
    def exists(self) -> bool:
        return log.exists(self.path)

    def snapshot(self, version: int | None = None) -> Snapshot:
        """The last version, or the one asked for."""
        return log.snapshot(self.path, version)

    def history(self) -> list[Snapshot]:
        """All versions, the last one first."""
        return log.history(self.path)

    def change_feed(self, starting_version: int = 0, ending_version: int | None = None, relation: str = TRIPLE) -> pa.Table:
        """The facts, explicit and derived, that these versions inserted, deleted and changed, as Delta's change feed has it."""
        return change_feed(self.snapshot(starting_version), self.snapshot(ending_version), relation)

    def create_view(self, engine: Any, name: str = "triples", which: str = "all", version: int | None = None) -> Any:
        """A view `subject, predicate, object` of decoded triples in a DuckDB connection or a SparkSession."""
        return create_view(self.snapshot(version), engine, name, Which(which))

    # -- writing -----------------------------------------------------------------------------------------------------

    @contextmanager
    def writing(self, wait: float = WAIT_SECONDS) -> Iterator[None]:
        """Be the one writer. What a crashed writer left behind is put right first."""
        self.check_place()
        with ExitStack() as held:
            with log.writes(self.path):
                self.path.mkdir(parents=True, exist_ok=True)
                held.enter_context(writing(self.path, wait))
                sweep_scratch(self.path)
                log.recover(self.path)
            yield

    def check_place(self) -> None:
        """Refuse a folder that is something else than a store."""
        name = str(self.path.absolute())
        if "%" in name or not name.isprintable():
            raise UserError("EG401", f"a store cannot stand in {name!r}", "name a folder without % and control characters")
        if self.path.exists() and not self.exists:
            inside = {path.name for path in self.path.iterdir()} if self.path.is_dir() else {""}
            if NAME not in inside and inside - {SCRATCH, SUBMITTED}:
                raise UserError("EG401", f"{self.path} is not a store and not empty", "name a new folder")

    def commit(
        self,
        base: Snapshot | None,
        info: Info,
        changed: Iterable[Changed],
        terms: pa.Array,
        rules: RuleRows | None = None,
        counts: Iterable[Counted] = (),
        anew: bool = False,
        names: NameRows | None = None,
    ) -> Snapshot:
        """The version after `base` with these changes of facts, counts, rules and names, and new terms.

        With `anew`, all counts are given. Cost: the change, its shards side by side; files with rows to drop are written anew.
        """
        added: list[NewFile] = []
        removed: list[StoredFile] = []
        with log.writes(self.path), ThreadPoolExecutor(WRITERS) as pool:
            parts = enumerate(by_shard(changed, info.shards))
            shards = [pool.submit(write_changes, self.path, n, self._of_shard(base, n), part) for n, part in parts if part]
            others = write_terms(self.path, terms, info.terms - len(terms))
            others += write_counts(self.path, 0 if base is None else base.version + 1, counts)
            for new, old in (shard.result() for shard in shards):
                added, removed = added + new, removed + old
            added += others
        if anew and base is not None:
            removed += base.files(COUNTS)
        return self.commit_files(base, info, added, removed, rules, names)

    def commit_files(
        self,
        base: Snapshot | None,
        info: Info,
        added: Sequence[NewFile],
        removed: Sequence[StoredFile],
        rules: RuleRows | None = None,
        names: NameRows | None = None,
    ) -> Snapshot:
        """The version after `base` made of files that are written; small files are compacted when there are many."""
        if rules or base is None:
            with log.writes(self.path):
                new, old = write_rules(self.path, base.files(RULES) if base is not None else (), rules or RuleRows())
            added, removed = [*added, *new], [*removed, *old]
        if names:
            with log.writes(self.path):
                new, old = write_names(self.path, base.files(NAMES) if base is not None else (), names)
            added, removed = [*added, *new], [*removed, *old]
        if base is not None and not info.counts:
            removed = [*removed, *base.files(COUNTS)]
        made = log.commit(self.path, base, info, added, removed)
        if not _piled_up(made):
            return made
        try:
            return self._compact(made)
        except (UserError, OSError):
            return made  # the version is committed; that it is in many files is no reason to say otherwise

    def _of_shard(self, base: Snapshot | None, shard: int) -> list[StoredFile]:
        if base is None:
            return []
        return [file for name in (FACTS, RELATIONS) for file in base.files(name) if file.shard == shard]

    # -- compaction --------------------------------------------------------------------------------------------------

    def compact(self) -> Snapshot:
        """Merge small files, and delete files that are in no version. Cost: what stands in small files."""
        with self.writing(), log.writes(self.path):
            made = self._compact(self.snapshot())
            self._sweep()
            return made

    def _compact(self, base: Snapshot) -> Snapshot:
        added: list[NewFile] = []
        removed: list[StoredFile] = []
        for shard in range(base.info.shards):
            new, old = merge_small(self.path, shard, self._of_shard(base, shard), FILE_ROWS // 2)
            added, removed = added + new, removed + old
        for run in _adjacent(base.files(DICTIONARY)):
            terms = pa.chunked_array([c for file in run for c in read_table(file.path).column("term").chunks])
            added, removed = added + write_terms(self.path, terms, run[0].low), removed + run
        if len(base.files(COUNTS)) > SMALL_FILES:
            added, removed = added + merge_counts(self.path, base.version, base.files(COUNTS)), removed + base.files(COUNTS)
        if len(base.files(RULES)) > SMALL_FILES:
            added, removed = [*added, merge_rules(self.path, base.files(RULES))], removed + base.files(RULES)
        names = _small(base, NAMES)
        if len(names) > SMALL_FILES:
            added, removed = added + merge_names(self.path, names), removed + names
        if not removed:
            return base
        info = replace(base.info, operation="compact", report={})
        return log.commit(self.path, base, info, added, removed, data_change=False)

    def _sweep(self) -> None:
        """Delete data files that are in no version: those of writers that crashed, before a commit or after one that was
        taken back. All that is to be kept is known before the first file goes."""
        for table, known in log.all_files(self.path).items():
            for path in (self.path / table).rglob("*.parquet"):
                inside = path.relative_to(self.path / table)
                if inside.parts[0] != "_delta_log" and inside.as_posix() not in known:
                    path.unlink()


def _piled_up(snapshot: Snapshot) -> bool:
    shards = [file.shard for name in (FACTS, RELATIONS) for file in _small(snapshot, name)]
    most = max((shards.count(shard) for shard in set(shards)), default=0)
    others = (len(snapshot.files(COUNTS)), len(snapshot.files(RULES)), len(_small(snapshot, NAMES)))
    return max(most, sum(map(len, _adjacent(snapshot.files(DICTIONARY)))), *others) > SMALL_FILES


def _small(snapshot: Snapshot, table: str) -> list[StoredFile]:
    return [file for file in snapshot.files(table) if file.rows < FILE_ROWS // 2]


def _adjacent(files: Sequence[StoredFile]) -> list[list[StoredFile]]:
    """Runs of neighbouring small dictionary files."""
    runs: list[list[StoredFile]] = [[]]
    for file in files:
        if file.rows < FILE_ROWS:
            runs[-1].append(file)
        else:
            runs.append([])
    return [run for run in runs if len(run) > 1]
