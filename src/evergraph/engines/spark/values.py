"""The values of literals, where workers can look them up: rows and terms in files that only ever grow.

The driver appends what is new since the last time; a worker maps the files when, and only when, a rule compares something.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa

from evergraph.terms import Dictionary, Ids
from evergraph.values import ROW, Values


@dataclass(frozen=True, slots=True)
class StoredValues:
    """Answers comparisons of terms from files."""

    folder: Path
    count: int
    chunks: tuple[int, ...]
    """The first id of each file of terms."""

    def compare(self, operator: str, left: Ids, right: Ids) -> np.ndarray:
        return _open(self.folder, self.count, self.chunks).compare(operator, left, right)


class ValueFiles:
    """The driver's side: appends new rows and terms."""

    def __init__(self, values: Values, folder: Path) -> None:
        self.values, self.folder = values, folder
        self._stored = StoredValues(folder, 0, ())

    def save(self) -> StoredValues:
        """Bring the files up to date. Cost: the terms that are new."""
        rows, terms = self.values.rows_since(self._stored.count)
        if len(rows):
            self.folder.mkdir(exist_ok=True)
            start = self._stored.count
            with (self.folder / "rows").open("ab") as out:
                rows.tofile(out)
            with pa.OSFile(str(self.folder / f"terms-{start}"), "wb") as sink:
                table = pa.table({"term": terms})
                with pa.ipc.new_file(sink, table.schema) as writer:
                    writer.write_table(table)
            self._stored = StoredValues(self.folder, start + len(rows), (*self._stored.chunks, start))
        return self._stored


@lru_cache(maxsize=1)
def _open(folder: Path, count: int, chunks: tuple[int, ...]) -> Values:
    tables = [pa.ipc.open_file(pa.memory_map(str(folder / f"terms-{start}"))).read_all() for start in chunks]
    strings = pa.concat_tables(tables).column("term")
    return Values.over(Dictionary(strings), np.memmap(folder / "rows", ROW, mode="r", shape=(count,)))
