"""`evergraph bench updates`: measure part after part, print a table for each, write `updates.json` and two charts.

The JSON is written anew after each part, so that what was measured is there when a later part fails. Parts that need what is
not installed say so. Exit code 1 if any closure is not what recomputation, or Evergraph, has.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from evergraph.bench import results
from evergraph.bench.apart import apart
from evergraph.bench.updates import charts, tables
from evergraph.bench.updates.cells import Cell
from evergraph.bench.updates.counting import overhead
from evergraph.bench.updates.dataflow import SYSTEMS
from evergraph.bench.updates.deletions import HUNDRED, deletions
from evergraph.bench.updates.growth import growth
from evergraph.bench.updates.six import DIFFERS, TABLE_2, measure_six
from evergraph.errors import UserError
from evergraph.maintain.choose import ALGORITHMS

PARTS = ("urbani", "deletions", "growth", "counting", "pathway", "spark")
SMALL = 1
"""Universities of the graph that growth starts from, and of pathway's."""
SPARK_UNIVERSITIES, SPARK_RULES, SPARK_CORES = 10, "rhodf", 2
DATAFLOW_TURNS = 15
PATIENCE = 1800.0
"""Seconds that a process of its own may take, load and all."""


@dataclass(slots=True)
class Measured:
    """What has been measured so far."""

    cells: list[Cell] = field(default_factory=list)
    six: list[Cell] = field(default_factory=list)
    more: dict[str, Any] = field(default_factory=dict)
    tables: list[Table] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def wrong(self) -> bool:
        others = [*self.more.get("pathway", {}).values(), self.more.get("spark", {})]
        return any(c.status == "wrong" for c in (*self.cells, *self.six)) or any(o.get("status") == "wrong" for o in others)


@dataclass(frozen=True, slots=True)
class Asked:
    """What to measure, and with what."""

    universities: Sequence[int]
    rules: Sequence[str]
    algorithms: Sequence[str]
    limit: float
    data: Path

    def file(self, universities: int) -> Path:
        return results.lubm(universities, self.data)


def main(
    universities: Sequence[int],
    rules: Sequence[str],
    algorithms: Sequence[str] | None,
    parts: Sequence[str],
    limit: float,
    out: Path,
    data: Path = Path("bench-data"),
    as_json: bool = False,
) -> int:
    """Measure, say how it went, write `updates.json` and the charts into `out`; 1 if closures differ."""
    for name in (name for name in parts if name not in PARTS):
        raise UserError("EG302", f"no part is called {name!r}", f"use some of {', '.join(PARTS)}")
    for name in (name for name in algorithms or () if name not in ALGORITHMS):
        raise UserError("EG302", f"no algorithm is called {name!r}", f"use some of {', '.join(ALGORITHMS)}")
    asked = Asked(sorted(universities), rules, algorithms or default_algorithms(), limit, data)
    measured, written = Measured(), {}
    for part in (part for part in PARTS if part in parts):
        STEPS[part](asked, measured)
        rows = [asdict(cell) for cell in measured.cells]
        six = [asdict(cell) for cell in measured.six]
        written = results.save(out / "updates.json", rows, limit=limit, urbani=six, notes=measured.notes, **measured.more)
    charts.draw_deletions(measured.cells, out / "updates-deletions.png")
    charts.draw_six(measured.six, out / "updates-urbani.png")
    if as_json:
        print(json.dumps(written, ensure_ascii=False))
    else:
        console = results.console()
        for table in measured.tables:
            console.print(table)
        for note in measured.notes:
            console.print(note, style="bold red" if note.startswith("wrong") else "dim", highlight=False, soft_wrap=True)
    return 1 if measured.wrong else 0


def default_algorithms() -> list[str]:
    """All there are: recomputation, which is what others are compared with, first, and the choice among them last."""
    return sorted(ALGORITHMS, key=lambda name: (name != "recompute", name == "auto"))


def say(text: str) -> None:
    """Tell how far it is, on standard error."""
    Console(stderr=True).print(f"{text} …", style="dim", highlight=False, soft_wrap=True)


# -- parts -----------------------------------------------------------------------------------------------------------


