"""Reading facts that lie in this process as relations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from evergraph.engines.arrays import U64
from evergraph.engines.base import Counts, Which, by_name, columns_of, keyed
from evergraph.engines.relation import Relation, Run
from evergraph.plan.model import Key
from evergraph.plan.shapes import hidden
from evergraph.rules.model import TRIPLE
from evergraph.terms import Ids


class Holding(Protocol):
    """What can be asked of whoever holds relations, all facts and those that are explicit."""

    def facts(self, which: Which) -> Mapping[Key, Relation]:
        """All facts, or the explicit ones, hidden relations among them."""

    def counts(self, which: Which) -> Counts:
        if which != Which.DERIVED:
            return _sizes(self.facts(which))
        total, explicit = _sizes(self.facts(Which.ALL)), _sizes(self.facts(Which.EXPLICIT))
        return {name: n - explicit.get(name, 0) for name, n in total.items() if n > explicit.get(name, 0)}

    def rows(self, relation: str, which: Which) -> Sequence[Ids] | None:
        """All rows of a relation, as columns; None if no fact or rule ever mentioned it."""
        explicit = self.facts(Which.EXPLICIT)
        runs: dict[Key, Run] = {}
        for key, held in self.facts(which).items():
            if relation == (TRIPLE if isinstance(key, int) else key):
                words = held.less(explicit.get(key) if which == Which.DERIVED else None)
                runs[key] = Run(held.base.arrays, held.arity, words)
        return columns_of(runs).get(relation)

    def contains(self, relation: str, row: Sequence[int]) -> bool:
        key, row = keyed(relation, row)
        found = self.facts(Which.ALL).get(key)
        return found is not None and bool(found.contains(found.base.arrays.pack([U64(v) for v in row], 1))[0])

    def relations(self, which: Which) -> Mapping[Key, Relation]:
        return {key: relation for key, relation in self.facts(which).items() if not hidden(key)}


@dataclass(frozen=True, slots=True)
class Still(Holding):
    """Facts as they are at one time: relations are immutable, so that these stay what they are."""

    all: Mapping[Key, Relation]
    explicit: Mapping[Key, Relation]

    def facts(self, which: Which) -> Mapping[Key, Relation]:
        return self.explicit if which == Which.EXPLICIT else self.all


def _sizes(relations: Mapping[Key, Relation]) -> Counts:
    """Numbers of facts by name. Cost: the relations."""
    triples = sum(relation.count for key, relation in relations.items() if type(key) is int)
    named: dict[Key, int] = {key: relation.count for key, relation in relations.items() if type(key) is str and not hidden(key)}
    return by_name({TRIPLE: triples, **named})
