"""`evergraph bench equality`: measure part after part, print their tables, write `equality.json` and `equality.png`.

The JSON is written anew after each data set and part, so that what was measured is there when a later one fails. Exit code 1 if
a graph is not what it should be.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console
from rich.table import Table

from evergraph.bench import results
from evergraph.bench.equality import alternating, chart, cliques, generator, table1, tables
from evergraph.bench.equality.alternating import Side
from evergraph.bench.equality.measures import Measured
from evergraph.bench.equality.programs import university
from evergraph.errors import UserError

PARTS = ("university", "cliques", "idle", "plain")
NOTES = (
    "one core; times are those of update() without the reading of files, medians where there are several runs; after each "
    "deletion the facts are inserted again and the state is compared with the one before",
    "the data is ours, in the manner of UOBM; the paper has UOBM-100: |E| = 24.5M, |Π| = 210, equilibrium at 16 to 20 % of E",
    "peers that pip can install do not maintain equality; reasonable, which has it as axioms, closes the cliques, its time "
    "including the handing of all triples to Python",
)


@dataclass(frozen=True, slots=True)
class Asked:
    """What to measure, and for how long."""

    sizes: Sequence[int]
    """Triples of the data sets."""
    delete: Sequence[int]
    share: Sequence[float]
    """Percents of the explicit facts."""
    cliques: Sequence[int]
    repeat: int
    limit: float
    patience: float
    seed: int
    data: Path

    def file(self, triples: int, equal: bool = True) -> Path:
        """The file of a data set, made if it is not there."""
        path = self.data / f"{'university' if equal else 'plain'}-{triples}-{self.seed}.nt"
        if not path.exists():
            say(f"{path}: made")
            generator.write(path, triples, self.seed, equal)
        return path


@dataclass(slots=True)
class Done:
    """What has been measured so far."""

    sets: list[Measured] = field(default_factory=list)
    cliques: list[dict[str, Any]] = field(default_factory=list)
    sides: list[Side] = field(default_factory=list)

    @property
    def wrong(self) -> bool:
        found = [cell.status for measured in self.sets for cell in measured.cells]
        return "wrong" in [*found, *(side.status for side in self.sides)]

    @property
    def notes(self) -> list[str]:
        cells = [cell for measured in self.sets for cell in measured.cells]
        return [*NOTES, *tables.troubles(cells, self.cliques, self.sides)]

    def tables(self) -> Iterator[Table]:
        yield from map(tables.table_1, self.sets)
        if self.cliques:
            yield tables.clique_table(self.cliques)
        for part, title in TITLES.items():
            if sides := [side for side in self.sides if side.part == part]:
                yield tables.sides_table(title, sides)


TITLES = {
    "idle": "Rules that never fire: the university with them and without, in turns, seconds",
    "plain": "No two names are equal: equality off, and by representatives, in turns, seconds",
}


def main(asked: Asked, parts: Sequence[str], out: Path, as_json: bool = False) -> int:
    """Measure, say how it went, write `equality.json` and `equality.png` into `out`; 1 if anything is wrong."""
    for name in (name for name in parts if name not in PARTS):
        raise UserError("EG302", f"no part is called {name!r}", f"use some of {', '.join(PARTS)}")
    done, written = Done(), {}
    with one_core():
        _warm_up()
        for part in (part for part in PARTS if part in parts):
            for _ in _measure(part, asked, done):
                written = _save(out, asked, done)
    chart.draw(done.sets, asked.limit, out / "equality.png")
    results.show(written, as_json, done.tables(), done.notes)
    return 1 if done.wrong else 0


def _warm_up() -> None:
    """Import what is imported when it is first used."""
    with TemporaryDirectory() as folder:
        file = Path(folder, "small.nt")
        generator.write(file, 2000)
        table1.measure("", file, university(), [("10", 10)], 1, 60, 60, lambda _: None)


def _measure(part: str, asked: Asked, done: Done) -> Iterator[None]:
    """Measure a part; comes back where there is something to save."""
    if part == "university":
        for triples in sorted(set(asked.sizes)):
            sizes = table1.sizes_of(triples, asked.delete, asked.share)
            name, file = f"university {tables.short(triples)}", asked.file(triples)
            limits = asked.repeat, asked.limit, asked.patience
            done.sets.append(table1.measure(name, file, university(), sizes, *limits, say))
            yield
    elif part == "cliques":
        done.cliques = cliques.measure(cliques.KINDS, asked.cliques, asked.limit, say)
        yield
    else:
        sides = alternating.idle_sides() if part == "idle" else alternating.plain_sides()
        file = asked.file(min(asked.sizes), equal=part == "idle")
        done.sides += alternating.measure(part, file, sides, asked.repeat, say)
        yield


def _save(out: Path, asked: Asked, done: Done) -> dict[str, Any]:
    rows = [asdict(cell) for measured in done.sets for cell in measured.cells]
    how = {name: getattr(asked, name) for name in ("repeat", "limit", "patience", "seed")}
    found = {"data": [measured.as_dict() for measured in done.sets], "cliques": done.cliques}
    sides = [side.as_dict() for side in done.sides]
    return results.save(out / "equality.json", rows, **how, **found, in_turns=sides, notes=done.notes)


@contextmanager
def one_core() -> Iterator[None]:
    """Keep this process to one of its cores, where the system can do that."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def say(text: str) -> None:
    """Tell how far it is, on standard error."""
    Console(stderr=True).print(f"{text} …", style="dim", highlight=False, soft_wrap=True)
