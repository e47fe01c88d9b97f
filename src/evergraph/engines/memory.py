"""The memory engine: one shard, in process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from evergraph.engines.arrays import U64
from evergraph.engines.base import Change, Closed, Counts, Difference, Facts, Which, by_name, together
from evergraph.engines.changes import Changed, Held, changes
from evergraph.engines.relation import Relation, Run
from evergraph.engines.shard import Shard
from evergraph.plan.compile import Plan
from evergraph.plan.model import Key
from evergraph.plan.shapes import hidden
from evergraph.rules.model import TRIPLE
from evergraph.terms import Ids


class MemoryEngine:
    """Relations as NumPy arrays. A snapshot is two dictionaries of references, so taking a step back costs nothing."""

    name = "memory"

    def __init__(self, plan: Plan, xp: Any = np) -> None:
        self.shard = Shard(plan, xp)
        self._saved: tuple[dict[Key, Relation], dict[Key, Relation]] = ({}, {})
        self._closed = False
        """Whether the rules have been run at all."""
        self._recomputed = False
        self._given: dict[Key, int] = {}
        self.shard.insert(self.shard.runs(plan.parameter_facts))

    # -- updates -----------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        self._saved = (dict(self.shard.relations), dict(self.shard.explicit))
        self._recomputed = False
        self.shard.begin()

    def insert(self, facts: Facts) -> bool:
        there = sum(len(r) for key, r in self.shard.relations.items() if not hidden(key))
        self._given = self.shard.insert(self.shard.runs(facts))
        return not self._closed or sum(self._given.values()) > there

    def close(self, stratum: int, full: bool) -> Closed:
        return self.shard.close(stratum, full)

    def arrived(self) -> frozenset[Key]:
        return frozenset(self.shard.fixpoint.arrived)

    def forget_derived(self) -> None:
        self._recomputed = True
        self.shard.forget_derived()

    def commit(self) -> Change:
        """The net change against the state at `begin`. Cost: what arrived; after a recomputation, what it made anew."""
        before, explicit = self._saved
        shard = self.shard
        self._closed = True
        added = {k: len(r) - len(explicit.get(k, ())) for k, r in shard.explicit.items() if not hidden(k)}
        if not self._recomputed:
            return Change(self._arrivals(before, added))
        came: dict[Key, Run] = {}
        went: dict[Key, Run] = {}
        for key in before.keys() | shard.relations.keys():
            old, new = before.get(key), shard.relations.get(key)
            if old is not new and not hidden(key):
                came[key], went[key] = self._less(new, old), self._less(old, new)
        inserted = Difference(by_name(added), by_name(self._not_explicit(came, shard.explicit)), lambda: self._columns(came))
        deleted = Difference({}, by_name(self._not_explicit(went, explicit)), lambda: self._columns(went))
        return Change(inserted, deleted)

    def _arrivals(self, before: dict[Key, Relation], added: dict[Key, int]) -> Difference:
        """The change when nothing went: what arrived, and of it what was not given. Cost: the number of relations."""
        arrived, given = self.shard.fixpoint.arrived, self._given
        derived = {
            key: len(self.shard.relations[key]) - len(before.get(key, ())) - given.get(key, 0)
            for key in arrived
            if not hidden(key)
        }
        return Difference(
            by_name(added), by_name(derived), lambda: self._columns({k: run for k, run in arrived.items() if not hidden(k)})
        )

    def changes(self) -> Iterator[Changed]:
        return changes(Held(*self._saved), Held(self.shard.relations, self.shard.explicit))

    def load(self, facts: Held) -> None:
        self.shard.relations.update(facts.all)
        self.shard.explicit.update(facts.explicit)
        self._closed = True

    def prepare(self, builtins: Facts) -> None:
        self.shard.insert(self.shard.runs(builtins))
        self.shard.begin()
        self.shard.derive_hidden()

    def rollback(self) -> None:
        self.shard.restore(*self._saved)

    def _less(self, a: Relation | None, b: Relation | None) -> Run:
        """The rows of one relation that are not in another."""
        some = a if a is not None else b
        assert some is not None
        return Run(self.shard.arrays, some.arity, a.less(b) if a is not None else self.shard.arrays.empty(some.arity))

    def _not_explicit(self, runs: dict[Key, Run], explicit: dict[Key, Relation]) -> dict[Key, int]:
        return {
            key: len(run) - (int(explicit[key].contains(run.words).sum()) if key in explicit else 0)
            for key, run in runs.items()
        }

    # -- reading -----------------------------------------------------------------------------------------------------

    def counts(self, which: Which) -> Counts:
        total = {k: len(r) for k, r in self.shard.relations.items() if not hidden(k)}
        explicit = {k: len(r) for k, r in self.shard.explicit.items() if not hidden(k)}
        if which == Which.EXPLICIT:
            return by_name(explicit)
        if which == Which.DERIVED:
            return by_name({k: n - explicit.get(k, 0) for k, n in total.items()})
        return by_name(total)

    def rows(self, relation: str, which: Which) -> Sequence[Ids] | None:
        source = self.shard.explicit if which == Which.EXPLICIT else self.shard.relations
        runs: dict[Key, Run] = {}
        for key, rel in source.items():
            if relation == (TRIPLE if isinstance(key, int) else key):
                less = self.shard.explicit.get(key) if which == Which.DERIVED else None
                runs[key] = self._less(rel, less)
        return self._columns(runs).get(relation)

    def contains(self, relation: str, row: Sequence[int]) -> bool:
        key: Key = relation
        if relation == TRIPLE:
            subject, key, value = row
            row = (subject, value)
        found = self.shard.relations.get(key)
        return found is not None and bool(found.contains(self.shard.arrays.pack([U64(v) for v in row], 1))[0])

    def relations(self, which: Which) -> dict[Key, Relation]:
        source = self.shard.explicit if which == Which.EXPLICIT else self.shard.relations
        return {key: relation for key, relation in source.items() if not hidden(key)}

    def _columns(self, runs: dict[Key, Run]) -> Facts:
        """Runs as columns by relation name, the split triples together again."""
        return together((key, [np.asarray(run.column(i)) for i in range(run.arity)]) for key, run in runs.items())
