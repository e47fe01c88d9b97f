"""The steps of updates that overlap, at one shard, and what they leave true (Illich, Glimm 2023, Algorithm 1).

Every fact that is there is *active*, its consequences have been drawn, or *pending*, they have not. Active facts may be
*doubted*: they have lost support, and nobody has looked yet whether they stay. What went may still follow and is a *candidate*
until somebody has asked.

    join:      an update makes facts explicit or ceases to: new ones are pending, those that lose it doubted, if they are active
    withdraw:  doubted facts that nothing supports go and become candidates; heads of the instances lost are doubted in turn
    rederive:  candidates that active facts derive come back as pending
    activate:  pending facts become active; heads of the instances won are pending, unless they are candidates

In words: consequences are drawn once, when a fact is activated, and taken back once, when it is withdrawn; a deletion never
takes away what an unfinished insertion has not given. A fact that becomes explicit again is doubted no longer, one that ceases
to be is pending no longer; nothing else moves. Candidates are left to their rederivation, however often they are derived
meanwhile: so no addition runs after a deletion round a circle, and the deletion catches up (the paper's §3.1.1). There are two
short cuts, each taken once for a fact and an epoch, so that an update need not wait for all that is older. What goes for the
first time is *recalled* by the epoch that takes it: asked for when that epoch doubts nothing more. And an update that joined
later than the deletion recalls what it derives, so that what comes back may overtake what goes.

Invariants, between any two steps and so wherever an update joins:
  - an instance is a rule's body over active facts, none of which it negates. Its head is there, or a candidate;
  - a fact that is there is explicit, doubted, or has support that does not rest on the fact itself: which of its instances
    that is, the algorithm says (`counted`, `proved`).
When nothing is doubted, a candidate or pending, the active facts are closed and well supported: with stratified negation there
is one such set, the materialisation. Steps may come in any order for that; for them to end, candidates of an epoch wait until
no epoch up to it doubts anything (`maintain.dynamic`).
Cost: the instances that the facts of a step win or lose, each once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Generic, NamedTuple, Protocol, TypeVar

from evergraph.engines.arrays import Array, Arrays
from evergraph.engines.base import Missed, Waiting
from evergraph.engines.fixpoint import Deltas, Fixpoint, Found
from evergraph.engines.kernel import Kernel
from evergraph.engines.marks import Marks
from evergraph.engines.overlap.queue import Queue, without
from evergraph.engines.relation import Relation, Run
from evergraph.engines.sets import with_runs
from evergraph.plan.model import Key, PlanRule
from evergraph.plan.schedule import Component, Task

Relations = Mapping[Key, Relation]


class Site(Protocol):
    """Where facts are: a shard."""

    arrays: Arrays
    kernel: Kernel
    relations: dict[Key, Relation]
    """The active facts."""
    explicit: dict[Key, Relation]
    marks: dict[Key, Marks] | None

    def able(self) -> tuple[Component, ...]:
        """The rules that can fire."""

    def able_after(self, arrived: Mapping[Key, Run]) -> tuple[Component, ...]:
        """The rules that can fire when these facts have come."""


class Entered(NamedTuple):
    """What became of an update's facts."""

    missed: Missed
    became: Deltas
    """Facts that are explicit and were not."""
    ceased: Deltas


F = TypeVar("F", bound=Found)
"""What an algorithm wants to know of instances."""


