"""The kernels of `engines.gpu.sources`, compiled for this machine: that their source says what the stand-in for CuPy computes.

Their bodies are plain C++ over one element; a loop around each is what a GPU does at once.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from device import Device, Launched
from evergraph.engines.gpu.sources import (
    ALL,
    SCANS,
    SEARCH,
    THREADS,
    TILE,
    Kernel,
    Parameter,
    Scan,
    narrowing,
    written,
)
from evergraph.engines.modules import U64, module_of
from gpus import array_module  # noqa: F401 - a fixture

COMPILER = shutil.which("c++") or shutil.which("g++")
DTYPES = {"uint64": np.uint64, "int64": np.int64, "bool": np.bool_, "word": np.uint64}
ON_HOST = """
#define __device__
#define __global__
#define EACH for (long long i = 0; i < size; i++)
static unsigned long long atomicAdd(unsigned long long* at, unsigned long long more) { return (*at += more) - more; }
"""
SCAN = """
template <typename Count, typename Write> void scan(long long size, word* state, Count count, Write write) {
    for (long long i = 0; i < size; i++) { word some = count(i); write(i, state[1], some); state[1] += some; }
}
"""
pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")


def sources() -> dict[str, Kernel | Scan]:
    return ALL | dict(narrowing(words, half) for words, half in ((1, True), (2, False), (2, True), (3, False)))


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder: Path = tmp_path_factory.mktemp("kernels")
    code = [ON_HOST, SEARCH, SCAN, *(written(name, one) for name, one in sources().items())]
    (folder / "kernels.cpp").write_text("\n".join(code))
    command = [str(COMPILER), "-std=c++17", "-O1", "-Wall", "-Werror", "-Wno-sign-compare", "-shared", "-fPIC"]
    subprocess.run([*command, "-o", "kernels.so", "kernels.cpp"], cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "kernels.so"))


def ran(library: ctypes.CDLL, name: str, args: list[Any], outputs: list[Any], size: int) -> int:
    """What a kernel makes of its arguments is in the outputs; how many all elements count for, if it is a scan."""
    said: list[Any] = [ctypes.c_longlong(size)]
    for value in (*args, *outputs):
        number = ctypes.c_ulonglong if isinstance(value, np.uint64) else ctypes.c_longlong
        said.append(value.ctypes.data_as(ctypes.c_void_p) if isinstance(value, np.ndarray) else number(int(value)))
    state = np.zeros(2, U64)
    if name in SCANS:
        said.append(state.ctypes.data_as(ctypes.c_void_p))
    getattr(library, f"eg_{name}")(*said)
    return int(state[1])


def words(rng: np.random.Generator, count: int, most: int = 6) -> Any:
    """Pairs of small ids, some of them at the upper end."""
    halves = rng.integers(0, most, (2, count)).astype(U64)
    halves[rng.random((2, count)) < 0.1] = U64(2**32 - 1)
    return halves[0] << U64(32) | halves[1]


def ordered(rng: np.random.Generator, count: int) -> Any:
    return np.unique(words(rng, count))


Make = Callable[[np.random.Generator], tuple[list[Any], int]]


def searched(rng: np.random.Generator) -> tuple[list[Any], int]:
    row, keys = ordered(rng, int(rng.integers(1, 30))), words(rng, 40)
    return [row, len(row), keys], len(keys)


def ids_searched(rng: np.random.Generator) -> tuple[list[Any], int]:
    row, ids = ordered(rng, int(rng.integers(1, 30))), words(rng, 40) >> U64(32)
    return [row, len(row), ids], len(ids)


def counted(rng: np.random.Generator) -> tuple[list[Any], int]:
    counts = rng.integers(0, 4, 12)
    return [np.cumsum(counts), len(counts)], int(counts.sum())


def expanded(rng: np.random.Generator) -> tuple[list[Any], int]:
    ends, size = counted(rng)
    return [*ends, rng.integers(0, 90, 12)], size


def lessened(rng: np.random.Generator) -> tuple[list[Any], int]:
    row = ordered(rng, 40)
    gone = row[rng.random(len(row)) < 0.4]
    return [row, gone, len(gone)], len(row)


def joined(rng: np.random.Generator) -> tuple[list[Any], int]:
    (ends, count, low), size = expanded(rng)
    return [ends, count, low, words(rng, 100)], size


def started(rng: np.random.Generator) -> tuple[list[Any], int]:
    low = rng.integers(0, 90, 12)
    return [low, low + rng.integers(0, 4, 12)], 12


def merged(rng: np.random.Generator) -> tuple[list[Any], int]:
    both = ordered(rng, 40)
    mine = rng.random(len(both)) < 0.7
    a, b = both[mine], both[~mine]
    return [a, len(a), b, len(b)], len(both)


def narrowed(keys: int, half: bool) -> Make:
    def make(rng: np.random.Generator) -> tuple[list[Any], int]:
        count = keys + half
        rows = np.unique(np.stack([words(rng, 60, 3) for _ in range(count)], axis=1), axis=0)
        asked = [words(rng, 50, 3) for _ in range(count)]
        if half:
            asked[-1] = asked[-1] >> U64(32)
        return [*(np.ascontiguousarray(rows[:, i]) for i in range(count)), len(rows), *asked], 50

    return make


CASES: dict[str, Make] = {
    "pair": lambda rng: ([words(rng, 20) >> U64(32), words(rng, 20) >> U64(32)], 20),
    "pair_from": lambda rng: ([U64(7), words(rng, 20) >> U64(32)], 20),
    "pair_to": lambda rng: ([words(rng, 20), U64(2**32 - 1)], 20),
    "swap": lambda rng: ([words(rng, 20)], 20),
    "high": lambda rng: ([words(rng, 20)], 20),
    "low": lambda rng: ([words(rng, 20)], 20),
    "high_to": lambda rng: ([words(rng, 20), U64(2**32 - 1)], 20),
    "from_high": lambda rng: ([U64(2**32 - 1), words(rng, 20)], 20),
    "from_low": lambda rng: ([U64(5), words(rng, 20)], 20),
    "take": lambda rng: ([words(rng, 20), rng.integers(0, 20, 9)], 9),
    "take_high": lambda rng: ([words(rng, 20), rng.integers(0, 20, 9)], 9),
    "take_low": lambda rng: ([words(rng, 20), rng.integers(0, 20, 9)], 9),
    "firsts": lambda rng: ([np.sort(words(rng, 30))], 30),
    "differ": lambda rng: ([np.sort(words(rng, 30)), rng.random(30) < 0.3], 30),
    "contains": searched,
    "lacks": searched,
    "count": searched,
    "places": searched,
    "ranges": ids_searched,
    "range": lambda rng: ([row := ordered(rng, 20), len(row), U64(rng.integers(0, 7))], 2),
    "repeat": counted,
    "expand": expanded,
    "joined": joined,
    "merge": merged,
    "less": lessened,
    "where": lambda rng: ([rng.random(30) < rng.random()], 30),
    "distinct": lambda rng: ([np.sort(words(rng, 30))], 30),
    "distinct_first": lambda rng: ([np.sort(words(rng, 30))], 30),
    "fresh": lambda rng: ([np.sort(words(rng, 30)), known := ordered(rng, 15), len(known)], 30),
    "sums": lambda rng: ([rng.integers(0, 4, 12)], 12),
    "ends": started,
    "starts": ids_searched,
    "narrow_1_1": narrowed(1, True),
    "narrow_2_0": narrowed(2, False),
    "narrow_2_1": narrowed(2, True),
    "narrow_3_0": narrowed(3, False),
}


def test_every_kernel_is_tried() -> None:
    assert CASES.keys() == sources().keys()


@pytest.mark.parametrize("name", CASES)
def test_a_kernel_says_what_the_stand_in_computes(compiled: ctypes.CDLL, name: str) -> None:
    for seed in range(40):
        args, size = CASES[name](np.random.default_rng(seed))
        if not size:
            continue
        xp = Device()
        made = [np.zeros(size, DTYPES[p.kind]) for p in Parameter.of(sources()[name].made)]
        there = [xp.asarray(a) if isinstance(a, np.ndarray) else a for a in args]
        wanted = [xp.asarray(one) for one in made]
        states = [xp.zeros(3, U64)] if name in SCANS else []
        Launched(xp, name)((1,), (THREADS,), (size, *there, *wanted, *states))
        total = ran(compiled, name, args, made, size)
        assert all(int(state[1]) == total for state in states)
        for got, expected in zip(made, wanted, strict=True):
            np.testing.assert_array_equal(got, expected.get(), f"{name}, seed {seed}")


@pytest.mark.parametrize("size", [1, TILE - 1, TILE, TILE + 1, 40 * TILE + 3, 3_000_000])
def test_scans_of_many_tiles(xp: Any, size: int) -> None:
    """On a GPU tiles are added up while others are still counted."""
    rng, module = np.random.default_rng(size), module_of(xp)
    counts = rng.integers(0, 5, size)
    np.testing.assert_array_equal(xp.asnumpy(module.repeat(xp.asarray(counts))), np.repeat(np.arange(size), counts))
    for share in (0.0, 0.01, 0.5, 1.0):
        mask = rng.random(size) < share
        found = module.where(xp.asarray(mask))
        np.testing.assert_array_equal(np.arange(size) if found is None else xp.asnumpy(found), np.flatnonzero(mask))
    values = np.sort(rng.integers(0, max(2, size // 3), size).astype(U64))
    np.testing.assert_array_equal(xp.asnumpy(module.distinct_sorted(xp.asarray(values))), np.unique(values))
