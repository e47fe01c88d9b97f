"""The memory engine as the one that holds a normalised graph: explicit facts as they were given, all facts in normal form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from evergraph.engines.arrays import SHIFT, U64, Array
from evergraph.engines.base import Closed, Facts
from evergraph.engines.equality.merging import equalities, marked, names_of, rename
from evergraph.engines.equality.names import Names
from evergraph.engines.kernel import Kernel
from evergraph.engines.memory import MemoryEngine
from evergraph.engines.relation import Relation, Run
from evergraph.engines.shard import Scheduler
from evergraph.engines.state import State
from evergraph.plan.compile import Plan
from evergraph.plan.equality import brought, constants, irreflexive, renamed
from evergraph.plan.model import Key
from evergraph.plan.shapes import hidden


class MergingMemory(MemoryEngine):
    def __init__(self, plan: Plan, xp: Any = np) -> None:
        super().__init__(irreflexive(plan), xp)
        self.written = plan
        """The rules as they were written; those of the shard have the names of the graph, and leave ≈4 to `close`."""
        self._anew = False
        """Whether everything there is counts as arrived."""
        self._brought = self.shard.arrays.xp.empty(0, U64)
        """Names that rules have brought and that are not known to be the same as themselves."""
        self.names = Names.none(self.shard.arrays)
        self._begun = (plan, self.names)
        self._constants = constants(plan)

    def state(self) -> State:
        return replace(super().state(), plan=self.written, names=self.names)

    def resume(self, state: State) -> None:
        assert state.names is not None
        self.written, self._constants = state.plan, constants(state.plan)
        self.names = self.shard.kernel.names = state.names
        super().resume(replace(state, plan=self._renamed(self.names)))

    @property
    def kernel(self) -> Kernel:
        return self.shard.kernel

    def runs(self, facts: Facts) -> dict[Key, Run]:
        return self.shard.runs(facts)

    def equalities(self) -> tuple[Array, Array]:
        shard = self.shard
        return equalities(shard.kernel, shard.relations, shard.fixpoint.arrived, self._same)

    def close(self, stratum: int, full: bool) -> Closed:
        """Names of what arrived are the same as themselves. Derived facts bring no other names than constants of rules.

        Cost: beside the closing, linear in what arrived.
        """
        shard = self.shard
        source = {k: r.rows() for k, r in shard.relations.items()} if full or self._anew else {}
        self._anew = False
        names = names_of(shard.arrays, source or {k: run.words for k, run in shard.fixpoint.arrived.items()})
        self._add_itself(names)
        closed = super().close(stratum, full)
        self._brought = shard.arrays.distinct(shard.arrays.xp.concatenate([self._brought, self._new_constants()]))
        return closed

    def reflect(self) -> bool:
        """Let names that rules have brought be the same as themselves; returns whether there are any."""
        names, self._brought = self._brought, self._brought[:0]
        if not len(names):
            return False
        self.shard.begin()
        self._add_itself(self.shard.arrays.distinct(self.names.of(names)))
        return bool(self.shard.fixpoint.arrived)

    def _add_itself(self, names: Array) -> None:
        """Let c ≈ c arrive for names c, which are in order."""
        if len(names):
            both = self.shard.arrays.distinct(self.shard.arrays.xp.append(names, U64(self._same)))
            self.shard.fixpoint.insert({self._same: Run(self.shard.arrays, 2, (both << SHIFT | both,))})

    def _new_constants(self) -> Array:
        """Names that facts which arrived have from rules, and that are not known to be the same as themselves."""
        arrays, relations, arrived = self.shard.arrays, self.shard.relations, self.shard.fixpoint.arrived
        where = brought(self.shard.plan)
        given = [relations[key].columns()[place] for key, place in where.columns if key in relations]
        known = arrays.distinct(arrays.xp.concatenate([arrays.xp.asarray(sorted(where.ids), dtype=U64), *given]))
        if where.anywhere:
            known = names_of(arrays, {key: run.words for key, run in arrived.items()})
        itself = relations.get(self._same)
        if itself is not None:
            known = known[~itself.contains((known << SHIFT | known,))]
        if where.anywhere:
            return known
        found = arrays.xp.zeros(len(known), bool)
        for key, run in arrived.parts() if len(known) else ():
            if isinstance(key, int) and len(run):
                found |= known == U64(key)
                for place in (p for p in (0, 1) if (key, p) in where.places or ("?", p) in where.places):
                    column = run.column(place)
                    found |= arrays.contains((arrays.distinct(column[marked(arrays, known, column)]),), (known,))
        return known[found]

    @property
    def _same(self) -> int:
        assert self.shard.plan.same is not None
        return self.shard.plan.same

    def adopt(self, plan: Plan) -> None:
        self.written, self._constants = plan, constants(plan)
        super().adopt(self._renamed(self.names))
        self._rename_hidden()

    def _renamed(self, names: Names) -> Plan:
        named = not self._constants.isdisjoint(names.moved.tolist())
        return irreflexive(renamed(self.written, names.name) if named else self.written)

    def rename(self, changed: Names, names: Names, bulk: bool, pending: bool) -> bool:
        named = self._take_names(names)
        rename(self.shard, changed, not bulk, pending)
        return named

    def normalise(self) -> None:
        shard = self.shard
        arrived = {key: Relation(run) for key, run in shard.fixpoint.arrived.items()}
        if len(self.names):
            rename(shard, self.names, True, True, arrived)

    def _rename_hidden(self) -> None:
        """Bring rows of parameter relations and built-ins, which come as they were written, into normal form."""
        if len(self.names):
            among = {key: relation for key, relation in self.shard.relations.items() if hidden(key)}
            rename(self.shard, self.names, True, False, among)

    def recall(self, names: Names) -> None:
        self._take_names(names)

    def _take_names(self, names: Names) -> bool:
        """Go on with these names, and with rules that have them; returns whether rules mention one that changed."""
        changed = not self._constants.isdisjoint(names.less(self.names).tolist())
        self.names = self.shard.kernel.names = names
        if changed:
            self.shard.plan = self._renamed(names)
            self.shard.schedulers = [Scheduler(rules, self.shard) for rules in self.shard.plan.strata]
        return changed

    @property
    def plans(self) -> tuple[Plan, Plan]:
        return self.written, self.shard.plan

    def rollback(self) -> None:
        super().rollback()
        self.written, self.names = self._begun
        self._constants = constants(self.written)
        self.shard.kernel.names = self.names

    def begin(self) -> None:
        super().begin()
        self._anew, self._brought = False, self._brought[:0]
        self._begun = (self.written, self.names)

    def shed(self, facts: Facts) -> dict[Key, Run]:
        return self.shard.retract(self.shard.runs(facts))

    def exchange(self, plus: Mapping[Key, Run], minus: Mapping[Key, Run]) -> None:
        shard = self.shard
        for key, run in minus.items():
            shard.relations[key] = shard.relations[key].remove(run)
        gone = {key: Relation(run) for key, run in minus.items()}
        for scheduler in shard.schedulers:
            scheduler.forget_if_changed(gone)
        shard.begin()
        shard.fixpoint.insert(plus)
        shard.begin()

    def prepare(self, builtins: Facts) -> None:
        shard = self.shard
        shard.insert(shard.runs(builtins))
        self._rename_hidden()
        shard.begin()
        shard.derive_hidden()

    def forget_derived(self, counting: bool = False) -> None:
        """Explicit equalities arrive: they are merged before rules are closed."""
        super().forget_derived()
        shard, same = self.shard, self._same
        self._anew = True
        if len(shard.relations.get(same, ())):
            relation = shard.relations[same]
            shard.fixpoint.arrived.add(same, Run(shard.arrays, relation.arity, relation.rows()))

    def held(self) -> Mapping[Key, Relation]:
        return dict(self.shard.relations)

    def given(self) -> Mapping[Key, Relation]:
        return dict(self.shard.explicit)

    def done(self) -> None:
        self._closed = True
