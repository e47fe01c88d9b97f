"""Versions of a store. The commit of `facts` is the commit point: it names the versions of the other tables.

    version n of the store = version n of `facts`, and the versions of the other tables it names

In words: a writer commits the other tables first and `facts` last, so that a version exists whole or not at all. A reader
takes a version of `facts` and the others as that names them: a snapshot that no later commit changes. What a crashed
writer left in the other tables is in no version; the next writer puts them back first.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema
from deltalake.exceptions import DeltaError
from deltalake.transaction import AddAction, RemoveAction, create_table_with_add_actions

from evergraph.errors import UserError
from evergraph.store.layout import BY_SHARD, COUNTS, DICTIONARY, FACTS, FORMAT, NAMES, RELATIONS, RULES, SCHEMAS, NewFile

TABLES = (DICTIONARY, RELATIONS, RULES, COUNTS, NAMES, FACTS)
"""In the order in which they are committed."""
LATER = (COUNTS, NAMES)
"""Tables that stores of older formats do not have."""
SKIP_BY = {FACTS: "predicate", DICTIONARY: "id", NAMES: "name"}
"""The column whose lowest and highest value in a file we look at."""
KEEP_LOG = {"delta.enableExpiredLogCleanup": "false", "delta.logRetentionDuration": "interval 36500 days"}
Counts = dict[str, int]


class GivenName(str):
    """A ticket's name that whoever submitted it gave, and will look for: it is in a version even if nothing else changed."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Info:
    """What a version says of itself, in the commit of `facts`."""

    operation: str
    """`load`, `update`, `save` or `compact`."""
    shards: int
    terms: int
    """Size of the dictionary."""
    scopes: int
    """How many files blank nodes have come from."""
    explicit: Counts
    """Explicit facts by relation, triples under `[]`."""
    derived: Counts
    rules: int = 0
    tables: Mapping[str, int] = field(default_factory=dict)
    """Versions of the other tables."""
    report: Mapping[str, Any] = field(default_factory=dict)
    """Net changes, algorithm and time of what made the version."""
    counts: str = ""
    """The fingerprint of the plan that facts are counted by, if they are."""
    equality: str = "off"
    """What becomes of names that are the same: one of `rules.equality.Equality`."""
    format: int = FORMAT

    @property
    def to_keep(self) -> bool:
        """Whether it says something that must be in a version even if no fact has changed."""
        return any(isinstance(name, GivenName) for name in self.report.get("tickets", ()))


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A data file of a snapshot."""

    path: Path
    rows: int
    size: int
    shard: int | None
    low: int
    high: int
    """Lowest and highest predicate of a file of triples, id of one of terms, name of one of names."""

    @property
    def relative(self) -> str:
        parts = self.path.parts[-2:] if self.shard is not None else self.path.parts[-1:]
        return "/".join(parts)


class Snapshot:
    """One version of a store, for reading."""

    def __init__(self, store: Path, version: int, when: datetime, info: Info) -> None:
        self.store, self.version, self.when, self.info = store, version, when, info
        self._files: dict[str, list[StoredFile]] = {}

    def table(self, name: str) -> DeltaTable:
        """The table as Delta's own readers see it."""
        try:
            return DeltaTable(str(self.store / name), version=self.version_of(name))
        except (DeltaError, OSError) as error:
            raise damaged(self.store / name, error) from error

    def version_of(self, name: str) -> int:
        """The version of a table."""
        return self.version if name == FACTS else self.info.tables[name]

    def changes_data(self, name: str) -> bool:
        """Whether the commit that made this version of a table put rows there or took some; False: it arranged them anew."""
        if name in LATER and name not in self.info.tables:
            return False
        return any(action["dataChange"] for _, action in _actions(self.store, name, self.version_of(name)))

    def files(self, name: str) -> list[StoredFile]:
        """The data files, dictionary files in the order of their ids, others by shard and name."""
        if name in LATER and name not in self.info.tables:
            return []  # written before there was such a table
        if name not in self._files:
            rows = pa.table(self.table(name).get_add_actions(flatten=True)).to_pylist()
            column = SKIP_BY.get(name, "")
            self._files[name] = _ordered(
                StoredFile(
                    self.store / name / row["path"],
                    row["num_records"],
                    row["size_bytes"],
                    row.get("partition.shard"),
                    row.get(f"min.{column}") or 0,
                    row.get(f"max.{column}") or 0,
                )
                for row in rows
            )
        return self._files[name]

    def follow(self, base: Snapshot | None, added: Sequence[NewFile], removed: Sequence[StoredFile]) -> None:
        """Know the files of this version from those of the one before."""
        gone = {file.path for file in removed}
        for name in TABLES:
            kept = [file for file in base.files(name) if file.path not in gone] if base is not None else []
            self._files[name] = _ordered([*kept, *(_stored(self.store, file) for file in added if file.table == name)])


