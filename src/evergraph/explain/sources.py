"""What a search reads: facts with the built-in ones beside them, and rules by what they derive."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from evergraph.engines.arrays import Arrays
from evergraph.engines.relation import Relation, run_of
from evergraph.plan.model import Key, PlanRule, Value, is_variable
from evergraph.terms import Ids

Rows = Callable[[int], tuple[Ids, ...]]
"""The rows of a built-in relation about all terms from an id on."""


class Builtins:
    """Built-in relations, each made when it is first read. Cost: linear in the terms."""

    def __init__(self, rows: Mapping[str, Rows]) -> None:
        self.rows = rows
        self._made: dict[Key, Relation] = {}

    def __getitem__(self, key: Key) -> Relation:
        if key not in self._made:
            columns = self.rows[str(key)](0)
            self._made[key] = Relation(run_of(Arrays(), columns, len(columns[0])))
        return self._made[key]


class Facts(Mapping[Key, Relation]):
    """The relations of an engine, and built-in ones for those who know their names.

    Trap: iteration leaves the built-in ones out, or a rule with a variable predicate would make them all.
    """

    def __init__(self, relations: Mapping[Key, Relation], builtins: Builtins) -> None:
        self._relations, self._builtins = relations, builtins

    def __getitem__(self, key: Key) -> Relation:
        return self._builtins[key] if key in self._builtins.rows else self._relations[key]

    def __contains__(self, key: object) -> bool:
        return key in self._relations or key in self._builtins.rows

    def __iter__(self) -> Iterator[Key]:
        return iter(self._relations)

    def __len__(self) -> int:
        return len(self._relations)


class Heads:
    """Rules by what they derive: a hundred thousand class axioms must not each be tried for one type."""

    def __init__(self, rules: Sequence[PlanRule]) -> None:
        """Cost: linear in the rules."""
        self.rules = rules
        self._by: dict[Key, dict[Value | None, list[int]]] = {}
        for number, rule in enumerate(rules):
            last = rule.head.args[-1] if rule.head.args else None
            constant = None if last is None or is_variable(last) else last
            key = "?" if rule.head.open else rule.head.relation
            self._by.setdefault(key, {}).setdefault(constant, []).append(number)

    def of(self, asked: Mapping[Key, Relation]) -> list[PlanRule]:
        """The rules whose heads may be one of these facts, in the order of the program."""
        found: set[int] = set()
        for key, relation in asked.items():
            values = set(relation.base.distinct(relation.arity - 1).tolist()) if relation.arity else set()
            for by_value in (self._by.get(key, {}), self._by.get("?", {}) if isinstance(key, int) else {}):
                for value in (by_value.keys() & values) | {None}:
                    found.update(by_value.get(value, ()))
        return [self.rules[number] for number in sorted(found)]
