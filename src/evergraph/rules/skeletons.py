"""Skeletons: statements that differ in constants only are parsed once and filled in ever after.

    ex:Person[?x] :- ex:Student[?x] .      →      ○[?x] :- ○[?x] .      and      ex:Person, ex:Student

In words: a skeleton is a statement with its constants taken out. The first statement of a skeleton is parsed with an IRI of our
own, `<c:0>`, `<c:1>`, …, for each constant. What comes of it says where constants go, and whether the statement is one that
passes the checks: all of them but arities and cycles look at nothing else. Places are kept as well: what stands before an atom
is text of the skeleton, whose length is known, and constants, whose lengths are those of the statement at hand. Triples of a
body get none: whatever can be wrong with them, the skeleton or the parser has said before.

Contract: `fill` gives what parsing would give, or None: the statement is a directive, has a comment in it, or has a mistake, in
its skeleton or in a constant; then the parser reads it, and says what is wrong.
Trap: a constant is one only where the parser's lexer would start a token. Hence `_BEFORE`; and what it overlooks stays in the
skeleton, which costs time and no more. A skeleton is parsed without prefixes, so that no prefixed name can stay in it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from operator import itemgetter

from evergraph.errors import Position
from evergraph.rules.checks import check
from evergraph.rules.model import TRIPLE, Atom, BodyItem, Comparison, Negation, Program, Rule, Term
from evergraph.rules.statement import Clause, Reader, iri, literal, number, terminals, unquote

_BEFORE = r"(?<![\w?@:+\-])"
"""Within a variable, a name or a language tag nothing starts; right after one, nothing that is looked for."""


class Skeletons:
    """The skeletons of a text, and the terms of its constants."""

    def __init__(self, file: str, prefixes: Mapping[str, str]) -> None:
        self.file = file
        self.constants = _Constants(prefixes)
        self._known: dict[str, _Skeleton | None] = {}
        self._cut = _constant().split

    def fill(self, name: str | None, clause: str, line: int, column: int) -> Clause | None:
        """The rules or facts of a clause at this line and column. Cost: linear in it, but for the first of a skeleton."""
        pieces = self._cut(clause)
        texts, gaps = pieces[1::2], pieces[::2]
        key = "\0".join(gaps)
        try:
            skeleton = self._known[key]
        except KeyError:
            skeleton = self._known[key] = _skeleton(gaps)
        if skeleton is None:
            return None
        try:
            terms = [self.constants[text] for text in texts]
            called = unquote(name) if name else ""
        except (ValueError, OverflowError):
            return None
        for slot in skeleton.iris:
            if terms[slot][0] != "<":
                return None
        return skeleton.fill(texts, terms, called, self.file, line, column)


@cache
def _constant() -> re.Pattern[str]:
    """Text that stands for a term. That it has to start with a certain character is said first: most do not."""
    t = terminals()
    quoted = rf"{t['STRING']}(?:{t['LANGTAG']}|\^\^(?:{t['IRIREF']}|{t['PNAME']}))?"
    other = rf"(?=[\w:+\-]){_BEFORE}(?:{t['PNAME']}|{t['BLANK']}|{t['NUMBER']})"
    return re.compile(f"({t['IRIREF']}|{quoted}|{other})")


class _Constants(dict[str, str]):
    """The terms that constants stand for, under the prefixes in force; a ValueError where there is none."""

    def __init__(self, prefixes: Mapping[str, str]) -> None:
        super().__init__()
        self._prefixes = prefixes
        self._quoted = re.compile(terminals()["STRING"])

    def __missing__(self, text: str) -> str:
        term = self[text] = self._term(text)
        return term

    def _term(self, text: str) -> str:
        match text[0]:
            case "<":
                return iri(text)
            case '"':
                quoted = self._quoted.match(text)
                assert quoted is not None
                end = quoted.end()
                if text.startswith("^^", end):
                    return literal(quoted.group(), datatype=self[text[end + 2 :]][1:-1])
                return literal(quoted.group(), tag=text[end + 1 :] or None)
            case "_":
                return text
            case "+" | "-" | "0" | "1" | "2" | "3" | "4" | "5" | "6" | "7" | "8" | "9":
                return number(text)
        prefix, _, local = text.partition(":")
        if prefix not in self._prefixes or prefix == "NOT":
            raise ValueError(prefix)
        namespace = self._prefixes[prefix]
        if _SIMPLE(local) and _takes_names(namespace):
            return f"<{namespace}{local}>"
        return iri(f"<{namespace}{local}>")


_SIMPLE = re.compile(r"[A-Za-z0-9_]+").fullmatch


@cache
def _takes_names(namespace: str) -> bool:
    """Whether a namespace and a simple name are always an IRI: after these two characters everything else has been said."""
    return namespace.endswith(("/", "#")) and bool(iri(f"<{namespace}>"))


@dataclass(frozen=True, slots=True)
class _Place:
    """Where in a clause something stands."""

    line: int
    """How many lines below the start of the clause."""
    column: int
    """After how many characters of the skeleton in this line; one more in lines that the clause does not start in."""
    since: int
    until: int
    """Which constants stand before it in this line."""


Make = Callable[[tuple[Term, ...], Position | None], BodyItem]
Pick = Callable[[Sequence[Term]], tuple[Term, ...]]
Part = tuple[Make, Pick, _Place | None]
"""A head or body item: what makes it, of which of the statement's terms, and where it stands if a mistake can be told there."""


