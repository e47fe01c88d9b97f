"""What windows hold, and until when, worked out from the definitions alone: facts one by one, closures from scratch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from conftest import everything
from evergraph import KnowledgeGraph, Program
from evergraph.engines.windows.lives import FOREVER, instant_of
from evergraph.maintain.windows import ByExpiry
from evergraph.rules.model import TRIPLE, Atom
from evergraph.rules.printer import print_atom
from evergraph.stream.dataset import Dataset
from evergraph.stream.window import Window


def closure(program: Program, facts: Iterable[Atom]) -> set[str]:
    kg = KnowledgeGraph(program, equality="off", engine="reference")
    kg.update(insert=list(facts))
    return everything(kg)


def expiries(program: Program, background: Iterable[Atom], window: Mapping[Atom, int]) -> dict[str, int]:
    """A fact lives until t if it follows from the background and what is in the window until t or longer."""
    background = list(background)
    stays = closure(program, background)
    out: dict[str, int] = {}
    for end in sorted(set(window.values())):
        held = closure(program, [*background, *(fact for fact, until in window.items() if until >= end)])
        out |= dict.fromkeys(held - stays, end)
    return out


def ends_of(dataset: Dataset) -> dict[str, int]:
    """The end of every fact that has one."""
    assert isinstance(dataset._sliding, ByExpiry)
    out = {}
    for key, relation, ends in dataset._sliding.window.lives.rows():
        if isinstance(key, str) and not dataset._engine.relations("all").keys() & {key}:
            continue
        rows = zip(*relation.columns(), strict=True) if relation.arity else [()] * len(relation)
        for row, end in zip(rows, ends.tolist(), strict=True):
            terms = tuple(dataset._dictionary.term(int(i)) for i in row)
            triple = (terms[0], dataset._dictionary.term(key), terms[1]) if isinstance(key, int) else ()
            if end != int(FOREVER):
                out[print_atom(Atom(TRIPLE, triple) if triple else Atom(str(key), terms))] = instant_of(end)
    return out


class Slow:
    """A stream with its window, event by event."""

    def __init__(self, window: Window) -> None:
        self.window = window
        self.events: list[tuple[int, Atom]] = []
        self.entered: list[Atom] = []
        self._waiting: list[tuple[int, Atom]] = []

    def arrive(self, time: int, fact: Atom) -> None:
        self.events.append((time, fact))
        self._waiting.append((time, fact))

    def contents(self, now: int, period: int) -> dict[Atom, int]:
        """The facts in the window at a tick, each with the last tick, or the last count of triples, at which it is."""
        window, end = self.window, now // self.window.step * self.window.step
        out: dict[Atom, int] = {}
        if window.counts:
            ready = sorted((e for e in self._waiting if e[0] < end), key=lambda event: event[0])
            self._waiting = [e for e in self._waiting if e[0] >= end]
            self.entered += [fact for _, fact in ready]
            for number, fact in enumerate(self.entered):
                if number >= len(self.entered) - window.extent:
                    out[fact] = number + window.extent
            return out
        for time, fact in self.events:
            if end - window.extent <= time < end:
                last = time + window.extent
                if window.step != period:
                    last = max(t for t in range(now, now + window.extent + window.step + 1, period) if self._has(time, t))
                out[fact] = max(out.get(fact, last), last)
        return out

    def _has(self, time: int, now: int) -> bool:
        end = now // self.window.step * self.window.step
        return end - self.window.extent <= time < end
