"""A stream that another process goes on with: the same answers and expiries as if it had never been interrupted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evergraph import KnowledgeGraph, Program, UserError
from evergraph.rules.printer import print_atom
from evergraph.stream import Stream
from evergraph.stream.checkpoint import load, restore, save, state_of
from strategies import EX, facts, programs

S, T, MADE = f"<{EX}s>", f"<{EX}t>", f"<{EX}made>"
WINDOWS = ["RANGE 3s STEP 1s", "RANGE 4s STEP 2s", "RANGE 2s TUMBLING", "RANGE TRIPLES 3", "RANGE 500ms STEP 250ms"]
QUERIES = [
    "REGISTER QUERY all{n} AS SELECT ?s ?o FROM STREAM {s} [{w}] {{ ?s <http://example.org/p> ?o }}",
    "REGISTER QUERY new{n} AS SELECT ISTREAM * FROM STREAM {s} [{w}] {{ ?s ?p ?o }}",
    "REGISTER QUERY gone{n} AS SELECT DSTREAM ?s FROM STREAM {s} [{w}] {{ ?s ?p ?o OPTIONAL {{ ?o ?p ?z }} }}",
    "REGISTER QUERY ask{n} COMPUTE EVERY 2s AS ASK ISTREAM FROM STREAM {s} [{w}] {{ ?s a ?o }}",
    "REGISTER STREAM <http://example.org/made> AS CONSTRUCT {{ ?o <http://example.org/q> ?s }} "
    "FROM STREAM {s} [{w}] {{ ?s <http://example.org/p> ?o }}",
]


@st.composite
def streams(draw: st.DrawFn) -> dict[str, Any]:
    """Queries over two streams, one of them also over what another makes; facts that come in some order."""
    chosen = draw(st.lists(st.tuples(st.sampled_from(QUERIES), st.sampled_from([S, T]), st.sampled_from(WINDOWS)), min_size=1))
    texts = [text.format(n=n, s=s, w=w) for n, (text, s, w) in enumerate(chosen[:4])]
    made = [text for text in texts if "REGISTER STREAM" in text]
    texts = [text for text in texts if text not in made[1:]]
    if made:
        texts.append(QUERIES[1].format(n=9, s=MADE, w="RANGE 2s STEP 1s"))
    read = [s for s in (S, T) if any(s in text for text in texts)]
    pushed = draw(
        st.lists(
            st.tuples(st.lists(facts(), min_size=1, max_size=3), st.integers(0, 40), st.sampled_from(read)),
            min_size=1,
            max_size=10,
        )
    )
    return {"texts": texts, "pushed": pushed, "lateness": draw(st.sampled_from([0, 2])), "at": draw(st.integers(0, 10))}


def made(kg: KnowledgeGraph, texts: list[str], **options: Any) -> Stream:
    stream = kg.stream(**options)
    for text in texts:
        stream.register(text)
    return stream


def shown(answers: Iterator[Any]) -> list[Any]:
    return [(a.query, a.instant, a.change, sorted(map(str, a.to_arrow().to_pylist()))) for a in answers]


def ends(stream: Stream) -> list[Any]:
    """All facts in the windows and, by expiry, what follows from them, with their ends."""
    out = []
    for dataset in stream._datasets.values():
        lives = [(clock, *rows) for clock, *rows in dataset._sliding.contents()]
        if dataset.algorithm == "expiry":
            lives += [("derived", *rows) for rows in dataset._sliding.window.lives.rows()]  # type: ignore[attr-defined]
        for clock, key, relation, at in lives:
            name = stream._terms.term(key) if isinstance(key, int) else key
            columns = [stream._terms.decode(c).to_pylist() for c in relation.columns()]
            rows = zip(*columns, at.tolist(), strict=True) if columns else [tuple(at.tolist())]
            out += [(clock, name, *row) for row in rows]
    return sorted(out)


def again(stream: Stream, new: Stream, folder: Path) -> Stream:
    save(state_of(stream), folder)
    restore(new, load(folder))
    return new


@settings(max_examples=150)
@given(program=programs, base=st.lists(facts(), max_size=6), about=streams())
def test_an_interrupted_stream_answers_as_one_that_was_not(program: Program, base: list[Any], about: dict[str, Any]) -> None:
    kg = KnowledgeGraph(program, equality="off")
    kg.update(insert=base)
    stream = made(kg, about["texts"], lateness=about["lateness"])
    whole: Stream | None = None
    for number, (atoms, quarter, name) in enumerate(about["pushed"]):
        if number == about["at"]:
            whole = stream
            with TemporaryDirectory() as folder:
                stream = again(whole, made(kg, about["texts"], lateness=about["lateness"]), Path(folder, "1"))
            assert stream.stats() == {**whole.stats(), "terms": stream.stats()["terms"], "datasets": stream.stats()["datasets"]}
        for one in (stream,) if whole is None else (whole, stream):
            one.push(" ".join(print_atom(atom) + " ." for atom in atoms), quarter / 4, name)
        got = shown(stream.advance())
        assert whole is None or (got, ends(stream)) == (shown(whole.advance()), ends(whole))
    if whole is not None:
        assert shown(stream.advance(to=20)) == shown(whole.advance(to=20))
        assert (ends(stream), stream.late, stream.now) == (ends(whole), whole.late, whole.now)


IS_IN = "isIn(?x, ?z) :- isIn(?x, ?y), isIn(?y, ?z) . on() :- isIn(?x, ?x) ."


def test_facts_of_any_arity_and_a_graph_that_has_changed_in_between(tmp_path: Path) -> None:
    kg = KnowledgeGraph(Program.parse(IS_IN))
    kg.update(insert="isIn(2, 3) . isIn(7, 8) .")
    stream = kg.stream("RANGE 10s STEP 1s")
    stream.push('isIn(1, 2) . seen() . far(1, "a\\n", <http://example.org/x>) .', 1)
    stream.push("isIn(3, 4) .", 5.5)
    assert list(stream.advance(to=5)) == []
    save(state_of(stream), tmp_path / "1")
    other = KnowledgeGraph(Program.parse(IS_IN))  # where terms have other ids
    other.update(insert='isIn("new", 9) . isIn(9, 2) . isIn(2, 3) .')
    new = other.stream("RANGE 10s STEP 1s")
    restore(new, load(tmp_path / "1"))
    assert (new.now, new.watermark, new.behind) == (stream.now, stream.watermark, stream.behind)
    assert sorted(new.graph.counts().items()) == [("far", 1), ("isIn", 8), ("seen", 1)]
    for to, count in ((6, 13), (11, 13), (12, 10), (16, 6)):
        assert list(new.advance(to=to)) == [] and new.graph.counts()["isIn"] == count, to


def test_facts_that_wait_keep_their_order(tmp_path: Path) -> None:
    """Of those that happened at once, the last that came is the last triple."""
    kg = KnowledgeGraph(Program.parse(IS_IN))
    stream = kg.stream("RANGE TRIPLES 2")
    for text in ("isIn(1, 2) .", "isIn(3, 4) .", "seen(1) .", "isIn(5, 6) ."):
        stream.push(text, 1)
    again(stream, new := kg.stream("RANGE TRIPLES 2"), tmp_path / "1")
    assert list(new.advance(to=2)) == [] and new.graph.counts() == {"seen": 1, "isIn": 1}
    assert [tuple(map(int, row)) for row in new.graph.relation("isIn")] == [(5, 6)]


def test_blank_nodes_of_a_later_file_are_new(tmp_path: Path) -> None:
    (tmp_path / "data.ttl").write_text("_:b <http://example.org/p> 1 .")
    kg = KnowledgeGraph("rdfs")
    stream = kg.stream("RANGE 10s STEP 1s")
    stream.push(tmp_path / "data.ttl", 1)
    again(stream, new := kg.stream("RANGE 10s STEP 1s"), tmp_path / "1")
    new.push(tmp_path / "data.ttl", 2)
    assert list(new.advance(to=3)) == [] and len(new.query("SELECT ?s { ?s <http://example.org/p> 1 }")) == 2


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"windows": "RANGE 9s STEP 1s"}, "other windows"),
        ({"algorithm": "recompute"}, "other algorithm: auto, not recompute"),
        ({"lateness": 1}, "other lateness: 0, not 1000000"),
        ({"windows": None}, "other queries: all"),
    ],
)
def test_the_state_of_another_stream(change: dict[str, Any], what: str) -> None:
    kg = KnowledgeGraph("rdfs")
    stream, other = (kg.stream(**{"windows": "RANGE 10s STEP 1s", **options}) for options in ({}, change))
    for one in (stream, other):
        if one.declared:
            one.register("REGISTER QUERY all AS SELECT * { ?s ?p ?o }")
    other.push("node(1) .", 1) if other.declared else None
    with pytest.raises(UserError, match=what) as caught:
        restore(other, state_of(stream))
    assert caught.value.code == "EG608"
    assert not other.declared or other.behind[0] == 1, "nothing has changed"


def test_a_folder_without_a_state(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="EG608"):
        load(tmp_path / "none")
    save(state_of(KnowledgeGraph("rdfs").stream()), tmp_path / "1")
    (tmp_path / "1" / "facts.arrow").write_bytes(b"ARROW1")
    with pytest.raises(UserError, match="EG608"):
        load(tmp_path / "1")


def test_the_cost_follows_the_windows(tmp_path: Path) -> None:
    """The background is in no file of the state, and a state that is there is replaced."""
    kg = KnowledgeGraph("rdfs")
    kg.update(insert=[(f"<{EX}s{n}>", f"<{EX}p>", f"<{EX}o>") for n in range(2000)])
    stream = kg.stream("RANGE 10s STEP 1s")
    for at in range(3):
        stream.push(f"<{EX}s{at}> <{EX}q> <{EX}o> .", at)
        assert list(stream.advance()) == []
        save(state_of(stream), tmp_path / "1")
        assert len(load(tmp_path / "1").facts) == at + 1
    assert sum(path.stat().st_size for path in (tmp_path / "1").iterdir()) < 5000
    assert [path.name for path in tmp_path.iterdir()] == ["1"]
