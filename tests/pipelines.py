"""Stores made twice, in process and in shards, and Spark without Spark.

Frames that are lists of Arrow batches (`Frame`) let files be cut into many small blocks and random programs be tried.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

from evergraph import Program
from evergraph.engines.spark import mail
from evergraph.engines.spark.engine import SparkEngine
from evergraph.engines.spark.mail import Kind
from evergraph.engines.spark.superstep import Job, Superstep
from evergraph.formats import files
from evergraph.store import Store, layout
from evergraph.store.log import TABLES

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


@pytest.fixture(name="data")
def data_folder(tmp_path: Path) -> Path:
    (tmp_path / "first.nt").write_text(FIRST)
    (tmp_path / "second.nt").write_text(SECOND)
    return tmp_path
