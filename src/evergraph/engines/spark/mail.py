"""Facts on their way between shards: rows of a Spark frame that hold sorted arrays as binary values, never single facts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from evergraph.engines.arrays import Array, Words
from evergraph.plan.model import Key

DDL = "shard int, kind string, key string, arity int, words binary"
SCHEMA = pa.schema(
    [("shard", pa.int32()), ("kind", pa.string()), ("key", pa.string()), ("arity", pa.int32()), ("words", pa.binary())]
)


class Kind(StrEnum):
    DERIVED = "derived"
    """Facts that some shard derived, or copies of facts that live elsewhere too."""
    EXPLICIT = "explicit"
    """Facts that become explicit at their owner."""
    RETRACT = "retract"
    """Facts that cease to be explicit at their owner."""
    DOUBT = "doubt"
    """Facts that have lost an instance somewhere, for their owner to decide."""
    GONE = "gone"
    """Facts that went, for every shard."""
    CHECK = "check"
    """Facts to look for proofs of, for every shard."""
    PROVED = "proved"
    """Facts that follow, for every shard."""
    INSTANCES = "instances"
    """Heads of instances that were lost or won, for their owners; with each the highest rank in the body and how many."""
    RANKED = "ranked"
    """Facts that come, with their ranks."""
    COPY = "copy"
    """Facts that are there, with their ranks, for further homes."""
    WON = "won"
    """Heads of instances that updates which overlap have won, for their owners, as in `INSTANCES`."""
    LOST = "lost"
    """The same of instances that they have lost."""
    CALL = "call"
    """Nothing: it only makes the shard take part."""
    ANSWER = "answer"
    """What a shard tells the driver."""


MARKED = (Kind.INSTANCES, Kind.RANKED, Kind.COPY, Kind.WON, Kind.LOST)
"""Letters whose rows are followed by a word more, a rank and a number (`engines.marks`). A row may stand there twice."""


class Letter(NamedTuple):
    shard: int
    """The label of the shard it goes to."""
    kind: str
    key: str
    arity: int
    words: bytes


def name_of(key: Key) -> str:
    """A key as text: predicates with a leading #."""
    return f"#{key}" if isinstance(key, int) else key


def key_of(name: str) -> Key:
    return int(name[1:]) if name.startswith("#") else name


def letter(shard: int, kind: Kind, key: Key, arity: int, words: Words) -> Letter:
    data = words[0].tobytes() if len(words) == 1 else b"".join(w.tobytes() for w in words)
    return Letter(shard, kind, name_of(key), arity, data)


def to_table(letters: Iterable[Letter]) -> pa.Table:
    columns = list(zip(*letters, strict=True)) or [()] * len(SCHEMA)
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)


def letters(mail: pa.Table) -> Iterator[Letter]:
    return (Letter(*row) for row in zip(*(mail.column(name).to_pylist() for name in SCHEMA.names), strict=True))


def read(mail: pa.Table, wanted: Sequence[Kind]) -> Iterator[tuple[str, Key, int, Words]]:
    """Kind, key, arity and rows of each letter of some kinds; the rows are views on Arrow's buffers.

    Rows of letters that are `MARKED` come with the word that follows them.
    """
    kinds, keys, arities = (mail.column(name).to_pylist() for name in ("kind", "key", "arity"))
    for kind, key, arity, blob in zip(kinds, keys, arities, mail.column("words"), strict=True):
        if kind in wanted:
            data = np.frombuffer(blob.as_buffer(), np.uint64)
            yield kind, key_of(key), arity, cut(data, width_of(arity) + (kind in MARKED))


def width_of(arity: int) -> int:
    """How many words a row takes."""
    return max(1, (arity + 1) // 2)


def cut(data: Array, width: int) -> Words:
    """One array of all words as an array per word of a row."""
    size = len(data) // width
    return tuple(data[i * size : (i + 1) * size] for i in range(width))
