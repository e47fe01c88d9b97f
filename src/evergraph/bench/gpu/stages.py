"""From Parquet tables of ids to a closed graph on the device, and back to committed tables: each stage, and what bounds it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, TypeVar

import pyarrow as pa

from evergraph.bench.gpu.copies import Copies
from evergraph.engines.base import Facts, Which
from evergraph.engines.changes import Held, changes
from evergraph.engines.gpu.device import wait
from evergraph.engines.memory import MemoryEngine
from evergraph.engines.mirror import Mirror, changed_at
from evergraph.rules.model import TRIPLE
from evergraph.store import Info, Store
from evergraph.store.layout import FACTS, SHARDS
from evergraph.store.read import read_facts

BOUNDS = {
    "read": "decoding Parquet, four threads",
    "carry over": "the bus to the device",
    "close": "launches, then the device's memory",
    "compare": "the device's memory",
    "carry back": "the bus, and pages that the host gives for the first time",
    "write": "encoding Parquet, four threads",
}
T = TypeVar("T")


def measure(copies: Copies, cupy: Any, folder: Path) -> Iterator[dict[str, Any]]:
    """A row for each stage: seconds, and facts and bytes that went through it."""
    with TemporaryDirectory(dir=folder) as place:
        store = Store(Path(place) / "store")
        with store.writing():
            base = store.commit(None, _info("load", copies, {}), _explicit(copies), pa.array([], pa.string()))
        stages = _Stages(cupy)
        facts = stages.run("read", lambda: read_facts(base))
        stages.note(facts, sum(file.size for file in base.files(FACTS)))
        engine, mirror = MemoryEngine(copies.plan, cupy), Mirror(cupy)
        held = stages.run("carry over", lambda: _carried(mirror.held(facts, engine.arrays)))
        stages.note(facts, sum(relation.nbytes for relation in facts.all.values()))
        engine.load(held)
        engine.begin()
        engine.insert({name: rows for name, rows in copies.facts.items() if name != TRIPLE})
        engine.forget_derived()
        stages.run("close", lambda: [engine.close(stratum, True) for stratum in range(len(copies.plan.strata))])
        after = Held(engine.relations(Which.ALL), engine.relations(Which.EXPLICIT))
        stages.note(after, sum(relation.nbytes for relation in after.all.values()))
        changed = stages.run("compare", lambda: list(changes(held, after)))
        came = sum(len(one.put[0]) for one in changed)
        stages.rows[-1] |= {"facts": sum(map(len, after.all.values()))}
        there = stages.run("carry back", lambda: [changed_at(engine.arrays, one) for one in changed])
        stages.rows[-1] |= {"facts": came, "bytes": 8 * came + came}
        with store.writing():
            info = _info("update", copies, {TRIPLE: came})
            made = stages.run("write", lambda: store.commit(base, info, there, pa.array([], pa.string())))
        new = set(made.files(FACTS)) - set(base.files(FACTS))
        stages.rows[-1] |= {"facts": came, "bytes": sum(file.size for file in new)}
        yield from stages.rows


class _Stages:
    def __init__(self, cupy: Any) -> None:
        self.cupy = cupy
        self.rows: list[dict[str, Any]] = []

    def run(self, name: str, work: Callable[[], T]) -> T:
        start = perf_counter()
        found = work()
        wait(self.cupy)
        self.rows.append({"stage": name, "seconds": perf_counter() - start, "bound": BOUNDS[name]})
        return found

    def note(self, held: Held, size: int) -> None:
        """What went through the last stage."""
        self.rows[-1] |= {"facts": sum(map(len, held.all.values())), "bytes": size}


def _carried(held: Held) -> Held:
    """With all rows where they are going."""
    for relation in (*held.all.values(), *held.explicit.values()):
        assert relation.base.words
    return held


def _explicit(copies: Copies) -> Iterator[Any]:
    engine = MemoryEngine(copies.plan)
    facts: Facts = {TRIPLE: copies.facts[TRIPLE]}
    engine.insert(facts)
    explicit = {key: relation for key, relation in engine.relations(Which.EXPLICIT).items()}
    return changes(Held(), Held(explicit, explicit))


def _info(operation: str, copies: Copies, derived: dict[str, int]) -> Info:
    return Info(operation, SHARDS, 0, 0, {TRIPLE: copies.triples}, derived)
