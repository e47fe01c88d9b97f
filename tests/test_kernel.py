"""The array vocabulary against plain Python, on NumPy and on a stand-in for CuPy; and rule bodies against the reference."""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import assert_same, everything
from evergraph import KnowledgeGraph, Program
from evergraph.engines import arrays as arrays_module
from evergraph.engines import relation as relation_module
from evergraph.engines.arrays import U64, Array, Arrays, Words
from evergraph.engines.kernel import Kernel
from evergraph.engines.memory import MemoryEngine
from evergraph.engines.reference import ReferenceEngine
from evergraph.engines.relation import Relation, run_of
from evergraph.plan.compile import compile_program
from evergraph.plan.model import Key
from evergraph.rules.model import TRIPLE, Atom, Rule
from evergraph.terms import Dictionary
from evergraph.values import Values
from strategies import EX, facts, ontology_updates, rules

ENGINES = Path(arrays_module.__file__).parent


class StandIn:
    """NumPy under another name, so that the code takes the ways it keeps for CuPy; it notes what it is asked for."""

    def __init__(self) -> None:
        self.asked: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        self.asked.add(name)
        return getattr(np, name)

    def argsort(self, values: Array) -> Array:
        """CuPy's only order is a stable one."""
        self.asked.add("argsort")
        return np.argsort(values, kind="stable")

    def lexsort(self, keys: Array) -> Array:
        """CuPy takes one array of keys, not a tuple."""
        self.asked.add("lexsort")
        assert isinstance(keys, np.ndarray)
        return np.lexsort(keys)


MODULES = {"numpy": np, "stand-in": StandIn()}
SIZES = {"small": 4096, "many": 2}
"""Values of MANY: with the second the ways for large inputs are taken by small ones."""

in_both = pytest.mark.parametrize("module", MODULES)
in_both_sizes = pytest.mark.parametrize("size", SIZES)


@contextmanager
def patched(module: Any, **values: int) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in values.items():
            patch.setattr(module, name, value)
        yield


def words_of(rows: list[tuple[int, ...]], arity: int) -> Words:
    return Arrays().pack([np.array([row[i] for row in rows], U64) for i in range(arity)], len(rows))


def rows_of(words: Words, arity: int) -> list[tuple[int, ...]]:
    return list(zip(*(Arrays().column(words, i).tolist() for i in range(arity)), strict=True))


def column(values: list[int]) -> Array:
    return np.array(values, U64)


ids = st.one_of(st.integers(0, 6), st.sampled_from([40, 2**31, 2**32 - 2, 2**32 - 1]))
low_ids = st.integers(0, 9)


@st.composite
def row_lists(draw: st.DrawFn) -> tuple[int, list[tuple[int, ...]], list[tuple[int, ...]]]:
    """An arity and two lists of rows that share some."""
    arity = draw(st.sampled_from([1, 2, 3, 4, 5]))
    rows = st.lists(st.tuples(*[ids] * arity), max_size=25)
    first, second = draw(rows), draw(rows)
    return arity, first, second + first[: draw(st.integers(0, 5))]


# -- packing and sorting -----------------------------------------------------------------------------------------------


@given(row_lists())
@settings(max_examples=50)
def test_packed_rows_unpack_and_sort_as_their_columns(case: tuple[int, list[tuple[int, ...]], list[tuple[int, ...]]]) -> None:
    arity, rows, _ = case
    assert rows_of(words_of(rows, arity), arity) == rows
    packed = list(zip(*(w.tolist() for w in words_of(rows, arity)), strict=True))
    assert [row for _, row in sorted(zip(packed, rows, strict=True))] == sorted(rows)


@pytest.mark.parametrize(
    ("columns", "wanted"), [([], [0, 0]), ([U64(3)], [3 << 32] * 2), ([U64(1), U64(2)], [(1 << 32) + 2] * 2)]
)
def test_scalars_stand_for_whole_columns(columns: list[Any], wanted: list[int]) -> None:
    (word,) = Arrays().pack(columns, 2)
    assert word.tolist() == wanted


