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
from evergraph.engines.relation import Relation, Run, alike
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

    def count_from(self, last: Expansion, changed: Array) -> None:
        """Count by what was counted before; `changed` are the names that have other representatives. Cost: the change."""
        if not len(self.names) and not len(last.names):
            return
        arrays = self.names.arrays
        parts = [names.of(changed) for names in (self.names, last.names)]
        cliques = arrays.distinct(arrays.xp.concatenate(parts))
        for key, relation in self.relations.items():
            old, count = last.relations.get(key), last._sizes.get(key)
            if old is None or count is None or hidden(key):
                continue
            gained = _changed(relation, old, cliques)
            lost = _changed(old, relation, cliques)
            self._sizes[key] = count + products(self.names, gained) - products(last.names, lost)

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

    def _count(self, relation: Relation) -> int:
        if not len(self.names):
            return len(relation)
        return products(self.names, Run(relation.base.arrays, relation.arity, relation.rows()))

    def _expanded(self, relation: Relation) -> Relation:
        found = mentioning(relation, self.names.cliques()[0]) if len(self.names) else None
        return relation if not found else relation.add(expanded(self.names, found).without(found))


def _changed(some: Relation, other: Relation, cliques: Array) -> Run:
    """The rows of one relation that another lacks, or that mention one of these names."""
    arrays = some.base.arrays
    parts = [] if alike(some, other) else [some.less(other)]
    if len(cliques):
        parts.append(mentioning(some, cliques).words)
    return Run(arrays, some.arity, arrays.unique([arrays.empty(some.arity), *parts]))


def products(names: Names, run: Run) -> int:
    """How many facts these stand for."""
    product = run.arrays.xp.ones(len(run), np.int64)
    for place in range(run.arity):
        product = product * names.sizes(run.column(place))
    return int(product.sum())


def expanded(names: Names, run: Run) -> Run:
    """All that facts of one relation stand for. Cost: linear in that."""
    arrays = run.arrays
    columns = [run.column(i) for i in range(run.arity)]
    for place in range(run.arity):
        number, members = names.members(columns[place])
        columns = [members if i == place else column[number] for i, column in enumerate(columns)]
    return Run(arrays, run.arity, arrays.unique([arrays.pack(columns, len(columns[0]) if columns else len(run))]))
