"""The sources of the kernels that a GPU runs for the array vocabulary (`engines.modules`): plain C++ over one element each.

    raw uint64 row     an array that any element may read or write
    each uint64 key    an array of which each element has its own
    int64 n            a number

In words: a kernel is a body that is run for every element `i`. A scan is a body that says how many an element counts for, and
one that is told how many come before it: what is chosen of an array, and where the rows of a join begin, are known after one
pass. All of them are compiled together, once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

SEARCH = """
typedef unsigned long long word;
template <typename R> __device__ long long first_not_less(const R* row, long long low, long long high, R key) {
    while (low < high) {
        long long middle = (low + high) >> 1;
        if (row[middle] < key) low = middle + 1; else high = middle;
    }
    return low;
}
template <typename R> __device__ long long first_greater(const R* row, long long low, long long high, R key) {
    while (low < high) {
        long long middle = (low + high) >> 1;
        if (row[middle] <= key) low = middle + 1; else high = middle;
    }
    return low;
}
__device__ bool stands(const word* row, long long n, word key) {
    long long at = first_not_less(row, 0, n, key);
    return at < n && row[at] == key;
}
"""

THREADS, ITEMS = 256, 8
TILE = THREADS * ITEMS
"""How many elements a block of threads takes in a scan."""

ON_DEVICE = f"""
#define EACH for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < size; i = size)
#define SUM (1ULL << 62)
#define PREFIX (2ULL << 62)
#define VALUE (SUM - 1)
template <typename Count, typename Write> __device__ void scan(long long size, word* state, Count count, Write write) {{
    __shared__ long long tile;
    __shared__ word before, sums[{THREADS // 32}];
    if (threadIdx.x == 0) tile = atomicAdd(&state[0], 1ULL);
    __syncthreads();
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const long long start = tile * {TILE} + threadIdx.x * {ITEMS};
    word counts[{ITEMS}], mine = 0;
    #pragma unroll
    for (int k = 0; k < {ITEMS}; k++) mine += counts[k] = start + k < size ? count(start + k) : 0;
    word upto = mine;
    for (int step = 1; step < 32; step <<= 1) {{
        word other = __shfl_up_sync(~0u, upto, step);
        if (lane >= step) upto += other;
    }}
    if (lane == 31) sums[warp] = upto;
    __syncthreads();
    word total = 0, at = upto - mine;
    for (int w = 0; w < {THREADS // 32}; w++) {{
        if (w < warp) at += sums[w];
        total += sums[w];
    }}
    if (warp == 0) {{
        volatile word* known = state + 2;
        if (lane == 0) known[tile] = (tile ? SUM : PREFIX) | total;
        word found = 0;
        for (long long last = tile - 1; last >= 0; last -= 32) {{
            word one = PREFIX;
            if (last - lane >= 0) do one = known[last - lane]; while (!(one >> 62));
            unsigned ends = __ballot_sync(~0u, one >> 63);
            word part = lane <= (ends ? __ffs(ends) - 1 : 31) ? one & VALUE : 0;
            for (int step = 16; step; step >>= 1) part += __shfl_xor_sync(~0u, part, step);
            found += part;
            if (ends) break;
        }}
        if (lane == 0) {{
            if (tile) known[tile] = PREFIX | (found + total);
            if ((tile + 1) * {TILE} >= size) state[1] = found + total;
            before = found;
        }}
    }}
    __syncthreads();
    at += before;
    #pragma unroll
    for (int k = 0; k < {ITEMS}; k++) {{
        if (start + k < size) write(start + k, at, counts[k]);
        at += counts[k];
    }}
}}
"""
"""Scans in one pass: a block says what its elements count for, and adds up what those before it have said until one knows all
of it (Merrill and Garland 2016, decoupled look-back). Blocks take their tiles in the order in which they start, so that none
waits for one that has not. `state` is zeros: the next tile, the sum of all, and a word for each tile."""


class Kernel(NamedTuple):
    given: str
    made: str
    body: str


class Scan(NamedTuple):
    given: str
    made: str
    adds: str
    """How many an element counts for."""
    write: str
    """Given `at`, how many come before it, and `count`."""


KERNELS = {
    "pair": Kernel("each uint64 a, each uint64 b", "each uint64 out", "out = a << 32 | b"),
    "pair_from": Kernel("uint64 a, each uint64 b", "each uint64 out", "out = a << 32 | b"),
    "pair_to": Kernel("each uint64 a, uint64 b", "each uint64 out", "out = a << 32 | b"),
    "swap": Kernel("each uint64 both", "each uint64 out", "out = both << 32 | both >> 32"),
    "high": Kernel("each uint64 both", "each uint64 out", "out = both >> 32"),
    "low": Kernel("each uint64 both", "each uint64 out", "out = both & 0xffffffffULL"),
    "high_to": Kernel("each uint64 both, uint64 b", "each uint64 out", "out = both >> 32 << 32 | b"),
    "from_high": Kernel("uint64 a, each uint64 both", "each uint64 out", "out = a << 32 | both >> 32"),
    "from_low": Kernel("uint64 a, each uint64 both", "each uint64 out", "out = a << 32 | (both & 0xffffffffULL)"),
    "take": Kernel("raw word row, each int64 at", "each word out", "out = row[at]"),
    "take_high": Kernel("raw uint64 row, each int64 at", "each uint64 out", "out = row[at] >> 32"),
    "take_low": Kernel("raw uint64 row, each int64 at", "each uint64 out", "out = row[at] & 0xffffffffULL"),
    "firsts": Kernel("raw word row", "each bool out", "out = i == 0 || row[i] != row[i - 1]"),
    "differ": Kernel("raw word row, each bool had", "each bool out", "out = had || (i > 0 && row[i] != row[i - 1])"),
    "contains": Kernel("raw uint64 row, int64 n, each uint64 key", "each bool out", "out = stands(row, n, key)"),
    "lacks": Kernel("raw uint64 row, int64 n, each uint64 key", "each bool out", "out = !stands(row, n, key)"),
    "count": Kernel(
        "raw uint64 row, int64 n, each uint64 key", "raw uint64 out", "if (stands(row, n, key)) atomicAdd(out, 1ULL)"
    ),
    "places": Kernel(
        "raw uint64 row, int64 n, each uint64 key",
        "each int64 at, each bool there",
        "long long p = first_not_less(row, 0, n, key); there = p < n && row[p] == key; at = p < n ? p : 0",
    ),
    "ranges": Kernel(
        "raw uint64 row, int64 n, each uint64 first",
        "each int64 low, each int64 high",
        "low = first_not_less(row, 0, n, first << 32); high = first_greater(row, low, n, first << 32 | 0xffffffffULL)",
    ),
    "range": Kernel(
        "raw uint64 row, int64 n, uint64 first",
        "each int64 out",
        "out = i ? first_greater(row, 0, n, first << 32 | 0xffffffffULL) : first_not_less(row, 0, n, first << 32)",
    ),
    "repeat": Kernel("raw int64 ends, int64 n", "each int64 number", "number = first_greater(ends, 0, n, i)"),
    "expand": Kernel(
        "raw int64 ends, int64 n, raw int64 low",
        "each int64 number, each int64 at",
        "number = first_greater(ends, 0, n, i); at = low[number] + i - (number ? ends[number - 1] : 0)",
    ),
    "joined": Kernel(
        "raw int64 ends, int64 n, raw int64 low, raw uint64 row",
        "each int64 number, each uint64 second",
        """number = first_greater(ends, 0, n, i);
        second = row[low[number] + i - (number ? ends[number - 1] : 0)] & 0xffffffffULL""",
    ),
    "less": Kernel(
        "raw uint64 row, raw uint64 gone, int64 n",
        "raw uint64 out",
        "long long at = first_not_less(gone, 0, n, row[i]); if (at >= n || gone[at] != row[i]) out[i - at] = row[i]",
    ),
    "merge": Kernel(
        "raw uint64 a, int64 n, raw uint64 b, int64 m",
        "raw uint64 out",
        """if (i < n) out[i + first_not_less(b, 0, m, a[i])] = a[i];
        else out[i - n + first_not_less(a, 0, n, b[i - n])] = b[i - n]""",
    ),
}

SCANS = {
    "where": Scan("raw bool mask", "raw int64 out", "mask[i]", "if (count) out[at] = i"),
    "distinct": Scan("raw word row", "raw word out", "i == 0 || row[i] != row[i - 1]", "if (count) out[at] = row[i]"),
    "distinct_first": Scan(
        "raw uint64 row", "raw uint64 out", "i == 0 || row[i] >> 32 != row[i - 1] >> 32", "if (count) out[at] = row[i] >> 32"
    ),
    "fresh": Scan(
        "raw uint64 row, raw uint64 known, int64 n",
        "raw uint64 out",
        "(i == 0 || row[i] != row[i - 1]) && !stands(known, n, row[i])",
        "if (count) out[at] = row[i]",
    ),
    "ends": Scan("raw int64 low, raw int64 high", "raw int64 ends", "high[i] - low[i]", "ends[i] = at + count"),
    "sums": Scan("raw int64 counts", "raw int64 ends", "counts[i]", "ends[i] = at + count"),
    "starts": Scan(
        "raw uint64 row, int64 n, raw uint64 first",
        "raw int64 low, raw int64 ends",
        """low[i] = first_not_less(row, 0, n, first[i] << 32),
        first_greater(row, low[i], n, first[i] << 32 | 0xffffffffULL) - low[i]""",
        "ends[i] = at + count",
    ),
}

ALL: dict[str, Kernel | Scan] = {**KERNELS, **SCANS}
TYPES = {"uint64": "word", "word": "word", "int64": "long long", "bool": "bool"}


class Parameter(NamedTuple):
    way: str
    """`raw`, `each`, or nothing for a number."""
    kind: str
    name: str

    @staticmethod
    def of(text: str) -> list[Parameter]:
        return [Parameter(*(("", *part.split()) if len(part.split()) == 2 else part.split())) for part in text.split(",")]

    def said(self, const: str = "") -> str:
        if not self.way:
            return f"{TYPES[self.kind]} {self.name}"
        return f"{const}{TYPES[self.kind]}* {self.name}{'_all' if self.way == 'each' else ''}"


def written(name: str, one: Kernel | Scan) -> str:
    """The whole of a kernel."""
    given, made = Parameter.of(one.given), Parameter.of(one.made)
    said = ["long long size", *(p.said("const ") for p in given), *(p.said() for p in made)]
    if isinstance(one, Scan):
        said.append("word* state")
        count = f"[=](long long i) -> word {{ return {one.adds}; }}"
        write = f"[=](long long i, word at, word count) {{ {one.write}; }}"
        body = f"scan(size, state, {count}, {write});"
    else:
        own = [f"{TYPES[p.kind]} {p.name} = {p.name}_all[i];" for p in given if p.way == "each"]
        own += [f"{TYPES[p.kind]} {p.name} = 0;" for p in made if p.way == "each"]
        back = [f"{p.name}_all[i] = {p.name};" for p in made if p.way == "each"]
        body = f"EACH {{ {' '.join(own)} {one.body}; {' '.join(back)} }}"
    return f'extern "C" __global__ void eg_{name}({", ".join(said)}) {{ {body} }}'


def source(kernels: Mapping[str, Kernel | Scan]) -> str:
    """Kernels by their names, for a device."""
    return "\n".join([SEARCH, ON_DEVICE, *(written(name, one) for name, one in kernels.items())])


def narrowing(keys: int, half: bool) -> tuple[str, Kernel]:
    """The kernel that finds ranges of rows of several words, and its name."""
    words = keys + half
    less, greater = "false", "false"
    for i in reversed(range(words)):
        low = f"(k{i} << 32)" if i == keys else f"k{i}"
        high = f"(k{i} << 32 | 0xffffffffULL)" if i == keys else f"k{i}"
        less = f"(r{i}[m] < {low} || (r{i}[m] == {low} && {less}))"
        greater = f"(r{i}[m] > {high} || (r{i}[m] == {high} && {greater}))"
    given = [*(f"raw uint64 r{i}" for i in range(words)), "int64 n", *(f"each uint64 k{i}" for i in range(words))]
    body = f"""
    long long a = 0, b = n;
    while (a < b) {{ long long m = (a + b) >> 1; if ({less}) a = m + 1; else b = m; }}
    low = a; b = n;
    while (a < b) {{ long long m = (a + b) >> 1; if ({greater}) b = m; else a = m + 1; }}
    high = a"""
    return f"narrow_{keys}_{int(half)}", Kernel(", ".join(given), "each int64 low, each int64 high", body)
