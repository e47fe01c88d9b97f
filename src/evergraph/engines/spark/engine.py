"""The Spark engine: shards in Python workers, supersteps as jobs, the schema in the driver.

The driver keeps what is replicated anyway, the schema, in a shard of its own: it closes it, makes the schedule and derives
the placement from it. The shards' relations stand in files (`files.py`); facts move between shards as Spark's rows
(`mail.py`). A step is a superstep: one Spark job over the shards that have mail, repeated until there is no mail. The number
of jobs is the number of supersteps, whatever the number of rules.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from typing import Any, Protocol

from evergraph.engines.arrays import U64, Words
from evergraph.engines.base import Change, Closed, Counts, Difference, Facts, Keep, Missed, Which, by_name, together
from evergraph.engines.relation import Relation, Run
from evergraph.engines.shard import Scheduler, Shard
from evergraph.engines.spark import files, mail
from evergraph.engines.spark.jobs import FAILURES, failure, lost
from evergraph.engines.spark.mail import DDL, Kind, Letter, key_of
from evergraph.engines.spark.placement import Placement, extend, place
from evergraph.engines.spark.superstep import ALL, ARRIVED, EXPLICIT, GONE, Job, Step, superstep
from evergraph.engines.spark.values import ValueFiles
from evergraph.errors import UserError
from evergraph.plan.compile import Plan
from evergraph.plan.locality import HERE, localise
from evergraph.plan.model import Key
from evergraph.plan.schedule import Component, data_schedule, hidden_part
from evergraph.plan.shapes import hidden
from evergraph.rules.model import TRIPLE
from evergraph.terms import Ids

ATTEMPTS = 3
PARCEL_BYTES = 32 << 20
"""The driver hands facts to Spark in frames of about this size."""


Runs = dict[Key, Run]


class FactFiles(Protocol):
    """Explicit facts that stand in files where the workers can read them."""

    @property
    def counts(self) -> Mapping[Key, int]:
        """Facts by relation, at least."""

    @property
    def common(self) -> Mapping[Key, Run]:
        """Those that every shard holds."""

    @property
    def classes(self) -> frozenset[int]:
        """Classes that rules name and that have instances among the facts."""

    def letters(self, session: Any, placement: Placement, labels: Sequence[int]) -> Any:
        """A frame of letters to the homes of all facts."""


@dataclass(frozen=True, slots=True)
class State:
    """Everything an update may change; taking it back is putting an old one in place."""

    placement: Placement
    answers: Mapping[int, dict[str, Any]] = field(default_factory=dict)
    """What each shard said last: where its relations stand, and how many facts they hold."""
    schema: Mapping[Key, Relation] = field(default_factory=dict)

    def total(self, what: str) -> dict[Key, int]:
        """Counts of owned facts by key over all shards."""
        out: dict[Key, int] = {}
        for answer in self.answers.values():
            for name, count in answer[what].items():
                out[key_of(name)] = out.get(key_of(name), 0) + count
        return out

    @property
    def manifest(self) -> set[tuple[Any, ...]]:
        """Where everything stands, of all shards together."""
        return {tuple(stored) for answer in self.answers.values() for stored in answer["manifest"]}

    @property
    def files(self) -> set[str]:
        return {stored[5] for answer in self.answers.values() for stored in answer["manifest"]}


class SparkEngine:
    name = "spark"

    def __init__(self, plan: Plan, session: Any, shards: int | None = None, folder: str | Path | None = None) -> None:
        """`folder` is where shards keep their relations: one that driver and workers share. By default a temporary one."""
        self.spark = session
        self.folder = Path(tempfile.mkdtemp(prefix="evergraph-", dir=folder))
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        self.shards = shards or max(2, int(session.sparkContext.defaultParallelism))
        self.labels = spread(self.shards)
        self.values = ValueFiles(plan.values, self.folder / "values")
        self.local = [localise(rules, f"cut{n}.") for n, rules in enumerate(plan.strata)]
        self.plan = replace(plan, strata=tuple(local.rules for local in self.local))
        self.schema = Shard(self.plan)
        self.state = self._saved = State(place(self.shards, plan.type_id, self.local))
        self.jobs = 0
        self._staged: dict[Key, Run] = {}
        self._files: FactFiles | None = None
        """Facts to insert beside the staged ones, that stand in files."""
        self._delivered = self._first = self._recomputed = self._restart = self._scattered = self._deleting = False

    # -- updates -----------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        quiet = {n: _without_arrived(answer) for n, answer in self.state.answers.items()}
        self.state = self._saved = replace(self.state, answers=quiet)
        self._staged, self._files = {}, None
        self._retracted: dict[Key, Run] = {}
        self._old_components: list[tuple[Component, ...]] = []
        """The rules of each stratum as they could fire when the update began."""
        self._said: list[dict[str, Any]] = []
        self._delivered = self._recomputed = self._restart = self._deleting = False
        self._first = not self.state.answers

    def stage(self, facts: FactFiles) -> None:
        """Insert these facts too: after `begin`, before `insert`."""
        self._files = facts

    def insert(self, facts: Facts) -> bool:
        there = sum(self.state.total(ALL).values())
        self._staged = self.schema.runs({**facts, **self.plan.parameter_facts} if self._first else facts)
        given = sum(map(len, self._staged.values())) + (sum(self._files.counts.values()) if self._files else 0)
        return self._first or given > there

    def retract(self, facts: Facts, counting: bool = False) -> None:
        self._retracted = self.schema.runs(facts)
        self._deleting = True
        self._learn_schema()
        for number, local in enumerate(self.local):
            scheduler = self.schema.schedulers[number]
            self.schema.fixpoint.close(scheduler.schema, True)
            schedule = data_schedule(local.rules, self._live(), self._classes(scheduler), scheduler.rows)
            self._old_components.append((*scheduler.schema, *schedule.components))

    def missed(self) -> Missed:
        found = [answer["missed"] for answer in self._said]
        return Missed(sum(m["absent"] for m in found), sum(m["derived"] for m in found))

    def retreat(self, stratum: int, keep: Keep) -> Closed:
        """Overdelete. What is overdeleted is told to every shard: any of them may derive it again."""
        if keep != Keep.NOTHING:
            raise UserError("EG205", "Spark cannot look for proofs", "use algorithm dred, or the memory engine")
        if self._first:
            return Closed(0, 0)
        components = self._old_components[stratum]
        job = replace(
            self.job(),
            components=components,
            values=self.values.save() if _compares(components) else None,
            keep_arrived=True,
            step=Step.RETREAT,
            begin=True,
        )
        letters = self._retractions()
        more = None
        if not self._delivered:
            letters += self._parcels(self._staged, Kind.EXPLICIT)
            more, self._delivered = self._files, True
        return self._run(job, letters, more)

    def replace(self, plus: Facts, minus: Facts) -> None:
        raise UserError("EG205", "Spark cannot run a maintenance program", "use algorithm dred, or the memory engine")

    def _retractions(self) -> list[Letter]:
        """Letters to the owners of facts that are to be explicit no longer, once."""
        arrays, placement = self.schema.arrays, self.state.placement
        letters = []
        for key, run in self._retracted.items():
            owner = placement.owner(arrays, run.arity, run.words)
            for shard in range(self.shards):
                mine = owner == U64(shard)
                if bool(mine.any()):
                    words = tuple(w[mine] for w in run.words)
                    letters.append(mail.letter(self.labels[shard], Kind.RETRACT, key, run.arity, words))
        self._retracted = {}
        return letters

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
        return {s.key: s.arity for s in stored if isinstance(key_of(s.key), str) and not hidden(s.key)}

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
        further homes, they are delivered first, and the rules run in the next superstep.
        """
        local, scheduler = self.local[stratum], self.schema.schedulers[stratum]
        self._learn_schema()
        self.schema.fixpoint.close(scheduler.schema, True)
        schedule = data_schedule(local.rules, self._live(), self._classes(scheduler), scheduler.rows)
        placement = extend(self.state.placement, local, schedule)
        again = {k for k in self.state.total(ALL) if placement.further(k) != self.state.placement.further(k)}
        if self._scattered:
            again |= (placement.replicated | {self.plan.type_id}) & self.state.total(ALL).keys()
        self.state = replace(self.state, placement=placement, schema=dict(self.schema.relations))
        components = part(schedule.components)
        job = replace(
            self.job(),
            components=components,
            values=self.values.save() if _compares(components) else None,
            full=full,
            reopen=(stratum > 0 or self._deleting) and not full,
            keep_arrived=not (self._first or self._recomputed),
            forget=self._restart,
            resend=tuple(sorted(again, key=str)),
            step=Step.ADVANCE if self._deleting else Step.CLOSE,
            begin=self._deleting,
        )
        letters = self._parcels(self.schema.fixpoint.arrived, Kind.DERIVED)
        more = None
        if not self._delivered:
            letters += self._parcels(self._staged, Kind.EXPLICIT)
            more = self._files
        self._delivered, self._restart, self._scattered = True, False, False
        if (job.resend or job.forget) and any(task.rule.negated for c in components for task in c.tasks):
            self._run(replace(job, components=(), full=False, reopen=False), letters, more)
            job = replace(job, answers=dict(self.state.answers), resend=(), forget=False, reopen=not full)
            letters, more = [], None
        return self._run(job, letters, more)

    @property
    def counted(self) -> bool:
        return False

    def count(self) -> int:
        raise UserError("EG205", "Spark keeps no counts", "use algorithm dred, or the memory engine")

    def forget_derived(self, counting: bool = False) -> None:
        if self._retracted and not self._first:
            self._run(replace(self.job(), step=Step.RETREAT), self._retractions(), None)
        self._recomputed, self._restart, self._deleting = True, True, False
        self.schema.relations = {}
        self.schema.begin()

    def commit(self) -> Change:
        before, after = self._saved, self.state
        self._sweep(before, after)
        had = before.total(EXPLICIT)
        explicit = {k: n - had.get(k, 0) for k, n in after.total(EXPLICIT).items()}
        if self._recomputed or self._deleting:
            return self._compared(before, after)
        if self._first:
            now = after.total(EXPLICIT)
            derived = {k: n - now.get(k, 0) for k, n in after.total(ALL).items()}
            return Change(Difference(by_name(explicit), by_name(derived), lambda: self._collect(after, ALL)))
        known = after.total("arrived explicit")
        derived = {k: n - known.get(k, 0) for k, n in after.total(ARRIVED).items()}
        return Change(Difference(by_name(explicit), by_name(derived), lambda: self._collect(after, ARRIVED)))

    def rollback(self) -> None:
        self.state = self._saved
        self.schema.restore(dict(self.state.schema), {})

    # -- what the driver knows ---------------------------------------------------------------------------------------

    def _learn_schema(self) -> None:
        """Bring the driver's schema up to date: with what is inserted, and with what the shards have derived."""
        self.schema.begin()
        keys = self.state.placement.replicated | {self.plan.type_id}
        if self._restart:
            shared = self._gather(self.state, EXPLICIT, keys)
        elif self._scattered:
            shared = self._gather(self.state, ALL, keys)
        else:
            shared = self._read(self.state, ALL, next(iter(self.state.answers), 0), keys)
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

    # -- supersteps --------------------------------------------------------------------------------------------------

    def _parcels(self, runs: Mapping[Key, Run], kind: Kind) -> list[Letter]:
        """Facts cut by home; at its owner a fact is of this kind, elsewhere a copy."""
        arrays, placement = self.schema.arrays, self.state.placement
        letters = []
        for key, run in runs.items():
            owner = placement.owner(arrays, run.arity, run.words)
            for shard, mask in enumerate(placement.homes(arrays, key, run.arity, run.words)):
                mine = owner == U64(shard)
                for chosen, what in ((mine, kind), (mask & ~mine, Kind.DERIVED)):
                    if bool(chosen.any()):
                        words = tuple(w[chosen] for w in run.words)
                        letters.append(mail.letter(self.labels[shard], what, key, run.arity, words))
        return letters

    def _frame(self, letters: Sequence[Letter]) -> Any:
        """Letters as a frame, in parcels that a task can carry."""
        frames: list[Any] = []
        part: list[Letter] = []
        for number, one in enumerate(letters):
            part.append(one)
            if number == len(letters) - 1 or sum(len(p.words) for p in part) > PARCEL_BYTES:
                frames.append(self.spark.createDataFrame(mail.to_table(part)))
                part = []
        return reduce(lambda a, b: a.union(b), frames)

    def _run(self, job: Job, letters: list[Letter], more: FactFiles | None) -> Closed:
        """Supersteps until there is no mail.

        Spark repeats tasks that fail, but the mail of an executor that is lost is lost with it. The state before is still
        there, in files and in `job`: everything is done again from it.
        """
        before = self.state
        for attempt in range(ATTEMPTS):
            try:
                return self._supersteps(job, letters, more)
            except FAILURES as error:
                self.state = before
                if attempt == ATTEMPTS - 1 or not lost(error):
                    raise failure(error) from error
        raise AssertionError("unreachable")

    def _supersteps(self, job: Job, letters: list[Letter], more: FactFiles | None) -> Closed:
        called = {one.shard for one in letters}
        if job.full or job.forget or job.reopen or job.resend or job.begin:
            letters = letters + [Letter(n, Kind.CALL, "", 0, b"") for n in self.labels if n not in called]
        rounds = derivations = 0
        inbox = self._frame(letters) if letters else None
        if more is not None:
            scattered = more.letters(self.spark, job.placement, self.labels)
            inbox = scattered if inbox is None else inbox.union(scattered)
        while inbox is not None:
            answers, inbox = self._superstep(job, inbox)
            rounds += max(a["rounds"] for a in answers.values())
            derivations += sum(a["derivations"] for a in answers.values())
            self.state = replace(self.state, answers={**self.state.answers, **answers})
            job = replace(job, answers=dict(self.state.answers), full=False, reopen=False, forget=False, resend=(), begin=False)
            self._said += answers.values()
        return Closed(rounds, derivations)

    def _superstep(self, job: Job, inbox: Any) -> tuple[dict[int, dict[str, Any]], Any | None]:
        """One job: the shards with mail do their part; returns their answers and the mail they leave, if any."""
        out = inbox.repartition(self.shards, "shard").groupBy("shard").applyInArrow(superstep(job), DDL)
        out = out.localCheckpoint(eager=False)
        rows = out.where(f"kind = '{Kind.ANSWER}'").select("words").collect()
        self.jobs += 1
        answers = {(answer := json.loads(bytes(row["words"])))["shard"]: answer for row in rows}
        more = any(answer["to"] for answer in answers.values())
        return answers, out.where(f"kind <> '{Kind.ANSWER}'") if more else None

    def _sweep(self, before: State, after: State) -> None:
        """Delete the files that neither this state nor the last one needs."""
        needed = before.files | after.files
        for path in self.folder.iterdir():
            if path.name not in needed and path.is_file():
                path.unlink()

    # -- reading -----------------------------------------------------------------------------------------------------

    def counts(self, which: Which) -> Counts:
        total, explicit = self.state.total(ALL), self.state.total(EXPLICIT)
        if which == Which.EXPLICIT:
            return by_name(explicit)
        return by_name(total if which == Which.ALL else {k: n - explicit.get(k, 0) for k, n in total.items()})

    def rows(self, relation: str, which: Which) -> Sequence[Ids] | None:
        keys = {k for k in self.state.total(ALL) if relation == (TRIPLE if isinstance(k, int) else k)}
        if not keys:
            return None
        found = self._gather(self.state, EXPLICIT if which == Which.EXPLICIT else ALL, keys)
        if which == Which.DERIVED:
            explicit = self._gather(self.state, EXPLICIT, keys)
            found = {k: _less(run, explicit.get(k)) for k, run in found.items()}
        return together(_columns(found)).get(relation)

    def contains(self, relation: str, row: Sequence[int]) -> bool:
        key: Key = relation
        if relation == TRIPLE:
            subject, key, value = row
            row = (subject, value)
        words = self.schema.arrays.pack([U64(v) for v in row], 1)
        owner = int(self.state.placement.owner(self.schema.arrays, len(row), words)[0])
        found = self._read(self.state, ALL, owner, [key]).get(key)
        return found is not None and bool(found.contains(words)[0])

    def relations(self, which: Which) -> Mapping[Key, Relation]:
        return Gathered(self, self.state, EXPLICIT if which == Which.EXPLICIT else ALL)

    def _read(self, state: State, role: str, shard: int, keys: Iterable[Key]) -> dict[Key, Run]:
        """Relations as they stand at a shard."""
        wanted = set(keys)
        manifest = [files.Stored(*s) for s in state.answers.get(shard, {}).get("manifest", ())]
        chosen = tuple(s for s in manifest if s.role == role and key_of(s.key) in wanted)
        arrays = self.schema.arrays
        loaded = files.load(arrays, self.folder, chosen, [role])[role]
        return {key: Run(arrays, relation.arity, relation.rows()) for key, relation in loaded.items()}

    def _gather(self, state: State, role: str, keys: Iterable[Key]) -> dict[Key, Run]:
        """All facts of these relations, each from its owner."""
        arrays, placement = self.schema.arrays, state.placement
        parts: dict[tuple[Key, int], list[Words]] = {}
        for shard in state.answers:
            for key, run in self._read(state, role, shard, keys).items():
                mine = placement.owner(arrays, run.arity, run.words) == U64(shard)
                parts.setdefault((key, run.arity), []).append(tuple(w[mine] for w in run.words))
        return {key: Run(arrays, arity, arrays.unique(found)) for (key, arity), found in parts.items()}

    def _compared(self, before: State, after: State) -> Change:
        """The change when facts may have gone: the relations that are not as they were, compared."""
        keys = {key_of(entry[1]) for entry in before.manifest ^ after.manifest if not hidden(key_of(entry[1]))}
        old, new = (self._gather(state, ALL, keys) for state in (before, after))
        was, now = (self._gather(state, EXPLICIT, keys) for state in (before, after))

        def difference(
            some: dict[Key, Run], others: dict[Key, Run], mine: dict[Key, Run], theirs: dict[Key, Run]
        ) -> Difference:
            runs = {k: _less(run, others.get(k)) for k, run in some.items()}
            changed = {k: len(_less(run, theirs.get(k))) for k, run in mine.items()}
            derived = {k: len(_less(run, mine.get(k))) for k, run in runs.items()}
            return Difference(by_name(changed), by_name(derived), lambda: together(_columns(runs)))

        return Change(difference(new, old, now, was), difference(old, new, was, now))

    def _collect(self, state: State, role: str) -> Facts:
        keys = [k for k in state.total(role) if not hidden(k)]
        return together(_columns(self._gather(state, role, keys)))


