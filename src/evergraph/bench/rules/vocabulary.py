"""`evergraph bench vocabulary`: a vocabulary of 2,000 names over a million facts, replayed through twenty versions of itself.

Two histories: of changes where few facts are, and of changes anywhere. Each version is one update, made as rules that come and
go, by `auto` and by recomputation, and in the first history as triples that come and go under `rhodf` as well. After each, both
graphs of rules must have as many facts, and the last is checked in full. Facts are as they were drawn for the first version:
data is not rewritten when a vocabulary is.

Trap: triples are not replayed where anything may change. DRed takes back a subclass axiom in the midst of a million facts by
putting forward, under the one rule of ρdf for all classes, every pair of a fact and a superclass: tens of gigabytes.

Prints tables, writes `vocabulary.json` and `vocabulary.png`. Exit code 1 if anything is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from random import Random
from statistics import median
from time import perf_counter
from typing import Any

import pyarrow as pa
from rich.table import Table

from evergraph import KnowledgeGraph
from evergraph.bench import drawing, results
from evergraph.bench.rules.axioms import Axiom, iri, program
from evergraph.bench.rules.command import say
from evergraph.bench.rules.history import CLASSES, PROPERTIES, Vocabulary, first, versions
from evergraph.maintain.verify import Differs
from evergraph.report import Report
from evergraph.rules.model import TYPE

FACTS, INDIVIDUALS = 1_000_000, 300_000
RULES = ("auto", "recompute")
WAYS = (*RULES, "triples")


@dataclass(frozen=True, slots=True)
class History:
    """What may change: names that, with all below them, are in at most this part of all facts."""

    name: str
    words: str
    share: float
    ways: tuple[str, ...]


HISTORIES = (
    History("fringe", "where few facts are", 1e-4, WAYS),
    History("anywhere", "anywhere", math.inf, RULES),
)


def main(scale: float, number: int, seed: int, out: Path) -> int:
    """Replay so many versions of each history, print tables, write `vocabulary.json` and the chart; 1 if anything is wrong."""
    rows: list[dict[str, Any]] = []
    console, wrong = results.console(), list[str]()
    summary = {}
    for history in HISTORIES:
        found, troubles = replay(history, scale, number, seed)
        rows += found
        wrong += troubles
        console.print(table(found, history))
        ratios = [row["ratio"] for row in found]
        summary[history.name] = {"least": min(ratios), "median": median(ratios)}
    results.save(out / "vocabulary.json", rows, scale=scale, seed=seed, ratios=summary, wrong=wrong)
    draw(rows, out / "vocabulary.png")
    for line in wrong:
        console.print(f"wrong: {line}", style="bold red", highlight=False, soft_wrap=True)
    return 1 if wrong else 0


def replay(history: History, scale: float, number: int, seed: int) -> tuple[list[dict[str, Any]], list[str]]:
    """The versions of one history, a row each, and what was wrong with them."""
    rng = Random(seed)
    vocabulary = first(max(40, round(CLASSES * scale)), max(10, round(PROPERTIES * scale)), rng)
    facts = draw_facts(vocabulary, max(100, round(FACTS * scale)), max(30, round(INDIVIDUALS * scale)), rng)
    vocabulary.most = history.share * facts.num_rows
    axioms = [sorted(version) for version in versions(vocabulary, number, rng)]
    say(f"{len(axioms[0]):,} axioms over {facts.num_rows:,} facts, changes {history.words}: {', '.join(history.ways)}")
    graphs = {way: KnowledgeGraph("rhodf" if way == "triples" else program(axioms[0])) for way in history.ways}
    for way, graph in graphs.items():
        graph.update(insert=pa.concat_tables([facts, _table(axioms[0])]) if way == "triples" else facts)
    rows = []
    for version, (before, after) in enumerate(pairwise(axioms), 1):
        row = {"history": history.name, "version": version, "axioms": len(before), "facts": facts.num_rows}
        rows.append(row | step(before, after, graphs))
    wrong = [f"{history.name}, version {row['version']}: {row['line']}" for row in rows if row["line"]]
    try:
        graphs["auto"].verify()
    except Differs as error:
        wrong.append(f"{history.name}, after the last version: {error.message}")
    return rows, wrong


def draw_facts(vocabulary: Vocabulary, number: int, individuals: int, rng: Random) -> pa.Table:
    """Half of the facts say a type, half relate two individuals; how often names are used is noted. Cost: linear.

    Names are used as words are (Zipf): in some order of them, the tenth a tenth as often as the first.
    """

    def used(kind: str, times: int) -> list[str]:
        names = rng.sample(vocabulary.names(kind), len(vocabulary.names(kind)))
        drawn = rng.choices(names, [1 / rank for rank in range(1, len(names) + 1)], k=times)
        vocabulary.used.update(drawn)
        return [iri(name) for name in drawn]

    def someone(times: int) -> list[str]:
        return [iri(f"i{rng.randrange(individuals)}") for _ in range(times)]

    types, relations = number // 2, number - number // 2
    predicates = [TYPE] * types + used("subproperty", relations)
    objects = used("subclass", types) + someone(relations)
    return pa.table({"subject": someone(number), "predicate": predicates, "object": objects})


def step(before: Sequence[Axiom], after: Sequence[Axiom], graphs: dict[str, KnowledgeGraph]) -> dict[str, Any]:
    """One version: the axioms that went and came, and each way's time."""
    went, came = sorted({*before} - {*after}), sorted({*after} - {*before})
    rules: dict[str, Any] = {"delete_rules": program(went), "insert_rules": program(came)}
    triples: dict[str, Any] = {"delete": _triples(went), "insert": _triples(came)}
    changes: dict[str, Callable[[], Report]] = {
        "auto": lambda: graphs["auto"].update(**rules),
        "recompute": lambda: graphs["recompute"].update(**rules, algorithm="recompute"),
        "triples": lambda: graphs["triples"].update(**triples),
    }
    row: dict[str, Any] = {"axioms_deleted": len(went), "axioms_inserted": len(came), "line": ""}
    for way in graphs:
        start = perf_counter()
        report = changes[way]()
        row[way] = perf_counter() - start
        row[f"{way}_chose"] = report.algorithm
        if way == "auto":
            row |= {"facts_deleted": len(report.deleted), "facts_inserted": len(report.inserted)}
    row["ratio"] = row["recompute"] / row["auto"]
    sizes = [len(graphs[way]) for way in ("auto", "recompute")]
    if sizes[0] != sizes[1]:
        row["line"] = f"{sizes[0]:,} facts where recomputation has {sizes[1]:,}"
    return row


