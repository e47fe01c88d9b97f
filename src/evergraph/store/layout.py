"""How a store lies on disk: six Delta tables of Parquet files, and how facts are arranged in them.

    facts       subject, predicate, object, explicit; by shard       triples
    relations   relation, arguments, explicit; by shard              facts of named relations
    dictionary  id, term                                             ids in order, terms in N-Triples syntax
    rules       number, name, origin, rule                           the program, a rule a row
    counts      version, relation, arguments, rank, count            of derived facts, where `counting` keeps them
    names       name, representative                                 where one name stands for all that are the same

A fact belongs to the shard of its first argument. Inside a shard triples are ordered by predicate, and those of a large
predicate by a grid: objects are cut into about as many bands as a band has row groups, and a band is in the order of
subjects. A look-up by predicate and subject, or by predicate and object, then touches about the square root of the
predicate's row groups, with one copy of the facts.
Trap: the same facts give the same bytes, whichever engine writes them; nothing here may depend on anything else.
"""

from __future__ import annotations

import json
import uuid
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import isqrt
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from evergraph.engines.arrays import LOW, SHIFT, U64, Arrays, Words
from evergraph.engines.changes import Changed

FORMAT = 4
"""Stores of a higher format are refused, with a line that says so."""
SHARDS = 4
ROW_GROUP = 1 << 16
FILE_ROWS = 1 << 19
"""An update that drops facts rewrites the files they are in: small files make that cheap, large ones reading."""
TERMS_PER_FILE = 1 << 20

