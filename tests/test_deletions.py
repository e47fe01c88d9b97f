"""Deletions: the laws on random programs, and what the papers show, for every algorithm that deletes."""

from __future__ import annotations

from itertools import islice
from random import Random
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from conftest import assert_same, everything
from evergraph import KnowledgeGraph, Program
from evergraph.engines.base import Which
from evergraph.errors import UserError
from evergraph.rules.model import Atom
from evergraph.rules.printer import print_atom
from strategies import dense_changes, layered_programs, ontology_updates, programs, updates
from test_shards import sharded

ALGORITHMS = ("recompute", "dred", "counting", "backward-forward", "auto")
Steps = list[list[Atom]]
generated = settings(max_examples=120, phases=[Phase.explicit, Phase.reuse, Phase.generate])


def ontology_changes(steps: Steps, random: Random) -> list[tuple[list[Atom], list[Atom]]]:
    """Each step with some of the explicit facts before it to delete, few or many."""
    explicit: set[Atom] = set()
    out = []
    for facts in steps:
        share = random.choice([0.1, 0.5, 0.9])
        gone = [fact for fact in sorted(explicit, key=str) if random.random() < share]
        out.append((facts, gone))
        explicit = explicit.difference(gone) | set(facts)
    return out


def assert_equal(kg: KnowledgeGraph, other: KnowledgeGraph, what: str) -> None:
    assert_same(everything(kg), everything(other), what)
    assert_same(everything(kg, Which.EXPLICIT), everything(other, Which.EXPLICIT), f"{what}\nexplicit")


randoms = st.randoms(use_true_random=False)
seeds = st.integers(0, 2**32)
any_programs = programs | layered_programs


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_equals_the_reference_after_every_update(algorithm: str) -> None:
    @given(any_programs, seeds)
    @generated
    def law(program: Program, seed: int) -> None:
        fast, slow = KnowledgeGraph(program), KnowledgeGraph(program, engine="reference")
        for number, (facts, gone) in enumerate(dense_changes(program, Random(seed))):
            report = fast.update(insert=facts, delete=gone, algorithm=algorithm)
            expected = slow.update(insert=facts, delete=gone)
            assert_equal(fast, slow, f"{program}\nafter update {number}, deleting {gone}")
            assert (report.inserted, report.deleted, report.missed) == (expected.inserted, expected.deleted, expected.missed)

    law()


@pytest.mark.parametrize("algorithm", ["dred", "counting", "backward-forward"])
@pytest.mark.parametrize("rules", ["rdfs", "owl2rl"])
def test_equals_recomputation_when_the_schema_changes(algorithm: str, rules: str) -> None:
    program = Program.load(rules)

    @given(ontology_updates, randoms)
    @settings(max_examples=25, phases=[Phase.explicit, Phase.reuse, Phase.generate])
    def law(steps: Steps, random: Random) -> None:
        kg = KnowledgeGraph(program, equality="off")
        for facts, gone in ontology_changes(steps, random):
            kg.update(insert=facts, delete=gone, algorithm=algorithm)
            kg.verify()

    law()


@given(any_programs, seeds, st.sampled_from([1, 2, 3, 7]), st.sampled_from(["dred", "recompute"]))
@generated
def test_shards_equal_the_reference(program: Program, seed: int, shards: int, algorithm: str) -> None:
    many, slow = sharded(program, shards), KnowledgeGraph(program, engine="reference")
    for number, (facts, gone) in enumerate(dense_changes(program, Random(seed))):
        report = many.update(insert=facts, delete=gone, algorithm=algorithm)
        expected = slow.update(insert=facts, delete=gone)
        assert_equal(many, slow, f"{program}\nafter update {number}, {shards} shards, deleting {gone}")
        assert (report.inserted, report.deleted, report.missed) == (expected.inserted, expected.deleted, expected.missed)
        assert many.counts() == slow.counts()


@pytest.mark.spark
@given(program=any_programs, seed=seeds)
@settings(max_examples=5, phases=[Phase.explicit, Phase.reuse, Phase.generate])
def test_spark_equals_the_reference(spark: Any, program: Program, seed: int) -> None:
    many, slow = KnowledgeGraph(program, engine=spark), KnowledgeGraph(program, engine="reference")
    for number, (facts, gone) in enumerate(islice(dense_changes(program, Random(seed)), 3)):
        many.update(insert=facts, delete=gone)
        slow.update(insert=facts, delete=gone)
        assert_equal(many, slow, f"{program}\nafter update {number}, deleting {gone}")


