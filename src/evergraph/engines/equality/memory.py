"""The memory engine as the one that holds a normalised graph: explicit facts as they were given, all facts in normal form."""

from __future__ import annotations

from collections.abc import Mapping

from evergraph.engines.arrays import Array
from evergraph.engines.base import Facts
from evergraph.engines.equality.merging import equalities, rename
from evergraph.engines.equality.names import Names
from evergraph.engines.kernel import Kernel
from evergraph.engines.memory import MemoryEngine
from evergraph.engines.relation import Relation, Run
from evergraph.engines.shard import Scheduler
from evergraph.plan.compile import Plan
from evergraph.plan.equality import constants, renamed
from evergraph.plan.model import Key


class MergingMemory(MemoryEngine):
    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self.written = plan
        """The rules as they were written; those of the shard have the names of the graph."""
        self.names = Names.none(self.shard.arrays)
        self._begun = (plan, self.names)
        self._constants = constants(plan)

    @property
    def kernel(self) -> Kernel:
        return self.shard.kernel

    def runs(self, facts: Facts) -> dict[Key, Run]:
        return self.shard.runs(facts)

    def equalities(self) -> tuple[Array, Array]:
        shard, same = self.shard, self.shard.plan.same
        assert same is not None
        return equalities(shard.kernel, shard.relations, shard.fixpoint.arrived, same)

    def adopt(self, plan: Plan) -> None:
        self.written, self._constants = plan, constants(plan)
        super().adopt(self._renamed(self.names))
        if len(self.names):
            rename(self.shard, self.names, True, False)

    def _renamed(self, names: Names) -> Plan:
        named = not self._constants.isdisjoint(names.moved.tolist())
        return renamed(self.written, names.name) if named else self.written

    def rename(self, changed: Names, names: Names, bulk: bool, pending: bool) -> bool:
        self._take_names(names)
        rename(self.shard, changed, not bulk, pending)
        return not self._constants.isdisjoint(changed.moved.tolist())

    def recall(self, names: Names) -> None:
        self._take_names(names)

    def _take_names(self, names: Names) -> None:
        """Go on with these names, and with rules that have them."""
        changed = not self._constants.isdisjoint(names.less(self.names).tolist())
        self.names = self.shard.kernel.names = names
        if changed:
            self.shard.plan = self._renamed(names)
            self.shard.schedulers = [Scheduler(rules, self.shard) for rules in self.shard.plan.strata]

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
        if len(self.names):
            rename(shard, self.names, False, False)
        shard.begin()
        shard.derive_hidden()

    def forget_derived(self, counting: bool = False) -> None:
        """Explicit equalities arrive: they are merged before rules are closed."""
        super().forget_derived()
        shard, same = self.shard, self.shard.plan.same
        assert same is not None
        if same in shard.relations:
            relation = shard.relations[same]
            shard.fixpoint.arrived.add(same, Run(shard.arrays, relation.arity, relation.rows()))

    def held(self) -> Mapping[Key, Relation]:
        return dict(self.shard.relations)

    def given(self) -> Mapping[Key, Relation]:
        return dict(self.shard.explicit)

    def done(self) -> None:
        self._closed = True
