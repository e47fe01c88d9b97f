"""A small change as relations, and its triples in one: an atom with a variable predicate reads them in one step.

Splitting triples by predicate is what makes large joins fast; for a hundred facts of twenty predicates it would be twenty
joins where one does.
"""

from __future__ import annotations

from collections.abc import Mapping

from evergraph.engines.arrays import U64
from evergraph.engines.relation import Relation, Run
from evergraph.plan.model import Key

MOST = 1 << 14
"""More triples than this are read predicate by predicate."""


class Delta(dict[Key, Relation]):
    _triples: Relation | None = None

    @staticmethod
    def of(runs: Mapping[Key, Run]) -> Delta:
        return Delta({key: Relation(run) for key, run in runs.items()})

    def triples(self) -> Relation | None:
        """Predicate, subject and object of all triples; None when there are many, or none. Cost: a sort, once."""
        if self._triples is None:
            split = [(key, relation) for key, relation in self.items() if isinstance(key, int)]
            if not 0 < sum(relation.count for _, relation in split) <= MOST:
                return None
            arrays = split[0][1].base.arrays
            parts = []
            for key, relation in split:
                subject, value = relation.columns()
                parts.append(arrays.pack([arrays.xp.full(relation.count, key, U64), subject, value], relation.count))
            self._triples = Relation(Run(arrays, 3, arrays.unique(parts)))
        return self._triples
