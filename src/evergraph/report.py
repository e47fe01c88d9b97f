"""What an update did, for people and for programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from evergraph.engines.base import Change, Counts, Difference, Missed
from evergraph.maintain.outcome import Outcome, Phase
from evergraph.rules.model import TRIPLE, Outside, Rule


@dataclass(frozen=True, slots=True)
class Net:
    """Facts that came, or that went: counts by relation (triples under `[]`), and the triples on demand."""

    explicit: Counts
    derived: Counts
    _triples: Callable[[], Iterator[tuple[Any, ...]]] = field(repr=False, compare=False)
    _named: Callable[[], list[str]] = field(repr=False, compare=False)

    @property
    def triples(self) -> Iterator[tuple[Any, ...]]:
        """The triples of the materialisation that came or went, as rdflib terms."""
        return self._triples()

    @property
    def named(self) -> list[str]:
        """The facts of named relations that came or went, in text syntax and in order. Cost: linear in them."""
        return self._named()

    def __len__(self) -> int:
        return sum(self.explicit.values()) + sum(self.derived.values())


@dataclass(frozen=True, slots=True)
class Report:
    inserted: Net
    deleted: Net
    algorithm: str
    reason: str
    engine: str
    phases: tuple[Phase, ...]
    rounds: int
    derivations: int
    examined: int = 0
    """Facts that were looked at while rules were evaluated."""
    expected: int | None = None
    """Derivations that `auto` expected of the algorithm it chose: beside `derivations`, what happened."""
    version: int | None = None
    """The version of the store that the update made."""
    missed: Missed = field(default_factory=Missed)
    """Facts that were to be deleted and were not explicit."""
    rules_inserted: tuple[Rule, ...] = ()
    rules_deleted: tuple[Rule, ...] = ()
    outside: tuple[Outside, ...] = ()
    """Axioms of the ontologies that were given, or parts of them, that rules cannot say."""

    @property
    def seconds(self) -> float:
        return sum(phase.seconds for phase in self.phases)

    def as_dict(self) -> dict[str, Any]:
        """For `--output json`."""
        return {
            "inserted": {"explicit": _named(self.inserted.explicit), "derived": _named(self.inserted.derived)},
            "deleted": {"explicit": _named(self.deleted.explicit), "derived": _named(self.deleted.derived)},
            "algorithm": self.algorithm,
            "reason": self.reason,
            "engine": self.engine,
            "rounds": self.rounds,
            "derivations": self.derivations,
            "examined": self.examined,
            "expected": self.expected,
            "version": self.version,
            "rules_inserted": len(self.rules_inserted),
            "rules_deleted": len(self.rules_deleted),
            "outside": [asdict(item) for item in self.outside],
            "not_there": self.missed.absent,
            "not_explicit": self.missed.derived,
            "seconds": round(self.seconds, 6),
            "phases": [{"name": p.name, "seconds": round(p.seconds, 6), "facts": p.facts} for p in self.phases],
        }


def make_report(
    outcome: Outcome,
    engine: str,
    change: Change,
    rules: tuple[tuple[Rule, ...], tuple[Rule, ...]],
    outside: tuple[Outside, ...],
    triples: Callable[[Difference], Iterator[tuple[Any, ...]]],
    named: Callable[[Difference], list[str]],
    version: int | None = None,
) -> Report:
    def net(difference: Difference) -> Net:
        return Net(difference.explicit, difference.derived, lambda: triples(difference), lambda: named(difference))

    return Report(
        net(change.inserted),
        net(change.deleted),
        outcome.algorithm,
        outcome.reason,
        engine,
        tuple(outcome.phases),
        outcome.rounds,
        outcome.derivations,
        outcome.examined,
        outcome.expected,
        version,
        outcome.missed,
        *rules,
        outside,
    )


def _named(counts: Counts) -> dict[str, int]:
    return {"triples" if name == TRIPLE else name: n for name, n in counts.items()}
