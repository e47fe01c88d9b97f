"""Facts of the driver on their way to shards: addressed by placement, handed to Spark in frames that a task can carry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any, Protocol

from evergraph.engines.arrays import U64, Arrays
from evergraph.engines.relation import Run
from evergraph.engines.spark import mail
from evergraph.engines.spark.mail import Kind, Letter
from evergraph.engines.spark.placement import Placement
from evergraph.plan.model import Key

PARCEL_BYTES = 32 << 20
"""The driver hands facts to Spark in frames of about this size."""


class FactFiles(Protocol):
    """Explicit facts that stand in files where the workers can read them."""

    @property
    def counts(self) -> Mapping[Key, int]:
        """Facts by relation, at least."""

    @property
    def common(self) -> Mapping[Key, Run]:
        """Those that every shard holds."""

    @property
    def classes(self) -> frozenset[int]:
        """Classes that rules name and that have instances among the facts."""

    def letters(self, session: Any, placement: Placement, labels: Sequence[int]) -> Any:
        """A frame of letters to the homes of all facts."""


def parcels(
    placement: Placement, labels: Sequence[int], runs: Mapping[Key, Run], owner: Kind, others: Kind | None
) -> list[Letter]:
    """Letters of one kind to the owner of each fact, and of another to its further homes, if these are told at all."""
    arrays = Arrays()
    letters = []
    for key, run in runs.items():
        owners = placement.owner(arrays, run.arity, run.words)
        for shard, home in enumerate(placement.homes(arrays, key, run.arity, run.words)):
            mine = owners == U64(shard)
            for chosen, kind in ((mine, owner), (home & ~mine, others)):
                if kind is not None and bool(chosen.any()):
                    letters.append(mail.letter(labels[shard], kind, key, run.arity, run.where(chosen).words))
    return letters


def frame(session: Any, letters: Sequence[Letter]) -> Any:
    """Letters as one frame, in parcels that a task can carry."""
    frames: list[Any] = []
    part: list[Letter] = []
    for number, one in enumerate(letters):
        part.append(one)
        if number == len(letters) - 1 or sum(len(p.words) for p in part) > PARCEL_BYTES:
            frames.append(session.createDataFrame(mail.to_table(part)))
            part = []
    return reduce(lambda a, b: a.union(b), frames)
