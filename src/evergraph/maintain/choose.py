"""Which algorithm an update gets. It picks and says why; it has no algorithm of its own.

    stepwise ≈ step · D · share        from scratch ≈ D        D = derivations of a closure, share = part of it that is to go

In words: an explicit fact takes its part of all derivations along, a fact of the schema its part of those of the whole schema:
one subclass axiom of fifty weighs as much as a fiftieth of the data. A rule weighs as much as so many explicit facts as it has
instances (`engines.weigh`). A derivation that is taken back costs about as much as
thirty of a closure from scratch, which works on whole relations; this was measured on LUBM under ρdf and OWL 2 RL. What was
expected is kept beside what happened (`report.expected`, `report.derivations`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from evergraph.engines.base import Engine, Facts, Which, size_of
from evergraph.errors import UserError
from evergraph.formats import Progress
from evergraph.maintain.backward_forward import backward_forward
from evergraph.maintain.counting import count_anew, counting
from evergraph.maintain.declarative import Maintenance, declarative
from evergraph.maintain.dred import dred
from evergraph.maintain.outcome import Outcome
from evergraph.maintain.recompute import recompute
from evergraph.maintain.seminaive import insert as seminaive
from evergraph.plan.compile import Plan
from evergraph.plan.model import is_parameter
from evergraph.rules.model import TRIPLE

ALGORITHMS = ("auto", "recompute", "declarative", "dred", "counting", "backward-forward")
REWRITING = ("auto", "recompute", "backward-forward")
"""Algorithms that maintain equality by representatives."""
UNSETTLED = "rules negate, and names may be the same"
SMALL = 1000
"""A graph with fewer explicit facts is maintained step by step, whatever changes."""


@dataclass(slots=True)
class Experience:
    """What earlier updates of a graph have cost."""

    closure: int | None = None
    """Derivations of all facts from scratch, if that has been done."""


@dataclass(frozen=True, slots=True)
class Choice:
    algorithm: str
    reason: str
    expected: int | None = None


def refuse(engine: Engine, algorithm: str) -> None:
    """Fail for an algorithm that does not maintain equality by representatives, if that is what the engine has."""
    if engine.rewrites and algorithm not in REWRITING:
        hint = f"use {' or '.join(REWRITING[1:])}, or a graph with equality axioms"
        raise UserError("EG205", f"{algorithm} does not maintain equality by representatives", hint)


def unsettled(plan: Plan) -> bool:
    """Whether what is negated may turn out to have other names: then what was above a negation must not be read below it."""
    if plan.same is None:
        return False
    return len(plan.strata) > 1 or any(rule.negated for rules in plan.strata for rule in rules.rules)


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
    first = not engine.counts(Which.EXPLICIT)
    refuse(engine, algorithm)
    choice = choose(engine, plan, insert, delete, experience) if algorithm == "auto" else Choice(algorithm, "asked for")
    if first and delete:
        choice = Choice("recompute", "there are no facts yet")
    elif unsettled(plan) and not first:
        choice = Choice("recompute", UNSETTLED, choice.expected)
    work = choice.expected if choice.expected is not None else size_of(insert) + size_of(delete)
    where = engine.place(work if algorithm == "auto" else None)
    outcome = _run(engine, plan, insert, delete, choice, maintenance, progress)
    outcome.expected = choice.expected
    outcome.reason = f"{outcome.reason}; {where}" if where else outcome.reason
    if first or choice.algorithm == "recompute":
        experience.closure = outcome.derivations
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
    return recompute(engine, plan, insert, delete, reason)


def choose(engine: Engine, plan: Plan, insert: Facts, delete: Facts, experience: Experience) -> Choice:
    """The algorithm for an update, why, and what it is expected to cost."""
    explicit = sum(engine.counts(Which.EXPLICIT).values())
    facts = {name: columns for name, columns in delete.items() if not is_parameter(name)}
    going, rules = size_of(facts), size_of(delete) - size_of(facts)
    negation = any(rule.negated for rules in plan.strata for rule in rules.rules)
    if not explicit:
        goes = delete or (negation and engine.counts(Which.ALL))
        return Choice("recompute" if goes else "seminaive", "no facts are explicit")
    closure = experience.closure or sum(engine.counts(Which.ALL).values())
    share = _share(engine, plan, facts, explicit)
    if rules:
        weight = engine.weigh({name: columns for name, columns in delete.items() if is_parameter(name)})
        share += rules / plan.size if weight is None else weight / explicit
    expected = int(closure * min(1.0, share + size_of(insert) / explicit))
    if not (delete or negation or engine.counted):
        return Choice("seminaive", "insertions only", expected)
    parts = [f"{going:,} of {explicit:,} explicit facts"] * bool(going) + [f"{rules:,} of {plan.size:,} rules"] * bool(rules)
    what = f"{' and '.join(parts)} are to go" if parts else "rules negate: facts may have to go"
    if explicit > SMALL and share * engine.step(expected) > (2 if engine.counted else 1):
        return Choice("recompute", f"{what}: step by step would take longer", closure)
    if engine.rewrites:
        return Choice("backward-forward", what, expected)
    if engine.counted:
        return Choice("counting", f"{what}, and facts are counted" if delete or negation else "facts are counted", expected)
    return Choice("dred", what, expected)


def _share(engine: Engine, plan: Plan, delete: Facts, explicit: int) -> float:
    """The part of all derivations that facts to delete take along. Cost: linear in those."""
    schema = [key for rules in plan.strata for key, class_ in rules.schema if isinstance(key, int) and class_ is None]
    axioms = int(np.isin(delete[TRIPLE][1], schema).sum()) if TRIPLE in delete else 0
    share = (size_of(delete) - axioms) / explicit
    if axioms:
        held = engine.relations(Which.EXPLICIT)
        share += axioms / max(axioms, sum(len(held[key]) for key in schema if key in held))
    return share