FACTS, RELATIONS, DICTIONARY, RULES, COUNTS = "facts", "relations", "dictionary", "rules", "counts"
NAMES = "names"
SCHEMAS = {
    FACTS: pa.schema([("subject", pa.int64()), ("predicate", pa.int64()), ("object", pa.int64()), ("explicit", pa.bool_())]),
    RELATIONS: pa.schema([("relation", pa.string()), ("arguments", pa.list_(pa.int64())), ("explicit", pa.bool_())]),
    DICTIONARY: pa.schema([("id", pa.int64()), ("term", pa.string())]),
    RULES: pa.schema([("number", pa.int64()), ("name", pa.string()), ("origin", pa.string()), ("rule", pa.string())]),
    COUNTS: pa.schema(
        [
            ("version", pa.int64()),
            ("relation", pa.string()),
            ("arguments", pa.list_(pa.int64())),
            ("rank", pa.int64()),
            ("count", pa.int64()),
        ]
    ),
    NAMES: pa.schema([("name", pa.int64()), ("representative", pa.int64())]),
}
"""What stands in the files. The tables of facts have one more column, `shard`, which stands in their folders' names."""
BY_SHARD = (FACTS, RELATIONS)
COMMON: dict[str, Any] = {"compression": "zstd", "write_page_checksum": True, "store_schema": False}
WRITING: dict[str, dict[str, Any]] = {
    FACTS: {
        "use_dictionary": ["predicate"],
        "column_encoding": {"subject": "DELTA_BINARY_PACKED", "object": "DELTA_BINARY_PACKED"},
    },
    RELATIONS: {"use_dictionary": ["relation"]},
    DICTIONARY: {
        "use_dictionary": False,
        "column_encoding": {"id": "DELTA_BINARY_PACKED", "term": "DELTA_BYTE_ARRAY"},
    },
    RULES: {},
    COUNTS: {"use_dictionary": ["version", "relation"]},
    NAMES: {"use_dictionary": False},
}
"""Measured on LUBM(10): 0.7 bytes a fact and 1.1 a term, written at 23 M and read at 130 M facts a second and core."""


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file that is written and not yet committed."""

    table: str
    path: str
    """Relative to the folder of the table."""
    size: int
    rows: int
    shard: int | None
    stats: str


def write_file(store: Path, table: str, rows: pa.Table, shard: int | None = None) -> NewFile:
    """One Parquet file, under a name of its own that ends in the checksum of all its bytes."""
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, row_group_size=ROW_GROUP, **COMMON, **WRITING[table])
    data = sink.getvalue()
    folder = "" if shard is None else f"shard={shard}/"
    path = f"{folder}part-{uuid.uuid4().hex}-{zlib.crc32(data):08x}.parquet"
    target = store / table / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)
    return NewFile(table, path, len(data), rows.num_rows, shard, _stats(rows))


def is_whole(path: Path, data: bytes) -> bool:
    """Whether these are the bytes that a file was written with."""
    return path.stem.rpartition("-")[2] == f"{zlib.crc32(data):08x}"


def write_shard(store: Path, shard: int, changed: Iterable[Changed]) -> list[NewFile]:
    """The rows to put at one shard, in files of `FILE_ROWS`. Cost: a linear sort of the relations that need a grid."""
    made: list[NewFile] = []
    waiting: list[pa.Table] = []
    named: list[pa.Table] = []
    for one in changed:
        if not len(one.put[0]):
            continue
        if isinstance(one.key, str):
            named.append(_named(one))
            continue
        waiting.append(_triples(one.key, one.put[0], one.explicit))
        while sum(t.num_rows for t in waiting) >= FILE_ROWS:
            rows = pa.concat_tables(waiting)
            made.append(write_file(store, FACTS, rows.slice(0, FILE_ROWS), shard))
            waiting = [rows.slice(FILE_ROWS)]
    if any(t.num_rows for t in waiting):
        made.append(write_file(store, FACTS, pa.concat_tables(waiting), shard))
    if named:
        made.append(write_file(store, RELATIONS, pa.concat_tables(named), shard))
    return made


def write_terms(store: Path, terms: pa.Array | pa.ChunkedArray, first: int) -> list[NewFile]:
    """New terms, whose ids start at `first`."""
    made = []
    for start in range(0, len(terms), TERMS_PER_FILE):
        part = terms.slice(start, TERMS_PER_FILE)
        ids = pa.array(np.arange(first + start, first + start + len(part)), pa.int64())
        made.append(write_file(store, DICTIONARY, pa.table([ids, part.cast(pa.string())], schema=SCHEMAS[DICTIONARY])))
    return made


def arrange(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64] | None:
    """The order in which sorted pairs are stored; None: as they are."""
    bands = isqrt(len(words) // ROW_GROUP)
    if bands < 2:
        return None
    objects = words & LOW
    cuts = np.unique(np.sort(objects)[[len(words) * i // bands for i in range(1, bands)]])
    return np.argsort(np.searchsorted(cuts, objects, "right").astype(np.uint16), kind="stable")


def _triples(predicate: int, words: npt.NDArray[np.uint64], explicit: npt.NDArray[np.bool_]) -> pa.Table:
    order = arrange(words)
    if order is not None:
        words, explicit = words[order], explicit[order]
    subject, value = (words >> SHIFT).view(np.int64), (words & LOW).view(np.int64)
    return pa.table([subject, np.full(len(words), predicate), value, explicit], schema=SCHEMAS[FACTS])


def _named(one: Changed) -> pa.Table:
    columns = [pa.repeat(one.key, len(one.put[0])), arguments_of(one.put, one.arity), one.explicit]
    return pa.table(columns, schema=SCHEMAS[RELATIONS])


def arguments_of(rows: Words, arity: int) -> pa.ListArray:
    """Packed rows as lists of ids."""
    columns = [Arrays().column(rows, i).astype(np.int64) for i in range(arity)]
    flat = np.stack(columns, axis=1).ravel() if columns else np.zeros(0, np.int64)
    return pa.ListArray.from_arrays(pa.array(np.arange(len(rows[0]) + 1, dtype=np.int32) * arity), pa.array(flat))


def read_triples(table: pa.Table) -> Iterator[tuple[int, npt.NDArray[np.uint64], npt.NDArray[np.bool_]]]:
    """Predicate, packed pairs and explicitness of each stretch of one predicate, in the order of the file."""
    subject, predicate, value = (table.column(i).to_numpy() for i in range(3))
    explicit = table.column(3).to_numpy()
    words = subject.view(U64) << SHIFT | value.view(U64)
    edges = [0, *(np.flatnonzero(predicate[1:] != predicate[:-1]) + 1).tolist(), len(predicate)]
    for start, stop in pairwise(edges):
        if start < stop:
            yield int(predicate[start]), words[start:stop], explicit[start:stop]


def read_named(table: pa.Table) -> Iterator[tuple[str, list[npt.NDArray[np.uint64]], npt.NDArray[np.bool_]]]:
    """Name, columns and explicitness of each relation's facts."""
    names = table.column("relation").combine_chunks().dictionary_encode()
    names = names if isinstance(names, pa.DictionaryArray) else names.combine_chunks()
    codes = names.indices.to_numpy()
    for code, name in enumerate(names.dictionary.to_pylist()):
        rows = table.filter(pa.array(codes == code))
        arguments = rows.column("arguments").combine_chunks()
        arguments = arguments if isinstance(arguments, pa.ListArray) else arguments.combine_chunks()
        flat = arguments.flatten().to_numpy().astype(U64).reshape(len(rows), -1)
        yield name, [np.ascontiguousarray(flat[:, i]) for i in range(flat.shape[1])], rows.column("explicit").to_numpy()


def _stats(rows: pa.Table) -> str:
    """What Delta's readers skip files by."""
    low: dict[str, int] = {}
    high: dict[str, int] = {}
    for name in ("subject", "predicate", "object", "id", "number", "name"):
        if name in rows.column_names and rows.num_rows and pa.types.is_integer(rows.schema.field(name).type):
            found = pc.min_max(rows.column(name))
            low[name], high[name] = found["min"].as_py(), found["max"].as_py()
    return json.dumps({"numRecords": rows.num_rows, "minValues": low, "maxValues": high, "nullCount": dict.fromkeys(low, 0)})
