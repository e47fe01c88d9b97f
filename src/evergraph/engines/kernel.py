"""The kernel: one rule body against relations, in array operations.

    answers(head, a₁ … aₙ) = project(a₁ ⋈ … ⋈ aₙ − negated, filtered)

In words: a table of bindings starts as one empty row and is extended atom by atom, the cheapest atom first, by searches in
sorted arrays. A variable that nothing later asks for is never expanded. A variable predicate is taken value by value, so
that each step reads one split relation. Cost: the rows of the intermediate tables, plus a search per row.

    table ?x        atom p(?x, ?y)         table ?x ?y
    1 2             (1,7) (1,8) (3,9)      1 7 · 1 8
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from evergraph.engines.arrays import U64, Array, Arrays, Words
from evergraph.engines.delta import Delta
from evergraph.engines.equality.names import Names
from evergraph.engines.evaluation import Body, Evaluation, Relations, Take
from evergraph.engines.table import Table
from evergraph.plan.locality import HERE
from evergraph.plan.model import Key, PlanAtom, PlanFilter, PlanRule, Value

if TYPE_CHECKING:
    from evergraph.engines.near import Near

__all__ = ["Emit", "Kernel", "Relations", "Take", "Values"]

Emit = Callable[[Key, Words], None]
"""Takes derived rows of one relation, with repetitions, in no order."""


class Values(Protocol):
    """What filters ask of terms: a mask for two columns of ids."""

    def compare(self, operator: str, left: Array, right: Array) -> Array: ...


class Kernel:
    def __init__(self, arrays: Arrays, values: Values | None = None) -> None:
        self.arrays, self.xp = arrays, arrays.xp
        self.values: Values | None = arrays.module.values(values)
        self.derivations = 0
        self.examined = 0
        """Facts that joins have looked at."""
        self._limits: dict[frozenset[int], Array] = {}
        self.near: Near | None = None
        """Where small relations are joined, if not here."""
        self.names: Names | None = None
        """What stands for what, where equality is by representatives: a comparison holds of a clique if it does of a name."""

    def run(
        self,
        rule: PlanRule,
        sources: Sequence[Relations],
        below: Relations,
        emit: Emit,
        heads: frozenset[int] | None = None,
    ) -> None:
        """Emit the head rows of every rule instance; atom i reads `sources[i]`, negated atoms read `below`.

        `heads`, if given, limits a variable head predicate to these ids.
        """
        body = list(zip(rule.body, sources, strict=True))
        if self._hopeless(rule, body):
            return
        take = partial(self._emit, rule.head, emit)
        Evaluation(self, rule, rule.head.variables, below, take, heads, packs=True).start(body)

    def instances(self, rule: PlanRule, sources: Sequence[Relations], below: Relations, take: Take) -> None:
        """Give the bindings of every rule instance, each once: every variable is expanded. Cost: the instances."""
        self.bindings(rule, rule.variables, sources, below, take)

    def bindings(
        self, rule: PlanRule, wanted: frozenset[str], sources: Sequence[Relations], below: Relations, take: Take
    ) -> None:
        """Give the bindings of some variables, with repetitions."""
        body = list(zip(rule.body, sources, strict=True))
        if self._hopeless(rule, body):
            return
        Evaluation(self, rule, wanted, below, take).start(body)

    def _hopeless(self, rule: PlanRule, body: Body) -> bool:
        """Whether a relation is missing or empty, or a small change does not meet the rows of the rule's shape."""
        if any(not atom.open and (atom.relation not in source or not source[atom.relation].count) for atom, source in body):
            return True
        for number, place, parameters, column in rule.probes:
            atom, source = body[number]
            known, rows = body[parameters]
            if isinstance(source, Delta) and not isinstance(rows, Delta):
                values = source.named(atom.relation, place)
                if values is not None and not rows[known.relation].meets(column, values):
                    return True
        return False

    def compare(self, operator: str, left: Array, right: Array) -> Array:
        """A mask for two columns of names."""
        columns = {"?l": left, "?r": right}
        return self.compare_all((PlanFilter(operator, "?l", "?r"),), Table(len(left), columns, {}))

    def compare_all(self, filters: Sequence[PlanFilter], table: Table) -> Array:
        """The rows of a table of which all comparisons hold; of a representative, if they do of one of its names.

        Where a fact is, `HERE`, is asked of the representative itself.
        """
        assert self.values is not None
        xp, names = self.xp, self.names
        terms = sorted(frozenset().union(*(f.variables for f in filters)))
        columns = {v: self.spread(table, v) for v in terms}
        many = xp.zeros(table.count, bool)
        if names is not None and len(names) and not any(f.operator == HERE for f in filters):
            for column in columns.values():
                many |= ~names.alone(column)
        out = self._hold(filters, columns, table.count)
        if bool(many.any()):
            assert names is not None
            number = xp.flatnonzero(many)
            spread: dict[str, Array] = {}
            for term, column in columns.items():
                place, members = names.members(column[number])
                spread = {v: c[place] for v, c in spread.items()} | {term: members}
                number = number[place]
            out[number[self._hold(filters, spread, len(number))]] = True
        return out

    def _hold(self, filters: Sequence[PlanFilter], columns: Mapping[str, Array], count: int) -> Array:
        assert self.values is not None
        keep = self.xp.ones(count, bool)
        for one in filters:
            sides = [columns[v] if isinstance(v, str) else self.xp.full(count, v, U64) for v in (one.left, one.right)]
            keep &= self.values.compare(one.operator, *sides)
        return keep

    def limit(self, heads: frozenset[int]) -> Array:
        """Predicates, in order. Cost: their number, once."""
        if heads not in self._limits:
            self._limits[heads] = self.xp.asarray(sorted(heads), dtype=U64)
        return self._limits[heads]

    def spread(self, table: Table, term: Value) -> Array:
        """A column of a table, or one value as a column."""
        return self.arrays.spread(table.value(term), table.count)

    def _emit(self, head: PlanAtom, emit: Emit, table: Table) -> None:
        words = self.arrays.pack([table.value(a) for a in head.args], table.count)
        for key, rows in self.cut(head, table, words):
            emit(key, rows)

    def cut(self, head: PlanAtom, table: Table, words: Words) -> Iterable[tuple[Key, Words]]:
        """Rows of the head's relation; of a variable predicate, those of each of its values."""
        key: Any = self.arrays.whole(table.value(head.relation)) if head.open else head.relation
        if getattr(key, "ndim", 0):
            for value, rows in self.arrays.split(key):
                yield value, tuple(w[rows] for w in words)
        else:
            yield (int(key) if head.open else key), words
