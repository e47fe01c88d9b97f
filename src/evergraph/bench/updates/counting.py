"""What counting costs before the first deletion: the closure of an empty graph with counts and without.

Beside it: Urbani et al. 2013, §6, where counting slowed the initial processing by 49 %. The runs take turns, so that a slow
minute of the machine falls on both.
"""

from __future__ import annotations

from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from evergraph import KnowledgeGraph, UserError

TURNS = 3
URBANI_RATIO = 1.49
ALGORITHMS = ("auto", "counting")


def overhead(rules: str, universities: int, file: Path) -> dict[str, Any]:
    """Seconds and bytes of both; times with and without reading the file."""
    row: dict[str, Any] = {"rules": rules, "universities": universities, "status": "ok", "line": ""}
    runs: dict[str, list[tuple[float, float]]] = {name: [] for name in ALGORITHMS}
    for _ in range(TURNS):
        for name in ALGORITHMS:
            graph = KnowledgeGraph(rules, equality="off")
            start = perf_counter()
            try:
                report = graph.update(insert=[file], algorithm=name)
            except UserError as reason:
                return row | {"status": "unsupported", "line": str(reason)}
            seconds = perf_counter() - start
            runs[name].append((seconds, seconds - next(p.seconds for p in report.phases if p.name == "read")))
            row[f"{name}_bytes_per_fact"] = graph._engine.shard.nbytes / len(graph)  # type: ignore[attr-defined]
            row["closure"] = len(graph)
    for name, times in runs.items():
        row[f"{name}_seconds"] = median(seconds for seconds, _ in times)
        row[f"{name}_without_reading"] = median(seconds for _, seconds in times)
    row["ratio"] = row["counting_seconds"] / row["auto_seconds"]
    row["ratio_without_reading"] = row["counting_without_reading"] / row["auto_without_reading"]
    return row
