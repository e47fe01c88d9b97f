"""The pipeline on Spark: the same bytes as in process, and stores that engines take turns on."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from evergraph import KnowledgeGraph, Program, UserError
from evergraph.bench.lubm.generator import ontology, triples_of_university
from evergraph.engines.base import Which
from evergraph.engines.spark import mail
from evergraph.engines.spark.engine import SparkEngine
from evergraph.rules.model import TRIPLE
from evergraph.store import Store, layout
from evergraph.store import read as store_read
from pipelines import FIRST, IS_A, NAMED, THIRD, all_formats, assert_same_bytes, data_folder  # noqa: F401 - a fixture
from stores import assert_equal

# -- on Spark --------------------------------------------------------------------------------------------------------


@pytest.mark.spark
@pytest.mark.parametrize("rules", ["rhodf", "owl2rl", "named"])
def test_spark_and_memory_write_the_same_bytes(spark: Any, data: Path, rules: str) -> None:
    """After a first load, a second one and a text update; the graph is opened again in between."""
    program = NAMED if rules == "named" else Program.load(rules)
    kg, plain = (KnowledgeGraph(program, store=data / e, engine=g, equality="off") for e, g in (("s", spark), ("m", "memory")))
    for step, source in enumerate((data / "first.nt", [data / "second.nt"], THIRD, "edge(8, 9) .", THIRD)):
        if step == 3:
            kg = KnowledgeGraph.open(data / "s", engine=spark)
        report, want = kg.update(insert=source), plain.update(insert=source)
        assert_equal(kg, plain, f"update {step}")
        assert_same_bytes(data / "s", data / "m", f"update {step}")
        assert (report.inserted, report.deleted, report.version) == (want.inserted, want.deleted, want.version)
    assert report.version == 3, "the last update changed nothing"
    assert kg.verify() == plain.verify()
    assert KnowledgeGraph.open(data / "s").verify(spark) == plain.verify()
    assert (
        kg.change_feed(1).drop(["_commit_timestamp"]).to_pylist()
        == plain.change_feed(1).drop(["_commit_timestamp"]).to_pylist()
    )
    old = KnowledgeGraph.open(data / "s", version=1, engine=spark)
    assert_equal(old, KnowledgeGraph.open(data / "m", version=1))
    with pytest.raises(UserError, match="EG407"):
        old.update(insert=FIRST)


@pytest.mark.spark
def test_a_department_of_lubm_gives_the_same_bytes(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "univ-bench.nt").write_text(ontology())
    (tmp_path / "department.nt").write_text("\n".join(islice(triples_of_university(0, 0), 6000)))
    kg, plain = (
        KnowledgeGraph("owl2rl", store=tmp_path / e, engine=g, equality="off") for e, g in (("s", spark), ("m", "memory"))
    )
    for one in (kg, plain):
        one.update(insert=[tmp_path / "univ-bench.nt", tmp_path / "department.nt"], operation="load")
    assert_same_bytes(tmp_path / "s", tmp_path / "m")
    assert plain.counts(Which.DERIVED)[TRIPLE] > 2000


@pytest.mark.spark
def test_spark_reads_every_format_from_folders_and_globs(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "in" / "deep").mkdir(parents=True)
    all_formats(tmp_path / "in")
    (tmp_path / "in" / "deep" / "more.nt").write_text(FIRST)
    (tmp_path / "in" / "empty.nt").write_text("")
    (tmp_path / "in" / "comments.nt").write_text("# nothing here\n\n")
    (tmp_path / "in" / "notes.txt").write_text("not data")
    kg, plain = (KnowledgeGraph(NAMED, store=tmp_path / e, engine=g) for e, g in (("s", spark), ("m", "memory")))
    glob = str(tmp_path / "in" / "*.nt*")
    for source in (tmp_path / "in" / "comments.nt", tmp_path / "in", [glob, tmp_path / "in" / "deep"]):
        kg.update(insert=source)
        plain.update(insert=source)
        assert_same_bytes(tmp_path / "s", tmp_path / "m", str(source))
        assert_equal(kg, plain)
    assert kg.version == 2, "blank nodes of a file that is read again are new"


@pytest.mark.spark
def test_spark_reads_files_beside_facts_and_rules_with_facts(spark: Any, data: Path) -> None:
    (data / "named.dlog").write_text("edge(1, 2) . far(2, 3, 4) .")
    kg, plain = (KnowledgeGraph(NAMED, store=data / e, engine=g) for e, g in (("s", spark), ("m", "memory")))
    for one in (kg, plain):
        one.update(insert=[data / "second.nt", data / "named.dlog", data / "first.nt"])
    assert_same_bytes(data / "s", data / "m")
    assert kg.counts(Which.EXPLICIT)["edge"] == 2


# -- stores that are opened on Spark ---------------------------------------------------------------------------------


@pytest.mark.spark
def test_engines_take_turns_on_one_store(spark: Any, data: Path) -> None:
    memory = KnowledgeGraph(NAMED, store=data / "g")
    plain = KnowledgeGraph(NAMED)
    writers = [memory, None, memory, None]
    for number, source in enumerate((data / "first.nt", THIRD, data / "second.nt", "edge(9, 7) .")):
        if number == 1:
            writers[1] = writers[3] = KnowledgeGraph.open(data / "g", engine=spark)
        writer = writers[number]
        assert writer is not None
        writer.update(insert=source)
        plain.update(insert=source)
        assert_equal(writer, plain, f"update {number}")
        assert_equal(KnowledgeGraph.open(data / "g"), plain, f"update {number}")


@pytest.mark.spark
def test_shards_hold_the_facts_they_own_after_opening(spark: Any, data: Path) -> None:
    made = KnowledgeGraph(NAMED, store=data / "g")
    made.update(insert=data / "first.nt")
    kg = KnowledgeGraph.open(data / "g", engine=spark)
    engine = kg._engine
    assert isinstance(engine, SparkEngine) and engine.shards == layout.SHARDS
    snapshot = Store(data / "g").snapshot()
    for shard, answer in engine.state.answers.items():
        facts = store_read.read_facts(snapshot, shard)
        assert {mail.key_of(key): n for key, n in answer["all"].items() if n} == {k: len(r) for k, r in facts.all.items()}
        assert {mail.key_of(key): n for key, n in answer["explicit"].items() if n} == {
            k: len(r) for k, r in facts.explicit.items()
        }
    assert_equal(kg, made)
    assert ("<http://ex/s1>", IS_A, "<http://ex/B>") in kg and ("<http://ex/s1>", IS_A, "<http://ex/Z>") not in kg
    assert sorted(map(tuple, kg.to_spark().collect())) == sorted(
        map(tuple, made.to_arrow().to_pandas().itertuples(index=False))
    )


@pytest.mark.spark
def test_the_number_of_jobs_of_an_update_does_not_depend_on_the_number_of_rules(spark: Any, data: Path) -> None:
    counts = []
    for copies in (1, 30):
        more = " ".join(f"path{n}(?x, ?z) :- path(?x, ?y), path(?y, ?z) ." for n in range(copies))
        program = Program((*NAMED.rules, *Program.parse(more).rules))
        KnowledgeGraph(program, store=data / f"g{copies}").update(insert=data / "first.nt")
        kg = KnowledgeGraph.open(data / f"g{copies}", engine=spark)
        for source in (data / "second.nt", THIRD):
            group = f"{source} {copies}"
            spark.sparkContext.setJobGroup(group, group)
            kg.update(insert=source)
            counts.append(len(spark.sparkContext.statusTracker().getJobIdsForGroup(group)))
    spark.sparkContext.setJobGroup("", "")
    assert counts[:2] == counts[2:] and 1 < counts[1] < counts[0] < 60


@pytest.mark.spark
@pytest.mark.parametrize("name", ["with space", "it's é#", "[1]", "{a,b}"])
def test_a_store_on_spark_may_stand_in_a_folder_of_any_name(spark: Any, data: Path, name: str) -> None:
    kg = KnowledgeGraph("rhodf", store=data / name, engine=spark)
    kg.update(insert=data / "second.nt")
    assert kg.to_spark().count() == len(kg) == len(KnowledgeGraph.open(data / name, engine=spark)) > 5


@pytest.mark.spark
def test_work_in_progress_goes_with_the_graph(spark: Any, data: Path) -> None:
    kg = KnowledgeGraph("rhodf", store=data / "s", engine=spark)
    kg.update(insert=data / "first.nt")
    with pytest.raises(UserError):
        kg.update(insert="<http://a> <http://p> oops .")
    kg.update(insert=data / "second.nt")
    assert len(list((data / "s" / "_scratch").iterdir())) == 1
    del kg
    assert not (data / "s" / "_scratch").exists() or not list((data / "s" / "_scratch").iterdir())


@pytest.mark.spark
def test_progress_is_told_of_every_stage(spark: Any, data: Path) -> None:
    told: list[tuple[str, float]] = []
    kg = KnowledgeGraph("rhodf", store=data / "s", engine=spark)
    report = kg.update(insert=data / "first.nt", progress=lambda what, share: told.append((what, share)))
    stages = ["parse", "dictionary", "encode"]
    assert [phase.name for phase in report.phases][:3] == stages
    assert [what for what, _ in told if what in stages] == sorted(
        (what for what, _ in told if what in stages), key=stages.index
    )
    assert set(stages) < {what for what, _ in told} and all(0 <= share <= 1 for _, share in told)
    assert report.phases[0].facts == FIRST.count("\n")
