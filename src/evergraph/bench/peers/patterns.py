"""Rules over ids, for peers that work on numbers, and what of a program a peer can be asked to do.

Contract: `portable` gives a program without built-ins whose closure over the file is that of the whole program, or
raises `Unsupported`. Trap: that is a statement about the file; it holds for data without typed literals, such as
LUBM.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from evergraph import inputs
from evergraph.bench.peers.base import Unsupported
from evergraph.rules.model import TRIPLE, Atom, Operator, Program, Rule, Term, Variable
from evergraph.terms import Dictionary

Column = npt.NDArray[np.uint32]
Key = int | str
"""A predicate's id or a relation's name."""
Value = int | Variable


@dataclass(frozen=True, slots=True)
class Pattern:
    """An atom over ids; triples are binary relations named by their predicate, which may be a variable."""

    relation: Key | Variable
    args: tuple[Value, ...]

    def bind(self, values: dict[Variable, int]) -> Pattern:
        relation = values.get(self.relation, self.relation) if isinstance(self.relation, Variable) else self.relation
        return Pattern(relation, tuple(values.get(a, a) if isinstance(a, Variable) else a for a in self.args))

    @property
    def variables(self) -> set[Variable]:
        return {v for v in self.args if isinstance(v, Variable)}


@dataclass(frozen=True, slots=True)
class PatternRule:
    head: Pattern
    body: tuple[Pattern, ...]
    unequal: tuple[tuple[Value, Value], ...]

    def bind(self, values: dict[Variable, int]) -> PatternRule:
        def value(v: Value) -> Value:
            return values.get(v, v) if isinstance(v, Variable) else v

        unequal = tuple((value(a), value(b)) for a, b in self.unequal)
        return PatternRule(self.head.bind(values), tuple(a.bind(values) for a in self.body), unequal)


@dataclass(frozen=True, slots=True)
class Encoded:
    """A file and a program over the same ids; `number` gives a term its id."""

    triples: tuple[Column, Column, Column]
    rules: tuple[PatternRule, ...]
    facts: tuple[Pattern, ...]
    number: Callable[[str], int]


def read(file: Path, program: Program) -> Encoded:
    """Parse and number a file with Evergraph's own reader, so that peers over ids all start from the same columns."""
    dictionary = Dictionary()
    columns = inputs.read([file], dictionary)[TRIPLE]

    def number(term: str) -> int:
        return int(dictionary.encode([term])[0])

    def value(term: Term) -> Value:
        return term if isinstance(term, Variable) else number(term)

    def pattern(atom: Atom) -> Pattern:
        args = tuple(map(value, atom.terms))
        return Pattern(args[1], (args[0], args[2])) if atom.relation == TRIPLE else Pattern(atom.relation, args)

    rules = tuple(
        PatternRule(
            pattern(r.head), tuple(map(pattern, r.atoms)), tuple((value(c.left), value(c.right)) for c in r.comparisons)
        )
        for r in program.rules
    )
    subject, predicate, value_ = (c.astype(np.uint32) for c in columns)
    return Encoded((subject, predicate, value_), rules, tuple(map(pattern, program.facts)), number)


def portable(program: Program, file: Path) -> tuple[Program, list[str]]:
    """The program less the rules that only typed literals can fire, and a note that names those rules."""
    kept = tuple(rule for rule in program.rules if not _about_values(rule))
    dropped = [rule.name or "a rule" for rule in program.rules if _about_values(rule)]
    if dropped and has_typed_literals(file):
        raise Unsupported(f"{dropped[0]} compares values of literals, and {file.name} has typed ones")
    for rule in kept:
        name = rule.name or "a rule"
        if "DATATYPE" in {a.relation for a in (*rule.atoms, *rule.negations)}:
            raise Unsupported(f"{name} reads DATATYPE, which every literal has")
        if rule.negations:
            raise Unsupported(f"{name} has a negation")
        if any(c.operator != Operator.UNEQUAL for c in rule.comparisons):
            raise Unsupported(f"{name} compares with something other than !=")
    if 0 in program.relations.values():
        raise Unsupported("a relation has no arguments")
    notes = [f"without {', '.join(dropped)}: the file has no typed literals"] if dropped else []
    return Program(kept, program.facts, program.prefixes), notes


def _about_values(rule: Rule) -> bool:
    """Whether a rule fires for typed literals only: two spellings of one value, or a spelling that has none."""
    compares = any(c.operator == Operator.ILLTYPED for c in rule.comparisons)
    return compares or any(a.relation == "SAMEVALUE" for a in rule.atoms)


def has_typed_literals(file: Path) -> bool:
    with file.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as text:
        return text.find(b'"^^<') >= 0
