"""Overlap by activation waves: support is counted (see `engines.waves` and `engines.marks`).

    count(f) = the instances for f whose facts are all active and of lower rank than f

In words: a count says which derivations were really made, because only activation makes them. A fact that is not explicit is
unsupported when its count is zero. Ranks of facts that are there never change; one that comes back gets a new one.
"""

from __future__ import annotations

from evergraph.engines.arrays import U64
from evergraph.engines.delta import Delta
from evergraph.engines.fixpoint import Deltas
from evergraph.engines.instances import Instances
from evergraph.engines.marks import count_of, mark, rank_of
from evergraph.engines.overlap.steps import Overlap, Relations, Site, rules_of
from evergraph.engines.relation import Run
from evergraph.engines.waves import Ledger, ask, run_changed_negations
from evergraph.plan.model import Key
from evergraph.plan.schedule import Component, Task


class CountedOverlap(Overlap[Instances]):
    """By counts, which the site must have."""

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        site.marks = dict(site.marks or {})
        self.ledger = Ledger(site.kernel, site.marks)

    def found(self) -> Instances:
        return Instances(self.kernel, self.ledger.marks)

    def run(self, task: Task, sources: list[Relations], below: Relations, found: Instances) -> None:
        found.run(task.rule, sources, below)

    def _negate(self, found: Instances, rules: tuple[Component, ...], changed: Deltas, active: Relations) -> None:
        delta = Delta.of(changed)
        for rule in rules_of(rules):
            if rule.negated:
                run_changed_negations(found, rule, delta, active, active)

    def derived(self, candidates: Deltas) -> Instances:
        found = self.found()
        active = self.site.relations
        ask(found, rules_of(self.site.able()), Delta.of(candidates), active, active)
        return found

    def unsupported(self, doubted: Deltas) -> Deltas:
        found = {key: run.where(count_of(self.ledger.of(key, run.words)) == 0) for key, run in doubted.items()}
        return {key: run for key, run in found.items() if len(run)}

    def _enter(self, epoch: int, key: Key, run: Run) -> None:
        """An explicit fact that was not there has rank 0, and so no instance counts for it."""
        if key in self.ledger.marks:
            self.ledger.put(key, run.arity, run.words, self.arrays.xp.zeros(len(run), U64))
        super()._enter(epoch, key, run)

    def _doubt(self, epoch: int, key: Key, run: Run) -> None:
        super()._doubt(epoch, key, run.where(count_of(self.ledger.of(key, run.words)) == 0))

    def win(self, epoch: int, found: Instances) -> None:
        for key, heads in found.heads():
            arity = found.arities[key]
            run = Run(self.arrays, arity, heads.rows)
            there, new = self.there(key, run), self._new(epoch, key, run)
            marks = self.ledger.of(key, run.words)
            more = heads.counted(rank_of(marks), self.kernel)
            values = self.kernel.xp.where(new, mark(heads.highest + U64(1), heads.number), marks + more)
            changed = new | (there & (more > 0))
            self.ledger.put(key, arity, tuple(w[changed] for w in run.words), values[changed])
            self.pending.add(epoch, key, run.where(new))

    def lose(self, epoch: int, found: Instances) -> None:
        for key, heads in found.heads():
            run = Run(self.arrays, found.arities[key], heads.rows)
            marks = self.ledger.of(key, run.words)
            less = heads.counted(rank_of(marks), self.kernel)
            changed = self.there(key, run) & (less > 0)
            run = run.where(changed)
            self.ledger.put(key, run.arity, run.words, (marks - less)[changed])
            self._doubt(epoch, key, run.without(self.site.explicit.get(key)))
