"""The store: what is saved is what is opened, in process, under every name, and a failed update leaves nothing."""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from conftest import assert_same, everything
from evergraph import KnowledgeGraph, Program, UserError
from evergraph.engines.base import Which
from evergraph.rules.model import TRIPLE, Atom
from evergraph.rules.printer import print_atom
from evergraph.store import Store
from evergraph.store.layout import FACTS
from evergraph.store.log import TABLES
from stores import CHANGING, FAMILY, IS_A, assert_equal, changes_of, files, made, paths, replayed, triple
from strategies import CLASSES, NAMES, NUMBERS, dense_changes, facts, layered_programs, programs

WIDE = """
five(?a, ?b, ?c, ?d, ?e) :- wide(?a, ?b, ?c), edge(?c, ?d), edge(?d, ?e) .
four(?a, ?b, ?c, ?d) :- five(?a, ?b, ?c, ?d, ?e), NOT odd(?e) .
none() :- node(?x), NOT flag() .
"""
few = settings(max_examples=50, phases=[Phase.generate])


@st.composite
def wide_facts(draw: st.DrawFn) -> Atom:
    """Facts of the relations of the random programs, and of those with no, four and five arguments."""
    name, arity = draw(st.sampled_from([("flag", 0), ("none", 0), ("four", 4), ("five", 5)]))
    return Atom(name, tuple(draw(st.sampled_from(NAMES[:3] + CLASSES + NUMBERS)) for _ in range(arity)))


wide_updates = st.lists(st.lists(st.one_of(facts(), facts(), wide_facts()), min_size=1, max_size=8), min_size=1, max_size=4)


def widened(program: Program) -> Program:
    return Program((*program.rules, *Program.parse(WIDE).rules))


@given(programs, wide_updates)
@few
def test_what_is_saved_is_what_is_opened(program: Program, steps: list[list[Atom]]) -> None:
    kg = KnowledgeGraph(widened(program))
    for step in steps:
        kg.update(insert=step)
    with tempfile.TemporaryDirectory() as folder:
        kg.save(f"{folder}/g")
        opened = KnowledgeGraph.open(f"{folder}/g")
        assert_equal(opened, kg, str(program))
        assert opened.rules == kg.rules
        assert opened.verify() == sum(kg.counts().values())


@given(programs, wide_updates, st.lists(st.booleans(), min_size=4, max_size=4))
@few
def test_a_store_equals_the_reference_after_every_update(program: Program, steps: list[list[Atom]], fresh: list[bool]) -> None:
    """The writer is a graph that stays open and catches up, or one that was opened for this update."""
    program = widened(program)
    slow = KnowledgeGraph(program, engine="reference")
    with tempfile.TemporaryDirectory() as folder:
        stays = KnowledgeGraph(program, store=f"{folder}/g")
        for number, step in enumerate(steps):
            writer = KnowledgeGraph.open(f"{folder}/g") if number and fresh[number] else stays
            slow.update(insert=step)
            writer.update(insert=step)
            opened = KnowledgeGraph.open(f"{folder}/g")
            for kg in (writer, opened):
                assert_equal(kg, slow, f"{program}\n{steps}\nafter update {number}")
            assert opened.version == writer.version
            for table in TABLES:
                assert writer._snapshot.files(table) == opened._snapshot.files(table), "what a writer knows is what Delta says"


@given(programs, wide_updates)
@few
def test_the_feeds_of_all_versions_add_up_to_each_version(program: Program, steps: list[list[Atom]]) -> None:
    program = widened(program)
    with tempfile.TemporaryDirectory() as folder:
        kg = KnowledgeGraph(program, store=f"{folder}/g")
        held: list[tuple[set[str], set[str]]] = []
        for step in steps:
            kg.update(insert=step)
            if kg.version == len(held):
                held.append((everything(kg, Which.EXPLICIT), everything(kg, Which.DERIVED)))
        for version, want in enumerate(replayed(kg)):
            for got, expected in zip(want, held[version], strict=True):
                assert_same(got, expected, f"{program}\n{steps}\nversion {version}")


