"""The queue of submitted updates, and whoever works it off.

A thread takes updates from the queue: it lets each join the stretch that is running, at its next step, or begins one. It ends
soon after the queue is empty, so that a program ends when its updates have settled. Updates that cannot overlap, such as the
first facts of a graph, have a turn of their own, in their order.

Locks: `working` is held from the beginning of a stretch, or of a turn, to its end; `_lock` for moments, to look at the queue.
Who has `_lock` never waits for `working`.
"""

from __future__ import annotations

import atexit
import concurrent.futures.thread  # noqa: F401 - so that its own end, at exit, comes after `_finish`
import threading
import time
import weakref
from collections import deque
from concurrent.futures import Future
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, cast

from evergraph import inputs
from evergraph.changing import Asked, Changing, Read
from evergraph.engines.base import OverlappingEngine, Which
from evergraph.maintain.choose import choose
from evergraph.maintain.dynamic import OVERLAPPING
from evergraph.report import Report
from evergraph.store.submitted import Journal
from evergraph.submit.live import Live
from evergraph.submit.stretch import Stretch
from evergraph.submit.ticket import Status, Ticket

if TYPE_CHECKING:
    from evergraph.submitting import Submitting

REST = 0.05
"""Seconds for which the thread waits for more updates: it costs about as much to make as a small update."""
AT_ONCE = 256
"""Updates that join between two steps, at most."""
_threads: weakref.WeakSet[threading.Thread] = weakref.WeakSet()


def _finish() -> None:
    """At exit, let updates settle while other threads are still to be had: files are read by pools of them."""
    for thread in list(_threads):
        thread.join()


getattr(threading, "_register_atexit", atexit.register)(_finish)


