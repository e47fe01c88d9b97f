"""Deletion by Backward/Forward: a fact goes only when it is known not to follow.

What it does: a fact that has lost an instance is in doubt. Before it goes, a proof is looked for, backward from it to explicit
facts and forward again. Only facts without one go, and put the facts they helped to derive in doubt in turn. Nothing that
follows by rules of its stratum is ever deleted.

Paper: Motik, Nenov, Piro, Horrocks: Combining Rewriting and Incremental Materialisation Maintenance for Datalog Programs with
    Equality. IJCAI 2015, §3 without its equality; and Incremental Update of Datalog Materialisation: the Backward/Forward
    Algorithm. AAAI 2015.
Symbols: E⁻ → what `engine.retract` makes doubtful; D → the goals of `engines.retreat`; C → `Prover.checked`;
    P → `Prover.proved`; S (disproved) → checked and not proved when a search ends; I → the relations that the retreat reads.
Invariant: before a stratum everything below it is settled; what is proved follows from the explicit facts as they are now.
Departures: whole sets for single facts. A goal is first asked whether a rule derives it from what is certain, and only then are
    its instances looked at, all of them at once and one level a turn, where the paper takes them one by one. Relations that no
    rule of the stratum derives are certain as they are. What only a later stratum derives, as facts of one class may be when
    another is derived earlier, goes first and comes back then. Explicit facts of the same update are certain.
Cost and traps: what really goes, and the proofs of what stays. Long chains of derived facts, such as transitive closures, are
    looked at level by level.
Example:
    >>> from evergraph import KnowledgeGraph, Program
    >>> kg = KnowledgeGraph(Program.parse("c(?y) :- c(?x), e(?x, ?y) . c(1) . c(2) . e(1, 2) . e(2, 3) . e(3, 2) ."))
    >>> kg.update(delete="c(1) .", algorithm="backward-forward").deleted.derived, len(kg.relation("c"))
    ({}, 2)
"""

from __future__ import annotations

from evergraph.engines.base import Engine, Facts, Keep
from evergraph.formats import Progress
from evergraph.maintain.outcome import Outcome
from evergraph.maintain.stepwise import stepwise
from evergraph.plan.compile import Plan


def backward_forward(
    engine: Engine, plan: Plan, insert: Facts, delete: Facts, reason: str, progress: Progress | None = None
) -> Outcome:
    """Delete and insert explicit facts; the caller commits or rolls back."""
    outcome = Outcome("backward-forward", reason)
    return stepwise(outcome, engine, plan, insert, delete, Keep.PROVED, ("check and delete", "insert"), progress)
