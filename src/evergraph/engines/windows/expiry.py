"""A window beside a graph that stays: what enters, what follows from it, and until when.

What it does: keeps the consequences of facts that expire at known times, with the times at which these expire. Sliding the
    window drops what has expired and follows what has entered; there is no deletion phase.
Paper: Barbieri, Braga, Ceri, Della Valle, Grossniklaus: Incremental Reasoning on Streams and Rich Background Knowledge. ESWC
    2010, §3. The generated program of Table 5 prints with `rules maintenance --window`; this is what it computes, by sets.

    end(f) = max over the derivations of f of the min over their bodies;    end(f) = ∞ for what the graph has already

Symbols: P^Ins → `enter`, then the rows of each round's delta. P^New → `relations`. P^Old → rows of `Lives` whose end rises.
    P^- → what `Lives.leave` returns. [T] → ends.
Invariant: between slides `lives` holds what follows from the graph and the facts in the window together and not from the graph
    alone, and the end of each fact is that maximum; `given` holds the facts in the window and their ends, but for those that
    are explicit in the graph, which are in `covered`.
Departures: the paper computes every end that a derivation has and drops all but the greatest at the end of a slide; here a
    round groups by head, so that only the greatest goes on. A fact that the graph has itself, explicit or derived, does not
    expire and is never followed.
Cost: what is due, and the rule instances that use a fact that entered or whose end rose. A fact may rise several times in one
    slide, at most once for each end among the facts that it can follow from. Rules must not negate,
    unless it is what built-ins say of terms, which does not change.
Example: a fact lives as long as the best of its derivations; tests/test_windows.py has the paper's Figure 4.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from evergraph.engines.arrays import U64, Array, Arrays, Column, Words
from evergraph.engines.base import Facts, Which
from evergraph.engines.delta import Delta
from evergraph.engines.holding import Holding
from evergraph.engines.instances import folded
from evergraph.engines.kernel import Kernel, Values
from evergraph.engines.marks import Marks
from evergraph.engines.relation import Relation, Run
from evergraph.engines.table import Table
from evergraph.engines.windows.entering import Entering, entering, latest
from evergraph.engines.windows.layered import layered
from evergraph.engines.windows.lives import FOREVER, Lives
from evergraph.plan.model import Key, PlanRule


@dataclass(frozen=True, slots=True)
class Slid:
    """What one slide did."""

    entered: int
    left: int
    came: int
    """Facts that are there and were not, given and derived."""
    went: int
    rose: int
    """Facts that were there and live longer than they would have."""
    rounds: int
    derivations: int
    examined: int


class Expiring(Holding):
    """The state of one window. The graph's relations are shared, and must not change while it lives."""

    def __init__(
        self,
        rules: tuple[PlanRule, ...],
        relations: Mapping[Key, Relation],
        explicit: Mapping[Key, Relation],
        values: Values | None,
        width: int,
    ) -> None:
        """`relations` are all facts of the graph, which are closed under the rules; `width` is a page of the calendar."""
        self.rules = rules
        self.kernel = Kernel(Arrays(), values)
        self.arrays = self.kernel.arrays
        self.below, self.below_explicit = relations, explicit
        self.lives, self.given, self.covered = (Lives(self.arrays, width) for _ in range(3))
        self._all: dict[Key, Relation] = dict(relations)
        self._explicit: dict[Key, Relation] = dict(explicit)

    def facts(self, which: Which) -> Mapping[Key, Relation]:
        return self._explicit if which == Which.EXPLICIT else self._all

    def slide(self, now: int, enter: Entering, terms: Facts | None = None) -> Slid:
        """Drop what ends before `now`, take in what has entered, and draw its consequences; `terms` do not end."""
        kernel = self.kernel
        derivations, examined = kernel.derivations, kernel.examined
        left, went, covered = self.given.leave(now), self.lives.leave(now), self.covered.leave(now)
        for key in left:
            self._show(self._explicit, self.below_explicit, self.given, key)
        for key in went:
            self._show(self._all, self.below, self.lives, key)
        before = self._sizes()
        found = _Found(kernel, self.lives)
        for key, (run, ends) in enter.items():
            self._give(key, run, ends)
            found.add(key, run.arity, run.words, ends)
        about = ((name, columns, self.arrays.xp.full(len(columns[0]), FOREVER)) for name, columns in (terms or {}).items())
        for key, (run, ends) in entering(self.arrays, about).items():
            found.add(key, run.arity, run.words, ends)
        rounds = rose = 0
        while deltas := self._absorb(found):
            rounds += 1
            rose += sum(len(run) for run, _ in deltas.values())
            found = self._follow(deltas)
        came = self._sizes() - before
        entered = sum(len(run) for run, _ in enter.values())
        gone = sum(map(len, went.values()))
        derivations, examined = kernel.derivations - derivations, kernel.examined - examined
        out = sum(len(run) for runs in (left, covered) for run in runs.values())
        return Slid(entered, out, came, gone, rose - came, rounds, derivations, examined)

    def _sizes(self) -> int:
        return sum(relation.count for relation in self.lives.relations.values())

    def _give(self, key: Key, run: Run, ends: Array) -> None:
        """Facts of the window itself. What the graph says too is kept apart, for when the graph no longer does."""
        known = self.below_explicit.get(key)
        there = known.contains(run.words) if known is not None else self.arrays.xp.zeros(len(run), bool)
        for lives, mine in ((self.given, ~there), (self.covered, there)):
            lives.extend(key, run.where(mine), ends[mine])
        self._show(self._explicit, self.below_explicit, self.given, key)

    def _better(self, key: Key, words: Words, ends: Array) -> tuple[Array, Array]:
        """Which of these rows would come or live longer, and which of them are not there yet."""
        before = self.lives.of(key, words)
        new = before < U64(self.lives.now)
        better = ends > before
        if key in self.below and bool(new.any()):
            better[new] &= ~self.below[key].contains(tuple(w[new] for w in words))
        return better, new

    def _absorb(self, found: _Found) -> Entering:
        """Keep what is better than what there is; returns it."""
        deltas: dict[Key, tuple[Run, Array]] = {}
        for key, arity, words, ends in found.best():
            better, new = self._better(key, words, ends)
            if bool(better.any()):
                rows, later = tuple(w[better] for w in words), ends[better]
                self.lives.put(key, arity, rows, later, new[better])
                self._show(self._all, self.below, self.lives, key)
                deltas[key] = Run(self.arrays, arity, rows), later
        return deltas

    def _show(self, shown: dict[Key, Relation], below: Mapping[Key, Relation], lives: Lives, key: Key) -> None:
        both = layered(below.get(key), lives.relations.get(key))
        if both is None:
            shown.pop(key, None)
        else:
            shown[key] = both

    def _follow(self, deltas: Entering) -> _Found:
        """Every rule instance that uses one of these facts, with the least end of its body."""
        found = _Found(self.kernel, self.lives)
        delta = Delta.of({key: run for key, (run, _) in deltas.items()})
        near = {key: Marks(run.words, ends, self.arrays.empty(run.arity), ends[:0]) for key, (run, ends) in deltas.items()}
        triples = any(isinstance(key, int) for key in delta)
        for rule in self.rules:
            for place, atom in enumerate(rule.body):
                if atom.relation in delta or (atom.open and triples):
                    sources: list[Mapping[Key, Relation]] = [self._all] * len(rule.body)
                    sources[place] = delta
                    self.kernel.bindings(rule, self._wanted(rule), sources, self._all, partial(found.take, rule, (place, near)))
        return found

    def _wanted(self, rule: PlanRule) -> frozenset[str]:
        """The variables by which an instance's end is found: those of the head, and of atoms that may have an end."""
        mortal = (a.variables for a in rule.body if a.open or a.relation in self.lives.relations)
        return rule.head.variables.union(*mortal)


