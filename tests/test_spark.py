"""What is particular to the Spark engine: jobs, shards, folders, and what happens when there is no Spark."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from conftest import assert_same, everything
from evergraph import KnowledgeGraph, Program, UserError
from evergraph.engines.spark.engine import SparkEngine
from evergraph.engines.spark.labels import spread
from evergraph.rules.model import RDFS, TRIPLE
from test_cases import CASES, rules_of, run_case
from test_declarative import FIGURE_2, VOLZ, closed, edges

PATH = "path(?x, ?y) :- edge(?x, ?y) . path(?x, ?z) :- path(?x, ?y), edge(?y, ?z) ."
CHAIN = " ".join(f"edge({i}, {i + 1}) ." for i in range(8))

pytestmark = pytest.mark.spark


def engine_of(kg: KnowledgeGraph) -> SparkEngine:
    assert isinstance(kg._engine, SparkEngine)
    return kg._engine


def test_the_number_of_jobs_does_not_depend_on_the_number_of_rules(spark: Any) -> None:
    counts = []
    for copies in (1, 30):
        rules = PATH + " ".join(f"path{n}(?x, ?z) :- path(?x, ?y), path(?y, ?z) ." for n in range(copies))
        kg = KnowledgeGraph(Program.parse(rules), engine=spark)
        kg.update(insert=CHAIN)
        counts.append(engine_of(kg).jobs)
    assert counts[0] == counts[1] > 1


@pytest.mark.parametrize("algorithm", ["dred", "counting", "backward-forward"])
def test_the_jobs_of_a_deletion_do_not_depend_on_the_number_of_rules(spark: Any, algorithm: str) -> None:
    counts = []
    for copies in (1, 30):
        rules = PATH + " ".join(f"far{n}(?x, ?z) :- path(?x, ?y), path(?y, ?z) ." for n in range(copies))
        kg = KnowledgeGraph(Program.parse(rules), engine=spark)
        kg.update(insert=f"{CHAIN} edge(0, 2) .", algorithm=algorithm)
        before = engine_of(kg).jobs
        report = kg.update(delete="edge(0, 2) . edge(6, 7) .", algorithm=algorithm)
        assert report.deleted.derived["path"] == 14
        counts.append(engine_of(kg).jobs - before)
    assert counts[0] == counts[1] > 1


@pytest.mark.parametrize("algorithm", ["counting", "backward-forward", "declarative"])
@pytest.mark.parametrize("name", ["cycle", "class-of-a-later-stratum", "derived-in-two-strata"])
def test_cases_by_every_algorithm(spark: Any, name: str, algorithm: str) -> None:
    """A few: `test_shards` has them all, without Spark."""
    run_case(CASES / "deletion" / name, rules_of(CASES / "deletion" / name), spark, algorithm)


@pytest.mark.parametrize("algorithm", ["dred", "counting", "backward-forward", "declarative"])
def test_volz_figure_2(spark: Any, algorithm: str) -> None:
    """Classes below one another; b is below c no longer, and h comes below d. What e and f are below follows by d."""
    kg = KnowledgeGraph(VOLZ, engine=spark)
    kg.update(insert=edges(FIGURE_2), algorithm=algorithm)
    report = kg.update(insert=edges("hd"), delete=edges("bc"), algorithm=algorithm)
    assert (report.algorithm, report.engine) == (algorithm, "spark")
    assert (report.inserted.explicit, report.inserted.derived) == ({TRIPLE: 1}, {TRIPLE: 2})
    assert (report.deleted.explicit, report.deleted.derived) == ({TRIPLE: 1}, {TRIPLE: 3})
    assert kg.verify() == len(closed(["ab", "cg", "dc", "eb", "ed", "fe", "hd"]))


@pytest.mark.parametrize("algorithm", ["counting", "backward-forward", "declarative"])
def test_a_store_is_changed_by_every_algorithm(spark: Any, tmp_path: Path, algorithm: str) -> None:
    facts = {pair: f"<http://ex/{pair[0]}> <{RDFS}subClassOf> <http://ex/{pair[1]}> ." for pair in [*FIGURE_2, "hd"]}
    first = "\n".join(facts[pair] for pair in FIGURE_2)
    KnowledgeGraph("rhodf", engine=spark, store=tmp_path / "store").update(insert=first)
    kg = KnowledgeGraph.open(tmp_path / "store", engine=spark)
    kg.update(insert=facts["hd"], delete=facts["bc"], algorithm=algorithm)
    again = KnowledgeGraph.open(tmp_path / "store")
    assert again.verify() == kg.verify() == len(closed(["ab", "cg", "dc", "eb", "ed", "fe", "hd"]))


def test_a_maintenance_program_cannot_take_files_that_stay_with_the_workers(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "more.nt").write_text("<http://ex/c> <http://ex/p> <http://ex/d> .\n")
    kg = KnowledgeGraph("rhodf", engine=spark, store=tmp_path / "store")
    kg.update(insert="<http://ex/a> <http://ex/p> <http://ex/b> .")
    with pytest.raises(UserError, match="EG205"):
        kg.update(insert=tmp_path / "more.nt", algorithm="declarative")
    assert len(kg) == 1


def test_an_update_is_a_handful_of_jobs_over_the_shards_it_touches(spark: Any) -> None:
    kg = KnowledgeGraph(Program.parse(PATH), engine=spark)
    kg.update(insert=CHAIN)
    engine = engine_of(kg)
    before, jobs = dict(engine.state.answers), engine.jobs
    kg.update(insert="lonely(1) .")
    assert engine.jobs == jobs + 1
    touched = [n for n, answer in engine.state.answers.items() if answer["manifest"] != before[n]["manifest"]]
    assert len(touched) == 1


def test_a_small_change_starts_no_job(spark: Any) -> None:
    kg = KnowledgeGraph(Program.parse(PATH), engine=spark)
    kg.update(insert=CHAIN)
    engine = engine_of(kg)
    jobs, supersteps = engine.jobs, engine.supersteps
    with patch.object(SparkEngine, "near", 1 << 20):
        kg.update(insert="edge(8, 9) .", delete="edge(3, 4) .")
    assert engine.jobs == jobs and engine.supersteps > supersteps + 2
    kg.update(insert="edge(3, 4) .")
    assert engine.jobs > jobs and kg.verify() == 9 + 45


def test_files_that_did_not_change_are_not_written_again(spark: Any) -> None:
    kg = KnowledgeGraph(Program.parse(PATH), engine=spark)
    kg.update(insert=CHAIN)
    engine = engine_of(kg)
    first = engine.state.files
    kg.update(insert="lonely(1) .")
    assert first <= engine.state.files


@pytest.mark.parametrize("shards", [1, 2, 5])
def test_the_closure_does_not_depend_on_the_number_of_shards(spark: Any, shards: int) -> None:
    program = Program.parse(PATH + "far(?x) :- path(?x, ?y), NOT edge(?x, ?y) . both(?x, ?y) :- far(?x), far(?y), ?x != ?y .")
    expected = KnowledgeGraph(program)
    expected.update(insert=CHAIN)
    kg = KnowledgeGraph(program, engine=spark)
    kg._engine = SparkEngine(kg._plan, spark, shards=shards)
    kg.update(insert=CHAIN)
    assert_same(everything(kg), everything(expected))


def test_a_failed_job_leaves_the_graph_as_it_was(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kg = KnowledgeGraph(Program.parse(PATH), engine=spark)
    kg.update(insert=CHAIN)
    before = everything(kg)
    monkeypatch.setattr(engine_of(kg), "folder", tmp_path / "gone")
    with pytest.raises(UserError, match="EG204"):
        kg.update(insert="edge(20, 21) .")
    monkeypatch.undo()
    assert_same(everything(kg), before)
    kg.update(insert="edge(8, 9) .")
    assert kg.counts()["path"] == 45


def test_the_working_folder_goes_with_the_graph(spark: Any) -> None:
    kg = KnowledgeGraph(Program.parse(PATH), engine=spark)
    kg.update(insert=CHAIN)
    folder = engine_of(kg).folder
    assert any(folder.iterdir())
    del kg
    assert not folder.exists()


def test_old_files_are_swept(spark: Any) -> None:
    kg = KnowledgeGraph(Program.parse(PATH), engine=spark)
    for n in range(5):
        kg.update(insert=f"edge({n}, {n + 1}) .")
    engine = engine_of(kg)
    assert {p.name for p in engine.folder.iterdir()} <= engine._saved.files | engine.state.files


def test_every_shard_has_a_partition_of_its_own(spark: Any) -> None:
    for shards in (2, 3, 8):
        labels = spread(shards)
        frame = spark.createDataFrame([(n,) for n in labels], "shard int").repartition(shards, "shard")
        sizes = frame.rdd.glom().map(len).collect()
        assert sizes == [1] * shards


def test_contains_asks_only_the_owner(spark: Any) -> None:
    kg = KnowledgeGraph("rhodf", engine=spark)
    kg.update(insert="<http://a> <http://p> <http://b> . \n <http://b> <http://p> <http://c> .")
    assert ("<http://a>", "<http://p>", "<http://b>") in kg
    assert ("<http://a>", "<http://p>", "<http://c>") not in kg
    assert kg.counts() == {TRIPLE: 2}


def test_without_java_one_line_says_how_to_get_it(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from evergraph.cli import main; main()", "demo"],
        capture_output=True,
        text=True,
        env={**{k: v for k, v in os.environ.items() if k != "JAVA_HOME"}, "PATH": str(tmp_path)},
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error EG202: Spark needs Java 17") and len(done.stderr.splitlines()) == 1
    assert "Traceback" not in done.stderr


def test_workers_need_nothing_but_the_job(spark: Any) -> None:
    """What goes to the workers is small: no dictionary, no session."""
    import pickle

    kg = KnowledgeGraph("owl2rl", engine=spark, equality="off")
    kg.update(insert="<http://a> <http://p> <http://b> .")
    assert len(pickle.dumps(engine_of(kg).values.save())) < 1000
