"""Equality by representatives on Spark: names merge, part and merge again, with jobs and in the driver."""

from __future__ import annotations

from typing import Any

import pytest

from conftest import assert_same, everything
from evergraph import KnowledgeGraph, Program
from evergraph.engines.base import Which
from evergraph.errors import UserError

PREFIX = "@prefix : <http://ex/> .\n"
RULES = (
    PREFIX
    + """
    [?y, owl:sameAs, ?z] :- [?x, :mother, ?y], [?x, :mother, ?z] .
    [?x, :grandmother, ?z] :- [?x, :mother, ?y], [?y, :mother, ?z] .
    older(?x, ?y) :- [?x, :age, ?a], [?y, :age, ?b], ?a > ?b .
"""
)
FACTS = "[:ann, :mother, :eve] . [:eve, :mother, :ida] . [:eva, :age, 50] . [:ann, :age, 20] ."
CHANGES: list[dict[str, Any]] = [
    {"insert": f"{PREFIX} [:ann, :mother, :eva] ."},
    {"insert": f"{PREFIX} [:mother, owl:sameAs, :mum] . [:bob, :mum, :eva] . [:bob, :mother, :evi] ."},
    {"delete": f"{PREFIX} [:ann, :mother, :eva] ."},
    {"delete": f"{PREFIX} [:mother, owl:sameAs, :mum] .", "insert": f"{PREFIX} [:eva, owl:sameAs, :eve] ."},
    {"insert_rules": f"{PREFIX} [?x, owl:sameAs, ?y] :- [?x, :age, ?a], [?y, :age, ?a] ."},
    {"insert": f"{PREFIX} [:ida, :age, 20] . [:mum, owl:sameAs, :mother] .", "algorithm": "recompute"},
    {"delete_rules": f"{PREFIX} [?x, owl:sameAs, ?y] :- [?x, :age, ?a], [?y, :age, ?a] ."},
]


@pytest.mark.spark
@pytest.mark.parametrize("near", [-1, 1 << 20])
def test_names_merge_and_part_on_spark(spark: Any, near: int) -> None:
    """After each change the graph is that of the axioms, and, where that is quick, a dry run of the next one leaves it so."""
    kg = KnowledgeGraph(Program.parse(RULES), equality="rewrite", engine=spark)
    kg._engine.below.near = near  # type: ignore[attr-defined]
    slow = KnowledgeGraph(Program.parse(RULES), equality="axioms")
    for number, change in enumerate([{"insert": PREFIX + FACTS}, *CHANGES]):
        if near > 0:
            before = everything(kg)
            kg.update(**change, dry_run=True)
            assert_same(everything(kg), before, f"dry run of change {number}")
        report, expected = kg.update(**change), slow.update(**{**change, "algorithm": "recompute"})
        assert_same(everything(kg), everything(slow), f"change {number}")
        assert_same(everything(kg, Which.EXPLICIT), everything(slow, Which.EXPLICIT), f"change {number}, explicit")
        assert (report.inserted, report.deleted, kg.counts()) == (expected.inserted, expected.deleted, slow.counts())
    assert kg.verify()


@pytest.mark.spark
def test_a_failed_update_leaves_names_as_they_were(spark: Any) -> None:
    kg = KnowledgeGraph(Program.parse(RULES), equality="rewrite", engine=spark)
    kg.update(insert=PREFIX + FACTS)
    kg.update(insert=f"{PREFIX} [:ann, :mother, :eva] .")
    before = everything(kg)
    with pytest.raises(UserError):
        kg.update(delete=f"{PREFIX} [:ann, :mother, :eva] .", insert=f"{PREFIX} older(:ann) .")
    with pytest.raises(UserError):
        kg.update(delete=f"{PREFIX} [:ann, :mother, :eva] .", algorithm="dred")
    assert_same(everything(kg), before)
    kg.update(delete=f"{PREFIX} [:ann, :mother, :eva] .")
    assert kg.verify() and len(kg) < len(before)
