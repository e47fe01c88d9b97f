"""The six updates of Urbani et al. 2013 (DynamiTE, ISWC), §6, added and removed under ρdf by every algorithm.

Which facts. The paper says how many and of which kind; the folder `updates` of its repository (github.com/jrbn/dynamite) says
from where: what is added is of universities that the graph does not hold (University3999; University1000 and University1001),
what is removed is of University0 and University1. So here: additions are of the universities that LUBM(n) would have next,
removals of the first ones.

| update | the paper | here |
|---|---|---|
| 1 | one triple, no reasoning | a `name`: no rule of ρdf applies to it with univ-bench |
| 2 | ~16 k triples, no reasoning | every `name` of one university: 16,036 in University0 |
| 3 | ~8 k `emailAddress`, a fixed number derived | every `emailAddress` of one university: 8,290 in University0 |
| 4 | remove headOf ⊑ worksFor; add headOf ⊑ responsibleOf ⊑ Manager | the same triples |
| 5, 6 | one and two universities | the same |

That updates 2 and 3 are of one university is read off the numbers, which are those of University0; the files themselves were
not at hand. As many are added, of a university that may be larger.

Departures: the graph is LUBM(n) with the n that was asked for, where the paper's is LUBM(1000); what is added leaves out the
few types of universities that the graph states already, so that removing it again leaves the same graph; the time is the
median of five runs, the paper's their average.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from evergraph import UserError
from evergraph.bench.lubm import triples_of_university
from evergraph.bench.updates.cells import Cell, Change, Subject, compare, measure
from evergraph.bench.updates.deletions import Say
from evergraph.bench.updates.facts import given

RULES = "rhodf"
TURNS = 5
UB = "http://swat.cse.lehigh.edu/onto/univ-bench.owl#"
SUBPROPERTY = "<http://www.w3.org/2000/01/rdf-schema#subPropertyOf>"


@dataclass(frozen=True, slots=True)
class Published:
    """Table 2: seconds on LUBM(1000), 138 M triples, eight cores, B-trees on an SSD."""

    addition: float
    dred: float
    counting: float

    def seconds(self, operation: str) -> tuple[float | None, float | None, float | None]:
        """By `PAPER`'s algorithms: semi-naive evaluation adds, the other two remove."""
        return (self.addition, None, None) if operation == "insert" else (None, self.dred, self.counting)


PAPER = ("semi-naive", "DRed", "counting")
TABLE_2 = {
    1: Published(0.117, 2902.7, 0.117),
    2: Published(8.2, 2049.6, 25.7),
    3: Published(3.7, 2121.9, 25.4),
    4: Published(31.8, 2132.2, 51.0),
    5: Published(16.8, 2196.0, 74.6),
    6: Published(30.5, 3830.2, 135.8),
}
DIFFERS = (
    "the paper: LUBM(1000), 138 M triples, two Intel E5620 (eight cores), six B-trees on an SSD, average of five runs; "
    "here: LUBM({n}), in memory, median of five runs, parsing and dictionary included"
)


@dataclass(frozen=True, slots=True)
class Update:
    """Lines of N-Triples to add to a graph that does not hold them, and others to remove from it."""

    number: int
    add: tuple[str, ...]
    remove: tuple[str, ...]
    """Empty where the graph is too small for it."""


def updates(universities: int, file: Path, seed: int = 0) -> list[Update]:
    """The six updates of LUBM(universities)."""
    new = [_not_in(file, triples_of_university(universities + n, seed)) for n in range(2)]
    old = [list(triples_of_university(n, seed)) for n in range(min(universities, 2))]
    both_new = list(dict.fromkeys(line for lines in new for line in lines))
    both_old = list(dict.fromkeys(line for lines in old for line in lines)) if len(old) == 2 else []
    names = [_with(lines, "name") for lines in (new[0], old[0])]
    mails = [_with(lines, "emailAddress") for lines in (new[0], old[0])]
    above = [_below("headOf", "responsibleOf"), _below("responsibleOf", "Manager")]
    pairs = [
        (names[0][:1], names[1][:1]),
        (names[0][: len(names[1])], names[1]),
        (mails[0][: len(mails[1])], mails[1]),
        (above, [_below("headOf", "worksFor")]),
        (new[0], old[0]),
        (both_new, both_old),
    ]
    return [Update(number, tuple(add), tuple(remove)) for number, (add, remove) in enumerate(pairs, 1)]


def measure_six(universities: int, file: Path, algorithms: Sequence[str], limit: float, say: Say) -> list[Cell]:
    """Two cells for each update and algorithm, compared with each other."""
    cells: list[Cell] = []
    asked = updates(universities, file)
    for algorithm in algorithms:
        say(f"Urbani et al. on LUBM({universities}), {algorithm}: load")
        try:
            subject = Subject(RULES, file, algorithm, limit)
        except UserError as reason:
            line = str(reason)
            cells += [
                Cell(RULES, universities, o, name(u), n, algorithm, "unsupported", line) for u in asked for o, n in _both(u)
            ]
            continue
        for update in asked:
            say(f"Urbani et al. on LUBM({universities}), {algorithm}: {name(update)}")
            for operation, lines in (("insert", update.add), ("delete", update.remove)):
                cell = Cell(RULES, universities, operation, name(update), len(lines), algorithm)
                cells.append(cell)
                if not lines:
                    cell.status, cell.line = "skipped", "the graph has one university"
                    continue
                facts = given(lines)
                change = Change(insert=facts) if operation == "insert" else Change(delete=facts)
                measure(subject, cell, [change] * TURNS)
        del subject
    compare(cells)
    return cells


def name(update: Update) -> str:
    return f"update {update.number}"


def number_of(cell: Cell) -> int:
    """The number of the update that a cell is of."""
    return int(cell.update.split()[1])


def _both(update: Update) -> tuple[tuple[str, int], tuple[str, int]]:
    return ("insert", len(update.add)), ("delete", len(update.remove))


def _with(lines: Iterable[str], predicate: str) -> list[str]:
    return [line for line in lines if line.split(" ", 2)[1] == f"<{UB}{predicate}>"]


def _below(lower: str, upper: str) -> str:
    return f"<{UB}{lower}> {SUBPROPERTY} <{UB}{upper}> ."


def _not_in(file: Path, lines: Iterable[str]) -> list[str]:
    """The lines that a file does not have."""
    left = dict.fromkeys(lines)
    with file.open() as stream:
        for line in stream:
            left.pop(line.rstrip("\n"), None)
    return list(left)
