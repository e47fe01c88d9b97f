"""What a continuous query answers at a tick: all of it, or what is new or gone since the tick before."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rdflib.graph import Graph
from rdflib.term import Variable

from evergraph.sparql.answers import Answers as Result
from evergraph.sparql.lexicon import Lexicon, rdflib_terms
from evergraph.sparql.solutions import UNBOUND, Solutions
from evergraph.stream.csparql import Report
from evergraph.stream.times import datetime_of, seconds_of
from evergraph.terms import Dictionary, Ids

OWN = ("time", "query", "change")
"""Columns that say which answers these are."""


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers of one query at one tick. Iterating gives rows of rdflib terms; of a CONSTRUCT, triples."""

    query: str
    instant: int
    """The tick, the end of the windows, in microseconds since 1970."""
    report: Report
    result: Result

    @property
    def timestamp(self) -> int | float:
        """The tick in seconds since 1970."""
        return seconds_of(self.instant)

    @property
    def time(self) -> datetime:
        return datetime_of(self.instant)

    @property
    def change(self) -> str:
        """Whether these are `all` answers, or those that are `new` or `gone`."""
        return {Report.ALL: "all", Report.NEW: "new", Report.GONE: "gone"}[self.report]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.result)

    def __len__(self) -> int:
        return len(self.result)

    def __bool__(self) -> bool:
        return bool(self.result)

    def to_arrow(self) -> pa.Table:
        """`time`, `query` and `change`, then the answers as columns of N-Triples terms; an ASK has the column `answer`.

        A variable called like one of the first three gets an underscore.
        """
        table = self.result.to_arrow()
        size = table.num_rows
        own = [
            pa.array([self.instant] * size, pa.timestamp("us", "UTC")),
            pa.array([self.query] * size, pa.string()),
            pa.array([self.change] * size, pa.string()),
        ]
        names = [f"{name}_" if name.lower() in OWN else name for name in table.column_names]
        columns = [column if pa.types.is_boolean(column.type) else column.cast(pa.string()) for column in table.columns]
        return pa.table([*own, *columns], names=[*OWN, *names])


def changed(report: Report, kind: str, before: pa.Table, now: pa.Table) -> Result | None:
    """What is new or gone between the answers of two ticks, as bags; None if nothing is. An ASK tells when it has changed."""
    if kind == "ASK":
        answer = now.column(0)[0].as_py()
        was = before.column(0)[0].as_py() if before.num_rows else False
        wanted = answer and not was if report == Report.NEW else was and not answer
        return Result(kind, ask=answer) if wanted else None
    some, others = (now, before) if report == Report.NEW else (before, now)
    table = less(some, others)
    return result_of(kind, table) if table.num_rows else None


def less(some: pa.Table, others: pa.Table) -> pa.Table:
    """The rows of one table that another does not have as often. Cost: a sort of both."""
    if not others.num_rows or not some.num_rows:
        return some
    if not some.num_columns:
        return some.slice(others.num_rows)
    codes = _codes(pa.concat_tables([some, others.select(some.column_names)]))
    size = len(some)
    counts = np.bincount(codes[size:], minlength=int(codes.max()) + 1)
    order = np.argsort(codes[:size], kind="stable")
    ordered = codes[:size][order]
    rank = np.arange(size) - np.searchsorted(ordered, ordered)
    return some.take(pa.array(np.sort(order[rank >= counts[ordered]])))


def _codes(table: pa.Table) -> Any:
    """A number for each row, the same for rows that are the same."""
    columns = []
    for column in table.columns:
        encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
        columns.append(encoded.indices.to_numpy().astype(np.int64))
    _, codes = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
    return codes.reshape(-1)


def result_of(kind: str, table: pa.Table) -> Result:
    """Answers that are given as columns of N-Triples terms."""
    if kind == "CONSTRUCT":
        graph = Graph()
        for triple in zip(*(rdflib_terms(column.combine_chunks()) for column in table.columns), strict=True):
            graph.add(triple)
        return Result(kind, graph=graph)
    terms = Dictionary()
    columns = {name: _ids(terms, table.column(name)) for name in table.column_names}
    return Result(kind, [Variable(name) for name in columns], Solutions(table.num_rows, columns), Lexicon(terms))


def _ids(terms: Dictionary, column: pa.ChunkedArray) -> Ids:
    ids = np.full(len(column), UNBOUND)
    bound = pc.is_valid(column).to_numpy(zero_copy_only=False) if len(column) else np.zeros(0, bool)
    ids[bound] = terms.encode_column(column.drop_null().combine_chunks())
    return ids
