"""Insertion by semi-naive evaluation.

What it does: new explicit facts arrive, and only rule instances that use one of them, or something derived from one, are
looked at. For the first facts of a graph, and for rules without negation: where a rule negates, an insertion may make facts
go, and `dred` takes over.

Paper: Urbani, Margara, Jacobs, van Harmelen, Bal: DynamiTE: Parallel Materialization of Dynamic RDF Data. ISWC 2013,
    §4.2 (incremental materialisation), https://doi.org/10.1007/978-3-642-41335-3_41
Symbols: δ → what `engine.insert` lets arrive; T_P^ω(I) → the engine's relations before the update.
Invariant: before and after, the relations are closed under the rules. After `engine.close(i)` they are closed under the
    rules of strata 0 … i.
Departures: by relation instead of by global round; the paper's three types of rules are found by `plan.schema` for any
    rules and not fixed for RDFS; an atom before the one that reads δ may read new facts and one after it only old ones, so
    that no instance is looked at twice.
Cost and traps: the rule instances that use a new fact.
Example:
    >>> from evergraph import KnowledgeGraph, Program
    >>> kg = KnowledgeGraph(Program.parse("p(?x, ?z) :- p(?x, ?y), p(?y, ?z) . p(1, 2) . p(2, 3) ."))
    >>> kg.update(insert="p(3, 4) .").inserted.derived
    {'p': 2}
"""

from __future__ import annotations

from evergraph.engines.base import Engine, Facts
from evergraph.formats import Progress
from evergraph.maintain.outcome import Outcome
from evergraph.plan.compile import Plan


def insert(engine: Engine, plan: Plan, facts: Facts, progress: Progress | None = None) -> Outcome:
    """Insert explicit facts and draw their consequences; the caller commits or rolls back."""
    outcome = Outcome("seminaive", "insertions only")
    with outcome.phase("insert") as phase:
        full = engine.insert(facts)
        phase.facts = sum(len(columns[0]) for columns in facts.values() if columns)
    for number in range(len(plan.strata)):
        if progress is not None:
            progress("close", number / len(plan.strata))
        with outcome.phase(f"stratum {number + 1}") as phase:
            outcome.add(phase, engine.close(number, full))
    return outcome