def _urbani(asked: Asked, measured: Measured) -> None:
    universities = max(asked.universities)
    measured.six = measure_six(universities, asked.file(universities), asked.algorithms, asked.limit, say)
    measured.more["published"] = {number: asdict(row) for number, row in TABLE_2.items()}
    measured.tables += [tables.six_table(measured.six, operation) for operation in ("insert", "delete")]
    measured.notes.append(DIFFERS.format(n=universities))
    measured.notes += tables.troubles(measured.six)


def _deletions(asked: Asked, measured: Measured) -> None:
    for universities in asked.universities:
        for rules in asked.rules:
            found = deletions(rules, universities, asked.file(universities), asked.algorithms, asked.limit, say)
            measured.cells += found
            measured.tables.append(tables.deletions_table(found))
            measured.notes += tables.troubles(found)


def _growth(asked: Asked, measured: Measured) -> None:
    """What the deletions by size have not measured, and the comparison."""
    there = {(cell.rules, cell.universities) for cell in measured.cells}
    found: list[Cell] = []
    for rules in asked.rules:
        for universities in sorted({SMALL, max(asked.universities)}):
            if (rules, universities) not in there:
                file = asked.file(universities)
                found += deletions(rules, universities, file, asked.algorithms, asked.limit, say, (HUNDRED,))
    measured.cells += found
    measured.notes += tables.troubles(found)
    measured.more["growth"] = growth(measured.cells)
    if measured.more["growth"]:
        measured.tables.append(tables.growth_table(measured.more["growth"]))
    else:
        measured.notes.append(f"growth: nothing to compare LUBM({SMALL}) with; ask for a larger graph with --universities")


def _counting(asked: Asked, measured: Measured) -> None:
    rows = []
    for universities in asked.universities:
        for rules in asked.rules:
            say(f"LUBM({universities}) {rules}: closure with counts and without")
            rows.append(overhead(rules, universities, asked.file(universities)))
    measured.more["counting"] = rows
    measured.tables.append(tables.counting_table(rows))
    measured.notes += [f"counting, {row['rules']}: {row['line']}" for row in rows if row["line"]]


def _pathway(asked: Asked, measured: Measured) -> None:
    found: dict[str, dict[str, Any]] = {}
    for system in SYSTEMS:
        say(f"LUBM({SMALL}) rhodf {system}: {HUNDRED.name}, in a process of its own")
        arguments = [system, str(asked.file(SMALL)), str(HUNDRED.facts), str(DATAFLOW_TURNS)]
        found[system] = apart("evergraph.bench.updates.dataflow", arguments, 1, PATIENCE)
    same_closures(found)
    measured.more["pathway"] = found
    measured.tables.append(tables.dataflow_table(found, HUNDRED.facts))
    measured.notes += [f"{row['status']}: {system}: {row['line']}" for system, row in found.items() if row["line"]]


def same_closures(found: dict[str, dict[str, Any]]) -> None:
    """Mark systems whose closures, after the load or after some deletion, have other sizes than Evergraph's."""
    ours = found["evergraph"]
    for row in found.values():
        if row["status"] == ours["status"] == "ok":
            for name in ("closure", "closure_after"):
                if row[name] != ours[name]:
                    row["status"], row["line"] = "wrong", f"{name}: {row[name]} where evergraph has {ours[name]}"


def _spark(asked: Asked, measured: Measured) -> None:
    say(f"LUBM({SPARK_UNIVERSITIES}) {SPARK_RULES} on Spark, in a process of its own")
    arguments = [SPARK_RULES, str(asked.file(SPARK_UNIVERSITIES)), str(HUNDRED.facts)]
    found = apart("evergraph.bench.updates.spark", arguments, SPARK_CORES, PATIENCE)
    measured.more["spark"] = found
    if found["status"] == "ok":
        measured.tables.append(tables.spark_table(found, SPARK_UNIVERSITIES, SPARK_RULES, SPARK_CORES))
    else:
        measured.notes.append(f"{found['status']}: Spark: {found['line']}")


STEPS = {
    "urbani": _urbani,
    "deletions": _deletions,
    "growth": _growth,
    "counting": _counting,
    "pathway": _pathway,
    "spark": _spark,
}
