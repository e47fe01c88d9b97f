"""A stand-in for CuPy where there is no GPU: NumPy behind arrays that are as strict about where they are as CuPy's.

What CuPy refuses this refuses: an array of the device where NumPy wants one of its own, an array of NumPy among those of the
device, and functions and options that CuPy does not have. It counts launches and waits, and runs out of memory when told to.
"""

from __future__ import annotations

import operator
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np

from evergraph.engines.gpu.device import find_device
from evergraph.engines.gpu.sources import ALL, THREADS, TILE, Kernel, Parameter, Scan, narrowing
from evergraph.errors import UserError

CREATING = ["arange", "bincount", "empty", "empty_like", "full", "ones", "zeros"]
CHANGING = ["add", "append", "concatenate", "cumsum", "flatnonzero", "maximum", "minimum", "searchsorted", "stack", "where"]
LIKE_NUMPY = frozenset([*CREATING, *CHANGING])
"""Functions that CuPy has with NumPy's arguments, as far as the kernel gives them."""
ALLOCATING = frozenset(["empty", "empty_like"])
"""Functions that launch nothing."""
WAITS = frozenset(["bincount", "flatnonzero"])
"""Functions whose answer is as long as its values say, which the host has to know."""


@cache
def no_device() -> str | None:
    """Why there is no GPU to test on, as a user would be told; None if there is one."""
    try:
        find_device()
    except UserError as error:
        return str(error)
    return None


class OutOfMemoryError(MemoryError):
    """As `cupy.cuda.memory.OutOfMemoryError` is."""


