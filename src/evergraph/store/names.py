"""The table of names: a row for each name that another one represents, where names that are the same are rewritten.

    name, representative        beside it, the tables of facts hold I ∪ E: facts in normal form, and explicit facts as given

In words: a stored row that mentions a name of this table is explicit, and its normal form stands beside it. A version adds a
file with the names that changed, and writes those files anew that hold names which changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evergraph.engines.arrays import U64, Array, Arrays
from evergraph.engines.equality.names import Names
from evergraph.store.layout import FILE_ROWS, NAMES, SCHEMAS, NewFile, write_file
from evergraph.store.log import Snapshot, StoredFile
from evergraph.store.read import read_table, read_tables


def _nothing() -> Array:
    return np.empty(0, U64)


@dataclass(frozen=True, slots=True)
class NameRows:
    """What changes in the table."""

    names: Array = field(default_factory=_nothing)
    """In order, those that come, or that something else represents now."""
    representatives: Array = field(default_factory=_nothing)
    less: Array = field(default_factory=_nothing)
    """In order, the names whose rows go."""

    def __bool__(self) -> bool:
        return bool(len(self.names) or len(self.less))

    @staticmethod
    def between(before: Names, after: Names) -> NameRows:
        """Cost: linear in the names; nothing where they are the same object."""
        changed = after.less(before)
        old, new = (np.asarray(names.of(changed)) for names in (before, after))
        changed = np.asarray(changed)
        moved = new != changed
        return NameRows(changed[moved], new[moved], changed[old != changed])


def write_names(store: Path, files: Sequence[StoredFile], rows: NameRows) -> tuple[list[NewFile], list[StoredFile]]:
    """Files to add to the table, whose files these are, and to remove from it. Cost: the change, and the files it is in."""
    added: list[NewFile] = []
    removed: list[StoredFile] = []
    less = pa.array(rows.less.astype(np.int64))
    for file in files:
        low, high = np.searchsorted(rows.less, [file.low, file.high + 1])
        if low == high:
            continue
        table = read_table(file.path)
        kept = table.filter(pc.invert(pc.is_in(table.column("name"), less)))
        if len(kept) < len(table):
            removed.append(file)
            added += [write_file(store, NAMES, kept)] * bool(len(kept))
    columns = [c.astype(np.int64) for c in (rows.names, rows.representatives)]
    return added + _write(store, pa.table(columns, schema=SCHEMAS[NAMES])), removed


def merge_names(store: Path, files: Sequence[StoredFile]) -> list[NewFile]:
    """Files as few, in the order of names."""
    return _write(store, pa.concat_tables(read_tables(files)).sort_by("name"))


def _write(store: Path, rows: pa.Table) -> list[NewFile]:
    return [write_file(store, NAMES, rows.slice(start, FILE_ROWS)) for start in range(0, len(rows), FILE_ROWS)]


def read_names(snapshot: Snapshot | None) -> Names:
    """The names of a version. Cost: linear in them, and a sort."""
    tables = list(read_tables(snapshot.files(NAMES))) if snapshot is not None else []
    rows = pa.concat_tables([SCHEMAS[NAMES].empty_table(), *tables])
    return Names.of_pairs(Arrays(), *(rows.column(c).to_numpy().astype(U64) for c in ("name", "representative")))
