"""The closure beside other systems: the same files, the same rules where a system takes rules, one process each.

What is timed. `load`: from the file to the system's own tables or indices (for Evergraph the phases read and insert).
`materialise`: from there to the complete closure (the strata). A system that does both in one call has only a total,
and its ratio is that of totals; the column `of` says which. Systems marked as running the same rules must agree on
the size of the closure: if they do not, the table says so and the exit code is 1. Those with rules of their own are
shown for orientation.

Trap: systems over ids (duckdb, clingo, spark-joins) are given ids by Evergraph's reader, so their load is not a
measure of their own parsers. Rules that only typed literals can fire are left out of the programs of systems without
such built-ins when the file has none, as LUBM; the closure is the same, and a note says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.table import Table

from evergraph.bench import chart, results
from evergraph.bench.apart import apart
from evergraph.bench.peers import PEERS, Peer, find
from evergraph.rules.model import Program

REPEAT_BELOW = 20.0
"""Seconds; runs that take longer are not repeated."""


@dataclass(slots=True)
class Row:
    """One system on one file with one rule set: its best run."""

    system: str
    rules: str
    runs_rules: str
    same_rules: bool
    universities: int
    status: str
    """ok, missing, unsupported, timeout, failed, or wrong: another closure than Evergraph's from the same rules."""
    line: str = ""
    load: float | None = None
    materialise: float | None = None
    total: float | None = None
    triples: int | None = None
    memory: int | None = None
    memory_of: str = ""
    ratio: float | None = None
    """How many times Evergraph's seconds this system takes."""
    ratio_of: str = ""
    phases: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    runs: list[float] = field(default_factory=list)
    """Materialisation seconds of every run, totals where there is nothing else."""

    @property
    def seconds(self) -> float | None:
        """What counts: the materialisation, or the total where it cannot be told apart."""
        return self.total if self.materialise is None else self.materialise


def main(
    sizes: list[int],
    rules: list[str],
    systems: list[str] | None,
    cores: int,
    limit: int,
    repeat: int,
    out: Path,
    data: Path = Path("bench-data"),
) -> int:
    """Measure, print a table, write `materialise.json` and `materialise.png` into `out`; 1 if closures differ."""
    peers = [find(name) for name in systems] if systems else list(PEERS)
    for name in rules:
        Program.load(name)  # a name that does not exist is told now, not once per system
    rows: list[Row] = []
    console = results.console()
    for universities in sorted(sizes):
        file = results.lubm(universities, data)
        for name in rules:
            group = []
            for peer in peers:
                own = peer.rules_for(name)
                if own is None or (peer.smallest_only and universities > min(sizes)):
                    continue
                console.print(f"LUBM({universities}) {name} {peer.name} …", style="dim", highlight=False)
                group.append(measure(peer, own, name, universities, file, cores, limit, repeat))
            compare(group)
            rows += group
    console.print(table(rows, cores))
    for row in rows:
        if row.status != "ok":
            style = "bold red" if row.status == "wrong" else "dim"
            where = f"{row.system}, {row.rules}, LUBM({row.universities})"
            console.print(f"{row.status}: {where}: {row.line}", style=style, highlight=False, soft_wrap=True)
    for note in dict.fromkeys(f"{row.system}: {note}" for row in rows for note in row.notes):
        console.print(note, style="dim", highlight=False, soft_wrap=True)
    results.save(out / "materialise.json", [asdict(row) for row in rows], cores=cores, limit=limit, repeat=repeat)
    chart.draw([row for row in rows if row.status == "ok"], out / "materialise.png", cores)
    return 1 if any(row.status == "wrong" for row in rows) else 0


def measure(peer: Peer, own: str, rules: str, universities: int, file: Path, cores: int, limit: int, repeat: int) -> Row:
    """The best of `repeat` runs, each in a process of its own; one run where that takes long or goes wrong.

    Load, materialisation and total are each the shortest of all runs; the rest is that of the first.
    """
    done: list[Row] = []
    while len(done) < max(repeat, 1):
        row = Row(peer.name, rules, own, peer.same_rules, universities, **run_apart(peer.name, rules, file, cores, limit))
        if row.status != "ok":
            return row
        done.append(row)
        if row.total is not None and row.total > REPEAT_BELOW:
            break
    best = done[0]
    best.runs = [row.seconds for row in done if row.seconds is not None]
    best.load, best.materialise, best.total = (
        min((value for row in done if (value := getattr(row, name)) is not None), default=None)
        for name in ("load", "materialise", "total")
    )
    return best


def run_apart(system: str, rules: str, file: Path, cores: int, limit: int) -> dict[str, Any]:
    """One run in a process of its own."""
    return apart("evergraph.bench.run_one", [system, rules, str(file)], cores, limit)


def compare(group: Sequence[Row]) -> None:
    """Fill in the ratios to Evergraph, and mark closures that should be the same and are not; all rows of one group."""
    ours = next((row for row in group if row.system == "evergraph" and row.status == "ok"), None)
    same = [row for row in group if row.same_rules and row.status == "ok"]
    expected = ours or (same[0] if same else None)
    for row in group:
        if row.status != "ok" or expected is None:
            continue
        if row.same_rules and row.triples != expected.triples:
            row.status = "wrong"
            row.line = f"{row.triples:,} triples where {expected.system} has {expected.triples:,}"
        elif ours is not None:
            row.ratio_of = "total" if row.materialise is None else "materialise"
            mine, theirs = getattr(ours, row.ratio_of), getattr(row, row.ratio_of)
            row.ratio = theirs / mine if mine else None


def table(rows: Sequence[Row], cores: int) -> Table:
    out = Table(title=f"Closure of LUBM, {cores} core{'s' if cores > 1 else ''} for each system")
    for name in ("system", "rules", "LUBM"):
        out.add_column(name, no_wrap=True)
    for name in ("triples", "load s", "materialise s", "triples/s", "peak MB", "to Evergraph"):
        out.add_column(name, justify="right", no_wrap=True)
    out.add_column("of", no_wrap=True)
    group: tuple[str, int] | None = None
    for row in rows:
        if group not in (None, (row.rules, row.universities)):
            out.add_section()
        group = row.rules, row.universities
        start = [row.system, row.runs_rules, str(row.universities)]
        if row.status != "ok":
            out.add_row(*start, "", "", row.status, style="bold red" if row.status == "wrong" else "dim")
            continue
        assert row.triples is not None and row.seconds is not None
        out.add_row(
            *start,
            f"{row.triples:,}",
            "" if row.load is None else f"{row.load:.2f}",
            f"{row.seconds:.3f}" + (" with load" if row.load is None else ""),
            f"{row.triples / row.seconds:,.0f}",
            "" if row.memory is None else f"{row.memory / 2**20:,.0f}",
            "" if row.ratio is None else f"{row.ratio:.1f}",
            row.ratio_of,
        )
    return out
