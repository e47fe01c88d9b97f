"""Where facts live: at the shard of their first argument, at those of further arguments that joins ask for, or everywhere.

    homes(fact) = {hash(fact[i]) : i ∈ {0} ∪ positions(relation)},  or all shards when the relation is replicated

The shard of the first argument *owns* the fact: it counts it, keeps whether it is explicit and gives it out. Positions are
derived from the rules that can fire: each has a meeting point (`plan.locality`), and each of its body relations must be
placed by the argument that holds it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from evergraph.engines.arrays import U64, Array, Arrays, Words
from evergraph.engines.shard import shard_of
from evergraph.plan.locality import Local
from evergraph.plan.model import Key, is_variable
from evergraph.plan.schedule import Schedule
from evergraph.plan.schema import Node


@dataclass(frozen=True, slots=True)
class Placement:
    shards: int
    type_id: int
    replicated: frozenset[Key]
    """Relations that every shard holds."""
    classes: frozenset[int]
    """Classes whose instances every shard knows: those that rules name in their schema."""
    positions: dict[Key, tuple[int, ...]] = field(default_factory=dict)
    """Arguments, beside the first, by which a relation is placed."""
    everywhere: bool = False
    """Whether every triple is at every shard: rules that join triples on nothing."""
    default: tuple[int, ...] = ()
    """Further arguments by which every triple is placed."""

    def hash(self, ids: Array) -> Array:
        return shard_of(ids, self.shards)

    def is_replicated(self, key: Key) -> bool:
        return key in self.replicated or (self.everywhere and isinstance(key, int))

    def further(self, key: Key) -> tuple[int, ...]:
        found = self.positions.get(key, ())
        return tuple({*found, *self.default}) if isinstance(key, int) else found

    def owner(self, arrays: Arrays, arity: int, words: Words) -> Array:
        """The owning shard of each row; a relation without arguments belongs to shard 0."""
        return self.hash(arrays.column(words, 0)) if arity else arrays.xp.zeros(len(words[0]), U64)

    def common(self, arrays: Arrays, key: Key, words: Words) -> Array | bool:
        """Which rows are everywhere: all, none, or a mask."""
        if self.is_replicated(key):
            return True
        if key == self.type_id and self.classes:
            named = arrays.xp.asarray(sorted(self.classes), dtype=U64)
            return arrays.contains((named,), (arrays.column(words, 1),))
        return False

    def homes(self, arrays: Arrays, key: Key, arity: int, words: Words) -> list[Array]:
        """For each shard, a mask of the rows that live there."""
        xp, count = arrays.xp, len(words[0])
        common = self.common(arrays, key, words)
        masks = [xp.full(count, common is True) if isinstance(common, bool) else common.copy() for _ in range(self.shards)]
        if common is True:
            return masks
        for position in (0, *self.further(key)) if arity else ():
            shard = self.hash(arrays.column(words, position))
            for number, mask in enumerate(masks):
                mask |= shard == U64(number)
        if not arity:
            masks[0] |= True
        return masks


def place(shards: int, type_id: int, locals_: Sequence[Local]) -> Placement:
    """Owners, and what is everywhere: all that is known before any data is."""
    replicated: set[Node] = set().union(*(local.replicated for local in locals_))
    return Placement(
        shards,
        type_id,
        frozenset(key for key, value in replicated if value is None),
        frozenset(value for _, value in replicated if value is not None),
        everywhere=any(key == "?" for key, _ in replicated),
    )


def extend(placement: Placement, local: Local, schedule: Schedule) -> Placement:
    """The placement with the positions that the rules of a stratum ask for, as far as they can fire."""
    positions = {key: set(found) for key, found in placement.positions.items()}
    default = set(placement.default)
    rules = local.rules.rules
    if schedule.settled:
        bodies = [(n, [node[0] for node in body]) for n, body, _ in schedule.instances]
    else:
        bodies = [(n, [atom.relation for atom in rule.body]) for n, rule in enumerate(rules)]
    for number, keys in bodies:
        point, rule = local.meeting[number], rules[number]
        for atom, key in [*zip(rule.body, keys, strict=True), *((a, a.relation) for a in rule.negated)]:
            if point is not None and point in atom.args:
                wanted = default if is_variable(key) else positions.setdefault(key, set())
                wanted.add(atom.args.index(point))
    further = {key: tuple(sorted(found - {0})) for key, found in positions.items() if found - {0}}
    return replace(placement, positions=further, default=tuple(sorted(default - {0})))
