"""Updates that are submitted: a queue, whoever works it off, and what readers see meanwhile.

`submit` puts an update into the queue and returns. A thread takes it from there: it lets the update join the stretch that is
running, at its next step, or begins one. The thread ends soon after the queue is empty, so that a program ends when its updates
have settled. Updates that cannot overlap, such as the first facts of a graph, have a turn of their own, in their order.
"""

from __future__ import annotations

import concurrent.futures.thread  # noqa: F401 - so that its own end, at exit, comes after `_finish`
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from typing import Any, cast

from evergraph import inputs
from evergraph.changing import Asked, Changing, Read, check_algorithm
from evergraph.engines.base import OverlappingEngine, Readable, Which
from evergraph.maintain.choose import choose
from evergraph.maintain.dynamic import OVERLAPPING
from evergraph.reading import Reading
from evergraph.report import Report
from evergraph.store.submitted import Journal, Unsettled, unsettled
from evergraph.stretch import Stretch
from evergraph.ticket import Status, Ticket

REST = 0.05
"""Seconds for which the thread waits for more updates: it costs about as much to make as a small update."""
AT_ONCE = 256
"""Updates that join between two steps, at most."""


_threads: weakref.WeakSet[threading.Thread] = weakref.WeakSet()


def _finish() -> None:
    """At exit, let updates settle while other threads are still to be had: files are read by pools of them."""
    for thread in list(_threads):
        thread.join()


threading._register_atexit(_finish)  # type: ignore[attr-defined]


class Live(Reading):
    """A graph while updates overlap: between two steps facts may be there that do not follow, and others be missing.

    It stays what it is when the work goes on; it answers what a graph does.
    """

    _store = _snapshot = None

    def __init__(self, graph: Submitting, facts: Readable, tickets: tuple[Ticket, ...]) -> None:
        self._dictionary, self._values, self._book, self._plan = graph._dictionary, graph._values, graph._book, graph._plan
        self._arities, self._equality, self._builtins = graph._arities, graph._equality, graph._builtins
        self._engine = facts  # type: ignore[assignment]  # of an engine, what readers ask
        self.unsettled = tickets
        """The updates whose work is under way."""

    @property
    def settled(self) -> bool:
        """Whether this is a settled version after all."""
        return not self.unsettled

    def __repr__(self) -> str:
        under_way = ", ".join(str(ticket.number) for ticket in self.unsettled)
        return f"<live graph, {f'not settled: updates {under_way}' if under_way else 'settled'}>"


class Submitting(Changing):
    """How updates of a graph overlap."""

    _submissions: Submissions

    def submit(self, *, insert: Any = (), delete: Any = (), algorithm: str = "auto", name: str | None = None) -> Ticket:
        """Delete and insert facts as `update` does, but return at once: the update joins those that are under way.

        It reacts at the next step of the maintenance: an operation and its opposite from another update cancel, in the order of
        submission. When all have settled, the graph is what the updates make of it one after the other; each settled point is
        one version of a store. Until then readers see the last settled version. A mistake in the input fails this ticket alone.
        `algorithm` is one of `ALGORITHMS`; updates that name different ones do not overlap, nor do those that are recomputed.
        `name` is what the history of a store calls the update, which is then in a version even if it changed nothing. A store
        has a record of the update until it has settled: after a crash, `unsettled` tells of it.
        Cost: here a line in a file if there is a store; then that of `update`, less what cancels.
        """
        check_algorithm(algorithm)
        if self._store is not None:
            self._check_latest()
        return self._submissions.put(inputs.kept(insert), inputs.kept(delete), algorithm, name)

    @property
    def unsettled(self) -> tuple[Unsettled, ...]:
        """Updates of the store that were submitted and lost when their process ended, until a later update settles."""
        return () if self._store is None else unsettled(self._store.path)

    def settle(self, timeout: float | None = None) -> None:
        """Wait until every update submitted so far has settled or failed; `TimeoutError` after so many seconds."""
        self._submissions.settle(timeout)

    def live(self) -> Live:
        """The state in between, as of the next step: facts of updates that have not settled come and go in it."""
        return self._submissions.live()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Updates that were submitted before have settled."""
        with self._at_rest(), super()._writing():
            yield

    @contextmanager
    def _at_rest(self) -> Iterator[None]:
        """Nothing is under way, and nothing begins."""
        self._submissions.settle()
        with self._submissions.working:
            yield


class Submissions:
    """The updates of a graph that have been submitted and have not settled."""

    def __init__(self, graph: Submitting) -> None:
        self._graph = weakref.ref(graph)
        self.by_hand = False
        """Whether nobody works by himself: `advance` is called from outside, at chosen times."""
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
        """Until nothing has come for a while. The graph stays as long."""
        while True:
            more = self.advance()
            with self._lock:
                self._answer()
                if more or self._queue:
                    continue
                self._resting = True
                self._arrived.wait_for(lambda: bool(self._queue), REST)
                self._resting = False
                if not self._queue:
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

    def _choose(self, ticket: Ticket, read: Read) -> tuple[str, str] | None:
        """The algorithm by which an update begins a stretch, and why; None if it has a turn of its own."""
        graph, engine = self.graph, self.graph._engine
        if not self._can_overlap(read) or not engine.counts(Which.EXPLICIT):
            return None
        if ticket.algorithm != "auto":
            fits = OVERLAPPING.get(ticket.algorithm) in engine.overlaps
            return (ticket.algorithm, "asked for") if fits else None
        choice = choose(engine, graph._plan, read.insert, read.delete, graph._experience)
        if choice.algorithm == "recompute":
            return None
        return ("counting" if engine.counted else "dred"), choice.reason

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
