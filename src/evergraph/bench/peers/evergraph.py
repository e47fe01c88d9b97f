"""Evergraph: the memory engine, and the Spark engine.

What is timed is what the report of the update says: load is reading (parse, dictionary) and inserting (sorting ids
into relations), materialisation is the strata. Trap: the commit, which counts what the report tells, is in neither;
it is kept under `phases`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evergraph.bench.peers.base import Outcome, SameRules, timed


class Evergraph(SameRules):
    name = "evergraph"
    package = "evergraph"
    modules: tuple[str, ...] = ("evergraph",)

    def run(self, file: Path, rules: str, cores: int) -> Outcome:
        return _update(file, rules, "memory")


class EvergraphSpark(SameRules):
    name = "evergraph-spark"
    package = "'evergraph[spark]'"
    modules: tuple[str, ...] = ("pyspark", "evergraph.engines.spark")

    def run(self, file: Path, rules: str, cores: int) -> Outcome:
        from evergraph.engines.spark import make_session

        with timed() as starting:
            session = make_session(f"local[{cores}]")
        outcome = _update(file, rules, session)
        outcome.notes.append(f"session start of {starting.seconds:.1f} s not counted")
        session.stop()
        return outcome


def _update(file: Path, rules: str, engine: Any) -> Outcome:
    from evergraph import KnowledgeGraph

    graph = KnowledgeGraph(rules, engine=engine, equality="off")
    report = graph.update(insert=[file])
    load = sum(p.seconds for p in report.phases if p.name in ("read", "insert"))
    strata = sum(p.seconds for p in report.phases if p.name.startswith("stratum"))
    phases = {p.name: p.seconds for p in report.phases}
    return Outcome(len(graph), load, strata, phases=phases)
