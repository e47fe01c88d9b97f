"""`gpu.png`: closures, stages and updates, each in a panel of its own for each rule set. Trap: all scales are logarithmic."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evergraph.bench import drawing
from evergraph.bench.gpu.tables import Row, of, on_host

GPU, MEMORY = "#1b7837", "#4c78a8"
LINES = {("memory", "auto"): "-", ("gpu", "auto"): "-", ("gpu", "recompute"): ":", ("gpu", "dred"): "--"}


def draw(rows: Sequence[Row], path: Path) -> bool:
    """Draw the rows; False, and no file, where there is nothing to draw or matplotlib is not installed."""
    pyplot = drawing.pyplot()
    names = list(dict.fromkeys(row["rules"] for row in rows))
    if not rows or pyplot is None:
        return False
    figure, axes = pyplot.subplots(len(names), 3, squeeze=False, figsize=(16, 3.6 * len(names)), layout="constrained")
    for y, rules in enumerate(names):
        _closures(axes[y][0], rules, of(rows, "closure", rules=rules))
        _stages(axes[y][1], rules, of(rows, "stages", rules=rules))
        _updates(axes[y][2], rules, of(rows, "updates", rules=rules))
    drawing.save(figure, path)
    return True


def _closures(axis: Any, rules: str, rows: Sequence[Row]) -> None:
    ordered = list(reversed(rows))
    labels = [f"{row['engine']}, {row['triples'] / 1e6:.0f} M triples" for row in ordered]
    colours = [GPU if row["engine"] == "gpu" else MEMORY for row in ordered]
    _bars(axis, f"{rules}: closure, seconds", labels, [row["close"] for row in ordered], colours)


def _stages(axis: Any, rules: str, rows: Sequence[Row]) -> None:
    ordered = list(reversed(rows))
    colours = [GPU if row["stage"] in ("close", "compare") else MEMORY for row in ordered]
    title = f"{rules}: tables to tables, seconds"
    _bars(axis, title, [row["stage"] for row in ordered], [row["seconds"] for row in ordered], colours)


def _bars(axis: Any, title: str, labels: list[str], seconds: list[float], colours: list[str]) -> None:
    axis.set_title(title, fontsize=10)
    if not seconds:
        axis.set_axis_off()
        return
    bars = axis.barh(range(len(labels)), seconds, color=colours)
    axis.set_yticks(range(len(labels)), labels)
    axis.bar_label(bars, [f" {s:.3g} s" for s in seconds])
    axis.set_xscale("log")
    axis.set_xlim(min(seconds) / 3, max(seconds) * 8)
    axis.spines[["top", "right"]].set_visible(False)


def _updates(axis: Any, rules: str, rows: Sequence[Row]) -> None:
    axis.set_title(f"{rules}: deleting facts, milliseconds", fontsize=10)
    if not rows:
        axis.set_axis_off()
        return
    for (engine, asked), line in LINES.items():
        some = sorted(
            (row for row in rows if (row["engine"], row["asked"], row["operation"]) == (engine, asked, "delete")),
            key=lambda row: row["facts"],
        )
        colour = GPU if engine == "gpu" else MEMORY
        milliseconds = [1000 * row["seconds"] for row in some]
        axis.plot([row["facts"] for row in some], milliseconds, line, color=colour, marker="o", label=f"{engine} {asked}")
        near = [row for row in some if on_host(row)]
        axis.plot([r["facts"] for r in near], [1000 * r["seconds"] for r in near], "o", color="white", markersize=3, zorder=3)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("facts; white: on the host's copy")
    axis.legend(fontsize=8)
    axis.spines[["top", "right"]].set_visible(False)
