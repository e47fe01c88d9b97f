"""The evaluation of Volz et al. 2003 measures what it says: their ontologies, right states, and figures that they have."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from evergraph import KnowledgeGraph, Program, UserError
from evergraph.bench.run_one import importable
from evergraph.bench.volz import chart, command, tables
from evergraph.bench.volz.generator import KINDS, SPACE, class_, make
from evergraph.bench.volz.measures import ALL, CHANGES, Cell, compare, measure
from evergraph.bench.volz.paper import APPENDIX_A, MEASURES, OOM, published
from evergraph.cli import app

STATES = 7
"""The set-up, and three things that go and come back."""


def rules(text: str) -> set[Any]:
    return set(Program.parse(f"@prefix : <{SPACE}> .\n{text}").rules)


def text_of(table: Any) -> str:
    out = StringIO()
    Console(width=132, file=out).print(table)
    return out.getvalue()


# -- the ontologies --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "rules"), [("taxonomy", 3900), ("dl", 7800), ("database", 42950)])
def test_the_counts_of_depth_five_are_those_that_the_docstring_has(kind: str, rules: int) -> None:
    found = make(kind, 5)
    many = {"properties": 19525, "property_instantiations": 32540} if kind != "taxonomy" else {}
    empty = {"properties": 0, "property_instantiations": 0}
    assert found.counts == empty | {"classes": 3905, "class_instantiations": 19525, "rules": rules} | many
    assert len(set(found.program.rules)) == rules
    assert found.facts.num_rows == len({tuple(row.values()) for row in found.facts.to_pylist()}) == 19525 + 32540 * bool(many)


def test_from_the_papers_classes_the_papers_other_counts_follow() -> None:
    assert (5 * 3950, 5 * (5 * 3950 // 3)) == (19750, 32915)


def test_an_axiom_of_each_kind_is_the_rule_of_its_translation() -> None:
    below = ":c1[?x] :- :c11[?x] ."
    related = ":c1[?x] :- :c1p0[?x, ?y] . :c12[?y] :- :c1p0[?x, ?y] ."
    defined = ":c1[?x] :- :c1p0[?x, ?y], :c12[?y] . :c1[?x] :- :c1p3[?x, ?y], :c15[?y] ."
    has = {kind: set(make(kind, 2).program.rules) for kind in KINDS}
    assert all(rules(below) <= found for found in has.values())
    assert [rules(related) <= has[kind] for kind in KINDS] == [False, True, False]
    assert [rules(defined) <= has[kind] for kind in KINDS] == [False, False, True]
    assert len(has["dl"]) == 2 * len(has["taxonomy"]) == 50


def test_the_same_seed_gives_the_same_ontology_and_the_same_draws() -> None:
    one, two, other = make("database", 3), make("database", 3), make("database", 3, seed=1)
    assert (one.program, one.query) == (two.program, two.query) and one.facts.equals(two.facts)
    assert not one.facts.equals(other.facts)
    assert one.some_facts(10, 0)[0].equals(two.some_facts(10, 0)[0])
    assert not one.some_facts(10, 0)[0].equals(one.some_facts(10, 1)[0])
    assert one.some_rules(15, 2) == two.some_rules(15, 2) != one.some_rules(15, 3)


def test_what_is_drawn_and_the_rest_are_all_there_is() -> None:
    ontology = make("dl", 3)
    facts, left = ontology.some_facts(10, 0)
    assert facts.num_rows == 206 and facts.num_rows + left.num_rows == ontology.facts.num_rows == 2065
    both = facts.to_pylist() + left.to_pylist()
    assert {tuple(row.values()) for row in both} == {tuple(row.values()) for row in ontology.facts.to_pylist()}
    for (drawn, rest), count in ((ontology.one_rule(0), 1), (ontology.some_rules(15, 0), 45)):
        assert len(drawn.rules) == count and set(drawn.rules) | set(rest.rules) == set(ontology.program.rules)
        assert len(rest.rules) == 300 - count


@pytest.mark.parametrize("kind", KINDS)
def test_the_needed_rules_are_fewer_and_give_the_same_answers(kind: str) -> None:
    ontology = make(kind, 3)
    needed = ontology.needed()
    assert len(needed.rules) == len(ontology.program.rules) / 5
    answers = []
    for program in (needed, ontology.program):
        graph = KnowledgeGraph(program, equality="off")
        graph.update(insert=ontology.facts)
        answers.append(sorted(graph.query(ontology.query, result="arrow")["x"].to_pylist()))
    assert answers[0] == answers[1] and answers[0]
    assert len(answers[0]) == (1 if kind == "database" else 155)


# -- the paper's figures ---------------------------------------------------------------------------------------------


def test_the_appendix_has_a_figure_or_a_gap_for_every_measure() -> None:
    assert {len(line) for line in APPENDIX_A.values()} == {len(MEASURES)}
    assert {line for line in APPENDIX_A if OOM in APPENDIX_A[line]} == {("dl", 5, 10), ("dl", 5, 15)}
    assert published("database", 5, 15) == dict.fromkeys(MEASURES)


def test_the_figures_stand_in_the_scanned_appendix() -> None:
    """Three lines of the scan, one without a figure that it repeats."""
    scan = {
        ("dl", 4, 15): "2774 2523 3515 3720 2894 4757 61979 50944 66395 61283 47528 58339 58104 58655 90277 89940 90910 0",
        ("dl", 4, 10): "2764 2523 3475 2894 4747 52613 47128 65214 51864 47047 56754 56371 57002 136128 134463 137928 137928 0",
        ("database", 3, 10): "152 70 265 151 431 1492 1382 1722 1489 1392 1402 1392 1412 1399 1389 1392 1402 0",
    }
    for line, text in scan.items():
        left = iter(text.split())
        assert all(str(figure) in left for figure in APPENDIX_A[line] if figure is not None), line


# -- measuring -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_cell_measures_everything_and_checks_every_state(kind: str) -> None:
    cell = measure(make(kind, 2), 10, "auto", 2, limit=60)
    assert (cell.status, cell.line, cell.checked) == ("ok", "", STATES)
    assert set(cell.runs) == set(ALL) and {len(runs) for runs in cell.runs.values()} == {2}
    assert set(cell.ran) == set(CHANGES) and cell.answers == (1 if kind == "database" else 30)
    row = cell.as_dict()
    found = row["milliseconds"]["set-up"]
    assert 0 < found["min"] <= found["mean"] <= found["max"] and sorted(found["runs"]) == [found["min"], found["max"]]
    add = row["milliseconds"]["add facts"]
    assert add["set_up_ratio"] == pytest.approx(found["mean"] / add["mean"])
    json.dumps(row)


def test_declarative_changes_rules_too() -> None:
    cell = measure(make("dl", 2), 15, "declarative", 1, limit=60)
    assert (cell.status, cell.line, cell.checked) == ("ok", "", STATES)
    assert cell.ran["remove facts"] == "declarative"


def test_a_state_that_is_not_what_follows_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """A graph that forgets to delete."""
    update = KnowledgeGraph.update
    monkeypatch.setattr(KnowledgeGraph, "update", lambda self, delete=(), **more: update(self, **more))
    cell = measure(make("taxonomy", 2), 10, "auto", 3, limit=60)
    assert cell.status == "wrong" and cell.line.startswith("after remove facts, 0 triples are missing and ")
    assert len(cell.runs["set-up"]) == 1


def test_what_differs_is_counted_on_both_sides() -> None:
    few, more = KnowledgeGraph(Program()), KnowledgeGraph(Program())
    few.update(insert=[(class_("2"), class_("3"), class_("4"))])
    more.update(insert=[(class_("2"), class_("3"), class_("4")), (class_("2"), class_("3"), class_("1"))])
    assert (compare(few, more), compare(more, few), compare(few, few)) == ((0, 2), (2, 0), (0, 0))


def test_a_run_that_takes_too_long_is_stopped() -> None:
    cell = measure(make("database", 3), 10, "auto", 1, limit=0.001)
    assert (cell.status, cell.line) == ("stopped", "a run took more than 0.001 s")


def test_an_unknown_algorithm_is_told_in_its_cell() -> None:
    assert measure(make("taxonomy", 2), 10, "magic", 1, limit=60).status == "unsupported"


# -- tables, chart, command ------------------------------------------------------------------------------------------


def made(kind: str, depth: int, **more: Any) -> Cell:
    runs = {name: [2.0, 4.0] for name in ALL} | {"set-up": [30.0]}
    return Cell(kind, depth, 10, "auto", runs=runs, **more)


def test_the_table_has_the_papers_figures_above_ours() -> None:
    lines = [[word.strip() for word in line.split("│")] for line in text_of(tables.table_of_kind([made("dl", 4)])).splitlines()]
    paper, ours, ratio = (next(line[3:-1] for line in lines if who in line) for who in ("paper", "auto", "set-up ÷"))
    assert paper == ["paper", "2,764", "–", "52,613", "51,864", "–", "136,128", "0", "–", "–"]
    assert ours == ["auto", "3", "30", *["3"] * 7]
    assert ratio == ["set-up ÷", "", "", "10×", "10×", "10×", "10×", "", "10×", "10×"]


def test_the_table_says_where_the_paper_ran_out_of_memory_and_what_went_wrong_here() -> None:
    assert "OoM" in text_of(tables.table_of_kind([made("dl", 5)]))
    bad = made("dl", 5, status="wrong", line="too few")
    assert tables.troubles([made("dl", 3), bad]) == ["wrong: dl, D = 5, 10 %, auto: too few"]


def test_the_chart_is_drawn_where_matplotlib_is(tmp_path: Path) -> None:
    assert chart.draw([], tmp_path / "none.png") is False
    drawn = chart.draw([made("dl", 4), made("dl", 5), made("taxonomy", 3)], tmp_path / "volz.png")
    assert drawn == importable("matplotlib") == (tmp_path / "volz.png").exists()


def test_the_command_measures_prints_and_writes(tmp_path: Path) -> None:
    arguments = ["bench", "volz", "--only", "taxonomy", "--depth", "3", "--change", "10", "--runs", "1", "--out", str(tmp_path)]
    done = CliRunner().invoke(app, [*arguments, "--algorithm", "auto"])
    assert done.exit_code == 0, done.output
    assert "taxonomy: milliseconds" in done.output and "1,284" in done.output
    written = json.loads((tmp_path / "volz.json").read_text())
    (row,) = written["rows"]
    assert (row["kind"], row["depth"], row["change"], row["status"]) == ("taxonomy", 3, 10, "ok")
    assert {"machine", "date", "commit", "versions"} <= written.keys()
    assert row["paper"]["add facts"] == 1284


def test_wrong_states_make_the_command_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "measure", lambda *_: made("dl", 3, status="wrong"))
    assert command.main(["dl"], [3], [10], ["auto"], 1, 60, tmp_path, as_json=True) == 1


@pytest.mark.parametrize(("kinds", "algorithms"), [(["wiki"], ["auto"]), (["dl"], ["magic"])])
def test_unknown_names_are_refused(kinds: list[str], algorithms: list[str], tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"is called '(wiki|magic)'"):
        command.main(kinds, [3], [10], algorithms, 1, 60, tmp_path)
