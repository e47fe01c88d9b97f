"""The pipeline without Spark: the same bytes as in process, whatever the files, the blocks and the rules."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from random import Random
from shutil import copytree
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from evergraph import KnowledgeGraph, Program
from evergraph.engines.spark.placement import Placement
from evergraph.formats import Rejects, cut_files, files, read_files, read_piece
from evergraph.pipeline.blocks import parsing, read_terms
from evergraph.pipeline.encode import Task, encoding, writing_terms
from evergraph.pipeline.number import write_links
from evergraph.rules.model import TRIPLE, Atom
from evergraph.rules.printer import print_atom
from evergraph.store import Store, layout
from evergraph.store import read as store_read
from evergraph.store.dictionary import FileDictionary
from evergraph.store.layout import DICTIONARY
from evergraph.terms import Dictionary
from pipelines import FIRST, NAMED, SECOND, THIRD, InProcess, all_formats, assert_same_bytes, in_process
from stores import assert_equal
from strategies import dense_changes, layered_programs, ontology_updates, programs, updates

# -- shards and memory -----------------------------------------------------------------------------------------------

Step = tuple[list[Atom], list[Atom]]
"""Facts to insert and facts to delete."""
few = settings(max_examples=40, phases=[Phase.generate])
TINY = [
    {"BLOCK_BYTES": n, "LOOK_BACK": 7, "TERMS_PER_FILE": m} for n, m in ((1, 2), (60, 5), (200, 1 << 20), (1 << 20, 1 << 20))
]


def as_input(folder: Path, facts: Sequence[Atom], how: str) -> Any:
    """The same facts as files, triples over two of them, or as text."""
    if how == "text":
        return list(facts)
    lines = [a for a in facts if a.relation == TRIPLE and a.terms[0].startswith("<")]
    triples = [" ".join(a.terms) + " .\n" for a in lines]
    named = " ".join(f"{print_atom(a)} ." for a in facts if a not in lines)
    folder.mkdir()
    (folder / "a.nt").write_text("".join(triples[::2]))
    (folder / "b.nt").write_text("# more\n" + "".join(triples[1::2]).rstrip("\n"))
    (folder / "c.dlog").write_text(named)
    return [folder / "a.nt", folder / "b.nt", folder / "c.dlog"]


hows = st.lists(st.tuples(st.sampled_from(["files", "files", "text"]), st.booleans()), min_size=4, max_size=4)


def grow_two_stores(program: Program, steps: Iterable[Step], ways: list[tuple[str, bool]], settings: dict[str, int]) -> None:
    """The same updates on both engines; `ways` says how facts are given and whether the graphs are opened again before."""
    with tempfile.TemporaryDirectory() as name, in_process(**settings) as session:
        folder = Path(name)
        pair = (("s", session), ("m", "memory"))
        kg, plain = (KnowledgeGraph(program, store=folder / e, engine=g, equality="off") for e, g in pair)
        for number, ((insert, delete), (how, again)) in enumerate(zip(steps, ways, strict=False)):
            if number and again:
                kg, plain = KnowledgeGraph.open(folder / "s", engine=session), KnowledgeGraph.open(folder / "m")
            source = as_input(folder / f"{number}", insert, how)
            report, want = (one.update(insert=source, delete=delete) for one in (kg, plain))
            what = f"{program}\n{ways}\n{settings}\nupdate {number}: {insert}\nless {delete}"
            assert_equal(kg, plain, what)
            assert (report.inserted, report.deleted) == (want.inserted, want.deleted), what
            assert report.version == want.version, what
            assert_same_bytes(folder / "s", folder / "m", what)
            assert kg.verify() == plain.verify()


@given(programs, updates, hows, st.sampled_from(TINY))
@few
def test_shards_and_memory_write_the_same_bytes(
    program: Program, steps: list[list[Atom]], ways: list[tuple[str, bool]], settings: dict[str, int]
) -> None:
    grow_two_stores(program, [(step, []) for step in steps], ways, settings)


@given(layered_programs, st.randoms(use_true_random=False), hows, st.sampled_from(TINY))
@few
def test_shards_and_memory_write_the_same_bytes_after_deletions(
    program: Program, rng: Random, ways: list[tuple[str, bool]], settings: dict[str, int]
) -> None:
    changes = [tuple([fact for fact in facts if is_rdf(fact)] for facts in step) for step in dense_changes(program, rng)]
    grow_two_stores(program, changes, ways, settings)


def is_rdf(fact: Atom) -> bool:
    """Whether a file can hold it: the subject of a triple is no literal."""
    return fact.relation != TRIPLE or not fact.terms[0].startswith('"')


@pytest.mark.parametrize("rules", ["rhodf", "owl2rl"])
def test_shards_and_memory_write_the_same_bytes_of_ontologies(rules: str) -> None:
    program = Program.load(rules)

    @given(ontology_updates, hows, st.sampled_from(TINY))
    @settings(max_examples=8, phases=[Phase.generate])
    def law(steps: list[list[Atom]], ways: list[tuple[str, bool]], settings: dict[str, int]) -> None:
        grow_two_stores(program, [(step, []) for step in steps], ways, settings)

    law()


def test_an_update_whose_preparation_failed_can_be_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bringing the facts of a store to their homes comes before the update, and may fail as it may."""
    with in_process() as session:
        plain = KnowledgeGraph(NAMED, store=tmp_path / "m")
        plain.update(insert=FIRST)
        copytree(tmp_path / "m", tmp_path / "s")
        kg = KnowledgeGraph.open(tmp_path / "s", engine=session)
        real = InProcess._superstep

        def fail(*given: Any) -> Any:
            monkeypatch.setattr(InProcess, "_superstep", real)
            raise KeyboardInterrupt

        monkeypatch.setattr(InProcess, "_superstep", fail)
        link = "<http://ex/s5> <http://ex/p> <http://ex/z> .\n<http://ex/z> <http://ex/p> <http://ex/s0> ."
        with pytest.raises(KeyboardInterrupt):
            kg.update(insert=link)
        assert_equal(kg, plain)
        for one in (kg, plain):
            one.update(insert=link)
        assert_equal(kg, plain)
        assert_same_bytes(tmp_path / "s", tmp_path / "m")


