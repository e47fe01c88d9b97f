"""What changed between versions, explicit and derived facts alike, with the columns of Delta's change data feed.

A version's changes are read off its files: those that came and those that went, compared where both are there. Nothing is
stored for it, compaction leaves no trace in it, and its cost follows the files that a version touched. Where one name stands
for all that are the same, the feed tells of every name: two versions are read, and compared by what their facts stand for.
Trap: what a version calls its operation is the caller's word and decides nothing; Delta's `dataChange` tells compaction.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evergraph.engines.arrays import Arrays, Words
from evergraph.engines.changes import Changed, Held, changes
from evergraph.engines.equality.differences import Relations, moved, net, row_columns
from evergraph.engines.equality.expansion import Expansion
from evergraph.engines.equality.stored import in_normal_form
from evergraph.engines.relation import Relation, Run
from evergraph.plan.model import Key
from evergraph.rules.model import TRIPLE
from evergraph.store import log
from evergraph.store.dictionary import FileDictionary
from evergraph.store.layout import FACTS, NAMES, RELATIONS
from evergraph.store.log import Snapshot, StoredFile
from evergraph.store.names import read_names
from evergraph.store.read import held, parts_of, read_facts

INSERT, DELETE, BEFORE, AFTER = "insert", "delete", "update_preimage", "update_postimage"
"""Delta's names. A fact that stays but becomes explicit, or ceases to be, is an update."""
Mask = npt.NDArray[np.bool_]


class _Change(NamedTuple):
    kind: str
    key: Key
    arity: int
    rows: Words
    explicit: Mask


def change_feed(first: Snapshot, last: Snapshot, relation: str = TRIPLE) -> pa.Table:
    """The changes that made the versions `first` to `last`, both included, in their order.

    For triples columns `subject`, `predicate`, `object`; for a named relation one column `arguments`; then `explicit`,
    `_change_type`, `_commit_version`, `_commit_timestamp`. Cost: the files that versions touched; of a version with names that
    others represent, or whose predecessor has some, all that is stored of both, and the change.
    """
    dictionary = FileDictionary.of(last)
    tables = [_schema(relation).empty_table()]
    for version in range(first.version, last.version + 1):
        now = log.snapshot(last.store, version)
        before = log.snapshot(last.store, version - 1) if version else None
        for change in _changes(before, now):
            if isinstance(change.key, int) == (relation == TRIPLE) and relation in (TRIPLE, change.key):
                tables.append(_table(change, now, dictionary, relation))
    return pa.concat_tables(tables)


def _changes(before: Snapshot | None, now: Snapshot) -> Iterator[_Change]:
    if now.files(NAMES) or (before is not None and before.files(NAMES)):
        explicit_before, found = _changes_of_all(before, now)
    else:
        triples, named = (_touched(before, now, name) for name in (FACTS, RELATIONS))
        old_facts, new_facts = (held(parts_of(*files)) for files in zip(triples, named, strict=True))
        explicit_before, found = old_facts.explicit, changes(old_facts, new_facts)
    arrays = Arrays()
    for one in found:
        was = explicit_before.get(one.key)
        gone = was.contains(one.drop) if was is not None else np.zeros(len(one.drop[0]), bool)
        again, still = arrays.contains(one.drop, one.put), arrays.contains(one.put, one.drop)
        for kind, rows, explicit, mask in (
            (DELETE, one.drop, gone, ~still),
            (BEFORE, one.drop, gone, still),
            (INSERT, one.put, one.explicit, ~again),
            (AFTER, one.put, one.explicit, again),
        ):
            if mask.any():
                yield _Change(kind, one.key, one.arity, tuple(w[mask] for w in rows), explicit[mask])


def _changes_of_all(before: Snapshot | None, now: Snapshot) -> tuple[Relations, Iterator[Changed]]:
    """What was explicit, and the changes of all that the facts stand for."""
    if not any(any(_touched(before, now, name)) for name in (FACTS, RELATIONS, NAMES)):
        return {}, iter(())
    (old, was), (new, given) = map(_every_name, (before, now))
    changed = new.names.less(old.names)
    came, went = moved(new, old, changed).rows(), moved(old, new, changed).rows()
    for view, runs in zip((old, new), net(was, given), strict=True):
        for key, run in runs.items():
            stays = run.where(view.contains(key, row_columns(run), len(run)))
            for out in (came, went):
                out[key] = out[key].merge(stays) if key in out else stays
    keys = sorted(came.keys() | went.keys(), key=lambda k: (isinstance(k, str), k))
    return was, (_changed(key, came.get(key), went.get(key), given.get(key)) for key in keys)


def _every_name(snapshot: Snapshot | None) -> tuple[Expansion, Relations]:
    """What readers see of a version, and its explicit facts."""
    names, facts = read_names(snapshot), read_facts(snapshot) if snapshot is not None else Held()
    return Expansion(in_normal_form(facts, names).all, names), facts.explicit


def _changed(key: Key, came: Run | None, went: Run | None, given: Relation | None) -> Changed:
    some = came if came is not None else went
    assert some is not None
    put, drop = (run.words if run is not None else some.arrays.empty(some.arity) for run in (came, went))
    explicit = given.contains(put) if given is not None else np.zeros(len(put[0]), bool)
    return Changed(key, some.arity, put, explicit, drop)


def _touched(before: Snapshot | None, now: Snapshot, name: str) -> tuple[list[StoredFile], list[StoredFile]]:
    """The files of a table that went with a version and those that came; none if they hold the same rows."""
    if not now.changes_data(name):
        return [], []
    old = {f.path: f for f in before.files(name)} if before is not None else {}
    new = {f.path: f for f in now.files(name)}
    return [f for path, f in old.items() if path not in new], [f for path, f in new.items() if path not in old]


def _schema(relation: str) -> pa.Schema:
    term = pa.large_string()
    terms = [(n, term) for n in ("subject", "predicate", "object")] if relation == TRIPLE else [("arguments", pa.list_(term))]
    when = [("_change_type", pa.string()), ("_commit_version", pa.int64()), ("_commit_timestamp", pa.timestamp("ms", "UTC"))]
    return pa.schema([*terms, ("explicit", pa.bool_()), *when])


def _table(change: _Change, version: Snapshot, dictionary: FileDictionary, relation: str) -> pa.Table:
    arrays, count = Arrays(), len(change.explicit)
    columns = [arrays.column(change.rows, i) for i in range(change.arity)]
    if isinstance(change.key, int):
        terms = [dictionary.decode(c) for c in (columns[0], np.full(count, change.key, np.uint64), columns[1])]
    else:
        flat = np.stack(columns, axis=1).ravel() if columns else np.zeros(0, np.uint64)
        offsets = np.arange(count + 1, dtype=np.int32) * change.arity
        terms = [pa.ListArray.from_arrays(pa.array(offsets), dictionary.decode(flat))]
    when = (change.kind, version.version, pa.scalar(version.when, pa.timestamp("ms", "UTC")))
    return pa.table([*terms, change.explicit, *(pa.repeat(value, count) for value in when)], schema=_schema(relation))
