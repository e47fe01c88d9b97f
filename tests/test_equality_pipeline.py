"""Stores with names that Spark writes and opens: the same graph for every engine, after every change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conftest import assert_same, everything
from evergraph import KnowledgeGraph, Program
from evergraph.engines.base import Which
from test_equality_spark import CHANGES, FACTS, PREFIX, RULES

MORE = """<http://ex/cid> <http://ex/mum> <http://ex/evi> .
<http://ex/cid> <http://ex/mother> <http://ex/joy> .
<http://ex/eva> <http://ex/age> <http://ex/eva> .
"""


@pytest.mark.spark
@pytest.mark.parametrize("again", [False, True])
def test_a_store_with_names_on_spark(spark: Any, tmp_path: Path, again: bool) -> None:
    """What Spark writes, memory and Spark read, and verify; and what Spark opens it goes on with."""
    store, file = tmp_path / "graph", tmp_path / "more.nt"
    file.write_text(MORE)
    kg = KnowledgeGraph(Program.parse(RULES), equality="rewrite", engine=spark, store=store)
    slow = KnowledgeGraph(Program.parse(RULES), equality="axioms")
    changes = [{"insert": PREFIX + FACTS}, *CHANGES[:2], {"insert": file}, *CHANGES[2:]]
    for number, change in enumerate(changes):
        kg.update(**change)
        slow.update(**{**change, "algorithm": "recompute"})
        for engine in ("memory", spark):
            reader = KnowledgeGraph.open(store, engine=engine)
            for which in (Which.ALL, Which.EXPLICIT):
                assert_same(everything(reader, which), everything(slow, which), f"change {number}, {engine}, {which}")
            reader.verify()
        assert_same(everything(kg), everything(slow), f"change {number}")
        if again:
            kg = KnowledgeGraph.open(store, engine=spark)