# -- the workers' functions ------------------------------------------------------------------------------------------


def pieces_to_ids(paths: Sequence[Path], folder: Path, known: Dictionary, blocks: int, parts: int = 3) -> list[tuple[int, ...]]:
    """All triples of files as ids, by the functions that the workers run; new terms go to the dictionary at the end."""
    pieces = cut_files(paths, known.next_scope, blocks)
    said = [parsing(pieces, folder, False)(n) for n in range(len(pieces))]
    rows = [(term, number) for number, term in enumerate(known.since(0).to_pylist())]
    for piece, one in enumerate(said):
        for block in range(one["blocks"]):
            terms, start = read_terms(folder / f"{piece}-{block}")
            rows += [(term, start + place) for place, term in enumerate(terms.to_pylist())]
    new = 0
    for part in range(parts):
        mine = sorted(row for row in rows if hash(row[0]) % parts == part)
        columns = [[row[i] for row in mine] for i in range(2)]
        new += write_links(folder, part, pa.table(columns, schema=pa.schema([("term", pa.string()), ("position", pa.int64())])))
    placement = Placement(4, 0, frozenset(), frozenset())
    work = encoding(Task(folder, tuple(one["blocks"] for one in said), parts, len(known), placement, frozenset()))
    found = [work(n) for n in range(len(pieces))]
    facts = []
    for piece, one in enumerate(found):
        words = np.fromfile(folder / f"{piece}.facts", np.uint64).tolist()
        keys = [key for key, count in one["counts"] for _ in range(count)]
        facts += [(word >> 32, key, word & 0xFFFFFFFF) for word, key in zip(words, keys, strict=True)]
    before, first = len(known), len(known)
    places = []
    for piece, one in enumerate(found):
        for block, count in enumerate(one["new"]):
            places.append((piece, block, first))
            first += count
    assert new == first - before
    if new:
        (folder / "store").mkdir()
        writing_terms(folder, folder / "store", places, before, [])(0)
        (made,) = (folder / "store" / DICTIONARY).iterdir()
        known.encode(store_read.read_table(made).column("term").to_pylist())
    return facts


