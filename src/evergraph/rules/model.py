"""The rule model: what every front end produces and every engine consumes.

A constant is the N-Triples text of an RDF term (`<http://…>`, `"1"^^<…integer>`, `_:b`), a plain `str`; a variable is a
`Variable`. A triple is an atom of the relation `TRIPLE`, with subject, predicate and object as arguments; any other
name is a named relation. Everything is immutable and compares by content; positions do not take part in comparison.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType

from evergraph.errors import Position

TRIPLE = "[]"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
OWL = "http://www.w3.org/2002/07/owl#"
XSD = "http://www.w3.org/2001/XMLSchema#"
TYPE = f"<{RDF}type>"
SAME = f"<{OWL}sameAs>"

PREFIXES: Mapping[str, str] = MappingProxyType({"rdf": RDF, "rdfs": RDFS, "owl": OWL, "xsd": XSD})

BUILTIN_RELATIONS = {"DATATYPE": 2, "SAMEVALUE": 2, "SUPPORTED": 1}
"""Relations the dictionary fills: datatypes of literals; pairs of distinct literals with one value; known datatypes."""


ONTOLOGY = "ontology"
"""The origin of rules that an ontology says."""


class Operator(StrEnum):
    """Comparisons of values, and the one filter on literals that cannot be listed."""

    EQUAL = "="
    UNEQUAL = "!="
    LESS = "<"
    LESS_OR_EQUAL = "<="
    GREATER = ">"
    GREATER_OR_EQUAL = ">="
    ILLTYPED = "ILLTYPED"


@dataclass(frozen=True, slots=True)
class Variable:
    name: str

    def __str__(self) -> str:
        return f"?{self.name}"


Term = Variable | str


@dataclass(frozen=True, slots=True)
class Atom:
    relation: str
    terms: tuple[Term, ...]
    position: Position | None = field(default=None, compare=False, repr=False)

    @property
    def variables(self) -> Iterator[Variable]:
        return (t for t in self.terms if isinstance(t, Variable))


@dataclass(frozen=True, slots=True)
class Negation:
    atom: Atom

    @property
    def variables(self) -> Iterator[Variable]:
        return self.atom.variables

    @property
    def position(self) -> Position | None:
        return self.atom.position


@dataclass(frozen=True, slots=True)
class Comparison:
    operator: Operator
    left: Term
    right: Term
    position: Position | None = field(default=None, compare=False, repr=False)

    @property
    def variables(self) -> Iterator[Variable]:
        return (t for t in (self.left, self.right) if isinstance(t, Variable))


BodyItem = Atom | Negation | Comparison


@dataclass(frozen=True, slots=True)
class Rule:
    head: Atom
    body: tuple[BodyItem, ...]
    name: str = ""
    origin: str = field(default="", compare=False)
    """What said it, if that is not the user: `ONTOLOGY`."""

    @property
    def atoms(self) -> tuple[Atom, ...]:
        return tuple(item for item in self.body if isinstance(item, Atom))

    @property
    def negations(self) -> tuple[Atom, ...]:
        return tuple(item.atom for item in self.body if isinstance(item, Negation))

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        return tuple(item for item in self.body if isinstance(item, Comparison))

    @property
    def position(self) -> Position | None:
        return self.head.position


@dataclass(frozen=True, slots=True)
class Outside:
    """An axiom of an ontology, or the part of one that `reason` names, that no rule says."""

    axiom: str
    reason: str


@dataclass(frozen=True, slots=True)
class Program:
    """Rules, the facts that stand between them, and the prefixes to print them with.

    >>> program = Program.parse("path(?x, ?y) :- edge(?x, ?y) . edge(1, 2) .")
    >>> len(program.rules), len(program.facts)
    (1, 1)
    >>> print(program, end="")
    path(?x, ?y) :- edge(?x, ?y) .
    edge(1, 2) .
    """

    rules: tuple[Rule, ...] = ()
    facts: tuple[Atom, ...] = ()
    prefixes: Mapping[str, str] = field(default_factory=lambda: PREFIXES, compare=False)
    outside: tuple[Outside, ...] = field(default=(), compare=False)
    """What the ontologies say that it was made from, and rules cannot."""

    @staticmethod
    def parse(text: str, file: str = "<text>") -> Program:
        """The program a `.dlog` text stands for; every mistake in it is reported at once."""
        from evergraph.rules.parse import parse

        return parse(text, file)

    @staticmethod
    def load(source: str | Path) -> Program:
        """A shipped rule set by its name, a `.dlog` file, or an ontology: `outside` is what of that rules cannot say."""
        from evergraph.rules.sources import load

        return load(source)

    def without(self, names: Iterable[str]) -> Program:
        """The program less every rule of these names."""
        gone = set(names)
        return Program(tuple(r for r in self.rules if r.name not in gone), self.facts, self.prefixes)

    @property
    def relations(self) -> dict[str, int]:
        """Arity by name, of all relations mentioned but triples and built-ins."""
        found: dict[str, int] = {}
        for rule in self.rules:
            for atom in (rule.head, *rule.atoms, *rule.negations):
                found[atom.relation] = len(atom.terms)
        for fact in self.facts:
            found[fact.relation] = len(fact.terms)
        return {name: n for name, n in found.items() if name != TRIPLE and name not in BUILTIN_RELATIONS}

    def __str__(self) -> str:
        from evergraph.rules.printer import print_program

        return print_program(self)
