"""The r-materialisation of the explicit facts that stay, confined to checked facts (Motik et al. 2015, Algorithms 5 to 7).

    (γ, P)   names and normalised facts that follow from E′ by proofs whose facts, as π has them, are all in C
    Y        facts that follow from P but whose representative nobody has asked about yet

In words: a small graph of its own, with equality by representatives like the large one, which takes in only what is asked
about. Checking more facts lets explicit ones in, and those that have been waiting; then it is closed again, from there on.

Invariant: γ never merges names that π keeps apart, so that a fact of P has one representative in the large graph.
"""

from __future__ import annotations

from collections.abc import Mapping

from evergraph.engines.arrays import U64, Array, Words
from evergraph.engines.equality.merging import equalities, normalised, rename
from evergraph.engines.equality.names import Names
from evergraph.engines.relation import Relation, Run
from evergraph.engines.sets import Runs, join, join_runs
from evergraph.engines.shard import Shard
from evergraph.plan.compile import Plan
from evergraph.plan.equality import constants, reflexive, renamed
from evergraph.plan.model import Key
from evergraph.plan.schedule import Component, looped


class Restricted:
    def __init__(self, plan: Plan, names: Names, same: int, idle: bool) -> None:
        """`plan` is that of the rules as they were written, `names` are those of the large graph.

        Where equalities are `idle`, nobody asks whether a name that stands for itself only is the same as itself.
        """
        self.plan, self.outer, self.same = plan, names, same
        self._less = frozenset(reflexive(same)) if idle else frozenset()
        self.shard = Shard(plan, names.arrays.xp, self._sieve)
        self.names = Names.none(names.arrays)
        self.checked: dict[Key, Relation] = {}
        self.some: dict[Key, Relation] = {}
        """Representatives in the large graph of facts that follow: at least one of what each stands for does."""
        self._waiting: dict[tuple[Key, int], list[Words]] = {}
        """By relation and arity."""
        self._whole = names.arrays.xp.empty(0, U64)
        """Cliques of the large graph whose names are all the same here."""
        self._named = constants(plan)
        self._component = self._loop()

    def check(self, facts: Mapping[Key, Run], explicit: Mapping[Key, Run]) -> None:
        """Ask about facts of the large graph, of which these explicit facts are; and draw the consequences."""
        for key, run in facts.items():
            known = self.checked.get(key)
            self.checked[key] = Relation(run) if known is None else known.add(run)
        join_runs(ready := self._ready(), explicit)
        self.shard.begin()
        self.shard.fixpoint.insert(normalised(self.names, ready))
        self._grow()

    def _ready(self) -> Runs:
        """What has been waiting and is now asked about."""
        waiting, self._waiting = self._waiting, {}
        out: Runs = {}
        for (key, arity), parts in waiting.items():
            accepted = self._sieve(key, arity, self.shard.arrays.unique(parts))
            if len(accepted[0]):
                out[key] = Run(self.shard.arrays, arity, accepted)
        return out

    def _sieve(self, key: Key, arity: int, words: Words) -> Words:
        """The rows whose representative is checked; the others wait."""
        arrays = self.shard.arrays
        normal = arrays.pack([self.outer.of(arrays.column(words, i)) for i in range(arity)], len(words[0]))
        known = self.checked.get(self.outer.name(key) if isinstance(key, int) else key)
        mask = known.contains(normal) if known is not None else arrays.xp.zeros(len(words[0]), bool)
        if not bool(mask.all()):
            self._waiting.setdefault((key, arity), []).append(tuple(w[~mask] for w in words))
        return tuple(w[mask] for w in words)

    def _grow(self) -> None:
        """Close under the rules and under equality, from what arrived."""
        shard, pending, full = self.shard, True, False
        while True:
            left, right = equalities(shard.kernel, shard.relations, shard.fixpoint.arrived, self.same)
            if len(left):
                self._note()
                before = self.names
                self.names, changed = before.merged(left, right, self.same)
                self._find_whole(changed)
                shard.kernel.names = self.names
                rename(shard, changed, True, pending)
                if not self._named.isdisjoint(self.names.less(before).tolist()):
                    shard.plan = renamed(self.plan, self.names.name)
                    self._component = self._loop()
                    full = True
                pending = True
            elif pending:
                shard.fixpoint.close((self._component,), full)
                pending = full = False
            else:
                self._note()
                return

    def _loop(self) -> Component:
        """The rules, with the names that they have by now."""
        return looped(rule for rule in self.shard.plan.strata[0].rules if rule not in self._less)

    def _note(self) -> None:
        join(self.some, normalised(self.outer, self.shard.fixpoint.arrived))

    # -- what is known -----------------------------------------------------------------------------------------------

    def unproved(self, facts: Mapping[Key, Run]) -> Runs:
        """Facts of the large graph of which not everything they stand for follows, or whose names are no longer one.

        A clique that is whole is the same as itself: what made it so mentions its names.
        """
        out: Runs = {}
        for key, run in facts.items():
            arrays, columns = run.arrays, [run.column(i) for i in range(run.arity)]
            relation = self.shard.relations.get(self.names.name(key) if isinstance(key, int) else key)
            there = arrays.xp.zeros(len(run), bool)
            if relation is not None:
                there = relation.contains(arrays.pack([self.names.of(c) for c in columns], len(run)))
            if key == self.same:
                there |= (columns[0] == columns[1]) & ~self.outer.alone(columns[0])
            for column in (*columns, *([arrays.xp.asarray([key], dtype=U64)] if isinstance(key, int) else ())):
                there &= self.whole(column)
            if not bool(there.all()):
                out[key] = run.where(~there)
        return out

    def whole(self, column: Array) -> Array:
        """For each representative of the large graph, whether all that it stands for is still the same."""
        out = self.outer.alone(column)
        return out if bool(out.all()) else out | self.shard.arrays.contains((self._whole,), (column,))

    def _find_whole(self, changed: Names) -> None:
        """Which cliques have become whole with these names. Cost: the names of those that these are of."""
        arrays = self.shard.arrays
        cliques = arrays.distinct(self.outer.of(changed.moved))
        place, members = self.outer.members(cliques)
        apart = place[self.names.of(members) != self.names.of(cliques)[place]]
        whole = arrays.xp.ones(len(cliques), bool)
        whole[apart] = False
        self._whole = arrays.distinct(arrays.xp.concatenate([self._whole, cliques[whole]]))

    def disproved(self, facts: Mapping[Key, Run]) -> Runs:
        """Facts of the large graph of which nothing that they stand for follows, as far as is known."""
        found = {key: run.without(self.some.get(key)) for key, run in facts.items()}
        return {key: run for key, run in found.items() if len(run)}
