"""The pipeline on Spark when something is wrong: told as in process, and nothing is left of it."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conftest import assert_same, everything
from evergraph import KnowledgeGraph, UserError
from evergraph.formats import Rejects, cut_files
from evergraph.pipeline.load import Pipeline
from evergraph.store import Store
from evergraph.store.layout import DICTIONARY, FACTS, RELATIONS
from evergraph.store.log import TABLES
from pipelines import FIRST, IS_A, NAMED, SECOND, THIRD, assert_same_bytes, contents, data_folder  # noqa: F401 - a fixture


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
