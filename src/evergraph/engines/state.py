"""All that an engine in this process holds between updates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from evergraph.engines.arrays import Arrays
from evergraph.engines.changes import Held
from evergraph.engines.equality.names import Names
from evergraph.engines.marks import Marks
from evergraph.plan.compile import Plan
from evergraph.plan.model import Key


@dataclass(frozen=True, slots=True)
class State:
    arrays: Arrays
    plan: Plan
    """The rules, as they were written."""
    facts: Held
    marks: Mapping[Key, Marks] | None
    closed: bool
    """Whether the rules have been run at all."""
    names: Names | None = None
    """What stands for what, where equality is by representatives."""
