"""N-Triples and N-Quads, a block of lines at a time, in Arrow kernels.

Contract: columns of N-Triples terms in one canonical spelling, the one pyoxigraph prints, with the exact lexical form of
every literal. A line goes the fast way only when a strict pattern says that its text already is that spelling; every other
line (escapes, control characters, unusual IRIs or spacing, comments, mistakes) goes through pyoxigraph.
Trap: the pattern must stay narrower than the grammar. What it admits is never looked at again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyoxigraph as ox

_CHAR = r"[A-Za-z0-9\-._~:@!$&'()*+,;=\x{C0}-\x{D7FF}]"
_AUTHORITY = r"//[A-Za-z0-9\-._~]+(?::[0-9]{1,5})?"
_QUERY = rf"(?:\?(?:{_CHAR}|[/?])*)?(?:#(?:{_CHAR}|[/?])*)?"
_IRI = rf"<[A-Za-z][A-Za-z0-9+.\-]*:(?:{_AUTHORITY}(?:/(?:{_CHAR}|/)*)?|{_CHAR}(?:{_CHAR}|/)*){_QUERY}>"
_BLANK = r"_:[A-Za-z0-9_]+"
_LITERAL = rf'"[^"\\\x00-\x1f\x7f\x{{FFFE}}\x{{FFFF}}]*"(?:@[a-z]{{2,3}}(?:-[a-z]{{2}})?|\^\^{_IRI})?'
_TRIPLE = rf"^(?:{_IRI}|{_BLANK}) {_IRI} (?:{_IRI}|{_BLANK}|{_LITERAL})"
CANONICAL_TRIPLE = rf"{_TRIPLE} \.$"
CANONICAL_QUAD = rf"{_TRIPLE} {_IRI} \.$"
CANONICAL_TERMS = (rf"^(?:{_IRI}|{_BLANK})$", rf"^{_IRI}$", rf"^(?:{_IRI}|{_BLANK}|{_LITERAL})$")
"""The same of a subject, a predicate and an object alone."""
LANGUAGE_STRING = "angString>"
"""How the datatypes end that no literal may name."""
_STRING = r'^(".*")\^\^<http://www\.w3\.org/2001/XMLSchema#string>$'


@dataclass(frozen=True, slots=True)
class BadLine:
    line: int
    column: int
    message: str
    text: str


NOT_UTF8 = "\ufffd not UTF-8: "
"""Stands before a line that could not be decoded."""

OnBadLine = Callable[[BadLine], None]


@dataclass(frozen=True, slots=True)
class Rows:
    """What lines say, in their order."""

    columns: list[pa.Array]
    """Subject, predicate, object and the name of the graph, which is empty where a line names none."""
    places: npt.NDArray[np.int64]
    """The place of each row's line among the lines."""


def read_lines(lines: pa.Array, first_line: int, quads: bool, on_bad: OnBadLine) -> list[pa.Array]:
    """Three string columns for one block of lines. Cost: linear in the bytes; Python only for lines off the fast way."""
    triple, quad, slow = _ways(lines, quads)
    columns = _cut(lines.filter(triple), len(" ."))
    if quads:
        columns = _stack(columns, _cut(_apart(lines.filter(quad))[0], 0))
    if len(slow):
        found = [quad for _, quad in _careful(lines, slow, first_line, quads, on_bad)]
        columns = _stack(columns, _spelled(found))
    return columns


def read_rows(lines: pa.Array, first_line: int, quads: bool, on_bad: OnBadLine) -> Rows:
    """The same in the order of the lines, with the names of graphs. Cost: a sort more, if not all lines go one way."""
    triple, quad, slow = _ways(lines, quads)
    columns = [*_cut(lines.filter(triple), len(" .")), _no_graph(pc.sum(triple).as_py() or 0)]
    places = [pc.indices_nonzero(triple)]
    if quads:
        texts, graphs = _apart(lines.filter(quad))
        columns = _stack(columns, [*_cut(texts, 0), graphs])
        places.append(pc.indices_nonzero(quad))
    if len(slow):
        found = _careful(lines, slow, first_line, quads, on_bad)
        graphs = pa.array(
            ["" if isinstance(q.graph_name, ox.DefaultGraph) else str(q.graph_name) for _, q in found], pa.string()
        )
        columns = _stack(columns, [*_spelled([q for _, q in found]), graphs])
        places.append(pa.array([place for place, _ in found], pa.uint64()))
    where = np.concatenate(places).astype(np.int64)
    if sum(len(part) > 0 for part in places) > 1:
        order = np.argsort(where, kind="stable")
        columns, where = [column.take(pa.array(order)) for column in columns], where[order]
    return Rows(columns, where)