@given(layered_programs, st.randoms(use_true_random=False), st.lists(st.booleans(), min_size=4, max_size=4))
@few
def test_deletions_in_a_store_equal_the_reference_and_are_in_its_feeds(
    program: Program, rng: Random, fresh: list[bool]
) -> None:
    slow = KnowledgeGraph(program, engine="reference")
    with tempfile.TemporaryDirectory() as folder:
        kg = KnowledgeGraph(program, store=f"{folder}/g")
        held: dict[int, tuple[set[str], set[str]]] = {}
        for number, (insert, delete) in enumerate(dense_changes(program, rng)):
            if number and fresh[number]:
                kg = KnowledgeGraph.open(f"{folder}/g")
            slow.update(insert=insert, delete=delete)
            kg.update(insert=insert, delete=delete)
            for got in (kg, KnowledgeGraph.open(f"{folder}/g")):
                assert_equal(got, slow, f"{program}\nupdate {number}: {insert}\nless {delete}")
            held[kg.version] = everything(kg, Which.EXPLICIT), everything(kg, Which.DERIVED)
        for version, got in enumerate(replayed(kg)):
            assert got == held[version], f"{program}\nversion {version}"


def test_facts_among_the_rules_are_part_of_the_first_version(tmp_path: Path) -> None:
    program = Program.parse("edge(1, 2) . start(1) . reach(?y) :- start(?x), edge(?x, ?y) . always(1) :- 1 < 2 .")
    kg = KnowledgeGraph(program, store=tmp_path / "g")
    assert not (tmp_path / "g").exists() and kg.version is None
    with pytest.raises(UserError, match="EG103"):
        kg.update(insert="<http://a> <http://p> nonsense .")
    kg.update(insert="edge(1, 3) .")
    want = KnowledgeGraph(program)
    want.update(insert="edge(1, 3) .")
    opened = KnowledgeGraph.open(tmp_path / "g")
    for got in (kg, opened):
        assert_equal(got, want)
    assert opened.counts() == {"edge": 2, "start": 1, "reach": 2, "always": 1}
    opened.update(insert="edge(1, 4) .")
    assert KnowledgeGraph.open(tmp_path / "g").counts(Which.EXPLICIT) == {"edge": 3, "start": 1}


def test_facts_among_the_rules_make_a_version_of_an_empty_update(tmp_path: Path) -> None:
    kg = KnowledgeGraph(Program.parse("edge(1, 2) . path(?x, ?y) :- edge(?x, ?y) ."), store=tmp_path / "g")
    assert kg.update().version == 0
    assert KnowledgeGraph.open(tmp_path / "g").counts() == {"edge": 1, "path": 1}


@pytest.mark.parametrize("rules", ["rhodf", "owl2rl", ""])
def test_a_store_without_facts_opens_and_grows(tmp_path: Path, rules: str) -> None:
    kg = KnowledgeGraph(rules or Program(()), store=tmp_path / "g", equality="off")
    assert kg.update().version == 0
    opened = KnowledgeGraph.open(tmp_path / "g")
    assert len(opened) == opened.change_feed().num_rows == opened.verify() == 0
    opened.update(insert=FAMILY)
    assert_equal(KnowledgeGraph.open(tmp_path / "g"), opened)


def test_a_derived_fact_that_becomes_explicit_is_rewritten_and_told(tmp_path: Path) -> None:
    kg = made(tmp_path / "g", FAMILY + "".join(map(triple, range(20))))
    before = kg._store.snapshot()
    fact = f"<http://ex/x> {IS_A} <http://ex/B> ."
    assert kg.counts(Which.DERIVED) == {TRIPLE: 1}
    kg.update(insert=fact)
    shown = print_atom(Atom(TRIPLE, tuple(fact.split()[:3])))
    assert changes_of(kg, 1) == [("update_preimage", shown, False), ("update_postimage", shown, True)]
    opened = KnowledgeGraph.open(tmp_path / "g")
    assert (opened.counts(Which.EXPLICIT), opened.counts(Which.DERIVED)) == ({TRIPLE: 23}, {})
    after = opened._store.snapshot()
    assert (after.info.explicit, after.info.derived) == ({TRIPLE: 23}, {})
    gone = paths(before, FACTS) - paths(after, FACTS)
    assert len(gone) == 1 < len(paths(before, FACTS))
    rows = pa.concat_tables(pq.ParquetFile(path).read() for path in sorted(paths(after, FACTS)))
    assert rows.num_rows == 23 and all(rows.column("explicit").to_pylist())
    assert KnowledgeGraph.open(tmp_path / "g", version=0).counts(Which.DERIVED) == {TRIPLE: 1}


