"""Table 1: facts that go, by backward/forward and by recomputation, with equality by rewriting and by axioms.

A cell is a deletion by an approach, repeated with other facts; what counts is the median. All approaches are given the same
facts, drawn by size and turn, and after each deletion the facts are inserted again; if the graph then is not what it was, in
all its facts, the explicit ones and its cliques, or if two approaches with the same treatment of equality leave different
numbers of facts, the cell is `wrong`. A fifth approach leaves the choice of the algorithm to `auto`.

Paper: Motik, Nenov, Piro, Horrocks: Combining Rewriting and Incremental Materialisation Maintenance for Datalog Programs with
Equality. IJCAI 2015, §4 and Table 1.
Symbols: E⁻ → `facts`; Δ|I≈|, Δ|Iᴬ| → `gone`; T → `seconds`; D → `derivations`; I≈, Iᴬ → `Load.facts`; n, the equilibrium →
    `Measured.equilibrium`.
Traps: a graph is measured with one algorithm only, because an algorithm leaves indices behind that the next would profit from.
    An update that is stopped leaves a graph that nobody should measure: its approach is not asked for more facts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from math import exp, log
from pathlib import Path
from statistics import median
from typing import Any

from evergraph import KnowledgeGraph, Program
from evergraph.bench.equality.programs import Equality, State, graph, held, state, timed_update
from evergraph.bench.stopping import Stopped, stopped_after
from evergraph.bench.updates.facts import InstanceFacts, given

ENOUGH = 20.0
"""Seconds; a cell that has taken so many is not repeated."""


@dataclass(frozen=True, slots=True)
class Approach:
    """How equality is treated, and what maintains."""

    name: str
    equality: Equality
    algorithm: str


BF, REMAT = Approach("B/F≈", "rewrite", "backward-forward"), Approach("Remat≈", "rewrite", "recompute")
BF_A, REMAT_A = Approach("B/Fᴬ", "axioms", "backward-forward"), Approach("Rematᴬ", "axioms", "recompute")
AUTO = Approach("auto≈", "rewrite", "auto")
APPROACHES = (BF, REMAT, AUTO, BF_A, REMAT_A)


@dataclass(slots=True)
class Cell:
    """A deletion by an approach."""

    data: str
    approach: str
    equality: str
    size: str
    """As it was asked for: a number of facts, or a share."""
    facts: int
    status: str = "ok"
    """ok, stopped (at the limit), skipped, or wrong."""
    line: str = ""
    seconds: float | None = None
    derivations: int | None = None
    """Of the first run, as `gone` and `left`: runs are of different facts."""
    gone: int | None = None
    """Facts fewer in the materialisation: normalised ones with rewriting."""
    left: int | None = None
    """Facts of the materialisation afterwards, expanded."""
    chose: str = ""
    reason: str = ""
    runs: list[float] = field(default_factory=list)


@dataclass(slots=True)
class Load:
    """The first materialisation: one run for each approach with this treatment of equality."""

    status: str = "ok"
    line: str = ""
    facts: int | None = None
    expanded: int | None = None
    derivations: int | None = None
    cliques: dict[str, Any] | None = None
    runs: list[float] = field(default_factory=list)

    @property
    def seconds(self) -> float | None:
        return median(self.runs) if self.runs else None


@dataclass(slots=True)
class Measured:
    """A data set and what was measured on it."""

    data: str
    explicit: int
    rules: int
    loads: dict[str, Load] = field(default_factory=dict)
    cells: list[Cell] = field(default_factory=list)

    def cell(self, approach: Approach, size: str) -> Cell | None:
        return next((cell for cell in self.cells if (cell.approach, cell.size) == (approach.name, size)), None)

    @property
    def equilibrium(self) -> float | None:
        """Facts to delete for which B/F≈ takes as long as Remat≈; none where one of them is always the quicker."""
        pairs = [(cell, self.cell(REMAT, cell.size)) for cell in self.cells if cell.approach == BF.name]
        known = sorted((a.facts, a.seconds / b.seconds) for a, b in pairs if b and a.seconds and b.seconds)
        return crossing(known)

    def as_dict(self) -> dict[str, Any]:
        """For JSON; the cells are its rows."""
        n = self.equilibrium
        found = {"data": self.data, "explicit": self.explicit, "rules": self.rules}
        loads = {name: asdict(load) | {"seconds": load.seconds} for name, load in self.loads.items()}
        return found | {"loads": loads, "equilibrium": n, "equilibrium_share": n and n / self.explicit}


def crossing(ratios: Sequence[tuple[int, float]]) -> float | None:
    """The size at which a ratio that has been below 1 comes to be 1: straight between measured sizes, on logarithmic scales.

    >>> round(crossing([(100, 0.01), (1000, 0.1), (100_000, 10.0)])), crossing([(100, 0.5), (1000, 0.9)])
    (10000, None)
    """
    for (few, low), (many, high) in pairwise(ratios):
        if low < 1 <= high:
            return exp(log(few) + (log(many) - log(few)) * -log(low) / (log(high) - log(low)))
    return None


class Subject:
    """A graph that is measured with one approach."""

    graph: KnowledgeGraph
    before: State
    facts: int

    def __init__(self, program: Program, file: Path, approach: Approach, limit: float, patience: float) -> None:
        self.approach, self.limit = approach, limit
        self._program, self._file, self._patience = program, file, patience

    def load(self, into: Load) -> str:
        """Materialise; why that cannot be measured, if so. What has taken more than our patience is not tried again."""
        if into.status == "ok":
            try:
                with stopped_after(self._patience):
                    kg = graph(self._program, self.approach.equality)
                    seconds, report = timed_update(kg, insert=[self._file])
            except Stopped:
                into.status, into.line = "stopped", f"more than {self._patience:g} s"
            else:
                self.graph, self.before, self.facts = kg, state(kg), held(kg)
                into.runs.append(seconds)
                into.facts, into.expanded, into.derivations = self.facts, len(kg), report.derivations
                into.cliques = self.before[2]
        return into.line and f"the materialisation took {into.line}"

    def fill(self, cell: Cell, facts: InstanceFacts, repeat: int) -> str:
        """Delete, and insert again, as often as asked for; why the graph is of no use any more, if so."""
        for turn in range(repeat):
            delete = given(facts.draw(cell.facts, turn))
            try:
                with stopped_after(self.limit):
                    seconds, report = timed_update(self.graph, delete=delete, algorithm=self.approach.algorithm)
            except Stopped:
                cell.status, cell.line = "stopped", f"more than {self.limit:g} s"
                return f"{cell.size} took {cell.line}"
            cell.runs.append(seconds)
            cell.seconds = median(cell.runs)
            if turn == 0:
                cell.derivations, cell.gone, cell.left = report.derivations, self.facts - held(self.graph), len(self.graph)
                cell.chose, cell.reason = report.algorithm, report.reason
            try:
                with stopped_after(self._patience):
                    self.graph.update(insert=delete)
            except Stopped:
                return f"inserting {cell.size} again took more than {self._patience:g} s"
            if state(self.graph) != self.before:
                cell.status, cell.line = "wrong", f"{state(self.graph)} after the facts came back, not {self.before}"
                return f"{cell.size} left a wrong state"
            if sum(cell.runs) > ENOUGH:
                break
        return ""
