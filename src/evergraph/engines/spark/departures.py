"""What goes at one shard, and what is kept: the supersteps of a retreat, and those of a search for proofs.

    retreat:   facts in doubt go, and put in doubt what they helped to derive; with `Keep.PROVED` they become goals instead
    prove:     owners ask all shards about their goals; each proves what it can, looks one level further back, and tells all
    exchange:  facts come and go as they are

In words: the owner of a fact decides about it; others ask. What goes, what is asked about and what is proved is told to every
shard, because a rule may derive the fact at any of them. A search takes the turns of `engines.prove`, one in a superstep, all
shards together. Goals without a proof go, and the retreat goes on.

Invariant: before a search, no mail is under way, so that relations that no rule of the stratum derives are the same at all of
their homes. `PROVED` holds the same facts at every shard when no mail is under way. A proof is found where a body's facts
meet: of facts that are proved every shard knows all, of others the shard of the meeting point has what is needed.
Cost and traps: a superstep for each level of a search. A shard looks behind a fact before it has heard whether others can prove
it, since a superstep costs more than a look: it may look one level further than one shard alone would.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from evergraph.engines.arrays import Words
from evergraph.engines.base import Keep
from evergraph.engines.prove import Prover, derives
from evergraph.engines.relation import Relation, Run
from evergraph.engines.retreat import Retreat
from evergraph.engines.sets import runs_of, with_runs
from evergraph.engines.spark import mail
from evergraph.engines.spark.mail import Kind
from evergraph.plan.model import Key

if TYPE_CHECKING:
    from evergraph.engines.spark.superstep import Superstep


def retreat(step: Superstep, inbox: pa.Table) -> None:
    """Let go what the mail says has gone, what is in doubt here and what has no proof; then what lost an instance with it."""
    step.receive(inbox)
    step.gather_arrived()
    below, came = step.went() if step.job.begin else {}, step.came()
    for key, new in came.items():
        step.relations[key] = step.relations[key].remove(new.base)
    going = ShardRetreat(step, with_runs(step.relations, {key: relation.base for key, relation in below.items()}))
    going.depart({key: relation.base for key, relation in below.items()})
    if step.job.decided:
        unproved, step.goals = runs_of(step.goals), {}
        for key, run in unproved.items():
            going.dismiss(key, run)
    for kind, key, arity, words in mail.read(inbox, (Kind.RETRACT, Kind.DOUBT, Kind.GONE)):
        run = Run(step.arrays, arity, words)
        if kind == Kind.GONE:
            going.leave(key, run)
        else:
            going.doubt(key, retract(step, key, run) if kind == Kind.RETRACT else run)
    if step.job.begin:
        going.lose_to(step.job.components, came)
    going.close(step.job.components, False)
    step.relations = with_runs(going.relations, {key: relation.base for key, relation in came.items()})
    step.departed = {key: run.without(below.get(key)) for key, run in going.arrived.items()}
    for key in step.departed.keys() & step.arrived.keys():
        back = Run(step.arrays, step.arrived[key].arity, step.arrived[key].rows())
        step.arrived[key] = Relation(back.without(step.departed[key]))
    step.fixpoint.rounds += going.rounds


def prove(step: Superstep, inbox: pa.Table) -> None:
    """Take in what others ask and have proved, prove what follows, ask about what is behind the rest, and tell all.

    The first superstep only asks: others may have a proof at hand. A shard that has more to look behind calls itself.
    """
    kernel, components = step.fixpoint.kernel, step.job.components
    prover = Prover(kernel, components, step.relations, step.explicit, derives(components), step.search)
    for kind, key, arity, words in mail.read(inbox, (Kind.CHECK, Kind.PROVED)):
        take = prover.learn if kind == Kind.PROVED else prover.check
        take({key: Run(step.arrays, arity, words)})
    if step.job.begin:
        tell(step, Kind.CHECK, prover.check(runs_of(step.goals)))
    if step.job.searching:
        tell(step, Kind.PROVED, prover.saturate())
        if not step.job.begin:
            tell(step, Kind.CHECK, prover.look_back(step.relations))
            tell(step, Kind.PROVED, prover.saturate())
        if prover.unexpanded():
            step.post(step.shard, Kind.CALL, "", 0, step.arrays.empty(0))
    step.goals = {key: Relation(run) for key, run in prover.open(runs_of(step.goals)).items()}


def exchange(step: Superstep, inbox: pa.Table) -> None:
    """Take facts in and let facts go as the mail says, and nothing else: what follows is said there too."""
    for _, key, arity, words in mail.read(inbox, (Kind.RETRACT,)):
        retract(step, key, Run(step.arrays, arity, words))
    going = [(key, run) for key, run in runs_of(step.relations).items() if key in step.job.drop]
    for key in step.job.drop:
        step.explicit.pop(key, None)
    going += [(key, Run(step.arrays, arity, words)) for _, key, arity, words in mail.read(inbox, (Kind.GONE,))]
    for key, run in going:
        step.take_out(key, run)
    step.receive(inbox)


class ShardRetreat(Retreat):
    """Decides about the facts that its shard owns, and asks the owners of others."""

    def __init__(self, step: Superstep, old: Mapping[Key, Relation]) -> None:
        super().__init__(step.fixpoint.kernel, old, lambda key, run: run.without(step.explicit.get(key)))
        self.step = step
        self.derived_here = derives(step.job.components)
        if step.job.keep == Keep.PROVED:
            self.doom_all = self.aim

    def doubt(self, key: Key, run: Run) -> None:
        """Decide about facts that are explicit no longer, or have lost an instance at another shard."""
        relation = self.relations.get(key)
        if relation is None:
            return
        run = self.doom(key, run.within(relation))
        if len(run) and self.step.job.keep == Keep.PROVED and self.derived_here(key):
            self.aim({key: run})
        elif len(run):
            self.dismiss(key, run)

    def aim(self, runs: Mapping[Key, Run]) -> dict[Key, Run]:
        """Let nothing go before a proof was looked for; what has one needs no other."""
        step = self.step
        for key, run in runs.items():
            run = run.without(step.search.proved.get(key)).without(step.goals.get(key))
            if len(run):
                step.goals[key] = step.goals[key].add(run) if key in step.goals else Relation(run)
        return {}

    def dismiss(self, key: Key, run: Run) -> None:
        """A fact that this shard owns goes, here and everywhere."""
        tell(self.step, Kind.GONE, {key: run})
        self.leave(key, run)

    def leave(self, key: Key, run: Run) -> None:
        """A fact goes that may live here or not."""
        self.step.remember(key, run)
        relation = self.relations.get(key)
        if relation is not None:
            self.depart({key: run.within(relation)})

    def doubted(self, key: Key, arity: int, words: Words) -> Words:
        """Ask owners about facts that have lost an instance here, unless it is known what becomes of them."""
        step, run = self.step, Run(self.arrays, arity, words)
        for known in (step.lost, step.search.proved):
            run = run.without(known.get(key))
        owner = step.job.placement.owner(self.arrays, arity, run.words)
        for number in range(step.job.placement.shards):
            away = run.where(owner == number)
            if number != step.shard and len(away):
                step.post(number, Kind.DOUBT, key, arity, away.words)
        return run.where(owner == step.shard).words

    def let_go(self, key: Key, run: Run) -> None:
        tell(self.step, Kind.GONE, {key: run})
        self.step.remember(key, run)
        super().let_go(key, run)


def retract(step: Superstep, key: Key, run: Run) -> Run:
    """Make facts that this shard owns cease to be explicit; returns those that were."""
    known, relation = step.explicit.get(key), step.relations.get(key)
    nothing = step.arrays.xp.zeros(len(run), bool)
    was = known.contains(run.words) if known is not None else nothing
    there = relation.contains(run.words) if relation is not None else nothing
    step.missed["absent"] += int((~there).sum())
    step.missed["derived"] += int((there & ~was).sum())
    if known is not None:
        step.explicit[key] = known.remove(run.where(was))
    return run.where(was)


def tell(step: Superstep, kind: Kind, runs: Mapping[Key, Run]) -> None:
    """Send facts to every other shard."""
    for key, run in runs.items():
        for number in range(step.job.placement.shards):
            if number != step.shard:
                step.post(number, kind, key, run.arity, run.words)
