"""The graph as a store holds it, and from that what engines hold.

stored    I ∪ E and π        the same whichever engine writes it
I         what mentions no name for which another stands
every     Iπ, for engines that know no representatives
"""

from __future__ import annotations

from collections.abc import Mapping

from evergraph.engines.arrays import Arrays
from evergraph.engines.changes import Held
from evergraph.engines.equality.expansion import Expansion
from evergraph.engines.equality.merging import about, normalised
from evergraph.engines.equality.names import Names
from evergraph.engines.relation import Relation, Run
from evergraph.engines.sets import runs_of, with_runs
from evergraph.plan.model import Key


def apart(runs: Mapping[Key, Run], names: Names) -> dict[Key, Run]:
    """The rows that are not in normal form."""
    return about({key: Relation(run) for key, run in runs.items()}, names.moved, False)


def in_normal_form(facts: Held, names: Names) -> Held:
    """I, of what a store holds: what mentions a moved name is explicit and was given so. Cost: linear if there are cliques."""
    if not len(names):
        return facts
    gone = about(facts.all, names.moved, False)
    kept = {key: r.remove(gone[key]) if key in gone else r for key, r in facts.all.items()}
    return Held({key: r for key, r in kept.items() if len(r)}, facts.explicit)


def every_fact(facts: Held, names: Names) -> Held:
    """All facts that a stored graph stands for. Cost: linear in them."""
    return Held(dict(Expansion(in_normal_form(facts, names).all, names)), facts.explicit)


def normal_graph(facts: Held, same: int) -> tuple[Held, Names]:
    """What a store holds of a graph that is closed under what equality means. Cost: linear in the graph."""
    arrays = Arrays()
    names, equal = Names.none(arrays), facts.all.get(same)
    if equal is not None:
        left, right = equal.columns()
        names, _ = names.merged(left[left != right], right[left != right], same)
    if not len(names):
        return facts, names
    whole = {key: Relation(run) for key, run in normalised(names, runs_of(facts.all)).items()}
    return Held(with_runs(whole, about(facts.explicit, names.moved, False)), facts.explicit), names
