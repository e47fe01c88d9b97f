"""A graph that is measured with one algorithm: updates one after the other, or submitted and carried on step by step.

Contract: what is submitted is compared with what `update` makes of the same updates one after the other, fact by fact, explicit
ones and all; and when an update has been undone, with what there was before. Facts lie in one order for each graph, so that a
comparison costs a look at each. Every difference is kept in `wrong`.

Trap: with counts the cost of a deletion follows how its facts came: what has been deleted and inserted again has other ranks
than what came with the load. Whoever compares two ways to delete lets both find the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from evergraph import KnowledgeGraph
from evergraph.bench.updates.facts import Given, InstanceFacts
from evergraph.engines.arrays import Words
from evergraph.engines.base import Which
from evergraph.plan.model import Key
from evergraph.report import Report
from evergraph.rules.model import TRIPLE
from evergraph.submit.ticket import Ticket

Say = Callable[[str], None]
State = dict[tuple[Which, Key], Words]
SHARE = 0.1
"""Of the explicit facts: what the large deletion takes."""


@dataclass(frozen=True, slots=True)
class Done:
    """An update that has been applied: seconds as the caller sees them, and its report."""

    seconds: float
    report: Report

    @property
    def read(self) -> float:
        """Seconds of reading what was given, as far as the report tells them."""
        return sum(phase.seconds for phase in self.report.phases if phase.name == "read")


class Subject:
    """A graph, an algorithm, and facts to delete."""

    def __init__(self, rules: str, universities: int, file: Path, algorithm: str, seed: int = 0) -> None:
        self.rules, self.universities, self.algorithm = rules, universities, algorithm
        self.facts = InstanceFacts(file, seed)
        self.wrong: list[str] = []
        self._file = file
        self.load()
        self.base = self.state()

    def load(self) -> None:
        """The graph as it is when everything has been loaded, and nothing changed since."""
        self.graph = KnowledgeGraph(self.rules, equality="off")
        self.graph.update(insert=[self._file], algorithm="counting" if self.algorithm == "counting" else "auto")

    @property
    def large(self) -> list[str]:
        """The facts of the large deletion."""
        return self.facts.draw(round(SHARE * self.graph.counts("explicit")[TRIPLE]))

    # -- updates -------------------------------------------------------------------------------------------------------

    def update(self, insert: Given = "", delete: Given = "") -> Done:
        """One after the other."""
        started = perf_counter()
        report = self.graph.update(insert=insert, delete=delete, algorithm=self.algorithm)
        return Done(perf_counter() - started, report)

    def submit(self, insert: Given = "", delete: Given = "") -> Done:
        """Submitted, with nothing else under way."""
        started = perf_counter()
        report = self.put(insert, delete).wait()
        assert report is not None
        return Done(perf_counter() - started, report)

    def put(self, insert: Given = "", delete: Given = "") -> Ticket:
        return self.graph.submit(insert=insert, delete=delete, algorithm=self.algorithm)

    @contextmanager
    def by_hand(self) -> Iterator[Callable[[], bool]]:
        """Let nobody work on what is submitted but who calls this: one step a call. At the end everything settles."""
        submissions = self.graph._submissions
        submissions.take_over()
        yield submissions.advance
        submissions.hand_back()

    @property
    def steps(self) -> int:
        """Steps that have been done for what is under way; 0 if nothing is."""
        stretch = self.graph._submissions.stretch
        return stretch.dynamic.steps if stretch else 0

    @property
    def spent(self) -> float:
        """Seconds that these steps, and joining, have taken: reading is not in them."""
        stretch = self.graph._submissions.stretch
        return sum(phase.seconds for phase in stretch.outcome.phases) if stretch else 0.0

    # -- whether it is right -------------------------------------------------------------------------------------------

    def state(self) -> State:
        """All facts, and the explicit ones. Cost: a copy where relations have changed."""
        held = self.graph._held
        return {
            (which, key): relation.rows()
            for which in (Which.ALL, Which.EXPLICIT)
            for key, relation in held.relations(which).items()
            if len(relation)
        }

    def check(self, expected: State, what: str) -> bool:
        """Whether the graph has just these facts; if not, it is noted."""
        right = same(self.state(), expected)
        if not right:
            self.wrong.append(f"{self.rules}, LUBM({self.universities}), {self.algorithm}: other facts after {what}")
        return right

    def restore(self, what: str, insert: Given = "", delete: Given = "") -> None:
        """Undo what was measured."""
        self.update(insert, delete)
        self.check(self.base, f"{what} was undone")

    def row(self, part: str, **more: Any) -> dict[str, Any]:
        return {
            "part": part,
            "rules": self.rules,
            "universities": self.universities,
            "algorithm": self.algorithm,
            **more,
        }


def same(one: State, other: State) -> bool:
    """Whether two states have the same facts, under the same dictionary."""
    return one.keys() == other.keys() and all(
        len(words) == len(other[key]) and all(np.array_equal(a, b) for a, b in zip(words, other[key], strict=True))
        for key, words in one.items()
    )
