"""`evergraph stream`: continuous queries over timestamped triples, and a store behind them.

Time is that of the facts, however fast a replay runs: a tick is shown when facts after it have come. Facts that come too late
and lines that cannot be read are skipped, counted and saved.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from evergraph.cli.common import EngineName, StoreArgument, check_target, count_of, text_in
from evergraph.cli.ticks import TickFormat, Ticks
from evergraph.cli.updating import opened
from evergraph.errors import UserError

if TYPE_CHECKING:
    import pyarrow as pa

    from evergraph.formats.ntriples import BadLine
    from evergraph.stream.sources import Batch

LATE = UserError("EG605", "the fact came too late", "allow for it with --lateness")


class SourceFormat(StrEnum):
    NT = "nt"
    NQ = "nq"
    JSON = "json"


def stream(
    store: StoreArgument,
    query: Annotated[list[Path], typer.Option("--query", "-q", help="A file with a continuous query; give it several times")],
    source: Annotated[
        list[str], typer.Option("--source", "-s", help="Timestamped triples: .nt .nq .jsonl, a folder, or - for standard input")
    ],
    format_: Annotated[TickFormat, typer.Option("--format", help="How to print the answers")] = TickFormat.TABLE,
    lateness: Annotated[str, typer.Option("--lateness", help="How much older than the latest a fact may be: 500ms, 5s")] = "0s",
    speed: Annotated[
        float | None, typer.Option("--speed", help="1 replays in real time, 10 ten times as fast; if not given, at once")
    ] = None,
    algorithm: Annotated[
        str,
        typer.Option("--algorithm", help="auto, expiry, recompute, declarative, dred, counting or backward-forward"),
    ] = "auto",
    rejects: Annotated[Path, typer.Option("--rejects", help="Where bad lines and late facts are saved")] = Path("rejected.txt"),
    source_format: Annotated[
        SourceFormat | None, typer.Option("--source-format", help="If no file ending says: timestamped lines, or JSON lines")
    ] = None,
    until: Annotated[str | None, typer.Option("--until", help="Stop at this time: 2026-11-16T08:00:00Z, or seconds")] = None,
) -> None:
    """Answer continuous queries over a stream of timestamped triples; the store is their background, and stays as it is."""
    from evergraph.stream.pace import Pace
    from evergraph.stream.sources import read_blocks, source_files
    from evergraph.stream.times import duration_of, instant_of, seconds_of

    texts = [(str(file), text_in(file)) for file in query]
    late, end = duration_of(lateness), None if until is None else instant_of(until)
    files = [file for path in source for file in source_files(path, source_format)]
    if speed is not None and not (speed > 0 and math.isfinite(speed)):
        raise UserError("EG302", f"not a speed: {speed}", "1 is real time, 10 ten times as fast")
    check_target(rejects)
    kg: Any = opened(store, EngineName.MEMORY, "")
    running = kg.stream(algorithm=algorithm, lateness=seconds_of(late))
    asked = [running.register(text, source=file) for file, text in texts]
    skipped = Skipped(rejects)
    blocks = (block for file in files for block in read_blocks(file, partial(skipped.line, str(file)), source_format))
    replay = Replay(running, {str(name).strip("<>") for one in asked for name in one.streams}, Ticks(format_), skipped)
    try:
        replay.run(Pace(speed, _tell_behind).paced(blocks) if speed is not None else blocks, late, end)
    except BrokenPipeError:  # who reads the answers has seen enough
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    finally:
        skipped.tell()


def _tell_behind(seconds: float) -> None:
    typer.echo(f"{seconds:.1f} s behind the source", err=True)


class Replay:
    """Pushes facts, moves time on, and shows what queries answer at each tick."""

    def __init__(self, running: Any, streams: set[str], ticks: Ticks, skipped: Skipped) -> None:
        self.running, self.ticks, self.skipped = running, ticks, skipped
        self.streams = streams or {""}
        """The streams that queries read."""
        self.default = next(iter(self.streams)) if len(self.streams) == 1 else ""
        """The stream of facts that name none: the only one there is, if queries read one."""

    def run(self, blocks: Iterable[list[Batch]], late: int, end: int | None) -> None:
        """All facts, or those up to an end: then no tick after it is shown."""
        from evergraph.stream.times import seconds_of

        for block in blocks:
            for batch in block if end is None else _up_to(block, end):
                self._push(batch)
            if end is not None and max(int(batch.timestamps.max()) for batch in block) - late > end:
                self._show(self.running.advance(to=seconds_of(end)), end)
                return
            self._show(self.running.advance(), end)
        self._show(self.running.advance(final=True), end)

    def _push(self, batch: Batch) -> None:
        import pyarrow as pa

        name = batch.stream or self.default
        if name not in self.streams:
            self.skipped.unread(name, len(batch))
            return
        facts = pa.table(list(batch.columns), ["subject", "predicate", "object"])
        self.running.push(facts, batch.timestamps, stream=name or None, on_late=self.skipped.late)

    def _show(self, ticks: Iterable[Any], end: int | None) -> None:
        from evergraph.stream.times import instant_of

        for answers in ticks:
            if end is None or instant_of(answers.time) <= end:
                self.ticks.show(answers)


def _up_to(block: list[Batch], end: int) -> Iterator[Batch]:
    """The facts that are not after an instant."""
    import numpy as np

    for batch in block:
        rows = batch.timestamps <= end
        if rows.all():
            yield batch
        elif rows.any():
            yield batch.take(np.flatnonzero(rows))


class Skipped:
    """What was passed by: bad lines, facts that came too late, and facts of streams that nobody reads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.bad_lines = self.late_facts = 0
        self.unread_facts: dict[str, int] = {}
        self._out: TextIO | None = None

    def line(self, file: str, bad: BadLine) -> None:
        from evergraph.formats.files import rejected

        self.bad_lines += 1
        self._save(rejected(file, bad))

    def late(self, facts: pa.Table) -> None:
        """Late facts, as timestamped lines below a comment each."""
        import pyarrow as pa

        from evergraph.stream.times import seconds_of

        self.late_facts += facts.num_rows
        stamps = facts.column("timestamp").cast(pa.int64()).to_pylist()
        columns = (facts.column(name).to_pylist() for name in ("subject", "predicate", "object", "stream"))
        for stamp, *triple, name in zip(stamps, *columns, strict=True):
            graph = f" <{name}>" if name else ""
            self._save(f"# {LATE}\n{seconds_of(stamp)} {' '.join(triple)}{graph} .\n")

    def unread(self, name: str, count: int) -> None:
        self.unread_facts[name] = self.unread_facts.get(name, 0) + count

    def tell(self) -> None:
        """On standard error, if anything was skipped."""
        if self._out is not None:
            self._out.close()
        counts = [(self.bad_lines, "bad line"), (self.late_facts, "late fact")]
        if told := " and ".join(count_of(number, what) for number, what in counts if number):
            typer.echo(f"{told} skipped, saved to {self.path}", err=True)
        for name, count in self.unread_facts.items():
            what = f"the stream {name}" if name else "the default stream"
            typer.echo(f"{count_of(count, 'fact')} of {what} skipped: no query reads it", err=True)

    def _save(self, text: str) -> None:
        try:
            if self._out is None:
                self._out = self.path.open("w", encoding="utf-8", buffering=1)
            self._out.write(text)
        except OSError as error:
            hint = "check the folder and its permissions"
            raise UserError("EG101", f"cannot write {self.path}: {error.strerror}", hint) from error
