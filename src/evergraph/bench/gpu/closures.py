"""Closing a graph on the device, beside the memory engine on one core of the same machine."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter
from typing import Any

import numpy as np

from evergraph.bench.gpu.copies import Copies
from evergraph.engines.base import Which
from evergraph.engines.gpu.device import wait
from evergraph.engines.memory import MemoryEngine
from evergraph.engines.mirror import Mirror


def measure(copies: Copies, cupy: Any, repeat: int, say: Any) -> Iterator[dict[str, Any]]:
    """One row for each engine: seconds to sort facts into relations, and to draw all consequences."""
    pool = cupy.get_default_memory_pool()
    pool.free_all_blocks()
    device, runs = _closed(copies, cupy, repeat + 1, lambda: wait(cupy))
    taken = pool.total_bytes()
    say("the same in memory")
    host, alone = _closed(copies, np, 1, lambda: None)
    differ = _differ(device, host)
    for engine, found, memory in ((device, runs[1:], taken), (host, alone, host.shard.nbytes)):
        best = min(found, key=lambda run: run["close"])
        yield {
            "engine": "gpu" if engine is device else "memory",
            "triples": copies.triples,
            "facts": sum(engine.counts(Which.ALL).values()),
            "index": min(run["index"] for run in found),
            "close": best["close"],
            "slowest": max(run["close"] for run in found),
            "first": runs[0]["close"] if engine is device else None,
            "derivations": alone[0]["derivations"],
            "rounds": best["rounds"],
            "bytes": memory,
            "differ": differ,
        }


def _closed(copies: Copies, xp: Any, repeat: int, settle: Any) -> tuple[MemoryEngine, list[dict[str, Any]]]:
    """The engine as it was closed last, and how long each time took. Facts are sorted anew each time."""
    runs = []
    engine = MemoryEngine(copies.plan, xp)
    for _ in range(repeat):
        engine = MemoryEngine(copies.plan, xp)
        engine.begin()
        start = perf_counter()
        engine.insert(copies.facts)
        settle()
        sorted_at = perf_counter()
        closed = [engine.close(stratum, True) for stratum in range(len(copies.plan.strata))]
        settle()
        runs.append(
            {
                "index": sorted_at - start,
                "close": perf_counter() - sorted_at,
                "derivations": sum(one.derivations for one in closed),
                "rounds": sum(one.rounds for one in closed),
            }
        )
    return engine, runs


def _differ(device: MemoryEngine, host: MemoryEngine) -> list[str]:
    """The relations in which two engines do not have the same rows."""
    mirror, mine = Mirror(device.arrays.xp), host.relations(Which.ALL)
    theirs = device.relations(Which.ALL)
    wrong = [str(key) for key in mine.keys() ^ theirs.keys()]
    for key in mine.keys() & theirs.keys():
        if not mine[key].same(mirror.relation(theirs[key], host.arrays)):
            wrong.append(str(key))
    return wrong
