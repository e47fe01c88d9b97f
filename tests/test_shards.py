"""The shards of the Spark engine without Spark: placement, supersteps and mail on hundreds of random programs."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from conftest import assert_same, everything
from evergraph import KnowledgeGraph, Program
from evergraph.engines.base import Which
from evergraph.engines.spark import mail
from evergraph.engines.spark.engine import SparkEngine
from evergraph.engines.spark.mail import Kind, Letter
from evergraph.engines.spark.superstep import Job, Superstep
from evergraph.rules.model import Atom
from strategies import dense_changes, layered_programs, ontology_updates, programs, updates


class InProcess(SparkEngine):
    """Supersteps one shard after another, letters in a list: everything of the Spark engine but Spark."""

    def _frame(self, letters: Any) -> Any:
        return list(letters)

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
        return answers, out or None


def sharded(program: Program, shards: int) -> KnowledgeGraph:
    kg = KnowledgeGraph(Program(program.rules))
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
        many, one = sharded(program, shards), KnowledgeGraph(program)
        for facts in steps:
            many.update(insert=facts)
            one.update(insert=facts)
            assert_same(everything(many), everything(one), str(steps))

    law()


@pytest.mark.parametrize("shards", [1, 2, 3, 5, 7, 11])
def test_copies_are_there_before_a_negation_is_evaluated(shards: int) -> None:
    folder = Path(__file__).parent / "cases/negation/placed-by-a-later-stratum"
    program = Program.load(folder / "rules.dlog")
    many, slow = sharded(program, shards), KnowledgeGraph(program, engine="reference")
    for kg in (many, slow):
        kg.update(insert=folder / "base.dlog")
    assert_same(everything(many), everything(slow))


# -- deletions: DRed on shards is among `test_deletions` ---------------------------------------------------------------


def assert_deletes_like_the_reference(algorithm: str, program: Program, seed: int, shards: int) -> None:
    many, slow = sharded(program, shards), KnowledgeGraph(program, engine="reference")
    for number, (facts, gone) in enumerate(dense_changes(program, Random(seed))):
        report = many.update(insert=facts, delete=gone, algorithm=algorithm)
        expected = slow.update(insert=facts, delete=gone)
        what = f"{program}\nafter update {number}, {shards} shards, deleting {gone}"
        assert_same(everything(many), everything(slow), what)
        assert_same(everything(many, Which.EXPLICIT), everything(slow, Which.EXPLICIT), f"{what}\nexplicit")
        assert (report.inserted, report.deleted, report.missed) == (expected.inserted, expected.deleted, expected.missed)
        assert many.counts() == slow.counts()


@pytest.mark.parametrize("algorithm", ["backward-forward", "declarative"])
def test_shards_delete_like_the_reference(algorithm: str) -> None:
    @given(programs | layered_programs, st.integers(0, 2**32), st.sampled_from([1, 2, 3, 7]))
    @settings(max_examples=120, phases=[Phase.explicit, Phase.reuse, Phase.generate])
    def law(program: Program, seed: int, shards: int) -> None:
        assert_deletes_like_the_reference(algorithm, program, seed, shards)

    law()
