"""`evergraph bench windows`: Figure 7, the mobility scenario, Spark's micro-batches; tables, `windows.json` and two charts.

The JSON is written anew after each share and part, so that what was measured is there when a later one fails. Exit code 1 if
algorithms do not agree on the number of triples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.table import Table

from evergraph.bench import results
from evergraph.bench.equality.command import one_core, say
from evergraph.bench.windows import batches, chart, steps, tables, ticks
from evergraph.bench.windows.batches import Batches
from evergraph.bench.windows.figure7 import STAYS, experiments
from evergraph.bench.windows.measures import ALGORITHMS, PAPER_CROSSINGS, Figure7
from evergraph.bench.windows.steps import Cell
from evergraph.bench.windows.ticks import Ticks
from evergraph.errors import UserError
from evergraph.maintain.windows import WINDOW_ALGORITHMS

PEERS = ("recompute", "dred", "counting", "backward-forward")
NOTES = (
    "one core, but for Spark's two; Figure 7: seconds of advance() alone, facts are encoded before; after each step all "
    "algorithms have the same number of triples; the trees are ours, in the manner of the paper, which does not say how large "
    "its window is",
    "mobility: ticks count from when the window is full and has turned over; query is Figure 2 answered anew at each, "
    "read the making of terms of all its answers",
)


@dataclass(frozen=True, slots=True)
class Asked:
    """What to measure, and for how long."""

    facts: int
    """Of the background of Figure 7."""
    shares: Sequence[float]
    """In percent."""
    steps: int
    background: int
    """Facts, of the mobility scenario."""
    window: int
    seconds: int
    """That a fact is in the window of the mobility scenario."""
    every: int | None
    """Seconds after which a traveller reports again; by default when the last report has left the window."""
    ticks: int
    peers: Sequence[str]
    peer_ticks: int
    batches: int
    """Micro-batches of Spark beside each background."""
    limit: float
    seed: int


@dataclass(slots=True)
class Done:
    """What has been measured so far."""

    cells: list[Cell] = field(default_factory=list)
    ticks: Ticks | None = None
    batches: list[Batches] = field(default_factory=list)

    @property
    def wrong(self) -> bool:
        return any(cell.status == "wrong" for cell in self.cells) or bool(self.ticks and self.ticks.wrong)

    @property
    def figure(self) -> Figure7:
        return Figure7.of(steps.as_rows(self.cells))

    @property
    def notes(self) -> list[str]:
        found = [*NOTES, *tables.meetings(self.figure)]
        if self.ticks:
            found.append(tables.memory(self.ticks))
        return [*found, *tables.troubles(self.cells, self.ticks)]

    def tables(self) -> Iterator[Table]:
        if self.cells:
            yield tables.figure_7(self.figure, {(c.algorithm, c.share) for c in self.cells if c.status == "stopped"})
        if self.ticks:
            yield tables.ticks_table(self.ticks)
            if self.ticks.peers:
                yield tables.peers_table(self.ticks)
        if self.batches:
            yield tables.batches_table(self.batches)


def figure_7(asked: Asked, done: Done) -> Iterator[None]:
    """Share by share."""
    made = experiments(asked.facts, sorted(set(asked.shares)), seed=asked.seed)
    for cells in steps.measure(made, ALGORITHMS, asked.steps, asked.limit, say):
        done.cells += cells
        yield


def mobility(asked: Asked, done: Done) -> Iterator[None]:
    """All of it."""
    sizes = asked.background, asked.window, asked.ticks
    peers = asked.peers, asked.peer_ticks, asked.limit
    done.ticks = ticks.measure(*sizes, *peers, say, asked.seconds, asked.every, asked.seed)
    yield


def spark(asked: Asked, done: Done) -> Iterator[None]:
    """Micro-batches beside a small background and the large one."""
    sizes = sorted({max(1000, asked.background // 100), asked.background})
    done.batches = batches.measure(sizes, asked.batches, max(1, asked.window // asked.seconds), say, asked.seed)
    yield


PARTS: dict[str, Callable[[Asked, Done], Iterator[None]]] = {"figure7": figure_7, "mobility": mobility, "spark": spark}
"""What there is to measure, in this order; a part comes back where there is something to save."""


def main(asked: Asked, parts: Sequence[str], out: Path, as_json: bool = False) -> int:
    """Measure, say how it went, write `windows.json` and the charts into `out`; 1 if anything is wrong."""
    for what, names, known in (("part", parts, tuple(PARTS)), ("algorithm", asked.peers, WINDOW_ALGORITHMS)):
        for name in (name for name in names if name not in known):
            raise UserError("EG302", f"no {what} is called {name!r}", f"use some of {', '.join(known)}")
    done, written = Done(), {}
    for part in (part for part in PARTS if part in parts):
        with nullcontext() if part == "spark" else one_core():
            _warm_up()
            for _ in PARTS[part](asked, done):
                written = _save(out, asked, done)
    chart.draw(done.figure, out / "windows.png")
    if done.ticks:
        chart.draw_ticks(done.ticks, out / "windows-ticks.png")
    results.show(written, as_json, done.tables(), done.notes)
    return 1 if done.wrong else 0


def _warm_up() -> None:
    """Import what is imported when it is first used."""
    for _ in steps.measure(experiments(200, [5.0]), ALGORITHMS, 1, 60, lambda _: None):
        ticks.measure(1000, 50, 1, (), 0, 60, lambda _: None, seconds=5)


def _save(out: Path, asked: Asked, done: Done) -> dict[str, Any]:
    figure = done.figure
    met = [
        {"one": one, "other": other, "shares": figure.crossings(one, other), "paper": paper}
        for (one, other), paper in PAPER_CROSSINGS.items()
    ]
    found: dict[str, Any] = {
        "stays": STAYS,
        "crossings": met,
        "mobility": done.ticks.as_dict() if done.ticks else None,
        "notes": done.notes,
    }
    found["spark"] = [one.as_dict() for one in done.batches]
    return results.save(out / "windows.json", steps.as_rows(done.cells), asked=asdict(asked), **found)
