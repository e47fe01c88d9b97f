"""The Spark engine as the one that holds a normalised graph: explicit facts as they were given, all facts in normal form.

    insert    facts go to the owners of their names as they were given; what stands for them goes to its own homes
    rename    one superstep (`renaming.py`): facts give way to normal forms, and rules and placement get the new names
    exchange  what the search in the driver found (`equality.unravel`) is told to the shards; nothing is derived

In words: the driver merges names and tells the shards; a search for what still follows reads the relations that it needs in the
driver. Rules are cut for locality as they were written, and then renamed, so that helper relations keep their names.

Invariant: every rule instance meets at some shard also after a renaming, since placement only grows: what was everywhere, or
placed by an argument, under one name is so under every name that stands for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from evergraph.engines.arrays import LOW, SHIFT, U64, Array, Arrays
from evergraph.engines.base import Closed, Facts
from evergraph.engines.changes import Held
from evergraph.engines.equality.names import Names
from evergraph.engines.kernel import Kernel
from evergraph.engines.relation import Relation, Run
from evergraph.engines.shard import Shard
from evergraph.engines.spark import mail
from evergraph.engines.spark.engine import SparkEngine
from evergraph.engines.spark.gather import Gathered
from evergraph.engines.spark.job import ALL, EQUAL, EXPLICIT, Job, Step
from evergraph.engines.spark.mail import Kind, Letter
from evergraph.engines.spark.names import NameFiles
from evergraph.engines.spark.parcels import FactFiles
from evergraph.engines.spark.placement import Placement, place
from evergraph.errors import UserError
from evergraph.plan.compile import Plan
from evergraph.plan.equality import compares, constants, renamed
from evergraph.plan.locality import HERE, Local
from evergraph.plan.model import Key
from evergraph.plan.schema import Rules


class MergingSpark(SparkEngine):
    rewrites = True

    def __init__(self, plan: Plan, session: Any, shards: int | None = None, folder: str | Path | None = None) -> None:
        self._kernel = Kernel(Arrays(), _Anywhere(plan.values))
        self.names = self._begun = Names.none(self._kernel.arrays)
        super().__init__(plan, session, shards, folder)
        self._name_files = NameFiles(self.folder / "names")
        self._read: dict[str, Gathered] = {}
        self._wanted: frozenset[Key] = frozenset()
        """Relations that names have given more homes since their facts were sent there."""

    # -- rules and names -----------------------------------------------------------------------------------------------

    def _obey(self, plan: Plan) -> None:
        """Take rules, cut for locality as they were written, with the names of the graph."""
        super()._obey(plan)
        self.written, self._cut = self.plan, self.local
        self._constants = constants(self.plan)
        self._compares = compares(plan)
        self._name_rules()

    def _name_rules(self) -> None:
        """Let rules and the driver's schema have the names of the graph. What is schema, the rules say before they are cut."""
        self.plan, self.local = self.written, self._cut
        if not self._constants.isdisjoint(self.names.moved.tolist()):
            cut, whole = (renamed(plan, self.names.name) for plan in (self.written, self.uncut))
            strata = [replace(a, schema=b.schema, classes=b.classes) for a, b in zip(cut.strata, whole.strata, strict=True)]
            self.plan = replace(cut, strata=tuple(strata))
            self.local = [_renamed(*both, self.names) for both in zip(self._cut, strata, strict=True)]
        self.schema = Shard(self.plan)
        self._kernel.names = self.schema.kernel.names = self.names

    def _take_names(self, names: Names) -> frozenset[Key]:
        """Go on with these names; returns the relations that are wanted at more shards by that."""
        old, self.names = self.names, names
        self._name_rules()
        before = self.state.placement
        after = _spread(before, old, names, place(self.shards, self.plan.type_id, self.local))
        self.state = replace(self.state, placement=after)
        held = self.state.total(ALL)
        again = {key for key in held if after.is_replicated(key) and not before.is_replicated(key)}
        again |= {key for key in held if after.further(key) != before.further(key)}
        if (after.classes, after.type_id) != (before.classes, before.type_id) and after.type_id in held:
            again.add(after.type_id)
        return frozenset(again)

    def recall(self, names: Names) -> None:
        if len(names.less(self.names)):
            self._wanted |= self._take_names(names)

    def reflect(self) -> bool:
        """Rules see to it (≈4)."""
        return False

    def normalise(self) -> None:
        """Shards take in what arrives in normal form."""

    def rename(self, changed: Names, names: Names, bulk: bool, pending: bool) -> bool:
        """Cost: a superstep, and those that normal forms take to their homes."""
        named = not self._constants.isdisjoint(names.less(self.names).tolist())
        again = self._take_names(names)
        job = replace(self.job(), step=Step.RENAME, begin=True, full=bulk, keep_arrived=True, resend=_in_order(again))
        job = replace(job, changed=self._name_files.save(changed), pending=pending, compares=self._compares)
        self._run(job, [], None)
        return named

    def equalities(self) -> tuple[Array, Array]:
        """What the shards have found since names were last merged. Cost: the pairs."""
        assert self.plan.same is not None
        found = [self.gatherer.at(self.state, EQUAL, shard, [self.plan.same]) for shard in self.state.answers]
        words = np.concatenate([np.empty(0, U64), *(run.words[0] for one in found for run in one.values())])
        return words >> SHIFT, words & LOW

    @property
    def plans(self) -> tuple[Plan, Plan]:
        """Cut for locality both; in one process every meeting point is at hand."""
        values = self._kernel.values
        return replace(self.written, values=values), replace(self.plan, values=values)

    @property
    def kernel(self) -> Kernel:
        return self._kernel

    def job(self) -> Job:
        names = self._name_files.save(self.names) if len(self.names) else None
        return replace(super().job(), same=self.plan.same, names=names)

    def _run(self, job: Job, letters: list[Letter], more: FactFiles | None) -> Closed:
        return super()._run(replace(job, values=self.values.save() if self._compares else None), letters, more)

    # -- updates -------------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        super().begin()
        self._begun, self._wanted = self.names, frozenset[Key]()

    def rollback(self) -> None:
        self.names = self._begun
        super().rollback()
        self.schema.kernel.names = self.names

    def adopt(self, plan: Plan) -> None:
        if plan.strata is self.uncut.strata:
            self._obey(plan)
        else:
            super().adopt(plan)

    def insert(self, facts: Facts) -> bool:
        """Facts are delivered at once: names among them are merged before rules are closed. Cost: a superstep."""
        self._delivered = False
        many = super().insert(facts)
        letters, more = self._insertions()
        if letters or more is not None or self._first:
            self._run(replace(self.job(), keep_arrived=True, begin=self._first), letters, more)
        self._staged, self._files = {}, None
        return many

    def runs(self, facts: Facts) -> dict[Key, Run]:
        return self.schema.runs(facts)

    def shed(self, facts: Facts) -> dict[Key, Run]:
        given = self.given()
        was = {key: run.within(given[key]) for key, run in self.runs(facts).items() if key in given}
        was = {key: run for key, run in was.items() if len(run)}
        if was:
            self._run(replace(self.job(), step=Step.REPLACE), self.parcels(was, Kind.RETRACT, None), None)
        return was

    def exchange(self, plus: Mapping[Key, Run], minus: Mapping[Key, Run]) -> None:
        """Every shard hears of what goes: where it lived is a matter of names that may be others now."""
        gone = [mail.letter(n, Kind.GONE, key, run.arity, run.words) for key, run in minus.items() for n in self.labels]
        letters = gone + self.parcels(plus, Kind.DERIVED)
        if letters:
            self._run(replace(self.job(), step=Step.REPLACE), letters, None)
        wanted, self._wanted = self._wanted & self.state.total(ALL).keys(), frozenset()
        if wanted:
            self._run(replace(self.job(), resend=_in_order(wanted)), [], None)

    def forget_derived(self, counting: bool = False) -> None:
        """Shards start again at once: explicit equalities are merged before rules are closed."""
        self._wanted = frozenset()
        self._run(replace(self.job(), forget=True), [], None)

    def prepare(self, builtins: Facts) -> None:
        super().prepare(builtins)
        self.state = self._saved = self.state.settled()

    def _learn_schema(self) -> None:
        """The driver's schema as the shards hold it: only what is derived from it is news to them."""
        self.schema.relations = {}
        super()._learn_schema()
        self.schema.begin()

    def load(self, facts: Held) -> None:
        raise UserError("EG205", "shards read the files of a store themselves", "open the store with a session")

    def done(self) -> None:
        self._sweep(self._before[1], self._saved, self.state)
        self._name_files.sweep(self._begun, self.names)

    # -- reading -------------------------------------------------------------------------------------------------------

    def held(self) -> Mapping[Key, Relation]:
        return self._gathered(ALL)

    def given(self) -> Mapping[Key, Relation]:
        return self._gathered(EXPLICIT)

    def _gathered(self, role: str) -> Gathered:
        """Relations of all shards, read when they are asked for; what has not changed since is kept."""
        known = self._read.get(role)
        if known is None or known.state is not self.state:
            empty = Gathered(self.gatherer, self.state, role, True)
            known = self._read[role] = empty if known is None else known.after(self.state)
        return known


