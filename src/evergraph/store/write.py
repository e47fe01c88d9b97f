"""From changes of facts to files: new files for rows to put, and new versions of the files that hold rows to drop.

Contract: nothing here is seen by anyone before it is committed (`log.commit`), and no file is written twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from evergraph.engines.arrays import U64, Arrays, Words
from evergraph.engines.changes import Changed, Held, changes
from evergraph.engines.shard import shard_of
from evergraph.plan.model import Key
from evergraph.store.layout import FACTS, RELATIONS, NewFile, read_named, read_triples, write_file, write_shard
from evergraph.store.log import StoredFile
from evergraph.store.read import held, parts_of, read_table

Mask = npt.NDArray[np.bool_]


def by_shard(changed: Iterable[Changed], shards: int) -> list[list[Changed]]:
    """The changes of each shard. Cost: linear in the rows, times the shards."""
    arrays = Arrays()
    out: list[list[Changed]] = [[] for _ in range(shards)]
    for one in changed:
        put, drop = (_owners(arrays, one.arity, words, shards) for words in (one.put, one.drop))
        for number in range(shards):
            mine, gone = put == U64(number), drop == U64(number)
            if mine.any() or gone.any():
                rows, less = tuple(w[mine] for w in one.put), tuple(w[gone] for w in one.drop)
                out[number].append(Changed(one.key, one.arity, rows, one.explicit[mine], less))
    return out


def _owners(arrays: Arrays, arity: int, words: Words, shards: int) -> npt.NDArray[np.uint64]:
    found: npt.NDArray[np.uint64]
    found = shard_of(arrays.column(words, 0), shards) if arity else np.zeros(len(words[0]), U64)
    return found


def write_changes(
    store: Path, shard: int, files: Sequence[StoredFile], changed: Sequence[Changed]
) -> tuple[list[NewFile], list[StoredFile]]:
    """Files to add and to remove for the changes of one shard, whose files these are."""
    added = write_shard(store, shard, changed)
    drop = {one.key: one for one in changed if len(one.drop[0])}
    removed = []
    for file in files:
        table = FACTS if file.path.is_relative_to(store / FACTS) else RELATIONS
        if not _concerns(table, file, drop):
            continue
        rows = read_table(file.path)
        keep = _keep(table, rows, drop)
        if keep.all():
            continue
        removed.append(file)
        if keep.any():
            added.append(write_file(store, table, rows.filter(pa.array(keep)), shard))
    return added, removed


def _concerns(table: str, file: StoredFile, drop: dict[Key, Changed]) -> bool:
    """Whether the file can hold a row to drop, as far as its statistics tell."""
    if table == FACTS:
        return any(isinstance(key, int) and file.low <= key <= file.high for key in drop)
    return any(isinstance(key, str) for key in drop)


def _keep(table: str, rows: pa.Table, drop: dict[Key, Changed]) -> Mask:
    arrays = Arrays()
    keep = np.ones(rows.num_rows, bool)
    if table == FACTS:
        start = 0
        for predicate, words, _ in read_triples(rows):
            if predicate in drop:
                keep[start : start + len(words)] = ~arrays.contains(drop[predicate].drop, (words,))
            start += len(words)
        return keep
    names = rows.column("relation")
    for name, columns, explicit in read_named(rows):
        if name in drop:
            keep[pc.equal(names, name).to_numpy()] = ~arrays.contains(drop[name].drop, arrays.pack(columns, len(explicit)))
    return keep


def merge_small(store: Path, shard: int, files: Sequence[StoredFile], below: int) -> tuple[list[NewFile], list[StoredFile]]:
    """One shard's files of fewer than so many rows as few, in order again."""
    small = [file for file in files if file.rows < below]
    triples = [file for file in small if file.path.is_relative_to(store / FACTS)]
    named = [file for file in small if not file.path.is_relative_to(store / FACTS)]
    chosen = [group for group in (triples, named) if len(group) > 1]
    if not chosen:
        return [], []
    together: list[StoredFile] = [file for group in chosen for file in group]
    facts = held(parts_of(*([f for f in group if f in together] for group in (triples, named))))
    return write_shard(store, shard, changes(Held(), facts)), together
