"""A scheduler for updates that overlap: tests say when each update joins, and which step comes next."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any
from unittest.mock import patch

from conftest import assert_same, everything
from evergraph import KnowledgeGraph, Program, inputs
from evergraph.engines.base import Which
from evergraph.engines.shard import Shard
from evergraph.engines.spark import overlapping
from evergraph.maintain.dynamic import OVERLAPPING, Dynamic, Step, _step
from test_shards import sharded

Update = tuple[Any, Any]
"""Facts to insert, facts to delete."""
MOST = 5000
"""A history of a few facts that takes more steps than this does not end."""
BOTH = [
    ("memory", "dred"),
    ("memory", "counting"),
    ("memory", "backward-forward"),
    ("shards", "dred"),
    ("shards", "counting"),
]
"""Engines and the algorithms whose updates overlap on them."""


def graph(program: Program, engine: str, shards: int = 2) -> KnowledgeGraph:
    return sharded(program, shards) if engine == "shards" else KnowledgeGraph(program, equality="off")


class Turns:
    """One stretch of overlapping updates of a graph, by hand."""

    def __init__(self, kg: KnowledgeGraph, algorithm: str, chunk: int = 1 << 13) -> None:
        self.kg, self.engine, self.chunk = kg, kg._engine, chunk
        if algorithm == "counting" and not self.engine.counted:
            kg.update(algorithm="counting")
        self.engine.begin()
        self.overlap = self.engine.overlap(OVERLAPPING[algorithm])  # type: ignore[attr-defined]
        self.inner = getattr(self.overlap, "steps", self.overlap)
        """What does the steps, where something stands before it."""
        self.inner.chunk = chunk
        self.dynamic = Dynamic(self.overlap)
        self.epochs = 0

    @property
    def shard(self) -> Shard:
        """What the engine holds, wherever that is."""
        return getattr(self.engine, "now", self.engine).shard

    def join(self, insert: Any = (), delete: Any = ()) -> int:
        """Returns the epoch."""
        dictionary = self.kg._dictionary
        come = inputs.read(insert, dictionary, own=True)
        gone = inputs.less(inputs.read(delete, dictionary, own=True), come)
        return self.dynamic.join(come, gone)[0]

    def step(self, step: Step | None = None, epoch: int = 0) -> None:
        """The next step, or a chosen one."""
        assert self.dynamic.steps < MOST, "it does not end"
        with patch.object(overlapping, "CHUNK", self.chunk):
            self.dynamic.step(*((step, epoch) if step is not None else self.dynamic.next()))

    def any_step(self, rng: Random) -> None:
        """Any step that may come: what is true between steps does not depend on their order."""
        waiting = self.overlap.waiting()
        epoch = rng.choice([e for e in sorted(waiting) if _step(e, waiting) is not None])
        choices = [Step.WITHDRAW] * (waiting[epoch].doubted > 0) + [Step.ACTIVATE] * (waiting[epoch].pending > 0)
        doubted = any(w.doubted for e, w in waiting.items() if e <= epoch)
        if waiting[epoch].recalled or (waiting[epoch].candidates and not doubted):
            choices.append(Step.REDERIVE)
        self.step(rng.choice(choices), epoch)

    def finish(self) -> None:
        while not self.dynamic.settled:
            self.step()
        self.engine.commit()
        self.kg._publish()

    def there(self) -> set[str]:
        """What is there now, settled or not."""
        live = self.overlap.live()
        decode = self.kg._dictionary.decode
        names = {name: [decode(c).to_pylist() for c in live.rows(name, Which.ALL)] for name in live.counts(Which.ALL)}
        return {f"{name}{row}" for name, columns in names.items() for row in (zip(*columns, strict=True) if columns else [()])}


def interleavings(begin: Callable[[], Turns], updates: Sequence[Update]) -> Iterator[tuple[Turns, tuple[int, ...]]]:
    """Every way in which updates can come in: how many steps are done before each of them joins. Ends where all has settled."""

    def replay(waits: tuple[int, ...]) -> Turns:
        turns = begin()
        for number, (insert, delete) in enumerate(updates):
            if number:
                if number > len(waits):
                    break
                for _ in range(waits[number - 1]):
                    turns.step()
            turns.join(insert, delete)
        return turns

    def explore(waits: tuple[int, ...]) -> Iterator[tuple[Turns, tuple[int, ...]]]:
        if len(waits) == len(updates) - 1:
            turns = replay(waits)
            turns.finish()
            yield turns, waits
            return
        left = 0
        ahead = replay(waits)
        while not ahead.dynamic.settled:
            ahead.step()
            left += 1
        for wait in range(left + 1):
            yield from explore((*waits, wait))

    yield from explore(())


def serial(program: Program, base: Any, updates: Sequence[Update]) -> KnowledgeGraph:
    """The same updates one after the other, by the reference engine."""
    kg = KnowledgeGraph(program, engine="reference", equality="off")
    kg.update(insert=base)
    for insert, delete in updates:
        kg.update(insert=insert, delete=delete)
    return kg


def assert_equal(kg: KnowledgeGraph, other: KnowledgeGraph, what: str) -> None:
    assert_same(everything(kg), everything(other), what)
    assert_same(everything(kg, Which.EXPLICIT), everything(other, Which.EXPLICIT), f"{what}\nexplicit")
