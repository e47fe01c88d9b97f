"""Shapes: many rules that differ in constants only are one rule and a relation of constants.

    Person(?x) :- Student(?x) .
    Animal(?x) :- Cat(?x) .          →   κ₂(?x) :- κ₁(?x), µ(κ₁, κ₂) .     µ = {(Student, Person), (Cat, Animal)}

In words: constants that are the same in every rule of a shape stay where they are, the others become columns of the shape's
parameter relation, one row per rule. A hundred thousand class axioms are then one join, and one axiom more is one row more.
A rule that is alone in its shape can be turned on and off in the same way, by a parameter relation without arguments.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from evergraph.plan.model import PARAMETER, Key, PlanAtom, PlanFilter, PlanRule, Value, is_parameter
from evergraph.rules.model import BUILTIN_RELATIONS, TRIPLE, Atom, Comparison, Negation, Rule, Term, Variable
from evergraph.rules.shape import APART, Constants

LIFT_FROM = 8
"""Fewer rules of one shape are cheaper one by one."""

Ids = Callable[[str], int]
"""The id of a constant."""


@dataclass(frozen=True, slots=True)
class Lifted:
    """Rules of one shape as one rule and a relation."""

    name: str
    """Of the parameter relation."""
    rule: PlanRule
    varying: tuple[int, ...]
    """The constants, by their number, that are columns of the relation."""
    fixed: tuple[tuple[int, str], ...]
    """The others, with what they are in every rule."""

    def takes(self, constants: Constants) -> bool:
        """Whether a rule of the shape with these constants is a row of the relation."""
        return all(constants[place] == text for place, text in self.fixed)

    def columns(self, rows: Iterable[Constants]) -> list[list[str]]:
        """The rows of rules, column by column."""
        chosen = list(rows)
        return [[constants[place] for constants in chosen] for place in self.varying]


def lift(sample: Rule, rows: Sequence[Constants], ids: Ids, name: str) -> Lifted:
    """Rules of one shape, of which one is at hand and the constants of all. Cost: linear in the constants."""
    varying = tuple(i for i, column in enumerate(zip(*rows, strict=True)) if any(c != rows[0][i] for c in column))
    fixed = tuple((i, text) for i, text in enumerate(rows[0]) if i not in varying)
    relation = f"{PARAMETER}{name}{digest(fixed)}"
    body = _write(sample, lambda place, text: f"?{PARAMETER}{place}" if place in varying else ids(text), ids)
    parameters = PlanAtom(relation, tuple(f"?{PARAMETER}{i}" for i in varying))
    return Lifted(relation, replace(body, body=(parameters, *body.body)), varying, fixed)


def plain(rule: Rule, ids: Ids) -> PlanRule:
    """One rule by itself, with its variables numbered."""
    return _write(rule, lambda _, text: ids(text), ids)


def switched(rules: Sequence[PlanRule], relation: str) -> tuple[PlanRule, ...]:
    """The same, in force while the relation holds its one fact; a rule that reads what another derives needs no switch."""
    derived = {rule.head.relation for rule in rules if is_parameter(rule.head.relation)}

    def switch(rule: PlanRule) -> PlanRule:
        fed = any(atom.relation in derived for atom in rule.body)
        return rule if fed else replace(rule, body=(PlanAtom(relation, ()), *rule.body))

    return tuple(map(switch, rules))


def unswitched(rule: PlanRule) -> PlanRule:
    """The rule without its switch."""
    return replace(rule, body=tuple(atom for atom in rule.body if atom.args or not is_parameter(atom.relation)))


def _write(rule: Rule, constant: Callable[[int, str], Value], ids: Ids) -> PlanRule:
    """The rule with what `constant` says for each constant and its place, in the order of `rules.shape`."""
    names: dict[str, str] = {}
    seen = 0

    def value(term: Term) -> Value:
        nonlocal seen
        if isinstance(term, Variable):
            return names.setdefault(term.name, f"?v{len(names)}")
        seen += 1
        return constant(seen - 1, term)

    def atom(a: Atom) -> PlanAtom:
        if a.relation != TRIPLE:
            return PlanAtom(a.relation, tuple(map(value, a.terms)))
        if a.terms[1] in APART:
            subject, object_ = value(a.terms[0]), value(a.terms[2])
            return PlanAtom(ids(str(a.terms[1])), (subject, object_))
        subject, predicate, object_ = map(value, a.terms)
        return PlanAtom(predicate, (subject, object_))

    head = atom(rule.head)
    body: list[PlanAtom] = []
    negated: list[PlanAtom] = []
    filters: list[PlanFilter] = []
    for item in rule.body:
        if isinstance(item, Negation):
            negated.append(atom(item.atom))
        elif isinstance(item, Comparison):
            left = value(item.left)
            filters.append(PlanFilter(str(item.operator), left, value(item.right)))
        else:
            body.append(atom(item))
    return PlanRule(rule.name, head, tuple(body), tuple(negated), tuple(filters))


def digest(content: object) -> str:
    """A short name for something that prints: the same for the same, in every process."""
    return hashlib.blake2b(repr(content).encode(), digest_size=8).hexdigest()


def hidden(key: Key) -> bool:
    """Whether a relation is the engine's own business."""
    return isinstance(key, str) and (key.startswith(PARAMETER) or key in BUILTIN_RELATIONS)
