"""Semi-naive evaluation of a schedule over one shard's relations (Urbani et al. 2013, §4).

    Δ₀ = new facts;    Δᵢ₊₁ = ⋃ rules(…, new, Δᵢ, old, …) − all,    all ← all ∪ Δᵢ₊₁

In words: an instance of a rule is looked at once, in the round in which the last of its body facts arrived: the atom that
reads the delta has newer facts allowed before it and older ones after it. Components are visited in their order, each with
what arrived since the last visit; those that none of it concerns are not visited. A first materialisation evaluates each
rule in full once per component instead of once per atom.

Invariant: before and after a component, `relations` is closed under the rules of all components before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from typing import TYPE_CHECKING, Protocol

from evergraph.engines.arrays import Arrays, Words
from evergraph.engines.delta import Delta
from evergraph.engines.kernel import Kernel, Relations
from evergraph.engines.relation import Relation, Run
from evergraph.plan.model import Key, PlanRule
from evergraph.plan.schedule import Component, Task

if TYPE_CHECKING:
    from evergraph.engines.near import Near

Deltas = dict[Key, Run]


class Sieve(Protocol):
    """What becomes of derived rows before they join the shard's relations: all stay, or some go elsewhere."""

    def __call__(self, key: Key, arity: int, words: Words) -> Words: ...


class Fixpoint:
    """The relations of one shard, and the loop that closes them."""

    def __init__(
        self, kernel: Kernel, relations: dict[Key, Relation], sieve: Sieve | None = None, near: Near | None = None
    ) -> None:
        self.kernel, self.arrays = kernel, kernel.arrays
        self.relations = relations
        self.sieve, self.near = sieve, near
        self.before: dict[Key, Relation] = {}
        """Relations as they were when this closure began, for those that have changed."""
        self.arrived = Arrivals()
        """All that came in since, given and derived."""
        self.rounds = 0
        self.trace: list[tuple[Key, Run]] | None = None
        """If asked for: what was derived, in the order in which it was; nothing is derived from what comes later."""

    def insert(self, deltas: Mapping[Key, Run]) -> Deltas:
        """Take in facts that are not there yet; returns what was new."""
        out: Deltas = {}
        for key, run in deltas.items():
            relation = self.relations.get(key)
            new = run if relation is None else Run(self.arrays, run.arity, relation.new(run.words))
            if len(new):
                self._add(key, new)
                out[key] = new
        return out

    def gain_from(self, components: Iterable[Component], went: Relations) -> None:
        """Take in what rules derive that negate one of the facts that went."""
        for component in components:
            found = self._found()
            for number, task in enumerate(component.tasks):
                found.task = number
                run_negated(self.kernel, task, went, self.relations, self.relations, found)
            self._absorb(component.tasks, found, feed=False)

    def close(self, components: Iterable[Component], full: bool) -> None:
        """Draw every consequence: of all facts (`full`), or of those that arrived."""
        for component in components:
            if self.near is not None and self.near.close(self, component, full):
                continue
            if full:
                fed = self._evaluate_fully(component)
            elif self._concerned(component):
                fed = self._round(component, self.arrived, self.before, {}, first=True)
            else:
                continue
            while fed:
                fed = self._round(component, *fed, first=False)

    def _concerned(self, component: Component) -> bool:
        for task in component.tasks:
            for atom in task.rule.body:
                if atom.relation in self.arrived or (atom.open and any(isinstance(k, int) for k in self.arrived)):
                    return True
        return False

    def _evaluate_fully(self, component: Component) -> Fed | None:
        """Rules that only read what is settled, then the others, over everything there is."""
        self.rounds += 1
        fed = None
        for recursive in (False, True):
            found = self._found()
            for number, task in enumerate(component.tasks):
                if bool(task.inner) == recursive:
                    found.task = number
                    self._run(task, [self.relations] * len(task.rule.body), found)
            fed = self._absorb(component.tasks, found, feed=recursive)
        return fed

    def _round(
        self,
        component: Component,
        deltas: Mapping[Key, Run],
        older: dict[Key, Relation],
        skipped: Mapping[int, Deltas],
        first: bool,
    ) -> Fed | None:
        """One round: each rule, once for each body atom that has a delta."""
        self.rounds += 1
        found = self._found()
        runs = Delta.of(deltas)
        old = _Older(self.relations, older)
        tasks = component.tasks
        for number, task in enumerate(tasks):
            found.task = number
            mine: Relations = runs
            if number in skipped:
                mine = Delta.of(skipped[number])
            body = task.rule.body
            for i in range(len(body)) if first else task.inner:
                if body[i].relation in mine or (body[i].open and mine):
                    sources: list[Relations] = [self.relations] * i + [mine] + [old] * (len(body) - i - 1)
                    self._run(task, sources, found)
        return self._absorb(tasks, found, feed=component.recursive)

    def _found(self) -> Found:
        return Found()

    def _run(self, task: Task, sources: list[Relations], found: Found) -> None:
        self.kernel.run(task.rule, sources, self.relations, found.emit, task.heads)

    def _absorb(self, tasks: tuple[Task, ...], found: Found, feed: bool) -> Fed | None:
        """Add what is new; returns the deltas of the next round, with shorter ones for rules that absorb their own."""
        older: dict[Key, Relation] = {}
        deltas: Deltas = {}
        for key, parts in found.rows.items():
            arity = found.arity(key, tasks)
            relation = self.relations[key] if key in self.relations else self._empty(arity)
            run = relation.novel([words for _, words in parts])
            if self.sieve is not None and len(run):
                run = Run(self.arrays, arity, self.sieve(key, arity, run.words))
            if len(run):
                self._add(key, run)
                deltas[key], older[key] = run, relation
                if self.trace is not None:
                    self.trace.append((key, run))
        if not deltas or not feed:
            return None
        skipped = {}
        for number, task in enumerate(tasks):
            if task.absorbing:
                skipped[number] = self._from_others(number, found, deltas, older)
        return deltas, older, skipped

    def _from_others(self, number: int, found: Found, deltas: Deltas, older: dict[Key, Relation]) -> Deltas:
        """The part of the deltas that some other rule derived too."""
        out = {}
        for key, run in deltas.items():
            parts = [words for task, words in found.rows[key] if task != number]
            if len(parts) == len(found.rows[key]):
                out[key] = run
            elif parts:
                others = older[key].novel(parts)
                if self.sieve is not None:
                    others = others.filter(run, keep=True)
                if len(others):
                    out[key] = others
        return out

    def _add(self, key: Key, run: Run) -> None:
        """Add rows that are not there."""
        relation = self.relations.get(key)
        self.arrive(key, run)
        self.relations[key] = relation.add(run) if relation is not None else Relation(run)

    def arrive(self, key: Key, run: Run) -> None:
        """Note that rows come, before they are there."""
        relation = self.relations.get(key)
        self.before.setdefault(key, relation if relation is not None else self._empty(run.arity))
        self.arrived.add(key, run)

    def _empty(self, arity: int) -> Relation:
        return Relation(Run(self.arrays, arity, self.arrays.empty(arity)))


