"""Stores of graphs in which one name stands for all that are the same: what is written, what is read, what readers see."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from deltalake import DeltaTable

from conftest import assert_same, everything
from evergraph import KnowledgeGraph, Program, UserError
from evergraph.engines.base import Which
from evergraph.store import Store, log, store
from evergraph.store.layout import FACTS, NAMES
from evergraph.store.names import read_names
from evergraph.store.read import read_facts
from stores import assert_equal, replayed

PREFIX = "@prefix : <http://ex/> .\n"
RULES = Program.parse(f"""{PREFIX}
[?y, owl:sameAs, ?z] :- [?x, :key, ?y], [?x, :key, ?z] .
[?x, rdf:type, :Known] :- [?y, :knows, ?x] .
near(?x, ?y) :- [?x, :knows, ?y] .
near(?x, ?z) :- near(?x, ?y), near(?y, ?z) .
""")
STEPS = (
    ("[:ann, :knows, :bob] . [:bob, rdf:type, :Boy] . on(:bob) .", ""),
    ("[:k, :key, :bob] . [:k, :key, :rob] . [:rob, :knows, :cid] .", ""),
    ("[:Boy, owl:sameAs, :Lad] . [:knows, owl:sameAs, :kennt] . [:cid, :kennt, :dan] .", ""),
    ("[:k, :key, :bo] . [:bo, rdf:type, :Lad] . on(:bo) . [rdf:type, owl:sameAs, :is] .", ""),
    ("[:eve, :is, :Lad] . [owl:sameAs, :knows, :bob] .", "[:k, :key, :rob] ."),
    ("", "[:knows, owl:sameAs, :kennt] . [:k, :key, :bob] ."),
    ("[:bob, owl:sameAs, :dan] .", "[:Boy, owl:sameAs, :Lad] . on(:bo) ."),
    ("", "[:bob, owl:sameAs, :dan] . [rdf:type, owl:sameAs, :is] . [:bob, rdf:type, :Boy] ."),
)
"""Cliques of persons, classes and predicates, `rdf:type` among them, that come, grow and part."""


def text(facts: str) -> Any:
    return PREFIX + facts if facts else ()


def written(path: Path, steps: tuple[tuple[str, str], ...] = STEPS) -> KnowledgeGraph:
    kg = KnowledgeGraph(RULES, store=path)
    for insert, delete in steps:
        kg.update(insert=text(insert), delete=text(delete))
    return kg


def by_axioms(steps: tuple[tuple[str, str], ...] = STEPS) -> Iterator[KnowledgeGraph]:
    """After each step, what readers are to see."""
    kg = KnowledgeGraph(RULES, equality="axioms")
    for insert, delete in steps:
        kg.update(insert=text(insert), delete=text(delete))
        yield kg


@pytest.fixture
def cliques(tmp_path: Path) -> KnowledgeGraph:
    """A store with cliques of every kind."""
    return written(tmp_path / "g", STEPS[:5])


@pytest.mark.parametrize("writer", ["stays", "memory", "reference"])
def test_a_graph_comes_back_after_names_merge_and_part(tmp_path: Path, writer: str) -> None:
    kg, path = KnowledgeGraph(RULES, store=tmp_path / "g"), tmp_path / "g"
    assert kg.equality == "rewrite"
    held, moved = [], []
    for (insert, delete), want in zip(STEPS, by_axioms(), strict=True):
        if writer != "stays" and Store(path).exists:
            kg = KnowledgeGraph.open(path, engine=writer)
        kg.update(insert=text(insert), delete=text(delete))
        for got in (kg, KnowledgeGraph.open(path), KnowledgeGraph.open(path, engine="reference")):
            assert_equal(got, want, insert + delete)
            assert got.equality == "rewrite" and got.counts() == want.counts()
            assert got.verify() == sum(want.counts().values())
        info = Store(path).snapshot().info
        assert (info.explicit, info.derived) == (want.counts(Which.EXPLICIT), want.counts(Which.DERIVED))
        held.append((everything(want, Which.EXPLICIT), everything(want, Which.DERIVED)))
        moved.append(len(read_names(Store(path).snapshot())))
    assert max(moved) == moved[4] + 1 == 5 and moved[-1] == 0
    for version, facts in enumerate(held):
        old = KnowledgeGraph.open(path, version=version)
        assert (everything(old, Which.EXPLICIT), everything(old, Which.DERIVED)) == facts
    assert list(replayed(kg)) == held


def test_every_engine_writes_the_same(tmp_path: Path, cliques: KnowledgeGraph) -> None:
    KnowledgeGraph.open(cliques._store.path, engine="reference").save(tmp_path / "reference")
    cliques.save(tmp_path / "memory")
    snapshots = [Store(tmp_path / name).snapshot() for name in ("g", "reference", "memory")]
    for part in ("all", "explicit"):
        found = [{k: r.rows()[0].tolist() for k, r in getattr(read_facts(s), part).items()} for s in snapshots]
        assert found[0] == found[1] == found[2]
    pairs = [list(zip(n.moved.tolist(), n.represented.tolist(), strict=True)) for n in map(read_names, snapshots)]
    assert pairs[0] == pairs[1] == pairs[2] and len(pairs[0]) == 4
    copy = KnowledgeGraph.open(tmp_path / "memory")
    assert copy.equality == "rewrite"
    assert_equal(copy, cliques)


def test_the_store_is_smaller_than_what_it_stands_for(tmp_path: Path) -> None:
    kg = written(tmp_path / "g", ((" ".join(f"[:k, :key, :n{i}] . [:n{i}, :p{i}, :n{i}] ." for i in range(10)), ""),))
    rows, names = (sum(file.rows for file in kg._snapshot.files(table)) for table in (FACTS, NAMES))
    assert len(kg) == 10 * 100 + 100 + 10 + 13 and names == 9
    assert rows == 20 + 9 + 14, "explicit facts as given, normal forms that were not given, reflexive ones"


def test_the_table_of_names_is_a_delta_table_like_the_others(cliques: KnowledgeGraph) -> None:
    rows = DeltaTable(str(cliques._store.path / NAMES)).to_pyarrow_table().to_pylist()
    found = {tuple(cliques._dictionary.term(row[c]).rpartition("/")[2] for c in ("name", "representative")) for row in rows}
    assert found == {("bo>", "bob>"), ("Lad>", "Boy>"), ("kennt>", "knows>"), ("is>", "22-rdf-syntax-ns#type>")}


def test_a_version_writes_the_names_that_changed(tmp_path: Path) -> None:
    kg = written(tmp_path / "g", STEPS[:3])
    before = kg._snapshot.files(NAMES)
    kg.update(insert=text("[:k, :key, :bo] ."))
    assert [file.rows for file in kg._snapshot.files(NAMES) if file not in before] == [1]
    assert set(before) < set(kg._snapshot.files(NAMES))
    held = kg._snapshot.files(NAMES)
    kg.update(insert=text("[:x, :y, :z] ."))
    assert kg._snapshot.files(NAMES) == held
    kg.update(delete=text("[:k, :key, :bo] ."))
    assert sum(file.rows for file in kg._snapshot.files(NAMES)) == sum(file.rows for file in before)


def test_rules_that_merge_names_come_and_go_in_a_store(tmp_path: Path) -> None:
    """The stored facts stay as they are, and the names change."""
    itself = " ".join(f"[{n}, owl:sameAs, {n}] ." for n in (":a", ":b", ":q", "owl:sameAs"))
    kg = KnowledgeGraph(RULES, store=tmp_path / "g")
    kg.update(insert=text(f"[:a, :q, :a] . {itself}"))
    rows, rule = kg._snapshot.files(FACTS), f"{PREFIX}[:a, owl:sameAs, :b] :- [:a, :q, :a] ."
    kg.update(insert_rules=rule)
    assert len(read_names(kg._snapshot)) == 1 and len(kg) == 10
    assert sum(f.rows for f in kg._snapshot.files(FACTS)) == sum(f.rows for f in rows)
    opened = KnowledgeGraph.open(tmp_path / "g")
    assert_equal(opened, kg)
    assert opened.verify() == 10
    feed = opened.change_feed(1, 1).to_pylist()
    assert Counter((row["_change_type"], row["explicit"]) for row in feed) == {("insert", False): 5}
    opened.update(delete_rules=rule)
    assert len(opened) == 5 == opened.verify() and not len(read_names(opened._snapshot))
    assert [row["_change_type"] for row in opened.change_feed(2, 2).to_pylist()] == ["delete"] * 5
    kg.update()
    assert_equal(kg, opened)


def test_a_writer_catches_up_with_names_that_another_merged(tmp_path: Path) -> None:
    first = written(tmp_path / "g", STEPS[:1])
    second = KnowledgeGraph.open(tmp_path / "g")
    first.update(insert=text(STEPS[1][0]))
    second.update(insert=text(STEPS[2][0]))
    first.update(insert=text(STEPS[3][0]))
    *_, want = by_axioms(STEPS[:4])
    assert_equal(first, want)
    assert_equal(KnowledgeGraph.open(tmp_path / "g"), want)


def names_of(kg: KnowledgeGraph) -> list[list[int]]:
    names = kg._engine.names  # type: ignore[attr-defined]
    return [names.moved.tolist(), names.represented.tolist()]


def test_an_update_that_fails_or_is_tried_leaves_names_and_store(cliques: KnowledgeGraph, monkeypatch: Any) -> None:
    held, names = everything(cliques), names_of(cliques)
    cliques.update(delete=text("[:k, :key, :bob] . [:knows, owl:sameAs, :kennt] ."), dry_run=True)
    assert_same(everything(cliques), held)

    def fail(*_: Any) -> None:
        raise OSError("no room")

    with monkeypatch.context() as patch:
        patch.setattr(store, "write_names", fail)
        with pytest.raises(UserError, match="EG403"):
            cliques.update(delete=text("[:k, :key, :bob] ."))
    assert_same(everything(cliques), held)
    assert names_of(cliques) == names and cliques.version == 4
    assert_same(everything(KnowledgeGraph.open(cliques._store.path)), held)
    assert cliques.update(delete=text("[:k, :key, :bob] .")).version == 5 and cliques.verify()


def test_compaction_merges_files_of_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "SMALL_FILES", 4)
    kg = KnowledgeGraph(RULES, store=tmp_path / "g")
    for n in range(8):
        kg.update(insert=text(f"[:k{n}, :key, :a{n}] . [:k{n}, :key, :b{n}] ."))
    history = Store(tmp_path / "g").history()
    assert "compact" in {version.info.operation for version in history}
    assert len(history[0].files(NAMES)) <= 4 and len(read_names(history[0])) == 8
    opened = KnowledgeGraph.open(tmp_path / "g")
    assert_equal(opened, kg)
    assert history[0].info.equality == opened.equality == "rewrite"
    *_, last = replayed(opened)
    assert last == (everything(kg, Which.EXPLICIT), everything(kg, Which.DERIVED))
    for version in history:
        if version.info.operation == "compact":
            assert not len(opened.change_feed(version.version, version.version))


@pytest.mark.parametrize("how", ["flipped", "truncated", "missing"])
def test_a_damaged_file_of_names_is_named(cliques: KnowledgeGraph, how: str) -> None:
    path = cliques._store.path
    bad = cliques._snapshot.files(NAMES)[-1].path
    data = bad.read_bytes()
    bad.unlink()
    if how != "missing":
        bad.write_bytes(data[:-9] if how == "truncated" else data[:20] + bytes([data[20] ^ 1]) + data[21:])
    for look in (lambda: KnowledgeGraph.open(path), lambda: Store(path).change_feed(4)):
        with pytest.raises(UserError, match="EG406") as caught:
            look()
        assert str(bad) in str(caught.value)
    assert KnowledgeGraph.open(path, version=0).verify()


def as_format_3(path: Path) -> None:
    """A store as it was before there were names."""
    shutil.rmtree(path / NAMES)
    for version in range(Store(path).snapshot().version + 1):
        commit = log._log_file(path, FACTS, version)
        first, *rest = commit.read_text().splitlines(keepends=True)
        said = json.loads(first)
        info = said["commitInfo"]["evergraph"]
        del info["equality"], info["tables"][NAMES]
        info["format"] = 3
        commit.write_text(json.dumps(said) + "\n" + "".join(rest))


def test_a_store_of_format_3_opens_as_it_was(tmp_path: Path) -> None:
    kg = KnowledgeGraph(RULES, equality="off", store=tmp_path / "g")
    kg.update(insert=text(STEPS[1][0]))
    kg.update(insert=text("[:k, :key, :bo] ."))
    as_format_3(tmp_path / "g")
    opened = KnowledgeGraph.open(tmp_path / "g")
    assert opened.equality == "off" and Store(tmp_path / "g").snapshot().info.format == 3
    assert_equal(opened, kg)
    assert len(opened.change_feed()) == len(kg)
    opened.update(insert=text("[:k, :key, :rob2] ."))
    assert [v.info.format for v in Store(tmp_path / "g").history()] == [4, 3, 3]
    again = KnowledgeGraph.open(tmp_path / "g")
    assert again.equality == "off" and not again._snapshot.files(NAMES)
    assert_equal(again, opened)
    assert again.verify() and Store(tmp_path / "g").compact().info.equality == "off"


@pytest.mark.parametrize("equality", ["axioms", "off"])
def test_other_equalities_are_kept_too(tmp_path: Path, equality: str) -> None:
    kg = KnowledgeGraph(RULES, equality=equality, store=tmp_path / "g")
    kg.update(insert=text(STEPS[1][0]))
    opened = KnowledgeGraph.open(tmp_path / "g")
    assert opened.equality == equality and not opened._snapshot.files(NAMES)
    for one in (kg, opened):
        one.update(insert=text(STEPS[3][0] + "apart(:bob, 1) ."))
    want = KnowledgeGraph(RULES, equality=equality)
    want.update(insert=text(STEPS[1][0] + STEPS[3][0] + "apart(:bob, 1) ."))
    assert_equal(opened, want)
    assert opened.verify()


def test_relations_that_only_facts_mention_are_replaced_in_after_a_store_is_opened(tmp_path: Path) -> None:
    for equality in ("axioms", "rewrite"):
        kg = KnowledgeGraph(RULES, equality=equality, store=tmp_path / equality)
        kg.update(insert=text("on(:bob) ."))
        for engine in ("memory", "reference"):
            opened = KnowledgeGraph.open(tmp_path / equality, engine=engine)
            opened.update(insert=text(f"[:bob, owl:sameAs, :{engine}] ."))
        assert len(opened.relation("on")) == 3 == len(KnowledgeGraph.open(tmp_path / equality).relation("on"))


@pytest.mark.parametrize("seed", range(6))
def test_feeds_and_versions_are_those_of_what_readers_see(tmp_path: Path, seed: int) -> None:
    """Names merge and part at random; the writer changes its engine."""
    rng, there = random.Random(seed), set[str]()
    names = [":a", ":b", ":c", ":p", ":q", "rdf:type", "owl:sameAs"]
    want = KnowledgeGraph(RULES, equality="axioms")
    KnowledgeGraph(RULES, store=tmp_path / "g").update()
    held = [(set[str](), set[str]())]
    for _ in range(6):
        came = {
            f"[{rng.choice(names)}, {rng.choice([*names, 'owl:sameAs', ':key'])}, {rng.choice(names)}] ."
            for _ in range(rng.randint(0, 3))
        } | {f"near({rng.choice(names[:5])}, {rng.choice(names[:5])}) ."}
        went = set(rng.sample(sorted(there), min(len(there), rng.randint(0, 3)))) - came
        there = there - went | came
        kg = KnowledgeGraph.open(tmp_path / "g", engine=rng.choice(["memory", "memory", "reference"]))
        for one in (want, kg):
            one.update(insert=text(" ".join(sorted(came))), delete=text(" ".join(sorted(went))))
        assert_equal(kg, want)
        if kg.version == len(held):
            held.append((everything(want, Which.EXPLICIT), everything(want, Which.DERIVED)))
    assert list(replayed(kg)) == held


# -- stats -------------------------------------------------------------------------------------------------------------


def test_stats_count_what_readers_see_and_what_is_kept(tmp_path: Path) -> None:
    kg = KnowledgeGraph(RULES)
    assert kg.stats()["equality"] == {"kept": "rewrite", "facts": 0, "cliques": 0, "names": 0, "largest": 1}
    counted = ("explicit", "derived", "predicates", "classes", "relations")
    for (insert, delete), want in zip(STEPS, by_axioms(), strict=True):
        kg.update(insert=text(insert), delete=text(delete))
        expected, found = want.stats(), kg.stats()
        for name in counted:
            assert found[name] == expected[name], name
        assert expected["equality"] is None
        assert found["equality"] == {"kept": "rewrite", **kg._engine.kept()}
        assert not kg._engine.relations(Which.ALL)._made, "nothing is expanded for it"
    part = written(tmp_path / "g", STEPS[:5]).stats()
    assert part["equality"] | {"facts": 0} == {"kept": "rewrite", "facts": 0, "cliques": 4, "names": 8, "largest": 2}
    assert part["tables"][NAMES]["rows"] == 4
    assert KnowledgeGraph.open(tmp_path / "g", engine="reference").stats()["equality"] is None


# -- other readers -----------------------------------------------------------------------------------------------------


def rows_of(kg: KnowledgeGraph, which: str) -> list[tuple[str, ...]]:
    return sorted(zip(*(kg.to_arrow(which).column(i).to_pylist() for i in range(3)), strict=True))


@pytest.mark.parametrize("which", ["all", "explicit", "derived"])
def test_a_view_in_duckdb_shows_every_name(tmp_path: Path, which: str) -> None:
    written(tmp_path / "g")
    for version in range(len(STEPS)):
        found = Store(tmp_path / "g").create_view(duckdb.connect(), "t", which, version).fetchall()
        assert sorted(found) == rows_of(KnowledgeGraph.open(tmp_path / "g", version=version), which)


@pytest.mark.spark
@pytest.mark.parametrize("which", ["all", "explicit", "derived"])
def test_spark_frames_of_a_store_show_every_name(cliques: KnowledgeGraph, spark: Any, which: str) -> None:
    assert sorted(map(tuple, cliques.to_spark(spark, which).collect())) == rows_of(cliques, which) != []
    old = KnowledgeGraph.open(cliques._store.path, version=2)
    assert sorted(map(tuple, old.to_spark(spark, which).collect())) == rows_of(old, which)


@pytest.mark.spark
@pytest.mark.parametrize("which", ["all", "explicit"])
@pytest.mark.parametrize(
    "query",
    [
        "SELECT * { ?s ?p ?o }",
        "SELECT ?x { ?x :kennt ?y . ?y a ?c }",
        "SELECT ?p { ?x ?p ?y . ?y :is :Lad }",
        "SELECT DISTINCT ?y { :rob owl:sameAs ?y }",
    ],
)
def test_answers_on_spark_are_those_without(cliques: KnowledgeGraph, spark: Any, query: str, which: str) -> None:
    asked = f"PREFIX : <http://ex/> PREFIX owl: <http://www.w3.org/2002/07/owl#> {query}"
    want = cliques.query(asked, which=which, result="arrow")
    found = cliques.query(asked, which=which, result="spark")
    rows = zip(*(want.column(name).to_pylist() for name in found.columns), strict=True)
    assert Counter(map(tuple, found.collect())) == Counter(rows)
