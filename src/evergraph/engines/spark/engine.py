"""The Spark engine: shards in Python workers, supersteps as jobs, the schema in the driver.

The driver keeps what is replicated anyway, the schema, in a shard of its own: it closes it, makes the schedule and derives
the placement from it. Facts are cut into shards as arrays and travel as binary values. A step is a superstep: one Spark
job over the shards that have mail, repeated until there is no mail. The number of jobs is the number of supersteps,
whatever the number of rules.

State is a list of *pieces*: frames that each hold the rows of some shards. A superstep makes a new piece for the shards it
touched and leaves the others alone; taking an update back is going back to the old list.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import numpy as np
from pyspark.sql.functions import col

from evergraph.engines.arrays import U64, Words
from evergraph.engines.base import Change, Closed, Counts, Difference, Facts, Which, by_name, hidden, together
from evergraph.engines.relation import Relation, Run
from evergraph.engines.shard import Scheduler, Shard
from evergraph.engines.spark.placement import Placement, extend, place
from evergraph.engines.spark.rows import DDL, Kind, Row, key_of, name_of, read_rows, to_table, words_row
from evergraph.engines.spark.superstep import Job, superstep
from evergraph.plan.compile import Plan
from evergraph.plan.locality import localise
from evergraph.plan.model import Key
from evergraph.plan.schedule import data_schedule
from evergraph.rules.model import TRIPLE
from evergraph.terms import Ids

PIECES = 12
"""More pieces than this are joined into one."""
PARCEL_BYTES = 32 << 20
"""The driver hands facts to Spark in frames of about this size."""


@dataclass(frozen=True, slots=True)
class State:
    """Everything an update may change; taking it back is putting an old one in place."""

    placement: Placement
    pieces: tuple[tuple[Any, frozenset[int]], ...] = ()
    stats: Mapping[int, dict[str, Any]] = field(default_factory=dict)
    schema: Mapping[Key, Relation] = field(default_factory=dict)

    def total(self, what: str) -> dict[Key, int]:
        """Counts of owned facts by key over all shards."""
        out: dict[Key, int] = {}
        for stats in self.stats.values():
            for name, count in stats[what].items():
                out[key_of(name)] = out.get(key_of(name), 0) + count
        return out


class SparkEngine:
    name = "spark"

    def __init__(self, plan: Plan, session: Any, shards: int | None = None) -> None:
        self.spark = session
        self.shards = shards or max(2, int(session.sparkContext.defaultParallelism))
        self.labels = spread(self.shards)
        self.local = [localise(rules, f"cut{n}.") for n, rules in enumerate(plan.strata)]
        self.plan = replace(plan, strata=tuple(local.rules for local in self.local))
        self.schema = Shard(self.plan)
        self.state = self._saved = State(place(self.shards, plan.type_id, self.local))
        self.jobs = 0
        self.updates = 0
        self._staged: dict[Key, Run] = {}
        self._delivered = self._first = self._recomputed = self._restart = False

    # -- updates -----------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        self.updates += 1
        quiet = {n: {**s, "arrived": {}, "arrived explicit": {}} for n, s in self.state.stats.items()}
        self.state = self._saved = replace(self.state, stats=quiet)
        self._staged = {}
        self._delivered = self._recomputed = self._restart = False
        self._first = not self.state.pieces

    def insert(self, facts: Facts) -> bool:
        there = sum(self.state.total("all").values())
        parameters = {
            name: [np.array(column, np.uint64) for column in zip(*rows, strict=True)]
            for name, rows in self.plan.parameters.items()
        }
        self._staged = self.schema.runs({**facts, **parameters} if self._first else facts)
        return sum(map(len, self._staged.values())) > there

    def close(self, stratum: int, full: bool) -> Closed:
        local, scheduler = self.local[stratum], self.schema.schedulers[stratum]
        self._learn_schema()
        self.schema.fixpoint.close(scheduler.schema, True)
        schedule = data_schedule(local.rules, self._live(), self._classes(scheduler), scheduler.rows)
        placement = extend(self.state.placement, local, schedule)
        again = [k for k in self.state.total("all") if placement.further(k) != self.state.placement.further(k)]
        self.state = replace(self.state, placement=placement, schema=dict(self.schema.relations))
        job = Job(
            placement=placement,
            labels=tuple(self.labels),
            update=self.updates,
            named=local.rules.classes,
            components=schedule.components,
            values=self.plan.values if any(r.filters for r in local.rules.rules) else None,
            full=full,
            reopen=stratum > 0 and not full,
            keep_arrived=not (self._first or self._recomputed),
            forget=self._restart,
            resend=tuple(again),
        )
        mail = self._parcels(self.schema.fixpoint.arrived, Kind.MAIL)
        if not self._delivered:
            mail += self._parcels(self._staged, Kind.EXPLICIT_MAIL)
        self._delivered, self._restart = True, False
        return self._run(job, mail)

    def arrived(self) -> frozenset[Key]:
        if not self._delivered:
            return frozenset(self._staged)
        return frozenset(key for key, count in self.state.total("arrived").items() if count)

    def forget_derived(self) -> None:
        self._recomputed = self._restart = True
        self.schema.relations = {}
        self.schema.begin()

    def commit(self) -> Change:
        before, after = self._saved, self.state
        had = before.total("explicit")
        explicit = {k: n - had.get(k, 0) for k, n in after.total("explicit").items()}
        if self._recomputed:
            return self._compared(before, after, explicit)
        if self._first:
            now = after.total("explicit")
            derived = {k: n - now.get(k, 0) for k, n in after.total("all").items()}
            return Change(Difference(by_name(explicit), by_name(derived), lambda: self._collect(after, Kind.RELATION)))
        known = after.total("arrived explicit")
        derived = {k: n - known.get(k, 0) for k, n in after.total("arrived").items()}
        return Change(Difference(by_name(explicit), by_name(derived), lambda: self._collect(after, Kind.ARRIVED)))

    def rollback(self) -> None:
        self.state = self._saved
        self.schema.relations = dict(self.state.schema)
        self.schema.begin()

    # -- what the driver knows ---------------------------------------------------------------------------------------

    def _learn_schema(self) -> None:
        """Bring the driver's schema up to date: with what is inserted, and with what the shards have derived."""
        self.schema.begin()
        if self.state.pieces and not self._restart:
            keys = self.state.placement.replicated | {self.plan.type_id}
            shared = self._read(self.state, [Kind.RELATION], keys, self.state.pieces[0][1])
            self.schema.fixpoint.insert({key: self._common(key, run) for _, key, run in shared})
        self.schema.fixpoint.insert({key: self._common(key, run) for key, run in self._staged.items()})

    def _common(self, key: Key, run: Run) -> Run:
        """The rows that every shard holds."""
        mask = self.state.placement.common(self.schema.arrays, key, run.words)
        if isinstance(mask, bool):
            return run if mask else Run(run.arrays, run.arity, run.arrays.empty(run.arity))
        return Run(run.arrays, run.arity, tuple(w[mask] for w in run.words))

    def _live(self) -> dict[Key, int]:
        facts = {} if self._restart else self.state.total("all")
        for source in (self.schema.relations, self._staged, self.state.total("explicit")):
            for key, rows in source.items():
                facts[key] = facts.get(key, 0) + (rows if isinstance(rows, int) else len(rows))
        return facts

    def _classes(self, scheduler: Scheduler) -> frozenset[int]:
        """Named classes that have instances, somewhere."""
        found = set(scheduler.classes())
        for stats in self.state.stats.values():
            found.update(stats["classes"])
        if self.plan.type_id in self._staged:
            found.update(scheduler.named_classes(self._staged[self.plan.type_id]))
        return frozenset(found & scheduler.rules.classes)

    # -- supersteps --------------------------------------------------------------------------------------------------

    def _parcels(self, runs: Mapping[Key, Run], kind: Kind) -> list[Row]:
        """Facts cut by home; at its owner a fact is of this kind, elsewhere it is mail."""
        arrays, placement = self.schema.arrays, self.state.placement
        rows = []
        for key, run in runs.items():
            owner = placement.owner(arrays, run.arity, run.words)
            for shard, mask in enumerate(placement.homes(arrays, key, run.arity, run.words)):
                mine = owner == U64(shard)
                for chosen, what in ((mine, kind), (mask & ~mine, Kind.MAIL)):
                    if bool(chosen.any()):
                        words = tuple(w[chosen] for w in run.words)
                        rows.append(words_row(self.labels[shard], what, key, run.arity, words))
        return rows

    def _frame(self, rows: Sequence[Row]) -> Any:
        """Rows as a frame, in parcels that a task can carry."""
        frames, part, size = [], [], 0
        for row in rows:
            part.append(row)
            size += len(row.words)
            if size > PARCEL_BYTES:
                frames.append(self.spark.createDataFrame(to_table(part)))
                part, size = [], 0
        if part or not frames:
            frames.append(self.spark.createDataFrame(to_table(part)) if part else self.spark.createDataFrame([], DDL))
        return reduce(lambda a, b: a.union(b), frames)

    def _run(self, job: Job, rows: list[Row]) -> Closed:
        """Supersteps until there is no mail."""
        everyone = frozenset(range(self.shards))
        mail = self._frame(rows)
        touched = frozenset(self.labels.index(row.shard) for row in rows)
        if job.full or job.forget or job.reopen or job.resend:
            touched = everyone
        rounds = derivations = 0
        while touched:
            found = self._superstep(job, touched, mail)
            rounds += max(s["rounds"] for s in found.values())
            derivations += sum(s["derivations"] for s in found.values())
            touched = frozenset(int(shard) for s in found.values() for shard in s["to"])
            mail = self.state.pieces[-1][0].where(f"kind = '{Kind.MAIL}'")
            job = replace(job, full=False, reopen=False, forget=False, resend=())
        return Closed(rounds, derivations)

    def _superstep(self, job: Job, touched: frozenset[int], mail: Any) -> dict[int, dict[str, Any]]:
        """One job: the touched shards, with their mail, become a new piece."""
        state = self._select(self.state, touched, [Kind.RELATION, Kind.EXPLICIT, Kind.ARRIVED])
        sides = [frame.repartition(self.shards, "shard").groupBy("shard") for frame in (state, mail)]
        piece = sides[0].cogroup(sides[1]).applyInArrow(superstep(job), DDL).localCheckpoint(eager=False)
        answers = piece.where(f"kind = '{Kind.STATS}'").select("words").collect()
        self.jobs += 1
        found = {(stats := json.loads(bytes(row["words"])))["shard"]: stats for row in answers}
        rest = [(frame, shards - touched) for frame, shards in self.state.pieces if shards - touched]
        pieces = (*rest, (piece, frozenset(found)))
        if len(pieces) > PIECES:
            pieces = (self._join(pieces), (piece, frozenset(found)))
        self.state = replace(self.state, pieces=pieces, stats={**self.state.stats, **found})
        return found

    def _join(self, pieces: Sequence[tuple[Any, frozenset[int]]]) -> tuple[Any, frozenset[int]]:
        """All pieces but the last in one frame."""
        shards = frozenset().union(*(s for _, s in pieces[:-1]))
        kinds = [Kind.RELATION, Kind.EXPLICIT, Kind.ARRIVED]
        state = self._select(replace(self.state, pieces=tuple(pieces[:-1])), shards, kinds)
        return state.repartition(self.shards, "shard").localCheckpoint(), shards

    def _select(self, state: State, shards: Iterable[int], kinds: Sequence[Kind]) -> Any:
        """The rows of these shards, from the pieces that hold them."""
        chosen = frozenset(shards)
        frames = [
            frame.where(col("shard").isin([self.labels[n] for n in sorted(held & chosen)]))
            for frame, held in state.pieces
            if held & chosen
        ]
        if not frames:
            return self.spark.createDataFrame([], DDL)
        return reduce(lambda a, b: a.union(b), frames).where(col("kind").isin([str(k) for k in kinds]))

    # -- reading -----------------------------------------------------------------------------------------------------

    def counts(self, which: Which) -> Counts:
        total, explicit = self.state.total("all"), self.state.total("explicit")
        if which == Which.EXPLICIT:
            return by_name(explicit)
        return by_name(total if which == Which.ALL else {k: n - explicit.get(k, 0) for k, n in total.items()})

    def rows(self, relation: str, which: Which) -> Sequence[Ids] | None:
        kind = Kind.EXPLICIT if which == Which.EXPLICIT else Kind.RELATION
        keys = {k for k in self.state.total("all") if relation == (TRIPLE if isinstance(k, int) else k)}
        if not keys:
            return None
        found = self._gather(self.state, kind, keys)
        if which == Which.DERIVED:
            explicit = self._gather(self.state, Kind.EXPLICIT, keys)
            found = {k: _less(run, explicit.get(k)) for k, run in found.items()}
        return together(_columns(found)).get(relation)

    def contains(self, relation: str, row: Sequence[int]) -> bool:
        key: Key = relation
        if relation == TRIPLE:
            subject, key, value = row
            row = (subject, value)
        words = self.schema.arrays.pack([U64(v) for v in row], 1)
        owner = int(self.state.placement.owner(self.schema.arrays, len(row), words)[0])
        found = self._read(self.state, [Kind.RELATION], {key}, [owner])
        return any(bool(run.contains(words)[0]) for _, _, run in found)

    def _read(
        self, state: State, kinds: Sequence[Kind], keys: Iterable[Key], shards: Iterable[int]
    ) -> list[tuple[int, Key, Run]]:
        """Relations as they stand at shards: (shard, key, run). Runs beside the base come as runs of their own."""
        frame = self._select(state, shards, kinds)
        frame = frame.where(
            col("key").isin([name_of(k) for k in keys]) & (col("columns").isin("", "0", "0,1") | (col("arity") > 2))
        )
        arrays = self.schema.arrays
        out = []
        for row, words in read_rows(frame.toArrow()):
            if row.columns == ",".join(map(str, range(row.arity))):
                out.append((self.labels.index(row.shard), key_of(row.key), Run(arrays, row.arity, words)))
        return out

    def _gather(self, state: State, kind: Kind, keys: Iterable[Key]) -> dict[Key, Run]:
        """All facts of these relations, each from its owner."""
        arrays, placement = self.schema.arrays, state.placement
        parts: dict[Key, list[Words]] = {}
        arities: dict[Key, int] = {}
        for shard, key, run in self._read(state, [kind], keys, range(self.shards)):
            mine = placement.owner(arrays, run.arity, run.words) == U64(shard)
            parts.setdefault(key, []).append(tuple(w[mine] for w in run.words))
            arities[key] = run.arity
        return {key: Run(arrays, arities[key], arrays.unique(found)) for key, found in parts.items()}

    def _compared(self, before: State, after: State, explicit: Mapping[Key, int]) -> Change:
        """The change after a recomputation: all facts of both states, compared."""
        keys = before.total("all").keys() | after.total("all").keys()
        old, new = (self._gather(state, Kind.RELATION, keys) for state in (before, after))
        was, now = (self._gather(state, Kind.EXPLICIT, keys) for state in (before, after))
        came = {k: _less(run, old.get(k)) for k, run in new.items() if not hidden(k)}
        went = {k: _less(run, new.get(k)) for k, run in old.items() if not hidden(k)}
        return Change(
            Difference(
                by_name(explicit),
                by_name({k: len(_less(run, now.get(k))) for k, run in came.items()}),
                lambda: together(_columns(came)),
            ),
            Difference(
                {},
                by_name({k: len(_less(run, was.get(k))) for k, run in went.items()}),
                lambda: together(_columns(went)),
            ),
        )

    def _collect(self, state: State, kind: Kind) -> Facts:
        keys = [k for k in state.total("arrived" if kind == Kind.ARRIVED else "all") if not hidden(k)]
        return together(_columns(self._gather(state, kind, keys)))


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
