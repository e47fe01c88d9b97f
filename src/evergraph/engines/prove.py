"""Whether doubtful facts still follow: backward from them to explicit facts, forward again, whole sets at a time.

    forward:   P ← P ∪ {f ∈ C : a rule derives f from explicit facts, settled facts and P}, until nothing is new
    backward:  C ← C ∪ {body facts of instances for unproved f ∈ C}

In words: a fact is proved when a rule derives it from what is certain. Where that fails, the facts that its instances use are
checked as well, one level further back in each turn, so that a proof found early ends the search. When nothing is left to look
back at, what is unproved does not follow. One shard takes its turns in a loop (`unproved`); many take them together, and tell
each other what they check and what they have proved (`spark.departures`).

Invariant: `proved` follow from the explicit facts as they are now; `disproved` do not. Both stay so while facts go, because a
proof uses nothing that is in doubt. No fact is expanded twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from evergraph.engines.delta import Delta
from evergraph.engines.fixpoint import Found
from evergraph.engines.kernel import Kernel
from evergraph.engines.relation import Relation, Run
from evergraph.engines.retreat import rederive
from evergraph.engines.sets import join, runs_of
from evergraph.engines.table import Table
from evergraph.plan.model import Key, PlanAtom, is_variable
from evergraph.plan.schedule import Component

Relations = Mapping[Key, Relation]


def derives(components: tuple[Component, ...]) -> Callable[[Key], bool]:
    """Whether one of these rules may derive facts of a relation."""
    heads = frozenset(key for c in components for t in c.tasks for key in t.heads or (t.rule.head.relation,))
    any_triple = any(is_variable(head) for head in heads)
    return lambda key: key in heads or (any_triple and isinstance(key, int))


def unsettled(components: tuple[Component, ...], keys: Iterable[Key]) -> Callable[[Key], bool]:
    """Whether facts of a relation may go, or are in doubt, when facts of these relations have changed or are in doubt.

    In words: a relation that these rules derive, and that is one of those or depends on one. Negations count: a fact that comes
    may take one away. Cost: the rules, times the length of the longest way.
    """
    may_derive = derives(components)
    tasks = [task for component in components for task in component.tasks]
    seen = set(keys)
    size = -1
    while len(seen) > size:
        size = len(seen)
        triples = any(isinstance(key, int) or is_variable(key) for key in seen)
        for task in tasks:
            rule = task.rule
            if any(atom.relation in seen or (atom.open and triples) for atom in (*rule.body, *rule.negated)):
                seen.update(task.heads or (rule.head.relation,))
        if any(map(is_variable, seen)):
            return may_derive
    return lambda key: key in seen and may_derive(key)


class Search(NamedTuple):
    """How far a search is, by relation: facts asked about, those that follow, and those whose instances were looked at."""

    checked: dict[Key, Relation]
    proved: dict[Key, Relation]
    expanded: dict[Key, Relation]


class Prover:
    def __init__(
        self,
        kernel: Kernel,
        components: tuple[Component, ...],
        now: Relations,
        explicit: Relations,
        derived_here: Callable[[Key], bool],
        search: Search | None = None,
    ) -> None:
        """`now` holds what is settled: relations that are not `derived_here`. A search may go on where it was."""
        self.kernel, self.components, self.now, self.explicit = kernel, components, now, explicit
        self.derived_here = derived_here
        self.checked, self.proved, self.expanded = search or Search({}, {}, {})
        self.asked: dict[Key, Relation] = {}
        """Facts that no rule has been asked about."""
        self.news: dict[Key, Relation] = {}
        """Facts proved by others, which no rule has used."""
        self.certain: dict[Key, Relation] = {k: r for k, r in now.items() if not self.derived_here(k)}
        """What proofs may use: settled relations as they are; of others, explicit facts and what is proved."""
        self.certain |= {k: r for k, r in explicit.items() if self.derived_here(k)}
        join(self.certain, runs_of(self.proved))

    def unproved(self, goals: Mapping[Key, Run], held: Relations) -> dict[Key, Run]:
        """Of facts that `held` contains, those that do not follow. Cost: the instances looked at, some levels back."""
        self.check(goals)
        self.saturate()
        while self.open(goals) and self.look_back(held):
            self.saturate()
        return self.open(goals)

    def open(self, runs: Mapping[Key, Run]) -> dict[Key, Run]:
        """Facts that are not proved."""
        found = {key: run.without(self.proved.get(key)) for key, run in runs.items()}
        return {key: run for key, run in found.items() if len(run)}

    def check(self, runs: Mapping[Key, Run]) -> dict[Key, Run]:
        """Ask about facts; returns those that nobody has asked about."""
        new = join(self.checked, runs)
        join(self.asked, new)
        return new

    def learn(self, runs: Mapping[Key, Run]) -> None:
        """Take facts for proved that others have proved."""
        join(self.news, self._know(runs))

    def _know(self, runs: Mapping[Key, Run]) -> dict[Key, Run]:
        """Take facts for proved; returns those that were not."""
        join(self.certain, runs)
        return join(self.proved, runs)

    def saturate(self) -> dict[Key, Run]:
        """Prove what follows from what is certain, over and over; returns what is newly proved.

        A fact is asked about by all rules once; after that only rules that use something newly proved may help it.
        """
        fresh: dict[Key, Relation] = {}
        found = [self.evident(self.open(runs_of(self.asked))), self._helped(runs_of(self.news))]
        self.asked.clear()
        self.news.clear()
        while any(found):
            new: dict[Key, Relation] = {}
            for runs in found:
                join(new, self._know(runs))
            join(fresh, runs_of(new))
            found = [self._helped(runs_of(new))]
        return runs_of(fresh)

    def evident(self, facts: Mapping[Key, Run]) -> dict[Key, Run]:
        """Of some facts, those that are explicit or that rules derive from certain ones. Cost: a look at each by its rules."""
        asked = {key: Relation(run) for key, run in facts.items() if len(run)}
        found = rederive(self.kernel, self.components, asked, self.certain, self.now) if asked else {}
        for key, relation in asked.items():
            known = self.explicit.get(key)
            given = relation.base.within(known) if known is not None else None
            if given:
                found[key] = given.merge(found[key].without(given)) if key in found else given
        return found

    def not_evident(self, facts: Mapping[Key, Run]) -> dict[Key, Run]:
        """Those that are neither explicit nor derived from certain facts: they may follow from doubtful ones."""
        found = self.evident(facts)
        rest = {key: run.without(found.get(key)) for key, run in facts.items()}
        return {key: run for key, run in rest.items() if len(run)}

    def _helped(self, proved: Mapping[Key, Run]) -> dict[Key, Run]:
        """Facts asked about and open that rules derive with the help of newly proved ones: by each instance once."""
        new, found = Delta.of(proved), Found()
        older = {**self.certain, **{key: self.certain[key].remove(run) for key, run in proved.items()}}
        wanted = Delta.of(self.open(runs_of(self.checked)) if new else {})
        for task in (task for component in self.components for task in component.tasks) if wanted else ():
            rule = task.rule
            if rule.head.relation not in wanted and not rule.head.open:
                continue
            asked, rest = rule.asked, len(rule.body) - 1
            for place, atom in enumerate(rule.body):
                if atom.relation in new or atom.open:
                    sources: list[Relations] = [wanted, *[self.certain] * place, new, *[older] * (rest - place)]
                    self.kernel.run(asked, sources, self.now, found.emit, task.heads)
        return found.runs(self.kernel.arrays, wanted)

    def look_back(self, held: Relations) -> dict[Key, Run]:
        """Ask about the facts that instances for unproved facts use; returns those that nobody has asked about."""
        frontier = self.unexpanded()
        join(self.expanded, frontier)
        return self.check(self._behind(frontier, held))

    def unexpanded(self) -> dict[Key, Run]:
        """Facts that are checked, not proved, and whose instances have not been looked at."""
        found = {key: run.without(self.expanded.get(key)) for key, run in self.open(runs_of(self.checked)).items()}
        return {key: run for key, run in found.items() if len(run)}

    def _behind(self, facts: Mapping[Key, Run], held: Relations) -> dict[Key, Run]:
        """The facts that instances for these use, as far as they are in doubt themselves."""
        asked, found = Delta.of(facts), Found()
        for rule in {id(t.rule): t.rule for c in self.components for t in c.tasks}.values() if asked else ():
            doubtful = [atom for atom in rule.body if atom.open or self.derived_here(atom.relation)]
            if doubtful and (rule.head.relation in asked or rule.head.open):
                wanted = frozenset().union(*(atom.variables for atom in doubtful))
                take = partial(emit_atoms, self.kernel, doubtful, found)
                self.kernel.bindings(rule.asked, wanted, [asked, *[held] * len(rule.body)], self.now, take)
        return {key: run for key, run in found.runs(self.kernel.arrays, held).items() if self.derived_here(key)}


def emit_atoms(kernel: Kernel, atoms: Sequence[PlanAtom], found: Found, table: Table) -> None:
    """Keep the facts that atoms stand for in rule instances."""
    for atom in atoms:
        words = kernel.arrays.pack([table.value(a) for a in atom.args], table.count)
        for key, rows in kernel.cut(atom, table, words):
            found.emit(key, rows)
