"""What goes, and which names part, when explicit facts have gone: B/F≈ by sets (Motik et al. 2015, Algorithms 1 to 4).

    D   facts in doubt: those that stood for what is explicit no longer, and what may follow from one that is lost
    C   facts checked, O expanded: the instances behind them have been looked at; S disproved: nothing they stand for follows

In words: a fact in doubt is kept if all that it stands for still follows from the explicit facts, which a search backward over
the graph and forward in `Restricted` finds out. If not, everything that it helped to derive is in doubt as well, and so are its
names: whether a name is still the same as others is a fact like any. When nothing is in doubt any more, the doubtful facts give
way to what `Restricted` has of them, under the names that it has.

The optimisations of §3.2: a name that an explicit fact mentions is equal to itself without a search; each instance is looked at
once, because lost facts leave the relations that the search forward reads; disproved facts are left out of the search backward;
names that stand for themselves only take no part in replacement. Rules whose relations are empty are passed by at once.
Departures: whole sets, level by level; a search stops when every goal is proved, so a fact may be checked and not expanded.
Cost: the facts in doubt, what they stand for, and the instances behind and before them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from evergraph.engines.arrays import SHIFT, U64, Array
from evergraph.engines.delta import Delta
from evergraph.engines.equality.certain import Certain
from evergraph.engines.equality.explicit import Explicit
from evergraph.engines.equality.idle import brings, lively, reads, unmentioned
from evergraph.engines.equality.merging import about, few_mentioning, having, normalised
from evergraph.engines.equality.names import Names
from evergraph.engines.equality.restricted import Restricted
from evergraph.engines.fixpoint import Fed, Fixpoint, Found
from evergraph.engines.kernel import Kernel
from evergraph.engines.prove import emit_atoms
from evergraph.engines.relation import Relation, Run
from evergraph.engines.retreat import rederive
from evergraph.engines.sets import Runs, join, join_runs, runs_of, with_runs
from evergraph.plan.compile import Plan
from evergraph.plan.equality import brought, is_group, reflexive
from evergraph.plan.model import Key
from evergraph.plan.schedule import Task, looped

Relations = Mapping[Key, Relation]
MORE = 16
"""How many times more facts are looked at than before, where one is enough."""


class Unravelling(Fixpoint):
    """One deletion. `relations` are those of the graph, less what is lost."""

    def __init__(self, kernel: Kernel, held: Relations, explicit: Explicit, names: Names, plans: tuple[Plan, Plan]) -> None:
        """`plans` are those of the rules as they were written, and with the names of the graph."""
        super().__init__(kernel, dict(held))
        written, current = plans
        assert written.same is not None
        self.same, self.names, self.explicit = written.same, names, explicit
        itself = set(reflexive(self.same))
        self.rules = [rule for rule in current.strata[0].rules if rule not in itself]
        self.held, self.left = held, {**held, **lively(self.rules, held, held, names)}
        """All facts; and those that may take part in a proof: S is left out, and so are idle rules."""
        self.component = looped(self.rules)
        self.idle = not (reads(self.rules, held, self.same) or brings(self.rules, held, self.same))
        """Whether equalities derive nothing: then c ≈ c holds while something mentions c, and is decided when all else is."""
        self.known = Restricted(written, names, self.same, self.idle)
        rules = [rule for rule in written.strata[0].rules if rule not in itself]
        self.written = looped(rules)
        self.certain = Certain({**explicit.facts, **lively(rules, explicit.facts, held, names)}, self.known.shard)
        self.fresh: Runs = {}
        """Facts that are checked, and behind which nobody has looked."""
        self.expanded: dict[Key, Relation] = {}
        self.doubtful: dict[Key, Relation] = {}
        self.heads: Runs = {}
        self.dropped: list[Array] = []
        self.exhausted = self.arrays.xp.empty(0, U64)
        """Names of which every fact that mentions them has been asked about."""
        self.patience = 1

    def run(self, goals: Runs) -> tuple[Names, Runs, Runs]:
        """What becomes of the names; the facts that come and those that go. `goals` are in normal form."""
        goals = self._new(goals)
        while goals:
            self.rounds += 1
            lost = self._unproved(goals)
            join(self.doubtful, goals)
            goals = self._new(self._consequences(lost)) if lost else {}
        return self._changes()

    # -- what is in doubt next -----------------------------------------------------------------------------------------

    def _consequences(self, lost: Runs) -> Runs:
        """What may follow from facts that are lost (lines 9 to 15)."""
        older = {key: self.relations[key] for key in lost}
        for key, run in lost.items():
            self.relations[key] = older[key].remove(run)
        self.heads = {}
        self._round(self.component, lost, older, {}, first=True)
        join_runs(self.heads, self._reflexive(self.held, self._names_of(lost)))
        parted = self._cliques(self._itself(lost))
        if len(parted):
            join_runs(self.heads, about(self.relations, parted))
        return self.heads

    def _absorb(self, tasks: tuple[Task, ...], found: Found, feed: bool) -> Fed | None:
        self.heads = found.runs(self.arrays, self.held)
        return None

    def _there(self, runs: Mapping[Key, Run]) -> Runs:
        found = {key: run.within(self.held[key]) for key, run in runs.items() if key in self.held}
        return {key: run for key, run in found.items() if len(run)}

    def _new(self, runs: Mapping[Key, Run]) -> Runs:
        """Those of the graph that have not been in doubt; whether idle equalities hold is decided at the end."""
        found = {key: run.without(self.doubtful.get(key)) for key, run in self._there(runs).items()}
        if self.idle and self.same in found:
            equal = found[self.same]
            alone = self.names.alone(equal.column(0))
            self.dropped.append(equal.column(0)[alone])
            found[self.same] = equal.where(~alone)
        return {key: run for key, run in found.items() if len(run)}

    # -- whether it follows --------------------------------------------------------------------------------------------

    def _unproved(self, goals: Runs) -> Runs:
        """Look backward, level by level, until every goal is proved or nothing is left to look at (Algorithm 4)."""
        self._check(goals)
        self.patience = 1
        rest = goals
        while True:
            rest = self.known.unproved(rest)
            if not rest:
                return rest
            frontier, self.fresh = self.known.unproved(self.fresh), {}
            behind = self._behind(frontier) if frontier else {}
            join(self.expanded, frontier)
            unseen = self._unseen()
            if len(unseen):
                join_runs(behind, self._some_mentioning(unseen))
            if not (frontier or len(unseen)):
                for key, run in self.known.disproved(runs_of(self.expanded)).items():
                    self.left[key] = self.left[key].remove(run.within(self.left[key]))
                return rest
            self._check(behind)

    def _check(self, facts: Mapping[Key, Run]) -> None:
        """Ask about facts that nobody has asked about; what is explicit of them follows (lines 36 to 40)."""
        new = self._unchecked(facts)
        if not new:
            return
        join_runs(self.fresh, new)
        join_runs(new, self._support(new))
        given = self.explicit.behind(new)
        names = self._itself(new)
        if len(names):
            _, members = self.names.members(names)
            members = self.arrays.distinct(members)
            members = members[self.explicit.mentioned(members)]
            join_runs(given, {self.same: Run(self.arrays, 2, (members << SHIFT | members,))})
        join_runs(given, self._evident(new, given))
        self.known.check(new, given)

    def _unchecked(self, facts: Mapping[Key, Run]) -> Runs:
        found = {key: run.without(self.known.checked.get(key)) for key, run in facts.items()}
        return {key: run for key, run in found.items() if len(run)}

    def _support(self, facts: Runs) -> Runs:
        """What may have made the names of facts the same: needed for every one of them, and so asked about with them."""
        cliques = self._cliques(self._names_of(facts, triples=False))
        equal = self._unchecked(self._reflexive(self.left, cliques)) if len(cliques) else {}
        if not equal:
            return {}
        groups = self._unchecked(self._groups(self._itself(equal)))
        join_runs(equal, groups)
        out = self._unchecked(self._bodies(equal))
        join(self.expanded, equal)
        join_runs(self.fresh, {key: run.without(facts.get(key)) for key, run in out.items()})
        join_runs(out, equal)
        return out

    def _evident(self, facts: Runs, given: Runs) -> Runs:
        """Facts that a rule derives at once from what is explicit or known to follow: nothing behind them need be checked.

        Facts of whose names others are the same stand for more than one, and are left to the search.
        """
        alone = {key: self._alone(key, run).without(given.get(key)) for key, run in facts.items()}
        asked = {key: Relation(run) for key, run in alone.items() if len(run)}
        return rederive(self.known.shard.kernel, (self.written,), asked, self.certain) if asked else {}

    def _alone(self, key: Key, run: Run) -> Run:
        mask = self.arrays.xp.ones(len(run), bool)
        for column in (run.column(i) for i in range(run.arity)):
            mask &= self.names.alone(column)
        if isinstance(key, int):
            mask &= self.names.alone(self.arrays.xp.asarray([key], dtype=U64))
        return run.where(mask)

    def _behind(self, facts: Runs) -> Runs:
        """The facts that instances for these use, and those about their names (lines 25 to 34)."""
        out = self._bodies(facts)
        join_runs(out, self._reflexive(self.left, self._cliques(self._names_of(facts, triples=False))))
        join_runs(out, self._groups(self._cliques(self._itself(facts))))
        return out

    def _bodies(self, facts: Runs) -> Runs:
        """The facts that instances of rules for these use."""
        asked, found = Delta.of(facts), Found()
        for rule in self.rules:
            if rule.head.relation in asked or rule.head.open:
                take = partial(emit_atoms, self.kernel, rule.body, found)
                self.kernel.bindings(rule.asked, rule.variables, [asked, *[self.left] * len(rule.body)], self.held, take)
        return found.runs(self.arrays, self.left)

    def _unseen(self) -> Array:
        """Names c of unproved c ≈ c that only derived facts mention: one of those must follow.

        Of cliques the facts that make their names the same are looked for, and mention them. Names of which all facts that
        mention them are checked have no more to look at.
        """
        checked = self.known.checked.get(self.same)
        equal: Runs = {} if checked is None else runs_of({self.same: checked})
        names = self._itself(self.known.unproved(equal))
        names = names[self.names.alone(names) & ~self.arrays.contains((self.exhausted,), (names,))]
        return names[~self.explicit.mentioned(names)]

    def _some_mentioning(self, names: Array) -> Runs:
        """Some facts that mention each of these names, more each time: one that follows is enough."""
        self.patience *= MORE
        out: Runs = {}
        all_seen = self.arrays.xp.ones(len(names), bool)
        for key, relation in self.left.items():
            if not isinstance(key, int):
                continue
            found, complete = few_mentioning(relation, names, self.patience)
            all_seen &= complete
            at = self.arrays.xp.flatnonzero(names == U64(key))
            if len(at):
                words = relation.rows()
                found = Run(self.arrays, 2, self.arrays.unique([found.words, tuple(w[: self.patience] for w in words)]))
                all_seen[at] &= len(relation) <= self.patience
            if len(found):
                out[key] = found
        self.exhausted = self.arrays.distinct(self.arrays.xp.concatenate([self.exhausted, names[all_seen]]))
        return out

    def _groups(self, cliques: Array) -> Runs:
        """Rows of groups that may have made names the same."""
        out: Runs = {}
        for key, relation in self.left.items():
            if is_group(key) and len(cliques):
                out[key] = having(relation, relation.arity - 1, cliques)
        return {key: run for key, run in out.items() if len(run)}

    # -- names ---------------------------------------------------------------------------------------------------------

    def _names_of(self, facts: Runs, triples: bool = True) -> Array:
        """The names of triples, and what stands last in groups; or those of all facts."""
        found = [self.arrays.xp.empty(0, U64)]
        for key, run in facts.items():
            if isinstance(key, int):
                found += [self.arrays.xp.asarray([key], dtype=U64), run.column(0), run.column(1)]
            elif not triples:
                found += [run.column(i) for i in range(run.arity)]
            elif is_group(key):
                found.append(run.column(run.arity - 1))
        return self.arrays.distinct(self.arrays.xp.concatenate(found))

    def _itself(self, facts: Mapping[Key, Run]) -> Array:
        """The names c of facts c ≈ c."""
        run = facts.get(self.same)
        return run.column(0)[run.column(0) == run.column(1)] if run is not None else self.arrays.xp.empty(0, U64)

    def _cliques(self, names: Array) -> Array:
        """Those that stand for others too."""
        return names[~self.names.alone(names)]

    def _reflexive(self, relations: Relations, names: Array) -> Runs:
        """The facts c ≈ c that are there."""
        relation = relations.get(self.same)
        if relation is None or not len(names):
            return {}
        return {self.same: Run(self.arrays, 2, (names << SHIFT | names,)).within(relation)}

    # -- what it comes to ----------------------------------------------------------------------------------------------

    def _changes(self) -> tuple[Names, Runs, Runs]:
        """Algorithm 2: names and facts as they are now."""
        names = self._parted()
        now = normalised(names, runs_of(self.known.shard.relations))
        came = {key: run.without(self.held.get(key)) for key, run in now.items()}
        went = {key: run.without(now.get(key)) for key, run in runs_of(self.doubtful).items()}
        self._settle_idle(names, came, went)
        return names, {k: run for k, run in came.items() if len(run)}, {k: run for k, run in went.items() if len(run)}

    def _settle_idle(self, names: Names, came: Runs, went: Runs) -> None:
        """Let c ≈ c hold for names that something mentions, and go for those that nothing does, of names that were in doubt.

        Cost: a search for each name that no explicit fact mentions.
        """
        if not self.idle:
            return
        arrays, xp = self.arrays, self.arrays.xp
        _, parted = self.names.members(self._doubted())
        asked = arrays.distinct(xp.concatenate([xp.asarray([self.same], dtype=U64), names.of(parted), *self.dropped]))
        now = with_runs({**self.held, **{key: self.held[key].remove(run) for key, run in went.items()}}, came)
        rest = asked[~self.explicit.mentioned(asked)]
        may = self._from_rules(rest)
        gone = arrays.distinct(xp.concatenate([rest[~may], unmentioned(now, rest[may], self.same, self.known.plan.type_id)]))
        held = self.held.get(self.same, Relation(Run(arrays, 2, arrays.empty(2))))
        stays = asked[~arrays.contains((gone,), (asked,))]
        more, less = (Run(arrays, 2, (some << SHIFT | some,)) for some in (stays, gone))
        for runs, run, others in ((came, more.without(held), less), (went, less.within(held), more)):
            if self.same in runs:
                runs[self.same] = runs[self.same].without(others)
            join_runs(runs, {self.same: run})

    def _from_rules(self, names: Array) -> Array:
        """Which names derived facts may mention though no explicit fact does: those of rules, and of named facts."""
        where = brought(self.known.plan)
        if where.anywhere:
            return self.arrays.xp.ones(len(names), bool)
        sources = (self.held, self.explicit.facts)
        given = [source[key].columns()[place] for key, place in where.columns for source in sources if key in source]
        ids = self.arrays.xp.asarray(sorted({*where.ids, self.same}), dtype=U64)
        constants = self.arrays.distinct(self.arrays.xp.concatenate([ids, self.names.of(ids), *given]))
        return self.arrays.contains((constants,), (names,))

    def _doubted(self) -> Array:
        """The cliques that were in doubt."""
        doubted = self.doubtful.get(self.same)
        equal: Runs = {} if doubted is None else runs_of({self.same: doubted})
        return self._cliques(self._itself(equal))

    def _parted(self) -> Names:
        """The names of cliques in doubt as the search has them."""
        cliques = self._doubted()
        if not len(cliques):
            return self.names
        _, members = self.names.members(cliques)
        others = ~self.arrays.contains((self.arrays.distinct(members),), (self.names.moved,))
        xp = self.arrays.xp
        moved = xp.concatenate([self.names.moved[others], members])
        return Names.of_pairs(
            self.arrays, moved, xp.concatenate([self.names.represented[others], self.known.names.of(members)])
        )
