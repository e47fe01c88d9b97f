"""Shared parts of the tests: what a graph holds, as text; how two such sets differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from evergraph import KnowledgeGraph
from evergraph.engines.base import Which
from evergraph.engines.spark.engine import SparkEngine
from evergraph.rules.model import TRIPLE, Atom
from evergraph.rules.printer import print_atom


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
