"""The pipeline from a program to a plan: stratify, encode, lift shapes, cut guards."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evergraph.plan.model import PlanRule, encode_rules
from evergraph.plan.schema import Rules, schema_first
from evergraph.plan.shapes import lift
from evergraph.rules.model import TYPE, Program
from evergraph.rules.stratify import stratify
from evergraph.terms import Dictionary, Ids


@dataclass(frozen=True, slots=True)
class Plan:
    """What an engine needs to know of a program."""

    rules: tuple[tuple[PlanRule, ...], ...]
    """The rules of each stratum as they were written, with constants encoded."""
    strata: tuple[Rules, ...]
    """The same, with shapes lifted and guards cut out."""
    parameters: Mapping[str, Sequence[tuple[int, ...]]]
    """Rows of the parameter relations of shapes."""
    type_id: int
    values: Any = None
    """Answers comparisons of terms; see `kernel.Values`."""

    @property
    def fingerprint(self) -> str:
        """The same for plans with the same rules: what is counted by one can be kept by the other."""
        return f"{zlib.crc32(repr((self.strata, sorted(self.parameters.items()))).encode()):08x}"

    @property
    def parameter_facts(self) -> dict[str, list[Ids]]:
        """The same rows as columns, as facts come."""
        return {name: [np.array(c, np.uint64) for c in zip(*rows, strict=True)] for name, rows in self.parameters.items()}


def compile_program(program: Program, dictionary: Dictionary, values: Any = None) -> Plan:
    """Every stratum with its constants encoded and its shapes lifted. Cost: linear in the program."""
    type_id = int(dictionary.encode([TYPE])[0])
    written: list[tuple[PlanRule, ...]] = []
    strata: list[Rules] = []
    parameters: dict[str, list[tuple[int, ...]]] = {}
    for number, rules in enumerate(stratify(program)):
        encoded = encode_rules(rules, dictionary.encode)
        shapes = lift(encoded, number)
        written.append(tuple(encoded))
        strata.append(schema_first(shapes.rules, type_id))
        parameters |= shapes.rows
    return Plan(tuple(written), tuple(strata), parameters, type_id, values)
