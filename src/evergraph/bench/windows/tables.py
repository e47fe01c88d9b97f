"""The table of Figure 7: a line for each share, seconds and factors of the algorithms, and below it where they meet."""

from __future__ import annotations

from itertools import combinations

from rich.table import Table

from evergraph.bench.equality.tables import seconds
from evergraph.bench.windows.measures import PAPER, PAPER_CROSSINGS, RECOMPUTE, Figure7


def figure_7(found: Figure7) -> Table:
    """Medians by share; behind them how many times quicker than recomputation."""
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
            line.append(seconds(found.seconds(name, share)))
            if name != RECOMPUTE:
                line.append(_factor(found.seconds(RECOMPUTE, share), found.seconds(name, share)))
        out.add_row(*line)
    return out


def meetings(found: Figure7) -> list[str]:
    """A line for each two algorithms: at which shares they take the same time, and what the paper says."""
    return [_meeting(found, one, other) for other, one in combinations(found.runs, 2) if found.ratios(one, other)]


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
