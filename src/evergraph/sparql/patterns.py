"""Basic graph patterns: joins of triple patterns over sorted relations, in array operations.

    answers(t₁ … tₙ) = t₁ ⋈ … ⋈ tₙ,    one row for each way to bind all variables

In words: a table of solutions starts as the row that binds nothing, or as bindings that are known already, and is extended
pattern by pattern, the one that leaves the fewest rows first. How many that is, is not guessed from totals: patterns with
constants are counted exactly by a search in the sorted pairs, and joins are tried on a sample of the table. A blank node is
a variable like any other. Cost: the rows of the intermediate tables, plus a search per row.
Trap: a pattern with a variable predicate reads every relation there is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from rdflib.paths import MulPath, NegatedPath, Path

from evergraph.engines.arrays import LOW, SHIFT, U64
from evergraph.engines.relation import Relation, Run
from evergraph.sparql.paths import others, reach
from evergraph.sparql.solutions import ARRAYS, NONE, ONE, Index, Solutions, check_size, concat, expand, isin
from evergraph.sparql.view import View
from evergraph.terms import Ids
from evergraph.values import Mask

SAMPLE = 64
"""Rows of a table on which a join is tried."""
OPEN_FACTOR = 16.0
"""A guess at the triples of a node, for patterns whose predicate is a variable."""
FEW = 16
"""A search takes as long as looking at so many ids."""
FIRST_BLOCK = 1024
"""Under a limit, the first pattern is read in blocks that start at this size and double."""

Term = int | str
"""The id of a constant, or the name of a variable."""


class Pattern(NamedTuple):
    subject: Term
    predicate: Term | Path
    object: Term

    @property
    def variables(self) -> set[str]:
        return {term for term in self if isinstance(term, str)}


class Check(NamedTuple):
    """A condition on rows, to be applied as soon as its variables are bound."""

    variables: frozenset[str]
    test: Callable[[Solutions], Mask]


def match(
    view: View, patterns: Sequence[Pattern], start: Solutions = ONE, checks: Sequence[Check] = (), limit: int | None = None
) -> Solutions:
    """The solutions of all patterns together that extend a row of `start`, whose rows differ and bind what they name.

    With a limit it stops soon after so many solutions are found.
    """
    matching = _Matching(view, checks)
    if limit is None:
        return matching.extend(start, list(patterns), set())
    if limit == 0:
        return NONE
    parts: list[Solutions] = []
    found = 0
    for part in matching.blocks(start, list(patterns)):
        parts.append(part)
        found += part.count
        if found >= limit:
            break
    return concat(parts)


def scan(view: View, pattern: Pattern) -> Iterator[Solutions]:
    """The solutions of one pattern in parts, the first of them small."""
    return (part for part in _Matching(view, ()).blocks(ONE, [pattern]) if part.count)


def size_of(view: View, patterns: Sequence[Pattern]) -> int:
    """The rows of the smallest pattern taken alone: what evaluation starts from when nothing else is known."""
    matching = _Matching(view, ())
    return int(min((matching.estimate(ONE, pattern) for pattern in patterns), default=1))


class _Matching:
    def __init__(self, view: View, checks: Sequence[Check]) -> None:
        self.view, self.checks = view, checks

    def extend(self, table: Solutions, patterns: list[Pattern], done: set[int]) -> Solutions:
        """Join all patterns to the table; checks whose numbers are in `done` have been applied."""
        table = self._checked(table, done)
        while patterns and table.count:
            pattern = self._cheapest(table, patterns)
            patterns.remove(pattern)
            table = self._checked(concat(list(self._join(table, pattern))), done)
        return table if table.count else NONE

    def blocks(self, table: Solutions, patterns: list[Pattern]) -> Iterator[Solutions]:
        """The same in parts, of which few are made when few are asked for."""
        done: set[int] = set()
        table = self._checked(table, done)
        if not patterns or not table.count:
            yield table
            return
        first = self._cheapest(table, patterns)
        patterns.remove(first)
        for part in self._join(table, first, FIRST_BLOCK):
            yield self.extend(part, list(patterns), set(done))

    def _checked(self, table: Solutions, done: set[int]) -> Solutions:
        for number, check in enumerate(self.checks):
            if number not in done and table.count and check.variables <= table.columns.keys():
                done.add(number)
                table = table.select(check.test(table))
        return table

    # -- the order -----------------------------------------------------------------------------------------------------

    def _cheapest(self, table: Solutions, patterns: list[Pattern]) -> Pattern:
        if len(patterns) == 1:
            return patterns[0]
        sample = table
        if table.count > SAMPLE:
            sample = table.take(np.linspace(0, table.count - 1, SAMPLE).astype(np.int64))
        return min(patterns, key=lambda pattern: self.estimate(sample, pattern))

    def estimate(self, sample: Solutions, pattern: Pattern) -> float:
        """How many rows the pattern makes of those of a sample; one that binds nothing new is taken first among equals."""
        subject, value = _value(sample, pattern.subject), _value(sample, pattern.object)
        predicate = None if isinstance(pattern.predicate, Path) else _value(sample, pattern.predicate)
        if predicate is None or np.ndim(predicate):
            known = (subject is not None) + (value is not None)
            return sample.count * (float(len(self.view)), OPEN_FACTOR, 1.0)[known]
        relation = self.view.relation(int(predicate))
        if relation is None:
            return 0.0
        if subject is None and value is None:
            return float(sample.count * relation.count)
        if subject is not None and value is not None:
            return float(_contains(relation, subject, value, sample.count).sum()) - 0.5
        key, order = (subject, NATURAL) if subject is not None else (value, REVERSED)
        if not np.ndim(key):
            return float(sample.count * sum(high - low for _, _, low, high in _slices(relation, order, key)))
        return float(sum((high - low).sum() for _, _, low, high in _searches(relation, order, key)))

    # -- one pattern ---------------------------------------------------------------------------------------------------

    def _join(self, table: Solutions, pattern: Pattern, block: int | None = None) -> Iterator[Solutions]:
        """The table extended by one pattern; with `block`, in parts that start at this size."""
        if isinstance(pattern.predicate, MulPath):
            yield from _extended(table, pattern, self._connected(table, pattern), block)
            return
        for key, part in self._by_predicate(table, pattern.predicate):
            relation = self.view.relation(key)
            if relation is not None:
                yield from _extended(part, pattern, relation, block)

    def _by_predicate(self, table: Solutions, predicate: Term | Path) -> Iterator[tuple[int, Solutions]]:
        """The relations that a pattern reads, each with the rows of the table that read it."""
        if isinstance(predicate, NegatedPath):
            yield from ((key, table) for key in others(self.view, predicate))
            return
        assert not isinstance(predicate, Path)
        value = _value(table, predicate)
        if value is None:
            for key in self.view.predicates():
                yield key, Solutions(table.count, {**table.columns, str(predicate): np.full(table.count, key, U64)})
        elif np.ndim(value):
            for key in ARRAYS.distinct(value).tolist():
                yield key, table.take(np.flatnonzero(value == U64(key)))
        else:
            yield int(value), table

    def _connected(self, table: Solutions, pattern: Pattern) -> Relation:
        """The pairs of a path that the table may need, found from the end that has fewer nodes."""
        ends = [None if (v := _value(table, term)) is None else ARRAYS.distinct(np.atleast_1d(v)) for term in pattern[::2]]
        inverse = ends[1] is not None and (ends[0] is None or len(ends[1]) < len(ends[0]))
        pairs = reach(self.view, pattern.predicate, ends[inverse], inverse)
        return Relation(Run(ARRAYS, 2, (ARRAYS.transpose(pairs) if inverse else pairs,)))


NATURAL, REVERSED = (0, 1), (1, 0)


def _value(table: Solutions, term: Term) -> Any:
    """The id that a term has in every row, the column of its ids, or None for a variable that is not bound."""
    if isinstance(term, int):
        return U64(term)
    column = table.columns.get(term)
    return column if column is None or table.count != 1 else column[0]


def _extended(table: Solutions, pattern: Pattern, relation: Relation, block: int | None) -> Iterator[Solutions]:
    """The rows of the table joined with the pairs of a relation."""
    subject, value = _value(table, pattern.subject), _value(table, pattern.object)
    if subject is not None and value is not None:
        yield table.select(_contains(relation, subject, value, table.count))
        return
    if subject is None and value is None:
        for words in _rows(relation, block):
            yield from _product(table, pattern, words >> SHIFT, words & LOW)
        return
    key, order, free = (subject, NATURAL, pattern.object) if subject is not None else (value, REVERSED, pattern.subject)
    if np.ndim(key):
        for words, minus, low, high in _searches(relation, order, key):
            number, place = expand(low, high)
            words = words[place]
            if minus is not None:
                kept = ~ARRAYS.contains(minus.in_order(order), (words,))
                number, words = number[kept], words[kept]
            found = table.take(number)
            found.columns[str(free)] = words & LOW
            yield found
        return
    for words, minus, start, stop in _slices(relation, order, key):
        for chunk in _chunks(words[start:stop], minus, order, block):
            yield from _crossed(table, {str(free): chunk & LOW})


def _product(table: Solutions, pattern: Pattern, subjects: Ids, objects: Ids) -> Iterator[Solutions]:
    """Every row with every pair, for two variables that are new; one row if they are the same variable."""
    if pattern.subject == pattern.object:
        subjects = subjects[subjects == objects]
        return _crossed(table, {str(pattern.subject): subjects})
    return _crossed(table, {str(pattern.subject): subjects, str(pattern.object): objects})


def _crossed(table: Solutions, columns: dict[str, Ids]) -> Iterator[Solutions]:
    size = len(next(iter(columns.values())))
    check_size(size * table.count)
    if table.count == 1:
        yield Solutions(size, {**{name: np.repeat(column, size) for name, column in table.columns.items()}, **columns})
        return
    rows = table.take(np.repeat(np.arange(table.count), size))
    rows.columns.update({name: np.tile(column, table.count) for name, column in columns.items()})
    yield rows


# -- reading a relation ------------------------------------------------------------------------------------------------


def _contains(relation: Relation, subject: Any, value: Any, count: int) -> Mask:
    """For each of `count` pairs whether it is in the relation. With one side constant that is a look at the other's ids."""
    if np.ndim(subject) and np.ndim(value):
        found: Mask = relation.contains((subject << SHIFT | value,))
        return found
    if not np.ndim(subject) and not np.ndim(value):
        return np.full(count, bool(relation.contains((np.array([subject << SHIFT | value], U64),))[0]))
    key, order, column = (subject, NATURAL, value) if np.ndim(value) else (value, REVERSED, subject)
    slices = list(_slices(relation, order, key))
    if FEW * count < sum(high - low for _, _, low, high in slices):
        found = relation.contains((subject << SHIFT | value,))
        return found
    mask = np.zeros(count, np.bool_)
    for words, minus, low, high in slices:
        for chunk in _chunks(words[low:high], minus, order, None):
            mask |= isin(column, chunk & LOW)
    return mask


