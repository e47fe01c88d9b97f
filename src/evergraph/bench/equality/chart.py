"""`equality.png`: time by facts deleted, a line for each of the four approaches, a panel for each data set.

The equilibrium of B/F≈ and Remat≈ is a dotted line, what `auto` took is hollow marks, and a cell that was stopped is a cross at
its limit. Trap: both scales are logarithmic; an equal distance is an equal factor.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evergraph.bench import drawing
from evergraph.bench.equality.measures import AUTO, BF, BF_A, REMAT, REMAT_A, Measured

COLOURS = {BF.name: "#d95f02", REMAT.name: "#7f7f7f", BF_A.name: "#fdae6b", REMAT_A.name: "#c7c7c7"}


def draw(found: Sequence[Measured], limit: float, path: Path) -> bool:
    """Draw data sets; False, and no file, where there is nothing to draw or matplotlib is not installed."""
    done = [measured for measured in found if any(cell.seconds for cell in measured.cells)]
    pyplot = drawing.pyplot()
    if not done or pyplot is None:
        return False
    figure, axes = pyplot.subplots(1, len(done), squeeze=False, sharey=True, figsize=(6 * len(done), 4.5), layout="constrained")
    for axis, measured in zip(axes[0], done, strict=True):
        _panel(axis, measured, limit)
    drawing.save(figure, path)
    return True


def _panel(axis: Any, measured: Measured, limit: float) -> None:
    for name, colour in COLOURS.items():
        mine = [cell for cell in measured.cells if cell.approach == name]
        line = [(cell.facts, cell.seconds) for cell in mine if cell.seconds]
        if line:
            axis.plot(*zip(*line, strict=True), "o-", markersize=4, color=colour, label=name)
        stopped = [cell.facts for cell in mine if cell.status == "stopped"]
        axis.scatter(stopped, [limit] * len(stopped), marker="x", color=colour)
    auto = [(cell.facts, cell.seconds) for cell in measured.cells if cell.approach == AUTO.name and cell.seconds]
    if auto:
        axis.scatter(*zip(*auto, strict=True), s=60, facecolors="none", edgecolors="#1b7837", label=AUTO.name, zorder=3)
    n = measured.equilibrium
    if n is not None:
        axis.axvline(n, linestyle=":", color="black", label=f"equilibrium, {100 * n / measured.explicit:.2g} % of E")
    axis.set_title(f"{measured.data}, |E| = {measured.explicit:,}")
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("explicit facts deleted")
    axis.set_ylabel("seconds, reading aside")
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(frameon=False, fontsize=8)
