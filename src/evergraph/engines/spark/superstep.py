"""One superstep at one shard: merge the mail, close locally, keep what lives here, send the rest.

Runs in Spark's Python workers. A `Job` says what to do and where the shard's relations stand; what the shard has to say
goes out as letters: facts for other shards, and one answer to the driver.

Invariant: between supersteps every fact is at, or on its way to, all of its homes; a shard is closed under the rules over
the facts it holds. When no mail is under way the whole is closed: each rule instance meets at some shard.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import pyarrow as pa

from evergraph.engines.arrays import Array, Arrays, Words
from evergraph.engines.fixpoint import Fixpoint
from evergraph.engines.kernel import Kernel
from evergraph.engines.relation import Relation, Run
from evergraph.engines.retreat import Retreat, rederive
from evergraph.engines.spark import files, mail
from evergraph.engines.spark.mail import Kind, Letter, name_of
from evergraph.engines.spark.placement import Placement
from evergraph.plan.locality import HERE
from evergraph.plan.model import Key
from evergraph.plan.schedule import Component

ALL, EXPLICIT, ARRIVED, GONE = "all", "explicit", "arrived", "gone"
"""The roles of relations at a shard: its facts, which of those it owns are explicit, what came in this update, and what went,
here or anywhere."""


class Step(StrEnum):
    CLOSE = "close"
    RETREAT = "retreat"
    ADVANCE = "advance"


@dataclass(frozen=True, slots=True)
class Job:
    """What the shards do in a superstep."""

    folder: Path
    answers: dict[int, dict[str, Any]]
    """What each shard said last: where its relations stand, and how many facts they hold."""
    placement: Placement
    labels: tuple[int, ...]
    """What shards are called in mail: Spark hashes each label to a partition of its own."""
    named: frozenset[int]
    """Classes that rules name: each shard says which of them have instances."""
    components: tuple[Component, ...]
    values: Any
    full: bool
    """Evaluate everything, not only what arrives."""
    reopen: bool
    """Take all that arrived in this update as new again: a further stratum reads it."""
    keep_arrived: bool
    """Remember what arrives until the update is committed."""
    forget: bool
    """Start again from explicit facts."""
    resend: tuple[Key, ...]
    """Relations that are placed by more arguments than before."""
    step: Step = Step.CLOSE
    begin: bool = False
    """Whether this is the first superstep of a retreat or an advance."""


class Superstep:
    def __init__(self, job: Job, shard: int) -> None:
        self.job, self.shard = job, shard
        self.arrays = Arrays()
        self.last = job.answers.get(shard, {})
        self.manifest = tuple(files.Stored(*stored) for stored in self.last.get("manifest", ()))
        self.before = files.load(self.arrays, job.folder, self.manifest, (ALL, EXPLICIT, ARRIVED, GONE))
        self.relations = {} if job.forget else dict(self.before[ALL])
        self.explicit = dict(self.before[EXPLICIT])
        self.arrived = dict(self.before[ARRIVED]) if job.keep_arrived else {}
        self.gone = dict(self.before[GONE])
        self.missed = {"absent": 0, "derived": 0}
        self.departed: dict[Key, Run] = {}
        """What went in this superstep, here."""
        self.outbox: dict[int, dict[tuple[Kind, Key, int], list[Words]]] = {}
        self.fixpoint = Fixpoint(Kernel(self.arrays, self), self.relations, self.send)

    def run(self, inbox: pa.Table) -> pa.Table:
        start = time.perf_counter()
        if self.job.forget:
            self._start_again()
        for key in self.job.resend:
            if key in self.relations:
                self.send(key, self.relations[key].arity, self._owned(self.relations[key]))
        if self.job.step == Step.RETREAT:
            self._retreat(inbox)
            return self._done(start)
        self._receive(inbox)
        if self.job.step == Step.ADVANCE and self.job.begin:
            self._come_back()
        if self.job.reopen:
            for key, relation in self.arrived.items():
                self.fixpoint.arrived.add(key, Run(self.arrays, relation.arity, relation.rows()))
        self.fixpoint.close(self.job.components, self.job.full)
        if self.job.keep_arrived:
            self._gather_arrived()
        return self._done(start)

    def _gather_arrived(self) -> None:
        """Keep what arrived in this superstep with what arrived before."""
        gathered = {key: relation.base for key, relation in self.arrived.items()}
        for key, run in self.fixpoint.arrived.items():
            self._arrive(key, run, gathered)
        self.arrived = {key: Relation(run) for key, run in gathered.items()}

    def _done(self, start: float) -> pa.Table:
        answer = self.answer(time.perf_counter() - start)
        return mail.to_table([*self._letters(), Letter(self.job.labels[self.shard], Kind.ANSWER, "", 0, answer)])

    def take(self, facts: Mapping[Key, Relation], explicit: Mapping[Key, Relation]) -> None:
        """Hold facts that this shard owns, and which of them are explicit, without looking at their consequences."""
        self.fixpoint.insert({key: Run(self.arrays, r.arity, r.rows()) for key, r in facts.items()})
        self.explicit.update(explicit)

    def compare(self, operator: str, left: Array, right: Array) -> Array:
        """What filters ask: whether a meeting point is this shard, or how values compare."""
        if operator == HERE:
            return self.job.placement.hash(left) == self.shard
        return self.job.values.compare(operator, left, right)

    def send(self, key: Key, arity: int, words: Words) -> Words:
        """Put rows into the outbox for their other homes; returns those that live here."""
        here = words
        for number, mask in enumerate(self.job.placement.homes(self.arrays, key, arity, words)):
            part = words if bool(mask.all()) else tuple(w[mask] for w in words)
            if number == self.shard:
                here = part
            elif len(part[0]):
                self.post(number, Kind.DERIVED, key, arity, part)
        return here

    def post(self, number: int, kind: Kind, key: Key, arity: int, words: Words) -> None:
        self.outbox.setdefault(number, {}).setdefault((kind, key, arity), []).append(words)

    def _start_again(self) -> None:
        for key, relation in self.explicit.items():
            words = relation.rows()
            self.send(key, relation.arity, words)
            self.fixpoint.insert({key: Run(self.arrays, relation.arity, words)})

    def _receive(self, inbox: pa.Table) -> None:
        """Merge the mail; what it makes explicit here is explicit here."""
        parts: dict[tuple[Key, int], list[Words]] = {}
        for kind, key, arity, words in mail.read(inbox, (Kind.EXPLICIT, Kind.DERIVED)):
            parts.setdefault((key, arity), []).append(words)
            if kind == Kind.EXPLICIT:
                known = self.explicit.get(key)
                new = Run(self.arrays, arity, words if known is None else known.new(words))
                self.explicit[key] = Relation(new) if known is None else known.add(new)
        self.fixpoint.insert({key: Run(self.arrays, arity, self.arrays.unique(p)) for (key, arity), p in parts.items()})

    # -- going, and coming back ---------------------------------------------------------------------------------------

    def _retreat(self, inbox: pa.Table) -> None:
        """Let go what the mail says has gone, and what is in doubt here; then what lost an instance with it."""
        self._receive(inbox)
        self._gather_arrived()
        going: dict[tuple[Key, int], list[Words]] = {}
        below = self._went() if self.job.begin else {}
        came = {key: relation for key, relation in self.arrived.items() if len(relation)}
        for key, new in came.items():
            self.relations[key] = self.relations[key].remove(new.base)
        retreat = ShardRetreat(self, _with(self.relations, below))
        retreat.depart({key: relation.base for key, relation in below.items()})
        for kind, key, arity, words in mail.read(inbox, (Kind.RETRACT, Kind.DOUBT, Kind.GONE)):
            if kind == Kind.RETRACT:
                words = self._retract(key, words)
            if kind != Kind.GONE:
                relation = self.relations.get(key)
                run = Run(self.arrays, arity, words)
                words = self.not_explicit(key, run if relation is None else run.within(relation)).words
                self.say_gone(key, arity, words)
            going.setdefault((key, arity), []).append(words)
        for (key, arity), parts in going.items():
            run = Run(self.arrays, arity, self.arrays.unique(parts))
            self._remember(key, run)
            relation = self.relations.get(key)
            if relation is not None:
                retreat.depart({key: run.within(relation)})
        if self.job.begin:
            retreat.lose_to(self.job.components, came)
        retreat.close(self.job.components, False)
        self.relations = _with(retreat.relations, came)
        self.departed = {key: run.without(below.get(key)) for key, run in retreat.arrived.items()}
        for key, run in self.departed.items():
            self._remember(key, run)
        self.fixpoint.rounds += retreat.rounds

    def _retract(self, key: Key, words: Words) -> Words:
        """Make facts that this shard owns cease to be explicit; returns those that were."""
        known, relation = self.explicit.get(key), self.relations.get(key)
        was = known.contains(words) if known is not None else self.arrays.xp.zeros(len(words[0]), bool)
        there = relation.contains(words) if relation is not None else self.arrays.xp.zeros(len(words[0]), bool)
        self.missed["absent"] += int((~there).sum())
        self.missed["derived"] += int((there & ~was).sum())
        if known is not None:
            self.explicit[key] = known.remove(Run(self.arrays, known.arity, _only(words, was)))
        return _only(words, was)

    def not_explicit(self, key: Key, run: Run) -> Run:
        return run.without(self.explicit.get(key))

    def say_gone(self, key: Key, arity: int, words: Words) -> None:
        """Tell every other shard."""
        if len(words[0]):
            for number in range(self.job.placement.shards):
                if number != self.shard:
                    self.post(number, Kind.GONE, key, arity, words)

    def _remember(self, key: Key, run: Run) -> None:
        known = self.gone.get(key)
        self.gone[key] = Relation(run) if known is None else known.add(run.without(known))

    def _come_back(self) -> None:
        """What went and still follows from what meets here comes back, everywhere it lives."""
        found = rederive(self.fixpoint.kernel, self.job.components, self.gone, self.relations)
        for key, run in found.items():
            self.fixpoint.insert({key: Run(self.arrays, run.arity, self.send(key, run.arity, run.words))})
        self.fixpoint.gain_from(self.job.components, self._went())

    def _went(self) -> dict[Key, Relation]:
        """What went in this update and has not come back here."""
        went = {k: Relation(Run(self.arrays, r.arity, r.less(self.relations.get(k)))) for k, r in self.gone.items()}
        return {key: relation for key, relation in went.items() if len(relation)}

    def _arrive(self, key: Key, run: Run, into: dict[Key, Run]) -> None:
        known = into.get(key)
        if known is not None:
            run = known.merge(Run(self.arrays, run.arity, Relation(known).new(run.words)))
        into[key] = run

    def _letters(self) -> list[Letter]:
        return [
            mail.letter(self.job.labels[number], kind, key, arity, self.arrays.unique(parts))
            for number, parcels in self.outbox.items()
            for (kind, key, arity), parts in parcels.items()
        ]

    def answer(self, seconds: float) -> bytes:
        """Where the relations now stand, and what the driver wants to know of them."""
        roles = {ALL: self.relations, EXPLICIT: self.explicit, ARRIVED: self.arrived, GONE: self.gone}
        answer = {
            "shard": self.shard,
            "manifest": files.save(self.job.folder, roles, self.before, self.manifest),
            ALL: self._counts(),
            EXPLICIT: {name_of(k): len(r) for k, r in self.explicit.items()},
            ARRIVED: {name_of(k): len(self._owned(r)[0]) for k, r in self.arrived.items()},
            "arrived explicit": {name_of(k): self._explicit_among(k, r) for k, r in self.arrived.items()},
            "classes": self._classes(),
            "missed": self.missed,
            "to": sorted(self.outbox),
            "rounds": self.fixpoint.rounds,
            "derivations": self.fixpoint.kernel.derivations,
            "seconds": seconds,
        }
        return json.dumps(answer).encode()

    def _counts(self) -> dict[str, int]:
        """Facts that this shard owns. Cost: what came, except where a further stratum makes old arrivals new again."""
        last = {} if self.job.forget else self.last.get(ALL, {})
        out = dict(last)
        for key, run in self.fixpoint.arrived.items():
            if self.job.reopen:
                out[name_of(key)] = len(self._owned(self.relations[key])[0])
            else:
                out[name_of(key)] = last.get(name_of(key), 0) + len(self._owned(Relation(run))[0])
        for key, run in self.departed.items():
            out[name_of(key)] = out.get(name_of(key), 0) - len(self._owned(Relation(run))[0])
        return out

    def _owned(self, relation: Relation) -> Words:
        """The rows of which this shard is the owner."""
        words = relation.rows()
        mask = self.job.placement.owner(self.arrays, relation.arity, words) == self.shard
        return tuple(w[mask] for w in words)

    def _explicit_among(self, key: Key, relation: Relation) -> int:
        known = self.explicit.get(key)
        return 0 if known is None else int(known.contains(self._owned(relation)).sum())

    def _classes(self) -> list[int]:
        """Named classes with instances at this shard."""
        found = set() if self.job.forget else set(self.last.get("classes", ()))
        arrived = self.fixpoint.arrived.get(self.job.placement.type_id)
        if arrived is not None and self.job.named:
            found.update(self.job.named.intersection(arrived.distinct(1).tolist()))
        return sorted(found)


class ShardRetreat(Retreat):
    """Decides about the facts that its shard owns, and asks the owners of others."""

    def __init__(self, step: Superstep, old: Mapping[Key, Relation]) -> None:
        super().__init__(step.fixpoint.kernel, old, step.not_explicit)
        self.step = step

    def doubted(self, key: Key, arity: int, words: Words) -> Words:
        step = self.step
        known = step.gone.get(key)
        words = words if known is None else known.new(words)
        owner = step.job.placement.owner(self.arrays, arity, words)
        for number in range(step.job.placement.shards):
            away = owner == number
            if number != step.shard and bool(away.any()):
                step.post(number, Kind.DOUBT, key, arity, _only(words, away))
        return _only(words, owner == step.shard)

    def let_go(self, key: Key, run: Run) -> None:
        self.step.say_gone(key, run.arity, run.words)
        super().let_go(key, run)


def _with(relations: Mapping[Key, Relation], facts: Mapping[Key, Relation]) -> dict[Key, Relation]:
    """Relations with further facts."""
    out = dict(relations)
    for key, relation in facts.items():
        out[key] = out[key].add(relation.base) if key in out else relation
    return out


def _only(words: Words, mask: Array) -> Words:
    return tuple(w[mask] for w in words)


def superstep(job: Job) -> Callable[[tuple[pa.Scalar, ...], pa.Table], pa.Table]:
    """The function that Spark calls for each shard with its mail."""

    def run(key: tuple[pa.Scalar, ...], inbox: pa.Table) -> pa.Table:
        return Superstep(job, job.labels.index(key[0].as_py())).run(inbox)

    return run