def test_a_named_fact_that_becomes_explicit_is_told_too(tmp_path: Path) -> None:
    kg = made(tmp_path / "g", "node(1) . node(2) .", "alone(1) . none() .", "edge(1, 1) .", rules=Program.parse(CHANGING))
    one = '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'
    assert [(kind, explicit) for kind, _, explicit in changes_of(kg, 1, "none")] == [
        ("update_preimage", False),
        ("update_postimage", True),
    ]
    assert changes_of(kg, 2, "linked") == [("insert", print_atom(Atom("linked", (one,))), False)]
    assert changes_of(kg, 2, "alone") == [] == changes_of(kg, 2, "none")
    opened = KnowledgeGraph.open(tmp_path / "g")
    assert opened.counts(Which.EXPLICIT) == {"node": 2, "alone": 1, "none": 1, "edge": 1}
    assert opened.counts(Which.DERIVED) == {"alone": 1, "linked": 1}


def test_a_derived_fact_that_ceases_to_follow_is_a_delete(tmp_path: Path) -> None:
    kg = made(tmp_path / "g", "node(1) . node(2) .", "edge(1, 2) .", rules=Program.parse(CHANGING))
    assert [(kind, explicit) for kind, _, explicit in changes_of(kg, 1, "alone")] == [("delete", False)]
    assert KnowledgeGraph.open(tmp_path / "g").counts(Which.DERIVED) == {"alone": 1, "linked": 1, "none": 1}


@pytest.mark.parametrize("text", [triple(1), f"<http://ex/x> {IS_A} <http://ex/A> .", ""])
def test_an_update_that_changes_nothing_makes_no_version(tmp_path: Path, text: str) -> None:
    kg = made(tmp_path / "g", FAMILY + triple(1))
    before = files(tmp_path / "g")
    assert kg.update(insert=text).version == 0
    assert KnowledgeGraph.open(tmp_path / "g").update(insert=text).version == 0
    assert files(tmp_path / "g") == before


def test_a_failed_update_leaves_store_and_graph_as_they_were(tmp_path: Path) -> None:
    kg = made(tmp_path / "g", FAMILY)
    bad = tmp_path / "bad.nt"
    bad.write_text(triple(1) + "<http://ex/new> <http://ex/p> no .\n")
    before, held = files(tmp_path / "g"), everything(kg)
    for source in (bad.read_text(), bad, [tmp_path / "gone.nt"]):
        with pytest.raises(UserError, match=r"EG10[13]"):
            kg.update(insert=source)
        assert files(tmp_path / "g") == before
        assert_same(everything(kg), held)
        assert kg.version == 0 == KnowledgeGraph.open(tmp_path / "g").version
    kg.update(insert=triple(1))
    assert kg.version == 1 and len(kg) == 4
    assert_equal(KnowledgeGraph.open(tmp_path / "g"), kg)


@pytest.mark.parametrize("name", ["with space", "a#b", "é", "[1]", "it's"])
def test_a_store_may_stand_in_a_folder_of_any_name(tmp_path: Path, name: str) -> None:
    kg = made(tmp_path / name, FAMILY, triple(1))
    Store(tmp_path / name).compact()
    assert_equal(KnowledgeGraph.open(tmp_path / name), kg)
    rows = Store(tmp_path / name).create_view(duckdb.connect()).fetchall()
    assert len(rows) == 4
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", ["100%", "a%20b", "two\nlines"])
def test_a_folder_whose_name_delta_cannot_take_is_refused_before_anything_is_written(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError, match="EG401"):
        made(tmp_path / name, FAMILY)
    assert list(tmp_path.iterdir()) == []
