"""What an algorithm reports: its name, why it ran, its phases."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from evergraph.engines.base import Closed, Missed


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
    examined: int = 0
    """Facts that joins looked at."""
    expected: int | None = None
    """Derivations that `auto` expected when it chose."""
    phases: list[Phase] = field(default_factory=list)
    missed: Missed = field(default_factory=Missed)
    tickets: list[str] = field(default_factory=list)
    """The submitted updates that it is made of."""

    def add(self, phase: Phase, closed: Closed) -> None:
        """Count what a step did, in its phase and in all."""
        phase.facts += closed.derivations
        self.rounds += closed.rounds
        self.derivations += closed.derivations
        self.examined += closed.examined

    @contextmanager
    def phase(self, name: str) -> Iterator[Phase]:
        """Time a phase and keep it."""
        phase = Phase(name)
        with _timed(phase):
            yield phase
        self.phases.append(phase)

    @contextmanager
    def more_of(self, name: str) -> Iterator[Phase]:
        """Time more of a phase that comes again and again."""
        phase = next((phase for phase in self.phases if phase.name == name), None)
        if phase is None:
            self.phases.append(phase := Phase(name))
        with _timed(phase):
            yield phase


@contextmanager
def _timed(phase: Phase) -> Iterator[None]:
    start = time.perf_counter()
    try:
        yield
    finally:
        phase.seconds += time.perf_counter() - start
