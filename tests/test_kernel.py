"""The array vocabulary against plain Python, on every array module; and rule bodies against the reference."""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from inspect import signature
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import assert_same, everything
from device import Device, no_device
from evergraph import KnowledgeGraph, Program
from evergraph.engines import modules
from evergraph.engines import relation as relation_module
from evergraph.engines.arrays import U64, Array, Arrays, Words
from evergraph.engines.gpu.device import find_device
from evergraph.engines.gpu.engine import GpuEngine
from evergraph.engines.kernel import Kernel
from evergraph.engines.memory import MemoryEngine
from evergraph.engines.modules import Cupy, Numpy
from evergraph.engines.reference import ReferenceEngine
from evergraph.engines.relation import Relation, run_of
from evergraph.engines.table import Table
from evergraph.plan.compile import compile_program
from evergraph.plan.model import Key
from evergraph.rules.model import TRIPLE, Atom, Rule
from evergraph.terms import Dictionary
from evergraph.values import Values
from strategies import EX, facts, ontology_updates, rules

ENGINES = Path(modules.__file__).parent


MODULES = {"numpy": np, "stand-in": Device(), "cupy": None if no_device() else find_device()}
SIZES = {"small": 4096, "many": 2}
"""Values of MANY: with the second the ways for large inputs are taken by small ones."""

in_all = pytest.mark.parametrize("module", ["numpy", "stand-in", pytest.param("cupy", marks=pytest.mark.gpu)])
in_both_sizes = pytest.mark.parametrize("size", SIZES)


@contextmanager
def patched(module: Any, **values: int) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in values.items():
            patch.setattr(module, name, value)
        yield


def words_of(rows: list[tuple[int, ...]], arity: int, arrays: Arrays | None = None) -> Words:
    arrays = arrays or Arrays()
    return arrays.pack([column([row[i] for row in rows], arrays) for i in range(arity)], len(rows))


def rows_of(words: Words, arity: int, arrays: Arrays | None = None) -> list[tuple[int, ...]]:
    arrays = arrays or Arrays()
    return list(zip(*(arrays.module.host(arrays.column(words, i)).tolist() for i in range(arity)), strict=True))


def column(values: list[int], arrays: Arrays | None = None) -> Array:
    """Ids where the array module has its arrays."""
    return (arrays or Arrays()).xp.asarray(np.array(values, U64))


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


@in_all
def test_sets_of_rows(module: str) -> None:
    arrays = Arrays(MODULES[module])

    @given(row_lists())
    @settings(max_examples=80)
    def law(case: tuple[int, list[tuple[int, ...]], list[tuple[int, ...]]]) -> None:
        arity, left, right = case
        union = arrays.unique([words_of(left, arity, arrays), words_of(right, arity, arrays)])
        assert rows_of(union, arity, arrays) == sorted({*left, *right})
        a, b = arrays.unique([words_of(left, arity, arrays)]), words_of(sorted(set(right) - set(left)), arity, arrays)
        assert rows_of(arrays.merge(a, b), arity, arrays) == sorted({*left, *right})
        found = arrays.contains(a, words_of(right, arity, arrays)).tolist()
        assert found == [row in set(left) for row in right]

    law()


@in_all
@in_both_sizes
def test_distinct_ids_and_their_ranks(module: str, size: str) -> None:
    arrays = Arrays(MODULES[module])

    @given(st.lists(ids, min_size=1, max_size=40), st.booleans())
    @settings(max_examples=60)
    def law(values: list[int], small: bool) -> None:
        values = [v % 50 for v in values] if small else values
        distinct = arrays.distinct(column(values, arrays))
        assert distinct.tolist() == sorted(set(values))
        assert distinct.dtype == U64
        assert arrays.distinct_sorted(column(sorted(values), arrays)).tolist() == sorted(set(values))
        ranks = arrays.module.rank(distinct, column(values, arrays))
        assert ranks.tolist() == [sorted(set(values)).index(v) for v in values]

    with patched(modules, MANY=SIZES[size]):
        law()


@pytest.mark.parametrize(("radix", "kind"), [(1 << 16, np.uint16), (2, np.int64)])
def test_ranks_take_16_bits_when_that_suffices(radix: int, kind: type) -> None:
    with patched(modules, RADIX=radix):
        assert Arrays().module.rank(column([4, 5, 9]), column([9, 4])).dtype == kind


class Watched(Arrays):
    """Notes which ways are taken over NumPy."""

    def __init__(self) -> None:
        super().__init__()
        self.module = Numpy()
        self.taken: list[str] = []
        for name in ("stable_order", "sort", "_ranges_sorted"):
            self._watch(name)

    def _watch(self, name: str) -> None:
        real = getattr(self.module, name)

        def call(*args: Any) -> Any:
            self.taken.append(name)
            return real(*args)

        setattr(self.module, name, call)


