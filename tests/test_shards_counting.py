"""Counting on shards: what owners count, and what all homes know, is what it claims to be after every update."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from evergraph import KnowledgeGraph, Program
from evergraph.engines.arrays import U64
from evergraph.engines.marks import count_of, rank_of
from evergraph.engines.spark import files, marks
from evergraph.engines.spark.engine import SparkEngine
from evergraph.engines.spark.job import ALL, EXPLICIT, KEPT
from evergraph.plan.locality import HERE
from evergraph.store import Store
from pipelines import in_process
from strategies import dense_changes, layered_programs, ontology_updates, programs
from test_counting import Fact, instances
from test_deletions import Steps, ontology_changes
from test_shards import sharded


def assert_counted(kg: KnowledgeGraph) -> dict[Fact, int]:
    """Over the facts of all shards: owners count the instances of lower rank, and all homes of a fact know its rank.

    Returns the ranks.
    """
    engine = kg._engine
    assert isinstance(engine, SparkEngine) and engine.counted
    arrays = engine.schema.arrays
    said: dict[Fact, int] = {}
    ranks: dict[Fact, set[int]] = {}
    explicit: set[Fact] = set()
    for shard, answer in engine.state.answers.items():
        roles = files.load(arrays, engine.folder, tuple(files.Stored(*s) for s in answer["manifest"]), KEPT)
        known = marks.read(arrays, roles)
        for key, relation in roles[ALL].items():
            words = relation.rows()
            rows = [()] * len(relation) if not relation.arity else zip(*(c.tolist() for c in relation.columns()), strict=True)
            values = known[key].of(arrays, words).tolist() if key in known else [0] * len(relation)
            owners = engine.state.placement.owner(arrays, relation.arity, words).tolist()
            held = roles[EXPLICIT][key].contains(words).tolist() if key in roles[EXPLICIT] else [False] * len(relation)
            for row, value, owner, given_ in zip(rows, values, owners, held, strict=True):
                ranks.setdefault((key, row), set()).add(int(rank_of(U64(value))))
                if owner == shard:
                    said[key, row] = int(count_of(U64(value)))
                    explicit |= {(key, row)} if given_ else set()
    assert all(len(found) == 1 for found in ranks.values()) and said.keys() == ranks.keys()
    rank = {fact: found.pop() for fact, found in ranks.items()}
    facts: dict[Any, list[tuple[int, ...]]] = {}
    for key, row in rank:
        facts.setdefault(key, []).append(row)
    found: Counter[Fact] = Counter()
    for local in engine.local:
        for rule in local.rules.rules:
            everywhere = replace(rule, filters=tuple(f for f in rule.filters if f.operator != HERE))
            for head, body in instances(everywhere, facts, engine.plan.values):
                found[head] += max((rank[f] for f in body), default=0) < rank[head]
    for fact, counted in said.items():
        assert counted == found[fact], (fact, rank[fact])
        assert counted or fact in explicit, fact
    return rank


@given(programs | layered_programs, st.integers(0, 2**32), st.sampled_from([1, 2, 3, 7]))
@settings(max_examples=60, phases=[Phase.explicit, Phase.reuse, Phase.generate])
def test_shards_count_the_instances_of_lower_rank(program: Program, seed: int, shards: int) -> None:
    """From an empty graph that is counted: rules come to life, so that facts get further homes."""
    kg = sharded(program, shards)
    kg.update(algorithm="counting")
    for facts, gone in dense_changes(program, Random(seed)):
        kg.update(insert=facts, delete=gone, algorithm="counting")
        assert_counted(kg)


@given(ontology_updates, st.integers(0, 2**32), st.sampled_from([2, 5]))
@settings(max_examples=20, phases=[Phase.explicit, Phase.reuse, Phase.generate])
def test_shards_count_when_data_changes_the_schema(steps: Steps, seed: int, shards: int) -> None:
    """The schema is counted like the rest."""
    kg = sharded(Program.load("rhodf"), shards)
    kg.update(algorithm="counting")
    for facts, gone in ontology_changes(steps, Random(seed)):
        kg.update(insert=facts, delete=gone, algorithm="counting")
        assert_counted(kg)
        kg.verify()


@pytest.mark.parametrize("shards", [1, 2, 5])
def test_an_instance_is_lost_by_the_ranks_it_was_counted_by(shards: int) -> None:
    """p(1) goes and comes back by a longer way before the next stratum looks: what q(1) lost, it lost at the old rank."""
    program = Program.parse("""p(?x) :- a(?x) . b(?x) :- c(?x) . d(?x) :- b(?x) . e(?x) :- d(?x) . p(?x) :- e(?x) .
        q(?x) :- p(?x), NOT n(?x) .""")
    kg = sharded(program, shards)
    kg.update(insert="a(1) . c(1) . n(2) .", algorithm="counting")
    assert kg.update(delete="a(1) .", algorithm="counting").deleted.derived == {}
    assert_counted(kg)
    assert kg.update(delete="c(1) .", algorithm="counting").deleted.derived == {r: 1 for r in "bdepq"}


@pytest.mark.parametrize("shards", [1, 2, 3, 5])
def test_facts_get_further_homes_when_a_rule_comes_to_life(shards: int) -> None:
    """Both places where the atoms meet are second ones. Copies of new facts are news there, those of old ones are not."""
    kg = sharded(Program.parse("q(?x, ?z) :- a(?x, ?y), b(?z, ?y) . r(?x) :- a(?x, ?y) ."), shards)
    kg.update(insert=" ".join(f"a({n}, {n % 500}) ." for n in range(1000)), algorithm="counting")
    report = kg.update(insert="b(3, 2) . b(4, 7) .")
    assert (report.algorithm, report.inserted.derived, report.derivations) == ("counting", {"q": 4}, 4)
    assert report.examined < 50
    assert_counted(kg)
    assert kg.update(delete="a(2, 2) . b(4, 7) .").deleted.derived == {"q": 3, "r": 1}


@pytest.mark.parametrize("shards", [1, 2, 3, 5])
def test_facts_that_come_together_with_the_rule_that_joins_them(shards: int) -> None:
    kg = sharded(Program.parse("q(?x, ?z) :- a(?x, ?y), b(?z, ?y) ."), shards)
    kg.update(insert="c(1) .", algorithm="counting")
    assert kg.update(insert="a(1, 2) . b(3, 2) . a(5, 6) . b(7, 6) .").inserted.derived == {"q": 2}
    assert_counted(kg)


@pytest.mark.parametrize("shards", [1, 3])
def test_what_was_derived_once_and_is_inserted_now_has_rank_0(shards: int) -> None:
    """What marks said of it, before it went, is forgotten at all of its homes."""
    kg = sharded(Program.parse("q(?x, ?y) :- p(?x, ?y) . r(?x, ?y) :- q(?x, ?z), q(?y, ?z) ."), shards)
    kg.update(insert=" ".join(f"p({n}, {n}) ." for n in range(200)), algorithm="counting")
    was = assert_counted(kg)
    kg.update(delete="p(7, 7) .")
    gone = {fact for fact in was if fact[0] == "q"} - assert_counted(kg).keys()
    kg.update(insert="q(7, 7) .")
    now = assert_counted(kg)
    assert [(was[fact], now[fact]) for fact in gone] == [(1, 0)]


PATH = "path(?x, ?y) :- edge(?x, ?y) . path(?x, ?z) :- path(?x, ?y), edge(?y, ?z) ."
CHAIN = " ".join(f"edge({i}, {i + 1}) ." for i in range(8))


def test_counts_are_kept_until_another_algorithm_changes_something() -> None:
    kg = sharded(Program.parse(PATH), 3)
    kg.update(insert=CHAIN)
    assert "nothing is counted yet" in kg.update(delete="edge(7, 8) .", algorithm="counting").reason
    assert kg.update(insert="edge(7, 8) .").algorithm == "counting"
    assert "stay counted" in kg.update(delete="edge(7, 8) .", algorithm="recompute").reason
    assert_counted(kg)
    kg.update(delete="edge(6, 7) .", algorithm="dred", dry_run=True)
    assert_counted(kg)
    kg.update(delete="edge(6, 7) .", algorithm="dred")
    assert not kg._engine.counted and kg.update(delete="edge(5, 6) .").algorithm == "dred"


def test_a_failed_update_leaves_counts_as_they_were() -> None:
    kg = sharded(Program.parse(PATH), 3)
    kg.update(insert=CHAIN, algorithm="counting")
    with pytest.raises(RuntimeError), patch.object(kg._engine, "advance", side_effect=RuntimeError):
        kg.update(delete="edge(3, 4) .", algorithm="counting")
    assert_counted(kg)
    assert kg.update(delete="edge(3, 4) .").deleted.derived == {"path": 20}
    assert_counted(kg)


def test_a_store_that_shards_write_holds_no_counts(tmp_path: Path) -> None:
    """Those that another engine left there are dropped with the first change; the shards go on with their own."""
    store = Store(tmp_path / "kg")
    KnowledgeGraph(Program.parse(PATH), store=store.path).update(insert=CHAIN, algorithm="counting")
    assert store.snapshot().info.counts
    with in_process() as session:
        kg = KnowledgeGraph.open(store.path, engine=session)
        assert not kg._engine.counted
        kg.update(delete="edge(7, 8) .", algorithm="counting")
        report = kg.update(delete="edge(3, 4) .")
        assert (report.algorithm, report.deleted.derived) == ("counting", {"path": 16})
        snapshot = store.snapshot()
        assert snapshot.version == 2 and not snapshot.info.counts and not snapshot.files("counts")
    again = KnowledgeGraph.open(store.path)
    assert again.verify() == 6 + 12
    assert not again._engine.counted


def test_a_graph_of_shards_is_saved_without_counts(tmp_path: Path) -> None:
    kg = sharded(Program.parse(PATH), 3)
    kg.update(insert=CHAIN, algorithm="counting")
    kg.save(tmp_path / "kg")
    assert not Store(tmp_path / "kg").snapshot().info.counts
    assert KnowledgeGraph.open(tmp_path / "kg").verify() == kg.verify() == 8 + 36


def test_marks_that_did_not_change_are_not_written_again() -> None:
    kg = sharded(Program.parse(PATH + " far(?x) :- path(?x, ?y), NOT edge(?x, ?y) ."), 2)
    kg.update(insert=CHAIN, algorithm="counting")
    engine = kg._engine
    assert isinstance(engine, SparkEngine)
    first = {stored for stored in engine.state.manifest if stored[0] in (marks.MARKS, marks.LATER)}
    kg.update(insert="lonely(1) .")
    assert first and first <= engine.state.manifest


def test_the_work_is_reported() -> None:
    """Instances and facts looked at are those of one shard, however many there are."""
    work = []
    for shards in (1, 4):
        kg = sharded(Program.parse(PATH), shards)
        kg.update(insert=CHAIN, algorithm="counting")
        report = kg.update(delete="edge(7, 8) .", algorithm="counting")
        work.append((report.derivations, report.examined > 0))
    assert work[0] == work[1] == (work[0][0], True)
