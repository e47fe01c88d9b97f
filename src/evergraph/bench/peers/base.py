"""What a measured system is: a name, what it needs, which rules it runs, and one way to run it.

Contract of `Peer.run`: everything between the file and the complete closure is in `load` or in `materialise`, and
nothing else is: no imports, no session start, no counting of the result. Trap: packages are imported inside `run`, so
that the list of peers can be read where none of them is installed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol


class Unsupported(Exception):
    """The rules ask for something this system has no counterpart to."""


@dataclass(slots=True)
class Outcome:
    """One closure. `triples` are explicit and derived ones, without helper relations.

    `load` is None where a system loads and closes in one call; then `materialise` is the time of both.
    """

    triples: int
    load: float | None
    materialise: float
    notes: list[str] = field(default_factory=list)
    phases: dict[str, float] = field(default_factory=dict)
    """Seconds by the system's own phases, where it tells them."""


class Peer(Protocol):
    name: str
    package: str
    """What `pip install` is given."""
    modules: tuple[str, ...]
    """What must be importable."""
    same_rules: bool
    """Whether it runs the given rules, so that its closure must have the size of Evergraph's."""
    smallest_only: bool
    """Too slow for more than the smallest size."""

    def rules_for(self, rules: str) -> str | None:
        """The name of the rules it runs when asked for these; None when it has no counterpart."""
        ...

    def run(self, file: Path, rules: str, cores: int) -> Outcome: ...


class SameRules:
    """A system that is given the rules as a program."""

    same_rules = True
    smallest_only = False

    def rules_for(self, rules: str) -> str | None:
        return rules


@dataclass(slots=True)
class Clock:
    seconds: float = 0.0


@contextmanager
def timed() -> Iterator[Clock]:
    """Seconds spent inside the block.

    >>> with timed() as clock:
    ...     pass
    >>> 0 <= clock.seconds < 1
    True
    """
    clock = Clock()
    start = time.perf_counter()
    try:
        yield clock
    finally:
        clock.seconds = time.perf_counter() - start
