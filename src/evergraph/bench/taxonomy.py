"""Large taxonomies: classes by the hundred thousand, once as triples under rhodf and once as as many rules.

A tree in which every class has ten subclasses, so that no chain is longer than six classes, and instances spread
evenly over all of it. Run at a tenth of the size as well: if cost follows the output, seconds per derived fact are
the same in both. Trap: under rhodf the closure has the pairs of the subclass relation in it too, so its output is
larger than that of the rules.
"""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Any

import pyarrow as pa
from rich.table import Table

from evergraph import KnowledgeGraph, Program
from evergraph.bench import results
from evergraph.rules.model import RDFS, TRIPLE, TYPE, Atom, Rule, Variable

SUBCLASSES = 10
SUB_CLASS_OF = f"<{RDFS}subClassOf>"


def main(classes: int = 100_000, instances: int = 1_000_000, out: Path = Path("bench-results")) -> int:
    """Measure at a tenth of the size and at full size, print a table, write `taxonomy.json` into `out`."""
    rows = [measure(form, classes // share, instances // share) for form in ("triples", "rules") for share in (10, 1)]
    for row in rows:
        least = next(r for r in rows if r["form"] == row["form"])
        row["ratio"] = row["microseconds_per_fact"] / least["microseconds_per_fact"]
    results.console().print(table(rows))
    results.save(out / "taxonomy.json", rows, subclasses=SUBCLASSES)
    return 0


def measure(form: str, classes: int, instances: int) -> dict[str, Any]:
    """One closure: the taxonomy as triples with the rule set rhodf, or as one rule for each class."""
    facts = _types(classes, instances)
    start = perf_counter()
    if form == "triples":
        graph = KnowledgeGraph("rhodf")
        facts = pa.concat_tables([_subclasses(classes), facts])
    else:
        graph = KnowledgeGraph(class_rules(classes))
    compiled = perf_counter() - start
    report = graph.update(insert=facts)
    seconds = sum(p.seconds for p in report.phases if p.name.startswith("stratum"))
    derived = sum(report.inserted.derived.values())
    return {
        "form": form,
        "classes": classes,
        "instances": instances,
        "explicit": facts.num_rows,
        "derived": derived,
        "compile": compiled,
        "materialise": seconds,
        "phases": {p.name: p.seconds for p in report.phases},
        "microseconds_per_fact": 1e6 * seconds / derived,
    }


def class_rules(classes: int) -> Program:
    """`[?x, a, parent] :- [?x, a, child]` for each class but the root.

    >>> print(class_rules(2), end="")
    <http://example.org/C0>[?x] :- <http://example.org/C1>[?x] .
    """
    x = Variable("x")
    return Program(
        tuple(
            Rule(Atom(TRIPLE, (x, TYPE, _class(_parent(c)))), (Atom(TRIPLE, (x, TYPE, _class(c))),)) for c in range(1, classes)
        )
    )


def _subclasses(classes: int) -> pa.Table:
    children = range(1, classes)
    return _triples([_class(c) for c in children], SUB_CLASS_OF, [_class(_parent(c)) for c in children])


def _types(classes: int, instances: int) -> pa.Table:
    """Instance i is of class 7919 i modulo the number of classes: spread out, and the same every time."""
    subjects = [f"<http://example.org/i{i}>" for i in range(instances)]
    return _triples(subjects, TYPE, [_class(7919 * i % classes) for i in range(instances)])


def _triples(subjects: list[str], predicate: str, objects: list[str]) -> pa.Table:
    return pa.table({"subject": subjects, "predicate": [predicate] * len(subjects), "object": objects})


def _class(number: int) -> str:
    return f"<http://example.org/C{number}>"


def _parent(number: int) -> int:
    return (number - 1) // SUBCLASSES


def table(rows: list[dict[str, Any]]) -> Table:
    out = Table(title="Closure of a taxonomy, memory engine")
    out.add_column("as")
    for name in (
        "classes",
        "instances",
        "derived",
        "compile s",
        "materialise s",
        "µs/derived fact",
        "ratio to a tenth",
    ):
        out.add_column(name, justify="right")
    for row in rows:
        out.add_row(
            row["form"],
            f"{row['classes']:,}",
            f"{row['instances']:,}",
            f"{row['derived']:,}",
            f"{row['compile']:.2f}",
            f"{row['materialise']:.3f}",
            f"{row['microseconds_per_fact']:.3f}",
            f"{row['ratio']:.2f}",
        )
    return out
