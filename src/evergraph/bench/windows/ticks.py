"""The mobility scenario measured: tick after tick, seconds of the window and of the query of Figure 2, and memory.

    tick  =  push (encode 1,000 facts)  +  slide (the window moves, its consequences follow)  +  query (Figure 2, answered anew)

The window is filled in one slide and then turned over, up to five times if ticks are many, so that all that is measured enters
and leaves at the rate of the stream, and memory is what it will be; only then ticks count. Beside it, other algorithms keep the
same window for a few ticks, from the same filling; after each of them they must have as many triples as the first.
Traps: `query` is the time until answers are there as numbers; `read` is that of making terms of them, which nobody needs who
    looks at a few. The data of a tick is made outside of all of them. Resident memory is the process's, with the graph that the
    stream lies beside, and goes up and down with the answers of a tick; other algorithms have run before it is first looked at.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from evergraph import KnowledgeGraph
from evergraph.bench.stopping import Stopped, stopped_after
from evergraph.bench.windows import mobility
from evergraph.bench.windows.mobility import START, STREAM, Mobility
from evergraph.stream import Stream
from evergraph.stream.answers import Answers
from evergraph.stream.stream import Registered
from evergraph.stream.times import SECOND

BLOCK = 100
"""Ticks after which memory is looked at."""
SLOWEST, TURNS = 10, 5
PARTS = ("push", "slide", "query", "read")


class Clocked(Stream):
    """A stream that knows how long its queries took at the last tick."""

    asked = 0.0

    def _answer(self, registered: Registered, now: int) -> Answers | None:
        started = perf_counter()
        try:
            return super()._answer(registered, now)
        finally:
            self.asked += perf_counter() - started


@dataclass(slots=True)
class Peer:
    """An algorithm that keeps the window for a few ticks."""

    algorithm: str
    status: str = "ok"
    line: str = ""
    filling: float | None = None
    """Seconds in which the window was filled."""
    seconds: list[float] = field(default_factory=list)
    """Of slides."""
    triples: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Ticks:
    """What was measured of the scenario."""

    facts: int
    window: int
    """Facts that enter while one is in the window."""
    rate: int
    wave: int
    every: int
    algorithm: str = ""
    triples: int = 0
    """Of the graph with its full window."""
    held: int = 0
    """Different facts in the window."""
    filling: float = 0
    settled: list[int] = field(default_factory=list)
    """Triples after each of the first ticks."""
    seconds: dict[str, list[float]] = field(default_factory=lambda: {part: [] for part in PARTS})
    slid: list[tuple[int, int, int, int]] = field(default_factory=list)
    """Of each tick: entered, left, came, went."""
    answers: list[int] = field(default_factory=list)
    memory: list[dict[str, int]] = field(default_factory=list)
    """Ticks, resident bytes and terms of the stream's own: before the first tick, and after every hundred."""
    peers: list[Peer] = field(default_factory=list)

    def add(self, push: float, slide: float, query: float, read: float) -> None:
        for part, seconds in zip(PARTS, (push, slide, query, read), strict=True):
            self.seconds[part].append(seconds)

    @property
    def wrong(self) -> list[Peer]:
        return [peer for peer in self.peers if peer.status == "wrong"]

    def of(self, *parts: str) -> list[float]:
        """Seconds of some parts together, tick by tick."""
        return [sum(some) for some in zip(*(self.seconds[part] for part in parts), strict=True)]

    def growth(self) -> float | None:
        """Resident bytes gained in a thousand ticks, from the first look to the last."""
        if len(self.memory) < 2:
            return None
        first, last = self.memory[0], self.memory[-1]
        return 1000 * (last["resident"] - first["resident"]) / (last["tick"] - first["tick"])

    def as_dict(self) -> dict[str, Any]:
        """For JSON: figures over all ticks, blocks of a hundred, and the slowest ones tick by tick."""
        names = ("facts", "window", "rate", "wave", "every", "algorithm", "triples", "held", "filling")
        out = {name: getattr(self, name) for name in names}
        out["ticks"] = len(self.answers)
        out["seconds"] = {"+".join(parts): summary(self.of(*parts)) for parts in SHOWN} if self.answers else {}
        moves = enumerate(("entered", "left", "came", "went"))
        out["slid"] = {name: median(slid[n] for slid in self.slid) for n, name in moves if self.slid}
        out["answers"] = median(self.answers) if self.answers else None
        out["memory"], out["growth"] = self.memory, self.growth()
        out["blocks"] = list(self.blocks())
        whole = self.of("push", "slide", "query")
        slowest = sorted(range(len(whole)), key=lambda n: -whole[n])[:SLOWEST]
        out["slowest"] = [{"tick": n, **{part: self.seconds[part][n] for part in PARTS}} for n in slowest]
        out["peers"] = [{name: getattr(peer, name) for name in Peer.__slots__} for peer in self.peers]
        return out

    def blocks(self) -> Iterator[dict[str, Any]]:
        """Median and most of each hundred ticks."""
        for start in range(0, len(self.answers), BLOCK):
            block: dict[str, Any] = {"tick": start}
            for name, parts in (("maintain", ("push", "slide")), ("query", ("query",))):
                some = self.of(*parts)[start : start + BLOCK]
                block[name] = [median(some), max(some)]
            yield block


