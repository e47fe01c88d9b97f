"""The experiment of Figure 7: what is there, and what enters and leaves the window at each step, by the share that changes.

    share  =  facts that enter at a step, in percent of the background; as many leave

In words: the background is the same whatever the share, and never leaves. The window holds what entered at the last `stays`
steps. At step n, `share` of the background enters, with n as its time, and what entered at step n − stays leaves: a window of
`RANGE stays STEP 1`, in steps. The first step to measure is number `stays`, when the window is full.

Paper: Barbieri et al., ESWC 2010, §5 and Figure 7: "the percentage of the background knowledge subject to change".
Departures: the paper does not say how large its window is against a step. Here it is a parameter, two steps if not told.
    The rest of the pool streams round and round; what enters is never in the window still, but may have been there before.
Cost: linear in the facts asked for.
Traps: shares are comparable if their pool is the same: `experiments` makes one that is large enough for all of its shares. A
    large window completes trees of which the background has parts only: with 100,000 facts and all shares, the materialisation
    has 196,000 facts at 0.05 % and 538,000 at 30 %, and recomputation takes accordingly longer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np
import pyarrow as pa

from evergraph.bench.windows.trees import Pool, grow_for

SHARES = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 13.0, 20.0, 30.0)
"""In percent. The paper names 0.1, 2.5 and 13, where its curves meet or part."""
DEPTH, FAN_OUT, STAYS = 5, 3, 2


@dataclass(frozen=True, slots=True)
class Step:
    """One move of the window: `number` is its time, and the timestamp of what enters."""

    number: int
    enters: pa.Table
    leaves: pa.Table


@dataclass(frozen=True, slots=True)
class Experiment:
    """A background of so many facts and a stream of what else is in the pool."""

    pool: Pool
    facts: int
    """Of the background."""
    share: float
    stays: int = STAYS
    """Steps that a fact is in the window."""

    def __post_init__(self) -> None:
        if (self.stays + 1) * self.change > len(self.pool) - self.facts:
            raise ValueError(f"a pool of {len(self.pool):,} triples is too small for {self.share:g} % of {self.facts:,}")

    @property
    def change(self) -> int:
        """Facts that enter at a step, and that leave: one at least."""
        return changed(self.facts, self.share)

    @property
    def background(self) -> pa.Table:
        return self.pool.table(slice(0, self.facts))

    def window(self, number: int) -> list[pa.Table]:
        """What is in the window after a step: what entered, step by step, the oldest first."""
        return [self.enters(n) for n in range(max(0, number - self.stays + 1), number + 1)]

    def enters(self, number: int) -> pa.Table:
        """What enters at a step; nothing does before step 0."""
        if number < 0:
            return self.pool.table(slice(0, 0))
        rest = len(self.pool) - self.facts
        return self.pool.table(self.facts + (number * self.change + np.arange(self.change)) % rest)

    def steps(self, first: int | None = None) -> Iterator[Step]:
        """Steps without end, from the first whose window was full before, or from one that is named."""
        for number in count(self.stays if first is None else first):
            yield Step(number, self.enters(number), self.enters(number - self.stays))


def changed(facts: int, share: float) -> int:
    """
    >>> changed(1_000_000, 0.05), changed(10, 0.05)
    (500, 1)
    """
    return max(1, round(facts * share / 100))


def experiments(
    facts: int,
    shares: Sequence[float] = SHARES,
    stays: int = STAYS,
    depth: int = DEPTH,
    fan_out: int = FAN_OUT,
    seed: int = 0,
) -> list[Experiment]:
    """One for each share, all of the same pool and so of the same background: the fewest trees that suffice for the largest.

    >>> [experiment.change for experiment in experiments(10_000, [0.1, 30])]
    [10, 3000]
    """
    largest = max(changed(facts, share) for share in shares)
    pool = grow_for(facts + (stays + 1) * largest, depth, fan_out, seed)
    return [Experiment(pool, facts, share, stays) for share in shares]