@pytest.mark.parametrize("size", [20, 100, 1000, 1 << 23])
@pytest.mark.parametrize("blocks", [1, 3])
def test_workers_number_and_encode_as_one_reader_would(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, blocks: int
) -> None:
    """All formats, over any cuts: the same ids for the same terms, and the same facts, twice over a growing dictionary."""
    monkeypatch.setattr(files, "BLOCK_BYTES", size)
    monkeypatch.setattr(files, "LOOK_BACK", 16)
    (tmp_path / "data").mkdir()
    paths = all_formats(tmp_path / "data")
    (tmp_path / "data" / "long.nt").write_text(
        "".join(f'<http://ex/s{n % 5}> <http://ex/p> "{"x" * n}" .\n' for n in range(0, 60, 3))
    )
    plain, parallel = Dictionary(), Dictionary()
    for load, some in enumerate((paths[:6], [tmp_path / "data" / "long.nt", *paths])):
        folder = tmp_path / f"work{load}"
        folder.mkdir()
        want = [
            row
            for block in read_files(some, plain.next_scope)
            for row in zip(*(plain.encode_column(column).tolist() for column in block), strict=True)
        ]
        got = pieces_to_ids(some, folder, parallel, blocks)
        assert sorted(set(got)) == sorted(set(want))
        assert parallel.since(0).to_pylist() == plain.since(0).to_pylist()
        assert parallel.scopes == plain.scopes


def test_quads_are_the_union_of_graphs_and_blank_nodes_are_of_their_file(tmp_path: Path) -> None:
    (tmp_path / "a.nq").write_text("_:b <http://p> _:b <http://g1> .\n_:b <http://p> _:b <http://g2> .\n_:b <http://p> _:b .\n")
    (tmp_path / "b.trig").write_text("<http://g1> { _:b <http://p> _:b }")
    known = Dictionary()
    (tmp_path / "work").mkdir()
    facts = pieces_to_ids([tmp_path / "a.nq", tmp_path / "b.trig"], tmp_path / "work", known, 1)
    assert len(set(facts)) == 2
    terms = known.since(0).to_pylist()
    assert [t for t in terms if t.startswith("_:f1_")] == ["_:f1_b"] and sum(t.startswith("_:f2_") for t in terms) == 1


LINES = st.one_of(
    st.builds(lambda n, m: f'<http://s{n}> <http://p> "{"é" * (m % 7)}{"x" * m}" .', st.integers(0, 3), st.integers(0, 90)),
    st.builds(lambda n: f"_:b{n} <http://p> <http://o>  .  # not canonical", st.integers(0, 3)),
    st.sampled_from(["", "   ", "# a comment", "<http://s> <http://p> oops .", "<http://s> <http://p> <http://o> "]),
)


