"""Rules that change on Spark, with a store and without."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conftest import assert_same, everything
from evergraph import KnowledgeGraph, Program
from evergraph.errors import UserError
from evergraph.maintain.choose import ALGORITHMS
from evergraph.store import Store
from test_rule_changes import CHILDREN, DYNASTIES, DYNASTY, dynasty
from test_rule_rows import PREFIX, classes, members
from test_shards import sharded

CHAIN = PREFIX + "ex:far[?x, ?w] :- ex:p[?x, ?y], ex:p[?y, ?z], ex:p[?z, ?w] ."
APART = PREFIX + "ex:E[?x] :- ex:D1[?x], NOT ex:D2[?x] ."
EDGES = PREFIX + "".join(f"ex:p[ex:n{i}, ex:n{i + 1}] . " for i in range(6))
CHANGES: list[dict[str, Any]] = [
    {"insert_rules": classes(range(10)), "insert": EDGES},
    {"insert_rules": CHAIN},
    {"insert_rules": APART, "delete_rules": classes(range(5, 7))},
    {"delete_rules": CHAIN, "insert": PREFIX + "ex:C2[ex:x1] ."},
    {"insert_rules": CHAIN, "delete": PREFIX + "ex:p[ex:n1, ex:n2] ."},
    {"delete_rules": classes(range(2)), "insert_rules": classes(range(10, 12))},
]
"""Shapes that grow, shrink and go, a long body that is cut for shards, and negation of a class that had instances before."""


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_shapes_cuts_and_negation_on_shards(algorithm: str, shards: int) -> None:
    kg = sharded(Program.parse(members(range(12))), shards)
    for number, change in enumerate(CHANGES, 1):
        kg.update(**change, algorithm=algorithm)
        fresh = KnowledgeGraph(Program(kg.rules.rules))
        fresh.update(insert=list(kg.explicit))
        assert_same(everything(kg), everything(fresh), f"{algorithm}, change {number}")


@pytest.mark.spark
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_volz_table_1_on_spark(spark: Any, algorithm: str) -> None:
    kg = KnowledgeGraph(Program(), engine=spark)
    kg.update(insert=CHILDREN)
    there: frozenset[int] = frozenset()
    for rule in (1, 2, 3, -1, -3, -2):
        change = {"insert_rules" if rule > 0 else "delete_rules": DYNASTY[abs(rule)]}
        kg.update(**change, algorithm=algorithm)  # type: ignore[arg-type]
        there = there | {rule} if rule > 0 else there - {-rule}
        assert dynasty(kg) == DYNASTIES.get(there, set()), (algorithm, there)


@pytest.mark.spark
@pytest.mark.parametrize("algorithm", ["auto", "counting", "declarative"])
def test_rules_of_a_store_change_on_spark(spark: Any, tmp_path: Path, algorithm: str) -> None:
    """The store verifies after each change."""
    memory = KnowledgeGraph(Program.parse(members(range(12))), store=tmp_path / "g")
    memory.update()
    kg = KnowledgeGraph.open(tmp_path / "g", engine=spark)
    for number, change in enumerate(CHANGES, 1):
        assert kg.update(**change, algorithm=algorithm).version == number
        reader = KnowledgeGraph.open(tmp_path / "g")
        reader.verify("reference")
        assert_same(everything(kg), everything(reader), f"{algorithm}, change {number}")
        assert len(reader.rules.rules) == len(kg.rules.rules) == Store(tmp_path / "g").snapshot().info.rules


@pytest.mark.spark
def test_a_failed_change_of_rules_leaves_shards_and_store_as_they_were(spark: Any, tmp_path: Path) -> None:
    kg = KnowledgeGraph(Program.parse("p(?x) :- q(?x) . q(1) ."), engine=spark, store=tmp_path / "g")
    kg.update()
    for change in (
        {"insert_rules": "q(?x) :- n(?x), NOT p(?x) ."},
        {"insert_rules": "r(?x) :- q(?x) .", "insert": "q(1, 2) ."},
    ):
        with pytest.raises(UserError):
            kg.update(**change)  # type: ignore[arg-type]
    assert not kg.update(insert_rules="r(?x) :- q(?x) .", dry_run=True).version
    assert Store(tmp_path / "g").snapshot().version == 0
    kg.update(insert_rules="s(?x) :- p(?x) .", insert="q(2) .")
    assert everything(kg) == {f"{name}({x})" for name in "pqs" for x in (1, 2)}


@pytest.mark.spark
def test_a_rule_that_derives_nothing_is_stored(spark: Any, tmp_path: Path) -> None:
    kg = KnowledgeGraph(Program.parse("p(?x) :- q(?x) . q(1) ."), engine=spark, store=tmp_path / "g")
    kg.update()
    assert kg.update(insert_rules="r(?x) :- s(?x) .").version == 1
    assert Store(tmp_path / "g").snapshot().info.rules == 2
