"""What must hold of a program before it may run: safety, arities, stratification, built-ins used as built-ins."""

from __future__ import annotations

from collections.abc import Iterator

from evergraph.errors import UserError
from evergraph.rules.model import BUILTIN_RELATIONS, TRIPLE, Atom, Comparison, Negation, Operator, Program, Rule
from evergraph.rules.stratify import negative_cycle, show_atom

RESERVED = {*BUILTIN_RELATIONS, Operator.ILLTYPED}


def check(program: Program, new: Program | None = None) -> list[UserError]:
    """Every mistake in the program, in the order of its rules.

    `new` are the rules and facts of it that nobody has looked at yet, all of them by default: the others are known to be safe
    and to leave built-ins alone, which a rule shows by itself. Cost: linear, a tenth of it for those that are not new.
    """
    new = new if new is not None else program
    mistakes = [*_arities(program), *_heads(new)]
    for rule in new.rules:
        mistakes += _safety(rule)
    for fact in new.facts:
        mistakes += _ground(fact)
    return mistakes + unstratified(program)


def unstratified(program: Program) -> list[UserError]:
    """The mistake of a program that negates what it derives from the negation, if it does."""
    cycle = negative_cycle(program)
    if cycle is None:
        return []
    rule, path = cycle
    hint = "a relation must not depend on its own negation; break the cycle with another relation"
    return [UserError("EG005", f"negation in a cycle: {' → '.join(path)}", hint, rule.position)]


def _safety(rule: Rule) -> Iterator[UserError]:
    bound = {v for atom in rule.atoms for v in atom.variables}
    named = f" of rule {rule.name}" if rule.name else ""
    places: list[tuple[str, Atom | Comparison]] = [("the head", rule.head)]
    places += [("a negation", atom) for atom in rule.negations]
    places += [("a comparison", comparison) for comparison in rule.comparisons]
    for where, item in places:
        for variable in dict.fromkeys(v for v in item.variables if v not in bound):
            yield UserError(
                "EG003",
                f"unsafe variable {variable} in {where}{named}",
                f"use {variable} in a positive atom of the body",
                item.position,
            )


def _ground(fact: Atom) -> Iterator[UserError]:
    for variable in dict.fromkeys(fact.variables):
        yield UserError(
            "EG003",
            f"unsafe variable {variable} in a fact",
            "a fact has no variables; did a body get lost?",
            fact.position,
        )


def _arities(program: Program) -> Iterator[UserError]:
    """Relations that are used with several arities: the use that comes first in the text is right."""
    named = [atom for atom in _atoms(program) if atom.relation != TRIPLE]
    used = {(atom.relation, len(atom.terms)) for atom in named} | set(BUILTIN_RELATIONS.items())
    if len(used) == len({name for name, _ in used}):
        return
    seen: dict[str, tuple[int, str]] = {name: (n, "built in") for name, n in BUILTIN_RELATIONS.items()}
    for atom in sorted(named, key=_place):
        arity, where = seen.setdefault(atom.relation, (len(atom.terms), f"at {atom.position}" if atom.position else "before"))
        if arity != len(atom.terms):
            yield UserError(
                "EG004",
                f"{show_atom(atom)} has {len(atom.terms)} arguments, but {atom.relation} has {arity} ({where})",
                "give a relation the same number of arguments everywhere",
                atom.position,
            )


def _place(atom: Atom) -> tuple[str, int, int]:
    at = atom.position
    return (at.file, at.line, at.column) if at else ("", 0, 0)


def _heads(program: Program) -> Iterator[UserError]:
    for atom in [*(r.head for r in program.rules), *program.facts]:
        if atom.relation in RESERVED:
            yield UserError("EG006", f"{atom.relation} is built in and cannot be derived", "choose another name", atom.position)
    for rule in program.rules:
        for atom in (*rule.atoms, *rule.negations):
            if atom.relation == Operator.ILLTYPED:
                yield UserError(
                    "EG006",
                    "ILLTYPED takes a literal and a datatype and cannot be negated",
                    "write ILLTYPED(?lt, ?dt)",
                    atom.position,
                )


def _atoms(program: Program) -> Iterator[Atom]:
    for rule in program.rules:
        yield rule.head
        for item in rule.body:
            if isinstance(item, Atom):
                yield item
            elif isinstance(item, Negation):
                yield item.atom
    yield from program.facts