@given(st.lists(LINES, max_size=12), st.sampled_from(["\n", "\r\n"]), st.booleans(), st.integers(1, 150), st.integers(1, 4))
@settings(max_examples=300, phases=[Phase.generate])
def test_pieces_of_any_size_read_as_the_whole_file(lines: list[str], end: str, closed: bool, size: int, blocks: int) -> None:
    """Blocks smaller than a line, files without a last line end, comments and mistakes: the same blocks, lines and mistakes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "f.nt")
        path.write_bytes((end.join(lines) + (end if closed and lines else "")).encode())
        with patch.object(files, "BLOCK_BYTES", size), patch.object(files, "LOOK_BACK", 1 + size // 3):
            rejects = Rejects()
            want = [[c.to_pylist() for c in block] for block in read_files([path], lambda: 1, rejects)]
            got, bad, before, last = [], [], 0, 0
            for piece in cut_files([path], lambda: 1, blocks):
                assert piece.first == last
                last = piece.last or -1
                found: list[Any] = []
                count = 0
                for block, number in read_piece(piece, found):
                    got.append([c.to_pylist() for c in block])
                    count += number
                bad += [(line.line + before, line.column, line.message, line.text) for line in found]
                before += count
            assert last == -1
        whole = Rejects()
        at_once = [
            row for block in read_files([path], lambda: 1, whole) for row in zip(*map(pa.Array.to_pylist, block), strict=True)
        ]
    assert got == want
    assert bad == [(b.line, b.column, b.message, b.text) for _, b in rejects.lines]
    assert bad == [(b.line, b.column, b.message, b.text) for _, b in whole.lines]
    assert sorted(row for block in got for row in zip(*block, strict=True)) == sorted(at_once)


def test_write_links_gives_a_term_its_first_position(tmp_path: Path) -> None:
    positions = {"<a>": [7 << 44, 3], "<b>": [(2 << 44) + 5, 2 << 44], "<c>": [(1 << 44) + 1]}
    rows = [(term, place) for term, places in positions.items() for place in places]
    table = pa.table(
        [[r[0] for r in rows], [r[1] for r in rows]], schema=pa.schema([("term", pa.string()), ("position", pa.int64())])
    )
    assert write_links(tmp_path, 0, table) == 2
    assert np.load(tmp_path / "firsts-0.npy").tolist() == [(1 << 44) + 1, 2 << 44]
    links = np.load(tmp_path / "links-0.npy").tolist()
    assert dict(zip(*links, strict=True)) == {
        7 << 44: 3,
        2 << 44: 2 << 44,
        (2 << 44) + 5: 2 << 44,
        (1 << 44) + 1: (1 << 44) + 1,
    }
    assert write_links(tmp_path, 1, table.slice(0, 0)) == 0


def test_a_dictionary_in_files_is_a_dictionary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over several files of several row groups: every way to ask, for stored and for new terms."""
    monkeypatch.setattr(layout, "ROW_GROUP", 4)
    kg = KnowledgeGraph("rhodf", store=tmp_path / "g")
    for text in (FIRST, SECOND, THIRD):
        kg.update(insert=text)
    snapshot = Store(tmp_path / "g").snapshot()
    assert len(snapshot.files(DICTIONARY)) == 3
    plain, filed = Dictionary(store_read.read_terms(snapshot), snapshot.info.scopes), FileDictionary.of(snapshot)
    draw = np.random.default_rng(0)
    for new in (["<http://n1>", "<http://n2>"], ["<http://n2>", "<http://n3>", "<http://n1>"], []):
        terms = plain.since(0).to_pylist()
        asked = [*draw.choice(terms, 10).tolist(), *new, *new, terms[0], terms[-1]]
        assert [plain.find(t) for t in asked] == [filed.find(t) for t in asked]
        assert plain.encode(asked).tolist() == filed.encode(asked).tolist()
        assert len(plain) == len(filed) and plain.next_scope() == filed.next_scope()
        ids = draw.integers(0, len(plain), 50).astype(np.uint64)
        assert plain.decode(ids).to_pylist() == filed.decode(ids).to_pylist()
        assert filed.decode(ids).type == plain.decode(ids).type
        for n in range(len(plain)):
            assert plain.term(n) == filed.term(n)
            assert plain.since(n).to_pylist() == filed.since(n).to_pylist()
        column = pa.array([*asked, "<http://other>", *asked])
        assert plain.encode_column(column).tolist() == filed.encode_column(column).tolist()
    assert filed.decode(np.zeros(0, np.uint64)).to_pylist() == [] and filed.since(len(filed)).to_pylist() == []


def test_what_rules_want_everywhere_is_everywhere_when_a_store_is_opened(tmp_path: Path) -> None:
    """A rule joins triples on nothing and negates, so that one shard evaluates it: that one needs all of them."""
    program = Program.parse("@prefix ex: <http://ex/> . odd(?y) :- ex:p[?w, ?z], [?x, ?r, ?y], NOT ex:q[?z, ?z] .")
    names = [f"<http://ex/{n}>" for n in range(12)]
    with in_process() as session:
        graph = KnowledgeGraph(program, store=tmp_path / "s", engine=session)
        graph.update(insert="\n".join(f"{a} <http://ex/r> {b} ." for a, b in pairwise(names)))
        kg = KnowledgeGraph.open(tmp_path / "s", engine=session)
        kg.update(insert=f"{names[3]} <http://ex/p> {names[5]} .")
        assert kg.counts()["odd"] == 11
        kg.update(delete=f"{names[3]} <http://ex/p> {names[5]} .")
        assert "odd" not in kg.counts() and kg.verify() == 11
