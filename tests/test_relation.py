"""Relations under changes: after any sequence of additions and removals they hold what a Python set holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evergraph.engines import relation as relation_module
from evergraph.engines.arrays import U64, Arrays, Words
from evergraph.engines.relation import Relation, Run, how_many, run_of

ARRAYS = Arrays()
IDS = [0, 1, 2, 3, 7, 2**31, 2**32 - 1]
NEVER, SELDOM, ALWAYS = 0, 1, 10**6
"""Values of MERGE_FRACTION: runs are never merged into the base; when they outnumber it; at every change."""

Row = tuple[int, ...]
Step = tuple[str, set[Row], bool]


@contextmanager
def patched(**values: int) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in values.items():
            patch.setattr(relation_module, name, value)
        yield


def words_of(rows: list[Row], arity: int) -> Words:
    return ARRAYS.pack([np.array([row[i] for row in rows], U64) for i in range(arity)], len(rows))


def run(rows: Iterable[Row], arity: int) -> Run:
    listed = list(rows)
    columns = [np.array([row[i] for row in listed], U64) for i in range(arity)]
    return run_of(ARRAYS, columns, len(listed))


def unpack(words: Words, arity: int) -> list[Row]:
    columns = [ARRAYS.column(words, i).tolist() for i in range(arity)]
    return list(zip(*columns, strict=True))


def orders(arity: int) -> list[tuple[int, ...]]:
    """Column orders that a join could ask for, at most six of them."""
    return list(permutations(range(arity)))[:: max(1, arity - 2) ** 3][:6]


def assert_holds(relation: Relation, rows: set[Row], probes: set[Row]) -> None:
    """The relation is this set, whichever way it is read."""
    arity = relation.arity
    assert len(relation) == len(rows)
    assert unpack(relation.rows(), arity) == sorted(rows)
    assert set(zip(*(c.tolist() for c in relation.columns()), strict=True)) == rows
    asked = run(probes | rows, arity)
    listed = unpack(asked.words, arity)
    assert [row for row, found in zip(listed, relation.contains(asked.words).tolist(), strict=True) if found] == sorted(rows)
    assert unpack(relation.new(asked.words), arity) == sorted(probes - rows)
    assert_novel(relation, rows, probes)
    assert_parts(relation, rows)


def assert_counted(relation: Relation, rows: set[Row], probes: set[Row]) -> None:
    """Also of several relations at once."""
    asked = [(relation, run(some, relation.arity).words) for some in (probes, rows, set[Row]())]
    assert how_many(ARRAYS, asked) == [len(probes & rows), len(rows), 0]


def assert_novel(relation: Relation, rows: set[Row], probes: set[Row]) -> None:
    """What is new among rows that come in parts, with repetitions and in no order."""
    known = sorted(rows)[: len(rows) // 2]
    parts = [[*sorted(probes, reverse=True), *known], [*known, *sorted(probes)[::2]]]
    found = relation.novel([words_of(part, relation.arity) for part in parts])
    for order, words in found.orders.items():
        assert unpack(words, relation.arity) == sorted(tuple(row[i] for i in order) for row in probes - rows)


def assert_parts(relation: Relation, rows: set[Row]) -> None:
    """The parts that joins read make up the set, in every column order, and each is sorted there."""
    for order in orders(relation.arity):
        seen: list[Row] = []
        for part, minus in relation.parts():
            read = unpack(part.in_order(order), relation.arity)
            assert read == sorted(set(read))
            gone = set(unpack(minus.in_order(order), relation.arity)) if minus is not None else set()
            assert gone <= set(read)
            seen += [row for row in read if row not in gone]
        assert sorted(seen) == sorted(tuple(row[i] for i in order) for row in rows)


@st.composite
def histories(draw: st.DrawFn) -> tuple[int, set[Row], list[Step]]:
    arity = draw(st.sampled_from([1, 2, 3, 5]))
    row = st.tuples(*[st.sampled_from(IDS if arity < 3 else IDS[:4] + IDS[-1:])] * arity)
    rows = st.sets(row, max_size=12)
    steps = st.tuples(st.sampled_from(["add", "remove"]), rows, st.booleans())
    return arity, draw(st.sets(row, max_size=30)), draw(st.lists(steps, min_size=1, max_size=6))


@pytest.mark.parametrize("fraction", [NEVER, SELDOM, ALWAYS])
@pytest.mark.parametrize("bitmap", [False, True])
def test_a_relation_is_a_set_after_every_change(fraction: int, bitmap: bool) -> None:
    @given(histories())
    @settings(max_examples=80)
    def law(history: tuple[int, set[Row], list[Step]]) -> None:
        arity, first, steps = history
        relation, rows = Relation(run(first, arity)), set(first)
        snapshots: list[tuple[Relation, set[Row]]] = []
        for kind, chosen, warm in steps:
            snapshots.append((relation, set(rows)))
            if warm:
                for order in orders(arity):
                    relation.base.in_order(order)
            if kind == "add":
                relation = relation.add(Run(ARRAYS, arity, relation.new(run(chosen, arity).words)))
                rows |= chosen
            else:
                gone = chosen & rows if chosen & rows else set(sorted(rows)[:2])
                relation = relation.remove(run(gone, arity))
                rows -= gone
            assert_holds(relation, rows, chosen)
            assert_counted(relation, rows, chosen)
        for snapshot, then in snapshots:
            assert_holds(snapshot, then, rows)
            assert unpack(relation.less(snapshot), arity) == sorted(rows - then)
            assert unpack(snapshot.less(relation), arity) == sorted(then - rows)

    with patched(MERGE_FRACTION=fraction, BITMAP_FROM=1 if bitmap else 1 << 16):
        law()


@pytest.mark.parametrize(("firsts", "seconds", "bitmap"), [(1000, 3, True), (1000, 900, False)])
def test_many_pairs_with_few_second_ids_are_told_apart_by_a_bitmap(firsts: int, seconds: int, bitmap: bool) -> None:
    old = {(i, i % seconds) for i in range(0, firsts, 3)}
    derived = [(i % firsts, i % seconds) for i in range(2 * firsts)]
    with patched(BITMAP_FROM=1000):
        found = Relation(run(old, 2)).novel([words_of(derived, 2)])
    assert unpack(found.words, 2) == sorted(set(derived) - old)
    assert ((1, 0) in found.orders) == bitmap
    assert unpack(found.in_order((1, 0)), 2) == sorted((b, a) for a, b in set(derived) - old)


def numbers(start: int, stop: int, step: int = 1) -> set[Row]:
    return {(i, i + 1) for i in range(start, stop, step)}


def test_a_small_change_shares_the_base() -> None:
    old = Relation(run(numbers(0, 4000, 2), 2))
    old.base.in_order((1, 0))
    new = old.add(run(numbers(1, 21, 2), 2)).remove(run(numbers(100, 120, 2), 2))
    assert new.base is old.base
    assert all(a is b for a, b in zip(new.base.orders.values(), old.base.orders.values(), strict=True))
    assert (len(old), len(new), new.plus and len(new.plus), new.minus and len(new.minus)) == (2000, 2000, 10, 10)
    assert new.nbytes < old.nbytes * 1.1
    assert_holds(new, (numbers(0, 4000, 2) | numbers(1, 21, 2)) - numbers(100, 120, 2), set())
    assert_holds(old, numbers(0, 4000, 2), set())


def test_what_was_removed_and_comes_back_leaves_no_trace() -> None:
    old = Relation(run(numbers(0, 4000), 2))
    there_and_back = old.remove(run(numbers(5, 9), 2)).add(run(numbers(5, 9), 2))
    assert (there_and_back.base, there_and_back.plus, there_and_back.minus) == (old.base, None, None)
    back_and_there = old.add(run(numbers(9000, 9004), 2)).remove(run(numbers(9000, 9004), 2))
    assert (back_and_there.base, back_and_there.plus, back_and_there.minus) == (old.base, None, None)


@pytest.mark.parametrize(("size", "merged"), [(100, False), (101, True)])
def test_runs_are_merged_when_they_pass_a_fraction_of_the_base(size: int, merged: bool) -> None:
    with patched(MERGE_FRACTION=32):
        old = Relation(run(numbers(0, 3200), 2))
        new = old.add(run(numbers(5000, 5000 + size), 2))
    assert (new.base is not old.base, new.plus is None) == (merged, merged)
    assert len(new) == 3200 + size


def test_a_merge_keeps_every_order_that_was_there() -> None:
    with patched(MERGE_FRACTION=ALWAYS):
        old = Relation(run({(i, 50 - i, i % 7) for i in range(50)}, 3))
        for order in [(2, 0, 1), (1, 2, 0)]:
            old.base.in_order(order)
        new = old.add(run({(100, 1, 2)}, 3)).remove(run({(0, 50, 0)}, 3))
    assert set(new.base.orders) == {(0, 1, 2), (2, 0, 1), (1, 2, 0)}
    assert unpack(new.base.orders[2, 0, 1], 3)[-1] == (6, 48, 2)
    assert (2, 100, 1) in unpack(new.base.orders[2, 0, 1], 3)


@pytest.mark.parametrize("position", [0, 1, 2])
@pytest.mark.parametrize("warm", [False, True])
def test_distinct_ids_of_a_column(position: int, warm: bool) -> None:
    rows = {(i % 5, i * i % 11, i % 2) for i in range(60)}
    part = run(rows, 3)
    if warm:
        part.in_order((position, *(i for i in range(3) if i != position)))
    assert part.distinct(position).tolist() == sorted({row[position] for row in rows})


@pytest.mark.parametrize("change", ["add", "remove"])
def test_changing_nothing_gives_the_same_relation(change: str) -> None:
    relation: Any = Relation(run({(1, 2)}, 2))
    assert getattr(relation, change)(run(set(), 2)) is relation
