"""Shapes: what is left of a rule when its constants are lifted out and its variables are numbered.

    Person(?x) :- Student(?x) .   and   Animal(?y) :- Cat(?y) .        have one shape and differ in their constants

A shape and the constants, in the order of the text, are the *identity* of a rule: two rules that differ in the names of their
variables, or in their own names, are the same rule. `rdf:type` and `owl:sameAs` as predicates belong to the shape: class atoms,
property atoms and equalities are different things to every reader, and to every plan.
"""

from __future__ import annotations

from collections.abc import Iterable

from evergraph.rules.model import SAME, TRIPLE, TYPE, Atom, Comparison, Negation, Rule, Term, Variable

Shape = tuple[str | None, ...]
"""Relations, operators, variables by number (`?0`, `?1`, …), and None in the place of each constant."""
Constants = tuple[str, ...]
Identity = tuple[Shape, Constants]

APART = (TYPE, SAME)
"""Predicates that belong to the shape."""
_NUMBERED = [f"?{i}" for i in range(64)]


def shape_of(rule: Rule) -> Identity:
    """The identity of a rule. Cost: linear in its terms, some microseconds."""
    names: dict[str, str] = {}
    out: list[str | None] = []
    constants: list[str] = []

    def add(terms: Iterable[Term]) -> None:
        for term in terms:
            if isinstance(term, Variable):
                known = names.get(term.name)
                if known is None:
                    number = len(names)
                    known = names[term.name] = _NUMBERED[number] if number < len(_NUMBERED) else f"?{number}"
                out.append(known)
            else:
                out.append(None)
                constants.append(term)

    def add_atom(atom: Atom) -> None:
        terms = atom.terms
        if atom.relation == TRIPLE and terms[1] in APART:
            out.append(str(terms[1]))
            add((terms[0], terms[2]))
        else:
            out.append(atom.relation)
            add(terms)

    add_atom(rule.head)
    for item in rule.body:
        if isinstance(item, Atom):
            add_atom(item)
        elif isinstance(item, Negation):
            out.append("NOT")
            add_atom(item.atom)
        else:
            assert isinstance(item, Comparison)
            out.append(item.operator)
            add((item.left, item.right))
    return tuple(out), tuple(constants)
