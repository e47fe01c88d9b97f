"""A job of Spark Structured Streaming over a store, which may be killed at a step; run as a program it is another process."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa

from evergraph import KnowledgeGraph, Program
from evergraph.stream import Stream, checkpoint, sinks
from evergraph.stream import spark as job
from evergraph.stream.sinks import Delta, Files
from survival import forked

EX = "http://example/"
POSITIONS, DELAYS = f"{EX}positions", f"{EX}delays"
PROGRAM = Program.parse("""
@prefix ex: <http://example/> .
[?x, ex:isIn, ?z] :- [?x, ex:isIn, ?y], [?y, ex:isIn, ?z] .
""")
BACKGROUND = "\n".join(f"<{EX}{a}> <{EX}isIn> <{EX}{b}> ." for a, b in [("s1", "city1"), ("s2", "city2"), ("city1", "land")])
QUERIES = [
    f"""REGISTER QUERY where AS SELECT ?who ?place
    FROM STREAM <{POSITIONS}> [RANGE 4s STEP 1s] {{ ?who <{EX}isIn> ?place FILTER (STRSTARTS(STR(?who), "{EX}u")) }}""",
    f"""REGISTER QUERY <{EX}came> AS SELECT ISTREAM ?who ?time
    FROM STREAM <{POSITIONS}> [RANGE 4s STEP 1s] {{ ?who <{EX}isIn> <{EX}land> OPTIONAL {{ ?who <{EX}at> ?time }} }}""",
    f"""REGISTER QUERY anyone COMPUTE EVERY 3s AS ASK
    FROM STREAM <{POSITIONS}> [RANGE 4s STEP 1s] {{ ?who <{EX}isIn> <{EX}land> }}""",
    f"""REGISTER STREAM <{EX}waits> AS CONSTRUCT {{ ?who <{EX}waitsFor> ?train }}
    FROM STREAM <{POSITIONS}> [RANGE 4s STEP 1s] FROM STREAM <{DELAYS}> [RANGE 6s STEP 2s]
    {{ ?who <{EX}isIn> ?train . ?train <{EX}late> ?minutes }}""",
    f"""REGISTER QUERY waiting AS SELECT DSTREAM ?who
    FROM STREAM <{EX}waits> [RANGE 2s STEP 1s] {{ ?who <{EX}waitsFor> ?train }}""",
]
SCHEMA = "subject string, predicate string, object string, timestamp timestamp, stream string"


def row(subject: str, predicate: str, value: str, seconds: float, stream: str) -> dict[str, Any]:
    moment = f"1970-01-01T00:00:{seconds:06.3f}Z"
    return {"subject": subject, "predicate": predicate, "object": value, "timestamp": moment, "stream": stream}


def some_rows() -> list[list[dict[str, Any]]]:
    """Six files: users in trains and at stations, trains that are late; within a file out of order, and one file is empty."""
    files: list[list[dict[str, Any]]] = []
    for number in range(6):
        rows = []
        for n in range(8):
            at = 4 * number + (n * 5 % 8) / 2
            value = [f"<{EX}t{n % 2}>", f"<{EX}s{1 + number % 2}>"][n % 2]
            rows.append(row(f"<{EX}u{(number + n) % 5}>", f"<{EX}isIn>", value, at, POSITIONS))
        rows.append(row(f"<{EX}t0>", f"<{EX}late>", f'"{number}"', 4 * number + 1.25, DELAYS))
        files.append(rows if number != 3 else [])
    return files


def write_files(folder: Path, files: list[list[dict[str, Any]]], first: int = 0) -> None:
    """Spark takes files by their age."""
    folder.mkdir(exist_ok=True)
    for number, rows in enumerate(files, first):
        path = folder / f"{number}.json"
        path.write_text("".join(json.dumps(one) + "\n" for one in rows))
        os.utime(path, (1_000_000_000 + number, 1_000_000_000 + number))


def make_store(path: Path) -> None:
    KnowledgeGraph(PROGRAM, store=path).update(insert=BACKGROUND)


def make_stream(store: Path, queries: list[str] = QUERIES) -> Stream:
    stream = KnowledgeGraph.open(store).stream(lateness="1s")
    for text in queries:
        stream.register(text)
    return stream


def source(session: Any, folder: Path, files: int = 1) -> Any:
    return session.readStream.schema(SCHEMA).option("maxFilesPerTrigger", files).json(str(folder))


def run(session: Any, folder: Path, *kinds: str) -> Stream:
    """Read all there is in `folder/in`, from where the checkpoints say, a job for each kind of answers."""
    queries = []
    for kind in kinds:
        stream = make_stream(folder / "store")
        writer = stream.writeStream(source(session, folder / "in")).format(kind).outputMode("append")
        writer = writer.option("checkpointLocation", folder / kind / "checkpoint").trigger(availableNow=True)
        queries.append(writer.start(folder / kind / "out"))
    for query in queries:
        query.awaitTermination()
    return stream


def die_after(times: int, *functions: tuple[Any, str]) -> None:
    """Kill this process after so many calls of some functions."""
    left = [times]

    def watch(real: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*given: Any, **named: Any) -> Any:
            found = real(*given, **named)
            left[0] -= 1
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)
            return found

        return watched

    for owner, name in functions:
        setattr(owner, name, watch(getattr(owner, name)))


STEPS = {"answers": [(Files, "write"), (Delta, "write")], "state": [(job, "save")]}
"""A job may die when the answers of a batch are written and its state is not, or when Spark has not noted that it is done."""


class Batch:
    """What a job takes of a frame."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows = rows

    def toArrow(self) -> pa.Table:
        columns = {name: [row[name] for row in self.rows] for name in ("subject", "predicate", "object", "timestamp", "stream")}
        return pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()})


