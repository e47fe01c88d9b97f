"""Relations as rows of a Spark frame: sorted arrays travel as binary values, never as rows of facts.

A row says which shard it belongs to, what it is (`Kind`), which relation it is of, how its columns are ordered, and holds
the packed words. Reading one is a view on Arrow's buffer; nothing is unpacked that no join asks for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from evergraph.engines.arrays import Arrays, Words
from evergraph.engines.relation import Order, Relation, Run
from evergraph.plan.model import Key

DDL = "shard int, kind string, key string, arity int, part string, columns string, words binary"
SCHEMA = pa.schema(
    [
        ("shard", pa.int32()),
        ("kind", pa.string()),
        ("key", pa.string()),
        ("arity", pa.int32()),
        ("part", pa.string()),
        ("columns", pa.string()),
        ("words", pa.binary()),
    ]
)


class Kind(StrEnum):
    RELATION = "relation"
    EXPLICIT = "explicit"
    ARRIVED = "arrived"
    MAIL = "mail"
    EXPLICIT_MAIL = "explicit mail"
    STATS = "stats"


class Row(NamedTuple):
    shard: int
    kind: str
    key: str
    arity: int
    part: str
    columns: str
    words: bytes


def name_of(key: Key) -> str:
    """A key as text: predicates with a leading #."""
    return f"#{key}" if isinstance(key, int) else key


def key_of(name: str) -> Key:
    return int(name[1:]) if name.startswith("#") else name


def run_rows(shard: int, kind: Kind, key: Key, part: str, run: Run) -> Iterator[Row]:
    """One row for each order in which the run is kept."""
    for order, words in run.orders.items():
        yield Row(shard, kind, name_of(key), run.arity, part, _show(order), _bytes(words))


def words_row(shard: int, kind: Kind, key: Key, arity: int, words: Words) -> Row:
    return Row(shard, kind, name_of(key), arity, "base", _show(tuple(range(arity))), _bytes(words))


def relation_rows(shard: int, kind: Kind, key: Key, relation: Relation) -> Iterator[Row]:
    for part, run in (("base", relation.base), ("plus", relation.plus), ("minus", relation.minus)):
        if run is not None:
            yield from run_rows(shard, kind, key, part, run)


def to_table(rows: Iterable[Row]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(SCHEMA)
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)


def read_rows(table: pa.Table) -> Iterator[tuple[Row, Words]]:
    """Rows with their words as arrays, without copying them."""
    plain = [table.column(i).to_pylist() for i in range(len(SCHEMA) - 1)]
    blobs = table.column(len(SCHEMA) - 1)
    for shard, kind, key, arity, part, columns, blob in zip(*plain, blobs, strict=True):
        buffer = blob.as_buffer()
        data = np.frombuffer(buffer, np.uint64) if kind != Kind.STATS else np.empty(0, np.uint64)
        width = max(1, (arity + 1) // 2)
        size = len(data) // width
        yield Row(shard, kind, key, arity, part, columns, buffer), tuple(data[i * size : (i + 1) * size] for i in range(width))


def read_relations(arrays: Arrays, table: pa.Table, update: str) -> dict[str, dict[Key, Relation]]:
    """The relations of a shard, by kind and key; of what arrived, only what arrived in this update."""
    orders: dict[tuple[str, Key, str], dict[Order, Words]] = {}
    arities: dict[Key, int] = {}
    for row, words in read_rows(table):
        if row.kind == Kind.ARRIVED and row.part != update:
            continue
        key, part = key_of(row.key), "base" if row.kind == Kind.ARRIVED else row.part
        arities[key] = row.arity
        orders.setdefault((row.kind, key, part), {})[_order(row.columns)] = words
    runs: dict[tuple[str, Key], dict[str, Run]] = {}
    for (kind, key, part), found in orders.items():
        natural = found.pop(tuple(range(arities[key])))
        runs.setdefault((kind, key), {})[part] = Run(arrays, arities[key], natural, found)
    out: dict[str, dict[Key, Relation]] = {}
    for (kind, key), parts in runs.items():
        out.setdefault(kind, {})[key] = Relation(parts["base"], parts.get("plus"), parts.get("minus"))
    return out


def _show(order: Order) -> str:
    return ",".join(map(str, order))


def _order(text: str) -> Order:
    return tuple(map(int, text.split(","))) if text else ()


def _bytes(words: Words) -> bytes:
    return words[0].tobytes() if len(words) == 1 else b"".join(w.tobytes() for w in words)
