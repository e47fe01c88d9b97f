"""`materialise.png`: seconds by system, a panel for each rule set and size, on a logarithmic scale.

Trap: bars of different panels are not to be compared by eye; each panel has its own scale.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evergraph.bench import drawing

if TYPE_CHECKING:
    from evergraph.bench.materialise import Row

OURS, SAME, OWN = "#1b7837", "#4c78a8", "#b8b8b8"


def draw(rows: Sequence[Row], path: Path, cores: int) -> bool:
    """Draw the rows; False, and no file, where there is nothing to draw or matplotlib is not installed."""
    if not rows:
        return False
    pyplot = drawing.pyplot()
    if pyplot is None:
        return False
    panels: dict[tuple[str, int], list[Row]] = {}
    for row in rows:
        panels.setdefault((row.rules, row.universities), []).append(row)
    names = list(dict.fromkeys(rules for rules, _ in panels))
    sizes = sorted({size for _, size in panels})
    longest = max(map(len, panels.values()))
    size = 5.2 * len(sizes), (0.4 * longest + 1.0) * len(names)
    figure, axes = pyplot.subplots(len(names), len(sizes), squeeze=False, figsize=size, layout="constrained")
    for y, rules in enumerate(names):
        for x, universities in enumerate(sizes):
            _panel(axes[y][x], f"{rules}, LUBM({universities})", panels.get((rules, universities), []))
    on = f"{cores} core{'s' if cores > 1 else ''}"
    figure.suptitle(f"Closure, seconds on {on}\ngreen Evergraph, blue the same rules, grey rules of their own", fontsize=10)
    drawing.save(figure, path)
    return True


def _panel(axis: Any, title: str, rows: Sequence[Row]) -> None:
    axis.set_title(title)
    if not rows:
        axis.set_axis_off()
        return
    ordered = sorted(rows, key=lambda row: row.seconds or 0.0, reverse=True)
    seconds = [row.seconds or 0.0 for row in ordered]
    colours = [OURS if row.system.startswith("evergraph") else SAME if row.same_rules else OWN for row in ordered]
    labels = [row.system + (" (with load)" if row.materialise is None else "") for row in ordered]
    bars = axis.barh(labels, seconds, color=colours)
    axis.bar_label(bars, [f" {s:.3g} s" for s in seconds])
    axis.set_xscale("log")
    axis.set_xlim(min(seconds) / 3, max(seconds) * 6)
    axis.spines[["top", "right"]].set_visible(False)
