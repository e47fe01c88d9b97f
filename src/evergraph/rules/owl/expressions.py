"""Class expressions: from the nodes of an ontology to a small tree, and the tree in Manchester syntax.

Contract: every node gives an expression. One that is malformed, or that no rule could ever say, is `Beyond` with its reason, so
that the axiom around it can still be compiled as far as it goes. Blank nodes do not survive: a tree knows only IRIs, literals
and anonymous individuals. Trap: nodes may refer to themselves, or to each other in ways that unfold without end; then the whole
expression is `Beyond`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from evergraph.rules.owl.triples import Malformed, Triples
from evergraph.rules.owl.vocabulary import (
    CARDINALITIES,
    CONSTRUCTORS,
    DATATYPES,
    INVERSE,
    NOTHING,
    ON_CLASS,
    ON_DATA_RANGE,
    ON_PROPERTY,
    THING,
    is_datatype,
    name_of,
    owl,
)

Name = Callable[[str], str]
"""A term as its reader writes it."""

MOST_PARTS = 100_000
DEEPEST = 100
_NUMBER = re.compile(r'"\+?([0-9]{1,9})"(?:\^\^<[^>]*>)?$')


@dataclass(frozen=True, slots=True)
class Property:
    iri: str
    inverse: bool = False


@dataclass(frozen=True, slots=True)
class Named:
    iri: str


@dataclass(frozen=True, slots=True)
class Data:
    """A datatype."""

    iri: str


@dataclass(frozen=True, slots=True)
class And:
    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Or:
    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Not:
    part: Expression


@dataclass(frozen=True, slots=True)
class OneOf:
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Some:
    property: Property
    filler: Expression


@dataclass(frozen=True, slots=True)
class Only:
    property: Property
    filler: Expression


@dataclass(frozen=True, slots=True)
class Value:
    property: Property
    value: str


@dataclass(frozen=True, slots=True)
class Itself:
    property: Property


@dataclass(frozen=True, slots=True)
class Count:
    """`kind` is min, max or exactly; without a filler the restriction is not qualified."""

    kind: str
    number: int
    property: Property
    filler: Expression | None


@dataclass(frozen=True, slots=True)
class Beyond:
    """Malformed, or outside wherever it stands."""

    reason: str


Expression = Named | Data | And | Or | Not | OneOf | Some | Only | Value | Itself | Count | Beyond
EVERYTHING, NONE = Named(THING), Named(NOTHING)


class Endless(Malformed):
    """An expression without end, or so large that it might as well have none."""


class Expressions:
    """Reads nodes; a node is read once."""

    def __init__(self, triples: Triples) -> None:
        self.triples = triples
        self._read: dict[str, tuple[Expression, int]] = {}
        self._path: list[str] = []

    def of(self, node: str) -> Expression:
        """The class expression or data range that a node stands for. Cost: linear in the expression."""
        try:
            return self._sized(node)[0]
        except Endless as error:
            return Beyond(f"malformed: {error}")

    def defined(self, node: str, constructor: str, value: str) -> Expression:
        """What one constructor of a node says; for names that carry a definition themselves, as in OWL 1."""
        try:
            return self._construct(node, constructor, value)[0]
        except Malformed as error:
            return Beyond(f"malformed: {error}")

    def property(self, node: str) -> Property:
        """A property, or the inverse of one."""
        if node.startswith("<"):
            return Property(node)
        seen, inverse = set(), False
        while node.startswith("_:"):
            if node in seen:
                raise Malformed("a property that is its own inverse expression")
            seen.add(node)
            node, inverse = self.triples.one(node, INVERSE), not inverse
        if not node.startswith("<"):
            raise Malformed("a literal where a property is expected")
        return Property(node, inverse)

    def _sized(self, node: str) -> tuple[Expression, int]:
        if node.startswith("<"):
            data = is_datatype(node) or not DATATYPES.isdisjoint(self.triples.types(node))
            return (Data(node) if data else Named(node)), 1
        if node not in self._read:
            try:
                self._read[node] = self._anonymous(node)
            except Endless:  # not only this node: all that it is in
                raise
            except Malformed as error:
                self._read[node] = Beyond(f"malformed: {error}"), 1
        return self._read[node]

    def _anonymous(self, node: str) -> tuple[Expression, int]:
        if not node.startswith("_:"):
            raise Malformed("a literal where a class is expected")
        if node in self._path:
            raise Endless("an expression that contains itself")
        if len(self._path) == DEEPEST:
            raise Endless(f"nested deeper than {DEEPEST} levels")
        said = self.triples.of(node)
        found = [(name, value) for name in CONSTRUCTORS for value in said.get(name, ())]
        if len(found) != 1:
            raise Malformed(f"an anonymous class that says {'more than one thing' if found else 'nothing'}")
        self._path.append(node)
        try:
            expression, size = self._construct(node, *found[0])
        finally:
            self._path.pop()
        if size > MOST_PARTS:
            raise Endless(f"more than {MOST_PARTS:,} parts")
        return expression, size

    def _construct(self, node: str, constructor: str, value: str) -> tuple[Expression, int]:
        """The expression that a constructor makes of its value and of what else the node says."""
        match name_of(constructor):
            case "intersectionOf" | "unionOf" as name:
                sized = [self._sized(item) for item in self.triples.items(value)]
                parts, size = tuple(part for part, _ in sized), 1 + sum(size for _, size in sized)
                if len(parts) == 1:
                    return parts[0], size
                if not parts:
                    return (EVERYTHING if name == "intersectionOf" else NONE), size
                return (And(parts) if name == "intersectionOf" else Or(parts)), size
            case "complementOf":
                part, size = self._sized(value)
                return Not(part), size + 1
            case "oneOf":
                members = tuple(self.triples.items(value))
                return (OneOf(members) if members else NONE), 1 + len(members)
            case "onDatatype" | "datatypeComplementOf":
                return Beyond("a datatype restriction"), 1
            case _:
                return self._restrict(node, constructor, value)

    def _restrict(self, node: str, constructor: str, value: str) -> tuple[Expression, int]:
        if owl("onProperties") in self.triples.of(node):
            return Beyond("a restriction on several properties"), 1
        property_ = self.property(self.triples.one(node, ON_PROPERTY))
        match name_of(constructor):
            case "someValuesFrom" | "allValuesFrom" as name:
                filler, size = self._sized(value)
                return (Some(property_, filler) if name == "someValuesFrom" else Only(property_, filler)), size + 1
            case "hasValue":
                return Value(property_, value), 1
            case "hasSelf":
                if not value.startswith(('"true"', '"1"')):
                    raise Malformed("owl:hasSelf that is not true")
                return Itself(property_), 1
        number = _NUMBER.match(value)
        if number is None:
            raise Malformed("a cardinality that is no number")
        qualified = [v for name in (ON_CLASS, ON_DATA_RANGE) for v in self.triples.of(node).get(name, ())]
        if len(qualified) != ("ualified" in constructor):
            raise Malformed("a cardinality with too many or too few classes to count")
        count_of, size = self._sized(qualified[0]) if qualified else (None, 0)
        return Count(CARDINALITIES[constructor], int(number[1]), property_, count_of), size + 1


def show_property(property_: Property, name: Name) -> str:
    return f"inverse {name(property_.iri)}" if property_.inverse else name(property_.iri)


def show(expression: Expression, name: Name) -> str:
    """Manchester syntax. Cost: linear in the expression."""
    match expression:
        case Named(iri) | Data(iri):
            return name(iri)
        case And(parts) | Or(parts):
            between = " and " if isinstance(expression, And) else " or "
            return between.join(_inner(part, name) for part in parts)
        case Not(part):
            return f"not {_inner(part, name)}"
        case OneOf(members):
            return "{" + ", ".join(map(name, members)) + "}"
        case Some(p, filler):
            return f"{_role(p, name)} some {_inner(filler, name)}"
        case Only(p, filler):
            return f"{_role(p, name)} only {_inner(filler, name)}"
        case Value(p, value):
            return f"{_role(p, name)} value {name(value)}"
        case Itself(p):
            return f"{_role(p, name)} Self"
        case Count(kind, number, p, filler):
            return f"{_role(p, name)} {kind} {number}" + (f" {_inner(filler, name)}" if filler else "")
        case Beyond():
            return "[…]"


def _role(property_: Property, name: Name) -> str:
    shown = show_property(property_, name)
    return f"({shown})" if property_.inverse else shown


def _inner(expression: Expression, name: Name) -> str:
    shown = show(expression, name)
    return shown if isinstance(expression, Named | Data | OneOf | Beyond) else f"({shown})"
