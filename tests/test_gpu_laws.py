"""A graph on a device is the graph in memory and that of the reference engine, after every update, on random programs."""

from __future__ import annotations

from contextlib import nullcontext
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from conftest import assert_same, everything
from evergraph import KnowledgeGraph, Program
from evergraph.engines import marks as marks_module
from evergraph.engines import relation
from evergraph.engines.base import Which
from evergraph.engines.gpu.values import DeviceValues
from evergraph.engines.modules import Cupy, module_of
from evergraph.maintain.choose import ALGORITHMS
from evergraph.plan import rulebook, transition
from evergraph.rules.model import XSD, Operator, Rule
from evergraph.terms import Dictionary
from evergraph.values import BIT, Values
from gpus import array_module, engine_of, graph, turns  # noqa: F401 - a fixture
from strategies import (
    coming_and_going,
    dense_changes,
    equal_programs,
    equal_updates,
    layered_programs,
    ontology_updates,
    programs,
)
from test_counting import assert_counts
from test_deletions import Steps, any_programs, ontology_changes, seeds
from test_equality_laws import Steps as EqualSteps
from test_rule_changes import pools, replay
from test_values import BLANK, IRI, MOMENTS, SPELLINGS, TAGGED, UNKNOWN, typed

REWRITING = ("auto", "backward-forward", "recompute")


def times(examples: int) -> Any:
    return settings(max_examples=examples, phases=[Phase.explicit, Phase.reuse, Phase.generate])


def assert_equal(got: KnowledgeGraph, want: KnowledgeGraph, what: str) -> None:
    for which in Which:
        assert_same(everything(got, which), everything(want, which), f"{which}\n{what}")
        assert got.counts(which) == want.counts(which), what


@pytest.mark.parametrize("near", [0, 3, 24, 4096])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_device_equals_memory_and_the_reference(xp: Any, algorithm: str, near: int) -> None:
    """Also where the host does for the device what is small, and where relations grow out of that."""

    @given(any_programs, seeds)
    @times(12)
    def law(program: Program, seed: int) -> None:
        here, memory, slow = graph(program), KnowledgeGraph(program), KnowledgeGraph(program, engine="reference")
        for insert, delete in dense_changes(program, Random(seed)):
            what = f"{program}\ninserting {insert}\ndeleting {delete}"
            got, want = (kg.update(insert=insert, delete=delete, algorithm=algorithm) for kg in (here, memory))
            slow.update(insert=insert, delete=delete)
            assert (got.inserted, got.deleted, got.missed) == (want.inserted, want.deleted, want.missed), what
            assert (got.algorithm, got.reason) == (want.algorithm, want.reason), what
            assert {*got.deleted.triples} == {*want.deleted.triples}
            assert engine_of(here).now is engine_of(here).device
            for other in (memory, slow):
                assert_equal(here, other, what)
            if engine_of(here).counted:
                assert_counts(here)

    with patch.object(Cupy, "near", near):
        law()


@pytest.mark.parametrize("merged", ["seldom", "at once"])
def test_host_and_device_take_turns(xp: Any, merged: str) -> None:
    """By any algorithm, each update where it happens to be: facts, marks and names go with it."""

    @given(any_programs, seeds)
    @times(40)
    def law(program: Program, seed: int) -> None:
        rng = Random(seed)
        with turns(rng):
            here, memory = graph(program), KnowledgeGraph(program)
            for insert, delete in [*dense_changes(program, rng), *dense_changes(program, rng)]:
                algorithm = rng.choice(["auto", "auto", "counting", "counting", rng.choice(ALGORITHMS)])
                what = f"{program}\ninserting {insert}\ndeleting {delete} by {algorithm}"
                got, want = (kg.update(insert=insert, delete=delete, algorithm=algorithm) for kg in (here, memory))
                assert (got.inserted, got.deleted, got.missed) == (want.inserted, want.deleted, want.missed), what
                assert got.algorithm == want.algorithm
                assert_equal(here, memory, what)
                if engine_of(here).counted:
                    assert_counts(here)

    at_once = patch.object(relation, "MERGE_FRACTION", 10**6), patch.object(marks_module, "MERGE_FRACTION", 10**6)
    first, second = at_once if merged == "at once" else (nullcontext(), nullcontext())
    with first, second:
        law()


