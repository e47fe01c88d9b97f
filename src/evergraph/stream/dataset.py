"""A graph and some windows beside it, materialised together: what continuous queries with the same FROM clauses read.

Facts wait until the end of the window has passed them, enter with the instant at which they expire, and leave. The rest is the
algorithm's (`maintain.windows`). A dataset answers whatever a graph does: it is one, at an instant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd
from typing import TYPE_CHECKING, Any

import numpy as np

from evergraph.engine_choice import in_process, make_engine
from evergraph.engines.arrays import U64, Array, Arrays
from evergraph.engines.base import Engine, Which, together
from evergraph.engines.changes import Held
from evergraph.engines.equality.engine import Rewriting
from evergraph.engines.memory import MemoryEngine
from evergraph.engines.reference import ReferenceEngine
from evergraph.engines.windows.entering import Entering, Part, entering
from evergraph.engines.windows.expiry import Expiring, Slid
from evergraph.engines.windows.lives import end_of, ends_of, instant_of
from evergraph.errors import UserError
from evergraph.maintain.declarative import Maintenance
from evergraph.maintain.windows import EXPIRY, ByExpiry, ByUpdates, Sliding, why_not_expiry
from evergraph.plan.compile import Plan
from evergraph.reading import Reading
from evergraph.stream.overlay import Overlay, ValuesAbove
from evergraph.stream.times import Instants
from evergraph.stream.window import Window
from evergraph.terms import Ids, from_object
from evergraph.values import builtins_of

if TYPE_CHECKING:
    from evergraph.graph import KnowledgeGraph

TIME = ""
"""The clock of all windows of time; that of a window of triples is called like its stream."""
PAGES = 64
"""Pages of the calendar of a window of triples."""


@dataclass(frozen=True, slots=True)
class Arrived:
    """Facts of one relation from one stream, in the order in which they came."""

    name: str
    columns: Sequence[Ids]
    times: Instants

    def where(self, mask: Any) -> Arrived:
        return Arrived(self.name, [column[mask] for column in self.columns], self.times[mask])

    def renamed(self, translate: Callable[[Ids], Ids]) -> Arrived:
        return Arrived(self.name, [translate(column) for column in self.columns], self.times)


class Dataset(Reading):
    """Facts that arrived and have not entered wait in `waiting`, by stream."""

    _store = _snapshot = None

    def __init__(self, kg: KnowledgeGraph, windows: Mapping[str, Window], algorithm: str, terms: Overlay, values: Any) -> None:
        self.windows, self._asked = dict(windows), algorithm
        self.period = gcd(*(window.step for window in windows.values())) if windows else 0
        self.clocks = {name if window.counts else TIME for name, window in windows.items()}
        self.nows = dict.fromkeys(self.clocks or {TIME}, end_of(0))
        self.waiting: dict[str, list[Arrived]] = {name: [] for name in windows}
        self.last: Slid | None = None
        self.changes = 0
        """How often what readers see has changed."""
        self.begin(kg, terms, values)

    # -- the graph below ---------------------------------------------------------------------------------------------

    def begin(self, kg: KnowledgeGraph, terms: Overlay, values: ValuesAbove) -> None:
        """Lie beside a graph as it is now, with nothing in the windows."""
        with kg._at_rest():
            self._begin(kg, terms, values)

    def _begin(self, kg: KnowledgeGraph, terms: Overlay, values: ValuesAbove) -> None:
        kg._prepare()
        self._dictionary, self._values = terms, values
        self._book, self._arities, self._equality = kg._book, kg._arities, kg._equality
        self._builtins = builtins_of(values, kg._book.samples)
        self._terms_seen = len(kg._dictionary)
        self._plan = replace(kg._plan, values=values)
        against = why_not_expiry(kg.rules, self._plan, len(self.clocks))
        if self._asked == EXPIRY and against is not None:
            raise against
        below = in_process(kg._engine)
        if self._asked == EXPIRY or (self._asked == "auto" and against is None and isinstance(below, MemoryEngine)):
            self._sliding: Sliding = self._by_expiry(below)
        else:
            reason = "asked for" if self._asked != "auto" else against.message if against else f"engine {below.name}"
            self._sliding = self._by_updates(kg, below, reason)

    def _by_expiry(self, below: Engine) -> Sliding:
        if not isinstance(below, MemoryEngine):
            raise UserError("EG606", f"the {below.name} engine does not keep windows by expiry", "use engine='memory'")
        rules = tuple(rule for stratum in self._plan.strata for rule in stratum.rules)
        (clock,) = self.clocks or {TIME}
        facts, explicit = dict(below.facts(Which.ALL)), dict(below.facts(Which.EXPLICIT))
        window = Expiring(rules, facts, explicit, self._values, self._widths()[clock])
        self._engine = window  # type: ignore[assignment]  # of an engine, what readers ask
        return ByExpiry(window, clock, "rules do not negate, and one clock says when facts end")

    def _by_updates(self, kg: KnowledgeGraph, below: Engine, reason: str) -> Sliding:
        self._engine = _fork(below, self._plan, {name: list(rows(0)) for name, rows in kg._builtins.items()})

        def maintenance() -> Maintenance:
            return Maintenance.of(kg._meant(kg.rules.rules), self._dictionary, self._values)

        explicit = below.relations(Which.EXPLICIT)
        return ByUpdates(self._engine, self._plan, explicit, self._widths(), self._asked, maintenance, reason)

    def _widths(self) -> dict[str, int]:
        counted = {name: max(1, window.extent // PAGES) for name, window in self.windows.items() if window.counts}
        return {TIME: self.period, **counted} if TIME in self.clocks or not counted else counted

    def renew(self, kg: KnowledgeGraph, terms: Overlay, values: ValuesAbove) -> None:
        """Lie beside what the graph has become, or forget the terms that no fact has any more.

        Cost: the consequences of all that is in the windows.
        """
        old = self._dictionary
        assert isinstance(old, Overlay)

        def translate(ids: Ids) -> Ids:
            return old.translate(ids, terms)

        held = [(clock, name, [translate(c) for c in columns], ends) for clock, name, columns, ends in self.held()]
        self.waiting = {name: [part.renamed(translate) for part in parts] for name, parts in self.waiting.items()}
        self.refill(kg, terms, values, held)

    def held(self) -> Iterator[tuple[str, str, Sequence[Ids], Array]]:
        """The facts in the windows: clock, relation, columns and the ends of their rows."""
        for clock, key, relation, ends in self._sliding.contents():
            name, columns = next(iter(together([(key, relation.columns())]).items()))
            yield clock, name, columns, ends

    def refill(
        self, kg: KnowledgeGraph, terms: Overlay, values: ValuesAbove, held: Iterable[tuple[str, str, Sequence[Ids], Array]]
    ) -> None:
        """Begin again with these facts in the windows, whose ends have not passed. Cost: their consequences."""
        self.begin(kg, terms, values)
        self.changes += 1
        found: dict[str, list[Part]] = {}
        for clock, name, columns, ends in held:
            found.setdefault(clock, []).append((name, columns, ends))
        self._move({clock: entering(Arrays(), parts) for clock, parts in found.items()})

    @property
    def algorithm(self) -> str:
        return self._sliding.algorithm

    @property
    def reason(self) -> str:
        return self._sliding.reason

    # -- time --------------------------------------------------------------------------------------------------------

    def moves_at(self, now: int) -> bool:
        """Whether a window ends at an instant, or a late fact belongs into one that has ended before."""
        return any(now % window.step == 0 or self._awaited(name, window.end(now)) for name, window in self.windows.items())

    def quiet_until(self, end: int) -> int:
        """An instant until which no window gains or loses a fact; none after `end` is asked for. Cost: what waits."""
        times = [int(part.times.min()) for parts in self.waiting.values() for part in parts]
        due = self._sliding.due().get(TIME)
        return min([end, *times, *([instant_of(due)] if due is not None else [])])

    def _awaited(self, name: str, end: int) -> bool:
        return any(bool((part.times < end).any()) for part in self.waiting[name])

    def slide(self, now: int) -> Slid:
        """Move the windows on to an instant. Cost: what enters, what leaves, and what follows from it."""
        ready = {name: self._ready(name, window.end(now)) for name, window in self.windows.items()}
        if TIME in self.clocks:
            self.nows[TIME] = end_of(now)
        parts: dict[str, list[Part]] = {}
        for name, arrived in ready.items():
            window = self.windows[name]
            clock = name if window.counts else TIME
            parts.setdefault(clock, []).extend(self._counted(name, arrived) if window.counts else self._timed(window, arrived))
        current = {clock: [_unexpired(part, self.nows[clock]) for part in found] for clock, found in parts.items()}
        return self._move({clock: entering(Arrays(), found) for clock, found in current.items()})

    def _move(self, entering: Mapping[str, Entering]) -> Slid:
        seen = len(self._dictionary)
        terms = {name: list(rows(self._terms_seen)) for name, rows in self._builtins.items()}
        self.last = self._sliding.slide(self.nows, entering, {name: rows for name, rows in terms.items() if len(rows[0])})
        self._terms_seen = seen
        self.changes += bool(self.last.came or self.last.went)
        return self.last

    def _ready(self, name: str, end: int) -> list[Arrived]:
        """Take from what waits the facts before the end of the window."""
        ready, rest = [], []
        for part in self.waiting[name]:
            early = part.times < end
            if early.all():
                ready.append(part)
            elif early.any():
                ready.append(part.where(early))
                rest.append(part.where(~early))
            else:
                rest.append(part)
        self.waiting[name] = rest
        return ready

    def _timed(self, window: Window, arrived: list[Arrived]) -> Iterator[Part]:
        for part in arrived:
            yield part.name, part.columns, ends_of(window.last(part.times, self.period))

    def _counted(self, name: str, arrived: list[Arrived]) -> Iterator[Part]:
        """Number facts by their time, those of the same in the order in which they came."""
        start = instant_of(self.nows[name])
        order = np.argsort(np.concatenate([part.times for part in arrived] or [np.empty(0, np.int64)]), kind="stable")
        number = np.empty(len(order), np.int64)
        number[order] = np.arange(start, start + len(order))
        self.nows[name] = end_of(start + len(order))
        at = 0
        for part in arrived:
            yield part.name, part.columns, ends_of(number[at : at + len(part.times)] + self.windows[name].extent)
            at += len(part.times)

    # -- reading -----------------------------------------------------------------------------------------------------

    @property
    def behind(self) -> int:
        """How many facts wait."""
        return sum(len(part.times) for parts in self.waiting.values() for part in parts)

    def end(self, triple: Any) -> int | None:
        """Until when a triple is there, given that nothing enters any more; None if it stays, or is not there."""
        if not isinstance(self._sliding, ByExpiry):
            raise UserError("EG606", f"{self.algorithm} does not know when facts will go", "use expiry")
        ids = [self._dictionary.find(from_object(term, own=True)) for term in triple]
        if None in ids:
            return None
        subject, predicate, value = (U64(i) for i in ids if i is not None)
        window = self._sliding.window
        found = window.lives.of(int(predicate), window.arrays.pack([subject, value], 1))[0]
        return instant_of(int(found)) if int(found) >= window.lives.now else None


def _unexpired(part: Part, now: int) -> Part:
    name, columns, ends = part
    keep = ends >= U64(now)
    return part if keep.all() else (name, [column[keep] for column in columns], ends[keep])


def _fork(engine: Engine, plan: Plan, builtins: Mapping[str, list[Ids]]) -> Engine:
    """An engine that goes on from the facts of another."""
    if isinstance(engine, MemoryEngine):
        return engine.fork(plan)
    if isinstance(engine, Rewriting) and engine.name != "spark":
        out = make_engine("memory", plan)
        assert isinstance(out, Rewriting)
        out.load(engine.stored(), names=engine.names)
        out.prepare(builtins)
        return out
    if isinstance(engine, ReferenceEngine):
        again = ReferenceEngine(plan)
        again.load(Held(dict(engine.relations(Which.ALL)), dict(engine.relations(Which.EXPLICIT))))
        return again
    raise UserError("EG205", "streams are followed in process", "open the graph with engine='memory'")
