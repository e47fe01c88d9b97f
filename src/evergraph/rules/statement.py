"""One statement of the `.dlog` syntax: its tokens, its tree, and what that means.

The grammar is `dlog.lark`. Half a millisecond for a rule, most of it the parser's: what is read by the hundred thousand goes
through `skeletons.py`, and comes here once for each skeleton and for every mistake.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import pyoxigraph as ox
from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedToken

from evergraph.errors import Position, UserError
from evergraph.rules.model import (
    PREFIXES,
    TRIPLE,
    TYPE,
    XSD,
    Atom,
    BodyItem,
    Comparison,
    Negation,
    Operator,
    Outside,
    Rule,
    Term,
    Variable,
)

EXPECTED = {
    "ARROW": "':-'", "COMMA": "','", "DOT": "'.'", "SQUARE_OPEN": "'['", "SQUARE_CLOSE": "']'", "ROUND_OPEN": "'('",
    "ROUND_CLOSE": "')'", "VARIABLE": "a variable such as ?x", "IDENTIFIER": "a relation name", "IRIREF": "an <iri>",
    "PNAME": "a prefixed name", "STRING": "a string", "NUMBER": "a number", "NOT": "NOT",
}  # fmt: skip
"""How a token that would have been right is called in a hint."""


@cache
def _grammar() -> Lark:
    text = files("evergraph.rules").joinpath("dlog.lark").read_text()
    return Lark(text, parser="lalr", lexer="basic", propagate_positions=True, maybe_placeholders=False)


def terminals() -> dict[str, str]:
    """The patterns of all tokens by name, in the order in which they are tried."""
    found = sorted(_grammar().terminals, key=lambda t: (-t.priority, -t.pattern.max_width, -len(t.pattern.value), t.name))
    return {t.name: t.pattern.to_regexp() for t in found}


Node = Any
"""A tree of the parser; its library has no useful types."""
Clause = tuple[list[Rule], list[Atom]]
"""The rules, or the facts, that a statement stands for."""


class Reader:
    """What has been read of a file, and every mistake in it."""

    def __init__(self, file: str, including: tuple[str, ...] = (), prefixes: Mapping[str, str] = PREFIXES) -> None:
        self.file, self.including = file, including
        self.prefixes = dict(prefixes)
        self.rules: list[Rule] = []
        self.facts: list[Atom] = []
        self.outside: list[Outside] = []
        self.parsed_rules: list[Rule] = []
        self.parsed_facts: list[Atom] = []
        """Those of the rules and facts that were parsed here, and that nobody has checked."""
        self.mistakes: list[UserError] = []

    def at(self, token: Token) -> Position:
        return Position(self.file, token.line or 1, token.column or 1)

    def tokens(self, text: str, line: int = 1, column: int = 1) -> list[Token]:
        """The tokens of a text that has nothing else in it and starts at this line and column of its file."""
        out = list(_grammar().lex(text))
        for token in out:
            token.column = (token.column or 1) + (column - 1 if token.line == 1 else 0)
            token.line = (token.line or 1) + line - 1
        return out

    def read(self, text: str, line: int = 1, column: int = 1) -> None:
        """Parse a statement, and keep what it says if it has no mistake."""
        tokens = self.tokens(text, line, column)
        parser = _grammar().parse_interactive("")
        try:
            for token in tokens:
                parser.feed_token(token)
            tree = parser.feed_eof(tokens[-1])
        except UnexpectedToken as error:
            wanted = sorted({EXPECTED[t] for t in error.accepts or error.expected if t in EXPECTED})
            shown = error.token if error.token.type != "$END" else tokens[-1]
            hint = f"expected {' or '.join(wanted[:4])}" if wanted else "see the syntax in the README"
            self.mistakes.append(UserError("EG001", f"unexpected {str(shown)!r}", hint, self.at(shown)))
            return
        before = len(self.mistakes)
        try:
            rules, facts = self.statement(tree, tokens[0])
        except UserError as error:
            self.mistakes += error.mistakes
        if len(self.mistakes) == before:
            self.rules += rules
            self.facts += facts
            self.parsed_rules += rules
            self.parsed_facts += facts

    def statement(self, tree: Node, first: Token) -> Clause:
        if tree.data == "prefix":
            self.prefixes[str(tree.children[1]).removesuffix(":")] = str(tree.children[2])[1:-1]
        elif tree.data == "include":
            self.include(str(tree.children[1])[1:-1], self.at(first))
        else:
            return self.clause(tree)
        return [], []

    def include(self, name: str, at: Position) -> None:
        from evergraph.rules.sources import load

        included = load(name, self.including, at)
        self.rules += included.rules
        self.facts += included.facts
        self.outside += included.outside
        self.prefixes |= {k: v for k, v in included.prefixes.items() if k not in self.prefixes}

    def clause(self, tree: Node) -> Clause:
        name = ""
        heads: list[Atom] = []
        body: tuple[BodyItem, ...] = ()
        for part in tree.children:
            if not isinstance(part, Tree):
                continue
            if part.data == "name":
                name = self.name(part.children[1])
            elif part.data == "head":
                heads = [self.atom(a) for a in _trees(part)]
            elif part.data == "body":
                body = tuple(self.item(i) for i in _trees(part))
        return ([Rule(head, body, name) for head in heads], []) if body else ([], heads)

    def name(self, token: Node) -> str:
        try:
            return unquote(str(token))
        except ValueError as error:
            raise UserError("EG001", f"not a name: {token}: {error}", "see N-Triples for escapes", self.at(token)) from error

    def item(self, tree: Node) -> BodyItem:
        if tree.data == "negation":
            return Negation(self.atom(_trees(tree)[0]))
        if tree.data == "comparison":
            left, operator, right = tree.children
            return Comparison(Operator(operator), self.term(left), self.term(right), self.at(operator))
        atom = self.atom(tree)
        if atom.relation == Operator.ILLTYPED and len(atom.terms) == 2:
            return Comparison(Operator.ILLTYPED, *atom.terms, atom.position)
        return atom

    def atom(self, tree: Node) -> Atom:
        at = Position(self.file, tree.meta.line, tree.meta.column)
        terms = [self.term(t) for t in _trees(tree)]
        if tree.data == "class_atom":
            return Atom(TRIPLE, (terms[1], TYPE, terms[0]), at)
        if tree.data == "property_atom":
            return Atom(TRIPLE, (terms[1], terms[0], terms[2]), at)
        return Atom(TRIPLE if tree.data == "triple" else str(tree.children[0]), tuple(terms), at)

    def term(self, tree: Node) -> Term:
        token: Token = tree.children[0]
        text = str(token)
        match tree.data:
            case "variable":
                return Variable(text[1:])
            case "full_iri":
                return self.checked(text, token)
            case "prefixed":
                return self.expand(token)
            case "blank":
                return text
            case "number":
                return number(text)
            case "keyword" if text == "a":
                return TYPE
            case "keyword" if text in ("true", "false"):
                return f'"{text}"^^<{XSD}boolean>'
            case "keyword":
                raise UserError("EG001", f"{text!r} is not a term", f'write ?{text}, ex:{text} or "{text}"', self.at(token))
        try:
            if tree.data == "typed":
                return literal(text, datatype=str(self.term(tree.children[2]))[1:-1])
            return literal(text, tag=str(tree.children[1])[1:] if tree.data == "tagged" else None)
        except (ValueError, OverflowError) as error:
            raise UserError(
                "EG001", f"not a literal: {text}: {error}", "see N-Triples for what a literal is", self.at(token)
            ) from error

    def checked(self, text: str, token: Token) -> str:
        """An IRI that is one."""
        try:
            return iri(text)
        except ValueError as error:
            raise UserError(
                "EG001", f"not an IRI: {text}", "write an absolute IRI, such as <http://…>", self.at(token)
            ) from error

    def expand(self, token: Token) -> str:
        prefix, _, local = str(token).partition(":")
        if prefix not in self.prefixes:
            known = ", ".join(sorted(self.prefixes))
            mistake = UserError(
                "EG002",
                f"unknown prefix {prefix + ':'!r}",
                f"declare it with '@prefix {prefix}: <…> .'; known: {known}",
                self.at(token),
            )
            self.mistakes.append(mistake)
            return "<unknown:>"
        return self.checked(f"<{self.prefixes[prefix]}{local}>", token)


def _trees(tree: Node) -> list[Node]:
    return [child for child in tree.children if isinstance(child, Tree)]


_ESCAPE = re.compile(r"""\\(?:([tbnrf"'\\])|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|.?)""", re.DOTALL)
_ESCAPES = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", '"': '"', "'": "'", "\\": "\\"}


def iri(text: str) -> str:
    """The term of an IRI in angle brackets; a ValueError if it is none."""
    return str(ox.NamedNode(text[1:-1]))


def number(text: str) -> str:
    """The term of a number: its type is how it is written."""
    kind = "double" if "e" in text.lower() else "decimal" if "." in text else "integer"
    return f'"{text}"^^<{XSD}{kind}>'


def literal(text: str, tag: str | None = None, datatype: str | None = None) -> str:
    """The term of a quoted string with a language tag, a datatype or neither; a ValueError if there is no such literal."""
    if datatype is None:
        return str(ox.Literal(unquote(text), language=tag))
    if datatype.endswith("angString"):
        raise ValueError("it needs a language tag")
    return str(ox.Literal(unquote(text), datatype=ox.NamedNode(datatype)))


def unquote(text: str) -> str:
    """The characters a quoted string stands for."""

    def character(match: re.Match[str]) -> str:
        short, four, eight = match.groups()
        if short:
            return _ESCAPES[short]
        if not (four or eight):
            raise ValueError(f"unknown escape {match.group()}")
        code = int(four or eight, 16)
        if 0xD800 <= code < 0xE000:
            raise ValueError(f"{match.group()} is no character")
        return chr(code)

    return _ESCAPE.sub(character, text[1:-1]) if "\\" in text else text[1:-1]
