"""What is held in one memory, in the other: of the host and of the device.

In words: relations never change, so that a copy of one stays true. A copy knows how large it is; its rows are carried over when
somebody reads them, and only then. A relation that shares its base with one that was carried over already brings only what came
and went since, and one that came from there is itself again when it goes back.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar
from weakref import WeakKeyDictionary, ref

from evergraph.engines.arrays import Array, Arrays, Words
from evergraph.engines.changes import Changed, Held
from evergraph.engines.equality.names import Names
from evergraph.engines.marks import Counted, Marks
from evergraph.engines.relation import Order, Relation, Run
from evergraph.engines.state import State
from evergraph.plan.model import Key

T = TypeVar("T", Run, Relation)


class Carried(Run):
    """A run whose rows are in the other memory until they are asked for."""

    __slots__ = ("_carried", "_copies", "_source")

    def __init__(self, arrays: Arrays, source: Run, copies: _Copies) -> None:
        self.arrays, self.arity, self.count = arrays, source.arity, source.count
        self._source: Run | None = source
        self._copies = copies
        self._carried: dict[Order, Words] = {}

    @property
    def words(self) -> Words:  # type: ignore[override]
        return self._orders[tuple(range(self.arity))]

    @property
    def _orders(self) -> dict[Order, Words]:
        source = self._source
        if source is not None:
            there, here = source.arrays, self.arrays
            self._carried = {o: tuple(carry(there, here, word) for word in words) for o, words in source.orders.items()}
            self._source = None
            self._copies.hold(source, self)
        return self._carried

    @_orders.setter
    def _orders(self, orders: dict[Order, Words]) -> None:
        self._carried = orders


def carry(source: Arrays, target: Arrays, values: Array) -> Array:
    """An array in the other memory. Cost: a transfer."""
    return target.xp.asarray(source.module.host(values))


class _Copies:
    """Pairs of a thing and its copy. A copy that cost something is kept as long as what it is one of, and keeps nothing itself.

    One that has no rows yet keeps what it is one of, and is kept by those who have it alone.
    """

    def __init__(self) -> None:
        self._others: WeakKeyDictionary[Any, ref[Any]] = WeakKeyDictionary()
        self._held: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()

    def other(self, one: T) -> T | None:
        """The copy of a thing, or what it is itself a copy of, as long as that is there."""
        known = self._others.get(one)
        return known() if known is not None else None

    def pair(self, one: T, copy: T) -> T:
        self._others[one], self._others[copy] = ref(copy), ref(one)
        return copy

    def hold(self, one: T, copy: T) -> None:
        """Keep the copy as long as the thing."""
        self._held[one] = copy


@cache
def _copies(xp: Any) -> tuple[_Copies, _Copies]:
    """Runs and relations of the host that have copies on one device, or are some."""
    return _Copies(), _Copies()


class Mirror:
    """Carries facts, marks and names between host and device. Cost: the relations; rows when they are read."""

    def __init__(self, xp: Any) -> None:
        self._runs, self._relations = _copies(xp)
        self._marks: dict[Key, tuple[Marks, Marks]] = {}
        self._names: tuple[Names, Names] | None = None

    def run(self, run: Run, target: Arrays) -> Run:
        if run.arrays.xp is target.xp:
            return run
        found = self._runs.other(run)
        return self._runs.pair(run, Carried(target, run, self._runs)) if found is None else found

    def relation(self, one: Relation, target: Arrays) -> Relation:
        if one.base.arrays.xp is target.xp:
            return one
        found = self._relations.other(one)
        if found is None:
            plus, minus = (self.run(run, target) if run is not None else None for run in (one.plus, one.minus))
            found = self._relations.pair(one, Relation(self.run(one.base, target), plus, minus))
            self._relations.hold(one, found)
        return found

    def relations(self, some: Mapping[Key, Relation], target: Arrays) -> dict[Key, Relation]:
        return {key: self.relation(one, target) for key, one in some.items()}

    def held(self, facts: Held, target: Arrays) -> Held:
        return Held(self.relations(facts.all, target), self.relations(facts.explicit, target))

    def names(self, names: Names, target: Arrays) -> Names:
        if names.arrays.xp is target.xp:
            return names
        if self._names is None or all(names is not one for one in self._names):
            moved, represented = (carry(names.arrays, target, values) for values in (names.moved, names.represented))
            self._names = names, Names(target, moved, represented)
        return self._names[names is self._names[0]]

    def state(self, state: State, target: Arrays) -> State:
        """What an engine holds, for one over the other memory."""
        if state.arrays.xp is target.xp:
            return state
        facts = self.held(state.facts, target)
        marks = None
        if state.marks is not None:
            marks = {key: self._mark(key, one, state, facts, target) for key, one in state.marks.items()}
        names = self.names(state.names, target) if state.names is not None else None
        return State(target, state.plan, facts, marks, state.closed, names)

    def _mark(self, key: Key, marks: Marks, state: State, facts: Held, target: Arrays) -> Marks:
        """Marks that are laid out like their relation stay so; of those that were carried over, only what came later is."""
        last = self._marks.get(key)
        known = next((last[1 - i] for i in (0, 1) if last is not None and last[i].values is marks.values), None)
        if last is not None and any(marks is one for one in last):
            return last[marks is last[0]]
        relation = state.facts.all.get(key)
        if relation is not None and marks.words is relation.base.words:
            words = facts.all[key].base.words
        else:
            words = known.words if known is not None else tuple(carry(state.arrays, target, w) for w in marks.words)
        values = known.values if known is not None else carry(state.arrays, target, marks.values)
        more = tuple(carry(state.arrays, target, w) for w in marks.more)
        copy = Marks(words, values, more, carry(state.arrays, target, marks.more_values))
        self._marks[key] = marks, copy
        return copy


def changed_at(arrays: Arrays, one: Changed) -> Changed:
    """One relation's part of a change, on the host."""
    host = arrays.module.host
    put, drop = (tuple(host(word) for word in words) for words in (one.put, one.drop))
    return Changed(one.key, one.arity, put, host(one.explicit), drop)


def counted_at(source: Arrays, target: Arrays, one: Counted) -> Counted:
    """Counts in the other memory."""
    words = tuple(carry(source, target, word) for word in one.words)
    return Counted(one.key, one.arity, words, carry(source, target, one.values))