def _slices(relation: Relation, order: tuple[int, ...], key: Any) -> Iterator[tuple[Ids, Run | None, int, int]]:
    """Where the pairs that start with one id stand, in each run of the relation."""
    for run, minus in relation.parts():
        words = run.in_order(order)[0]
        low, high = words.searchsorted(np.array([key << SHIFT, (key << SHIFT) + (U64(1) << SHIFT)], U64))
        yield words, minus, int(low), int(high)


def _searches(relation: Relation, order: tuple[int, ...], keys: Ids) -> Iterator[tuple[Ids, Run | None, Index, Index]]:
    """The same for each id of a column."""
    for run, minus in relation.parts():
        words = run.in_order(order)
        low, high = ARRAYS.find_ranges(words, [keys], len(keys))
        yield words[0], minus, low, high


def _rows(relation: Relation, block: int | None) -> Iterator[Ids]:
    for run, minus in relation.parts():
        yield from _chunks(run.words[0], minus, NATURAL, block)


def _chunks(words: Ids, minus: Run | None, order: tuple[int, ...], block: int | None) -> Iterator[Ids]:
    """Packed pairs without those that were removed, in blocks that double, or at once."""
    start, size = 0, block or len(words)
    while start < len(words):
        chunk = words[start : start + size]
        if minus is not None:
            chunk = chunk[~ARRAYS.contains(minus.in_order(order), (chunk,))]
        yield chunk
        start, size = start + size, 2 * size
