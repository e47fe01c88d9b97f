"""The tables of `evergraph bench windows`.

Figure 7: a line for each share, seconds and factors of the algorithms, and below it where they meet. Mobility: a line for each
part of a tick, and one for each algorithm that kept the same window.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from itertools import combinations
from statistics import median

from rich.table import Table

from evergraph.bench.equality.tables import seconds
from evergraph.bench.windows.batches import Batches
from evergraph.bench.windows.measures import PAPER, PAPER_CROSSINGS, RECOMPUTE, Figure7
from evergraph.bench.windows.steps import Cell
from evergraph.bench.windows.ticks import SHOWN, Ticks, summary


def figure_7(found: Figure7, stopped: Container[tuple[str, float]] = ()) -> Table:
    """Medians by share; behind them how many times quicker than recomputation. `stopped` are algorithms at shares."""
    names = list(found.runs)
    out = Table(title="Figure 7: seconds of a step, medians, by percent of the background that changes; × against recompute")
    out.add_column("share", justify="right", no_wrap=True)
    for name in names:
        out.add_column(f"{name}\n{PAPER.get(name, '')}".strip(), justify="right", no_wrap=True)
        if name != RECOMPUTE:
            out.add_column("×", justify="right", no_wrap=True)
    for share in found.shares:
        line = [f"{share:g} %"]
        for name in names:
            figure = found.seconds(name, share)
            line.append("stopped" if figure is None and (name, share) in stopped else seconds(figure))
            if name != RECOMPUTE:
                line.append(_factor(found.seconds(RECOMPUTE, share), figure))
        out.add_row(*line)
    return out


def meetings(found: Figure7) -> list[str]:
    """A line for each two algorithms: at which shares they take the same time, and what the paper says."""
    return [_meeting(found, one, other) for other, one in combinations(found.runs, 2) if found.ratios(one, other)]


def ticks_table(found: Ticks) -> Table:
    """Milliseconds of the parts of a tick."""
    share = f"{found.held:,} facts held of {found.window:,} that enter, {found.rate:,} a tick"
    told = (
        f"Mobility: {len(found.answers):,} ticks, {found.facts:,} facts beside a window of {share}; {found.triples:,} triples"
    )
    out = Table(title=f"{told}; milliseconds")
    out.add_column(f"by {found.algorithm}", no_wrap=True)
    for name in ("median", "p99", "max"):
        out.add_column(name, justify="right", no_wrap=True)
    for parts in SHOWN if found.answers else ():
        out.add_row(" + ".join(parts), *(f"{1000 * figure:.1f}" for figure in summary(found.of(*parts)).values()))
    return out


def peers_table(found: Ticks) -> Table:
    """Seconds of slides by other algorithms, beside the one that was measured in full."""
    out = Table(title="The same window by other algorithms, seconds")
    out.add_column("algorithm", no_wrap=True)
    for name in ("fill the window", "slides", "median", "most", "×"):
        out.add_column(name, justify="right", no_wrap=True)
    own = found.seconds["slide"]
    lines = [(found.algorithm, found.filling, own), *((peer.algorithm, peer.filling, peer.seconds) for peer in found.peers)]
    for name, filling, slides in lines:
        usual, most = (median(slides), max(slides)) if slides else (None, None)
        factor = _factor(usual, median(own)) if own else "–"
        out.add_row(name, seconds(filling), f"{len(slides):,}", seconds(usual), seconds(most), factor)
    return out


def batches_table(found: Sequence[Batches]) -> Table:
    """Medians and most of micro-batches, and of what they take beside the stream's own work."""
    out = Table(title="Micro-batches of Spark Structured Streaming, seconds")
    out.add_column("background", justify="right", no_wrap=True)
    for name in ("triples", "batches", "batch", "most", "stream", "rest", "most"):
        out.add_column(name, justify="right", no_wrap=True)
    for one in found:
        name = f"{one.background:,}" if one.background else "empty"
        figures = (median(one.batch), max(one.batch), median(one.stream), median(one.rest), max(one.rest))
        out.add_row(name, f"{one.triples:,}", f"{len(one.batch):,}", *map(seconds, figures))
    return out


def memory(found: Ticks) -> str:
    """One line: resident memory at the first look and at the last, and what a thousand ticks add."""
    first, last, growth = found.memory[0], found.memory[-1], found.growth()
    grown = f", {growth / 1e6:+.2f} MB in a thousand ticks" if growth is not None else ""
    sizes = f"{first['resident'] / 1e6:,.0f} MB when the window had settled, {last['resident'] / 1e6:,.0f} MB at the end"
    return f"resident: {sizes}{grown}; terms of the stream's own: {first['terms']:,}, {last['terms']:,}"


def troubles(cells: Sequence[Cell], ticks: Ticks | None) -> list[str]:
    """Why there are no figures, or wrong ones."""
    told = [(cell.status, f"{cell.share:g} %, {cell.algorithm}: {cell.line}") for cell in cells]
    told += [(peer.status, f"mobility, {peer.algorithm}: {peer.line}") for peer in (ticks.peers if ticks else ())]
    return [f"{status}: {line}" for status, line in told if status != "ok"]


def _meeting(found: Figure7, one: str, other: str) -> str:
    """
    >>> found = Figure7.of({"share": s, "algorithm": a, "seconds": [t]} for a, s, t in [
    ...     ("recompute", 1, 1.0), ("recompute", 4, 1.0), ("expiry", 1, 0.5), ("expiry", 4, 2.0)])
    >>> _meeting(found, "expiry", "recompute")
    'expiry and recompute take the same time at 2 % (the paper: 13 %); below, expiry is quicker'
    """
    where, ratios = found.crossings(one, other), found.ratios(one, other)
    paper = PAPER_CROSSINGS.get((one, other))
    said = f" (the paper: {paper:g} %)" if paper is not None else ""
    quicker = one if ratios[0][1] < 1 else other
    if where:
        places = ", ".join(f"{share:.2g} %" for share in where)
        return f"{one} and {other} take the same time at {places}{said}; below, {quicker} is quicker"
    return f"{quicker} is quicker than {one if quicker == other else other} at all shares measured, {_span(ratios)}{said}"


def _span(ratios: list[tuple[float, float]]) -> str:
    return f"{ratios[0][0]:g} to {ratios[-1][0]:g} %"


def _factor(base: float | None, figure: float | None) -> str:
    return f"{base / figure:.3g}" if base and figure else "–"
