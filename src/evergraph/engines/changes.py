"""What an update makes of stored facts: rows to put, each explicit or derived, and rows to drop.

    put  = came ∪ changed,    drop = went ∪ changed,    changed = in both, but explicit in only one of them

In words: a fact that stays but becomes explicit, or ceases to be, is dropped as what it was and put as what it is.
Cost: the runs beside the base where relations share it; the relations themselves after a merge or a recomputation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from evergraph.engines.arrays import Array, Words
from evergraph.engines.relation import Relation
from evergraph.plan.model import Key
from evergraph.plan.shapes import hidden


@dataclass(frozen=True, slots=True)
class Held:
    """The facts of one shard: all of them, and the explicit ones."""

    all: Mapping[Key, Relation] = field(default_factory=dict)
    explicit: Mapping[Key, Relation] = field(default_factory=dict)


class Changed(NamedTuple):
    """One relation's part of a change, its rows in order."""

    key: Key
    arity: int
    put: Words
    explicit: Array
    """For each row to put, whether it is explicit."""
    drop: Words


def changes(before: Held, after: Held) -> Iterator[Changed]:
    """Relation by relation, in the order of their keys: predicates first, then names."""
    keys = {k for k in before.all.keys() | after.all.keys() if not hidden(k)}
    for key in sorted(keys, key=lambda k: (isinstance(k, str), k)):
        old, new = before.all.get(key), after.all.get(key)
        was, now = before.explicit.get(key), after.explicit.get(key)
        if old is new and was is now:
            continue
        some = new if new is not None else old
        assert some is not None
        arrays, nothing = some.base.arrays, some.base.arrays.empty(some.arity)
        came = new.less(old) if new is not None else nothing
        went = old.less(new) if old is not None else nothing
        became = now.less(was) if now is not None else nothing
        ceased = was.less(now) if was is not None else nothing
        if old is not None and new is not None:
            changed = arrays.merge(_within(became, old), _within(ceased, new))
            came, went = arrays.merge(came, changed), arrays.merge(went, changed)
        explicit = now.contains(came) if now is not None else arrays.xp.zeros(len(came[0]), bool)
        if len(came[0]) or len(went[0]):
            yield Changed(key, some.arity, came, explicit, went)


def _within(rows: Words, relation: Relation) -> Words:
    mask = relation.contains(rows)
    return tuple(w[mask] for w in rows)