@pytest.mark.parametrize("algorithm", ["dred", "counting", "backward-forward"])
def test_one_batch_equals_one_by_one(algorithm: str) -> None:
    @given(any_programs, seeds)
    @settings(max_examples=30, phases=[Phase.explicit, Phase.reuse, Phase.generate])
    def law(program: Program, seed: int) -> None:
        batch, single = KnowledgeGraph(program), KnowledgeGraph(program)
        for facts, gone in islice(dense_changes(program, Random(seed)), 3):
            batch.update(insert=facts, delete=gone, algorithm=algorithm)
            for fact in gone:
                single.update(delete=[fact], algorithm=algorithm)
            for fact in facts:
                single.update(insert=[fact], algorithm=algorithm)
        assert_equal(batch, single, str(program))

    law()


@given(programs, updates)
@settings(max_examples=60, phases=[Phase.explicit, Phase.reuse, Phase.generate])
def test_insert_then_delete_of_what_was_not_explicit_is_the_identity(program: Program, steps: Steps) -> None:
    kg = KnowledgeGraph(program)
    for facts in steps:
        before, explicit = everything(kg), everything(kg, Which.EXPLICIT)
        new = [fact for fact in facts if fact not in set(program.facts)]
        kg.update(insert=new)
        kg.update(delete=new)
        assert_same(everything(kg), before, str(program))
        assert_same(everything(kg, Which.EXPLICIT), explicit, str(program))


PATH = "path(?x, ?z) :- path(?x, ?y), edge(?y, ?z) . path(?x, ?y) :- edge(?x, ?y) ."


def _below(pair: str) -> Atom:
    return Atom("t", tuple(f"<http://example.org/{letter}>" for letter in pair))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
class TestOneByOne:
    def test_deleting_what_is_absent_changes_nothing(self, algorithm: str) -> None:
        kg = KnowledgeGraph(Program.parse(f"{PATH} edge(1, 2) ."))
        report = kg.update(delete="edge(7, 8) .", algorithm=algorithm)
        assert (len(report.inserted), len(report.deleted), report.missed.absent, report.missed.derived) == (0, 0, 1, 0)

    def test_deleting_a_derived_fact_changes_nothing_and_is_told(self, algorithm: str) -> None:
        kg = KnowledgeGraph(Program.parse(f"{PATH} edge(1, 2) ."))
        report = kg.update(delete="path(1, 2) .", algorithm=algorithm)
        assert (len(report.deleted), report.missed.absent, report.missed.derived) == (0, 0, 1)

    def test_an_explicit_fact_that_still_follows_stays_as_derived(self, algorithm: str) -> None:
        kg = KnowledgeGraph(Program.parse(f"{PATH} edge(1, 2) . path(1, 2) ."))
        report = kg.update(delete="path(1, 2) .", algorithm=algorithm)
        assert report.deleted.explicit == {"path": 1} and not report.deleted.derived
        assert kg.counts("derived") == {"path": 1}

    def test_a_derived_fact_that_is_inserted_becomes_explicit_too(self, algorithm: str) -> None:
        kg = KnowledgeGraph(Program.parse(f"{PATH} edge(1, 2) ."))
        kg.update(insert="path(1, 2) .", algorithm=algorithm)
        kg.update(delete="edge(1, 2) .", algorithm=algorithm)
        assert kg.counts() == {"path": 1}

    def test_a_fact_deleted_and_inserted_stays(self, algorithm: str) -> None:
        kg = KnowledgeGraph(Program.parse(f"{PATH} edge(1, 2) ."))
        report = kg.update(delete="edge(1, 2) .", insert="edge(1, 2) .", algorithm=algorithm)
        assert (len(report.inserted), len(report.deleted)) == (0, 0) and kg.counts() == {"edge": 1, "path": 1}

    def test_a_cycle_does_not_keep_itself_alive(self, algorithm: str) -> None:
        kg = KnowledgeGraph(Program.parse("a(?x) :- b(?x) . b(?x) :- a(?x) . a(?x) :- given(?x) . given(1) ."))
        kg.update(delete="given(1) .", algorithm=algorithm)
        assert kg.counts() == {}

    def test_an_insertion_may_delete_and_a_deletion_may_insert(self, algorithm: str) -> None:
        kg = KnowledgeGraph(Program.parse("good(?x) :- node(?x), NOT bad(?x) . node(1) . node(2) . bad(2) ."))
        report = kg.update(insert="bad(1) .", delete="bad(2) .", algorithm=algorithm)
        assert (report.inserted.derived, report.deleted.derived) == ({"good": 1}, {"good": 1})
        assert [int(row[0]) for row in kg.relation("good")] == [2]

    def test_an_insertion_may_delete_what_follows_from_nothing(self, algorithm: str) -> None:
        kg = KnowledgeGraph(Program.parse("calm() :- NOT loud(1) . loud(?x) :- node(?x) ."))
        report = kg.update(insert="node(1) .", algorithm=algorithm)
        assert (kg.counts(), report.deleted.derived) == ({"node": 1, "loud": 1}, {"calm": 1})

    def test_urbani_figure_4(self, algorithm: str) -> None:
        """T4 follows by R2 from T2 and by R3 from T3, T5 by R1 from T0 and T1 and by R2 from T4, T6 from T0; T0 goes."""
        rules = "t5() :- t0(), t1() . t4() :- t2() . t4() :- t3() . t5() :- t4() . t6() :- t0() ."
        kg = KnowledgeGraph(Program.parse(f"{rules} t0() . t1() . t2() . t3() ."))
        report = kg.update(delete="t0() .", algorithm=algorithm)
        assert (report.deleted.explicit, report.deleted.derived) == ({"t0": 1}, {"t6": 1})
        assert set(kg.counts()) == {"t1", "t2", "t3", "t4", "t5"}

    def test_volz_figure_2(self, algorithm: str) -> None:
        """b is below c no longer, and h comes below d; what e and f are below still follows by d: Plus and Minus as printed."""
        kg = KnowledgeGraph(Program.parse("t(?x, ?z) :- t(?x, ?y), t(?y, ?z) ."))
        kg.update(insert=[_below(pair) for pair in ("ab", "bc", "cg", "dc", "eb", "ed", "fe")], algorithm=algorithm)
        before = everything(kg)
        report = kg.update(insert=[_below("hd")], delete=[_below("bc")], algorithm=algorithm)
        assert everything(kg) - before == {print_atom(_below(pair)) for pair in ("hd", "hc", "hg")}
        assert before - everything(kg) == {print_atom(_below(pair)) for pair in ("ac", "ag", "bc", "bg")}
        assert (report.inserted.derived, report.deleted.derived) == ({"t": 2}, {"t": 3})

    def test_barbieri_table_3(self, algorithm: str) -> None:
        """The transitive isIn of the stream example: one way of two is cut, then the other."""
        kg = KnowledgeGraph(Program.parse("isIn(?x, ?z) :- isIn(?x, ?y), isIn(?y, ?z) ."))
        kg.update(insert="isIn(1, 2) . isIn(2, 4) . isIn(1, 3) . isIn(3, 4) . isIn(4, 5) .", algorithm=algorithm)
        assert kg.update(delete="isIn(2, 4) .", algorithm=algorithm).deleted.derived == {"isIn": 1}
        assert kg.update(delete="isIn(3, 4) .", algorithm=algorithm).deleted.derived == {"isIn": 3}
        assert kg.counts() == {"isIn": 3}

    def test_a_dry_run_tells_and_changes_nothing(self, algorithm: str) -> None:
        kg = KnowledgeGraph(Program.parse(f"{PATH} edge(1, 2) . edge(2, 3) ."))
        before = everything(kg)
        report = kg.update(delete="edge(2, 3) .", insert="edge(3, 4) .", algorithm=algorithm, dry_run=True)
        assert (report.deleted.derived, report.inserted.derived, report.version) == ({"path": 2}, {"path": 1}, None)
        assert_same(everything(kg), before)
        kg.update(delete="edge(2, 3) .", algorithm=algorithm)
        assert kg.counts() == {"edge": 1, "path": 1}


