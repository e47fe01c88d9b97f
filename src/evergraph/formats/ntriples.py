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
LANGUAGE_STRING = "angString>"
"""How the datatypes end that no literal may name."""
_GRAPH = r" <[^<>]*> \.$"
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


def read_lines(lines: pa.Array, first_line: int, quads: bool, on_bad: OnBadLine) -> list[pa.Array]:
    """Three string columns for one block of lines. Cost: linear in the bytes; Python only for lines off the fast way."""
    fast = pc.match_substring_regex(lines, CANONICAL_TRIPLE)
    fast = pc.and_not(fast, pc.match_substring(lines, LANGUAGE_STRING))
    columns = _cut(lines.filter(fast), len(" ."))
    slow = pc.invert(fast)
    if quads:
        quad = pc.and_(slow, pc.match_substring_regex(lines, CANONICAL_QUAD))
        quad = pc.and_not(quad, pc.match_substring(lines, LANGUAGE_STRING))
        plain = pc.replace_substring_regex(lines.filter(quad), pattern=_GRAPH, replacement=" .")
        columns = _stack(columns, _cut(plain, len(" .")))
        slow = pc.and_not(slow, quad)
    numbers = pc.indices_nonzero(slow)
    if len(numbers):
        columns = _stack(columns, _careful(lines.take(numbers).to_pylist(), numbers.to_pylist(), first_line, quads, on_bad))
    return columns


def plain_strings(terms: pa.Array) -> pa.Array:
    """`"x"^^xsd:string` is spelled `"x"`."""
    return pc.replace_substring_regex(terms, pattern=_STRING, replacement=r"\1")


def _cut(lines: pa.Array, tail: int) -> list[pa.Array]:
    """Subject, predicate and object of canonical lines: cut at the first two spaces, and `tail` characters off the end."""
    parts = pc.list_flatten(pc.split_pattern(lines, " ", max_splits=2))
    first = np.arange(0, 3 * len(lines), 3)
    subject, predicate, rest = (parts.take(pa.array(first + i)) for i in range(3))
    return [subject, predicate, pc.utf8_slice_codeunits(rest, 0, -tail)]


def _stack(above: list[pa.Array], below: list[pa.Array]) -> list[pa.Array]:
    return [pa.concat_arrays([a, b]) for a, b in zip(above, below, strict=True)]


def _careful(texts: list[str], numbers: list[int], first_line: int, quads: bool, on_bad: OnBadLine) -> list[pa.Array]:
    """The lines that the fast way left over, one by one through the real parser."""
    format_ = ox.RdfFormat.N_QUADS if quads else ox.RdfFormat.N_TRIPLES
    rows: list[tuple[str, str, str]] = []
    for text, number in zip(texts, numbers, strict=True):
        if text.startswith(NOT_UTF8):
            on_bad(BadLine(first_line + number, 1, "not UTF-8", text.removeprefix(NOT_UTF8)))
            continue
        try:
            for quad in ox.parse(text, format=format_):
                if isinstance(quad.object, ox.Triple):
                    raise SyntaxError("triple terms are not supported", ("", 1, 1, text))
                if getattr(quad.object, "direction", None) is not None:
                    raise SyntaxError("base directions are not supported", ("", 1, 1, text))
                rows.append((str(quad.subject), str(quad.predicate), str(quad.object)))
        except SyntaxError as error:
            on_bad(BadLine(first_line + number, error.offset or 1, error.msg.partition(": ")[2] or error.msg, text))
    return [pa.array([row[i] for row in rows], pa.string()) for i in range(3)]
