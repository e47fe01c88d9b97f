"""A dictionary that stays in its files: for stores whose terms need not fit into the driver.

Only terms that the driver itself meets, in rules and small updates, are kept in memory. Looking one up for the first time
scans the files; the kernel and the shards never look anything up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from evergraph.store.layout import DICTIONARY, NewFile
from evergraph.store.log import Snapshot, damaged
from evergraph.terms import Dictionary, Ids, adding


class FileDictionary(Dictionary):
    def __init__(self, files: Iterable[tuple[Path, int, int]] = (), scopes: int = 0) -> None:
        """`files` are paths with their first id and number of terms, in the order of ids."""
        super().__init__(scopes=scopes)
        self._files = list(files)
        self._filed = sum(rows for _, _, rows in self._files)
        self._known_ids: dict[str, int] = {}

    @classmethod
    def of(cls, snapshot: Snapshot) -> FileDictionary:
        files = [(file.path, file.low, file.rows) for file in snapshot.files(DICTIONARY)]
        return cls(files, snapshot.info.scopes)

    @property
    def files(self) -> list[Path]:
        return [path for path, _, _ in self._files]

    @property
    def given(self) -> list[str]:
        """The terms that are in no file yet."""
        return self._new

    def add_files(self, folder: Path, files: Sequence[NewFile], first: int) -> None:
        """Files whose ids start at `first`: what was given is in them now."""
        with adding:
            for file in files:
                self._files.append((folder / file.path, first, file.rows))
                first += file.rows
            self._filed, self._new = first, []

    def __len__(self) -> int:
        with adding:
            return self._filed + len(self._new)

    def _now(self) -> tuple[list[tuple[Path, int, int]], int, list[str]]:
        """The files, how many terms they have, and those that are in none: others may be filing them."""
        with adding:
            return list(self._files), self._filed, self._new

    def encode(self, terms: Sequence[str]) -> Ids:
        """Cost: a scan of the files if a term has not been met before."""
        self._look_up(terms)
        with adding:
            new = [term for term in dict.fromkeys(terms) if term not in self._known_ids]
            first = len(self)
            self._new.extend(new)  # before anyone finds their ids
            self._known_ids.update(zip(new, count(first)))
        return np.array([self._known_ids[term] for term in terms], np.uint64)

    def find(self, term: str) -> int | None:
        self._look_up([term])
        return self._known_ids.get(term)

    def _look_up(self, terms: Sequence[str]) -> None:
        asked = [term for term in dict.fromkeys(terms) if term not in self._known_ids]
        if not asked:
            return
        wanted = pa.array(asked, pa.string())
        for path, first, _ in self._files:
            for start, chunk in _chunks(path):
                for row in pc.indices_nonzero(pc.is_in(chunk, wanted)).to_pylist():
                    self._known_ids[chunk[row].as_py()] = first + start + row

    def term(self, number: int) -> str:
        return str(self.decode(np.array([number], np.uint64))[0].as_py())

    def since(self, number: int) -> pa.Array:
        files, filed, new = self._now()
        parts = [pa.array(new[max(0, number - filed) :], pa.large_string())]
        for path, first, rows in reversed(files):
            if first + rows > number:
                chunks = [chunk for _, chunk in _chunks(path)]
                parts.append(pa.concat_arrays(chunks).slice(max(0, number - first)).cast(pa.large_string()))
        return pa.concat_arrays(parts[::-1])

    def decode(self, ids: Ids) -> pa.Array:
        """Cost: the row groups that hold one of the ids."""
        wanted, place = np.unique(ids, return_inverse=True)
        files, filed, new = self._now()
        parts = [pa.array([], pa.large_string())]
        for path, first, rows in files:
            mine = wanted[(wanted >= first) & (wanted < first + rows)].astype(np.int64) - first
            if len(mine):
                parts += [part.cast(pa.large_string()) for part in _take(path, mine)]
        late = wanted[wanted >= filed]
        parts.append(pa.array([new[int(i) - filed] for i in late], pa.large_string()))
        return pa.concat_arrays(parts).take(pa.array(place))


def _chunks(path: Path) -> Iterator[tuple[int, pa.Array]]:
    """The terms of a file, a row group at a time, with the place of the first of them."""
    start = 0
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            for group in range(file.num_row_groups):
                chunk = pa.concat_arrays(file.read_row_group(group, ["term"]).column("term").chunks)
                yield start, chunk
                start += len(chunk)
    except (OSError, ValueError, KeyError, pa.ArrowException) as error:
        raise damaged(path, error) from error


def _take(path: Path, places: np.ndarray) -> Iterator[pa.Array]:
    """The terms at some places of a file, in order."""
    start = 0
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            for group in range(file.num_row_groups):
                rows = file.metadata.row_group(group).num_rows
                mine = places[(places >= start) & (places < start + rows)] - start
                if len(mine):
                    yield pa.concat_arrays(file.read_row_group(group, ["term"]).column("term").chunks).take(pa.array(mine))
                start += rows
    except (OSError, ValueError, KeyError, pa.ArrowException) as error:
        raise damaged(path, error) from error
