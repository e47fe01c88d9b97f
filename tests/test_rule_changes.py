"""Rules that come and go: after every change the graph is what the rules in force give, whatever maintains it."""

from __future__ import annotations

from random import Random
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import assert_same, everything
from evergraph import KnowledgeGraph, Program
from evergraph.engines.base import Which
from evergraph.errors import UserError
from evergraph.maintain.choose import ALGORITHMS
from evergraph.plan import rulebook, transition
from evergraph.rules.checks import check
from evergraph.rules.model import Atom, BodyItem, Comparison, Negation, Rule, Term, Variable
from evergraph.rules.shape import shape_of
from strategies import CLASSES, EX, NAMES, dense_changes, layered_rules, rules
from test_counting import assert_counts
from test_shards import sharded

SWAPS = {
    **dict(zip(NAMES, NAMES[1:] + NAMES[:1], strict=True)),
    CLASSES[0]: CLASSES[1],
    CLASSES[1]: CLASSES[0],
    f"<{EX}p>": f"<{EX}q>",
    f"<{EX}q>": f"<{EX}p>",
}
STEPWISE = [name for name in ALGORITHMS if name != "auto"]


def swapped(rule: Rule) -> Rule:
    """A rule of the same shape with other constants."""

    def atom(a: Atom) -> Atom:
        return Atom(a.relation, tuple(map(term, a.terms)))

    def term(t: Term) -> Term:
        return t if isinstance(t, Variable) else SWAPS.get(t, t)

    def item(i: BodyItem) -> BodyItem:
        if isinstance(i, Comparison):
            return Comparison(i.operator, term(i.left), term(i.right))
        return Negation(atom(i.atom)) if isinstance(i, Negation) else atom(i)

    return Rule(atom(rule.head), tuple(map(item, rule.body)))


def pool_of(chosen: list[Rule]) -> list[Rule]:
    return list(dict.fromkeys([*chosen, *map(swapped, chosen), *(swapped(swapped(rule)) for rule in chosen)]))


pools = st.lists(rules() | layered_rules(), min_size=1, max_size=5).map(pool_of)


def identities(kg: KnowledgeGraph) -> set[Any]:
    return {shape_of(rule) for rule in kg.rules.rules}


def replay(pool: list[Rule], seed: int, algorithm: str, shards: int = 0) -> None:
    """Change rules and facts at random, and compare with a graph that never had other rules."""
    rng = Random(seed)
    first = Program(tuple(rule for rule in pool if rng.random() < 0.3))
    first = Program() if check(first) else first
    kg = sharded(first, shards) if shards else KnowledgeGraph(first)
    kg.update()
    explicit: set[Atom] = set()
    for insert, delete in dense_changes(Program(tuple(pool)), rng):
        there = list(kg.rules.rules)
        gone = [rule for rule in there if rng.random() < 0.4]
        came = [rule for rule in pool if rng.random() < 0.4]
        new = {shape_of(rule): rule for rule in came}
        after = {shape_of(rule): rule for rule in there if rule not in gone or shape_of(rule) in new} | new
        if check(Program(tuple(after.values()))):
            before = everything(kg)
            with pytest.raises(UserError, match="EG005"):
                kg.update(insert=insert, insert_rules=came, delete_rules=gone, algorithm=algorithm)
            assert list(kg.rules.rules) == there
            assert everything(kg) == before
            came, gone, after = [], [], {shape_of(rule): rule for rule in there}
        report = kg.update(insert=insert, delete=delete, insert_rules=came, delete_rules=gone, algorithm=algorithm)
        explicit = (explicit - set(delete)) | set(insert)
        said = f"{Program(tuple(after.values()))}\nby {algorithm} ({report.algorithm}), with {came}, less {gone}"
        assert identities(kg) == after.keys(), said
        fresh = KnowledgeGraph(Program(tuple(after.values())), engine="reference")
        fresh.update(insert=sorted(explicit, key=str))
        assert_same(everything(kg), everything(fresh), said)
        assert_same(everything(kg, Which.DERIVED), everything(fresh, Which.DERIVED), said)
        if not shards and kg._engine.counted:
            assert_counts(kg)


@pytest.mark.parametrize("lift_from", [2, 8])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@given(pools, st.integers(0, 2**32))
@settings(max_examples=60)
def test_rules_that_change_equal_rules_that_were_always_there(
    algorithm: str, lift_from: int, pool: list[Rule], seed: int
) -> None:
    with patch.object(rulebook, "LIFT_FROM", lift_from), patch.object(transition, "LIFT_FROM", lift_from):
        replay(pool, seed, algorithm)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@given(pools, st.integers(0, 2**32), st.sampled_from([1, 2, 3]))
@settings(max_examples=30)
def test_rules_change_on_shards(algorithm: str, pool: list[Rule], seed: int, shards: int) -> None:
    with patch.object(rulebook, "LIFT_FROM", 2), patch.object(transition, "LIFT_FROM", 2):
        replay(pool, seed, algorithm, shards)
