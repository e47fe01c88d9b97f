"""Terms that come and go above a dictionary that stays, and their values.

Contract: a term that the graph knows has the graph's id; any other gets one from where the graph's end, and is forgotten with
the overlay. Nothing a stream brings is written into the graph's own dictionary.
Trap: ids are the graph's as of when the overlay was made. When the graph learns terms, the stream needs a new overlay.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Sequence
from typing import cast

import numpy as np
import pyarrow as pa

from evergraph.terms import Dictionary, Ids
from evergraph.values import Values


class Overlay(Dictionary):
    def __init__(self, below: Dictionary) -> None:
        super().__init__(None, below.scopes)
        self.below, self.start = below, len(below)
        self._above = Dictionary()

    def __len__(self) -> int:
        return self.start + len(self._above)

    def encode(self, terms: Sequence[str]) -> Ids:
        """Cost: a look-up for a term that the graph knows, two for any other."""
        known, start = self.below._known().get, self.start
        found = [known(term, start) for term in terms]
        late = [at for at, number in enumerate(found) if number >= start]
        ids = np.array(found, np.uint64)
        if late:
            ids[late] = self._above.encode([terms[at] for at in late]) + np.uint64(start)
        return ids

    def find(self, term: str) -> int | None:
        number = self.below.find(term)
        if number is None or number >= self.start:
            number = self._above.find(term)
            return None if number is None else number + self.start
        return number

    def term(self, number: int) -> str:
        return self._above.term(number - self.start) if number >= self.start else self.below.term(number)

    def since(self, number: int) -> pa.Array:
        if number >= self.start:
            return self._above.since(number - self.start)
        return pa.concat_arrays([self.below.since(number).slice(0, self.start - number), self._above.since(0)])

    def decode(self, ids: Ids) -> pa.Array:
        """Cost: linear in the column, and once in the terms that are new."""
        late = ids >= np.uint64(self.start)
        if not late.any():
            return self.below.decode(ids)
        own = self._above.decode(ids[late] - np.uint64(self.start))
        both = pa.concat_arrays([self.below.decode(ids[~late]), own])
        place = np.empty(len(ids), np.int64)
        place[~late], place[late] = np.arange(len(both) - len(own)), np.arange(len(both) - len(own), len(both))
        return both.take(pa.array(place))

    def translate(self, ids: Ids, other: Overlay) -> Ids:
        """The ids that another overlay, of the same dictionary or of what it has become, gives the terms of these."""
        late = ids >= np.uint64(self.start)
        out = ids.copy()
        if late.any():
            distinct, place = np.unique(ids[late], return_inverse=True)
            out[late] = other.encode(self.decode(distinct).to_pylist())[place]
        return out


class ValuesAbove(Values):
    """The values of an overlay's terms; those of the graph's are taken over when they are first asked for."""

    def __init__(self, below: Values, dictionary: Overlay) -> None:
        super().__init__(dictionary)
        self._below: Values | None = below
        self._start = dictionary.start

    def _extend(self) -> None:
        if self._below is not None:
            below, start = self._below, self._start
            below._extend()
            self._rows, self._count = below._rows[:start], start
            self._firsts = tuple(cast("dict[object, int]", ChainMap({}, firsts)) for firsts in below._firsts)
            self._followers = below._followers[below._followers < np.uint64(start)]
            self._below = None
        super()._extend()
