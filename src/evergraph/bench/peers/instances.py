"""Rules with their predicates filled in, and the order to evaluate them in: what a good SQL script would spell out.

`[?x, a, ?c] :- [?p, domain, ?c], [?x, ?p, ?y]` becomes one instance per property that has a domain, and every instance
reads one table per atom. Instances know how much of each table they have seen; one is *stale* when a table has grown
since. Any order of evaluating stale instances ends in the closure; the order given here settles a relation before those
that depend on it, so that most are computed once.

Trap: instances are as many as the predicates their guards bind. That is right for tens or hundreds of properties, not
for a hundred thousand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from evergraph.bench.peers.patterns import Key, Pattern, PatternRule
from evergraph.rules.model import Variable
from evergraph.rules.stratify import strongly_connected

Node = tuple[Key, int | None]
"""A relation, or the instances of one class that rules name."""
Rows = Callable[[Sequence[Variable], Sequence[Pattern]], Sequence[tuple[int, ...]]]
"""The distinct values some variables take in a join of atoms."""
SMALL = 1000
"""Atoms with fewer facts than this help to bind predicates even if they do not mention them."""


class Counts:
    """How many facts each relation has, and each class that rules name."""

    def __init__(self, rules: Sequence[PatternRule], type_id: int) -> None:
        self.type_id = type_id
        self.rows: dict[Key, int] = {}
        self.classes: dict[int, int] = {}
        for atom in (a for rule in rules for a in rule.body if a.relation == type_id):
            if isinstance(atom.args[1], int):
                self.classes[atom.args[1]] = 0

    def node(self, atom: Pattern) -> Node:
        """The node of an atom whose relation is known."""
        assert not isinstance(atom.relation, Variable)
        target = atom.args[1] if atom.relation == self.type_id else None
        return atom.relation, target if isinstance(target, int) and target in self.classes else None

    def __getitem__(self, node: Node) -> int:
        key, target = node
        return self.rows.get(key, 0) if target is None else self.classes[target]

    def of(self, atom: Pattern) -> int:
        return self[self.node(atom)]

    @property
    def predicates(self) -> list[int]:
        return [key for key in self.rows if isinstance(key, int)]

    @property
    def live(self) -> set[Node]:
        return {(key, None) for key, n in self.rows.items() if n} | {(self.type_id, c) for c, n in self.classes.items() if n}


@dataclass(slots=True)
class Instance:
    """A rule in which every relation is known."""

    rule: PatternRule
    head: Key
    body: tuple[Key, ...]
    nodes: tuple[Node, ...]
    seen: list[int]
    """Facts of each body relation that it has been evaluated over."""


class Instances:
    """All instances of a program over the tables as they are; `refresh` keeps up with them."""

    def __init__(self, rules: Sequence[PatternRule], counts: Counts, rows: Rows) -> None:
        self._counts, self._rows = counts, rows
        self._rules = [_Open(rule, counts) for rule in rules]
        self._known: dict[tuple[int, tuple[int, ...]], Instance] = {}
        self._ranks: Mapping[Key, int] = {}

    def next(self) -> dict[Key, list[Instance]]:
        """The stale instances of the first relations in order, by head; empty when the closure is complete."""
        if self._refresh():
            self._ranks = self._order()
        stale = [i for i in self._known.values() if self._stale(i)]
        first = min((self._ranks[i.head] for i in stale), default=0)
        chosen: dict[Key, list[Instance]] = {}
        for instance in stale:
            if self._ranks[instance.head] == first:
                chosen.setdefault(instance.head, []).append(instance)
        return chosen

    def now(self, instance: Instance) -> list[int]:
        return [self._counts.rows.get(key, 0) for key in instance.body]

    def _stale(self, instance: Instance) -> bool:
        return all(self._counts[node] for node in instance.nodes) and instance.seen != self.now(instance)

    def _refresh(self) -> bool:
        """Add the instances that what guards have learnt brings; whether there were any."""
        before = len(self._known)
        for number, rule in enumerate(self._rules):
            if rule.outdated():
                for values in rule.bindings(self._rows):
                    key = tuple(values[v] for v in rule.open)
                    if (number, key) not in self._known:
                        self._known[number, key] = self._instance(rule.rule.bind(values))
        return len(self._known) > before

    def _instance(self, rule: PatternRule) -> Instance:
        nodes = tuple(map(self._counts.node, rule.body))
        return Instance(rule, self._counts.node(rule.head)[0], tuple(key for key, _ in nodes), nodes, [0] * len(nodes))

    def _order(self) -> dict[Key, int]:
        """A rank for each relation: after those it depends on, as far as the rules in between can ever fire."""
        live = self._counts.live
        waiting = list(self._known.values())
        edges: dict[Key, set[Key]] = {}
        grown = True
        while grown:
            firing = [i for i in waiting if all(node in live for node in i.nodes)]
            waiting = [i for i in waiting if i not in firing]
            grown = bool(firing)
            for instance in firing:
                edges.setdefault(instance.head, set()).update(instance.body)
                live |= self._derives(instance)
        for key in set().union(*edges.values()):
            edges.setdefault(key, set())
        return {key: rank for rank, keys in enumerate(strongly_connected(edges)) for key in keys}

    def _derives(self, instance: Instance) -> set[Node]:
        """The nodes a head may fill: a class that is a variable may be any that rules name."""
        nodes = {(instance.head, None), self._counts.node(instance.rule.head)}
        if instance.head == self._counts.type_id and isinstance(instance.rule.head.args[1], Variable):
            nodes |= {(instance.head, c) for c in self._counts.classes}
        return nodes


class _Open:
    """A rule, the variables in it that stand for predicates, and when it last looked for their values."""

    def __init__(self, rule: PatternRule, counts: Counts) -> None:
        self.rule, self._counts = rule, counts
        named = {a.relation for a in (rule.head, *rule.body) if isinstance(a.relation, Variable)}
        self.open = tuple(sorted(named, key=str))
        closed = [a for a in rule.body if not isinstance(a.relation, Variable)]
        self._guards = [a for a in closed if a.variables & named]
        self._others = [a for a in closed if a not in self._guards] if named else []
        self._free = not named <= set().union(*(a.variables for a in self._guards))
        self._chained = any(isinstance(a.relation, Variable) and a.variables & named for a in rule.body)
        self._looked: list[int] | None = None

    def outdated(self) -> bool:
        """Whether anything has changed since the last call that `bindings` looks at."""
        now = [self._counts.of(a) for a in self._guards] + [min(self._counts.of(a), SMALL) for a in self._others]
        if self._free:
            now.append(len(self._counts.predicates))
        if self._chained:
            now.append(sum(self._counts.rows.values()))
        if now == self._looked:
            return False
        self._looked = now
        return True

    def bindings(self, rows: Rows, values: Mapping[Variable, int] | None = None) -> Iterator[dict[Variable, int]]:
        """Every way to fill in the predicates: guards bind them where they can, else every predicate is tried."""
        values = dict(values or {})
        missing = [v for v in self.open if v not in values]
        if not missing:
            yield values
            return
        closed = [a for a in self.rule.bind(values).body if not isinstance(a.relation, Variable)]
        guards = [a for a in closed if a.variables & set(missing)]
        if not all(map(self._counts.of, guards)):
            return
        if not guards:
            for predicate in self._counts.predicates:
                yield from self.bindings(rows, {**values, missing[0]: predicate})
            return
        mentioned = set().union(*(a.variables for a in guards))
        helpful = [a for a in closed if a not in guards and 0 < self._counts.of(a) < SMALL and a.variables & mentioned]
        names = [v for v in missing if v in mentioned]
        for row in rows(names, guards + helpful):
            yield from self.bindings(rows, {**values, **dict(zip(names, row, strict=True))})
