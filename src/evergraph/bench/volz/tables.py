"""The tables of `evergraph bench volz`: one for each kind of ontology, the paper's averages above ours."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from evergraph.bench.volz.measures import ALL, CHANGES, Cell
from evergraph.bench.volz.paper import Figure


def table_of_kind(cells: Sequence[Cell]) -> Table:
    """Lines by depth and change: the paper, each algorithm, and how many times longer its set-up takes than a change."""
    first = cells[0]
    out = Table(title=f"{first.kind}: milliseconds, mean of {max(map(runs_of, cells))}; `set-up ÷` is set-up by maintenance")
    for name in ("D", "change", "who"):
        out.add_column(name, no_wrap=True)
    for name in ALL:
        out.add_column(name.replace(" ", "\n"), justify="right", no_wrap=True)
    for place in dict.fromkeys((cell.depth, cell.change) for cell in cells):
        group = [cell for cell in cells if (cell.depth, cell.change) == place]
        paper = group[0].paper
        out.add_row(str(place[0]), f"{place[1]} %", "paper", *(number(paper.get(name)) for name in ALL), style="dim")
        for cell in group:
            out.add_row("", "", cell.algorithm, *(number(cell.mean(name)) for name in ALL), style=style_of(cell))
            ratios = (_ratio(cell.ratio(name)) if name in CHANGES else "" for name in ALL)
            out.add_row("", "", "  set-up ÷", *ratios, style="dim")
        out.add_section()
    return out


def troubles(cells: Sequence[Cell]) -> list[str]:
    """Why cells have no figures, or wrong ones."""
    return [
        f"{cell.status}: {cell.kind}, D = {cell.depth}, {cell.change} %, {cell.algorithm}: {cell.line}"
        for cell in cells
        if cell.status != "ok"
    ]


def runs_of(cell: Cell) -> int:
    return max((len(runs) for runs in cell.runs.values()), default=0)


def style_of(cell: Cell) -> str:
    return "bold red" if cell.status == "wrong" else ""


def number(figure: Figure) -> str:
    """Three digits that count.

    >>> [number(figure) for figure in (None, "OoM", 0, 0.5234, 12.345, 136128)]
    ['–', 'OoM', '0', '0.523', '12.3', '136,128']
    """
    if figure is None or isinstance(figure, str):
        return figure or "–"
    return f"{figure:,.0f}" if figure >= 1000 else f"{figure:.3g}"


def _ratio(ratio: float | None) -> str:
    return "–" if ratio is None else f"{ratio:.3g}×"