@in_both
def test_sets_of_rows(module: str) -> None:
    arrays = Arrays(MODULES[module])

    @given(row_lists())
    @settings(max_examples=80)
    def law(case: tuple[int, list[tuple[int, ...]], list[tuple[int, ...]]]) -> None:
        arity, left, right = case
        union = arrays.unique([words_of(left, arity), words_of(right, arity)])
        assert rows_of(union, arity) == sorted({*left, *right})
        a, b = arrays.unique([words_of(left, arity)]), words_of(sorted(set(right) - set(left)), arity)
        assert rows_of(arrays.merge(a, b), arity) == sorted({*left, *right})
        found = arrays.contains(a, words_of(right, arity)).tolist()
        assert found == [row in set(left) for row in right]

    law()


@in_both
@in_both_sizes
def test_distinct_ids_and_their_ranks(module: str, size: str) -> None:
    arrays = Arrays(MODULES[module])

    @given(st.lists(ids, min_size=1, max_size=40), st.booleans())
    @settings(max_examples=60)
    def law(values: list[int], small: bool) -> None:
        values = [v % 50 for v in values] if small else values
        distinct = arrays.distinct(column(values))
        assert distinct.tolist() == sorted(set(values))
        assert distinct.dtype == U64
        assert arrays.distinct_sorted(column(sorted(values))).tolist() == sorted(set(values))
        ranks = arrays.rank(distinct, column(values))
        assert ranks.tolist() == [sorted(set(values)).index(v) for v in values]

    with patched(arrays_module, MANY=SIZES[size]):
        law()


@pytest.mark.parametrize(("radix", "kind"), [(1 << 16, np.uint16), (2, np.int64)])
def test_ranks_take_16_bits_when_that_suffices(radix: int, kind: type) -> None:
    with patched(arrays_module, RADIX=radix):
        assert Arrays().rank(column([4, 5, 9]), column([9, 4])).dtype == kind


class Watched(Arrays):
    """Notes which ways are taken."""

    def __init__(self, xp: Any) -> None:
        super().__init__(xp)
        self.taken: list[str] = []
        for name in ("stable_order", "sort"):
            self._watch(self.differences, name)
        for name in ("_prefix_ranges_sorted", "_contains_sorted"):
            self._watch(self, name)

    def _watch(self, owner: Any, name: str) -> None:
        real = getattr(owner, name)

        def call(*args: Any) -> Any:
            self.taken.append(name)
            return real(*args)

        setattr(owner, name, call)


@in_both
def test_distinct_ids_by_marking_or_by_sorting(module: str) -> None:
    with patched(arrays_module, MANY=4):
        for values, way in (([5, 1, 5, 0, 3], []), ([5, 1, 5, 0, 41], ["sort"]), ([5, 1, 5], ["sort"])):
            arrays = Watched(MODULES[module])
            assert arrays.distinct(column(values)).tolist() == sorted(set(values))
            assert arrays.taken == way


@in_both
@pytest.mark.parametrize("radix", [1 << 16, 1])
def test_transposed_pairs(module: str, radix: int) -> None:
    @given(st.sets(st.tuples(ids, st.one_of(ids, st.integers(0, 2))), max_size=40))
    @settings(max_examples=60)
    def law(pairs: set[tuple[int, int]]) -> None:
        (word,) = words_of(sorted(pairs), 2)
        turned = Arrays(MODULES[module]).transpose(word)
        assert rows_of((turned,), 2) == sorted((b, a) for a, b in pairs)

    for many in SIZES.values():
        with patched(arrays_module, MANY=many, RADIX=radix):
            law()