@pytest.mark.parametrize("near", [0, 24, 4096])
@pytest.mark.parametrize("algorithm", ["dred", "counting", "backward-forward", "recompute", "auto"])
@pytest.mark.parametrize("rules", ["rdfs", "owl2rl"])
def test_the_schema_changes_on_a_device(xp: Any, rules: str, algorithm: str, near: int) -> None:
    """What the host knows of small relations is true of those relations alone."""
    program = Program.load(rules)

    @given(ontology_updates, seeds)
    @times(4)
    def law(steps: Steps, seed: int) -> None:
        rng = Random(seed)
        with turns(rng):
            kg = graph(program, equality="off")
            for insert, delete in ontology_changes(steps, rng):
                kg.update(insert=insert, delete=delete, algorithm=algorithm)
                kg.verify()

    with patch.object(Cupy, "near", near):
        law()


@pytest.mark.parametrize("algorithm", REWRITING)
def test_names_become_the_same_on_a_device(xp: Any, algorithm: str) -> None:
    """Representatives on the device and on the host by turns, against representatives in memory and against axioms."""

    @given(equal_programs, equal_updates, seeds)
    @times(25)
    def law(program: Program, steps: EqualSteps, seed: int) -> None:
        with turns(Random(seed)):
            here = graph(program, equality="rewrite")
            memory, axioms = KnowledgeGraph(program, equality="rewrite"), KnowledgeGraph(program, equality="axioms")
            for insert, delete in coming_and_going(steps):
                what = f"{program}\ninserting {insert}\ndeleting {delete}"
                way = algorithm if delete else "auto"
                got, want = (kg.update(insert=insert, delete=delete, algorithm=way) for kg in (here, memory))
                axioms.update(insert=insert, delete=delete, algorithm="recompute")
                assert (got.inserted, got.deleted, got.missed) == (want.inserted, want.deleted, want.missed), what
                assert_equal(here, memory, what)
                assert_equal(here, axioms, what)
                assert here.stats()["equality"] == memory.stats()["equality"]

    law()


@pytest.mark.parametrize("algorithm", ["declarative", "dred", "counting", "backward-forward", "auto"])
def test_axioms_of_equality_on_a_device(xp: Any, algorithm: str) -> None:
    @given(equal_programs, equal_updates)
    @times(4)
    def law(program: Program, steps: EqualSteps) -> None:
        here, memory = (KnowledgeGraph(program, equality="axioms", engine=engine) for engine in ("gpu", "memory"))
        engine_of(here).few = -1
        for insert, delete in coming_and_going(steps):
            for kg in (here, memory):
                kg.update(insert=insert, delete=delete, algorithm=algorithm)
            assert_equal(here, memory, f"{program}\ninserting {insert}\ndeleting {delete}")

    law()


@pytest.mark.parametrize("lift_from", [2, 8])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_rules_come_and_go_on_a_device(xp: Any, algorithm: str, lift_from: int) -> None:
    @given(pools, seeds)
    @times(6)
    def law(pool: list[Rule], seed: int) -> None:
        with turns(Random(seed)):
            replay(pool, seed, algorithm, engine="gpu")

    with patch.object(rulebook, "LIFT_FROM", lift_from), patch.object(transition, "LIFT_FROM", lift_from):
        law()