class _Found:
    """What the rules of one round derived, with ends."""

    def __init__(self, kernel: Kernel, lives: Lives) -> None:
        self.kernel, self.lives = kernel, lives
        self._rows: dict[Key, tuple[int, list[Words], list[Array]]] = {}

    def add(self, key: Key, arity: int, words: Words, ends: Array) -> None:
        _, rows, all_ends = self._rows.setdefault(key, (arity, [], []))
        rows.append(words)
        all_ends.append(ends)

    def take(self, rule: PlanRule, near: tuple[int, Mapping[Key, Marks]], table: Table) -> None:
        """Instances of a rule: their heads, and the least end of their bodies; `near` has those of one atom."""
        kernel, head = self.kernel, rule.head
        end: Column = folded(kernel, self.lives.ends, rule.body, table, _ends, kernel.xp.minimum, FOREVER, near)
        ends = end if getattr(end, "ndim", 0) else kernel.xp.full(table.count, end, U64)
        words = kernel.arrays.pack([table.value(a) for a in head.args], table.count)
        for key, (*rows, part) in kernel.cut(head, table, (*words, ends)):
            self.add(key, len(head.args), tuple(rows), part)

    def best(self) -> Iterator[tuple[Key, int, Words, Array]]:
        """The distinct rows of each relation with the greatest end of each. Cost: a sort."""
        for key, (arity, parts, ends) in self._rows.items():
            yield key, arity, *latest(self.kernel.arrays, parts, ends)


def _ends(marks: Array) -> Array:
    """Ends as they are compared: what has none does not end."""
    marks[marks == 0] = FOREVER
    return marks
