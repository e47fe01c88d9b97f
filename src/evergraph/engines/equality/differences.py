"""What readers see change when facts in normal form and names do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from evergraph.engines.arrays import U64, Array
from evergraph.engines.base import Counts, by_name
from evergraph.engines.equality.expansion import Expansion, expanded, products
from evergraph.engines.equality.merging import about
from evergraph.engines.equality.names import Names
from evergraph.engines.relation import Relation, Run, alike
from evergraph.engines.sets import Runs, join_runs
from evergraph.plan.model import Key
from evergraph.plan.shapes import hidden

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


@dataclass(frozen=True, slots=True)
class Moved:
    """Facts of one graph that another lacks, as what stands for them: `names` are those that both graphs have together."""

    names: Names
    runs: Runs

    def counts(self) -> Counts:
        """How many facts these are, by relation. Nothing is expanded."""
        found = {key: products(self.names, run) * len(_members(self.names, key)) for key, run in self.runs.items()}
        return by_name(found)

    def rows(self) -> Runs:
        """All of them. Cost: linear in that."""
        out: Runs = {}
        for key, run in self.runs.items():
            for name in _members(self.names, key):
                out[name] = expanded(self.names, run)
        return out


def moved(some: Expansion, other: Expansion, changed: Array) -> Moved:
    """The facts of one graph that are not in another; `changed` are the names that have different representatives in them.

    In words: a clique falls into the parts of it that are cliques of the other graph too; facts about it are taken for each of
    these parts, and not for each name. Cost: the normal forms that differ or mention a clique that does, times these parts.
    """
    arrays = some.names.arrays
    cliques = arrays.distinct(some.names.of(changed)) if len(changed) else changed
    parts_of, together = some.names.parts(other.names, cliques)
    rows = about({key: relation for key, relation in some.relations.items() if not hidden(key)}, cliques)
    join_runs(rows, net(other.relations, some.relations)[0])
    out: Runs = {}
    for key, normal in rows.items():
        run = expanded(parts_of, normal)
        for name in _members(parts_of, key):
            new = run.where(~other.contains(name, row_columns(run), len(run)))
            if len(new):
                out[name] = new
    return Moved(together, out)


def _members(names: Names, key: Key) -> list[Key]:
    """The predicates that one stands for."""
    if not isinstance(key, int):
        return [key]
    column = names.arrays.xp.asarray([key], dtype=U64)
    return [int(name) for name in names.members(column)[1].tolist()]
