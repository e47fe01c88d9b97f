"""The seven measures of §5.2, on one ontology with one algorithm, and two more: rules that go and come in bulk.

A run sets a graph up and takes it through the same steps as the paper: a rule goes and comes back, facts go and come back, and
the query is asked of the materialisation. Then a share of the rules goes and comes back, which the paper's engine could not do.
Each run has rules and facts of its own, drawn by its number: the same for every algorithm.

Paper: Volz, Staab, Motik 2003, §5.2 and §5.3.
Symbols: (a) → `orig query`, (b) → `set-up`, (c), (d) → `add rule`, `remove rule`, (e), (f) → `add facts`, `remove facts`,
    (g) → `query`; Change → `change`, in percent.
Departures: (a) has no goal-directed evaluation behind it: it is a graph of its own with the rules that the query depends on,
    made, filled and asked. (b) includes reading and encoding the facts; for `declarative` it includes making the maintenance
    program, as the paper's does, and for `auto` there is none.
Invariant: after each step of the first run, the graph is what a new graph has of the rules and facts that should be left; that
    is compared outside the timing, and a cell where it does not hold is `wrong`.
Cost and traps: a cell that is stopped at the limit keeps what it has; its last graph is in no state to be used, and is not.
    What one step leaves undone the next one pays: if a graph makes its maintenance program anew after a change of rules, that
    is in `remove facts`.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import fmean
from time import perf_counter
from typing import Any

import pyarrow as pa

from evergraph import KnowledgeGraph, Program, UserError
from evergraph.bench.stopping import Stopped, stopped_after
from evergraph.bench.volz.generator import Ontology
from evergraph.bench.volz.paper import MEASURES, Figure, published

BULK = ("remove rules", "add rules")
ALL = (*MEASURES, *BULK)
CHANGES = ("remove rule", "add rule", "remove facts", "add facts", *BULK)
"""Measures of maintenance, which a set-up is compared with."""


@dataclass(slots=True)
class Cell:
    """An ontology, a share of it that changes, and an algorithm: milliseconds of each run, by measure."""

    kind: str
    depth: int
    change: int
    algorithm: str
    status: str = "ok"
    """ok, wrong, stopped or unsupported."""
    line: str = ""
    runs: dict[str, list[float]] = field(default_factory=dict)
    ran: dict[str, str] = field(default_factory=dict)
    """The algorithm that each change got in the first run."""
    checked: int = 0
    """States that were compared with recomputation."""
    counts: dict[str, int] = field(default_factory=dict)
    answers: int = 0
    closure: int = 0

    def mean(self, measure: str) -> float | None:
        return fmean(self.runs[measure]) if self.runs.get(measure) else None

    def ratio(self, measure: str) -> float | None:
        """How many times longer a set-up takes than this."""
        setup, found = self.mean("set-up"), self.mean(measure)
        return setup / found if setup is not None and found else None

    def as_dict(self) -> dict[str, Any]:
        """For JSON: mean, least and most of each measure, the runs, and the paper's average."""
        paper = published(self.kind, self.depth, self.change)
        measures = {
            name: {"mean": fmean(runs), "min": min(runs), "max": max(runs), "runs": runs, "set_up_ratio": self.ratio(name)}
            for name, runs in self.runs.items()
        }
        names = ("kind", "depth", "change", "algorithm", "status", "line", "counts", "closure", "answers", "checked", "ran")
        return {name: getattr(self, name) for name in names} | {"milliseconds": measures, "paper": paper}

    @property
    def paper(self) -> dict[str, Figure]:
        return published(self.kind, self.depth, self.change)


def measure(ontology: Ontology, change: int, algorithm: str, runs: int, limit: float) -> Cell:
    """All measures of a cell; each run may take so many seconds. Cost: what the runs cost, and for the first one the checks."""
    cell = Cell(ontology.kind, ontology.depth, change, algorithm, counts=ontology.counts)
    try:
        for turn in range(runs):
            with stopped_after(limit):
                _Run(ontology, cell, turn).go()
            if cell.status != "ok":
                break
    except Stopped:
        cell.status, cell.line = "stopped", f"a run took more than {limit:g} s"
    except UserError as reason:
        cell.status, cell.line = "unsupported", str(reason)
    return cell


