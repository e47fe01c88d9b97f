"""What `auto` picks, and what it says it expected."""

from __future__ import annotations

import pytest

from evergraph import KnowledgeGraph, Program

TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
SUB = "<http://www.w3.org/2000/01/rdf-schema#subClassOf>"


def graph(axioms: int, facts: int, algorithm: str = "auto") -> KnowledgeGraph:
    lines = [f"<http://ex/C{i}> {SUB} <http://ex/C{i + 1}> ." for i in range(axioms)]
    lines += [f"<http://ex/i{i}> {TYPE} <http://ex/C{i % (axioms + 1)}> ." for i in range(facts)]
    kg = KnowledgeGraph("rhodf")
    kg.update(insert="\n".join(lines), algorithm=algorithm)
    return kg


def types(axioms: int, numbers: range) -> str:
    return "\n".join(f"<http://ex/i{i}> {TYPE} <http://ex/C{i % (axioms + 1)}> ." for i in numbers)


@pytest.mark.parametrize(("gone", "algorithm"), [(1, "dred"), (50, "dred"), (500, "recompute")])
def test_few_facts_go_step_by_step_and_many_from_scratch(gone: int, algorithm: str) -> None:
    kg = graph(3, 5000)
    assert kg.update(delete=types(3, range(gone)), dry_run=True).algorithm == algorithm


@pytest.mark.parametrize(("axioms", "algorithm"), [(4, "recompute"), (200, "dred")])
def test_an_axiom_weighs_as_much_as_its_part_of_the_schema(axioms: int, algorithm: str) -> None:
    kg = graph(axioms, 5000)
    report = kg.update(delete=f"<http://ex/C0> {SUB} <http://ex/C1> .", dry_run=True)
    assert report.algorithm == algorithm
    assert report.expected is not None and report.expected > 0


def test_small_graphs_go_step_by_step_whatever_goes() -> None:
    assert graph(3, 500).update(delete=types(3, range(400))).algorithm == "dred"


def test_counted_graphs_stay_counted() -> None:
    kg = graph(3, 5000, "counting")
    assert kg.update(delete=types(3, range(10))).algorithm == "counting"
    report = kg.update(delete=types(3, range(10, 2000)))
    assert (report.algorithm, report.reason.endswith("facts stay counted")) == ("recompute", True)
    assert kg.update(insert=types(3, range(10))).algorithm == "counting"
    kg.verify()


def test_what_was_expected_stands_beside_what_happened() -> None:
    kg = graph(3, 5000)
    report = kg.update(delete=types(3, range(0, 100)))
    said = report.as_dict()
    assert said["expected"] is not None and said["examined"] >= said["derivations"] > 0
    assert said["derivations"] / 10 < said["expected"] < said["derivations"] * 10
    assert kg.update(insert=types(3, range(0, 100)), algorithm="dred").expected is None


def test_rules_that_negate_delete_on_insertion() -> None:
    kg = KnowledgeGraph(Program.parse("good(?x) :- node(?x), NOT bad(?x) . node(1) ."))
    report = kg.update(insert="bad(1) .")
    assert (report.algorithm, report.reason) == ("dred", "rules negate: facts may have to go")
