"""From a snapshot's files to relations and terms.

Contract: every file that is read is checked against the checksum in its name; one that is damaged is named in the error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from evergraph.engines.arrays import Array, Arrays, Words
from evergraph.engines.changes import Held
from evergraph.engines.relation import Relation, Run
from evergraph.plan.model import Key
from evergraph.store.layout import DICTIONARY, FACTS, RELATIONS, is_whole, read_named, read_triples
from evergraph.store.log import Snapshot, StoredFile, damaged

Parts = dict[tuple[Key, int], list[tuple[Words, Array]]]
"""Packed rows and their explicitness, by key and arity."""


def read_table(path: Path) -> pa.Table:
    """One data file, every byte of it checked."""
    try:
        data = path.read_bytes()
        if not is_whole(path, data):
            raise ValueError("its checksum is another")
        return pq.ParquetFile(pa.BufferReader(data)).read()
    except (OSError, ValueError, pa.ArrowException) as error:
        raise damaged(path, error) from error


def read_tables(files: Iterable[StoredFile]) -> Iterator[pa.Table]:
    """Files in their order, read in threads."""
    with ThreadPoolExecutor(max_workers=4) as pool:
        yield from pool.map(lambda file: read_table(file.path), files)


def read_facts(snapshot: Snapshot, shard: int | None = None) -> Held:
    """All facts of a snapshot, or of one of its shards. Cost: linear; rows come sorted, or in bands that are."""
    return held(parts_of(*(_files(snapshot, name, shard) for name in (FACTS, RELATIONS))))


def _files(snapshot: Snapshot, name: str, shard: int | None) -> list[StoredFile]:
    return [file for file in snapshot.files(name) if shard is None or file.shard == shard]


def parts_of(triples: Iterable[StoredFile], named: Iterable[StoredFile]) -> Parts:
    """What stands in these files, in pieces."""
    arrays, parts = Arrays(), Parts()
    for table in read_tables(triples):
        for predicate, words, explicit in read_triples(table):
            parts.setdefault((predicate, 2), []).append(((words,), explicit))
    for table in read_tables(named):
        for name, columns, explicit in read_named(table):
            packed = arrays.pack(columns, len(explicit))
            parts.setdefault((name, len(columns)), []).append((packed, explicit))
    return parts


def held(parts: Parts) -> Held:
    """Pieces as relations."""
    arrays = Arrays()
    everything: dict[Key, Relation] = {}
    explicit: dict[Key, Relation] = {}
    for (key, arity), pieces in parts.items():
        everything[key] = Relation(Run(arrays, arity, arrays.unique([words for words, _ in pieces])))
        chosen = [tuple(w[mask] for w in words) for words, mask in pieces if mask.any()]
        if not chosen:
            continue
        if all(mask.all() for _, mask in pieces):
            explicit[key] = everything[key]
        else:
            explicit[key] = Relation(Run(arrays, arity, arrays.unique(chosen)))
    return Held(everything, explicit)


def read_terms(snapshot: Snapshot) -> pa.ChunkedArray:
    """The dictionary: the term with id n at place n."""
    tables = list(read_tables(snapshot.files(DICTIONARY)))
    chunks = [chunk.cast(pa.large_string()) for table in tables for chunk in table.column("term").chunks]
    for file, table in zip(snapshot.files(DICTIONARY), tables, strict=True):
        ids = table.column("id").to_numpy()
        if len(ids) and not np.array_equal(ids, np.arange(file.low, file.low + len(ids))):
            raise damaged(file.path, ValueError("ids with gaps"))
    return pa.chunked_array(chunks, pa.large_string())