class CUDARuntimeError(RuntimeError):
    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class DeviceArray:
    """An array that NumPy cannot read."""

    __array_priority__ = 100

    def __init__(self, module: Device, values: np.ndarray) -> None:
        self.module, self.values = module, values

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Please use `.get()`")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        assert method == "__call__"
        return self.module.call(ufunc.__name__, ufunc, *inputs, **options)

    def get(self) -> np.ndarray:
        self.module.waits["get"] += 1
        self.module.fetched += self.values.size
        return self.values.copy()

    def tolist(self) -> Any:
        self.module.waits["tolist"] += 1
        return self.values.tolist()

    def __int__(self) -> int:
        self.module.waits["int"] += 1
        return int(self.values)

    __index__ = __int__

    def __bool__(self) -> bool:
        self.module.waits["bool"] += 1
        return bool(self.values)

    def __iter__(self) -> Any:
        raise TypeError("one by one is not how a device works")

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, DeviceArray) and index.values.dtype == bool:
            self.module.waits["mask"] += 1
        if isinstance(index, slice | int | np.integer):
            return DeviceArray(self.module, np.asarray(self.values[index]))
        return self.module.call("getitem", operator.getitem, self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(index, DeviceArray) and index.values.dtype == bool and isinstance(value, DeviceArray) and value.ndim:
            self.module.waits["mask"] += 1
        self.module.launches["setitem"] += 1
        self.values[self.module.inner(index)] = self.module.inner(value)

    dtype = property(lambda self: self.values.dtype)
    ndim = property(lambda self: self.values.ndim)
    shape = property(lambda self: self.values.shape)
    size = property(lambda self: self.values.size)
    nbytes = property(lambda self: self.values.nbytes)

    def view(self, kind: Any) -> DeviceArray:
        return DeviceArray(self.module, self.values.view(kind))

    def sort(self) -> None:
        self.module.launches["sort"] += 1
        self.values.sort()


def _method(name: str) -> Callable[..., Any]:
    def call(self: DeviceArray, *args: Any, **options: Any) -> Any:
        return self.module.call(name, getattr(self.values, name), *args, **options)

    return call


def _operation(name: str) -> Callable[..., Any]:
    function = getattr(operator, name)

    def call(self: DeviceArray, *others: Any) -> Any:
        return self.module.call(name, function, self, *others)

    return call


def _reflected(name: str) -> Callable[..., Any]:
    function = getattr(operator, name)

    def call(self: DeviceArray, other: Any) -> Any:
        return self.module.call(name, function, other, self)

    return call


def _inplace(name: str) -> Callable[..., Any]:
    function = getattr(operator, name)

    def call(self: DeviceArray, other: Any) -> DeviceArray:
        self.module.launches[name] += 1
        self.values = function(self.values, self.module.inner(other))
        return self

    return call


METHODS = ["astype", "copy", "sum", "any", "all", "max", "min", "cumsum"]
COMPARISONS = ["lt", "le", "eq", "ne", "gt", "ge", "invert", "xor", "mod"]
ARITHMETIC = ["add", "sub", "mul", "and_", "or_", "lshift", "rshift", "floordiv"]
INPLACE = ["add", "sub", "mul", "and", "or"]
for _name in METHODS:
    setattr(DeviceArray, _name, _method(_name))
for _name in COMPARISONS + ARITHMETIC:
    setattr(DeviceArray, f"__{_name.strip('_')}__", _operation(_name))
for _name in ARITHMETIC:
    setattr(DeviceArray, f"__r{_name.strip('_')}__", _reflected(_name))
for _name in INPLACE:
    setattr(DeviceArray, f"__i{_name}__", _inplace(f"i{_name}"))
DeviceArray.__hash__ = None  # type: ignore[assignment]


class Device:
    """The module: `Arrays(Device())`, `MemoryEngine(plan, Device())`."""

    __version__ = "stand-in"
    uint64, int64, uint32, uint16, int8, bool_ = np.uint64, np.int64, np.uint32, np.uint16, np.int8, np.bool_

    def __init__(self, limit: int | None = None) -> None:
        self.launches: Counter[str] = Counter()
        self.waits: Counter[str] = Counter()
        self.sent = self.fetched = 0
        """Elements that were carried to the device, and from there."""
        self.limit = limit
        """The largest array that there is room for, in bytes."""
        self.room: int | None = None
        """How many more arrays there is room for."""
        runtime = SimpleNamespace(
            CUDARuntimeError=CUDARuntimeError,
            getDeviceCount=lambda: 1,
            driverGetVersion=lambda: 13000,
            runtimeGetVersion=lambda: 13020,
            memGetInfo=lambda: (2**30, 2**31),
        )
        self.cuda = SimpleNamespace(runtime=runtime, Device=lambda: SimpleNamespace(synchronize=lambda: None))

    def get_default_memory_pool(self) -> Any:
        return SimpleNamespace(get_limit=lambda: self.limit or 0, free_all_blocks=lambda: None)

    # -- values ------------------------------------------------------------------------------------------------------

    def inner(self, value: Any) -> Any:
        """What NumPy gets for an argument; refused if it would have to be carried to the device."""
        if isinstance(value, DeviceArray):
            return value.values
        if isinstance(value, np.ndarray) and value.ndim:
            raise TypeError("Unsupported type <class 'numpy.ndarray'>")
        if isinstance(value, tuple | list):
            return type(value)(self.inner(v) for v in value)
        return value

    def outer(self, value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(self.outer, value))
        if isinstance(value, DeviceArray):
            return value
        values = np.asarray(value)
        self.take(values.nbytes)
        return DeviceArray(self, values)

    def take(self, size: int) -> None:
        """Room for an array."""
        if self.room is not None:
            self.room -= 1
        if (self.limit is not None and size > self.limit) or (self.room is not None and self.room < 0):
            raise OutOfMemoryError(f"Out of memory allocating {size:,} bytes")

    def call(self, name: str, function: Callable[..., Any], *args: Any, out: Any = None, **options: Any) -> Any:
        self.launches[name] += name not in ALLOCATING
        if name in WAITS:
            self.waits[name] += 1
        found = function(*map(self.inner, args), **{key: self.inner(value) for key, value in options.items()})
        if out is not None:
            (target,) = out if isinstance(out, tuple) else (out,)
            target.values[...] = found
            return target
        return self.outer(found)

    # -- functions ---------------------------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        if name not in LIKE_NUMPY:
            raise AttributeError(f"module 'cupy' has no attribute {name!r} that the kernel may use")
        function = getattr(np, name)
        if isinstance(function, np.ufunc):
            return _Ufunc(self, function)
        return lambda *args, **options: self.call(name, function, *args, **options)

    def asarray(self, values: Any, dtype: Any = None) -> DeviceArray:
        """The one way from the host to the device."""
        if isinstance(values, DeviceArray):
            return values if dtype is None or values.dtype == dtype else self.outer(values.values.astype(dtype))
        self.launches["asarray"] += 1
        found = self.outer(np.asarray([self.inner(v) for v in values] if isinstance(values, list) else values, dtype=dtype))
        assert found.dtype != object
        self.sent += found.size
        return DeviceArray(self, found.values.copy())

    def asnumpy(self, values: Any) -> Any:
        return values.get() if isinstance(values, DeviceArray) else values

    def RawModule(self, code: str, options: tuple[str, ...]) -> Any:
        return SimpleNamespace(get_function=lambda name: Launched(self, name.removeprefix("eg_")))

    def sort(self, values: DeviceArray) -> DeviceArray:
        return self.call("sort", np.sort, values)

    def argsort(self, values: DeviceArray) -> DeviceArray:
        """CuPy's only order is a stable one."""
        return self.call("argsort", lambda v: np.argsort(v, kind="stable"), values)

    def lexsort(self, keys: DeviceArray) -> DeviceArray:
        """CuPy takes one array of keys, not a tuple."""
        assert isinstance(keys, DeviceArray)
        return self.call("lexsort", np.lexsort, keys)


class _Ufunc:
    def __init__(self, module: Device, function: Any) -> None:
        self.module, self.function = module, function

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self.module.call(self.function.__name__, self.function, *args, **options)

    def at(self, values: DeviceArray, where: DeviceArray, more: Any) -> None:
        """CuPy adds to unsigned words, not to signed ones."""
        assert values.dtype == np.uint64 and self.function.__name__ in ("add", "minimum")
        self.module.launches[f"{self.function.__name__}.at"] += 1
        self.function.at(values.values, self.module.inner(where), self.module.inner(more))


class Launched:
    """What a kernel of `engines.gpu.sources` computes, by its name. A GPU takes whatever it is given for what it expects."""

    def __init__(self, module: Device, name: str) -> None:
        self.module, self.name = module, name
        self.kernel = kernel_named(name)
        self.given, self.made = Parameter.of(self.kernel.given), Parameter.of(self.kernel.made)

    def __call__(self, grid: tuple[int], block: tuple[int], args: tuple[Any, ...]) -> None:
        size, *rest = args
        scan = isinstance(self.kernel, Scan)
        assert size > 0 and block == (THREADS,) and grid == (-(-size // (TILE if scan else THREADS)),)
        if scan:
            *rest, state = rest
            assert state.dtype == np.uint64 and len(state) == grid[0] + 2 and not state.values.any()
        for parameter, value in zip([*self.given, *self.made], rest, strict=True):
            self._check(parameter, value, size)
        self.module.launches[self.name] += 1
        inner = [self.module.inner(value) for value in rest[: len(self.given)]]
        function = getattr(Computed, self.name, None) or Computed.narrow
        found = function(*inner) if function is not Computed.narrow else function(self.name, *inner)
        found = found if isinstance(found, tuple) else (found,)
        if scan:
            *found, state.values[1] = found
        for target, values in zip(rest[len(self.given) :], found, strict=True):
            target.values[: len(values)] = values

    def _check(self, parameter: Parameter, value: Any, size: int) -> None:
        told = f"{self.name}: {value!r} for {parameter}"
        if not parameter.way:
            assert not isinstance(value, DeviceArray | np.ndarray) and isinstance(value, int | np.uint64), told
            assert isinstance(value, np.uint64) == (parameter.kind == "uint64"), told
            return
        assert isinstance(value, DeviceArray) and value.ndim == 1 and value.values.flags.c_contiguous, told
        kinds = ("uint64", "int64") if parameter.kind == "word" else (parameter.kind,)
        assert value.dtype.name in kinds, told
        assert parameter.way == "raw" or len(value) == size, told


def kernel_named(name: str) -> Kernel | Scan:
    if name.startswith("narrow"):
        _, keys, half = name.split("_")
        return narrowing(int(keys), half == "1")[1]
    return ALL[name]


LOW, HALF = np.uint64(0xFFFFFFFF), np.uint64(32)


class Computed:
    """What kernels make of what they are given; the last thing that a scan makes is the sum of all."""

    @staticmethod
    def pair(first: Any, second: Any) -> Any:
        return first << HALF | second

    pair_from = pair_to = pair

    @staticmethod
    def swap(word: Any) -> Any:
        return word << HALF | word >> HALF

    @staticmethod
    def high(word: Any) -> Any:
        return word >> HALF

    @staticmethod
    def low(word: Any) -> Any:
        return word & LOW

    @staticmethod
    def high_to(word: Any, second: Any) -> Any:
        return Computed.pair(word >> HALF, second)

    @staticmethod
    def from_high(first: Any, word: Any) -> Any:
        return Computed.pair(first, word >> HALF)

    @staticmethod
    def from_low(first: Any, word: Any) -> Any:
        return Computed.pair(first, word & LOW)

    @staticmethod
    def take(row: Any, at: Any) -> Any:
        assert not len(at) or at.min() >= 0
        return row[at]

    @staticmethod
    def take_high(row: Any, at: Any) -> Any:
        return Computed.take(row, at) >> HALF

    @staticmethod
    def take_low(row: Any, at: Any) -> Any:
        return Computed.take(row, at) & LOW

    @staticmethod
    def firsts(row: Any) -> Any:
        return np.concatenate([[True], row[1:] != row[:-1]])

    @staticmethod
    def differ(row: Any, had: Any) -> Any:
        return had | np.concatenate([[False], row[1:] != row[:-1]])

    @staticmethod
    def contains(row: Any, count: int, key: Any) -> Any:
        return np.isin(key, row[:count])

    @staticmethod
    def lacks(row: Any, count: int, key: Any) -> Any:
        return ~np.isin(key, row[:count])

    @staticmethod
    def count(row: Any, count: int, key: Any) -> Any:
        return np.array([np.isin(key, row[:count]).sum()])

    @staticmethod
    def places(row: Any, count: int, key: Any) -> Any:
        at = np.searchsorted(row[:count], key)
        at = np.where(at == count, 0, at)
        return at, row[at] == key

    @staticmethod
    def ranges(row: Any, count: int, first: Any) -> Any:
        key = first << HALF
        return np.searchsorted(row[:count], key), np.searchsorted(row[:count], key | LOW, "right")

    @staticmethod
    def range(row: Any, count: int, first: Any) -> Any:
        return np.array(Computed.ranges(row, count, first))

    @staticmethod
    def repeat(ends: Any, count: int) -> Any:
        return np.repeat(np.arange(count), np.diff(ends[:count], prepend=0))

    @staticmethod
    def expand(ends: Any, count: int, low: Any) -> Any:
        number = Computed.repeat(ends, count)
        return number, low[number] + np.arange(len(number)) - np.concatenate([[0], ends])[number]

    @staticmethod
    def joined(ends: Any, count: int, low: Any, row: Any) -> Any:
        number, at = Computed.expand(ends, count, low)
        return number, row[at] & LOW

    @staticmethod
    def less(row: Any, gone: Any, count: int) -> Any:
        return row[~np.isin(row, gone[:count])]

    @staticmethod
    def merge(a: Any, n: int, b: Any, m: int) -> Any:
        return np.sort(np.concatenate([a[:n], b[:m]]))

    @staticmethod
    def where(mask: Any) -> Any:
        found = np.flatnonzero(mask)
        return found, len(found)

    @staticmethod
    def distinct(row: Any) -> Any:
        found = row[Computed.firsts(row)]
        return found, len(found)

    @staticmethod
    def distinct_first(row: Any) -> Any:
        return Computed.distinct(row >> HALF)

    @staticmethod
    def fresh(row: Any, known: Any, count: int) -> Any:
        found = row[Computed.firsts(row) & ~np.isin(row, known[:count])]
        return found, len(found)

    @staticmethod
    def sums(counts: Any) -> Any:
        ends = np.cumsum(counts)
        return ends, ends[-1]

    @staticmethod
    def ends(low: Any, high: Any) -> Any:
        return Computed.sums(high - low)

    @staticmethod
    def starts(row: Any, count: int, first: Any) -> Any:
        low, high = Computed.ranges(row, count, first)
        return low, *Computed.ends(low, high)

    @staticmethod
    def narrow(name: str, *args: Any) -> Any:
        """Rows as words, their number, then as many words of keys, the last of which may be half of one."""
        words, half = len(args) // 2, name.endswith("1")
        rows = list(zip(*(w.tolist() for w in args[:words]), strict=True))
        keys = list(zip(*(w.tolist() for w in args[words + 1 :]), strict=True))
        lows = [(*key[:-1], key[-1] << 32) if half else key for key in keys]
        highs = [(*key[:-1], key[-1] << 32 | 0xFFFFFFFF) if half else key for key in keys]
        low, high = [bisect_left(rows, key) for key in lows], [bisect_right(rows, key) for key in highs]
        return np.array(low, np.int64), np.array(high, np.int64)
