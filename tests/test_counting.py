"""Counting: ranks and counts are what they claim to be after every update, and they cost what they may."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from evergraph import KnowledgeGraph, Program
from evergraph.engine_choice import in_process
from evergraph.engines import marks as marks_module
from evergraph.engines import relation
from evergraph.engines.arrays import U64
from evergraph.engines.marks import count_of, rank_of
from evergraph.engines.shard import Shard
from evergraph.plan.model import Key, PlanAtom, PlanRule, is_variable
from evergraph.store import Store
from strategies import dense_changes, layered_programs, ontology_updates, programs
from test_deletions import Steps, ontology_changes

Fact = tuple[Key, tuple[int, ...]]
generated = settings(max_examples=150, phases=[Phase.explicit, Phase.reuse, Phase.generate])


def instances(rule: PlanRule, facts: Mapping[Key, list[tuple[int, ...]]], values: Any) -> Iterator[tuple[Fact, list[Fact]]]:
    """Heads and bodies of all instances of a rule, by nested loops."""

    def value(term: Any, env: dict[str, int]) -> Any:
        return env.get(term, term) if is_variable(term) else term

    def ground(atom: PlanAtom, env: dict[str, int]) -> Fact:
        return value(atom.relation, env), tuple(value(a, env) for a in atom.args)

    def match(body: tuple[PlanAtom, ...], env: dict[str, int], used: list[Fact]) -> Iterator[tuple[dict[str, int], list[Fact]]]:
        if not body:
            yield env, used
            return
        key = value(body[0].relation, env)
        for chosen in [k for k in facts if isinstance(k, int)] if is_variable(key) else [key]:
            for row in facts.get(chosen, []):
                new = {**env, **({body[0].relation: chosen} if body[0].open else {})}
                pairs = zip(body[0].args, row, strict=True)
                if all(new.setdefault(a, v) == v if is_variable(a) else a == v for a, v in pairs):  # type: ignore[arg-type]
                    yield from match(body[1:], new, [*used, (chosen, row)])  # type: ignore[arg-type]

    for env, used in match(rule.body, {}, []):
        absent = all(row not in facts.get(key, []) for key, row in (ground(a, env) for a in rule.negated))
        if absent and all(_holds(f, env, values) for f in rule.filters):
            yield ground(rule.head, env), used


def _holds(check: Any, env: dict[str, int], values: Any) -> bool:
    left, right = (np.array([env.get(v, v)], np.uint64) for v in (check.left, check.right))
    return bool(values.compare(check.operator, left, right)[0])


def assert_counts(kg: KnowledgeGraph) -> None:
    """The invariant of the model: count(f) is the number of instances of lower rank, and supports every derived fact."""
    shard: Shard = in_process(kg._engine).shard  # type: ignore[attr-defined]
    assert shard.marks is not None
    facts = {key: list(zip(*(c.tolist() for c in r.columns()), strict=True)) if r.arity else [()] * len(r)
             for key, r in shard.relations.items()}  # fmt: skip
    said: dict[Fact, int] = {}
    for key, held in shard.relations.items():
        known = shard.marks.get(key)
        values = known.of(shard.arrays, held.rows()).tolist() if known is not None else [0] * len(held)
        said.update({(key, row): value for row, value in zip(facts[key], values, strict=True)})
    ranks = {fact: rank_of(value) if value else 0 for fact, value in ((f, U64(v)) for f, v in said.items())}
    found: Counter[Fact] = Counter()
    for stratum in shard.plan.strata:
        for rule in stratum.rules:
            for head, body in instances(rule, facts, shard.plan.values):
                if max((ranks[f] for f in body), default=0) < ranks[head]:
                    found[head] += 1
    for fact, value in said.items():
        count = int(count_of(U64(value)))
        assert count == found[fact], (fact, ranks[fact])
        explicit = shard.explicit.get(fact[0])
        held_up = count > 0 or (explicit is not None and bool(_contains(shard, explicit, fact[1])))
        assert held_up, fact


def _contains(shard: Shard, held: relation.Relation, row: tuple[int, ...]) -> bool:
    return bool(held.contains(shard.arrays.pack([U64(v) for v in row], 1))[0])


@given(programs | layered_programs, st.integers(0, 2**32))
@generated
def test_counts_are_the_instances_of_lower_rank(program: Program, seed: int) -> None:
    kg = KnowledgeGraph(program)
    for facts, gone in dense_changes(program, Random(seed)):
        kg.update(insert=facts, delete=gone, algorithm="counting")
        assert_counts(kg)
        kg.verify()


@given(programs | layered_programs, st.integers(0, 2**32))
@generated
def test_counts_hold_when_marks_are_laid_out_again(program: Program, seed: int) -> None:
    """Merges happen at once or never: what is read must not depend on where it stands."""
    with patch.object(relation, "MERGE_FRACTION", 1), patch.object(marks_module, "MERGE_FRACTION", 1):
        kg = KnowledgeGraph(program)
        for facts, gone in dense_changes(program, Random(seed)):
            kg.update(insert=facts, delete=gone, algorithm="counting")
            assert_counts(kg)


@pytest.mark.parametrize("rules", ["rdfs", "owl2rl"])
def test_counts_hold_when_the_schema_changes(rules: str) -> None:
    program = Program.load(rules)

    @given(ontology_updates, st.randoms(use_true_random=False))
    @settings(max_examples=25, phases=[Phase.explicit, Phase.reuse, Phase.generate])
    def law(steps: Steps, random: Random) -> None:
        kg = KnowledgeGraph(program, equality="off")
        for facts, gone in ontology_changes(steps, random):
            kg.update(insert=facts, delete=gone, algorithm="counting")
            kg.verify()

    law()


@given(programs | layered_programs, st.integers(0, 2**32))
@settings(max_examples=12, phases=[Phase.explicit, Phase.reuse, Phase.generate])
def test_counts_are_kept_by_a_store(program: Program, seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        KnowledgeGraph(program, store=f"{folder}/kg").update()
        for facts, gone in dense_changes(program, Random(seed)):
            kg = KnowledgeGraph.open(f"{folder}/kg")
            report = kg.update(insert=facts, delete=gone, algorithm="counting")
            again = KnowledgeGraph.open(f"{folder}/kg")
            again._prepare()
            assert_counts(again)
            again.verify()
            assert report.algorithm == "counting"


RULES = "q(?x, ?z) :- p(?x, ?y), p(?y, ?z) . p(1, 2) . p(2, 3) . p(3, 4) ."


def test_a_store_keeps_counts_until_another_algorithm_writes(tmp_path: Path) -> None:
    kg = KnowledgeGraph(Program.parse(RULES), store=tmp_path / "kg")
    kg.update(algorithm="counting")
    assert Store(tmp_path / "kg").snapshot().info.counts
    opened = KnowledgeGraph.open(tmp_path / "kg")
    report = opened.update(insert="p(4, 5) .")
    assert (report.algorithm, report.reason) == ("counting", "facts are counted")
    assert [p.name for p in report.phases][:3] == ["read", "retract", "withdraw 1"]
    opened.update(delete="p(4, 5) .", algorithm="dred")
    snapshot = Store(tmp_path / "kg").snapshot()
    assert not snapshot.info.counts and not snapshot.files("counts")
    assert KnowledgeGraph.open(tmp_path / "kg").update(delete="p(1, 2) .").algorithm == "dred"


def test_counting_can_begin_on_a_store_without_counts(tmp_path: Path) -> None:
    KnowledgeGraph(Program.parse(RULES), store=tmp_path / "kg").update()
    kg = KnowledgeGraph.open(tmp_path / "kg")
    report = kg.update(algorithm="counting")
    assert (report.version, "nothing is counted yet" in report.reason) == (1, True)
    assert KnowledgeGraph.open(tmp_path / "kg").update(delete="p(1, 2) .").algorithm == "counting"


def test_many_counted_updates_are_compacted(tmp_path: Path) -> None:
    kg = KnowledgeGraph(Program.parse(RULES), store=tmp_path / "kg")
    kg.update(algorithm="counting")
    for number in range(4, 60):
        kg.update(insert=f"p({number}, {number + 1}) .", algorithm="counting")
    assert len(Store(tmp_path / "kg").snapshot().files("counts")) < 40
    again = KnowledgeGraph.open(tmp_path / "kg")
    again._prepare()
    assert_counts(again)


def test_a_saved_graph_keeps_its_counts(tmp_path: Path) -> None:
    kg = KnowledgeGraph(Program.parse(RULES))
    kg.update(algorithm="counting")
    kg.save(tmp_path / "kg")
    assert KnowledgeGraph.open(tmp_path / "kg").update(delete="p(1, 2) .").algorithm == "counting"


def test_what_was_said_of_a_fact_that_went_is_not_said_of_it_when_it_comes_back(tmp_path: Path) -> None:
    rules = Program.parse("q(?x) :- p(?x) . r(?x) :- q(?x) .")
    KnowledgeGraph(rules, store=tmp_path / "kg").update(insert=" ".join(f"p({n}) ." for n in range(200)), algorithm="counting")
    for change in ({"delete": "p(0) ."}, {"insert": "q(0) ."}, {"delete": "q(0) ."}):
        kg = KnowledgeGraph.open(tmp_path / "kg")
        kg.update(**change, algorithm="counting")
        kg.verify()


def test_a_failed_update_leaves_counts_as_they_were() -> None:
    kg = KnowledgeGraph(Program.parse(RULES))
    kg.update(algorithm="counting")
    with pytest.raises(RuntimeError), patch("evergraph.engines.waves.Waves.advance", side_effect=RuntimeError):
        kg.update(delete="p(2, 3) .", algorithm="counting")
    assert_counts(kg)
    assert kg.update(delete="p(2, 3) .").deleted.derived == {"q": 2}
    assert_counts(kg)