class _Run:
    """One run of a cell."""

    def __init__(self, ontology: Ontology, cell: Cell, turn: int) -> None:
        self.ontology, self.cell, self.turn = ontology, cell, turn
        self.graph: KnowledgeGraph

    def go(self) -> None:
        ontology, cell, turn = self.ontology, self.cell, self.turn
        whole = ontology.program, ontology.facts
        without = self.time("orig query", self.query_without)
        self.time("set-up", self.set_up)
        self.check("set-up", *whole)
        cell.closure = len(self.graph)
        rule, rules_left = ontology.one_rule(turn)
        self.change("remove rule", {"delete_rules": rule}, rules_left, ontology.facts)
        self.change("add rule", {"insert_rules": rule}, *whole)
        facts, facts_left = ontology.some_facts(cell.change, turn)
        self.change("remove facts", {"delete": facts}, ontology.program, facts_left)
        self.change("add facts", {"insert": facts}, *whole)
        answers = self.time("query", lambda: self.graph.query(ontology.query, result="arrow"))
        cell.answers = answers.num_rows
        if sorted(answers["x"].to_pylist()) != sorted(without["x"].to_pylist()):
            self.wrong(f"{answers.num_rows:,} answers, and {without.num_rows:,} without a materialisation")
        rules, rules_left = ontology.some_rules(cell.change, turn)
        self.change("remove rules", {"delete_rules": rules}, rules_left, ontology.facts)
        self.change("add rules", {"insert_rules": rules}, *whole)

    def query_without(self) -> pa.Table:
        graph = KnowledgeGraph(self.ontology.needed(), equality="off")
        graph.update(insert=self.ontology.facts)
        return graph.query(self.ontology.query, result="arrow")

    def set_up(self) -> None:
        self.graph = KnowledgeGraph(self.ontology.program, equality="off")
        self.graph.update(insert=self.ontology.facts)
        if self.cell.algorithm == "declarative":
            self.graph.update(algorithm="declarative")  # nothing changes; the maintenance program is made

    def change(self, name: str, given: dict[str, Any], rules: Program, facts: pa.Table) -> None:
        """An update; afterwards these rules and facts should be left."""
        report = self.time(name, lambda: self.graph.update(**given, algorithm=self.cell.algorithm))
        self.cell.ran.setdefault(name, report.algorithm)
        self.check(name, rules, facts)

    def time(self, name: str, work: Callable[[], Any]) -> Any:
        """Do it and take its time, without what the step before left to the garbage collector."""
        gc.collect()
        start = perf_counter()
        done = work()
        self.cell.runs.setdefault(name, []).append(1000 * (perf_counter() - start))
        return done

    def check(self, name: str, rules: Program, facts: pa.Table) -> None:
        if self.turn:
            return
        fresh = KnowledgeGraph(rules, equality="off")
        fresh.update(insert=facts)
        missing, extra = compare(fresh, self.graph)
        self.cell.checked += 1
        if missing or extra:
            self.wrong(f"after {name}, {missing:,} triples are missing and {extra:,} do not follow")

    def wrong(self, line: str) -> None:
        if self.cell.status == "ok":
            self.cell.status, self.cell.line = "wrong", line


def compare(want: KnowledgeGraph, got: KnowledgeGraph) -> tuple[int, int]:
    """How many triples are missing, explicit or not, and how many should not be there. Cost: linear in both."""
    missing = extra = 0
    for which in ("explicit", "all"):
        wanted, found = ({row for block in kg.blocks(which) for row in _rows(block)} for kg in (want, got))
        missing, extra = missing + len(wanted - found), extra + len(found - wanted)
    return missing, extra


def _rows(block: tuple[pa.Array, ...]) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in block), strict=True))
