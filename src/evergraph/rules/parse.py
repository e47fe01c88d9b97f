"""The `.dlog` reader: text in, `Program` out, every mistake reported with its place.

A text is cut into statements at each full stop and each statement is parsed on its own, so that ten mistakes give ten
messages. After parsing, the checks of `checks.py` run over the whole program.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Any

import pyoxigraph as ox
from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedToken

from evergraph.errors import Position, UserError, raise_all
from evergraph.rules.checks import check
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
    Program,
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


def parse(text: str, file: str, including: tuple[str, ...] = ()) -> Program:
    """Read a program. Cost: linear in the text."""
    reader = _Reader(file, including)
    for tokens in reader.statements(text):
        reader.read(tokens)
    program = Program(tuple(reader.rules), tuple(reader.facts), reader.prefixes)
    raise_all(reader.mistakes + check(program))
    return program


@cache
def _grammar() -> Lark:
    text = files("evergraph.rules").joinpath("dlog.lark").read_text()
    return Lark(text, parser="lalr", lexer="basic", propagate_positions=True, maybe_placeholders=False)


Node = Any
"""A tree of the parser; its library has no useful types."""


class _Reader:
    def __init__(self, file: str, including: tuple[str, ...]) -> None:
        self.file, self.including = file, including
        self.prefixes: dict[str, str] = dict(PREFIXES)
        self.rules: list[Rule] = []
        self.facts: list[Atom] = []
        self.mistakes: list[UserError] = []

    def statements(self, text: str) -> list[list[Token]]:
        """The tokens of the text, cut after each full stop; characters that start no token are reported and skipped."""
        out: list[list[Token]] = [[]]
        line_start, offset, skipping = 1, 0, False
        while True:
            try:
                for token in _grammar().lex(text[offset:]):
                    token.line = (token.line or 1) + line_start - 1
                    out[-1].append(token)
                    if token.type == "DOT":
                        out[-1:] = [[]] if skipping else [out[-1], []]
                        skipping = False
                break
            except UnexpectedCharacters as error:
                at = Position(self.file, error.line + line_start - 1, error.column)
                at_character = error.pos_in_stream or 0
                bad = text[offset + at_character]
                self.mistakes.append(
                    UserError("EG001", f"unexpected character {bad!r}", "quote strings, write IRIs in <…>", at)
                )
                stop = text.find("\n", offset + at_character)
                if stop < 0:
                    return out[:-1]
                line_start += text.count("\n", offset, stop + 1)
                ended = text[offset + at_character : stop].rstrip().endswith(".")
                offset = stop + 1
                out[-1], skipping = [], not ended
        if out[-1] and not skipping:
            last = out[-1][-1]
            self.mistakes.append(
                UserError("EG001", "the last statement does not end", "end every rule and fact with '.'", self.at(last))
            )
        return out[:-1]

    def at(self, token: Token) -> Position:
        return Position(self.file, token.line or 1, token.column or 1)

    def read(self, tokens: list[Token]) -> None:
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
        kept = len(self.rules), len(self.facts)
        try:
            self.statement(tree, tokens[0])
        except UserError as error:
            self.mistakes += error.mistakes
        if len(self.mistakes) > before:
            del self.rules[kept[0] :], self.facts[kept[1] :]

    def statement(self, tree: Node, first: Token) -> None:
        if tree.data == "prefix":
            self.prefixes[str(tree.children[1]).removesuffix(":")] = str(tree.children[2])[1:-1]
        elif tree.data == "include":
            self.include(str(tree.children[1])[1:-1], self.at(first))
        else:
            self.clause(tree)

    def include(self, name: str, at: Position) -> None:
        from evergraph.rules.sources import load

        included = load(name, self.including, at)
        self.rules += included.rules
        self.facts += included.facts
        self.prefixes |= {k: v for k, v in included.prefixes.items() if k not in self.prefixes}

    def clause(self, tree: Node) -> None:
        name = ""
        heads: list[Atom] = []
        body: tuple[BodyItem, ...] = ()
        for part in tree.children:
            if not isinstance(part, Tree):
                continue
            if part.data == "name":
                name = _unquote(Token("STRING", part.children[1]))
            elif part.data == "head":
                heads = [self.atom(a) for a in _trees(part)]
            elif part.data == "body":
                body = tuple(self.item(i) for i in _trees(part))
        if body:
            self.rules += [Rule(head, body, name) for head in heads]
        else:
            self.facts += heads

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
                kind = "double" if "e" in text.lower() else "decimal" if "." in text else "integer"
                return f'"{text}"^^<{XSD}{kind}>'
            case "keyword" if text == "a":
                return TYPE
            case "keyword" if text in ("true", "false"):
                return f'"{text}"^^<{XSD}boolean>'
            case "keyword":
                raise UserError("EG001", f"{text!r} is not a term", f'write ?{text}, ex:{text} or "{text}"', self.at(token))
        try:
            return str(self.literal(tree, token))
        except (ValueError, OverflowError) as error:
            raise UserError(
                "EG001", f"not a literal: {text}: {error}", "see N-Triples for what a literal is", self.at(token)
            ) from error

    def literal(self, tree: Node, token: Token) -> ox.Literal:
        if tree.data == "tagged":
            return ox.Literal(_unquote(token), language=str(tree.children[1])[1:])
        if tree.data == "typed":
            datatype = str(self.term(tree.children[2]))[1:-1]
            if datatype.endswith("angString"):
                raise ValueError("it needs a language tag")
            return ox.Literal(_unquote(token), datatype=ox.NamedNode(datatype))
        return ox.Literal(_unquote(token))

    def checked(self, iri: str, token: Token) -> str:
        """An IRI that is one."""
        try:
            return str(ox.NamedNode(iri[1:-1]))
        except ValueError as error:
            raise UserError(
                "EG001", f"not an IRI: {iri}", "write an absolute IRI, such as <http://…>", self.at(token)
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


def _unquote(token: Token) -> str:
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

    return _ESCAPE.sub(character, str(token)[1:-1])
