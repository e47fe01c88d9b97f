"""Continuous queries as text: C-SPARQL's header, its streams and windows around a query of SPARQL.

Paper: Barbieri, Braga, Ceri, Della Valle, Grossniklaus, "Incremental Reasoning on Streams and Rich Background Knowledge",
ESWC 2010, §2.1 and Figure 2. `ISTREAM` and its like, in the header or before the variables, are from RSP-QL and SPARQLStream.

    REGISTER QUERY late COMPUTE EVERY 1sec AS
    SELECT ?train FROM <http://example/network> FROM STREAM <http://example/positions> [RANGE 10sec STEP 1sec]
    WHERE { ?train a <http://example/Late> }

The grammar is `csparql.lark`. What it understands is taken out and leaves blanks, so that SPARQL's parser sees every token
of the rest where the user wrote it.
Trap: a string and a name that touch are a typed literal, as in Figure 2, also where SPARQL has two terms: `VALUES ?x
{"a"ex:b}`. The query is that of the thread which parsed it (`sparql/prepare.py`); another thread parses `text` again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Any

from lark import Lark, Token
from lark.exceptions import UnexpectedToken
from rdflib.plugins.sparql.parser import expandUnicodeEscapes
from rdflib.plugins.sparql.sparql import Query
from rdflib.term import URIRef

from evergraph.errors import Position, UserError
from evergraph.rules.model import PREFIXES
from evergraph.sparql.prepare import prepare
from evergraph.stream.times import duration_of
from evergraph.stream.window import HINT, Window


class Form(StrEnum):
    """What a query is registered as: one that has answers, or one whose triples are a stream again."""

    QUERY = "query"
    STREAM = "stream"


class Report(StrEnum):
    """Which answers are told at each evaluation: all, those that are new, or those that are gone."""

    ALL = "rstream"
    NEW = "istream"
    GONE = "dstream"


@dataclass(frozen=True, slots=True)
class Continuous:
    """A registered query. `every` is in microseconds; a stream without a window has the one it was declared with."""

    name: str
    form: Form
    every: int | None
    report: Report
    windows: dict[str, Window | None]
    background: tuple[str, ...]
    kind: str
    query: Query
    text: str


WINDOW = {"NUMBER", "WORD", "SQUARE_CLOSE"}
"""The tokens that a window goes on with."""
HINTS: tuple[tuple[set[str], str], ...] = (
    ({"ROUND_CLOSE"}, "close the bracket with ')'"),
    ({"CURLY_CLOSE"}, "close the template with '}'"),
    (WINDOW, HINT),
    ({"NUMBER", "WORD", "AS"}, "write AS before the query"),
    ({"NUMBER", "WORD"}, "write a duration such as 10s"),
    ({"WORD"}, "give the query a name"),
    ({"QUERY"}, "write REGISTER QUERY name AS, or REGISTER STREAM name AS"),
    ({"REGISTER"}, "write REGISTER QUERY name AS before the query"),
    ({"COMPUTE"}, "write AS before the query, or COMPUTE EVERY 10s AS"),
    ({"EVERY"}, "write COMPUTE EVERY 10s"),
    ({"SELECT"}, "write a query with SELECT, ASK or CONSTRUCT"),
    ({"STREAM", "IRIREF"}, "write FROM <iri> or FROM STREAM <iri>"),
    ({"IRIREF"}, "write an <iri>"),
    ({"PNAME"}, "write PREFIX ex: <iri>"),
    ({"CURLY_OPEN"}, "write the pattern in { }"),
    ({"STAR"}, "name the variables, or write *"),
    ({"WHERE"}, "write CONSTRUCT { template } WHERE { pattern }"),
)
"""What to write where these tokens could have stood; the first that fits is told."""

Node = Any
"""A tree of the parser; its library has no useful types."""


def parse_continuous(text: str, source: str = "<query>") -> Continuous:
    """The continuous query that a text stands for. Cost: linear in the text, besides SPARQL's parser.

    >>> query = parse_continuous("REGISTER QUERY all AS SELECT * FROM STREAM <http://example/s> [RANGE 10s] { ?s ?p ?o }")
    >>> query.name, query.form, query.windows
    ('all', <Form.QUERY: 'query'>, {'http://example/s': Window(extent=10000000, step=10000000, counts=False)})
    """
    return _Reader(text, source).read()


@cache
def _grammar() -> Lark:
    text = files("evergraph.stream").joinpath("csparql.lark").read_text()
    return Lark(text, parser="lalr", lexer="basic", maybe_placeholders=False)


class _Reader:
    def __init__(self, text: str, source: str) -> None:
        self.text, self.source = text, source
        self.tokens = list(_grammar().lex(text))

    def read(self) -> Continuous:
        header, _, body = self._tree().children
        kind = body.children[0]
        form, report = self._form(_part(header, "form"), _part(body, "report"), kind)
        every = _part(header, "every")
        sources = [part for part in _trees(body) if part.data in ("background", "stream")]
        query = self._query(kind, [header, *filter(None, [_part(body, "report")]), *sources])
        background, windows = self._sources(sources, query)
        return Continuous(
            name=re.sub("^<(.*)>$", r"\1", _part(header, "name").children[0]),
            form=form,
            every=self._every(every.children[-1]) if every else None,
            report=report,
            windows=windows,
            background=background,
            kind=kind.upper(),
            query=query,
            text=self.text,
        )

    def _tree(self) -> Node:
        parser = _grammar().parse_interactive("")
        try:
            for token in self.tokens:
                parser.feed_token(token)
            return parser.feed_eof(self.tokens[-1] if self.tokens else None)
        except UnexpectedToken as error:
            raise self._unexpected(error.token, parser.accepts()) from error

    def _unexpected(self, token: Token, accepted: set[str]) -> UserError:
        ended = token.type == "$END"
        before = [one for one in self.tokens if ended or (one.start_pos or 0) < (token.start_pos or 0)]
        hint = next(hint for names, hint in HINTS if names <= accepted)
        if hint == HINT:
            window = before[max(at for at, one in enumerate(before) if one.type == "SQUARE_OPEN") :]
            return UserError("EG602", f"not a window: {_shown(window)!r}", hint, self._at(window[0]))
        if not ended:
            return UserError("EG601", f"unexpected {str(token)!r}", hint, self._at(token))
        end = (before[-1].end_line or 1, before[-1].end_column or 1) if before else (1, 1)
        return UserError("EG601", "the query ends too early", hint, Position(self.source, *end))

    def _form(self, registered: Node, told: Node | None, kind: Token) -> tuple[Form, Report]:
        """What the word after REGISTER says together with the one before the variables."""
        first, second = registered.children[0], told.children[0] if told else None
        constructs = kind.type == "CONSTRUCT"
        if first.type == "STREAM" and not constructs:
            hint = "write REGISTER QUERY, or CONSTRUCT the triples of the stream"
            raise UserError("EG601", f"a stream is made of triples, which {kind.upper()} does not give", hint, self._at(kind))
        if first.type in ("QUERY", "STREAM"):
            return Form(first.lower()), Report(second.lower()) if second else Report.ALL
        if second and second.type != first.type:
            hint = "write one of them"
            raise UserError("EG601", f"{first.upper()} was said before {second.upper()}", hint, self._at(second))
        return Form.STREAM if constructs else Form.QUERY, Report(first.lower())

    def _every(self, duration: Node) -> int:
        shown = _shown(duration.children)
        at = self._at(duration.children[0])
        try:
            every = duration_of(shown)
        except UserError as error:
            raise _placed(error, at) from error
        if every == 0:
            raise UserError("EG602", f"no time passes in {shown}", "write COMPUTE EVERY 1s, or leave it out", at)
        return every

    def _sources(self, parts: list[Node], query: Query) -> tuple[tuple[str, ...], dict[str, Window | None]]:
        """The background and the windows by stream."""
        background: dict[str, None] = {}
        windows: dict[str, Window | None] = {}
        for part in parts:
            name = _part(part, "iri").children[0]
            iri = self._iri(name, query)
            if part.data == "background":
                background[iri] = None
            elif iri in windows:
                raise UserError("EG601", f"the stream <{iri}> is named twice", "give a stream one window", self._at(name))
            else:
                windows[iri] = self._window(_part(part, "window"))
        return tuple(background), windows

    def _window(self, part: Node | None) -> Window | None:
        if part is None:
            return None
        try:
            return Window.of(_shown(part.children))
        except UserError as error:
            raise _placed(error, self._at(part.children[0])) from error

    def _iri(self, name: Token, query: Query) -> str:
        if name.type == "IRIREF":
            return str(query.prologue.absolutize(URIRef(expandUnicodeEscapes(name[1:-1]))))
        prefix, _, local = name.partition(":")
        try:
            return str(query.prologue.resolvePName(prefix, local))
        except Exception as error:  # rdflib raises a bare one
            hint = f"declare it with 'PREFIX {prefix}: <…>'"
            raise UserError("EG601", f"unknown prefix '{prefix}:'", hint, self._at(name)) from error

    def _query(self, kind: Token, understood: list[Node]) -> Query:
        """What SPARQL's parser makes of all tokens but those that were understood here."""
        gone = {token.start_pos for part in understood for token in part.scan_values(lambda one: isinstance(one, Token))}
        parts: list[str] = []
        typed: list[Token] = []
        end = 0
        for before, token in zip([None, *self.tokens], self.tokens, strict=False):
            if token.start_pos in gone:
                continue
            parts.append(_blank(self.text[end : token.start_pos]))
            if before is not None and _is_typed(before, token):
                parts.append("^^")
                typed.append(token)
            parts.append(token)
            end = token.end_pos or 0
        try:
            return prepare("".join(parts), PREFIXES)
        except UserError as error:
            raise UserError("EG601", error.message, error.hint, self._original(error.position, kind, typed)) from error

    def _original(self, position: Position | None, kind: Token, typed: list[Token]) -> Position:
        """Where SPARQL's mistake is in the text of the user, in which no `^^` was put before the `typed`."""
        first = self._at(kind)
        if position is None or position.line == position.column == 1:
            return first  # it is about the query as a whole
        column = position.column
        for token in typed:
            if token.line == position.line and column > (token.column or 1):
                column = max(token.column or 1, column - len("^^"))
        return Position(self.source, position.line, column)

    def _at(self, token: Token) -> Position:
        return Position(self.source, token.line or 1, token.column or 1)


def _is_typed(string: Token, name: Token) -> bool:
    """Whether a literal is written `"PT30M"xsd:duration`. An IRI has to be absolute: `"a"<?b` is a comparison."""
    if string.type != "STRING" or string.end_pos != name.start_pos:
        return False
    return name.type == "PNAME" or (name.type == "IRIREF" and re.match(r"<[A-Za-z][\w+.\-]*:", name) is not None)


def _placed(error: UserError, at: Position) -> UserError:
    return UserError(error.code, error.message, error.hint, at)


def _blank(text: str) -> str:
    return re.sub(r"[^\n\r]", " ", text)


def _shown(tokens: Sequence[Token]) -> str:
    """Tokens as they were written, but for comments, and with one blank where there were any."""
    out = str(tokens[0])
    for before, token in pairwise(tokens):
        out += f" {token}" if before.end_pos != token.start_pos else token
    return out


def _trees(tree: Node) -> list[Node]:
    return [child for child in tree.children if not isinstance(child, Token)]


def _part(tree: Node, name: str) -> Node:
    """The first part of this name, None if there is none."""
    return next((child for child in _trees(tree) if child.data == name), None)
