"""The benchmark of updates measures what it says: the updates of the paper, the same facts for all, figures that compare."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from time import sleep
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from evergraph import KnowledgeGraph, UserError
from evergraph.bench.apart import apart
from evergraph.bench.lubm import ontology, triples_of_university
from evergraph.bench.run_one import importable
from evergraph.bench.stopping import Stopped, stopped_after
from evergraph.bench.updates import charts, dataflow, six, tables
from evergraph.bench.updates.cells import Cell, Change, Subject, compare, measure
from evergraph.bench.updates.command import default_algorithms, main, same_closures
from evergraph.bench.updates.counting import overhead
from evergraph.bench.updates.deletions import HUNDRED, ONE, SIZES, Size, deletions
from evergraph.bench.updates.facts import MOST_TRIPLES, InstanceFacts, given, triple
from evergraph.bench.updates.growth import growth
from evergraph.bench.updates.spark import verdict
from evergraph.cli import app
from evergraph.maintain.choose import ALGORITHMS

LINES = 2000
QUICK = ("recompute", "dred", "auto")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The ontology and the beginning of University0, under the name of LUBM(1)."""
    file = tmp_path_factory.mktemp("data") / "lubm1.nt"
    lines = list(triples_of_university(0, seed=0))[:LINES]
    file.write_text(ontology() + "".join(f"{line}\n" for line in [*lines, lines[7]]))
    return file


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> dict[int, six.Update]:
    """The six updates of a graph of one university."""
    file = tmp_path_factory.mktemp("data") / "lubm1.nt"
    file.write_text(ontology() + "".join(f"{line}\n" for line in triples_of_university(0, seed=0)))
    return {update.number: update for update in six.updates(1, file)}


def nothing(_: str) -> None: ...


def cell(algorithm: str, seconds: float | None = None, **more: Any) -> Cell:
    figures = {"rules": "rhodf", "universities": 1, "operation": "delete", "update": "100 facts", "facts": 100, "closure": 10}
    return Cell(**{**figures, "algorithm": algorithm, "seconds": seconds, "derivations": 1, "without_reading": seconds} | more)


def text_of(table: Any) -> str:
    out = StringIO()
    Console(width=132, file=out).print(table)
    return out.getvalue()


# -- facts -----------------------------------------------------------------------------------------------------------


def test_drawn_facts_are_distinct_facts_of_instances_and_the_same_in_every_run(small: Path) -> None:
    facts = InstanceFacts(small)
    drawn = facts.draw(LINES)
    assert len(set(drawn)) == LINES and not set(drawn) & set(ontology().splitlines())
    assert InstanceFacts(small).draw(100) == drawn[:100] == facts.draw(100)
    assert InstanceFacts(small, seed=1).draw(100) != drawn[:100]
    assert not set(facts.draw(100, turn=1)) & set(facts.draw(100))
    with pytest.raises(ValueError, match="no 2,001 facts"):
        facts.draw(LINES + 1)


def test_few_facts_are_given_as_triples_and_many_as_text(small: Path) -> None:
    line = next(line for line in InstanceFacts(small).draw(LINES) if '"' in line)
    assert " ".join([*triple(line), "."]) == line
    assert given([line]) == [triple(line)]
    assert given([line] * (MOST_TRIPLES + 1)) == "\n".join([line] * (MOST_TRIPLES + 1))


def test_sizes_are_those_asked_for() -> None:
    assert [size.count(1000) for size in SIZES] == [1, 100, 5000, 10, 50, 100, 200, 400]
    assert [size.name for size in SIZES if size.both_ways] == [ONE.name, HUNDRED.name]


# -- the six updates -------------------------------------------------------------------------------------------------


def test_urbani_updates_1_and_2_trigger_no_reasoning(asked: dict[int, six.Update]) -> None:
    assert (len(asked[1].add), len(asked[1].remove)) == (1, 1)
    assert 15_000 < len(asked[2].remove) == len(asked[2].add) < 17_000
    graph = KnowledgeGraph("rhodf")
    graph.update(insert=ontology())
    for update in (asked[1], asked[2]):
        report = graph.update(insert="\n".join(update.add), dry_run=True)
        assert report.inserted.explicit == {"[]": len(update.add)} and not sum(report.inserted.derived.values())


