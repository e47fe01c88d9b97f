"""Facts that come with the times at which they end, sorted into relations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from evergraph.engines.arrays import U64, Array, Arrays, Words
from evergraph.engines.relation import Run
from evergraph.plan.model import Key
from evergraph.rules.model import TRIPLE
from evergraph.terms import Ids

Entering = Mapping[Key, tuple[Run, Array]]
"""Distinct facts by relation, in order, with the ends of their rows, which have not passed."""
Part = tuple[str, Sequence[Ids], Array]
"""The name of a relation, columns of ids, and the ends of their rows."""


def entering(arrays: Arrays, parts: Iterable[Part]) -> Entering:
    """By relation, triples split by predicate; a fact that comes several times has its last end. Cost: a sort."""
    found: dict[Key, list[tuple[Sequence[Ids], Array]]] = {}
    for name, columns, ends in parts:
        if not len(ends):
            continue
        if name != TRIPLE:
            found.setdefault(name, []).append((columns, ends))
            continue
        subject, predicate, value = columns
        for number, rows in arrays.split(arrays.xp.asarray(predicate, dtype=U64)):
            found.setdefault(number, []).append(([subject[rows], value[rows]], ends[rows]))
    out: dict[Key, tuple[Run, Array]] = {}
    for key, several in found.items():
        arity = len(several[0][0])
        packed = [(arrays.pack([arrays.xp.asarray(c, dtype=U64) for c in cs], len(ends)), ends) for cs, ends in several]
        words, ends = latest(arrays, [words for words, _ in packed], [ends for _, ends in packed])
        out[key] = Run(arrays, arity, words), ends
    return out


def latest(arrays: Arrays, parts: Sequence[Words], ends: Sequence[Array]) -> tuple[Words, Array]:
    """The distinct rows of all parts, in order, with the last end of each. Cost: a sort."""
    words = tuple(arrays.xp.concatenate(w) for w in zip(*parts, strict=True))
    order = arrays.module.stable_order(words[0]) if len(words) == 1 else arrays.module.lexsort(words)
    rows, starts = arrays.groups(tuple(w[order] for w in words))
    return rows, arrays.module.greatest(arrays.xp.concatenate(ends)[order], starts)