@dataclass(frozen=True, slots=True)
class _Anywhere:
    """Comparisons where all facts are at hand."""

    values: Any

    def compare(self, operator: str, left: Array, right: Array) -> Array:
        return np.ones(len(left), bool) if operator == HERE else self.values.compare(operator, left, right)


def _renamed(cut: Local, rules: Rules, names: Names) -> Local:
    """Rules cut for locality with other names for their constants; what was everywhere stays so."""
    nodes = {(_name(names, key), value if value is None else names.name(value)) for key, value in cut.replicated}
    return Local(rules, cut.meeting, frozenset(nodes | rules.schema), ())


def _name(names: Names, key: Key) -> Key:
    return names.name(key) if isinstance(key, int) else key


def _spread(placement: Placement, old: Names, new: Names, asked: Placement) -> Placement:
    """The placement under other names: that of each relation for all that it stood for, and what rules ask for."""

    def now(one: int) -> set[int]:
        return set(new.of(old.members(np.asarray([one], U64))[1]).tolist())

    def keys(one: Key) -> Iterable[Key]:
        return now(one) if isinstance(one, int) else (one,)

    positions: dict[Key, set[int]] = {}
    for key, found in placement.positions.items():
        for name in keys(key):
            positions.setdefault(name, set()).update(found)
    return replace(
        placement,
        type_id=asked.type_id,
        replicated=asked.replicated.union(*map(keys, placement.replicated)),
        classes=asked.classes.union(*map(now, placement.classes)),
        positions={key: tuple(sorted(found)) for key, found in positions.items()},
        everywhere=placement.everywhere or asked.everywhere,
    )


def _in_order(keys: frozenset[Key]) -> tuple[Key, ...]:
    return tuple(sorted(keys, key=str))
