"""What is pushed into a stream: its facts, and when they happened."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from evergraph.errors import UserError
from evergraph.inputs import COLUMNS
from evergraph.stream.times import SECOND, Instants, instant_of


def triples_of(facts: Any) -> Any:
    """A frame without its timestamps."""
    if isinstance(facts, pa.Table) and facts.column_names != list(COLUMNS):
        return facts.select(COLUMNS)
    if hasattr(facts, "columns") and "timestamp" in getattr(facts, "columns", ()):
        return facts[list(COLUMNS)]
    return facts


def times_of(facts: Any, timestamp: Any) -> int | Instants:
    """When facts happened: one instant for all, or one for each."""
    if timestamp is None:
        frame = facts if isinstance(facts, pa.Table) else pa.Table.from_pandas(facts) if hasattr(facts, "iloc") else None
        if frame is None or "timestamp" not in frame.column_names:
            raise UserError("EG603", "the facts have no timestamp", "say when they happened: push(facts, timestamp)")
        return _micros(frame.column("timestamp"))
    return timestamp.astype(np.int64) if isinstance(timestamp, np.ndarray) else instant_of(timestamp)


def _micros(column: Any) -> Instants:
    """A column of timestamps, or of seconds since 1970, in microseconds."""
    if pa.types.is_timestamp(column.type):
        times = column.cast(pa.timestamp("us")).cast(pa.int64())
    elif pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        return np.asarray(np.round(column.to_numpy() * SECOND), np.int64)
    else:
        return np.array([instant_of(value) for value in column.to_pylist()], np.int64)
    found: Instants = times.to_numpy()
    return found
