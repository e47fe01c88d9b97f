"""Counts kept true while facts come and go: one update at one shard, by waves (Illich, Glimm 2023; see `marks`).

    withdraw:  an instance that used a fact that went is taken off its head's count; a head that has none left goes too
    rederive:  what went and still follows from what is left comes back, with a new rank
    activate:  an instance that uses a fact that came is added to its head's count; a head that was not there comes too

In words: counting looks at instances, and at each only once: when the last fact of its body comes, and when the first of them
goes. Ranks make support well-founded, so that a circle of facts cannot hold itself up.

Invariant, between the steps: count(f) is the number of instances for f over the facts of lower rank, as far as these have been
activated; a fact that is there is explicit or has a positive count. Ranks of facts that stay do not change. For later strata a
fact that went and came back with another rank has both gone and come.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from evergraph.engines.arrays import U64, Array, Words
from evergraph.engines.base import Keep
from evergraph.engines.delta import Delta
from evergraph.engines.fixpoint import Deltas, Fed, Fixpoint, turned_negations
from evergraph.engines.instances import Instances
from evergraph.engines.kernel import Kernel
from evergraph.engines.marks import Marks, count_of, mark, rank_of
from evergraph.engines.relation import Relation, Run
from evergraph.engines.retreat import Doom, Retreat
from evergraph.engines.table import Table
from evergraph.engines.upkeep import Net, Relations
from evergraph.plan.model import Key, PlanRule
from evergraph.plan.schedule import Task

if TYPE_CHECKING:
    from evergraph.engines.shard import Shard


class Ledger:
    """The marks of a shard's facts, in an update."""

    def __init__(self, kernel: Kernel, marks: dict[Key, Marks]) -> None:
        self.arrays, self.marks = kernel.arrays, marks

    def of(self, key: Key, words: Words) -> Array:
        known = self.marks.get(key)
        return known.of(self.arrays, words) if known is not None else self.arrays.xp.zeros(len(words[0]), U64)

    def put(self, key: Key, arity: int, words: Words, values: Array) -> None:
        if len(values):
            known = self.marks.get(key)
            if known is None:
                nothing = self.arrays.empty(arity)
                known = Marks(nothing, nothing[0], nothing, nothing[0])
            self.marks[key] = known.put(self.arrays, words, values)


class Withdrawal(Retreat):
    """Facts that go because nothing counts for them any more."""

    def __init__(self, kernel: Kernel, old: Relations, doom: Doom, ledger: Ledger, ranks: Mapping[Key, Marks]) -> None:
        """`ranks` are the marks of the old facts."""
        super().__init__(kernel, old, doom)
        self.ledger, self.ranks = ledger, ranks
        self.below: Relations = old
        """What negations read: the old facts, and what came below."""

    def _found(self) -> Instances:
        return Instances(self.kernel, self.ranks)

    def _run(self, task: Task, sources: list[Relations], found: Instances) -> None:  # type: ignore[override]
        found.run(task.rule, sources, self.below)

    def lose(self, rules: Sequence[PlanRule], came: Relations) -> None:
        """Withdraw the instances that negate one of the facts that came below."""
        found = self._found()
        for rule in rules:
            run_changed_negations(found, rule, came, self.old, self.old)
        self._absorb((), found, feed=False)

    def _absorb(self, tasks: tuple[Task, ...], found: Instances, feed: bool) -> Fed | None:  # type: ignore[override]
        deltas: Deltas = {}
        for key, heads in found.heads():
            relation = self.relations.get(key)
            if relation is None:
                continue
            marks = self.ledger.of(key, heads.rows)
            lost = heads.counted(rank_of(marks), self.kernel)
            lost[~relation.contains(heads.rows)] = 0
            changed = lost > 0
            rows = tuple(w[changed] for w in heads.rows)
            left = marks[changed] - lost[changed]
            self.ledger.put(key, relation.arity, rows, left)
            unsupported = count_of(left) == 0
            run = self.doom(key, Run(self.arrays, relation.arity, tuple(w[unsupported] for w in rows)))
            if len(run):
                deltas[key] = run
        older = {key: self.relations[key] for key in deltas}
        for key, run in deltas.items():
            self.let_go(key, run)
        return (deltas, older, {}) if deltas and feed else None


