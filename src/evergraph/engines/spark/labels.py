"""What shards are called in mail: labels that Spark hashes to partitions of their own, so that no task gets two shards."""

from __future__ import annotations


def spread(shards: int) -> list[int]:
    """Labels for shards that Spark's hash puts into partitions of their own: label n lands in partition n of `shards`."""
    labels: dict[int, int] = {}
    number = 0
    while len(labels) < shards:
        labels.setdefault(_murmur3(number) % shards, number)
        number += 1
    return [labels[n] for n in range(shards)]


def _murmur3(value: int, seed: int = 42) -> int:
    """Spark's hash of an int, signed."""
    mask = 0xFFFFFFFF

    def rotate(x: int, by: int) -> int:
        return ((x << by) | (x >> (32 - by))) & mask

    k = rotate((value * 0xCC9E2D51) & mask, 15) * 0x1B873593 & mask
    h = (rotate(seed ^ k, 13) * 5 + 0xE6546B64) & mask
    h ^= 4
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        h = ((h ^ (h >> shift)) * factor) & mask
    h ^= h >> 16
    return h - (1 << 32) if h >> 31 else h
