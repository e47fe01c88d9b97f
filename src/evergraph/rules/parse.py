"""The `.dlog` reader: text in, `Program` out, every mistake reported with its place.

A text is cut into statements at each full stop and each statement is read on its own, so that ten mistakes give ten
messages. A program of a quarter million rules is of few forms: the first statement of a form is parsed (`statement.py`) and
kept as a skeleton (`skeletons.py`), the others are filled in from it. What no skeleton can say, mistakes above all, is parsed.
After reading, the checks of `checks.py` run over the whole program.

Cost: about 10 µs for a rule of a known skeleton, half a millisecond for one that is parsed.
"""

from __future__ import annotations

import gc
import re
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from evergraph.errors import Position, UserError, raise_all
from evergraph.rules.checks import check
from evergraph.rules.model import Program
from evergraph.rules.skeletons import Skeletons
from evergraph.rules.statement import Reader, terminals


def parse(text: str, file: str, including: tuple[str, ...] = ()) -> Program:
    """Read a program. Cost: linear in the text."""
    reader = Reader(file, including)
    skeletons = Skeletons(file, reader.prefixes)
    lines = _Lines(text)
    with _no_collection():
        for found in _statements(text, lines, reader):
            clause = skeletons.fill(found["name"], found["clause"], *lines.at(found.start("clause")))
            if clause is not None:
                reader.rules += clause[0]
                reader.facts += clause[1]
            else:
                reader.read(found["statement"], *lines.at(found.start("statement")))
                if found["statement"].startswith("@"):
                    skeletons.constants.clear()
    program = Program(tuple(reader.rules), tuple(reader.facts), reader.prefixes, tuple(reader.outside))
    raise_all(reader.mistakes + check(program, Program(tuple(reader.parsed_rules), tuple(reader.parsed_facts))))
    return program


class _Lines:
    """Where lines start. Cost: linear in the text, once; then a search."""

    def __init__(self, text: str) -> None:
        self._ends = [-1, *(m.start() for m in re.finditer("\n", text))]

    def at(self, offset: int) -> tuple[int, int]:
        """The line and the column of a place in the text."""
        line = bisect_left(self._ends, offset)
        return line, offset - self._ends[line - 1]


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """A statement with what stands before it, and tokens as far as they go. What is most frequent is tried first.

    The tokens are the grammar's, so a full stop ends a statement where it is a token and not where a string has one.
    """
    t = terminals()
    frequent = [r"[\s,\[\]()]+", t["VARIABLE"]]
    tokens = rf"(?:{'|'.join([*frequent, *(f'(?:{pattern})' for name, pattern in t.items() if name != 'DOT')])})*+"
    name = rf"#\[\s*name\s*\(\s*(?P<name>{t['STRING']})\s*\)\s*\]\s*"
    statement = rf"(?:\s++|{t['COMMENT']})*+(?P<statement>(?:{name})?(?P<clause>{tokens}\.))"
    return re.compile(statement), re.compile(tokens)


def _statements(text: str, lines: _Lines, reader: Reader) -> Iterator[re.Match[str]]:
    """The statements of a text. A character that starts no token is reported, and skipped with the rest of its statement."""
    statement, tokens = _patterns()
    offset, skipping = 0, False
    while True:
        while (found := statement.match(text, offset)) is not None:
            if not skipping:
                yield found
            offset, skipping = found.end(), False
        rest = tokens.match(text, offset)
        assert rest is not None
        if rest.end() == len(text):
            break
        at = Position(reader.file, *lines.at(rest.end()))
        bad = text[rest.end()]
        reader.mistakes.append(UserError("EG001", f"unexpected character {bad!r}", "quote strings, write IRIs in <…>", at))
        stop = text.find("\n", rest.end())
        if stop < 0:
            return
        skipping = not text[rest.end() : stop].rstrip().endswith(".")
        offset = stop + 1
    unfinished = reader.tokens(rest.group(), *lines.at(offset))
    if unfinished and not skipping:
        at = reader.at(unfinished[-1])
        reader.mistakes.append(UserError("EG001", "the last statement does not end", "end every rule and fact with '.'", at))


@contextmanager
def _no_collection() -> Iterator[None]:
    """Reading makes millions of objects and no garbage with cycles: looking for it would take a third of the time."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
