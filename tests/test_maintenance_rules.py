"""Algorithm 1 of Volz et al. 2003: maintenance rules that are kept equal those of the program rewritten from scratch."""

from __future__ import annotations

from random import Random

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from evergraph import Program
from evergraph.maintain.maintenance_program import rewrite
from evergraph.maintain.maintenance_rules import MaintenanceRules, Operator
from evergraph.rules.model import Atom, BodyItem, Rule
from strategies import EX, layered_programs, programs


def bare(rules: object) -> set[tuple[Atom, tuple[BodyItem, ...]]]:
    return {(rule.head, rule.body) for rule in rules}  # type: ignore[attr-defined]


def assert_kept(kept: MaintenanceRules) -> None:
    """Each structure is what it would be if it were made from R alone."""
    scratch = rewrite(Program(kept.rules))
    assert bare(kept.maintenance_rules) == bare(scratch.rules)
    assert len(kept.maintenance_rules) == len(scratch.rules)
    assert kept.predicates == {rule.head.relation for rule in kept.rules}
    assert kept.maintenance_predicates >= {rule.head.relation for rule in kept.maintenance_rules}
    for rule in kept.rules:
        assert kept.rule_maintenance(rule) <= kept.maintenance_rules
        assert rule in kept.rules_of(rule.head.relation)


def changed(texts: list[tuple[Operator, str]]) -> MaintenanceRules:
    kept = MaintenanceRules()
    for operator, text in texts:
        kept.change(Program.parse(f"@prefix ex: <{EX}> . {text}").rules, operator)
        assert_kept(kept)
    return kept


INSERT, DELETE = Operator.INSERT, Operator.DELETE


def test_volz_algorithm_1() -> None:
    """Static rules come with the first rule of a predicate and go with its last, which need not be the same."""
    first, second = "p(?x, ?y) :- e(?x, ?y) .", "p(?x, ?z) :- p(?x, ?y), e(?y, ?z) ."
    static = {"p_New", "p_Plus", "p_Minus"}
    kept = changed([(INSERT, first)])
    heads = [rule.head.relation for rule in kept.maintenance_rules]
    assert {name: heads.count(name) for name in static} == {"p_New": 3, "p_Plus": 1, "p_Minus": 1}
    assert kept.maintenance_predicates == static | {"p_Temp", "p_Red", "p_Del", "p_Ins"}
    assert {rule.head.relation for rule in kept.rule_maintenance(kept.rules[0])} == {"p_Del", "p_Red", "p_Ins"}
    kept = changed([(INSERT, first), (INSERT, second), (DELETE, first)])
    assert [rule.body for rule in kept.rules] == [Program.parse(second).rules[0].body]
    assert static <= {rule.head.relation for rule in kept.maintenance_rules}
    kept.change(Program.parse(second).rules, DELETE)
    assert not (kept.rules or kept.predicates or kept.maintenance_rules or kept.maintenance_predicates)


def test_a_rule_changes_nothing_if_it_is_there_or_is_not_there_to_be_deleted() -> None:
    rule = Program.parse("p(?x) :- n(?x) .").rules
    kept = MaintenanceRules(Program(rule))
    before = {*kept.maintenance_rules}
    kept.change(Program.parse('#[name("other")] p(?y) :- n(?y) .').rules, INSERT)
    kept.change(Program.parse("q(?x) :- n(?x) . p(?x) :- m(?x) .").rules, DELETE)
    assert (kept.maintenance_rules, kept.rules) == (before, (Rule(rule[0].head, rule[0].body, "R1"),))


def test_a_negated_relation_that_gets_a_rule_is_no_longer_given() -> None:
    negates = "p(?x) :- n(?x), NOT q(?x) ."
    kept = changed([(INSERT, negates)])
    assert "q_Plus" not in str(Program(tuple(kept.maintenance_rules)))
    kept = changed([(INSERT, negates), (INSERT, "q(?x) :- m(?x) .")])
    assert any(atom.relation == "q_Plus" for rule in kept.rule_maintenance(kept.rules[0]) for atom in rule.atoms)
    changed([(INSERT, negates), (INSERT, "q(?x) :- m(?x) ."), (DELETE, "q(?x) :- m(?x) ."), (DELETE, negates)])


def test_triples_in_one_more_stratum_and_one_less() -> None:
    low, high = "ex:B[?x] :- ex:A[?x] .", "ex:D[?x] :- ex:A[?x], NOT ex:B[?x] ."
    kept = changed([(INSERT, low), (INSERT, high)])
    assert {"t1_Del", "t2_Del"} <= kept.maintenance_predicates
    kept = changed([(INSERT, low), (INSERT, high), (DELETE, high)])
    assert "t_Del" in kept.maintenance_predicates
    assert "t1_Del" not in kept.maintenance_predicates


def test_names_that_are_taken_and_free_again() -> None:
    taker = "p_Del(?x) :- m(?x) ."
    kept = changed([(INSERT, "p(?x) :- n(?x) ."), (INSERT, taker)])
    assert "p__Del" in kept.maintenance_predicates
    kept = changed([(INSERT, "p(?x) :- n(?x) ."), (INSERT, taker), (DELETE, taker)])
    assert "p_Del" in kept.maintenance_predicates


@given(programs | layered_programs, st.integers(0, 2**32))
@settings(max_examples=150, phases=[Phase.generate], suppress_health_check=[HealthCheck.too_slow])
def test_maintenance_rules_that_are_kept_equal_those_made_from_scratch(program: Program, seed: int) -> None:
    rng, kept = Random(seed), MaintenanceRules()
    for _ in range(6):
        kept.change([rule for rule in program.rules if rng.random() < 0.4], rng.choice([INSERT, INSERT, DELETE]))
        assert_kept(kept)
    kept.change(kept.rules, DELETE)
    assert not kept.maintenance_rules
