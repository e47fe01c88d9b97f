"""π: which name stands for which. A clique is a set of names that are the same; its smallest name represents it.

    names   2 5 7 9        7 and 9 are the same as 2, 5 as itself:   moved 7 9,   representatives 2 2

In words: only names that something else stands for are kept, in order, beside what stands for them. Nothing is written in
place: a snapshot is a reference. `owl:sameAs` is smaller than every other name, whatever its id.
Cost: a lookup is a search among the moved names; a merge copies them.
"""

from __future__ import annotations

import numpy as np

from evergraph.engines.arrays import SHIFT, U64, Array, Arrays
from evergraph.engines.modules import MANY
from evergraph.engines.relation import Relation, Run


class Names:
    def __init__(self, arrays: Arrays, moved: Array, represented: Array) -> None:
        """`moved`, in order, have the names beside them for representatives."""
        self.arrays, self.moved, self.represented = arrays, moved, represented
        self._dense: Array | None = None
        self._sizes: Array | None = None
        self._relation: Relation | None = None
        self._by_clique: tuple[Array, Array] | None = None

    @staticmethod
    def none(arrays: Arrays) -> Names:
        """Every name stands for itself."""
        empty = arrays.xp.empty(0, U64)
        return Names(arrays, empty, empty)

    @staticmethod
    def of_pairs(arrays: Arrays, names: Array, representatives: Array) -> Names:
        """Names with what stands for them, in any order; those that stand for themselves are left out."""
        keep = names != representatives
        order = arrays.xp.argsort(names[keep])
        return Names(arrays, names[keep][order], representatives[keep][order])

    def __len__(self) -> int:
        return len(self.moved)

    # -- reading -----------------------------------------------------------------------------------------------------

    def of(self, column: Array) -> Array:
        """What stands for each name of a column. Cost: linear; a search for each name of a short one."""
        if not len(self.moved) or not len(column):
            return column
        if len(column) <= MANY:
            at, there = self.arrays.places((self.moved,), (column,))
            return self.arrays.xp.where(there, self.represented[at], column)
        if self._dense is None:
            self._dense = self.arrays.xp.arange(int(self.moved[-1]) + 1, dtype=U64)
            self._dense[self.moved] = self.represented
        top = U64(len(self._dense) - 1)
        return self.arrays.xp.where(column <= top, self._dense[self.arrays.xp.minimum(column, top)], column)

    def name(self, one: int) -> int:
        """What stands for one name."""
        return int(self.of(self.arrays.xp.asarray([one], dtype=U64))[0])

    def has(self, column: Array) -> Array:
        """For each name, whether something else stands for it."""
        return self.arrays.contains((self.moved,), (column,))

    def cliques(self) -> tuple[Array, Array]:
        """The representatives of cliques of more than one name, in order, and how many names each stands for."""
        if self._by_clique is None:
            found, starts = self.arrays.groups((self.arrays.module.sort(self.represented),))
            ends = self.arrays.xp.append(starts[1:], len(self.represented))
            self._by_clique = found[0], (ends - starts + 1).astype(np.int64)
        return self._by_clique

    def sizes(self, column: Array) -> Array:
        """How many names each representative of a column stands for."""
        out = self.arrays.xp.ones(len(column), np.int64)
        found, counts = self.cliques()
        if len(found) and len(column) > MANY:
            if self._sizes is None:
                self._sizes = self.arrays.xp.ones(int(found[-1]) + 2, np.int64)
                self._sizes[found] = counts
            return self._sizes[self.arrays.xp.minimum(column, U64(len(self._sizes) - 1))]
        if len(found) and len(column):
            at, there = self.arrays.places((found,), (column,))
            out[there] = counts[at[there]]
        return out

    def alone(self, column: Array) -> Array:
        """For each representative, whether it stands for itself only."""
        return ~self.arrays.contains((self.cliques()[0],), (column,))

    def members(self, column: Array) -> tuple[Array, Array]:
        """The names that each representative of a column stands for: its place in the column, and the name."""
        xp = self.arrays.xp
        pairs = self.relation().base.in_order((1, 0))
        low, high = self.arrays.find_ranges(pairs, [column], len(column))
        number, index = self.arrays.expand(low, high)
        names = self.arrays.column(tuple(w[index] for w in pairs), 1)
        return xp.concatenate([xp.arange(len(column)), number]), xp.concatenate([column, names])

    def relation(self) -> Relation:
        """Moved names with what stands for them, as a relation."""
        if self._relation is None:
            self._relation = Relation(Run(self.arrays, 2, (self.moved << SHIFT | self.represented,)))
        return self._relation

    # -- changing ----------------------------------------------------------------------------------------------------

    def merged(self, left: Array, right: Array, first: int) -> tuple[Names, Names]:
        """With these pairs of names in one clique each; and the representatives that no longer are, with those that are now.

        `first` is smaller than every other name. Cost: the pairs, times the logarithm of the longest chain; the moved names.
        """
        xp, arrays = self.arrays.xp, self.arrays
        left, right = self.of(left), self.of(right)
        names = arrays.distinct(xp.concatenate([left, right]))
        smallest = components(arrays, len(names), xp.searchsorted(names, left), xp.searchsorted(names, right))
        at = xp.flatnonzero(names == U64(first))
        if len(at):
            smallest[smallest == smallest[at[0]]] = at[0]
        changed = Names.of_pairs(arrays, names, names[smallest])
        represented = changed.of(self.represented)
        moved = xp.concatenate([self.moved, changed.moved])
        order = xp.argsort(moved)
        return Names(arrays, moved[order], xp.concatenate([represented, changed.represented])[order]), changed

    def parts(self, other: Names, cliques: Array) -> tuple[Names, Names]:
        """Cliques of this by what stands for their names there: each part under the representative here, names under parts.

        Cliques that are not among these are one part. Cost: the names of these cliques, and a copy of the moved names.
        """
        arrays, xp = self.arrays, self.arrays.xp
        number, members = self.members(cliques)
        there = other.of(members)
        rank = xp.where(members == cliques[number], U64(0), members + U64(1))
        order = arrays.module.lexsort((cliques[number], there, rank))
        clique, part, names = (w[order] for w in (cliques[number], there, members))
        starts = xp.ones(len(names), bool)
        starts[1:] = (clique[1:] != clique[:-1]) | (part[1:] != part[:-1])
        first = names[xp.flatnonzero(starts)][xp.cumsum(starts) - 1]
        rest = ~arrays.contains((arrays.distinct(members),), (self.moved,))
        together = Names.of_pairs(
            arrays, xp.concatenate([self.moved[rest], names]), xp.concatenate([self.represented[rest], first])
        )
        return Names.of_pairs(arrays, first[starts], clique[starts]), together

    def less(self, other: Names) -> Array:
        """The names that have another representative there, in order. Cost: linear in both."""
        if self is other:
            return self.arrays.xp.empty(0, U64)
        names = self.arrays.distinct(self.arrays.xp.concatenate([self.moved, other.moved]))
        return names[self.of(names) != other.of(names)]


def components(arrays: Arrays, count: int, left: Array, right: Array) -> Array:
    """For each of `count` numbers the smallest one that pairs connect it with. Cost: the pairs, a few times."""
    xp = arrays.xp
    label = xp.arange(count)
    while True:
        a, b = label[left], label[right]
        differ = a != b
        if not bool(differ.any()):
            return label
        low, high = xp.minimum(a, b)[differ], xp.maximum(a, b)[differ]
        arrays.module.least_at(label, high, low)
        while bool((label[label] != label).any()):
            label = label[label]
