"""A rule is a row: what a change of rules is to plans and stores, what it costs, and what bad rules change: nothing."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import pytest

from conftest import everything
from evergraph import KnowledgeGraph, Program
from evergraph.engine_choice import in_process
from evergraph.errors import UserError
from evergraph.maintain.choose import ALGORITHMS
from evergraph.plan.model import is_parameter
from evergraph.rules.model import TRIPLE
from evergraph.store import Store
from strategies import EX
from test_counting import assert_counts
from test_shards import sharded

PREFIX = f"@prefix ex: <{EX}> .\n"


# -- what a change is to the plan ---------------------------------------------------------------------------------------


def classes(numbers: range) -> str:
    return PREFIX + "".join(f"ex:D{i}[?x] :- ex:C{i}[?x] .\n" for i in numbers)


def members(numbers: range) -> str:
    return PREFIX + "".join(f"ex:C{i}[ex:x{i}] . ex:C{i}[ex:y{i}] .\n" for i in numbers)


def compiled(kg: KnowledgeGraph) -> int:
    return sum(len(rules.rules) for rules in kg._plan.strata)


def rows_of(kg: KnowledgeGraph) -> dict[str, int]:
    """Rows of the parameter relations that the engine holds."""
    shard = in_process(kg._engine).shard  # type: ignore[attr-defined]
    return {str(key): len(relation) for key, relation in shard.relations.items() if is_parameter(key)}


def test_a_rule_of_a_known_shape_is_a_row() -> None:
    kg = KnowledgeGraph(Program.parse(classes(range(20)) + members(range(30)).removeprefix(PREFIX)))
    ((name, _),) = rows_of(kg).items()
    strata = kg._plan.strata
    report = kg.update(insert_rules=classes(range(20, 25)))
    assert rows_of(kg) == {name: 25}
    assert report.inserted.derived == {TRIPLE: 10}
    kg.update(delete_rules=classes(range(3)))
    assert rows_of(kg) == {name: 22}
    assert kg._plan.strata is strata, "nothing is compiled"
    assert kg.verify() == 60 + 44


def test_a_new_shape_is_compiled_and_goes_with_its_last_row() -> None:
    kg = KnowledgeGraph(Program.parse(members(range(10))))
    kg.update(insert_rules=classes(range(8)))
    assert (compiled(kg), list(rows_of(kg).values())) == (1, [8])
    kg.update(delete_rules=classes(range(7)))
    assert (compiled(kg), list(rows_of(kg).values())) == (1, [1])
    kg.update(delete_rules=classes(range(7, 8)))
    assert (compiled(kg), rows_of(kg), len(kg.rules.rules)) == (0, {}, 0)
    assert len(kg) == 20


def test_rules_that_come_one_by_one_become_rows() -> None:
    kg = KnowledgeGraph(Program.parse(members(range(20))))
    for number in range(20):
        kg.update(insert_rules=classes(range(number, number + 1)))
    assert compiled(kg) == 1
    assert list(rows_of(kg).values()) == [20]
    assert kg.verify() == 80


def test_the_names_of_variables_and_rules_do_not_matter() -> None:
    kg = KnowledgeGraph(Program.parse('#[name("one")] p(?x) :- q(?x, ?y) . q(1, 2) .'))
    assert not kg.update(insert_rules='#[name("two")] p(?a) :- q(?a, ?b) .').rules_inserted
    report = kg.update(delete_rules="p(?b) :- q(?b, ?a) .")
    assert [rule.name for rule in report.rules_deleted] == ["one"]
    assert report.deleted.derived == {"p": 1}


def test_a_rule_that_is_deleted_and_inserted_stays() -> None:
    kg = KnowledgeGraph(Program.parse("p(?x) :- q(?x) . q(1) ."))
    report = kg.update(insert_rules="p(?y) :- q(?y) .", delete_rules="p(?z) :- q(?z) .")
    assert (report.rules_inserted, report.rules_deleted, report.derivations) == ((), (), 0)


def test_facts_that_stand_among_rules_come_and_go_with_them() -> None:
    kg = KnowledgeGraph(Program())
    kg.update(insert_rules="p(?x) :- q(?x) . q(1) .")
    assert everything(kg) == {"p(1)", "q(1)"}
    kg.update(delete_rules="p(?x) :- q(?x) . q(1) .")
    assert everything(kg) == set()


def test_a_rule_may_bring_a_built_in() -> None:
    kg = KnowledgeGraph(Program.parse('p(1) . p("a") .'))
    kg.update(insert_rules="number(?x) :- p(?x), DATATYPE(?x, xsd:integer) .")
    assert len(kg.relation("number")) == 1
    kg.update(insert="p(2) .")
    assert len(kg.relation("number")) == 2


# -- negation -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_strata_change_with_the_rules(algorithm: str) -> None:
    kg = KnowledgeGraph(Program.parse("p(?x) :- n(?x), NOT q(?x) . n(1) . n(2) . q(1) . r(2) ."))
    kg.update(insert_rules="q(?x) :- n(?x), NOT r(?x), NOT s(?x) . s(?x) :- r(?x) .", algorithm=algorithm)
    assert everything(kg) == {"n(1)", "n(2)", "q(1)", "r(2)", "s(2)", "p(2)"}
    kg.update(delete_rules="s(?x) :- r(?x) .", insert_rules="s(?x) :- n(?x) .", delete="r(2) .", algorithm=algorithm)
    assert everything(kg) == {"n(1)", "n(2)", "q(1)", "s(1)", "s(2)", "p(2)"}
    kg.verify("reference")


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_strata_go_with_the_last_negation(algorithm: str) -> None:
    """A rule that comes then may read what stood in a higher stratum, and is found when it is to go."""
    kg = KnowledgeGraph(Program.parse("p(?x) :- n(?x), NOT q(?x) . s(?x) :- p(?x) . s(?x) :- t(?x) . n(1) . t(2) ."))
    kg.update(delete_rules="p(?x) :- n(?x), NOT q(?x) .", algorithm=algorithm)
    kg.update(insert_rules="r(?x) :- s(?x) .", algorithm=algorithm)
    assert everything(kg) == {"n(1)", "t(2)", "s(2)", "r(2)"}
    kg.update(insert="p(3) .", algorithm=algorithm)
    assert everything(kg) == {"n(1)", "t(2)", "s(2)", "r(2)", "p(3)", "s(3)", "r(3)"}
    kg.update(delete_rules="r(?x) :- s(?x) .", algorithm=algorithm)
    assert everything(kg) == {"n(1)", "t(2)", "s(2)", "p(3)", "s(3)"}


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_old_and_new_rules_may_negate_each_other(algorithm: str) -> None:
    kg = KnowledgeGraph(Program.parse("p(?x) :- n(?x), NOT q(?x) . n(1) ."))
    report = kg.update(
        insert_rules="q(?x) :- n(?x), NOT p(?x) .", delete_rules="p(?x) :- n(?x), NOT q(?x) .", algorithm=algorithm
    )
    assert everything(kg) == {"n(1)", "q(1)"}
    assert report.algorithm == ("declarative" if algorithm == "declarative" else "recompute")


# -- bad input ----------------------------------------------------------------------------------------------------------

BAD = {
    "EG009": {"delete_rules": "p(?x) :- r(?x) ."},
    "EG005": {"insert_rules": "q(?x) :- n(?x), NOT p(?x) ."},
    "EG003": {"insert_rules": "q(?x) :- n(?y) ."},
    "EG004": {"insert_rules": "p(?x, ?x) :- n(?x) ."},
    "EG001": {"insert_rules": "p(?x) :- n(?x)"},
    "EG105": {"insert_rules": [3]},
}


def test_a_stratum_whose_last_rule_went_is_gone() -> None:
    for engine in ("memory", "reference"):
        rules = "p(?x) :- n(?x), NOT q(?x) . s(?x) :- n(?x), NOT p(?x) . u(?x) :- n(?x) . n(1) ."
        kg = KnowledgeGraph(Program.parse(rules), engine=engine)
        kg.update(delete_rules="s(?x) :- n(?x), NOT p(?x) .")
        kg.update(delete_rules="u(?x) :- n(?x) .")
        assert len(kg._plan.strata) == len(kg._plan.rules) == 2
        kg.update(insert="n(2) . q(1) .")
        assert everything(kg) == {"n(1)", "n(2)", "q(1)", "p(2)"}
        kg.verify("reference")


@pytest.mark.parametrize("code", BAD)
@pytest.mark.parametrize("stored", [False, True])
def test_bad_rules_change_nothing(tmp_path: Path, code: str, stored: bool) -> None:
    program = Program.parse("p(?x) :- q(?x) . q(1) . n(1) .")
    kg = KnowledgeGraph(program, store=tmp_path / "g") if stored else KnowledgeGraph(program)
    kg.update()
    before = everything(kg)
    with pytest.raises(UserError, match=code):
        kg.update(insert="q(2) .", **BAD[code])
    assert (everything(kg), kg.rules.rules) == (before, program.rules)
    kg.update(insert="q(3) .")
    assert everything(kg) == before | {"q(3)", "p(3)"}
    if stored:
        assert [v.version for v in Store(tmp_path / "g").history()] == [1, 0]


def test_every_rule_that_is_not_there_is_named() -> None:
    kg = KnowledgeGraph(Program.parse("p(?x) :- q(?x) ."))
    with pytest.raises(UserError) as found:
        kg.update(delete_rules="p(?x) :- r(?x) . p(?x) :- s(?x) . p(?x) :- q(?x) .")
    assert [mistake.code for mistake in found.value.mistakes] == ["EG009", "EG009"]
    assert len(kg.rules.rules) == 1


def test_a_dry_run_changes_nothing() -> None:
    kg = KnowledgeGraph(Program.parse("p(?x) :- q(?x) . q(1) ."))
    rules = {"insert_rules": "r(?x) :- q(?x) .", "delete_rules": "p(?x) :- q(?x) ."}
    report = kg.update(**rules, dry_run=True)  # type: ignore[arg-type]
    assert (report.inserted.derived, report.deleted.derived) == ({"r": 1}, {"p": 1})
    assert everything(kg) == {"p(1)", "q(1)"}
    assert str(kg.rules) == "p(?x) :- q(?x) .\n"
    assert kg.update(**rules).inserted.derived == {"r": 1}  # type: ignore[arg-type]


@pytest.mark.parametrize("shards", [0, 2])
def test_after_a_dry_run_the_old_rules_are_in_force(shards: int) -> None:
    program = Program.parse("p(?x) :- q(?x) . q(1) .")
    kg = sharded(program, shards) if shards else KnowledgeGraph(program)
    kg.update(insert_rules="r(?x) :- q(?x) .", delete_rules="p(?x) :- q(?x) .", dry_run=True)
    kg.update(insert="q(2) .")
    assert everything(kg) == {"p(1)", "p(2)", "q(1)", "q(2)"}


@pytest.mark.parametrize("shards", [0, 2])
def test_after_an_update_that_fails_half_way_the_old_rules_are_in_force(shards: int) -> None:
    program = Program.parse("p(?x) :- q(?x) . q(1) .")
    kg = sharded(program, shards) if shards else KnowledgeGraph(program)
    with patch.object(type(kg._engine), "commit", side_effect=OSError("the disk is full")), pytest.raises(OSError):
        kg.update(insert_rules="r(?x) :- q(?x) .", delete_rules="p(?x) :- q(?x) .", insert="q(3) .")
    assert str(kg.rules) == "p(?x) :- q(?x) .\n"
    kg.update(insert="q(2) .")
    assert everything(kg) == {"p(1)", "p(2)", "q(1)", "q(2)"}


# -- cost ---------------------------------------------------------------------------------------------------------------


@pytest.mark.work
@pytest.mark.parametrize("algorithm", ["auto", "dred", "counting", "backward-forward"])
def test_the_cost_of_a_rule_does_not_depend_on_the_graph(algorithm: str) -> None:
    """Work is counted: derivations and facts looked at, for the same rule in graphs of two sizes."""
    costs = []
    for size in (300, 3000):
        kg = KnowledgeGraph(Program.parse(classes(range(size)) + members(range(size)).removeprefix(PREFIX)))
        kg.update(insert=members(range(1)), algorithm=algorithm)
        rule = PREFIX + "ex:E[?x] :- ex:D7[?x] ."
        reports = [kg.update(insert_rules=rule, algorithm=algorithm), kg.update(delete_rules=rule, algorithm=algorithm)]
        reports.append(kg.update(delete_rules=classes(range(1)), algorithm=algorithm))
        costs.append([(report.algorithm, report.derivations, report.examined) for report in reports])
    assert costs[0] == costs[1]
    assert all(examined < 60 for _, _, examined in costs[0])


@pytest.mark.parametrize("rules", ["rdfs", "owl2rl"])
def test_counts_survive_a_change_of_rules(rules: str) -> None:
    kg = KnowledgeGraph(rules, equality="off")
    data = PREFIX + "rdfs:subClassOf[ex:C, ex:D] . ex:C[ex:a] . ex:C[ex:b] . ex:p[ex:a, ex:b] ."
    kg.update(insert=data, algorithm="counting")
    rule = PREFIX + "ex:q[?x, ?y] :- ex:p[?x, ?y], ex:D[?y] ."
    for change in ({"insert_rules": rule}, {"delete_rules": rule}):
        report = kg.update(**change, algorithm="counting")  # type: ignore[arg-type]
        assert "nothing is counted yet" not in report.reason
        assert kg._engine.counted
        assert_counts(kg)
        kg.verify()


# -- stores -------------------------------------------------------------------------------------------------------------


def test_rules_are_part_of_the_version(tmp_path: Path) -> None:
    kg = KnowledgeGraph(Program.parse("p(?x) :- q(?x) . q(1) ."), store=tmp_path / "g")
    kg.update()
    kg.update(insert_rules='#[name("second")] r(?x) :- q(?x) .')
    kg.update(delete_rules="p(?x) :- q(?x) .", insert="q(2) .")
    store = Store(tmp_path / "g")
    assert [v.info.rules for v in store.history()] == [1, 2, 1]
    said = [{k: n for k, n in v.info.report.items() if k.startswith("rules")} for v in store.history()]
    assert said == [{"rules_inserted": 0, "rules_deleted": 1}, {"rules_inserted": 1, "rules_deleted": 0}, {}]
    wanted = [{"p(1)", "q(1)"}, {"p(1)", "q(1)", "r(1)"}, {"q(1)", "q(2)", "r(1)", "r(2)"}]
    for version, facts in enumerate(wanted):
        old = KnowledgeGraph.open(tmp_path / "g", version=version)
        assert everything(old) == facts
        assert len(old.rules.rules) == store.snapshot(version).info.rules
        old.verify()
    assert [rule.name for rule in KnowledgeGraph.open(tmp_path / "g").rules.rules] == ["second"]


def test_a_store_of_many_changes_of_rules_is_compacted(tmp_path: Path) -> None:
    kg = KnowledgeGraph(Program.parse(members(range(50))), store=tmp_path / "g")
    kg.update()
    for number in range(40):
        kg.update(insert_rules=classes(range(number, number + 1)))
    assert len(Store(tmp_path / "g").snapshot().files("rules")) < 40
    again = KnowledgeGraph.open(tmp_path / "g")
    assert again.rules.rules == kg.rules.rules
    again.update(delete_rules=classes(range(10)))
    assert KnowledgeGraph.open(tmp_path / "g").verify() == 100 + 60


def test_two_writers_change_rules_in_turn(tmp_path: Path) -> None:
    one = KnowledgeGraph(Program.parse("p(?x) :- q(?x) . q(1) ."), store=tmp_path / "g")
    one.update()
    two = KnowledgeGraph.open(tmp_path / "g")
    one.update(insert_rules="r(?x) :- p(?x) .")
    two.update(delete_rules="r(?x) :- p(?x) . p(?x) :- q(?x) .")
    one.update(insert_rules="s(?x) :- q(?x) .")
    assert everything(KnowledgeGraph.open(tmp_path / "g")) == {"q(1)", "s(1)"} == everything(one)


def test_counts_of_a_store_follow_its_rules(tmp_path: Path) -> None:
    kg = KnowledgeGraph(Program.parse("p(?x) :- q(?x) . q(1) ."), store=tmp_path / "g")
    kg.update(algorithm="counting")
    kg.update(insert_rules="r(?x) :- p(?x) . r(?x) :- q(?x) .", algorithm="counting")
    again = KnowledgeGraph.open(tmp_path / "g")
    report = again.update(delete_rules="p(?x) :- q(?x) .", algorithm="counting")
    assert "nothing is counted yet" not in report.reason
    assert everything(again) == {"q(1)", "r(1)"}
    assert_counts(again)
