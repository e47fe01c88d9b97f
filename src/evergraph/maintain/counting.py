"""Maintenance by counting: a fact goes when the last derivation that counts for it does.

What it does: each derived fact has a count of the rule instances that derive it. A fact that goes takes its instances off the
counts of their heads; one whose count reaches zero goes too, unless it is explicit. Nothing is deleted that has to come back,
save where facts held each other up and another derivation, of higher rank, is left.

Paper: Urbani, Margara, Jacobs, van Harmelen, Bal: DynamiTE: Parallel Materialization of Dynamic RDF Data. ISWC 2013, §5.2
    (counting), https://doi.org/10.1007/978-3-642-41335-3_41; ranks and activation after Illich, Glimm: Fully Dynamic
    Materialization Maintenance, 2023.
Symbols: the count of a triple → `marks.count_of`; its direct derivations → the instances of lower rank (`marks.rank_of`);
    δ → what `engine.retract` makes doubtful. The waves stand in `engines.waves`: withdraw, rederive, activate.
Invariant: that of `engines.waves`. A fact that is there is explicit or counted for, by instances of facts of lower rank.
Departures: the paper counts every derivation, and so keeps facts that derive each other in a circle; ranks make counts right
    for recursion. With negation, stratum by stratum: what came below takes instances away, what went below gives some.
Cost and traps: every instance that is lost or won is looked at, with all its variables: a fact that helps to derive the same
    head a thousand times costs a thousand. Counts are made with a closure from scratch when there are none yet, and are kept by
    this algorithm alone: another one drops them.
Example: `p(1, 3)` has two derivations and loses one.
    >>> from evergraph import KnowledgeGraph, Program
    >>> program = Program.parse("q(?x, ?z) :- p(?x, ?y), p(?y, ?z) . p(1, 2) . p(2, 4) . p(1, 3) . p(3, 4) .")
    >>> kg = KnowledgeGraph(program)
    >>> [kg.update(delete=fact, algorithm="counting").deleted.derived for fact in ("p(1, 2) .", "p(3, 4) .")]
    [{}, {'q': 1}]
"""

from __future__ import annotations

from evergraph.engines.base import Engine, Facts, Keep
from evergraph.formats import Progress
from evergraph.maintain.outcome import Outcome
from evergraph.maintain.recompute import recompute
from evergraph.maintain.stepwise import stepwise
from evergraph.plan.compile import Plan


def counting(
    engine: Engine, plan: Plan, insert: Facts, delete: Facts, reason: str, progress: Progress | None = None
) -> Outcome:
    """Delete and insert explicit facts; the caller commits or rolls back."""
    if not engine.counted:
        return count_anew(engine, plan, insert, delete, f"{reason}; nothing is counted yet")
    outcome = Outcome("counting", reason)
    return stepwise(outcome, engine, plan, insert, delete, Keep.COUNTED, ("withdraw", "rederive and activate"), progress)


def count_anew(engine: Engine, plan: Plan, insert: Facts, delete: Facts, reason: str) -> Outcome:
    """Derive everything from the explicit facts, and count."""
    outcome = recompute(engine, plan, insert, delete, reason, counting=True)
    outcome.algorithm = "counting"
    with outcome.phase("count") as phase:
        phase.facts = engine.count()
    return outcome
