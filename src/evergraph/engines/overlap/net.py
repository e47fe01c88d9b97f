"""What a number of steps has changed in all: facts that came and went again are in neither."""

from __future__ import annotations

from collections.abc import Mapping

from evergraph.engines.relation import Relation, Run
from evergraph.engines.sets import runs_of
from evergraph.plan.model import Key


class NetChange:
    def __init__(self) -> None:
        self._plus: dict[Key, Relation] = {}
        self._minus: dict[Key, Relation] = {}

    def come(self, runs: Mapping[Key, Run]) -> None:
        """Facts come that were not there. Cost: what has changed so far."""
        _move(runs, self._minus, self._plus)

    def go(self, runs: Mapping[Key, Run]) -> None:
        _move(runs, self._plus, self._minus)

    @property
    def came(self) -> dict[Key, Run]:
        return runs_of(self._plus)

    @property
    def went(self) -> dict[Key, Run]:
        return runs_of(self._minus)


def _move(runs: Mapping[Key, Run], undone: dict[Key, Relation], done: dict[Key, Relation]) -> None:
    for key, run in runs.items():
        if key in undone:
            back = run.within(undone[key])
            run = run.without(back)
            undone[key] = undone[key].remove(back)
            if not len(undone[key]):
                del undone[key]
        if len(run):
            done[key] = done[key].add(run) if key in done else Relation(run)
