"""The steps of updates that overlap, at one shard, and what they leave true (Illich, Glimm 2023, Algorithm 1).

Every fact that is there is *active*, its consequences have been drawn, or *pending*, they have not. Active facts may be
*doubted*: they have lost support, and nobody has looked yet whether they stay. What went may still follow and is a *candidate*
until somebody has asked.

    join:      an update makes facts explicit or ceases to: new ones are pending, those that lose it doubted, if they are active
    withdraw:  doubted facts that nothing supports go and become candidates; heads of the instances lost are doubted in turn
    rederive:  candidates that active facts derive come back as pending
    activate:  pending facts become active; heads of the instances won are pending, unless they are candidates

In words: consequences are drawn once, when a fact is activated, and taken back once, when it is withdrawn; a deletion never
takes away what an unfinished insertion has not given. A candidate is left to its rederivation, however often it is derived
meanwhile: so no addition runs after a deletion round a circle, and the deletion catches up (the paper's §3.1.1). A fact that
becomes explicit again is doubted no longer, one that ceases to be is pending no longer; nothing else moves.

Invariants, between any two steps and so wherever an update joins:
  - an instance is a rule's body over active facts, none of which it negates. Its head is there, or a candidate;
  - a fact that is there is explicit, doubted, or has support that does not rest on the fact itself: which of its instances
    that is, the algorithm says (`counted`, `proved`).
When nothing is doubted, a candidate or pending, the active facts are closed and well supported: with stratified negation there
is one such set, the materialisation. Steps may come in any order for that; for them to end, candidates of an epoch wait until
no epoch up to it doubts anything (`maintain.dynamic`).
Cost: the instances that the facts of a step win or lose, each once; up to `chunk` facts are taken in a step.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from evergraph.engines.arrays import Array
from evergraph.engines.base import Closed, Facts, Missed, Waiting
from evergraph.engines.fixpoint import Deltas, Fixpoint, Found
from evergraph.engines.holding import Still
from evergraph.engines.overlap.queue import Queue, without
from evergraph.engines.relation import Relation, Run
from evergraph.engines.sets import runs_of, with_runs
from evergraph.engines.shard import Shard
from evergraph.plan.model import Key, PlanRule
from evergraph.plan.schedule import Component, Task

Relations = Mapping[Key, Relation]
CHUNK = 1 << 13
"""Facts that a step takes, at most: about as long as an update that arrives has to wait."""


F = TypeVar("F", bound=Found)
"""What an algorithm wants to know of instances."""


class Overlap(ABC, Generic[F]):
    """The facts of a shard while updates overlap."""

    def __init__(self, shard: Shard, chunk: int = CHUNK) -> None:
        self.shard, self.chunk = shard, chunk
        self.arrays, self.kernel = shard.arrays, shard.kernel
        self.doubted, self.candidates, self.pending = (Queue(shard.arrays) for _ in range(3))
        self.touched: set[Key] = set()
        """Relations that have gained or lost facts, explicit ones or any."""
        self._able()

    @property
    def active(self) -> dict[Key, Relation]:
        return self.shard.relations

    def waiting(self) -> dict[int, Waiting]:
        """By epoch, for those that have work left."""
        queues = (self.doubted, self.candidates, self.pending)
        return {epoch: Waiting(*(q.size(epoch) for q in queues)) for epoch in {e for q in queues for e in q.epochs}}

    def live(self) -> Still:
        """The facts that are there now, pending and doubted ones among them. Cost: the relations, and what is pending."""
        return Still(with_runs(self.active, runs_of(self.pending.all())), dict(self.shard.explicit))

    # -- steps -------------------------------------------------------------------------------------------------------

    def join(self, epoch: int, insert: Facts, delete: Facts) -> Missed:
        """Take in an update: deletions first. Returns what was to be deleted and was not explicit. Cost: its facts."""
        gone, come = self.shard.runs(delete), self.shard.runs(insert)
        self.touched |= gone.keys() | come.keys()
        absent = derived = 0
        retracted = self.shard.retract(gone)
        for key, run in gone.items():
            rest = run.without(retracted.get(key))
            there = int(self._there(key, rest).sum())
            absent, derived = absent + len(rest) - there, derived + there
        for key, run in retracted.items():
            self._doubt(epoch, key, run)
        for key, run in come.items():
            known = self.shard.explicit.get(key)
            self.shard.explicit[key] = Relation(run) if known is None else known.add(run.without(known))
            self.doubted.drop(key, run)
            new = run.where(~self._there(key, run))
            self.candidates.drop(key, new)
            self._enter(epoch, key, new)
        return Missed(absent, derived)

    def withdraw(self, epoch: int) -> Closed:
        """Let go of doubted facts."""
        return self._counted(lambda: self._withdraw(epoch, self._unsupported(self.doubted.take(epoch, self.chunk))))

    def rederive(self, epoch: int) -> Closed:
        """Ask whether candidates follow."""
        return self._counted(lambda: self._win(epoch, self._derived(self.candidates.take(epoch, self.chunk))))

    def activate(self, epoch: int) -> Closed:
        """Draw the consequences of pending facts."""
        return self._counted(lambda: self._activate(epoch, self.pending.take(epoch, self.chunk)))

    def _withdraw(self, epoch: int, going: Deltas) -> None:
        components = self._able()
        before, after = dict(self.active), without(self.active, going)
        lost, won = self._found(), self._found()
        self._use(lost, components, going, after, before, before)
        self._negate(won, components, going, after)
        for key, run in going.items():
            self.active[key] = after[key]
            self.candidates.add(epoch, key, run)
        self.touched |= going.keys()
        self._win(epoch, won)
        self._lose(epoch, lost)

    def _activate(self, epoch: int, coming: Deltas) -> None:
        components = tuple(scheduler.able_after(coming) for scheduler in self.shard.schedulers)
        before, after = dict(self.active), with_runs(self.active, coming)
        lost, won = self._found(), self._found()
        self._use(won, components, coming, after, before, after)
        self._negate(lost, components, coming, before)
        for key in coming:
            self.active[key] = after[key]
        self.touched |= coming.keys()
        self._win(epoch, won)
        self._lose(epoch, lost)

    def _counted(self, step: Callable[[], None]) -> Closed:
        derivations, examined = self.kernel.derivations, self.kernel.examined
        step()
        return Closed(1, self.kernel.derivations - derivations, self.kernel.examined - examined)

    def _able(self) -> tuple[Component, ...]:
        """The rules that can fire."""
        return tuple(scheduler.able for scheduler in self.shard.schedulers)

    def _there(self, key: Key, run: Run) -> Array:
        found = self.pending.has(key, run.words)
        return found | self.active[key].contains(run.words) if key in self.active else found

    def _use(
        self, found: F, rules: tuple[Component, ...], delta: Deltas, newer: Relations, older: Relations, below: Relations
    ) -> None:
        """Find the instances that use a fact of a change, each once: facts before it are as they are then, after it as now."""
        sweep = _Sweep(self, found, dict(newer), below)
        for component in rules:
            sweep.round(component, delta, older)

    # -- what an algorithm is ----------------------------------------------------------------------------------------

    @abstractmethod
    def _found(self) -> F:
        """A place for instances."""

    @abstractmethod
    def run(self, task: Task, sources: list[Relations], below: Relations, found: F) -> None:
        """Evaluate a rule."""

    @abstractmethod
    def _negate(self, found: F, rules: tuple[Component, ...], changed: Deltas, active: Relations) -> None:
        """Find the instances over these facts that negate one that changed and is not among them."""

    @abstractmethod
    def _derived(self, candidates: Deltas) -> F:
        """Find the instances over active facts that derive some of these."""

    @abstractmethod
    def _unsupported(self, doubted: Deltas) -> Deltas:
        """Those that have no support."""

    def _enter(self, epoch: int, key: Key, run: Run) -> None:
        """Facts that were not there are explicit: they become pending."""
        self.pending.add(epoch, key, run)

    def _doubt(self, epoch: int, key: Key, run: Run) -> None:
        """Facts that are there and not explicit have lost support: active ones are doubted, pending ones go at once."""
        waits = self.pending.has(key, run.words)
        self.doubted.add(epoch, key, run.where(~waits))
        self.pending.drop(key, run.where(waits))
        self.candidates.add(epoch, key, run.where(waits))

    @abstractmethod
    def _win(self, epoch: int, found: F) -> None:
        """Heads of these instances have one more; those that are not there become pending."""

    @abstractmethod
    def _lose(self, epoch: int, found: F) -> None:
        """Heads of these instances have one less."""

    def settle(self) -> None:
        """Nothing waits any more."""


class _Sweep(Fixpoint, Generic[F]):
    """One round of rules that takes nothing in."""

    def __init__(self, overlap: Overlap[F], found: F, relations: dict[Key, Relation], below: Relations) -> None:
        super().__init__(overlap.kernel, relations)
        self.overlap, self.found, self.below = overlap, found, below

    def round(self, component: Component, delta: Deltas, older: Relations) -> None:
        self._round(component, delta, {key: older.get(key, self._empty(run.arity)) for key, run in delta.items()}, {}, True)

    def _found(self) -> Found:
        return self.found

    def _run(self, task: Task, sources: list[Relations], found: Found) -> None:
        self.overlap.run(task, sources, self.below, self.found)

    def _absorb(self, tasks: tuple[Task, ...], found: Found, feed: bool) -> None:
        return None


def rules_of(components: tuple[Component, ...]) -> list[PlanRule]:
    return [task.rule for component in components for task in component.tasks]
