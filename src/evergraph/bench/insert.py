"""A hundred new facts at a time: what an insertion costs on graphs of different sizes, and what a stored fact weighs.

Ten new graduate students with ten facts each, who refer to departments, courses, professors and universities that are
there. Contract: the facts are a function of the number of the update, and no two updates share one. Trap: the first
update after a load makes indices and schedules that later ones reuse; it is in the figures, and told by itself as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter
from typing import Any

from rich.table import Table

from evergraph import KnowledgeGraph
from evergraph.bench import results
from evergraph.rules.model import TYPE

UPDATES = 50
STUDENTS = 10
UB = "http://swat.cse.lehigh.edu/onto/univ-bench.owl#"

Triple = tuple[str, str, str]


def main(sizes: list[int], rules: list[str], out: Path, data: Path = Path("bench-data"), updates: int = UPDATES) -> int:
    """Measure, print a table, write `insert.json` into `out`."""
    rows = [
        measure(name, universities, results.lubm(universities, data), updates)
        for name in rules
        for universities in sorted(sizes)
    ]
    for row in rows:
        least = next(r for r in rows if r["rules"] == row["rules"])
        row["ratio"] = row["median_ms"] / least["median_ms"]
    results.console().print(table(rows))
    results.save(out / "insert.json", rows, updates=updates, facts=10 * STUDENTS)
    return 0


def measure(rules: str, universities: int, file: Path, updates: int) -> dict[str, Any]:
    """Load a graph, then insert; milliseconds are those of `update` as its caller sees them."""
    graph = KnowledgeGraph(rules, equality="off")
    graph.update(insert=[file])
    closure, weight = len(graph), graph._engine.shard.nbytes  # type: ignore[attr-defined]
    times: list[float] = []
    derived = 0
    for number in range(updates):
        facts = list(new_students(number))
        start = perf_counter()
        report = graph.update(insert=facts)
        times.append(1000 * (perf_counter() - start))
        derived += sum(report.inserted.derived.values())
    return {
        "rules": rules,
        "universities": universities,
        "closure": closure,
        "bytes_per_fact": weight / closure,
        "median_ms": median(times),
        "p95_ms": quantiles(times, n=20)[-1] if len(times) > 1 else times[0],
        "first_ms": times[0],
        "derived_per_update": derived / updates,
        "times_ms": times,
    }


def new_students(update: int) -> Iterator[Triple]:
    """A hundred facts, as N-Triples terms.

    >>> facts = list(new_students(3))
    >>> len(set(facts)), len(set(facts) & set(new_students(4)))
    (100, 0)
    """
    for number in range(STUDENTS):
        which = update * STUDENTS + number
        host = f"www.Department{which % 15}.University0.edu"
        name = f"NewStudent{which}"
        student = f"<http://{host}/{name}>"
        yield student, TYPE, f"<{UB}GraduateStudent>"
        yield student, f"<{UB}name>", f'"{name}"'
        yield student, f"<{UB}emailAddress>", f'"{name}@{host}"'
        yield student, f"<{UB}telephone>", '"xxx-xxx-xxxx"'
        yield student, f"<{UB}memberOf>", f"<http://{host}>"
        yield student, f"<{UB}undergraduateDegreeFrom>", f"<http://www.University{7 * which % 1000}.edu>"
        yield student, f"<{UB}advisor>", f"<http://{host}/FullProfessor{which % 7}>"
        for course in range(3):
            yield student, f"<{UB}takesCourse>", f"<http://{host}/GraduateCourse{(which + course) % 20}>"


def table(rows: list[dict[str, Any]]) -> Table:
    out = Table(title=f"Insertion of {10 * STUDENTS} facts, memory engine")
    for name in ("rules", "LUBM"):
        out.add_column(name)
    for name in ("closure", "bytes/fact", "median ms", "p95 ms", "first ms", "derived", "ratio to smallest"):
        out.add_column(name, justify="right")
    for row in rows:
        out.add_row(
            row["rules"],
            str(row["universities"]),
            f"{row['closure']:,}",
            f"{row['bytes_per_fact']:.1f}",
            f"{row['median_ms']:.2f}",
            f"{row['p95_ms']:.2f}",
            f"{row['first_ms']:.2f}",
            f"{row['derived_per_update']:.0f}",
            f"{row['ratio']:.2f}",
        )
    return out
