"""The benchmark of equality measures what it says: data with small cliques, the same facts for all, states that are checked."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from io import StringIO
from itertools import count, islice
from pathlib import Path
from time import sleep
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from evergraph import KnowledgeGraph, UserError
from evergraph.bench.equality import alternating, chart, cliques, command, generator, measures, table1, tables
from evergraph.bench.equality.alternating import Side
from evergraph.bench.equality.measures import APPROACHES, AUTO, BF, BF_A, REMAT, REMAT_A, Cell, Load, Measured, crossing
from evergraph.bench.equality.programs import IDLE, graph, held, state, timed_update, university
from evergraph.bench.run_one import importable
from evergraph.bench.updates.facts import InstanceFacts
from evergraph.cli import app
from evergraph.report import Report

TRIPLES = 3000
SAME = generator.SAME


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("data") / "university.nt"
    generator.write(file, TRIPLES)
    return file


def nothing(_: str) -> None: ...


def text_of(table: Any) -> str:
    out = StringIO()
    Console(width=150, file=out).print(table)
    return out.getvalue()


def cell(approach: Any, size: str, facts: int, seconds: float | None, **more: Any) -> Cell:
    figures = {"derivations": 45_800, "gone": 146, "left": 10} if seconds is not None else {}
    return Cell("made up", approach.name, approach.equality, size, facts, seconds=seconds, **{**figures, **more})


def made() -> Measured:
    known = {"kept": "rewrite", "facts": 46_400_000, "cliques": 2, "names": 5, "largest": 3}
    loads = {
        "rewrite": Load(facts=46_400_000, derivations=79_300_000, cliques=known, runs=[70.0, 68.0, 69.0]),
        "axioms": Load("stopped", "more than 600 s"),
    }
    cells = [
        cell(BF, "100", 100, 0.5),
        cell(BF, "10 %", 10_000, 50.0),
        cell(REMAT, "100", 100, 50.0),
        cell(REMAT, "10 %", 10_000, 5.0),
        cell(BF_A, "100", 100, None, status="stopped", line="more than 120 s"),
        cell(BF_A, "10 %", 10_000, None, status="skipped", line="100 took more than 120 s"),
        cell(AUTO, "100", 100, 0.25, chose="backward-forward"),
    ]
    return Measured("made up", 100_000, 210, loads, cells)


# -- data and rules --------------------------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_distinct_triples() -> None:
    first = list(islice(generator.lines(), 20_000))
    assert first == list(islice(generator.lines(), 20_000)) and len(set(first)) == len(first)
    assert first != list(islice(generator.lines(seed=1), 20_000))


def test_a_file_has_as_many_triples_as_asked_for_and_no_half_of_one_is_left(tmp_path: Path) -> None:
    generator.write(tmp_path / "some.nt", 1234)
    assert (tmp_path / "some.nt").read_text() == "".join(islice(generator.lines(), 1234))
    assert [path.name for path in tmp_path.iterdir()] == ["some.nt"]


def test_a_few_percent_of_people_have_several_names_and_some_are_stated() -> None:
    names = {line.split()[0] for line in islice(generator.lines(), 50_000) if "#personalId>" in line}
    many = Counter(name.rstrip(">").rstrip("-") for name in names)
    several = [n for n in many.values() if n > 1]
    assert 0.03 < len(several) / len(many) < 0.10 and set(several) == {2, 3}
    assert sum(SAME in line for line in islice(generator.lines(), 50_000)) > 20


def test_plain_data_gives_everyone_one_name() -> None:
    names = [line.split() for line in islice(generator.lines(equal=False), 20_000)]
    assert not any(predicate == SAME for _, predicate, *_ in names)
    for key in ("personalId", "emailAddress"):
        values = [" ".join(rest) for _, predicate, *rest in names if predicate.endswith(f"#{key}>")]
        assert len(values) == len(set(values)) > 100


def test_the_program_has_rules_for_equality_without_filters_and_as_many_idle_ones_as_asked_for() -> None:
    rules = university().rules
    equal = [rule for rule in rules if SAME in rule.head.terms]
    assert 100 < len(rules) < 200 and len(equal) == 7 and all(len(rule.body) == 2 for rule in equal)
    assert len(university(idle=IDLE).rules) == len(rules) + 200


def test_facts_are_drawn_from_the_whole_file(small: Path) -> None:
    drawn = InstanceFacts(small, schema=0).draw(TRIPLES)
    assert sorted(drawn) == sorted(small.read_text().splitlines())


def test_a_clique_has_a_cause_and_ten_facts_a_name() -> None:
    by_value, by_chain = (list(cliques.lines(kind, 20)) for kind in cliques.KINDS)
    assert (len(by_value), len(by_chain)) == (1 + 20 + 200, 19 + 200)
    assert sum(SAME in line for line in by_chain) == 19 and not any(SAME in line for line in by_value)


# -- measuring; from here to the tables, graphs with equality are needed ----------------------------------------------


def test_cliques_of_the_university_are_small_and_there_are_some(small: Path) -> None:
    kg = graph(university(), "rewrite")
    seconds, report = timed_update(kg, insert=[small])
    known = kg.stats()["equality"]
    assert seconds > 0 and report.derivations > TRIPLES
    assert known["cliques"] > 3 and 2 <= known["largest"] <= 3
    assert held(kg) == known["facts"] and state(kg) == (len(kg), kg.stats()["explicit"], known)


def test_plain_data_has_no_cliques(tmp_path: Path) -> None:
    generator.write(tmp_path / "plain.nt", TRIPLES, equal=False)
    kg = graph(university(), "rewrite")
    kg.update(insert=[tmp_path / "plain.nt"])
    assert kg.stats()["equality"]["cliques"] == 0


def test_every_approach_deletes_the_same_and_restores_it(small: Path) -> None:
    found = table1.measure("small", small, university(), table1.sizes_of(TRIPLES, [10], [5]), 2, 60, 60, nothing)
    assert [c.line for c in found.cells if c.status != "ok"] == []
    assert [(c.approach, c.size) for c in found.cells] == [(a.name, s) for a in APPROACHES for s in ("10", "5 %")]
    for equality, many in (("rewrite", 3), ("axioms", 2)):
        assert len(found.loads[equality].runs) == many
        for size in ("10", "5 %"):
            assert len({(c.gone, c.left) for c in found.cells if (c.equality, c.size) == (equality, size)}) == 1
    assert {c.chose for c in found.cells if c.approach == BF.name} == {"backward-forward"}
    assert all(len(c.runs) == 2 for c in found.cells)


def test_a_graph_that_does_not_come_back_is_wrong(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = count()
    monkeypatch.setattr(measures, "state", lambda _: (next(numbers), 0, None))
    found = table1.measure("small", small, university(), [("10", 10), ("20", 20)], 1, 60, 60, nothing, [BF])
    assert [c.status for c in found.cells] == ["wrong", "skipped"]


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Updates that are given something wait longer than any limit."""

    def wait_for(what: str) -> None:
        def waiting(kg: KnowledgeGraph, **given: Any) -> tuple[float, Report]:
            if what in given:
                sleep(60)
            return timed_update(kg, **given)

        monkeypatch.setattr(measures, "timed_update", waiting)

    return wait_for


