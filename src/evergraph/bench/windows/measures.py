"""Figure 7 as measured: seconds of a step by algorithm and share, and where two algorithms take the same time.

    {"figure7": [{"share": 0.05, "algorithm": "expiry", "seconds": [0.01, 0.012]}, …]}

What counts is the median of a cell's seconds; a cell without any was not measured. Between two shares that were measured, times
lie on a straight line on logarithmic scales, as they are drawn; outside of them nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import exp, log
from statistics import median
from typing import Any

RECOMPUTE, DECLARATIVE, EXPIRY = "recompute", "declarative", "expiry"
ALGORITHMS = (RECOMPUTE, DECLARATIVE, EXPIRY)
PAPER = {RECOMPUTE: "naive", DECLARATIVE: "incremental-volz", EXPIRY: "incremental-stream"}
"""What the paper calls them."""
PAPER_CROSSINGS = {(DECLARATIVE, RECOMPUTE): 2.5, (EXPIRY, RECOMPUTE): 13.0}
"""Percent at which the first stops paying, by the text of §5."""


@dataclass(frozen=True, slots=True)
class Figure7:
    """Seconds by algorithm and share; algorithms in the paper's order, others after them."""

    runs: Mapping[str, Mapping[float, list[float]]]

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, Any]]) -> Figure7:
        """Rows as JSON has them; those of one cell are put together."""
        found: dict[str, dict[float, list[float]]] = {name: {} for name in ALGORITHMS}
        for row in rows:
            found.setdefault(row["algorithm"], {}).setdefault(float(row["share"]), []).extend(row["seconds"])
        return cls({name: dict(sorted(cells.items())) for name, cells in found.items() if any(cells.values())})

    @property
    def shares(self) -> list[float]:
        return sorted({share for cells in self.runs.values() for share in cells})

    def seconds(self, algorithm: str, share: float) -> float | None:
        runs = self.runs.get(algorithm, {}).get(share)
        return median(runs) if runs else None

    def line(self, algorithm: str) -> list[tuple[float, float]]:
        """Share and seconds, where they were measured."""
        found = ((share, self.seconds(algorithm, share)) for share in self.shares)
        return [(share, seconds) for share, seconds in found if seconds]

    def ratios(self, one: str, other: str) -> list[tuple[float, float]]:
        """How many times longer one takes than the other, where both were measured."""
        others = dict(self.line(other))
        return [(share, seconds / others[share]) for share, seconds in self.line(one) if share in others]

    def crossings(self, one: str, other: str) -> list[float]:
        """The shares at which one stops being quicker than the other, or begins to be."""
        return crossings(self.ratios(one, other))


def crossings(ratios: Iterable[tuple[float, float]]) -> list[float]:
    """Where ratios cross 1, straight between them on logarithmic scales.

    >>> crossings([(0.1, 0.01), (1, 0.1), (100, 10.0)])
    [10.0]
    >>> crossings([(1, 0.5), (2, 0.9)]), crossings([(1, 0.5), (2, 1.0), (4, 2.0)]), crossings([(1, 0.5), (4, 2), (16, 0.5)])
    ([], [2.0], [2.0, 8.0])
    """
    found = []
    for (few, low), (many, high) in pairwise(ratios):
        if (low < 1) != (high < 1):
            found.append(exp(log(few) + (log(many) - log(few)) * -log(low) / (log(high) - log(low))))
    return [float(f"{share:.6g}") for share in found]
