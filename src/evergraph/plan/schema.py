"""Schema first: the atoms that say *which* relations a rule is about are evaluated before those that read them.

In `[?x, ?q, ?y] :- [?p, subPropertyOf, ?q], [?x, ?p, ?y]` the first atom is the *guard*: it binds the predicates of the
others. Guards, and what they are derived from by rules over guards alone, are the schema. A guard of several atoms becomes
one parameter relation:

    [?x, a, ?c] :- svf(?c, ?d), onProperty(?c, ?p), [?x, ?p, ?y], [?y, a, ?d] .
→   µ(?c, ?d, ?p) :- svf(?c, ?d), onProperty(?c, ?p) .      [?x, a, ?c] :- µ(?c, ?d, ?p), [?x, ?p, ?y], [?y, a, ?d] .

so that an update of instance data joins one small relation and not three. This is a rewriting of rules: it is right
whatever the data, also when instance data derives schema; then schedules have fewer steps and longer loops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from evergraph.plan.model import PARAMETER, Key, PlanAtom, PlanRule, is_parameter, is_variable
from evergraph.plan.shapes import digest

Node = tuple[Key, int | None]
"""What rules depend on: a relation, or the instances of one class that rules name (its id second)."""


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules with their guards cut out, and what the schema is."""

    rules: tuple[PlanRule, ...]
    guards: tuple[tuple[PlanAtom, ...], ...]
    """For each rule the body atoms that bind predicates or classes."""
    schema: frozenset[Node]
    type_id: int
    classes: frozenset[int]
    """Classes that rule bodies name: their instances are nodes of their own."""

    def node(self, relation: Key, args: tuple[object, ...]) -> Node:
        """The node of an atom whose relation is known."""
        if relation == self.type_id and len(args) == 2 and args[1] in self.classes:
            return relation, args[1]
        return relation, None


def survey(rules: Sequence[PlanRule], type_id: int) -> Rules:
    """Which relations are schema, and which classes are named. Cost: linear in the rules, times a few passes."""
    classes = frozenset(
        atom.args[1]
        for rule in rules
        for atom in (*rule.body, *rule.negated)
        if atom.relation == type_id and not is_variable(atom.args[1])
    )
    plain = Rules((), (), frozenset(), type_id, classes)  # type: ignore[arg-type]
    schema = {plain.node(a.relation, a.args) for rule in rules for a in _binding_atoms(rule, type_id)}
    schema |= {(a.relation, None) for rule in rules for a in rule.body if is_parameter(a.relation)}
    closed = [
        (plain.node(rule.head.relation, rule.head.args), {plain.node(a.relation, a.args) for a in (*rule.body, *rule.negated)})
        for rule in rules
        if _closed(rule, type_id, classes)
    ]
    grown = True
    while grown:
        grown = False
        for head, nodes in closed:
            if head in schema and not nodes <= schema:
                schema |= nodes
                grown = True
    return replace(plain, schema=frozenset(schema))


Guarded = tuple[PlanRule, tuple[PlanAtom, ...]]
"""A rule and its guard."""


def cut_guard(rule: PlanRule, known: Rules) -> tuple[Guarded, ...]:
    """The rule with its guard; a guard of several atoms becomes one, which a rule of its own defines."""
    type_id = known.type_id

    def is_schema(atom: PlanAtom) -> bool:
        return not atom.open and not _reads_type(atom, type_id) and known.node(atom.relation, atom.args) in known.schema

    atoms = _binding_atoms(rule, type_id)
    atoms = atoms or [a for a in rule.body if a.variables & _selectors(rule.head, type_id) and is_schema(a)]
    guard = _connected(rule, atoms, is_schema)
    if len(guard) < 2 or (len(guard) == len(rule.body) and not _selectors(rule.head, type_id)):
        return ((rule, guard),)
    definition, cut = _cut(rule, guard, f"{PARAMETER}guard{digest(rule.content)}")
    return ((definition, ()), (cut, (cut.body[0],)))


def assemble(guarded: Iterable[Guarded], type_id: int) -> Rules:
    """Rules with their guards cut as one program."""
    pairs = list(guarded)
    rules = tuple(rule for rule, _ in pairs)
    return replace(survey(rules, type_id), rules=rules, guards=tuple(guard for _, guard in pairs))


def _binding_atoms(rule: PlanRule, type_id: int) -> list[PlanAtom]:
    """Body atoms that bind a variable which stands for a predicate, or for a class in the body, elsewhere in the rule."""
    head = {str(rule.head.relation)} if rule.head.open else set()
    out = []
    for atom in rule.body:
        others = head.union(*(_selectors(other, type_id) for other in rule.body if other is not atom))
        if not atom.open and not _reads_type(atom, type_id) and atom.variables & others:
            out.append(atom)
    return out


def _selectors(atom: PlanAtom, type_id: int) -> set[str]:
    """The variables of an atom that choose what it reads or writes."""
    chosen = [atom.relation]
    if atom.relation == type_id:
        chosen.append(atom.args[1])
    return {str(v) for v in chosen if is_variable(v)}


def _reads_type(atom: PlanAtom, type_id: int) -> bool:
    return atom.relation == type_id and is_variable(atom.args[1])


def _closed(rule: PlanRule, type_id: int, classes: frozenset[object]) -> bool:
    """Whether every atom of the rule names its relation, and none is about instances at large."""
    return not any(
        a.open or (a.relation == type_id and a.args[1] not in classes) for a in (rule.head, *rule.body, *rule.negated)
    )


def _connected(rule: PlanRule, atoms: list[PlanAtom], is_schema: Callable[[PlanAtom], bool]) -> tuple[PlanAtom, ...]:
    """The guard: binding atoms, and other schema atoms that share a variable with it, in the order of the body."""
    guard = list(atoms)
    grown = bool(guard)
    while grown:
        grown = False
        known = set().union(*(a.variables for a in guard))
        for atom in rule.body:
            if atom not in guard and is_schema(atom) and atom.variables & known:
                guard.append(atom)
                grown = True
                break
    return tuple(a for a in rule.body if a in guard)


def _cut(rule: PlanRule, guard: tuple[PlanAtom, ...], name: str) -> tuple[PlanRule, PlanRule]:
    """The rule that defines the guard's parameter relation, and the rule that reads it."""
    inside = set().union(*(a.variables for a in guard))
    filters = tuple(f for f in rule.filters if f.variables <= inside)
    rest = tuple(a for a in rule.body if a not in guard)
    others = tuple(f for f in rule.filters if f not in filters)
    outside = rule.head.variables.union(*(a.variables for a in (*rest, *rule.negated)), *(f.variables for f in others))
    parameters = PlanAtom(name, tuple(sorted(inside & outside)))
    definition = PlanRule(rule.name, parameters, guard, (), filters)
    return definition, PlanRule(rule.name, rule.head, (parameters, *rest), rule.negated, others)
