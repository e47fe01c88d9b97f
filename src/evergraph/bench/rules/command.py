"""`evergraph bench rules`: a program of 250,000 rules in 40 forms, set up and changed; prints two tables, writes `rules.json`.

Exit code 1 if the rules derive other instance facts than the triples, or a change leaves other facts than recomputation.
"""

from __future__ import annotations

import resource
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

from rich.console import Console
from rich.table import Table

from evergraph.bench import results
from evergraph.bench.rules.generate import generate
from evergraph.bench.rules.measure import Changes, same_instances, set_up


def main(scale: float, seed: int, out: Path, data: Path = Path("bench-data")) -> int:
    """Measure, print tables, write `rules.json` into `out`; 1 if anything is wrong."""
    large = generate(data / f"rules-{scale:g}-{seed}", scale, seed)
    say(f"{len(large.rules):,} rules: set-up as triples, as far as RDFS can say them")
    triples = set_up(large, "triples")
    say(f"{len(large.rules):,} rules: set-up as rules")
    rules = set_up(large, "rules")
    wrong = same_instances(rules.graph, triples.graph)
    rows = [rules.row(), triples.row()]
    del triples
    say("rules that go and come back")
    changes = Changes(rules.graph, Random(seed))
    single, many = changes.one_by_one(large), changes.many(large)
    ratio = rows[0]["seconds"] / rows[1]["seconds"]
    wrong = wrong or changes.wrong
    more = {"scale": scale, "seed": seed, "ratio": ratio, "recompute": changes.recompute, "changes": [*single, many]}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    results.save(out / "rules.json", rows, **more, memory=peak, wrong=wrong)
    console = results.console()
    console.print(set_up_table(rows))
    console.print(changes_table([*single, many], changes.recompute))
    if wrong:
        console.print(f"wrong: {wrong}", style="bold red", highlight=False, soft_wrap=True)
    return 1 if wrong else 0


def say(text: str) -> None:
    """Tell how far it is, on standard error."""
    Console(stderr=True).print(f"{text} …", style="dim", highlight=False, soft_wrap=True)


def set_up_table(rows: Sequence[dict[str, Any]]) -> Table:
    stages = list(rows[0]["stages"])
    out = Table(title="Set-up from files: all rules as rules, and the axioms of RDFS as triples under ρdf; seconds")
    out.add_column("as", no_wrap=True)
    for name in ("rules", "facts", "derived", *stages, "all", "ratio"):
        out.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        numbers = [f"{row[name]:,}" for name in ("rules", "closure", "derived")]
        times = [f"{row['stages'][name]:.2f}" for name in stages]
        out.add_row(row["form"], *numbers, *times, f"{row['seconds']:.2f}", f"{row['seconds'] / rows[-1]['seconds']:.2f}")
    return out


def changes_table(rows: Sequence[dict[str, Any]], recompute: float) -> Table:
    out = Table(title=f"Rules that go and come back: milliseconds, medians; recomputation takes {1000 * recompute:,.0f}")
    out.add_column("kind", no_wrap=True)
    for name in ("rules", "facts", "delete", "to recompute", "insert", "to recompute"):
        out.add_column(name, justify="right", no_wrap=True)
    out.add_column("deleted by", no_wrap=True)
    for row in rows:
        times = [
            cell
            for operation in ("delete", "insert")
            for cell in (f"{1000 * row[operation]:,.2f}", f"1/{1 / row[f'{operation}_to_recompute']:,.0f}")
        ]
        out.add_row(row["kind"], f"{row['rules']:,}", f"{row['delete_facts']:,.0f}", *times, row["chose"])
    return out
