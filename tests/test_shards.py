"""The shards of the Spark engine without Spark: placement, supersteps and mail on hundreds of random programs."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pyspark.errors import PySparkException

from conftest import assert_same, everything
from evergraph import KnowledgeGraph, Program
from evergraph.engines.base import Which
from evergraph.engines.spark import mail
from evergraph.engines.spark.engine import SparkEngine
from evergraph.engines.spark.job import ALL, GONE, Job
from evergraph.engines.spark.mail import Kind, Letter, key_of
from evergraph.engines.spark.superstep import Superstep
from evergraph.rules.model import Atom, Negation, Rule
from strategies import dense_changes, layered_programs, ontology_updates, programs, updates


class InProcess(SparkEngine):
    """Supersteps one shard after another, letters in a list: everything of the Spark engine but Spark."""

    def _frame(self, letters: Any) -> Any:
        return tuple(letters)

    def _superstep(self, job: Job, inbox: Any) -> Any:
        answers, out = {}, []
        for label in {one.shard for one in inbox}:
            shard = self.labels.index(label)
            table = Superstep(job, shard).run(mail.to_table([one for one in inbox if one.shard == label]))
            for row in table.to_pylist():
                if row["kind"] == Kind.ANSWER:
                    answers[shard] = json.loads(row["words"])
                else:
                    out.append(Letter(**row))
        self.jobs += 1
        return answers, tuple(out) or None


def sharded(program: Program, shards: int) -> KnowledgeGraph:
    kg = KnowledgeGraph(Program(program.rules), equality="off")
    kg._engine = InProcess(kg._plan, None, shards=shards)
    if program.facts:
        kg.update(insert=Program(facts=program.facts))
    return kg


@given(programs, updates, st.sampled_from([1, 2, 3, 7]))
@settings(max_examples=150)
def test_shards_equal_reference_after_every_update(program: Program, steps: list[list[Atom]], shards: int) -> None:
    many, slow = sharded(program, shards), KnowledgeGraph(program, engine="reference")
    for number, facts in enumerate(steps):
        report, expected = many.update(insert=facts), slow.update(insert=facts)
        assert_same(everything(many), everything(slow), f"{program}\nafter update {number}, {shards} shards")
        assert_same(everything(many, Which.DERIVED), everything(slow, Which.DERIVED), f"{program}\nderived")
        assert (report.inserted, report.deleted) == (expected.inserted, expected.deleted)


@pytest.mark.parametrize("rules", ["rhodf", "rdfs-jena", "owl2rl"])
def test_shards_equal_memory_when_data_changes_the_schema(rules: str) -> None:
    program = Program.load(rules)

    @given(ontology_updates, st.sampled_from([2, 5]))
    @settings(max_examples=40)
    def law(steps: list[list[Atom]], shards: int) -> None:
        many, one = sharded(program, shards), KnowledgeGraph(program, equality="off")
        for facts in steps:
            many.update(insert=facts)
            one.update(insert=facts)
            assert_same(everything(many), everything(one), str(steps))

    law()


@given(programs | layered_programs, st.integers(0, 2**32), st.sampled_from([1, 3]), st.sampled_from([0, 40, 1 << 20]))
@settings(max_examples=100)
def test_little_mail_is_read_in_the_driver(program: Program, seed: int, shards: int, near: int) -> None:
    """Whether supersteps are jobs or not, and when they become some, is nothing that a result tells."""
    with patch.object(SparkEngine, "near", near):
        many, slow = sharded(program, shards), KnowledgeGraph(program, engine="reference")
        for facts, gone in dense_changes(program, Random(seed)):
            many.update(insert=facts, delete=gone)
            slow.update(insert=facts, delete=gone)
            assert_same(everything(many), everything(slow), f"{program}\n{shards} shards, {near} bytes")


@pytest.mark.parametrize("shards", [1, 2, 3, 5, 7, 11])
def test_copies_are_there_before_a_negation_is_evaluated(shards: int) -> None:
    folder = Path(__file__).parent / "cases/negation/placed-by-a-later-stratum"
    program = Program.load(folder / "rules.dlog")
    many, slow = sharded(program, shards), KnowledgeGraph(program, engine="reference")
    for kg in (many, slow):
        kg.update(insert=folder / "base.dlog")
    assert_same(everything(many), everything(slow))


# -- deletions: DRed on shards is among `test_deletions` ---------------------------------------------------------------


def assert_deletes_like_the_reference(algorithms: str, program: Program, seed: int, shards: int) -> None:
    """Each update by the next of some algorithms: each leaves what the others need, copies and helper relations too."""
    many, slow = sharded(program, shards), KnowledgeGraph(program, engine="reference")
    for number, (facts, gone) in enumerate(dense_changes(program, Random(seed))):
        names = algorithms.split()
        report = many.update(insert=facts, delete=gone, algorithm=names[number % len(names)])
        expected = slow.update(insert=facts, delete=gone)
        what = f"{program}\nafter update {number}, {shards} shards, deleting {gone}"
        assert_same(everything(many), everything(slow), what)
        assert_same(everything(many, Which.EXPLICIT), everything(slow, Which.EXPLICIT), f"{what}\nexplicit")
        assert (report.inserted, report.deleted, report.missed) == (expected.inserted, expected.deleted, expected.missed)
        assert many.counts() == slow.counts()


@pytest.mark.parametrize(
    ("algorithms", "examples"),
    [
        ("backward-forward", 100),
        ("counting", 100),
        ("declarative", 20),
        ("dred declarative backward-forward recompute", 40),
        ("counting counting dred counting", 40),
        ("declarative dred", 20),
    ],
)
def test_shards_delete_like_the_reference(algorithms: str, examples: int) -> None:
    @given(programs | layered_programs, st.integers(0, 2**32), st.sampled_from([1, 2, 3, 7]))
    @settings(max_examples=examples, phases=[Phase.explicit, Phase.reuse, Phase.generate])
    def law(program: Program, seed: int, shards: int) -> None:
        assert_deletes_like_the_reference(algorithms, program, seed, shards)

    law()


@given(programs, st.integers(0, 2**32), st.sampled_from([1, 2, 3, 7]))
@settings(max_examples=100, phases=[Phase.explicit, Phase.reuse, Phase.generate])
def test_what_follows_does_not_go_before_it_comes_back(program: Program, seed: int, shards: int) -> None:
    """Proofs are complete, without negation: shards find each one, wherever its facts meet."""
    positive = (Rule(r.head, tuple(item for item in r.body if not isinstance(item, Negation))) for r in program.rules)
    kg = sharded(Program(tuple(positive)), shards)
    for facts, gone in dense_changes(program, Random(seed)):
        kg.update(insert=facts)
        kg.update(delete=gone, algorithm="backward-forward")
        engine = kg._engine
        assert isinstance(engine, SparkEngine)
        keys = {key_of(stored[1]) for stored in engine.state.manifest}
        for shard in engine.state.answers:
            went, there = (engine.gatherer.at(engine.state, role, shard, keys) for role in (GONE, ALL))
            assert not any(len(run.within(there[key])) for key, run in went.items() if key in there), f"{program}\n{gone}"


@pytest.mark.parametrize("rules", ["rhodf", "owl2rl"])
@pytest.mark.parametrize("algorithm", ["dred", "counting", "backward-forward"])
def test_shards_delete_when_data_changes_the_schema(rules: str, algorithm: str) -> None:
    program = Program.load(rules)

    @given(ontology_updates, st.integers(0, 2**32), st.sampled_from([2, 5]))
    @settings(max_examples=15, phases=[Phase.explicit, Phase.reuse, Phase.generate])
    def law(steps: list[list[Atom]], seed: int, shards: int) -> None:
        kg, rng, there = sharded(program, shards), Random(seed), set[Atom]()
        for insert in steps:
            delete = [fact for fact in sorted(there, key=str) if rng.random() < 0.4 and fact not in insert]
            there = (there - {*delete}) | {*insert}
            kg.update(insert=insert, delete=delete, algorithm=algorithm)
            kg.verify()

    law()


DELETING = (
    "back-before-a-later-stratum class-of-a-later-stratum cycle derived-in-two-strata negated-class-of-an-earlier-stratum"
)


@pytest.mark.parametrize("algorithm", ["dred", "counting", "backward-forward", "declarative"])
@pytest.mark.parametrize("name", DELETING.split())
def test_cases_on_any_number_of_shards(name: str, algorithm: str) -> None:
    folder = Path(__file__).parent / "cases/deletion" / name
    program = Program.load(folder / "rules.dlog")
    for shards in (1, 2, 3, 5):
        many, slow = sharded(program, shards), KnowledgeGraph(program, engine="reference")
        for step in ("base", "01", "02"):
            given_ = {kind: [f for f in folder.glob(f"{step}.{kind}.dlog")] for kind in ("insert", "delete")}
            given_["insert"] += folder.glob(f"{step}.dlog")
            for kg in (many, slow):
                kg.update(insert=given_["insert"], delete=given_["delete"], algorithm=algorithm if kg is many else "auto")
            assert_same(everything(many), everything(slow), f"{shards} shards, step {step}")


@pytest.mark.parametrize("shards", [1, 2, 5])
def test_helper_relations_follow_a_maintenance_program(shards: int) -> None:
    """The cut of a long body, and the guard of a class definition, are right for the algorithms that read them."""
    program = Program.parse("""@prefix ex: <http://example.org/> .
        q(?x, ?w) :- a(?x, ?y), b(?y, ?z), c(?z, ?w) .
        [?x, a, ?c] :- [?c, owl:someValuesFrom, ?d], [?c, owl:onProperty, ?p], [?x, ?p, ?y], [?y, a, ?d] .
    """)
    prefix = "@prefix ex: <http://example.org/> ."
    definition = f"{prefix} owl:someValuesFrom[ex:C, ex:D] . owl:onProperty[ex:C, ex:p] . b(2, 3) ."
    for algorithm in ("dred", "counting", "backward-forward"):
        kg = sharded(program, shards)
        kg.update(insert=f"{definition} a(1, 2) . ex:D[ex:d] . ex:p[ex:x, ex:d] .")
        kg.update(delete=definition, algorithm="declarative")
        kg.update(insert=f"{prefix} c(3, 4) . ex:p[ex:y, ex:d] .", algorithm=algorithm)
        assert "q" not in kg.counts() and kg.verify()
        kg.update(insert=definition, algorithm="declarative")
        kg.update(insert=f"{prefix} c(3, 5) . ex:p[ex:z, ex:d] .", delete=f"{prefix} ex:p[ex:x, ex:d] .", algorithm=algorithm)
        assert kg.counts()["q"] == 2 and kg.verify()


@pytest.mark.parametrize("algorithm", ["dred", "counting", "backward-forward", "declarative", "recompute"])
def test_mail_that_is_lost_is_sent_again(algorithm: str) -> None:
    """Whichever superstep an executor takes down with it, the update does the same, and says the same."""
    program = Program.parse("path(?x, ?y) :- edge(?x, ?y) . path(?x, ?z) :- path(?x, ?y), edge(?y, ?z) .")
    chain = " ".join(f"edge({i}, {i + 1}) ." for i in range(6))
    gone, comes = "edge(0, 2) . edge(4, 5) . edge(7, 7) . path(0, 1) .", "edge(1, 0) ."
    expected = KnowledgeGraph(program, engine="reference")
    expected.update(insert=f"{chain} edge(0, 2) .")
    want = expected.update(insert=comes, delete=gone)
    failed, number = True, 0
    while failed:
        kg = sharded(program, 3)
        kg.update(insert=f"{chain} edge(0, 2) .", algorithm=algorithm)
        real, supersteps, failed, number = kg._engine._superstep, count(1), False, number + 1  # type: ignore[attr-defined]

        def superstep(job: Job, inbox: Any, real: Any = real, supersteps: Any = supersteps, last: int = number) -> Any:
            nonlocal failed
            out = real(job, inbox)
            if next(supersteps) == last:
                failed = True
                raise PySparkException("Checkpoint block rdd_1_0 not found")
            return out

        with patch.object(kg._engine, "_superstep", superstep):
            report = kg.update(insert=comes, delete=gone, algorithm=algorithm)
        assert_same(everything(kg), everything(expected), f"superstep {number}")
        assert (report.inserted, report.deleted, report.missed) == (want.inserted, want.deleted, want.missed)
    assert number > 2
