"""What DRed, counting and Backward/Forward have in common: stratum by stratum, facts go first and come then."""

from __future__ import annotations

from evergraph.engines.base import Engine, Facts, Keep
from evergraph.formats import Progress
from evergraph.maintain.outcome import Outcome
from evergraph.plan.compile import Plan


def stepwise(
    outcome: Outcome,
    engine: Engine,
    plan: Plan,
    insert: Facts,
    delete: Facts,
    keep: Keep,
    names: tuple[str, str],
    progress: Progress | None = None,
) -> Outcome:
    """Delete and insert explicit facts; `names` are those of the two phases of a stratum. The caller commits or rolls back."""
    with outcome.phase("retract") as phase:
        engine.retract(delete, counting=keep == Keep.COUNTED)
        engine.insert(insert)
        phase.facts = sum(len(columns[0]) for facts in (insert, delete) for columns in facts.values() if columns)
    for stratum in range(len(plan.strata)):
        if progress is not None:
            progress("maintain", stratum / len(plan.strata))
        with outcome.phase(f"{names[0]} {stratum + 1}") as phase:
            outcome.add(phase, engine.retreat(stratum, keep))
        with outcome.phase(f"{names[1]} {stratum + 1}") as phase:
            outcome.add(phase, engine.advance(stratum))
    outcome.missed = engine.missed()
    return outcome
