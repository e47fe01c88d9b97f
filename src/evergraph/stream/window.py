"""Windows: which part of a stream is looked at, and until when a fact is in it.

    window ending at E  =  [E − range, E)         E  =  the last multiple of the step up to now

In words: a fact with timestamp τ is in every window whose end is in (τ, τ + range]: it expires at τ + range, and the first
window that ends later does not have it. A tumbling window steps by its range. A window of the last N triples is the same
thing by another clock, which counts triples: the n-th expires at n + N.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from evergraph.errors import UserError
from evergraph.stream.times import SECOND, duration_of

_SYNTAX = re.compile(
    r"\s*\[?\s*RANGE\s+(?:TRIPLES\s+(?P<triples>[0-9]+)|(?P<range>\w[\w.\s]*?)(?P<tumbling>\s+TUMBLING)?)"
    r"(?(tumbling)|(?:\s+STEP\s+(?P<step>\w[\w.\s]*?))?)\s*\]?\s*$",
    re.IGNORECASE,
)
T = TypeVar("T", int, npt.NDArray[np.int64])
HINT = "write RANGE 10s STEP 1s, RANGE 10s TUMBLING or RANGE TRIPLES 100"


@dataclass(frozen=True, slots=True)
class Window:
    """`extent` is in microseconds, or in triples if it is a window of the last so many."""

    extent: int
    step: int
    counts: bool = False

    def __post_init__(self) -> None:
        if self.extent <= 0 or self.step <= 0:
            raise UserError("EG602", f"a window has an extent and a step: {self.text}", HINT)

    @classmethod
    def of(cls, value: Any) -> Window:
        """A window as text has it, in or out of brackets; a step that is not named is a second for a window of triples, and
        the range otherwise.

        >>> Window.of("RANGE 10sec STEP 1sec")
        Window(extent=10000000, step=1000000, counts=False)
        >>> Window.of("[RANGE TRIPLES 100]").text
        'RANGE TRIPLES 100 STEP 1s'
        """
        if isinstance(value, Window):
            return value
        found = _SYNTAX.match(str(value))
        if found is None:
            raise UserError("EG602", f"not a window: {value!r}", HINT)
        step = duration_of(found["step"]) if found["step"] else None
        if found["triples"]:
            return cls(int(found["triples"]), SECOND if step is None else step, True)
        extent = duration_of(found["range"])
        return cls(extent, extent if step is None else step)

    @property
    def text(self) -> str:
        extent = f"TRIPLES {self.extent}" if self.counts else _shown(self.extent)
        if self.step == self.extent and not self.counts:
            return f"RANGE {extent} TUMBLING"
        return f"RANGE {extent} STEP {_shown(self.step)}"

    def end(self, now: T) -> T:
        """The end of the window at an instant, or at each of many."""
        return now - now % self.step

    def last(self, timestamp: T, period: int) -> T:
        """The last instant, among those a period apart, at which a fact with this timestamp is in the window.

        Where these instants are those at which the window moves, it is told as timestamp + range.
        """
        if self.counts or self.step == period:
            return timestamp + self.extent
        return self.end(timestamp + self.extent) + self.step - period


def _shown(micros: int) -> str:
    unit, size = next((unit, size) for unit, size in (("s", SECOND), ("ms", 1000), ("us", 1)) if micros % size == 0)
    return f"{micros // size}{unit}"
