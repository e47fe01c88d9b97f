"""Comparisons of terms on the device: what rows of values settle there is settled there (`evergraph.values`).

In words: two numbers that differ as float64 compare as these do, and terms of one value are equal. Ties, strings and single
floats, which only their text or a rounding settles, are asked of the values on the host, pair by pair.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from evergraph.engines.modules import Array
from evergraph.rules.model import Operator
from evergraph.values import FLOAT, KINDS, ORDERINGS, STRING, Values

FIELDS = ("first", "number", "member", "space", "names")


class DeviceValues:
    """The values of a dictionary's terms, with their rows on the device; those of new terms follow when they are asked for."""

    def __init__(self, values: Values, xp: Any) -> None:
        self.values, self.xp = values, xp
        self._kinds = xp.asarray(KINDS)
        self._columns: dict[str, Array] = {}

    def compare(self, operator: str, left: Array, right: Array) -> Array:
        """As `Values.compare`. Cost: linear; a transfer of the pairs that rows do not settle."""
        rows = self._rows()
        spaces, others = rows["space"][left], rows["space"][right]
        if operator == Operator.ILLTYPED:
            names = rows["names"][right]
            inside = rows["member"][left] >> names.astype(np.uint32) & np.uint32(1)
            return (spaces != 0) & (names != 0) & (inside == 0)
        kinds = self._kinds[spaces]
        comparable = (kinds != 0) & (kinds == self._kinds[others])
        number, other = rows["number"][left], rows["number"][right]
        equal = comparable & (rows["first"][left] == rows["first"][right]) & (number == other)
        apart = ((number < other) | (number > other)) & (spaces != FLOAT) & (others != FLOAT)
        if operator in ORDERINGS:
            signs = (number > other).astype(np.int8) - (number < other).astype(np.int8)
            out = comparable & ORDERINGS[operator](signs)
            settled = ~comparable | ((equal | apart) & (spaces != STRING))
        else:
            out = equal | (left == right)
            settled = ~comparable | out | apart | (spaces == STRING)
            if operator == Operator.UNEQUAL:
                out = ~out
        rest = self.xp.flatnonzero(~settled)
        if len(rest):
            pairs = (self.xp.asnumpy(side[rest]) for side in (left, right))
            out[rest] = self.xp.asarray(self.values.compare(operator, *pairs))
        return out

    def _rows(self) -> dict[str, Array]:
        """The rows of all terms, which do not change. Cost: those that are new, and a copy of the others."""
        known = len(self._columns["space"]) if self._columns else 0
        new, _ = self.values.rows_since(known)
        if len(new) or not self._columns:
            more = {name: self.xp.asarray(np.ascontiguousarray(new[name])) for name in FIELDS}
            self._columns = {
                name: self.xp.concatenate([self._columns[name], column]) if known else column for name, column in more.items()
            }
        return self._columns
