"""`evergraph bench volz`: measure cell after cell, print a table for each kind, write `volz.json` and `volz.png`.

The JSON is written anew after each ontology, so that what was measured is there when a later one fails. Exit code 1 if a state
is not what recomputation gives.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from evergraph.bench import results
from evergraph.bench.volz import chart, tables
from evergraph.bench.volz.generator import CHILDREN, INSTANCES, KINDS, PROPERTIES, make
from evergraph.bench.volz.measures import Cell, measure
from evergraph.errors import UserError
from evergraph.maintain.choose import ALGORITHMS

DIFFERS = (
    "the paper: Pentium IV Mobile 2 GHz, 512 MB, Java 1.4, KAON, averages as far as its appendix can be read; "
    "here set-up and the query without materialisation include reading the facts"
)


def main(
    kinds: Sequence[str],
    depths: Sequence[int],
    shares: Sequence[int],
    algorithms: Sequence[str],
    runs: int,
    limit: float,
    out: Path,
    as_json: bool = False,
) -> int:
    """Measure, say how it went, write `volz.json` and `volz.png` into `out`; 1 if anything is wrong."""
    for what, names, known in (("kind of ontology", kinds, KINDS), ("algorithm", algorithms, ALGORITHMS)):
        for name in (name for name in names if name not in known):
            raise UserError("EG302", f"no {what} is called {name!r}", f"use some of {', '.join(known)}")
    cells: list[Cell] = []
    written: dict[str, Any] = {}
    say = Console(stderr=True)
    for algorithm in algorithms:
        measure(make(KINDS[0], 2), 10, algorithm, 1, limit)  # imports what is imported when it is first used
    for kind in (kind for kind in KINDS if kind in kinds):
        for depth in sorted(set(depths)):
            ontology = make(kind, depth)
            for change in sorted(set(shares)):
                for algorithm in algorithms:
                    say.print(f"{kind}, D = {depth}, {change} %, {algorithm} …", style="dim", highlight=False)
                    cells.append(measure(ontology, change, algorithm, runs, limit))
            written = _save(out, cells, limit)
    chart.draw(cells, out / "volz.png")
    if as_json:
        print(json.dumps(written, ensure_ascii=False))
    else:
        _show(cells)
    return 1 if any(cell.status == "wrong" for cell in cells) else 0


def _save(out: Path, cells: Sequence[Cell], limit: float) -> dict[str, Any]:
    size = {"children": CHILDREN, "instances": INSTANCES, "properties": PROPERTIES}
    return results.save(out / "volz.json", [cell.as_dict() for cell in cells], limit=limit, **size, notes=[DIFFERS])


def _show(cells: Sequence[Cell]) -> None:
    console = results.console()
    for kind in dict.fromkeys(cell.kind for cell in cells):
        console.print(tables.table_of_kind([cell for cell in cells if cell.kind == kind]))
    for note in (DIFFERS, *tables.troubles(cells)):
        console.print(note, style="bold red" if note.startswith("wrong") else "dim", highlight=False, soft_wrap=True)
