"""One run of one rule body: the table of bindings, extended atom by atom (`kernel`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from evergraph.engines.arrays import U64, Array, Arrays, Column, Half, Words
from evergraph.engines.delta import Delta, gathered
from evergraph.engines.relation import Relation, Run
from evergraph.engines.table import Table, stacked
from evergraph.plan.locality import HERE
from evergraph.plan.model import Key, PlanAtom, PlanFilter, PlanRule, Value

if TYPE_CHECKING:
    from evergraph.engines.kernel import Kernel

Relations = Mapping[Key, Relation]
Take = Callable[[Table], None]
"""Takes bindings of rule instances, in no order."""

FEW = 16
"""The relations of so many predicates in a table are asked for their sizes one by one."""
MANY, MANY_ROWS = 256, 10**6
"""A source of this many relations is taken for one of so many rows, without asking each."""
GATHER_FROM, GATHER_ROWS = 64, 256
"""From so many relations of so many rows at most, on average, an atom that reads them all reads them as one."""
ON_HOST = Arrays()
"""For tables that are cut where the host can see them."""
ONE_BY_ONE = 2
"""Up to so many rows are taken one by one when a variable predicate is cut: slices cost less than searches."""

Body = list[tuple[PlanAtom, Relations]]
Check = tuple[PlanFilter, ...] | PlanAtom | None
"""Filters that go together, a negated atom, or None for the limit on head predicates."""


class Asked(NamedTuple):
    """How an atom is read: the columns of its relation in an order of which the first are bound."""

    args: tuple[Value, ...]
    order: tuple[int, ...]
    keys: list[Column]
    """What is bound."""
    wanted: list[int]
    """Columns that become new ones of the table."""
    again: list[int]
    """Columns that name a variable once more."""


class Evaluation:
    """One run of one rule: what stays the same while tables grow."""

    def __init__(
        self,
        kernel: Kernel,
        rule: PlanRule,
        wanted: frozenset[str],
        below: Relations,
        take: Take,
        heads: frozenset[int] | None = None,
        packs: bool = False,
    ) -> None:
        """`wanted` are the variables whose values are asked for; who only packs them takes halves of words (`Half`), too."""
        self.kernel, self.rule, self.wanted, self.below, self.take, self.heads = kernel, rule, wanted, below, take, heads
        self.arrays, self.xp, self.packs = kernel.arrays, kernel.xp, packs

    def start(self, body: Body) -> None:
        checks: list[Check] = [*self._filters(), *self.rule.negated]
        if self.heads is not None:
            checks.append(None)
        near = self.kernel.near
        table, body, checks = (Table(1, {}, {}), body, checks) if near is None else near.ahead(self, body, checks)
        self.checked(table, body, checks)

    def _over(self, table: Table) -> Table:
        """A table whose columns are where those of the relations are."""
        if not table.near:
            return table
        if table.over is None:
            columns = self.xp.asarray(ON_HOST.xp.stack(list(table.columns.values())))
            table.over = Table(table.count, {name: columns[i] for i, name in enumerate(table.columns)}, table.fixed)
        return table.over

    def _filters(self) -> list[tuple[PlanFilter, ...]]:
        """Filters one by one; those that share a variable together, where it stands for several names: one must meet all."""
        names = self.kernel.names
        if names is None or not len(names):
            return [(one,) for one in self.rule.filters]
        groups: list[tuple[PlanFilter, ...]] = [(one,) for one in self.rule.filters if one.operator == HERE]
        for one in (f for f in self.rule.filters if f.operator != HERE):
            linked = [g for g in groups if any(one.variables & f.variables and f.operator != HERE for f in g)]
            groups = [group for group in groups if group not in linked] + [(*(f for group in linked for f in group), one)]
        return groups

    def checked(self, table: Table, body: Body, checks: list[Check]) -> None:
        """Apply every check whose variables are all bound, then go on with the rest."""
        later = []
        for check in checks:
            if not all(map(table.binds, self.variables(check))):
                later.append(check)
            elif table.count:
                table = self._over(table)
                table = self._where(table, self._mask(table, check))
        if table.count:
            self._extend(table, body, later)

    def _extend(self, table: Table, body: Body, checks: list[Check]) -> None:
        """Join the remaining atoms to the table, cheapest first, and give what comes out."""
        if not body:
            self.kernel.derivations += table.count
            self.take(self._over(table))
            return
        cheapest = 0
        if len(body) > 1:
            costs = [self._cost(table, atom, source) for atom, source in body]
            cheapest = costs.index(min(costs))
        (atom, source), rest = body[cheapest], body[:cheapest] + body[cheapest + 1 :]
        needed, last = self.wanted, not rest and not checks
        if not last:
            needed = needed.union(*(a.variables for a, _ in rest), *map(self.variables, checks))
        named = atom.open and str(atom.relation) in table.columns
        if not named:
            table = self._over(table)
        place = self._only_asked(table, atom, needed)
        if place is not None:
            table = self._over(table)
            found = self._exist(table, atom, source, place)
            self._go_on(table, self._where(table.keep(needed), found), needed, rest, checks)
            return
        triples = self._triples(table, atom, source)
        if triples is None:
            triples = self._gathered(table, atom, source)
        if triples is not None:
            table, args = self._over(table), (atom.relation, *atom.args)
            self._go_on(table, self._join(table, args, triples, needed, last), needed, rest, checks)
            return
        for key, part in self._by_predicate(table, atom, source):
            self._go_on(part, self._join(part, atom.args, source[key], needed, last), needed, rest, checks)

    def _where(self, table: Table, mask: Array) -> Table:
        """The rows of a table that a mask marks."""
        keep = self.arrays.module.where(mask)
        return table if keep is None else self._taken(table, keep)

    def _taken(self, table: Table, at: Array) -> Table:
        return table.take(at, self.arrays.module.take)

    def _go_on(self, table: Table, joined: Table, needed: frozenset[str], rest: Body, checks: list[Check]) -> None:
        """With what a join made of a table."""
        self.kernel.examined += max(table.count, joined.count)
        if not joined.count:
            return
        joined = joined.keep(needed)
        if checks:
            self.checked(joined, rest, checks)
        else:
            self._extend(joined, rest, checks)

    def _triples(self, table: Table, atom: PlanAtom, source: Relations) -> Relation | None:
        """All triples of a small change, for an atom whose predicate is not the same in every row of the table."""
        if not atom.open or not isinstance(source, Delta) or str(atom.relation) in table.fixed:
            return None
        return source.triples()

    def _only_asked(self, table: Table, atom: PlanAtom, needed: frozenset[str]) -> int | None:
        """The one argument that is bound, of an atom with many predicates of which only matters whether there is a fact."""
        if not atom.open or not getattr(table.value(atom.relation), "ndim", 0):
            return None
        values = [table.value(a) for a in atom.args]
        for place, other in ((0, 1), (1, 0)):
            if getattr(values[place], "ndim", 0) and values[other] is None and str(atom.args[other]) not in needed:
                return place
        return None

    def _exist(self, table: Table, atom: PlanAtom, source: Relations, place: int) -> Array:
        """The rows of the table for which there is a fact: a mask. Cost: a search for each, and a look at each predicate."""
        values = table.columns[str(atom.args[place])]
        mask = self.xp.zeros(table.count, bool)
        for key, rows in self.arrays.split(table.columns[str(atom.relation)]):
            relation = source.get(key)
            if relation is not None:
                mask[rows] = relation.has(place, values[rows])
        return mask

    def _gathered(self, table: Table, atom: PlanAtom, source: Relations) -> Relation | None:
        """The triples of many small relations in one, for an atom that reads them all. Cost: linear in them."""
        bound = table.value(atom.relation) if atom.open else None
        if bound is None or not getattr(bound, "ndim", 0) or min(len(bound), len(source)) < GATHER_FROM:
            return None
        arrays = ON_HOST if table.near else self.arrays
        keys = [key for key in arrays.distinct(bound).tolist() if key in source]
        if len(keys) < GATHER_FROM:
            return None
        return gathered(keys, source) if sum(source[key].count for key in keys) <= GATHER_ROWS * len(keys) else None

    def _by_predicate(self, table: Table, atom: PlanAtom, source: Relations) -> Iterable[tuple[Key, Table]]:
        """The relations that the atom reads, each with the rows of the table that read it."""
        if not atom.open:
            yield atom.relation, table
            return
        variable = str(atom.relation)
        bound = table.value(variable)
        if bound is None:
            for key in [k for k in source if isinstance(k, int)]:
                yield key, Table(table.count, table.columns, {**table.fixed, variable: U64(key)})
        elif getattr(bound, "ndim", 0):
            yield from self._by_value(table, variable, source)
        elif int(bound) in source:
            yield int(bound), table

    def _by_value(self, table: Table, variable: str, source: Relations) -> Iterable[tuple[int, Table]]:
        """The table cut by the values of one column, for those values that name a relation of the source.

        A part of one row becomes fixed bindings, so that what follows is a slice and not a search.
        """
        near = table.count <= self.arrays.module.near
        arrays, columns = (ON_HOST, table.columns) if table.near else (self.arrays, table.columns)
        if near and not table.near:
            arrays, columns = ON_HOST, self.arrays.fetch(table.columns)
        if table.count > 4 * len(source):
            present = arrays.xp.asarray(sorted(k for k in source if isinstance(k, int)), dtype=U64)
            kept = arrays.chosen(tuple(columns.values()), arrays.contains((present,), (columns[variable],)))
            columns = dict(zip(columns, kept, strict=True))
        if not len(columns[variable]):
            return
        for value, rows in arrays.split(columns[variable]):
            if value not in source:
                continue
            part = {v: c[rows] for v, c in columns.items() if v != variable}
            count = len(columns[variable]) if isinstance(rows, slice) else len(rows)
            fixed = {**table.fixed, variable: U64(value)}
            if count <= ONE_BY_ONE:
                few = part if near else self.arrays.fetch(part)
                for i in range(count):
                    yield value, Table(1, {}, fixed | {v: c[i] for v, c in few.items()})
            else:
                yield value, Table(count, {v: self.xp.asarray(c) for v, c in part.items()}, fixed)

    def _cost(self, table: Table, atom: PlanAtom, source: Relations) -> float:
        """A guess at how many rows the atom adds: its size, a thousandth if its first argument is bound, and a hundredth for
        each other one: what a name is about is told apart better than what is said of it."""
        size = float(self._size(table, atom, source))
        for place, arg in enumerate(atom.args):
            if table.binds(arg):
                size /= 100 if place else 1000
        return size

    def _size(self, table: Table, atom: PlanAtom, source: Relations) -> float:
        """Rows of the atom's relation; of a variable predicate, of the one it is bound to, an average one, or all."""
        if not atom.open:
            return source[atom.relation].count
        triples = self._triples(table, atom, source)
        if triples is not None:
            return triples.count
        bound = table.value(atom.relation)
        if bound is not None and not getattr(bound, "ndim", 0):
            found = source.get(int(bound))
            return found.count if found is not None else 0
        if bound is not None and table.count < FEW and not self.arrays.module.whole:
            named = [source[value].count for value in set(bound.tolist()) if value in source]
            return sum(named) / max(1, len(named))
        total = sum(r.count for k, r in source.items() if isinstance(k, int)) if len(source) < MANY else MANY_ROWS
        return total * 1000 if bound is None else total / max(1, len(source))

    # -- one atom ------------------------------------------------------------------------------------------------------

    def _join(
        self, table: Table, args: tuple[Value, ...], relation: Relation, needed: frozenset[str], last: bool = False
    ) -> Table:
        """With the rows of a relation; where nothing follows (`last`), some of them more than once if that costs less."""
        values = [table.value(a) for a in args]
        table = table.keep(needed)
        bound = [i for i, v in enumerate(values) if v is not None]
        free = [i for i, v in enumerate(values) if v is None]
        if not free:
            return self._semijoin(table, values, relation)
        first = {args[i]: i for i in reversed(free)}
        again = [i for i in free if first[args[i]] != i]
        wanted = [i for v, i in first.items() if v in needed or again]
        order = (*bound, *wanted, *(i for i in free if i not in wanted))
        asked = Asked(args, order, [values[i] for i in bound], wanted, again)
        if any(getattr(key, "ndim", 0) for key in asked.keys):
            return stacked(self.xp, [self._search(table, run, minus, asked) for run, minus in relation.parts()])
        halves = self.packs and last and table.count == 1 and relation.plus is None
        return stacked(self.xp, [self._slice(table, run, minus, asked, last, halves) for run, minus in relation.parts()])

    def _semijoin(self, table: Table, values: list[Column], relation: Relation) -> Table:
        """Every argument is bound: keep the rows that are in the relation."""
        if all(not getattr(v, "ndim", 0) for v in values):
            key = self.arrays.pack(values, 1)
            return table if bool(relation.contains(key)[0]) else Table(0, {}, {})
        return self._where(table, relation.contains(self.arrays.pack(values, table.count)))

    def _slice(self, table: Table, run: Run, minus: Run | None, asked: Asked, last: bool, halves: bool) -> Table:
        """The bound arguments are the same in every row: one range of the relation, times the table."""
        args, order, keys, wanted, again = asked
        if not keys and minus is None and not again and len(wanted) == 1 and run.arity > 1:
            place = wanted[0]
            repeated = last and table.count == 1 and run.rather_repeats(place)
            column = self._column(run.words, place, halves) if repeated else run.distinct(place)
            return self._product(table, {str(args[place]): column})
        order = order if keys else tuple(range(run.arity))
        rows = run.beginning(order, keys, minus)
        if not len(rows[0]):
            return Table(0, {}, {})
        if wanted and not again and len(wanted) == run.arity - len(keys):
            return self._product(table, {str(args[i]): self._column(rows, order.index(i), halves) for i in wanted})
        columns = {i: self.arrays.column(rows, order.index(i)) for i in {*wanted, *again}}
        if again:
            keep = self._equal(args, columns, again, len(rows[0]))
            columns = {i: c[keep] for i, c in columns.items()}
        elif not wanted:
            return table
        else:
            columns = self._distinct(columns, wanted)
        return self._product(table, {str(args[i]): columns[i] for i in wanted})

    def _column(self, rows: Words, position: int, halves: bool) -> Column:
        return Half(rows[position // 2], position % 2 == 0) if halves else self.arrays.column(rows, position)

    def _search(self, table: Table, run: Run, minus: Run | None, asked: Asked) -> Table:
        """A range of the relation for each row of the table."""
        args, order, keys, wanted, again = asked
        words = run.in_order(order)
        full = [self.arrays.spread(k, table.count) for k in keys]
        if len(words) == len(full) == len(wanted) == 1 and minus is None and not again:
            number, found = self.arrays.module.join(words[0], full[0])
            out = self._taken(table, number)
            out.columns[str(args[wanted[0]])] = found
            return out
        low, high = self.arrays.find_ranges(words, full, table.count)
        if not wanted and minus is None and not again:
            return self._where(table, high > low)
        number, index = self.arrays.expand(low, high)
        if len(wanted) == 1 and minus is None and not again:
            out = self._taken(table, number)
            out.columns[str(args[wanted[0]])] = self.arrays.column_at(words, order.index(wanted[0]), index)
            return out
        rows = tuple(w[index] for w in words)
        if minus is not None:
            kept = self.arrays.chosen((number, *rows), ~self.arrays.contains(minus.in_order(order), rows))
            number, rows = kept[0], kept[1:]
        columns = {i: self.arrays.column(rows, order.index(i)) for i in {*wanted, *again}}
        if again:
            keep = self._equal(args, columns, again, len(number))
            number, columns = number[keep], {i: c[keep] for i, c in columns.items()}
        if not wanted:
            number = self.arrays.distinct_sorted(number)
        out = self._taken(table, number)
        out.columns.update({str(args[i]): columns[i] for i in wanted})
        return out

    def _equal(self, args: tuple[Value, ...], columns: dict[int, Array], again: list[int], count: int) -> Array:
        """A mask for atoms that name a variable twice."""
        keep = self.xp.ones(count, bool)
        for i in again:
            keep &= columns[i] == columns[args.index(args[i])]
        return keep

    def _distinct(self, columns: dict[int, Array], wanted: list[int]) -> dict[int, Array]:
        count = len(columns[wanted[0]])
        words = self.arrays.unique([self.arrays.pack([columns[i] for i in wanted], count)])
        return {i: self.arrays.column(words, n) for n, i in enumerate(wanted)}

    def _product(self, table: Table, columns: dict[str, Array]) -> Table:
        size = len(next(iter(columns.values()))) if columns else 1
        if table.count == 1:
            fixed = {**table.fixed, **self.arrays.row(table.columns)}
            return Table(size, columns, fixed)
        number = self.xp.arange(table.count * size)
        out = self._taken(table, number // size)
        out.columns.update({v: c[number % size] for v, c in columns.items()})
        return out

    # -- checks and head ----------------------------------------------------------------------------------------------

    def variables(self, check: Check) -> frozenset[str]:
        if isinstance(check, tuple):
            return frozenset().union(*(one.variables for one in check))
        return frozenset([str(self.rule.head.relation)]) if check is None else check.variables

    def _mask(self, table: Table, check: Check) -> Array:
        """The rows of the table that pass a check."""
        if check is None:
            limit = self.kernel.limit(self.heads or frozenset())
            return self.arrays.contains((limit,), (self.kernel.spread(table, self.rule.head.relation),))
        if isinstance(check, tuple):
            return self.kernel.compare_all(check, table)
        keys = self.arrays.pack([table.value(a) for a in check.args], table.count)
        keep = self.xp.ones(table.count, bool)
        if not check.open:
            relation = self.below.get(check.relation)
            return keep if relation is None else ~relation.contains(keys)
        predicates = self.kernel.spread(table, check.relation)
        for value in self.arrays.distinct(predicates).tolist():
            if value in self.below:
                keep &= ~((predicates == U64(value)) & self.below[value].contains(keys))
        return keep
