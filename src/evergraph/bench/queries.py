"""The fourteen queries of LUBM over one closure, beside rdflib's own store and pyoxigraph: `evergraph bench queries`.

What is timed: from the text of a query to its last answer, every term of every row made; parsing is part of it for all, and
no query is asked twice with the same text, so that none is found parsed already. The best of three. Beside them the median
of many small queries, each with another constant. All systems hold the same triples and must give the same rows.

Trap: rdflib joins patterns in an order that pairs whole classes in queries 2 and 9. A query is stopped after `limit` seconds
and then counts with as many, so that rdflib's total is a lower bound. Evergraph and pyoxigraph are measured before rdflib's
millions of objects are there to slow down every collection of garbage.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from importlib.resources import files
from itertools import count
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import pyoxigraph as ox
import rdflib
from rich.table import Table

from evergraph import KnowledgeGraph
from evergraph.bench import drawing, results
from evergraph.bench.chart import OURS, OWN, SAME
from evergraph.bench.stopping import Stopped, stopped_after
from evergraph.formats.write import write_ntriples
from evergraph.sparql import View, query
from evergraph.sparql.lexicon import text_of

REPEAT, REPEAT_BELOW = 3, 10_000.0
"""Runs of which the best counts; after one of more milliseconds than this there is no other."""
ASKED = 100
"""Small queries of each kind."""
UB = "http://swat.cse.lehigh.edu/onto/univ-bench.owl#"
SMALL = {
    "point": "SELECT ?p ?o WHERE {{ <http://www.Department{0}.University0.edu/GraduateStudent{1}> ?p ?o }}",
    "join": "SELECT ?x ?c WHERE {{ ?x ub:memberOf <http://www.Department{0}.University{1}.edu> . ?x ub:takesCourse ?c }}",
}
"""A point query, and a join of two patterns with some 1,500 answers."""

System = Callable[[str], Iterator[Any]]
"""Takes a query, gives its rows."""

COLOURS = (OURS, SAME, OWN)
_numbers = count()


def main(universities: int, rules: str, limit: int, out: Path, data: Path = Path("bench-data")) -> int:
    """Measure, print a table, write `queries.json` and `queries.png` into `out`; 1 if answers differ."""
    graph = KnowledgeGraph(rules, equality="off")
    graph.update(insert=[results.lubm(universities, data)])
    texts = queries()
    rows: list[dict[str, Any]] = [{"query": number} for number in texts]
    medians: dict[str, dict[str, float]] = {}
    for name, system in systems(graph):
        for _ in system(_fresh(texts[1])):  # loads what is loaded late
            pass
        for row in rows:
            row[name], found = measure(system, texts[row["query"]], limit)
            if found is None:
                row["stopped"] = name
            elif row.setdefault("answers", found) != found:
                row["differs"] = name
        medians[name] = {kind: latency(system, kind, universities) for kind in SMALL}
    for row in rows:
        row["answers"] = sum(row["answers"].values())
    totals = {name: sum(row[name] for row in rows) for name in medians}
    results.console().print(table(rows, totals, medians, f"LUBM({universities}), {rules}, {len(graph):,} triples"))
    about = {"universities": universities, "rules": rules, "triples": len(graph), "limit_s": limit}
    results.save(out / "queries.json", rows, **about, totals_ms=totals, medians_ms=medians)
    draw(rows, list(medians), out / "queries.png")
    for row in rows:
        if "differs" in row:
            results.console().print(f"query {row['query']}: {row['differs']} has other answers", style="bold red")
    return 1 if any("differs" in row for row in rows) else 0


def queries() -> dict[int, str]:
    """The queries by number."""
    folder = files("evergraph.bench.lubm").joinpath("queries")
    return {int(path.name[:2]): path.read_text() for path in sorted(folder.iterdir(), key=lambda path: path.name)}


def systems(graph: KnowledgeGraph) -> Iterator[tuple[str, System]]:
    """The same triples in one system after the other."""
    yield "evergraph", lambda text: iter(query(View.of(graph), text))
    with TemporaryDirectory() as folder:
        closure = Path(folder, "closure.nt")
        write_ntriples(graph.blocks(), closure)
        store = ox.Store()
        store.bulk_load(path=closure, format=ox.RdfFormat.N_TRIPLES)
        yield "pyoxigraph", lambda text: map(tuple, store.query(text))  # type: ignore[arg-type]
        memory = rdflib.Graph()
        memory.parse(closure, format="nt")
        yield "rdflib", lambda text: iter(memory.query(text))


def measure(system: System, text: str, limit: int) -> tuple[float, Counter[tuple[str, ...]] | None]:
    """Milliseconds of the best run, and the rows; the limit and None where it was reached."""
    times: list[float] = []
    rows: list[Any] = []
    try:
        while len(times) < REPEAT and not (times and times[0] > REPEAT_BELOW):
            with stopped_after(limit):
                asked, rows = _fresh(text), []
                start = perf_counter()
                for row in system(asked):
                    rows.append(row)
                times.append(1000 * (perf_counter() - start))
    except Stopped:
        return 1000.0 * limit, None
    return min(times), Counter(tuple(map(_text, row)) for row in rows)


def latency(system: System, kind: str, universities: int) -> float:
    """The median of milliseconds of many small queries, each with another constant."""
    pairs = [(n % 15, n // 15) for n in range(ASKED if kind == "point" else min(ASKED, 15 * universities))]
    times = []
    for pair in pairs:
        text = _fresh(f"PREFIX ub: <{UB}> " + SMALL[kind].format(*pair))
        start = perf_counter()
        for _ in system(text):
            pass
        times.append(1000 * (perf_counter() - start))
    return median(times)


def table(rows: list[dict[str, Any]], totals: dict[str, float], medians: dict[str, dict[str, float]], title: str) -> Table:
    out = Table(title=f"Queries, milliseconds with parsing: {title}")
    for name in ("query", "answers", *totals, *(f"{name} to evergraph" for name in totals if name != "evergraph")):
        out.add_column(name, justify="right")
    for row in rows:
        out.add_row(str(row["query"]), f"{row['answers']:,}", *_cells(row, row.get("stopped")))
    out.add_section()
    out.add_row("all", "", *_cells(totals, next((row["stopped"] for row in rows if "stopped" in row), None)))
    for kind in SMALL:
        out.add_row(kind, "", *_cells({name: times[kind] for name, times in medians.items()}))
    return out


def draw(rows: list[dict[str, Any]], names: list[str], path: Path) -> bool:
    """A bar for each query and system; False, and no file, where matplotlib is not installed."""
    pyplot = drawing.pyplot()
    if pyplot is None:
        return False
    figure, axis = pyplot.subplots(figsize=(9, 4), layout="constrained")
    width = 0.8 / len(names)
    for number, (name, colour) in enumerate(zip(names, COLOURS, strict=False)):
        places = [row["query"] + (number - (len(names) - 1) / 2) * width for row in rows]
        axis.bar(places, [row[name] for row in rows], width, label=name, color=colour)
    axis.set_yscale("log")
    axis.set_xticks([row["query"] for row in rows])
    axis.set_ylabel("milliseconds, parsing included")
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(frameon=False)
    drawing.save(figure, path)
    return True


def _cells(times: dict[str, Any], stopped: str | None = None) -> list[str]:
    names = [name for name in ("evergraph", "pyoxigraph", "rdflib") if name in times]
    sign = {name: "> " if name == stopped else "" for name in names}
    ratios = [f"{sign[name]}{times[name] / times['evergraph']:.1f}" for name in names if name != "evergraph"]
    return [*(f"{sign[name]}{times[name]:,.1f}" for name in names), *ratios]


def _text(term: Any) -> str:
    return str(term) if isinstance(term, ox.NamedNode | ox.BlankNode | ox.Literal) else text_of(term)


def _fresh(text: str) -> str:
    """The same query in a text that was never seen."""
    return f"{text}\n# {next(_numbers)}"
