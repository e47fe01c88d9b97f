"""Spark Structured Streaming into and out of a `Stream`, the way Spark's own `DataFrame.writeStream` looks.

    stream.writeStream(frame).format("delta").option("checkpointLocation", path).trigger(availableNow=True).start(folder)

In words: Spark cuts the source into micro-batches and remembers how far it is. In the driver the rows of a batch are pushed in
the order of their timestamps, the stream advances to its watermark, answers are written, and the state of the stream is saved
beside Spark's own checkpoint:

    checkpoint/evergraph/state/N      the stream before batch N; the last two are kept
    checkpoint/evergraph/rejected/    rows that are no facts and facts that came too late, with the reason
    checkpoint/evergraph/id           by which Delta tables know whose batches they have

Exactly once: Spark runs a batch again if it was killed before it had noted that it was done. The batch then finds the state
that it found the first time, and writes the same under the same names. So no tick is lost and none is doubled.
Trap: what comes after the watermark waits, also when `availableNow` has read everything there is; the next run goes on with it.
The checkpoint is a folder that the driver can write.
"""

from __future__ import annotations

import atexit
import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from urllib.parse import unquote, urlparse
from uuid import uuid4
from weakref import WeakKeyDictionary

import pyarrow as pa
import pyarrow.parquet as pq

from evergraph.errors import UserError
from evergraph.inputs import COLUMNS
from evergraph.stream.answers import Answers
from evergraph.stream.checkpoint import load, remove, restore, save, state_of, write_whole
from evergraph.stream.csparql import parse_continuous
from evergraph.stream.rows import REJECTED, Rows, late, sort_out
from evergraph.stream.sinks import Console, Delta, Files, Sink, tables_of
from evergraph.stream.stream import Stream

FILES = ("parquet", "json", "csv")
FORMATS = (*FILES, "delta", "console")
MOST_ROWS = 100_000
"""Rows that are pushed before the stream advances: a batch may have more than may wait."""
KEPT = 2
_running: WeakKeyDictionary[Stream, Any] = WeakKeyDictionary()
"""The streaming query that each stream was last started by."""


class Writer:
    """What `Stream.writeStream` returns; its methods are those of Spark's `DataStreamWriter`."""

    def __init__(self, stream: Stream, frame: Any) -> None:
        if not getattr(frame, "isStreaming", False):
            raise UserError("EG105", "not a streaming DataFrame", "make one: spark.readStream.schema(…).json(folder)")
        missing = [name for name in (*COLUMNS, "timestamp") if name not in frame.columns]
        if missing:
            hint = f"name the columns {', '.join(COLUMNS)}, timestamp, and stream if there are several"
            raise UserError("EG105", f"the frame has no column {missing[0]!r}", hint)
        self._stream, self._frame = stream, frame
        self._format, self._trigger, self._name = "parquet", dict[str, Any](), ""
        self._options: dict[str, str] = {}

    def format(self, source: str) -> Writer:
        """parquet, json, csv, delta or console."""
        if source not in FORMATS:
            raise UserError("EG302", f"answers are not written as {source!r}", f"use one of {', '.join(FORMATS)}")
        self._format = source
        return self

    def option(self, key: str, value: Any) -> Writer:
        """`checkpointLocation`, `path`; `header` of csv; `numRows` and `truncate` of the console. Others have no effect."""
        self._options[key.lower()] = str(value)
        return self

    def options(self, **options: Any) -> Writer:
        for key, value in options.items():
            self.option(key, value)
        return self

    def outputMode(self, mode: str) -> Writer:
        """Only `append`: a query tells by itself which answers are new or gone."""
        if mode.lower() != "append":
            raise UserError("EG302", f"answers are not written in the mode {mode!r}", "use append")
        return self

    def queryName(self, name: str) -> Writer:
        """The name that Spark shows."""
        self._name = name
        return self

    def trigger(self, **when: Any) -> Writer:
        """`processingTime="5 seconds"`, `availableNow=True` or `once=True`."""
        self._trigger = when
        return self

    def start(
        self,
        path: Any = None,
        format: str | None = None,
        outputMode: str | None = None,
        queryName: str | None = None,
        **options: Any,
    ) -> Any:
        """Begin, or go on where a checkpoint says; returns Spark's `StreamingQuery`."""
        self.options(**options).format(format or self._format).outputMode(outputMode or "append").queryName(
            queryName or self._name
        )
        if (running := _running.get(self._stream)) is not None and running.isActive:
            hint = "stop it first, or read both sources as one: frame.unionByName(other)"
            raise UserError("EG604", "the stream is run by another streaming query", hint)
        if "stream" not in self._frame.columns:
            self._stream._stream_named(None)
        checkpoint = self._checkpoint()
        job = Job(self._stream, checkpoint)
        job.sink = self._sink(path or self._options.get("path"), job.application)
        wanted = [name for name in (*COLUMNS, "timestamp", "stream") if name in self._frame.columns]
        writer = self._frame.select(*wanted).writeStream.foreachBatch(job).option("checkpointLocation", str(checkpoint))
        writer = writer.trigger(**self._trigger) if self._trigger else writer
        query = (writer.queryName(self._name) if self._name else writer).start()
        _running[self._stream] = query
        return query

    def _checkpoint(self) -> Path:
        given = self._options.get("checkpointlocation")
        if given is None and self._format == "console":
            given = mkdtemp(prefix="evergraph-")
            atexit.register(shutil.rmtree, given, ignore_errors=True)
        if given is None:
            raise UserError("EG302", "no checkpointLocation is given", "say .option('checkpointLocation', folder)")
        return local(given)

    def _sink(self, path: Any, application: str) -> Sink:
        if self._format == "console":
            return Console(self._options)
        if path is None:
            raise UserError("EG302", "where do the answers go?", "say .start(folder)")
        return Delta(str(path), application) if self._format == "delta" else Files(local(path), self._format, self._options)


