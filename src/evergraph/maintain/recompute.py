"""Recomputation: forget what was derived and derive it again. The definition of correct.

Cost: that of the first materialisation, whatever changed.
"""

from __future__ import annotations

from evergraph.engines.base import Engine, Facts, size_of
from evergraph.maintain.outcome import Outcome
from evergraph.plan.compile import Plan


def recompute(engine: Engine, plan: Plan, insert: Facts, delete: Facts, reason: str, counting: bool = False) -> Outcome:
    """Delete and insert explicit facts, and derive everything from them, so that it can be counted if that is asked for.

    The caller commits or rolls back.
    """
    outcome = Outcome("recompute", reason)
    with outcome.phase("change") as phase:
        engine.retract(delete)
        engine.insert(insert)
        phase.facts = size_of(insert) + size_of(delete)
        engine.forget_derived(counting)
    for number in range(len(plan.strata)):
        with outcome.phase(f"stratum {number + 1}") as phase:
            outcome.add(phase, engine.close(number, True))
    outcome.missed = engine.missed()
    return outcome
