"""`evergraph bench gpu`: closures, tables to tables, and updates on a device; `gpu.json` and a chart.

The JSON is written anew after each part, with the device and the versions of its driver and of CuPy. Exit code 1 if the device
and the memory engine do not have the same facts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from evergraph import KnowledgeGraph
from evergraph.bench import results
from evergraph.bench.equality.command import say
from evergraph.bench.gpu import chart, closures, stages, tables, updates
from evergraph.bench.gpu.copies import copies_of
from evergraph.bench.updates.facts import InstanceFacts
from evergraph.engines.gpu.device import find_device
from evergraph.errors import UserError

PARTS = ("closure", "stages", "updates")


@dataclass(frozen=True, slots=True)
class Asked:
    """What to measure, and how often."""

    universities: int
    copies: int
    rules: Sequence[str]
    repeat: int
    data: Path


@dataclass(slots=True)
class Done:
    """What has been measured so far."""

    rows: list[dict[str, Any]] = field(default_factory=list)

    @property
    def wrong(self) -> list[str]:
        differ = [row for row in self.rows if row.get("differ")]
        return [f"{row['rules']}: the device has other facts in {', '.join(row['differ'])}" for row in differ]

    @property
    def notes(self) -> list[str]:
        return [*tables.NOTES, *tables.verdicts(self.rows), *(f"wrong: {line}" for line in self.wrong)]


def main(asked: Asked, parts: Sequence[str], out: Path, as_json: bool = False) -> int:
    """Measure, say how it went, write `gpu.json` and the chart into `out`; 1 if anything is wrong."""
    for name in (name for name in parts if name not in PARTS):
        raise UserError("EG302", f"no part is called {name!r}", f"use some of {', '.join(PARTS)}")
    cupy = find_device()
    file = results.lubm(asked.universities, asked.data)
    done, written = Done(), {}
    for rules in asked.rules:
        say(f"LUBM({asked.universities}) {rules}: load")
        graph = KnowledgeGraph(rules, equality="off")
        graph.update(insert=[file])
        for part in (part for part in PARTS if part in parts):
            for row in _measure(part, graph, rules, asked, file, cupy):
                done.rows.append({"part": part, "rules": rules, "universities": asked.universities, **row})
            cupy.get_default_memory_pool().free_all_blocks()
            written = _save(out, asked, done, cupy)
    chart.draw(done.rows, out / "gpu.png")
    results.show(written, as_json, tables.tables(done.rows), done.notes)
    return 1 if done.wrong else 0


def _measure(part: str, graph: KnowledgeGraph, rules: str, asked: Asked, file: Path, cupy: Any) -> Iterator[dict[str, Any]]:
    if part == "updates":
        device = KnowledgeGraph(rules, equality="off", engine="gpu")
        device.update(insert=[file])
        facts = InstanceFacts(file)
        sizes = [1, 100, len(facts) // 100]
        yield from updates.measure({"memory": graph, "gpu": device}, facts, sizes, asked.repeat, say)
        return
    for count in (1, asked.copies) if part == "closure" else (asked.copies,):
        say(f"{rules}: {part}, {count} copies")
        copies = copies_of(graph, count)
        if part == "closure":
            rows = closures.measure(copies, cupy, asked.repeat, say)
        else:
            rows = stages.measure(copies, cupy, asked.data)
        yield from ({"copies": count, **row} for row in rows)


def _save(out: Path, asked: Asked, done: Done, cupy: Any) -> dict[str, Any]:
    runtime = cupy.cuda.runtime
    device = {
        "name": runtime.getDeviceProperties(0)["name"].decode(),
        "memory": runtime.memGetInfo()[1],
        "driver": runtime.driverGetVersion(),
        "cuda": runtime.runtimeGetVersion(),
        "cupy": cupy.__version__,
    }
    more = {"device": device, "notes": done.notes, "wrong": done.wrong}
    return results.save(out / "gpu.json", done.rows, asked={**asdict(asked), "data": str(asked.data)}, **more)
