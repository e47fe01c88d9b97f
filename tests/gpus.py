"""Graphs on a device, and what tests do to one: let it and the host take turns, and let it run out of memory."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any
from unittest.mock import patch

import pytest

from device import Device
from evergraph import KnowledgeGraph
from evergraph.engines.gpu.device import find_device
from evergraph.engines.gpu.engine import GpuEngine
from evergraph.engines.modules import Cupy

DEVICE, HOST = -1, 10**12
"""Values of `few`: every update on the device, or on the host's copy."""


@pytest.fixture(name="xp", params=["stand-in", pytest.param("gpu", marks=pytest.mark.gpu)])
def array_module(request: pytest.FixtureRequest) -> Iterator[Any]:
    """What stands in for CuPy, and CuPy itself where there is a GPU."""
    if request.param == "gpu":
        with patch.object(Cupy, "near", 0):
            yield find_device()
        return
    with standing_in() as xp:
        yield xp


@contextmanager
def standing_in(near: int = 0) -> Iterator[Device]:
    """`import cupy` gives what stands in for it; by default nothing is so small that the host does it for the device."""
    xp = Device()
    with patch.dict(sys.modules, {"cupy": xp}), patch.object(Cupy, "near", near):
        yield xp


def graph(rules: Any, few: int = DEVICE, **options: Any) -> KnowledgeGraph:
    return on(few, KnowledgeGraph(rules, engine="gpu", **options))


def on(few: int, kg: KnowledgeGraph) -> KnowledgeGraph:
    engine_of(kg).few = few
    return kg


def engine_of(kg: KnowledgeGraph) -> GpuEngine:
    assert isinstance(kg._engine, GpuEngine)
    return kg._engine


@contextmanager
def turns(rng: Random) -> Iterator[None]:
    """Every update is on the device or on the host's copy, as it happens."""
    few = property(lambda _: rng.choice([DEVICE, HOST]), lambda *_: None)
    with patch.object(GpuEngine, "few", few, create=True):
        yield


@contextmanager
def little_room(xp: Any, size: int) -> Iterator[None]:
    """No array of more bytes finds room."""
    if isinstance(xp, Device):
        with patch.object(xp, "limit", size):
            yield
        return
    pool = xp.get_default_memory_pool()
    pool.free_all_blocks()
    pool.set_limit(size=pool.total_bytes() + size)
    try:
        yield
    finally:
        pool.set_limit(size=0)
