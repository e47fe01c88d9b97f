"""Updates that overlap at one shard, in process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from evergraph.engines.base import Closed, Facts, Missed, Waiting
from evergraph.engines.fixpoint import Deltas
from evergraph.engines.holding import Still
from evergraph.engines.overlap.net import NetChange
from evergraph.engines.overlap.steps import Overlap
from evergraph.engines.relation import Relation
from evergraph.engines.sets import runs_of, with_runs
from evergraph.engines.shard import Shard
from evergraph.engines.waves import lay_out
from evergraph.plan.shapes import hidden

FIRST, CHUNK = 1 << 11, 1 << 13
"""Facts that a step takes, at most: few after an update has joined, for others may follow that cancel, and while several have
work; then twice as many each time. A step of the longest kind is what an update that arrives has to wait for."""
PROOFS = 4
"""Times as many where proofs are looked for: a search of many facts costs little more than that of some."""


class LocalOverlap:
    def __init__(self, shard: Shard, overlap: Overlap[Any], chunk: int = CHUNK) -> None:
        self.shard, self.facts, self.chunk = shard, overlap, chunk
        self.all, self.explicit = NetChange(), NetChange()
        """What has changed since the first update joined, of all facts and of explicit ones."""
        self._marks = dict(shard.marks or {})
        self._room = FIRST

    def join(self, epoch: int, insert: Facts, delete: Facts) -> Missed:
        self._room = FIRST
        entered = self.facts.enter(epoch, self.shard.runs(insert), self.shard.runs(delete))
        self.explicit.go(entered.ceased)
        self.explicit.come(entered.became)
        return entered.missed

    def withdraw(self, epoch: int) -> Closed:
        def step() -> None:
            going = self.facts.dismiss(epoch, self._most(epoch))
            self.all.go(going)
            self.facts.absorb(epoch, *self.facts.withdraw(going))

        return self._counted(step)

    def _most(self, epoch: int) -> int:
        """How many facts to take for an epoch: few, while others wait."""
        if any(other != epoch for queue in self.facts.waits for other in queue.epochs):
            self._room = FIRST
        most, self._room = min(self._room, self.chunk), min(2 * self._room, self.chunk)
        return most

    def rederive(self, epoch: int) -> Closed:
        return self._counted(lambda: self.facts.win(epoch, self.facts.derived(self.facts.asked(epoch, self._most(epoch)))))

    def activate(self, epoch: int) -> Closed:
        def step() -> None:
            coming = self.facts.pending.take(epoch, self._most(epoch))
            self.all.come(coming)
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

    def changes(self) -> tuple[Deltas, ...]:
        """Facts that came and that went, and those that became explicit and ceased to be: hidden relations are left out."""
        found = (self.all.came, self.all.went, self.explicit.came, self.explicit.went)
        return tuple({key: run for key, run in runs.items() if not hidden(key)} for runs in found)

    def settle(self) -> None:
        """Lay out marks like their relations again, where that is due, and forget schedules that facts were in that went.

        Cost: that of merging those relations.
        """
        lay_out(self.shard, self._marks)
        went = {key: Relation(run) for key, run in self.all.went.items()}
        for scheduler in self.shard.schedulers:
            scheduler.forget_if_changed(went)
