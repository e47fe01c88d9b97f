"""A relation of which a part stays and a part comes and goes, read as one."""

from __future__ import annotations

from collections.abc import Iterator

from evergraph.engines.arrays import Array, Words
from evergraph.engines.relation import Relation, Run


class Layered(Relation):
    """Two relations that have no row in common. Nothing is copied: readers go from one to the other."""

    __slots__ = ("above", "below")

    def __init__(self, below: Relation, above: Relation) -> None:
        super().__init__(below.base, below.plus, below.minus)
        self.below, self.above = below, above
        self.count = below.count + above.count

    def parts(self) -> Iterator[tuple[Run, Run | None]]:
        yield from self.below.parts()
        yield from self.above.parts()

    def contains(self, keys: Words) -> Array:
        found = self.below.contains(keys)
        found |= self.above.contains(keys)
        return found

    def rows(self) -> Words:
        return self.base.arrays.merge(self.below.rows(), self.above.rows())

    def settled(self) -> Relation:
        return Relation(Run(self.base.arrays, self.arity, self.rows()))

    def less(self, other: Relation | None) -> Words:
        return self.rows() if other is None else other.new(self.rows())

    def add(self, run: Run) -> Relation:
        return Layered(self.below, self.above.add(run))

    def remove(self, run: Run) -> Relation:
        return Layered(self.below.remove(run.within(self.below)), self.above.remove(run.within(self.above)))

    @property
    def nbytes(self) -> int:
        return self.below.nbytes + self.above.nbytes


def layered(below: Relation | None, above: Relation | None) -> Relation | None:
    """Both as one, as far as they have rows."""
    if below is None or not below.count:
        return above if above is not None else below
    return below if above is None or not above.count else Layered(below, above)
