"""`overlap.png`: above, until one fact is in place beside a deletion; below, what a deletion costs of which half comes back.

A column for each rule set. Above, full lines are `submit` and dotted ones waiting its turn, by the part of the deletion's time
that was over; below, derivations against the same updates one after the other, by the part of the deletion's steps. Trap: the
scale of milliseconds is logarithmic.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evergraph.bench import drawing
from evergraph.bench.overlap.tables import SAVES, Row, of
from evergraph.bench.updates.charts import COLOURS, OTHER


def draw(rows: Sequence[Row], path: Path) -> bool:
    """False, and no file, where there is nothing to draw or matplotlib is not installed."""
    arrivals = [row for row in of(rows, "responsiveness") if row["clock"] == "time"]
    sweep = [row for row in of(rows, "feed") if row["way"] == "sweep"]
    rules = list(dict.fromkeys(row["rules"] for row in (*arrivals, *sweep)))
    pyplot = drawing.pyplot()
    if not rules or pyplot is None:
        return False
    figure, axes = pyplot.subplots(2, len(rules), squeeze=False, figsize=(5.5 * len(rules), 7.5), layout="constrained")
    for column, name in enumerate(rules):
        _latency(axes[0][column], [row for row in arrivals if row["rules"] == name])
        _sweep(axes[1][column], [row for row in sweep if row["rules"] == name])
        axes[0][column].set_title(f"{name}, LUBM({rows[0]['universities']})")
    for axis in axes.flat:
        axis.spines[["top", "right"]].set_visible(False)
        if axis.get_legend_handles_labels()[0]:
            axis.legend(frameon=False, fontsize=8)
    drawing.save(figure, path)
    return True


def _latency(axis: Any, rows: Sequence[Row]) -> None:
    for algorithm in dict.fromkeys(row["algorithm"] for row in rows):
        mine = [row for row in rows if row["algorithm"] == algorithm]
        at, colour = [100 * row["share"] for row in mine], COLOURS.get(algorithm, OTHER)
        runs = [[1000 * run["seconds"] for run in row["runs"]] for row in mine]
        axis.plot(at, [1000 * row["seconds"] for row in mine], "o-", markersize=4, color=colour, label=algorithm)
        axis.vlines(at, list(map(min, runs)), list(map(max, runs)), color=colour, linewidth=1)
        axis.plot(
            at, [1000 * row["waits"] for row in mine], "o:", markersize=3, color=colour, label=f"{algorithm}, in its turn"
        )
    if rows:
        axis.set_yscale("log")
    axis.set_xlabel("percent of the deletion's time over when the fact arrives")
    axis.set_ylabel("milliseconds until it is in place")


def _sweep(axis: Any, rows: Sequence[Row]) -> None:
    for algorithm in dict.fromkeys(row["algorithm"] for row in rows):
        mine = [row for row in rows if row["algorithm"] == algorithm]
        at, ratios = [100 * row["share"] for row in mine], [100 * row["ratio"] for row in mine]
        axis.plot(at, ratios, "o-", markersize=4, color=COLOURS.get(algorithm, OTHER), label=algorithm)
    if rows:
        axis.axhline(100 * SAVES, linestyle=":", color=OTHER, label=f"target, {SAVES:.0%}")
        axis.set_ylim(bottom=0)
    axis.set_xlabel("percent of the deletion's steps done when half comes back")
    axis.set_ylabel("percent of the serial derivations")
