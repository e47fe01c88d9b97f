"""N-Triples and Turtle out, a block at a time."""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyoxigraph as ox

from evergraph.errors import UserError


class Written(NamedTuple):
    lines: int
    left_out: int
    """Triples that RDF cannot write: their subject is a literal, or their predicate no IRI."""


def write_ntriples(blocks: Iterable[tuple[pa.Array, pa.Array, pa.Array]], path: Path) -> Written:
    """Write columns of terms to `path` (`.nt` or `.nt.gz`); the file appears when it is whole.

    Rules may derive facts about literals, such as the types that ranges give them. They hold in the graph, but N-Triples
    has no way to write them: they are counted and left out.
    """
    part = path.with_name(path.name + ".part")
    try:
        with gzip.open(part, "wb", compresslevel=1) if path.suffix == ".gz" else part.open("wb") as out:
            written = write_stream(blocks, cast(BinaryIO, out))
        part.replace(path)
    except OSError as error:
        raise UserError("EG101", f"cannot write {path}: {error.strerror}", "check the folder and its permissions") from error
    finally:
        if part.parent.is_dir():
            part.unlink(missing_ok=True)
    return written


def write_stream(blocks: Iterable[tuple[pa.Array, pa.Array, pa.Array]], out: BinaryIO, format_: str = "nt") -> Written:
    """The same to a stream that is open, as N-Triples or, `ttl`, as Turtle."""
    count = left_out = 0
    for block in blocks:
        rdf = pc.and_not(pc.starts_with(block[1], "<"), pc.starts_with(block[0], '"'))
        subject, predicate, value = (column.filter(rdf) for column in block)
        left_out += len(block[0]) - len(subject)
        end, space = pa.scalar(".\n", subject.type), pa.scalar(" ", subject.type)
        lines = _bytes(pc.binary_join_element_wise(subject, predicate, value, end, space))
        out.write(lines if format_ == "nt" else _turtle(lines))
        count += len(subject)
    return Written(count, left_out)


def _turtle(lines: bytes) -> bytes:
    triples = (quad.triple for quad in ox.parse(lines, format=ox.RdfFormat.N_TRIPLES))
    return ox.serialize(triples, format=ox.RdfFormat.TURTLE) or b""


def _bytes(lines: pa.Array) -> bytes:
    """The characters of a string array, one after another, without a copy per string."""
    array = pc.cast(lines, pa.large_string())
    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    array = pa.concat_arrays([array])
    _, _, data = array.buffers()
    return data.to_pybytes() if data else b""
