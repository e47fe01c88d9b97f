"""Equality by representatives says what the axioms of equality say, after every update: the laws, on random programs.

Programs derive equality from anything, between individuals, properties, classes, literals and `owl:sameAs` itself; they name
what is merged, and compare values.
"""

from __future__ import annotations

from contextlib import suppress
from random import Random
from unittest.mock import patch

import pytest
from hypothesis import Phase, assume, example, given, settings
from hypothesis import strategies as st

from conftest import assert_same, everything
from evergraph import KnowledgeGraph, Program, UserError
from evergraph.engine_choice import in_process
from evergraph.engines import modules, relation
from evergraph.engines.base import Which
from evergraph.engines.equality import names as names_module
from evergraph.engines.equality.engine import Rewriting
from evergraph.engines.equality.memory import MergingMemory
from evergraph.report import Report
from evergraph.rules.model import SAME, TRIPLE, Atom, Rule, Variable
from evergraph.rules.printer import print_atom
from strategies import (
    alike_rules,
    coming_and_going,
    dense_changes,
    equal_programs,
    equal_updates,
    functional,
    layered_programs,
    layered_rules,
)

Steps = list[tuple[list[Atom], int]]
ONCE = settings(phases=[Phase.generate])


def both(program: Program) -> tuple[KnowledgeGraph, KnowledgeGraph]:
    """The graph with representatives and the one with axioms."""
    one, other = KnowledgeGraph(program, equality="rewrite"), KnowledgeGraph(program, equality="axioms")
    assert isinstance(in_process(one._engine), Rewriting)
    return one, other


def assert_equal(got: KnowledgeGraph, want: KnowledgeGraph, what: str) -> None:
    """Fact for fact, and number for number."""
    for which in Which:
        assert_same(everything(got, which), everything(want, which), f"{which}\n{what}")
        assert got.counts(which) == want.counts(which), what
    assert len(got) == len(want)


def assert_reported(report: Report, before: set[str], kg: KnowledgeGraph, want: Report, what: str) -> None:
    """A report tells the differences."""
    after = everything(kg)
    for net, shown in ((report.inserted, after - before), (report.deleted, before - after)):
        assert len(list(net.triples)) + len(list(net.named)) == len(shown), what
    assert (report.inserted, report.deleted, report.missed) == (want.inserted, want.deleted, want.missed), what


def way(algorithm: str, delete: object) -> str:
    """B/F is about deletions."""
    return algorithm if delete else "auto"


@pytest.mark.parametrize("algorithm", ["auto", "backward-forward", "recompute"])
def test_rewriting_equals_axioms_after_every_update(algorithm: str) -> None:
    @given(equal_programs, equal_updates)
    @settings(ONCE, max_examples=150)
    def law(program: Program, steps: Steps) -> None:
        fast, slow = both(program)
        for insert, delete in coming_and_going(steps):
            what = f"{program}\ninserting {insert}\ndeleting {delete}"
            before = everything(fast)
            got = fast.update(insert=insert, delete=delete, algorithm=way(algorithm, delete))
            want = slow.update(insert=insert, delete=delete, algorithm="recompute")
            assert_equal(fast, slow, what)
            assert_reported(got, before, fast, want, what)
            fast.verify()

    law()


@pytest.mark.parametrize("algorithm", ["recompute", "declarative", "dred", "counting", "backward-forward"])
def test_axioms_by_every_algorithm_equal_the_reference(algorithm: str) -> None:
    @given(equal_programs, equal_updates)
    @settings(ONCE, max_examples=10)
    def law(program: Program, steps: Steps) -> None:
        fast = KnowledgeGraph(program, equality="axioms")
        slow = KnowledgeGraph(program, equality="axioms", engine="reference")
        for insert, delete in coming_and_going(steps):
            fast.update(insert=insert, delete=delete, algorithm=algorithm)
            slow.update(insert=insert, delete=delete, algorithm="recompute")
            assert_same(everything(fast), everything(slow), f"{program}\ninserting {insert}\ndeleting {delete}")

    law()


