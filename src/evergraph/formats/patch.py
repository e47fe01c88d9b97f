"""RDF Patch: a change as a file, one addition (`A`) or deletion (`D`) a line.

    TX .
    D <http://ex/ann> <http://ex/worksFor> <http://ex/acme> .
    A <http://ex/ann> <http://ex/worksFor> <http://ex/initech> .
    TC .

Contract: lines take effect in their order, so that of two about one triple the last one counts; what a transaction that is
aborted (`TA`) says does not count. Graph names are read and dropped: a graph is the union of its graphs. Labels of blank nodes
are kept as they are, for they name nodes of the graph. The first mistakes are reported, each with its place.
Format: https://afs.github.io/rdf-delta/rdf-patch. Departures: a row is a line; a prefix that `PA` gives may be used in the
lines after it; the final dot may be left out where there is no triple before it.
Cost: linear in the text; a parser's call a line, and two for a line that is no N-Quads.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import pyoxigraph as ox

from evergraph.errors import Position, UserError, raise_all
from evergraph.formats.files import MOST_MISTAKES

TRANSACTIONS = ("TX", "TC", "TA")
_ROW = re.compile(r"[ \t]*(?P<code>[A-Z]+(?=[ \t.]|$)|[^ \t#]\S*)?[ \t]*")
_PREFIX = re.compile(r'(?P<quote>"?)(?P<name>(?:[^\W\d_](?:[\w.-]*[\w-])?)?):?(?P=quote)[ \t]*')
_IRI = re.compile(r'(?:"(?P<quoted>[^"<>]*)"|<(?P<plain>[^<>]*)>)[ \t]*')
_GRAPH = re.compile(r"<[^<>]*>[ \t]*")
_END = re.compile(r"(?:\.[ \t]*)?(?P<more>[^#].*)?")
_TERM = re.compile(
    r"""<_:(?P<label>[^\s<>]+)> | <[^>]*>? | "(?:[^"\\]|\\.)*"? | _:\S* | \#.* | @[\w-]+
    | (?P<prefix>[\w.-]*):(?P<local>(?:[\w:%-]|\\[_~.\-!$&'()*+,;=/?\#@%]|\.+(?=[\w:%\\-]))*) | [\w.-]+""",
    re.VERBOSE,
)
_PARSER = re.compile(r"Parser error at [^:]*: ")
"""Where the parser says that it met a mistake, in a text that the user has never seen."""
Prefixes = dict[str, str]


class _Mistake(Exception):
    """What is wrong, and how far behind the code of its line."""

    def __init__(self, message: str, at: int) -> None:
        self.message, self.at = message, at


def read_patch(path: Path) -> tuple[list[str], list[str]]:
    """The triples to insert and to delete, as lines of N-Triples."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError("EG101", f"cannot read {path}: {error}", "check the path; a patch is UTF-8 text") from error
    rows = _Rows(str(path))
    done: dict[str, bool] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if code := rows.take(number, line):
            done |= rows.said if code != "TA" else {}
            rows.said = {}
        if len(rows.mistakes) == MOST_MISTAKES:
            break
    raise_all(rows.mistakes)
    done |= rows.said
    return _parts(done)


@dataclass(frozen=True, slots=True)
class Change:
    """What one transaction of a feed says, or lines between two."""

    line: int
    """Where it begins."""
    insert: list[str]
    delete: list[str]
    mistakes: tuple[UserError, ...] = ()
    """What is wrong with it. Then it says nothing."""


def read_changes(lines: Iterable[str], source: str) -> Iterator[Change]:
    """The changes of a feed that is read as it arrives: each transaction, and the lines up to the next one or the end.

    What is aborted or says nothing is left out. A mistake spoils the change it is in, and no other, but for those that use a
    prefix whose `PA` it is. Unlike in a file, a transaction that does not end is a mistake: its writer may have died.
    """
    rows = _Rows(source)
    begun = first = 0
    for number, line in enumerate(chain(lines, ["TX"]), 1):
        row = _ROW.match(line)
        if row is not None and row["code"] == "TX":
            if begun:
                rows.wrong(begun, 1, "this transaction does not end")
            yield from rows.cut(first, False)
            begun = first = number
        elif not first and line.strip():
            first = number
        if (code := rows.take(number, line)) in ("TC", "TA"):
            yield from rows.cut(first, code == "TA")
            begun = first = 0


class _Rows:
    """The lines of a patch, one after the other."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.said: dict[str, bool] = {}
        """Triples, and whether they are inserted, since `said` was emptied."""
        self.mistakes: list[UserError] = []
        self._prefixes: Prefixes = {}
        self._spoiled: set[str] = set()
        """Prefixes whose line was malformed."""

    def take(self, number: int, line: str) -> str | None:
        """Take in a line; returns its code if it begins or ends a transaction."""
        row = _ROW.match(line)
        assert row is not None
        code, rest = row["code"], line[row.end() :]
        try:
            if not line.isascii():
                _check_text(line, row.end())
            if code in ("A", "D"):
                self.said[_triple(rest, self._prefixes)] = code == "A"
            elif code == "PA":
                self._spoiled.add(name := _prefix(rest)[0])
                _add_prefix(rest, self._prefixes)
                self._spoiled.discard(name)
            elif code == "PD":
                name, end = _prefix(rest)
                _ends(rest, _after_graph(rest, end))
                self._prefixes.pop(name, None)
            elif code in TRANSACTIONS:
                _ends(rest, 0)
            elif code not in (None, "H"):
                raise _Mistake(f"no line of a patch starts with {code}", row.start("code") - row.end())
        except _Mistake as mistake:
            self.wrong(number, row.end() + mistake.at + 1, f"malformed line: {mistake.message}")
        return code if code in TRANSACTIONS else None

    def wrong(self, line: int, column: int, message: str) -> None:
        if len(self.mistakes) < MOST_MISTAKES:
            at = Position(self.source, line, column)
            self.mistakes.append(UserError("EG103", message, "see docs/updates.md for RDF Patch", at))

    def cut(self, line: int, aborted: bool) -> Iterator[Change]:
        """The change that ends here, if it is one, and start afresh."""
        if self.mistakes:
            yield Change(line, [], [], tuple(self.mistakes))
        elif self.said and not aborted:
            yield Change(line, *_parts(self.said))
        for name in self._spoiled:
            self._prefixes.pop(name, None)
        self.said, self.mistakes, self._spoiled = {}, [], set()


def _parts(said: dict[str, bool]) -> tuple[list[str], list[str]]:
    """What is inserted, and what is deleted."""
    return [t for t, added in said.items() if added], [t for t, added in said.items() if not added]


def _check_text(line: str, start: int) -> None:
    """Bytes of a pipe that are no UTF-8 have been kept as surrogates."""
    try:
        line.encode()
    except UnicodeEncodeError as error:
        raise _Mistake("not UTF-8 text", error.start - start) from error


def _triple(text: str, prefixes: Prefixes) -> str:
    """One triple in canonical spelling; a graph name at its end is dropped."""
    try:
        quads = list(ox.parse(text, format=ox.RdfFormat.N_QUADS))
    except SyntaxError:
        spelled, moves = _spell_out(text, prefixes)
        try:
            quads = list(ox.parse(spelled, format=ox.RdfFormat.N_QUADS))
        except SyntaxError as error:
            raise _Mistake(_said(error), _before(moves, (error.offset or 1) - 1)) from error
    if len(quads) != 1:
        raise _Mistake("a line holds one triple", 0)
    triple = quads[0].triple
    if isinstance(triple.object, ox.Triple):
        raise _Mistake("triple terms are not supported", 0)
    if getattr(triple.object, "direction", None) is not None:
        raise _Mistake("base directions are not supported", 0)
    return f"{triple} ."


Move = tuple[int, int, int, int]
"""A term that is spelled out: where it starts and ends now, and where it did before."""


def _spell_out(text: str, prefixes: Prefixes) -> tuple[str, list[Move]]:
    """The text with `ex:name` as an IRI and `<_:label>` as `_:label`. Mistakes of other kinds stay for the parser."""
    parts: list[str] = []
    moves: list[Move] = []
    size = done = 0
    for term in _TERM.finditer(text):
        label, prefix, local = term.groups()
        if label is not None:
            part = f"_:{label}"
        elif prefix is None:
            continue
        elif prefix in prefixes:
            part = "<" + prefixes[prefix] + local.replace("\\", "") + ">"
        else:
            raise _Mistake(f"no PA line says what {prefix}: stands for", term.start())
        start, end = term.span()
        size += start - done
        moves.append((size, size + len(part), start, end))
        parts += (text[done:start], part)
        size += len(part)
        done = end
    return "".join([*parts, text[done:]]), moves


def _before(moves: list[Move], at: int) -> int:
    """A place as it was before terms were spelled out; of a place within one, its start."""
    for start, end, old_start, old_end in reversed(moves):
        if at >= end:
            return at - end + old_end
        if at >= start:
            return old_start
    return at


def _add_prefix(text: str, prefixes: Prefixes) -> None:
    name, end = _prefix(text)
    prefixes[name] = "x:"  # so that a mistake that follows is told once, and not again wherever the prefix is used
    iri = _IRI.match(text, end)
    if iri is None:
        raise _Mistake("an IRI is expected, in angle brackets or in quotes", end)
    _ends(text, _after_graph(text, iri.end()))
    spelled = iri["plain"] if iri["quoted"] is None else iri["quoted"]
    try:
        list(ox.parse(f"<{spelled}> <x:p> <x:o> .", format=ox.RdfFormat.N_TRIPLES))
    except SyntaxError as error:
        raise _Mistake(_said(error), end) from error
    prefixes[name] = spelled


def _prefix(text: str) -> tuple[str, int]:
    """The prefix at the start, and where what follows it starts."""
    found = _PREFIX.match(text)
    if found is None or not found.group().strip():
        raise _Mistake("a prefix is expected, plain or in quotes", 0)
    return found["name"], found.end()


def _after_graph(text: str, at: int) -> int:
    """Prefixes may be those of one graph, whose name is dropped too."""
    graph = _GRAPH.match(text, at)
    return graph.end() if graph else at


def _ends(text: str, at: int) -> None:
    """Nothing but a dot and a comment may follow."""
    end = _END.match(text, at)
    if end is not None and end["more"]:
        raise _Mistake("the line should end here", end.start("more"))


def _said(error: SyntaxError) -> str:
    return _PARSER.sub("", error.msg, count=1)
