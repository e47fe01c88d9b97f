"""Rules that come and go: after every change the graph is what the rules in force give, whatever maintains it."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import assert_same, everything
from evergraph import KnowledgeGraph, Program
from evergraph.engine_choice import in_process
from evergraph.engines.base import Which
from evergraph.errors import UserError
from evergraph.maintain.choose import ALGORITHMS
from evergraph.plan import rulebook, transition
from evergraph.rules.checks import check
from evergraph.rules.model import TRIPLE, Atom, BodyItem, Comparison, Negation, Rule, Term, Variable
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


def assert_rows(kg: KnowledgeGraph, said: str) -> None:
    """The engine holds the rows of the rules in force, and no others."""

    def rows(columns: Any) -> list[Any]:
        return sorted(zip(*(column.tolist() for column in columns), strict=True))

    want = {name: rows(columns) for name, columns in kg._plan.parameter_facts.items()}
    shard = in_process(kg._engine).shard  # type: ignore[attr-defined]
    for held in (shard.explicit, shard.relations):
        assert {name: rows(held[name].columns()) for name in want} == want, said


def replay(pool: list[Rule], seed: int, algorithm: str, shards: int = 0, engine: str = "memory") -> None:
    """Change rules and facts at random, and compare with a graph that never had other rules."""
    rng = Random(seed)
    first = Program(tuple(rule for rule in pool if rng.random() < 0.3))
    first = Program() if check(first) else first
    kg = sharded(first, shards) if shards else KnowledgeGraph(first, engine=engine)
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
        if not shards:
            assert_rows(kg, said)
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


# -- rules of one shape -------------------------------------------------------------------------------------------------


def owners(*rows: tuple[int, int]) -> str:
    return " ".join(f"p(?x, {a}, {b}) :- q(?x) ." for a, b in rows)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("shards", [0, 2])
@pytest.mark.parametrize("facts", ["", "q(1) ."])
@pytest.mark.parametrize(
    "changes",
    [
        [([(1, 2), (1, 3)], []), ([], [(1, 2)])],
        [([(1, 2), (1, 3)], [(1, 1)])],
        [([(1, 2), (1, 3)], []), ([(2, 2)], []), ([], [(1, 1)])],
        [([(1, 2), (1, 3)], []), ([(2, 2), (2, 3)], [(1, 2), (1, 3)]), ([], [(1, 1), (2, 2)])],
    ],
    ids=["a row", "alone while others become rows", "alone beside rows", "alone and a row"],
)
def test_a_rule_that_went_derives_no_more(
    algorithm: str, shards: int, facts: str, changes: list[tuple[list[tuple[int, int]], list[tuple[int, int]]]]
) -> None:
    """Nor by any other algorithm later: the engine has let go of it. `p(?x, 1, 1) :- q(?x)` is there first, and is no row."""
    with patch.object(rulebook, "LIFT_FROM", 2), patch.object(transition, "LIFT_FROM", 2):
        program, there = Program.parse(owners((1, 1))), {(1, 1)}
        kg = sharded(program, shards) if shards else KnowledgeGraph(program)
        kg.update(insert=facts)
        for come, go in changes:
            kg.update(insert_rules=owners(*come), delete_rules=owners(*go), algorithm=algorithm)
            there = (there - {*go}) | {*come}
            if not shards:
                assert_rows(kg, str(there))
        for x in (2, 3):
            kg.update(insert=f"q({x}) .", algorithm="auto" if x == 2 else algorithm)
            assert {(int(a), int(b)) for y, a, b in kg.relation("p") if int(y) == x} == there
        kg.verify()


# -- Volz, Table 1 ------------------------------------------------------------------------------------------------------

DYNASTY = {
    1: "inDynasty(?x, ?y) :- hasChild(?x, ?y) .",
    2: "inDynasty(?x, ?y) :- inDynasty(?x, ?z), inDynasty(?z, ?y) .",
    3: "inDynasty(?x, ?y) :- inDynasty(?y, ?x) .",
}
CHILDREN = "hasChild(1, 2) . hasChild(2, 3) . hasChild(4, 3) ."
PAIRS = {(1, 2), (2, 3), (4, 3)}
EVERYONE = {(x, y) for x in range(1, 5) for y in range(1, 5)}
DYNASTIES = {
    frozenset[int](): set(),
    frozenset({1}): PAIRS,
    frozenset({1, 2}): PAIRS | {(1, 3)},
    frozenset({1, 3}): PAIRS | {(y, x) for x, y in PAIRS},
    frozenset({1, 2, 3}): EVERYONE,
}
"""What inDynasty is by which of the rules; without the first it is empty."""


def dynasty(kg: KnowledgeGraph) -> set[tuple[int, ...]]:
    return {tuple(int(x) for x in row) for row in kg.relation("inDynasty")} if "inDynasty" in kg.counts() else set()


@pytest.mark.parametrize("engine", ["memory", "reference", "shards"])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_volz_table_1_in_every_order(algorithm: str, engine: str) -> None:
    """§4.1: the ontology of Table 1 with its rules coming one by one, and going again, in every order."""
    for coming in permutations(DYNASTY):
        for going in permutations(DYNASTY):
            kg = sharded(Program(), 3) if engine == "shards" else KnowledgeGraph(Program(), engine=engine)
            kg.update(insert=CHILDREN)
            there: frozenset[int] = frozenset()
            for rule in coming:
                kg.update(insert_rules=DYNASTY[rule], algorithm=algorithm)
                there |= {rule}
                assert dynasty(kg) == DYNASTIES.get(there, set()), (coming, there)
            for rule in going:
                kg.update(delete_rules=DYNASTY[rule], algorithm=algorithm)
                there -= {rule}
                assert dynasty(kg) == DYNASTIES.get(there, set()), (coming, going, there)
        if engine == "shards":
            break  # the orders of going, once


PREFIX = f"@prefix ex: <{EX}> .\n"


# -- ontologies ---------------------------------------------------------------------------------------------------------

TURTLE = """@prefix : <http://example.org/> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
"""


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_an_ontology_is_applied_by_its_difference(tmp_path: Path, algorithm: str) -> None:
    first, second = tmp_path / "1.ttl", tmp_path / "2.ttl"
    first.write_text(TURTLE + ":A rdfs:subClassOf :B . :B rdfs:subClassOf :C . :boss a :C .")
    second.write_text(TURTLE + ":A rdfs:subClassOf :C . :B rdfs:subClassOf :C . :A rdfs:subClassOf [ owl:unionOf (:D :E) ] .")
    mine = PREFIX + "ex:C[?x] :- ex:B[?x] ."
    kg = KnowledgeGraph(Program.parse(PREFIX + "ex:A[ex:x] ."), store=tmp_path / "g")
    kg.update()
    report = kg.update(ontology=first, algorithm=algorithm)
    assert (len(report.rules_inserted), report.inserted.explicit, report.inserted.derived) == (2, {TRIPLE: 1}, {TRIPLE: 2})
    assert not kg.update(insert_rules=mine, algorithm=algorithm).rules_inserted
    kg = KnowledgeGraph.open(tmp_path / "g")
    report = kg.update(ontology=second, algorithm=algorithm)
    assert (len(report.rules_inserted), len(report.rules_deleted)) == (1, 1)
    assert (report.deleted.explicit, report.deleted.derived) == ({TRIPLE: 1}, {TRIPLE: 1})
    assert [item.axiom for item in report.outside] == [":A SubClassOf :D or :E"]
    assert not kg.update(ontology=second, algorithm=algorithm).rules_inserted
    bad = tmp_path / "3.ttl"
    bad.write_text(TURTLE + ":A rdfs:subClassOf .")
    before = everything(kg), kg.rules
    with pytest.raises(UserError, match="EG103"):
        kg.update(ontology=bad, insert=PREFIX + "ex:A[ex:y] .", algorithm=algorithm)
    assert (everything(kg), kg.rules) == before
    kg.verify()


def test_a_graph_that_is_made_with_an_ontology_takes_another_version_of_it(tmp_path: Path) -> None:
    first, second = tmp_path / "1.ttl", tmp_path / "2.ttl"
    first.write_text(TURTLE + ":A rdfs:subClassOf :B , [ owl:unionOf (:D :E) ] . :boss a :A .")
    second.write_text(TURTLE + ":A rdfs:subClassOf :C .")
    with pytest.warns(UserWarning, match="axioms: 1"):
        kg = KnowledgeGraph(first, store=tmp_path / "g")
    kg.update(insert=PREFIX + "ex:A[ex:x] .")
    assert everything(kg) == {f"<{EX}{c}>[<{EX}{x}>]" for c in "AB" for x in ("x", "boss")}
    kg = KnowledgeGraph.open(tmp_path / "g")
    kg.update(ontology=second)
    assert everything(kg) == {f"<{EX}{c}>[<{EX}x>]" for c in "AC"}
