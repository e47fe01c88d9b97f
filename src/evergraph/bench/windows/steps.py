"""Figure 7 measured: windows that slide over trees, by each algorithm, one share after the other.

A cell is a share and an algorithm: a graph with the background, a stream beside it, the window filled, then some steps. What
counts are the seconds of `advance`: terms are encoded by `push`, before. All cells of a share make the same steps, and after
each the graph and its window must have the same number of triples, whatever the algorithm; a cell that has not is `wrong`.
Traps: each cell has a graph of its own, because algorithms leave indices behind. A cell that takes too long is `stopped`, and
    the larger shares of its algorithm are `skipped`; one that was stopped after some steps keeps those.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from time import perf_counter
from typing import Any

from evergraph import KnowledgeGraph
from evergraph.bench.stopping import Stopped, stopped_after
from evergraph.bench.windows import trees
from evergraph.bench.windows.figure7 import Experiment
from evergraph.engines.windows.expiry import Slid


@dataclass(slots=True)
class Cell:
    """One algorithm at one share."""

    share: float
    algorithm: str
    change: int
    """Facts that enter at a step, and that leave."""
    status: str = "ok"
    line: str = ""
    seconds: list[float] = field(default_factory=list)
    triples: list[int] = field(default_factory=list)
    """Of the graph and its window, after each step."""
    slid: list[dict[str, int]] = field(default_factory=list)
    """What each step did."""

    def add(self, seconds: float, triples: int, slid: Slid | None) -> None:
        self.seconds.append(seconds)
        self.triples.append(triples)
        self.slid.append(asdict(slid) if slid else {})


def measure(
    experiments: Sequence[Experiment],
    algorithms: Sequence[str],
    steps: int,
    limit: float,
    say: Callable[[str], None],
) -> Iterator[list[Cell]]:
    """Share by share, from the smallest: the cells of each."""
    stopped: set[str] = set()
    for experiment in sorted(experiments, key=lambda one: one.share):
        cells = [Cell(experiment.share, algorithm, experiment.change) for algorithm in algorithms]
        for cell in cells:
            if cell.algorithm in stopped:
                cell.status, cell.line = "skipped", "a smaller share took too long"
                continue
            say(f"{cell.share:g} %, {cell.algorithm}")
            _fill(cell, experiment, steps, limit)
            if cell.status == "stopped":
                stopped.add(cell.algorithm)
        compare(cells)
        yield cells


def _fill(cell: Cell, experiment: Experiment, steps: int, limit: float) -> None:
    stays = experiment.stays
    kg = KnowledgeGraph(trees.rules())
    kg.update(insert=experiment.background)
    stream = kg.stream(f"RANGE {stays}s STEP 1s", algorithm=cell.algorithm, capacity=(stays + steps) * cell.change)
    for number in range(stays + steps):
        stream.push(experiment.enters(number), number)
    try:
        with stopped_after(limit):
            stream.advance(to=stays)
            for number in range(stays, stays + steps):
                started = perf_counter()
                stream.advance(to=number + 1)
                cell.add(perf_counter() - started, len(stream), stream.graph.last)
    except Stopped:
        cell.status, cell.line = "stopped", f"more than {limit:g} s"


def compare(cells: Sequence[Cell]) -> None:
    """The same steps leave the same number of triples: what most of the cells have, or else the first."""
    for step in range(max(len(cell.triples) for cell in cells)):
        found = [cell.triples[step] for cell in cells if step < len(cell.triples)]
        right = max(found, key=found.count)
        for cell in cells:
            if step < len(cell.triples) and cell.triples[step] != right and cell.status != "wrong":
                cell.status, cell.line = "wrong", f"{cell.triples[step]:,} triples after step {step + 1}, not {right:,}"


def as_rows(cells: Sequence[Cell]) -> list[dict[str, Any]]:
    return [asdict(cell) for cell in cells]
