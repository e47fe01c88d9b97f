"""Engines by name: what a user may give for `engine`, and what is made of it. Spark is imported when it is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from evergraph.engines.base import Engine
from evergraph.engines.equality.engine import Rewriting
from evergraph.engines.equality.memory import MergingMemory
from evergraph.engines.gpu.engine import GpuEngine
from evergraph.engines.memory import MemoryEngine
from evergraph.engines.reference import ReferenceEngine
from evergraph.errors import UserError
from evergraph.plan.compile import Plan
from evergraph.store import Store
from evergraph.store.lock import Scratch

if TYPE_CHECKING:
    from evergraph.pipeline.load import Pipeline

ENGINES = ("memory", "gpu", "spark", "reference")


def is_spark(engine: Any) -> bool:
    return engine == "spark" or hasattr(engine, "sparkContext")


def make_engine(engine: Any, plan: Plan) -> Engine:
    if engine == "memory":
        return _local(plan, np)
    if engine == "gpu":
        from evergraph.engines.gpu.device import find_device

        return GpuEngine(plan, _local, find_device())
    if engine == "reference":
        return ReferenceEngine(plan)
    if is_spark(engine):
        from evergraph.engines.spark import MergingSpark, SparkEngine

        return Rewriting(MergingSpark(plan, _session(engine)), plan) if plan.rewrites else SparkEngine(plan, _session(engine))
    raise UserError("EG201", f"no engine is called {engine!r}", f"use one of {', '.join(ENGINES)} or a SparkSession")


def in_process(engine: Engine) -> Engine:
    """The engine itself, or the copy on the host of one whose facts are on a device."""
    return engine.local() if isinstance(engine, GpuEngine) else engine


def _local(plan: Plan, xp: Any) -> MemoryEngine | Rewriting:
    """An engine in this process, over an array module."""
    return Rewriting(MergingMemory(plan, xp), plan) if plan.rewrites else MemoryEngine(plan, xp)


def make_pipeline(engine: Any, plan: Plan, store: Store, shards: int) -> Pipeline:
    from evergraph.engines.spark import MergingSpark, SparkEngine
    from evergraph.pipeline.load import Pipeline

    session = _session(engine)
    scratch = Scratch(store.path)
    if plan.rewrites:
        below = MergingSpark(plan, session, shards, scratch.path)
        return Pipeline(below, store, scratch, Rewriting(below, plan))
    return Pipeline(SparkEngine(plan, session, shards, scratch.path), store, scratch)


def _session(engine: Any) -> Any:
    from evergraph.engines.spark import make_session

    return make_session() if engine == "spark" else engine