def test_urbani_update_3_is_8_k_email_addresses_that_derive_one_fact_each(asked: dict[int, six.Update]) -> None:
    assert 7_500 < len(asked[3].remove) == len(asked[3].add) < 8_500
    assert all(triple(line)[1] == f"<{six.UB}emailAddress>" for line in (*asked[3].add, *asked[3].remove))
    graph = KnowledgeGraph("rhodf")
    graph.update(insert=ontology())
    report = graph.update(insert="\n".join(asked[3].add), dry_run=True)
    assert report.inserted.derived == {"[]": len(asked[3].add)}


def test_urbani_update_4_is_of_the_schema(asked: dict[int, six.Update]) -> None:
    names = [[term.rpartition("#")[2].rstrip(">") for term in triple(line)] for line in (*asked[4].remove, *asked[4].add)]
    assert names == [
        ["headOf", "subPropertyOf", "worksFor"],
        ["headOf", "subPropertyOf", "responsibleOf"],
        ["responsibleOf", "subPropertyOf", "Manager"],
    ]
    assert asked[4].remove[0] in ontology().splitlines()


def test_urbani_updates_5_and_6_are_whole_universities(asked: dict[int, six.Update]) -> None:
    first, next_one = set(triples_of_university(0, 0)), set(triples_of_university(1, 0))
    assert set(asked[5].remove) == first
    assert set(asked[5].add) == next_one - first
    assert set(asked[6].add) == (next_one | set(triples_of_university(2, 0))) - first
    assert asked[6].remove == (), "a graph of one university has no two to remove"


def test_the_paper_is_quoted_for_both_ways() -> None:
    assert six.TABLE_2[2].seconds("insert") == (8.2, None, None)
    assert six.TABLE_2[2].seconds("delete") == (None, 2049.6, 25.7)


# -- measuring -------------------------------------------------------------------------------------------------------


def test_every_measurement_starts_from_the_same_graph(small: Path) -> None:
    subject = Subject("rhodf", small, "dred", limit=60)
    there, back = cell("dred"), cell("dred", operation="insert")
    facts = InstanceFacts(small)
    measure(subject, there, [Change(delete=given(facts.draw(50, turn))) for turn in range(3)], back)
    assert (there.status, back.status) == ("ok", "ok")
    assert len(there.runs) == len(back.runs) == 3 and there.chose == "dred"
    assert there.closure is not None and there.closure < subject.closure == back.closure
    assert there.seconds is not None and there.without_reading is not None and 0 < there.without_reading < there.seconds


def test_a_change_that_cannot_be_undone_is_wrong(small: Path) -> None:
    """Inserting facts that are there and deleting them 'again' loses them."""
    subject, one = Subject("rhodf", small, "dred", limit=60), cell("dred")
    measure(subject, one, [Change(insert=given(InstanceFacts(small).draw(50)))])
    assert one.status == "wrong" and "after it was undone" in one.line


