"""A stretch of overlapping updates of a graph, from the first that joins to the point where all are settled.

Contract: a stretch is one update of the engine and, where there is a store, one commit. Whatever goes wrong takes the
graph back to where the stretch began. Readers see nothing of it before it has settled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evergraph.changing import Read
from evergraph.engines.base import Missed, Overlapping, OverlappingEngine
from evergraph.maintain.counting import counting
from evergraph.maintain.dynamic import OVERLAPPING, Dynamic
from evergraph.maintain.outcome import Outcome
from evergraph.report import Report, make_report
from evergraph.submit.ticket import Status, Ticket

if TYPE_CHECKING:
    from evergraph.submitting import Submitting


class Stretch:
    def __init__(self, graph: Submitting, engine: OverlappingEngine, algorithm: str, reason: str, named: bool) -> None:
        """Begin: the graph is prepared, and nobody else changes it. `named` if the algorithm was asked for."""
        self.graph, self.engine, self.algorithm = graph, engine, algorithm
        self.tickets: list[Ticket] = []
        self.outcome = Outcome(algorithm, reason)
        self._before = dict(graph.__dict__)
        self._running: dict[int, list[Ticket]] = {}
        engine.begin()
        try:
            if where := engine.place(None if named else 0):
                self.outcome.reason = f"{reason}; {where}"
            if algorithm == "counting" and not engine.counted:
                with self.outcome.phase("count") as phase:
                    phase.facts = counting(engine, graph._plan, {}, {}, reason).derivations
            self.overlap: Overlapping = engine.overlap(OVERLAPPING[algorithm])
        except BaseException:
            self.abandon()
            raise
        self.dynamic = Dynamic(self.overlap)

    def join(self, ticket: Ticket, read: Read) -> None:
        """Take in an update."""
        graph, outcome = self.graph, self.outcome
        self.tickets.append(ticket)
        with outcome.more_of("join") as phase:
            seen = len(graph._dictionary)
            facts = {**read.insert, **graph._new_literals(graph._builtins)}
            graph._literals_seen = seen
            epoch, missed = self.dynamic.join(facts, read.delete)
            phase.facts += sum(len(c[0]) for both in (facts, read.delete) for c in both.values() if c)
        outcome.missed = Missed(outcome.missed.absent + missed.absent, outcome.missed.derived + missed.derived)
        outcome.tickets.append(ticket.name)
        graph._arities = read.arities | graph._arities
        self._running.setdefault(epoch, []).append(ticket)
        ticket.joined_at = self.dynamic.steps
        ticket.move(Status.RUNNING)
        self._see_through()

    def take_terms(self) -> bool:
        """What built-in relations say of terms that nothing which joined has brought; returns whether steps are to follow.

        They are of updates that failed or wait, and the next version has them.
        """
        graph, seen = self.graph, len(self.graph._dictionary)
        facts = graph._new_literals(graph._builtins) if seen > graph._literals_seen else {}
        graph._literals_seen = seen
        if facts:
            self.dynamic.join(facts, {})
        return not self.dynamic.settled

    def step(self) -> None:
        """One step of the maintenance."""
        step, epoch = self.dynamic.next()
        with self.outcome.more_of(str(step)) as phase:
            self.outcome.add(phase, self.dynamic.step(step, epoch))
        self._see_through()

    def _see_through(self) -> None:
        for epoch in [number for number in self._running if self.dynamic.is_through(number)]:
            for ticket in self._running.pop(epoch):
                ticket.in_place_at = self.dynamic.steps
                ticket.move(Status.IN_PLACE)

    def settle(self) -> Report:
        """Commit, and let readers see it."""
        graph, rules = self.graph, self.graph._same_rules()
        with self.outcome.phase("commit"):
            write = graph._to_write("update", self.outcome, rules) if graph._store is not None else None
            change = self.engine.commit()
            version = write() if write is not None else None
        graph._settle(rules, {}, graph._builtins, graph._literals_seen)
        difference, named = graph._difference, graph._named
        return make_report(self.outcome, self.engine.name, change, ((), ()), (), difference, named, version)

    def abandon(self) -> None:
        """Take the graph back to where the stretch began."""
        try:
            self.engine.rollback()
        finally:
            self.graph.__dict__.update(self._before)
            self.graph._stale = self.graph._pipeline is not None