def _stored(store: Path, file: NewFile) -> StoredFile:
    stats, column = json.loads(file.stats), SKIP_BY.get(file.table, "")
    low, high = stats["minValues"].get(column, 0), stats["maxValues"].get(column, 0)
    return StoredFile(store / file.table / file.path, file.rows, file.size, file.shard, low, high)


def _ordered(files: Iterable[StoredFile]) -> list[StoredFile]:
    """By shard and name; dictionary files, which have no shard, by their ids."""
    return sorted(files, key=lambda f: (f.low if f.shard is None else f.shard, f.path.name))


def exists(store: Path) -> bool:
    return _log_file(store, FACTS, 0).exists()


def snapshot(store: Path, version: int | None = None) -> Snapshot:
    """The last version, or the one asked for."""
    latest = _latest(store, FACTS)
    if latest is None:
        raise UserError("EG401", f"no store at {store}", f"make one: evergraph load DATA --rules RULES --store {store}")
    number = latest if version is None else version
    if not 0 <= number <= latest:
        raise UserError("EG405", f"{store} has no version {version}", f"it has versions 0 to {latest}; see evergraph history")
    first = _said(store, number)
    found = first["evergraph"]
    if found.get("format", 0) > FORMAT:
        raise UserError(
            "EG404", f"{store} is of format {found['format']}, this Evergraph reads up to {FORMAT}", "install a newer Evergraph"
        )
    return Snapshot(store, number, datetime.fromtimestamp(first["timestamp"] / 1000, UTC), Info(**found))


def history(store: Path) -> list[Snapshot]:
    """All versions, the last one first. Cost: a small file each."""
    latest = snapshot(store)
    return [latest, *(snapshot(store, n) for n in range(latest.version - 1, -1, -1))]


def tickets(store: Path, after: int = -1) -> Iterator[str]:
    """The names of submitted updates that versions after this one hold. Cost: a line of a small file for each version."""
    latest = _latest(store, FACTS)
    for number in range(after + 1, -1 if latest is None else latest + 1):
        yield from _said(store, number)["evergraph"].get("report", {}).get("tickets", ())


def all_files(store: Path) -> dict[str, set[str]]:
    """The data files of each table, relative to its folder, that some version of the store has.

    Cost: linear in the log, which is read once: a file is in a version if it was there when a commit that a version names
    was made. What crashed writers committed and recovery took back was not.
    """
    named = history(store)
    found: dict[str, set[str]] = {}
    for table in TABLES:
        wanted = {version.version_of(table) for version in named if table == FACTS or table in version.info.tables}
        found[table] = set()
        there: set[str] = set()
        for number in range(max(wanted, default=-1) + 1):
            for kind, action in _actions(store, table, number):
                (there.add if kind == "add" else there.discard)(action["path"])
            if number in wanted:
                found[table] |= there
                there.clear()
    return found


def recover(store: Path) -> None:
    """Put tables back to what the last version names, when a writer crashed between their commits. The caller has the lock."""
    if not exists(store):
        if any((store / FACTS / "_delta_log").glob("*.json")):  # there are versions, and the first one's commit is lost
            raise damaged(_log_file(store, FACTS, 0), FileNotFoundError("it is missing"))
        for name in TABLES:
            if (store / name).exists():
                shutil.rmtree(store / name)
        return
    last = snapshot(store)
    for name, version in last.info.tables.items():
        there = _latest(store, name)
        if there is None or there < version:
            raise damaged(_log_file(store, name, 0 if there is None else there + 1), FileNotFoundError("it is missing"))
        if there > version:
            with writes(store):
                DeltaTable(str(store / name)).restore(version)


