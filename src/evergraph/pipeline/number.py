"""Number: distinct terms to dense ids, in order of first sight (the paper's "compression", second half).

    first(term) = the lowest position of the term;    id(term) = its rank among all firsts, after the ids already given

In words: Spark brings all positions of a term to one task. The task finds the first of them and writes two sorted files:
for each position the first one of its term, and the firsts. A term that has an id already comes with the id for a position,
which orders before all others and so is the first. The id of a new term is then the number of firsts before its own, over
the files of all tasks. Strings are moved once; everything after is searches in sorted arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from evergraph.pipeline.blocks import KNOWN_BELOW, read_terms
from evergraph.store.read import read_table

FEW_BLOCKS = 16
TERMS = "term string, position long"
COUNTED = "part int, new long"
Positions = npt.NDArray[np.int64]
Batches = Iterator[pa.RecordBatch]


def telling(folder: Path, blocks: Sequence[int]) -> Callable[[Batches], Batches]:
    """The function that Spark runs over the numbers of pieces: rows (term, position) of their blocks."""

    def run(batches: Batches) -> Batches:
        for batch in batches:
            for piece in batch.column(0).to_pylist():
                for block in range(blocks[piece]):
                    terms, start = read_terms(folder / f"{piece}-{block}")
                    yield pa.record_batch([terms, pa.array(start + np.arange(len(terms)))], names=["term", "position"])

    return run


def recalling(files: Sequence[Path], folder: Path, blocks: Sequence[int]) -> Callable[[Batches], Batches]:
    """The function that Spark runs over the numbers of dictionary files: rows (term, id).

    Where few terms were read, only stored terms that are among them go out: the shuffle then follows what was read.
    """

    def run(batches: Batches) -> Batches:
        read = [f"{piece}-{block}" for piece, count in enumerate(blocks) for block in range(count)]
        wanted = pa.concat_arrays([read_terms(folder / name)[0] for name in read]) if len(read) <= FEW_BLOCKS else None
        for batch in batches:
            for number in batch.column(0).to_pylist():
                stored = read_table(files[number]).select(["term", "id"]).rename_columns(["term", "position"])
                if wanted is not None:
                    stored = stored.filter(pc.is_in(stored.column("term"), wanted))
                yield from stored.to_batches()

    return run


def linking(folder: Path) -> Callable[[Batches], Batches]:
    """The function that Spark runs over rows (term, position), all rows of a term in one partition."""

    def run(batches: Batches) -> Batches:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        part = context.partitionId()
        table = pa.Table.from_batches(batches, pa.schema([("term", pa.string()), ("position", pa.int64())]))
        new = write_links(folder, part, table)
        yield pa.record_batch([pa.array([part], pa.int32()), pa.array([new], pa.int64())], names=["part", "new"])

    return run


def write_links(folder: Path, part: int, table: pa.Table) -> int:
    """Write the links of one partition; returns its number of new terms."""
    position = table.column("position").to_numpy()
    order = np.argsort(position)
    position = position[order]
    terms = table.column("term").combine_chunks() if table.num_rows else pa.array([], pa.string())
    term = terms.dictionary_encode().indices.to_numpy()[order]
    first = np.zeros(int(term.max()) + 1 if len(term) else 0, np.int64)
    first[term[::-1]] = position[::-1]
    firsts = first[term]
    read = position >= KNOWN_BELOW
    _save(folder / f"links-{part}", np.stack([position[read], firsts[read]]))
    new = position[read & (firsts == position)]
    _save(folder / f"firsts-{part}", new)
    return len(new)


def _save(path: Path, array: Positions) -> None:
    """A task may run twice: the file appears whole."""
    part = path.with_suffix(f".{np.random.default_rng().integers(1 << 60)}.part.npy")
    np.save(part, array)
    part.replace(path.with_suffix(".npy"))


class Numbers:
    """Ids by position, from the files of all tasks."""

    def __init__(self, folder: Path, parts: int, base: int) -> None:
        self._links = [np.load(folder / f"links-{n}.npy", mmap_mode="r") for n in range(parts)]
        self._firsts = [np.load(folder / f"firsts-{n}.npy", mmap_mode="r") for n in range(parts)]
        self._base = base

    def ids(self, start: int, count: int) -> tuple[npt.NDArray[np.uint64], Positions]:
        """Ids of so many positions from `start` on, and which places among them are new terms.

        Cost: a search per position and part.
        """
        first = np.empty(count, np.int64)
        for links in self._links:
            low, high = np.searchsorted(links[0], [start, start + count])
            first[links[0][low:high] - start] = links[1][low:high]
        ids = np.where(first < KNOWN_BELOW, first, self._base)
        order = np.argsort(first)
        ordered = first[order]
        begin = int(np.searchsorted(ordered, KNOWN_BELOW))
        for firsts in self._firsts:
            ids[order[begin:]] += np.searchsorted(firsts, ordered[begin:])
        return ids.astype(np.uint64), np.flatnonzero(first == start + np.arange(count))
