"""The window benchmark: trees, a scenario in which everyone is in one place, shares that change, and the command."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from io import StringIO
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from rich.console import Console
from typer.testing import CliRunner

from evergraph import KnowledgeGraph, UserError
from evergraph.bench.run_one import importable
from evergraph.bench.windows import chart, command, figure7, mobility, steps, tables, ticks, trees
from evergraph.bench.windows.figure7 import SHARES, Experiment, changed, experiments
from evergraph.bench.windows.measures import ALGORITHMS, Figure7
from evergraph.bench.windows.mobility import LEAST, START, WAVE, Mobility
from evergraph.bench.windows.steps import Cell
from evergraph.bench.windows.terms import COLUMNS
from evergraph.bench.windows.trees import IS_IN, SPACE, grow, grow_for
from evergraph.cli import app
from evergraph.rules.model import TYPE
from evergraph.stream.times import SECOND

Triple = tuple[str, str, str]
SMALL = Mobility(facts=3000, rate=200)


def triples(*tables: pa.Table) -> list[Triple]:
    return [row for table in tables for row in zip(*(table[name].to_pylist() for name in COLUMNS), strict=True)]


def pairs_above(facts: list[Triple]) -> int:
    """Pairs of the closure of `isIn`, by walking up from each node."""
    above = defaultdict[str, set[str]](set)
    for low, predicate, high in facts:
        if predicate == IS_IN:
            above[low].add(high)
    found = 0
    for node in list(above):
        seen, todo = set[str](), [node]
        while todo:
            more = above.get(todo.pop(), set()) - seen
            seen |= more
            todo += more
        found += len(seen)
    return found


# -- trees -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("many", "depth", "fan_out"), [(1, 1, 1), (3, 4, 1), (2, 1, 5), (4, 3, 3), (1, 6, 2)])
def test_trees_have_their_shape(many: int, depth: int, fan_out: int) -> None:
    pool = grow(many, depth, fan_out, seed=3)
    assert len(pool) == many * trees.triples_of_tree(depth, fan_out)
    parent = dict(zip(pool.child.tolist(), pool.parent.tolist(), strict=True))
    assert len(parent) == len(pool)
    assert set(Counter(parent.values()).values()) == {fan_out}
    assert len(set(parent.values()) - parent.keys()) == many

    def level(node: int) -> int:
        return 1 + level(parent[node]) if node in parent else 0

    assert Counter(map(level, parent)) == {k: many * fan_out**k for k in range(1, depth + 1)}
    assert pairs_above(triples(pool.table())) == many * trees.closure_of_tree(depth, fan_out)


def test_the_engine_closes_trees_to_the_size_that_is_counted() -> None:
    pool = grow(5, 4, 3)
    kg = KnowledgeGraph(trees.rules())
    kg.update(insert=pool.table())
    assert len(kg) == 5 * trees.closure_of_tree(4, 3)


def test_the_same_seed_gives_the_same_pool() -> None:
    assert grow(20, 3, 3, seed=1).table() == grow(20, 3, 3, seed=1).table()
    one, other = grow(20, 3, 3, seed=1), grow(20, 3, 3, seed=2)
    assert one.table() != other.table() and sorted(triples(one.table())) == sorted(triples(other.table()))


def test_a_pool_has_as_many_trees_as_are_needed() -> None:
    assert len(grow_for(14, 3, 2)) == 14 and len(grow_for(15, 3, 2)) == 28


# -- Figure 7 ----------------------------------------------------------------------------------------------------------


def test_the_background_is_the_same_for_all_shares_and_so_many_percent_of_it_change() -> None:
    found = experiments(2000)
    assert [experiment.share for experiment in found] == list(SHARES)
    assert [experiment.change for experiment in found] == [1, 2, 5, 10, 20, 50, 100, 200, 260, 400, 600]
    assert all(experiment.background == found[0].background for experiment in found)
    assert found[0].background.num_rows == 2000
    assert experiments(2000, [1.0])[0].background != found[0].background, "another pool"


@pytest.mark.parametrize("stays", [1, 2, 5])
@pytest.mark.parametrize("share", [0.05, 13.0, 30.0])
def test_windows_hold_what_entered_and_has_not_left(stays: int, share: float) -> None:
    (experiment,) = experiments(500, [share], stays)
    background, window = set(triples(experiment.background)), list(triples(*experiment.window(stays - 1)))
    assert len(window) == len(set(window)) == stays * experiment.change == stays * changed(500, share)
    for step in islice(experiment.steps(), 4 * stays):
        enters, leaves = triples(step.enters), triples(step.leaves)
        assert len(enters) == len(leaves) == experiment.change
        assert window[: len(leaves)] == leaves, "the oldest leave"
        assert not {*enters} & ({*window} | background)
        window = window[len(leaves) :] + enters
        assert window == triples(*experiment.window(step.number))
        assert enters == triples(experiment.enters(step.number))
    assert [step.number for step in islice(experiment.steps(), 3)] == [stays, stays + 1, stays + 2]


def test_the_first_windows_are_not_full() -> None:
    (experiment,) = experiments(500, [10.0], stays=3)
    first = list(islice(experiment.steps(0), 4))
    assert [step.leaves.num_rows for step in first] == [0, 0, 0, 50]
    assert [len(experiment.window(step.number)) for step in first] == [1, 2, 3, 3]
    assert first[3].leaves == first[0].enters


def test_a_pool_must_have_what_the_window_needs() -> None:
    with pytest.raises(ValueError, match="too small for 30 % of 30"):
        Experiment(grow(1, 4, 2), 30, 30.0, stays=10)


def test_figure_7_names_the_shares_at_which_the_papers_curves_meet() -> None:
    assert {0.1, 2.5, 13.0} <= set(figure7.SHARES) and list(SHARES) == sorted(SHARES)


# -- mobility: the background ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("facts", [LEAST, 1001, 3000, 54_321])
def test_a_background_has_exactly_so_many_facts(facts: int) -> None:
    made = Mobility(facts).background()
    assert made.num_rows == facts == len(set(triples(made)))
    assert all(many > 0 for many in Mobility(facts).many.values())


def test_too_small_a_scenario_is_refused() -> None:
    for given in ({"facts": LEAST - 1}, {"rate": 0}):
        with pytest.raises(UserError, match="EG302"):
            Mobility(**given)


def test_the_same_seed_gives_the_same_scenario() -> None:
    other = Mobility(SMALL.facts, SMALL.rate, seed=1)
    again = Mobility(SMALL.facts, SMALL.rate)
    assert SMALL.background() == again.background() != other.background()
    assert SMALL.second(70) == again.second(70) != other.second(70)


def test_places_are_in_one_place_each_and_the_closure_stays_small() -> None:
    facts = triples(SMALL.background())
    above = Counter(low for low, predicate, _ in facts if predicate == IS_IN)
    assert set(above.values()) == {1}
    assert 3 < pairs_above(facts) / len(above) < 4.1
    kg = KnowledgeGraph(mobility.rules())
    kg.update(insert=SMALL.background())
    assert (
        kg.query(f"SELECT (COUNT(*) AS ?n) {{ ?x {IS_IN} ?y }}", result="arrow")["n"]
        .to_pylist()[0]
        .startswith(f'"{pairs_above(facts)}"')
    )
    nodes = len({low for low, predicate, _ in facts if predicate == TYPE})
    assert 4 < len(kg) / nodes < 7


# -- mobility: the stream ----------------------------------------------------------------------------------------------


def test_a_second_has_so_many_facts_in_the_order_of_their_times() -> None:
    seconds = list(islice(SMALL.stream(58), 4))
    assert [second.num_rows for second in seconds] == [200] * 4
    times = list(chain.from_iterable(second["timestamp"].cast(pa.int64()).to_pylist() for second in seconds))
    assert times == sorted(times) and len(set(times)) == len(times)
    assert times[0] == START + 58 * SECOND and START + 61 * SECOND <= times[-1] < START + 62 * SECOND
    assert seconds[2] == SMALL.second(60)


@pytest.mark.parametrize("rate", [1, 7, 200, 5000])
def test_in_a_minute_everyone_is_in_one_place(rate: int) -> None:
    """Whatever minute it is: in each, users in one vehicle, vehicles at one station, one travel time each."""
    scenario = Mobility(3000, rate)
    for first in range(0, 4 * WAVE, 37):
        seen: dict[tuple[str, str], str] = {}
        for second in islice(scenario.stream(first), WAVE):
            for subject, predicate, object_ in triples(second):
                assert seen.setdefault((subject, predicate), object_) == object_


def test_facts_are_of_three_kinds_and_all_are_known_to_the_background() -> None:
    facts = triples(*islice(SMALL.stream(), WAVE))
    kinds = Counter((low.strip("<>0123456789").rpartition("/")[2], p.rpartition("/")[2]) for low, p, _ in facts)
    assert kinds.keys() == {("user", "isIn>"), ("vehicle", "isIn>"), ("user", "remainingTravelTime>")}
    assert [round(n / len(facts), 1) for n in sorted(kinds.values())] == [0.1, 0.2, 0.7]
    known = {low for low, predicate, _ in triples(SMALL.background()) if predicate == TYPE}
    assert {low for low, _, _ in facts} | {high for _, p, high in facts if p == IS_IN} <= known


def test_users_report_every_ten_seconds_or_so_and_others_travel_in_the_next_wave() -> None:
    def users(first: int, many: int) -> list[str]:
        return [low for low, p, _ in triples(*islice(SMALL.stream(first), many)) if p == IS_IN and "user" in low]

    assert len({*users(0, 10)}) > 0.9 * len({*users(0, WAVE)})
    assert not {*users(0, WAVE)} & {*users(WAVE, WAVE)}
    assert len({*users(0, 4 * WAVE)}) == 4 * len({*users(0, WAVE)})


def test_who_reports_once_in_a_window_leaves_it_as_often_as_others_enter() -> None:
    scenario = Mobility(20_000, 200, wave=10, every=10)
    seconds = [set(triples(second)) for second in islice(scenario.stream(), 40)]
    for first in range(0, 30, 7):
        held = set[Triple]().union(*seconds[first : first + 10])
        assert len(held) > 0.9 * 10 * 200
        places = Counter(low for low, predicate, _ in held if predicate == IS_IN)
        assert set(places.values()) == {1}, "and everyone is in one place"
        assert len(seconds[first] - set[Triple]().union(*seconds[first + 1 : first + 11])) > 0.9 * 200


def test_a_position_has_a_handful_of_consequences_and_figure_2_has_answers() -> None:
    kg = KnowledgeGraph(mobility.rules())
    kg.update(insert=SMALL.background())
    before = len(kg)
    window = pa.concat_tables(islice(SMALL.stream(), 10)).select(COLUMNS)
    kg.update(insert=window)
    assert 3 < (len(kg) - before) / len(set(triples(window))) < 8
    text = mobility.query()
    plain = "\n".join(line for line in text.splitlines() if not line.startswith(("REGISTER", "FROM", "[")))
    answers = kg.query(plain, result="arrow")
    assert answers.num_rows > 100
    commuter = {low for low, p, high in triples(SMALL.background()) if high == f"<{SPACE}Commuter>" and p == TYPE}
    assert {*answers["user"].to_pylist()} <= commuter


def test_figure_2_is_as_printed_but_for_the_literal_and_its_prefix() -> None:
    text = mobility.query()
    assert text.startswith("REGISTER QUERY TotalAmountPerBroker COMPUTE EVERY 1sec AS\n")
    assert "\n[RANGE 10sec STEP 1sec]\n" in text and '"PT30M"^^xsd:duration' in text


def test_drawn_numbers_are_spread() -> None:
    found = np.bincount(mobility.drawn(10, 1, np.arange(100_000)), minlength=10)
    assert found.min() > 9500 and found.max() < 10_500


# -- Figure 7: table and chart -----------------------------------------------------------------------------------------


def rows_of(*more: dict[str, Any]) -> list[dict[str, Any]]:
    """Recomputation takes a second; maintenance grows with the share, by expiry ten times more slowly."""
    slopes = {"expiry": 0.1, "declarative": 1.0}
    made = [{"share": s, "algorithm": "recompute", "seconds": [0.9, 1.0, 5.0]} for s in (0.1, 1.0, 10.0, 30.0)]
    made += [{"share": s, "algorithm": a, "seconds": [k * s]} for a, k in slopes.items() for s in (0.1, 1.0, 10.0, 30.0)]
    return [*made, *more]


def test_algorithms_stand_in_the_papers_order_with_medians_and_crossings() -> None:
    found = Figure7.of(rows_of({"share": 10, "algorithm": "dred", "seconds": [3.0]}))
    assert list(found.runs) == ["recompute", "declarative", "expiry", "dred"]
    assert found.shares == [0.1, 1.0, 10.0, 30.0] and found.seconds("recompute", 1.0) == 1.0
    assert found.crossings("declarative", "recompute") == [1.0] and found.crossings("expiry", "recompute") == [10.0]
    assert found.crossings("expiry", "declarative") == found.crossings("dred", "recompute") == []


def test_cells_of_several_rows_are_put_together_and_empty_ones_are_not_measured() -> None:
    cell = {"share": 1, "algorithm": "expiry"}
    found = Figure7.of([{**cell, "seconds": [1.0]}, {**cell, "seconds": [3.0]}, {**cell, "share": 2, "seconds": []}])
    assert found.seconds("expiry", 1.0) == 2.0 and found.seconds("expiry", 2.0) is None and found.line("expiry") == [(1.0, 2.0)]


def test_the_table_has_seconds_factors_and_the_shares_at_which_lines_meet() -> None:
    found = Figure7.of(rows_of())
    out = StringIO()
    Console(width=132, file=out).print(tables.figure_7(found))
    rows = [[word.strip() for word in line.split("│")][1:-1] for line in out.getvalue().splitlines() if line.startswith("│")]
    assert rows[0] == ["0.1 %", "1.00", "0.10", "10", "0.010", "100"]
    assert tables.meetings(found) == [
        "declarative and recompute take the same time at 1 % (the paper: 2.5 %); below, declarative is quicker",
        "expiry and recompute take the same time at 10 % (the paper: 13 %); below, expiry is quicker",
        "expiry is quicker than declarative at all shares measured, 0.1 to 30 %",
    ]


def test_the_table_bears_what_was_not_measured() -> None:
    found = Figure7.of([{"share": 1, "algorithm": "expiry", "seconds": [0.5]}])
    assert tables.figure_7(found).row_count == 1 and tables.meetings(found) == []


def test_the_chart_is_drawn_where_matplotlib_is(tmp_path: Path) -> None:
    drawn = chart.draw(Figure7.of(rows_of({"share": 10, "algorithm": "dred", "seconds": [3.0]})), tmp_path / "windows.png")
    assert drawn == importable("matplotlib") == (tmp_path / "windows.png").exists()
    assert not chart.draw(Figure7.of([]), tmp_path / "none.png") and not (tmp_path / "none.png").exists()


# -- the command -------------------------------------------------------------------------------------------------------

PEERS = command.PEERS
TINY = ["--facts", "300", "--share", "1", "--share", "10", "--steps", "2", "--limit", "60"]
TINY += ["--background", "2000", "--window", "100", "--seconds", "5", "--ticks", "7", "--peer-ticks", "2"]


def nothing(_: str) -> None: ...


def test_the_command_measures_prints_and_writes(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["bench", "windows", *TINY, "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert "Figure 7" in done.output and "push + slide + query" in done.output and "resident" in done.output
    written = json.loads((tmp_path / "windows.json").read_text())
    assert {"machine", "date", "commit", "versions", "asked", "notes"} <= written.keys()
    rows = written["rows"]
    assert [(row["share"], row["algorithm"]) for row in rows] == [(share, name) for share in (1, 10) for name in ALGORITHMS]
    assert {row["status"] for row in rows} == {"ok"} and [row["change"] for row in rows] == [3] * 3 + [30] * 3
    for row in rows:
        assert len(row["seconds"]) == 2 and all(seconds > 0 for seconds in row["seconds"])
        assert [(slid["entered"], slid["left"]) for slid in row["slid"]] == [(row["change"], row["change"])] * 2
    assert [row["triples"] for row in rows[::3]] == [row["triples"] for row in rows[2::3]]
    assert [(met["one"], met["paper"]) for met in written["crossings"]] == [("declarative", 2.5), ("expiry", 13.0)]
    found = written["mobility"]
    assert (found["ticks"], found["window"], found["rate"], found["algorithm"]) == (7, 100, 20, "expiry")
    assert 80 < found["held"] <= 100 and found["slid"]["entered"] == 20 and found["slid"]["left"] > 10 and found["answers"]
    assert list(found["seconds"]) == ["push", "slide", "push+slide", "query", "push+slide+query", "read"]
    assert all(0 < told["median"] <= told["p99"] <= told["max"] for told in found["seconds"].values())
    assert [look["tick"] for look in found["memory"]] == [0, 7] and found["memory"][0]["resident"] > 1 << 20
    assert [(peer["algorithm"], peer["status"], len(peer["seconds"])) for peer in found["peers"]] == [
        (p, "ok", 2) for p in PEERS
    ]
    assert {tuple(peer["triples"]) for peer in found["peers"]} == {tuple(found["peers"][0]["triples"])}
    charts = {path.name for path in tmp_path.glob("*.png")}
    assert charts == ({"windows.png", "windows-ticks.png"} if importable("matplotlib") else set())


def test_a_part_may_be_measured_alone_and_unknown_names_are_refused(tmp_path: Path) -> None:
    runner, tail = CliRunner(), ["--out", str(tmp_path), "--output", "json"]
    done = runner.invoke(app, ["bench", "windows", *TINY, "--part", "mobility", "--peer", "dred", "--every", "2", *tail])
    assert done.exit_code == 0, done.output
    written = json.loads((tmp_path / "windows.json").read_text())
    assert written["rows"] == [] and [peer["algorithm"] for peer in written["mobility"]["peers"]] == ["dred"]
    assert (written["mobility"]["every"], written["mobility"]["wave"]) == (2, WAVE)
    for option, what in (("--part", "part"), ("--peer", "algorithm")):
        refused = runner.invoke(app, ["bench", "windows", *TINY, option, "magic", *tail])
        assert refused.exit_code != 0 and f"no {what} is called 'magic'" in f"{refused.output}{refused.exception}"


def test_numbers_of_triples_that_differ_are_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = [Cell(1.0, name, 10, triples=list(counts)) for name, counts in zip(ALGORITHMS, ((5, 6), (5, 7), (5,)), strict=True)]
    steps.compare(cells)
    assert [cell.status for cell in cells] == ["ok", "wrong", "ok"] and cells[1].line == "7 triples after step 2, not 6"
    monkeypatch.setattr(command, "_warm_up", lambda: None)
    monkeypatch.setattr(steps, "measure", lambda *_: [cells])
    asked = command.Asked(300, [1.0], 1, 2000, 100, 5, None, 1, (), 0, 1, 60, 0)
    assert command.main(asked, ["figure7"], tmp_path, as_json=True) == 1


def test_an_algorithm_that_takes_too_long_is_stopped_and_not_asked_again() -> None:
    found = list(steps.measure(experiments(3000, [1.0, 10.0]), ["expiry"], 2, 0.0001, nothing))
    assert [cell.status for cells in found for cell in cells] == ["stopped", "skipped"]
    cells = [cell for some in found for cell in some]
    assert tables.troubles(cells, None) == [
        "stopped: 1 %, expiry: more than 0.0001 s",
        "skipped: 10 %, expiry: a smaller share took too long",
    ]


def test_memory_grows_by_so_much_in_a_thousand_ticks() -> None:
    found = ticks.Ticks(1000, 100, 10, 10, 10)
    assert found.growth() is None
    found.memory = [{"tick": 0, "resident": 1000, "terms": 1}, {"tick": 500, "resident": 3000, "terms": 2}]
    assert found.growth() == 4000 and ticks.resident() > 1 << 20
