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
from evergraph.engines.equality.explicit import Explicit
from evergraph.engines.equality.merging import mentioning, normalised
from evergraph.engines.equality.names import Names
from evergraph.engines.equality.restricted import Restricted, Runs, join, join_runs, runs_of
from evergraph.engines.fixpoint import Fed, Fixpoint, Found
from evergraph.engines.kernel import Kernel, Table
from evergraph.engines.relation import Relation, Run
from evergraph.plan.compile import Plan
from evergraph.plan.equality import is_group, reflexive
from evergraph.plan.model import Key, PlanRule
from evergraph.plan.schedule import Task, one_loop

Relations = Mapping[Key, Relation]


class Unravelling(Fixpoint):
    """One deletion. `relations` are those of the graph, less what is lost."""

    def __init__(self, kernel: Kernel, held: Relations, explicit: Explicit, names: Names, plans: tuple[Plan, Plan]) -> None:
        """`plans` are those of the rules as they were written, and with the names of the graph."""
        super().__init__(kernel, dict(held))
        written, current = plans
        assert written.same is not None
        self.same, self.names, self.explicit = written.same, names, explicit
        self.held, self.left = held, dict(held)
        """All facts; and those that may take part in a proof: S is left out."""
        itself = set(reflexive(self.same))
        self.rules = [rule for rule in current.strata[0].rules if rule not in itself]
        self.component = one_loop(Task(rule, None, (), False) for rule in self.rules)
        self.known = Restricted(written, names, self.same)
        self.expanded: dict[Key, Relation] = {}
        self.doubtful: dict[Key, Relation] = {}
        self.heads: Runs = {}

    def run(self, goals: Runs) -> tuple[Names, Runs, Runs]:
        """What becomes of the names; the facts that come and those that go. `goals` are in normal form."""
        goals = self._there(goals)
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
        names = self._names_of(lost)
        join_runs(self.heads, self._reflexive(self.held, names))
        parted = self._cliques(self._itself(lost))
        if len(parted):
            join_runs(self.heads, self._mentioning(self.relations, parted))
        return self.heads

    def _absorb(self, tasks: tuple[Task, ...], found: Found, feed: bool) -> Fed | None:
        self.heads = found.runs(self.arrays, self.held)
        return None

    def _there(self, runs: Mapping[Key, Run]) -> Runs:
        found = {key: run.within(self.held[key]) for key, run in runs.items() if key in self.held}
        return {key: run for key, run in found.items() if len(run)}

    def _new(self, runs: Mapping[Key, Run]) -> Runs:
        """Those of the graph that have not been in doubt."""
        found = {key: run.without(self.doubtful.get(key)) for key, run in self._there(runs).items()}
        return {key: run for key, run in found.items() if len(run)}

    # -- whether it follows --------------------------------------------------------------------------------------------

    def _unproved(self, goals: Runs) -> Runs:
        """Look backward, level by level, until every goal is proved or nothing is left to look at (Algorithm 4)."""
        self._check(goals)
        while True:
            rest = self.known.unproved(goals)
            if not rest:
                return rest
            frontier = self._unexpanded()
            if not frontier:
                for key, run in self.known.disproved(runs_of(self.expanded)).items():
                    self.left[key] = self.left[key].remove(run.within(self.left[key]))
                return rest
            join(self.expanded, frontier)
            self._check(self._behind(frontier))

    def _unexpanded(self) -> Runs:
        """Facts that are checked, not proved, and not expanded."""
        found = {key: run.without(self.expanded.get(key)) for key, run in runs_of(self.known.checked).items()}
        return self.known.unproved({key: run for key, run in found.items() if len(run)})

    def _check(self, facts: Mapping[Key, Run]) -> Runs:
        """Ask about facts that nobody has asked about; what is explicit of them follows (lines 36 to 40)."""
        found = {key: run.without(self.known.checked.get(key)) for key, run in facts.items()}
        new = {key: run for key, run in found.items() if len(run)}
        if not new:
            return new
        given = self.explicit.behind(new)
        names = self._itself(new)
        if len(names):
            _, members = self.names.members(names)
            members = self.arrays.distinct(members)
            members = members[self.explicit.mentioned(members)]
            join_runs(given, {self.same: Run(self.arrays, 2, (members << SHIFT | members,))})
        self.known.check(new, given)
        return new

    def _behind(self, facts: Runs) -> Runs:
        """The facts that instances for these use (lines 25 to 34)."""
        asked, found = Delta.of(facts), Found()
        for rule in self.rules:
            if rule.head.relation in asked or rule.head.open:
                take = partial(self._take, rule, found)
                self.kernel.bindings(rule.asked, rule.variables, [asked, *[self.left] * len(rule.body)], self.held, take)
        out = found.runs(self.arrays, self.left)
        join_runs(out, self._reflexive(self.left, self._cliques(self._names_of(facts, triples=False))))
        names = self._itself(facts)
        join_runs(out, self._groups(self._cliques(names)))
        unseen = self._unseen(names)
        if len(unseen):
            join_runs(out, self._mentioning(self.left, unseen))
        return out

    def _take(self, rule: PlanRule, found: Found, table: Table) -> None:
        for atom in rule.body:
            words = self.arrays.pack([table.value(a) for a in atom.args], table.count)
            for key, rows in self.kernel.cut(atom, table, words):
                found.emit(key, rows)

    def _unseen(self, names: Array) -> Array:
        """Representatives that stand for a name which only derived facts mention: one of those must follow."""
        if not len(names):
            return names
        place, members = self.names.members(names)
        return names[self.arrays.distinct(place[~self.explicit.mentioned(members)].astype(U64))]

    def _groups(self, cliques: Array) -> Runs:
        """Rows of groups that may have made names the same."""
        out: Runs = {}
        for key, relation in self.left.items():
            if is_group(key) and len(cliques):
                found = mentioning(relation, cliques)
                out[key] = found.where(self.arrays.contains((cliques,), (found.column(found.arity - 1),)))
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

    def _mentioning(self, relations: Relations, names: Array) -> Runs:
        out: Runs = {}
        for key, relation in relations.items():
            if isinstance(key, int) and bool((names == U64(key)).any()):
                found = Run(self.arrays, relation.arity, relation.rows())
            else:
                found = mentioning(relation, names)
            if len(found):
                out[key] = found
        return out

    # -- what it comes to ----------------------------------------------------------------------------------------------

    def _changes(self) -> tuple[Names, Runs, Runs]:
        """Algorithm 2: names and facts as they are now."""
        names = self._parted()
        now = normalised(names, runs_of(self.known.shard.relations))
        came = {key: run.without(self.held.get(key)) for key, run in now.items()}
        went = {key: run.without(now.get(key)) for key, run in runs_of(self.doubtful).items()}
        return names, {k: run for k, run in came.items() if len(run)}, {k: run for k, run in went.items() if len(run)}

    def _parted(self) -> Names:
        """The names of cliques in doubt as the search has them."""
        doubted = self.doubtful.get(self.same)
        if doubted is None:
            return self.names
        cliques = self._cliques(self._itself({self.same: Run(self.arrays, 2, doubted.rows())}))
        if not len(cliques):
            return self.names
        _, members = self.names.members(cliques)
        others = ~self.arrays.contains((self.arrays.distinct(members),), (self.names.moved,))
        xp = self.arrays.xp
        moved = xp.concatenate([self.names.moved[others], members])
        return Names.of_pairs(
            self.arrays, moved, xp.concatenate([self.names.represented[others], self.known.names.of(members)])
        )
