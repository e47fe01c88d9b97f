"""Knock-outs: without any one rule of a shipped set some case of that set fails, but for rules that follow from others."""

from __future__ import annotations

from difflib import SequenceMatcher
from functools import cache
from pathlib import Path

import pytest

from evergraph import Program
from evergraph.rules.model import Atom, Rule
from evergraph.rules.printer import print_atom
from evergraph.rules.sources import SETS
from test_cases import CASES, FOLDERS, run_case

load = cache(Program.load)


def redundant(rules: str) -> set[str]:
    """The rules of a set that follow from its other rules."""
    path = CASES / rules / "redundant.txt"
    if not path.exists():
        return set()
    return {line.partition("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()}


def names(rules: str) -> list[str]:
    """The rules of a set, less those of the set it includes."""
    included = {rule.name for rule in load("owl2rl").rules} if rules == "owl2rl-full" else set()
    return list(dict.fromkeys(rule.name for rule in load(rules).rules if rule.name not in included))


def cases(rules: str, like: str = "") -> list[Path]:
    """The cases of a set that use its rules, those first whose name is most like the given one."""
    found = [folder for folder in FOLDERS if folder.parent.name == rules and not (folder / "rules.dlog").exists()]
    return sorted(found, key=lambda folder: -SequenceMatcher(None, like.lower(), folder.name).ratio())


def failing(program: Program, folders: list[Path]) -> str | None:
    """The first of the cases that fails under the program."""
    for folder in folders:
        try:
            run_case(folder, program, "memory")
        except AssertionError:
            return folder.name
    return None


@pytest.mark.parametrize(
    ("rules", "name"), [(rules, name) for rules in SETS for name in names(rules) if name not in redundant(rules)]
)
def test_without_a_rule_some_case_fails(rules: str, name: str) -> None:
    assert failing(load(rules).without([name]), cases(rules, name)) is not None


def heads(rules: str) -> list[Rule]:
    """Of the rules with several heads, each with each."""
    several = {name for name in names(rules) if sum(rule.name == name for rule in load(rules).rules) > 1}
    return [rule for rule in load(rules).rules if rule.name in several]


@pytest.mark.parametrize(
    ("rules", "rule"),
    [(rules, rule) for rules in SETS for rule in heads(rules)],
    ids=lambda value: f"{value.name} {print_atom(value.head)}" if isinstance(value, Rule) else value,
)
def test_without_one_head_of_a_rule_some_case_fails(rules: str, rule: Rule) -> None:
    """But for "C is under C" and "C is C", of which each follows from the other."""
    program = load(rules)
    less = Program(tuple(r for r in program.rules if r is not rule), program.facts, program.prefixes)
    implied = rule.name in ("scm-cls", "scm-op", "scm-dp") and rule.head.terms[0] == rule.head.terms[2]
    assert (failing(less, cases(rules, rule.name)) is None) == implied


@pytest.mark.parametrize("fact", load("owl2rl-full").facts, ids=print_atom)
def test_without_an_axiom_some_case_fails(fact: Atom) -> None:
    full = load("owl2rl-full")
    less = Program(full.rules, tuple(f for f in full.facts if f != fact), full.prefixes)
    assert failing(less, cases("owl2rl-full", "axioms")) is not None


@pytest.mark.parametrize("rules", [rules for rules in SETS if redundant(rules)])
def test_without_the_rules_that_follow_from_others_no_case_fails(rules: str) -> None:
    """All at once: without negation, what holds without all of them holds without each."""
    program = load(rules)
    assert redundant(rules) <= set(names(rules))
    assert not any(rule.negations for rule in program.rules)
    assert failing(program.without(redundant(rules)), cases(rules)) is None


def test_redundant_rules_are_listed_with_a_reason() -> None:
    (path,) = CASES.rglob("redundant.txt")
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) == len(redundant("owl2rl"))
    assert all(len(line.partition("#")[2].split()) > 3 for line in lines)