@given(equal_programs, equal_updates, st.lists(st.tuples(st.lists(alike_rules(), max_size=2), st.integers(0, 2**16))))
@settings(ONCE, max_examples=150)
def test_rules_come_and_go(program: Program, steps: Steps, changes: list[tuple[list[Rule], int]]) -> None:
    fast, slow = both(program)
    for number, (insert, delete) in enumerate(coming_and_going(steps)):
        rules, seed = changes[number] if number < len(changes) else ([], 0)
        rng = Random(seed)
        gone = [rule for rule in fast.rules.rules if rng.random() < 0.3]
        what = f"{program}\ninserting {insert} {rules}\ndeleting {delete} {gone}"
        given = {"insert": insert, "delete": delete, "insert_rules": rules or None, "delete_rules": gone or None}
        fast.update(**given)
        slow.update(**given, algorithm="recompute")
        assert_equal(fast, slow, what)
        fast.verify()


@given(layered_programs, st.lists(functional(), min_size=1, max_size=2), st.integers(0, 2**32))
@settings(ONCE, max_examples=100)
def test_rewriting_equals_axioms_below_negation(program: Program, more: list[Rule], seed: int) -> None:
    same = Rule(Atom(TRIPLE, (Variable("x"), SAME, Variable("y"))), (Atom("r0", (Variable("x"), Variable("y"))),))
    whole = Program((*program.rules, *more, same))
    try:
        fast, slow = both(whole)
    except UserError as error:
        assume(error.code != "EG010")
        raise
    for insert, delete in dense_changes(program, Random(seed)):
        fast.update(insert=insert, delete=delete)
        slow.update(insert=insert, delete=delete)
        assert_equal(fast, slow, f"{whole}\ninserting {insert}\ndeleting {delete}")
        fast.verify("reference")
        slow.verify()


changing = st.lists(
    st.tuples(st.lists(layered_rules() | functional(), max_size=2), st.integers(0, 2**16)), min_size=4, max_size=4
)


NEGATING = """@prefix : <http://example.org/> .
:q1[?x, ?x] :- :q0[?x, ?w], NOT :p0[?w, ?x], NOT r0(:b, ?w) ."""
"""What it negates no rule derives: it has one stratum."""
LAYERED = """@prefix : <http://example.org/> .
:p0[?z, ?x] :- :q0[?z, ?w], r0(?z, ?x) .
:C1[:a] :- :q1[?y, ?y] .
r0(?w, ?y) :- r0(?y, ?w) .
r1(:a, :e) :- :p0[?y, ?w], NOT :q0[?y, ?w] .
:q1[?z, ?y] :- :q1[?z, ?y], NOT :q0[?z, ?y], NOT :p0[?z, ?z] ."""
"""When its last negation has gone, its strata become one."""
COMING = """@prefix : <http://example.org/> .
:p1[?x, ?x] :- :p1[?x, ?w], NOT :p0[?x, ?x] ."""


@given(layered_programs, changing, st.integers(0, 2**32))
@example(Program.parse(NEGATING), [([], 340), ([], 381), (list(Program.parse(COMING).rules), 3), ([], 1)], 0)
@example(Program.parse(LAYERED), [([], 14562), ([], 1289), ([], 1706), ([], 2225)], 175)
@settings(ONCE, max_examples=40, phases=[Phase.explicit, Phase.generate])
def test_rules_come_and_go_below_and_above_negation(program: Program, changes: list[tuple[list[Rule], int]], seed: int) -> None:
    same = Rule(Atom(TRIPLE, (Variable("x"), SAME, Variable("y"))), (Atom("r0", (Variable("x"), Variable("y"))),))
    fast, slow = both(Program((*program.rules, same)))
    for (insert, delete), (rules, number) in zip(dense_changes(program, Random(seed)), changes, strict=True):
        rng = Random(number)
        gone = [rule for rule in fast.rules.rules if rng.random() < 0.2]
        given = {"insert": insert, "delete": delete, "insert_rules": rules or None, "delete_rules": gone or None}
        refused = []
        for kg in (fast, slow):
            try:
                kg.update(**given)
            except UserError as error:
                refused.append(error.code)
        assert refused in ([], ["EG010"] * 2, ["EG005"] * 2)
        assert_equal(fast, slow, f"{program}\n{given}")
        for kg in (fast, slow):
            kg.verify()
            kg.verify("reference")


