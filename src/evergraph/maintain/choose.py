"""Which algorithm an update gets. It picks and says why; it has no algorithm of its own.

    stepwise ≈ STEP · d · changed        from scratch ≈ D        d = derivations a changed fact costs, D = those of a closure

In words: a derivation of a stepwise algorithm costs about as much as a hundred of a closure from scratch, which works on whole
relations. `d` is learned from the updates that were made, and is D over the explicit facts before the first. What was expected
is kept beside what happened (`report.expected`, `report.derivations`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from evergraph.engines.base import Engine, Facts, Which
from evergraph.formats import Progress
from evergraph.maintain.backward_forward import backward_forward
from evergraph.maintain.counting import count_anew, counting
from evergraph.maintain.declarative import Maintenance, declarative
from evergraph.maintain.dred import dred
from evergraph.maintain.outcome import Outcome
from evergraph.maintain.recompute import recompute
from evergraph.maintain.seminaive import insert as seminaive
from evergraph.plan.compile import Plan

ALGORITHMS = ("auto", "recompute", "declarative", "dred", "counting", "backward-forward")
STEP = 100
"""How many derivations of a closure one of a stepwise algorithm takes the time of."""
SMALL = 1000
"""A graph with fewer explicit facts is maintained step by step, whatever changes."""


@dataclass(slots=True)
class Experience:
    """What earlier updates of a graph have cost, in derivations."""

    closure: int | None = None
    """Of all facts from scratch."""
    per_fact: float | None = None
    """Of one changed fact, step by step."""

    def learn(self, outcome: Outcome, changed: int, from_scratch: bool) -> None:
        if from_scratch:
            self.closure = outcome.derivations
        elif changed:
            self.per_fact = outcome.derivations / changed


@dataclass(frozen=True, slots=True)
class Choice:
    algorithm: str
    reason: str
    expected: int | None = None


def maintain(
    engine: Engine,
    plan: Plan,
    insert: Facts,
    delete: Facts,
    algorithm: str,
    maintenance: Callable[[], Maintenance],
    experience: Experience,
    progress: Progress | None = None,
) -> Outcome:
    """Delete and insert explicit facts; the caller commits or rolls back. `maintenance` is asked for if it is needed."""
    changed = _size(insert) + _size(delete)
    first = not engine.counts(Which.ALL)
    choice = choose(engine, plan, insert, delete, experience) if algorithm == "auto" else Choice(algorithm, "asked for")
    outcome = _run(engine, plan, insert, delete, choice, maintenance, progress)
    outcome.expected = choice.expected
    experience.learn(outcome, changed, first or choice.algorithm == "recompute")
    return outcome


def _run(
    engine: Engine,
    plan: Plan,
    insert: Facts,
    delete: Facts,
    choice: Choice,
    maintenance: Callable[[], Maintenance],
    progress: Progress | None,
) -> Outcome:
    reason = choice.reason
    match choice.algorithm:
        case "seminaive":
            return seminaive(engine, plan, insert, progress)
        case "dred":
            return dred(engine, plan, insert, delete, reason, progress)
        case "counting":
            return counting(engine, plan, insert, delete, reason, progress)
        case "backward-forward":
            return backward_forward(engine, plan, insert, delete, reason, progress)
        case "declarative":
            return declarative(engine, plan, maintenance(), insert, delete, reason, progress)
    if engine.counted:
        outcome = count_anew(engine, plan, insert, delete, f"{reason}; facts stay counted")
        outcome.algorithm = "recompute"
        return outcome
    engine.retract(delete)
    engine.insert(insert)
    outcome = recompute(engine, plan, reason)
    outcome.missed = engine.missed()
    return outcome


def choose(engine: Engine, plan: Plan, insert: Facts, delete: Facts, experience: Experience) -> Choice:
    """The algorithm for an update, why, and what it is expected to cost."""
    explicit = sum(engine.counts(Which.EXPLICIT).values())
    going = _size(delete)
    negation = any(rule.negated for rules in plan.strata for rule in rules.rules)
    if not explicit:
        return Choice("seminaive", "insertions only")
    closure = experience.closure or sum(engine.counts(Which.ALL).values())
    each = experience.per_fact if experience.per_fact is not None else closure / explicit
    expected = int(each * (going + _size(insert)))
    if not (going or negation or engine.counted):
        return Choice("seminaive", "insertions only", expected)
    what = f"{going:,} of {explicit:,} explicit facts are to go" if going else "rules negate: facts may have to go"
    if going and explicit > SMALL and STEP * max(each, 1.0) * going > closure:
        return Choice("recompute", f"{what}: step by step would take longer", closure)
    if engine.counted:
        return Choice("counting", f"{what}, and facts are counted" if going or negation else "facts are counted", expected)
    return Choice("dred", what, expected)


def _size(facts: Facts) -> int:
    return sum(len(columns[0]) if columns else 1 for columns in facts.values())
