"""The sources of the kernels that a GPU runs for the array vocabulary (`engines.modules`): plain C++ over one element each."""

from __future__ import annotations

SEARCH = """
template <typename R> __device__ long long first_not_less(const R& row, long long low, long long high, unsigned long long key) {
    while (low < high) {
        long long middle = (low + high) >> 1;
        if (row[middle] < key) low = middle + 1; else high = middle;
    }
    return low;
}
template <typename R> __device__ long long first_greater(const R& row, long long low, long long high, unsigned long long key) {
    while (low < high) {
        long long middle = (low + high) >> 1;
        if (row[middle] <= key) low = middle + 1; else high = middle;
    }
    return low;
}
"""

KERNELS = {
    "eg_pair": ("uint64 a, uint64 b", "uint64 out", "out = a << 32 | b"),
    "eg_swap": ("uint64 word", "uint64 out", "out = word << 32 | word >> 32"),
    "eg_firsts": ("raw T row", "bool out", "out = i == 0 || row[i] != row[i - 1]"),
    "eg_differ": ("raw T row, bool had", "bool out", "out = had || (i > 0 && row[i] != row[i - 1])"),
    "eg_contains": (
        "raw uint64 row, int64 n, uint64 key",
        "bool out",
        "long long at = first_not_less(row, 0, n, key); out = at < n && row[at] == key",
    ),
    "eg_lacks": (
        "raw uint64 row, int64 n, uint64 key",
        "bool out",
        "long long at = first_not_less(row, 0, n, key); out = at >= n || row[at] != key",
    ),
    "eg_first_halves": ("raw uint64 row", "bool out", "out = i == 0 || row[i] >> 32 != row[i - 1] >> 32"),
    "eg_fresh": (
        "raw uint64 row, raw uint64 known, int64 n",
        "bool out",
        """out = i == 0 || row[i] != row[i - 1];
        if (out) { long long at = first_not_less(known, 0, n, row[i]); out = at >= n || known[at] != row[i]; }""",
    ),
    "eg_low": ("raw uint64 row, int64 at", "uint64 out", "out = row[at] & 0xffffffffULL"),
    "eg_high": ("raw uint64 row, int64 at", "uint64 out", "out = row[at] >> 32"),
    "eg_places": (
        "raw uint64 row, int64 n, uint64 key",
        "int64 at, bool there",
        "long long p = first_not_less(row, 0, n, key); there = p < n && row[p] == key; at = p < n ? p : 0",
    ),
    "eg_ranges": (
        "raw uint64 row, int64 n, uint64 first",
        "int64 low, int64 high",
        "low = first_not_less(row, 0, n, first << 32); high = first_greater(row, low, n, first << 32 | 0xffffffffULL)",
    ),
    "eg_range": (
        "raw uint64 row, int64 n, uint64 first",
        "int64 out",
        "out = i ? first_greater(row, 0, n, first << 32 | 0xffffffffULL) : first_not_less(row, 0, n, first << 32)",
    ),
    "eg_repeat": ("raw int64 ends, int64 n", "int64 number", "number = first_greater(ends, 0, n, i)"),
    "eg_expand": (
        "raw int64 ends, int64 n, raw int64 low",
        "int64 number, int64 at",
        "number = first_greater(ends, 0, n, i); at = low[number] + i - (number ? ends[number - 1] : 0)",
    ),
    "eg_less": (
        "raw uint64 row, raw uint64 gone, int64 n",
        "raw uint64 out",
        "long long at = first_not_less(gone, 0, n, row[i]); if (at >= n || gone[at] != row[i]) out[i - at] = row[i]",
    ),
    "eg_merge": (
        "raw uint64 a, int64 n, raw uint64 b, int64 m",
        "raw uint64 out",
        """if (i < n) out[i + first_not_less(b, 0, m, a[i])] = a[i];
        else out[i - n + first_not_less(a, 0, n, b[i - n])] = b[i - n]""",
    ),
}
"""Input, output and body of each, as CuPy takes them; `i` is the number of the element."""


def narrowing(keys: int, half: bool) -> tuple[str, str, str, str]:
    """The kernel that finds ranges of rows of several words: its input, output, body and name."""
    words = keys + half
    less, greater = "false", "false"
    for i in reversed(range(words)):
        low = f"(k{i} << 32)" if i == keys else f"k{i}"
        high = f"(k{i} << 32 | 0xffffffffULL)" if i == keys else f"k{i}"
        less = f"(r{i}[m] < {low} || (r{i}[m] == {low} && {less}))"
        greater = f"(r{i}[m] > {high} || (r{i}[m] == {high} && {greater}))"
    given = [*(f"raw uint64 r{i}" for i in range(words)), "int64 n", *(f"uint64 k{i}" for i in range(words))]
    body = f"""
    long long a = 0, b = n;
    while (a < b) {{ long long m = (a + b) >> 1; if ({less}) a = m + 1; else b = m; }}
    low = a; b = n;
    while (a < b) {{ long long m = (a + b) >> 1; if ({greater}) b = m; else a = m + 1; }}
    high = a"""
    return ", ".join(given), "int64 low, int64 high", body, f"eg_narrow_{keys}_{int(half)}"