@given(equal_programs, equal_updates)
@settings(ONCE, max_examples=100)
def test_one_batch_equals_one_by_one(program: Program, steps: Steps) -> None:
    batch, single = (KnowledgeGraph(program, equality="rewrite") for _ in range(2))
    for insert, delete in coming_and_going(steps):
        batch.update(insert=insert, delete=delete)
        for fact in delete:
            single.update(delete=[fact])
        for fact in insert:
            single.update(insert=[fact])
        assert_equal(batch, single, f"{program}\ninserting {insert}\ndeleting {delete}")


@given(equal_programs, equal_updates)
@settings(ONCE, max_examples=100)
def test_what_is_inserted_and_deleted_was_never_there(program: Program, steps: Steps) -> None:
    kg = KnowledgeGraph(program, equality="rewrite")
    for insert, delete in coming_and_going(steps):
        before, known = {which: everything(kg, which) for which in Which}, everything(kg, Which.EXPLICIT)
        kg.update(insert=insert)
        kg.update(delete=[fact for fact in insert if print_atom(fact) not in known])
        for which in Which:
            assert_same(everything(kg, which), before[which], f"{program}\n{insert}")
        kg.update(insert=insert, delete=delete)


def parts(kg: KnowledgeGraph) -> tuple[object, ...]:
    """Everything that an update could change: names and rows as they are kept, and the rules."""
    engine = in_process(kg._engine)
    assert isinstance(engine, Rewriting)
    pairs = [*zip(engine.names.moved.tolist(), engine.names.represented.tolist(), strict=True)]
    rows = {key: [c.tolist() for c in relation.columns()] for key, relation in engine.below.held().items() if len(relation)}
    given = {key: [c.tolist() for c in relation.columns()] for key, relation in engine.below.given().items() if len(relation)}
    return pairs, rows, given, kg.rules, {which: everything(kg, which) for which in Which}


@given(equal_programs, equal_updates, alike_rules())
@settings(ONCE, max_examples=60)
def test_a_dry_run_tells_all_and_leaves_everything_as_it_was(program: Program, steps: Steps, rule: Rule) -> None:
    fast, slow = both(program)
    for insert, delete in coming_and_going(steps):
        before = parts(fast)
        told = fast.update(insert=insert, delete=delete, dry_run=True)
        assert parts(fast) == before
        fast.update(insert=insert, delete=delete, insert_rules=[rule], dry_run=True)
        assert parts(fast) == before
        made = fast.update(insert=insert, delete=delete)
        assert (told.inserted, told.deleted) == (made.inserted, made.deleted)
        slow.update(insert=insert, delete=delete)
        assert_equal(fast, slow, str(program))


@given(equal_programs, equal_updates, st.sampled_from(["rename", "exchange", "done"]))
@settings(ONCE, max_examples=60)
def test_an_error_in_the_middle_leaves_everything_as_it_was(program: Program, steps: Steps, where: str) -> None:
    """Names are being merged, what goes is about to go, or all is done and nothing told."""
    fast, slow = both(program)
    for insert, delete in coming_and_going(steps):
        before = parts(fast)
        with patch.object(MergingMemory, where, side_effect=KeyboardInterrupt) as broken, suppress(KeyboardInterrupt):
            fast.update(insert=insert, delete=delete)
        if broken.called:
            assert parts(fast) == before
            fast.update(insert=insert, delete=delete)
        slow.update(insert=insert, delete=delete)
        assert_equal(fast, slow, str(program))


@given(equal_programs, equal_updates)
@settings(ONCE, max_examples=60)
def test_paths_for_large_data_equal_axioms(program: Program, steps: Steps) -> None:
    """Bitmaps, offset tables and dense names, which small data never reaches, forced on small data."""
    with (
        patch.object(relation, "BITMAP_FROM", 1),
        patch.object(relation, "BITMAP_BYTES", 1000),
        patch.object(modules, "MANY", 1),
        patch.object(names_module, "MANY", 1),
        patch.object(relation, "MERGE_FRACTION", 1),
    ):
        fast, slow = both(program)
        for insert, delete in coming_and_going(steps):
            fast.update(insert=insert, delete=delete)
            slow.update(insert=insert, delete=delete)
            assert_equal(fast, slow, f"{program}\ninserting {insert}\ndeleting {delete}")