@dataclass(frozen=True, slots=True)
class _Skeleton:
    heads: list[Part]
    body: list[Part]
    terms: list[Term]
    """Variables, and what other terms are no constants of the statement."""
    iris: list[int]
    """The constants before a bracket: classes and properties, which are IRIs."""

    def fill(self, texts: list[str], terms: list[str], name: str, file: str, line: int, column: int) -> Clause:
        values: list[Term] = [*terms, *self.terms]

        def position(place: _Place) -> Position:
            before = place.column + sum(map(len, texts[place.since : place.until])) if place.until else place.column
            return Position(file, line + place.line, before if place.line else before + column)

        heads = [make(pick(values), position(place) if place else None) for make, pick, place in self.heads]
        body = [make(pick(values), position(place) if place else None) for make, pick, place in self.body]
        if body:
            return [Rule(head, tuple(body), name) for head in heads], []  # type: ignore[arg-type]
        return [], heads  # type: ignore[return-value]


def _skeleton(gaps: Sequence[str]) -> _Skeleton | None:
    """What a clause with these texts around its constants stands for; None if the parser should read it each time."""
    text, starts = gaps[0], []
    for number_of, gap in enumerate(gaps[1:]):
        starts.append(len(text))
        text += f"<c:{number_of}>{gap}"
    reader = Reader("", prefixes={})
    if "%" not in text:
        reader.read(text)
    found = Program(tuple(reader.rules), tuple(reader.facts))
    if reader.mistakes or check(found) or not (found.rules or found.facts):
        return None
    slots: dict[Term, int] = {f"<c:{i}>": i for i in range(len(starts))}
    terms: list[Term] = []
    lines = [0, *(m.end() for m in re.finditer("\n", text))]

    def slot(term: Term) -> int:
        if term not in slots:
            slots[term] = len(slots)
            terms.append(term)
        return slots[term]

    def place(at: Position) -> _Place:
        start = lines[at.line - 1]
        offset = start + at.column - 1
        since, until = bisect_left(starts, start), bisect_left(starts, offset)
        ours = sum(len(f"<c:{i}>") for i in range(since, until))
        return _Place(at.line - 1, offset - start - ours + (at.line > 1), since, until)

    def part(item: BodyItem, placed: bool = True) -> Part:
        assert item.position is not None
        return _maker(item), _picker([slot(t) for t in _terms(item)]), place(item.position) if placed else None

    heads = [part(head) for head in (*(rule.head for rule in found.rules), *found.facts)]
    body = [part(item, not _is_triple(item)) for item in found.rules[0].body] if found.rules else []
    return _Skeleton(heads, body, terms, [i for i, gap in enumerate(gaps[1:]) if gap.lstrip().startswith("[")])


def _is_triple(item: BodyItem) -> bool:
    """Whether it is an atom of the body that no check of a whole program speaks of."""
    return isinstance(item, Atom) and item.relation == TRIPLE


def _terms(item: BodyItem) -> tuple[Term, ...]:
    match item:
        case Negation(atom):
            return atom.terms
        case Comparison(_, left, right):
            return left, right
    return item.terms


def _maker(item: BodyItem) -> Make:
    match item:
        case Negation(atom):
            negated = atom.relation
            return lambda terms, at: Negation(Atom(negated, terms, at))
        case Comparison(operator):
            return lambda terms, at: Comparison(operator, terms[0], terms[1], at)
    return partial(Atom, item.relation)


def _picker(slots: list[int]) -> Pick:
    if len(slots) > 1:
        return itemgetter(*slots)
    return lambda values: tuple([values[slot] for slot in slots])
