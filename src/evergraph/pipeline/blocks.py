"""Parse: pieces of files to blocks, in Spark's workers (the paper's "compression", first half; Urbani et al. 2013, §3).

A block is a few megabytes of lines. Its triples are written as places in the block's own list of distinct terms, in the
order of first sight. A position orders all terms that were read as one reader of all files would have met them:

    position = (file + 1) · 2⁴⁴ + block · 2²⁴ + place in the block        an id, which is below 2³², orders before all
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evergraph.engines.spark.jobs import Work
from evergraph.formats import Piece, read_piece
from evergraph.formats.ntriples import BadLine

FILE_BITS, BLOCK_BITS = 44, 24
KNOWN_BELOW = 1 << 32


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a task says of its piece."""

    blocks: int
    lines: int
    triples: int
    bad: list[BadLine]


def parsing(pieces: Sequence[Piece], folder: Path, skip_bad: bool) -> Work:
    """The work on each piece: write its blocks. A bad line that is not skipped ends the reading of its piece."""

    def work(number: int) -> Any:
        piece = pieces[number]
        bad: list[BadLine] = []
        blocks = lines = triples = 0
        for columns, count in read_piece(piece, bad):
            lines += count
            if bad and not skip_bad:
                break
            start = (piece.file + 1) << FILE_BITS | (piece.first + blocks) << BLOCK_BITS
            _write_block(folder / f"{number}-{blocks}", columns, start)
            blocks, triples = blocks + 1, triples + len(columns[0])
        return asdict(Parsed(blocks, lines, triples, bad))

    return work


def _write_block(path: Path, columns: Sequence[pa.Array], start: int) -> None:
    """Distinct terms, and triples as places among them."""
    encoded = pa.concat_arrays([c.cast(pa.string()) for c in columns]).dictionary_encode()
    places = encoded.indices.to_numpy().astype(np.uint32)
    with pa.OSFile(f"{path}.terms", "wb") as sink:
        table = pa.table([encoded.dictionary], names=["term"], metadata={"start": str(start)})
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
    places.tofile(f"{path}.places")


def read_terms(path: Path) -> tuple[pa.Array, int]:
    """The distinct terms of a block, and the position of the first of them."""
    with pa.memory_map(f"{path}.terms") as source:
        table = pa.ipc.open_file(source).read_all()
    return table.column("term").combine_chunks(), int(table.schema.metadata[b"start"])


def read_places(path: Path) -> npt.NDArray[np.uint32]:
    """The triples of a block as three rows of places among its terms."""
    return np.fromfile(f"{path}.places", np.uint32).reshape(3, -1)
