"""A small change as relations, and its triples in one: an atom with a variable predicate reads them in one step.

Splitting triples by predicate is what makes large joins fast; for a hundred facts of twenty predicates it would be twenty
joins where one does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evergraph.engines.arrays import LOW, SHIFT, U64, Array
from evergraph.engines.relation import Relation, Run
from evergraph.plan.model import Key

MOST = 1 << 14
"""More triples than this are read predicate by predicate."""
FEW = 1 << 10
"""Up to so many different values, a change is asked for before a rule is evaluated with it."""


class Delta(dict[Key, Relation]):
    def __init__(self, relations: Mapping[Key, Relation]) -> None:
        super().__init__(relations)
        self._triples: Relation | None = None
        self._values: dict[tuple[Key, int], Array | None] = {}

    def named(self, key: Key, place: int) -> Array | None:
        """The different values of one argument of a relation, or the predicates of all triples; None if they are many.

        Cost: a sort, once.
        """
        at = (key, place) if place >= 0 else ("", place)
        if at not in self._values:
            self._values[at] = self._distinct(key, place)
        return self._values[at]

    def _distinct(self, key: Key, place: int) -> Array | None:
        some = self.get(key) if place >= 0 else next(iter(self.values()), None)
        if some is None:
            return None
        arrays = some.base.arrays
        if place < 0:
            found = arrays.xp.asarray(sorted(k for k in self if isinstance(k, int)), dtype=U64)
        elif some.count > 8 * FEW:
            return None
        else:
            found = arrays.distinct(arrays.column(some.rows(), place))
        return found if len(found) <= FEW else None

    @staticmethod
    def of(runs: Mapping[Key, Run]) -> Delta:
        return Delta({key: Relation(run) for key, run in runs.items()})

    def triples(self) -> Relation | None:
        """Predicate, subject and object of all triples; None when there are many, or none. Cost: linear in them, once."""
        if self._triples is None:
            keys = sorted(key for key in self if isinstance(key, int))
            if not 0 < sum(self[key].count for key in keys) <= MOST:
                return None
            self._triples = gathered(keys, self)
        return self._triples


def gathered(keys: Sequence[int], relations: Mapping[Key, Relation]) -> Relation:
    """The triples of predicates, given in order, as one relation: sorted, because each of them is."""
    arrays = relations[keys[0]].base.arrays
    xp = arrays.xp
    words = xp.concatenate([relations[key].rows()[0] for key in keys])
    counts = xp.asarray([relations[key].count for key in keys])
    predicate = xp.asarray(keys, dtype=U64)[arrays.module.repeat(counts)]
    return Relation(Run(arrays, 3, arrays.pack([predicate, words >> SHIFT, words & LOW], len(words))))
