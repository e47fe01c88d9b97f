"""The tables of `evergraph bench equality`: Table 1 as in the paper, cliques by their size, and what is measured in turns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from evergraph.bench.equality.alternating import Side
from evergraph.bench.equality.cliques import SYSTEMS
from evergraph.bench.equality.measures import AUTO, BF, BF_A, REMAT, REMAT_A, Cell, Load, Measured


def table_1(found: Measured) -> Table:
    """A data set: a line for each number of deleted facts, times and derivations of the four approaches, and auto's choice."""
    rewriting, axioms = (_load(found.loads.get(name, Load()), sign) for name, sign in (("rewrite", "≈"), ("axioms", "ᴬ")))
    head = f"{found.data}: |E| = {short(found.explicit)}  |Π| = {found.rules}  {_cliques(found)}"
    out = Table(title=f"{head}\n{rewriting}\n{axioms}\n{balance(found)}")
    for name in ("|E⁻|", "Δ|I≈|", "B/F≈\nT", "\nD", "Remat≈\nT", "\nD", "Δ|Iᴬ|", "B/Fᴬ\nT", "\nD", "Rematᴬ\nT", "\nD"):
        out.add_column(name, justify="right", no_wrap=True)
    out.add_column("auto≈\nT", justify="right", no_wrap=True)
    out.add_column("\nran", no_wrap=True)
    for size in dict.fromkeys(cell.size for cell in found.cells):
        bf, remat, bf_a, remat_a, auto = (found.cell(a, size) for a in (BF, REMAT, BF_A, REMAT_A, AUTO))
        facts = next(cell.facts for cell in found.cells if cell.size == size)
        figures = [_gone(bf, remat), *_both(bf), *_both(remat), _gone(bf_a, remat_a), *_both(bf_a), *_both(remat_a)]
        name = short(facts) + (f" ({size})" if "%" in size else "")
        out.add_row(name, *figures, _both(auto)[0], auto.chose if auto else "")
    return out


def balance(found: Measured) -> str:
    """Where B/F≈ and Remat≈ take the same time."""
    n = found.equilibrium
    if n is not None:
        return f"equilibrium of B/F≈ and Remat≈ at {short(n)} facts, {100 * n / found.explicit:.2g} % of E"
    pairs = [(found.cell(BF, size), found.cell(REMAT, size)) for size in dict.fromkeys(c.size for c in found.cells)]
    ratios = [a.seconds / b.seconds for a, b in pairs if a and b and a.seconds and b.seconds]
    if not ratios:
        return "no equilibrium: nothing to compare"
    return f"no equilibrium: {'B/F≈' if ratios[-1] < 1 else 'Remat≈'} is quicker at the largest size that both were measured at"


def clique_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Lines by kind and number of names; for each system seconds, facts that it holds, and derivations for an explicit fact."""
    out = Table(title="n names that become one clique, ten facts each: seconds, facts held, derivations per explicit fact")
    out.add_column("names become equal by", no_wrap=True)
    out.add_column("n", justify="right", no_wrap=True)
    for system in SYSTEMS:
        for name in (f"{system}\nT", "\nfacts", *(["\nD per fact"] if system != "reasonable" else [])):
            out.add_column(name, justify="right", no_wrap=True)
    for kind in dict.fromkeys(row["kind"] for row in rows):
        for names in dict.fromkeys(row["names"] for row in rows if row["kind"] == kind):
            line = [kind, f"{names:,}"]
            for system in SYSTEMS:
                row = next(r for r in rows if (r["kind"], r["names"], r["system"]) == (kind, names, system))
                line += [_clique_seconds(row), short(row.get("facts"))]
                line += [short(row.get("per_fact"))] if system != "reasonable" else []
            out.add_row(*line)
        out.add_section()
    return out


def sides_table(title: str, sides: Sequence[Side]) -> Table:
    """Two graphs that were measured in turns, and their ratio."""
    out = Table(title=title)
    out.add_column("", no_wrap=True)
    for name in ("rules", "facts", "materialise\nT", "\nD", "delete 100\nT", "\nD", "gone"):
        out.add_column(name, justify="right", no_wrap=True)
    rows = [side.as_dict() for side in sides]
    for row in rows:
        works = [f(row[of][work]) for work in row["seconds"] for f, of in ((seconds, "seconds"), (short, "derivations"))]
        style = "bold red" if row["status"] == "wrong" else ""
        out.add_row(row["name"], f"{row['rules']:,}", short(row["facts"]), *works, short(row["gone"]), style=style)
    ratios = [f"{rows[-1]['seconds'][work] / rows[0]['seconds'][work]:.2f}×" for work in rows[0]["seconds"]]
    out.add_row("ratio", "", "", ratios[0], "", ratios[1], "", "", style="dim")
    return out


def troubles(cells: Sequence[Cell], cliques: Sequence[Mapping[str, Any]], sides: Sequence[Side]) -> list[str]:
    """Why there are no figures, or wrong ones."""
    told = [(c.status, f"{c.data}, {c.approach}, {c.size}: {c.line}") for c in cells]
    told += [(row["status"], f"a clique of {row['names']:,}, {row['kind']}, {row['system']}: {row['line']}") for row in cliques]
    told += [(side.status, f"{side.part}, {side.name}: {side.line}") for side in sides]
    return [f"{status}: {line}" for status, line in told if status != "ok"]


def seconds(figure: float | None) -> str:
    """
    >>> [seconds(figure) for figure in (None, 0.01234, 1.5, 123.4)]
    ['–', '0.012', '1.50', '123']
    """
    if figure is None:
        return "–"
    return f"{figure:.3f}" if figure < 0.1 else f"{figure:.2f}" if figure < 100 else f"{figure:,.0f}"


def short(figure: float | None) -> str:
    """As the paper has its numbers.

    >>> [short(figure) for figure in (None, 146, 7800, 45_800, 361_000_000, 11e9)]
    ['–', '146', '7.8k', '45.8k', '361M', '11G']
    """
    if figure is None:
        return "–"
    for size, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(figure) >= size:
            return f"{figure / size:.3g}{sign}"
    return f"{figure:.3g}"


def _both(cell: Cell | None) -> tuple[str, str]:
    """Time and derivations; a cell that was stopped says at what."""
    if cell is None or cell.status == "skipped":
        return "–", "–"
    if cell.status == "stopped":
        return cell.line.replace("more than", ">").removesuffix(" s"), "–"
    return ("wrong " if cell.status == "wrong" else "") + seconds(cell.seconds), short(cell.derivations)


def _gone(*cells: Cell | None) -> str:
    return short(next((cell.gone for cell in cells if cell and cell.gone is not None), None))


def _load(load: Load, sign: str) -> str:
    time = f"> {load.line.split()[2]}" if load.status == "stopped" else seconds(load.seconds)
    return f"|I{sign}| = {short(load.facts)}  T{sign} = {time}  D{sign} = {short(load.derivations)}"


def _cliques(found: Measured) -> str:
    load = found.loads.get("rewrite")
    known = load.cliques if load else None
    return f"cliques: {known['cliques']:,} of {known['names']:,} names, the largest of {known['largest']:,}" if known else ""


def _clique_seconds(row: Mapping[str, Any]) -> str:
    words = {"timeout": f"> {row['limit']:g}", "missing": "not there", "skipped": "–"}
    return seconds(row["seconds"]) if row["status"] == "ok" else words.get(row["status"], row["status"])
