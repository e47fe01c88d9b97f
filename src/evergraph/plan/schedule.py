"""The order of evaluation: which relations are settled before which, as the data at hand allows.

Guards (see `schema.py`) are read first; the predicates they bind turn generic rules into concrete dependencies such as
`headOf → worksFor → memberOf`. Rules that cannot fire, because a body relation is and stays empty, drop out. What is left
falls into components: those without a cycle are evaluated once, only cycles iterate.

Trap: this is only right while the schema is settled before the rest. If a rule that can fire derives schema from anything
else, everything becomes one component, the generic loop: same answer, slower.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from evergraph.plan.model import Key, PlanAtom, PlanRule, is_variable
from evergraph.plan.schema import Node, Rules
from evergraph.plan.shapes import hidden
from evergraph.rules.stratify import strongly_connected

Rows = Callable[[PlanAtom, tuple[str, ...]], Sequence[tuple[int, ...]]]
"""The distinct values that a guard atom gives some of its variables, in the data as it is."""


Concrete = tuple[int, tuple[Node, ...], Node]
"""(number of the rule, nodes of its body, node of its head)"""


ANY: Node = ("?", None)
"""The head of a rule whose predicate is not known before it fires."""


@dataclass(frozen=True, slots=True)
class Task:
    """A rule to evaluate in a component; `heads` limits a variable head predicate."""

    rule: PlanRule
    heads: frozenset[int] | None
    inner: tuple[int, ...]
    """Body atoms that read what the component itself derives."""
    absorbing: bool
    """Whether feeding the rule its own output gives nothing new (its guard is transitively closed)."""


@dataclass(frozen=True, slots=True)
class Component:
    tasks: tuple[Task, ...]

    @property
    def recursive(self) -> bool:
        return any(task.inner for task in self.tasks)


@dataclass(frozen=True, slots=True)
class Schedule:
    components: tuple[Component, ...]
    live: frozenset[Node]
    """Nodes that hold facts or may come to hold some."""
    settled: bool
    """False when the schema itself depends on other data."""
    instances: tuple[Concrete, ...] = ()
    """Rules with their predicates filled in, as far as they can fire."""
    by_object: frozenset[Key] = frozenset()
    """Binary relations that joins look up by their second argument."""


def schema_schedule(rules: Rules) -> tuple[Component, ...]:
    """Components for the rules over schema relations alone."""
    chosen = [r for r in rules.rules if _is_schema_rule(r, rules)]
    concrete = [
        (i, tuple(rules.node(a.relation, a.args) for a in r.body), rules.node(r.head.relation, r.head.args))
        for i, r in enumerate(chosen)
    ]
    return _components(chosen, concrete, lambda _: False)


def generic(rules: Rules) -> Component:
    """All rules in one loop: right for any data."""
    return looped(rules.rules)


def looped(rules: Iterable[PlanRule]) -> Component:
    """These rules in one loop."""
    return Component(tuple(_looping(rule, None) for rule in rules))


def one_loop(tasks: Iterable[Task]) -> Component:
    """The rules of these tasks, each once, in one component: right in any order of derivation."""
    rules: dict[int, PlanRule] = {}
    heads: dict[int, frozenset[int] | None] = {}
    for task in tasks:
        number = id(task.rule)
        before = heads.get(number, frozenset())
        heads[number] = None if before is None or task.heads is None else before | task.heads
        rules[number] = task.rule
    return Component(tuple(_looping(rule, heads[number]) for number, rule in rules.items()))


def one_round(rules: Iterable[PlanRule]) -> Component:
    """Rules none of which reads what another derives."""
    return Component(tuple(Task(rule, None, (), False) for rule in rules))


def _looping(rule: PlanRule, heads: frozenset[int] | None) -> Task:
    return Task(rule, heads, tuple(range(len(rule.body))), False)


def hidden_part(components: Iterable[Component]) -> tuple[Component, ...]:
    """What derives helper relations, for facts that are closed already but come without them."""
    return _part(components, hidden)


def defining(components: Iterable[Component], keys: Container[Key]) -> tuple[Component, ...]:
    """What derives these relations."""
    return _part(components, keys.__contains__)


def _part(components: Iterable[Component], chosen: Callable[[Key], bool]) -> tuple[Component, ...]:
    parts = (tuple(task for task in c.tasks if chosen(task.rule.head.relation)) for c in components)
    return tuple(Component(tasks) for tasks in parts if tasks)


def data_schedule(rules: Rules, facts: Mapping[Key, int], classes: frozenset[int], rows: Rows) -> Schedule:
    """Components for all other rules, given the closed schema.

    `facts` counts the facts of each relation, `classes` are the named classes that have instances.
    Cost: linear in the rules times the predicates their guards bind, times the depth of the dependencies.
    """
    live: set[Node] = {(key, None) for key, count in facts.items() if count}
    live |= {(rules.type_id, c) for c in classes}
    concrete = _live_instances(rules, live, rows)
    rest = [c for c in concrete if not _is_schema_rule(rules.rules[c[0]], rules)]
    settled = not any(head == ANY or head in rules.schema for _, _, head in rest)
    if not settled:
        return Schedule((generic(rules),), frozenset(live), False)
    absorbing = {i for i, _, _ in rest if _absorbs(rules.rules[i], rules.guards[i], rows)}
    components = _components(rules.rules, rest, absorbing.__contains__)
    return Schedule(components, frozenset(live), True, tuple(rest), _looked_up_by_object(rules, rest))


def _is_schema_rule(rule: PlanRule, rules: Rules) -> bool:
    atoms = (rule.head, *rule.body)
    return not any(a.open or rules.node(a.relation, a.args) not in rules.schema for a in atoms)


def _live_instances(rules: Rules, live: set[Node], rows: Rows) -> list[Concrete]:
    """Rules with their predicates filled in, as far as every body relation has, or may get, facts; grows `live`."""
    found: dict[Concrete, None] = {}
    choices = [_Choices(rule, guard, rules, rows) for rule, guard in zip(rules.rules, rules.guards, strict=True)]
    grown = True
    while grown:
        grown = False
        for number, choice in enumerate(choices):
            for body, heads in choice.instances(live):
                for head in heads:
                    found[number, body, head] = None
                    if head not in live:
                        live.add(head)
                        grown = True
                        if head[1] is not None:
                            live.add((head[0], None))
    return list(found)


class _Choices:
    """The ways in which one rule's variable predicates, and classes, can be filled in."""

    def __init__(self, rule: PlanRule, guard: tuple[PlanAtom, ...], rules: Rules, rows: Rows) -> None:
        self.rule, self.rules = rule, rules
        atoms = (rule.head, *rule.body)
        open_ = {str(a.relation) for a in atoms if a.open}
        typed = {str(a.args[1]) for a in atoms if a.relation == rules.type_id and is_variable(a.args[1])}
        bound = set().union(*(a.variables for a in guard)) if guard else set()
        self.names = tuple(sorted((open_ | typed) & bound))
        self.free = tuple(sorted({str(a.relation) for a in rule.body if a.open} - bound))
        self.rows = self._values(rows(guard[0], self.names)) if self.names else [()]

    def _values(self, rows: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
        """Rows of the guard as far as they choose a node: classes that no rule names are all the same."""
        open_ = {str(a.relation) for a in (self.rule.head, *self.rule.body) if a.open}
        plain = [i for i, name in enumerate(self.names) if name not in open_]
        if not plain:
            return list(rows)
        named = self.rules.classes
        return list(dict.fromkeys(tuple(-1 if i in plain and v not in named else v for i, v in enumerate(row)) for row in rows))

    def instances(self, live: set[Node]) -> list[tuple[tuple[Node, ...], tuple[Node, ...]]]:
        predicates = [n[0] for n in live if isinstance(n[0], int) and n[1] is None] if self.free else []
        out = []
        for row in self.rows:
            for more in product(predicates, repeat=len(self.free)):
                values = dict(zip((*self.names, *self.free), (*row, *more), strict=True))
                body = tuple(self._node(a, values) for a in self.rule.body)
                if all(node in live for node in body):
                    out.append((body, self._heads(values)))
        return out

    def _node(self, atom: PlanAtom, values: dict[str, int]) -> Node:
        relation = values[str(atom.relation)] if atom.open else atom.relation
        return self.rules.node(relation, tuple(values.get(str(a), a) for a in atom.args))

    def _heads(self, values: dict[str, int]) -> tuple[Node, ...]:
        """The node of the head; a class that is not known before may be any that rules name, a predicate any at all."""
        if self.rule.head.open and str(self.rule.head.relation) not in values:
            return (ANY,)
        node = self._node(self.rule.head, values)
        target = self.rule.head.args[1] if len(self.rule.head.args) == 2 else None
        if node[0] == self.rules.type_id and target is not None and is_variable(target) and str(target) not in values:
            return (node, *((node[0], c) for c in self.rules.classes))
        return (node,)


def _looked_up_by_object(rules: Rules, concrete: Sequence[Concrete]) -> frozenset[Key]:
    """Relations whose second argument is shared with another body atom that is no guard."""
    out = set()
    for number, body, _ in concrete:
        guard = rules.guards[number]
        atoms = [(a, n) for a, n in zip(rules.rules[number].body, body, strict=True) if a not in guard]
        for atom, node in atoms:
            if len(atom.args) == 2 and any(atom.args[1] in other.args for other, _ in atoms if other is not atom):
                out.add(node[0])
    return frozenset(out)


def _absorbs(rule: PlanRule, guard: tuple[PlanAtom, ...], rows: Rows) -> bool:
    """r(x, c) :- g(b, c), r(x, b) with g transitively closed: r after r is r.

    A fact the rule derives through g(b, c) gives, through g(c, d), only what g(b, d) gave before.
    """
    if len(guard) != 1 or len(rule.body) != 2 or len(guard[0].args) != 2 or rule.filters or rule.negated:
        return False
    other = next(a for a in rule.body if a is not guard[0])
    if other.open or other.relation != rule.head.relation or guard[0].relation == other.relation:
        return False
    differs = [i for i, (a, b) in enumerate(zip(other.args, rule.head.args, strict=True)) if a != b]
    if len(differs) != 1 or len(other.variables) != len(other.args):
        return False
    source, target = str(other.args[differs[0]]), str(rule.head.args[differs[0]])
    if {source, target} != guard[0].variables or target in other.args:
        return False
    pairs = rows(guard[0], (source, target))
    successors: dict[int, set[int]] = {}
    for a, b in pairs:
        successors.setdefault(a, set()).add(b)
    return all(successors.get(b, frozenset()) <= successors[a] for a, b in pairs)


def _components(
    rules: Sequence[PlanRule], concrete: Sequence[Concrete], absorbs: Callable[[int], bool]
) -> tuple[Component, ...]:
    """Strongly connected relations with the rules that derive them, each after all it depends on."""
    edges: dict[Node, set[Node]] = {}
    by_head: dict[Node, list[Concrete]] = {}
    for instance in concrete:
        _, body, head = instance
        edges.setdefault(head, set()).update(body)
        by_head.setdefault(head, []).append(instance)
        for node in body:
            edges.setdefault(node, set())
    for node in list(edges):
        if node[1] is not None and (node[0], None) in edges:
            edges[node[0], None].add(node)
    out = []
    for nodes in strongly_connected(edges):
        inner: dict[int, set[int]] = {}
        heads: dict[int, set[int]] = {}
        for node in sorted(nodes, key=str):
            for number, body, head in by_head.get(node, ()):
                inner.setdefault(number, set()).update(i for i, n in enumerate(body) if n in nodes)
                if isinstance(head[0], int):
                    heads.setdefault(number, set()).add(head[0])
        if inner:
            tasks = (
                Task(
                    rules[number],
                    frozenset(heads[number]) if rules[number].head.open else None,
                    tuple(sorted(atoms)),
                    absorbs(number),
                )
                for number, atoms in inner.items()
            )
            out.append(Component(tuple(tasks)))
    return tuple(out)