def run_here(folder: Path, kind: str, files: list[list[dict[str, Any]]]) -> None:
    """The same in process, with a file that notes the batches that are done, as Spark does."""
    done = folder / "done"
    task = job.Job(make_stream(folder.parent / "store", QUERIES[:2]), folder / "checkpoint")
    task.sink = Delta(str(folder / "out"), task.application) if kind == "delta" else Files(folder / "out", kind, {})
    for number in range(int(done.read_text()) if done.exists() else 0, len(files)):
        task(Batch(files[number]), number)
        checkpoint.write_whole(done, lambda path, number=number: path.write_text(str(number + 1)))  # type: ignore[misc]


def warm_up() -> None:
    """What is imported and parsed at first use, once here and not in every child."""
    import pandas  # noqa: F401

    stream = KnowledgeGraph(PROGRAM).stream(lateness="1s")
    for text in QUERIES[:2]:
        stream.register(text)
    for one in some_rows()[0]:
        stream.push(f"{one['subject']} {one['predicate']} {one['object']} .", one["timestamp"], POSITIONS)
    sinks.tables_of(stream.advance())


def kill_at_every_step(parent: str, kind: str) -> int:
    """Kill a job at its first step, at its second, … until it gets through, and let another one go on; returns how many."""
    files = some_rows()[:2]
    warm_up()
    for number in count(1):
        folder = Path(parent, str(number))

        def work(folder: Path = folder, number: int = number) -> int:
            die_after(number, (Path, "replace"), (Path, "rename"), (shutil, "rmtree"), (sinks, "write_deltalake"))
            run_here(folder, kind, files)
            return 0

        def go_on(folder: Path = folder) -> int:
            run_here(folder, kind, files)
            return 0

        ended = forked(work)
        assert ended in (0, -signal.SIGKILL), ended
        assert forked(go_on) == 0, number
        if ended == 0:
            return number
    raise AssertionError("unreachable")


if __name__ == "__main__":
    if sys.argv[1] == "everywhere":
        print(kill_at_every_step(*sys.argv[2:]))
    else:
        from evergraph.engines.spark import make_session

        step, times, parent = sys.argv[1:]
        session = make_session("local[2]")
        die_after(int(times), *STEPS[step])
        run(session, Path(parent), "parquet", "delta")
