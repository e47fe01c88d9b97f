"""The cells of Table 1 on one data set: approach after approach, from the fewest facts to the most."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from evergraph import Program
from evergraph.bench.equality.measures import APPROACHES, Approach, Cell, Load, Measured, Subject
from evergraph.bench.updates.deletions import Say
from evergraph.bench.updates.facts import InstanceFacts

Sizes = list[tuple[str, int]]
"""Deletions by name: so many facts."""


def sizes_of(explicit: int, numbers: Sequence[int], percents: Sequence[float]) -> Sizes:
    """What is deleted, from the least to the most; what is more than half of all facts is left out.

    >>> sizes_of(10_000, [100, 9000], [5, 0.5])
    [('0.5 %', 50), ('100', 100), ('5 %', 500)]
    """
    asked = {f"{n:,}": n for n in numbers} | {f"{p:g} %": round(p / 100 * explicit) for p in percents}
    return sorted(((name, n) for name, n in asked.items() if 0 < n <= explicit // 2), key=lambda size: size[1])


def measure(
    data: str,
    file: Path,
    program: Program,
    sizes: Sizes,
    repeat: int,
    limit: float,
    patience: float,
    say: Say,
    approaches: Sequence[Approach] = APPROACHES,
) -> Measured:
    """A cell for each size and approach, compared with each other."""
    facts = InstanceFacts(file, schema=0)
    found = Measured(data, len(facts), len(program.rules))
    for approach in approaches:
        load = found.loads.setdefault(approach.equality, Load())
        subject = Subject(program, file, approach, limit, patience)
        say(f"{data}, {approach.name}: materialisation")
        useless = subject.load(load)
        for name, count in sizes:
            cell = Cell(data, approach.name, approach.equality, name, count)
            found.cells.append(cell)
            if useless:
                cell.status, cell.line = "skipped", useless
            else:
                say(f"{data}, {approach.name}: {name}")
                useless = subject.fill(cell, facts, repeat)
    compare(found)
    return found


def compare(found: Measured) -> None:
    """Mark cells that leave another number of facts than the first one of their size and treatment of equality."""
    first: dict[tuple[str, str], Cell] = {}
    for cell in (cell for cell in found.cells if cell.status == "ok"):
        base = first.setdefault((cell.equality, cell.size), cell)
        if cell.left != base.left:
            cell.status, cell.line = "wrong", f"{cell.left:,} facts are left where {base.approach} leaves {base.left:,}"