def test_a_deletion_that_takes_too_long_is_stopped_and_larger_ones_are_skipped(
    small: Path, slow: Callable[[str], None]
) -> None:
    slow("delete")
    found = table1.measure("small", small, university(), [("10", 10), ("20", 20)], 1, 0.1, 60, nothing, [REMAT])
    assert [(c.status, c.line) for c in found.cells] == [
        ("stopped", "more than 0.1 s"),
        ("skipped", "10 took more than 0.1 s"),
    ]


def test_a_materialisation_that_takes_too_long_is_stopped_once(small: Path, slow: Callable[[str], None]) -> None:
    slow("insert")
    found = table1.measure("small", small, university(), [("10", 10)], 1, 60, 0.1, nothing, [BF_A, REMAT_A])
    assert found.loads["axioms"].status == "stopped" and found.loads["axioms"].runs == []
    assert [c.line for c in found.cells] == ["the materialisation took more than 0.1 s"] * 2


@pytest.mark.parametrize("kind", cliques.KINDS)
def test_names_become_one_clique(kind: str) -> None:
    rewrite, axioms = (cliques.run(kind, 12, system) for system in ("rewrite", "axioms"))
    assert rewrite["status"] == axioms["status"] == "ok"
    assert rewrite["facts"] < axioms["facts"] and rewrite["per_fact"] < axioms["per_fact"]


