"""One cell of a table: an update on a graph by an algorithm, repeated, and how it compares with the others.

What is timed is `update` as its caller sees it, reading and encoding included; beside it stands the time without reading.
After each update its opposite is applied, so that every measurement starts from the same facts; if the graph then has another
size, or two algorithms leave closures of different sizes, the cell is `wrong`.

Traps: a graph is measured with one algorithm only, because an algorithm leaves indices (or counts) behind that the next
would profit from or have to make. An update that is stopped leaves a graph that nobody should measure: it is loaded again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from evergraph import KnowledgeGraph, UserError
from evergraph.bench.stopping import Stopped, stopped_after
from evergraph.bench.updates.facts import Given
from evergraph.rules.model import TRIPLE

ENOUGH = 10.0
"""Seconds; a cell that has taken so many is not repeated."""


@dataclass(frozen=True, slots=True)
class Change:
    """What an update inserts and deletes, and how it is undone."""

    insert: Given = ""
    delete: Given = ""

    @property
    def back(self) -> Change:
        return Change(insert=self.delete, delete=self.insert)


@dataclass(frozen=True, slots=True)
class Run:
    """One update."""

    seconds: float
    read: float
    derivations: int
    algorithm: str
    reason: str
    closure: int


@dataclass(slots=True)
class Cell:
    """An update by an algorithm: the median of its runs."""

    rules: str
    universities: int
    operation: str
    update: str
    """Its name: the same in all cells that are to be compared."""
    facts: int
    algorithm: str
    status: str = "ok"
    """ok, stopped (at the limit), skipped, unsupported, or wrong."""
    line: str = ""
    seconds: float | None = None
    without_reading: float | None = None
    derivations: int | None = None
    """Of the first run, as `closure`: runs are of different facts, and algorithms may have made different numbers of them."""
    chose: str = ""
    """The algorithm that ran, and why."""
    reason: str = ""
    closure: int | None = None
    """Triples after the update."""
    to_recompute: float | None = None
    to_best: float | None = None
    runs: list[float] = field(default_factory=list)

    def fill(self, runs: Sequence[Run]) -> None:
        first = runs[0]
        self.runs = [run.seconds for run in runs]
        self.seconds = median(self.runs)
        self.without_reading = median(run.seconds - run.read for run in runs)
        self.derivations, self.closure = first.derivations, first.closure
        self.chose, self.reason = first.algorithm, first.reason


class Subject:
    """A graph that is measured with one algorithm."""

    def __init__(self, rules: str, file: Path, algorithm: str, limit: float) -> None:
        self.rules, self.algorithm, self.limit = rules, algorithm, limit
        self._file = file
        self._upkeep = "counting" if algorithm == "counting" else "auto"
        """What loads and restores: counts are there only if every update has kept them."""
        self.load()

    def load(self) -> None:
        self.graph = KnowledgeGraph(self.rules, equality="off")
        self.graph.update(insert=[self._file], algorithm=self._upkeep)
        self.closure = len(self.graph)
        self.explicit = self.graph.counts("explicit")[TRIPLE]

    def run(self, change: Change) -> Run:
        """Apply a change with the algorithm; `Stopped` if that takes more than the limit."""
        with stopped_after(self.limit):
            start = perf_counter()
            report = self.graph.update(insert=change.insert, delete=change.delete, algorithm=self.algorithm)
            seconds = perf_counter() - start
        read = sum(phase.seconds for phase in report.phases if phase.name == "read")
        return Run(seconds, read, report.derivations, report.algorithm, report.reason, len(self.graph))

    def restore(self, change: Change) -> None:
        self.graph.update(insert=change.insert, delete=change.delete, algorithm=self._upkeep)


def measure(subject: Subject, cell: Cell, changes: Iterable[Change], back: Cell | None = None) -> None:
    """Fill a cell with the runs of some changes, and `back` with those of their opposites if they are to be told too."""
    there: list[Run] = []
    again: list[Run] = []
    filling = cell
    try:
        for change in changes:
            filling = cell
            there.append(subject.run(change))
            if back is None:
                subject.restore(change.back)
            else:
                filling = back
                again.append(subject.run(change.back))
            if len(subject.graph) != subject.closure:
                cell.status, cell.line = "wrong", f"{len(subject.graph):,} triples after it was undone, not {subject.closure:,}"
                break
            if sum(run.seconds for run in there) > ENOUGH:
                break
    except Stopped:
        filling.status, filling.line = "stopped", f"more than {subject.limit:g} s"
        if filling is cell and back is not None:
            back.status, back.line = "skipped", f"the deletion took more than {subject.limit:g} s"
        subject.load()
    except UserError as reason:
        filling.status, filling.line = "unsupported", str(reason)
        subject.load()
    for filled, runs in ((cell, there), (back, again)):
        if filled is not None and runs and filled.status in ("ok", "wrong"):
            filled.fill(runs)


def compare(cells: Sequence[Cell]) -> None:
    """Fill in the ratios, and mark closures that are not recomputation's."""

    def key(cell: Cell) -> tuple[Any, ...]:
        return cell.rules, cell.universities, cell.operation, cell.update

    for _, group in groupby(sorted(cells, key=key), key):
        done = [cell for cell in group if cell.status == "ok"]
        base = next((cell for cell in done if cell.algorithm == "recompute"), None)
        best = min((cell.seconds for cell in done if cell.seconds is not None), default=None)
        for cell in done:
            assert cell.seconds is not None and best is not None
            cell.to_best = cell.seconds / best
            if base is not None and base.seconds is not None:
                cell.to_recompute = cell.seconds / base.seconds
                if cell.closure != base.closure:
                    cell.status, cell.line = "wrong", f"{cell.closure:,} triples where recompute has {base.closure:,}"
