"""Shared parts of the tests: what a graph holds, as text; how two such sets differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, settings

from device import Device, no_device
from evergraph import KnowledgeGraph, becoming, engine_choice
from evergraph.engine_choice import make_engine
from evergraph.engines.base import Engine, Which
from evergraph.engines.gpu.device import find_device
from evergraph.engines.gpu.engine import GpuEngine
from evergraph.engines.modules import Cupy
from evergraph.engines.spark.engine import SparkEngine
from evergraph.plan.compile import Plan
from evergraph.rules.model import TRIPLE, Atom
from evergraph.rules.printer import print_atom


def pytest_addoption(parser: pytest.Parser) -> None:
    """Tests that ask for the memory engine get another one: they say the same of it."""
    told = "what graphs with engine='memory' are kept on: memory, a GPU, or what stands in for one"
    parser.addoption("--engine", choices=["memory", "gpu", "stand-in"], default="memory", help=told)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests that need a GPU are skipped by name where there is none, with the line that a user would get."""
    if config.getoption("--engine") != "memory":
        for item in (item for item in items if item.get_closest_marker("work")):
            item.add_marker(pytest.mark.skip(reason="about the work of the memory engine"))
    every = config.getoption("--engine") == "gpu"
    needing = [item for item in items if every or item.get_closest_marker("gpu")]
    if needing and (why := no_device()) is not None:
        for item in needing:
            item.add_marker(pytest.mark.skip(reason=why))


@pytest.fixture(scope="session", autouse=True)
def graphs_are_kept_on_the_chosen_engine(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every update on the device. What graphs are compared with, and what streams make of them, stays in memory."""
    chosen = request.config.getoption("--engine")
    if chosen == "memory":
        yield
        return
    xp = Device() if chosen == "stand-in" else find_device()

    def make(engine: Any, plan: Plan) -> Engine:
        return OnDevice(plan, engine_choice._local, xp, few=-1) if engine == "memory" else make_engine(engine, plan)

    with patch.object(becoming, "make_engine", make), patch.object(Cupy, "near", 0):
        yield


class OnDevice(GpuEngine):
    """By the name that tests expect."""

    name = "memory"


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """One Spark session serves the whole run."""
    from evergraph.engines.spark import make_session

    session = make_session("local[2]")
    yield session
    session.stop()


@pytest.fixture(scope="session", autouse=True)
def every_superstep_is_a_job() -> None:
    """Tests are about small data, whose supersteps would all run in the driver; those that are about that say so."""
    SparkEngine.near = -1


settings.register_profile("default", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("default")


def everything(kg: KnowledgeGraph, which: Which = Which.ALL) -> set[str]:
    """Every fact of the graph, triples and named relations, in text syntax."""
    out = set()
    for name in kg.counts(which):
        rows = kg._engine.rows(name, which) or []
        columns = [kg._dictionary.decode(c).to_pylist() for c in rows]
        for row in zip(*columns, strict=True) if columns else [()]:
            out.add(print_atom(Atom(name, tuple(row))))
    return out


def triples(kg: KnowledgeGraph) -> set[str]:
    """Every triple, in text syntax."""
    return {print_atom(Atom(TRIPLE, row)) for block in kg.blocks() for row in zip(*(c.to_pylist() for c in block), strict=True)}


def assert_same(got: Iterable[str], want: Iterable[str], what: str = "") -> None:
    """Fail with both differences in text syntax."""
    got, want = set(got), set(want)
    missing, extra = sorted(want - got), sorted(got - want)
    assert not missing and not extra, (
        f"{what}\nmissing:\n  " + "\n  ".join(missing) + "\nnot expected:\n  " + "\n  ".join(extra)
    )
