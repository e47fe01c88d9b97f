"""Engines by name: what a user may give for `engine`, and what is made of it. Spark is imported when it is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evergraph.engines.base import Engine
from evergraph.engines.equality.engine import Rewriting
from evergraph.engines.equality.memory import MergingMemory
from evergraph.engines.memory import MemoryEngine
from evergraph.engines.reference import ReferenceEngine
from evergraph.errors import UserError
from evergraph.plan.compile import Plan
from evergraph.store import Store
from evergraph.store.lock import Scratch

if TYPE_CHECKING:
    from evergraph.pipeline.load import Pipeline

ENGINES = ("memory", "spark", "reference")


def is_spark(engine: Any) -> bool:
    return engine == "spark" or hasattr(engine, "sparkContext")


def make_engine(engine: Any, plan: Plan) -> Engine:
    if engine == "memory":
        return Rewriting(MergingMemory(plan), plan) if plan.rewrites else MemoryEngine(plan)
    if engine == "reference":
        return ReferenceEngine(plan)
    if is_spark(engine):
        from evergraph.engines.spark import MergingSpark, SparkEngine

        return Rewriting(MergingSpark(plan, _session(engine)), plan) if plan.rewrites else SparkEngine(plan, _session(engine))
    raise UserError("EG201", f"no engine is called {engine!r}", f"use one of {', '.join(ENGINES)} or a SparkSession")


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
