"""What a normalised graph stands for: Iπ, every fact with every name in the place of its representative.

    I  a R b,   a stands for a and c,   b for b and d     →     a R b,  a R d,  c R b,  c R d

In words: readers see all of it. A relation is expanded when it is read, and only the facts about cliques are; how many facts
there are is counted without expanding any. Expanded relations share the base of those they come from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from evergraph.engines.arrays import Array, Words
from evergraph.engines.equality.merging import mentioning
from evergraph.engines.equality.names import Names
from evergraph.engines.relation import Relation, Run
from evergraph.plan.model import Key
from evergraph.plan.shapes import hidden


class Expansion(Mapping[Key, Relation]):
    """The relations that readers see. Nothing in it changes; what was expanded is kept."""

    def __init__(self, relations: Mapping[Key, Relation], names: Names, known: Expansion | None = None) -> None:
        """What is known of a graph with the same names is taken over. Cost: the changes of relations that were counted."""
        self.relations, self.names = relations, names
        self._made: dict[Key, Relation] = {}
        self._sizes: dict[Key, int] = {}
        if known is not None and known.names is names:
            self._take_over(known)

    def _take_over(self, known: Expansion) -> None:
        for key, size in known._sizes.items():
            old, new = known.relations[key], self.relations.get(key)
            if new is old:
                self._sizes[key] = size
            elif new is not None and new.base is old.base:
                self._sizes[key] = size + self._count(new, new.less(old)) - self._count(old, old.less(new))
        self._made = {key: made for key, made in known._made.items() if self.relations.get(key) is known.relations[key]}

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
        """The number of facts of a relation. Cost: linear in it once, if there are cliques; nothing is expanded."""
        normal = self.normal(key)
        if normal not in self._sizes:
            relation = self.relations[normal]
            self._sizes[normal] = self._count(relation, relation.rows()) if len(self.names) else len(relation)
        return self._sizes[normal]

    def sizes(self) -> dict[Key, int]:
        return {key: self.size(key) for key in self}

    def tally(self, key: Key, place: int) -> dict[Key, int]:
        """How many facts of a relation have each name in one place. Cost: linear in what is kept of it; nothing is expanded."""
        relation = self.relations.get(self.normal(key))
        if relation is None:
            return {}
        words, arrays = relation.rows(), self.names.arrays
        found, number = np.unique(arrays.column(words, place), return_inverse=True)
        product = np.ones(len(relation), np.int64)
        for other in range(relation.arity):
            if other != place:
                product = product * self.names.sizes(arrays.column(words, other))
        counts = np.bincount(number, product, len(found)).astype(np.int64)
        at, members = self.names.members(found)
        return dict(zip(members.tolist(), counts[at].tolist(), strict=True))

    def contains(self, key: Key, columns: Sequence[Array], count: int) -> Array:
        """For each row, whether it is a fact."""
        arrays = self.names.arrays
        relation = self.relations.get(self.normal(key))
        if relation is None:
            return arrays.xp.zeros(count, bool)
        return relation.contains(arrays.pack([self.names.of(column) for column in columns], count))

    def _count(self, relation: Relation, words: Words) -> int:
        """What rows of a relation stand for."""
        product = np.ones(len(words[0]), np.int64)
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