def test_cliques_are_measured_in_processes_that_end_at_the_limit() -> None:
    rows = cliques.measure(["chain"], [5, 10], 0.001, nothing)
    assert {row["status"] for row in rows if row["names"] == 5} == {"timeout"}
    assert {row["status"] for row in rows if row["names"] == 10} == {"skipped"}


@pytest.mark.parametrize("part", ["idle", "plain"])
def test_what_is_measured_in_turns_agrees(part: str, tmp_path: Path) -> None:
    generator.write(tmp_path / "some.nt", TRIPLES, equal=part == "idle")
    sides = alternating.idle_sides() if part == "idle" else alternating.plain_sides()
    one, other = alternating.measure(part, tmp_path / "some.nt", sides, 2, nothing)
    assert (one.status, other.status) == ("ok", "ok") and one.gone == other.gone > 0
    assert all(len(side.runs["materialise"]) == 2 and len(side.runs["delete"]) == 6 for side in (one, other))
    assert other.rules - one.rules == (IDLE if part == "idle" else 0)


def test_the_command_measures_prints_and_writes(tmp_path: Path) -> None:
    sizes = ["--size", "2000", "--delete", "10", "--share", "5", "--clique", "5", "--repeat", "1"]
    folders = ["--out", str(tmp_path / "out"), "--data", str(tmp_path / "data")]
    done = CliRunner().invoke(app, ["bench", "equality", *sizes, *folders])
    assert done.exit_code == 0, done.output
    assert "university 2k" in done.output and "|I≈|" in done.output and "idle rules" in done.output
    written = json.loads((tmp_path / "out" / "equality.json").read_text())
    assert {"machine", "date", "commit", "versions", "limit", "seed", "notes"} <= written.keys()
    assert len(written["rows"]) == 2 * len(APPROACHES) and len(written["in_turns"]) == 4
    assert {(row["kind"], row["system"]) for row in written["cliques"]} == {
        (kind, system) for kind in cliques.KINDS for system in cliques.SYSTEMS
    }
    (data,) = written["data"]
    assert (data["explicit"], data["rules"]) == (2000, len(university().rules))
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == ["plain-2000-0.nt", "university-2000-0.nt"]


# -- tables, chart, command ------------------------------------------------------------------------------------------


def test_the_equilibrium_lies_where_the_times_cross() -> None:
    assert made().equilibrium == pytest.approx(1000 * 10 ** (1 / 3))
    assert crossing([]) is None and crossing([(10, 2.0), (100, 3.0)]) is None
    assert made().as_dict()["equilibrium_share"] == pytest.approx(0.01 * 10 ** (1 / 3))