@pytest.mark.parametrize("algorithm", ["auto", "dred", "counting", "backward-forward"])
def test_submitted_updates_overlap_on_a_device(xp: Any, algorithm: str) -> None:
    @given(programs | layered_programs, seeds)
    @times(12)
    def law(program: Program, seed: int) -> None:
        rng = Random(seed)
        with turns(rng):
            here, slow = graph(program, equality="off"), KnowledgeGraph(program, engine="reference", equality="off")
            here._submissions.take_over()
            for insert, delete in dense_changes(program, rng):
                here.submit(insert=insert, delete=delete, algorithm=algorithm)
                for _ in range(rng.randrange(4)):
                    here._submissions.advance()
                here.live().counts()
                slow.update(insert=insert, delete=delete)
            here.settle()
            assert_equal(here, slow, str(program))
            if engine_of(here).counted:
                assert_counts(here)

    law()


# -- values --------------------------------------------------------------------------------------------------------------

NUMBERS = st.tuples(SPELLINGS, st.sampled_from(["integer", "decimal", "float", "double", "byte", "unsignedLong"]))
FLOATS = st.tuples(st.floats(width=32) | st.floats(), st.sampled_from(["float", "double"]))
SPECIAL = [
    "NaN",
    "INF",
    "-INF",
    "-0.0",
    "0.1",
    "1e400",
    "16777217",
    "9007199254740993",
    "9007199254740992",
    "0.30000000000000004",
]
TERMS = st.one_of(
    NUMBERS.map(lambda pair: typed(*pair)),
    FLOATS.map(lambda pair: typed(repr(pair[0]).replace("inf", "INF").replace("nan", "NaN"), pair[1])),
    st.tuples(st.sampled_from(SPECIAL), st.sampled_from(["float", "double", "decimal", "integer"])).map(lambda p: typed(*p)),
    MOMENTS.map(lambda moment: typed(moment.isoformat(), "dateTime")),
    st.sampled_from(["true", "1", "false", "0", "yes"]).map(lambda form: typed(form, "boolean")),
    st.text("ab\n\U0001f600", max_size=3).map(lambda text: typed(text, "string")),
    st.sampled_from([IRI, BLANK, TAGGED, UNKNOWN, *(f"<{XSD}{name}>" for name in BIT)]),
)


def test_values_compare_on_a_device_as_in_memory(xp: Any) -> None:
    """Every operator on every pair; terms that come later are known later."""

    @given(st.lists(st.lists(TERMS, min_size=1, max_size=12), min_size=1, max_size=3))
    @example([[typed(form, kind) for form in SPECIAL for kind in ("float", "double", "decimal", "integer")]])
    @times(60)
    def law(batches: list[list[str]]) -> None:
        dictionary = Dictionary()
        values = Values(dictionary)
        there = module_of(xp).values(values)
        assert isinstance(there, DeviceValues)
        for batch in batches:
            dictionary.encode(batch)
            ids = np.arange(len(dictionary), dtype=np.uint64)
            left, right = np.repeat(ids, len(ids)), np.tile(ids, len(ids))
            for operator in Operator:
                got = xp.asnumpy(there.compare(operator, xp.asarray(left), xp.asarray(right)))
                want = values.compare(operator, left, right)
                wrong = np.flatnonzero(got != want)[:3]
                assert not len(wrong), [(dictionary.term(left[i]), operator, dictionary.term(right[i])) for i in wrong]

    law()


@pytest.mark.parametrize("operator", [o for o in Operator if o != Operator.ILLTYPED])
def test_filters_on_a_device_keep_what_they_keep_in_memory(xp: Any, operator: str) -> None:
    rules = f"q(?x, ?y) :- p(?x), p(?y), ?x {operator} ?y . r(?x) :- p(?x), ?x {operator} 2 ."

    @given(st.lists(TERMS, min_size=1, max_size=8), st.lists(TERMS, min_size=1, max_size=4))
    @times(6)
    def law(first: list[str], second: list[str]) -> None:
        program = Program.parse(rules)
        here, memory = graph(program), KnowledgeGraph(program)
        for kg in (here, memory):
            kg.update(insert=" ".join(f"p({term}) ." for term in first))
            kg.update(insert=" ".join(f"p({term}) ." for term in second), delete=f"p({first[0]}) .", algorithm="dred")
        assert_equal(here, memory, f"{first} {second}")

    law()
