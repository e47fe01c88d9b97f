"""Deletions by size: from one fact to two in five, by every algorithm, on the same graphs and of the same facts.

An algorithm that took more than the limit is stopped, and not asked for more facts on that graph; the table says both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from evergraph import UserError
from evergraph.bench.updates.cells import Cell, Change, Subject, compare, measure
from evergraph.bench.updates.facts import InstanceFacts, given

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, order=True)
class Size:
    """A number of facts, or a share of the explicit ones."""

    name: str
    turns: int
    """Measurements, of which the median counts."""
    facts: int = 0
    share: float = 0.0
    both_ways: bool = False
    """Whether inserting the facts again is measured too."""

    def count(self, explicit: int) -> int:
        return self.facts or round(self.share * explicit)


ONE = Size("1 fact", 15, facts=1, both_ways=True)
HUNDRED = Size("100 facts", 9, facts=100, both_ways=True)
SIZES = (
    ONE,
    HUNDRED,
    Size("5,000 facts", 5, facts=5000),
    *(Size(f"{percent} %", 3 if percent < 10 else 1, share=percent / 100) for percent in (1, 5, 10, 20, 40)),
)


def deletions(
    rules: str,
    universities: int,
    file: Path,
    algorithms: Sequence[str],
    limit: float,
    say: Say,
    sizes: Sequence[Size] = SIZES,
) -> list[Cell]:
    """A cell for each size and algorithm, and for inserting again where that is measured; compared with each other."""
    facts = InstanceFacts(file)
    cells: list[Cell] = []
    for algorithm in algorithms:
        say(f"LUBM({universities}) {rules} {algorithm}: load")
        try:
            subject = Subject(rules, file, algorithm, limit)
        except UserError as reason:
            cells += [
                Cell(rules, universities, "delete", s.name, s.facts, algorithm, "unsupported", str(reason)) for s in sizes
            ]
            continue
        cells += _by_size(subject, universities, facts, sizes, say)
        del subject  # before the next one is loaded: two of the largest graphs need not fit
    compare(cells)
    return cells


def _by_size(subject: Subject, universities: int, facts: InstanceFacts, sizes: Sequence[Size], say: Say) -> Iterator[Cell]:
    """The cells of one algorithm on one graph, from the fewest facts to the most."""
    slow = ""
    for count, size in sorted((size.count(subject.explicit), size) for size in sizes):
        names = ("delete", "insert") if size.both_ways else ("delete",)
        cells = [Cell(subject.rules, universities, name, size.name, count, subject.algorithm) for name in names]
        reason = slow or (f"there are {len(facts):,} facts of instances" if count > len(facts) else "")
        if reason:
            for cell in cells:
                cell.status, cell.line = "skipped", reason
        else:
            say(f"LUBM({universities}) {subject.rules} {subject.algorithm}: {size.name}")
            measure(subject, cells[0], _draws(facts, count, size.turns), *cells[1:])
            if any(cell.status == "stopped" for cell in cells):
                slow = f"{size.name} took more than {subject.limit:g} s"
        yield from cells


def _draws(facts: InstanceFacts, count: int, turns: int) -> Iterator[Change]:
    for turn in range(turns):
        yield Change(delete=given(facts.draw(count, turn)))
