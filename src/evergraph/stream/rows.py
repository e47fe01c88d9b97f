"""The rows of a streaming DataFrame: those that are facts with a timestamp, and those that are not, with the reason.

A row that is no fact must not stop a stream that runs for months, so nothing here raises for one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evergraph.errors import UserError
from evergraph.formats.ntriples import canonical_terms
from evergraph.inputs import COLUMNS
from evergraph.stream.times import Instants, instant_of, text_of
from evergraph.terms import from_object

FIRST, LAST = (instant_of(datetime(year, 1, 1, tzinfo=UTC)) for year in (1, 9999))
"""Instants that can be written down."""
NO_TIME, NO_YEAR = "no timestamp", "a timestamp before the year 1 or after 9998"
Reasons = dict[int, str]
"""Why rows are no facts, by their numbers."""
REJECTED = pa.schema([(name, pa.string()) for name in (*COLUMNS, "timestamp", "stream", "reason")])


@dataclass(frozen=True, slots=True)
class Rows:
    """Facts in the order of their times."""

    triples: pa.Table
    times: Instants
    streams: pa.Array
    """The stream of each, as it is known."""

    def __len__(self) -> int:
        return len(self.times)

    def slices(self, size: int) -> Iterator[Rows]:
        """Some after the other, so that no more wait than may."""
        for at in range(0, len(self), size):
            rows = slice(at, at + size)
            yield Rows(self.triples.slice(at, size), self.times[rows], self.streams.slice(at, size))

    def by_stream(self) -> Iterator[tuple[str, pa.Table, Instants]]:
        """The stream that has the first fact comes first."""
        for name in self.streams.unique().to_pylist():
            mask = pc.equal(self.streams, name)
            yield name, self.triples.filter(mask), self.times[mask.to_numpy(zero_copy_only=False)]


def sort_out(table: pa.Table, stream_named: Callable[[str | None], str]) -> tuple[Rows, pa.Table]:
    """The facts among rows, and the others. Cost: a sort, and a look at each distinct term that is spelled unusually."""
    size, reasons = table.num_rows, dict[int, str]()
    for name, check in zip(COLUMNS, (_subject, _predicate, from_object), strict=True):
        _check_terms(table.column(name), partial(_named, name, check), reasons)
    times = _times(table.column("timestamp"), reasons)
    streams = table.column("stream") if "stream" in table.column_names else pa.chunked_array([pa.nulls(size, pa.string())])
    names = _checked(streams, stream_named, reasons)
    good = np.ones(size, bool)
    good[list(reasons)] = False
    order = np.flatnonzero(good)
    order = order[np.argsort(times[order], kind="stable")]
    rows = Rows(table.select(COLUMNS).take(order), times[order], pa.array(names[order], pa.string()))
    return rows, _rejected(table.filter(pa.array(~good)), [reasons[row] for row in sorted(reasons)])


def late(table: pa.Table) -> pa.Table:
    """Facts that came too late, among what is rejected."""
    times = pa.array([text_of(t) for t in table.column("timestamp").cast(pa.int64()).to_pylist()], pa.string())
    table = table.set_column(table.column_names.index("timestamp"), "timestamp", times)
    return table.append_column("reason", pa.array(["too late"] * table.num_rows, pa.string())).cast(REJECTED)


def _check_terms(column: pa.ChunkedArray, check: Callable[[Any], Any], reasons: Reasons) -> None:
    """Of IRIs in canonical spelling nothing is to be said wherever they stand."""
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        _checked(column, check, reasons)
        return
    plain = pc.and_(canonical_terms(column), pc.starts_with(column, "<").fill_null(False))
    odd = np.flatnonzero(~plain.to_numpy())
    found: Reasons = {}
    _checked(column.take(odd), check, found)
    for place, reason in found.items():
        reasons.setdefault(int(odd[place]), reason)


def _checked(column: pa.ChunkedArray, check: Callable[[Any], Any], reasons: Reasons) -> Any:
    """What becomes of each value; None where it fails, which is the reason for its row unless there is one already."""
    encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    found, failed = np.empty(len(encoded.dictionary), object), {}
    for number, value in enumerate(encoded.dictionary.to_pylist()):
        try:
            found[number] = check(value)
        except UserError as error:
            failed[number] = error.message
        except (ValueError, TypeError, OverflowError) as error:
            failed[number] = str(error)
    places = encoded.indices.to_numpy()
    for number, reason in failed.items():
        for row in np.flatnonzero(places == number).tolist():
            reasons.setdefault(row, reason)
    return found[places]


def _times(column: pa.ChunkedArray, reasons: Reasons) -> Instants:
    """Microseconds since 1970; 0 where there are none. Spark's own timestamps need no look at each."""
    if not pa.types.is_timestamp(column.type):
        found = _checked(column, _instant, reasons)
        return np.array([0 if instant is None else instant for instant in found], np.int64)
    micros = column.cast(pa.timestamp("us", column.type.tz), safe=False).cast(pa.int64())
    times: Instants = micros.fill_null(0).to_numpy()
    for row in np.flatnonzero(micros.is_null().to_numpy()).tolist():
        reasons.setdefault(row, NO_TIME)
    for row in np.flatnonzero((times < FIRST) | (times >= LAST)).tolist():
        reasons.setdefault(row, NO_YEAR)
    return times


def _instant(value: Any) -> int:
    if value is None:
        raise ValueError(NO_TIME)
    instant = instant_of(value)
    if not FIRST <= instant < LAST:
        raise ValueError(NO_YEAR)
    return instant


def _named(name: str, check: Callable[[Any], str], value: Any) -> str:
    if value is None:
        raise ValueError(f"no {name}")
    return check(value)


def _subject(value: Any) -> str:
    term = from_object(value)
    if term.startswith('"'):
        raise ValueError(f"a literal as subject: {term}")
    return term


def _predicate(value: Any) -> str:
    term = from_object(value)
    if not term.startswith("<"):
        raise ValueError(f"a predicate that is no IRI: {term}")
    return term


def _rejected(table: pa.Table, reasons: list[str]) -> pa.Table:
    """Rows as text, as far as they have the columns."""
    columns = [
        [None if value is None else str(value) for value in _values(table.column(name))]
        if name in table.column_names
        else [None] * len(reasons)
        for name in REJECTED.names[:-1]
    ]
    return pa.table([pa.array(column, pa.string()) for column in (*columns, reasons)], schema=REJECTED)


def _values(column: pa.ChunkedArray) -> list[Any]:
    """Timestamps as text, those that have no year as microseconds."""
    if not pa.types.is_timestamp(column.type):
        return list(column.to_pylist())
    micros = column.cast(pa.timestamp("us", column.type.tz), safe=False).cast(pa.int64()).to_pylist()
    return [text_of(instant) if instant is not None and FIRST <= instant < LAST else instant for instant in micros]
