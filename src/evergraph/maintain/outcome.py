"""What an algorithm reports: its name, why it ran, its phases."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass(slots=True)
class Phase:
    name: str
    seconds: float = 0.0
    facts: int = 0
    """Facts read, derivations made: what the phase's cost follows."""


@dataclass(slots=True)
class Outcome:
    algorithm: str
    reason: str
    rounds: int = 0
    derivations: int = 0
    phases: list[Phase] = field(default_factory=list)

    @contextmanager
    def phase(self, name: str) -> Iterator[Phase]:
        """Time a phase and keep it."""
        phase = Phase(name)
        start = time.perf_counter()
        try:
            yield phase
        finally:
            phase.seconds = time.perf_counter() - start
            self.phases.append(phase)
