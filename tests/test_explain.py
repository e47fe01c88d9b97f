"""Proofs: each is checked step by step against the rules as they were written, and against every instance there is."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings

from evergraph import KnowledgeGraph, Program
from evergraph.engines.evaluation import Evaluation, Table
from evergraph.explain import Kind, Proof, ask, explain, search
from evergraph.explain.ask import _Question
from evergraph.explain.proof import Fact
from evergraph.rules.model import BUILTIN_RELATIONS, XSD, Atom, Comparison
from proofs import DENSE, PATHS, ROADS, TREE, WAYS, Held, Instance, check, graph, least_heights, some
from strategies import ontology_updates

GENERATE = settings(max_examples=100, phases=[Phase.generate])


# -- laws ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("engine", "examples"), [("memory", 150), ("reference", 60)])
def test_every_derived_fact_has_a_proof_of_the_smallest_height(engine: str, examples: int) -> None:
    @given(*DENSE)
    @settings(max_examples=examples, phases=[Phase.generate])
    def law(program: Program, facts: list[Atom]) -> None:
        kg = KnowledgeGraph(program, engine=engine)
        kg.update(insert=facts)
        held = Held(kg)
        heights = least_heights(held, list(held.instances()))
        for fact in some(held.derived):
            assert check(held, explain(kg, fact)) == heights[fact]
        for fact in some(sorted(held.explicit, key=str), 3):
            assert explain(kg, fact).kind == Kind.EXPLICIT

    law()


@given(*DENSE)
@GENERATE
def test_every_instance_is_listed_and_no_other(program: Program, facts: list[Atom]) -> None:
    kg = KnowledgeGraph(program)
    kg.update(insert=facts)
    held = Held(kg)
    wanted: dict[Atom, Counter[Instance]] = {}
    for found in held.instances():
        wanted.setdefault(found[1], Counter())[found] += 1
    for fact in some(sorted(held.all, key=str)):
        proof = explain(kg, fact, every=True)
        assert proof.kind == (Kind.EXPLICIT if fact in held.explicit else Kind.DERIVED)
        shown = [(a.rule, a.fact, tuple(p.fact for p in a.premises), a.absent) for a in proof.alternatives]
        assert Counter(shown) == wanted.get(fact, Counter())
        for premise in (p for a in proof.alternatives for p in a.premises if isinstance(p.fact, Atom)):
            assert premise.kind == (Kind.EXPLICIT if premise.fact in held.explicit else Kind.DERIVED)
            assert not premise.premises


@given(*DENSE)
@GENERATE
def test_proofs_are_right_when_the_search_is_cut_short(program: Program, facts: list[Atom]) -> None:
    """One instance for each fact and rule first, and no patience for shorter proofs."""
    kg = KnowledgeGraph(program)
    kg.update(insert=facts)
    held = Held(kg)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ask, "MOST", 1)
        patch.setattr(search, "PATIENCE", 0)
        for fact in some(held.derived):
            check(held, explain(kg, fact))


@given(*DENSE)
@GENERATE
def test_proofs_follow_updates(program: Program, facts: list[Atom]) -> None:
    kg = KnowledgeGraph(program)
    kg.update(insert=facts[::2])
    kg.update(insert=facts[1::2], delete=facts[::4])
    held = Held(kg)
    for fact in some(held.derived, 10):
        check(held, explain(kg, fact))


@pytest.mark.parametrize(("rules", "examples"), [("rdfs", 20), ("owl2rl", 10), ("owl2rl-full", 3)])
def test_rule_sets(rules: str, examples: int) -> None:
    program = Program.load(rules)

    @given(ontology_updates)
    @settings(max_examples=examples, phases=[Phase.generate])
    def law(steps: list[list[Atom]]) -> None:
        kg = KnowledgeGraph(program, equality="off")
        kg.update(insert=[fact for facts in steps for fact in facts])
        held = Held(kg)
        for fact in some(held.derived, 15):
            check(held, explain(kg, fact))

    law()


# -- JSON ------------------------------------------------------------------------------------------------------------


def from_dict(answer: dict[str, Any]) -> Proof:
    """The proof that a dictionary tells of."""
    facts: dict[str, Fact] = {}
    for row in answer["facts"]:
        atom = Atom(row["relation"], tuple(row["terms"]))
        comparison = row["kind"] == Kind.BUILT_IN and row["relation"] not in BUILTIN_RELATIONS
        facts[row["fact"]] = Comparison(row["relation"], *row["terms"]) if comparison else atom
    kinds = {row["fact"]: Kind(row["kind"]) for row in answer["facts"]}
    made: dict[str, Proof] = {}
    for step in answer["steps"]:
        for text in step["premises"]:
            made.setdefault(text, Proof(facts[text], kinds[text]))
        absent = tuple(Program.parse(f"{text} .").facts[0] for text in step["absent"])
        premises = tuple(made[text] for text in step["premises"])
        made[step["fact"]] = Proof(facts[step["fact"]], Kind.DERIVED, step["rule"], premises, absent)
    return made[answer["fact"]]


@given(*DENSE)
@settings(max_examples=40, phases=[Phase.generate])
def test_json_says_all_that_the_proof_does(program: Program, facts: list[Atom]) -> None:
    kg = KnowledgeGraph(program)
    kg.update(insert=facts)
    held = Held(kg)
    for fact in some(held.derived, 5):
        proof = explain(kg, fact)
        read = from_dict(json.loads(json.dumps(proof.as_dict())))
        assert read.as_dict() == proof.as_dict()
        assert check(held, read) == check(held, proof)


@pytest.mark.parametrize("kind", [Kind.DERIVED, Kind.EXPLICIT])
def test_json_of_every_instance(kind: Kind) -> None:
    kg = graph(PATHS, ROADS + ("path(2, 3) ." if kind == Kind.EXPLICIT else ""))
    answer = explain(kg, "path(2, 3)", every=True).as_dict()
    assert json.loads(json.dumps(answer)) == answer
    assert [step["rule"] for step in answer["steps"]] == ["base", "step"]
    assert {f["fact"]: f["kind"] for f in answer["facts"]} == {
        "path(2, 3)": kind,
        "edge(2, 3)": "explicit",
        "path(2, 1)": "derived",
        "path(1, 3)": "derived",
        "2 != 3": "built-in",
    }


# -- stores and Spark ------------------------------------------------------------------------------------------------


def test_a_store_explains_what_it_holds(tmp_path: Path) -> None:
    rules = "same(?x, ?y) :- has(?x), has(?y), SAMEVALUE(?x, ?y) . also(?x) :- same(?x, ?y) ."
    kg = KnowledgeGraph(Program.parse(rules), store=tmp_path / "store")
    kg.update(insert="has(1) . has(01) .")
    kg.update(delete="has(01) .")
    for version in (0, None):
        opened = KnowledgeGraph.open(tmp_path / "store", version=version)
        held = Held(opened)
        assert len(held.derived) == (4 if version == 0 else 0)
        for fact in held.derived:
            check(held, explain(opened, fact))


@pytest.mark.spark
def test_spark_explains_too(spark: Any) -> None:
    kg = KnowledgeGraph(Program.parse(PATHS), engine=spark)
    kg.update(insert=ROADS)
    assert str(explain(kg, "path(1, 3)")) == TREE
    assert str(explain(kg, "path(2, 3)", every=True)) == WAYS


# -- size ------------------------------------------------------------------------------------------------------------


def test_deep_proofs_need_no_stack() -> None:
    length = 1100
    kg = graph("path(?x, ?y) :- edge(?x, ?y) . path(?x, ?z) :- edge(?x, ?y), path(?y, ?z) .")
    kg.update(insert="".join(f"edge({i}, {i + 1}) . " for i in range(length)))
    proof = explain(kg, f"path(0, {length})")
    assert len(str(proof).splitlines()) == len(list(proof.walk())) == 2 * length
    assert len(json.dumps(proof.as_dict())) < 1000 * length


def test_proofs_with_many_uses_of_one_fact_stay_small() -> None:
    """As a tree this proof would have 2⁶⁰ leaves."""
    kg = graph('#[name("r")] p(?y) :- next(?x, ?z, ?y), p(?x), p(?z) .', "p(0) . next(0, 0, 1) .")
    kg.update(insert="".join(f"next({i}, {i - 1}, {i + 1}) . " for i in range(1, 60)))
    proof = explain(kg, "p(60)")
    assert len(list(proof.walk())) == 60 + 61
    assert str(proof).count("see above") == 58
    assert len(proof.as_dict()["steps"]) == 60


def test_a_cut_search_goes_on_when_the_first_instances_lead_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """All but the last of a thousand facts rest on what they support."""
    monkeypatch.setattr(ask, "MOST", 10)
    kg = graph("q() :- p(?x) . p(?x) :- q(), n(?x) . p(?x) :- r(?x) . r(?x) :- s(?x) .")
    kg.update(insert="".join(f"n({i}) . " for i in range(100)) + "s(100) .")
    assert check(Held(kg), explain(kg, "q()")) == 3


@pytest.mark.parametrize("every", [False, True])
def test_work_does_not_grow_with_unrelated_data(every: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of all the tables that joins make, and instances, for one fact among ever more chains."""
    rows = 0
    checked = Evaluation.checked

    def counting(self: Evaluation, table: Table, *rest: Any) -> None:
        nonlocal rows
        rows += table.count
        checked(self, table, *rest)

    monkeypatch.setattr(Evaluation, "checked", counting)

    def work(chains: int) -> tuple[int, int, int]:
        nonlocal rows
        kg = graph(PATHS)
        pairs = [(100 * c + i, 100 * c + i + 1) for c in range(chains) for i in range(8)]
        kg.update(insert="".join(f"edge({a}, {b}) . " for a, b in pairs))
        question = _Question(kg)
        looked = question.search(ask.MOST)
        goal = question.goal(Atom("path", tuple(f'"{n}"^^<{XSD}integer>' for n in (0, 8))))
        rows = 0
        assert looked.supports(goal) if every else looked.prove(goal)
        return rows, looked.kernel.derivations, looked.numbers.count

    assert work(20) == work(200)
    assert np.prod(work(20)) > 0
