"""What the driver tells the shards to do in a superstep, and the words that both use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from evergraph.engines.base import Keep
from evergraph.engines.spark.names import StoredNames
from evergraph.engines.spark.placement import Placement
from evergraph.plan.model import Key
from evergraph.plan.schedule import Component

ALL, EXPLICIT, ARRIVED, GONE, LOST = "all", "explicit", "arrived", "gone", "lost"
"""The roles of relations at a shard: its facts, which of those it owns are explicit, what came in this update, what went, here
or anywhere, and what of that went in this stratum."""
GOALS, CHECKED, PROVED, EXPANDED = "goals", "checked", "proved", "expanded"
"""Roles while a stratum looks for proofs: facts in doubt that the shard owns, and how far the search is, at all shards."""
MARKS, LATER = "marks", "later marks"
"""Roles where facts are counted: the ranks and counts of a relation's base, and those that came later (`marks.py`)."""
EQUAL = "equal"
"""The role of pairs of names that are the same, as far as the driver has not merged them."""
KEPT = (ALL, EXPLICIT, MARKS, LATER)
"""What lasts when an update is over."""
ROLES = (*KEPT, ARRIVED, GONE, LOST, GOALS, CHECKED, PROVED, EXPANDED, EQUAL)


class Step(StrEnum):
    CLOSE = "close"
    RETREAT = "retreat"
    PROVE = "prove"
    ADVANCE = "advance"
    REPLACE = "replace"
    RENAME = "rename"
    OVERLAP = "overlap"


SEARCHING = (Step.RETREAT, Step.PROVE)
"""Steps between which goals, and what is known of them, are kept."""


@dataclass(frozen=True, slots=True)
class Job:
    """What the shards do in a superstep."""

    folder: Path
    answers: dict[int, dict[str, Any]]
    """What each shard said last: where its relations stand, and how many facts they hold."""
    placement: Placement
    labels: tuple[int, ...]
    """What shards are called in mail: Spark hashes each label to a partition of its own."""
    named: frozenset[int]
    """Classes that rules name: each shard says which of them have instances."""
    components: tuple[Component, ...]
    values: Any
    full: bool
    """Evaluate everything, not only what arrives."""
    reopen: bool
    """Take all that arrived in this update as new again: a further stratum reads it."""
    keep_arrived: bool
    """Remember what arrives until the update is committed."""
    forget: bool
    """Start again from explicit facts."""
    resend: tuple[Key, ...]
    """Relations that are placed by more arguments than before."""
    step: Step = Step.CLOSE
    begin: bool = False
    """Whether this is the first superstep of its step."""
    keep: Keep = Keep.EVIDENT
    """What a retreat keeps of the facts that have lost an instance."""
    decided: bool = False
    """Whether goals that are still there have no proof, and go."""
    searching: bool = True
    """Whether some goal has no proof yet; without one, shards only take in what is still under way."""
    drop: frozenset[Key] = frozenset()
    """Relations to empty."""
    earlier: tuple[Component, ...] = ()
    """Rules of lower strata, which may derive what this stratum lets go."""
    counting: bool = False
    """Whether ranks and counts are kept: rules are then those that find each instance once."""
    old: Mapping[int, Sequence[Any]] = field(default_factory=dict)
    """Where the relations of each shard stood when the update began, for a retreat that counts."""
    wave: str = ""
    """Of updates that overlap: which step (`overlapping`), and for which epoch."""
    epoch: int = 0
    same: int | None = None
    """The property that makes names the same, where one stands for all of them."""
    names: StoredNames | None = None
    """What stands for what; facts are in normal form by these."""
    changed: StoredNames | None = None
    """The names that something else stands for from now on."""
    pending: bool = False
    """Whether what arrived before names changed stays arrived."""
    compares: bool = False
    """Whether rules compare values: facts about names that stand for more than before arrive again."""
