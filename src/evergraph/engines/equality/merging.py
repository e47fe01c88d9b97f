"""Equalities that a shard derives, and the renaming of its facts when names are merged.

    found:    a ≈ b with a ≠ b, or two values in one group             (`plan.equality`)
    renamed:  facts that mention a name for which another stands now give way to their normal forms, which arrive

In words: rules are closed as if equality were any property; then names are merged and everything that mentions one that no
longer stands for its clique is rewritten, through the indices. What arrives by that is what the next closing looks at, so no
instance is looked at twice. Parameter relations are relations like others: the constants of rules are rewritten with them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from evergraph.engines.arrays import LOW, SHIFT, Array, Arrays, Words
from evergraph.engines.equality.names import Names
from evergraph.engines.kernel import Kernel
from evergraph.engines.modules import MANY
from evergraph.engines.relation import Order, Relation, Run
from evergraph.engines.shard import Shard
from evergraph.plan.equality import ONE_IF_UNEQUAL, is_group
from evergraph.plan.model import Key
from evergraph.rules.model import Operator

SCAN = 64
"""A relation that is not in the order asked for is read as a whole when it has fewer than so many rows for each name."""


def equalities(kernel: Kernel, relations: Mapping[Key, Relation], arrived: Mapping[Key, Run], same: int) -> tuple[Array, Array]:
    """Pairs of different names that what arrived makes the same, enough to connect all that are. Cost: what arrived."""
    xp = kernel.xp
    found: list[tuple[Array, Array]] = []
    for key in arrived:
        if key == same:
            found.append((arrived[key].column(0), arrived[key].column(1)))
        elif is_group(key):
            found.append(_in_groups(kernel, str(key), _whole_groups(relations[key], arrived[key])))
    left, right = (xp.concatenate([pair[i] for pair in found]) if found else xp.empty(0, np.uint64) for i in (0, 1))
    differ = left != right
    return left[differ], right[differ]


def _whole_groups(relation: Relation, run: Run) -> Run:
    """The rows of a relation whose group has one among these."""
    arrays, places = run.arrays, range(run.arity - 1)
    if len(run) * 4 > len(relation):
        return Run(arrays, relation.arity, relation.rows())
    groups = arrays.unique([arrays.pack([run.column(i) for i in places], len(run))])
    return starting(relation, [arrays.column(groups, i) for i in places])


def starting(relation: Relation, keys: Sequence[Array]) -> Run:
    """The rows whose first columns are one of these keys. Cost: a search for each, and what is found."""
    arrays, parts = relation.base.arrays, []
    for part, minus in relation.parts():
        _, index = arrays.expand(*arrays.find_ranges(part.words, keys, len(keys[0])))
        parts.append(Run(arrays, relation.arity, tuple(w[index] for w in part.words)).without(minus).words)
    return Run(arrays, relation.arity, arrays.unique(parts))


def _in_groups(kernel: Kernel, key: str, rows: Run) -> tuple[Array, Array]:
    """The last value of each row with the first one of its group."""
    xp = kernel.xp
    if not len(rows):
        return xp.empty(0, np.uint64), xp.empty(0, np.uint64)
    starts = xp.ones(len(rows), bool)
    starts[1:] = False
    for place in range(rows.arity - 1):
        column = rows.column(place)
        starts[1:] |= column[1:] != column[:-1]
    number = xp.cumsum(starts) - 1
    values = rows.column(rows.arity - 1)
    first = values[xp.flatnonzero(starts)][number]
    differ = values != first
    if key.startswith(ONE_IF_UNEQUAL) and bool(differ.any()):
        # Of values that are not all equal each differs from some other, so that all are connected.
        apart = xp.zeros(int(number[-1]) + 1, bool)
        apart[number[differ][kernel.compare(Operator.UNEQUAL, values[differ], first[differ])]] = True
        differ &= apart[number]
    return values[differ], first[differ]


def mentioning(relation: Relation, ids: Array, index: bool = True) -> Run:
    """The rows that mention one of these ids, which are in order.

    Cost: a search for each id where the rows are, or shall be (`index`), in the order of the argument; linear otherwise.
    """
    arrays = relation.base.arrays
    if len(relation) <= MANY:
        rows = Run(arrays, relation.arity, relation.rows())
        mask = arrays.xp.zeros(len(rows), bool)
        for place in range(relation.arity):
            mask |= arrays.contains((ids,), (rows.column(place),))
        return rows.where(mask)
    parts = [having(relation, place, ids, index).words for place in range(relation.arity)]
    return Run(arrays, relation.arity, arrays.unique(parts))


def having(relation: Relation, place: int, ids: Array, index: bool = True) -> Run:
    """The rows with one of these ids in one place. Cost: as that of `mentioning`."""
    arrays = relation.base.arrays
    parts = [_having(run, place, ids, index).without(minus).words for run, minus in relation.parts()]
    return Run(arrays, relation.arity, arrays.unique(parts))


def _having(run: Run, place: int, ids: Array, index: bool) -> Run:
    """The rows with one of these ids in one place, in any order."""
    arrays = run.arrays
    order = (place, *(i for i in range(run.arity) if i != place))
    if order not in run.orders and not (index and len(ids) * SCAN < len(run)):
        return run.where(marked(arrays, ids, run.column(place)))
    low, high = arrays.find_ranges(run.in_order(order), [ids], len(ids))
    return _rows_at(run, order, low, high)


def few_mentioning(relation: Relation, ids: Array, most: int) -> tuple[Run, Array]:
    """Up to so many rows for each id and place in which they have it, and for each id whether these are all.

    Cost: a search for each id, and the rows that are found.
    """
    arrays = relation.base.arrays
    parts: list[Words] = [arrays.empty(relation.arity)]
    complete = arrays.xp.ones(len(ids), bool)
    for run, minus in relation.parts():
        for place in range(relation.arity):
            order = (place, *(i for i in range(run.arity) if i != place))
            words = run.in_order(order)
            low, high = arrays.find_ranges(words, [ids], len(ids))
            complete &= high - low <= most
            found = _rows_at(run, order, low, arrays.xp.minimum(high, low + most))
            parts.append(found.without(minus).words)
    return Run(arrays, relation.arity, arrays.unique(parts)), complete


def _rows_at(run: Run, order: Order, low: Array, high: Array) -> Run:
    """The rows in ranges of a run in one of its orders, in any order."""
    arrays, words = run.arrays, run.in_order(order)
    _, at = arrays.expand(low, high)
    rows = tuple(w[at] for w in words)
    columns = [arrays.column(rows, order.index(i)) for i in range(run.arity)]
    return Run(arrays, run.arity, arrays.pack(columns, len(at)))


def marked(arrays: Arrays, ids: Array, column: Array) -> Array:
    """For each id of a column, whether it is one of these, which are in order. Cost: linear in the column."""
    if not len(ids) or not len(column):
        return arrays.xp.zeros(len(column), bool)
    top = int(ids[-1])
    if top > 8 * len(column):
        return arrays.contains((ids,), (column,))
    marks = arrays.xp.zeros(top + 2, bool)
    marks[ids] = True
    return marks[arrays.xp.minimum(column, np.uint64(top + 1))]


def names_of(arrays: Arrays, facts: Mapping[Key, Words]) -> Array:
    """The names of triples, in order. Cost: linear in them; ids are dense, so that marking them does where there are many."""
    xp = arrays.xp
    triples = {key: words[0] for key, words in facts.items() if isinstance(key, int) and len(words[0])}
    if not triples:
        return xp.empty(0, np.uint64)
    predicates = xp.asarray(sorted(triples), dtype=np.uint64)
    count = sum(map(len, triples.values()))
    top = max(int(predicates[-1]), *(int(max(int(w[-1] >> SHIFT), int((w & LOW).max()))) for w in triples.values()))
    if top > 8 * count:
        columns = [c for w in triples.values() for c in (w >> SHIFT, w & LOW)]
        return arrays.distinct(xp.concatenate([predicates, *columns]))
    seen = xp.zeros(top + 1, bool)
    seen[predicates] = True
    for block in arrays.blocks(list(triples.values())):
        seen[block >> SHIFT] = True
        seen[block & LOW] = True
    return xp.flatnonzero(seen).astype(np.uint64)


def normalised(names: Names, runs: Mapping[Key, Run]) -> dict[Key, Run]:
    """Facts as what stands for them. Cost: linear in them; nothing where every name stands for itself."""
    if not len(names):
        return dict(runs)
    parts: dict[tuple[Key, int], list[Words]] = {}
    for key, run in runs.items():
        words = names.arrays.pack([names.of(run.column(i)) for i in range(run.arity)], len(run))
        parts.setdefault((names.name(key) if isinstance(key, int) else key, run.arity), []).append(words)
    return {key: Run(names.arrays, arity, names.arrays.unique(many)) for (key, arity), many in parts.items()}


def about(relations: Mapping[Key, Relation], ids: Array, index: bool = True) -> dict[Key, Run]:
    """The facts that mention one of these ids, which are in order, as a predicate too. Cost: that of `mentioning` for each."""
    out: dict[Key, Run] = {}
    if not len(ids):
        return out
    for key, relation in relations.items():
        if isinstance(key, int) and bool((ids == np.uint64(key)).any()):
            found = Run(relation.base.arrays, relation.arity, relation.rows())
        else:
            found = mentioning(relation, ids, index)
        if len(found):
            out[key] = found
    return out


def rename(shard: Shard, changed: Names, index: bool, pending: bool, among: Mapping[Key, Relation] | None = None) -> None:
    """Let facts that mention a moved name give way to their normal forms, which arrive; what is `pending` stays arrived.

    Facts are looked for `among` some, where others are known to have none.
    Where rules compare values, facts about names that stand for more than before arrive again: a comparison holds of a clique
    when it holds of one of its names.
    """
    relations, arrived = shard.relations, shard.fixpoint.arrived if pending else {}
    gone = about(relations if among is None else among, changed.moved, index)
    for key, run in gone.items():
        relations[key] = relations[key].remove(run)
    for key in [key for key, relation in relations.items() if isinstance(key, int) and not len(relation)]:
        del relations[key]
    for scheduler in shard.schedulers:
        scheduler.forget_if_changed({key: Relation(run) for key, run in gone.items()})
    again = about(relations, changed.cliques()[0], index) if among is None and shard.compares else {}
    shard.begin()
    fixpoint = shard.fixpoint
    for runs, less in ((arrived, gone), (again, {})):
        for key, run in runs.items():
            kept = run.without(less.get(key)).without(fixpoint.arrived.get(key))
            if len(kept):
                fixpoint.before[key] = fixpoint.before.get(key, relations[key]).remove(kept)
                fixpoint.arrived.add(key, kept)
    fixpoint.insert(normalised(changed, gone))