SHOWN = (("push",), ("slide",), ("push", "slide"), ("query",), ("push", "slide", "query"), ("read",))
"""Parts of a tick, alone and together, as they are told."""


def summary(seconds: Sequence[float]) -> dict[str, float]:
    """
    >>> summary([0.001] * 99 + [0.5])
    {'median': 0.001, 'p99': 0.00599, 'max': 0.5}
    """
    p99 = float(f"{np.percentile(seconds, 99):.6g}")
    return {"median": median(seconds), "p99": p99, "max": max(seconds)}


def measure(
    facts: int,
    window: int,
    ticks: int,
    peers: Iterable[str],
    peer_ticks: int,
    limit: float,
    say: Callable[[str], None],
    seconds: int = 100,
    every: int | None = None,
    seed: int = 0,
) -> Ticks:
    """A window of so many facts in so many seconds, which moves by one; `every` says after how many seconds a traveller reports
    again, by default when its last report has left."""
    wave, every = (seconds, seconds) if every is None else (mobility.WAVE, every)
    scenario = Mobility(facts, max(1, window // seconds), seed, wave, every)
    found = Ticks(facts, scenario.rate * seconds, scenario.rate, wave, every)
    kg = KnowledgeGraph(mobility.rules())
    say(f"mobility: a background of {facts:,} facts")
    kg.update(insert=scenario.background())
    for algorithm in peers:
        say(f"mobility: {algorithm}, {peer_ticks} ticks")
        found.peers.append(_peer(kg, scenario, seconds, algorithm, peer_ticks, limit))
    say(f"mobility: {ticks:,} ticks")
    _run(found, kg, scenario, seconds, ticks, peer_ticks)
    for peer in found.peers:
        differ = [n for n, (one, other) in enumerate(zip(peer.triples, found.settled, strict=False)) if one != other]
        for n in differ[:1]:
            peer.status, peer.line = "wrong", f"{peer.triples[n]:,} triples after tick {n}, not {found.settled[n]:,}"
    return found


def _run(found: Ticks, kg: KnowledgeGraph, scenario: Mobility, seconds: int, ticks: int, compared: int) -> None:
    stream = Clocked(kg, {STREAM: f"RANGE {seconds}s STEP 1s"}, lateness=seconds)
    found.filling = _enter(stream, scenario, seconds)
    found.algorithm, found.triples = stream.graph.algorithm, len(stream)
    found.held = stream.graph.last.entered if stream.graph.last else 0
    found.settled.append(len(stream))
    stream.register(mobility.query(seconds))
    first = seconds + max(seconds, min(TURNS * seconds, ticks // 10))
    for number in range(seconds, first):
        _tick(stream, scenario, number)
        if len(found.settled) <= compared:
            found.settled.append(len(stream))
    _look(found, stream, 0)
    for tick in range(1, ticks + 1):
        *times, answers = _tick(stream, scenario, first + tick - 1)
        found.add(*times)
        found.answers.append(len(answers))
        if (slid := stream.graph.last) is not None:
            found.slid.append((slid.entered, slid.left, slid.came, slid.went))
        if tick % BLOCK == 0 or tick == ticks:
            _look(found, stream, tick)


def _enter(stream: Stream, scenario: Mobility, seconds: int) -> float:
    """Fill the window at one tick: its facts are pushed when the stream is a second before it is full. The slide's seconds."""
    list(stream.advance(to=_instant(seconds - 1)))
    for number in range(seconds):
        stream.push(scenario.second(number))
    started = perf_counter()
    list(stream.advance(to=_instant(seconds)))
    return perf_counter() - started


def _tick(stream: Clocked, scenario: Mobility, number: int) -> tuple[float, float, float, float, Answers]:
    """Seconds of pushing, sliding, answering and reading, and the answers."""
    facts = scenario.second(number)
    stream.asked = 0.0
    started = perf_counter()
    stream.push(facts)
    pushed = perf_counter()
    (answers,) = stream.advance(to=_instant(number + 1))
    answered = perf_counter()
    answers.to_arrow()
    return pushed - started, answered - pushed - stream.asked, stream.asked, perf_counter() - answered, answers


def _peer(kg: KnowledgeGraph, scenario: Mobility, seconds: int, algorithm: str, ticks: int, limit: float) -> Peer:
    peer = Peer(algorithm)
    try:
        with stopped_after(limit):
            stream = kg.stream({STREAM: f"RANGE {seconds}s STEP 1s"}, lateness=seconds, algorithm=algorithm)
            peer.filling = _enter(stream, scenario, seconds)
            peer.triples.append(len(stream))
            for number in range(seconds, seconds + ticks):
                stream.push(scenario.second(number))
                started = perf_counter()
                stream.advance(to=_instant(number + 1))
                peer.seconds.append(perf_counter() - started)
                peer.triples.append(len(stream))
    except Stopped:
        peer.status, peer.line = "stopped", f"more than {limit:g} s"
    return peer


def _look(found: Ticks, stream: Stream, tick: int) -> None:
    found.memory.append({"tick": tick, "resident": resident(), "terms": stream.stats()["terms"]})


def _instant(number: int) -> int:
    """The start of a second of the scenario, in seconds since 1970."""
    return START // SECOND + number


def resident() -> int:
    """Bytes of this process in memory; where the system does not tell, the most there have been."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
