"""Counting on shards: what owners count, and what all homes know, is what it claims to be after every update."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from evergraph import KnowledgeGraph, Program
from evergraph.engines.arrays import U64
from evergraph.engines.marks import count_of, rank_of
from evergraph.engines.spark import files, marks
from evergraph.engines.spark.engine import SparkEngine
from evergraph.engines.spark.job import ALL, EXPLICIT, KEPT
from evergraph.plan.locality import HERE
from strategies import dense_changes, layered_programs, programs
from test_counting import Fact, instances
from test_shards import sharded


def assert_counted(kg: KnowledgeGraph) -> None:
    """Over the facts of all shards: owners count the instances of lower rank, and all homes of a fact know its rank."""
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


@given(programs | layered_programs, st.integers(0, 2**32), st.sampled_from([1, 2, 3, 7]))
@settings(max_examples=60, phases=[Phase.explicit, Phase.reuse, Phase.generate])
def test_shards_count_the_instances_of_lower_rank(program: Program, seed: int, shards: int) -> None:
    kg = sharded(program, shards)
    for facts, gone in dense_changes(program, Random(seed)):
        kg.update(insert=facts, delete=gone, algorithm="counting")
        assert_counted(kg)
