"""Explicit facts as they were given, found by what stands for them.

    aside:   π(s), π(o), s, p, o    of every explicit fact that mentions a name for which another stands, under π(p)

In words: most explicit facts are their own representatives and are found as they are. The others are kept a second time, in the
order of their normal forms: which explicit facts a fact stands for is then a search, where the fact's expansion could be any
product of cliques.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from evergraph.engines.arrays import U64, Array
from evergraph.engines.equality.merging import about, starting
from evergraph.engines.equality.names import Names
from evergraph.engines.relation import Relation, Run
from evergraph.engines.sets import Runs, join_runs, runs_of
from evergraph.plan.model import Key


class Explicit:
    """The explicit facts under one set of names. Nothing changes one: `after` gives the next."""

    def __init__(self, facts: Mapping[Key, Relation], names: Names, aside: Mapping[Key, Relation], mentions: Array) -> None:
        self.facts, self.names, self.aside, self.mentions = facts, names, aside, mentions
        """`mentions` says of each id in how many places of triples it stands."""

    @staticmethod
    def of(facts: Mapping[Key, Relation], names: Names) -> Explicit:
        """Cost: linear in the facts."""
        arrays = names.arrays
        columns = [column for key, run in runs_of(facts).items() for column in _mentioned(key, run)]
        mentions = arrays.xp.bincount(arrays.xp.concatenate([arrays.xp.zeros(0, np.int64), *columns]))
        return Explicit(facts, names, _put({}, _beside(names, about(facts, names.moved, False))), mentions)

    def after(self, facts: Mapping[Key, Relation], names: Names) -> Explicit:
        """When facts came or went and names changed. Cost: these, and the facts that mention a name that changed."""
        changed = names.less(self.names)
        old: Runs = {}
        new: Runs = {}
        for key in self.facts.keys() | facts.keys():
            before, now = self.facts.get(key), facts.get(key)
            if before is now:
                continue
            for some, others, out in ((before, now, old), (now, before, new)):
                if some is not None:
                    out[key] = Run(some.base.arrays, some.arity, some.less(others))
        mentions = self._counted(old, new)
        join_runs(old, about(self.facts, changed))
        join_runs(new, about(facts, changed))
        aside = _put(_take(self.aside, _beside(self.names, old)), _beside(names, new))
        return Explicit(facts, names, aside, mentions)

    def _counted(self, old: Runs, new: Runs) -> Array:
        """How often ids are mentioned when facts went and came. Cost: these, and a copy."""
        xp = self.names.arrays.xp
        less, more = (
            xp.concatenate([xp.zeros(0, np.int64), *(column for key, run in runs.items() for column in _mentioned(key, run))])
            for runs in (old, new)
        )
        if not len(less) and not len(more):
            return self.mentions
        counts = xp.zeros(max(len(self.mentions), int(more.max()) + 1 if len(more) else 0), np.int64)
        counts[: len(self.mentions)] = self.mentions
        self.names.arrays.module.add_at(counts, less, -1)
        self.names.arrays.module.add_at(counts, more, 1)
        return counts

    def behind(self, facts: Mapping[Key, Run]) -> Runs:
        """The explicit facts that facts in normal form stand for. Cost: a search for each, and what is found."""
        out: dict[Key, list[Run]] = {}
        for key, run in facts.items():
            known = self.facts.get(key)
            if known is not None:
                out.setdefault(key, []).append(run.within(known))
            beside = self.aside.get(key)
            if beside is not None:
                for original, rows in _given(key, starting(beside, [run.column(i) for i in range(run.arity)])):
                    out.setdefault(original, []).append(rows)
        return {
            key: Run(runs[0].arrays, runs[0].arity, runs[0].arrays.unique([run.words for run in runs]))
            for key, runs in out.items()
            if any(map(len, runs))
        }

    def apart(self) -> Runs:
        """The facts that are not their own normal forms, as they were given."""
        out: dict[Key, list[Run]] = {}
        for key, beside in self.aside.items():
            for original, rows in _given(key, Run(beside.base.arrays, beside.arity, beside.rows())):
                out.setdefault(original, []).append(rows)
        return {key: Run(r[0].arrays, r[0].arity, r[0].arrays.unique([one.words for one in r])) for key, r in out.items()}

    def mentioned(self, ids: Array) -> Array:
        """For each id, whether an explicit triple mentions it."""
        xp, count = self.names.arrays.xp, len(self.mentions)
        if not count:
            return xp.zeros(len(ids), bool)
        return (ids < U64(count)) & (self.mentions[xp.minimum(ids, U64(count - 1))] > 0)


def _mentioned(key: Key, run: Run) -> list[Array]:
    """The ids of triples, one for each place in which they stand; none of named facts."""
    xp = run.arrays.xp
    if not isinstance(key, int):
        return []
    return [xp.full(len(run), key, np.int64), run.column(0).astype(np.int64), run.column(1).astype(np.int64)]


def _beside(names: Names, runs: Mapping[Key, Run]) -> dict[Key, list[Run]]:
    """Facts that are not their own normal forms, after these."""
    out: dict[Key, list[Run]] = {}
    for key, run in runs.items():
        arrays, count = run.arrays, len(run)
        columns = [run.column(i) for i in range(run.arity)]
        normal = [names.of(column) for column in columns]
        target = names.name(key) if isinstance(key, int) else key
        mask = arrays.xp.full(count, target != key)
        for column, other in zip(columns, normal, strict=True):
            mask |= column != other
        if bool(mask.any()):
            predicate = [arrays.xp.full(count, key, U64)] if isinstance(key, int) else []
            rows = [*normal, *columns[:1], *predicate, *columns[1:]]
            words = arrays.pack([c[mask] for c in rows], int(mask.sum()))
            out.setdefault(target, []).append(Run(arrays, len(rows), arrays.unique([words])))
    return out


def _given(key: Key, rows: Run) -> list[tuple[Key, Run]]:
    """The given forms of rows that have them beside their normal forms."""
    arrays, count = rows.arrays, len(rows)
    if not count:
        return []
    if isinstance(key, str):
        columns = [rows.column(i) for i in range(rows.arity // 2, rows.arity)]
        return [(key, Run(arrays, len(columns), arrays.unique([arrays.pack(columns, count)])))]
    subject, predicate, value = (rows.column(i) for i in (2, 3, 4))
    return [
        (original, Run(arrays, 2, arrays.unique([arrays.pack([subject[part], value[part]], len(subject[part]))])))
        for original, part in arrays.split(predicate)
    ]


def _put(aside: Mapping[Key, Relation], rows: Mapping[Key, list[Run]]) -> dict[Key, Relation]:
    out = dict(aside)
    for key, runs in rows.items():
        for run in runs:
            known = out.get(key)
            out[key] = Relation(run) if known is None else known.add(run.without(known))
    return out


def _take(aside: Mapping[Key, Relation], rows: Mapping[Key, list[Run]]) -> dict[Key, Relation]:
    out = dict(aside)
    for key, runs in rows.items():
        for run in runs:
            out[key] = out[key].remove(run.within(out[key]))
    return out