class Overlap(ABC, Generic[F]):
    """The facts of a shard while updates overlap, and what is made of the instances that they win and lose."""

    def __init__(self, site: Site) -> None:
        self.site, self.arrays, self.kernel = site, site.arrays, site.kernel
        self.doubted, self.recalled, self.candidates, self.pending = self.waits = [Queue(site.arrays) for _ in range(4)]
        self.returned = Queue(site.arrays)
        """Facts that have been recalled, by the epoch that did so last: when they go again, they are its candidates."""

    def waiting(self) -> dict[int, Waiting]:
        """By epoch, for those that have work left."""
        epochs = {epoch for queue in self.waits for epoch in queue.epochs}
        return {epoch: Waiting(*(queue.size(epoch) for queue in self.waits)) for epoch in epochs}

    def enter(self, epoch: int, come: Deltas, gone: Deltas) -> Entered:
        """Facts cease to be explicit, and others become it. Cost: these facts."""
        explicit = self.site.explicit
        became: Deltas = {}
        ceased: Deltas = {}
        absent = derived = 0
        for key, run in gone.items():
            known = explicit.get(key)
            was = run.within(known) if known is not None else run.where(self.arrays.xp.zeros(len(run), bool))
            there = int(self.there(key, run).sum())
            absent, derived = absent + len(run) - there, derived + there - len(was)
            if known is not None:
                explicit[key] = known.remove(was)
            ceased[key] = was
            self._doubt(epoch, key, was)
        for key, run in come.items():
            known = explicit.get(key)
            became[key] = run.without(known)
            explicit[key] = Relation(run) if known is None else known.add(became[key])
            self.doubted.drop(key, run)
            new = run.where(~self.there(key, run))
            self.candidates.drop(key, new)
            self.recalled.drop(key, new)
            self._enter(epoch, key, new)
        return Entered(Missed(absent, derived), became, ceased)

    def dismiss(self, epoch: int, most: int) -> Deltas:
        """Doubted facts that nothing supports: they are to go, and are candidates from now on."""
        going = self.unsupported(self.doubted.take(epoch, most))
        for key, run in going.items():
            self._part_with(epoch, key, run)
        return going

    def asked(self, epoch: int, most: int) -> Deltas:
        """Candidates of an epoch, for somebody to look whether they follow: those that were recalled first."""
        return self.recalled.take(epoch, most) or self.candidates.take(epoch, most)

    def withdraw(self, going: Deltas) -> tuple[F, F]:
        """Active facts are no longer; returns the instances that are won and lost by it."""
        components, active = self.site.able(), self.site.relations
        before, after = dict(active), without(active, going)
        won, lost = self.found(), self.found()
        self._use(lost, components, going, after, before, before)
        self._negate(won, components, going, after)
        active.update({key: after[key] for key in going})
        return won, lost

    def activate(self, coming: Deltas) -> tuple[F, F]:
        """Facts become active; returns the instances that are won and lost by it."""
        components, active = self.site.able_after(coming), self.site.relations
        before, after = dict(active), with_runs(active, coming)
        won, lost = self.found(), self.found()
        self._use(won, components, coming, after, before, after)
        self._negate(lost, components, coming, before)
        active.update({key: after[key] for key in coming})
        return won, lost

    def absorb(self, epoch: int, won: F, lost: F) -> None:
        """What instances that are won and lost mean for their heads. Those that are won come first: they may support."""
        self.win(epoch, won)
        self.lose(epoch, lost)

    def there(self, key: Key, run: Run) -> Array:
        """Which facts are there, active or pending."""
        found, active = self.pending.has(key, run.words), self.site.relations.get(key)
        return found if active is None else found | active.contains(run.words)

    def _use(
        self, found: F, rules: tuple[Component, ...], delta: Deltas, newer: Relations, older: Relations, below: Relations
    ) -> None:
        """Find the instances that use a fact of a change, each once: facts before it are as they are then, after it as now."""
        sweep = _Sweep(self, found, dict(newer), below)
        for component in rules:
            sweep.round(component, delta, older)

    def _enter(self, epoch: int, key: Key, run: Run) -> None:
        """Facts that were not there are explicit: they become pending."""
        self.pending.add(epoch, key, run)

    def _doubt(self, epoch: int, key: Key, run: Run) -> None:
        """Facts that are there and not explicit have lost support: active ones are doubted, pending ones go at once."""
        waits = self.pending.has(key, run.words)
        self.doubted.add(epoch, key, run.where(~waits))
        self.pending.drop(key, run.where(waits))
        self._part_with(epoch, key, run.where(waits))

    def _part_with(self, epoch: int, key: Key, run: Run) -> None:
        """Facts are there no longer, and may still follow: those that go for the first time are asked for without waiting."""
        first = run.where(~self.returned.has(key, run.words))
        self.recalled.add(epoch, key, first)
        self.returned.add(epoch, key, first)
        run = run.without(first)
        for later, facts in self.returned.epochs.items():
            if later > epoch and key in facts:
                back = run.within(facts[key])
                self.candidates.add(later, key, back)
                run = run.without(back)
        self.candidates.add(epoch, key, run)

    def _new(self, epoch: int, key: Key, run: Run) -> Array:
        """Which facts that an epoch derives have never been there. Candidates of older ones it recalls."""
        gone = self.candidates.has(key, run.words) | self.recalled.has(key, run.words)
        later = self.candidates.has(key, run.words, since=epoch) | self.recalled.has(key, run.words, since=epoch)
        back = run.where(gone & ~later)
        if len(back):
            for queue in (self.candidates, self.recalled, self.returned):
                queue.drop(key, back)
            self.recalled.add(epoch, key, back)
            self.returned.add(epoch, key, back)
        new: Array = ~gone & ~self.there(key, run)
        return new

    # -- what an algorithm is ----------------------------------------------------------------------------------------

    @abstractmethod
    def found(self) -> F:
        """A place for instances."""

    @abstractmethod
    def run(self, task: Task, sources: list[Relations], below: Relations, found: F) -> None:
        """Evaluate a rule."""

    @abstractmethod
    def _negate(self, found: F, rules: tuple[Component, ...], changed: Deltas, active: Relations) -> None:
        """Find the instances over these facts that negate one that changed and is not among them."""

    @abstractmethod
    def derived(self, candidates: Deltas) -> F:
        """Find the instances over active facts that derive some of these."""

    @abstractmethod
    def unsupported(self, doubted: Deltas) -> Deltas:
        """Those that have no support."""

    @abstractmethod
    def win(self, epoch: int, found: F) -> None:
        """Heads of these instances have one more; those that are not there become pending."""

    @abstractmethod
    def lose(self, epoch: int, found: F) -> None:
        """Heads of these instances have one less."""


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
