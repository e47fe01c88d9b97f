"""The pipeline on Spark: the same bytes as in process, whatever the files, the blocks, the rules and the failures.

Most of it runs without Spark, over frames that are lists of Arrow batches (`Frame`), so that files can be cut into many small
blocks and random programs can be tried; what only Spark can show runs on Spark.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from random import Random
from shutil import copytree
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from conftest import assert_same, everything
from evergraph import KnowledgeGraph, Program, UserError
from evergraph.bench.lubm.generator import ontology, triples_of_university
from evergraph.engines.base import Which
from evergraph.engines.spark import mail
from evergraph.engines.spark.engine import SparkEngine
from evergraph.engines.spark.mail import Kind
from evergraph.engines.spark.placement import Placement
from evergraph.engines.spark.superstep import Job, Superstep
from evergraph.formats import Rejects, cut_files, files, read_files, read_piece
from evergraph.pipeline.blocks import parsing, read_terms
from evergraph.pipeline.encode import Task, encoding, writing_terms
from evergraph.pipeline.load import Pipeline
from evergraph.pipeline.number import write_links
from evergraph.rules.model import TRIPLE, Atom
from evergraph.rules.printer import print_atom
from evergraph.store import Store, layout
from evergraph.store import read as store_read
from evergraph.store.dictionary import FileDictionary
from evergraph.store.layout import DICTIONARY, FACTS, RELATIONS
from evergraph.store.log import TABLES
from evergraph.terms import Dictionary
from strategies import dense_changes, layered_programs, ontology_updates, programs, updates

SUB = "<http://www.w3.org/2000/01/rdf-schema#subClassOf>"
DOMAIN = "<http://www.w3.org/2000/01/rdf-schema#domain>"
IS_A = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
NAMED = Program.parse(f"""
path(?x, ?y) :- edge(?x, ?y) .
path(?x, ?z) :- path(?x, ?y), edge(?y, ?z) .
edge(?x, ?y) :- [?x, <http://ex/p>, ?y] .
alone(?x) :- [?x, {IS_A}, <http://ex/A>], NOT path(?x, ?x) .
older(?x, ?y) :- [?x, <http://ex/age>, ?a], [?y, <http://ex/age>, ?b], ?a > ?b .
always() :- edge(?x, ?y) .
[?x, {IS_A}, <http://ex/B>] :- [?x, {IS_A}, <http://ex/A>] .
node(7) . edge(7, 8) .
""")
FIRST = "".join(
    f"<http://ex/s{n}> {IS_A} <http://ex/A> .\n<http://ex/s{n}> <http://ex/p> <http://ex/s{n * 3 % 7}> .\n"
    f'<http://ex/s{n}> <http://ex/age> "{n}"^^<http://www.w3.org/2001/XMLSchema#integer> .\n_:b{n} <http://ex/q> _:b{n + 1} .\n'
    for n in range(9)
)
SECOND = f"""
# with what the first file has, and more
<http://ex/A> {SUB} <http://ex/C> .
<http://ex/q> {DOMAIN} <http://ex/A> .
<http://ex/s1> {IS_A} <http://ex/B> .
<http://ex/s2> <http://ex/age> "2.5"^^<http://www.w3.org/2001/XMLSchema#decimal> .
<http://ex/s2> <http://ex/age> "x"^^<http://ex/unknown> .
_:b1 <http://ex/q> _:b2 .
"""
THIRD = f"<http://ex/s3> {IS_A} <http://ex/C> .\n<http://ex/new> <http://ex/q> <http://ex/s1> ."


def contents(path: Path) -> dict[str, list[tuple[int | None, int, str]]]:
    """For each table the shard, the rows and the hash of its files; names are left out."""
    snapshot = Store(path).snapshot()
    return {
        table: sorted((f.shard or 0, f.rows, hashlib.sha256(f.path.read_bytes()).hexdigest()) for f in snapshot.files(table))
        for table in TABLES
    }


def assert_same_bytes(one: Path, other: Path, what: str = "") -> None:
    for table, want in contents(other).items():
        assert contents(one)[table] == want, f"{table}\n{what}"
    mine, others = Store(one).snapshot().info, Store(other).snapshot().info
    for name in ("explicit", "derived", "terms", "scopes", "shards", "tables"):
        assert getattr(mine, name) == getattr(others, name), f"{name}\n{what}"


def assert_equal(got: KnowledgeGraph, want: KnowledgeGraph, what: str = "") -> None:
    for which in (Which.EXPLICIT, Which.DERIVED):
        assert_same(everything(got, which), everything(want, which), f"{which}\n{what}")


# -- Spark without Spark ---------------------------------------------------------------------------------------------


class Frame:
    """A data frame as lists of batches, one list a partition: as much of one as the pipeline asks for."""

    def __init__(self, partitions: Sequence[Sequence[pa.RecordBatch]]) -> None:
        self.partitions = partitions

    def mapInArrow(self, run: Callable[[Any], Any], _schema: str) -> Frame:
        out = []
        for number, batches in enumerate(self.partitions):
            context = SimpleNamespace(get=lambda number=number: SimpleNamespace(partitionId=lambda: number))
            with patch("pyspark.TaskContext", context):
                out.append(list(run(iter(batches))))
        return Frame(out)

    def unionAll(self, other: Frame) -> Frame:
        return Frame([*self.partitions, *other.partitions])

    union = unionAll

    def repartition(self, parts: int, column: str) -> Frame:
        out: list[list[pa.RecordBatch]] = [[] for _ in range(parts)]
        for batch in (b for batches in self.partitions for b in batches):
            place = np.array([hash(v) % parts for v in batch.column(column).to_pylist()], int)
            for part, rows in enumerate(out):
                rows.append(batch.filter(pa.array(place == part)))
        return Frame(out)

    def collect(self) -> list[dict[str, Any]]:
        return [row for batches in self.partitions for batch in batches for row in batch.to_pylist()]


class Session:
    sparkContext = SimpleNamespace(defaultParallelism=3)

    def range(self, start: int, end: int, _step: int, parts: int) -> Frame:
        assert (start, end) == (0, parts) and parts > 0
        return Frame([[pa.record_batch([pa.array([n])], names=["id"])] for n in range(parts)])

    def createDataFrame(self, table: pa.Table) -> Frame:
        return Frame([table.to_batches()])


class InProcess(SparkEngine):
    """Supersteps one shard after another."""

    def _superstep(self, job: Job, inbox: Frame) -> tuple[dict[int, dict[str, Any]], Frame | None]:
        letters = pa.Table.from_batches((b for batches in inbox.partitions for b in batches), mail.SCHEMA)
        answers, out = {}, []
        for label in sorted(set(letters.column("shard").to_pylist())):
            shard = self.labels.index(label)
            table = Superstep(job, shard).run(letters.filter(pa.compute.equal(letters.column("shard"), label)))
            for row in table.to_pylist():
                if row["kind"] == Kind.ANSWER:
                    answers[shard] = json.loads(row["words"])
            out += table.filter(pa.compute.not_equal(table.column("kind"), Kind.ANSWER)).to_batches()
        return answers, Frame([out]) if out else None


@contextmanager
def in_process(**settings: int) -> Iterator[Session]:
    """An engine to give in place of a SparkSession; settings are those of `formats.files`, `pipeline.load`, `store.layout`."""
    from evergraph.pipeline import encode, load

    with ExitStack() as stack:
        stack.enter_context(patch("evergraph.engines.spark.SparkEngine", InProcess))
        for name, value in settings.items():
            for module in (files, load, layout, encode):
                if hasattr(module, name):
                    stack.enter_context(patch.object(module, name, value))
        yield Session()


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
        kg, plain = (KnowledgeGraph(program, store=folder / e, engine=g) for e, g in (("s", session), ("m", "memory")))
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


def all_formats(folder: Path) -> list[Path]:
    """The same few triples, among them blank nodes and a literal, in every format and compression."""
    import pyoxigraph as ox

    made = []
    text = 'PREFIX : <http://ex/> :a :p _:x, "é \\"q\\"\\n"@en, 1.50 . _:x :p :a ; :q _:y . :g1 :r [] .'
    quads = list(ox.parse(text, format=ox.RdfFormat.TURTLE))
    for ending, format_ in (
        ("nt", ox.RdfFormat.N_TRIPLES),
        ("nq", ox.RdfFormat.N_QUADS),
        ("ttl", ox.RdfFormat.TURTLE),
        ("trig", ox.RdfFormat.TRIG),
        ("rdf", ox.RdfFormat.RDF_XML),
        ("jsonld", ox.RdfFormat.JSON_LD),
    ):
        graphs = ending in ("nq", "trig", "jsonld")
        rows = [ox.Quad(*q.triple, ox.NamedNode(f"http://ex/g{n % 2}")) for n, q in enumerate(quads)] if graphs else quads
        data = ox.serialize(rows if graphs else [q.triple for q in rows], format=format_)
        assert data is not None
        plain = data.replace(b"http://ex/a", f"http://ex/{ending}".encode())
        for name, packed in (
            (ending, plain),
            (f"{ending}.gz", gzip.compress(plain)),
            (f"{ending}.bz2", bz2.compress(plain)),
            (f"{ending}.zst", pa.Codec("zstd").compress(plain, asbytes=True)),
        ):
            made.append(folder / f"data.{name}")
            made[-1].write_bytes(packed)
    return made


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


# -- on Spark --------------------------------------------------------------------------------------------------------


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "first.nt").write_text(FIRST)
    (tmp_path / "second.nt").write_text(SECOND)
    return tmp_path


@pytest.mark.spark
@pytest.mark.parametrize("rules", ["rhodf", "owl2rl", "named"])
def test_spark_and_memory_write_the_same_bytes(spark: Any, data: Path, rules: str) -> None:
    """After a first load, a second one and a text update; the graph is opened again in between."""
    program = NAMED if rules == "named" else Program.load(rules)
    kg, plain = (KnowledgeGraph(program, store=data / e, engine=g) for e, g in (("s", spark), ("m", "memory")))
    for step, source in enumerate((data / "first.nt", [data / "second.nt"], THIRD, "edge(8, 9) .", THIRD)):
        if step == 3:
            kg = KnowledgeGraph.open(data / "s", engine=spark)
        report, want = kg.update(insert=source), plain.update(insert=source)
        assert_equal(kg, plain, f"update {step}")
        assert_same_bytes(data / "s", data / "m", f"update {step}")
        assert (report.inserted, report.deleted, report.version) == (want.inserted, want.deleted, want.version)
    assert report.version == 3, "the last update changed nothing"
    assert kg.verify() == plain.verify()
    assert KnowledgeGraph.open(data / "s").verify(spark) == plain.verify()
    assert (
        kg.change_feed(1).drop(["_commit_timestamp"]).to_pylist()
        == plain.change_feed(1).drop(["_commit_timestamp"]).to_pylist()
    )
    old = KnowledgeGraph.open(data / "s", version=1, engine=spark)
    assert_equal(old, KnowledgeGraph.open(data / "m", version=1))
    with pytest.raises(UserError, match="EG407"):
        old.update(insert=FIRST)


@pytest.mark.spark
def test_a_department_of_lubm_gives_the_same_bytes(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "univ-bench.nt").write_text(ontology())
    (tmp_path / "department.nt").write_text("\n".join(islice(triples_of_university(0, 0), 6000)))
    kg, plain = (KnowledgeGraph("owl2rl", store=tmp_path / e, engine=g) for e, g in (("s", spark), ("m", "memory")))
    for one in (kg, plain):
        one.update(insert=[tmp_path / "univ-bench.nt", tmp_path / "department.nt"], operation="load")
    assert_same_bytes(tmp_path / "s", tmp_path / "m")
    assert plain.counts(Which.DERIVED)[TRIPLE] > 2000


@pytest.mark.spark
def test_spark_reads_every_format_from_folders_and_globs(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "in" / "deep").mkdir(parents=True)
    all_formats(tmp_path / "in")
    (tmp_path / "in" / "deep" / "more.nt").write_text(FIRST)
    (tmp_path / "in" / "empty.nt").write_text("")
    (tmp_path / "in" / "comments.nt").write_text("# nothing here\n\n")
    (tmp_path / "in" / "notes.txt").write_text("not data")
    kg, plain = (KnowledgeGraph(NAMED, store=tmp_path / e, engine=g) for e, g in (("s", spark), ("m", "memory")))
    glob = str(tmp_path / "in" / "*.nt*")
    for source in (tmp_path / "in" / "comments.nt", tmp_path / "in", [glob, tmp_path / "in" / "deep"]):
        kg.update(insert=source)
        plain.update(insert=source)
        assert_same_bytes(tmp_path / "s", tmp_path / "m", str(source))
        assert_equal(kg, plain)
    assert kg.version == 2, "blank nodes of a file that is read again are new"


@pytest.mark.spark
def test_spark_reads_files_beside_facts_and_rules_with_facts(spark: Any, data: Path) -> None:
    (data / "named.dlog").write_text("edge(1, 2) . far(2, 3, 4) .")
    kg, plain = (KnowledgeGraph(NAMED, store=data / e, engine=g) for e, g in (("s", spark), ("m", "memory")))
    for one in (kg, plain):
        one.update(insert=[data / "second.nt", data / "named.dlog", data / "first.nt"])
    assert_same_bytes(data / "s", data / "m")
    assert kg.counts(Which.EXPLICIT)["edge"] == 2


# -- mistakes and failures -------------------------------------------------------------------------------------------


def mistake(write: Callable[[], Any]) -> UserError:
    with pytest.raises(UserError) as caught:
        write()
    return caught.value


BAD = {
    "bad.nt": f"{FIRST}<http://ex/s> <http://ex/p> oops .\n{SECOND}\n<http://ex/s> no .\n",
    "bad.nq": "<http://a> <http://p> <http://b> <http://g> .\n<http://a> <http://p> <http://b> <http://g> <http://h> .\n",
    "bad.nt.gz": f"{FIRST}<http://ex/s> <http://ex/p> oops .\n",
    "bad.ttl": "<http://a> <http://p> <http://b> .\n<http://a> <http://p> oops .\n",
    "bad.jsonld": '{"@id": "http://a", ',
    "cut.nt.gz": FIRST * 50,
    "unknown.txt": FIRST,
}


@pytest.mark.spark
def test_mistakes_in_files_are_told_as_in_process_and_nothing_is_left_of_them(spark: Any, data: Path) -> None:
    """Code, file, line and column; loads that failed before, and between, leave no trace in what later ones write."""
    for name, text in BAD.items():
        packed = gzip.compress(text.encode()) if name.endswith(".gz") else text.encode()
        (data / name).write_bytes(packed[: len(packed) // 2] if name.startswith("cut") else packed)
    kg, plain = (KnowledgeGraph("rhodf", store=data / e, engine=g) for e, g in (("s", spark), ("m", "memory")))
    told: dict[str, list[str]] = {}

    def load_bad_files() -> None:
        before = everything(kg)
        for name in BAD:
            wrong = mistake(lambda name=name: kg.update(insert=[data / "second.nt", data / name]))
            told.setdefault(name, []).extend(map(str, wrong.mistakes))
            assert_same(everything(kg), before)

    load_bad_files()
    assert not Store(data / "s").exists
    for step in ("first.nt", "second.nt"):
        for one in (kg, plain):
            one.update(insert=data / step)
        assert_same_bytes(data / "s", data / "m")
        load_bad_files()
        assert_same_bytes(data / "s", data / "m")
    for name in BAD:
        want = mistake(lambda name=name: KnowledgeGraph("rhodf").update(insert=[data / "second.nt", data / name]))
        assert told[name] == [str(m) for m in want.mistakes] * 3


@pytest.mark.spark
def test_bad_lines_are_rejected_as_in_process(spark: Any, data: Path) -> None:
    (data / "bad.nt").write_text(BAD["bad.nt"])
    (data / "worse.nt").write_bytes(b"\xff\xfe not utf-8\n" + THIRD.encode() + b"\nnonsense")
    stores, kept = [], []
    for name, engine in (("s", spark), ("m", "memory")):
        rejects = Rejects()
        kg = KnowledgeGraph("rhodf", store=data / name, engine=engine)
        kg.update(insert=[data / "bad.nt", data / "first.nt", data / "worse.nt"], rejects=rejects)
        stores.append(kg)
        kept.append(rejects.lines)
    assert kept[0] == kept[1] and len(kept[0]) == 4
    assert_same_bytes(data / "s", data / "m")


@pytest.mark.spark
def test_lines_are_counted_over_the_pieces_of_a_file(spark: Any, tmp_path: Path) -> None:
    """A file of three blocks is read in three pieces; a mistake in the last is told with its line in the file."""
    padding = "x" * 250
    lines = [f'<http://ex/s{n % 50}> <http://ex/p> "{padding}" .\n' for n in range(60_000)]
    lines[0], lines[58_000], lines[59_999] = "# first\n", "<http://ex/s> <http://ex/p> oops .\n", "<http://ex/s>"
    path = tmp_path / "large.nt"
    path.write_text("".join(lines))
    assert len(cut_files([path], lambda: 1, 1)) == 3
    kg = KnowledgeGraph("rhodf", store=tmp_path / "s", engine=spark)
    wrong = mistake(lambda: kg.update(insert=path))
    want = mistake(lambda: KnowledgeGraph("rhodf").update(insert=path))
    assert wrong.code == "EG103" and wrong.position == want.position
    assert str(wrong.position) == f"{path}:58001:29"
    rejects, others = Rejects(), Rejects()
    plain = KnowledgeGraph("rhodf", store=tmp_path / "m")
    kg.update(insert=path, rejects=rejects)
    plain.update(insert=path, rejects=others)
    assert rejects.lines == others.lines and len(rejects) == 2
    assert_same_bytes(tmp_path / "s", tmp_path / "m")


@pytest.mark.spark
@pytest.mark.parametrize("when", ["first", "second"])
def test_loads_that_fail_late_leave_the_store_as_it_was(
    spark: Any, data: Path, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kg, plain = (KnowledgeGraph(NAMED, store=data / e, engine=g) for e, g in (("s", spark), ("m", "memory")))
    if when == "second":
        for one in (kg, plain):
            one.update(insert=data / "first.nt")
    before, held = (contents(data / "s") if when == "second" else None), everything(kg)

    def full(*_: Any, **__: Any) -> Any:
        raise OSError(28, "No space left on device")

    for owner, name in ((Pipeline, "_write_terms"), (Pipeline, "write"), (Store, "commit_files")):
        with monkeypatch.context() as patched:
            patched.setattr(owner, name, full)
            assert mistake(lambda: kg.update(insert=data / "second.nt")).code == "EG403"
        assert_same(everything(kg), held)
        assert (contents(data / "s") if Store(data / "s").exists else None) == before
    for one in (kg, plain):
        one.update(insert=[data / "second.nt"])
    assert_same_bytes(data / "s", data / "m")
    Store(data / "s").compact()
    known = {f.path.name for v in Store(data / "s").history() for table in TABLES for f in v.files(table)}
    assert {p.name for p in (data / "s").rglob("part-*.parquet")} == known


@pytest.mark.spark
@pytest.mark.parametrize("table", [FACTS, RELATIONS, DICTIONARY])
def test_a_damaged_file_is_named_by_the_worker_that_finds_it(spark: Any, data: Path, table: str) -> None:
    kg = KnowledgeGraph(NAMED, store=data / "s", engine=spark)
    kg.update(insert=data / "first.nt")
    bad = Store(data / "s").snapshot().files(table)[0].path
    bad.write_bytes(bad.read_bytes()[:-40])
    wrong = mistake(lambda: KnowledgeGraph.open(data / "s", engine=spark))
    assert wrong.code == "EG406" and str(bad) in wrong.message and len(str(wrong).splitlines()) == 1


@pytest.mark.spark
def test_a_dictionary_that_is_damaged_while_a_graph_is_open_is_named(spark: Any, data: Path) -> None:
    kg = KnowledgeGraph("rhodf", store=data / "s", engine=spark)
    kg.update(insert=data / "first.nt")
    (file,) = Store(data / "s").snapshot().files(DICTIONARY)
    whole = file.path.read_bytes()
    file.path.write_bytes(whole[:-40])
    for ask in (
        lambda: kg.update(insert=data / "second.nt"),
        kg.to_arrow,
        lambda: ("<http://new>", IS_A, "<http://new>") in kg,
    ):
        wrong = mistake(ask)
        assert wrong.code == "EG406" and str(file.path) in wrong.message
    file.path.write_bytes(whole)
    kg.update(insert=data / "second.nt")
    assert kg.version == 1


@pytest.mark.spark
def test_files_that_cannot_be_read_are_told_before_anything_is_written(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "bad.nt").symlink_to("/proc/self/mem")
    (tmp_path / "gone.nt").symlink_to("nowhere")
    kg = KnowledgeGraph("rhodf", store=tmp_path / "s", engine=spark)
    for name in ("bad.nt", "missing.nt", "gone.nt"):
        assert mistake(lambda name=name: kg.update(insert=tmp_path / name)).code == "EG101", name
    assert not Store(tmp_path / "s").exists


# -- stores that are opened on Spark ---------------------------------------------------------------------------------


@pytest.mark.spark
def test_engines_take_turns_on_one_store(spark: Any, data: Path) -> None:
    memory = KnowledgeGraph(NAMED, store=data / "g")
    plain = KnowledgeGraph(NAMED)
    writers = [memory, None, memory, None]
    for number, source in enumerate((data / "first.nt", THIRD, data / "second.nt", "edge(9, 7) .")):
        if number == 1:
            writers[1] = writers[3] = KnowledgeGraph.open(data / "g", engine=spark)
        writer = writers[number]
        assert writer is not None
        writer.update(insert=source)
        plain.update(insert=source)
        assert_equal(writer, plain, f"update {number}")
        assert_equal(KnowledgeGraph.open(data / "g"), plain, f"update {number}")


@pytest.mark.spark
def test_shards_hold_the_facts_they_own_after_opening(spark: Any, data: Path) -> None:
    made = KnowledgeGraph(NAMED, store=data / "g")
    made.update(insert=data / "first.nt")
    kg = KnowledgeGraph.open(data / "g", engine=spark)
    engine = kg._engine
    assert isinstance(engine, SparkEngine) and engine.shards == layout.SHARDS
    snapshot = Store(data / "g").snapshot()
    for shard, answer in engine.state.answers.items():
        facts = store_read.read_facts(snapshot, shard)
        assert {mail.key_of(key): n for key, n in answer["all"].items() if n} == {k: len(r) for k, r in facts.all.items()}
        assert {mail.key_of(key): n for key, n in answer["explicit"].items() if n} == {
            k: len(r) for k, r in facts.explicit.items()
        }
    assert_equal(kg, made)
    assert ("<http://ex/s1>", IS_A, "<http://ex/B>") in kg and ("<http://ex/s1>", IS_A, "<http://ex/Z>") not in kg
    assert sorted(map(tuple, kg.to_spark().collect())) == sorted(
        map(tuple, made.to_arrow().to_pandas().itertuples(index=False))
    )


@pytest.mark.spark
def test_the_number_of_jobs_of_an_update_does_not_depend_on_the_number_of_rules(spark: Any, data: Path) -> None:
    counts = []
    for copies in (1, 30):
        more = " ".join(f"path{n}(?x, ?z) :- path(?x, ?y), path(?y, ?z) ." for n in range(copies))
        program = Program((*NAMED.rules, *Program.parse(more).rules))
        KnowledgeGraph(program, store=data / f"g{copies}").update(insert=data / "first.nt")
        kg = KnowledgeGraph.open(data / f"g{copies}", engine=spark)
        for source in (data / "second.nt", THIRD):
            group = f"{source} {copies}"
            spark.sparkContext.setJobGroup(group, group)
            kg.update(insert=source)
            counts.append(len(spark.sparkContext.statusTracker().getJobIdsForGroup(group)))
    spark.sparkContext.setJobGroup("", "")
    assert counts[:2] == counts[2:] and 1 < counts[1] < counts[0] < 60


@pytest.mark.spark
@pytest.mark.parametrize("name", ["with space", "it's é#", "[1]", "{a,b}"])
def test_a_store_on_spark_may_stand_in_a_folder_of_any_name(spark: Any, data: Path, name: str) -> None:
    kg = KnowledgeGraph("rhodf", store=data / name, engine=spark)
    kg.update(insert=data / "second.nt")
    assert kg.to_spark().count() == len(kg) == len(KnowledgeGraph.open(data / name, engine=spark)) > 5


@pytest.mark.spark
def test_work_in_progress_goes_with_the_graph(spark: Any, data: Path) -> None:
    kg = KnowledgeGraph("rhodf", store=data / "s", engine=spark)
    kg.update(insert=data / "first.nt")
    with pytest.raises(UserError):
        kg.update(insert="<http://a> <http://p> oops .")
    kg.update(insert=data / "second.nt")
    assert len(list((data / "s" / "_scratch").iterdir())) == 1
    del kg
    assert not (data / "s" / "_scratch").exists() or not list((data / "s" / "_scratch").iterdir())


@pytest.mark.spark
def test_progress_is_told_of_every_stage(spark: Any, data: Path) -> None:
    told: list[tuple[str, float]] = []
    kg = KnowledgeGraph("rhodf", store=data / "s", engine=spark)
    report = kg.update(insert=data / "first.nt", progress=lambda what, share: told.append((what, share)))
    stages = ["parse", "dictionary", "encode"]
    assert [phase.name for phase in report.phases][:3] == stages
    assert [what for what, _ in told if what in stages] == sorted(
        (what for what, _ in told if what in stages), key=stages.index
    )
    assert set(stages) < {what for what, _ in told} and all(0 <= share <= 1 for _, share in told)
    assert report.phases[0].facts == FIRST.count("\n")
