"""One shard: explicit facts and their materialisation as sorted relations, and the closing of both.

The memory engine is one of these; the Spark engine has many, in its workers. Triples are split by predicate here and
nowhere else. Schedules are kept between updates and made anew when the schema changed or a relation came to life.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from evergraph.engines.arrays import U64, Array, Arrays, Words
from evergraph.engines.base import Closed, Facts
from evergraph.engines.fixpoint import Deltas, Fixpoint, Sieve
from evergraph.engines.kernel import Kernel
from evergraph.engines.marks import Marks
from evergraph.engines.near import Near
from evergraph.engines.relation import Relation, Run, how_many, run_of
from evergraph.plan.compile import Plan, helpers_of
from evergraph.plan.equality import compares
from evergraph.plan.model import Key, PlanAtom, is_variable
from evergraph.plan.schedule import (
    Component,
    Schedule,
    data_schedule,
    generic,
    hidden_part,
    one_loop,
    one_round,
    schema_schedule,
)
from evergraph.plan.schema import Rules
from evergraph.rules.model import TRIPLE

FEW = 1 << 13
"""Up to so many facts that come or go are followed by all rules in one loop: few rounds, each of little work. More go through
components one after the other, so that each relation is settled once."""
FEW_ROWS, FEW_RULES = 1 << 12, 32
"""Up to so many rows of guards make a schedule in some milliseconds; up to so many rules need none for a small change."""
_MIX = U64(0x9E3779B97F4A7C15)


def shard_of(ids: Array, shards: int) -> Array:
    """Which of so many shards each id belongs to: a fact belongs to the shard of its first argument."""
    return ((ids * _MIX) >> U64(40)) % U64(shards)


class Shard:
    def __init__(self, plan: Plan, xp: Any = np, sieve: Sieve | None = None) -> None:
        self.plan, self.sieve = plan, sieve
        self.arrays = Arrays(xp)
        self.kernel = Kernel(self.arrays, plan.values)
        self.relations: dict[Key, Relation] = {}
        self.explicit: dict[Key, Relation] = {}
        self.marks: dict[Key, Marks] | None = None
        """Ranks and counts, where they are kept."""
        self.schedulers = [Scheduler(rules, self) for rules in plan.strata]
        self.near = self.kernel.near = Near(xp, plan.values) if self.arrays.module.whole and sieve is None else None
        self.begin()

    # -- facts -------------------------------------------------------------------------------------------------------

    def runs(self, facts: Facts) -> Deltas:
        """Columns as sorted runs, triples split by predicate. Cost: a sort."""
        out: Deltas = {}
        for name, columns in facts.items():
            moved = [self.arrays.xp.asarray(c, dtype=U64) for c in columns]
            if moved and not len(moved[0]):
                continue
            if name != TRIPLE:
                out[name] = run_of(self.arrays, moved, len(moved[0]) if moved else 1)
                continue
            subject, predicate, value = moved
            for key, pairs in self.arrays.split_pairs(predicate, subject, value):
                out[key] = Run(self.arrays, 2, (pairs,))
        return {key: run for key, run in out.items() if len(run)}

    def insert(self, runs: Deltas) -> dict[Key, int]:
        """Make facts explicit and let those that are new arrive; returns how many of each relation these were."""
        for key, run in runs.items():
            known = self.explicit.get(key)
            if known is None:
                self.explicit[key] = Relation(run)
            else:
                new = known.new(run.words)
                self.explicit[key] = known.add(Run(self.arrays, run.arity, new))
        return {key: len(run) for key, run in self.fixpoint.insert(runs).items()}

    def retract(self, runs: Deltas) -> Deltas:
        """Make facts cease to be explicit; returns those that were."""
        known = {key: self.explicit[key] for key in runs if key in self.explicit}
        there = how_many(self.arrays, [(relation, runs[key].words) for key, relation in known.items()])
        out: Deltas = {}
        for (key, relation), count in zip(known.items(), there, strict=True):
            if count:
                out[key] = runs[key] if count == len(runs[key]) else runs[key].within(relation)
                self.explicit[key] = relation.remove(out[key])
        return out

    @property
    def compares(self) -> bool:
        """Whether a rule compares values."""
        return compares(self.plan)

    def begin(self) -> None:
        self.fixpoint = Fixpoint(self.kernel, self.relations, self.sieve, self.near)

    def restore(
        self,
        plan: Plan,
        relations: dict[Key, Relation],
        explicit: dict[Key, Relation],
        marks: dict[Key, Marks] | None = None,
    ) -> None:
        """Go back to an earlier state; schedules made since then say nothing about it."""
        self.plan, self.relations, self.explicit, self.marks = plan, relations, explicit, marks
        self.schedulers = [Scheduler(rules, self) for rules in self.plan.strata]
        self.begin()

    def adopt(self, plan: Plan) -> set[Key]:
        """Go on by other rules under which the same follows; returns the parameter relations and helpers that came or went."""
        helpers, before = helpers_of(plan), helpers_of(self.plan)
        held = {key for key in (*helpers, *before, *plan.parameters, *self.plan.mentioned) if key in self.relations}
        gone = held - helpers - plan.parameters.keys()
        self.plan = plan
        self.schedulers = [Scheduler(rules, self) for rules in plan.strata]
        for key in gone:
            del self.relations[key]
            self.explicit.pop(key, None)
        new = self.runs({name: rows() for name, rows in plan.parameters.items() if name not in held})
        for key, run in new.items():
            self.relations[key] = self.explicit[key] = Relation(run)
        defined = [r for rules in plan.strata for r in rules.rules if r.head.relation in helpers - before]
        filling = Fixpoint(self.kernel, self.relations, self.sieve)
        filling.close((one_round(defined),), True)
        return gone | set(new) | set(filling.arrived)

    def forget_derived(self) -> None:
        self.relations = dict(self.explicit)
        self.begin()

    def derive_hidden(self) -> None:
        """Fill the helper relations of facts that are closed already. Cost: the instances of the rules that derive them."""
        for scheduler in self.schedulers:
            self.fixpoint.close(hidden_part(scheduler.schema), True)
            self.fixpoint.close(hidden_part(scheduler.schedule({}, True).components), True)
        self.begin()

    # -- closing -----------------------------------------------------------------------------------------------------

    def close(self, stratum: int, full: bool) -> Closed:
        rounds, derivations, examined = self.fixpoint.rounds, self.kernel.derivations, self.kernel.examined
        scheduler = self.schedulers[stratum]
        if not full and self.fixpoint.arrived.count <= FEW:
            self.fixpoint.close((scheduler.able_after(self.fixpoint.arrived),), False)
        else:
            self.fixpoint.close(scheduler.schema, full)
            schedule = scheduler.schedule(self.fixpoint.arrived, full)
            self.fixpoint.close(schedule.components, full)
            if full:
                for key, relation in self.relations.items():
                    self.relations[key] = relation.settled()
                for key in schedule.by_object & self.relations.keys():
                    self.relations[key].base.in_order((1, 0))
        kernel = self.kernel
        return Closed(self.fixpoint.rounds - rounds, kernel.derivations - derivations, kernel.examined - examined)

    def able(self) -> tuple[Component, ...]:
        """The rules of all strata that can fire."""
        return tuple(scheduler.able for scheduler in self.schedulers)

    def able_after(self, arrived: Mapping[Key, Run]) -> tuple[Component, ...]:
        """The same when these facts have come and their consequences have not."""
        return tuple(scheduler.able_after(arrived) for scheduler in self.schedulers)

    @property
    def nbytes(self) -> int:
        """Bytes of all relations and indices; arrays that explicit facts and materialisation share count once."""
        seen = {
            id(word): int(word.nbytes)
            for relation in (*self.relations.values(), *self.explicit.values())
            for run in (relation.base, relation.plus, relation.minus)
            if run is not None
            for words in run.orders.values()
            for word in words
        }
        return sum(seen.values()) + sum(marks.nbytes for marks in (self.marks or {}).values())


class Scheduler:
    """The schedule of one stratum, made anew when it may have changed."""

    def __init__(self, rules: Rules, shard: Shard) -> None:
        self.rules, self.shard = rules, shard
        self.schema: tuple[Component, ...] = schema_schedule(rules)
        self._schedule: Schedule | None = None
        self._source: tuple[dict[Key, Relation], frozenset[int]] = ({}, frozenset())
        """The schema, and the named classes with instances, that the schedule was made from."""
        self._able: tuple[Schedule, Component] | None = None

    def schedule(self, arrived: Mapping[Key, Run], full: bool) -> Schedule:
        """Cost: the look at what arrived, or at the schema if everything did; where that changed, linear in the schema."""
        outdated = self._elsewhere if full else self._outdated
        if self._schedule is None or outdated(self._schedule, arrived):
            facts = {key: len(relation) for key, relation in self.shard.relations.items()}
            self._source = self._schema(), self.classes()
            self._schedule = data_schedule(self.rules, facts, self._source[1], self.rows)
        return self._schedule

    @property
    def last(self) -> tuple[Component, ...]:
        """The components of the schedule as it was made last."""
        return (*self.schema, *self.schedule({}, False).components) if self._at_hand else (generic(self.rules),)

    @property
    def able(self) -> Component:
        """The rules that can fire by the last schedule, each once, in one loop."""
        if not self._at_hand:
            return generic(self.rules)
        schedule = self.schedule({}, False)
        if self._able is None or self._able[0] is not schedule:
            self._able = schedule, one_loop(task for c in (*self.schema, *schedule.components) for task in c.tasks)
        return self._able[1]

    @property
    def _at_hand(self) -> bool:
        """Whether there is a schedule, or one is worth making: few rules, and guards of many rows, run sooner in one loop."""
        if self._schedule is not None:
            return True
        if len(self.rules.rules) <= FEW_RULES:
            return False
        guards = {guard[0].relation for guard in self.rules.guards if guard}
        return sum(len(self.shard.relations[key]) for key in guards if key in self.shard.relations) <= FEW_ROWS

    def _schema(self) -> dict[Key, Relation]:
        keys = [key for key, class_ in self.rules.schema if class_ is None]
        return {key: self.shard.relations[key] for key in keys if key in self.shard.relations}

    def _elsewhere(self, schedule: Schedule, _: Mapping[Key, Run]) -> bool:
        """Whether the schedule was made from another schema, or from fewer relations."""
        schema, classes = self._source
        now = self._schema()
        return (
            now.keys() != schema.keys()
            or not all(now[key] is schema[key] or self._same(now[key], schema[key]) for key in now)
            or any((key, None) not in schedule.live for key, relation in self.shard.relations.items() if len(relation))
            or not self.classes() <= classes
        )

    def _same(self, one: Relation, other: Relation) -> bool:
        """Whether both hold the same rows: small ones are compared on the host."""
        near = self.shard.near
        if near is not None and len(one) == len(other) <= self.shard.arrays.module.near:
            one, other = near.here(one), near.here(other)
        return one.same(other)

    def able_after(self, arrived: Mapping[Key, Run]) -> Component:
        """The same when these facts have come and their consequences have not: all rules, if that may change which can fire."""
        if self._schedule is not None and not self._outdated(self._schedule, arrived):
            return self.able
        self._schedule = None
        return generic(self.rules)

    def forget_if_changed(self, went: Mapping[Key, Relation]) -> None:
        """Make the schedule anew next time if facts went that it was made from."""
        for key, relation in went.items():
            if (key, None) in self.rules.schema or (key == self.rules.type_id and self.named_classes(relation.base)):
                self._schedule = None

    def _outdated(self, schedule: Schedule, arrived: Mapping[Key, Run]) -> bool:
        for key, run in arrived.items():
            if (key, None) in self.rules.schema or (key, None) not in schedule.live:
                return True
            if key == self.rules.type_id and self.named_classes(run):
                return True
        return False

    def named_classes(self, run: Run) -> list[int]:
        named = self.shard.arrays.xp.asarray(sorted(self.rules.classes), dtype=U64)
        if not len(named):
            return []
        found = run.distinct(1)
        listed: list[int] = found[self.shard.arrays.contains((named,), (found,))].tolist()
        return listed

    def classes(self) -> frozenset[int]:
        """Named classes with instances."""
        relation = self.shard.relations.get(self.rules.type_id)
        if relation is None or not self.rules.classes:
            return frozenset()
        out: set[int] = set()
        for run, _ in relation.parts():
            out.update(self.named_classes(run))
        return frozenset(out)

    def rows(self, atom: PlanAtom, names: tuple[str, ...]) -> Sequence[tuple[int, ...]]:
        """The distinct values of these variables in the relation of a guard atom. Cost: the rows that match its constants."""
        relation = self.shard.relations.get(atom.relation)
        if relation is None:
            return []
        if self.shard.near is not None and len(relation) <= self.shard.arrays.module.near:
            relation = self.shard.near.here(relation)
        arrays = relation.base.arrays
        words = arrays.unique([arrays.empty(len(names)), *(self._matches(atom, names, *part) for part in relation.parts())])
        if not names:
            return [()] if len(words[0]) else []
        return list(zip(*(arrays.column(words, i).tolist() for i in range(len(names))), strict=True))

    def _matches(self, atom: PlanAtom, names: tuple[str, ...], run: Run, minus: Run | None) -> Words:
        """The values of these variables in the rows of a run, less those that went, that match an atom."""
        arrays, args = run.arrays, atom.args
        fixed = [i for i, arg in enumerate(args) if not is_variable(arg)]
        order = (*fixed, *(i for i in range(run.arity) if i not in fixed))
        rows = run.beginning(order, [U64(args[i]) for i in fixed], minus)
        columns = [arrays.column(rows, order.index(i)) for i in range(run.arity)]
        again = [(i, args.index(arg)) for i, arg in enumerate(args) if is_variable(arg) and args.index(arg) != i]
        for i, first in again:
            columns = list(arrays.chosen(columns, columns[i] == columns[first]))
        return arrays.pack([columns[args.index(name)] for name in names], len(columns[0]) if columns else len(rows[0]))
