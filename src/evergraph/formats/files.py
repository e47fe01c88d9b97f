"""Files of RDF, by their endings, as columns of N-Triples terms.

Contract: `read_files` yields blocks of three string columns; blank nodes carry the scope of their file. Nothing is lost on
a mistake: by default the first bad line of each file is an error with file, line and column; with `Rejects` bad lines are
counted and kept instead. Memory: a few blocks at a time.
"""

from __future__ import annotations

import codecs
import glob
import io
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pyoxigraph as ox

from evergraph.errors import Position, UserError, UserErrors
from evergraph.formats.ntriples import NOT_UTF8, BadLine, plain_strings, read_lines
from evergraph.terms import SCOPED

FORMATS = {
    ".nt": ox.RdfFormat.N_TRIPLES,
    ".nq": ox.RdfFormat.N_QUADS,
    ".ttl": ox.RdfFormat.TURTLE,
    ".trig": ox.RdfFormat.TRIG,
    ".rdf": ox.RdfFormat.RDF_XML,
    ".owl": ox.RdfFormat.RDF_XML,
    ".jsonld": ox.RdfFormat.JSON_LD,
}
COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
LINE_FORMATS = (ox.RdfFormat.N_TRIPLES, ox.RdfFormat.N_QUADS)
BLOCK_BYTES = 8 << 20
SMALL_TEXT = 1 << 15
LOOK_BACK = 1 << 16
MOST_MISTAKES = 20

Block = tuple[pa.Array, pa.Array, pa.Array]


@dataclass(slots=True)
class Rejects:
    """Bad lines that were skipped, with their places."""

    lines: list[tuple[str, BadLine]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.lines)

    def write(self, path: Path) -> None:
        with path.open("w", encoding="utf-8") as out:
            out.writelines(rejected(file, bad) for file, bad in self.lines)


def rejected(file: str, bad: BadLine) -> str:
    """A bad line as it stood, below a comment with its place and what was wrong."""
    return f"# {file}:{bad.line}:{bad.column}: {bad.message}\n{bad.text}\n"


def is_data_file(path: Path) -> bool:
    """Whether the ending is one of a known format."""
    return _kind(path) is not None


def expand(
    sources: Iterable[str | Path], is_known: Callable[[Path], bool] = is_data_file, endings: Iterable[str] = FORMATS
) -> list[Path]:
    """Files for paths, folders and globs; in a folder, every file of a known ending, by name."""
    found: list[Path] = []
    for source in sources:
        path = Path(source)
        if path.is_dir():
            inside = sorted(p for p in path.rglob("*") if p.is_file() and is_known(p))
            if not inside:
                raise UserError("EG102", f"no data files in the folder {path}", known(endings))
            found += inside
        elif path.exists():
            found.append(path)
        else:
            matches = sorted(Path(p) for p in glob.glob(str(source), recursive=True))
            if not matches:
                raise UserError("EG101", f"no such file: {source}", "check the path; globs and folders work too")
            found += matches
    return found


def size_of(path: Path) -> int:
    """The bytes of a file that is to be read."""
    try:
        return path.stat().st_size
    except OSError as error:
        raise unreadable(path, None, error) from error


Progress = Callable[[str, float], None]
"""Told what is being done and how much of it is done, between 0 and 1."""


def read_files(
    paths: Iterable[Path], scopes: Callable[[], int], rejects: Rejects | None = None, progress: Progress | None = None
) -> Iterator[Block]:
    """Blocks of subject, predicate and object columns, file after file; blocks of a file are parsed in parallel."""
    todo = [(path, _known_kind(path)) for path in paths]
    total, done = max(1, sum(size_of(path) for path, _ in todo)), 0
    for path, (format_, compression) in todo:
        scope = scopes()
        try:
            with pa.OSFile(str(path)) as raw:
                stream = pa.CompressedInputStream(raw, compression) if compression else raw
                for block in _read(stream, format_, str(path), scope, rejects):
                    if progress is not None:
                        progress("read", (done + raw.tell()) / total)
                    yield block
            done += size_of(path)
        except UserError:
            raise
        except OSError as error:
            raise unreadable(path, compression, error) from error


@dataclass(frozen=True, slots=True)
class Piece:
    """Part of a file that one task reads: some blocks of lines, or the whole file where it cannot be cut."""

    path: Path
    file: int
    """The place of the file among those that are read."""
    scope: int
    first: int
    """The number of its first block."""
    last: int | None
    """The number after its last block; None: to the end."""


