"""What other readers make of a store: Delta, pandas, Polars, DuckDB, Spark; and what a look-up touches."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from evergraph import KnowledgeGraph, Program, UserError
from evergraph.engines.base import Which
from evergraph.rules.model import TRIPLE
from evergraph.store import layout
from evergraph.store.layout import DICTIONARY, FACTS, RELATIONS, RULES
from stores import FAMILY, IS_A, assert_equal, made, triple


@pytest.fixture
def mixed(tmp_path: Path) -> KnowledgeGraph:
    """A store with derived facts, a flip, named facts, literals and files that went."""
    kg = made(
        tmp_path / "mixed", FAMILY, triple(1) + '<http://ex/x> <http://ex/name> "Zoë \\"x\\""@en .\n', "edge(1, 2) . on() ."
    )
    kg.update(insert=f"<http://ex/x> {IS_A} <http://ex/B> . \n <http://ex/y> {IS_A} <http://ex/A> .")
    return kg


def rows_of(kg: KnowledgeGraph, which: str = "all") -> list[tuple[str, ...]]:
    return sorted(zip(*(kg.to_arrow(which).column(i).to_pylist() for i in range(3)), strict=True))


def decoded(facts: list[dict[str, Any]], terms: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    text = {row["id"]: row["term"] for row in terms}
    assert sorted(text) == list(range(len(terms)))
    return sorted(tuple(text[row[c]] for c in ("subject", "predicate", "object")) for row in facts)


def by_deltalake(path: Path) -> list[dict[str, Any]]:
    return DeltaTable(str(path)).to_pyarrow_table().to_pylist()


def by_pandas(path: Path) -> list[dict[str, Any]]:
    return DeltaTable(str(path)).to_pandas().to_dict("records")


def by_polars(path: Path) -> list[dict[str, Any]]:
    return pl.read_delta(str(path)).to_dicts()


def by_duckdb(path: Path) -> list[dict[str, Any]]:
    return duckdb.connect().read_parquet(DeltaTable(str(path)).file_uris()).to_arrow_table().to_pylist()


@pytest.mark.parametrize("read", [by_deltalake, by_pandas, by_polars, by_duckdb])
def test_readers_of_tables_see_the_facts(mixed: KnowledgeGraph, read: Any) -> None:
    path = mixed._store.path
    facts = read(path / FACTS)
    assert decoded(facts, read(path / DICTIONARY)) == rows_of(mixed)
    assert sum(row["explicit"] for row in facts) == mixed.counts(Which.EXPLICIT)[TRIPLE]
    assert {row.get("shard", 0) for row in facts} <= set(range(4))
    named = sorted((row["relation"], len(row["arguments"]), row["explicit"]) for row in read(path / RELATIONS))
    assert named == [("edge", 2, True), ("on", 0, True)]
    texts = [row["rule"] for row in sorted(read(path / RULES), key=lambda row: row["number"])]
    assert Program.parse("".join(texts)).rules == mixed.rules.rules


@pytest.mark.spark
def test_spark_reads_the_files_as_they_are(mixed: KnowledgeGraph, spark: Any) -> None:
    def read(table: str) -> list[dict[str, Any]]:
        uris = DeltaTable(str(mixed._store.path / table)).file_uris()
        return [row.asDict() for row in spark.read.parquet(*uris).collect()]

    assert decoded(read(FACTS), read(DICTIONARY)) == rows_of(mixed)
    assert len(read(RELATIONS)) == 2 and len(read(RULES)) == len(mixed.rules.rules)


@pytest.mark.parametrize("which", ["all", "explicit", "derived"])
def test_a_view_in_duckdb_has_the_rows_of_the_graph(mixed: KnowledgeGraph, which: str) -> None:
    con = duckdb.connect()
    view = mixed._store.create_view(con, "facts of mine", which)
    assert view.columns == ["subject", "predicate", "object"]
    assert sorted(view.fetchall()) == rows_of(mixed, which) != []
    mixed._store.create_view(con, "facts of mine", which, version=0)
    old = KnowledgeGraph.open(mixed._store.path, version=0)
    assert sorted(con.execute('SELECT * FROM "facts of mine"').fetchall()) == rows_of(old, which)


@pytest.mark.spark
@pytest.mark.parametrize("which", ["all", "explicit", "derived"])
def test_a_view_in_spark_has_the_rows_of_the_graph(mixed: KnowledgeGraph, spark: Any, which: str) -> None:
    mixed._store.create_view(spark, "mine", which)
    assert sorted(map(tuple, spark.sql("SELECT subject, predicate, object FROM mine").collect())) == rows_of(mixed, which)
    assert sorted(map(tuple, mixed.to_spark(spark, which).collect())) == rows_of(mixed, which)
    old = KnowledgeGraph.open(mixed._store.path, version=0)
    assert sorted(map(tuple, old.to_spark(spark, which).collect())) == rows_of(old, which)


@pytest.mark.spark
def test_views_of_an_empty_store_are_empty(tmp_path: Path, spark: Any) -> None:
    kg = KnowledgeGraph(Program(()), store=tmp_path / "g")
    kg.update()
    assert kg._store.create_view(duckdb.connect(), "t").fetchall() == kg._store.create_view(spark, "t").collect() == []


def test_a_view_elsewhere_is_refused(mixed: KnowledgeGraph) -> None:
    with pytest.raises(UserError, match=r"EG105.*DuckDB"):
        mixed._store.create_view(object())


def test_frames_have_the_rows_of_the_graph(mixed: KnowledgeGraph) -> None:
    assert sorted(map(tuple, mixed.to_pandas("derived").itertuples(index=False))) == rows_of(mixed, "derived") != []


def test_look_ups_touch_the_square_root_of_the_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By predicate and subject, and by predicate and object, as far as Parquet's statistics tell, over all shards."""
    monkeypatch.setattr(layout, "ROW_GROUP", 64)
    monkeypatch.setattr(layout, "FILE_ROWS", 4096)
    draw = np.random.default_rng(5)
    subjects, objects = draw.integers(0, 6000, 40_000), draw.integers(0, 3000, 40_000)
    large = [(f"<http://ex/s{s}>", "<http://ex/large>", f"<http://ex/o{o}>") for s, o in zip(subjects, objects, strict=True)]
    small = [(f"<http://ex/s{n}>", f"<http://ex/small{n % 7}>", "<http://ex/o1>") for n in range(500)]
    kg = KnowledgeGraph(Program(()), store=tmp_path / "g")
    kg.update(insert=pa.table(dict(zip(("subject", "predicate", "object"), zip(*large, *small, strict=True), strict=True))))
    groups = [group for file in kg._store.snapshot().files(FACTS) for group in statistics(file.path)]
    key = kg._dictionary.find("<http://ex/large>")
    mine = [group for group in groups if group["predicate"][0] <= key <= group["predicate"][1]]
    root = len(mine) ** 0.5
    assert root > 20
    for column, names in (("subject", subjects[:50]), ("object", objects[:50])):
        for number in names:
            value = kg._dictionary.find(f"<http://ex/{column[0]}{number}>")
            admitted = sum(group[column][0] <= value <= group[column][1] for group in mine)
            assert 1 <= admitted <= 4 * root, (column, number, admitted, len(mine))
    assert_equal(KnowledgeGraph.open(tmp_path / "g"), kg)


def statistics(path: Path) -> Iterator[dict[str, tuple[int, int]]]:
    """Lowest and highest value of the columns of each row group."""
    with pq.ParquetFile(path) as file:
        for number in range(file.num_row_groups):
            group = file.metadata.row_group(number)
            columns = [group.column(i) for i in range(3)]
            yield {c.path_in_schema: (c.statistics.min, c.statistics.max) for c in columns}