@in_both
def test_pairs_with_few_distinct_seconds_are_transposed_by_radix(module: str) -> None:
    few = [(i, i % 3) for i in range(20)]
    many = [(i, 19 - i) for i in range(20)]
    with patched(arrays_module, MANY=8):
        for pairs, ways in ((few, ["stable_order"]), (many, [])):
            arrays = Watched(MODULES[module])
            assert rows_of((arrays.transpose(words_of(pairs, 2)[0]),), 2) == sorted((b, a) for a, b in pairs)
            assert arrays.taken == ways


# -- searching ---------------------------------------------------------------------------------------------------------


@in_both
@in_both_sizes
def test_ranges_of_keys_of_every_length(module: str, size: str) -> None:
    arrays = Arrays(MODULES[module])

    @given(row_lists(), st.data())
    @settings(max_examples=80)
    def law(case: tuple[int, list[tuple[int, ...]], list[tuple[int, ...]]], data: st.DataObject) -> None:
        arity, left, keys = case
        rows = sorted(set(left))
        width = data.draw(st.integers(1, arity))
        asked = [np.array([key[i] for key in keys], U64) for i in range(width)]
        low, high = arrays.find_ranges(words_of(rows, arity), asked, len(keys))
        prefixes = [row[:width] for row in rows]
        assert low.tolist() == [bisect_left(prefixes, key[:width]) for key in keys]
        assert high.tolist() == [bisect_right(prefixes, key[:width]) for key in keys]

    with patched(arrays_module, MANY=SIZES[size]):
        law()


@in_both
@pytest.mark.parametrize(
    ("rows", "keys", "way"),
    [
        ([0, 1, 1, 5], [5, 1, 9, 0, 1, 2], []),
        ([0, 1, 1, 5, 999], [0, 1, 5, 7, 999, 1000], ["_prefix_ranges_sorted"]),
        ([0, 1, 1, 5, 999], [999, 7, 0, 1, 5, 1], ["_prefix_ranges_sorted"]),
        ([0, 1, 1, 5], [5, 1], ["_prefix_ranges_sorted"]),
        ([], [5, 1, 0, 7, 3, 3], []),
    ],
    ids=["pointers", "sorted keys", "unsorted keys", "few keys", "no rows"],
)
def test_ranges_by_pointers_or_by_search(module: str, rows: list[int], keys: list[int], way: list[str]) -> None:
    arrays = Watched(MODULES[module])
    pairs = [(first, second) for second, first in enumerate(rows)]
    with patched(arrays_module, MANY=4):
        low, high = arrays.find_ranges(words_of(pairs, 2), [column(keys)], len(keys))
    assert low.tolist() == [bisect_left(rows, k) for k in keys]
    assert high.tolist() == [bisect_right(rows, k) for k in keys]
    assert arrays.taken == way


@in_both
@pytest.mark.parametrize("keys", [[1, 3, 5, 7, 9, 9], [9, 1, 5, 3, 9, 7]], ids=["sorted", "unsorted"])
def test_membership_of_many_keys(module: str, keys: list[int]) -> None:
    with patched(arrays_module, MANY=4):
        found = Arrays(MODULES[module]).contains((column([1, 2, 5, 9]),), (column(keys),))
    assert found.tolist() == [k in (1, 2, 5, 9) for k in keys]


@in_both
def test_nothing_is_in_an_empty_set(module: str) -> None:
    arrays = Arrays(MODULES[module])
    for arity in (1, 3):
        assert arrays.contains(arrays.empty(arity), words_of([(1,) * arity], arity)).tolist() == [False]
        assert arrays.contains(words_of([(1,) * arity], arity), arrays.empty(arity)).tolist() == []


@in_both
def test_ranges_expand_to_their_elements(module: str) -> None:
    arrays = Arrays(MODULES[module])

    @given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 4)), max_size=12))
    @settings(max_examples=60)
    def law(ranges: list[tuple[int, int]]) -> None:
        low = np.array([start for start, _ in ranges], np.int64)
        high = np.array([start + size for start, size in ranges], np.int64)
        number, index = arrays.expand(low, high)
        wanted = [(n, i) for n, (start, size) in enumerate(ranges) for i in range(start, start + size)]
        assert list(zip(number.tolist(), index.tolist(), strict=True)) == wanted

    law()


