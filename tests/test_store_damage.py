"""Damaged files of a store are named and harm no other version; stores of a newer format are left alone."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from conftest import assert_same, everything
from evergraph import KnowledgeGraph, Program, UserError
from evergraph.store import Store, layout, log
from evergraph.store.layout import DICTIONARY, FACTS, RELATIONS, RULES
from evergraph.store.read import read_facts, read_terms
from evergraph.store.rules import read_rules
from survival import CHANGE, FIRST, LARGE, NEXT, PROGRAM, TYPE


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """A store whose last version has a file of its own in every table of facts and terms."""
    kg = KnowledgeGraph(PROGRAM, store=tmp_path / "g")
    for text in (FIRST, CHANGE):
        kg.update(insert=text)
    return tmp_path / "g"


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """The same, with files whose middle is in their pages."""
    more = Program.parse(" ".join(f"more{n}(?x) :- edge(?x, ?y), node{n * 7919}(?y) ." for n in range(40)))
    kg = KnowledgeGraph(Program((*PROGRAM.rules, *more.rules)), store=tmp_path / "g")
    for text in (FIRST, CHANGE + LARGE):
        kg.update(insert=text)
    return tmp_path / "g"


def last_file(path: Path, table: str) -> Path:
    old = {file.path for file in Store(path).snapshot(0).files(table)} if table != RULES else set()
    return next(file.path for file in Store(path).snapshot().files(table) if file.path not in old)


def flip(data: bytes, place: int, bit: int = 0x10) -> bytes:
    return data[:place] + bytes([data[place] ^ bit]) + data[place + 1 :]


def end_of_column(data: bytes, number: int) -> int:
    """The place of the last byte of a column's pages."""
    with pq.ParquetFile(io.BytesIO(data)) as file:
        group = file.metadata.row_group(0)
        column = group.column(number % group.num_columns)
    return int((column.dictionary_page_offset or column.data_page_offset) + column.total_compressed_size - 1)


DAMAGE: dict[str, Callable[[bytes], bytes | None]] = {
    "flipped": lambda data: flip(data, end_of_column(data, 0)),
    "flipped in the last column": lambda data: flip(data, end_of_column(data, -1)),
    "in the middle": lambda data: flip(data, len(data) // 2),
    "truncated": lambda data: data[: len(data) // 2],
    "short": lambda data: data[:-1],
    "empty": lambda _: b"",
    "missing": lambda _: None,
}


@pytest.mark.parametrize("how", DAMAGE)
@pytest.mark.parametrize("table", [FACTS, RELATIONS, DICTIONARY, RULES])
def test_a_damaged_file_is_named_and_harms_no_other_version(large: Path, table: str, how: str) -> None:
    bad = last_file(large, table)
    data = bad.read_bytes()
    after = DAMAGE[how](data)
    bad.unlink() if after is None else bad.write_bytes(after)
    rest = {p: p.read_bytes() for p in large.rglob("*") if p.is_file() and p.name != ".writer"}
    for look in (
        lambda: KnowledgeGraph.open(large),
        lambda: KnowledgeGraph.open(large, engine="reference"),
        lambda: KnowledgeGraph.open(large, version=1),
    ):
        with pytest.raises(UserError, match="EG406") as caught:
            look()
        assert str(bad) in str(caught.value) and len(str(caught.value).splitlines()) == 1
    assert {p: p.read_bytes() for p in large.rglob("*") if p.is_file() and p.name != ".writer"} == rest
    if table != RULES:
        old = KnowledgeGraph.open(large, version=0)
        assert old.verify() == sum(old.counts().values()) > 0
    bad.write_bytes(data)
    KnowledgeGraph.open(large).update(insert=NEXT)
    assert KnowledgeGraph.open(large).version == 2


def test_a_file_that_is_damaged_while_a_graph_is_open_stops_its_rewriting(damaged: Path) -> None:
    kg = KnowledgeGraph.open(damaged)
    kg.update(insert=f"[<http://ex/y>, {TYPE}, <http://ex/A>] .")
    held, version = everything(kg), kg.version
    for file in Store(damaged).snapshot().files(FACTS):
        file.path.write_bytes(flip(file.path.read_bytes(), 10))
    with pytest.raises(UserError, match="EG406"):
        kg.update(insert=f"[<http://ex/y>, {TYPE}, <http://ex/B>] .")
    assert_same(everything(kg), held)
    assert Store(damaged).snapshot().version == version == kg.version


@pytest.mark.parametrize("table", [FACTS, RELATIONS, DICTIONARY, RULES])
def test_no_flipped_bit_of_a_file_changes_what_is_read(damaged: Path, table: str) -> None:
    """Wherever it is, in the pages or in the footer: it is told, as one line, or it does not matter."""
    Store(damaged).compact()
    snapshot = Store(damaged).snapshot()

    def read() -> Any:
        if table == RULES:
            return read_rules(snapshot)
        if table == DICTIONARY:
            return read_terms(snapshot).to_pylist()
        facts = read_facts(snapshot)
        return [{key: r.rows()[0].tolist() for key, r in part.items()} for part in (facts.all, facts.explicit)]

    want, bad = read(), snapshot.files(table)[-1].path
    data = bad.read_bytes()
    unclear = []
    for place, bit in ((n, 1 << (n + more) % 8) for n in range(len(data)) for more in (0, 4)):
        bad.write_bytes(flip(data, place, bit))
        try:
            if read() != want:
                unclear.append(f"{place}: other facts")
        except UserError as error:
            if error.code != "EG406" or str(bad) not in str(error):
                unclear.append(f"{place}: {error}")
        except Exception as error:
            unclear.append(f"{place}: {type(error).__name__}: {error}")
    assert not unclear, f"{len(unclear)} of {2 * len(data)} bits\n" + "\n".join(unclear[:20])


def test_a_damaged_log_is_named(damaged: Path) -> None:
    commit = log._log_file(damaged, FACTS, 1)
    data = commit.read_bytes()
    for text in (b"", b"{", b'{"commitInfo": {}}\n', b"\xff\xff"):
        commit.write_bytes(text)
        with pytest.raises(UserError, match="EG406") as caught:
            KnowledgeGraph.open(damaged)
        assert str(commit) in str(caught.value)
    commit.write_bytes(data)
    assert KnowledgeGraph.open(damaged).version == 1


def test_a_newer_format_is_refused_and_untouched(damaged: Path) -> None:
    commit = log._log_file(damaged, FACTS, 1)
    lines = commit.read_text().splitlines(keepends=True)
    first = json.loads(lines[0])
    first["commitInfo"]["evergraph"] |= {"format": layout.FORMAT + 1, "something": "new"}
    commit.write_text(json.dumps(first) + "\n" + "".join(lines[1:]))
    kept = {p: p.read_bytes() for p in damaged.rglob("*") if p.is_file() and p.name != ".writer"}
    for look in (
        lambda: KnowledgeGraph.open(damaged),
        lambda: Store(damaged).history(),
        lambda: Store(damaged).compact(),
        lambda: Store(damaged).change_feed(),
    ):
        with pytest.raises(UserError, match=rf"EG404.*format {layout.FORMAT + 1}.*newer Evergraph"):
            look()
    assert {p: p.read_bytes() for p in damaged.rglob("*") if p.is_file() and p.name != ".writer"} == kept
