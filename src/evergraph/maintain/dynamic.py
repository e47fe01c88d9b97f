"""Updates that overlap: each joins the work of those before it at its next step.

What it does: several updates are maintained at a time, in steps of whole sets. Between any two steps another one may join; an
operation and its opposite cancel, in the order of submission. When nothing is left to do, the materialisation is the one that
the updates make one after the other.

Paper: Illich, Glimm: Fully Dynamic Materialization Maintenance. DL 2023, Algorithm 1 and §3.1.
Symbols: U → what `join` takes in; O → the facts that wait (`engines.base.Waiting`): del → doubted, add → pending; transition
    rules 1 and 3 → `withdraw`, `rederive` and `activate`, which determine operations and execute them; 2, cancel → `join`.
Invariant: that of `engines.overlap.steps`, between any two steps. Candidates of an epoch wait until no epoch up to it doubts
    anything.
Departures: the paper has one operation in a step; here it is a set of them, all of one epoch and one kind. It remembers the
    fact that started a recursion, to stop additions that come round to it; here what went twice is a candidate, which only a
    later update recalls, and only once, before the deletions up to its own are done.
Fairness: one step in `TURN` is for the oldest epoch, the others are for the one of the rest that has had least, as long as that
    is not `TURN` times what the oldest has had: what comes back may overtake what goes. `PATIENCE` steps after the first epoch
    is through no more updates join until all are settled, nor while there are `CROWD` epochs: so each settles after a number of
    steps that follows its own work and that of those before it, and endless updates become batches.
Cost and traps: that of the algorithm; a cancelled operation costs nothing but what it had done. Between steps facts may be
    there that do not follow, and may be missing; only what is settled is whole.
Example: re-inserting a fact while its deletion runs leaves alone what the deletion has not reached.
    >>> from evergraph import KnowledgeGraph, Program
    >>> kg = KnowledgeGraph(Program.parse("q(?x) :- p(?x) . r(?x) :- q(?x) . p(1) ."))
    >>> tickets = [kg.submit(delete="p(1) ."), kg.submit(insert="p(1) . p(2) .")]
    >>> kg.settle()
    >>> kg.counts()
    {'p': 2, 'q': 2, 'r': 2}
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from evergraph.engines.base import Closed, Facts, Keep, Missed, Overlapping, Waiting

OVERLAPPING = {"dred": Keep.EVIDENT, "counting": Keep.COUNTED, "backward-forward": Keep.PROVED}
"""Algorithms whose updates may overlap, and what they keep."""
TURN = 16
"""One step in so many is for the oldest epoch."""
PATIENCE = 32
"""So many steps after the first epoch is through, others may still join."""
CROWD = 16
"""So many epochs are under way, at most."""
FIRST = 1
"""The number of the first epoch."""


class Step(StrEnum):
    """Called as the engine calls it."""

    WITHDRAW = "withdraw"
    REDERIVE = "rederive"
    ACTIVATE = "activate"


class Dynamic:
    """One stretch of overlapping updates, from the first that joins to the point where all are settled."""

    def __init__(self, overlap: Overlapping, turn: int = TURN, patience: int = PATIENCE) -> None:
        self.overlap, self.turn, self.patience = overlap, turn, patience
        self.steps = 0
        self._epoch = 0
        self._joined_after = -1
        """The last epoch, and after how many steps it joined."""
        self._had: dict[int, int] = {}
        """Facts that have been dealt with for each epoch that is not through."""
        self._waited: int | None = None
        """Steps since the first epoch was through."""

    def join(self, insert: Facts, delete: Facts) -> tuple[int, Missed]:
        """Take in an update; returns its epoch, which it shares with those that joined since the last step."""
        if self._joined_after != self.steps:
            self._epoch, self._joined_after = self._epoch + 1, self.steps
        missed = self.overlap.join(self._epoch, insert, delete)
        self._had.setdefault(self._epoch, 0)
        self._see_through()
        return self._epoch, missed

    @property
    def settled(self) -> bool:
        """Whether nothing is left to do."""
        return not self._had

    @property
    def admits(self) -> bool:
        """Whether another update may join now."""
        return len(self._had) < CROWD and (self._waited is None or self._waited < self.patience)

    def is_through(self, epoch: int) -> bool:
        """Whether all that an epoch brings about is in place, as far as the others let it."""
        return epoch not in self._had

    def next(self) -> tuple[Step, int]:
        """What the next step will do, and for which epoch."""
        waiting = self.overlap.waiting()
        ready = [epoch for epoch in sorted(waiting) if _step(epoch, waiting) is not None]
        oldest, *others = ready
        least = min(reversed(others), key=self._had.__getitem__, default=oldest)
        epoch = oldest if self.steps % self.turn == 0 or self._had[least] > self.turn * self._had[oldest] else least
        step = _step(epoch, waiting)
        assert step is not None
        return step, epoch

    def step(self, step: Step, epoch: int) -> Closed:
        """One step for one epoch. Cost: the instances that its facts win or lose."""
        closed: Closed = getattr(self.overlap, step)(epoch)
        self.steps += 1
        self._had[epoch] += closed.derivations + 1
        self._waited = None if self._waited is None else self._waited + 1
        self._see_through()
        return closed

    def _see_through(self) -> None:
        """Note which epochs have nothing left to do. What a later one brought back and an older takes is its work again."""
        left = self.overlap.waiting()
        self._had |= {epoch: 0 for epoch in left if epoch not in self._had}
        for epoch in [number for number in self._had if number not in left]:
            del self._had[epoch]
        if self._waited is None and FIRST not in self._had:
            self._waited = 0


def _step(epoch: int, waiting: Mapping[int, Waiting]) -> Step | None:
    """What to do for an epoch; None if it has to wait for others."""
    mine = waiting[epoch]
    if mine.doubted:
        return Step.WITHDRAW
    older = (other for number, other in waiting.items() if number < epoch)
    if mine.recalled or (mine.candidates and not any(other.doubted for other in older)):
        return Step.REDERIVE
    return Step.ACTIVATE if mine.pending else None
