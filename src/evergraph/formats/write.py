"""N-Triples out, a block at a time."""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc


def write_ntriples(blocks: Iterable[tuple[pa.Array, pa.Array, pa.Array]], path: Path) -> int:
    """Write columns of terms to `path` (`.nt` or `.nt.gz`) and return the number of lines; the file appears when whole."""
    part = path.with_name(path.name + ".part")
    count = 0
    try:
        with gzip.open(part, "wb", compresslevel=1) if path.suffix == ".gz" else part.open("wb") as out:
            for subject, predicate, value in blocks:
                end, space = pa.scalar(".\n", subject.type), pa.scalar(" ", subject.type)
                lines = pc.binary_join_element_wise(subject, predicate, value, end, space)
                out.write(_bytes(lines))
                count += len(lines)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    return count


def _bytes(lines: pa.Array) -> bytes:
    """The characters of a string array, one after another, without a copy per string."""
    array = pc.cast(lines, pa.large_string())
    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    array = pa.concat_arrays([array])
    _, _, data = array.buffers()
    return data.to_pybytes() if data else b""