def test_distinct_ids_by_marking_or_by_sorting() -> None:
    with patched(modules, MANY=4):
        for values, way in (([5, 1, 5, 0, 3], []), ([5, 1, 5, 0, 41], ["sort"]), ([5, 1, 5], ["sort"])):
            arrays = Watched()
            assert arrays.distinct(column(values)).tolist() == sorted(set(values))
            assert arrays.taken == way


@in_all
@pytest.mark.parametrize("radix", [1 << 16, 1])
def test_transposed_pairs(module: str, radix: int) -> None:
    @given(st.sets(st.tuples(ids, st.one_of(ids, st.integers(0, 2))), max_size=40))
    @settings(max_examples=60)
    def law(pairs: set[tuple[int, int]]) -> None:
        arrays = Arrays(MODULES[module])
        (word,) = words_of(sorted(pairs), 2, arrays)
        assert rows_of((arrays.transpose(word),), 2, arrays) == sorted((b, a) for a, b in pairs)

    for many in SIZES.values():
        with patched(modules, MANY=many, RADIX=radix):
            law()


def test_pairs_with_few_distinct_seconds_are_transposed_by_radix() -> None:
    few = [(i, i % 3) for i in range(20)]
    many = [(i, 19 - i) for i in range(20)]
    with patched(modules, MANY=8):
        for pairs, ways in ((few, ["stable_order"]), (many, [])):
            arrays = Watched()
            assert rows_of((arrays.transpose(words_of(pairs, 2)[0]),), 2) == sorted((b, a) for a, b in pairs)
            assert arrays.taken == ways


# -- searching ---------------------------------------------------------------------------------------------------------


@in_all
@in_both_sizes
def test_ranges_of_keys_of_every_length(module: str, size: str) -> None:
    arrays = Arrays(MODULES[module])

    @given(row_lists(), st.data())
    @settings(max_examples=80)
    def law(case: tuple[int, list[tuple[int, ...]], list[tuple[int, ...]]], data: st.DataObject) -> None:
        arity, left, keys = case
        rows = sorted(set(left))
        width = data.draw(st.integers(1, arity))
        asked = [column([key[i] for key in keys], arrays) for i in range(width)]
        low, high = arrays.find_ranges(words_of(rows, arity, arrays), asked, len(keys))
        prefixes = [row[:width] for row in rows]
        assert low.tolist() == [bisect_left(prefixes, key[:width]) for key in keys]
        assert high.tolist() == [bisect_right(prefixes, key[:width]) for key in keys]

    with patched(modules, MANY=SIZES[size]):
        law()


@pytest.mark.parametrize(
    ("rows", "keys", "way"),
    [
        ([0, 1, 1, 5], [5, 1, 9, 0, 1, 2], []),
        ([0, 1, 1, 5, 999], [0, 1, 5, 7, 999, 1000], ["_ranges_sorted"]),
        ([0, 1, 1, 5, 999], [999, 7, 0, 1, 5, 1], ["_ranges_sorted"]),
        ([0, 1, 1, 5], [5, 1], ["_ranges_sorted"]),
        ([], [5, 1, 0, 7, 3, 3], []),
    ],
    ids=["pointers", "sorted keys", "unsorted keys", "few keys", "no rows"],
)
def test_ranges_by_pointers_or_by_search(rows: list[int], keys: list[int], way: list[str]) -> None:
    arrays = Watched()
    pairs = [(first, second) for second, first in enumerate(rows)]
    with patched(modules, MANY=4):
        low, high = arrays.find_ranges(words_of(pairs, 2), [column(keys)], len(keys))
    assert low.tolist() == [bisect_left(rows, k) for k in keys]
    assert high.tolist() == [bisect_right(rows, k) for k in keys]
    assert arrays.taken == way


@in_all
@pytest.mark.parametrize("keys", [[1, 3, 5, 7, 9, 9], [9, 1, 5, 3, 9, 7]], ids=["sorted", "unsorted"])
def test_membership_of_many_keys(module: str, keys: list[int]) -> None:
    arrays = Arrays(MODULES[module])
    with patched(modules, MANY=4):
        found = arrays.contains((column([1, 2, 5, 9], arrays),), (column(keys, arrays),))
    assert found.tolist() == [k in (1, 2, 5, 9) for k in keys]


@in_all
def test_nothing_is_in_an_empty_set(module: str) -> None:
    arrays = Arrays(MODULES[module])
    for arity in (1, 3):
        assert arrays.contains(arrays.empty(arity), words_of([(1,) * arity], arity, arrays)).tolist() == [False]
        assert arrays.contains(words_of([(1,) * arity], arity, arrays), arrays.empty(arity)).tolist() == []