def _triples(axioms: Iterable[Axiom]) -> list[tuple[str, str, str]]:
    return [axiom.triple for axiom in axioms]


def _table(axioms: Iterable[Axiom]) -> pa.Table:
    return pa.table(list(zip(*_triples(axioms), strict=True)), names=["subject", "predicate", "object"])


def table(rows: Sequence[dict[str, Any]], history: History) -> Table:
    what = f"{rows[0]['axioms']:,} axioms over {rows[0]['facts']:,} facts"
    out = Table(title=f"A vocabulary of {what} that changes {history.words}, by version: milliseconds")
    for name in ("version", "axioms −", "axioms +", "facts −", "facts +", "auto", "recompute", "times", "triples, auto"):
        out.add_column(name, justify="right", no_wrap=True)
    out.add_column("auto ran", no_wrap=True)
    for row in rows:
        numbers = (row[f"{what}_{way}"] for what in ("axioms", "facts") for way in ("deleted", "inserted"))
        times = (f"{1000 * row['auto']:,.1f}", f"{1000 * row['recompute']:,.0f}", f"{row['ratio']:,.0f}")
        out.add_row(
            str(row["version"]),
            *(f"{n:,}" for n in numbers),
            *times,
            f"{1000 * row['triples']:,.1f}" if "triples" in row else "–",
            row["auto_chose"],
        )
    return out


def draw(rows: Sequence[dict[str, Any]], path: Path) -> bool:
    """Seconds by version, a line for each way; False, and no file, where matplotlib is not installed."""
    pyplot = drawing.pyplot()
    if pyplot is None:
        return False
    colours = {"auto": "#1b7837", "recompute": "#7f7f7f", "triples": "#4c78a8"}
    labels = {"auto": "rules, auto", "recompute": "rules, recompute", "triples": "triples under ρdf, auto"}
    size = 6 * len(HISTORIES), 4
    figure, axes = pyplot.subplots(1, len(HISTORIES), squeeze=False, sharey=True, figsize=size, layout="constrained")
    for axis, history in zip(axes[0], HISTORIES, strict=True):
        mine = [row for row in rows if row["history"] == history.name]
        for way in history.ways:
            places = [row["version"] for row in mine]
            axis.plot(places, [row[way] for row in mine], "o-", markersize=3, color=colours[way], label=labels[way])
        axis.set_title(f"changes {history.words}")
        axis.set_yscale("log")
        axis.set_xlabel("version of the vocabulary")
        axis.spines[["top", "right"]].set_visible(False)
    axes[0][0].set_ylabel("seconds")
    axes[0][0].legend(frameon=False, fontsize=8)
    drawing.save(figure, path)
    return True
