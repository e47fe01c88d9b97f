"""RDF Patch: a change as a file, one addition (`A`) or deletion (`D`) a line.

    TX .
    D <http://ex/ann> <http://ex/worksFor> <http://ex/acme> .
    A <http://ex/ann> <http://ex/worksFor> <http://ex/initech> .
    TC .

Contract: lines take effect in their order, so that of two about one triple the last one counts; what a transaction that is
aborted (`TA`) says does not count. Graph names are read and dropped: a graph is the union of its graphs. Terms are in
N-Triples syntax, or prefixed names after a `PA` line. Every mistake is reported with its place.
Cost: linear in the lines, which are few: a patch is a change.
"""

from __future__ import annotations

from pathlib import Path

import pyoxigraph as ox

from evergraph.errors import Position, UserError, raise_all

HEADERS = ("H", "TX", "TC")


def read_patch(path: Path) -> tuple[list[str], list[str]]:
    """The triples to insert and to delete, as lines of N-Triples."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError("EG101", f"cannot read {path}: {error}", "check the path; a patch is UTF-8 text") from error
    prefixes: dict[str, str] = {}
    done: dict[str, bool] = {}
    waiting: dict[str, bool] = {}
    mistakes: list[UserError] = []
    for number, line in enumerate(text.splitlines(), 1):
        code, _, rest = line.strip().partition(" ")
        if not code or code.startswith("#"):
            continue
        try:
            if code in ("A", "D"):
                triple = _triple(rest.strip(), prefixes)
                waiting.pop(triple, None)
                waiting[triple] = code == "A"
            elif code == "PA":
                name, _, iri = rest.strip().removesuffix(".").strip().partition(" ")
                prefixes[name.strip('":')] = iri.strip()
            elif code == "PD":
                prefixes.pop(rest.strip().removesuffix(".").strip().strip('":'), None)
            elif code == "TA":
                waiting = {}
            elif code not in HEADERS:
                raise SyntaxError(f"no line of a patch starts with {code}", ("", 1, 1, line))
            if code in ("TX", "TC"):
                done |= waiting
                waiting = {}
        except SyntaxError as error:
            at = Position(str(path), number, max(1, (error.offset or 1) + (len(line) - len(rest) if code in ("A", "D") else 0)))
            mistakes.append(UserError("EG103", f"malformed line: {error.msg}", "see docs/updates.md for RDF Patch", at))
    raise_all(mistakes)
    done |= waiting
    return [t for t, added in done.items() if added], [t for t, added in done.items() if not added]


def _triple(text: str, prefixes: dict[str, str]) -> str:
    """One triple in canonical spelling; a graph name at its end is dropped."""
    if prefixes:
        head = "".join(f"@prefix {name}: {iri} .\n" for name, iri in prefixes.items())
        quads = list(ox.parse(head + text, format=ox.RdfFormat.TURTLE))
    else:
        quads = list(ox.parse(text, format=ox.RdfFormat.N_QUADS))
    if len(quads) != 1:
        raise SyntaxError("a line holds one triple", ("", 1, 1, text))
    return f"{quads[0].triple} ."
