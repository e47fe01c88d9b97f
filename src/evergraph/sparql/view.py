"""What a query reads: a snapshot of the relations, with the dictionary and the values of its terms.

Contract: relations are immutable, so a view stays what it was while the graph goes on changing, and costs nothing to take.
Triples are the binary relations under integer keys, the ids of predicates; named relations are invisible to SPARQL.
Trap: the mapping may be lazy (Spark gathers a relation when its key is read), so nothing here reads a value it does not need.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evergraph.engines.base import Which
from evergraph.engines.relation import Relation
from evergraph.errors import UserError
from evergraph.plan.model import Key
from evergraph.terms import Dictionary
from evergraph.values import Values

if TYPE_CHECKING:
    from evergraph.reading import Reading


@dataclass(frozen=True, slots=True)
class View:
    dictionary: Dictionary
    relations: Mapping[Key, Relation]
    values: Values

    @classmethod
    def of(cls, graph: Reading, which: Which | str = Which.ALL) -> View:
        """The present state of a graph: all of it, or the explicit triples."""
        if Which(which) == Which.DERIVED:
            raise UserError("EG503", "queries cannot read the derived triples alone", "use 'all' or 'explicit'")
        relations = graph._held.relations(Which(which))  # first: terms that come later do no harm
        return cls(graph._dictionary, relations, graph._values)

    def relation(self, predicate: int) -> Relation | None:
        """The pairs of one predicate, None where there are none."""
        found = self.relations.get(predicate)
        return found if found is not None and found.count else None

    def predicates(self) -> list[int]:
        """Every predicate that may have triples."""
        return [key for key in self.relations if isinstance(key, int)]

    def __len__(self) -> int:
        """The number of triples. Cost: reads every relation."""
        return sum(self.relations[key].count for key in self.predicates())
