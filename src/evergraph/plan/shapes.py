"""Shapes: many rules that differ in constants only are one rule and a relation of constants.

    Person(?x) :- Student(?x) .
    Animal(?x) :- Cat(?x) .          →   κ₂(?x) :- κ₁(?x), µ(κ₁, κ₂) .     µ = {(Student, Person), (Cat, Animal)}

In words: a shape is a rule with its constants lifted out; those that are the same in every rule of the shape stay where
they are, the others become columns of the shape's parameter relation, one row per rule. A hundred thousand class axioms
are then one join. Cost: linear in the rules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from evergraph.plan.model import Key, PlanAtom, PlanFilter, PlanRule, Value, is_variable
from evergraph.rules.model import BUILTIN_RELATIONS

LIFT_FROM = 8
"""Fewer rules of one shape are cheaper one by one."""
PARAMETER = "µ"
"""Names of parameter relations start with this; no name in a program can."""


@dataclass(slots=True)
class Shapes:
    """Rules after lifting, and the rows of their parameter relations."""

    rules: list[PlanRule] = field(default_factory=list)
    rows: dict[str, list[tuple[int, ...]]] = field(default_factory=dict)


def lift(rules: Sequence[PlanRule], stratum: int = 0) -> Shapes:
    """Group the rules of a stratum by shape and lift what differs."""
    groups: dict[PlanRule, list[tuple[PlanRule, list[int]]]] = {}
    for rule in rules:
        shape, constants = _shape(rule)
        groups.setdefault(shape, []).append((rule, constants))
    out = Shapes()
    for shape, members in groups.items():
        if len(members) < LIFT_FROM:
            out.rules += [rule for rule, _ in members]
            continue
        columns = list(zip(*(constants for _, constants in members), strict=True))
        varying = [i for i, column in enumerate(columns) if len(set(column)) > 1]
        fixed = {f"?{PARAMETER}{i}": column[0] for i, column in enumerate(columns) if i not in varying}
        name = f"{PARAMETER}shape{stratum}.{len(out.rows)}"
        parameters = PlanAtom(name, tuple(f"?{PARAMETER}{i}" for i in varying))
        rule = _rename(shape, lambda v, fixed=fixed: fixed.get(v, v))  # type: ignore[misc]
        body = (parameters, *rule.body) if varying else rule.body
        out.rules.append(PlanRule(members[0][0].name, rule.head, body, rule.negated, rule.filters))
        if varying:
            out.rows[name] = [tuple(constants[i] for i in varying) for _, constants in members]
    return out


def _shape(rule: PlanRule) -> tuple[PlanRule, list[int]]:
    """The rule with variables renamed by first sight and constants replaced by variables, and the constants in order."""
    names: dict[str, str] = {}
    constants: list[int] = []

    def abstract(value: Value) -> Value:
        if is_variable(value):
            return names.setdefault(str(value), f"?v{len(names)}")
        constants.append(int(value))
        return f"?{PARAMETER}{len(constants) - 1}"

    shape = _rename(rule, abstract)
    return PlanRule("", shape.head, shape.body, shape.negated, shape.filters), constants


def _rename(rule: PlanRule, change: Callable[[Value], Value]) -> PlanRule:
    def atom(a: PlanAtom) -> PlanAtom:
        named = isinstance(a.relation, str) and not is_variable(a.relation)
        relation: Key = a.relation if named else change(a.relation)
        return PlanAtom(relation, tuple(map(change, a.args)))

    return PlanRule(
        rule.name,
        atom(rule.head),
        tuple(map(atom, rule.body)),
        tuple(map(atom, rule.negated)),
        tuple(PlanFilter(f.operator, change(f.left), change(f.right)) for f in rule.filters),
    )


def hidden(key: Key) -> bool:
    """Whether a relation is the engine's own business."""
    return isinstance(key, str) and (key.startswith(PARAMETER) or key in BUILTIN_RELATIONS)