class Submissions:
    """The updates of a graph that have been submitted and have not settled."""

    def __init__(self, graph: Submitting) -> None:
        self._graph = weakref.ref(graph)
        self.by_hand = False
        """Whether no thread works: `advance` is called from outside, at chosen times."""
        self.in_order = False
        """Whether nothing comes after an update that failed for another reason than its input: it may need what is missing."""
        self.working = threading.RLock()
        """Held by whoever changes the graph."""
        self.stretch: Stretch | None = None
        self._queue: deque[Ticket] = deque()
        self._ahead: tuple[Ticket, Read] | None = None
        """The first update of the queue, when it has been read and cannot join yet."""
        self._open: dict[int, Ticket] = {}
        self._asking: list[Future[Live]] = []
        self._lock = threading.Lock()
        self._arrived = threading.Condition(self._lock)
        self._thread: threading.Thread | None = None
        self._resting = False
        """Whether the thread waits for work."""
        self._closing = ExitStack()
        self._number = 0
        self._stopped: BaseException | None = None
        self._journal: Journal | None = None

    @property
    def graph(self) -> Submitting:
        graph = self._graph()
        assert graph is not None
        return graph

    def put(self, insert: Any, delete: Any, algorithm: str, name: str | None = None) -> Ticket:
        with self._lock:
            ticket = Ticket(self._number + 1, insert, delete, algorithm, name)
            if self._stopped is not None:
                ticket.fail(self._stopped)
                return ticket
            if self._thread is None and not self.by_hand:
                thread = threading.Thread(target=self._work, args=(self.graph,), name="evergraph")
                thread.start()
                _threads.add(thread)
                self._thread = thread
            self._note(ticket)
            self._number += 1
            self._open[ticket.number] = ticket
            self._queue.append(ticket)
            self._arrived.notify()
        return ticket

    def take_over(self) -> None:
        """From now on whoever calls this works by hand, when the thread has done what it has to do and is gone."""
        with self._lock:
            self.by_hand, thread = True, self._thread
            self._arrived.notify()
        if thread is not None:
            thread.join()

    def hand_back(self) -> None:
        """Do what is left to do; a thread works on what comes after it."""
        self.settle()
        self.by_hand = False

    def _note(self, ticket: Ticket) -> None:
        """Leave a record of it in the store."""
        store, snapshot = self.graph._store, self.graph._snapshot
        if store is None:
            return
        if self._journal is None:
            store.check_place()
            self._journal = Journal(store.path)
        what = (inputs.in_words(ticket.insert), inputs.in_words(ticket.delete))
        self._journal.begun(ticket.number, ticket.name, -1 if snapshot is None else snapshot.version, *what)

    def settle(self, timeout: float | None = None) -> None:
        if self.by_hand:
            while self.advance():
                pass
        until = None if timeout is None else time.monotonic() + timeout
        with self._lock:
            tickets = list(self._open.values())
        for ticket in tickets:
            ticket.end(None if until is None else max(0.0, until - time.monotonic()))

    def live(self) -> Live:
        with self._lock:
            if self._thread is None or self._resting:
                return self._live()
            asked: Future[Live] = Future()
            self._asking.append(asked)
        return asked.result()

    def _live(self) -> Live:
        if self.stretch is None:
            return Live(self.graph, self.graph._held, ())
        return Live(self.graph, self.stretch.overlap.live(), tuple(self.stretch.tickets))

    # -- working it off ----------------------------------------------------------------------------------------------

    def _work(self, graph: Submitting) -> None:
        """Until nothing has come for a while. The graph stays as long.

        What nobody foresaw fails the update that is next, so that no error is met for ever, and leaves no lock behind.
        """
        while True:
            try:
                more = self.advance()
            except BaseException as error:
                more = True
                self._fail(error, list(self._queue)[:1])
            with self._lock:
                self._answer()
                if more or self._queue:
                    continue
                self._resting = True
                self._arrived.wait_for(lambda: self.by_hand or bool(self._queue), REST)
                self._resting = False
                if self.by_hand or not self._queue:
                    self._thread = None
                    return

    def _answer(self) -> None:
        """Give the state in between to whoever asks for it."""
        asking, self._asking = self._asking, []
        for asked in asking:
            try:
                asked.set_result(self._live())
            except BaseException as error:
                asked.set_exception(error)

    def _wait_for_turn(self) -> None:
        """Until nobody else changes the graph. Whoever does may ask for the state in between."""
        with self._lock:
            self._resting = True
            self._answer()
        self.working.acquire()
        with self._lock:
            self._resting = False

    def advance(self) -> bool:
        """Let updates join, and do one step; returns whether there was anything to do."""
        if self.stretch is None and not self._begin():
            return False
        if self.stretch is not None:
            self._go_on(self.stretch)
        return True

    def _begin(self) -> bool:
        """Take the first update in the queue: it begins a stretch, or has a turn of its own. Returns whether there was one."""
        if not self._queue:
            return False
        self._wait_for_turn()
        self._closing.callback(self.working.release)
        dictionary = self.graph._dictionary
        try:
            self._closing.enter_context(Changing._writing(self.graph))
            self.graph._prepare()
        except BaseException as error:
            self._end([self._queue.popleft()], error)
            return True
        if self.graph._dictionary is not dictionary:
            self._ahead = None
        ticket, read = self._first()
        if read is None:
            self._end([], None)
            return True
        try:
            chosen = self._choose(ticket, read)
            if chosen is None:
                self._alone(ticket, read)
            else:
                engine = cast(OverlappingEngine, self.graph._engine)
                self.stretch = Stretch(self.graph, engine, *chosen)
                self._join(ticket, read)
        except BaseException as error:
            self._fail(error, [ticket])
        return True

    def _go_on(self, stretch: Stretch) -> None:
        """Let whoever can join, then do a step; commit if nothing is left to do."""
        try:
            for _ in range(AT_ONCE):
                if not self._queue or not stretch.dynamic.admits:
                    break
                ticket, read = self._first()
                if read is None:
                    continue
                if not self._fits(stretch, ticket, read):
                    break
                self._join(ticket, read)
            if not stretch.dynamic.settled:
                stretch.step()
            if stretch.dynamic.settled and not stretch.take_terms():
                report = stretch.settle()
                self._end(stretch.tickets, None, report)
        except BaseException as error:
            self._fail(error, [])

    def _join(self, ticket: Ticket, read: Read) -> None:
        assert self.stretch is not None
        self._queue.popleft()
        self._ahead = None
        self.stretch.join(ticket, read)

    def _first(self) -> tuple[Ticket, Read | None]:
        """The first update of the queue and its facts; if they cannot be read, it fails, and nothing else does."""
        ticket = self._queue[0]
        try:
            if self._ahead is None or self._ahead[0] is not ticket:
                asked = self._asked(ticket, None)
                self._ahead = (ticket, self.graph._read_all(asked, self.graph._same_rules()))
            else:
                self.graph._check_arities(self._ahead[1].arities)
        except BaseException as error:
            self._queue.popleft()
            self._done([ticket], error)
            return ticket, None
        return self._ahead

    def _choose(self, ticket: Ticket, read: Read) -> tuple[str, str, bool] | None:
        """The algorithm by which an update begins a stretch, why, and whether it was asked for; None if it runs alone."""
        graph, engine = self.graph, self.graph._engine
        if not self._can_overlap(read) or not engine.counts(Which.EXPLICIT):
            return None
        if ticket.algorithm != "auto":
            fits = OVERLAPPING.get(ticket.algorithm) in engine.overlaps
            return (ticket.algorithm, "asked for", True) if fits else None
        choice = choose(engine, graph._plan, read.insert, read.delete, graph._experience)
        if choice.algorithm == "recompute":
            return None
        return ("counting" if engine.counted else "dred"), choice.reason, False

    def _fits(self, stretch: Stretch, ticket: Ticket, read: Read) -> bool:
        return ticket.algorithm in ("auto", stretch.algorithm) and self._can_overlap(read)

    def _can_overlap(self, read: Read) -> bool:
        """Whether the engine's updates overlap, and the facts are of relations that the rules have met."""
        graph = self.graph
        known = graph._book.meeting(read.arities) is graph._book
        return bool(graph._engine.overlaps) and not graph._pristine and known and read.staged is None

    def _alone(self, ticket: Ticket, read: Read) -> None:
        """An update that does not overlap."""
        self._queue.popleft()
        self._ahead = None
        ticket.move(Status.RUNNING)
        self._end([ticket], None, self.graph._update(self._asked(ticket, read)))

    def _asked(self, ticket: Ticket, read: Read | None) -> Asked:
        given = (ticket.insert, ticket.delete, None, None, None, ticket.algorithm, False, None, None, "update")
        return Asked(*given, read=read, ticket=ticket.name)

    def _fail(self, error: BaseException, tickets: list[Ticket]) -> None:
        """Everything under way is taken back."""
        if self.stretch is not None:
            tickets = [*self.stretch.tickets, *(ticket for ticket in tickets if ticket not in self.stretch.tickets)]
            try:
                self.stretch.abandon()
            except BaseException as worse:
                worse.__context__, error = error, worse
        self._ahead = None
        with self._lock:
            self._queue = deque(ticket for ticket in self._queue if ticket not in tickets)
        self._end(tickets, error)

    def _end(self, tickets: list[Ticket], error: BaseException | None, report: Report | None = None) -> None:
        """Let others change the graph, and tell whoever waits."""
        self.stretch = None
        if error is not None and self.in_order:
            with self._lock:
                tickets = [*tickets, *self._queue]
                self._queue.clear()
                self._stopped = error
        try:
            self._closing.close()
        finally:
            for ticket in tickets:
                ticket.report = report
            self._done(tickets, error)

    def _done(self, tickets: list[Ticket], error: BaseException | None) -> None:
        for ticket in (ticket for ticket in tickets if not ticket.done):
            with self._lock:
                if self._journal is not None:
                    self._journal.ended(ticket.number)
            if error is not None:
                ticket.fail(error)
            else:
                ticket.move(Status.SETTLED)
            with self._lock:
                self._open.pop(ticket.number, None)
