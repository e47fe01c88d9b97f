from __future__ import annotations
from pathlib import Path
from typing import Any
import pytest
from conftest import assert_same, everything
from evergraph import KnowledgeGraph, Program
from evergraph.engines.base import Which
from test_equality_spark import CHANGES, FACTS, PREFIX, RULES


@pytest.mark.spark
@pytest.mark.parametrize("again", [False, True])
def test_a_store_with_names_on_spark(spark: Any, tmp_path: Path, again: bool) -> None:
    """What Spark writes, memory reads and verifies, after every change; and what it opens it goes on with."""
    from evergraph.engines.spark.engine import SparkEngine

    SparkEngine.near = 1 << 20
    kg = KnowledgeGraph(Program.parse(RULES), equality="rewrite", engine=spark, store=tmp_path / "g")
    slow = KnowledgeGraph(Program.parse(RULES), equality="axioms")
    (tmp_path / "a.nt").write_text(
        "<http://ex/cid> <http://ex/mum> <http://ex/evi> .\n<http://ex/cid> <http://ex/mother> <http://ex/joy> .\n<http://ex/eva> <http://ex/age> <http://ex/eva> .\n"
    )
    for number, change in enumerate(
        [{"insert": PREFIX + FACTS}, CHANGES[0], CHANGES[1], {"insert": tmp_path / "a.nt"}, *CHANGES[2:]]
    ):
        kg.update(**change)
        slow.update(**{**change, "algorithm": "recompute"})
        for engine in ("memory", spark):
            reader = KnowledgeGraph.open(tmp_path / "g", engine=engine)
            assert_same(everything(reader), everything(slow), f"change {number} {engine}")
            assert_same(everything(reader, Which.EXPLICIT), everything(slow, Which.EXPLICIT), f"change {number} {engine}")
        assert_same(everything(kg), everything(slow), f"change {number}")
        reader.verify()
        if again:
            kg = KnowledgeGraph.open(tmp_path / "g", engine=spark)
