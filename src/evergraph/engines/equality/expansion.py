"""What a normalised graph stands for: Iπ, every fact with every name in the place of its representative.

    I  a R b,   a stands for a and c,   b for b and d     →     a R b,  a R d,  c R b,  c R d

In words: readers see all of it. A relation is expanded when it is read, and only the facts about cliques are; how many facts
there are is counted without expanding any. Expanded relations share the base of those they come from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from evergraph.engines.arrays import Array
from evergraph.engines.equality.merging import mentioning
from evergraph.engines.equality.names import Names
from evergraph.engines.relation import Relation, Run
from evergraph.plan.model import Key
from evergraph.plan.shapes import hidden


class Expansion(Mapping[Key, Relation]):
    """The relations that readers see. Nothing in it changes; what was expanded is kept."""

    def __init__(self, relations: Mapping[Key, Relation], names: Names) -> None:
        self.relations, self.names = relations, names
        self._made: dict[Key, Relation] = {}
        self._sizes: dict[Key, int] = {}

    def __iter__(self) -> Iterator[Key]:
        arrays = self.names.arrays
        given = sorted(key for key in self.relations if isinstance(key, int))
        if given:
            _, members = self.names.members(arrays.xp.asarray(given, dtype=np.uint64))
            yield from (int(key) for key in members.tolist())
        yield from (key for key in self.relations if isinstance(key, str) and not hidden(key))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, int | str) and not hidden(key) and self.normal(key) in self.relations

    def __getitem__(self, key: Key) -> Relation:
        normal = self.normal(key)
        if normal not in self._made:
            self._made[normal] = self._expanded(self.relations[normal])
        return self._made[normal]

    def normal(self, key: Key) -> Key:
        """What stands for a relation."""
        return self.names.name(key) if isinstance(key, int) else key

    def size(self, key: Key) -> int:
        """The number of facts of a relation. Cost: linear in it once, if there are cliques; nothing is expanded.

        Without cliques, relations that say how large they are need not be read.
        """
        normal = self.normal(key)
        if normal not in self._sizes:
            known = getattr(self.relations, "sizes", None) if not len(self.names) else None
            self._sizes[normal] = self._count(self.relations[normal]) if known is None else known[normal]
        return self._sizes[normal]

    def sizes(self) -> dict[Key, int]:
        return {key: self.size(key) for key in self}

    def contains(self, key: Key, columns: Sequence[Array], count: int) -> Array:
        """For each row, whether it is a fact."""
        arrays = self.names.arrays
        relation = self.relations.get(self.normal(key))
        if relation is None:
            return arrays.xp.zeros(count, bool)
        return relation.contains(arrays.pack([self.names.of(column) for column in columns], count))

    def _count(self, relation: Relation) -> int:
        if not len(self.names):
            return len(relation)
        words = relation.rows()
        product = np.ones(len(relation), np.int64)
        for place in range(relation.arity):
            product = product * self.names.sizes(relation.base.arrays.column(words, place))
        return int(product.sum())

    def _expanded(self, relation: Relation) -> Relation:
        found = mentioning(relation, self.names.cliques()[0]) if len(self.names) else None
        return relation if not found else relation.add(expanded(self.names, found).without(found))


def expanded(names: Names, run: Run) -> Run:
    """All that facts of one relation stand for. Cost: linear in that."""
    arrays = run.arrays
    columns = [run.column(i) for i in range(run.arity)]
    for place in range(run.arity):
        number, members = names.members(columns[place])
        columns = [members if i == place else column[number] for i, column in enumerate(columns)]
    return Run(arrays, run.arity, arrays.unique([arrays.pack(columns, len(columns[0]) if columns else len(run))]))
