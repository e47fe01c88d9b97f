"""The tables of `evergraph bench updates`. What was not measured says why in its place; nothing is left out."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from rich.table import Table

from evergraph.bench.results import table
from evergraph.bench.updates.cells import Cell
from evergraph.bench.updates.counting import URBANI_RATIO
from evergraph.bench.updates.six import PAPER, TABLE_2, number_of


def deletions_table(cells: Sequence[Cell]) -> Table:
    """One rule set on one graph: a line for each cell, the sizes apart."""
    first = cells[0]
    out = table(
        f"Updates of LUBM({first.universities}) under {first.rules}: seconds of update(), reading included",
        ("update", "algorithm"),
        ("facts", "seconds", "without reading", "derivations", "to recompute", "to best"),
    )
    out.add_column("ran", no_wrap=True)
    for operation in ("delete", "insert"):
        for update in dict.fromkeys(c.update for c in cells if c.operation == operation):
            for cell in (c for c in cells if (c.operation, c.update) == (operation, update)):
                out.add_row(
                    f"{operation} {update}", cell.algorithm, f"{cell.facts:,}", *_figures(cell), style=_style(cell.status)
                )
            out.add_section()
    return out


def six_table(cells: Sequence[Cell], operation: str) -> Table:
    """Additions or removals: a line for each update, a column for each algorithm, the paper's beside them."""
    algorithms = list(dict.fromkeys(cell.algorithm for cell in cells))
    paper = [place for place, seconds in enumerate(TABLE_2[1].seconds(operation)) if seconds is not None]
    does = {"insert": "added", "delete": "removed"}[operation]
    out = table(
        f"The six updates of Urbani et al. 2013, {does}: LUBM({cells[0].universities}) under ρdf, seconds",
        (),
        ("update", "facts", *(name.replace("-", "-\n") for name in algorithms)),
    )
    out.add_column("auto ran", no_wrap=True)
    for place in paper:
        out.add_column(f"Urbani:\n{PAPER[place]}", justify="right", no_wrap=True)
    mine = [cell for cell in cells if cell.operation == operation]
    for number in TABLE_2:
        line = {cell.algorithm: cell for cell in mine if number_of(cell) == number}
        facts = f"{next(iter(line.values())).facts:,}"
        figures = [_seconds(line[algorithm]) for algorithm in algorithms]
        published = TABLE_2[number].seconds(operation)
        ran = line["auto"].chose if "auto" in line else ""
        out.add_row(str(number), facts, *figures, ran, *(_number(published[place]) for place in paper))
    return out


def growth_table(rows: Sequence[dict[str, Any]]) -> Table:
    out = table(
        f"Cost follows the change: 100 facts, LUBM({rows[0]['small']}) and LUBM({rows[0]['large']}), milliseconds",
        ("rules", "operation", "algorithm"),
        ("small", "large", "ratio"),
    )
    for row in sorted(rows, key=lambda row: (row["rules"], row["operation"])):
        small, large = (f"{1000 * row[f'{name}_seconds']:,.2f}" for name in ("small", "large"))
        out.add_row(row["rules"], row["operation"], row["algorithm"], small, large, f"{row['ratio']:.2f}")
    return out


def counting_table(rows: Sequence[dict[str, Any]]) -> Table:
    out = table(
        f"The first closure with counts and without (Urbani et al.: {URBANI_RATIO} times)",
        ("rules",),
        ("LUBM", "auto s", "counting s", "ratio", "ratio without reading", "bytes/fact", "with counts"),
    )
    for row in rows:
        start = row["rules"], str(row["universities"])
        if row["status"] != "ok":
            out.add_row(*start, "", row["status"], style="dim")
            continue
        out.add_row(
            *start,
            f"{row['auto_seconds']:.3f}",
            f"{row['counting_seconds']:.3f}",
            f"{row['ratio']:.2f}",
            f"{row['ratio_without_reading']:.2f}",
            f"{row['auto_bytes_per_fact']:.1f}",
            f"{row['counting_bytes_per_fact']:.1f}",
        )
    return out


def dataflow_table(found: dict[str, dict[str, Any]], facts: int) -> Table:
    out = table(
        f"{facts} facts out of LUBM(1) and in again under ρdf, one process and one core each; milliseconds, medians",
        ("system",),
        ("closure", "load s", "delete", "first", "insert", "first"),
    )
    for system, row in found.items():
        if row["status"] != "ok":
            out.add_row(
                system, "", "", row["line"] if row["status"] == "missing" else row["status"], style=_style(row["status"])
            )
            continue
        times = [f"{1000 * figure:.2f}" for what in ("delete", "insert") for figure in (median(row[what]), row[what][0])]
        out.add_row(system, f"{row['closure']:,}", f"{row['load']:.2f}", *times)
    return out


def spark_table(found: dict[str, Any], universities: int, rules: str, cores: int) -> Table:
    out = table(
        f"On Spark, local[{cores}]: LUBM({universities}) under {rules}",
        ("operation", "algorithm"),
        ("facts", "seconds", "supersteps", "of them jobs", "seconds a superstep", "derivations"),
    )
    for row in found["rows"]:
        steps = f"{row['supersteps']:g}", f"{row['jobs']:g}", f"{row['seconds_per_superstep']:.3f}"
        out.add_row(
            row["operation"],
            row["algorithm"],
            f"{row['facts']:,}",
            f"{row['seconds']:.3f}",
            *steps,
            f"{row['derivations']:,.0f}",
        )
    return out


def troubles(cells: Sequence[Cell]) -> list[str]:
    """Why cells have no figures, or wrong ones: a line for each reason and algorithm."""
    found: dict[tuple[Any, ...], list[str]] = {}
    for cell in (cell for cell in cells if cell.status != "ok"):
        reason = cell.status, cell.algorithm, cell.rules, cell.universities, cell.line
        found.setdefault(reason, []).append(f"{cell.operation} {cell.update}")
    return [
        f"{status}: {algorithm}, {rules}, LUBM({universities}), {', '.join(what)}: {line}"
        for (status, algorithm, rules, universities, line), what in found.items()
    ]


def _figures(cell: Cell) -> list[str]:
    if cell.status != "ok":
        return [_seconds(cell), "", "", "", "", ""]
    return [
        _number(cell.seconds),
        _number(cell.without_reading),
        f"{cell.derivations:,}",
        _ratio(cell.to_recompute),
        _ratio(cell.to_best),
        cell.chose if cell.chose != cell.algorithm else "",
    ]


def _seconds(cell: Cell) -> str:
    if cell.status != "ok":
        return cell.line.replace("more than", ">") if cell.status == "stopped" else cell.status
    return _number(cell.seconds)


def _number(seconds: float | None) -> str:
    """Three digits that count.

    >>> [_number(s) for s in (0.00123456, 0.117, 25.7, 2902.7)]
    ['0.00123', '0.117', '25.7', '2,903']
    """
    if seconds is None:
        return "–"
    return f"{seconds:,.0f}" if seconds >= 1000 else f"{seconds:.3g}"


def _ratio(ratio: float | None) -> str:
    return "–" if ratio is None else f"{ratio:,.2f}"


def _style(status: str) -> str:
    return {"ok": "", "wrong": "bold red", "failed": "bold red"}.get(status, "dim")
