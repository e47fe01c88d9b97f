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
from dataclasses import astuple

import pyarrow as pa

from evergraph.engines.arrays import Array, Arrays, Words
from evergraph.engines.base import Waiting
from evergraph.engines.fixpoint import Fixpoint
from evergraph.engines.kernel import Kernel
from evergraph.engines.marks import Marks
from evergraph.engines.prove import Search
from evergraph.engines.relation import Relation, Run
from evergraph.engines.retreat import rederive
from evergraph.engines.spark import counting, departures, files, mail, marks, overlapping, renaming
from evergraph.engines.spark.job import (
    ALL,
    ARRIVED,
    CHECKED,
    EXPANDED,
    EXPLICIT,
    GOALS,
    GONE,
    LATER,
    LOST,
    MARKS,
    PROVED,
    ROLES,
    SEARCHING,
    Job,
    Step,
)
from evergraph.engines.spark.mail import Kind, Letter, name_of
from evergraph.plan.locality import HERE
from evergraph.plan.model import Key


class Superstep:
    def __init__(self, job: Job, shard: int) -> None:
        self.job, self.shard = job, shard
        self.arrays = Arrays()
        self.last = job.answers.get(shard, {})
        self.manifest = tuple(files.Stored(*stored) for stored in self.last.get("manifest", ()))
        self.before = files.load(self.arrays, job.folder, self.manifest, (*ROLES, *(stored.role for stored in self.manifest)))
        self.relations = {} if job.forget else dict(self.before[ALL])
        self.explicit = dict(self.before[EXPLICIT])
        self.arrived = dict(self.before[ARRIVED]) if job.keep_arrived else {}
        self.gone = dict(self.before[GONE])
        begun = job.step == Step.RETREAT and job.begin
        self.lost = {} if begun else dict(self.before[LOST])
        kept = self.before if job.step in SEARCHING and not begun else {}
        self.goals, *search = (dict(kept.get(role, {})) for role in (GOALS, CHECKED, PROVED, EXPANDED))
        self.search = Search(*search)
        self.missed = {"absent": 0, "derived": 0}
        self.queues: dict[str, dict[Key, Relation]] = {}
        self.waiting: dict[int, Waiting] = {}
        """While updates overlap, the facts that wait, by role, and how many."""
        self.departed: dict[Key, Run] = {}
        """What went in this superstep, here."""
        self.outbox: dict[int, dict[tuple[Kind, Key, int], list[Words]]] = {}
        self.names = job.names.open() if job.names is not None else None
        kernel = Kernel(self.arrays, self)
        kernel.names = self.names
        known = {} if job.forget or not job.counting else marks.read(self.arrays, self.before)
        self.activation = counting.ShardActivation(self, kernel, known)
        self.fixpoint = self.activation if job.counting else Fixpoint(kernel, self.relations, self.send)

    def run(self, inbox: pa.Table) -> pa.Table:
        start = time.perf_counter()
        if self.job.forget:
            self._start_again()
        if self.job.step == Step.OVERLAP:
            overlapping.turn(self, inbox)
        elif self.job.counting:
            counting.send_copies(self)
            (counting.withdraw if self.job.step == Step.RETREAT else counting.activate)(self, inbox)
        else:
            self._run(inbox)
        answer = self.answer(time.perf_counter() - start)
        return mail.to_table([*self._letters(), Letter(self.job.labels[self.shard], Kind.ANSWER, "", 0, answer)])

    def _run(self, inbox: pa.Table) -> None:
        if self.job.step == Step.RENAME:
            renaming.rename(self, inbox)
            return
        self.resend()
        if self.job.step == Step.RETREAT:
            departures.retreat(self, inbox)
        elif self.job.step == Step.PROVE:
            departures.prove(self, inbox)
        elif self.job.step == Step.REPLACE:
            departures.exchange(self, inbox)
        else:
            self._advance(inbox)

    def _advance(self, inbox: pa.Table) -> None:
        """Take in what comes and draw its consequences."""
        self.receive(inbox)
        if self.job.step == Step.ADVANCE and self.job.begin:
            self._come_back()
        if self.job.reopen:
            for key, relation in self.arrived.items():
                self.fixpoint.arrived.add(key, Run(self.arrays, relation.arity, relation.rows()))
        self.fixpoint.close(self.job.components, self.job.full)
        if self.job.keep_arrived:
            self.gather_arrived()

    def gather_arrived(self) -> None:
        """Keep what arrived in this superstep with what arrived before."""
        gathered = {key: relation.base for key, relation in self.arrived.items()}
        for key, run in self.fixpoint.arrived.items():
            self._arrive(key, run, gathered)
        self.arrived = {key: Relation(run) for key, run in gathered.items()}

    def take(self, facts: Mapping[Key, Relation], explicit: Mapping[Key, Relation]) -> None:
        """Hold facts that this shard owns, and which of them are explicit, without looking at their consequences."""
        normal = renaming.normal_part(facts, self.names)
        self.fixpoint.insert({key: Run(self.arrays, r.arity, r.rows()) for key, r in normal.items()})
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

    def resend(self) -> None:
        """Bring facts to homes that the placement has given them since."""
        for key in self.job.resend:
            if key in self.relations:
                self.send(key, self.relations[key].arity, self.owned(self.relations[key]))

    def post(self, number: int, kind: Kind, key: Key, arity: int, words: Words) -> None:
        self.outbox.setdefault(number, {}).setdefault((kind, key, arity), []).append(words)

    def _start_again(self) -> None:
        for key, relation in self.explicit.items():
            words = relation.rows()
            self.send(key, relation.arity, words)
            self.fixpoint.insert({key: Run(self.arrays, relation.arity, words)})

    def at_begin(self) -> tuple[dict[Key, Relation], dict[Key, Marks]]:
        """Facts and their marks as they were here when the update began."""
        manifest = tuple(files.Stored(*stored) for stored in self.job.old.get(self.shard, ()))
        roles = files.load(self.arrays, self.job.folder, manifest, (ALL, MARKS, LATER))
        return roles[ALL], marks.read(self.arrays, roles)

    def receive(self, inbox: pa.Table) -> dict[Key, Run]:
        """Merge the mail; what it makes explicit here is explicit here. Returns what was not here."""
        parts: dict[tuple[Key, int], list[Words]] = {}
        for kind, key, arity, words in mail.read(inbox, (Kind.EXPLICIT, Kind.DERIVED)):
            parts.setdefault((key, arity), []).append(words)
            if kind == Kind.EXPLICIT:
                known = self.explicit.get(key)
                new = Run(self.arrays, arity, words if known is None else known.new(words))
                self.explicit[key] = Relation(new) if known is None else known.add(new)
        runs = {key: Run(self.arrays, arity, self.arrays.unique(p)) for (key, arity), p in parts.items()}
        return self.fixpoint.insert(renaming.arriving(self, runs))

    # -- what came and what went --------------------------------------------------------------------------------------

    def came(self) -> dict[Key, Relation]:
        """What is here and was not when the update began; what went and came back is no news."""
        runs = {k: Run(self.arrays, r.arity, r.rows()).without(self.gone.get(k)) for k, r in self.arrived.items()}
        return {key: Relation(run) for key, run in runs.items() if len(run)}

    def went(self) -> dict[Key, Relation]:
        """What was here and is not."""
        out = {}
        for key, relation in self.gone.items():
            run = Run(self.arrays, relation.arity, relation.less(self.relations.get(key)))
            run = run.where(self.job.placement.homes(self.arrays, key, run.arity, run.words)[self.shard])
            if len(run):
                out[key] = Relation(run)
        return out

    def take_out(self, key: Key, run: Run) -> None:
        """Facts go, as far as they are here."""
        if key in self.relations:
            run = run.within(self.relations[key])
            self.relations[key] = self.relations[key].remove(run)
            self.departed[key] = self.departed[key].merge(run) if key in self.departed else run

    def remember(self, key: Key, run: Run) -> None:
        """Keep what went, here or anywhere: it may follow from what meets here."""
        for kept in (self.gone, self.lost):
            known = kept.get(key)
            kept[key] = Relation(run) if known is None else known.add(run.without(known))

    def _come_back(self) -> None:
        """What went and still follows from what meets here comes back, everywhere it lives.

        Lower strata are settled, but what this one let go they may derive too: a variable predicate may be any.
        """
        kernel = self.fixpoint.kernel
        for components, gone in ((self.job.components, self.gone), (self.job.earlier, self.lost)):
            for key, run in rederive(kernel, components, gone, self.relations).items():
                self.fixpoint.insert({key: Run(self.arrays, run.arity, self.send(key, run.arity, run.words))})
        self.fixpoint.gain_from(self.job.components, self.went())

    def _arrive(self, key: Key, run: Run, into: dict[Key, Run]) -> None:
        known = into.get(key)
        if known is not None:
            run = known.merge(Run(self.arrays, run.arity, Relation(known).new(run.words)))
        into[key] = run

    def _letters(self) -> list[Letter]:
        return [
            mail.letter(self.job.labels[number], kind, key, arity, words)
            for number, parcels in self.outbox.items()
            for (kind, key, arity), parts in parcels.items()
            for words in (parts if kind in mail.MARKED else [self.arrays.unique(parts)])
        ]

    def answer(self, seconds: float) -> bytes:
        """Where the relations now stand, and what the driver wants to know of them."""
        counted = marks.write(self.arrays, self.activation.ledger.marks, self.relations, self.before)
        own = (self.relations, self.explicit, counted[MARKS], counted[LATER], self.arrived, self.gone, self.lost, self.goals)
        roles = dict(zip(ROLES, (*own, *self.search, renaming.found_equal(self)), strict=True)) | self.queues
        answer = {
            "shard": self.shard,
            "manifest": files.save(self.job.folder, roles, self.before, self.manifest),
            ALL: self._counts(),
            EXPLICIT: {name_of(k): len(r) for k, r in self.explicit.items()},
            ARRIVED: {name_of(k): len(self.owned(r)[0]) for k, r in self.arrived.items()},
            "arrived explicit": {name_of(k): self._explicit_among(k, r) for k, r in self.arrived.items()},
            "classes": self._classes(),
            "missed": self.missed,
            "goals": sum(map(len, self.goals.values())),
            "waiting": [[epoch, astuple(waiting)] for epoch, waiting in self.waiting.items()],
            "to": sorted(self.outbox),
            "rounds": self.fixpoint.rounds,
            "derivations": self.fixpoint.kernel.derivations,
            "examined": self.fixpoint.kernel.examined,
            "seconds": seconds,
        }
        return json.dumps(answer).encode()

    def _counts(self) -> dict[str, int]:
        """Facts that this shard owns. Cost: what came, except where a further stratum makes old arrivals new again."""
        last = {} if self.job.forget else self.last.get(ALL, {})
        out = dict(last)
        for key, run in self.fixpoint.arrived.items():
            if self.job.reopen:
                out[name_of(key)] = len(self.owned(self.relations[key])[0])
            else:
                out[name_of(key)] = last.get(name_of(key), 0) + len(self.owned(Relation(run))[0])
        for key, run in self.departed.items():
            out[name_of(key)] = out.get(name_of(key), 0) - len(self.owned(Relation(run))[0])
        return out

    def owned(self, relation: Relation) -> Words:
        """The rows of which this shard is the owner."""
        words = relation.rows()
        mask = self.job.placement.owner(self.arrays, relation.arity, words) == self.shard
        return tuple(w[mask] for w in words)

    def _explicit_among(self, key: Key, relation: Relation) -> int:
        known = self.explicit.get(key)
        return 0 if known is None else int(known.contains(self.owned(relation)).sum())

    def _classes(self) -> list[int]:
        """Named classes with instances at this shard. Cost: what arrived; all instances, where other classes may be named."""
        anew = self.job.forget or self.job.step in (Step.REPLACE, Step.RENAME)
        found = set() if anew else set(self.last.get("classes", ()))
        type_id = self.job.placement.type_id
        typed = [run for run, _ in self.relations[type_id].parts()] if anew and type_id in self.relations else []
        if type_id in self.fixpoint.arrived:
            typed.append(self.fixpoint.arrived[type_id])
        for run in typed if self.job.named else ():
            found.update(self.job.named.intersection(run.distinct(1).tolist()))
        return sorted(found)


def superstep(job: Job) -> Callable[[tuple[pa.Scalar, ...], pa.Table], pa.Table]:
    """The function that Spark calls for each shard with its mail."""

    def run(key: tuple[pa.Scalar, ...], inbox: pa.Table) -> pa.Table:
        return Superstep(job, job.labels.index(key[0].as_py())).run(inbox)

    return run
