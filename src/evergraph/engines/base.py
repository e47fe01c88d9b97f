"""The engine protocol: what maintenance algorithms ask of an engine, in relation-level words.

An update is `begin`, any number of steps, then `commit` or `rollback`. A step works on whole sets; none takes or returns
single facts. Rules come in strata (`Plan`); facts come as columns of ids by relation, triples
as three columns under `TRIPLE`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

import numpy as np

from evergraph.engines.changes import Changed, Held
from evergraph.engines.equality.names import Names
from evergraph.engines.marks import Counted
from evergraph.engines.relation import Relation, Run
from evergraph.plan.compile import Plan
from evergraph.plan.model import Key
from evergraph.plan.shapes import hidden
from evergraph.rules.model import TRIPLE
from evergraph.terms import Ids

Facts = Mapping[str, Sequence[Ids]]
"""Columns of ids by relation name."""
Counts = dict[str, int]
"""Numbers of facts by relation name."""


STEP = 32
"""How many derivations of a closure one that is taken back takes the time of; measured on LUBM under ρdf and OWL 2 RL."""


class Which(StrEnum):
    ALL = "all"
    EXPLICIT = "explicit"
    DERIVED = "derived"


class Keep(StrEnum):
    """What a retreat keeps of the facts that have lost an instance; explicit facts stay in any case."""

    EVIDENT = "evident"
    """In process, facts that a rule derives at once from explicit facts and settled relations; shards let these go too."""
    PROVED = "proved"
    COUNTED = "counted"
    """Facts that instances of lower rank still count for."""


@dataclass(frozen=True, slots=True)
class Missed:
    """Facts that were to be deleted and were not explicit."""

    absent: int = 0
    derived: int = 0
    """They follow, and so stay."""


@dataclass(frozen=True, slots=True)
class Closed:
    """What one closing step did."""

    rounds: int
    derivations: int
    examined: int = 0
    """Facts that were looked at."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Facts that came, or that went: how many became or ceased to be explicit, how many merely derived; rows on demand."""

    explicit: Counts = field(default_factory=dict)
    derived: Counts = field(default_factory=dict)
    rows: Callable[[], Facts] = dict

    @property
    def total(self) -> int:
        return sum(self.explicit.values()) + sum(self.derived.values())


@dataclass(frozen=True, slots=True)
class Change:
    """The net effect of an update."""

    inserted: Difference = field(default_factory=Difference)
    deleted: Difference = field(default_factory=Difference)


@dataclass(frozen=True, slots=True)
class Waiting:
    """How many facts wait for which step, while updates overlap."""

    doubted: int
    recalled: int
    candidates: int
    pending: int


class Readable(Protocol):
    """What readers ask of facts."""

    def counts(self, which: Which) -> Counts: ...

    def rows(self, relation: str, which: Which) -> Sequence[Ids] | None:
        """All rows of a relation, as columns; None if no fact or rule ever mentioned it."""

    def contains(self, relation: str, row: Sequence[int]) -> bool: ...

    def relations(self, which: Which) -> Mapping[Key, Relation]:
        """All facts, or the explicit ones, as the relations that queries read. Cost: the keys; what is read, when it is."""


class Overlapping(Protocol):
    """Updates that overlap, in steps of whole sets; between any two of them another one may join (`maintain.dynamic`).

    An epoch is what joined between two steps, and what that brings about is its work.
    """

    def join(self, epoch: int, insert: Facts, delete: Facts) -> Missed:
        """Take in an update, deletions first; returns what was to be deleted and was not explicit."""

    def withdraw(self, epoch: int) -> Closed:
        """Let go of doubted facts that nothing supports; what depended on them is doubted."""

    def rederive(self, epoch: int) -> Closed:
        """Bring back those that went and follow from active facts."""

    def activate(self, epoch: int) -> Closed:
        """Draw the consequences of pending facts."""

    def waiting(self) -> Mapping[int, Waiting]:
        """What is left to do, by epoch."""

    def live(self) -> Readable:
        """The facts as they are now, in between."""