class Gathered(Mapping[Key, Relation]):
    """The relations of all shards; one is brought to the driver when it is asked for, and kept."""

    def __init__(self, engine: SparkEngine, state: State, role: str) -> None:
        self._engine, self._state, self._role = engine, state, role
        self._keys = {key for key, count in state.total(role).items() if count and not hidden(key)}
        self._found: dict[Key, Relation] = {}

    def __getitem__(self, key: Key) -> Relation:
        if key not in self._keys:
            raise KeyError(key)
        if key not in self._found:
            self._found[key] = Relation(self._engine._gather(self._state, self._role, [key])[key])
        return self._found[key]

    def __iter__(self) -> Iterator[Key]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)


def _without_arrived(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer as it stands when another update begins."""
    manifest = [stored for stored in answer["manifest"] if stored[0] not in (ARRIVED, GONE)]
    return {**answer, "manifest": manifest, ARRIVED: {}, "arrived explicit": {}}


def _compares(components: Iterable[Component]) -> bool:
    """Whether a rule that can fire compares terms."""
    return any(f.operator != HERE for c in components for task in c.tasks for f in task.rule.filters)


def _less(run: Run, other: Run | None) -> Run:
    """The rows of one run that are not in another."""
    return run if other is None else Run(run.arrays, run.arity, Relation(other).new(run.words))


def _columns(runs: Mapping[Key, Run]) -> Iterator[tuple[Key, Sequence[Ids]]]:
    return ((key, [run.column(i) for i in range(run.arity)]) for key, run in runs.items())


def spread(shards: int) -> list[int]:
    """Labels for shards that Spark's hash puts into partitions of their own: label n lands in partition n of `shards`."""
    labels: dict[int, int] = {}
    number = 0
    while len(labels) < shards:
        labels.setdefault(_murmur3(number) % shards, number)
        number += 1
    return [labels[n] for n in range(shards)]


def _murmur3(value: int, seed: int = 42) -> int:
    """Spark's hash of an int, signed."""
    mask = 0xFFFFFFFF

    def rotate(x: int, by: int) -> int:
        return ((x << by) | (x >> (32 - by))) & mask

    k = rotate((value * 0xCC9E2D51) & mask, 15) * 0x1B873593 & mask
    h = (rotate(seed ^ k, 13) * 5 + 0xE6546B64) & mask
    h ^= 4
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        h = ((h ^ (h >> shift)) * factor) & mask
    h ^= h >> 16
    return h - (1 << 32) if h >> 31 else h
