"""Which algorithm an update gets. It picks and says why; it has no algorithm of its own.

Measured on LUBM under ρdf and OWL 2 RL: rederiving what was overdeleted costs some hundred times what a derivation of a full
closure costs, so that deleting more than about one explicit fact in two hundred is slower than starting again. Below that
DRed and Backward/Forward are close to each other, and far from recomputation.
"""

from __future__ import annotations

from collections.abc import Callable

from evergraph.engines.base import Engine, Facts, Which
from evergraph.formats import Progress
from evergraph.maintain.backward_forward import backward_forward
from evergraph.maintain.counting import counting
from evergraph.maintain.declarative import Maintenance, declarative
from evergraph.maintain.dred import dred
from evergraph.maintain.outcome import Outcome
from evergraph.maintain.recompute import recompute
from evergraph.maintain.seminaive import insert as seminaive
from evergraph.plan.compile import Plan

ALGORITHMS = ("auto", "recompute", "declarative", "dred", "counting", "backward-forward")
FEW, SMALL = 200, 1000
"""Up to one explicit fact in so many is deleted step by step; in a graph with fewer explicit facts than this, any number."""


def maintain(
    engine: Engine,
    plan: Plan,
    insert: Facts,
    delete: Facts,
    algorithm: str,
    maintenance: Callable[[], Maintenance],
    progress: Progress | None = None,
) -> Outcome:
    """Delete and insert explicit facts; the caller commits or rolls back. `maintenance` is asked for if it is needed."""
    reason = "asked for"
    if algorithm == "auto":
        algorithm, reason = choose(engine, plan, delete)
    if algorithm == "seminaive":
        return seminaive(engine, plan, insert, progress)
    if algorithm == "dred":
        return dred(engine, plan, insert, delete, reason, progress)
    if algorithm == "counting":
        return counting(engine, plan, insert, delete, reason, progress)
    if algorithm == "backward-forward":
        return backward_forward(engine, plan, insert, delete, reason, progress)
    if algorithm == "declarative":
        return declarative(engine, plan, maintenance(), insert, delete, reason, progress)
    engine.retract(delete)
    engine.insert(insert)
    outcome = recompute(engine, plan, reason)
    outcome.missed = engine.missed()
    return outcome


def choose(engine: Engine, plan: Plan, delete: Facts) -> tuple[str, str]:
    """The algorithm for an update, and why."""
    explicit = sum(engine.counts(Which.EXPLICIT).values())
    going = sum(len(columns[0]) if columns else 1 for columns in delete.values())
    negation = any(rule.negated for rules in plan.strata for rule in rules.rules)
    if not explicit or not (going or negation):
        return "seminaive", "insertions only"
    if going * FEW > explicit > SMALL:
        return "recompute", f"{going:,} of {explicit:,} explicit facts are to go: more than one in {FEW}"
    return "dred", f"{going:,} of {explicit:,} explicit facts are to go" if going else "rules negate: facts may have to go"
