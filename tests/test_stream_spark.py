"""Spark Structured Streaming: what the plain stream answers, from files and into files, also when jobs are killed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

import stream_job
from evergraph import KnowledgeGraph, UserError
from evergraph.stream import spark as spark_stream
from evergraph.stream.rows import sort_out
from evergraph.stream.sinks import folder_of, tables_of
from evergraph.stream.times import instant_of, text_of
from stream_job import DELAYS, EX, POSITIONS, QUERIES, Batch, make_store, make_stream, row, run, some_rows, source, write_files

Rows = dict[str, list[str]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_store(tmp_path / "store")
    write_files(tmp_path / "in", some_rows())
    return tmp_path


def expected(folder: Path, files: Iterable[list[dict[str, Any]]]) -> Rows:
    """What the plain stream answers when the rows of each file are pushed one by one, in order."""
    stream, answers = make_stream(folder / "store"), []
    for rows in files:
        for one in sorted(rows, key=lambda r: r["timestamp"]):
            stream.push(f"{one['subject']} {one['predicate']} {one['object']} .", one["timestamp"], one["stream"])
        answers += stream.advance()
    return lines(tables_of(answers))


def lines(tables: dict[str, Any]) -> Rows:
    """Rows as sorted lines of JSON, by query."""
    return {name: sorted(json.dumps(_shown(row)) for row in table.to_pylist()) for name, table in tables.items()}


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    return {k: text_of(instant_of(v)) if k == "time" else v for k, v in row.items() if v is not None}


def written(folder: Path, kind: str) -> Rows:
    names = ["where", f"{EX}came", "anyone", f"{EX}waits", "waiting"]
    found = {}
    for name in names:
        path = folder / kind / "out" / folder_of(name)
        if not path.exists():
            continue
        if kind == "delta":
            found[name] = DeltaTable(str(path)).to_pyarrow_table()
        elif kind == "parquet":
            found[name] = pq.read_table(path)
        else:
            rows = [json.loads(line) for file in path.glob("*.json") for line in file.read_text().splitlines()]
            found[name] = pyarrow.Table.from_pylist(rows)
    return lines(found)


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["parquet", "json", "delta"])
def test_answers_are_those_of_the_plain_stream(spark: Any, folder: Path, kind: str) -> None:
    files = some_rows()
    want = expected(folder, files)
    assert len(want) == 5 and all(want.values())
    stream = run(spark, folder, kind)
    assert written(folder, kind) == want
    again = run(spark, folder, kind)
    assert written(folder, kind) == want and (again.now, again.behind) == (stream.now, stream.behind)
    if kind == "parquet":
        assert pq.read_table(folder / "parquet/out/where").column_names == ["time", "query", "change", "who", "place"]
        came = pq.read_schema(next((folder / "parquet/out").glob("http-*came-*/batch-00000001.parquet")))
        assert came.names == ["time", "query", "change", "who", "time_"], "a variable that is called like a column of ours"
    assert again.now == 22, "to the watermark, and not further: more may come"
    more = [[row(f"<{EX}u9>", f"<{EX}isIn>", f"<{EX}s1>", 40, POSITIONS)], [row(f"<{EX}t9>", f"<{EX}late>", '"9"', 45, DELAYS)]]
    write_files(folder / "in", more, first=6)
    run(spark, folder, kind)
    assert written(folder, kind) == expected(folder, files + more)
    assert sorted(p.name for p in (folder / kind / "checkpoint/evergraph/state").iterdir()) == ["7", "8"]


@pytest.mark.spark
def test_a_killed_job_goes_on_without_losing_or_doubling_a_tick(spark: Any, folder: Path) -> None:
    """Two jobs in one process, which is killed twice: after answers were written, and after a state was saved."""
    want = expected(folder, some_rows())
    for step, times in (("answers", 3), ("state", 3)):
        words = [sys.executable, stream_job.__file__, step, str(times), str(folder)]
        killed = subprocess.run(words, capture_output=True, text=True, check=False)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        dead = [len(numbers(folder / kind / "checkpoint/commits")) for kind in ("parquet", "delta")]
        ready = [max(numbers(folder / kind / "checkpoint/evergraph/state")) for kind in ("parquet", "delta")]
        files = len(list((folder / "parquet/out/where").glob("*.parquet")))
        tables = DeltaTable(str(folder / "delta/out/where")).version() + 1
        if step == "answers":
            assert files > ready[0] or tables > ready[1], "a batch has answers and no state"
        else:
            assert ready != dead, "a batch has a state, and Spark will run it again"
        assert written(folder, "parquet") != want != written(folder, "delta")
    run(spark, folder, "parquet", "delta")
    assert written(folder, "parquet") == want
    assert written(folder, "delta") == want


def numbers(folder: Path) -> list[int]:
    return [int(path.name) for path in folder.iterdir() if path.name.isdigit()]


@pytest.mark.spark
def test_rows_that_are_no_facts_are_kept_and_do_not_stop_the_stream(spark: Any, folder: Path) -> None:
    good = row(f"<{EX}u1>", f"<{EX}isIn>", f"<{EX}s1>", 30, POSITIONS)
    bad = {
        "no subject": {"subject": None},
        "not a term: http://example/u": {"subject": "http://example/u"},
        'a literal as subject: "u"': {"subject": '"u"'},
        "a predicate that is no IRI: _:b": {"predicate": "_:b"},
        "no timestamp": {"timestamp": None},
        "no stream is called <http://example/none>": {"stream": f"{EX}none"},
        "which stream?": {"stream": None},
    }
    late = row(f"<{EX}u1>", f"<{EX}isIn>", '"x"', 3, DELAYS)
    write_files(folder / "in", [[{**good, **change} for change in bad.values()], [good], [late]], first=6)
    stream = run(spark, folder, "parquet")
    assert written(folder, "parquet") == expected(folder, [*some_rows(), [good]])
    kept = pq.read_table(folder / "parquet/checkpoint/evergraph/rejected").to_pylist()
    assert [r["reason"] for r in kept] == [*bad, "too late"]
    assert (kept[1]["subject"], kept[1]["object"]) == ("http://example/u", f"<{EX}s1>")
    assert (kept[-1]["timestamp"], kept[-1]["stream"]) == ("1970-01-01T00:00:03Z", DELAYS)
    assert (stream.stats()["rejected"], stream.stats()["late"]) == (len(bad), 1)
    again = make_stream(folder / "store")
    spark_stream.Job(again, folder / "parquet/checkpoint")
    assert (again.rejected, again.late) == (len(bad), 1)


@pytest.mark.spark
def test_the_checkpoint_of_another_stream(spark: Any, folder: Path) -> None:
    frame = source(spark, folder / "in", 6)
    place = {"checkpointLocation": folder / "checkpoint"}
    make_stream(folder / "store").writeStream(frame).trigger(availableNow=True).start(
        folder / "out", **place
    ).awaitTermination()
    for other, what in (
        (make_stream(folder / "store", QUERIES[:2]), "other queries: anyone, "),
        (make_stream(folder / "store", [QUERIES[0].replace("4s", "5s"), *QUERIES[1:]]), "other queries: where"),
        (KnowledgeGraph.open(folder / "store").stream({POSITIONS: "RANGE 1s TUMBLING"}), "other queries"),
    ):
        with pytest.raises(UserError, match=what) as caught:
            other.writeStream(frame).start(folder / "out", **place)
        assert caught.value.code == "EG608"


@pytest.mark.spark
def test_timestamps_are_numbers_of_seconds_or_text_too(spark: Any, folder: Path) -> None:
    """One stream needs no name; nothing comes of a batch without rows; csv is written as Spark does."""
    positions = [[r for r in rows if r["stream"] == POSITIONS] for rows in some_rows()]
    write_files(folder / "numbers", [[{**r, "timestamp": float(r["timestamp"][17:23])} for r in rows] for rows in positions])
    texts = QUERIES[:2]
    want = None
    for kind, where in (("double", "numbers"), ("string", "in")):
        schema = f"subject string, predicate string, object string, timestamp {kind}, stream string"
        frame = spark.readStream.schema(schema).json(str(folder / where)).where(f"stream = '{POSITIONS}'").drop("stream")
        writer = make_stream(folder / "store", texts).writeStream(frame).format("csv").option("header", True)
        place = {"checkpointLocation": (folder / kind).as_uri()}
        writer.trigger(availableNow=True).start((folder / f"out-{kind}").as_uri(), **place).awaitTermination()
        got = lines({"": pyarrow.csv.read_csv(folder / f"out-{kind}" / "where" / "batch-00000000.csv")})
        assert got[""] and (want is None or got == want)
        want = got


@pytest.mark.spark
def test_the_console(spark: Any, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stream = make_stream(folder / "store", QUERIES[:1])
    frame = source(spark, folder / "in", 6).where(f"stream = '{POSITIONS}'").limit(8)
    query = stream.writeStream(frame).format("console").queryName("shown").trigger(availableNow=True).start(numRows=1)
    assert query.name == "shown"
    query.awaitTermination()
    said = capsys.readouterr().out
    assert said.startswith("-------------------------------------------\nBatch: 0\n-----")
    rule = "+--------------------+-----+------+-------------------+-------------------+"
    assert (
        f"{rule}\n|                time|query|change|                who|              place|\n{rule}\n|1970-01-01T00:0" in said
    )
    assert said.endswith(f"{rule}\nonly showing top 1 rows\n\n")


@pytest.mark.spark
def test_what_a_writer_does_not_do(spark: Any, folder: Path) -> None:
    stream = make_stream(folder / "store")
    frame = source(spark, folder / "in")
    for code, wrong in {
        "EG105": [lambda: stream.writeStream(spark.range(1)), lambda: stream.writeStream(frame.drop("object"))],
        "EG302": [
            lambda: stream.writeStream(frame).format("orc"),
            lambda: stream.writeStream(frame).outputMode("complete"),
            lambda: stream.writeStream(frame).start(folder / "out"),
            lambda: stream.writeStream(frame).start(folder / "out", checkpointLocation="hdfs://there/here"),
            lambda: stream.writeStream(frame).start(checkpointLocation=folder / "nowhere"),
        ],
        "EG604": [lambda: stream.writeStream(frame.drop("stream")).format("console").start()],
    }.items():
        for call in wrong:
            with pytest.raises(UserError, match=code):
                call()
    query = stream.writeStream(frame).format("console").start()
    try:
        with pytest.raises(UserError, match="EG604"):
            stream.writeStream(frame).format("console").start()
    finally:
        query.stop()


# -- without Spark ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["parquet", "delta"])
def test_a_job_killed_at_any_step_goes_on_without_losing_or_doubling_a_tick(folder: Path, kind: str) -> None:
    done = subprocess.run(
        [sys.executable, stream_job.__file__, "everywhere", str(folder), kind], capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    whole = expected(folder, some_rows()[:2])
    want = {name: whole[name] for name in ("where", f"{EX}came")}
    assert int(done.stdout) > 20
    for number in range(1, int(done.stdout) + 1):
        (folder / str(number)).rename(folder / kind)
        assert written(folder, kind) == want, f"killed at step {number}"
        (folder / kind).rename(folder / f"{number} of {kind}")


class Kept:
    """A sink in memory that fails when it is told to."""

    def __init__(self) -> None:
        self.batches: dict[int, Any] = {}
        self.fails = False

    def write(self, batch: int, tables: Any) -> None:
        self.batches[batch] = tables
        if self.fails:
            raise OSError("no space")

    @property
    def lines(self) -> Rows:
        names = dict.fromkeys(name for tables in self.batches.values() for name in tables)
        return {
            name: sorted(line for tables in self.batches.values() for line in lines(tables).get(name, [])) for name in names
        }


@pytest.mark.parametrize("most", [1, 4, 100])
def test_a_batch_may_be_large_and_may_fail(folder: Path, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """However it is pushed, streams beside each other make none late, and a batch that failed begins as it did before."""
    monkeypatch.setattr(spark_stream, "MOST_ROWS", most)
    stream = make_stream(folder / "store")
    job, kept = spark_stream.Job(stream, folder / "checkpoint"), Kept()
    job.sink = kept
    files = [[one for rows in some_rows()[:4] for one in rows], [one for rows in some_rows()[4:] for one in rows]]
    for number, rows in enumerate(files):
        kept.fails = True
        with pytest.raises(OSError, match="no space"):
            job(Batch(rows), number)
        kept.fails = False
        job(Batch(rows), number)
    assert kept.lines == expected(folder, files) and stream.late == 0
    assert not (folder / "checkpoint/evergraph/rejected").exists()
    with pytest.raises(UserError, match="EG608"):
        job(Batch([]), 7)


def test_no_value_of_a_row_stops_the_stream() -> None:
    """Whatever the type of the timestamps; rows that are facts come in their order."""
    strange = {
        pa.timestamp("us", "America/New_York"): [2_000_000, None, 1 << 62, -(1 << 62), 1_000_000],
        pa.timestamp("ns"): [2_000_000_000, None, None, None, 1_000_000_000],
        pa.float64(): [2.0, None, float("nan"), 1e30, 1.0],
        pa.int64(): [2, None, 1 << 62, -(1 << 62), 1],
        pa.string(): ["1970-01-01T01:00:02+01:00", None, "soon", "10000-01-01T00:00:00Z", "1"],
    }
    for kind, values in strange.items():
        terms = {name: [f"<{EX}{n}>" for n in range(5)] for name in ("subject", "predicate", "object")}
        rows, rejected = sort_out(pa.table({**terms, "timestamp": pa.array(values, kind)}), lambda name: "s")
        assert rows.times.tolist() == [1_000_000, 2_000_000] and rows.streams.to_pylist() == ["s", "s"], kind
        assert rows.triples.column("subject").to_pylist() == [f"<{EX}4>", f"<{EX}0>"]
        assert rejected.num_rows == 3 and all(rejected.column("reason").to_pylist()), kind
