"""The Spark engine: shards in Python workers, supersteps as jobs, the schema in the driver.

The driver keeps what is replicated anyway, the schema, in a shard of its own: it closes it, makes the schedule and derives
the placement from it. The shards' relations stand in files (`files.py`); facts move between shards as Spark's rows
(`mail.py`). A step is a superstep: one Spark job over the shards that have mail, repeated until there is no mail; a superstep
of little mail runs in the driver, which can open the shards' files as well. The number of supersteps does not depend on the
number of rules.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, replace
from itertools import chain
from pathlib import Path
from typing import Any

from evergraph.engines.base import STEP, Change, Closed, Counts, Difference, Facts, Keep, Missed, Which, by_name
from evergraph.engines.relation import Relation, Run
from evergraph.engines.shard import Scheduler, Shard
from evergraph.engines.spark import files
from evergraph.engines.spark.adoption import Adoption
from evergraph.engines.spark.gather import Gatherer, Reader
from evergraph.engines.spark.job import ALL, ARRIVED, EXPLICIT, Job, Step
from evergraph.engines.spark.labels import spread
from evergraph.engines.spark.mail import Kind, Letter, key_of
from evergraph.engines.spark.overlap import ShardsOverlap
from evergraph.engines.spark.parcels import FactFiles, parcels
from evergraph.engines.spark.placement import extend, place
from evergraph.engines.spark.running import Running
from evergraph.engines.spark.state import State
from evergraph.engines.spark.values import ValueFiles
from evergraph.errors import UserError
from evergraph.plan.compile import Plan
from evergraph.plan.locality import HERE, localise
from evergraph.plan.model import Key
from evergraph.plan.schedule import Component, data_schedule, defining, hidden_part, one_loop
from evergraph.plan.shapes import hidden
from evergraph.terms import Ids


class SparkEngine(Running):
    name = "spark"
    rewrites = False
    overlaps = frozenset({Keep.EVIDENT, Keep.COUNTED})

    def __init__(self, plan: Plan, session: Any, shards: int | None = None, folder: str | Path | None = None) -> None:
        """`folder` is where shards keep their relations: one that driver and workers share. By default a temporary one."""
        self.spark = session
        self.folder = Path(tempfile.mkdtemp(prefix="evergraph-", dir=folder))
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        self.shards = shards or max(2, int(session.sparkContext.defaultParallelism))
        self.labels = spread(self.shards)
        self.values = ValueFiles(plan.values, self.folder / "values")
        self.unused: frozenset[Key] = frozenset()
        """Parameter relations and helpers at the shards that no rule reads any more."""
        self._obey(plan)
        self.gatherer = Gatherer(self.schema.arrays, self.folder)
        self.state = self._saved = State(place(self.shards, plan.type_id, self.local))
        self._before = (plan, self.state, self.unused)
        self.jobs = self.supersteps = 0
        self.readers = []
        self._staged: dict[Key, Run] = {}
        self._files: FactFiles | None = None
        """Facts to insert beside the staged ones, that stand in files."""
        self._delivered = self._first = self._recomputed = self._restart = self._scattered = self._deleting = False
        self._counting = False
        """Whether the steps of this update keep counts, or make them."""

    def fresh(self, plan: Plan) -> SparkEngine:
        if self._files is not None:
            raise UserError("EG205", "a maintenance program cannot take files that stay with the workers", "use algorithm dred")
        return type(self)(plan, self.spark, self.shards, self.folder.parent)

    def _obey(self, plan: Plan) -> None:
        """Take rules, cut for locality."""
        self.uncut = plan
        self.local = [localise(rules) for rules in plan.strata]
        self.plan = replace(plan, strata=tuple(local.rules for local in self.local))
        self.schema = Shard(self.plan)

    # -- updates -----------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        self.state = self._saved = self.state.settled()
        self._before = (self.uncut, self.state, self.unused)
        self._staged, self._files = {}, None
        self._retracted: dict[Key, Run] = {}
        self._old_components: list[tuple[Component, ...]] = []
        """The rules of each stratum as they could fire when the update began."""
        self._new_components: list[tuple[Component, ...]] = []
        """The rules of each stratum that is settled, as they can fire now."""
        self.said: list[dict[str, Any]] = []
        self._delivered = self._recomputed = self._restart = self._deleting = self._counting = False
        self._first = not self.state.answers

    def stage(self, facts: FactFiles) -> None:
        """Insert these facts too: after `begin`, before `insert`."""
        self._files = facts

    def step(self, expected: int) -> int:
        return STEP

    def place(self, expected: int | None) -> str:
        return ""

    def adopt(self, plan: Plan) -> None:
        """Cost: the compiled rules; a superstep if shards must learn of it, and those that new helper relations take.

        Facts stay counted only if shards need not learn of it.
        """
        old = self.plan
        if plan.strata is self.uncut.strata:
            self.uncut, self.plan = plan, replace(plan, strata=old.strata)
            return
        self._obey(plan)
        if not self.state.answers:
            return
        adoption = Adoption.of(self, old)
        self.unused = adoption.unused
        early = self.state is self._saved
        counted = self.counted and adoption.same and not adoption.needed
        self.state = replace(self.state, placement=adoption.placement, counted=counted)
        if adoption.needed:
            self._learn(adoption)
        if early:
            self.state = self._saved = self.state.settled()

    def _learn(self, adoption: Adoption) -> None:
        """Tell the shards: relations to forget, rows of parameter relations, facts that are wanted elsewhere, helpers."""
        flags = (self._delivered, self._deleting, self._counting)
        self._delivered, self._deleting, self._counting = True, False, False
        letters = self.parcels(self.schema.runs(adoption.rows), Kind.EXPLICIT)
        again = tuple(sorted(adoption.again, key=str))
        job = replace(self.job(), step=Step.REPLACE, begin=True, drop=adoption.drop, resend=again, keep_arrived=True)
        self._run(job, letters, None)
        if adoption.helpers:
            for stratum in range(len(self.local)):
                self._close(stratum, True, lambda parts: defining(parts, adoption.helpers))
        self._delivered, self._deleting, self._counting = flags

    def weigh(self, rows: Facts) -> int | None:
        return None

    def insert(self, facts: Facts) -> bool:
        there = sum(self.state.total(ALL).values())
        self._staged = self.schema.runs({**facts, **self.plan.parameter_facts} if self._first else facts)
        given = sum(map(len, self._staged.values())) + (sum(self._files.counts.values()) if self._files else 0)
        return self._first or given > there

    def retract(self, facts: Facts, counting: bool = False) -> None:
        self._retracted = self.schema.runs(facts)
        self._deleting, self._counting = True, counting and self.counted
        self._learn_schema()
        for number, local in enumerate(self.local):
            scheduler = self.schema.schedulers[number]
            self.schema.fixpoint.close(scheduler.schema, True)
            schedule = data_schedule(local.rules, self._live(), self._classes(scheduler), scheduler.rows)
            self._old_components.append(self.to_run(number, (*scheduler.schema, *schedule.components)))

    def missed(self) -> Missed:
        found = [answer["missed"] for answer in self.said]
        return Missed(sum(m["absent"] for m in found), sum(m["derived"] for m in found))

    def retreat(self, stratum: int, keep: Keep) -> Closed:
        """Overdelete, or delete what has no proof, or what nothing counts for.

        What goes is told to every shard: any of them may derive it again.
        Cost: a superstep for each turn of the wave; with proofs, also for each level that they are looked for.
        """
        if self._first:
            return Closed(0, 0)
        components = self._old_components[stratum]
        job = replace(
            self.job(),
            components=components,
            values=self.compared(components),
            keep_arrived=True,
            step=Step.RETREAT,
            begin=True,
            keep=keep,
            counting=self._counting,
            old={n: answer["manifest"] for n, answer in self._saved.answers.items()} if self._counting else {},
        )
        letters, more = self._insertions()
        done = [self._run(job, self._retractions() + letters, more)]
        while self.state.aiming:
            done.append(self._run(replace(job, step=Step.PROVE), [], None))
            calls = [Letter(self.labels[shard], Kind.CALL, "", 0, b"") for shard in self.state.aiming]
            done.append(self._run(replace(job, begin=False, decided=True), calls, None))
        return Closed(*(sum(one) for one in zip(*map(astuple, done), strict=True)))

    def overlap(self, keep: Keep) -> ShardsOverlap:
        self._deleting, self._counting = True, keep == Keep.COUNTED
        return ShardsOverlap(self, keep)

    def replace(self, plus: Facts, minus: Facts) -> None:
        """Helper relations are dropped and derived anew. Cost: the supersteps that these take, and one to change the facts."""
        gone, come = self.schema.runs(minus), self.schema.runs(plus)
        letters, more = self._insertions()
        letters += self._retractions() + self.parcels(gone, Kind.GONE, Kind.GONE) + self.parcels(come, Kind.DERIVED)
        self._run(replace(self.job(), step=Step.REPLACE, begin=True, drop=self._helpers()), letters, more)
        self._recomputed, self._deleting = True, False
        self.schema.relations = {}
        self.schema.begin()
        for stratum in range(len(self.local)):
            self._close(stratum, True, hidden_part)

    def _helpers(self) -> frozenset[Key]:
        """Relations that are not the user's and follow from others: guards and cuts, not the constants of shapes."""
        return frozenset(r.head.relation for local in self.local for r in local.rules.rules if hidden(r.head.relation))

    def _retractions(self) -> list[Letter]:
        """Letters to the owners of facts that are to be explicit no longer, once."""
        retracted, self._retracted = self._retracted, {}
        return self.parcels(retracted, Kind.RETRACT, None)

    def _insertions(self) -> tuple[list[Letter], FactFiles | None]:
        """Letters to the homes of facts that are to be explicit, and the files that hold further ones, once."""
        if self._delivered:
            return [], None
        self._delivered = True
        return self.parcels(self._staged, Kind.EXPLICIT), self._files

    def advance(self, stratum: int) -> Closed:
        self.schema.relations = {}
        self.schema.begin()
        return self._close(stratum, self._first, tuple)

    def job(self) -> Job:
        """What shards are told when there is nothing to derive."""
        return Job(
            folder=self.folder,
            answers=dict(self.state.answers),
            placement=self.state.placement,
            labels=tuple(self.labels),
            named=frozenset().union(*(one.rules.classes for one in self.local)),
            components=(),
            values=None,
            full=False,
            reopen=False,
            keep_arrived=False,
            forget=False,
            resend=(),
        )

    def opened(self, answers: Mapping[int, dict[str, Any]]) -> None:
        """Shards have read the facts they own; copies at other homes, and helper relations, are still missing."""
        self.state = self._saved = replace(self.state, answers=answers)
        self._scattered = True

    def answers(self) -> tuple[dict[int, dict[str, Any]], dict[int, dict[str, Any]]]:
        """What the shards held when the update began, and what they hold now."""
        return dict(self._saved.answers), dict(self.state.answers)

    def arities(self) -> dict[str, int]:
        """Arguments of named relations that hold facts."""
        stored = (files.Stored(*s) for answer in self.state.answers.values() for s in answer["manifest"])
        return {s.key: s.arity for s in stored if s.role == ALL and isinstance(key_of(s.key), str) and not hidden(s.key)}

    def prepare(self, builtins: Facts) -> None:
        """Bring the facts of a store to all of their homes and derive the helper relations."""
        self.begin()
        self._first = True
        self.insert(builtins)
        for stratum in range(len(self.local)):
            self._close(stratum, True, hidden_part)
        self.state = self._saved = replace(self.state, answers=dict(self.state.answers))

    def close(self, stratum: int, full: bool) -> Closed:
        return self._close(stratum, full, tuple)

    def _close(self, stratum: int, full: bool, part: Callable[[Iterable[Component]], tuple[Component, ...]]) -> Closed:
        """Close one stratum, or a part of its components.

        A negation must not be evaluated before every copy of what it negates is in place: where facts are on their way to
        further homes, they are delivered first, and the rules run in the next superstep. So they do where facts are counted:
        copies are no news. There, too, shards derive the schema themselves, for it to be counted.
        """
        local, scheduler = self.local[stratum], self.schema.schedulers[stratum]
        self._learn_schema()
        self.schema.fixpoint.close(scheduler.schema, True)
        schedule = data_schedule(local.rules, self._live(), self._classes(scheduler), scheduler.rows)
        placement = extend(self.state.placement, local, schedule)
        held = {} if self._restart else self.state.total(ALL)
        again = {k for k in held if placement.further(k) != self.state.placement.further(k)}
        if self._scattered:
            again |= {k for k in held if placement.is_replicated(k) or k == self.plan.type_id}
        self.state = replace(self.state, placement=placement, schema=dict(self.schema.relations))
        components = part(schedule.components)
        if self._counting:
            components = self.to_run(stratum, (*scheduler.schema, *components))
        job = replace(
            self.job(),
            components=components,
            values=self.compared([*components, *chain(*self._new_components)]),
            full=full,
            reopen=(stratum > 0 or self._deleting or self.rewrites) and not full,
            keep_arrived=self.rewrites or not (self._first or self._recomputed),
            forget=self._restart,
            resend=tuple(sorted(again, key=str)),
            step=Step.ADVANCE if self._deleting else Step.CLOSE,
            begin=self._deleting,
            earlier=tuple(chain.from_iterable(self._new_components)),
            counting=self._counting,
        )
        if self._deleting:
            self._new_components.append(components if self._counting else (*scheduler.schema, *components))
        letters, more = self._insertions()
        if not self._counting:
            letters += self.parcels(self.schema.fixpoint.arrived, Kind.DERIVED)
        self._restart = self._scattered = False
        negates = any(task.rule.negated for c in components for task in c.tasks)
        if ((job.resend or job.forget) and negates) or (job.resend and job.counting):
            self._run(replace(job, components=(), full=False, reopen=False, begin=False), letters, more)
            job = replace(job, resend=(), forget=False, reopen=not full)
            letters, more = [], None
        return self._run(job, letters, more)

    def compared(self, components: Iterable[Component]) -> Any:
        """The values of all terms, if one of these rules compares any."""
        compares = any(f.operator != HERE for c in components for task in c.tasks for f in task.rule.filters)
        return self.values.save() if compares else None

    def to_run(self, stratum: int, components: tuple[Component, ...]) -> tuple[Component, ...]:
        """The components as they are; where facts are counted, their rules in one loop that finds each instance once."""
        if not self._counting:
            return components
        once = dict(zip(map(id, self.local[stratum].rules.rules), self.local[stratum].once, strict=True))
        return (one_loop(replace(task, rule=once[id(task.rule)]) for c in components for task in c.tasks),)

    counted_by = ""

    @property
    def counted(self) -> bool:
        """Whether the shards keep ranks and counts. They keep them for themselves: a store that Spark writes holds none."""
        return self.state.counted

    def count(self) -> int:
        """Nothing is left to do: shards count while they derive."""
        self.state = replace(self.state, counted=True)
        return sum(answer["derivations"] for answer in self.said)

    def forget_derived(self, counting: bool = False) -> None:
        if self._retracted and not self._first:
            self._run(replace(self.job(), step=Step.RETREAT), self._retractions(), None)
        self._recomputed, self._restart, self._deleting, self._counting = True, True, False, counting
        self.schema.relations = {}
        self.schema.begin()

    def commit(self) -> Change:
        before, after = self._saved, self.state
        self._sweep(before, after)
        if self._recomputed or self._deleting:
            return self.gatherer.compared(before, after)
        had, now = before.total(EXPLICIT), after.total(EXPLICIT)
        role, known = (ALL, now) if self._first else (ARRIVED, after.total("arrived explicit"))
        explicit = {k: n - had.get(k, 0) for k, n in now.items()}
        derived = {k: n - known.get(k, 0) for k, n in after.total(role).items()}
        return Change(Difference(by_name(explicit), by_name(derived), lambda: self.gatherer.facts(after, role)))

    def rollback(self) -> None:
        plan, self.state, self.unused = self._before
        self._saved = self.state
        self._obey(plan)
        self.schema.restore(self.plan, dict(self.state.schema), {})

    # -- what the driver knows ---------------------------------------------------------------------------------------

    def _learn_schema(self) -> None:
        """Bring the driver's schema up to date: with what is inserted, and with what the shards have derived."""
        self.schema.begin()
        keys = self.state.placement.replicated | {self.plan.type_id}
        if self._restart:
            shared = self.gatherer.all(self.state, EXPLICIT, keys)
        elif self._scattered:
            shared = self.gatherer.all(self.state, ALL, keys)
        else:
            shared = self.gatherer.at(self.state, ALL, next(iter(self.state.answers), 0), keys)
        self.schema.fixpoint.insert({key: self._common(key, run) for key, run in shared.items()})
        self.schema.fixpoint.insert({key: self._common(key, run) for key, run in self._staged.items()})
        if self._files is not None:
            self.schema.fixpoint.insert(self._files.common)

    def _common(self, key: Key, run: Run) -> Run:
        """The rows that every shard holds."""
        mask = self.state.placement.common(self.schema.arrays, key, run.words)
        if isinstance(mask, bool):
            return run if mask else Run(run.arrays, run.arity, run.arrays.empty(run.arity))
        return Run(run.arrays, run.arity, tuple(w[mask] for w in run.words))

    def _live(self) -> dict[Key, int]:
        facts = {} if self._restart else self.state.total(ALL)
        inserted = self._files.counts if self._files is not None else {}
        for source in (self.schema.relations, self._staged, self.state.total(EXPLICIT), inserted):
            for key, rows in source.items():
                facts[key] = facts.get(key, 0) + (rows if isinstance(rows, int) else len(rows))
        return facts

    def _classes(self, scheduler: Scheduler) -> frozenset[int]:
        """Named classes that have instances, somewhere."""
        found = set(scheduler.classes())
        for answer in self.state.answers.values():
            found.update(answer["classes"])
        if self.plan.type_id in self._staged:
            found.update(scheduler.named_classes(self._staged[self.plan.type_id]))
        if self._files is not None:
            found.update(self._files.classes)
        return frozenset(found & scheduler.rules.classes)

    def parcels(self, runs: Mapping[Key, Run], owner: Kind, others: Kind | None = Kind.DERIVED) -> list[Letter]:
        return parcels(self.state.placement, self.labels, runs, owner, others)

    # -- reading -----------------------------------------------------------------------------------------------------

    def still(self) -> Reader:
        """Files that somebody may still read are not deleted."""
        reader = Reader(self.gatherer, self.state)
        self.readers.append(weakref.ref(reader))
        return reader

    def counts(self, which: Which) -> Counts:
        return Reader(self.gatherer, self.state).counts(which)

    def rows(self, relation: str, which: Which) -> Sequence[Ids] | None:
        return Reader(self.gatherer, self.state).rows(relation, which)

    def contains(self, relation: str, row: Sequence[int]) -> bool:
        return Reader(self.gatherer, self.state).contains(relation, row)

    def relations(self, which: Which) -> Mapping[Key, Relation]:
        return Reader(self.gatherer, self.state).relations(which)
