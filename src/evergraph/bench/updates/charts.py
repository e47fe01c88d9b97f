"""`updates-deletions.png` and `updates-urbani.png`. Trap: all scales are logarithmic; an equal distance is an equal factor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evergraph.bench import drawing
from evergraph.bench.updates.cells import Cell
from evergraph.bench.updates.six import PAPER, TABLE_2, number_of

COLOURS = {
    "recompute": "#7f7f7f",
    "declarative": "#e6ab02",
    "dred": "#4c78a8",
    "counting": "#7570b3",
    "backward-forward": "#d95f02",
    "auto": "#1b7837",
}
OTHER = "#333333"


def draw_deletions(cells: Sequence[Cell], path: Path) -> bool:
    """Seconds by facts deleted: a line for each algorithm, a panel for each rule set and graph with more than one size.

    False, and no file, where there is nothing to draw or matplotlib is not installed; so for the other chart.
    """
    done = [cell for cell in cells if cell.operation == "delete" and cell.status == "ok"]
    points = {(cell.rules, cell.universities, cell.facts) for cell in done}
    several = {panel for panel, n in Counter(point[:2] for point in points).items() if n > 1}
    done = [cell for cell in done if (cell.rules, cell.universities) in several]
    pyplot = drawing.pyplot()
    if not done or pyplot is None:
        return False
    rules = list(dict.fromkeys(cell.rules for cell in done))
    sizes = sorted({cell.universities for cell in done})
    figure, axes = pyplot.subplots(
        len(sizes), len(rules), squeeze=False, figsize=(5.5 * len(rules), 4 * len(sizes)), layout="constrained"
    )
    for y, universities in enumerate(sizes):
        for x, name in enumerate(rules):
            axis = axes[y][x]
            axis.set_title(f"{name}, LUBM({universities})")
            panel = [c for c in done if (c.rules, c.universities) == (name, universities)]
            for algorithm in dict.fromkeys(cell.algorithm for cell in panel):
                line = sorted((c.facts, c.seconds) for c in panel if c.algorithm == algorithm)
                wide = 3 if algorithm == "auto" else 1.5
                xs, ys = [p[0] for p in line], [p[1] for p in line]
                axis.plot(xs, ys, "o-", markersize=3, linewidth=wide, label=algorithm, color=COLOURS.get(algorithm, OTHER))
            axis.set_xscale("log")
            axis.set_yscale("log")
            axis.set_xlabel("explicit facts deleted")
            axis.set_ylabel("seconds, reading included")
            axis.spines[["top", "right"]].set_visible(False)
            axis.legend(frameon=False, fontsize=8)
    drawing.save(figure, path)
    return True


def draw_six(cells: Sequence[Cell], path: Path) -> bool:
    """Seconds of the six updates: bars for algorithms, marks for the paper; additions above, removals below."""
    done = [cell for cell in cells if cell.status == "ok"]
    pyplot = drawing.pyplot()
    if not done or pyplot is None:
        return False
    algorithms = list(dict.fromkeys(cell.algorithm for cell in done))
    figure, axes = pyplot.subplots(2, 1, figsize=(9, 7), layout="constrained")
    for axis, (operation, title) in zip(axes, (("insert", "addition"), ("delete", "removal")), strict=True):
        _bars(axis, [cell for cell in done if cell.operation == operation], algorithms)
        for name, mark, column in zip(
            PAPER, "__x", zip(*(p.seconds(operation) for p in TABLE_2.values()), strict=True), strict=True
        ):
            if None not in column:
                axis.scatter(list(TABLE_2), column, marker=mark, s=120, color="black", zorder=3, label=f"Urbani et al., {name}")
        axis.set_title(f"{title}: LUBM({done[0].universities}) here, LUBM(1000) in the paper")
        axis.set_yscale("log")
        axis.set_xticks(list(TABLE_2), [f"update {number}" for number in TABLE_2])
        axis.set_ylabel("seconds")
        axis.spines[["top", "right"]].set_visible(False)
        axis.legend(frameon=False, fontsize=8, ncols=4, loc="upper center", bbox_to_anchor=(0.5, -0.08))
    drawing.save(figure, path)
    return True


def _bars(axis: Any, cells: Sequence[Cell], algorithms: Sequence[str]) -> None:
    width = 0.8 / len(algorithms)
    for number, algorithm in enumerate(algorithms):
        mine = [cell for cell in cells if cell.algorithm == algorithm]
        places = [number_of(cell) + (number - (len(algorithms) - 1) / 2) * width for cell in mine]
        axis.bar(places, [cell.seconds for cell in mine], width, label=algorithm, color=COLOURS.get(algorithm, OTHER))
