"""`windows.png`, like the paper's Figure 7, seconds of a step by the share that changes; `windows-ticks.png`, ticks and memory.

Lines join medians, thin bars go from the least to the most of the runs, and dotted lines stand where an algorithm and
recomputation take the same time; triangles at the bottom are where they do in the paper. Trap: both scales are logarithmic; an
equal distance is an equal factor. Those of the ticks are not, and begin at nought.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evergraph.bench import drawing
from evergraph.bench.windows.measures import DECLARATIVE, EXPIRY, PAPER, PAPER_CROSSINGS, RECOMPUTE, Figure7
from evergraph.bench.windows.ticks import BLOCK, Ticks

COLOURS = {RECOMPUTE: "#7f7f7f", DECLARATIVE: "#4c78a8", EXPIRY: "#d95f02"}
OTHERS = ("#1b7837", "#7570b3", "#333333", "#fdae6b")


def draw(found: Figure7, path: Path) -> bool:
    """Draw Figure 7; False, and no file, where there is nothing to draw or matplotlib is not installed."""
    lines = {name: found.line(name) for name in found.runs}
    pyplot = drawing.pyplot()
    if not any(lines.values()) or pyplot is None:
        return False
    figure, axis = pyplot.subplots(figsize=(9, 4.8), layout="constrained")
    others = iter(OTHERS * len(lines))
    for name, line in lines.items():
        colour = COLOURS.get(name) or next(others)
        _line(axis, found, name, line, colour)
        for share in found.crossings(name, RECOMPUTE) if name != RECOMPUTE else ():
            axis.axvline(share, linestyle=":", color=colour, label=f"{name} = {RECOMPUTE} at {share:.2g} %")
    axis.set_xscale("log")
    axis.set_yscale("log")
    _paper(axis, found)
    axis.set_xticks(found.shares, [f"{share:g}" for share in found.shares], fontsize=8)
    axis.minorticks_off()
    axis.set_xlabel("percent of the background that enters, and leaves, at a step")
    axis.set_ylabel("seconds a step")
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    drawing.save(figure, path)
    return True


def _line(axis: Any, found: Figure7, name: str, line: list[tuple[float, float]], colour: str) -> None:
    label = f"{name} ({PAPER[name]})" if name in PAPER else name
    axis.plot(*zip(*line, strict=True), "o-", markersize=4, color=colour, label=label)
    runs = [found.runs[name][share] for share, _ in line]
    axis.vlines([share for share, _ in line], list(map(min, runs)), list(map(max, runs)), color=colour, linewidth=1)


def _paper(axis: Any, found: Figure7) -> None:
    """Where the paper's curves meet that of recomputation, if the scale goes so far."""
    for (name, _), share in PAPER_CROSSINGS.items():
        if found.shares[0] <= share <= found.shares[-1]:
            place = axis.get_xaxis_transform()
            axis.scatter([share], [0.015], marker="^", s=25, color=COLOURS[name], transform=place, label=f"paper: {share:g} %")


def draw_ticks(found: Ticks, path: Path) -> bool:
    """Draw the ticks of the mobility scenario; False, and no file, as above.

    Bands go from the median of a hundred to their most.
    """
    blocks = list(found.blocks())
    pyplot = drawing.pyplot()
    if not blocks or pyplot is None:
        return False
    figure, (above, below) = pyplot.subplots(2, 1, sharex=True, figsize=(7, 5), layout="constrained", height_ratios=(2, 1))
    at = [block["tick"] for block in blocks]
    for name, colour, label in (
        ("maintain", COLOURS[EXPIRY], "push and slide"),
        ("query", COLOURS[DECLARATIVE], "query of Figure 2"),
    ):
        low, high = ([1000 * block[name][n] for block in blocks] for n in (0, 1))
        above.plot(at, low, marker=".", color=colour, label=f"{label}, median of {BLOCK}")
        above.fill_between(at, low, high, color=colour, alpha=0.2, linewidth=0, label="to the slowest of them")
    above.set_ylim(bottom=0)
    above.set_ylabel("milliseconds a tick")
    above.legend(frameon=False, fontsize=8, ncols=2)
    below.plot([look["tick"] for look in found.memory], [look["resident"] / 1e6 for look in found.memory], color="#333333")
    below.set_ylim(bottom=0)
    below.set_ylabel("resident, MB")
    below.set_xlabel(f"ticks; {found.rate:,} facts enter at each, beside {found.facts:,}")
    for axis in (above, below):
        axis.spines[["top", "right"]].set_visible(False)
    drawing.save(figure, path)
    return True