Fed = tuple[Deltas, dict[Key, Relation], Mapping[int, Deltas]]
"""Deltas of a round, the relations without them, and shorter deltas for some tasks."""


class Arrivals(Mapping[Key, Run]):
    """Disjoint runs by relation, put together when someone asks for them."""

    def __init__(self) -> None:
        self._parts: dict[Key, list[Run]] = {}

    def add(self, key: Key, run: Run) -> None:
        self._parts.setdefault(key, []).append(run)

    def __getitem__(self, key: Key) -> Run:
        parts = self._parts[key]
        if len(parts) > 1:
            parts[:] = [reduce(Run.merge, parts)]
        return parts[0]

    def __iter__(self) -> Iterator[Key]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def __contains__(self, key: object) -> bool:
        return key in self._parts

    def parts(self) -> Iterator[tuple[Key, Run]]:
        """The runs as they came, several for a relation; nothing is put together."""
        yield from ((key, run) for key, parts in self._parts.items() for run in parts)

    @property
    def count(self) -> int:
        return sum(len(run) for _, run in self.parts())


class Found:
    """What the rules of one round derived, by relation and by task."""

    def __init__(self) -> None:
        self.task = 0
        self.rows: dict[Key, list[tuple[int, Words]]] = {}

    def emit(self, key: Key, words: Words) -> None:
        self.rows.setdefault(key, []).append((self.task, words))

    def runs(self, arrays: Arrays, held: Mapping[Key, Relation]) -> dict[Key, Run]:
        """All of it as runs, of relations that are held. Cost: a sort."""
        return {
            key: Run(arrays, held[key].arity, arrays.unique([words for _, words in parts]))
            for key, parts in self.rows.items()
            if key in held
        }

    def arity(self, key: Key, tasks: tuple[Task, ...]) -> int:
        return len(tasks[self.rows[key][0][0]].rule.head.args)


class _Older(Mapping[Key, Relation]):
    """Relations as they were before a delta."""

    def __init__(self, relations: dict[Key, Relation], older: dict[Key, Relation]) -> None:
        self.relations, self.older = relations, older

    def __getitem__(self, key: Key) -> Relation:
        found = self.older.get(key)
        return found if found is not None else self.relations[key]

    def __contains__(self, key: object) -> bool:
        return key in self.relations

    def __iter__(self) -> Iterator[Key]:
        return iter(self.relations)

    def __len__(self) -> int:
        return len(self.relations)


def run_negated(
    kernel: Kernel,
    task: Task,
    changed: Relations,
    positive: Relations,
    below: Relations,
    found: Found,
) -> None:
    """The instances of a rule one of whose negated atoms is among `changed`; the other atoms as they are."""
    for turned in turned_negations(task.rule, changed):
        kernel.run(turned, [changed, *[positive] * len(task.rule.body)], below, found.emit, task.heads)


def turned_negations(rule: PlanRule, changed: Relations) -> Iterator[PlanRule]:
    """The rule once for each negated atom that may be among `changed`, with that atom first in its body."""
    for place, atom in enumerate(rule.negated):
        if atom.relation in changed or (atom.open and any(isinstance(key, int) for key in changed)):
            others = rule.negated[:place] + rule.negated[place + 1 :]
            yield PlanRule(rule.name, rule.head, (atom, *rule.body), others, rule.filters)
