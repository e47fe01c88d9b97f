"""The laws, on random programs, data and sequences of updates."""

from __future__ import annotations

from random import Random
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import assert_same, everything
from evergraph import KnowledgeGraph, Program
from evergraph.engines import modules, relation
from evergraph.engines.base import Which
from evergraph.rules.model import Atom
from strategies import dense_changes, layered_programs, ontology_updates, programs, updates


@given(programs, updates)
@settings(max_examples=400)
def test_memory_equals_reference_after_every_update(program: Program, steps: list[list[Atom]]) -> None:
    fast, slow = KnowledgeGraph(program), KnowledgeGraph(program, engine="reference")
    for number, facts in enumerate(steps):
        fast.update(insert=facts)
        slow.update(insert=facts)
        assert_same(everything(fast), everything(slow), f"{program}\nafter update {number}")
        assert_same(everything(fast, Which.DERIVED), everything(slow, Which.DERIVED), f"{program}\nderived")


@given(programs | layered_programs, st.integers(0, 2**32))
@settings(max_examples=200)
def test_dense_insertions_equal_the_reference(program: Program, seed: int) -> None:
    """Over few names, so that rules fire: random facts seldom meet."""
    fast, slow = KnowledgeGraph(program), KnowledgeGraph(program, engine="reference")
    for facts, _ in dense_changes(program, Random(seed)):
        fast.update(insert=facts)
        slow.update(insert=facts)
        assert_same(everything(fast), everything(slow), str(program))


@given(programs, updates)
@settings(max_examples=200)
def test_updates_equal_recomputation(program: Program, steps: list[list[Atom]]) -> None:
    kg = KnowledgeGraph(program)
    seen: list[Atom] = []
    for facts in steps:
        kg.update(insert=facts)
        seen += facts
    fresh = KnowledgeGraph(program)
    fresh.update(insert=seen)
    assert_same(everything(kg), everything(fresh), str(program))


@given(programs, updates)
@settings(max_examples=200)
def test_one_batch_equals_one_by_one(program: Program, steps: list[list[Atom]]) -> None:
    batch, single = KnowledgeGraph(program), KnowledgeGraph(program)
    for facts in steps:
        batch.update(insert=facts)
        for fact in facts:
            single.update(insert=[fact])
    assert_same(everything(batch), everything(single), str(program))


@given(programs, updates)
@settings(max_examples=200)
def test_reports_add_up(program: Program, steps: list[list[Atom]]) -> None:
    kg = KnowledgeGraph(program)
    for facts in steps:
        before = {w: kg.counts(w) for w in Which}
        shown = everything(kg)
        report = kg.update(insert=facts)
        after = {w: kg.counts(w) for w in Which}
        for name in after[Which.ALL] | before[Which.ALL]:
            grown = after[Which.EXPLICIT].get(name, 0) - before[Which.EXPLICIT].get(name, 0)
            assert report.inserted.explicit.get(name, 0) == grown, name
        fresh = everything(kg, Which.DERIVED) - shown
        assert sum(report.inserted.derived.values()) == len(fresh)
        assert sum(report.deleted.derived.values()) == len(shown - everything(kg))


@pytest.mark.parametrize(("rules", "examples"), [("rhodf", 150), ("rdfs", 60), ("rdfs-jena", 60), ("owl2rl", 25)])
def test_rule_sets_equal_reference_when_data_changes_the_schema(rules: str, examples: int) -> None:
    program = Program.load(rules)

    @given(ontology_updates)
    @settings(max_examples=examples)
    def law(steps: list[list[Atom]]) -> None:
        fast, slow = KnowledgeGraph(program, equality="off"), KnowledgeGraph(program, engine="reference", equality="off")
        for facts in steps:
            fast.update(insert=facts)
            slow.update(insert=facts)
            assert_same(everything(fast), everything(slow), str(steps))

    law()


@given(programs, updates)
@settings(max_examples=200)
def test_paths_for_large_data_equal_reference(program: Program, steps: list[list[Atom]]) -> None:
    """Bitmaps, offset tables and 16-bit ranks, which small data never reaches, forced on small data."""
    with (
        patch.object(relation, "BITMAP_FROM", 1),
        patch.object(relation, "BITMAP_BYTES", 1000),
        patch.object(modules, "MANY", 1),
        patch.object(relation, "MERGE_FRACTION", 1),
    ):
        fast, slow = KnowledgeGraph(program), KnowledgeGraph(program, engine="reference")
        for facts in steps:
            fast.update(insert=facts)
            slow.update(insert=facts)
            assert_same(everything(fast), everything(slow), f"{program}\n{steps}")
