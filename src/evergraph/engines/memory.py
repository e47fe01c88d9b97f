"""The memory engine: one shard, in process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from evergraph.engines.arrays import Arrays
from evergraph.engines.base import STEP, Change, Closed, Difference, Facts, Keep, Missed, Which, by_name, columns_of
from evergraph.engines.changes import Changed, Held, changes
from evergraph.engines.holding import Holding, Still
from evergraph.engines.marks import Counted, Marks
from evergraph.engines.overlap.counted import CountedOverlap
from evergraph.engines.overlap.local import CHUNK, PROOFS, LocalOverlap
from evergraph.engines.overlap.proved import ProvedOverlap
from evergraph.engines.overlap.steps import Overlap
from evergraph.engines.relation import Relation, Run, alike, how_many
from evergraph.engines.shard import Shard
from evergraph.engines.state import State
from evergraph.engines.tally import tally
from evergraph.engines.upkeep import Upkeep
from evergraph.engines.waves import Waves
from evergraph.engines.weigh import weigh
from evergraph.plan.compile import Plan, same_instances
from evergraph.plan.model import Key
from evergraph.plan.shapes import hidden


class MemoryEngine(Holding):
    """Relations as NumPy arrays. A snapshot is two dictionaries of references, so taking a step back costs nothing."""

    name = "memory"
    rewrites = False
    overlaps = frozenset(Keep)

    def __init__(self, plan: Plan, xp: Any = np) -> None:
        self.shard = Shard(plan, xp)
        self._saved: tuple[dict[Key, Relation], dict[Key, Relation]] = ({}, {})
        """Facts as the update found them, with parameter relations and helpers as the plan in force has them."""
        self._saved_marks: dict[Key, Marks] | None = None
        self._before = (plan, self._saved)
        self._closed = False
        """Whether the rules have been run at all."""
        self._recomputed = False
        self._given: dict[Key, int] = {}
        self._ceased: dict[Key, Run] = {}
        """Facts that have ceased to be explicit in this update."""
        self._may_come = False
        """Whether facts have been given in this update, or consequences put in place."""
        self._told: set[Key] = set()
        """Relations of which facts have become explicit in this update, or ceased to be, or have been derived by closing."""
        self._upkeep: Upkeep | Waves | LocalOverlap | None = None
        self._missed = Missed()
        self.shard.insert(self.shard.runs(plan.parameter_facts))

    def fresh(self, plan: Plan) -> MemoryEngine:
        return MemoryEngine(plan, self.shard.arrays.xp)

    def fork(self, plan: Plan) -> MemoryEngine:
        """Another engine that goes on from the facts of this one. Cost: the number of relations; what they hold is shared."""
        out = self.fresh(plan)
        out.shard.restore(plan, dict(self.shard.relations), dict(self.shard.explicit), self.shard.marks)
        out._closed = self._closed
        return out

    @property
    def arrays(self) -> Arrays:
        return self.shard.arrays

    def state(self) -> State:
        """All that is held, between updates. Cost: the number of relations."""
        shard = self.shard
        held = Held(dict(shard.relations), dict(shard.explicit))
        return State(shard.arrays, shard.plan, held, shard.marks, self._closed)

    def resume(self, state: State) -> None:
        """Hold that, and nothing else. Cost: the relations; where the schema is another, linear in that."""
        shard, schedulers = self.shard, self.shard.schedulers
        marks = dict(state.marks) if state.marks is not None else None
        same = state.plan is shard.plan
        shard.restore(state.plan, dict(state.facts.all), dict(state.facts.explicit), marks)
        shard.schedulers = schedulers if same else shard.schedulers
        self._closed = state.closed
        if state.closed:
            for scheduler in shard.schedulers:
                scheduler.schedule({}, True)

    # -- updates -----------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        self._saved = (dict(self.shard.relations), dict(self.shard.explicit))
        self._before = (self.shard.plan, self._saved)
        self._saved_marks = self.shard.marks
        self._recomputed = self._may_come = False
        self._given, self._ceased = {}, {}
        self._upkeep, self._missed = None, Missed()
        self._told = set()
        self.shard.begin()

    def step(self, expected: int) -> int:
        return STEP

    def place(self, expected: int | None) -> str:
        return ""

    def adopt(self, plan: Plan) -> None:
        """Cost: the compiled rules, the rows of new parameter relations, and the instances of new helper relations."""
        shard = self.shard
        if plan.strata is shard.plan.strata:
            shard.plan = plan
            return
        held = {key for key in shard.plan.mentioned if len(shard.relations.get(key, ()))}
        if not same_instances(shard.plan, plan, held):
            shard.marks = None
        if self._saved is self._before[1]:
            self._saved = (dict(self._saved[0]), dict(self._saved[1]))
        for key in shard.adopt(plan):
            for saved, now in zip(self._saved, (shard.relations, shard.explicit), strict=True):
                if key in now:
                    saved[key] = now[key]
                else:
                    saved.pop(key, None)

    def weigh(self, rows: Facts) -> int | None:
        shard = self.shard
        rules = (rule for stratum in shard.plan.strata for rule in stratum.rules)
        return weigh(shard.arrays, rules, rows, shard.relations)

    def insert(self, facts: Facts) -> bool:
        there = sum(len(r) for key, r in self.shard.relations.items() if not hidden(key))
        runs = self.shard.runs(facts)
        self._told |= runs.keys()
        self._may_come |= bool(runs)
        self._given = self.shard.insert(runs)
        if isinstance(self._upkeep, Upkeep | Waves):
            self._upkeep.touched |= self._given.keys()
        else:
            self.shard.marks = None
        return not self._closed or sum(self._given.values()) > there

    def retract(self, facts: Facts, counting: bool = False) -> None:
        shard = self.shard
        if counting and shard.marks is not None:
            shard.marks = dict(shard.marks)
            self._upkeep = Waves(shard, self._saved[0], shard.marks)
        else:
            shard.marks = None
            self._upkeep = Upkeep(shard, self._saved[0])
        runs = shard.runs(facts)
        self._told |= runs.keys()
        self._upkeep.doubtful = doubtful = self._ceased = shard.retract(runs)
        missed = {k: run.without(doubtful.get(k)) for k, run in runs.items() if len(run) > len(doubtful.get(k, ()))}
        asked = [(shard.relations[key], run.words) for key, run in missed.items() if key in shard.relations]
        there = sum(how_many(shard.arrays, asked))
        self._missed = Missed(sum(map(len, missed.values())) - there, there)

    def missed(self) -> Missed:
        return self._missed

    def overlap(self, keep: Keep) -> LocalOverlap:
        shard = self.shard
        shard.able()
        facts: Overlap[Any] = CountedOverlap(shard) if keep == Keep.COUNTED else ProvedOverlap(shard, keep == Keep.PROVED)
        self._upkeep = LocalOverlap(shard, facts, CHUNK * PROOFS if keep == Keep.PROVED else CHUNK)
        return self._upkeep

    def retreat(self, stratum: int, keep: Keep) -> Closed:
        return self._counted(lambda upkeep: upkeep.retreat(stratum, keep))

    def advance(self, stratum: int) -> Closed:
        return self._counted(lambda upkeep: upkeep.advance(stratum))

    def _counted(self, step: Callable[[Upkeep | Waves], None]) -> Closed:
        """What a step of the upkeep did."""
        assert isinstance(self._upkeep, Upkeep | Waves)
        kernel, rounds = self.shard.kernel, self._upkeep.rounds
        derivations, examined = kernel.derivations, kernel.examined
        step(self._upkeep)
        return Closed(self._upkeep.rounds - rounds, kernel.derivations - derivations, kernel.examined - examined)

    def replace(self, plus: Facts, minus: Facts) -> None:
        shard = self.shard
        self._recomputed = self._may_come = True
        for key, run in shard.runs(minus).items():
            shard.relations[key] = shard.relations[key].remove(run.within(shard.relations[key]))
        shard.fixpoint.insert(shard.runs(plus))
        for key in [k for k in shard.relations if hidden(k) and k not in shard.explicit]:
            del shard.relations[key]
        shard.begin()
        shard.derive_hidden()

    def close(self, stratum: int, full: bool) -> Closed:
        closed = self.shard.close(stratum, full)
        self._told |= self.shard.fixpoint.arrived.keys()
        return closed

    def forget_derived(self, counting: bool = False) -> None:
        self._recomputed = True
        self.shard.forget_derived()
        if counting:
            self.shard.fixpoint.trace = []

    @property
    def counted(self) -> bool:
        return self.shard.marks is not None

    @property
    def counted_by(self) -> str:
        return self.shard.plan.fingerprint if self.counted else ""

    def count(self) -> int:
        shard, trace = self.shard, self.shard.fixpoint.trace
        assert trace is not None
        before = shard.kernel.derivations
        rules = (rule for stratum in shard.plan.strata for rule in stratum.rules)
        shard.marks = tally(shard.kernel, rules, shard.relations, trace)
        return shard.kernel.derivations - before

    def commit(self) -> Change:
        """The net change against the state at `begin`. Cost: what arrived; after a recomputation, what it made anew."""
        before, explicit = self._saved
        shard = self.shard
        self._closed = True
        if not self._recomputed and self._upkeep is None:
            added = {k: len(r) - len(explicit.get(k, ())) for k, r in shard.explicit.items() if not hidden(k)}
            return Change(self._arrivals(before, added))
        upkeep, self._upkeep = self._upkeep, None
        if self._only_less(upkeep):
            if isinstance(upkeep, Waves):
                upkeep.settle()
            return Change(deleted=self._departures(before, explicit))
        if isinstance(upkeep, LocalOverlap):
            came, went, became, ceased = upkeep.changes()
        else:
            touched = None if self._recomputed or upkeep is None else upkeep.touched | self._told
            came, went = self._differences(before, shard.relations, touched)
            became, ceased = self._differences(explicit, shard.explicit, touched)
        if isinstance(upkeep, Waves | LocalOverlap):
            upkeep.settle()
        return Change(self._difference(became, came, shard.explicit), self._difference(ceased, went, explicit))

    def _only_less(self, upkeep: Upkeep | Waves | LocalOverlap | None) -> bool:
        """Whether nothing can have come: facts were taken away and none given, and rules do not negate."""
        if not self._ceased or self._may_come or isinstance(upkeep, LocalOverlap):
            return False
        return not any(rule.negated for rules in self.shard.plan.strata for rule in rules.rules)

    def _departures(self, before: dict[Key, Relation], explicit: dict[Key, Relation]) -> Difference:
        """The change when nothing came: as many facts went as there are less. Cost: a search for each that was taken away."""
        arrays, now, given = self.arrays, dict(self.shard.relations), self.shard.explicit
        keys = [key for key, relation in before.items() if not (hidden(key) or alike(relation, now.get(key)))]
        runs = {key: run for key, run in self._ceased.items() if not hidden(key)}
        ceased = {key: len(run) for key, run in runs.items()}
        stay = {key: (now[key], run.words) for key, run in runs.items() if key in now}
        still = dict(zip(stay, how_many(arrays, list(stay.values())), strict=True))
        went = {key: len(before[key]) - len(now.get(key, ())) for key in keys}
        derived = {key: went.get(key, 0) - ceased.get(key, 0) + still.get(key, 0) for key in went.keys() | ceased.keys()}
        less = {key: len(explicit[key]) - len(given.get(key, ())) for key in ceased}

        def rows() -> Facts:
            gone = {key: self._less(before[key], now.get(key)) for key in keys}
            return columns_of({key: run for key, run in gone.items() if len(run)})

        return Difference(by_name(less), by_name(derived), rows)

    def _difference(self, changed: dict[Key, Run], runs: dict[Key, Run], explicit: dict[Key, Relation]) -> Difference:
        """Facts that came or went, and among all facts those that became or ceased to be explicit."""
        counted = by_name({key: len(run) for key, run in changed.items()})
        return Difference(counted, by_name(self._not_explicit(runs, explicit)), lambda: columns_of(runs))

    def _differences(
        self, old: dict[Key, Relation], new: dict[Key, Relation], touched: set[Key] | None
    ) -> tuple[dict[Key, Run], dict[Key, Run]]:
        """What came and what went, by relation, of those touched or of all. Cost: the change, where relations share a base."""
        chosen = old.keys() | new.keys() if touched is None else touched & (old.keys() | new.keys())
        keys = [k for k in chosen if not (alike(old.get(k), new.get(k)) or hidden(k))]
        came = {k: self._less(new[k], old.get(k)) for k in keys if k in new}
        went = {k: self._less(old[k], new.get(k)) for k in keys if k in old}
        return {k: run for k, run in came.items() if len(run)}, {k: run for k, run in went.items() if len(run)}

    def _arrivals(self, before: dict[Key, Relation], added: dict[Key, int]) -> Difference:
        """The change when nothing went: what arrived, and of it what was not given. Cost: the number of relations."""
        arrived, given = self.shard.fixpoint.arrived, self._given
        derived = {
            key: len(self.shard.relations[key]) - len(before.get(key, ())) - given.get(key, 0)
            for key in arrived
            if not hidden(key)
        }
        return Difference(
            by_name(added), by_name(derived), lambda: columns_of({k: run for k, run in arrived.items() if not hidden(k)})
        )

    def changes(self) -> Iterator[Changed]:
        return changes(Held(*self._saved), Held(self.shard.relations, self.shard.explicit))

    def count_changes(self) -> tuple[bool, list[Counted]]:
        now, saved = self.shard.marks, self._saved_marks
        if now is None:
            return False, []
        if self._recomputed or saved is None:
            return True, self.all_counts()
        arrays, relations = self.shard.arrays, self.shard.relations
        changed = [key for key in now.keys() & relations.keys() if now[key] is not saved.get(key)]
        return False, [
            *(now[key].less(arrays, saved.get(key), key, relations[key]) for key in changed),
            *(marks.unmarked(arrays, key, self._saved[0].get(key), relations.get(key)) for key, marks in saved.items()),
        ]

    def all_counts(self) -> list[Counted]:
        marks, relations = self.shard.marks or {}, self.shard.relations
        return [m.less(self.shard.arrays, None, key, relations[key]) for key, m in marks.items() if key in relations]

    def load(self, facts: Held, counts: Mapping[Key, Counted] | None = None) -> None:
        shard = self.shard
        shard.relations.update(facts.all)
        shard.explicit.update(facts.explicit)
        if counts is not None:
            empty = {key: shard.arrays.empty(one.arity) for key, one in counts.items()}
            shard.marks = {k: Marks(one.words, one.values, empty[k], empty[k][0]) for k, one in counts.items()}
            for key in shard.marks.keys() & shard.relations.keys():
                shard.marks[key] = shard.marks[key].settle(shard.arrays, shard.relations[key])
        self._closed = True

    def prepare(self, builtins: Facts) -> None:
        self.shard.insert(self.shard.runs(builtins))
        self.shard.begin()
        self.shard.derive_hidden()

    def rollback(self) -> None:
        plan, saved = self._before
        self.shard.restore(plan, *saved, self._saved_marks)

    def _less(self, a: Relation, b: Relation | None) -> Run:
        """The rows of one relation that are not in another."""
        return Run(self.shard.arrays, a.arity, a.less(b))

    def _not_explicit(self, runs: dict[Key, Run], explicit: dict[Key, Relation]) -> dict[Key, int]:
        given = {key: (explicit[key], run.words) for key, run in runs.items() if key in explicit}
        found = dict(zip(given, how_many(self.arrays, list(given.values())), strict=True))
        return {key: len(run) - found.get(key, 0) for key, run in runs.items()}

    # -- reading -----------------------------------------------------------------------------------------------------

    def still(self) -> Still:
        return Still(dict(self.shard.relations), dict(self.shard.explicit))

    def facts(self, which: Which) -> dict[Key, Relation]:
        return self.shard.explicit if which == Which.EXPLICIT else self.shard.relations
