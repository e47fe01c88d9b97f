"""Updates of a graph on the device, by name and by `auto`, beside the memory engine."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import Any

from evergraph import KnowledgeGraph
from evergraph.bench.updates.facts import InstanceFacts, given
from evergraph.report import Report

ALGORITHMS = ("auto", "dred", "backward-forward", "recompute", "counting")
"""The last one counts, and what is counted stays so: it has its turns after the others."""


def measure(
    graphs: dict[str, KnowledgeGraph], facts: InstanceFacts, sizes: list[int], repeat: int, say: Any
) -> Iterator[dict[str, Any]]:
    """A row for each number of facts, operation, engine and algorithm; the facts go and come back."""
    for algorithm in ALGORITHMS:
        for engine, kg in graphs.items():
            say(f"{engine} {algorithm}")
            for count in sizes:
                turns = [_turn(kg, given(facts.draw(count, turn)), algorithm) for turn in range(repeat + 1)][1:]
                for operation in ("delete", "insert"):
                    reports = [turn[operation] for turn in turns]
                    found = {
                        "facts": count,
                        "operation": operation,
                        "engine": engine,
                        "asked": algorithm,
                        "algorithm": reports[0].algorithm,
                        "reason": reports[0].reason,
                        "seconds": median(map(_maintained, reports)),
                        "read": median(report.phases[0].seconds for report in reports),
                        "derivations": reports[0].derivations,
                    }
                    yield found
        names = list(graphs)
        assert all(graphs[name].counts() == graphs[names[0]].counts() for name in names), "the engines differ"


def _turn(kg: KnowledgeGraph, some: Any, algorithm: str) -> dict[str, Report]:
    return {
        "delete": kg.update(delete=some, algorithm=algorithm),
        "insert": kg.update(insert=some, algorithm=algorithm),
    }


def _maintained(report: Report) -> float:
    """Seconds without reading what was given: that is the same for all."""
    return sum(phase.seconds for phase in report.phases if phase.name != "read")