class Activation(Fixpoint):
    """Facts that come, with ranks and counts."""

    def __init__(self, kernel: Kernel, relations: dict[Key, Relation], ledger: Ledger) -> None:
        super().__init__(kernel, relations)
        self.ledger = ledger

    def _found(self) -> Instances:
        return Instances(self.kernel, self.ledger.marks)

    def _run(self, task: Task, sources: list[Relations], found: Instances) -> None:  # type: ignore[override]
        found.run(task.rule, sources, self.relations)

    def rederive(self, rules: Iterable[PlanRule], gone: Relations, active: Relations, below: Relations) -> None:
        """Bring back what went and follows from active facts; what is back already is counted for."""
        found = self._found()
        ask(found, rules, gone, active, below)
        self._absorb((), found, feed=False)

    def gain(self, rules: Sequence[PlanRule], went: Relations, active: Relations) -> None:
        """Count the instances over active facts that negate one of those that went below."""
        found = self._found()
        for rule in rules:
            run_changed_negations(found, rule, went, active, self.relations)
        self._absorb((), found, feed=False)

    def _absorb(self, tasks: tuple[Task, ...], found: Instances, feed: bool) -> Fed | None:  # type: ignore[override]
        deltas: Deltas = {}
        older: dict[Key, Relation] = {}
        for key, heads in found.heads():
            arity = found.arities[key]
            relation = self.relations[key] if key in self.relations else self._empty(arity)
            new = ~relation.contains(heads.rows)
            marks = self.ledger.of(key, heads.rows)
            more = heads.counted(rank_of(marks), self.kernel)
            values = self.kernel.xp.where(new, mark(heads.highest + U64(1), heads.number), marks + more)
            changed = new | (more > 0)
            self.ledger.put(key, arity, tuple(w[changed] for w in heads.rows), values[changed])
            run = Run(self.arrays, arity, tuple(w[new] for w in heads.rows))
            if len(run):
                self.bring(key, run)
                deltas[key], older[key] = run, relation
        return (deltas, older, {}) if deltas and feed else None

    def bring(self, key: Key, run: Run) -> None:
        """A fact comes that was not there, with the rank and the count that the ledger says."""
        self._add(key, run)


class Waves(Net):
    """An update of a shard whose facts are counted."""

    def __init__(self, shard: Shard, old: Relations, marks: dict[Key, Marks]) -> None:
        super().__init__(shard, old)
        self.ledger = Ledger(shard.kernel, marks)
        self.ranks = dict(marks)
        """Marks as they were when the update began."""
        self.gone: Deltas = {}
        self.come: Deltas = {}
        """What has gone and what has come at any time of this update; a fact may be in both."""
        self._lost_by = [scheduler.able for scheduler in shard.schedulers]

    def retreat(self, stratum: int, keep: Keep) -> None:
        """Withdraw."""
        if stratum == 0:
            self._arrive()
        scheduler, came = self.shard.schedulers[stratum], self.came()
        withdrawal = Withdrawal(self.shard.kernel, self.old, self._not_explicit, self.ledger, self.ranks)
        withdrawal.below = united(self.old, came)
        withdrawal.depart(self.gone)
        doubtful, self.doubtful = self.doubtful, {}
        withdrawal.depart({key: run.where(count_of(self.ledger.of(key, run.words)) == 0) for key, run in doubtful.items()})
        withdrawal.lose(scheduler.rules.rules, came)
        withdrawal.close((self._lost_by[stratum],), False)
        self.rounds += withdrawal.rounds
        went = {key: run.without(self.gone.get(key)) for key, run in withdrawal.arrived.items()}
        self._apply(went)
        self._left = {key: Relation(run) for key, run in went.items() if len(run)}
        _join(self.gone, went)

    def advance(self, stratum: int) -> None:
        """Rederive and activate.

        Rederivation leaves instances that negate a fact that went below to `gain`. What this stratum let go, rules of lower
        strata may derive too, from all that is there: for them nothing is still to come.
        """
        shard, scheduler = self.shard, self.shard.schedulers[stratum]
        rules, went = scheduler.rules.rules, self.went()
        activation = Activation(shard.kernel, shard.relations, self.ledger)
        for key, run in self.come.items():
            activation.before[key] = shard.relations[key].remove(run)
            activation.arrived.add(key, run)
        there = dict(shard.relations)
        active = {**there, **activation.before}
        activation.rederive(rules, Delta.of(self.gone), active, united(there, went))
        lower = (rule for scheduler in shard.schedulers[:stratum] for rule in scheduler.rules.rules)
        activation.rederive(lower, Delta(self._left), there, there)
        activation.gain(rules, went, active)
        activation.close((scheduler.able_after(activation.arrived),), False)
        scheduler.forget_if_changed(went)
        self.rounds += activation.rounds
        came = {key: run.without(self.come.get(key)) for key, run in activation.arrived.items()}
        self.touched |= came.keys()
        _join(self.come, came)

    def _arrive(self) -> None:
        """Facts that were inserted and not there before have rank 0."""
        for key, relation in self.came().items():
            self.come[key] = relation.base
            if key in self.ledger.marks:
                self.ledger.put(key, relation.arity, relation.base.words, self.shard.arrays.xp.zeros(len(relation), U64))

    def settle(self) -> None:
        """Lay out marks like their relations again, where that is due. Cost: that of merging those relations."""
        lay_out(self.shard, self.ranks)


