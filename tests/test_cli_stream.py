"""`evergraph stream`: what it pushes and when, what it prints for each tick, what it skips, and how it ends."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from evergraph import KnowledgeGraph
from evergraph.stream import Stream, pace, sources
from evergraph.stream.pace import Pace
from evergraph.stream.sources import Batch
from evergraph.stream.times import SECOND
from test_cli import EX, Ended, Run, run_command, written  # noqa: F401 - a fixture

AT, POSITIONS = f"<{EX}at>", f"{EX}positions"
SELECT = f"SELECT ?car ?place FROM STREAM <{POSITIONS}> WHERE {{ ?car {AT} ?place }} ORDER BY ?car ?place"
ASK = f"ASK FROM STREAM <{POSITIONS}> {{ ?car {AT} <{EX}bridge> }}"
CONSTRUCT = f"CONSTRUCT {{ ?place <{EX}has> ?car }} FROM STREAM <{POSITIONS}> WHERE {{ ?car {AT} ?place }}"


def at(time: object, car: str, place: str, graph: str = "") -> str:
    return f"{time} <{EX}{car}> {AT} <{EX}{place}> {graph}.\n"


SOURCE = at(0.5, "a", "bridge") + at(1.5, "b", "park") + at(1.75, "a", "park")


class Watched(Stream):
    """Remembers what was pushed."""

    def __init__(self, *arguments: Any, **given: Any) -> None:
        super().__init__(*arguments, **given)
        self.pushed: list[tuple[str | None, list[int]]] = []

    def push(self, facts: Any, timestamp: Any = None, stream: str | None = None, on_late: Any = None) -> None:
        self.pushed.append((stream, timestamp.tolist()))
        super().push(facts, timestamp, stream, on_late)


@pytest.fixture(name="streams")
def watched_streams(monkeypatch: pytest.MonkeyPatch) -> list[Watched]:
    made: list[Watched] = []

    def stream(self: KnowledgeGraph, *arguments: Any, **given: Any) -> Watched:
        made.append(Watched(self, *arguments, **given))
        return made[-1]

    monkeypatch.setattr(KnowledgeGraph, "stream", stream)
    return made


def asked(name: str, text: str) -> str:
    """A file with a continuous query over windows of a second."""
    window = re.sub(r"(FROM STREAM <[^>]*>)", r"\1 [RANGE 1s STEP 1s]", text)
    return written(f"{name}.rq", f"REGISTER QUERY {name} AS\n{window}")


@pytest.fixture
def cars(run: Run) -> Path:
    """A store, a query `where.rq`, and a source of three facts."""
    written("data.nt", f"<{EX}bridge> <{EX}in> <{EX}city> .\n")
    assert run("load", "data.nt", "--rules", "rhodf", "--store", "cars", "--engine", "memory").code == 0
    for name, text in (
        ("where", SELECT),
        ("bridge", ASK),
        ("has", CONSTRUCT),
        ("new", SELECT.replace("SELECT", "SELECT ISTREAM")),
    ):
        asked(name, text)
    written("source.nt", SOURCE)
    return Path("cars")


def shown(ended: Ended) -> list[str]:
    assert (ended.code, ended.mistakes) == (0, [])
    return ended.out.splitlines()


# -- what is printed ---------------------------------------------------------------------------------------------------


def test_a_table_for_each_tick(run: Run, cars: Path) -> None:
    written("source.nt", SOURCE + at(3.5, "c", "park"))
    assert shown(run("stream", cars, "--query", "where.rq", "--source", "source.nt")) == [
        "1970-01-01T00:00:01Z where",
        "car                     place",
        f"<{EX}a>  <{EX}bridge>",
        "",
        "1970-01-01T00:00:02Z where",
        "car                     place",
        f"<{EX}a>  <{EX}park>",
        f"<{EX}b>  <{EX}park>",
        "",
        "1970-01-01T00:00:03Z where",
        "no rows",
        "",
        "1970-01-01T00:00:04Z where",
        "car                     place",
        f"<{EX}c>  <{EX}park>",
        "",
    ]


def test_several_queries_of_every_kind_as_tables(run: Run, cars: Path) -> None:
    lines = shown(run("stream", cars, "-q", "bridge.rq", "-q", "has.rq", "-q", "new.rq", "-s", "source.nt", "--until", 1))
    assert lines == [
        "1970-01-01T00:00:01Z bridge",
        "yes",
        "",
        "1970-01-01T00:00:01Z has",
        f"<{EX}bridge> <{EX}has> <{EX}a> .",
        "",
        "1970-01-01T00:00:01Z new (new)",
        "car                     place",
        f"<{EX}a>  <{EX}bridge>",
        "",
    ]


def test_nothing_is_shown_where_nothing_is_new(run: Run, cars: Path) -> None:
    written("source.nt", SOURCE + at(3.5, "c", "park"))
    lines = shown(run("stream", cars, "-q", "new.rq", "-s", "source.nt"))
    assert [line[17:19] for line in lines if line.endswith("(new)")] == ["01", "02", "04"]


def test_csv_has_a_header_for_each_query(run: Run, cars: Path) -> None:
    ended = run("stream", cars, "-q", "where.rq", "-q", "bridge.rq", "-q", "has.rq", "-s", "source.nt", "--format", "csv")
    assert shown(ended) == [
        "time,query,car,place",
        f"1970-01-01T00:00:01Z,where,{EX}a,{EX}bridge",
        "time,query,answer",
        "1970-01-01T00:00:01Z,bridge,true",
        "time,query,subject,predicate,object",
        f"1970-01-01T00:00:01Z,has,{EX}bridge,{EX}has,{EX}a",
        f"1970-01-01T00:00:02Z,where,{EX}a,{EX}park",
        f"1970-01-01T00:00:02Z,where,{EX}b,{EX}park",
        "1970-01-01T00:00:02Z,bridge,false",
        f"1970-01-01T00:00:02Z,has,{EX}park,{EX}has,{EX}a",
        f"1970-01-01T00:00:02Z,has,{EX}park,{EX}has,{EX}b",
    ]


def test_json_has_an_object_for_each_row(run: Run, cars: Path) -> None:
    pattern = f"{{ ?car {AT} ?p OPTIONAL {{ ?car <{EX}label> ?label }} }}"
    asked("new", f"SELECT ISTREAM (?car AS ?time) ?label FROM STREAM <{POSITIONS}> {pattern}")
    ended = run("stream", cars, "-q", "bridge.rq", "-q", "has.rq", "-q", "new.rq", "-s", "source.nt", "--format", "json")
    first, second = "1970-01-01T00:00:01Z", "1970-01-01T00:00:02Z"
    triple = {"subject": f"<{EX}bridge>", "predicate": f"<{EX}has>", "object": f"<{EX}a>"}
    rows = [json.loads(line) for line in shown(ended)]
    assert rows[:3] == [
        {"time": first, "query": "bridge", "change": "all", "answer": True},
        {"time": first, "query": "has", "change": "all", **triple},
        {"time": first, "query": "new", "change": "new", "?time": f"<{EX}a>"},
    ]
    assert [row["time"] for row in rows[3:]] == [second] * 4


def test_answers_can_be_facts_of_another_stream(run: Run, cars: Path) -> None:
    lines = shown(run("stream", cars, "-q", "has.rq", "-s", "source.nt", "--format", "json"))
    written("next.jsonl", "\n".join(lines).replace('"time"', '"timestamp"'))
    text = f"SELECT ?car FROM STREAM <{EX}having> {{ <{EX}park> <{EX}has> ?car }} ORDER BY ?car"
    ended = run("stream", cars, "-q", asked("park", text), "-s", "next.jsonl", "--format", "csv")
    assert shown(ended)[1:] == [f"1970-01-01T00:00:03Z,park,{EX}{car}" for car in "ab"]


# -- what is pushed ----------------------------------------------------------------------------------------------------


def test_facts_without_a_stream_go_to_the_one_that_is_read(run: Run, cars: Path, streams: list[Watched]) -> None:
    run("stream", cars, "-q", "where.rq", "-q", "bridge.rq", "-s", "source.nt", "--algorithm", "expiry", "--lateness", "500ms")
    assert streams[0].pushed == [(POSITIONS, [500_000, 1_500_000, 1_750_000])]
    assert (streams[0].algorithm, streams[0].lateness) == ("expiry", 500_000)


def test_streams_by_name_and_those_that_nobody_reads(run: Run, cars: Path, streams: list[Watched]) -> None:
    asked("more", SELECT.replace(POSITIONS, f"{EX}more"))
    graphs = (f"<{POSITIONS}> ", f"<{EX}more> ", f"<{EX}other> ", "")
    written("source.nq", "".join(at(n / 10, "a", "park", graphs[n % 4]) for n in range(9)))
    ended = run("stream", cars, "-q", "where.rq", "-q", "more.rq", "-s", "source.nq", "--format", "json")
    assert streams[0].pushed == [(POSITIONS, [0, 400_000, 800_000]), (f"{EX}more", [100_000, 500_000])]
    assert ended.code == 0 and ended.mistakes == [
        f"2 facts of the stream {EX}other skipped: no query reads it",
        "2 facts of the default stream skipped: no query reads it",
    ]


def test_time_moves_on_when_all_streams_of_some_lines_are_pushed(run: Run, cars: Path) -> None:
    asked("more", SELECT.replace(POSITIONS, f"{EX}more"))
    written("source.nq", "".join(at(n, "a", "park", f"<{EX}{('positions', 'more')[n % 2]}> ") for n in range(6)))
    lines = shown(run("stream", cars, "-q", "where.rq", "-q", "more.rq", "-s", "source.nq", "--format", "json"))
    assert len(lines) == 6


def test_several_sources_are_read_one_after_the_other(run: Run, cars: Path, streams: list[Watched]) -> None:
    Path("folder").mkdir()
    written("folder/b.nt", at(2, "b", "park"))
    written("folder/a.nt", at(1, "a", "park"))
    run("stream", cars, "-q", "where.rq", "-s", "folder", "-s", "source.nt")
    assert [times[0] for _, times in streams[0].pushed] == [1_000_000, 2_000_000, 500_000]


def test_standard_input(run: Run, cars: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    want = run("stream", cars, "-q", "where.rq", "-s", "source.nt").out
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(SOURCE.encode())))
    assert run("stream", cars, "-q", "where.rq", "-s", "-").out == want
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(SOURCE.encode())))
    assert run("stream", cars, "-q", "where.rq", "-s", "-", "--source-format", "nt").out == want


@pytest.mark.parametrize(("until", "ticks"), [("0.9", 0), ("1", 1), ("1970-01-01T00:00:01.999Z", 1), ("2", 2), ("99", 4)])
@pytest.mark.parametrize("rows", [1, 100])
def test_until_is_the_last_tick(
    run: Run, cars: Path, monkeypatch: pytest.MonkeyPatch, until: str, ticks: int, rows: int
) -> None:
    monkeypatch.setattr(sources, "read_blocks", partial(sources.read_blocks, rows=rows))
    written("source.nt", SOURCE + at(3.5, "c", "park"))
    lines = shown(run("stream", cars, "-q", "bridge.rq", "-s", "source.nt", "--format", "json", "--until", until))
    assert len(lines) == ticks


def test_the_store_stays_as_it_is(run: Run, cars: Path) -> None:
    run("stream", cars, "-q", "where.rq", "-s", "source.nt")
    assert (
        len(KnowledgeGraph.open(cars)) == 1 and len(json.loads(run("history", cars, "--output", "json").out)["versions"]) == 1
    )


# -- what is skipped ---------------------------------------------------------------------------------------------------


def skipping(run: Run, cars: Path, *arguments: object) -> list[str]:
    """Two bad lines, and a late fact: it is in another file, and so in a later batch."""
    written("source.nt", at(0.5, "a", "park") + "oops\n" + at(2.5, "a", "park") + at("when", "a", "park"))
    written("later.nt", at(1.25, "b", "park") + at(2.75, "b", "park"))
    ended = run("stream", cars, "-q", "where.rq", "-s", "source.nt", "-s", "later.nt", *arguments)
    assert ended.code == 0
    return ended.mistakes


def test_what_is_skipped_is_counted(run: Run, cars: Path) -> None:
    assert skipping(run, cars) == ["2 bad lines and 1 late fact skipped, saved to rejected.txt"]
    assert Path("rejected.txt").read_text().startswith("# source.nt:2:1: not a timestamp: 'oops'\noops\n")
    assert skipping(run, cars, "--lateness", "5s") == ["2 bad lines skipped, saved to rejected.txt"]


def test_what_is_skipped_is_saved(run: Run, cars: Path) -> None:
    assert skipping(run, cars, "--rejects", "out.txt") == ["2 bad lines and 1 late fact skipped, saved to out.txt"]
    assert Path("out.txt").read_text().splitlines() == [
        "# source.nt:2:1: not a timestamp: 'oops'",
        "oops",
        "# source.nt:4:1: not a timestamp: 'when'",
        at("when", "a", "park").strip(),
        "# error EG605: the fact came too late (hint: allow for it with --lateness)",
        at("1.25", "b", "park", f"<{POSITIONS}> ").strip(),
    ]


def test_no_file_is_written_when_nothing_is_skipped(run: Run, cars: Path) -> None:
    shown(run("stream", cars, "-q", "where.rq", "-s", "source.nt", "--rejects", "out.txt"))
    assert not Path("out.txt").exists()


# -- mistakes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (("--source", "no.nt"), "EG101"),
        (("--source", "notes.txt"), "EG102"),
        (("--query", "no.rq"), "EG101"),
        (("--query", "bad.rq"), "EG601"),
        (("--lateness", "soon"), "EG602"),
        (("--until", "tomorrow"), "EG603"),
        (("--speed", "0"), "EG302"),
        (("--speed", "nan"), "EG302"),
        (("--algorithm", "magic"), "EG302"),
        (("--rejects", "no/out.txt"), "EG101"),
    ],
    ids=str,
)
def test_a_mistake_is_one_line(run: Run, cars: Path, change: tuple[str, str], code: str) -> None:
    written("bad.rq", "SELECT")
    written("notes.txt", SOURCE)
    ended = run("stream", cars, "-q", "where.rq", "-s", "source.nt", *change)
    assert (ended.code, ended.out) == (2, "")
    (line,) = ended.mistakes
    assert f"error {code}: " in line


def test_no_store(run: Run, cars: Path) -> None:
    ended = run("stream", "nowhere", "-q", "where.rq", "-s", "source.nt")
    assert ended.code == 2 and "error EG401: " in ended.mistakes[0]


# -- real time ---------------------------------------------------------------------------------------------------------


class Clock:
    """Time passes when someone sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.now += seconds