def commit(
    store: Path,
    base: Snapshot | None,
    info: Info,
    added: Sequence[NewFile],
    removed: Sequence[StoredFile],
    data_change: bool = True,
) -> Snapshot:
    """Make the next version of added and removed files. The caller has the lock and has recovered the store."""
    versions: dict[str, int] = {}
    for name in TABLES:
        new = [file for file in added if file.table == name]
        old = [file for file in removed if file.path.is_relative_to(store / name)]
        there = _latest(store, name)
        if name != FACTS:
            if there is None or new or old:
                _commit_table(store, name, there, new, old, data_change, {})
                there = 0 if there is None else there + 1
            versions[name] = there
        else:
            document = {"evergraph": asdict(replace(info, tables=versions))}
            _commit_table(store, name, there, new, old, data_change, document)
    made = snapshot(store)
    made.follow(base, added, removed)
    return made


def _commit_table(
    store: Path,
    name: str,
    there: int | None,
    new: Iterable[NewFile],
    old: Iterable[StoredFile],
    data_change: bool,
    document: dict[str, Any],
) -> None:
    columns = [*SCHEMAS[name], *([pa.field("shard", pa.int32())] if name in BY_SHARD else [])]
    schema = Schema.from_arrow(pa.schema(columns))
    by = ["shard"] if name in BY_SHARD else []
    now = int(time.time() * 1000)
    adds = [AddAction(f.path, f.size, _partition(f.shard), now, data_change, f.stats) for f in new]
    properties = CommitProperties(custom_metadata=document)
    target = str(store / name)
    if there is None:
        (store / name).mkdir(parents=True, exist_ok=True)
        with writes(store):
            create_table_with_add_actions(
                target, schema, adds, partition_by=by, configuration=KEEP_LOG, commit_properties=properties
            )
        return
    removes = [RemoveAction(f.relative, data_change, now, f.size, _partition(f.shard)) for f in old]
    with writes(store):
        DeltaTable(target).create_write_transaction([*adds, *removes], "append", schema, by, commit_properties=properties)


def _partition(shard: int | None) -> dict[str, str | None]:
    return {} if shard is None else {"shard": str(shard)}


@contextmanager
def writes(store: Path) -> Iterator[None]:
    """Tell a failure to write as one."""
    try:
        yield
    except (DeltaError, OSError) as error:
        raise unwritable(store, error) from error


def _latest(store: Path, table: str) -> int | None:
    """The last version of a table. Cost: a look at twice as many files as its number has bits: versions have no gaps."""

    def exists(version: int) -> bool:
        return _log_file(store, table, version).exists()

    if not exists(0):
        return None
    low, high = 0, 1
    while exists(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if exists(middle) else (low, middle)
    return low


def _log_file(store: Path, table: str, version: int) -> Path:
    return store / table / "_delta_log" / f"{version:020}.json"


def _said(store: Path, version: int) -> dict[str, Any]:
    """The first line of a commit of `facts`: what it says of itself."""
    path = _log_file(store, FACTS, version)
    try:
        with path.open(encoding="utf-8") as file:
            found: dict[str, Any] = json.loads(file.readline())["commitInfo"]
        found["evergraph"]
        return found
    except (OSError, ValueError, KeyError) as error:
        raise damaged(path, error) from error


def _actions(store: Path, table: str, version: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """What a commit of a table does to its files: `add` or `remove`, and Delta's account of the file."""
    path = _log_file(store, table, version)
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        if not lines:
            raise ValueError("it is empty")
        for line in lines:
            yield from ((kind, action) for kind, action in json.loads(line).items() if kind in ("add", "remove"))
    except (OSError, ValueError) as error:
        raise damaged(path, error) from error


def damaged(path: Path, error: Exception) -> UserError:
    return UserError(
        "EG406", f"{path} is damaged: {_line(error)}", "put it back from a backup, or read an older version with --version"
    )


def _line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def unwritable(path: Path, error: Exception) -> UserError:
    reason = (isinstance(error, OSError) and error.strerror) or _line(error)
    return UserError(
        "EG403", f"{path} could not be written: {reason}", "see that the disk has room and lets you write; nothing was lost"
    )
