"""Counting at one shard: the supersteps of an update by waves (`engines.waves`), and of making counts anew.

    withdraw:  a shard that hears that facts went finds the instances lost; owners take them off the counts of their heads, and
               let go of what nothing counts for any more
    activate:  a shard that hears that facts came finds the instances won; owners add them, and bring heads that are not there

In words: each instance is found at one shard (`Local.once`), which tells the owner of the head how high the ranks of the body
go. The owner keeps the count and decides. What goes is told to all shards, because any of them may derive it again; what comes
is told to its homes, with its rank. What a shard tells itself it acts upon at once, so that a superstep is a local fixpoint.

Invariant: when no mail is under way, all homes of a fact know its rank, and its owner its count. The order in which reports
come in does not matter: each instance is reported once, and counts if its top is below the rank that its head has.
Cost and traps: a report for each head of an instance that is not owned where it is found. An owner ranks a new fact by the
reports it has by then, so that ranks depend on the number of shards; facts and their support do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from evergraph.engines.arrays import LOW, U64, Array, Arrays, Words
from evergraph.engines.delta import Delta
from evergraph.engines.instances import Heads, Instances
from evergraph.engines.kernel import Kernel
from evergraph.engines.marks import Marks, count_of, mark, rank_of
from evergraph.engines.relation import Relation, Run
from evergraph.engines.spark import mail
from evergraph.engines.spark.departures import retract, tell
from evergraph.engines.spark.job import Job
from evergraph.engines.spark.mail import Kind
from evergraph.engines.waves import Activation, Ledger, Withdrawal, united
from evergraph.plan.model import Key, PlanRule

if TYPE_CHECKING:
    from evergraph.engines.spark.superstep import Superstep


def withdraw(step: Superstep, inbox: pa.Table) -> None:
    """Let go what the mail says has gone and what is not explicit any more and not counted for; then what depended on it."""
    retracted = {key: retract(step, key, Run(step.arrays, n, w)) for _, key, n, w in mail.read(inbox, (Kind.RETRACT,))}
    _receive(step, inbox)
    step.gather_arrived()
    came, gone = step.came(), {key: Run(step.arrays, r.arity, r.rows()) for key, r in step.gone.items()}
    going = ShardWithdrawal(step)
    going.below = united(going.old, came)
    gone = {key: run.within(going.old[key]) for key, run in gone.items() if key in going.old}
    if step.job.begin:
        going.depart(gone)
    else:
        going.relations |= {key: going.old[key].remove(run) for key, run in gone.items()}
    for key, run in retracted.items():
        run = going.doom(key, run)
        run = run.where(count_of(going.ledger.of(key, run.words)) == 0)
        if len(run):
            going.let_go(key, run)
    for _, key, arity, words in mail.read(inbox, (Kind.GONE,)):
        going.leave(key, Run(step.arrays, arity, words))
    if step.job.begin:
        going.lose(_rules(step.job), came)
    going.absorb(inbox)
    going.close(step.job.components, False)
    step.fixpoint.rounds += going.rounds


def activate(step: Superstep, inbox: pa.Table) -> None:
    """Take in what comes and what counts for it, and draw the consequences.

    Copies of facts that are there already come before anything is evaluated. The first superstep of an update's step also
    takes what came in lower strata as new, and brings back what went and follows from what meets here.
    """
    activation = step.activation
    for key, run, values in marked(step, inbox, Kind.COPY):
        run = _record(step, key, run, values)
        step.relations[key] = step.relations[key].add(run) if key in step.relations else Relation(run)
    _receive(step, inbox)
    for key, run, values in marked(step, inbox, Kind.RANKED):
        activation.insert({key: _record(step, key, run, values)})
    activation.absorb(inbox)
    if step.job.begin and not step.job.full:
        _resume(step, activation)
    activation.close(step.job.components, step.job.full)
    if step.job.keep_arrived:
        step.gather_arrived()


def _resume(step: Superstep, activation: ShardActivation) -> None:
    """What `Waves.advance` does before it activates."""
    rules, went, there = _rules(step.job), step.went(), dict(step.relations)
    for key, relation in step.arrived.items():
        activation.before[key] = step.relations[key].remove(relation.base)
        activation.arrived.add(key, relation.base)
    active = {**there, **activation.before}
    activation.rederive(rules, Delta(step.gone), active, united(there, went))
    activation.rederive((task.rule for c in step.job.earlier for task in c.tasks), Delta(step.lost), there, there)
    activation.gain(rules, went, active)


def send_copies(step: Superstep) -> None:
    """Bring facts to homes that the placement has given them since, as new where they came in this update."""
    for key in [key for key in step.job.resend if key in step.relations]:
        run = Run(step.arrays, step.relations[key].arity, step.owned(step.relations[key]))
        came = step.arrived.get(key)
        _send(step, Kind.COPY, key, run.without(came))
        if came is not None:
            _send(step, Kind.RANKED, key, run.within(came))


class Reports(Instances):
    """Instances found here and reported from elsewhere, as far as this shard owns their heads; others are reported."""

    def __init__(self, step: Superstep, kernel: Kernel, marks: Mapping[Key, Marks]) -> None:
        super().__init__(kernel, marks)
        self.step = step

    def read(self, inbox: pa.Table) -> Reports:
        repeated(self, marked(self.step, inbox, Kind.INSTANCES))
        return self

    def heads(self) -> Iterator[tuple[Key, Heads]]:
        step = self.step
        for key, heads in super().heads():
            owner = step.job.placement.owner(step.arrays, self.arities[key], heads.rows)
            for number in range(step.job.placement.shards):
                part = of_owner(heads, owner == number)
                if not len(part.starts):
                    continue
                if number == step.shard:
                    yield key, part
                else:
                    step.post(number, Kind.INSTANCES, key, self.arities[key], grouped(step.arrays, part))


def grouped(arrays: Arrays, heads: Heads) -> Words:
    """Heads and tops of instances, each pair once, with the number of its instances beside the top."""
    spread = tuple(np.repeat(w, heads.ends - heads.starts) for w in heads.rows)
    (*rows, tops), starts = arrays.groups((*spread, heads.tops))
    return (*rows, mark(tops, np.diff(np.append(starts, len(heads.tops))).astype(U64)))


def repeated(found: Instances, said: Iterable[tuple[Key, Run, Array]]) -> None:
    """Take instances as they were grouped."""
    for key, run, values in said:
        number = count_of(values).astype(np.int64)
        found.emit(key, tuple(np.repeat(w, number) for w in run.words))
        found.arities[key] = run.arity
        found.tops.setdefault(key, []).append(np.repeat(rank_of(values), number))


class ShardWithdrawal(Withdrawal):
    """Lets go what its shard owns, and hears from others what they let go."""

    def __init__(self, step: Superstep) -> None:
        old, ranks = step.at_begin()
        ledger = step.activation.ledger
        super().__init__(step.fixpoint.kernel, old, lambda key, run: run.without(step.explicit.get(key)), ledger, ranks)
        self.step = step

    def _found(self) -> Reports:
        return Reports(self.step, self.kernel, self.ranks)

    def absorb(self, inbox: pa.Table) -> None:
        self._absorb((), self._found().read(inbox), feed=False)

    def let_go(self, key: Key, run: Run) -> None:
        tell(self.step, Kind.GONE, {key: run})
        self.leave(key, run)

    def leave(self, key: Key, run: Run) -> None:
        """A fact goes that may live here or not."""
        self.step.remember(key, run)
        self.step.take_out(key, run)
        if key in self.relations:
            self.depart({key: run.within(self.relations[key])})


class ShardActivation(Activation):
    """Brings facts that its shard owns, here and to their other homes."""

    def __init__(self, step: Superstep, kernel: Kernel, marks: dict[Key, Marks]) -> None:
        super().__init__(kernel, step.relations, Ledger(kernel, marks))
        self.step = step

    def _found(self) -> Reports:
        return Reports(self.step, self.kernel, self.ledger.marks)

    def absorb(self, inbox: pa.Table) -> None:
        self._absorb((), self._found().read(inbox), feed=False)

    def bring(self, key: Key, run: Run) -> None:
        super().bring(key, run)
        _send(self.step, Kind.RANKED, key, run)


def _receive(step: Superstep, inbox: pa.Table) -> None:
    """Take in explicit facts: what is new among them has rank 0."""
    ledger = step.activation.ledger
    for key, run in step.receive(inbox).items():
        if key in ledger.marks:
            ledger.put(key, run.arity, run.words, np.zeros(len(run), U64))


def _record(step: Superstep, key: Key, run: Run, values: Array) -> Run:
    """Of facts that others have ranked, those that are not here, which they have the rank of from now on."""
    ledger, relation = step.activation.ledger, step.relations.get(key)
    fresh = ~relation.contains(run.words) if relation is not None else np.ones(len(run), bool)
    run, values = run.where(fresh), values[fresh]
    if key in ledger.marks or values.any():
        ledger.put(key, run.arity, run.words, values)
    return run


def _send(step: Superstep, kind: Kind, key: Key, run: Run) -> None:
    """Send facts that this shard owns to their other homes, with their ranks: the counts stay here."""
    ranks = step.activation.ledger.of(key, run.words) & ~LOW
    for number, mask in enumerate(step.job.placement.homes(step.arrays, key, run.arity, run.words)):
        if number != step.shard and bool(mask.any()):
            step.post(number, kind, key, run.arity, tuple(w[mask] for w in (*run.words, ranks)))


def marked(step: Superstep, inbox: pa.Table, kind: Kind) -> Iterator[tuple[Key, Run, Array]]:
    """Rows of the letters of one kind in order, with what is said of each; reports may name a row more than once."""
    parts: dict[tuple[Key, int], list[Words]] = {}
    for _, key, arity, words in mail.read(inbox, (kind,)):
        parts.setdefault((key, arity), []).append(words)
    for (key, arity), found in parts.items():
        words = tuple(np.concatenate(w) for w in zip(*found, strict=True))
        order = step.arrays.module.lexsort(words)
        *rows, values = (w[order] for w in words)
        yield key, Run(step.arrays, arity, tuple(rows)), values


def of_owner(heads: Heads, chosen: Array) -> Heads:
    """Some of the heads, with their instances."""
    sizes = heads.ends - heads.starts
    ends = np.cumsum(sizes[chosen])
    tops = heads.tops[np.repeat(chosen, sizes)]
    return Heads(tuple(w[chosen] for w in heads.rows), tops, ends - sizes[chosen], ends)


def _rules(job: Job) -> list[PlanRule]:
    return [task.rule for component in job.components for task in component.tasks]