def test_what_takes_too_long_is_stopped_and_what_is_larger_skipped(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    update = KnowledgeGraph.update

    def slow(self: KnowledgeGraph, **asked: Any) -> Any:
        if asked.get("algorithm") == "dred" and len(asked["delete"]) > 1:
            sleep(60)
        return update(self, **asked)

    monkeypatch.setattr(KnowledgeGraph, "update", slow)
    sizes = (Size("1 fact", 2, facts=1), Size("2 facts", 2, facts=2, both_ways=True), Size("1 %", 2, share=0.01))
    found = deletions("rhodf", 1, small, ["recompute", "dred"], 2.5, nothing, sizes)
    assert [(c.operation, c.update, c.status) for c in found if c.algorithm == "dred"] == [
        ("delete", "1 fact", "ok"),
        ("delete", "2 facts", "stopped"),
        ("insert", "2 facts", "skipped"),
        ("delete", "1 %", "skipped"),
    ]
    assert {c.status for c in found if c.algorithm == "recompute"} == {"ok"}
    told = "\n".join(tables.troubles(found))
    assert "stopped: dred, rhodf, LUBM(1), delete 2 facts: more than 2.5 s" in told
    assert "skipped: dred, rhodf, LUBM(1), delete 1 %: 2 facts took more than 2.5 s" in told
    shown = text_of(tables.deletions_table(found))
    assert "> 2.5 s" in shown and shown.count("skipped") == 2


def test_an_algorithm_that_refuses_is_told(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    update = KnowledgeGraph.update

    def refuse(self: KnowledgeGraph, **asked: Any) -> Any:
        if asked.get("algorithm") == "declarative":
            raise UserError("EG205", "not here", "elsewhere")
        return update(self, **asked)

    monkeypatch.setattr(KnowledgeGraph, "update", refuse)
    found = deletions("rhodf", 1, small, ["recompute", "declarative"], 60, nothing, (Size("1 fact", 1, facts=1),))
    assert [(c.algorithm, c.status) for c in found] == [("recompute", "ok"), ("declarative", "unsupported")]


def test_stopping_leaves_no_timer_behind() -> None:
    with pytest.raises(Stopped), stopped_after(0.05):
        sleep(5)
    with stopped_after(5):
        pass
    sleep(0.2)


# -- comparing -------------------------------------------------------------------------------------------------------


def test_ratios_are_to_recompute_and_to_the_best_of_the_same_update() -> None:
    cells = [
        cell("recompute", 0.4),
        cell("dred", 0.1),
        cell("auto", 0.2),
        cell("dred", 9.0, update="1 %"),
        cell("x", status="stopped"),
    ]
    compare(cells)
    assert [(c.to_recompute, c.to_best) for c in cells] == [(1, 4), (0.25, 1), (0.5, 2), (None, 1), (None, None)]


def test_another_closure_than_recomputation_has_is_wrong() -> None:
    cells = [cell("recompute", 0.4), cell("dred", 0.1, closure=11)]
    compare(cells)
    assert cells[1].status == "wrong" and cells[1].line == "11 triples where recompute has 10"


def test_growth_compares_the_smallest_graph_with_the_largest() -> None:
    cells = [cell("dred", 2.0, universities=50), cell("dred", 1.0), cell("dred", 1.5, universities=10), cell("auto", 1.0)]
    (row,) = growth(cells)
    assert (row["algorithm"], row["small"], row["large"], row["ratio"]) == ("dred", 1, 50, 2.0)
    assert "2.00" in text_of(tables.growth_table([row]))


def test_peers_must_have_closures_of_the_same_sizes() -> None:
    ours = {"status": "ok", "line": "", "closure": 10, "closure_after": [9], "load": 1.0, "delete": [0.1], "insert": [0.2]}
    found = {
        "evergraph": ours,
        "same": dict(ours),
        "other": ours | {"closure_after": [8]},
        "none": {"status": "missing", "line": "no"},
    }
    same_closures(found)
    assert [row["status"] for row in found.values()] == ["ok", "ok", "wrong", "missing"]
    shown = text_of(tables.dataflow_table(found, 100))
    assert "wrong" in shown and "no" in shown and "100.00" in shown


def test_spark_is_held_to_the_same_closures() -> None:
    rows = [{"operation": o, "closures": c} for o, c in (("delete", [9, 8]), ("insert", [10, 10]), ("delete", [9, 8]))]
    assert verdict(rows, 10)["status"] == "ok"
    assert verdict([*rows, {"operation": "delete", "closures": [9, 7]}], 10)["status"] == "wrong"
    assert verdict([*rows, {"operation": "insert", "closures": [10, 9]}], 10)["status"] == "wrong"


def test_what_is_not_installed_is_said_to_be_so(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataflow, "importable", lambda name: False)
    found = dataflow.run("pathway", small, 100, 1)
    assert found == {"status": "missing", "line": "not installed: pip install pathway"}


def test_evergraph_is_measured_as_the_peer_is(small: Path) -> None:
    found = dataflow.run("evergraph", small, 10, 2)
    assert found["status"] == "ok" and len(found["delete"]) == len(found["insert"]) == 2
    graph = KnowledgeGraph("rhodf")
    graph.update(insert=[small])
    graph.update(delete=given(InstanceFacts(small).draw(10)))
    assert found["closure_after"][0] == len(graph)


@pytest.mark.skipif(not importable("pathway"), reason="pathway is not installed")
def test_pathway_reaches_the_same_closures(small: Path) -> None:
    arguments = [str(small), "10", "2"]
    found = {name: apart("evergraph.bench.updates.dataflow", [name, *arguments], 1, 120) for name in dataflow.SYSTEMS}
    same_closures(found)
    assert [row["status"] for row in found.values()] == ["ok", "ok"], found


# -- the command -----------------------------------------------------------------------------------------------------


def test_all_algorithms_are_measured_recomputation_first() -> None:
    assert set(default_algorithms()) == set(ALGORITHMS)
    assert default_algorithms()[0] == "recompute" and default_algorithms()[-1] == "auto"


def test_the_command_prints_tables_and_writes_json(small: Path, tmp_path: Path) -> None:
    arguments = ["bench", "updates", "--universities", "1", "--part", "deletions", "--part", "growth", "--rules", "rhodf"]
    arguments += [word for name in QUICK for word in ("--algorithm", name)]
    done = CliRunner().invoke(app, [*arguments, "--out", str(tmp_path), "--data", str(small.parent)])
    assert done.exit_code == 0, done.output
    assert "Updates of LUBM(1) under rhodf" in done.stdout and "delete 100 facts" in done.stdout
    found = json.loads((tmp_path / "updates.json").read_text())
    assert {row["algorithm"] for row in found["rows"]} == set(QUICK)
    skipped = {row["update"] for row in found["rows"] if row["status"] == "skipped"}
    assert skipped == {"5,000 facts"}, "this graph has not as many"
    assert all(row["status"] == "ok" and row["to_recompute"] for row in found["rows"] if row["update"] not in skipped)
    assert next(row["chose"] for row in found["rows"] if row["algorithm"] == "auto") in ALGORITHMS
    assert {"machine", "date", "commit", "versions", "limit", "growth"} <= found.keys()
    done = CliRunner().invoke(app, [*arguments, "--out", str(tmp_path), "--data", str(small.parent), "--output", "json"])
    assert len(json.loads(done.stdout)["rows"]) == len(found["rows"])


def test_names_that_do_not_exist_are_told_before_anything_is_measured(tmp_path: Path) -> None:
    for algorithms, parts in ((["drad"], ["deletions"]), (None, ["deletion"])):
        with pytest.raises(UserError, match="is called"):
            main([1], ["rhodf"], algorithms, parts, 60, tmp_path, tmp_path)
    assert not list(tmp_path.iterdir())


def test_tables_of_the_six_have_the_papers_columns() -> None:
    cells = [
        cell(algorithm, 0.5, operation=operation, update=f"update {number}", chose="dred")
        for number in six.TABLE_2
        for operation in ("insert", "delete")
        for algorithm in ("recompute", "backward-forward", "auto")
    ]
    added, removed = (text_of(tables.six_table(cells, operation)) for operation in ("insert", "delete"))
    assert "semi-naive" in added and "31.8" in added and "135.8" not in added
    assert "DRed" in removed and "2,903" in removed and "136" in removed


def test_charts_have_a_file_each(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    cells = [cell(name, 0.1 * n, facts=n) for name in QUICK for n in (1, 10)]
    assert charts.draw_deletions(cells, tmp_path / "deletions.png") and (tmp_path / "deletions.png").stat().st_size
    updates = [cell(name, 0.1, operation=o, update="update 3") for name in QUICK for o in ("insert", "delete")]
    assert charts.draw_six(updates, tmp_path / "six.png") and (tmp_path / "six.png").stat().st_size
    alone = [one for one in cells if one.facts == 1]
    assert not charts.draw_deletions(alone, tmp_path / "none.png"), "a point is no line"
    assert not charts.draw_deletions([], tmp_path / "none.png") and not (tmp_path / "none.png").exists()


def test_the_cost_of_counting_is_time_and_bytes(small: Path) -> None:
    row = overhead("rhodf", 1, small)
    assert row["status"] == "ok" and row["ratio"] > 0
    assert row["counting_bytes_per_fact"] > row["auto_bytes_per_fact"]
