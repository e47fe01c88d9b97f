"""Encode: blocks to facts as ids, and new terms to the dictionary's files, in Spark's workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from evergraph.engines.arrays import U64, Arrays
from evergraph.engines.relation import Run, run_of
from evergraph.engines.spark.jobs import Work
from evergraph.engines.spark.mail import DDL, Kind, Letter, letter, to_table
from evergraph.engines.spark.placement import Placement
from evergraph.pipeline.blocks import read_places, read_terms
from evergraph.pipeline.number import Numbers
from evergraph.plan.model import Key
from evergraph.store.layout import DICTIONARY, SCHEMAS, TERMS_PER_FILE, write_file

Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class Task:
    """What the workers need to know: where blocks and numbers are, and which facts the driver wants to see."""

    folder: Path
    blocks: tuple[int, ...]
    """Blocks of each piece."""
    parts: int
    base: int
    placement: Placement
    named: frozenset[int]
    """Classes that rules name."""


def encoding(task: Task) -> Work:
    """The work on each piece: write its facts, say what it holds and show what every shard must hold."""

    def work(piece: int) -> Any:
        return _encode_piece(task, Numbers(task.folder, task.parts, task.base), piece)

    return work


def _encode_piece(task: Task, numbers: Numbers, piece: int) -> dict[str, Any]:
    columns: list[np.ndarray] = []
    new = []
    for block in range(task.blocks[piece]):
        path = task.folder / f"{piece}-{block}"
        terms, start = read_terms(path)
        ids, fresh = numbers.ids(start, len(terms))
        np.save(f"{path}.new", fresh)
        new.append(len(fresh))
        columns.append(ids[read_places(path)])
    arrays = Arrays()
    runs = _by_predicate(arrays, np.concatenate(columns, axis=1)) if columns else {}
    counts: list[tuple[int, int]] = []
    common: list[tuple[int, list[int]]] = []
    classes: set[int] = set()
    with (task.folder / f"{piece}.facts").open("wb") as out:
        for key, run in runs.items():
            counts.append((key, len(run)))
            run.words[0].tofile(out)
            common.append((key, _common(task.placement, arrays, key, run)))
            if key == task.placement.type_id and task.named:
                classes.update(task.named.intersection(run.distinct(1).tolist()))
    return {"new": new, "counts": counts, "common": [c for c in common if c[1]], "classes": sorted(classes)}


def _by_predicate(arrays: Arrays, triples: np.ndarray) -> dict[int, Run]:
    """Sorted pairs of each predicate."""
    subject, predicate, value = triples
    values = arrays.distinct(predicate)
    rank = arrays.module.rank(values, predicate)
    order = arrays.module.stable_order(rank)
    edges = [0, *np.cumsum(np.bincount(rank, minlength=len(values))).tolist()]
    found = {}
    for place, key in enumerate(values.tolist()):
        rows = order[edges[place] : edges[place + 1]]
        found[key] = run_of(arrays, [subject[rows], value[rows]], 0)
    return found


def _common(placement: Placement, arrays: Arrays, key: Key, run: Run) -> list[int]:
    """The rows that every shard holds."""
    mask = placement.common(arrays, key, run.words)
    if isinstance(mask, bool):
        return run.words[0].tolist() if mask else []
    found: list[int] = run.words[0][mask].tolist()
    return found


@dataclass(frozen=True, slots=True)
class Encoded:
    """Facts in files, as the driver knows them; what the Spark engine takes in place of facts of its own."""

    folder: Path
    pieces: tuple[tuple[tuple[int, int], ...], ...]
    """For each piece, its predicates with the number of their facts, in the order of the file."""
    common: dict[Key, Run]
    classes: frozenset[int]

    @property
    def counts(self) -> dict[Key, int]:
        """Facts by predicate; one that stands in two pieces counts twice."""
        found: dict[Key, int] = {}
        for piece in self.pieces:
            for key, count in piece:
                found[key] = found.get(key, 0) + count
        return found

    def letters(self, session: Any, placement: Placement, labels: Sequence[int]) -> Any:
        """A frame of letters to the homes of all facts."""
        count = len(self.pieces)
        run = _scatter(self.folder, self.pieces, placement, tuple(labels))
        return session.range(0, count, 1, count).mapInArrow(run, DDL)


def _scatter(
    folder: Path, pieces: Sequence[Sequence[tuple[int, int]]], placement: Placement, labels: tuple[int, ...]
) -> Callable[[Batches], Batches]:
    def run(batches: Batches) -> Batches:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                words, start = np.fromfile(folder / f"{number}.facts", np.uint64), 0
                for key, count in pieces[number]:
                    yield from to_table(_letters(placement, labels, key, words[start : start + count])).to_batches()
                    start += count

    return run


def _letters(placement: Placement, labels: tuple[int, ...], key: int, words: np.ndarray) -> Iterator[Letter]:
    """Explicit at the owner, a copy at the other homes."""
    arrays = Arrays()
    owner = placement.owner(arrays, 2, (words,))
    for shard, home in enumerate(placement.homes(arrays, key, 2, (words,))):
        mine = owner == U64(shard)
        for chosen, kind in ((mine, Kind.EXPLICIT), (home & ~mine, Kind.DERIVED)):
            if chosen.any():
                yield letter(labels[shard], kind, key, 2, (words[chosen],))


def writing_terms(folder: Path, store: Path, new: Sequence[tuple[int, int, int]], first: int, given: Sequence[str]) -> Work:
    """The work on each dictionary file, the first of which starts at id `first`.

    `given` are the driver's terms, which come first; `new` says for each block (piece, block, ids before it).
    """

    def work(number: int) -> Any:
        low = first + number * TERMS_PER_FILE
        high = low + TERMS_PER_FILE
        parts = [pa.array(given[low - first : high - first], pa.string())]
        for piece, block, before in new:
            path = folder / f"{piece}-{block}"
            if before >= high:
                break
            fresh = np.load(f"{path}.new.npy", mmap_mode="r")
            if before + len(fresh) > low:
                parts.append(read_terms(path)[0].take(pa.array(fresh[max(0, low - before) : high - before])))
        terms = pa.concat_arrays(parts)
        ids = pa.array(np.arange(low, low + len(terms)), pa.int64())
        return asdict(write_file(store, DICTIONARY, pa.table([ids, terms], schema=SCHEMAS[DICTIONARY])))

    return work
