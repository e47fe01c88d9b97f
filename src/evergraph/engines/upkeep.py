"""One update at one shard when facts may go: the steps that maintenance algorithms are made of, stratum by stratum.

    retreat(s):  what lost its support goes, as far as the algorithm lets it
    advance(s):  what is new arrives with its consequences; what went and still follows comes back

Invariant: before stratum s, everything below it is settled: the net difference between the facts at the beginning of the
update and those there now is what came and what went. A fact that went and came back is in neither.
"""

from __future__ import annotations

from collections.abc import Mapping

from evergraph.engines.base import Keep
from evergraph.engines.fixpoint import Fixpoint
from evergraph.engines.prove import Prover, unsettled
from evergraph.engines.relation import Relation, Run
from evergraph.engines.retreat import Retreat, rederive
from evergraph.engines.shard import FEW, Shard
from evergraph.plan.model import Key
from evergraph.plan.schedule import Component

Relations = Mapping[Key, Relation]


class Net:
    """What has changed since the update began."""

    def __init__(self, shard: Shard, old: Relations) -> None:
        self.shard, self.old = shard, old
        self.touched: set[Key] = set()
        """Relations that have gained or lost facts."""
        self.doubtful: dict[Key, Run] = {}
        """Facts that are no longer explicit. The first stratum decides: what only a later one derives goes, and comes back."""
        self._left: dict[Key, Relation] = {}
        """What the last retreat let go."""
        self.rounds = 0

    def came(self) -> dict[Key, Relation]:
        """What is there and was not, by relation. Cost: the change."""
        return self._net(self.shard.relations, self.old)

    def went(self) -> dict[Key, Relation]:
        return self._net(self.old, self.shard.relations)

    def _net(self, some: Relations, others: Relations) -> dict[Key, Relation]:
        out = {}
        for key in self.touched & some.keys():
            words = some[key].less(others.get(key))
            if len(words[0]):
                out[key] = Relation(Run(self.shard.arrays, some[key].arity, words))
        return out

    def _apply(self, gone: Mapping[Key, Run]) -> None:
        """Take facts out of the present state that are still in it."""
        for key, run in gone.items():
            now = self.shard.relations[key]
            self.shard.relations[key] = now.remove(run.within(now))
            self.touched.add(key)

    def _not_explicit(self, key: Key, run: Run) -> Run:
        return run.without(self.shard.explicit.get(key))


class Upkeep(Net):
    """An update by deletion and rederivation, or by proofs."""

    def __init__(self, shard: Shard, old: Relations) -> None:
        super().__init__(shard, old)
        self._components = [scheduler.last for scheduler in shard.schedulers]
        self._able = [(scheduler.able,) for scheduler in shard.schedulers]
        """The rules of each stratum as they could fire when the update began: by these instances are lost."""

    # -- going -------------------------------------------------------------------------------------------------------

    def retreat(self, stratum: int, keep: Keep) -> None:
        """Let facts of this stratum go: those in doubt, and those whose instances used something that went."""
        came, below = self.came(), self.went()
        few = sum(len(r) for runs in (came, below, self.doubtful) for r in runs.values()) <= FEW
        components = self._able[stratum] if few else self._components[stratum]
        derived_here = unsettled(components, {*came, *below, *self.doubtful})
        retreat = Retreat(self.shard.kernel, self.old, self._not_explicit)
        retreat.depart({key: relation.base for key, relation in below.items()})
        doubtful, self.doubtful = self.doubtful, {}
        self._leave(retreat, {key: run for key, run in doubtful.items() if not derived_here(key)})
        prover = Prover(self.shard.kernel, components, self.shard.relations, self.shard.explicit, derived_here)
        retreat.doom_all = prover.not_evident
        if keep == Keep.PROVED:
            retreat.doom_all = lambda goals: prover.unproved(goals, retreat.relations)
        self._leave(retreat, retreat.doom_all({key: run for key, run in doubtful.items() if derived_here(key)}))
        retreat.lose_to(components, came)
        retreat.close(components, False)
        self.rounds += retreat.rounds
        self._left = {key: Relation(run.without(below.get(key))) for key, run in retreat.arrived.items()}
        self._apply(retreat.arrived)

    def _leave(self, retreat: Retreat, runs: Mapping[Key, Run]) -> None:
        retreat.depart(runs)
        self._apply(runs)

    # -- coming ------------------------------------------------------------------------------------------------------

    def advance(self, stratum: int) -> None:
        """Draw the consequences of what came, and bring back what went and still follows.

        Lower strata are settled, but what this one let go they may derive too: a variable predicate may be any.
        """
        shard, scheduler = self.shard, self.shard.schedulers[stratum]
        came, went = self.came(), self.went()
        fixpoint = Fixpoint(shard.kernel, shard.relations, shard.sieve)
        for key, relation in came.items():
            fixpoint.before[key] = shard.relations[key].remove(relation.base)
            fixpoint.arrived.add(key, relation.base)
        for lower in shard.schedulers[:stratum]:
            fixpoint.insert(rederive(shard.kernel, (lower.able,), self._left, shard.relations))
        if sum(len(r) for runs in (came, went) for r in runs.values()) <= FEW:
            self._advance(fixpoint, (scheduler.able_after(fixpoint.arrived),), went)
            scheduler.forget_if_changed(went)
        else:
            self._advance(fixpoint, scheduler.schema, went)
            scheduler.forget_if_changed(went)
            self._advance(fixpoint, scheduler.schedule(fixpoint.arrived, False).components, went)
        self.touched |= set(fixpoint.arrived)
        self.rounds += fixpoint.rounds

    def _advance(self, fixpoint: Fixpoint, components: tuple[Component, ...], went: dict[Key, Relation]) -> None:
        fixpoint.insert(rederive(self.shard.kernel, components, went, self.shard.relations))
        fixpoint.gain_from(components, went)
        fixpoint.close(components, False)