# -- rule bodies -------------------------------------------------------------------------------------------------------

Rows = dict[Key, set[tuple[int, ...]]]


def by_key(atoms: list[Atom], dictionary: Dictionary) -> Rows:
    out: Rows = {}
    for atom in atoms:
        row = tuple(dictionary.encode([str(t) for t in atom.terms]).tolist())
        key: Key = row[1] if atom.relation == TRIPLE else atom.relation
        out.setdefault(key, set()).add((row[0], row[2]) if atom.relation == TRIPLE else row)
    return out


def relation(arrays: Arrays, rows: set[tuple[int, ...]], gone: set[tuple[int, ...]]) -> Relation:
    """These rows in three parts: a base, a run that was added, and a run that was removed again."""
    arity = len(next(iter(rows | gone)))
    listed = sorted(rows)
    base, plus = {*listed[::2], *gone}, set(listed[1::2])

    def run(part: set[tuple[int, ...]]) -> Any:
        return run_of(arrays, [np.array(c, U64) for c in zip(*part, strict=True)] if part else [column([])] * arity, len(part))

    return Relation(run(base)).add(run(plus)).remove(run(gone))


def heads_of(rule: Rule, present: list[Atom], removed: list[Atom], xp: Any) -> tuple[set[Any], set[Any]]:
    """What the kernel and what the reference engine say follows from the facts by one rule."""
    dictionary = Dictionary()
    plan = compile_program(Program((rule,)), dictionary, Values(dictionary))
    (encoded,) = plan.rules[0]
    rows, gone = by_key(present, dictionary), by_key(removed, dictionary)
    arrays = Arrays(xp)
    relations: dict[Key, Relation] = {}
    for key in rows.keys() | gone.keys():
        relations[key] = relation(arrays, rows.get(key, set()), gone.get(key, set()) - rows.get(key, set()))
    found: set[Any] = set()

    def emit(key: Key, words: Words) -> None:
        arity = len(encoded.head.args)
        listed = rows_of(words, arity) if arity else [()] * len(words[0])
        found.update((TRIPLE, row[0], key, row[1]) if isinstance(key, int) else (key, *row) for row in listed)

    Kernel(arrays, plan.values).run(encoded, [relations] * len(encoded.body), relations, emit)
    slow = ReferenceEngine(plan)
    slow.facts = {(TRIPLE, r[0], key, r[1]) if isinstance(key, int) else (key, *r) for key, part in rows.items() for r in part}
    return found, set(slow._heads(encoded))


@in_both
@in_both_sizes
def test_a_rule_over_relations_with_runs_gives_what_the_reference_gives(module: str, size: str) -> None:
    @given(rules(), st.lists(facts(), min_size=4, max_size=30), st.lists(facts(), max_size=10))
    @settings(max_examples=150)
    def law(rule: Rule, present: list[Atom], removed: list[Atom]) -> None:
        got, want = heads_of(rule, present, removed, MODULES[module])
        assert got == want, str(Program((rule,)))

    with patched(arrays_module, MANY=SIZES[size]), patched(relation_module, MERGE_FRACTION=0):
        law()