def test_the_table_is_laid_out_as_the_papers() -> None:
    text = text_of(tables.table_1(made()))
    assert "|E| = 100k  |Π| = 210" in text and "|I≈| = 46.4M  T≈ = 69.00  D≈ = 79.3M" in text
    assert "|Iᴬ| = –  Tᴬ = > 600  Dᴬ = –" in text and "at 2.15k facts, 2.2 % of E" in text
    lines = [[word.strip() for word in line.split("│")][1:-1] for line in text.splitlines() if line.startswith("│")]
    first = ["100", "146", "0.50", "45.8k", "50.00", "45.8k", "–", "> 120", "–", "–", "–", "0.25", "backward-forward"]
    assert lines[0] == first
    assert lines[1][:4] == ["10k (10 %)", "146", "50.00", "45.8k"] and lines[1][7:] == ["–"] * 5 + [""]


def test_where_the_times_do_not_cross_the_table_says_which_is_quicker() -> None:
    found = made()
    found.cells = [c for c in found.cells if c.size == "100"]
    assert tables.balance(found).startswith("no equilibrium: B/F≈ is quicker")
    found.cells = []
    assert tables.balance(found) == "no equilibrium: nothing to compare"


def test_cells_that_leave_different_facts_are_wrong() -> None:
    found = made()
    found.cells[2].left = 11
    table1.compare(found)
    assert found.cells[2].line == "11 facts are left where B/F≈ leaves 10"
    assert [line for line in tables.troubles(found.cells, [], []) if line.startswith("wrong")] == [
        "wrong: made up, Remat≈, 100: 11 facts are left where B/F≈ leaves 10"
    ]


def test_the_clique_table_says_what_was_stopped() -> None:
    row = {"kind": "chain", "names": 500, "limit": 120.0, "line": ""}
    rows = [
        row | {"system": "rewrite", "status": "ok", "seconds": 0.5, "facts": 5000, "per_fact": 2.0},
        row | {"system": "axioms", "status": "timeout", "line": "stopped after 120 s"},
        row | {"system": "reasonable", "status": "missing", "line": "pip install reasonable"},
    ]
    (line,) = (line for line in text_of(tables.clique_table(rows)).splitlines() if line.startswith("│"))
    words = [word.strip() for word in line.split("│")][1:-1]
    assert words == ["chain", "500", "0.50", "5k", "2", "> 120", "–", "–", "not there", "–"]
    assert tables.troubles([], rows, [])[0] == "timeout: a clique of 500, chain, axioms: stopped after 120 s"


def test_what_is_measured_in_turns_has_a_ratio() -> None:
    runs = ({"materialise": [2.0, 4.0, 3.0], "delete": [0.5]}, {"materialise": [6.0], "delete": [0.25]})
    works = {"materialise": 10, "delete": 5}
    text = text_of(
        tables.sides_table(
            "turns", [Side("idle", name, 7, derivations=works, runs=r) for name, r in zip("ab", runs, strict=True)]
        )
    )
    assert "3.00" in text and "2.00×" in text and "0.50×" in text


def test_the_chart_is_drawn_where_matplotlib_is(tmp_path: Path) -> None:
    assert chart.draw([], 120, tmp_path / "none.png") is False
    drawn = chart.draw([made()], 120, tmp_path / "equality.png")
    assert drawn == importable("matplotlib") == (tmp_path / "equality.png").exists()


def test_wrong_states_make_the_command_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = made()
    found.cells[0].status = "wrong"
    monkeypatch.setattr(command, "_warm_up", lambda: None)
    monkeypatch.setattr(table1, "measure", lambda *_: found)
    asked = command.Asked([100], [10], [], [], 1, 60, 60, 0, tmp_path)
    assert command.main(asked, ["university"], tmp_path, as_json=True) == 1


def test_unknown_parts_are_refused(tmp_path: Path) -> None:
    asked = command.Asked([100], [10], [], [], 1, 60, 60, 0, tmp_path)
    with pytest.raises(UserError, match="no part is called 'magic'"):
        command.main(asked, ["magic"], tmp_path)


def test_sizes_are_numbers_and_shares_up_to_half_of_all() -> None:
    assert table1.sizes_of(1000, [100, 600], [25, 0.01]) == [("100", 100), ("25 %", 250)]
