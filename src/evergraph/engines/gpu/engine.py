"""The GPU engine: the memory engine over CuPy, with its facts on the device, and a copy on the host for what is small.

    device   loads, recomputations, large updates, every algorithm that is asked for by name
    host     what `auto` expects to be few derivations: launching kernels for them takes longer than they do

In words: the same engine twice, over the two memories; one of them holds the last state, and the other goes on from that when
an update is its to make. What has been carried over already stays there (`mirror`). Readers are on the host: what they read is
carried over for them, once.

Contract: a step for which there is no room on the device fails with a numbered line, and the caller rolls back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from evergraph.engines.arrays import Arrays
from evergraph.engines.base import (
    Change,
    Closed,
    Counts,
    Difference,
    Facts,
    Keep,
    Missed,
    Overlapping,
    Readable,
    Waiting,
    Which,
)
from evergraph.engines.changes import Changed, Held
from evergraph.engines.equality.engine import Rewriting
from evergraph.engines.equality.expansion import Expansion
from evergraph.engines.equality.names import Names
from evergraph.engines.equality.reading import Expanded
from evergraph.engines.gpu.device import wait, within_memory
from evergraph.engines.holding import Still
from evergraph.engines.marks import Counted
from evergraph.engines.memory import MemoryEngine
from evergraph.engines.mirror import Mirror, changed_at, counted_at
from evergraph.engines.relation import Relation
from evergraph.plan.compile import Plan
from evergraph.plan.model import Key
from evergraph.terms import Ids

FEW = 1 << 12
"""Derivations that the host makes, or takes back, sooner, as far as `auto` can tell beforehand (`bench gpu`)."""
STEP = 1 << 20
"""On the device it is always sooner to begin from scratch than to take back many derivations."""


Seat = MemoryEngine | Rewriting
"""An engine over one memory."""


class GpuEngine:
    name = "gpu"

    def __init__(self, plan: Plan, make: Callable[[Plan, Any], Seat], xp: Any, few: int = FEW) -> None:
        self.xp, self.few = xp, few
        self._make = make
        with within_memory(xp, int):
            self.device = make(plan, xp)
        self.rewrites, self.overlaps = self.device.rewrites, self.device.overlaps
        self._host: Seat | None = None
        self.now: Seat = self.device
        """The one that holds the last state."""
        self._mirror = Mirror(self.xp)
        self._adopted: list[Plan] = []

    def fresh(self, plan: Plan) -> GpuEngine:
        return GpuEngine(plan, self._make, self.xp, self.few)

    @property
    def host(self) -> Seat:
        """The engine on the host, which may be behind."""
        if self._host is None:
            self._host = self._make(self.now.state().plan, np)
        return self._host

    def local(self) -> Seat:
        """The engine on the host, with what there is now. Cost: the relations; their rows when they are read."""
        if self.now is not self.host:
            self.host.resume(self._mirror.state(self.now.state(), self.host.arrays))
        return self.host

    def _within(self) -> AbstractContextManager[None]:
        if self.now is not self.device:
            return nullcontext()
        return within_memory(self.xp, self._size)

    def _size(self) -> int:
        return sum(self.now.counts(Which.EXPLICIT).values())

    # -- where -------------------------------------------------------------------------------------------------------

    def step(self, expected: int) -> int:
        return self.now.step(expected) if expected <= self.few else STEP

    def place(self, expected: int | None) -> str:
        few = expected is not None and expected <= self.few
        seat = self.host if few else self.device
        if seat is not self.now:
            self.now.rollback()
            self._go_on(seat)
            with self._within():
                seat.begin()
                for plan in self._adopted:
                    seat.adopt(plan)
        return "few derivations are expected, so on the host's copy" if few else ""

    def _go_on(self, seat: Seat) -> None:
        """Let the other one have the last state."""
        with within_memory(self.xp, self._size):
            seat.resume(self._mirror.state(self.now.state(), seat.arrays))
        self.now = seat

    # -- updates -----------------------------------------------------------------------------------------------------

    @property
    def counted(self) -> bool:
        return self.now.counted

    @property
    def counted_by(self) -> str:
        return self.now.counted_by

    def begin(self) -> None:
        self._adopted = []
        self.now.begin()

    def adopt(self, plan: Plan) -> None:
        self._adopted.append(plan)
        with self._within():
            self.now.adopt(plan)

    def weigh(self, rows: Facts) -> int | None:
        with self._within():
            return self.now.weigh(rows)

    def insert(self, facts: Facts) -> bool:
        with self._within():
            return self.now.insert(facts)

    def retract(self, facts: Facts, counting: bool = False) -> None:
        with self._within():
            self.now.retract(facts, counting)

    def retreat(self, stratum: int, keep: Keep) -> Closed:
        with self._within():
            return self.now.retreat(stratum, keep)

    def advance(self, stratum: int) -> Closed:
        with self._within():
            return self.now.advance(stratum)

    def replace(self, plus: Facts, minus: Facts) -> None:
        with self._within():
            self.now.replace(plus, minus)

    def close(self, stratum: int, full: bool) -> Closed:
        with self._within():
            return self.now.close(stratum, full)

    def forget_derived(self, counting: bool = False) -> None:
        with self._within():
            self.now.forget_derived(counting)

    def count(self) -> int:
        with self._within():
            return self.now.count()

    def prepare(self, builtins: Facts) -> None:
        with self._within():
            self.now.prepare(builtins)

    def missed(self) -> Missed:
        return self.now.missed()

    def overlap(self, keep: Keep) -> Overlapping:
        with self._within():
            assert isinstance(self.now, MemoryEngine)
            return _Overlap(self, self.now.overlap(keep))

    def commit(self) -> Change:
        with self._within():
            change = self.now.commit()
            wait(self.xp)
        return Change(self._difference(change.inserted), self._difference(change.deleted))

    def _difference(self, one: Difference) -> Difference:
        """With rows for which there may be no room when they are asked for."""

        def rows() -> Facts:
            with within_memory(self.xp, self._size):
                return one.rows()

        return Difference(one.explicit, one.derived, rows)

    def rollback(self) -> None:
        self.now.rollback()

    # -- stores ------------------------------------------------------------------------------------------------------

    def load(self, facts: Held, counts: Mapping[Key, Counted] | None = None, names: Names | None = None) -> None:
        """Stored facts are carried over when the first update on the device reads them."""
        device, host = self.device, Arrays()
        held = self._mirror.held(facts, device.arrays)
        with self._within():
            if isinstance(device, Rewriting):
                device.load(held, names=self._mirror.names(names, device.arrays) if names is not None else None)
            else:
                there = {key: counted_at(host, device.arrays, one) for key, one in (counts or {}).items()}
                device.load(held, there if counts is not None else None)

    def changes(self) -> Iterator[Changed]:
        with self._within():
            yield from (changed_at(self.now.arrays, one) for one in self.now.changes())

    def count_changes(self) -> tuple[bool, list[Counted]]:
        with self._within():
            anew, counts = self.now.count_changes()
            return anew, [counted_at(self.now.arrays, Arrays(), one) for one in counts]

    def all_counts(self) -> list[Counted]:
        with self._within():
            return [counted_at(self.now.arrays, Arrays(), one) for one in self.now.all_counts()]

    # -- equality by representatives ---------------------------------------------------------------------------------

    @property
    def _rewriting(self) -> Rewriting:
        assert isinstance(self.now, Rewriting)
        return self.now

    @property
    def names(self) -> Names:
        return self._mirror.names(self._rewriting.names, Arrays())

    def name_changes(self) -> tuple[Names, Names]:
        before, after = self._rewriting.name_changes()
        return Mirror(self.xp).names(before, Arrays()) if before is not after else self.names, self.names

    def stored(self) -> Held:
        with self._within():
            return self._mirror.held(self._rewriting.stored(), Arrays())

    def kept(self) -> dict[str, int]:
        with self._within():
            return self._rewriting.kept()

    # -- reading -----------------------------------------------------------------------------------------------------

    def still(self) -> Readable:
        return self.read(self.now.still())

    def read(self, facts: Readable) -> Readable:
        """The same facts for readers, on the host."""
        if self.now is not self.device:
            return facts
        host = Arrays()
        if isinstance(facts, Expanded):
            view = _Counted(self, facts.view, self._mirror.relations(facts.view.relations, host), self.names)
            return Expanded(view, self.read(facts.below), self._mirror.relations(facts.given, host))
        assert isinstance(facts, Still)
        return Still(self._mirror.relations(facts.all, host), self._mirror.relations(facts.explicit, host))

    def counts(self, which: Which) -> Counts:
        with self._within():
            return self.now.counts(which)

    def rows(self, relation: str, which: Which) -> Sequence[Ids] | None:
        return self.still().rows(relation, which)

    def contains(self, relation: str, row: Sequence[int]) -> bool:
        return self.still().contains(relation, row)

    def relations(self, which: Which) -> Mapping[Key, Relation]:
        return self.still().relations(which)


class _Counted(Expansion):
    """What a normalised graph on the device stands for, read on the host and counted where it is."""

    def __init__(self, engine: GpuEngine, source: Expansion, relations: Mapping[Key, Relation], names: Names) -> None:
        super().__init__(relations, names)
        self._engine, self._source = engine, source

    def size(self, key: Key) -> int:
        with within_memory(self._engine.xp, self._engine._size):
            return self._source.size(key)


class _Overlap:
    """Updates that overlap, on the device."""

    def __init__(self, engine: GpuEngine, steps: Overlapping) -> None:
        self.engine, self.steps = engine, steps

    def join(self, epoch: int, insert: Facts, delete: Facts) -> Missed:
        with self.engine._within():
            return self.steps.join(epoch, insert, delete)

    def withdraw(self, epoch: int) -> Closed:
        with self.engine._within():
            return self.steps.withdraw(epoch)

    def rederive(self, epoch: int) -> Closed:
        with self.engine._within():
            return self.steps.rederive(epoch)

    def activate(self, epoch: int) -> Closed:
        with self.engine._within():
            return self.steps.activate(epoch)

    def waiting(self) -> Mapping[int, Waiting]:
        return self.steps.waiting()

    def live(self) -> Readable:
        return self.engine.read(self.steps.live())
