"""Rules that come and go: rows of parameter relations that come and go, and so an update like any other.

What it does: puts the transition plan in force (`plan.transition`), has the rows maintained beside the facts of the same
update, and then puts the plan of the new rules in force.

Paper: Volz, Staab, Motik: Incremental Maintenance of Materialized Ontologies. ODBASE 2003, §4 (changing rules).
Departures: the paper computes the relation of a changed rule anew (`p^Temp`, here `declarative`); a row takes with it only what
    was derived by it.
Cost and traps: that of the algorithm for the rows: the instances of the rules that come or go, and what follows from them.
    Where old and new rules negate each other's heads everything is derived anew, whichever algorithm was asked for; so it is
    where rules negate and names may be the same.
Example:
    >>> from evergraph import KnowledgeGraph, Program
    >>> kg = KnowledgeGraph(Program.parse("p(?x) :- q(?x) . r(?x) :- p(?x) . q(1) . q(2) . p(2) ."))
    >>> report = kg.update(delete_rules="p(?y) :- q(?y) .", insert_rules="r(?x) :- q(?x) .", algorithm="dred")
    >>> report.deleted.derived, sorted(int(x) for x, in kg.relation("r"))
    ({'p': 1}, [1, 2])
"""

from __future__ import annotations

from collections.abc import Callable

from evergraph.engines.base import Engine, Facts
from evergraph.formats import Progress
from evergraph.maintain.choose import UNSETTLED, Experience, maintain, refuse, unsettled
from evergraph.maintain.declarative import Maintenance
from evergraph.maintain.outcome import Outcome
from evergraph.plan.compile import Plan
from evergraph.plan.transition import Change


def maintain_rules(
    engine: Engine,
    change: Change,
    insert: Facts,
    delete: Facts,
    algorithm: str,
    maintenance: Callable[[], Maintenance],
    experience: Experience,
    before: Plan,
    progress: Progress | None = None,
) -> Outcome:
    """Let rules and facts come and go; the caller commits or rolls back, and settles the change; `before` is the plan."""
    refuse(engine, algorithm)
    negating = change.step is not None and (unsettled(before) or unsettled(change.step.plan))
    step = change.anew if algorithm == "declarative" or change.step is None or negating else change.step
    engine.adopt(step.plan)
    outcome = maintain(
        engine,
        step.plan,
        {**insert, **step.insert},
        {**delete, **step.delete},
        "recompute" if negating or (change.step is None and algorithm != "declarative") else algorithm,
        maintenance,
        experience,
        progress,
    )
    if change.step is None and outcome.algorithm == "recompute":
        outcome.reason = "old and new rules negate what the others derive"
    elif negating and outcome.algorithm == "recompute":
        outcome.reason = UNSETTLED
    if step is not change.anew:
        engine.adopt(change.anew.plan)
    return outcome
