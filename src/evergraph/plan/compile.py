"""The plan: what an engine needs to know of the rules in force, and how it comes from a program.

stratify, encode, lift shapes, cut guards
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from typing import Any

from evergraph.plan.model import Key, PlanRule, is_parameter
from evergraph.plan.schema import Rules
from evergraph.plan.shapes import unswitched
from evergraph.rules.equality import Equality
from evergraph.rules.model import Program
from evergraph.terms import Dictionary, Ids

Parameters = Mapping[str, Callable[[], list[Ids]]]
"""Rows of parameter relations as facts come, made when they are asked for; no columns are the one row without arguments."""
Written = Callable[[], tuple[tuple[PlanRule, ...], ...]]


@dataclass(frozen=True, slots=True)
class Plan:
    strata: tuple[Rules, ...]
    """The rules of each stratum with shapes lifted and guards cut out."""
    parameters: Parameters
    """Rows of the parameter relations of shapes."""
    written: Written
    size: int
    """The number of rules as they were written."""
    type_id: int
    values: Any = None
    """Answers comparisons of terms; see `kernel.Values`."""
    same: int | None = None
    """The id of `owl:sameAs`, where it means equality."""
    rewrites: bool = False
    """Whether one name is to stand for all that are the same; else rules see to it, if anything does."""

    @property
    def rules(self) -> tuple[tuple[PlanRule, ...], ...]:
        """The rules of each stratum as they were written, with constants encoded. Cost: linear in the rules, the first time."""
        return self.written()

    @property
    def mentioned(self) -> set[Key]:
        """Parameter relations and helpers that rules read."""
        atoms = (atom for rules in self.strata for rule in rules.rules for atom in rule.body)
        return {atom.relation for atom in atoms if is_parameter(atom.relation)}

    @property
    def fingerprint(self) -> str:
        """The same for plans that find the same instances: what is counted by one can be kept by the other."""
        strata = [sorted(repr(rule.content) for rule in rules.rules) for rules in self.strata]
        facts = sorted(self.parameter_facts.items())
        rows = [(name, sorted(zip(*(column.tolist() for column in columns), strict=True))) for name, columns in facts]
        return f"{zlib.crc32(repr((strata, rows)).encode()):08x}"

    @property
    def parameter_facts(self) -> dict[str, list[Ids]]:
        """The rows of all parameter relations. Cost: linear in the rules."""
        return {name: rows() for name, rows in self.parameters.items()}


def helpers_of(plan: Plan) -> set[Key]:
    """Relations that are not the user's and follow from others."""
    return {rule.head.relation for rules in plan.strata for rule in rules.rules if is_parameter(rule.head.relation)}


def same_instances(old: Plan, new: Plan, held: Container[Key]) -> bool:
    """Whether the rules of a plan that are in force, by the relations that hold rows, are rules of another as they are."""
    kept = {unswitched(rule).content for rules in new.strata for rule in rules.rules}
    return all(
        unswitched(rule).content in kept or any(is_parameter(a.relation) and a.relation not in held for a in rule.body)
        for rules in old.strata
        for rule in rules.rules
    )


def compile_program(program: Program, dictionary: Dictionary, values: Any = None, equality: Equality = Equality.OFF) -> Plan:
    """The plan of a program. Cost: linear in the program."""
    from evergraph.plan.rulebook import Rulebook

    return Rulebook.of(program, dictionary, values, equality=equality).plan