def local(path: Any) -> Path:
    """A folder of this machine, which may be written as a URL."""
    address = urlparse(str(path))
    if address.scheme not in ("", "file"):
        raise UserError("EG302", f"not a folder of this machine: {path}", "give a path that the driver can write")
    return Path(unquote(address.path) if address.scheme else str(path)).absolute()


class Job:
    """What Spark calls with each micro-batch."""

    sink: Sink

    def __init__(self, stream: Stream, checkpoint: Path) -> None:
        """Take up the last state that there is; without one, the stream as it is now is what batch 0 finds."""
        self.stream, self.folder = stream, checkpoint / "evergraph"
        self._thread = threading.get_ident()
        for left in self.folder.glob("state/.*"):  # by a job that was killed
            shutil.rmtree(left)
        self._next: int | None = max(self._states(), default=None)
        """The batch that the stream is ready for."""
        if self._next is not None:
            restore(stream, load(self._state(self._next)))
        else:
            save(state_of(stream), self._state(0))
            self._next = 0
        mark = self.folder / "id"
        if not mark.exists():
            write_whole(mark, lambda path: path.write_text(str(uuid4())))
        self.application = mark.read_text()

    def __call__(self, frame: Any, batch: int) -> None:
        self._take_queries()
        if self._next != batch:
            restore(self.stream, load(self._state(batch)))
        self._next = None
        rows, rejected = sort_out(frame.toArrow(), self.stream._stream_named)
        self.stream.rejected += rejected.num_rows
        out = [rejected]
        answers = tables_of(self._answers(rows, lambda table: out.append(late(table))))
        self.sink.write(batch, answers)
        self._keep_rejected(batch, pa.concat_tables(out))
        save(state_of(self.stream), self._state(batch + 1))
        self._next = batch + 1
        for old in sorted(self._states())[:-KEPT]:
            remove(self._state(old))

    def _answers(self, rows: Rows, on_late: Callable[[pa.Table], None]) -> list[Answers]:
        """Push rows, which are in order, and advance to the watermark. No row makes another one late that is in its batch."""
        stream, found = self.stream, list[Answers]()
        for some in rows.slices(min(MOST_ROWS, stream.capacity)):
            for name, triples, times in some.by_stream():
                stream.push(triples, times, name, on_late)
            found += stream.advance()
        return found

    def _keep_rejected(self, batch: int, table: pa.Table) -> None:
        path = self.folder / "rejected" / f"batch-{batch:08}.parquet"
        if table.num_rows:
            write_whole(path, partial(pq.write_table, table.cast(REJECTED)))

    def _take_queries(self) -> None:
        """Parsed queries are for one thread, and Spark calls in one of its own."""
        if self._thread != threading.get_ident():
            self._thread = threading.get_ident()
            for registered in self.stream.queries.values():
                again = parse_continuous(registered.continuous.text)
                registered.continuous = replace(registered.continuous, query=again.query)

    def _state(self, batch: int) -> Path:
        return self.folder / "state" / str(batch)

    def _states(self) -> list[int]:
        folder = self.folder / "state"
        return [int(path.name) for path in folder.iterdir() if path.name.isdigit()] if folder.exists() else []
