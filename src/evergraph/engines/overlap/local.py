"""Updates that overlap at one shard, in process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from evergraph.engines.base import Closed, Facts, Missed, Waiting
from evergraph.engines.holding import Still
from evergraph.engines.overlap.steps import Overlap
from evergraph.engines.sets import runs_of, with_runs
from evergraph.engines.shard import Shard
from evergraph.engines.waves import lay_out
from evergraph.plan.model import Key

CHUNK = 1 << 13
"""Facts that a step takes, at most: about as long as an update that arrives has to wait."""


class LocalOverlap:
    def __init__(self, shard: Shard, overlap: Overlap[Any], chunk: int = CHUNK) -> None:
        self.shard, self.facts, self.chunk = shard, overlap, chunk
        self.touched: set[Key] = set()
        """Relations that have gained or lost facts, explicit ones or any."""
        self._marks = dict(shard.marks or {})

    def join(self, epoch: int, insert: Facts, delete: Facts) -> Missed:
        come, gone = self.shard.runs(insert), self.shard.runs(delete)
        self.touched |= come.keys() | gone.keys()
        return self.facts.enter(epoch, come, gone)

    def withdraw(self, epoch: int) -> Closed:
        def step() -> None:
            going = self.facts.dismiss(epoch, self.chunk)
            self.touched |= going.keys()
            self.facts.absorb(epoch, *self.facts.withdraw(going))

        return self._counted(step)

    def rederive(self, epoch: int) -> Closed:
        return self._counted(lambda: self.facts.win(epoch, self.facts.derived(self.facts.asked(epoch, self.chunk))))

    def activate(self, epoch: int) -> Closed:
        def step() -> None:
            coming = self.facts.pending.take(epoch, self.chunk)
            self.touched |= coming.keys()
            self.facts.absorb(epoch, *self.facts.activate(coming))

        return self._counted(step)

    def _counted(self, step: Callable[[], None]) -> Closed:
        kernel = self.shard.kernel
        derivations, examined = kernel.derivations, kernel.examined
        step()
        return Closed(1, kernel.derivations - derivations, kernel.examined - examined)

    def waiting(self) -> dict[int, Waiting]:
        return self.facts.waiting()

    def live(self) -> Still:
        """Pending and doubted facts are among them. Cost: the relations, and what is pending."""
        return Still(with_runs(self.shard.relations, runs_of(self.facts.pending.all())), dict(self.shard.explicit))

    def settle(self) -> None:
        """Lay out marks like their relations again, where that is due. Cost: that of merging those relations."""
        lay_out(self.shard, self._marks)
