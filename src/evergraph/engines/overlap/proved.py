"""Overlap by deletion and rederivation, and by Backward/Forward: support is looked for when a fact is doubted.

In words: a doubted fact stays if explicit facts, and relations that nothing doubted reaches, derive it: at once (DRed), or by a
proof of any length (Backward/Forward). A proof uses active facts alone, so that when one of them goes the fact is doubted
again. Pending facts that lose an instance go, and come back by rederivation if they follow.

Why that is enough: say that each fact rests on the instance that brought it, or on the proof that kept it. When it came, the
facts of that instance were there and did not rest on it; a proof rests on explicit facts and on relations that do not depend on
those doubted. So no fact rests on itself, whatever the order of steps, and whoever loses what it rests on is doubted.
"""

from __future__ import annotations

from evergraph.engines.arrays import Arrays, Words
from evergraph.engines.delta import Delta
from evergraph.engines.fixpoint import Deltas, Found, run_negated
from evergraph.engines.overlap.steps import Entered, Overlap, Relations, Site
from evergraph.engines.prove import Prover, unsettled
from evergraph.engines.relation import Relation, Run
from evergraph.engines.retreat import rederive
from evergraph.engines.sets import runs_of
from evergraph.plan.model import Key
from evergraph.plan.schedule import Component, Task


class Heads(Found):
    """The heads of instances, and how many arguments they have."""

    def __init__(self) -> None:
        super().__init__()
        self.arities: dict[Key, int] = {}
        self.arity_now = 0

    def emit(self, key: Key, words: Words) -> None:
        super().emit(key, words)
        self.arities[key] = self.arity_now

    def heads(self, arrays: Arrays) -> Deltas:
        """Cost: a sort."""
        return {k: Run(arrays, self.arities[k], arrays.unique([w for _, w in parts])) for k, parts in self.rows.items()}


class ProvedOverlap(Overlap[Heads]):
    """By looking for support: at once, or as far as it takes."""

    def __init__(self, site: Site, search: bool) -> None:
        super().__init__(site)
        site.marks = None
        self.search = search
        self._prover: Prover | None = None

    def found(self) -> Heads:
        return Heads()

    def run(self, task: Task, sources: list[Relations], below: Relations, found: Heads) -> None:
        found.arity_now = len(task.rule.head.args)
        self.kernel.run(task.rule, sources, below, found.emit, task.heads)

    def _negate(self, found: Heads, rules: tuple[Component, ...], changed: Deltas, active: Relations) -> None:
        delta = Delta.of(changed)
        for task in (task for component in rules for task in component.tasks if task.rule.negated):
            found.arity_now = len(task.rule.head.args)
            run_negated(self.kernel, task, delta, active, active, found)

    def derived(self, candidates: Deltas) -> Heads:
        found = Heads()
        asked = {key: Relation(run) for key, run in candidates.items()}
        for key, run in rederive(self.kernel, self.site.able(), asked, self.site.relations).items():
            found.arity_now = run.arity
            found.emit(key, run.words)
        return found

    def enter(self, epoch: int, come: Deltas, gone: Deltas) -> Entered:
        self._prover = None
        return super().enter(epoch, come, gone)

    def activate(self, coming: Deltas) -> tuple[Heads, Heads]:
        self._prover = None
        return super().activate(coming)

    def unsupported(self, doubted: Deltas) -> Deltas:
        """Facts of relations that no rule derives go at once; the others, if nothing that is certain derives them.

        What was found is kept as long as facts only go: a proof uses none that is doubted.
        """
        if self._prover is None:
            self._prover = self._make_prover(doubted)
        prover = self._prover
        goals = {key: run for key, run in doubted.items() if prover.derived_here(key)}
        going = {key: run for key, run in doubted.items() if key not in goals}
        if goals:
            going |= prover.unproved(goals, self.site.relations) if self.search else prover.not_evident(goals)
        return going

    def _make_prover(self, doubted: Deltas) -> Prover:
        """Certain are active facts that are explicit, and all of relations that nothing doubted reaches, less doubted ones."""
        components = self.site.able()
        waiting = self.doubted.all()
        derived_here = unsettled(components, waiting.keys() | doubted.keys())
        now = dict(self.site.relations)
        for runs in (runs_of(waiting), doubted):
            now |= {key: now[key].remove(run) for key, run in runs.items() if not derived_here(key)}
        return Prover(self.kernel, components, now, self._explicit_and_active(), derived_here)

    def _explicit_and_active(self) -> Relations:
        out = dict(self.site.explicit)
        for key, relation in self.pending.all().items():
            if key in out:
                run = Run(self.arrays, relation.arity, relation.rows())
                out[key] = out[key].remove(run.within(out[key]))
        return out

    def win(self, epoch: int, found: Heads) -> None:
        for key, run in found.heads(self.arrays).items():
            self.pending.add(epoch, key, run.where(self._new(epoch, key, run)))

    def lose(self, epoch: int, found: Heads) -> None:
        for key, run in found.heads(self.arrays).items():
            self._doubt(epoch, key, run.where(self.there(key, run)).without(self.site.explicit.get(key)))
