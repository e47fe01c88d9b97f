"""How a window over streams is kept: by expiry, or by insertions and deletions like any other change.

    by expiry:   what has expired goes, what entered is followed (`engines.windows.expiry`; Barbieri et al. 2010, §3)
    by updates:  one update for each slide, by an algorithm of `choose`: what entered is inserted, what left is deleted

In words: expiry needs that rules do not negate, that one clock says when anything ends, and that every name stands for itself.
Where this does not hold, or on request, the same windows are kept by updates.
A clock is what a window is measured by: time, which all but windows of triples share, or the triples of one stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol

from evergraph.engines.arrays import Array, Arrays
from evergraph.engines.base import Engine, Facts, columns_of
from evergraph.engines.relation import Relation, Run
from evergraph.engines.sets import Runs, join_runs
from evergraph.engines.windows.entering import Entering
from evergraph.engines.windows.expiry import Expiring, Slid
from evergraph.engines.windows.lives import Lives
from evergraph.errors import UserError
from evergraph.maintain.choose import ALGORITHMS, Experience, maintain
from evergraph.maintain.declarative import Maintenance
from evergraph.maintain.window_program import negating
from evergraph.plan.compile import Plan
from evergraph.plan.model import Key
from evergraph.rules.model import Program

EXPIRY = "expiry"
WINDOW_ALGORITHMS = (ALGORITHMS[0], EXPIRY, *ALGORITHMS[1:])
Contents = Iterator[tuple[str, Key, Relation, Array]]
"""Clock, relation, facts, and the ends of their rows in order."""


class Sliding(Protocol):
    """The materialisation of a window."""

    algorithm: str
    reason: str

    def slide(self, nows: Mapping[str, int], entering: Mapping[str, Entering], terms: Facts) -> Slid:
        """Move on to where the clocks are; `terms` are facts about terms that are new, which do not expire."""

    def contents(self) -> Contents:
        """The facts in the window, by clock."""

    def due(self) -> dict[str, int]:
        """When, by each clock, a fact may leave; no clock is there if none ever does."""


def why_not_expiry(program: Program, plan: Plan, clocks: int) -> UserError | None:
    """What stands against keeping windows by expiry."""
    if negated := negating(program):
        return negated[0]
    if plan.rewrites:
        hint = "use another algorithm, or a graph with equality='axioms' or 'off'"
        return UserError("EG606", "names with representatives do not expire one by one", hint)
    if clocks > 1:
        hint = "use another algorithm: auto finds one"
        return UserError("EG606", "windows of time and of triples end by different clocks", hint)
    return None


class ByExpiry:
    algorithm = EXPIRY

    def __init__(self, window: Expiring, clock: str, reason: str) -> None:
        self.window, self.clock, self.reason = window, clock, reason

    def slide(self, nows: Mapping[str, int], entering: Mapping[str, Entering], terms: Facts) -> Slid:
        return self.window.slide(nows[self.clock], entering.get(self.clock, {}), terms)

    def contents(self) -> Contents:
        yield from ((self.clock, *rows) for lives in (self.window.given, self.window.covered) for rows in lives.rows())

    def due(self) -> dict[str, int]:
        lives = (self.window.given, self.window.covered, self.window.lives)
        return {self.clock: min(some)} if (some := [one.due for one in lives if one.due is not None]) else {}


class ByUpdates:
    """The facts in the window are explicit facts of an engine of its own, which began as the graph's."""

    def __init__(
        self,
        engine: Engine,
        plan: Plan,
        below: Mapping[Key, Relation],
        widths: Mapping[str, int],
        algorithm: str,
        maintenance: Callable[[], Maintenance],
        reason: str,
    ) -> None:
        """`below` are the explicit facts of the graph, `widths` what a page of each clock's calendar has."""
        self.engine, self.plan, self.below, self.reason = engine, plan, below, reason
        self.algorithm = self._asked = algorithm
        self.maintenance, self.experience = maintenance, Experience()
        self.arrays = Arrays()
        self.given = {clock: Lives(self.arrays, width) for clock, width in widths.items()}

    def slide(self, nows: Mapping[str, int], entering: Mapping[str, Entering], terms: Facts) -> Slid:
        left: list[Mapping[Key, Run]] = []
        come: list[Mapping[Key, Run]] = []
        for clock, lives in self.given.items():
            left.append(lives.leave(nows[clock]))
            entered = entering.get(clock, {}).items()
            come.append({key: run.where(lives.extend(key, run, ends)) for key, (run, ends) in entered})
        insert = {key: self._mine(key, run) for key, run in _joined(come).items()}
        delete = {key: self._mine(key, self._without_living(key, run)) for key, run in _joined(left).items()}
        facts, gone = {**columns_of(_filled(insert)), **terms}, columns_of(_filled(delete))
        self.engine.begin()
        outcome = maintain(self.engine, self.plan, facts, gone, self._asked, self.maintenance, self.experience)
        change = self.engine.commit()
        self.algorithm, self.reason = outcome.algorithm, outcome.reason
        into, out = (sum(len(run) for runs in many for run in runs.values()) for many in (come, left))
        came, went = change.inserted.total, change.deleted.total
        return Slid(into, out, came, went, 0, outcome.rounds, outcome.derivations, outcome.examined)

    def contents(self) -> Contents:
        yield from ((clock, *rows) for clock, lives in self.given.items() for rows in lives.rows())

    def due(self) -> dict[str, int]:
        return {clock: lives.due for clock, lives in self.given.items() if lives.due is not None}

    def _without_living(self, key: Key, run: Run) -> Run:
        """Facts that left one window and are in none."""
        for lives in self.given.values():
            run = run.without(lives.relations.get(key))
        return run

    def _mine(self, key: Key, run: Run) -> Run:
        """What the graph says too is not the window's to give or take."""
        return run.without(self.below.get(key))


def _joined(many: Iterable[Mapping[Key, Run]]) -> Runs:
    out: Runs = {}
    for runs in many:
        join_runs(out, runs)
    return out


def _filled(runs: Mapping[Key, Run]) -> dict[Key, Run]:
    return {key: run for key, run in runs.items() if len(run)}
