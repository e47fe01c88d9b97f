"""Names at one shard: equalities among what arrives, and the superstep in which names that were merged give way.

    rename:  every shard takes out the facts that mention a name for which another stands now; the owner of each sends its
             normal form to the homes of that, where it arrives
    arrive:  explicit facts are kept as they were given; what joins the materialisation is their normal form

In words: a normal form may live elsewhere, since facts live where their names say. What arrives by renaming is what the next
closing looks at, so it stays arrived until then. Pairs of names that are the same are kept beside the relations for the driver,
which merges them.

Invariant: when no mail is under way, every fact of the materialisation is in normal form by the names of the job.
Cost: the facts that mention a name that changed, and a search for it in every relation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from evergraph.engines.arrays import SHIFT, Array
from evergraph.engines.equality.merging import about, equalities, marked, normalised
from evergraph.engines.equality.names import Names
from evergraph.engines.relation import Relation, Run
from evergraph.engines.spark.job import EQUAL, Step
from evergraph.plan.model import Key

if TYPE_CHECKING:
    from evergraph.engines.spark.superstep import Superstep


def rename(step: Superstep, inbox: pa.Table) -> None:
    """Let facts that mention a changed name go, and take in the normal forms that the mail brings."""
    if step.job.begin:
        assert step.job.changed is not None
        _give_way(step, step.job.changed.open())
    step.receive(inbox)
    step.gather_arrived()


def _give_way(step: Superstep, changed: Names) -> None:
    index = not step.job.full
    gone = about(step.relations, changed.moved, index)
    for key, run in gone.items():
        step.take_out(key, run)
    for key in [key for key, relation in step.relations.items() if isinstance(key, int) and not len(relation)]:
        del step.relations[key]
    pending = {key: relation.base.without(gone.get(key)) for key, relation in step.arrived.items()} if step.job.pending else {}
    again = about(step.relations, changed.cliques()[0], index) if step.job.compares else {}
    step.arrived = {key: Relation(run) for key, run in pending.items() if len(run)}
    for key, run in again.items():
        known = step.arrived.get(key)
        step.arrived[key] = Relation(run if known is None else known.base.merge(run.without(known)))
    step.resend()
    mine = {key: Run(step.arrays, run.arity, step.owned(Relation(run))) for key, run in gone.items()}
    for key, run in normalised(changed, mine).items():
        step.fixpoint.insert({key: Run(step.arrays, run.arity, step.send(key, run.arity, run.words))})


def arriving(step: Superstep, runs: Mapping[Key, Run]) -> dict[Key, Run]:
    """What comes with the mail in normal form: rows as they are, or what stands for them, as far as that lives here."""
    names = step.names
    if names is None or not len(names):
        return dict(runs)
    plain: dict[Key, Run] = {}
    others: dict[Key, Run] = {}
    for key, run in runs.items():
        mask = moved(names, key, run)
        plain[key] = run.where(~mask)
        others[key] = run.where(mask)
    for key, run in normalised(names, {key: run for key, run in others.items() if len(run)}).items():
        here = Run(step.arrays, run.arity, step.send(key, run.arity, run.words))
        known = plain.get(key)
        plain[key] = here if known is None else known.merge(here.without(known))
    return {key: run for key, run in plain.items() if len(run)}


def normal_part(facts: Mapping[Key, Relation], names: Names | None) -> dict[Key, Relation]:
    """Stored facts without those that mention a moved name: these are explicit and not in normal form."""
    if names is None or not len(names):
        return dict(facts)
    found = {key: Run(r.base.arrays, r.arity, r.rows()) for key, r in facts.items()}
    kept = {key: run.where(~moved(names, key, run)) for key, run in found.items()}
    return {key: Relation(run) for key, run in kept.items() if len(run)}


def moved(names: Names, key: Key, run: Run) -> Array:
    """Which rows mention a name for which another stands: a mask."""
    xp = run.arrays.xp
    mask = xp.full(len(run), isinstance(key, int) and names.name(key) != key)
    for place in range(run.arity):
        mask |= marked(run.arrays, names.moved, run.column(place))
    return mask


def found_equal(step: Superstep) -> dict[Key, Relation]:
    """The pairs of names that are the same, for the driver: those of this superstep with those it has not seen yet."""
    same = step.job.same
    if same is None or step.job.step == Step.REPLACE:
        return {}
    anew = step.job.forget or (step.job.step == Step.RENAME and step.job.begin)
    known = {} if anew else dict(step.before[EQUAL])
    left, right = equalities(step.fixpoint.kernel, step.relations, step.fixpoint.arrived, same)
    if len(left):
        parts = [(left << SHIFT | right,), *(relation.rows() for relation in known.values())]
        return {same: Relation(Run(step.arrays, 2, step.arrays.unique(parts)))}
    return known
