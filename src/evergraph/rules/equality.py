"""Equality as rules: what `owl:sameAs` means, which rules say that themselves, and which programs can derive it.

    ≈1–≈3   what holds of a name holds of every name that is the same, in each place of a triple and of a named relation
    ≈4      every name of a triple is the same as itself

Paper: Motik, Nenov, Piro, Horrocks: Combining Rewriting and Incremental Materialisation Maintenance for Datalog Programs with
    Equality. IJCAI 2015, §2.
Departures: named relations and built-ins are replaced in as well. Every stratum has these rules: what a stratum derives is
    closed under equality before the next one negates it, and equality itself must not depend on a negation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from enum import StrEnum
from functools import cache

from evergraph.errors import UserError
from evergraph.rules.model import BUILTIN_RELATIONS, SAME, TRIPLE, Atom, BodyItem, Negation, Program, Rule, Variable
from evergraph.rules.shape import Identity, shape_of
from evergraph.rules.stratify import negative_cycle


class Equality(StrEnum):
    """How a graph treats `owl:sameAs`."""

    REWRITE = "rewrite"
    """One name stands for all that are the same."""
    AXIOMS = "axioms"
    """By rules."""
    OFF = "off"
    """As any property."""


def equality_of(asked: str | None, program: Program) -> Equality:
    """What was asked for; by default `rewrite` for a program that derives `owl:sameAs`.

    A program that negates built-ins only, and equality depends on that, would have to be refused, and never meant equality to
    be more than a property: `off`.
    """
    if asked is None:
        plain = Program(
            tuple(replace(rule, body=tuple(i for i in rule.body if not _negates_builtin(i))) for rule in program.rules)
        )
        refused = bool(unsettled(program)) and not unsettled(plain)
        return Equality.REWRITE if derives_equality(program) and not refused else Equality.OFF
    if asked not in list(Equality):
        raise UserError("EG302", f"no equality is called {asked!r}", f"use one of {', '.join(Equality)}")
    return Equality(asked)


def _negates_builtin(item: BodyItem) -> bool:
    return isinstance(item, Negation) and item.atom.relation in BUILTIN_RELATIONS


def derives_equality(program: Program) -> bool:
    """Whether a rule or a fact of the program says that names are the same, other than by what equality means anyway."""
    return any(_is_equality(rule.head) and not is_axiom(rule) for rule in program.rules) or any(
        map(_is_equality, program.facts)
    )


def _is_equality(atom: Atom) -> bool:
    return atom.relation == TRIPLE and atom.terms[1] == SAME


def is_axiom(rule: Rule) -> bool:
    """Whether a rule says no more than what equality means: ≈1–≈4, symmetry, transitivity."""
    return shape_of(rule) in _known()


@cache
def _known() -> frozenset[Identity]:
    triples = (*_replacing(TRIPLE, 3), *_reflexive(), *_symmetric_and_transitive())
    turned = (Rule(rule.head, rule.body[::-1]) for rule in triples)
    return frozenset(map(shape_of, (*triples, *turned)))


def axioms(relations: Mapping[str, int]) -> tuple[Rule, ...]:
    """≈1–≈4 for triples, built-ins, and named relations of these arities."""
    named = {**BUILTIN_RELATIONS, **relations}
    return (*_replacing(TRIPLE, 3), *(rule for name, arity in named.items() for rule in _replacing(name, arity)), *_reflexive())


def _replacing(name: str, arity: int) -> Iterable[Rule]:
    """Whatever stands in one place of a relation may be replaced by its equals."""
    terms = [Variable(f"x{place + 1}") for place in range(arity)]
    for place, term in enumerate(terms):
        other = Variable("y")
        head = Atom(name, (*terms[:place], other, *terms[place + 1 :]))
        yield Rule(head, (Atom(name, tuple(terms)), Atom(TRIPLE, (term, SAME, other))), f"equal in place {place + 1}")


def _reflexive() -> Iterable[Rule]:
    """Every name of a triple is the same as itself."""
    terms = tuple(map(Variable, ("s", "p", "o")))
    for term in terms:
        yield Rule(Atom(TRIPLE, (term, SAME, term)), (Atom(TRIPLE, terms),), "equal to itself")


def _symmetric_and_transitive() -> Iterable[Rule]:
    x, y, z = map(Variable, "xyz")
    yield Rule(Atom(TRIPLE, (y, SAME, x)), (Atom(TRIPLE, (x, SAME, y)),))
    yield Rule(Atom(TRIPLE, (x, SAME, z)), (Atom(TRIPLE, (x, SAME, y)), Atom(TRIPLE, (y, SAME, z))))


def unsettled(program: Program) -> list[UserError]:
    """The mistake of a program whose equality depends on a negation: everything depends on equality, also what is negated."""
    heads = [rule.head for rule in program.rules if rule.head.relation == TRIPLE]
    equal = [head for head in heads if head.terms[1] == SAME or isinstance(head.terms[1], Variable)]
    if not equal or not any(rule.negations for rule in program.rules):
        return []
    replaced = {(atom.relation, len(atom.terms)): atom for rule in program.rules for atom in rule.negations}
    back = [
        Rule(atom, (equality,)) for atom in replaced.values() for equality in equal if not is_axiom(Rule(atom, (equality,)))
    ]
    cycle = negative_cycle(Program((*(r for r in program.rules if not is_axiom(r)), *back)))
    if cycle is None:
        return []
    rule, path = cycle
    hint = "equality is settled before anything is negated; derive it without the negation, or use equality off"
    return [UserError("EG010", f"equality depends on a negation: {' → '.join(path)}", hint, rule.position)]
