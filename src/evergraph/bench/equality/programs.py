"""The rules that are measured, the graphs that are made of them, and how the time of an update is taken.

What is timed is `update` as its caller sees it, less the reading of the facts: files differ in size, and how they are read is
measured elsewhere. Derivations are those that the update reports.
"""

from __future__ import annotations

import gc
from importlib.resources import files
from time import perf_counter
from typing import Any, Literal

from evergraph import KnowledgeGraph, Program
from evergraph.bench.equality.generator import SPACE
from evergraph.report import Report

Equality = Literal["rewrite", "axioms", "off"]
State = tuple[int, int, Any]
IDLE = 200
"""Rules that never fire, as many as the paper found in OpenCyc."""


def graph(program: Program, equality: Equality) -> KnowledgeGraph:
    """An empty graph of these rules that treats equality so."""
    return KnowledgeGraph(program, equality=equality)


def university(idle: int = 0) -> Program:
    """The rules of the university, and so many idle ones: `[?x, rdf:type, ?y] :- [?x, :idleN, ?y]`.

    >>> len(university(idle=3).rules) - len(university().rules)
    3
    """
    text = files("evergraph.bench.equality").joinpath("university.dlog").read_text()
    more = "".join(f"[?x, rdf:type, ?y] :- [?x, <{SPACE}idle{n:03}>, ?y] .\n" for n in range(idle))
    return Program.parse(text + more)


def timed_update(kg: KnowledgeGraph, **given: Any) -> tuple[float, Report]:
    """Seconds that an update takes, reading aside, and what it reports."""
    gc.collect()
    start = perf_counter()
    report = kg.update(**given)
    seconds = perf_counter() - start
    return seconds - sum(phase.seconds for phase in report.phases if phase.name == "read"), report


def state(kg: KnowledgeGraph) -> State:
    """What must be the same when something has gone and come back: facts, explicit ones, and what is known of cliques."""
    found = kg.stats()
    return len(kg), found["explicit"], found["equality"]


def held(kg: KnowledgeGraph) -> int:
    """Facts that the graph holds: normalised ones where names have representatives, else all."""
    equality = kg.stats()["equality"]
    return int(equality["facts"]) if equality else len(kg)