JOINS = [
    "out(?x, ?z) :- node(?x), edge(?x, ?z) .",
    "out(?x, ?z) :- node(?x), edge(?z, ?x) .",
    "out(?x) :- node(?x), edge(?z, ?x) .",
    "out(?x) :- node(?x), edge(?x, ?x) .",
    "out(?x) :- edge(?x, ?x) .",
    "out(?z) :- edge(?z, ex:n1) .",
    "out(?z) :- edge(?z, ?y) .",
    "out(?y, ?w) :- node(?x), wide(?y, ?x, ?w) .",
    "out(?y) :- node(?x), wide(?y, ?x, ?y) .",
    "out(?y, ?w) :- node(?x), node(?z), wide(?x, ?z, ?w), edge(?w, ?y) .",
    "out(?x, ?y) :- edge(?x, ?y), NOT edge(?y, ?x), NOT wide(?x, ?y, ?x) .",
    "out(?x, ?p) :- node(?x), [?p, ex:sub, ?q], [?z, ?p, ?x] .",
    "out(?x, ?q, ?y) :- [?p, ex:sub, ?q], [?x, ?p, ?y], NOT [?y, ?q, ?x] .",
]


def dense(seed: int) -> tuple[list[Atom], list[Atom]]:
    """Facts about few names, so that joins match often, and twice as many that were removed."""
    random = Random(seed)
    names = [f"<{EX}n{i}>" for i in range(9)]

    def draw(relation: str, arity: int, count: int) -> list[Atom]:
        return [Atom(relation, tuple(random.choices(names, k=arity))) for _ in range(count)]

    schema = [Atom(TRIPLE, (a, f"<{EX}sub>", b)) for a, b in zip(names, names[2:], strict=False)]
    nodes = [Atom("node", (name,)) for name in names[::2]]
    kinds = (("edge", 2, 18), ("wide", 3, 40), (TRIPLE, 3, 40))
    present = [fact for kind in kinds for fact in draw(*kind)]
    removed = [fact for name, arity, count in kinds for fact in draw(name, arity, 2 * count)]
    return present + schema + nodes, removed


@in_both_sizes
@pytest.mark.parametrize("text", JOINS)
def test_joins_leave_out_what_was_removed(text: str, size: str) -> None:
    (rule,) = Program.parse(f"@prefix ex: <{EX}> .\n{text}").rules
    with patched(arrays_module, MANY=SIZES[size]), patched(relation_module, MERGE_FRACTION=0):
        answers = [heads_of(rule, *dense(seed), np) for seed in range(4)]
    assert [got for got, _ in answers] == [want for _, want in answers]
    assert any(want for _, want in answers)


def test_a_variable_that_nothing_asks_for_is_not_expanded() -> None:
    dictionary = Dictionary()
    (encoded,) = compile_program(Program.parse("out(?x) :- node(?x), edge(?x, ?y) ."), dictionary, None).rules[0]
    edges = {(x, y) for x in range(5) for y in range(20)}
    with patched(relation_module, MERGE_FRACTION=0):
        for gone in (set(), {(x, y) for x, y in edges if x == 1 or y % 2}):
            relations: dict[Key, Relation] = {
                "node": relation(Arrays(), {(x,) for x in range(10)}, set()),
                "edge": Relation(run_of(Arrays(), [column([e[i] for e in edges]) for i in range(2)], len(edges))),
            }
            relations["edge"] = relations["edge"].remove(
                run_of(Arrays(), [column([e[i] for e in gone]) for i in range(2)], len(gone))
            )
            kernel, found = Kernel(Arrays()), []
            kernel.run(encoded, [relations] * 2, relations, lambda _, words, found=found: found.extend(rows_of(words, 1)))
            assert sorted(found) == sorted({(x,) for x, y in edges - gone})
            assert kernel.derivations == len(found)


