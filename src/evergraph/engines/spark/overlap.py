"""Updates that overlap on Spark: the steps of `engines.overlap` as supersteps of all shards (`overlapping`).

The driver says which step it is and for which epoch, and hears how many facts wait. Facts are placed for all rules, whether
they can fire or not, so that no placement changes while updates overlap.
Cost: three supersteps for a step, and one for an update that joins; those of little mail run in the driver.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import astuple, replace
from typing import TYPE_CHECKING

from evergraph.engines.base import Closed, Facts, Keep, Missed, Waiting
from evergraph.engines.holding import Still
from evergraph.engines.relation import Relation, Run
from evergraph.engines.spark.gather import Gathered, Reader
from evergraph.engines.spark.job import ALL, EXPLICIT, Job, Step
from evergraph.engines.spark.mail import Kind
from evergraph.engines.spark.overlapping import PENDING
from evergraph.engines.spark.placement import extend
from evergraph.plan.model import Key
from evergraph.plan.schedule import Schedule, generic

if TYPE_CHECKING:
    from evergraph.engines.spark.engine import SparkEngine


class ShardsOverlap:
    def __init__(self, engine: SparkEngine, keep: Keep) -> None:
        """Cost: a superstep, if facts get further homes."""
        self.engine, self.counting = engine, keep == Keep.COUNTED
        placement, before = engine.state.placement, engine.state.placement
        for local in engine.local:
            placement = extend(placement, local, Schedule((), frozenset(), settled=False))
        held = engine.state.total(ALL)
        again = tuple(sorted((k for k in held if placement.further(k) != before.further(k)), key=str))
        engine.state = replace(engine.state, placement=placement)
        if again:
            engine._run(replace(engine.job(), resend=again, counting=self.counting), [], None)
        rules = (generic(local.rules) for local in engine.local)
        self.components = tuple(c for n, one in enumerate(rules) for c in engine.to_run(n, (one,)))

    def join(self, epoch: int, insert: Facts, delete: Facts) -> Missed:
        engine = self.engine
        letters = [
            letter
            for facts, kind in ((delete, Kind.RETRACT), (insert, Kind.EXPLICIT))
            for letter in engine.parcels(engine.schema.runs(facts), kind, None)
        ]
        said = len(engine.said)
        engine._run(replace(self._job("join", epoch), begin=False), letters, None)
        found = [answer["missed"] for answer in engine.said[said:]]
        return Missed(sum(m["absent"] for m in found), sum(m["derived"] for m in found))

    def withdraw(self, epoch: int) -> Closed:
        return self._step("withdraw", epoch)

    def rederive(self, epoch: int) -> Closed:
        return self._step("rederive", epoch)

    def activate(self, epoch: int) -> Closed:
        return self._step("activate", epoch)

    def _step(self, wave: str, epoch: int) -> Closed:
        return self.engine._run(self._job(wave, epoch), [], None)

    def _job(self, wave: str, epoch: int) -> Job:
        values = self.engine.compared(self.components)
        job = replace(self.engine.job(), components=self.components, values=values, step=Step.OVERLAP, begin=True)
        return replace(job, counting=self.counting, wave=wave, epoch=epoch)

    def waiting(self) -> dict[int, Waiting]:
        out: dict[int, Waiting] = {}
        for answer in self.engine.state.answers.values():
            for epoch, waiting in answer["waiting"]:
                known = astuple(out[epoch]) if epoch in out else (0,) * len(waiting)
                out[epoch] = Waiting(*(a + b for a, b in zip(known, waiting, strict=True)))
        return out

    def live(self) -> Still:
        """Pending and doubted facts are among them. Cost: what is pending; relations, when they are read."""
        engine = self.engine
        reader = engine.still()
        return Still(_Present(reader), Gathered(reader.gatherer, reader.state, EXPLICIT, reader=reader))


class _Present(Mapping[Key, Relation]):
    """Active facts and pending ones; a relation is brought to the driver when it is read."""

    def __init__(self, reader: Reader) -> None:
        self._active = Gathered(reader.gatherer, reader.state, ALL, reader=reader)
        self._pending: dict[Key, Run] = {}
        roles = {entry[0] for entry in reader.state.manifest if entry[0].startswith(f"{PENDING} ")}
        for role in roles:
            for shard in reader.state.answers:
                for key, run in reader.gatherer.at(reader.state, role, shard).items():
                    self._pending[key] = self._pending[key].merge(run) if key in self._pending else run

    def __getitem__(self, key: Key) -> Relation:
        if key not in self._pending:
            return self._active[key]
        pending = self._pending[key]
        return self._active[key].add(pending) if key in self._active else Relation(pending)

    def __iter__(self) -> Iterator[Key]:
        return iter({**dict.fromkeys(self._active), **dict.fromkeys(self._pending)})

    def __len__(self) -> int:
        return len({*self._active, *self._pending})
