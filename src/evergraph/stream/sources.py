"""Timestamped triples from files and from standard input, in the order in which they stand there.

    2026-11-16T08:00:01Z <http://ex/car1> <http://ex/at> <http://ex/bridge> .                      N-Triples, .nt
    12.5 <http://ex/car1> <http://ex/at> <http://ex/bridge> <http://ex/positions> .                N-Quads, .nq
    {"subject": "<http://ex/car1>", "predicate": …, "object": …, "timestamp": 12.5}                JSON lines, .jsonl

In words: a timestamp (xsd:dateTime, in UTC if it names no zone, or seconds since 1970), white space, a line of N-Triples or
N-Quads; the graph's name is the name of the stream. In JSON, terms are written as in N-Triples, and `stream` may name one.
Contract: a file is read in blocks, a pipe as its lines arrive; a bad line is told of and passed by. Labels of blank nodes are
kept, for a stream is one source, but they are never those of the graph's own.
Trap: lines of several streams come as a batch each. Who moves time on between these loses facts: `read_blocks` says which
batches belong together.
"""

from __future__ import annotations

import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evergraph.errors import UserError
from evergraph.formats.files import COMPRESSIONS, expand, known, lines_of, unreadable, unscoped
from evergraph.formats.ntriples import BadLine, OnBadLine
from evergraph.stream.lines import Facts, read_json, read_stamped
from evergraph.stream.times import Instants

STDIN = "-"
ENDINGS = {".nt": "nt", ".nq": "nq", ".jsonl": "json", ".ndjson": "json", ".json": "json"}
FORMATS = ("nt", "nq", "json")
ROWS = 1 << 14
PIPE_BYTES = 1 << 16
"""The most that is taken from a pipe at once; it gives what it has."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Facts of one stream, in their order."""

    stream: str
    """Its IRI without brackets; empty for the default stream."""
    timestamps: Instants
    """Microseconds since 1970."""
    subject: pa.Array
    predicate: pa.Array
    object: pa.Array

    def __len__(self) -> int:
        return len(self.timestamps)

    @property
    def columns(self) -> tuple[pa.Array, pa.Array, pa.Array]:
        return self.subject, self.predicate, self.object

    def slice(self, start: int, end: int) -> Batch:
        """Some of its facts. Cost: none, they are the same columns."""
        return Batch(self.stream, self.timestamps[start:end], *(c.slice(start, end - start) for c in self.columns))

    def take(self, rows: npt.NDArray[np.intp]) -> Batch:
        return Batch(self.stream, self.timestamps[rows], *(c.take(pa.array(rows)) for c in self.columns))


def source_files(path: str | Path, format_: str | None = None) -> list[Path]:
    """The files that a path stands for: itself, those of a folder or a glob by name, or (`-`) standard input.

    `format_` is `nt`, `nq` or `json`. If it is not given, the ending of a file says, and the first line of a pipe. Mistakes are
    told before anything is read.
    """
    if format_ is not None and format_ not in FORMATS:
        raise UserError("EG302", f"no format of a source: {format_}", f"one of {', '.join(FORMATS)}")
    if str(path) == STDIN:
        return [Path(STDIN)]
    files = expand([path], lambda file: _ending(file) in ENDINGS, ENDINGS)
    for file in files:
        if format_ is None and not _is_live(file) and _ending(file) not in ENDINGS:
            raise UserError("EG102", f"unknown file type: {file}", known(ENDINGS))
    return files


def read_blocks(path: Path, on_bad: OnBadLine, format_: str | None = None, rows: int = ROWS) -> Iterator[list[Batch]]:
    """The facts of one file, up to `rows` lines at a time, as lists of batches: what the same lines say of several streams."""
    live, compression = _is_live(path), COMPRESSIONS.get(path.suffix)
    kind = format_ or (None if live else ENDINGS[_ending(path)])
    try:
        if str(path) == STDIN:
            yield from _blocks(_Arriving(sys.stdin.buffer), on_bad, kind, rows)
        elif live:
            with path.open("rb") as pipe:
                yield from _blocks(_Arriving(pipe), on_bad, kind, rows)
        else:
            with pa.OSFile(str(path)) as raw:
                yield from _blocks(pa.CompressedInputStream(raw, compression) if compression else raw, on_bad, kind, rows)
    except OSError as error:
        raise unreadable(path, None if live else compression, error) from error


def _ending(path: Path) -> str:
    return Path(path.stem).suffix if path.suffix in COMPRESSIONS else path.suffix


def _is_live(path: Path) -> bool:
    """Whether more may come while it is read: standard input, a named pipe, a terminal."""
    if str(path) == STDIN:
        return True
    try:
        return not stat.S_ISREG(path.stat().st_mode)
    except OSError as error:
        raise unreadable(path, None, error) from error


@dataclass(frozen=True, slots=True)
class _Arriving:
    """A pipe that is read as far as it has been written."""

    pipe: Any

    def read(self, most: int) -> bytes:
        data: bytes = self.pipe.read1(min(most, PIPE_BYTES))
        return data


def _blocks(stream: Any, on_bad: OnBadLine, kind: str | None, rows: int) -> Iterator[list[Batch]]:
    first = 1
    for block in lines_of(stream):
        for start in range(0, len(block), rows):
            lines = block.slice(start, rows)
            kind = kind or _kind_of(lines)
            if kind is not None:
                bad: list[BadLine] = []
                facts = _facts(lines, first, kind, bad)
                for line in sorted(bad, key=lambda b: b.line):
                    on_bad(line)
                if len(facts.timestamps):
                    yield _batches(facts)
            first += len(lines)


def _kind_of(lines: pa.Array) -> str | None:
    """By the first line that is not empty; None as long as there is none."""
    text = next((text for line in lines if (text := line.as_py().strip())), None)
    return None if text is None else "json" if text.startswith("{") else "nq"


def _facts(lines: pa.Array, first: int, kind: str, bad: list[BadLine]) -> Facts:
    if kind == "json":
        return read_json(lines, first, bad.append)
    return read_stamped(lines, first, kind == "nq", bad.append)


def _batches(facts: Facts) -> list[Batch]:
    """A batch for each stream, in the order in which they first occur."""
    subject, predicate, value = facts.columns
    together = Batch("", facts.timestamps, unscoped(subject), predicate, unscoped(value))
    streams = facts.streams.dictionary_encode()
    names = streams.dictionary.to_pylist()
    if len(names) == 1:
        return [replace(together, stream=names[0])]
    numbers = np.asarray(streams.indices)
    return [replace(together.take(np.flatnonzero(numbers == n)), stream=name) for n, name in enumerate(names)]
