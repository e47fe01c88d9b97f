"""What readers see change when facts in normal form and names do."""

from __future__ import annotations

from collections.abc import Mapping

from evergraph.engines.arrays import Array
from evergraph.engines.equality.expansion import Expansion, expanded
from evergraph.engines.equality.merging import mentioning
from evergraph.engines.relation import Relation, Run, alike
from evergraph.plan.model import Key
from evergraph.plan.shapes import hidden

Runs = dict[Key, Run]
Relations = Mapping[Key, Relation]


def row_columns(run: Run) -> list[Array]:
    return [run.column(i) for i in range(run.arity)]


def net(before: Relations, after: Relations) -> tuple[Runs, Runs]:
    """What came and what went, by relation. Cost: the change, where relations share a base."""
    came: Runs = {}
    went: Runs = {}
    for key in before.keys() | after.keys():
        old, new = before.get(key), after.get(key)
        if hidden(key) or alike(old, new):
            continue
        for some, other, out in ((new, old, came), (old, new, went)):
            run = Run(some.base.arrays, some.arity, some.less(other)) if some is not None else None
            if run:
                out[key] = run
    return came, went


def moved_rows(some: Expansion, other: Expansion, changed: Array) -> Runs:
    """The facts of one graph that are not in another; `changed` are the names that have different representatives in them.

    Cost: what the normal forms that differ stand for, and those that mention a clique that differs.
    """
    arrays = some.names.arrays
    cliques = arrays.distinct(some.names.of(changed)) if len(changed) else changed
    out: Runs = {}
    for key, relation in some.relations.items():
        if hidden(key):
            continue
        known = other.relations.get(key)
        whole = isinstance(key, int) and len(cliques) and bool((cliques == key).any())
        parts = [] if alike(relation, known) else [relation.less(known)]
        if whole:
            parts = [relation.rows()]
        elif len(cliques):
            parts.append(mentioning(relation, cliques).words)
        if not parts:
            continue
        run = expanded(some.names, Run(arrays, relation.arity, arrays.unique(parts)))
        for name in _members(some, key):
            new = run.where(~other.contains(name, row_columns(run), len(run)))
            if len(new):
                out[name] = new
    return out


def _members(view: Expansion, key: Key) -> list[Key]:
    """The predicates that one stands for."""
    if not isinstance(key, int):
        return [key]
    xp = view.names.arrays.xp
    return [int(name) for name in view.names.members(xp.asarray([key], dtype="uint64"))[1].tolist()]
