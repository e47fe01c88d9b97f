"""The search for a proof: backward from the goal level by level, forward again in rounds, whole sets at a time.

    backward:  looked at ← looked at ∪ premises of every instance for a fact that is neither explicit nor follows from such
    forward:   height 0 = explicit and built-in facts;    height h = heads of instances whose premises are all lower

In words: rule instances are found once, from their heads, over the whole materialisation; facts and instances then are
numbers, and proving is counting down how many premises of an instance are still open. A fact takes the instance that
proved it first, so every premise is lower than what it proves: no fact is used in its own proof. A fact that follows
from explicit facts in one step is not looked behind.

Height: the proof is of the smallest height, unless finding that out would mean to look at more than `PATIENCE` instances.
Cost: the instances of the facts looked at, up to `MOST` for each fact and rule, and not the graph. Facts that a
hundred thousand others support are slow only if the first thousand turn out to lead nowhere. A built-in relation is made
when a rule that reads it is tried: linear in the terms. The first search in a relation by its second argument sorts it.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np

from evergraph.engines.arrays import LOW, SHIFT, U64, Array, Arrays
from evergraph.engines.kernel import Kernel, Values
from evergraph.engines.relation import Relation, Run, run_of
from evergraph.explain.numbers import Growing, Numbers
from evergraph.explain.sources import Facts, Heads
from evergraph.plan.model import Key, PlanAtom, PlanRule, Value, is_variable

MOST = 1000
"""Instances of one rule for one fact that are looked at before all are."""
PATIENCE = 1 << 16
"""Instances up to which a shorter proof is looked for when there is one."""

Ground = tuple[Key, tuple[int, ...]]
"""A fact as the engine has it: a triple has the id of its predicate for a relation."""


@dataclass(frozen=True, slots=True)
class Block:
    """Instances of one rule: a value for each of its variables, a row each."""

    rule: PlanRule
    count: int
    bindings: dict[str, Array]

    def ground(self, atom: PlanAtom, row: int) -> Ground:
        return self.value(atom.relation, row), tuple(int(self.value(arg, row)) for arg in atom.args)

    def value(self, value: Value, row: int) -> Value:
        return int(self.bindings[str(value)][row]) if is_variable(value) else value

    def columns(self, atom: PlanAtom) -> list[Array]:
        return [self.bindings[str(a)] if is_variable(a) else np.full(self.count, a, U64) for a in atom.args]

    def take(self, rows: Array) -> Block:
        return Block(self.rule, len(rows), {v: c[rows] for v, c in self.bindings.items()})


@dataclass(frozen=True, slots=True)
class Step:
    """One instance, with the numbers of its premises in the order of the rule's body."""

    block: Block
    row: int
    premises: tuple[int, ...]