def batch(*times: float, stream: str = "") -> Batch:
    column = pa.array([f"<{EX}a>"] * len(times))
    return Batch(stream, np.array([round(t * SECOND) for t in times], np.int64), column, column, column)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(pace, "time", made)
    return made


@pytest.mark.parametrize("speed", [0.5, 1, 10, 1000])
def test_facts_are_handed_on_when_they_are_due(clock: Clock, speed: float) -> None:
    blocks = [[batch(100, 100.01, 103, 102, 110), batch(101, 109, stream="x")], [batch(111, 100, 114)]]
    behind: list[float] = []
    seen: list[tuple[float, float]] = []
    for batches in Pace(speed, behind.append).paced(blocks):
        seen += [(t / SECOND, clock.now - 1000) for one in batches for t in one.timestamps.tolist()]
    assert sorted(t for t, _ in seen) == [100, 100, 100.01, 101, 102, 103, 109, 110, 111, 114]
    assert all(now >= (t - 100) / speed - 1e-6 for t, now in seen)
    assert all(now <= (max(s for s, _ in seen[: n + 1]) - 100) / speed + 0.1 + 1e-6 for n, (_, now) in enumerate(seen))
    assert behind == []


def test_order_within_a_stream_is_kept_by_any_pace(clock: Clock) -> None:
    times = [5.0, 3, 9, 8, 7, 20, 1, 21]
    for speed in (0.01, 1, 100):
        paced = Pace(speed, lambda seconds: None).paced([[batch(*times[:5])], [batch(*times[5:])]])
        assert [t / SECOND for batches in paced for one in batches for t in one.timestamps.tolist()] == times


