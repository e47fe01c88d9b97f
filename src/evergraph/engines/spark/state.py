"""What the driver knows of the shards. States are values: taking an update back is putting the old one in place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from evergraph.engines.relation import Relation
from evergraph.engines.spark.job import ALL, ARRIVED, EXPLICIT, KEPT
from evergraph.engines.spark.mail import key_of
from evergraph.engines.spark.placement import Placement
from evergraph.plan.model import Key


@dataclass(frozen=True, slots=True)
class State:
    """Everything an update may change."""

    placement: Placement
    answers: Mapping[int, dict[str, Any]] = field(default_factory=dict)
    """What each shard said last: where its relations stand, and how many facts they hold."""
    schema: Mapping[Key, Relation] = field(default_factory=dict)
    counted: bool = False
    """Whether all shards know the ranks and counts of their facts."""

    def total(self, what: str) -> dict[Key, int]:
        """Counts of owned facts by key over all shards."""
        out: dict[Key, int] = {}
        for answer in self.answers.values():
            for name, count in answer[what].items():
                out[key_of(name)] = out.get(key_of(name), 0) + count
        return out

    @property
    def aiming(self) -> list[int]:
        """The shards that have goals: facts in doubt that they own, without a proof."""
        return [number for number, answer in self.answers.items() if answer["goals"]]

    @property
    def manifest(self) -> set[tuple[Any, ...]]:
        """Where everything stands, of all shards together."""
        return {tuple(stored) for answer in self.answers.values() for stored in answer["manifest"]}

    @property
    def files(self) -> set[str]:
        return {stored[5] for answer in self.answers.values() for stored in answer["manifest"]}

    def settled(self) -> State:
        """The state as it stands when another update begins: what only the last one asked for is left out."""
        roles = KEPT if self.counted else (ALL, EXPLICIT)
        return replace(self, answers={number: _settled(answer, roles) for number, answer in self.answers.items()})


def _settled(answer: dict[str, Any], roles: Sequence[str]) -> dict[str, Any]:
    manifest = [stored for stored in answer["manifest"] if stored[0] in roles]
    return {**answer, "manifest": manifest, ARRIVED: {}, "arrived explicit": {}, "goals": 0, "waiting": []}
