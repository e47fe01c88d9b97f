"""Micro-batches of Spark Structured Streaming measured: what they add to a stream's own work, beside backgrounds of two sizes.

    batch  =  stream (push and advance)  +  rest (Spark's planning and logs, rows to the driver, answers and state to disk)

A file of a second of the mobility scenario is one micro-batch. An empty one is the same source into a function that does
nothing: what Spark takes for itself. The first batches, in which Spark compiles, do not count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import pyarrow.parquet as pq

from evergraph import KnowledgeGraph
from evergraph.bench.windows import mobility
from evergraph.bench.windows.mobility import Mobility
from evergraph.stream import Stream

WARM = 5
"""Batches that do not count."""


@dataclass(slots=True)
class Batches:
    """Seconds of each micro-batch beside one background; without one they are empty."""

    background: int
    triples: int = 0
    batch: list[float] = field(default_factory=list)
    stream: list[float] = field(default_factory=list)
    answers: int = 0

    @property
    def rest(self) -> list[float]:
        return [batch - stream for batch, stream in zip(self.batch, self.stream, strict=True)]

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "median": {"batch": median(self.batch), "rest": median(self.rest)}}


class Timed(Stream):
    """A stream that knows how long it worked until each of its advances was done."""

    def __init__(self, kg: KnowledgeGraph) -> None:
        super().__init__(kg)
        self.worked: list[float] = []
        self._pushing = 0.0

    def push(self, *given: Any, **named: Any) -> None:
        started = perf_counter()
        super().push(*given, **named)
        self._pushing += perf_counter() - started

    def advance(self, *given: Any, **named: Any) -> Any:
        started = perf_counter()
        found = list(super().advance(*given, **named))
        self.worked.append(self._pushing + perf_counter() - started)
        self._pushing = 0.0
        return iter(found)


def measure(backgrounds: Sequence[int], batches: int, rate: int, say: Callable[[str], None], seed: int = 0) -> list[Batches]:
    """Nothing at all, then each background."""
    from evergraph.engines.spark import make_session

    session = make_session("local[2]")
    found = []
    with TemporaryDirectory(prefix="evergraph-bench-") as scratch:
        for number, background in enumerate([0, *backgrounds]):
            say(f"micro-batches beside {background:,} facts" if background else "empty micro-batches")
            folder, scenario = Path(scratch) / str(number), Mobility(background or backgrounds[0], rate, seed)
            (folder / "source").mkdir(parents=True)
            for second in range(WARM + batches):
                pq.write_table(scenario.second(second), folder / "source" / f"{second:05}.parquet")
            found.append(_run(session, folder, background, scenario))
    return found


def _run(session: Any, folder: Path, background: int, scenario: Mobility) -> Batches:
    out, source = Batches(background), str(folder / "source")
    frame = session.readStream.schema(session.read.parquet(source).schema).option("maxFilesPerTrigger", 1).parquet(source)
    writer: Any = frame.writeStream.foreachBatch(lambda rows, number: None)
    stream: Timed | None = None
    if background:
        kg = KnowledgeGraph(mobility.rules())
        kg.update(insert=scenario.background())
        out.triples = len(kg)
        stream = Timed(kg)
        stream.register(mobility.query())
        writer = stream.writeStream(frame).format("parquet").option("path", str(folder / "answers"))
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination()
    spent = [progress["durationMs"] for progress in query.recentProgress]
    took = [one["triggerExecution"] / 1000 for one in spent if "addBatch" in one]
    out.batch = took[WARM:]
    out.stream = stream.worked[WARM : len(took)] if stream is not None else [0.0] * len(out.batch)
    out.answers = sum(pq.read_metadata(path).num_rows for path in folder.glob("answers/*/*.parquet"))
    return out