def lay_out(shard: Shard, before: Mapping[Key, Marks]) -> None:
    """Lay out the marks that an update has changed like their relations, where that is due."""
    marks, relations = shard.marks or {}, shard.relations
    for key in [k for k in marks.keys() & relations.keys() if marks[k] is not before.get(k)]:
        marks[key] = marks[key].settle(shard.arrays, relations[key])


def ask(found: Instances, rules: Iterable[PlanRule], gone: Relations, active: Relations, below: Relations) -> None:
    """Find the instances over active facts that derive one of those that went."""
    for rule in rules:
        head = rule.head
        if head.relation in gone or (head.open and any(isinstance(key, int) for key in gone)):
            take = partial(found.take, head, rule.body)
            found.kernel.instances(rule.asked, [gone, *[active] * len(rule.body)], below, take)


def run_changed_negations(found: Instances, rule: PlanRule, changed: Relations, positive: Relations, below: Relations) -> None:
    """Take the instances of a rule that negate one of the changed facts or more, each once."""
    kernel = found.kernel
    tables: list[Table] = []
    for turned in turned_negations(rule, changed):
        kernel.instances(turned, [changed, *[positive] * len(rule.body)], below, tables.append)
    if len(rule.negated) > 1:
        tables = _distinct(kernel, rule, tables)
    for table in tables:
        found.take(rule.head, rule.body, table)


def _distinct(kernel: Kernel, rule: PlanRule, tables: list[Table]) -> list[Table]:
    """Bindings that were found by several negated atoms, once: those of the same predicates together."""
    predicates = sorted({str(atom.relation) for atom in rule.body if atom.open})
    names = sorted(rule.variables.difference(predicates))
    groups: dict[tuple[int, ...], list[Words]] = {}
    for table in tables:
        words = kernel.arrays.pack([table.value(name) for name in names], table.count)
        groups.setdefault(tuple(int(table.fixed[p]) for p in predicates), []).append(words)
    out = []
    for values, parts in groups.items():
        words = kernel.arrays.unique(parts)
        columns = {name: kernel.arrays.column(words, place) for place, name in enumerate(names)}
        fixed = {name: U64(value) for name, value in zip(predicates, values, strict=True)}
        out.append(Table(len(words[0]), columns, fixed))
    return out


def united(some: Relations, others: Relations) -> Relations:
    """Relations with the facts of others, which are not in them."""
    if not others:
        return some
    return {**some, **{key: some[key].add(r.base) if key in some else r for key, r in others.items()}}


def _join(runs: Deltas, more: Mapping[Key, Run]) -> None:
    for key, run in more.items():
        if len(run):
            runs[key] = runs[key].merge(run) if key in runs else run
