"""What a large program costs: to set up, as rules and as triples, and to change by a rule or by many.

A rule that is measured goes and comes back, so that every measurement starts from the same program. What is timed is `update`
as its caller sees it; rules are given as `Rule`s, because reading them is told with the set-up.

Trap: the first change after a set-up makes what later ones reuse, indices above all. It is a run; medians leave it out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from evergraph import KnowledgeGraph, Program
from evergraph.bench.rules.axioms import KINDS, PREFIX
from evergraph.bench.rules.generate import Large
from evergraph.engines.base import Which
from evergraph.maintain.verify import Differs
from evergraph.report import Report
from evergraph.rules.model import Rule

FORMS = ("rules", "triples")
SOME = (
    "intersection of two",
    "existential on the left",
    "universal on the right",
    "has-value on the left",
    "has-value on the right",
    "inverse",
    "chain of two",
)
"""Forms of rules that are changed one at a time, beside the four axioms."""
TURNS = 5
MANY = 1000


@dataclass(slots=True)
class SetUp:
    """A graph that was made from files, and how long each stage took."""

    form: str
    graph: KnowledgeGraph
    stages: dict[str, float]
    closure: int
    derived: int

    @property
    def seconds(self) -> float:
        return sum(self.stages.values())

    def row(self) -> dict[str, Any]:
        found = {"form": self.form, "rules": len(self.graph.rules.rules), "closure": self.closure, "derived": self.derived}
        return {**found, "seconds": self.seconds, "stages": self.stages}


def set_up(large: Large, form: str) -> SetUp:
    """Read the files, compile and close: all rules as rules, or the axioms as triples under `rhodf`. Cost: linear."""
    files = large.files
    start = perf_counter()
    program = Program.load(files["rules"] if form == "rules" else files["others"])
    parsed = perf_counter()
    graph = KnowledgeGraph(program, equality="off")
    compiled = perf_counter()
    report = graph.update(insert=[files["facts"]] if form == "rules" else [files["facts"], files["schema"]])
    done = perf_counter()
    read = sum(phase.seconds for phase in report.phases if phase.name == "read")
    stages = {
        "parse rules": parsed - start,
        "compile": compiled - parsed,
        "parse facts": read,
        "close": done - compiled - read,
    }
    return SetUp(form, graph, stages, sum(graph.counts().values()), sum(report.inserted.derived.values()))


def same_instances(one: KnowledgeGraph, other: KnowledgeGraph) -> str:
    """How the facts of two graphs differ, schema triples aside; nothing if they are the same. Cost: a sort of all facts."""
    terms = one._dictionary.encode(other._dictionary.since(0).to_pylist())
    schema = {one._dictionary.find(predicate) for predicate, _ in KINDS.values()}
    mine = one._engine.relations(Which.ALL)
    theirs = {int(terms[key]) if isinstance(key, int) else key: r for key, r in other._engine.relations(Which.ALL).items()}
    for key in {*mine, *theirs} - schema:
        sizes = [len(relations[key]) if key in relations else 0 for relations in (mine, theirs)]
        name = one._dictionary.term(key) if isinstance(key, int) else str(key)
        if sizes[0] != sizes[1]:
            return f"{name}: {sizes[0]:,} facts as rules, {sizes[1]:,} as triples"
        if sizes[0] and not np.array_equal(_rows(mine[key].columns()), _rows([terms[c] for c in theirs[key].columns()])):
            return f"{name}: other facts as rules than as triples"
    return ""


def _rows(columns: Sequence[Any]) -> Any:
    """Facts in order, one a line."""
    return np.stack([np.asarray(c, np.uint64) for c in columns])[:, np.lexsort(columns[::-1])]


class Changes:
    """Changes of rules on a graph, each beside recomputation, and the first of them that was wrong."""

    def __init__(self, graph: KnowledgeGraph, rng: Random) -> None:
        self.graph, self.rng = graph, rng
        self.sizes = graph.counts()
        self.recompute = min(_timed(lambda: graph.update(algorithm="recompute"))[0] for _ in range(2))
        self.wrong = ""

    def one_by_one(self, large: Large) -> list[dict[str, Any]]:
        """A rule at a time: some of each kind. The first of each kind is checked against recomputation."""
        kinds = {kind: [axiom.rule for axiom in large.axioms if axiom.kind == kind] for kind in KINDS}
        kinds |= {form: large.others[form] for form in SOME}
        rows = []
        for kind, rules in kinds.items():
            chosen = self.rng.sample(rules, min(TURNS, len(rules)))
            rows.append(self._measure(kind, [_rules([text]) for text in chosen]))
        return rows

    def many(self, large: Large, number: int = MANY) -> dict[str, Any]:
        """Rules of all kinds in one update."""
        chosen = self.rng.sample(large.rules, min(number, len(large.rules) // 10))
        return self._measure("all kinds", [_rules(chosen)])

    def _measure(self, kind: str, changes: Sequence[tuple[Rule, ...]]) -> dict[str, Any]:
        seconds: dict[str, list[float]] = {"delete": [], "insert": []}
        facts: dict[str, list[int]] = {"delete": [], "insert": []}
        chose = ""
        for number, rules in enumerate(changes):
            spent, report = _timed(lambda rules=rules: self.graph.update(delete_rules=rules))  # type: ignore[misc]
            seconds["delete"].append(spent)
            facts["delete"].append(len(report.deleted))
            chose = chose or report.algorithm
            if number == 0:
                self._check(f"{kind}: after {len(rules)} rules went")
            spent, report = _timed(lambda rules=rules: self.graph.update(insert_rules=rules))  # type: ignore[misc]
            seconds["insert"].append(spent)
            facts["insert"].append(len(report.inserted))
            if self.graph.counts() != self.sizes:
                self.wrong = self.wrong or f"{kind}: other facts than before after {len(rules)} rules came back"
        row: dict[str, Any] = {"kind": kind, "rules": len(changes[0]), "turns": len(changes), "chose": chose}
        for operation, runs in seconds.items():
            row[operation] = median(runs)
            row[f"{operation}_to_recompute"] = median(runs) / self.recompute
            row[f"{operation}_runs"] = runs
            row[f"{operation}_facts"] = median(facts[operation])
        return row

    def _check(self, what: str) -> None:
        try:
            self.graph.verify()
        except Differs as error:
            self.wrong = self.wrong or f"{what}: {error.message}"


def _rules(lines: Sequence[str]) -> tuple[Rule, ...]:
    return Program.parse(PREFIX + "\n".join(lines)).rules


def _timed(change: Callable[[], Report]) -> tuple[float, Report]:
    start = perf_counter()
    report = change()
    return perf_counter() - start, report