def canonical_terms(terms: pa.Array) -> pa.Array:
    """Which terms are IRIs or literals in the one canonical spelling: a mask, false for any that must be looked at."""
    fast = pc.and_not(pc.match_substring_regex(terms, CANONICAL_TERMS[2]), pc.starts_with(terms, "_"))
    odd = pc.or_(pc.match_substring(terms, LANGUAGE_STRING), pc.match_substring_regex(terms, _STRING))
    return pc.and_not(fast, odd).fill_null(False)


def plain_strings(terms: pa.Array) -> pa.Array:
    """`"x"^^xsd:string` is spelled `"x"`."""
    return pc.replace_substring_regex(terms, pattern=_STRING, replacement=r"\1")


def _ways(lines: pa.Array, quads: bool) -> tuple[pa.Array, pa.Array | None, pa.Array]:
    """Which lines are canonical triples, which are canonical quads, and the places of the others."""
    allowed = pc.invert(pc.match_substring(lines, LANGUAGE_STRING))
    triple = pc.and_(pc.match_substring_regex(lines, CANONICAL_TRIPLE), allowed)
    if not quads:
        return triple, None, pc.indices_nonzero(pc.invert(triple))
    quad = pc.and_not(allowed, triple)
    quad = pc.and_(quad, pc.match_substring_regex(lines, CANONICAL_QUAD))
    return triple, quad, pc.indices_nonzero(pc.invert(pc.or_(triple, quad)))


def _cut(lines: pa.Array, tail: int) -> list[pa.Array]:
    """Subject, predicate and object of canonical lines: cut at the first two spaces, and `tail` characters off the end."""
    subject, predicate, rest = split_at_spaces(lines, 2)
    return [subject, predicate, pc.utf8_slice_codeunits(rest, 0, -tail) if tail else rest]


def _apart(quads: pa.Array) -> list[pa.Array]:
    """Canonical quads as the text of the triple and the graph's name."""
    return split_at_spaces(quads, 2, reverse=True)[:2]


def split_at_spaces(texts: pa.Array, spaces: int, reverse: bool = False) -> list[pa.Array]:
    """Columns of what stands between the first spaces of texts, or the last ones; each text has that many."""
    parts = pc.list_flatten(pc.split_pattern(texts, " ", max_splits=spaces, reverse=reverse))
    first = np.arange(0, (spaces + 1) * len(texts), spaces + 1)
    return [parts.take(pa.array(first + i)) for i in range(spaces + 1)]


def _no_graph(rows: int) -> pa.Array:
    return pa.repeat(pa.scalar("", pa.string()), rows)


def _stack(above: list[pa.Array], below: list[pa.Array]) -> list[pa.Array]:
    return [pa.concat_arrays([a, b]) for a, b in zip(above, below, strict=True)]


def _spelled(quads: list[ox.Quad]) -> list[pa.Array]:
    rows = [(str(quad.subject), str(quad.predicate), str(quad.object)) for quad in quads]
    return [pa.array([row[i] for row in rows], pa.string()) for i in range(3)]


def _careful(lines: pa.Array, places: pa.Array, first_line: int, quads: bool, on_bad: OnBadLine) -> list[tuple[int, ox.Quad]]:
    """The lines that the fast way left over, one by one through the real parser."""
    format_ = ox.RdfFormat.N_QUADS if quads else ox.RdfFormat.N_TRIPLES
    found: list[tuple[int, ox.Quad]] = []
    for text, place in zip(lines.take(places).to_pylist(), places.to_pylist(), strict=True):
        if text.startswith(NOT_UTF8):
            on_bad(BadLine(first_line + place, 1, "not UTF-8", text.removeprefix(NOT_UTF8)))
            continue
        try:
            said = list(ox.parse(text, format=format_))  # all of it, before any of it counts
            for quad in said:
                if isinstance(quad.object, ox.Triple):
                    raise SyntaxError("triple terms are not supported", ("", 1, 1, text))
                if getattr(quad.object, "direction", None) is not None:
                    raise SyntaxError("base directions are not supported", ("", 1, 1, text))
            found += ((place, quad) for quad in said)
        except SyntaxError as error:
            on_bad(BadLine(first_line + place, error.offset or 1, error.msg.partition(": ")[2] or error.msg, text))
    return found
