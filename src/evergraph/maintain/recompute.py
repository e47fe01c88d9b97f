"""Recomputation: forget what was derived and derive it again. The definition of correct.

Cost: that of the first materialisation, whatever changed.
"""

from __future__ import annotations

from evergraph.engines.base import Engine
from evergraph.maintain.outcome import Outcome
from evergraph.plan.compile import Plan


def recompute(engine: Engine, plan: Plan, reason: str, counting: bool = False) -> Outcome:
    """Derive everything from the explicit facts, so that it can be counted if that is asked for; the caller commits."""
    outcome = Outcome("recompute", reason)
    engine.forget_derived(counting)
    for number in range(len(plan.strata)):
        with outcome.phase(f"stratum {number + 1}") as phase:
            outcome.add(phase, engine.close(number, True))
    return outcome
