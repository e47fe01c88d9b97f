"""A replay in real time, or so many times as fast.

    a fact with timestamp t is due at  start + (t − t₀) / speed        t₀  =  the first timestamp

In words: facts are handed on in their order, those of a tenth of a second together, when the latest of them is due. A fact that
is older than one before it is due with that one. What cannot keep up hands on facts as soon as it can, and says so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from evergraph.stream.sources import Batch
from evergraph.stream.times import SECOND

TOGETHER = SECOND // 10
"""Facts this close to each other on the clock are handed on together."""


class Pace:
    """Batches when they are due; `behind` is told how many seconds late they are, at most once a second."""

    def __init__(self, speed: float, behind: Callable[[float], None]) -> None:
        self.speed, self.behind = speed, behind
        self._width = max(1, int(TOGETHER * speed))
        self._first: int | None = None
        self._latest = 0
        self._start = self._told = 0.0

    def paced(self, blocks: Iterable[list[Batch]]) -> Iterator[list[Batch]]:
        """The same facts in smaller lists. Trap: a list is read ahead, and no more."""
        for block in blocks:
            for due, batches in self._pieces(block):
                self._wait(due)
                yield batches

    def _pieces(self, block: list[Batch]) -> Iterator[tuple[int, list[Batch]]]:
        if self._first is None:
            self._first = self._latest = min(int(batch.timestamps[0]) for batch in block)
            self._start = time.monotonic()
            self._told = self._start - 1
        reach = [np.maximum.accumulate(np.maximum(batch.timestamps, self._latest)) for batch in block]
        slots = [(r - self._first) // self._width for r in reach]
        for slot in np.unique(np.concatenate(slots)).tolist():
            spans = [np.searchsorted(s, [slot, slot + 1]).tolist() for s in slots]
            due = max(int(r[end - 1]) for r, (start, end) in zip(reach, spans, strict=True) if end > start)
            yield due, [batch.slice(*span) for batch, span in zip(block, spans, strict=True) if span[1] > span[0]]
        self._latest = max(int(r[-1]) for r in reach)

    def _wait(self, due: int) -> None:
        assert self._first is not None
        now = time.monotonic()
        early = self._start + (due - self._first) / (self.speed * SECOND) - now
        if early > 0:
            time.sleep(early)
        elif early <= -1 and now >= self._told + 1:
            self._told = now
            self.behind(-early)
