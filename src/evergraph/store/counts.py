"""Ranks and counts of derived facts, where the graph keeps them (`engines.marks`), in the table `counts`.

    version, relation, arguments, rank, count        what a version of the store said of a fact; the last word holds

A version adds the rows that it changed, in a file of its own, and takes none away: what was said of a fact that has gone is not
read. Counts made anew, or kept no longer, take all files with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from evergraph.engines.arrays import U64, Array, Arrays, Words
from evergraph.engines.marks import Counted, count_of, mark, rank_of
from evergraph.plan.model import Key
from evergraph.store.layout import COUNTS, FILE_ROWS, SCHEMAS, NewFile, arguments_of, write_file
from evergraph.store.log import StoredFile
from evergraph.store.read import read_tables


def write_counts(store: Path, version: int, rows: Iterable[Counted]) -> list[NewFile]:
    """New files for these rows. Cost: linear."""
    tables = [_table(version, one) for one in rows if len(one.values)]
    if not tables:
        return []
    everything = pa.concat_tables(tables)
    starts = range(0, everything.num_rows, FILE_ROWS)
    return [write_file(store, COUNTS, everything.slice(start, FILE_ROWS)) for start in starts]


def read_counts(files: Sequence[StoredFile]) -> dict[Key, Counted]:
    """The last word on each fact. Cost: linear, and a sort."""
    arrays = Arrays()
    parts: dict[tuple[Key, int], list[tuple[Words, Array, Array]]] = {}
    for table in read_tables(files):
        for name, rows in _by_relation(table):
            arguments = rows.column("arguments").combine_chunks()
            flat = arguments.flatten().to_numpy().astype(U64).reshape(len(rows), -1)
            words = arrays.pack([np.ascontiguousarray(flat[:, i]) for i in range(flat.shape[1])], len(rows))
            version, rank, count = (rows.column(c).to_numpy().astype(U64) for c in ("version", "rank", "count"))
            key: Key = int(name) if name.isdigit() else name
            parts.setdefault((key, flat.shape[1]), []).append((words, version, mark(rank, count)))
    return {key: _last_word(arrays, key, arity, pieces) for (key, arity), pieces in parts.items()}


def merge_counts(store: Path, version: int, files: Sequence[StoredFile]) -> list[NewFile]:
    """All files as few, with one row a fact."""
    return write_counts(store, version, read_counts(files).values())


def _table(version: int, one: Counted) -> pa.Table:
    count, arguments = len(one.values), arguments_of(one.words, one.arity)
    said = [pa.array(part(one.values).astype(np.int64)) for part in (rank_of, count_of)]
    return pa.table([pa.repeat(version, count), pa.repeat(str(one.key), count), arguments, *said], schema=SCHEMAS[COUNTS])


def _by_relation(table: pa.Table) -> Iterable[tuple[str, pa.Table]]:
    names = table.column("relation").combine_chunks().dictionary_encode()
    codes = names.indices.to_numpy()
    return [(name, table.filter(pa.array(codes == code))) for code, name in enumerate(names.dictionary.to_pylist())]


def _last_word(arrays: Arrays, key: Key, arity: int, pieces: Sequence[tuple[Words, Array, Array]]) -> Counted:
    words = tuple(np.concatenate(w) for w in zip(*(words for words, _, _ in pieces), strict=True))
    versions, values = (np.concatenate([piece[i] for piece in pieces]) for i in (1, 2))
    order = np.lexsort((versions, *words[::-1]))
    rows, starts = arrays.groups(tuple(w[order] for w in words))
    last = np.append(starts[1:], len(order)) - 1
    return Counted(key, arity, rows, values[order][last])
