"""The tables of `evergraph bench gpu`, and below them whether targets were met: those that were missed say so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rich.table import Table

from evergraph.bench.results import table

Row = dict[str, Any]
CLOSE = {"rhodf": 0.15, "owl2rl": 0.5}
"""Targets: seconds to close all copies, by rule set."""
DERIVATIONS, FASTER, NEAR = 1e9, 10.0, 5.0
"""Derivations a second; how many times faster one per cent goes; at most how many times as long small updates take."""
NOTES = (
    "copies: disjoint ones of LUBM, classes and properties shared; `index` sorts columns of ids that come from the host into "
    "relations, `close` draws all consequences; the best of the runs, the first of which compiles and is told beside them",
    "the memory engine ran once, on one core of the same machine; its relations were compared with the device's row by row; "
    "derivations are counted as it makes them: the device makes some more than once rather than sort",
    "updates: medians of turns in which the facts go and come back, without reading them, which is the same for both",
)


def of(rows: Sequence[Row], part: str, **given: Any) -> list[Row]:
    return [row for row in rows if row["part"] == part and all(row[key] == value for key, value in given.items())]


def tables(rows: Sequence[Row]) -> Iterator[Table]:
    if of(rows, "closure"):
        yield closures(of(rows, "closure"))
    for rules in dict.fromkeys(row["rules"] for row in of(rows, "stages")):
        yield stages(of(rows, "stages", rules=rules))
    for rules in dict.fromkeys(row["rules"] for row in of(rows, "updates")):
        yield updates(of(rows, "updates", rules=rules))


def closures(rows: Sequence[Row]) -> Table:
    out = table(
        f"The closure of copies of LUBM({rows[0]['universities']}), seconds",
        ("rules", "engine"),
        ("copies", "triples", "facts", "index", "close", "slowest", "first", "derivations", "G a second", "bytes a fact"),
    )
    for row in rows:
        first = f"{row['first']:.2f}" if row["first"] is not None else ""
        times = f"{row['index']:.3f}", f"{row['close']:.4f}", f"{row['slowest']:.4f}", first
        a_second, a_fact = row["derivations"] / row["close"] / 1e9, row["bytes"] / row["facts"]
        speed = f"{row['derivations']:,}", f"{a_second:.2f}", f"{a_fact:.0f}"
        out.add_row(row["rules"], row["engine"], str(row["copies"]), f"{row['triples']:,}", f"{row['facts']:,}", *times, *speed)
    return out


def stages(rows: Sequence[Row]) -> Table:
    first = rows[0]
    out = table(
        f"From tables to tables: {first['copies']} copies of LUBM({first['universities']}) under {first['rules']}",
        ("stage",),
        ("seconds", "facts", "M facts a second", "GB", "GB a second"),
    )
    out.add_column("bounded by")
    for row in rows:
        size = row.get("bytes")
        moved = (f"{size / 1e9:.2f}", f"{size / 1e9 / row['seconds']:.2f}") if size else ("", "")
        speed = f"{row['facts'] / row['seconds'] / 1e6:,.0f}"
        out.add_row(row["stage"], f"{row['seconds']:.3f}", f"{row['facts']:,}", speed, *moved, row["bound"])
    return out


def updates(rows: Sequence[Row]) -> Table:
    """A line for each algorithm and operation, a pair of columns for each number of facts."""
    sizes = sorted({row["facts"] for row in rows})
    out = table(
        f"Updates of LUBM({rows[0]['universities']}) under {rows[0]['rules']}, milliseconds; ° on the host's copy",
        ("algorithm", "operation"),
        [f"{engine} {size:,}" for size in sizes for engine in ("memory", "gpu")],
    )
    for asked in dict.fromkeys(row["asked"] for row in rows):
        for operation in ("delete", "insert"):
            found = [_update(rows, asked, operation, size, engine) for size in sizes for engine in ("memory", "gpu")]
            out.add_row(asked, operation, *(f"{1000 * row['seconds']:.1f}{'°' * on_host(row)}" for row in found))
    return out


def _update(rows: Sequence[Row], asked: str, operation: str, facts: int, engine: str) -> Row:
    return next(r for r in rows if (r["asked"], r["operation"], r["facts"], r["engine"]) == (asked, operation, facts, engine))


def _times(rows: Sequence[Row], operation: str, facts: int) -> float:
    """How many times as long as in memory an update takes on the device, both by auto."""
    device, memory = (_update(rows, "auto", operation, facts, engine)["seconds"] for engine in ("gpu", "memory"))
    return float(device / memory)


def on_host(row: Row) -> bool:
    return "host" in row["reason"]


def verdicts(rows: Sequence[Row]) -> list[str]:
    out = []
    for row in of(rows, "closure", engine="gpu"):
        if row["copies"] > 1 and row["rules"] in CLOSE:
            speed, target = row["derivations"] / row["close"], CLOSE[row["rules"]]
            told = f"{row['triples']:,} triples closed in {row['close']:.3f} s, the target was {target:g}"
            met = row["close"] <= target and speed >= DERIVATIONS
            out.append(f"{row['rules']}: {told}; {speed / 1e9:.2f} G derivations a second, the target was 1{_met(met)}")
    for rules in dict.fromkeys(row["rules"] for row in of(rows, "updates")):
        mine = of(rows, "updates", rules=rules)
        sizes = sorted({row["facts"] for row in mine})
        faster = 1 / _times(mine, "delete", sizes[-1])
        told = f"{faster:.1f} times faster than the memory engine, both by auto; the target was {FASTER:g}"
        out.append(f"{rules}: deleting {sizes[-1]:,} facts is {told}{_met(faster >= FASTER)}")
        for size in sizes[:-1]:
            times = [_times(mine, operation, size) for operation in ("delete", "insert")]
            told = f"{max(times):.1f} times as long as in memory, the target was {NEAR:g}"
            out.append(f"{rules}: {size:,} facts by auto take up to {told}{_met(max(times) <= NEAR)}")
    return out


def _met(met: bool) -> str:
    return "" if met else ": missed"
