"""Rules under equality: what engines get of rules that derive `owl:sameAs`, and rules whose constants are renamed.

    [?y1, ≈, ?y2] :- [?x, :p, ?y1], [?x, :p, ?y2] .      →   µone(?x, ?y) :- [?x, :p, ?y] .      all ?y of one ?x are one

In words: a rule that makes all values of a group equal would derive a pair for every two of them. Where its body falls into a
part about the one and a part about the other, it derives instead which values belong to which group, in a helper relation
whose last argument depends on the others; the engine merges the values of a group (`engines.equality`). That is linear where
the pairs are quadratic: a functional property with four thousand values is four thousand rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from evergraph.plan.compile import Plan
from evergraph.plan.model import PARAMETER, Key, PlanAtom, PlanFilter, PlanRule, Value, is_parameter, is_variable
from evergraph.plan.schema import Rules, assemble
from evergraph.plan.shapes import digest, unswitched
from evergraph.rules.model import Operator

ONE = f"{PARAMETER}one"
"""Names of relations whose last argument depends on the others start with this."""
ONE_IF_UNEQUAL = f"{ONE}≠"
"""The same, of values that are merged only if some of them differ as values."""


def is_group(key: Key) -> bool:
    return isinstance(key, str) and key.startswith(ONE)


def grouped(rule: PlanRule, same: int) -> tuple[PlanRule, ...]:
    """The rule by groups, or as it is. Cost: linear in the rule."""
    one, other = rule.head.args if len(rule.head.args) == 2 else (0, 0)
    if rule.head.relation != same or not (is_variable(one) and is_variable(other)) or one == other:
        return (rule,)
    sides = [[atom for atom in rule.body if name in atom.variables] for name in (one, other)]
    if any(atom in sides[1] for atom in sides[0]) or not all(sides):
        return (rule,)
    unequal = [f for f in rule.filters if f.operator == Operator.UNEQUAL and f.variables == {one, other}]
    filters = tuple(f for f in rule.filters if f not in unequal)
    if any({one, other} <= f.variables for f in filters):
        return (rule,)
    common = [atom for atom in rule.body if atom not in sides[0] and atom not in sides[1]]
    shared = sorted(_variables((*sides[0], *common)) & _variables((*sides[1], *common)))
    name = f"{ONE_IF_UNEQUAL if unequal else ONE}{digest(unswitched(rule).content)}"
    group = tuple(shared) or (same,)
    if _alike(rule, sides, filters, str(one), str(other)):
        mine = tuple(f for f in filters if other not in f.variables)
        body = tuple(atom for atom in rule.body if atom not in sides[1])
        found = [PlanRule(rule.name, PlanAtom(name, (*group, one)), body, (), mine)]
    elif unequal:
        return (rule,)
    else:
        found = [PlanRule(rule.name, PlanAtom(name, (*group, end)), rule.body, (), filters) for end in (one, other)]
    if not unequal and not any(map(_is_triple, (*sides[0], *sides[1]))):
        itself = PlanAtom(same, ("?y", "?y"))
        found.append(PlanRule(rule.name, itself, (PlanAtom(name, (*(f"?z{i}" for i in range(len(group))), "?y")),)))
    return tuple(found)


def _variables(atoms: Iterable[PlanAtom]) -> set[str]:
    return set().union(*(atom.variables for atom in atoms))


def _alike(rule: PlanRule, sides: list[list[PlanAtom]], filters: tuple[PlanFilter, ...], one: str, other: str) -> bool:
    """Whether the rule says the same of both when they change places."""
    turned = {one: other, other: one}

    def turn(value: Value) -> Value:
        return turned.get(str(value), value)

    atoms = {PlanAtom(turn(atom.relation), tuple(map(turn, atom.args))) for atom in sides[0]}
    checks = {PlanFilter(f.operator, turn(f.left), turn(f.right)) for f in filters}
    return atoms == set(sides[1]) and checks == set(filters)


def reflexive(same: int) -> Iterator[PlanRule]:
    """Every name of a triple is the same as itself (≈4)."""
    body = (PlanAtom("?p", ("?s", "?o")),)
    for term in ("?s", "?p", "?o"):
        yield PlanRule("equal to itself", PlanAtom(same, (term, term)), body)


def reflexive_constants(rules: Iterable[PlanRule], same: int) -> Iterator[PlanRule]:
    """The same for constants that triples of these rules would bring, whether or not they do.

    For strata that negate: whether a name is the same as itself must be settled before.
    """
    seen: set[PlanRule] = set()
    for rule in rules:
        head = rule.head
        if not _is_triple(head):
            continue
        given = [atom for atom in rule.body if is_parameter(atom.relation)]
        for term in (head.relation, *head.args):
            itself = PlanAtom(same, (term, term))
            source = next((atom for atom in given if term in atom.args), None)
            if isinstance(term, int) or source is not None:
                made = PlanRule("equal to itself", itself, () if source is None else (source,))
                if made not in seen:
                    seen.add(made)
                    yield made


def irreflexive(plan: Plan) -> Plan:
    """The plan without ≈4, for an engine that sees to it itself. Cost: linear in the compiled rules."""
    assert plan.same is not None
    itself = set(reflexive(plan.same))
    return replace(plan, strata=tuple(_without(rules, itself, plan.type_id) for rules in plan.strata))


def _without(rules: Rules, less: set[PlanRule], type_id: int) -> Rules:
    return assemble(((r, guard) for r, guard in zip(rules.rules, rules.guards, strict=True) if r not in less), type_id)


@dataclass(frozen=True, slots=True)
class Brought:
    """Where triples that rules derive may have names from that no triple had."""

    ids: frozenset[int]
    columns: frozenset[tuple[Key, int]]
    """Of parameter relations."""
    places: frozenset[tuple[Key, int]]
    """Where such names stand: relation and argument; a variable for any relation."""
    anywhere: bool
    """Whether named relations may bring any."""


def brought(plan: Plan) -> Brought:
    """Cost: linear in the compiled rules."""
    ids: set[int] = set()
    columns: set[tuple[Key, int]] = set()
    places: set[tuple[Key, int]] = set()
    anywhere = False
    for rule in (rule for rules in plan.strata for rule in rules.rules):
        if not _is_triple(rule.head):
            continue
        known = {term for atom in rule.body if _is_triple(atom) for term in (atom.relation, *atom.args)}
        for place, term in enumerate((rule.head.relation, *rule.head.args), -1):
            if term in known:
                continue
            places.add(("?" if rule.head.open else rule.head.relation, place))
            given = [atom for atom in rule.body if is_parameter(atom.relation) and term in atom.args]
            columns.update((atom.relation, atom.args.index(term)) for atom in given)
            if isinstance(term, int):
                ids.add(term)
            elif not given:
                anywhere = True
    return Brought(frozenset(ids), frozenset(columns), frozenset(places), anywhere)


def _is_triple(atom: PlanAtom) -> bool:
    return atom.open or isinstance(atom.relation, int)


def compares(plan: Plan) -> bool:
    """Whether a rule compares values, or values are merged if some of them differ."""
    rules = [rule for rules in plan.strata for rule in rules.rules]
    return any(rule.filters or str(rule.head.relation).startswith(ONE_IF_UNEQUAL) for rule in rules)


def constants(plan: Plan) -> set[int]:
    """The ids that rules name."""
    return {
        value
        for rules in plan.strata
        for rule in rules.rules
        for atom in (rule.head, *rule.body, *rule.negated)
        for value in (atom.relation, *atom.args)
        if isinstance(value, int)
    }


def renamed(plan: Plan, name: Callable[[int], int]) -> Plan:
    """The plan with other names for its constants; comparisons keep theirs. Cost: linear in the compiled rules."""

    def value(one: Value) -> Value:
        return name(one) if isinstance(one, int) else one

    def atom(one: PlanAtom) -> PlanAtom:
        return PlanAtom(value(one.relation), tuple(map(value, one.args)))

    def rule(one: PlanRule) -> PlanRule:
        body, negated = tuple(map(atom, one.body)), tuple(map(atom, one.negated))
        return PlanRule(one.name, atom(one.head), body, negated, one.filters)

    type_id = name(plan.type_id)
    strata = tuple(
        assemble(((rule(r), tuple(map(atom, guard))) for r, guard in zip(rules.rules, rules.guards, strict=True)), type_id)
        for rules in plan.strata
    )
    return replace(plan, strata=strata, type_id=type_id)
