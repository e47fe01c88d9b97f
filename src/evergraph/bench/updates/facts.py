"""Which facts of a file an update takes, and in which form `update` is given them.

Contract: facts are those of instances, never of the ontology, drawn without repetition; the same seed, number and turn give
the same ones in every run and for every algorithm. Trap: the file states some types of universities more than once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np

from evergraph.bench.lubm import ontology

Triple = tuple[str, str, str]
Given = list[Triple] | str
"""What a caller of `update` gives."""
MOST_TRIPLES = 5000
"""More facts than this are given as text, as nobody has that many at hand as tuples."""


class InstanceFacts:
    """The lines of a file after those of its schema, by default LUBM's ontology, in a random order that the seed fixes."""

    def __init__(self, file: Path, seed: int = 0, schema: int | None = None) -> None:
        with file.open("rb") as stream:
            lengths = np.fromiter(map(len, stream), np.int64)
        self._text = np.memmap(file, np.uint8, "r")
        self._ends = np.cumsum(lengths)
        self._starts = self._ends - lengths
        first = _ontology_lines() if schema is None else schema
        self._order = np.random.default_rng(seed).permutation(np.arange(first, len(lengths)))

    def __len__(self) -> int:
        """Lines, some of which may be the same."""
        return len(self._order)

    def draw(self, count: int, turn: int = 0) -> list[str]:
        """So many distinct lines; those of another turn are others, until all have had theirs."""
        found: dict[str, None] = {}
        for number in np.roll(self._order, -turn * count):
            if len(found) == count:
                break
            found[self._text[self._starts[number] : self._ends[number] - 1].tobytes().decode()] = None
        if len(found) < count:
            raise ValueError(f"the file has no {count:,} facts of instances")
        return list(found)


def given(lines: Sequence[str]) -> Given:
    """Lines of N-Triples as a caller gives them.

    >>> given(['<a> <b> "x y" .'])
    [('<a>', '<b>', '"x y"')]
    """
    if len(lines) > MOST_TRIPLES:
        return "\n".join(lines)
    return [triple(line) for line in lines]


def triple(line: str) -> Triple:
    """The terms of a line as the generator writes it: one space between them, one before the full stop."""
    subject, predicate, rest = line.split(" ", 2)
    return subject, predicate, rest.removesuffix(" .")


@cache
def _ontology_lines() -> int:
    return ontology().count("\n")