def test_falling_behind_is_told_once_a_second(clock: Clock) -> None:
    behind: list[float] = []
    for _ in Pace(1, behind.append).paced([[batch(*(n / 10 for n in range(50)))]]):
        clock.now += 0.3
    assert all(seconds >= 1 for seconds in behind)
    assert 8 <= len(behind) <= 13 and behind == sorted(behind)


def test_a_replay_in_real_time_prints_the_same(run: Run, cars: Path, clock: Clock) -> None:
    want = shown(run("stream", cars, "-q", "where.rq", "-s", "source.nt"))
    assert shown(run("stream", cars, "-q", "where.rq", "-s", "source.nt", "--speed", 1)) == want
    assert clock.now == pytest.approx(1000 + 1.25)


def test_how_far_behind_it_is_stands_on_standard_error(
    run: Run, cars: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    push = Stream.push

    def slow(self: Stream, *arguments: Any, **given: Any) -> None:
        clock.now += 3
        push(self, *arguments, **given)

    monkeypatch.setattr(Stream, "push", slow)
    ended = run("stream", cars, "-q", "where.rq", "-s", "source.nt", "--speed", 1)
    assert ended.code == 0 and ended.mistakes == ["2.0 s behind the source", "4.8 s behind the source"]


# -- how it ends -------------------------------------------------------------------------------------------------------

COMMAND = ["stream", "cars", "-q", "where.rq", "-s", "-", "--format", "csv"]


def started() -> subprocess.Popen[str]:
    code = f"import sys; from evergraph.cli import main; sys.argv[1:] = {COMMAND!r}; main()"
    given = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.Popen([sys.executable, "-c", code], text=True, env=environment, **given)  # type: ignore[call-overload,no-any-return]


def test_a_live_pipe_is_answered_as_it_flows_and_ended_by_an_interrupt(cars: Path) -> None:
    process = started()
    assert process.stdin and process.stdout
    process.stdin.write(at(0.5, "a", "park") + "oops\n" + at(1.5, "b", "park"))
    process.stdin.flush()
    assert process.stdout.readline() == "time,query,car,place\n"
    assert process.stdout.readline() == f"1970-01-01T00:00:01Z,where,{EX}a,{EX}park\n"
    process.stdin.write(at(2.5, "c", "park"))
    process.stdin.flush()
    assert process.stdout.readline() == f"1970-01-01T00:00:02Z,where,{EX}b,{EX}park\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in err and "1 bad line skipped" in err


def test_who_reads_no_further_ends_it_quietly(cars: Path) -> None:
    process = started()
    assert process.stdin and process.stdout and process.stderr
    process.stdin.write(at(0.5, "a", "park") + at(1.5, "b", "park"))
    process.stdin.flush()
    process.stdout.readline()
    process.stdout.close()
    process.stdin.write(at(2.5, "c", "park"))
    process.stdin.close()
    assert process.wait(timeout=60) == 0
    assert [line for line in process.stderr.read().splitlines() if not line.endswith("…")] == []
    process.stderr.close()
