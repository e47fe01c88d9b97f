"""The tables of `evergraph bench overlap`, and below them whether targets were met: those that were missed say so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

from rich.table import Table

from evergraph.bench.results import table

Row = dict[str, Any]
SOONER, SAVES, ALONE = 20.0, 0.6, 1.15
"""Targets: how many times sooner, at most which part of the derivations, at most how many times as long."""


def of(rows: Sequence[Row], part: str) -> list[Row]:
    return [row for row in rows if row["part"] == part]


def tables(rows: Sequence[Row]) -> Iterator[Table]:
    for part, make in (("responsiveness", responsiveness), ("feed", feed), ("alone", alone)):
        for rules in dict.fromkeys(row["rules"] for row in of(rows, part)):
            yield make([row for row in of(rows, part) if row["rules"] == rules])


def responsiveness(rows: Sequence[Row]) -> Table:
    """A line for each point at which the insertion arrives."""
    out = table(
        f"One fact arrives while 10 % are deleted: {_graph(rows)}; milliseconds until its consequences are in place",
        ("algorithm", "arrives at"),
        ("over", "submit", "waits its turn", "times", "worst", "steps", "deletion s", "of it reading"),
    )
    for row in rows:
        at = f"{row['share']:.0%} of {_CLOCKS[row['clock']]}"
        times = f"{1000 * row['seconds']:.1f}", f"{1000 * row['waits']:.1f}", f"{row['ratio']:.1f}", f"{row['worst']:.1f}"
        whole = str(row["steps"]), f"{row['deletion']:.2f}", f"{row['deletion_read']:.2f}"
        out.add_row(row["algorithm"], at, f"{row['at']:.0%}", *times, *whole, style=_style(row))
    return out


_CLOCKS = {"steps": "its steps", "time": "their time", "whole": "all, read too"}


def feed(rows: Sequence[Row]) -> Table:
    """A line for each way in which the insertions arrive."""
    out = table(
        f"10 % are deleted, half of it comes back meanwhile: {_graph(rows)}; against one update after the other",
        ("algorithm", "arrives"),
        ("after steps", "of", "derivations", "serial", "part", "of examined", "seconds", "serial s"),
    )
    for row in rows:
        name = {"batches": f"{row['batches']} batches", "first step": "at once"}.get(row["way"]) or f"at {row['share']:.0%}"
        arrivals = row["arrivals"]
        after = str(arrivals[0]) if len(arrivals) == 1 else f"{arrivals[0]} to {arrivals[-1]}"
        work = f"{row['derivations']:,}", f"{row['serial']['derivations']:,}", f"{row['ratio']:.0%}"
        more = f"{row['ratio_examined']:.0%}", f"{row['seconds']:.2f}", f"{row['serial']['seconds']:.2f}"
        out.add_row(row["algorithm"], name, after, str(row["steps"]), *work, *more, style=_style(row))
    return out


def alone(rows: Sequence[Row]) -> Table:
    """A line for each number of facts."""
    out = table(
        f"Nothing overlaps: {_graph(rows)}; milliseconds, medians of turns",
        ("algorithm", "operation"),
        ("facts", "update", "submit", "times", "median of turns' times"),
    )
    for row in rows:
        times = f"{1000 * row['update']:.2f}", f"{1000 * row['submit']:.2f}"
        ratios = f"{row['ratio']:.2f}", f"{row['ratio_of_turns']:.2f}"
        out.add_row(row["algorithm"], row["operation"], f"{row['facts']:,}", *times, *ratios, style=_style(row))
    return out


def verdicts(rows: Sequence[Row]) -> list[str]:
    """A line for each part and rule set: what the target was, and what came of it."""
    out = []
    for rules in dict.fromkeys(row["rules"] for row in rows):
        mine = [row for row in rows if row["rules"] == rules]
        for clock in dict.fromkeys(row["clock"] for row in of(mine, "responsiveness")):
            some = [row for row in of(mine, "responsiveness") if row["clock"] == clock]
            middle, worst = median(row["ratio"] for row in some), min(row["worst"] for row in some)
            told = f"{middle:.1f} times sooner than in its turn, the median; {worst:.1f} at worst; the target was {SOONER:g}"
            out.append(f"{rules}, arriving by {clock}: {told}{_met(middle >= SOONER)}")
        early = [row for row in of(mine, "feed") if row["way"] != "sweep"]
        if early:
            most = max(row["ratio"] for row in early)
            told = f"at most {most:.0%} of the derivations, the target was {SAVES:.0%}"
            out.append(f"{rules}, half comes back: {told}{_met(most <= SAVES)}")
        for operation in ("delete", "insert"):
            some = [row for row in of(mine, "alone") if row["operation"] == operation]
            if some:
                most = max(row["ratio"] for row in some)
                over = sum(row["ratio"] > ALONE for row in some)
                told = f"up to {most:.2f} times as long, {over} of {len(some)} above the target of {ALONE:g}"
                out.append(f"{rules}, nothing overlaps, {operation}: {told}{_met(not over)}")
    return out


def _met(met: bool) -> str:
    return "" if met else ": missed"


def _graph(rows: Sequence[Row]) -> str:
    return f"LUBM({rows[0]['universities']}) under {rows[0]['rules']}"


def _style(row: Row) -> str:
    return "" if row["verified"] else "bold red"
