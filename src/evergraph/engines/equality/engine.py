"""Equality by representatives over an engine that holds a normalised graph: the pair (π, I) of Motik et al. 2015, §2.

    close    draw consequences; merge the names that turn out to be the same and rewrite what mentions them; go on from there
    retreat  B/F≈: what no longer follows goes, and names that are no longer the same part (`unravel.py`)

In words: the engine below sees one name for each clique and rules with these names; explicit facts it keeps as they were given.
Readers see every name. Facts that are inserted wait until facts to delete have gone.

Invariant: between updates every fact below is in normal form, and so are the rules; the facts are closed under the rules, and
no two names of the graph are the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from typing import Protocol

from evergraph.engines.arrays import Array, Arrays
from evergraph.engines.base import (
    Change,
    Closed,
    Counts,
    Difference,
    Engine,
    Facts,
    Keep,
    Missed,
    Which,
    by_name,
    columns_of,
    size_of,
)
from evergraph.engines.changes import Changed, Held, changes
from evergraph.engines.equality.differences import moved, net, row_columns
from evergraph.engines.equality.expansion import Expansion
from evergraph.engines.equality.explicit import Explicit
from evergraph.engines.equality.memory import MergingMemory
from evergraph.engines.equality.merging import normalised
from evergraph.engines.equality.names import Names
from evergraph.engines.equality.reading import Expanded, less
from evergraph.engines.equality.stored import apart, in_normal_form
from evergraph.engines.equality.unravel import Unravelling
from evergraph.engines.kernel import Kernel
from evergraph.engines.marks import Counted
from evergraph.engines.relation import Relation, Run
from evergraph.engines.sets import with_runs
from evergraph.engines.state import State
from evergraph.errors import UserError
from evergraph.plan.compile import Plan
from evergraph.plan.model import Key
from evergraph.terms import Ids

Relations = Mapping[Key, Relation]
STEP = 48
"""As that of the memory engine: measured where two per cent of the explicit facts go (`bench equality`)."""


class Merging(Engine, Protocol):
    """What is asked of the engine below."""

    @property
    def kernel(self) -> Kernel:
        """In this process, for facts of `held`."""

    def runs(self, facts: Facts) -> dict[Key, Run]:
        """Columns as sorted runs, triples split by predicate."""

    def equalities(self) -> tuple[Array, Array]:
        """Pairs of different names that what arrived makes the same."""

    def rename(self, changed: Names, names: Names, bulk: bool, pending: bool) -> bool:
        """Let facts that mention a name that changed give way to their normal forms, which arrive; rules are rewritten too.

        `names` are all names as they are now. With `bulk` relations are read as a whole; what is `pending` stays arrived.
        Returns whether rules mention a name that changed.
        """

    def reflect(self) -> bool:
        """Let names that rules have brought be the same as themselves (≈4), if rules do not; whether there is more to close."""

    def normalise(self) -> None:
        """Bring what arrived into normal form."""

    def recall(self, names: Names) -> None:
        """Go on with these names, which the facts have already, or get next by `exchange` or `forget_derived`."""

    @property
    def plans(self) -> tuple[Plan, Plan]:
        """The rules as they were written, and with the names of the graph."""

    def shed(self, facts: Facts) -> dict[Key, Run]:
        """Make facts cease to be explicit, and nothing else; returns those that were."""

    def exchange(self, plus: Mapping[Key, Run], minus: Mapping[Key, Run]) -> None:
        """Take facts in, and out, as they are."""

    def held(self) -> Relations:
        """All facts, hidden ones too."""

    def given(self) -> Relations:
        """The explicit facts, hidden ones too."""

    def load(self, facts: Held) -> None:
        """Take facts in normal form that are closed under the rules, where they are held in this process."""

    def done(self) -> None:
        """The update is made."""


class _Merged(IntEnum):
    """What names were merged of: nothing, facts, or rules too, so that all facts are to be looked at again."""

    NOTHING = 0
    FACTS = 1
    ALL = 2


@dataclass(frozen=True, slots=True)
class _State:
    """What an update may change, beside the facts below."""

    names: Names
    explicit: Explicit | None
    view: Expansion
    given: Relations


class Rewriting:
    """An engine for rules under which names may be the same."""

    counted = False
    counted_by = ""
    rewrites = True
    overlaps = frozenset[Keep]()

    def __init__(self, below: Merging, plan: Plan) -> None:
        assert plan.same is not None
        self.below, self.name = below, below.name
        self.same: int = plan.same
        self.names = Names.none(below.kernel.arrays)
        self._explicit: Explicit | None = None
        """The explicit facts by what stands for them, when that has been asked for."""
        self._view: Expansion | None = None
        self._pending: list[Facts] = []
        self._doubtful: dict[Key, Run] = {}
        self._missed = Missed()
        self._grown = self._shrunk = True
        """Whether nothing can have gone in this update; whether nothing can have come."""
        self._saved = self._state()

    def fresh(self, plan: Plan) -> Rewriting:
        raise _not_here("an engine for other rules")

    @property
    def arrays(self) -> Arrays:
        return self.below.kernel.arrays

    def state(self) -> State:
        """All that is held, between updates, where facts are held in this process."""
        assert isinstance(self.below, MergingMemory)
        return self.below.state()

    def resume(self, state: State) -> None:
        """Hold that, and nothing else. What is known of explicit facts is brought up to it when it is asked for."""
        assert isinstance(self.below, MergingMemory) and state.names is not None
        self.below.resume(state)
        self.names, self._view = state.names, None

    def _state(self) -> _State:
        return _State(self.names, self._explicit, self._expansion(), self.below.given())

    # -- updates -----------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        self.below.begin()
        self._saved = self._state()
        self._pending, self._doubtful, self._missed = [], {}, Missed()
        self._grown = self._shrunk = len(self.below.plans[0].strata) == 1

    def rollback(self) -> None:
        self.below.rollback()
        self.names, self._explicit, self._view = self._saved.names, self._saved.explicit, None

    def step(self, expected: int) -> int:
        return STEP

    def place(self, expected: int | None) -> str:
        return self.below.place(expected)

    def adopt(self, plan: Plan) -> None:
        self.below.adopt(plan)

    def weigh(self, rows: Facts) -> int | None:
        return self.below.weigh(rows)

    def insert(self, facts: Facts) -> bool:
        self._pending.append(facts)
        self._shrunk = self._shrunk and not size_of(facts)
        there = sum(self.below.counts(Which.ALL).values())
        return not there or size_of(facts) > there

    def retract(self, facts: Facts, counting: bool = False) -> None:
        runs = self.below.runs(facts)
        view = self._expansion()
        was = self.below.shed(facts)
        rest = {key: run.without(was.get(key)) for key, run in runs.items()}
        there = sum(int(view.contains(key, row_columns(run), len(run)).sum()) for key, run in rest.items())
        self._missed = Missed(sum(map(len, rest.values())) - there, there)
        self._doubtful = normalised(self.names, was)
        self._grown = self._grown and not was
        self._view = None

    def missed(self) -> Missed:
        return self._missed

    def retreat(self, stratum: int, keep: Keep) -> Closed:
        """B/F≈: what no longer follows goes. Only the first stratum derives equality, and only one is maintained by this."""
        goals, self._doubtful = self._doubtful, {}
        if not goals:
            return Closed(0, 0)
        kernel = self.below.kernel
        derivations, examined = kernel.derivations, kernel.examined
        explicit = self._explicit = self._found_explicit()
        work = Unravelling(kernel, self.below.held(), explicit, self.names, self.below.plans)
        self.names, plus, minus = work.run(goals)
        self.below.recall(self.names)
        self.below.exchange(plus, minus)
        more = work.known.shard.kernel
        made, seen = kernel.derivations - derivations, kernel.examined - examined
        return Closed(work.rounds, made + more.derivations, seen + more.examined)

    def _found_explicit(self) -> Explicit:
        given = self.below.given()
        if self._explicit is None:
            return Explicit.of(given, self.names)
        return self._explicit.after(given, self.names)

    def advance(self, stratum: int) -> Closed:
        return self.close(stratum, False)

    def close(self, stratum: int, full: bool) -> Closed:
        """Close under the rules and under equality. Cost: that below, and the facts that mention a name that is merged."""
        self._take_in()
        again = self._merge(full, pending=not full)
        done = self.below.close(stratum, full or again == _Merged.ALL)
        while (again := self._merge(full, pending=False)) or self.below.reflect():
            more = self.below.close(stratum, again == _Merged.ALL)
            done = Closed(done.rounds + more.rounds, done.derivations + more.derivations, done.examined + more.examined)
        self._view = None
        return done

    def _take_in(self) -> None:
        """Insert what is to be inserted; it arrives in normal form."""
        pending, self._pending = self._pending, []
        for facts in pending:
            self.below.insert(facts)
        if pending:
            self.below.normalise()

    def _merge(self, bulk: bool, pending: bool) -> _Merged:
        """Merge names that are the same; says what is to be closed after that."""
        left, right = self.below.equalities()
        if not len(left):
            return _Merged.NOTHING
        self.names, changed = self.names.merged(left, right, self.same)
        return _Merged.ALL if self.below.rename(changed, self.names, bulk, pending) else _Merged.FACTS

    def replace(self, plus: Facts, minus: Facts) -> None:
        raise _not_here("replacing facts")

    def forget_derived(self, counting: bool = False) -> None:
        self._take_in()
        self.names = Names.none(self.below.kernel.arrays)
        self.below.recall(self.names)
        self.below.forget_derived()
        self._view = None

    def count(self) -> int:
        raise _not_here("counting")

    def commit(self) -> Change:
        """The net change of what readers see. Cost: the change; nothing is expanded before somebody asks for the facts."""
        saved, now = self._saved, self._state()
        if self._explicit is not None:
            self._explicit = self._found_explicit()
        self.below.done()
        self._view = None
        before, after = saved.view, self._expansion()
        became, ceased = net(saved.given, now.given)
        changed = now.names.less(saved.names)
        after.count_from(before, changed)

        def difference(some: Expansion, other: Expansion, explicit: Mapping[Key, Run], only: bool) -> Difference:
            """What one graph has and the other lacks; `only` if the other has nothing that this one lacks."""
            rest = {k: run.where(~other.contains(k, row_columns(run), len(run))) for k, run in explicit.items()}
            facts = cache(lambda: moved(some, other, changed))
            total = less(by_name(some.sizes()), by_name(other.sizes())) if only else facts().counts()
            return Difference(_by_name(explicit), less(total, _by_name(rest)), lambda: columns_of(facts().rows()))

        return Change(
            difference(after, before, became, self._grown) if not self._shrunk else Difference(),
            difference(before, after, ceased, self._shrunk) if not self._grown else Difference(),
        )

    # -- stores ------------------------------------------------------------------------------------------------------

    def load(self, facts: Held, counts: Mapping[Key, Counted] | None = None, names: Names | None = None) -> None:
        """Take stored facts: those that mention a moved name are explicit and not in normal form."""
        if names is not None and len(names):
            self.recall(names)
            facts = in_normal_form(facts, names)
        self.below.load(facts)
        self._view = None

    def recall(self, names: Names) -> None:
        """Take the names of stored facts, which are read after that."""
        self.names, self._view = names, None
        self.below.recall(names)

    def prepare(self, builtins: Facts) -> None:
        self.below.prepare(builtins)
        self._view = None

    def changes(self) -> Iterator[Changed]:
        """What the update has done so far to facts in normal form and to explicit facts.

        Cost: the change; if names changed, also the explicit facts that are not in normal form.
        """
        saved = self._saved
        if saved.names is self.names:
            given = self.below.given()
            became, ceased = (apart(runs, self.names) for runs in net(saved.given, given))
            before = Held(with_runs(saved.view.relations, ceased), saved.given)
            return changes(before, Held(with_runs(self.below.held(), became), given))
        old = saved.explicit if saved.explicit is not None else Explicit.of(saved.given, saved.names)
        return changes(Held(with_runs(saved.view.relations, old.apart()), saved.given), self.stored())

    def stored(self) -> Held:
        """What a store holds: the facts in normal form, and the explicit facts as they were given."""
        self._explicit = self._found_explicit()
        return Held(with_runs(self.below.held(), self._explicit.apart()), self.below.given())

    def name_changes(self) -> tuple[Names, Names]:
        """The names before the update, and now."""
        return self._saved.names, self.names

    def count_changes(self) -> tuple[bool, list[Counted]]:
        return False, []

    def all_counts(self) -> list[Counted]:
        return []

    # -- reading -----------------------------------------------------------------------------------------------------

    def _expansion(self) -> Expansion:
        if self._view is None:
            self._view = Expansion(self.below.held(), self.names)
        return self._view

    def still(self) -> Expanded:
        return Expanded(self._expansion(), self.below.still(), self.below.given())

    def counts(self, which: Which) -> Counts:
        return self.still().counts(which)

    def rows(self, relation: str, which: Which) -> Sequence[Ids] | None:
        return self.still().rows(relation, which)

    def contains(self, relation: str, row: Sequence[int]) -> bool:
        return self.still().contains(relation, row)

    def relations(self, which: Which) -> Relations:
        return self.still().relations(which)

    def kept(self) -> dict[str, int]:
        """How large the graph is that is kept, and its cliques."""
        _, sizes = self.names.cliques()
        return {
            "facts": sum(self.below.counts(Which.ALL).values()),
            "cliques": len(sizes),
            "names": int(sizes.sum()),
            "largest": int(sizes.max()) if len(sizes) else 1,
        }


def _by_name(runs: Mapping[Key, Run]) -> Counts:
    return by_name({key: len(run) for key, run in runs.items()})


def _not_here(what: str) -> UserError:
    """No algorithm that asks for this is let in (`maintain.choose`)."""
    return UserError("EG205", f"{what} is not for graphs with representatives", "use a graph with equality axioms")