class Engine(Readable, Protocol):
    name: str
    rewrites: bool
    """Whether one name stands for all that are the same."""
    overlaps: frozenset[Keep]
    """What updates may keep that overlap; nothing if none do."""

    def fresh(self, plan: Plan) -> Engine:
        """An engine of this kind for other rules, without facts."""

    def begin(self) -> None:
        """Start an update; everything until `commit` can be taken back."""

    def step(self, expected: int) -> int:
        """How many derivations of a closure from scratch one that is taken back takes the time of, where so many are expected.

        Half as many where facts are counted.
        """

    def place(self, expected: int | None) -> str:
        """Before the first step: go where about so many derivations are made soonest; for None, where facts are kept.

        Returns what there is to say about it.
        """

    def adopt(self, plan: Plan) -> None:
        """Go on by other rules under which the same follows: after `begin`, before the first step or after the last.

        Parameter relations that are not known yet get their rows; nothing is derived but helper relations. Facts stay counted
        only if the rules so far are among the new ones as they are.
        """

    def weigh(self, rows: Facts) -> int | None:
        """About how many instances the rules have that these rows of parameter relations put in force; None if not known."""

    def insert(self, facts: Facts) -> bool:
        """Make facts explicit; those not yet in the materialisation arrive. Returns whether they outnumber what is there."""

    def retract(self, facts: Facts, counting: bool = False) -> None:
        """Make facts cease to be explicit, and doubtful if they were: `retreat` decides. Before `insert`.

        With `counting`, counts that are kept stay true, and the steps to come must be those of counting.
        """

    def retreat(self, stratum: int, keep: Keep) -> Closed:
        """Let go the facts of one stratum that are in doubt or have lost an instance, except those to keep."""

    def advance(self, stratum: int) -> Closed:
        """Draw the consequences of what came in one stratum, and bring back what went and still follows."""

    def replace(self, plus: Facts, minus: Facts) -> None:
        """Take facts into the materialisation and out of it as they are: their consequences are among them."""

    def close(self, stratum: int, full: bool) -> Closed:
        """Draw the consequences of one stratum, of all facts or of those that arrived."""

    def forget_derived(self, counting: bool = False) -> None:
        """Drop every derived fact. With `counting`, what is derived next can be counted."""

    @property
    def counted(self) -> bool:
        """Whether ranks and counts of all facts are kept."""

    @property
    def counted_by(self) -> str:
        """The fingerprint of the rules by which they are, where a store holds them; nothing elsewhere."""

    def count(self) -> int:
        """Count for every derived fact, when all strata have been closed anew; returns the number of instances."""

    def prepare(self, builtins: Facts) -> None:
        """After `load` and before the first update: what is not stored, built-ins about literals and helper relations."""

    def missed(self) -> Missed:
        """Facts that were to be deleted in this update and were not explicit."""

    def commit(self) -> Change: ...

    def rollback(self) -> None: ...

    def still(self) -> Readable:
        """The facts as they are, for readers that go on while others change them."""


class OverlappingEngine(Engine, Protocol):
    """An engine whose updates may overlap."""

    def overlap(self, keep: Keep) -> Overlapping:
        """After `begin`: let updates join. When nothing is left to do, `commit` ends them all."""


class LocalEngine(Engine, Protocol):
    """An engine that holds its facts in this process."""

    def changes(self) -> Iterator[Changed]:
        """What the update has done so far, as rows to put into a store and rows to drop from it."""

    def load(self, facts: Held, counts: Mapping[Key, Counted] | None = None) -> None:
        """Take facts that are closed under the rules as they are, with counts if they are kept: the engine holds none yet."""

    def count_changes(self) -> tuple[bool, list[Counted]]:
        """What the update has changed of counts, as far as they are kept; and whether that is all of them."""

    def all_counts(self) -> list[Counted]:
        """Every count that is kept."""


class RewritingEngine(LocalEngine, Protocol):
    """One under which a name stands for all that are the same."""

    @property
    def names(self) -> Names:
        """What stands for what."""

    def name_changes(self) -> tuple[Names, Names]:
        """The names before the update, and now."""

    def load(self, facts: Held, counts: Mapping[Key, Counted] | None = None, names: Names | None = None) -> None:
        """Take stored facts: those that mention a moved name are explicit and not in normal form."""

    def stored(self) -> Held:
        """What a store holds: the facts in normal form, and the explicit facts as they were given."""

    def kept(self) -> dict[str, int]:
        """How large the graph is that is kept, and its cliques."""


def by_name(counts: Mapping[Key, int]) -> Counts:
    """Counts by key as counts by name, without hidden relations and zeros."""
    out: Counts = {}
    for key, count in counts.items():
        if count and not hidden(key):
            name = TRIPLE if isinstance(key, int) else key
            out[name] = out.get(name, 0) + count
    return out


def keyed(relation: str, row: Sequence[int]) -> tuple[Key, Sequence[int]]:
    """A row of a named relation as one of the split relations: of a triple, its predicate, and subject and object."""
    return (row[1], (row[0], row[2])) if relation == TRIPLE else (relation, row)


def size_of(facts: Facts) -> int:
    """The number of facts; no columns are the one row without arguments."""
    return sum(len(columns[0]) if columns else 1 for columns in facts.values())


def columns_of(runs: Mapping[Key, Run]) -> Facts:
    """Runs as columns by relation name, the split triples together again."""
    return together((key, [run.arrays.module.host(run.column(i)) for i in range(run.arity)]) for key, run in runs.items())


def together(parts: Iterable[tuple[Key, Sequence[Ids]]]) -> dict[str, Sequence[Ids]]:
    """Columns by key as columns by name, the split triples in one again."""
    found: dict[str, list[Sequence[Ids]]] = {}
    for key, columns in parts:
        if isinstance(key, int):
            predicate = np.full(len(columns[0]), key, np.uint64)
            found.setdefault(TRIPLE, []).append([columns[0], predicate, columns[1]])
        else:
            found.setdefault(key, []).append(columns)
    return {name: [np.concatenate(c) for c in zip(*many, strict=True)] for name, many in found.items()}
