"""Finding a GPU, and what there is to say where there is none, or too little of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from evergraph.errors import UserError

BYTES = 240
"""What a fact of a closed graph takes on the device at most, with what is needed to derive it (`bench gpu`, OWL 2 RL)."""
INSUFFICIENT_DRIVER = 35
"""`cudaErrorInsufficientDriver`; also what there is to hear where no driver is installed at all."""
ELSEWHERE = "or use the memory engine"


def find_device() -> Any:
    """CuPy, on a machine where it works."""
    try:
        cupy = import_module("cupy")
    except ImportError as error:
        raise UserError("EG203", "the gpu engine needs CuPy", f"pip install 'evergraph[gpu]', {ELSEWHERE}") from error
    runtime = cupy.cuda.runtime
    try:
        found = runtime.getDeviceCount()
    except runtime.CUDARuntimeError as error:
        driver = runtime.driverGetVersion()
        if error.status == INSUFFICIENT_DRIVER and driver:
            message = f"the driver is for CUDA {_version(driver)}, CuPy for CUDA {_version(runtime.runtimeGetVersion())}"
            raise UserError("EG206", message, f"update the driver, install a CuPy for its CUDA, {ELSEWHERE}") from error
        found = 0
    if not found:
        raise UserError("EG206", "no GPU was found", f"nvidia-smi should list one; {ELSEWHERE.removeprefix('or ')} otherwise")
    return cupy


def _version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"


def room(xp: Any) -> int:
    """Bytes that arrays on the device may take: all of its memory, or the limit that CuPy has been given."""
    return int(xp.get_default_memory_pool().get_limit() or xp.cuda.runtime.memGetInfo()[1])


@contextmanager
def within_memory(xp: Any, facts: Callable[[], int]) -> Iterator[None]:
    """Fail with a line that says how much fits if there is no room on the device; nothing of what was made stays there."""
    try:
        yield
    except MemoryError as error:
        xp.get_default_memory_pool().free_all_blocks()
        size = room(xp)
        message = f"the GPU's memory is full: about {size // BYTES:,} facts fit into its {size / 2**30:.1f} GiB"
        hint = f"the graph is as it was, with {facts():,} explicit facts; use the memory engine, or Spark, for more"
        raise UserError("EG207", message, hint) from error


def wait(xp: Any) -> None:
    """Until all that was started is done."""
    xp.cuda.Device().synchronize()