@pytest.mark.parametrize(
    ("rule", "wanted"),
    [
        ("out(?x) :- wide(?x, ?y, ?x, ?z, ?y) .", {(1,), (2,)}),
        ("out(?x) :- wide(?x, 2, ?y, 4, ?z) .", {(1,)}),
        ("out(?z) :- key(?x, ?y, ?w), wide(?x, ?y, ?w, ?v, ?z) .", {(2,), (5,)}),
        ("out(?x, ?z) :- wide(?x, ?y, ?z, ?v, ?u), NOT key(?x, ?y, ?z) .", {(2, 2), (3, 7)}),
        ("out(?x) :- wide(?x, ?y, ?w, ?v, ?u), wide(?u, ?a, ?b, ?c, ?d) .", {(1,), (2,)}),
    ],
)
def test_wide_rows(rule: str, wanted: set[tuple[int, ...]]) -> None:
    kg = KnowledgeGraph(Program.parse(rule))
    kg.update(
        insert="wide(1, 2, 1, 4, 2) .\nwide(2, 3, 2, 4, 3) .\nwide(1, 2, 3, 6, 5) .\nwide(3, 9, 7, 6, 5) .\n"
        "key(1, 2, 1) .\nkey(1, 2, 3) .\nkey(8, 8, 8) ."
    )
    assert {tuple(int(term) for term in row) for row in kg.relation("out")} == wanted


def test_a_limit_on_head_predicates_drops_the_others() -> None:
    dictionary = Dictionary()
    rule = Program.parse(f"[?x, ?q, ?y] :- [?p, <{EX}sub>, ?q], [?x, ?p, ?y] .").rules[0]
    (encoded,) = compile_program(Program((rule,)), dictionary, None).rules[0]
    names = {n: int(dictionary.encode([f"<{EX}{n}>"])[0]) for n in ("sub", "p", "q", "r", "a", "b")}
    relations: dict[Key, Relation] = {
        names["sub"]: relation(Arrays(), {(names["p"], names["q"]), (names["p"], names["r"])}, set()),
        names["p"]: relation(Arrays(), {(names["a"], names["b"])}, set()),
    }
    found: list[tuple[Key, list[tuple[int, ...]]]] = []
    kernel = Kernel(Arrays())
    kernel.run(encoded, [relations] * 2, relations, lambda k, w: found.append((k, rows_of(w, 2))), column([names["r"]]))
    assert found == [(names["r"], [(names["a"], names["b"])])]
    assert kernel.derivations == 1


# -- another array module ----------------------------------------------------------------------------------------------

CUPY_HAS = {
    "arange", "argsort", "asarray", "bincount", "concatenate", "cumsum", "empty", "empty_like", "flatnonzero", "full",
    "lexsort", "minimum", "not_equal", "ones", "searchsorted", "sort", "stack", "where", "zeros",
}  # fmt: skip
"""Functions of CuPy 13 that take what the code gives them."""

DTYPES = {"uint16", "uint64", "int64"}
NUMPY_USES = {
    "kernel.py": DTYPES,
    "relation.py": DTYPES,
    "fixpoint.py": DTYPES,
    "shard.py": DTYPES,
    "arrays.py": DTYPES,
    "memory.py": {*DTYPES, "array", "asarray"},
}
"""Attributes of NumPy that a file may name outside `Differences`: types, and two functions where the memory engine ends."""


@given(ontology_updates)
@settings(max_examples=25)
def test_the_memory_engine_runs_on_another_array_module(steps: list[list[Atom]]) -> None:
    xp = StandIn()
    other, plain = KnowledgeGraph("rhodf"), KnowledgeGraph("rhodf")
    other._engine = MemoryEngine(other._plan, xp)
    for atoms in steps:
        other.update(insert=atoms)
        plain.update(insert=atoms)
        assert_same(everything(other), everything(plain), str(steps))
    assert xp.asked <= CUPY_HAS


@pytest.mark.parametrize("file", NUMPY_USES)
def test_numpy_is_named_for_its_types_only(file: str) -> None:
    tree = ast.parse((ENGINES / file).read_text(encoding="utf-8"))
    inside = {
        id(node)
        for found in ast.walk(tree)
        if isinstance(found, ast.ClassDef) and found.name == "Differences"
        for node in ast.walk(found)
    }
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "np"
        and id(node) not in inside
    }
    assert used <= NUMPY_USES[file]
