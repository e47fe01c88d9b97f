"""A vocabulary and the versions it goes through, from a seed: names renamed, moved, deleted and added.

A version is the set of its axioms; what changes between two is a difference of sets. A change is drawn until a version differs
from the one before by half a percent to two percent of the axioms:

    rename     every axiom about the name is now about the new one, and the old one, which data still uses, is below the new
    move       a class or property gets another one above it, none of those below it
    delete     what was below it is below what was above it; its domain and range go, and domains and ranges that it was
    add        a class or property below one that is there; a property with domain and range
    restrict   a property gets another domain or range

Names that change are drawn from all, or from the fringe: those that, with all below them, few facts use. Vocabularies that are
kept up change there; what everybody uses stays.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

from evergraph.bench.rules.axioms import Axiom

CLASSES, PROPERTIES = 1600, 400
LEAST, MOST = 0.005, 0.02
"""The part of its axioms in which a version differs from the one before."""


@dataclass(slots=True)
class Vocabulary:
    """Names by what is above them, and the domains and ranges of properties."""

    above: dict[str, dict[str, str]] = field(default_factory=lambda: {"subclass": {}, "subproperty": {}})
    ends: dict[str, dict[str, str]] = field(default_factory=lambda: {"domain": {}, "range": {}})
    made: int = 0
    """How many names there have ever been: numbers are not used twice."""
    used: Counter[str] = field(default_factory=Counter)
    """In how many facts a name is."""
    most: float = math.inf
    """In how many facts a name may be that changes, with all below it."""

    @property
    def axioms(self) -> frozenset[Axiom]:
        parts = {**self.above, **self.ends}
        return frozenset(Axiom(kind, lower, upper) for kind, pairs in parts.items() for lower, upper in pairs.items() if upper)

    def names(self, kind: str) -> list[str]:
        return list(self.above[kind])

    def draw(self, kind: str, rng: Random) -> str:
        """A name that may change and is no root; the one that is used least, if all are used too much. Cost: linear."""
        above = self.above[kind]
        weights = Counter({name: self.used[name] for name in above})
        for name in above:
            for upper in list(_upwards(above, name))[1:]:
                weights[upper] += self.used[name]
        below = [name for name in above if above[name]]
        return rng.choice([name for name in below if weights[name] <= self.most] or [min(below, key=weights.__getitem__)])

    def add(self, kind: str, rng: Random) -> str:
        """A new name below one that is there; the first is the root."""
        there = self.names(kind)
        name = f"{'C' if kind == 'subclass' else 'p'}{self.made}"
        self.made += 1
        self.above[kind][name] = rng.choice(there) if there else ""
        return name

    def restrict(self, name: str, kind: str, rng: Random) -> None:
        """A domain or range: one of the classes that have been there longest, which are high up."""
        classes = self.names("subclass")
        self.ends[kind][name] = rng.choice(classes[: max(1, len(classes) // 20)])


def first(classes: int, properties: int, rng: Random) -> Vocabulary:
    """A vocabulary to start from: trees in which a name is below any that came before it, about ten levels."""
    out = Vocabulary()
    for _ in range(classes):
        out.add("subclass", rng)
    for _ in range(properties):
        name = out.add("subproperty", rng)
        for kind in out.ends:
            out.restrict(name, kind, rng)
    return out


def versions(vocabulary: Vocabulary, number: int, rng: Random) -> Iterator[frozenset[Axiom]]:
    """The axioms at first, and after each of so many versions. The vocabulary is left as the last one has it."""
    before = vocabulary.axioms
    yield before
    for _ in range(number):
        wanted = rng.uniform(LEAST, MOST) * len(before)
        while len(before ^ vocabulary.axioms) < wanted:
            rng.choice([rename, move, delete, add, restrict])(vocabulary, rng)
        before = vocabulary.axioms
        yield before


def _kind(rng: Random) -> str:
    """Which tree changes: that of classes more often."""
    return rng.choice(["subclass", "subclass", "subclass", "subproperty"])


def rename(vocabulary: Vocabulary, rng: Random) -> None:
    kind = _kind(rng)
    old, above = vocabulary.draw(kind, rng), vocabulary.above[kind]
    new = vocabulary.add(kind, rng)
    above[new] = above[old]
    for name, one in above.items():
        if one == old:
            above[name] = new
    above[old] = new
    for ends in vocabulary.ends.values():
        if old in ends:
            ends[new] = ends.pop(old)
        ends |= {name: new for name, end in ends.items() if end == old}


def move(vocabulary: Vocabulary, rng: Random) -> None:
    kind = _kind(rng)
    name, above = vocabulary.draw(kind, rng), vocabulary.above[kind]
    to = rng.choice(vocabulary.names(kind))
    if name not in _upwards(above, to):
        above[name] = to


def delete(vocabulary: Vocabulary, rng: Random) -> None:
    kind = _kind(rng)
    gone, above = vocabulary.draw(kind, rng), vocabulary.above[kind]
    up = above.pop(gone)
    above |= {name: up for name, one in above.items() if one == gone}
    for ends in vocabulary.ends.values():
        ends.pop(gone, None)
        for name in [name for name, end in ends.items() if end == gone]:
            del ends[name]


def add(vocabulary: Vocabulary, rng: Random) -> None:
    kind = _kind(rng)
    name = vocabulary.add(kind, rng)
    if kind == "subproperty":
        for end in vocabulary.ends:
            vocabulary.restrict(name, end, rng)


def restrict(vocabulary: Vocabulary, rng: Random) -> None:
    vocabulary.restrict(vocabulary.draw("subproperty", rng), rng.choice(["domain", "range"]), rng)


def _upwards(above: dict[str, str], name: str) -> Iterator[str]:
    """A name and all that it is below."""
    while name:
        yield name
        name = above[name]