class Search:
    """What has been looked at: facts by number, instances by number, and which facts are proved by now."""

    def __init__(self, heads: Heads, held: Facts, explicit: Facts, values: Values, most: int | None = MOST) -> None:
        self.heads, self.held, self.explicit, self.most = heads, held, explicit, most
        self.kernel = Kernel(Arrays(), values)
        self.arrays = self.kernel.arrays
        self.numbers = Numbers(self.arrays)
        self.given, self.proved = Growing(bool), Growing(bool)
        """By fact: whether it is explicit or built in, and whether it is known to follow."""
        self.head, self.size, self.missing = Growing(np.int64), Growing(np.int64), Growing(np.int64)
        """By instance: the fact it supports, how many different premises it has, and how many are not proved."""
        self.uses = Relation(Run(self.arrays, 2, self.arrays.empty(2)))
        """Pairs of a fact and an instance that needs it."""
        self._blocks: list[tuple[Block, Array]] = []
        self._starts: list[int] = []
        self._fresh: dict[Key, list[Run]] = {}
        """Facts to look behind in the next level."""
        self._expanded = 0

    # -- backward ----------------------------------------------------------------------------------------------------

    def prove(self, goal: Ground) -> dict[int, Step] | None:
        """The steps of a proof by the numbers of the facts they prove, the goal's being 0; None if there is no proof.

        A proof of height h has, at distance d from the goal, facts of height h − d at most. What follows from explicit facts
        in one step is found before anything is looked behind, so at level d every proof up to height d + 1 is at hand.
        """
        self._sight(goal[0], [np.array([v], U64) for v in goal[1]], 1)
        height = None
        for level in count():
            frontier = self._frontier()
            self._collect(frontier, self.explicit)
            rest = self._unproved(frontier)
            if not rest:
                break
            if self.proved.values[0]:
                height = int(self._rounds()[0][0]) if height is None else height
                if level >= height - 2 or self._too_many(rest):
                    break
            self._collect(rest, self.held)
            self._expanded += sum(map(len, rest.values()))
        return self._steps(*self._rounds()) if self.proved.values[0] else None

    def _too_many(self, facts: Mapping[Key, Relation]) -> bool:
        """Whether these facts, if they have as many instances as those before, are too many to go on for a shorter proof."""
        instances = len(self.head.values)
        return instances * (self._expanded + sum(map(len, facts.values()))) > PATIENCE * max(1, self._expanded)

    def supports(self, goal: Ground) -> list[Step]:
        """Every instance that supports a fact, over the whole materialisation."""
        key, row = goal
        columns = [np.array([v], U64) for v in row]
        self._sight(key, columns, 1)
        self._collect({key: Relation(run_of(self.arrays, columns, 1))}, self.held)
        return [self._step(number) for number in range(len(self.head.values))]

    def _frontier(self) -> dict[Key, Relation]:
        fresh, self._fresh = self._fresh, {}
        return {
            k: Relation(Run(self.arrays, r[0].arity, self.arrays.unique([run.words for run in r]))) for k, r in fresh.items()
        }

    def _unproved(self, facts: Mapping[Key, Relation]) -> dict[Key, Relation]:
        out = {}
        for key, relation in facts.items():
            numbers, _ = self.numbers.of(key, relation.columns(), len(relation))
            still = ~self.proved.values[numbers]
            if still.any():
                out[key] = Relation(Run(self.arrays, relation.arity, tuple(w[still] for w in relation.rows())))
        return out

    def _sight(self, key: Key, columns: Sequence[Array], count: int) -> Array:
        """The numbers of facts; those seen for the first time are explicit, or to be looked behind."""
        numbers, new = self.numbers.of(key, columns, count)
        if len(new):
            known = self.explicit.get(key)
            given = known.contains(new.words) if known is not None else np.zeros(len(new), bool)
            self.given.add(given)
            self.proved.add(given)
            if not given.all():
                self._fresh.setdefault(key, []).append(Run(self.arrays, new.arity, tuple(w[~given] for w in new.words)))
        return numbers

    def _collect(self, asked: Mapping[Key, Relation], source: Facts) -> None:
        """Take in the instances for some facts whose premises are in the source, and prove what they prove."""
        for rule in self.heads.of(asked):
            block = self._instances(rule, asked, source)
            if block.count:
                heads = self._numbered(block, rule.head)
                order = np.lexsort((*[column for _, column in sorted(block.bindings.items(), reverse=True)], heads))
                if self.most is not None:
                    order = order[_rank_in_group(heads[order]) < self.most]
                self._take_in(block.take(order), heads[order])

    def _instances(self, rule: PlanRule, asked: Mapping[Key, Relation], source: Facts) -> Block:
        names = tuple(sorted(rule.head.variables.union(*(a.variables for a in rule.body))))
        query = PlanRule(rule.name, PlanAtom("instance", names), (rule.head, *rule.body), rule.negated, rule.filters)
        parts = [self.arrays.empty(len(names))]
        self.kernel.run(query, [asked, *[source] * len(rule.body)], self.held, lambda _, words: parts.append(words))
        words = tuple(np.concatenate(w) for w in zip(*parts, strict=True))
        return Block(rule, len(words[0]), {name: self.arrays.column(words, i) for i, name in enumerate(names)})

    def _numbered(self, block: Block, atom: PlanAtom) -> Array:
        """The number of the fact that an atom is in each instance."""
        columns = block.columns(atom)
        if not atom.open:
            return self._sight(atom.relation, columns, block.count)
        out, predicates = np.zeros(block.count, np.int64), block.bindings[str(atom.relation)]
        for key in self.arrays.distinct(predicates).tolist():
            mask = predicates == U64(key)
            out[mask] = self._sight(key, [c[mask] for c in columns], int(mask.sum()))
        return out

    # -- forward -----------------------------------------------------------------------------------------------------

    def _take_in(self, block: Block, heads: Array) -> None:
        """Number the instances and their premises, and draw what follows."""
        first = len(self.head.values)
        premises = np.array([self._numbered(block, atom) for atom in block.rule.body], np.int64).reshape(-1, block.count)
        instances = np.arange(first, first + block.count, dtype=U64)
        (pairs,) = self.arrays.unique([((premises.astype(U64) << SHIFT | instances).reshape(-1),)])
        user, opened = (pairs & LOW).astype(np.int64) - first, ~self.proved.values[pairs >> SHIFT]
        self._starts.append(first)
        self._blocks.append((block, premises))
        self.head.add(heads)
        self.size.add(np.bincount(user, minlength=block.count))
        self.missing.add(np.bincount(user[opened], minlength=block.count))
        self.uses = self.uses.add(Run(self.arrays, 2, (pairs,)))
        ready = first + np.flatnonzero(self.missing.values[first:] == 0)
        for _ in self._spread(ready, self.missing.values, self.proved.values):
            pass

    def _spread(self, ready: Array, missing: Array, known: Array) -> Iterator[tuple[Array, Array]]:
        """Facts in the order in which they follow, round by round, each with the first instance that gives it."""
        while len(ready):
            heads, first = np.unique(self.head.values[ready], return_index=True)
            new = ~known[heads]
            known[heads] = True
            yield heads[new], ready[first[new]]
            ready = self._ready(heads[new], missing)

    def _ready(self, facts: Array, missing: Array) -> Array:
        """Instances of which the last premise is among these facts; counts the others down."""
        parts = []
        for run, _ in self.uses.parts():
            _, places = self.arrays.expand(*self.arrays.find_ranges(run.words, [facts.astype(U64)], len(facts)))
            parts.append((run.words[0][places] & LOW).astype(np.int64))
        instances, counts = np.unique(np.concatenate(parts), return_counts=True)
        missing[instances] -= counts
        done: Array = instances[missing[instances] == 0]
        return done

    def _rounds(self) -> tuple[Array, Array]:
        """The smallest height of every fact among the instances there are, and an instance that gives it at that height."""
        height, via = np.where(self.given.values, 0, -1), np.full(self.numbers.count, -1, np.int64)
        missing, known = self.size.values.copy(), self.given.values.copy()
        bare = np.flatnonzero(missing == 0)
        ready = np.union1d(bare, self._ready(np.flatnonzero(known), missing))
        for number, (facts, instances) in enumerate(self._spread(ready, missing, known), 1):
            height[facts], via[facts] = number, instances
        return height, via

    # -- the proof ---------------------------------------------------------------------------------------------------

    def _steps(self, height: Array, via: Array) -> dict[int, Step]:
        """The steps that the goal needs, every premise before what it proves."""
        steps: dict[int, Step] = {}
        rest = [0]
        while rest:
            number = rest.pop()
            if number not in steps and via[number] >= 0:
                steps[number] = self._step(int(via[number]))
                rest += steps[number].premises
        return {number: steps[number] for number in sorted(steps, key=lambda n: int(height[n]))}

    def _step(self, instance: int) -> Step:
        place = bisect(self._starts, instance) - 1
        block, premises = self._blocks[place]
        row = instance - self._starts[place]
        return Step(block, row, tuple(premises[:, row].tolist()))


def _rank_in_group(groups: Array) -> Array:
    """For sorted groups, how many of the same group stand before each."""
    return np.arange(len(groups)) - np.searchsorted(groups, groups)
