"""Two graphs of the same facts, measured in turns: with idle rules and without, with equality and without.

Idle rules: the paper found 200 rules in OpenCyc that never fire, and removed them by hand, because backward chaining looked at
each of them for each fact. No equality: data in which no two names are equal, with representatives and without, which is what
it costs to be ready for them.

Each turn makes both graphs anew, one after the other, in an order that changes from turn to turn, and deletes the same facts
from both by backward/forward, three times, others each time; after each the facts come back. Times are medians.
Invariant: of the facts that do not say what is equal, a deletion takes the same number from both graphs; else the pair is
`wrong`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from evergraph import KnowledgeGraph, Program
from evergraph.bench.equality.generator import SAME
from evergraph.bench.equality.programs import IDLE, Equality, graph, held, timed_update, university
from evergraph.bench.updates.deletions import Say
from evergraph.bench.updates.facts import Given, InstanceFacts, given

DELETED = 100
DRAWS = 3
"""Deletions from each graph: the first one may make what the others reuse."""
Sides = Mapping[str, tuple[Program, Equality]]


@dataclass(slots=True)
class Side:
    """One of the two graphs."""

    part: str
    name: str
    rules: int
    status: str = "ok"
    line: str = ""
    facts: int = 0
    expanded: int = 0
    gone: int = 0
    derivations: dict[str, int] = field(default_factory=dict)
    """Of the first turn."""
    runs: dict[str, list[float]] = field(default_factory=lambda: {"materialise": [], "delete": []})

    def as_dict(self) -> dict[str, Any]:
        names = ("part", "name", "rules", "status", "line", "facts", "expanded", "gone", "derivations", "runs")
        return {name: getattr(self, name) for name in names} | {"seconds": {k: median(v) for k, v in self.runs.items() if v}}


def idle_sides() -> Sides:
    """The university with idle rules and without."""
    return {f"{n} idle rules": (university(idle=n), "rewrite") for n in (0, IDLE)}


def plain_sides() -> Sides:
    """The university with equality off, and by representatives."""
    return {"off": (university(), "off"), "rewrite": (university(), "rewrite")}


def measure(part: str, file: Path, sides: Sides, repeat: int, say: Say) -> list[Side]:
    """Both sides of a pair, so many turns."""
    facts = InstanceFacts(file, schema=0)
    count = min(DELETED, len(facts) // DRAWS)
    found = {name: Side(part, name, len(program.rules)) for name, (program, _) in sides.items()}
    for turn in range(repeat):
        draws = [given(facts.draw(count, turn * DRAWS + n)) for n in range(DRAWS)]
        for name in list(sides)[:: -1 if turn % 2 else 1]:
            say(f"{part}, {name}: turn {turn + 1} of {repeat}")
            _turn(found[name], *sides[name], file, draws)
    first, *others = found.values()
    for other in others:
        if other.gone != first.gone:
            other.status, other.line = "wrong", f"{other.gone:,} facts gone, and {first.gone:,} with {first.name}"
    return list(found.values())


def _turn(side: Side, program: Program, equality: Equality, file: Path, draws: Sequence[Given]) -> None:
    kg = graph(program, equality)
    seconds, loaded = timed_update(kg, insert=[file])
    side.runs["materialise"].append(seconds)
    facts, expanded, before = held(kg), len(kg), _others(kg)
    for delete in draws:
        seconds, deleted = timed_update(kg, delete=delete, algorithm="backward-forward")
        side.runs["delete"].append(seconds)
        if not side.derivations:
            side.derivations = {"materialise": loaded.derivations, "delete": deleted.derivations}
            side.facts, side.expanded, side.gone = facts, expanded, before - _others(kg)
        kg.update(insert=delete)


def _others(kg: KnowledgeGraph) -> int:
    """Facts that do not say what is equal: with equality off, no name is equal to itself but by a rule."""
    return sum(sum(count.values()) for predicate, count in kg.stats()["predicates"].items() if predicate != SAME)
