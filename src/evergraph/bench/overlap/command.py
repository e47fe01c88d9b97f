"""`evergraph bench overlap`: an insertion beside a large deletion, a feed that cancels, no overlap; `overlap.json`, a chart.

The JSON is written anew after each part, so that what was measured is there when a later one fails. Exit code 1 if updates that
were submitted leave other facts than the same updates one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from evergraph.bench import results
from evergraph.bench.equality.command import one_core, say
from evergraph.bench.overlap import alone, chart, feed, responsive, tables
from evergraph.bench.overlap.subject import Subject
from evergraph.bench.updates.facts import given
from evergraph.errors import UserError
from evergraph.maintain.dynamic import OVERLAPPING

NOTES = (
    "one core; the large deletion takes 10 % of the explicit facts, drawn from those of instances; after each measurement the "
    "facts are those that the same updates leave one after the other by `update`, compared one by one",
    "waits its turn: what is left of the deletion by `update` at the same point of its time, and the insertion after it; "
    "reading what is to be deleted counts only where it says so",
)


@dataclass(frozen=True, slots=True)
class Asked:
    """What to measure, and how often."""

    universities: int
    rules: Sequence[str]
    algorithms: Sequence[str]
    repeat: int
    seed: int
    data: Path


@dataclass(slots=True)
class Done:
    """What has been measured so far."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    recompute: dict[str, float] = field(default_factory=dict)
    """Seconds of the large deletion by recomputation, by rule set."""
    wrong: list[str] = field(default_factory=list)

    @property
    def notes(self) -> list[str]:
        deletions = [
            f"{rules}: the same deletion by recompute takes {seconds:.2f} s, reading included"
            for rules, seconds in self.recompute.items()
        ]
        return [*NOTES, *deletions, *tables.verdicts(self.rows), *(f"wrong: {line}" for line in self.wrong)]


PARTS: dict[str, Callable[[Subject, int], Iterator[dict[str, Any]]]] = {
    "responsiveness": lambda subject, repeat: responsive.measure(subject, repeat, say),
    "alone": lambda subject, repeat: alone.measure(subject, repeat, say),
    "feed": lambda subject, _: feed.measure(subject, say),
}
"""What there is to measure, in this order: the last one loads the graph anew."""


def main(asked: Asked, parts: Sequence[str], out: Path, as_json: bool = False) -> int:
    """Measure, say how it went, write `overlap.json` and the chart into `out`; 1 if anything is wrong."""
    for what, names, known in (("part", parts, PARTS), ("algorithm", asked.algorithms, OVERLAPPING)):
        for name in (name for name in names if name not in known):
            raise UserError("EG302", f"no {what} is called {name!r}", f"use some of {', '.join(known)}")
    file = results.lubm(asked.universities, asked.data)
    done, written = Done(), {}
    with one_core():
        for rules in asked.rules:
            if "responsiveness" in parts:
                say(f"LUBM({asked.universities}) {rules}: the deletion by recompute")
                done.recompute[rules] = _recompute(asked, rules, file)
            for algorithm in asked.algorithms:
                say(f"LUBM({asked.universities}) {rules} {algorithm}: load")
                subject = Subject(rules, asked.universities, file, algorithm, asked.seed)
                for part in (part for part in PARTS if part in parts):
                    done.rows += PARTS[part](subject, asked.repeat)
                    done.wrong += subject.wrong
                    subject.wrong.clear()
                    written = _save(out, asked, done)
                del subject  # before the next one is loaded
    chart.draw(done.rows, out / "overlap.png")
    results.show(written, as_json, tables.tables(done.rows), done.notes)
    return 1 if done.wrong else 0


def _recompute(asked: Asked, rules: str, file: Path) -> float:
    """The median of the runs, on a graph of their own."""
    subject = Subject(rules, asked.universities, file, "recompute", asked.seed)
    large = given(subject.large)
    found = []
    for _ in range(asked.repeat):
        found.append(subject.update(delete=large).seconds)
        subject.update(insert=large)
    return median(found)


def _save(out: Path, asked: Asked, done: Done) -> dict[str, Any]:
    more = {"recompute": done.recompute, "notes": done.notes, "wrong": done.wrong}
    return results.save(out / "overlap.json", done.rows, asked={**asdict(asked), "data": str(asked.data)}, **more)
