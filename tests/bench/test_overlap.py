"""The benchmark of updates that overlap: the command, its figures, and that a difference is told. No times are judged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from evergraph.bench import results
from evergraph.bench.overlap import chart, command, feed, responsive, tables
from evergraph.bench.overlap.subject import Subject, same
from evergraph.bench.run_one import importable
from evergraph.bench.updates.facts import given
from evergraph.cli import app


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lubm")
    results.lubm(1, folder)
    return folder


def test_the_command_measures_verifies_prints_and_writes(tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evergraph.bench.overlap.alone.MANY", 1)
    tail = ["--rules", "rhodf", "--algorithm", "counting", "--repeat", "1", "--out", str(tmp_path), "--data", str(data)]
    done = CliRunner().invoke(app, ["bench", "overlap", "--universities", "1", *tail])
    assert done.exit_code == 0, done.output
    assert "One fact arrives" in done.output and "half of it comes back" in done.output and "Nothing overlaps" in done.output
    written = json.loads((tmp_path / "overlap.json").read_text())
    assert {"machine", "date", "commit", "versions", "asked", "notes", "recompute"} <= written.keys() and written["wrong"] == []
    rows = written["rows"]
    assert all(row["verified"] and row["algorithm"] == "counting" for row in rows)
    arrivals = tables.of(rows, "responsiveness")
    assert [(row["clock"], row["share"]) for row in arrivals] == [(c, s) for c in responsive.CLOCKS for s in responsive.SHARES]
    for row in arrivals:
        assert row["live"] and row["consequences"] >= 2 and row["seconds"] > 0 and row["waits"] > 0
        assert len(row["runs"]) == 1 and row["steps"] > 1
    by_hand = [run for row in arrivals if row["clock"] == "steps" for run in row["runs"]]
    assert all(run["joined_at"] >= 1 and run["in_place_at"] > run["joined_at"] for run in by_hand)
    fed = tables.of(rows, "feed")
    assert [(row["way"], row["share"]) for row in fed] == [
        ("batches", None),
        ("first step", None),
        *(("sweep", share) for share in feed.SWEEP),
    ]
    assert all(row["derivations"] > 0 and row["serial"]["derivations"] > row["serial_deletion"] for row in fed)
    assert fed[1]["joined_at"] == [1] and fed[1]["settled"] == 1
    alone = tables.of(rows, "alone")
    assert {row["operation"] for row in alone} == {"delete", "insert"} and {1, 10, 100, 1000} < {row["facts"] for row in alone}
    assert (tmp_path / "overlap.png").exists() == importable("matplotlib")


def test_a_part_may_be_measured_alone_and_unknown_names_are_refused(tmp_path: Path, data: Path) -> None:
    runner, tail = CliRunner(), ["--universities", "1", "--rules", "rhodf", "--out", str(tmp_path), "--data", str(data)]
    done = runner.invoke(app, ["bench", "overlap", "--part", "feed", "--algorithm", "dred", "--output", "json", *tail])
    assert done.exit_code == 0, done.output
    written = json.loads((tmp_path / "overlap.json").read_text())
    assert {row["part"] for row in written["rows"]} == {"feed"} and written["recompute"] == {}
    for option, what, name in (("--part", "part", "magic"), ("--algorithm", "algorithm", "recompute")):
        refused = runner.invoke(app, ["bench", "overlap", option, name, *tail])
        assert refused.exit_code != 0 and f"no {what} is called '{name}'" in f"{refused.output}{refused.exception}"


def test_other_facts_are_wrong(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subject = Subject("rhodf", 1, results.lubm(1, data), "dred")
    facts = given(subject.facts.draw(3))
    subject.update(delete=facts)
    assert not subject.check(subject.base, "a deletion") and subject.wrong == [
        "rhodf, LUBM(1), dred: other facts after a deletion"
    ]
    subject.update(insert=facts)
    assert subject.check(subject.base, "an insertion") and same(subject.state(), subject.base)

    def spoiled(subject: Subject, _: int) -> Any:
        subject.wrong.append("spoiled")
        return []

    monkeypatch.setitem(command.PARTS, "feed", spoiled)
    asked = command.Asked(1, ["rhodf"], ["dred"], 1, 0, data)
    assert command.main(asked, ["feed"], tmp_path, as_json=True) == 1


def test_misses_are_told() -> None:
    arrival = {"part": "responsiveness", "rules": "rhodf", "clock": "time", "ratio": 30.0, "worst": 9.0}
    sizes = [{"part": "alone", "rules": "rhodf", "operation": "delete", "ratio": ratio} for ratio in (1.1, 1.3)]
    back = {"part": "feed", "rules": "rhodf", "way": "batches", "ratio": 0.61}
    assert tables.verdicts([arrival, *sizes, back]) == [
        "rhodf, arriving by time: 30.0 times sooner than in its turn, the median; 9.0 at worst; the target was 20",
        "rhodf, half comes back: at most 61% of the derivations, the target was 60%: missed",
        "rhodf, nothing overlaps, delete: up to 1.30 times as long, 1 of 2 above the target of 1.15: missed",
    ]


def test_nothing_to_draw_is_no_chart(tmp_path: Path) -> None:
    assert not chart.draw([], tmp_path / "none.png") and not (tmp_path / "none.png").exists()
