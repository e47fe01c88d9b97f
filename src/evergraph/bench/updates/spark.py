"""A hundred facts on Spark: `python -m evergraph.bench.updates.spark RULES FILE FACTS CORES RESULT`.

In a process of its own, with a session that has loaded the graph before; starting it is not counted, and neither is making
counts. A superstep is a Spark job, which costs the same however little it has to do, or runs in the driver if it is small.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from evergraph.bench.run_one import importable
from evergraph.bench.updates.facts import InstanceFacts, given

ALGORITHMS = ("recompute", "dred", "backward-forward", "counting")
TURNS = 3
"""Measurements, of which the median counts."""


def run(rules: str, file: Path, facts: int, cores: int) -> dict[str, Any]:
    if not importable("pyspark"):
        return {"status": "missing", "line": "not installed: pip install 'evergraph[spark]'", "rows": []}
    from evergraph import KnowledgeGraph
    from evergraph.engines.spark import make_session

    session = make_session(f"local[{cores}]")
    graph = KnowledgeGraph(rules, engine=session, equality="off")
    start = perf_counter()
    graph.update(insert=[file])
    load, closure = perf_counter() - start, len(graph)
    drawn = InstanceFacts(file)
    rows: list[dict[str, Any]] = []
    for algorithm in ALGORITHMS:
        runs: dict[str, list[dict[str, Any]]] = {"delete": [], "insert": []}
        graph.update(algorithm=algorithm)
        for turn in range(TURNS):
            sample = given(drawn.draw(facts, turn))
            for operation in runs:
                runs[operation].append(_timed(graph, operation, sample, algorithm))
        rows += [_row(operation, algorithm, facts, done) for operation, done in runs.items()]
    session.stop()
    return {**verdict(rows, closure), "load": load, "closure": closure, "rows": rows}


def verdict(rows: Sequence[dict[str, Any]], closure: int) -> dict[str, str]:
    """Whether every insertion gave back what there was, and all algorithms left the same after each deletion."""
    sizes = {
        operation: [row["closures"] for row in rows if row["operation"] == operation] for operation in ("delete", "insert")
    }
    if any(size != closure for one in sizes["insert"] for size in one):
        return {"status": "wrong", "line": f"{sizes['insert']} triples after insertions that should give {closure:,}"}
    if any(one != sizes["delete"][0] for one in sizes["delete"]):
        return {"status": "wrong", "line": f"closures of different sizes after the same deletions: {sizes['delete']}"}
    return {"status": "ok", "line": ""}


def _timed(graph: Any, operation: str, sample: Any, algorithm: str) -> dict[str, Any]:
    engine = graph._engine
    jobs, supersteps = engine.jobs, engine.supersteps
    start = perf_counter()
    report = graph.update(**{operation: sample}, algorithm=algorithm)
    seconds = perf_counter() - start
    done = {"seconds": seconds, "supersteps": engine.supersteps - supersteps, "jobs": engine.jobs - jobs}
    return done | {"derivations": report.derivations, "closure": len(graph)}


def _row(operation: str, algorithm: str, facts: int, runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The median of each figure; closures are those after each run."""
    middle = {name: median(run[name] for run in runs) for name in ("seconds", "supersteps", "jobs", "derivations")}
    return {
        "operation": operation,
        "algorithm": algorithm,
        "facts": facts,
        **middle,
        "seconds_per_superstep": middle["seconds"] / middle["supersteps"],
        "closures": [run["closure"] for run in runs],
        "runs": runs,
    }


def main(arguments: list[str]) -> None:
    rules, file, facts, cores, result = arguments
    Path(result).write_text(json.dumps(run(rules, Path(file), int(facts), int(cores))))


if __name__ == "__main__":
    main(sys.argv[1:])
