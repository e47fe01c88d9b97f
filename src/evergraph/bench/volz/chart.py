"""`volz.png`, like the paper's Figure 3: a panel for each algorithm, groups by ontology and depth, a colour for each measure.

Bars are ours, hollow marks the paper's averages where they can be read; `OoM` stands where its engine ran out of memory.
Traps: the scale is logarithmic; a figure of 0 ms, as the paper has for queries on a materialisation, has no place on it. Only
the least Change that was measured is drawn: the paper found no great difference between its two.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evergraph.bench import drawing
from evergraph.bench.volz.measures import ALL, Cell
from evergraph.bench.volz.paper import OOM

COLOURS = dict(
    zip(
        ALL,
        ("#7f7f7f", "#333333", "#d95f02", "#fdae6b", "#4c78a8", "#9ecae1", "#1b7837", "#7570b3", "#bcbddc"),
        strict=True,
    )
)
WIDTH = 0.85 / len(ALL)


def draw(cells: Sequence[Cell], path: Path) -> bool:
    """Draw cells; False, and no file, where there is nothing to draw or matplotlib is not installed."""
    done = [cell for cell in cells if cell.runs and cell.change == min(c.change for c in cells)]
    if not done:
        return False
    pyplot = drawing.pyplot()
    if pyplot is None:
        return False
    algorithms = list(dict.fromkeys(cell.algorithm for cell in done))
    places = list(dict.fromkeys((cell.kind, cell.depth) for cell in done))
    size = max(6.0, 1.5 * len(places)), 3.6 * len(algorithms) + 0.8
    figure, axes = pyplot.subplots(len(algorithms), 1, squeeze=False, sharey=True, figsize=size, layout="constrained")
    for (axis,), algorithm in zip(axes, algorithms, strict=True):
        _panel(axis, [cell for cell in done if cell.algorithm == algorithm], places)
        axis.set_title(f"{algorithm}, {done[0].change} % of the facts and of the rules")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False, fontsize=8)
    drawing.save(figure, path)
    return True


def _panel(axis: Any, cells: Sequence[Cell], places: Sequence[tuple[str, int]]) -> None:
    axis.set_yscale("log")
    for number, name in enumerate(ALL):
        shift = (number - (len(ALL) - 1) / 2) * WIDTH
        drawn = {places.index((cell.kind, cell.depth)) + shift: cell for cell in cells if cell.runs.get(name)}
        axis.bar(list(drawn), [cell.mean(name) for cell in drawn.values()], WIDTH, color=COLOURS[name], label=name)
        known = {x: cell.paper.get(name) for x, cell in drawn.items()}
        marks = [(x, figure) for x, figure in known.items() if isinstance(figure, int | float) and figure > 0]
        if marks:
            axis.scatter(*zip(*marks, strict=True), s=22, facecolors="white", edgecolors=COLOURS[name], zorder=3)
    axis.scatter([], [], s=22, facecolors="white", edgecolors="black", label="Volz et al. 2003")
    for cell in cells:
        if cell.paper["set-up"] == OOM:
            place = places.index((cell.kind, cell.depth))
            axis.annotate("paper: OoM", (place, 1), xycoords=("data", "axes fraction"), ha="center", va="top", fontsize=8)
    axis.set_xticks(range(len(places)), [f"{kind}\nD = {depth}" for kind, depth in places])
    axis.set_ylabel("milliseconds")
    axis.spines[["top", "right"]].set_visible(False)
