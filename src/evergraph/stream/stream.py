"""`Stream`: facts with timestamps over a graph that stays, and continuous queries over both.

    push(facts, timestamp)    facts wait until a window's end passes them
    advance(to)               tick by tick: windows slide, queries that are due are answered

In words: time is event time. Ticks are the common multiples of all steps; the windows of the tick at t end at t and do not have
what happens at t. Without `to` the stream advances to the watermark, the latest timestamp less the allowed lateness, so that
facts that come out of order by no more than that are in the windows where they belong. What came too late is counted, told and
left out. Which facts of a stream are too late does not depend on how they are cut into pushes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import gcd, inf
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from evergraph import inputs
from evergraph.engines.base import size_of
from evergraph.errors import Position, UserError
from evergraph.maintain.windows import WINDOW_ALGORITHMS
from evergraph.rules.model import TRIPLE
from evergraph.sparql import View, query
from evergraph.stream.answers import Answers, changed
from evergraph.stream.csparql import Continuous, Form, Report, parse_continuous
from evergraph.stream.dataset import Arrived, Dataset
from evergraph.stream.overlay import Overlay, ValuesAbove
from evergraph.stream.pushed import times_of, triples_of
from evergraph.stream.times import SECOND, duration_of, instant_of, seconds_of
from evergraph.stream.window import Window

if TYPE_CHECKING:
    from evergraph.graph import KnowledgeGraph
    from evergraph.stream.spark import Writer

CAPACITY = 1_000_000
"""Facts that may wait: a stream that is not advanced refuses more than so many."""
FORGET_FROM, FORGET_SHARE = 1 << 19, 4
"""Terms that no fact has any more are forgotten when the stream has brought so many, and so many times those it needs."""
OnLate = Callable[[pa.Table], None]
"""Is given facts that came too late: subject, predicate, object, timestamp, stream."""
_NEVER = -(1 << 62)


@dataclass(slots=True)
class Registered:
    """A continuous query and what it has answered."""

    continuous: Continuous
    dataset: Dataset
    every: int
    previous: pa.Table
    """The answers of its last tick, where only changes are told."""
    asked_at: int = -1
    """How often the dataset had changed when it was last answered."""
    answered: Any = None

    @property
    def name(self) -> str:
        return self.continuous.name

    @property
    def kind(self) -> str:
        """SELECT, ASK or CONSTRUCT."""
        return self.continuous.kind

    @property
    def streams(self) -> tuple[str, ...]:
        return tuple(self.continuous.windows)


class Stream:
    """Made by `KnowledgeGraph.stream`.

    >>> from evergraph import KnowledgeGraph, Program
    >>> kg = KnowledgeGraph(Program.parse("isIn(?x, ?z) :- isIn(?x, ?y), isIn(?y, ?z) ."))
    >>> stream = kg.stream("RANGE 10s STEP 1s")
    >>> stream.push("isIn(1, 2) .", 1)
    >>> stream.push("isIn(2, 3) .", 2)
    >>> list(stream.advance(to=3)), len(list(stream.graph.relation("isIn")))
    ([], 3)
    >>> list(stream.advance(to=12)), len(list(stream.graph.relation("isIn")))
    ([], 1)
    """

    def __init__(
        self,
        kg: KnowledgeGraph,
        windows: str | Window | Mapping[str, str | Window] | None = None,
        *,
        algorithm: str = "auto",
        lateness: Any = 0,
        capacity: int = CAPACITY,
    ) -> None:
        """`windows` declares streams by name, or one that has no name; without any, queries name the streams there are."""
        if algorithm not in WINDOW_ALGORITHMS:
            raise UserError("EG302", f"no algorithm is called {algorithm!r}", f"use one of {', '.join(WINDOW_ALGORITHMS)}")
        named = windows if isinstance(windows, Mapping) else {} if windows is None else {"": windows}
        self.declared = {_name(name): Window.of(window) for name, window in named.items()}
        self.algorithm, self.capacity = algorithm, capacity
        self.lateness = duration_of(lateness)
        self.queries: dict[str, Registered] = {}
        self.late = 0
        """Facts that came too late."""
        self.rejected = 0
        """Rows of streaming DataFrames that are no facts."""
        self._kg, self._edition = kg, kg._edition
        self._terms = Overlay(kg._dictionary)
        self._values = ValuesAbove(kg._values, self._terms)
        self._datasets: dict[frozenset[tuple[str, Window]], Dataset] = {}
        self._now = _NEVER
        self._ticked = False
        """Whether there has been a tick; until then the clock stands where the first may come."""
        self._due: list[Registered] = []
        """Queries that have not been answered yet at the last tick."""
        self._latest: dict[str, int] = {}
        """The latest timestamp of each stream."""
        self._forget_at = FORGET_FROM
        if self.declared:
            self._dataset(self.declared)

    # -- queries -----------------------------------------------------------------------------------------------------

    def register(self, text: str, source: str = "<query>") -> Registered:
        """Answer a query of C-SPARQL from the next tick on. A window that it does not say is the one that was declared."""
        continuous = parse_continuous(text, source)
        if continuous.name in self.queries:
            raise UserError("EG604", f"a query is called {continuous.name!r} already", "give it another name")
        windows = {name: self._window(continuous, name, window, source) for name, window in continuous.windows.items()}
        dataset = self._dataset(windows or self.declared)
        every = continuous.every or min((w.step for w in dataset.windows.values()), default=SECOND)
        registered = Registered(continuous, dataset, every, pa.table({}))
        self.queries[continuous.name] = registered
        return registered

    def _window(self, continuous: Continuous, name: str, window: Window | None, source: str) -> Window:
        known = name in self.declared or any(q.name == name for q in self.queries.values() if q.continuous.form == Form.STREAM)
        if self.declared and not known:
            names = ", ".join(f"<{n}>" for n in self.streams) or "none"
            raise UserError("EG604", f"no stream is called <{name}>", f"there are {names}", _position(continuous, name, source))
        found = window or self.declared.get(name)
        if found is None:
            hint = "write [RANGE 10s STEP 1s] after it"
            raise UserError("EG604", f"the window of <{name}> is not said", hint, _position(continuous, name, source))
        return found

    def _dataset(self, windows: Mapping[str, Window]) -> Dataset:
        """The graph with these windows, one for all queries that have the same."""
        key = frozenset(windows.items())
        if key not in self._datasets:
            self._refresh()
            self._datasets[key] = Dataset(self._kg, windows, self.algorithm, self._terms, self._values)
        return self._datasets[key]

    @property
    def streams(self) -> list[str]:
        """The streams that are read."""
        return sorted({*self.declared, *(name for dataset in self._datasets.values() for name in dataset.windows)})

    # -- facts -------------------------------------------------------------------------------------------------------

    def push(self, facts: Any, timestamp: Any = None, stream: str | None = None, on_late: OnLate | None = None) -> None:
        """Facts that happened at a time: whatever `KnowledgeGraph.update` inserts.

        `timestamp` is a datetime or seconds since 1970, or an array of microseconds, one for each triple; a frame may have a
        column `timestamp` instead. `stream` need not be said if there is one. Facts older than the last tick less the allowed
        lateness are given to `on_late`, and counted. A mistake in the facts leaves the stream as it was.
        """
        name = self._stream_named(stream)
        found = inputs.read(triples_of(facts), self._terms)
        self._kg._check_arities({relation: len(columns) for relation, columns in found.items()})
        times, size = times_of(facts, timestamp), size_of(found)
        if isinstance(times, np.ndarray) and found and (found.keys() != {TRIPLE} or size != len(times)):
            raise UserError("EG603", f"{len(times)} timestamps for {size} facts", "give one for each triple")
        waiting, behind = self.behind
        if waiting + size > self.capacity:
            told = f"the stream is {waiting + size:,} facts and {behind:,} s behind"
            raise UserError("EG607", told, "advance it, or make it with a larger capacity")
        for relation, columns in found.items():
            instants = times if isinstance(times, np.ndarray) else np.full(size_of({relation: columns}), times, np.int64)
            self._arrive(name, Arrived(relation, columns, instants), on_late)

    def _arrive(self, name: str, part: Arrived, on_late: OnLate | None) -> None:
        """Let facts wait that are in time; of the others tell. What is late is so by the facts of its own stream before it."""
        if not len(part.times):
            return
        before = np.maximum.accumulate(np.concatenate([[self._latest.get(name, _NEVER)], part.times]))
        passed = np.maximum(before[:-1], self._now if self._ticked else _NEVER) - self.lateness
        late = part.times < passed - passed % (self._period or SECOND)
        self._latest[name] = int(before[-1])
        if late.any():
            self.late += int(late.sum())
            if on_late is not None:
                on_late(self._shown(name, part.where(late)))
            part = part.where(~late)
        if not self._ticked and len(part.times):
            first = int(part.times[0]) - self.lateness
            first -= first % (self._period or SECOND)
            self._now = first if self._now == _NEVER else min(self._now, first)
        for dataset in self._datasets.values():
            if name in dataset.waiting and len(part.times):
                dataset.waiting[name].append(part)

    def _shown(self, name: str, part: Arrived) -> pa.Table:
        columns = {f: self._terms.decode(c) for f, c in zip(_columns(part), part.columns, strict=True)}
        return pa.table(
            {**columns, "timestamp": pa.array(part.times, pa.timestamp("us", "UTC")), "stream": [name] * len(part.times)}
        )

    def _stream_named(self, stream: str | None) -> str:
        made = {query.name for query in self.queries.values() if query.continuous.form == Form.STREAM}
        given = [name for name in self.streams if name not in made]
        if stream is None and len(given) == 1:
            return given[0]
        name = _name(stream or "")
        if name not in self.streams:
            names = ", ".join(f"<{n}>" for n in self.streams) or "none"
            raise UserError("EG604", f"no stream is called <{name}>" if stream else "which stream?", f"there are {names}")
        return name

    def writeStream(self, frame: Any) -> Writer:
        """Run the queries over a streaming DataFrame of Spark: subject, predicate, object, timestamp, and stream if there are
        several. Terms are in N-Triples syntax. See `stream.spark`.
        """
        from evergraph.stream.spark import Writer

        return Writer(self, frame)

    # -- time --------------------------------------------------------------------------------------------------------

    @property
    def now(self) -> int | float | None:
        """The last tick, in seconds since 1970; before the first one, the tick before any fact that may come."""
        return None if self._now == _NEVER else seconds_of(self._now)

    @property
    def watermark(self) -> int | float | None:
        """The latest timestamp less the allowed lateness: no earlier fact is waited for."""
        return seconds_of(max(self._latest.values()) - self.lateness) if self._latest else None

    @property
    def behind(self) -> tuple[int, int | float]:
        """How many facts wait, and how many seconds the last tick is behind the latest of them."""
        waiting = max((dataset.behind for dataset in self._datasets.values()), default=0)
        return waiting, seconds_of(max(0, max(self._latest.values()) - self._now)) if waiting and self._latest else 0

    @property
    def _period(self) -> int:
        steps = (window.step for dataset in self._datasets.values() for window in dataset.windows.values())
        return gcd(*steps, *(query.every for query in self.queries.values()))

    def advance(self, to: Any = None, final: bool = False) -> Iterator[Answers]:
        """The answers of all ticks up to an instant, or to the watermark: each is computed when it is asked for.

        With `final` the source has ended: up to the first tick after the latest fact. Ticks that nobody asks for are not lost:
        the next call begins with them. Without queries everything is done at once.
        """
        if to is not None:
            end = instant_of(to)
        elif not self._latest:
            return iter(())
        else:
            period, latest = self._period or SECOND, max(self._latest.values())
            end = (latest // period + 1) * period if final else latest - self.lateness
        ticks = self._ticks(end)
        return ticks if self.queries else iter(list(ticks))

    def _ticks(self, end: int) -> Iterator[Answers]:
        if self._now == _NEVER:
            self._now = end - end % (self._period or SECOND) - (self._period or SECOND)
        yield from self._told()
        while (period := self._period) and self._now + period <= end:
            self._skip(end, period)
            now = self._now = (self._now // period + 1) * period
            self._ticked = True
            self._refresh()
            for dataset in self._datasets.values():
                if dataset.moves_at(now):
                    dataset.slide(now)
            self._due = [registered for registered in self.queries.values() if now % registered.every == 0]
            yield from self._told()

    def _told(self) -> Iterator[Answers]:
        """What is left to tell of the last tick."""
        while self._due:
            if (answers := self._answer(self._due.pop(0), self._now)) is not None:
                yield answers

    def _skip(self, end: int, period: int) -> None:
        """Pass over ticks at which nothing changes and so nobody is told anything; the one after them is computed."""
        for registered in self.queries.values():
            if registered.continuous.report == Report.ALL or registered.asked_at != registered.dataset.changes:
                return
        until = min([end - period, *(dataset.quiet_until(end) for dataset in self._datasets.values())])
        self._now = max(self._now, until - until % period)

    def _answer(self, registered: Registered, now: int) -> Answers | None:
        continuous, dataset = registered.continuous, registered.dataset
        if registered.asked_at != dataset.changes:
            registered.answered = query(View.of(dataset), continuous.query)
            registered.asked_at = dataset.changes
        result, report = registered.answered, continuous.report
        if report != Report.ALL:
            table = result.to_arrow()
            result, registered.previous = changed(report, continuous.kind, registered.previous, table), table
        if result is None:
            return None
        if continuous.form == Form.STREAM and len(result.graph):
            self._arrive_made(continuous.name, result.graph, now)
        return Answers(continuous.name, now, report, result)

    def _arrive_made(self, name: str, graph: Any, now: int) -> None:
        """What a query constructs is a stream: its facts happen at the tick, and are in windows that end later."""
        readers = [dataset for dataset in self._datasets.values() if name in dataset.waiting]
        if readers:
            for relation, columns in inputs.read(graph, self._terms, own=True).items():
                part = Arrived(relation, columns, np.full(len(columns[0]), now, np.int64))
                for dataset in readers:
                    dataset.waiting[name].append(part)

    def _refresh(self) -> None:
        """Follow the graph if it has changed, and forget terms that no fact has any more."""
        own = len(self._terms) - self._terms.start
        if self._kg._edition == self._edition and own < self._forget_at:
            return
        self._renew_terms(self._terms.scopes)
        for dataset in self._datasets.values():
            dataset.renew(self._kg, self._terms, self._values)
        self._forget_at = max(FORGET_FROM, FORGET_SHARE * (len(self._terms) - self._terms.start))

    def _renew_terms(self, scopes: int) -> None:
        """Terms above the graph's as they are now; the blank nodes of so many files have their names already."""
        self._edition = self._kg._edition
        self._terms = Overlay(self._kg._dictionary)
        self._terms.scopes = max(self._terms.scopes, scopes)
        self._values = ValuesAbove(self._kg._values, self._terms)

    # -- reading -----------------------------------------------------------------------------------------------------

    @property
    def graph(self) -> Dataset:
        """The graph and the windows as of the last tick: those that were declared, or the only ones there are."""
        declared = frozenset(self.declared.items())
        if self.declared and declared in self._datasets:
            return self._datasets[declared]
        if len(self._datasets) != 1:
            raise UserError("EG604", "the stream has several sets of windows, or none", "ask a query's: queries[name].dataset")
        return next(iter(self._datasets.values()))

    def __len__(self) -> int:
        """The number of triples, of the graph and of the windows, explicit and derived."""
        return len(self.graph)

    def __bool__(self) -> bool:
        return True

    def __contains__(self, triple: Any) -> bool:
        return triple in self.graph

    def query(self, text: str, **given: Any) -> Any:
        """The answers of a SPARQL query as of the last tick; see `KnowledgeGraph.query`."""
        return self.graph.query(text, **given)

    def expiry(self, triple: Any) -> float | None:
        """Until when a triple is there if nothing else comes, in seconds since 1970.

        Infinity if it stays, None if it is not there.
        """
        end = self.graph.end(triple)
        if end is not None:
            return seconds_of(end)
        return inf if triple in self.graph else None

    def stats(self) -> dict[str, Any]:
        """Where the stream is, and what each dataset holds and did last."""
        return {
            "now": self.now,
            "watermark": self.watermark,
            "late": self.late,
            "rejected": self.rejected,
            "waiting": self.behind[0],
            "behind": self.behind[1],
            "terms": len(self._terms) - self._terms.start,
            "datasets": [
                {
                    "windows": {name: window.text for name, window in dataset.windows.items()},
                    "algorithm": dataset.algorithm,
                    "reason": dataset.reason,
                    "triples": len(dataset),
                    "queries": [query.name for query in self.queries.values() if query.dataset is dataset],
                }
                for dataset in self._datasets.values()
            ],
        }


def _name(name: str) -> str:
    return name[1:-1] if name.startswith("<") and name.endswith(">") else name


def _columns(part: Arrived) -> tuple[str, ...]:
    return inputs.COLUMNS if part.name == TRIPLE else tuple(f"{part.name}_{n}" for n in range(len(part.columns)))


def _position(continuous: Continuous, name: str, source: str) -> Position | None:
    found = re.search(rf"STREAM\s+<{re.escape(name)}>", continuous.text, re.IGNORECASE)
    if found is None:
        return None
    at = continuous.text.index("<", found.start())
    before = continuous.text[:at]
    return Position(source, before.count("\n") + 1, at - before.rfind("\n"))
