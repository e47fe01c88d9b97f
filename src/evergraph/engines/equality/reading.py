"""Reading a graph of representatives as what it stands for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from evergraph.engines.arrays import U64
from evergraph.engines.base import Counts, Readable, Which, by_name, columns_of, keyed
from evergraph.engines.equality.expansion import Expansion
from evergraph.engines.relation import Relation, Run
from evergraph.plan.model import Key
from evergraph.rules.model import TRIPLE
from evergraph.terms import Ids


@dataclass(frozen=True, slots=True)
class Expanded:
    """Every name, as it stood at one time; `below` are the facts that are kept, and `given` those of them that are explicit."""

    view: Expansion
    below: Readable
    given: Mapping[Key, Relation]

    def counts(self, which: Which) -> Counts:
        if which == Which.EXPLICIT:
            return self.below.counts(which)
        total = by_name(self.view.sizes())
        return total if which == Which.ALL else less(total, self.below.counts(Which.EXPLICIT))

    def rows(self, relation: str, which: Which) -> Sequence[Ids] | None:
        if which == Which.EXPLICIT:
            return self.below.rows(relation, which)
        view = self.view
        keys = [key for key in view if relation == (TRIPLE if isinstance(key, int) else key)]
        if not keys:
            return None
        known: Callable[[Key], Relation | None] = self.given.get if which == Which.DERIVED else lambda _: None
        runs = {key: Run(view.names.arrays, view[key].arity, view[key].less(known(key))) for key in keys}
        return columns_of(runs).get(relation)

    def contains(self, relation: str, row: Sequence[int]) -> bool:
        key, row = keyed(relation, row)
        columns = [self.view.names.arrays.xp.asarray([v], dtype=U64) for v in row]
        return bool(self.view.contains(key, columns, 1)[0])

    def relations(self, which: Which) -> Mapping[Key, Relation]:
        return self.below.relations(which) if which == Which.EXPLICIT else self.view


def less(some: Counts, others: Counts) -> Counts:
    """The difference of counts, without zeros."""
    found = {name: n - others.get(name, 0) for name, n in some.items()}
    return {name: n for name, n in found.items() if n}
