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

from device import Device
from evergraph.engines.gpu.sources import KERNELS, SEARCH
from evergraph.engines.modules import U64, Cupy

COMPILER = shutil.which("c++") or shutil.which("g++")
TYPES = {"uint64": "unsigned long long", "int64": "long long", "bool": "bool", "T": "unsigned long long"}
DTYPES = {"uint64": np.uint64, "int64": np.int64, "bool": np.bool_, "T": np.uint64}
pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")


class Parameter:
    """`raw uint64 row`: an array that any element may read; without `raw`, each element has its own, or all the same."""

    def __init__(self, text: str) -> None:
        *raw, self.kind, self.name = text.split()
        self.raw = bool(raw)

    @staticmethod
    def of(text: str) -> list[Parameter]:
        return [Parameter(part) for part in text.split(",") if part.strip()]


class Narrowing(Device):
    """Keeps what kernels are made of."""

    def __init__(self) -> None:
        super().__init__()
        self.made: dict[str, tuple[str, str, str]] = {}

    def ElementwiseKernel(self, given: str, made: str, body: str, name: str, preamble: str = "") -> Any:
        self.made[name] = given, made, body
        return super().ElementwiseKernel(given, made, body, name, preamble)


def sources() -> dict[str, tuple[str, str, str]]:
    xp = Narrowing()
    module = Cupy(xp)
    for words, half in ((1, True), (2, False), (2, True), (3, False)):
        module._narrow(words, half)
    assert xp.made.keys() >= KERNELS.keys()
    return xp.made


def function(name: str, given: str, made: str, body: str) -> str:
    inputs, outputs = Parameter.of(given), Parameter.of(made)
    said = [f"const {TYPES[p.kind]}* {p.name}{'' if p.raw else '_all, long long ' + p.name + '_step'}" for p in inputs]
    said += [f"{TYPES[p.kind]}* {p.name}{'' if p.raw else '_all'}" for p in outputs]
    own = [f"{TYPES[p.kind]} {p.name} = {p.name}_all[i * {p.name}_step];" for p in inputs if not p.raw]
    own += [f"{TYPES[p.kind]} {p.name} = 0;" for p in outputs if not p.raw]
    back = [f"{p.name}_all[i] = {p.name};" for p in outputs if not p.raw]
    loop = f"for (long long i = 0; i < size; i++) {{ {' '.join(own)} {body}; {' '.join(back)} }}"
    return f'extern "C" void {name}(long long size, {", ".join(said)}) {{ {loop} }}'


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder: Path = tmp_path_factory.mktemp("kernels")
    code = ["#define __device__", SEARCH, *(function(name, *parts) for name, parts in sources().items())]
    (folder / "kernels.cpp").write_text("\n".join(code))
    command = [str(COMPILER), "-O1", "-Wall", "-Werror", "-Wno-unused-variable", "-Wno-sign-compare", "-shared", "-fPIC"]
    subprocess.run([*command, "-o", "kernels.so", "kernels.cpp"], cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "kernels.so"))


def ran(library: ctypes.CDLL, name: str, args: list[Any], size: int) -> list[Any]:
    """What a kernel makes of its arguments: its outputs, of which raw ones are given."""
    given, made, _ = sources()[name]
    said: list[Any] = [ctypes.c_longlong(size)]
    kept = []
    for parameter, value in zip(Parameter.of(given), args, strict=False):
        array = np.ascontiguousarray(np.atleast_1d(np.asarray(value, DTYPES[parameter.kind])))
        kept.append(array)
        said.append(array.ctypes.data_as(ctypes.c_void_p))
        if not parameter.raw:
            said.append(ctypes.c_longlong(int(np.ndim(value) > 0)))
    outputs = []
    for number, parameter in enumerate(Parameter.of(made)):
        array = args[len(kept) + number] if parameter.raw else np.zeros(size, DTYPES[parameter.kind])
        outputs.append(array)
        said.append(array.ctypes.data_as(ctypes.c_void_p))
    getattr(library, name)(*said)
    return outputs


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
    return [row, gone, len(gone), np.zeros(len(row) - len(gone), U64)], len(row)


def merged(rng: np.random.Generator) -> tuple[list[Any], int]:
    both = ordered(rng, 40)
    mine = rng.random(len(both)) < 0.7
    a, b = both[mine], both[~mine]
    return [a, len(a), b, len(b), np.zeros(len(both), U64)], len(both)


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
    "eg_pair": lambda rng: ([words(rng, 20) >> U64(32), words(rng, 20) >> U64(32)], 20),
    "eg_swap": lambda rng: ([words(rng, 20)], 20),
    "eg_firsts": lambda rng: ([np.sort(words(rng, 30))], 30),
    "eg_differ": lambda rng: ([np.sort(words(rng, 30)), rng.random(30) < 0.3], 30),
    "eg_contains": searched,
    "eg_lacks": searched,
    "eg_places": searched,
    "eg_fresh": lambda rng: ([np.sort(words(rng, 30)), known := ordered(rng, 15), len(known)], 30),
    "eg_first_halves": lambda rng: ([np.sort(words(rng, 30))], 30),
    "eg_high": lambda rng: ([words(rng, 20), rng.integers(0, 20, 9)], 9),
    "eg_low": lambda rng: ([words(rng, 20), rng.integers(0, 20, 9)], 9),
    "eg_ranges": ids_searched,
    "eg_range": lambda rng: ([row := ordered(rng, 20), len(row), U64(rng.integers(0, 7))], 2),
    "eg_repeat": counted,
    "eg_expand": expanded,
    "eg_merge": merged,
    "eg_less": lessened,
    "eg_narrow_1_1": narrowed(1, True),
    "eg_narrow_2_0": narrowed(2, False),
    "eg_narrow_2_1": narrowed(2, True),
    "eg_narrow_3_0": narrowed(3, False),
}


def test_every_kernel_is_tried() -> None:
    assert CASES.keys() == sources().keys()


@pytest.mark.parametrize("name", CASES)
def test_a_kernel_says_what_the_stand_in_computes(compiled: ctypes.CDLL, name: str) -> None:
    given, made, _ = sources()[name]
    for seed in range(40):
        args, size = CASES[name](np.random.default_rng(seed))
        xp = Device()
        there = [xp.asarray(a) if isinstance(a, np.ndarray) else a for a in args]
        each = any(not p.raw and np.ndim(a) for p, a in zip(Parameter.of(given), args, strict=False))
        want = xp.ElementwiseKernel(given, made, "", name)(*there, **({} if each else {"size": size}))
        if Parameter.of(made)[0].raw:
            want = there[-1]
        wanted = [one.get() for one in (want if isinstance(want, tuple) else (want,))]
        for got, expected in zip(ran(compiled, name, args, size), wanted, strict=True):
            np.testing.assert_array_equal(got, expected, f"{name}, seed {seed}")
