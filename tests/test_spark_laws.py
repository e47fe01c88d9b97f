"""The laws on the Spark engine: a few random programs, since each update is a handful of jobs."""

from __future__ import annotations

import os
from itertools import islice
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from conftest import assert_same, everything
from evergraph import KnowledgeGraph, Program
from evergraph.engines.base import Which
from evergraph.rules.model import Atom
from strategies import dense_changes, layered_programs, ontology_updates, programs, updates

EXAMPLES = int(os.environ.get("EVERGRAPH_SPARK_EXAMPLES", "10"))
few = settings(
    max_examples=EXAMPLES,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

pytestmark = pytest.mark.spark


@given(program=programs, steps=updates)
@few
def test_spark_equals_reference_after_every_update(spark: Any, program: Program, steps: list[list[Atom]]) -> None:
    many, slow = KnowledgeGraph(program, engine=spark), KnowledgeGraph(program, engine="reference")
    for number, facts in enumerate(steps[:2]):
        report, expected = many.update(insert=facts), slow.update(insert=facts)
        assert_same(everything(many), everything(slow), f"{program}\nafter update {number}\n{steps}")
        assert_same(everything(many, Which.DERIVED), everything(slow, Which.DERIVED), f"{program}\nderived")
        assert report.inserted == expected.inserted
        assert report.deleted == expected.deleted


@given(steps=ontology_updates)
@few
def test_spark_equals_memory_when_data_changes_the_schema(spark: Any, steps: list[list[Atom]]) -> None:
    program = Program.load("owl2rl")
    many, one = KnowledgeGraph(program, engine=spark, equality="off"), KnowledgeGraph(program, equality="off")
    for facts in steps[:2]:
        many.update(insert=facts)
        one.update(insert=facts)
        assert_same(everything(many), everything(one), str(steps))


@pytest.mark.parametrize("algorithm", ["dred", "counting", "backward-forward", "declarative"])
def test_spark_deletes_like_the_reference(spark: Any, algorithm: str) -> None:
    @given(programs | layered_programs, st.integers(0, 2**32))
    @settings(few, max_examples=max(1, EXAMPLES // 3))
    def law(program: Program, seed: int) -> None:
        many, slow = KnowledgeGraph(program, engine=spark), KnowledgeGraph(program, engine="reference")
        for number, (facts, gone) in enumerate(islice(dense_changes(program, Random(seed)), 3)):
            report = many.update(insert=facts, delete=gone, algorithm=algorithm)
            expected = slow.update(insert=facts, delete=gone)
            assert_same(everything(many), everything(slow), f"{program}\nafter update {number}, deleting {gone}")
            assert (report.inserted, report.deleted, report.missed) == (expected.inserted, expected.deleted, expected.missed)

    law()