def cut_files(paths: Iterable[Path], scopes: Callable[[], int], blocks: int) -> list[Piece]:
    """Files cut into pieces of so many blocks. Only plain N-Triples and N-Quads can be cut."""
    pieces = []
    for number, path in enumerate(paths):
        format_, compression = _known_kind(path)
        scope = scopes()
        whole = compression is not None or format_ not in LINE_FORMATS
        count = 1 if whole else max(1, -(-size_of(path) // BLOCK_BYTES))
        step = count if whole else blocks
        for first in range(0, count, step):
            pieces.append(Piece(path, number, scope, first, first + step if first + step < count else None))
    return pieces


def read_piece(piece: Piece, bad: list[BadLine]) -> Iterator[tuple[Block, int]]:
    """Block by block as `read_files` does, each with its number of lines; lines are counted from the piece's first."""
    format_, compression = _known_kind(piece.path)
    try:
        with pa.OSFile(str(piece.path)) as raw:
            stream = pa.CompressedInputStream(raw, compression) if compression else raw
            quads = _has_graphs(format_)
            if format_ not in LINE_FORMATS:
                stream = pa.BufferReader(_as_lines(stream, format_, str(piece.path), quads))
            first = 1
            for lines in lines_of(stream, piece.first, piece.last):
                subject, predicate, value = read_lines(lines, first, quads, bad.append)
                first += len(lines)
                yield (_scoped(subject, piece.scope), predicate, _scoped(plain_strings(value), piece.scope)), len(lines)
    except OSError as error:
        raise unreadable(piece.path, compression, error) from error


OWN = 0
"""The scope of blank nodes that are the graph's own: they are called what it calls them."""


def read_text(text: str | bytes, name: str = "<text>", scope: int | None = None) -> Iterator[Block]:
    """N-Triples given as text; blank nodes keep their labels."""
    data = text.encode() if isinstance(text, str) else text
    if data.strip():
        yield from _read(pa.BufferReader(data), ox.RdfFormat.N_TRIPLES, name, scope, None)


def _kind(path: Path) -> tuple[ox.RdfFormat, str | None] | None:
    compression = COMPRESSIONS.get(path.suffix)
    suffix = Path(path.stem).suffix if compression else path.suffix
    return (FORMATS[suffix], compression) if suffix in FORMATS else None


def _known_kind(path: Path) -> tuple[ox.RdfFormat, str | None]:
    kind = _kind(path)
    if kind is None:
        raise UserError("EG102", f"unknown file type: {path}", known(FORMATS))
    return kind


def _has_graphs(format_: ox.RdfFormat) -> bool:
    return format_ not in (ox.RdfFormat.N_TRIPLES, ox.RdfFormat.TURTLE, ox.RdfFormat.RDF_XML)


def known(endings: Iterable[str]) -> str:
    """A hint that tells the endings of files."""
    return f"known endings: {' '.join(endings)}, each also {' '.join(COMPRESSIONS)}"


def unreadable(path: Path, compression: str | None, error: OSError) -> UserError:
    """What to say of a file that could not be read to its end."""
    if compression and not isinstance(error, FileNotFoundError | PermissionError | IsADirectoryError):
        return UserError("EG104", f"{path} is damaged or cut off: {_first_line(error)}", "compress or copy the file again")
    return UserError("EG101", f"cannot read {path}: {_first_line(error)}", "check the path and its permissions")


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]


def _read(stream: Any, format_: ox.RdfFormat, name: str, scope: int | None, rejects: Rejects | None) -> Iterator[Block]:
    quads = _has_graphs(format_)
    if format_ not in LINE_FORMATS:
        stream = pa.BufferReader(_as_lines(stream, format_, name, quads))
        if not stream.size():
            return
    bad: list[BadLine] = []
    for subject, predicate, value in _blocks(stream, quads, bad):
        if bad and rejects is None:
            raise_bad(name, bad)
        yield _scoped(subject, scope), predicate, _scoped(plain_strings(value), scope)
    if bad and rejects is None:
        raise_bad(name, bad)
    if rejects is not None:
        rejects.lines += ((name, line) for line in bad)


def raise_bad(name: str, bad: list[BadLine]) -> None:
    """The first bad lines of a file as mistakes."""
    shown = [
        UserError(
            "EG103",
            f"malformed line: {b.message}",
            "correct it, or use --on-error skip",
            Position(name, b.line, b.column),
        )
        for b in bad[:MOST_MISTAKES]
    ]
    raise shown[0] if len(shown) == 1 else UserErrors(shown)


def _blocks(stream: Any, quads: bool, bad: list[BadLine]) -> Iterator[list[pa.Array]]:
    """Parse lines in blocks, two ahead of the reader, in threads: Arrow's kernels run without the interpreter's lock."""
    first = 1
    waiting: list[Any] = []
    blocks = lines_of(stream)
    start = list(islice(blocks, 2))
    if len(start) == 1:
        yield read_lines(start[0], first, quads, bad.append)
        bad.sort(key=lambda b: b.line)
        return
    with ThreadPoolExecutor(max_workers=2) as pool:
        for lines in chain(start, blocks):
            waiting.append(pool.submit(read_lines, lines, first, quads, bad.append))
            first += len(lines)
            if len(waiting) > 2:
                yield waiting.pop(0).result()
        for job in waiting:
            yield job.result()
    bad.sort(key=lambda b: b.line)


def lines_of(stream: Any, first: int = 0, last: int | None = None) -> Iterator[pa.Array]:
    """Complete lines of a byte stream, block by block: block n holds the lines that end in the n-th stretch of bytes."""
    rest = _line_before(stream, first * BLOCK_BYTES) if first else b""
    number = first
    while number != last and (chunk := stream.read(BLOCK_BYTES)):
        number += 1
        chunk = rest + chunk
        cut = chunk.rfind(b"\n") + 1
        rest = chunk[cut:]
        if cut:
            yield _split(chunk[:cut])
    if rest and last is None:
        yield _split(rest)


def _line_before(stream: Any, position: int) -> bytes:
    """What stands between the last end of a line before a position and that position, where the stream is left."""
    start, found = position, b""
    while start and b"\n" not in found:
        size = min(LOOK_BACK, start)
        start -= size
        stream.seek(start)
        found = stream.read(size) + found
    stream.seek(position)
    return found[found.rfind(b"\n") + 1 :]


def _split(text: bytes) -> pa.Array:
    """The lines of a text, without their ends. The CSV reader is the fastest splitter Arrow has; it is told to read no CSV."""
    if len(text) < SMALL_TEXT:
        return _split_small(text)
    try:
        table = csv.read_csv(
            io.BytesIO(text),
            read_options=csv.ReadOptions(column_names=["line"], use_threads=False, block_size=len(text) + 1),
            parse_options=csv.ParseOptions(delimiter="\x1f", quote_char=False, escape_char=False, ignore_empty_lines=False),
            convert_options=csv.ConvertOptions(column_types={"line": pa.string()}, strings_can_be_null=False),
        )
        return table.column(0).combine_chunks()
    except pa.ArrowInvalid:  # the delimiter itself occurs, or bytes that are not UTF-8
        return _split_small(text)


def _split_small(text: bytes) -> pa.Array:
    """The same line by line: right for any bytes, and quick to start."""
    text = text.removeprefix(codecs.BOM_UTF8).replace(b"\r\n", b"\n").replace(b"\r", b"\n").removesuffix(b"\n")
    return pa.array([_decode(line) for line in text.split(b"\n")], pa.string())


def _decode(line: bytes) -> str:
    """A line as text; one that is not UTF-8 is marked so that no parser takes it."""
    try:
        return line.decode()
    except UnicodeDecodeError:
        return NOT_UTF8 + line.decode(errors="replace")


def _as_lines(stream: Any, format_: ox.RdfFormat, name: str, quads: bool) -> bytes:
    """Any other syntax as N-Triples or N-Quads; the parser feeds the serialiser without a Python loop between."""
    out = ox.RdfFormat.N_QUADS if quads else ox.RdfFormat.N_TRIPLES
    try:
        quadruples = ox.parse(stream, format=format_, base_iri="file:///")
        return ox.serialize(quadruples if quads else (q.triple for q in quadruples), format=out) or b""
    except SyntaxError as error:
        at = Position(name, error.lineno or 1, error.offset or 1)
        raise UserError("EG103", f"malformed data: {error.msg}", "correct the file", at) from error


def _scoped(terms: pa.Array, scope: int | None) -> pa.Array:
    """Blank nodes named after their file: the same label in two files is two nodes."""
    if scope == OWN or not pc.any(pc.starts_with(terms, "_:")).as_py():
        return terms
    if scope is None:
        return pc.replace_substring_regex(terms, pattern=SCOPED, replacement=r"_:u\1")
    return pc.replace_substring_regex(terms, pattern=r"^_:", replacement=f"_:f{scope}_")


def unscoped(terms: pa.Array) -> pa.Array:
    """Blank nodes that come from no file: never the names of those that do."""
    return _scoped(terms, None)
