"""Deletion by DRed: delete and rederive.

What it does: everything that a deleted fact helped to derive goes, and what went too much comes back: first what one rule
derives from the facts that are left, then the consequences of that.

Paper: Urbani, Margara, Jacobs, van Harmelen, Bal: DynamiTE: Parallel Materialization of Dynamic RDF Data. ISWC 2013, §5.1,
    https://doi.org/10.1007/978-3-642-41335-3_41, after Gupta, Mumick, Subrahmanian: Maintaining Views Incrementally, 1993.
Symbols: δ → what `engine.retract` makes doubtful; Delete → `engine.retreat`; Rederive → `engine.advance`.
Invariant: before a stratum everything below it is settled. After its retreat, what is left follows or may follow; nothing
    kept has lost an instance unless it is explicit. After its advance the stratum is closed and holds only what follows.
Departures: explicit facts are never overdeleted, and, in process, neither is what a rule derives at once from explicit facts
    and from relations that nothing doubtful reaches (`Keep.EVIDENT`). Rederivation asks only for facts that went, and looks at
    rules that derive them; the paper evaluates all rules over all that is left. Insertions of the same update come in the same
    pass. With negation, stratum by stratum: what came below takes instances away, what went below gives some.
Cost and traps: the instances lost by everything that goes, twice if it comes back. Facts that hold each other up, or that
    follow only by a long way from explicit ones, go with the first instance they lose and drag their consequences along.
Example:
    >>> from evergraph import KnowledgeGraph, Program
    >>> kg = KnowledgeGraph(Program.parse("p(?x, ?z) :- p(?x, ?y), p(?y, ?z) . p(1, 2) . p(2, 3) . p(3, 4) ."))
    >>> report = kg.update(delete="p(2, 3) .", algorithm="dred")
    >>> report.deleted.derived, sorted((int(x), int(y)) for x, y in kg.relation("p"))
    ({'p': 3}, [(1, 2), (3, 4)])
"""

from __future__ import annotations

from evergraph.engines.base import Engine, Facts, Keep
from evergraph.formats import Progress
from evergraph.maintain.outcome import Outcome
from evergraph.maintain.stepwise import stepwise
from evergraph.plan.compile import Plan


def dred(engine: Engine, plan: Plan, insert: Facts, delete: Facts, reason: str, progress: Progress | None = None) -> Outcome:
    """Delete and insert explicit facts; the caller commits or rolls back."""
    outcome = Outcome("dred", reason)
    return stepwise(outcome, engine, plan, insert, delete, Keep.EVIDENT, ("overdelete", "rederive"), progress)