@in_all
def test_ranges_expand_to_their_elements(module: str) -> None:
    arrays = Arrays(MODULES[module])

    @given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 4)), max_size=12))
    @settings(max_examples=60)
    def law(ranges: list[tuple[int, int]]) -> None:
        low = arrays.xp.asarray(np.array([start for start, _ in ranges], np.int64))
        high = arrays.xp.asarray(np.array([start + size for start, size in ranges], np.int64))
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
        columns = [column(list(c), arrays) for c in zip(*part, strict=True)] if part else [column([], arrays)] * arity
        return run_of(arrays, columns, len(part))

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
        listed = rows_of(words, arity, arrays) if arity else [()] * len(words[0])
        found.update((TRIPLE, row[0], key, row[1]) if isinstance(key, int) else (key, *row) for row in listed)

    Kernel(arrays, plan.values).run(encoded, [relations] * len(encoded.body), relations, emit)
    slow = ReferenceEngine(plan)
    slow.facts = {(TRIPLE, r[0], key, r[1]) if isinstance(key, int) else (key, *r) for key, part in rows.items() for r in part}
    return found, set(slow._heads(encoded))


@in_all
@in_both_sizes
def test_a_rule_over_relations_with_runs_gives_what_the_reference_gives(module: str, size: str) -> None:
    @given(rules(), st.lists(facts(), min_size=4, max_size=30), st.lists(facts(), max_size=10))
    @settings(max_examples=150)
    def law(rule: Rule, present: list[Atom], removed: list[Atom]) -> None:
        got, want = heads_of(rule, present, removed, MODULES[module])
        assert got == want, str(Program((rule,)))

    with patched(modules, MANY=SIZES[size]), patched(relation_module, MERGE_FRACTION=0):
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
    with patched(modules, MANY=SIZES[size]), patched(relation_module, MERGE_FRACTION=0):
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


def test_a_variable_that_nobody_reads_any_more_is_not_carried_along() -> None:
    """Of a table with ?x and ?y, the join by ?y takes ?x alone."""
    taken: list[int] = []

    def take(table: Table, *given: Any, real: Any = Table.take) -> Table:
        taken.append(len(table.columns))
        return real(table, *given)

    kg = KnowledgeGraph(Program.parse("far(?x, ?z) :- near(?x, ?y), next(?y, ?z) ."))
    with patch.object(Table, "take", take):
        kg.update(insert="near(1, 2) . near(3, 2) . near(4, 5) . next(2, 6) . next(2, 7) . next(5, 8) .")
    assert kg.counts()["far"] == 5 and taken == [1]


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
    limit = frozenset([names["r"]])
    kernel.run(encoded, [relations] * 2, relations, lambda k, w: found.append((k, rows_of(w, 2))), limit)
    assert found == [(names["r"], [(names["a"], names["b"])])]
    assert kernel.derivations == 1


# -- another array module ----------------------------------------------------------------------------------------------

HOST = {"base.py": {"concatenate", "full"}, "reference.py": {"array"}, "equality/expansion.py": {"bincount", "ones", "unique"}}
"""Functions of NumPy that a file may call, on arrays that readers and users have, which are on the host."""
TYPES = {"uint16", "uint32", "uint64", "int64"}
ELSEWHERE = {"modules.py", "gpu", "spark"}
"""Where the modules are told apart, and what is on the host by its nature."""
KERNEL = sorted(
    file.relative_to(ENGINES).as_posix()
    for file in ENGINES.rglob("*.py")
    if file.relative_to(ENGINES).parts[0] not in ELSEWHERE
)


@given(ontology_updates)
@settings(max_examples=25)
def test_the_memory_engine_runs_on_another_array_module(steps: list[list[Atom]]) -> None:
    """One that refuses what CuPy refuses."""
    other, plain = KnowledgeGraph("rhodf"), KnowledgeGraph("rhodf")
    xp = Device()
    other._engine = GpuEngine(other._plan, MemoryEngine, xp, few=-1)
    for atoms in steps:
        other.update(insert=atoms)
        plain.update(insert=atoms)
        assert_same(everything(other), everything(plain), str(steps))
    assert xp.launches


@pytest.mark.parametrize("file", KERNEL)
def test_numpy_is_named_for_its_types_only(file: str) -> None:
    tree = ast.parse((ENGINES / file).read_text(encoding="utf-8"))
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "np"
    }
    assert used <= TYPES | HOST.get(file, set())


@pytest.mark.parametrize("file", KERNEL)
def test_nothing_else_of_numpy_is_named(file: str) -> None:
    """By no other name than `np`, so that the above sees it all."""
    tree = ast.parse((ENGINES / file).read_text(encoding="utf-8"))
    imported = [name.asname or name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names]
    assert not any(isinstance(node, ast.ImportFrom) and node.module == "numpy" for node in ast.walk(tree))
    assert "numpy" not in imported


def test_both_modules_have_the_same_methods() -> None:
    """What the kernel asks of one it may ask of the other, by the same arguments."""

    def methods(of: type) -> dict[str, list[str]]:
        found = {name: one for name, one in vars(of).items() if callable(one) and not name.startswith("_")}
        return {name: list(signature(one).parameters) for name, one in found.items()}

    assert methods(Numpy) == methods(Cupy)