def test_a_fact_without_arguments_that_went_is_not_verified_as_there() -> None:
    kg = KnowledgeGraph(Program.parse("go() :- flag() . flag() ."))
    kg.update(delete="flag() .")
    assert kg.verify() == 0


def test_an_unknown_algorithm_is_a_mistake() -> None:
    with pytest.raises(UserError, match="EG302"):
        KnowledgeGraph("rhodf").update(delete="edge(1, 2) .", algorithm="magic")


def test_blank_nodes_to_delete_are_those_of_the_graph(tmp_path: Any) -> None:
    file = tmp_path / "data.ttl"
    file.write_text("<http://ex/a> <http://ex/p> [ <http://ex/q> 1 ] .")
    kg = KnowledgeGraph("rhodf")
    kg.update(insert=file)
    assert len(kg) == 2
    kg.update(delete=[triple for triple in kg.explicit if str(triple[1]).endswith("q")])
    assert len(kg) == 1
    kg.update(delete="\n".join(" ".join(term.n3() for term in triple) + " ." for triple in kg.explicit))
    assert len(kg) == 0


@pytest.mark.parametrize("size", [100, 1000])
def test_the_work_of_a_deletion_follows_the_change(size: int) -> None:
    """Derivations, not seconds: a student who leaves costs the same in a small and in a large university."""
    program = Program.parse("person(?x) :- student(?x) . member(?x, ?d) :- studies(?x, ?c), course(?c, ?d) .")
    kg = KnowledgeGraph(program)
    kg.update(insert="\n".join(f"student({i}) . studies({i}, {i % 7 + 9000}) ." for i in range(size)) + "course(9001, 1) .")
    kg.update(algorithm="counting")
    for algorithm in ("dred", "counting", "backward-forward"):
        report = kg.update(delete="student(1) . studies(1, 9002) .", algorithm=algorithm, dry_run=True)
        assert report.derivations <= 4
