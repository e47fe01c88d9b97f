"""Updates that overlap at one shard (`engines.overlap`): the supersteps that a step of theirs takes.

    take:      owners take facts that wait, and tell those whom it concerns: homes of facts that come or go, all shards of those
               that are asked for
    evaluate:  a shard finds the instances that are won and lost where they meet, and tells the owners of their heads
    absorb:    owners draw the conclusions: heads come, are doubted, or go

In words: the owner of a fact knows whether it is pending, doubted or a candidate; its homes, whether it is active. A shard
tells itself by mail as well, so that all of them evaluate over the same facts.

Invariant: that of `engines.overlap.steps`, when no mail is under way: between steps.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from evergraph.engines.arrays import U64, Words
from evergraph.engines.fixpoint import Deltas
from evergraph.engines.instances import Instances
from evergraph.engines.marks import Marks
from evergraph.engines.overlap.counted import CountedOverlap
from evergraph.engines.overlap.proved import Heads, ProvedOverlap
from evergraph.engines.overlap.queue import Queue
from evergraph.engines.overlap.steps import Overlap
from evergraph.engines.relation import Relation, Run
from evergraph.engines.spark import mail
from evergraph.engines.spark.counting import grouped, marked, of_owner, repeated
from evergraph.engines.spark.mail import Kind
from evergraph.plan.model import Key
from evergraph.plan.schedule import Component

if TYPE_CHECKING:
    from evergraph.engines.spark.superstep import Superstep

PENDING = "pending"
QUEUES = ("doubted", "recalled", "candidates", PENDING, "returned")
"""Roles of facts that the shard owns and that wait, or have come back; the number of the epoch follows."""
PENDING_MARKS = "marks of pending"
"""The role of their ranks and counts: the marks of a relation are those of its active facts."""
CHUNK = 1 << 18
"""Facts that a step takes at a shard, at most."""


def turn(step: Superstep, inbox: pa.Table) -> None:
    """One superstep; what the mail says tells which."""
    site = _Site(step)
    shard: _Counted | _Plain = _Counted(step, site) if step.job.counting else _Plain(step, site)
    shard.load()
    job = step.job
    if job.begin:
        shard.take(job.wave, job.epoch)
    elif any(True for _ in mail.read(inbox, (Kind.RETRACT, Kind.EXPLICIT))):
        gone, come = (shard.runs(inbox, kind) for kind in (Kind.RETRACT, Kind.EXPLICIT))
        missed = shard.facts.enter(job.epoch, come, gone).missed
        step.missed = {"absent": missed.absent, "derived": missed.derived}
    else:
        shard.evaluate(inbox)
        shard.absorb(job.epoch, inbox)
    shard.save()


class _Site:
    """The facts of a superstep, as a site."""

    def __init__(self, step: Superstep) -> None:
        self.step, self.arrays, self.kernel = step, step.arrays, step.fixpoint.kernel
        self.relations, self.explicit = step.relations, step.explicit
        self.marks: dict[Key, Marks] | None = step.activation.ledger.marks

    def able(self) -> tuple[Component, ...]:
        return self.step.job.components

    def able_after(self, arrived: Mapping[Key, Run]) -> tuple[Component, ...]:
        return self.step.job.components


class _Shard(ABC):
    """What a superstep does, whatever the algorithm."""

    facts: Overlap[Any]

    def __init__(self, step: Superstep) -> None:
        self.step = step

    # -- between supersteps ------------------------------------------------------------------------------------------

    @property
    def _queues(self) -> dict[str, Queue]:
        return dict(zip(QUEUES, (*self.facts.waits, self.facts.returned), strict=True))

    def load(self) -> None:
        queues = self._queues
        for role, relations in self.step.before.items():
            name, _, epoch = role.rpartition(" ")
            if name in queues:
                queues[name].epochs[int(epoch)] = dict(relations)

    def save(self) -> None:
        for name, queue in self._queues.items():
            for epoch, relations in queue.epochs.items():
                self.step.queues[f"{name} {epoch}"] = relations
        self.step.waiting = self.facts.waiting()

    # -- the three supersteps ----------------------------------------------------------------------------------------

    def take(self, wave: str, epoch: int) -> None:
        step, facts = self.step, self.facts
        if wave == "withdraw":
            for key, run in facts.dismiss(epoch, CHUNK).items():
                self._send(Kind.GONE, key, run, run.words)
        elif wave == "activate":
            for key, run in facts.pending.take(epoch, CHUNK).items():
                self._send(Kind.RANKED, key, run, (*run.words, self._marks(key, run)))
        else:
            for key, run in facts.asked(epoch, CHUNK).items():
                for number in range(step.job.placement.shards):
                    step.post(number, Kind.CHECK, key, run.arity, run.words)

    def evaluate(self, inbox: pa.Table) -> None:
        going, asked = self.runs(inbox, Kind.GONE), self.runs(inbox, Kind.CHECK)
        if going:
            self.step.departed = dict(going)
            self._tell(*self.facts.withdraw(going))
        if asked:
            self._tell(self.facts.derived(asked), self.facts.found())
        coming = {}
        for key, run, values in marked(self.step, inbox, Kind.RANKED):
            self._learn(key, run, values)
            coming[key] = run
        if coming:
            self._tell(*self.facts.activate(coming))
            for key, run in coming.items():
                self.step.fixpoint.arrived.add(key, run)

    def absorb(self, epoch: int, inbox: pa.Table) -> None:
        self.facts.absorb(epoch, *(self._told(inbox, kind) for kind in (Kind.WON, Kind.LOST)))

    def runs(self, inbox: pa.Table, kind: Kind) -> Deltas:
        """The facts of all letters of a kind."""
        parts: dict[tuple[Key, int], list[Words]] = {}
        for _, key, arity, words in mail.read(inbox, (kind,)):
            parts.setdefault((key, arity), []).append(words)
        arrays = self.step.arrays
        return {key: Run(arrays, arity, arrays.unique(found)) for (key, arity), found in parts.items()}

    def _send(self, kind: Kind, key: Key, run: Run, words: Words) -> None:
        """To all homes."""
        step = self.step
        for number, mask in enumerate(step.job.placement.homes(step.arrays, key, run.arity, run.words)):
            if bool(mask.any()):
                step.post(number, kind, key, run.arity, tuple(w[mask] for w in words))

    def _tell(self, won: Any, lost: Any) -> None:
        """Owners hear of the instances for their facts."""
        for kind, found in ((Kind.WON, won), (Kind.LOST, lost)):
            for number, key, arity, words in self._by_owner(found):
                self.step.post(number, kind, key, arity, words)

    @abstractmethod
    def _marks(self, key: Key, run: Run) -> Any:
        """What homes are told of facts that come."""

    @abstractmethod
    def _learn(self, key: Key, run: Run, values: Any) -> None:
        """What facts that come bring with them."""

    @abstractmethod
    def _by_owner(self, found: Any) -> Iterator[tuple[int, Key, int, Words]]:
        """Instances as letters: to which shard, relation, arity, and the rows with what is said of each."""

    @abstractmethod
    def _told(self, inbox: pa.Table, kind: Kind) -> Any:
        """The instances of letters of a kind."""


class _Plain(_Shard):
    """By deletion and rederivation. Nothing is looked for before a fact goes: that would take a superstep more."""

    def __init__(self, step: Superstep, site: _Site) -> None:
        super().__init__(step)
        self.facts: ProvedOverlap = _Unsearched(site, search=False)

    def _marks(self, key: Key, run: Run) -> Any:
        return np.zeros(len(run), U64)

    def _learn(self, key: Key, run: Run, values: Any) -> None:
        return None

    def _by_owner(self, found: Heads) -> Iterator[tuple[int, Key, int, Words]]:
        step = self.step
        for key, run in found.heads(step.arrays).items():
            owner = step.job.placement.owner(step.arrays, run.arity, run.words)
            for number in range(step.job.placement.shards):
                mine = run.where(owner == number)
                if len(mine):
                    yield number, key, run.arity, (*mine.words, np.zeros(len(mine), U64))

    def _told(self, inbox: pa.Table, kind: Kind) -> Heads:
        found = self.facts.found()
        for key, run, _ in marked(self.step, inbox, kind):
            found.arity_now = run.arity
            found.emit(key, run.words)
        return found


class _Unsearched(ProvedOverlap):
    def unsupported(self, doubted: Deltas) -> Deltas:
        return doubted


class _Counted(_Shard):
    """By counts: owners know them, all homes the ranks."""

    def __init__(self, step: Superstep, site: _Site) -> None:
        super().__init__(step)
        self.facts: CountedOverlap = CountedOverlap(site)

    def load(self) -> None:
        super().load()
        pending = self.facts.pending.all()
        for key, relation in self.step.before.get(PENDING_MARKS, {}).items():
            *rows, values = relation.base.words
            self.facts.ledger.put(key, pending[key].arity, tuple(rows), values)

    def save(self) -> None:
        super().save()
        arrays, ledger = self.step.arrays, self.facts.ledger
        for key, relation in self.facts.pending.all().items():
            words = (*relation.rows(), ledger.of(key, relation.rows()))
            self.step.queues.setdefault(PENDING_MARKS, {})[key] = Relation(Run(arrays, 2 * len(words), words))
        self.step.activation.ledger.marks = ledger.marks

    def _marks(self, key: Key, run: Run) -> Any:
        return self.facts.ledger.of(key, run.words)

    def _learn(self, key: Key, run: Run, values: Any) -> None:
        """Marks of facts that this shard owns, ranks of others: nobody else reads a count."""
        if key in self.facts.ledger.marks or values.any():
            self.facts.ledger.put(key, run.arity, run.words, values)

    def _by_owner(self, found: Instances) -> Iterator[tuple[int, Key, int, Words]]:
        step = self.step
        for key, heads in found.heads():
            owner = step.job.placement.owner(step.arrays, found.arities[key], heads.rows)
            for number in range(step.job.placement.shards):
                part = of_owner(heads, owner == number)
                if len(part.starts):
                    yield number, key, found.arities[key], grouped(step.arrays, part)

    def _told(self, inbox: pa.Table, kind: Kind) -> Instances:
        found = self.facts.found()
        repeated(found, marked(self.step, inbox, kind))
        return found
