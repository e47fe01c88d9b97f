"""Streams beside a graph: pushing, advancing, asking."""

from __future__ import annotations

from datetime import UTC, datetime
from math import inf
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from rdflib import Graph, Literal, URIRef

from conftest import everything
from evergraph import KnowledgeGraph, Program, UserError
from evergraph.stream import Stream, Window
from evergraph.stream.stream import FORGET_FROM
from test_csparql import FIGURE_2

EX = "http://example/"
POSITIONS = "http://mobileservice.org/positions.trdf"
RULES = "@prefix ex: <http://example/> . ex:isIn[?x, ?z] :- ex:isIn[?x, ?y], ex:isIn[?y, ?z] ."
BACKGROUND = f"""
<{EX}Milano> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <{EX}City> .
<{EX}Centrale> <{EX}isIn> <{EX}Milano> .
<{EX}ann> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <{EX}Commuter> .
"""


def graph() -> KnowledgeGraph:
    kg = KnowledgeGraph(Program.parse(RULES))
    kg.update(insert=BACKGROUND)
    return kg


def is_in(subject: str, place: str) -> str:
    return f"<{EX}{subject}> <{EX}isIn> <{EX}{place}> ."


def remaining(subject: str, time: str) -> str:
    return f'<{EX}{subject}> <{EX}remainingTravelTime> "{time}"^^<http://www.w3.org/2001/XMLSchema#duration> .'


def rows(answers: Any) -> list[tuple[str, ...]]:
    return sorted(tuple(str(term).removeprefix(EX) for term in row) for row in answers)


def test_the_query_of_figure_2_runs() -> None:
    stream = graph().stream()
    registered = stream.register(FIGURE_2)
    assert (registered.name, registered.kind, registered.streams) == ("TotalAmountPerBroker", "SELECT", (POSITIONS,))
    stream.push(is_in("ann", "train"), 1)
    stream.push(remaining("ann", "PT45M"), 1)
    stream.push(is_in("train", "Centrale"), 3)
    stream.push(remaining("ann", "PT20M"), 5)
    found = {answers.timestamp: rows(answers) for answers in stream.advance(to=13)}
    milano = [("ann", "City", "Milano")]
    assert found == {2: [], 3: [], **{t: milano for t in range(4, 12)}, 12: [], 13: []}


def test_windows_are_half_open() -> None:
    stream = graph().stream("RANGE 10s STEP 1s")
    stream.push(is_in("ann", "bus"), 5)
    triple = tuple(URIRef(EX + name) for name in ("ann", "isIn", "bus"))
    held = {}
    for t in range(4, 18):
        list(stream.advance(to=t))
        held[t] = triple in stream
    assert held == {t: 6 <= t <= 15 for t in range(4, 18)}
    assert stream.now == 17


def test_when_a_triple_expires() -> None:
    stream = graph().stream("RANGE 10s STEP 1s")
    stream.push(is_in("ann", "train"), 1)
    stream.push(is_in("train", "Centrale"), 2.5)
    list(stream.advance(to=4))
    ends = {place: stream.expiry(tuple(URIRef(EX + n) for n in ("ann", "isIn", place))) for place in ("train", "Milano", "sea")}
    assert ends == {"train": 11, "Milano": 11, "sea": None}
    assert stream.expiry(tuple(URIRef(EX + n) for n in ("train", "isIn", "Milano"))) == 12.5
    assert stream.expiry(tuple(URIRef(EX + n) for n in ("Centrale", "isIn", "Milano"))) == inf


def test_tumbling_windows_and_windows_of_triples() -> None:
    for window, at, sizes in (
        ("RANGE 5s TUMBLING", range(1, 13), {5: 4, 10: 8}),
        ("RANGE TRIPLES 3 STEP 4s", range(1, 13), {4: 3, 8: 3, 12: 3}),
    ):
        kg = KnowledgeGraph(Program())
        stream = kg.stream(window)
        step = Window.of(window).step // 10**6
        for t in at:
            stream.push(f"<{EX}s{t}> <{EX}p> <{EX}o> .", t)
            list(stream.advance(to=t))
            if t % step == 0:
                assert len(stream) == min(sizes[t], 5 if step == 5 else 3), (window, t)


def test_several_streams_with_windows_of_their_own() -> None:
    stream = graph().stream({"a": "RANGE 2s STEP 1s", "b": "RANGE 6s STEP 2s"})
    stream.push(is_in("ann", "train"), 0, "a")
    stream.push(is_in("train", "Centrale"), 0, "b")
    held = {}
    for t in range(1, 10):
        list(stream.advance(to=t))
        held[t] = [
            tuple(URIRef(EX + n) for n in fact) in stream for fact in (("ann", "isIn", "train"), ("train", "isIn", "Milano"))
        ]
    assert held == {t: [1 <= t <= 2, 2 <= t <= 7] for t in range(1, 10)}


@pytest.mark.parametrize(
    ("report", "want"),
    [
        ("RSTREAM", {1: ["a"], 2: ["a", "b", "b"], 3: ["a", "b", "b"], 4: ["b", "b"], 5: []}),
        ("ISTREAM", {1: ["a"], 2: ["b", "b"]}),
        ("DSTREAM", {4: ["a"], 5: ["b", "b"]}),
    ],
)
def test_all_answers_or_what_is_new_or_gone(report: str, want: dict[int, list[str]]) -> None:
    stream = KnowledgeGraph(Program()).stream()
    text = f"REGISTER QUERY q AS SELECT {report} ?x FROM STREAM <x:s> [RANGE 3s STEP 1s] WHERE {{ ?x <x:p> ?y }}"
    stream.register(text)
    stream.push("<x:a> <x:p> <x:o> .", 0)
    stream.push("<x:b> <x:p> <x:o> . \n <x:b> <x:p> <x:u> .", 1)
    found = {a.timestamp: sorted(str(row.x).removeprefix("x:") for row in a) for a in stream.advance(to=5)}
    assert found == want


def test_an_ask_is_told_when_it_changes() -> None:
    stream = KnowledgeGraph(Program()).stream()
    for name, report in (("always", ""), ("rises", "ISTREAM"), ("falls", "DSTREAM")):
        stream.register(f"REGISTER QUERY {name} AS ASK {report} FROM STREAM <x:s> [RANGE 2s STEP 1s] {{ ?x <x:p> ?y }}")
    stream.push("<x:a> <x:p> <x:o> .", 0)
    found = [(a.query, a.timestamp, a.result.askAnswer) for a in stream.advance(to=3)]
    assert found == [
        ("always", 1, True),
        ("rises", 1, True),
        ("always", 2, True),
        ("always", 3, False),
        ("falls", 3, False),
    ]


def test_a_construct_makes_a_stream_that_another_query_reads() -> None:
    stream = graph().stream()
    stream.register(
        "REGISTER STREAM <x:places> COMPUTE EVERY 1s AS PREFIX ex: <http://example/> CONSTRUCT { ?x ex:seenIn ?y } "
        f"FROM STREAM <{POSITIONS}> [RANGE 2s STEP 1s] WHERE {{ ?x ex:isIn ?y . ?x a ex:Commuter }}"
    )
    stream.register(
        "REGISTER QUERY seen AS SELECT ?y FROM STREAM <x:places> [RANGE 2s STEP 1s] WHERE { ?x <http://example/seenIn> ?y }"
    )
    stream.push(is_in("ann", "Centrale"), 0)
    found: dict[Any, Any] = {}
    for answers in stream.advance(to=6):
        found.setdefault(answers.query, {})[answers.timestamp] = sorted(str(row[-1]).removeprefix(EX) for row in answers)
    both = ["Centrale", "Milano"]
    assert found == {
        "x:places": {1: both, 2: both, 3: [], 4: [], 5: [], 6: []},
        "seen": {1: [], 2: both, 3: both, 4: both, 5: [], 6: []},
    }


def test_queries_with_the_same_windows_share_one_materialisation() -> None:
    stream = graph().stream()
    for number in range(3):
        stream.register(FIGURE_2.replace("TotalAmountPerBroker", f"q{number}"))
    stream.register(FIGURE_2.replace("TotalAmountPerBroker", "longer").replace("RANGE 10sec", "RANGE 20sec"))
    datasets = [stream.queries[name].dataset for name in ("q0", "q1", "q2", "longer")]
    assert datasets[0] is datasets[1] is datasets[2] is not datasets[3]
    assert [d["queries"] for d in stream.stats()["datasets"]] == [["q0", "q1", "q2"], ["longer"]]


def test_a_query_sees_only_the_streams_that_it_names() -> None:
    stream = KnowledgeGraph(Program()).stream()
    for name in "ab":
        stream.register(f"REGISTER QUERY {name} AS SELECT ?x FROM STREAM <x:{name}> [RANGE 2s STEP 1s] WHERE {{ ?x <x:p> ?y }}")
    stream.push("<x:1> <x:p> <x:o> .", 0, "x:a")
    stream.push("<x:2> <x:p> <x:o> .", 0, "x:b")
    assert {a.query: [str(x) for (x,) in a] for a in stream.advance(to=1)} == {"a": ["x:1"], "b": ["x:2"]}


def test_compute_every_and_step_may_differ() -> None:
    stream = KnowledgeGraph(Program()).stream()
    stream.register("REGISTER QUERY q COMPUTE EVERY 2s AS SELECT ?x FROM STREAM <x:s> [RANGE 4s STEP 3s] WHERE { ?x <x:p> ?y }")
    for t in range(10):
        stream.push(f"<x:{t}> <x:p> <x:o> .", t)
    found = {a.timestamp: sorted(int(str(x)[2:]) for (x,) in a) for a in stream.advance(to=10)}
    ends = {2: 0, 4: 3, 6: 6, 8: 6, 10: 9}
    assert found == {t: [n for n in range(10) if end - 4 <= n < end] for t, end in ends.items()}


# -- event time ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 3, 50])
def test_late_facts_are_placed_or_told_however_they_are_pushed(size: int) -> None:
    stream = KnowledgeGraph(Program()).stream("RANGE 4s STEP 1s", lateness="2s")
    told: list[pa.Table] = []
    times = np.array([10, 11, 9, 14, 12, 11, 13, 20, 17, 18], np.int64) * 10**6
    found = {}
    for start in range(0, len(times), size):
        part = times[start : start + size]
        lines = "".join(f"<x:{t // 10**6}.{n}> <x:p> <x:o> .\n" for n, t in enumerate(part, start))
        stream.push(lines, part, on_late=told.append)
        list(stream.advance())
        found[stream.now] = len(stream)
    assert stream.late == 2
    assert sorted(str(t) for table in told for t in table.column("subject").to_pylist()) == ["<x:11.5>", "<x:17.8>"]
    assert stream.watermark == stream.now == 18
    list(stream.advance(final=True))
    assert stream.now == 21 and len(stream) == 2


def test_a_late_fact_goes_on_time() -> None:
    stream = KnowledgeGraph(Program()).stream("RANGE 5s STEP 1s", lateness=3)
    stream.push("<x:a> <x:p> <x:o> .", 10)
    list(stream.advance(to=12))
    stream.push("<x:b> <x:p> <x:o> .", 9)
    held = []
    for t in range(13, 18):
        list(stream.advance(to=t))
        held.append(len(stream))
    assert held == [2, 2, 1, 0, 0]


def test_a_gap_in_which_nobody_is_told_anything_costs_nothing() -> None:
    stream = KnowledgeGraph(Program()).stream()
    stream.register("REGISTER QUERY q AS SELECT ISTREAM ?x FROM STREAM <x:s> [RANGE 2s STEP 1s] WHERE { ?x <x:p> ?y }")
    stream.push("<x:a> <x:p> <x:o> .", 0)
    stream.push("<x:b> <x:p> <x:o> .", 10**9)
    assert [a.timestamp for a in stream.advance(final=True)] == [1, 10**9 + 1]
    assert [str(s) for s, _, _ in stream.graph.explicit] == ["x:b"]
    list(stream.advance(to=2 * 10**9))
    assert len(stream) == 0 and stream.now == 2 * 10**9


def test_what_is_gone_is_told_at_its_tick_however_quiet_it_was_before() -> None:
    stream = KnowledgeGraph(Program()).stream()
    stream.register("REGISTER QUERY q AS SELECT DSTREAM ?x FROM STREAM <x:s> [RANGE 100s STEP 1s] WHERE { ?x <x:p> ?y }")
    stream.push("<x:a> <x:p> <x:o> .", 0)
    stream.push("<x:b> <x:p> <x:o> .", 7)
    assert [(a.timestamp, len(a)) for a in stream.advance(to=1000)] == [(101, 1), (108, 1)]


def test_ticks_that_nobody_asked_for_are_not_lost() -> None:
    stream = KnowledgeGraph(Program()).stream()
    stream.register("REGISTER QUERY q AS SELECT ?x FROM STREAM <x:s> [RANGE 2s STEP 1s] WHERE { ?x <x:p> ?y }")
    stream.push("<x:a> <x:p> <x:o> .", 0)
    next(stream.advance(to=5))
    stream.advance(to=6)
    assert [a.timestamp for a in stream.advance(to=7)] == [2, 3, 4, 5, 6, 7]


def test_a_tick_that_was_taken_in_part_goes_on() -> None:
    stream = KnowledgeGraph(Program()).stream()
    for name in "abc":
        stream.register(f"REGISTER QUERY {name} AS SELECT ?x FROM STREAM <x:s> [RANGE 2s STEP 1s] WHERE {{ ?x <x:p> ?y }}")
    stream.push("<x:a> <x:p> <x:o> .", 0)
    next(stream.advance(to=2))
    assert [(a.query, a.timestamp) for a in stream.advance(to=2)] == [("b", 1), ("c", 1), ("a", 2), ("b", 2), ("c", 2)]
    assert stream


def test_a_stream_that_is_not_advanced_says_how_far_behind_it_is() -> None:
    stream = KnowledgeGraph(Program()).stream("RANGE 2s STEP 1s", capacity=3)
    for t in range(3):
        stream.push(f"<x:{t}> <x:p> <x:o> .", t)
    assert stream.behind == (3, 2)
    with pytest.raises(UserError, match=r"EG607: the stream is 4 facts and 2 s behind"):
        stream.push("<x:3> <x:p> <x:o> .", 3)
    list(stream.advance(to=3))
    assert stream.behind == (0, 0) and len(stream) == 2
    stream.push("<x:3> <x:p> <x:o> .", 3)


# -- the graph below -------------------------------------------------------------------------------------------------------


def test_a_stream_leaves_the_graph_as_it_is() -> None:
    kg = graph()
    before, terms = set(kg.explicit), len(kg._dictionary)
    stream = kg.stream("RANGE 2s STEP 1s")
    stream.push(is_in("bob", "Centrale"), 0)
    list(stream.advance(to=1))
    assert len(stream) == len(kg) + 2
    assert set(kg.explicit) == before and len(kg._dictionary) == terms
    kg.verify()


def test_windows_follow_the_graph_and_its_rules() -> None:
    kg = graph()
    stream = kg.stream("RANGE 20s STEP 1s")
    stream.push(is_in("ann", "Centrale"), 0)
    stream.push(is_in("ann", "later"), 2)
    list(stream.advance(to=1))
    assert (EX_("ann"), EX_("isIn"), EX_("Milano")) in stream
    kg.update(insert=is_in("Milano", "Lombardia"))
    list(stream.advance(to=2))
    assert (EX_("ann"), EX_("isIn"), EX_("Lombardia")) in stream
    kg.update(delete=is_in("Centrale", "Milano"))
    list(stream.advance(to=3))
    assert (EX_("ann"), EX_("isIn"), EX_("Milano")) not in stream
    assert (EX_("ann"), EX_("isIn"), EX_("later")) in stream
    kg.update(insert_rules="@prefix ex: <http://example/> . ex:holds[?y, ?x] :- ex:isIn[?x, ?y] .")
    list(stream.advance(to=4))
    assert (EX_("Centrale"), EX_("holds"), EX_("ann")) in stream


@pytest.mark.parametrize("algorithm", ["expiry", "dred"])
def test_what_the_graph_no_longer_says_the_window_may_still(algorithm: str) -> None:
    kg = graph()
    stream = kg.stream("RANGE 5s STEP 1s", algorithm=algorithm)
    stream.push(is_in("Centrale", "Milano"), 0)
    list(stream.advance(to=1))
    kg.update(delete=is_in("Centrale", "Milano"))
    held = []
    for t in range(2, 8):
        list(stream.advance(to=t))
        held.append((EX_("Centrale"), EX_("isIn"), EX_("Milano")) in stream)
    assert held == [True, True, True, True, False, False]


def EX_(name: str) -> URIRef:
    return URIRef(EX + name)


def test_terms_that_no_fact_has_any_more_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    assert FORGET_FROM > 1000
    kg = graph()
    stream = kg.stream("RANGE 3s STEP 1s")
    stream._forget_at = 50
    monkeypatch.setattr("evergraph.stream.stream.FORGET_FROM", 50)
    sizes = []
    for t in range(100):
        stream.push(is_in(f"user{t}", "Centrale") + "\n" + remaining(f"user{t}", f"PT{t}M"), t)
        list(stream.advance(to=t + 1))
        sizes.append(stream.stats()["terms"])
        assert len(stream) == len(kg) + 3 * min(t + 1, 3)
    assert max(sizes) <= 60


def test_explicit_and_derived_and_why() -> None:
    stream = graph().stream("RANGE 3s STEP 1s")
    stream.push(is_in("ann", "Centrale"), 0)
    list(stream.advance(to=1))
    dataset = stream.graph
    assert (EX_("ann"), EX_("isIn"), EX_("Centrale")) in set(dataset.explicit)
    assert (EX_("ann"), EX_("isIn"), EX_("Milano")) in set(dataset.derived)
    assert "Centrale" in str(dataset.explain((EX_("ann"), EX_("isIn"), EX_("Milano"))))
    assert dataset.to_arrow().num_rows == len(dataset)
    assert len(stream.query("SELECT * { ?x <http://example/isIn> <http://example/Milano> }")) == 2


@pytest.mark.parametrize("algorithm", ["auto", "recompute", "declarative", "dred", "counting", "backward-forward"])
def test_equality_and_negation_are_kept_by_updates(algorithm: str) -> None:
    text = "[?x, owl:sameAs, ?y] :- same(?x, ?y) ." if algorithm in ("auto", "recompute", "backward-forward") else ""
    kg = KnowledgeGraph(Program.parse(f"alone(?x) :- node(?x), NOT edge(?x, ?x) . {text}"), equality=None if text else "off")
    kg.update(insert="node(1) . node(2) . edge(2, 2) .")
    stream = kg.stream("RANGE 3s STEP 1s", algorithm=algorithm)
    stream.push("edge(1, 1) . node(3) .", 0)
    sizes = []
    for t in range(1, 6):
        list(stream.advance(to=t))
        sizes.append(sorted(int(x) for (x,) in stream.graph.relation("alone")))
    assert sizes == [[3], [3], [3], [1], [1]]


@pytest.mark.parametrize("rules", ["rdfs", "owl2rl"])
def test_rule_sets(rules: str) -> None:
    kg = KnowledgeGraph(rules)
    kg.update(insert=f"<{EX}isIn> <http://www.w3.org/2000/01/rdf-schema#domain> <{EX}Thing> .")
    stream = kg.stream("RANGE 3s STEP 1s")
    sizes = []
    for t in range(5):
        if t == 0:
            stream.push(is_in("ann", "Centrale") + f'\n<{EX}ann> <{EX}age> "7"^^<http://www.w3.org/2001/XMLSchema#int> .', 0)
        list(stream.advance(to=t + 1))
        sizes.append((EX_("ann"), URIRef("http://www.w3.org/1999/02/22-rdf-syntax-ns#type"), EX_("Thing")) in stream)
    assert sizes == [True, True, True, False, False]


# -- what is pushed --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "facts",
    [
        is_in("a", "b"),
        [(EX_("a"), EX_("isIn"), EX_("b"))],
        Graph().add((EX_("a"), EX_("isIn"), EX_("b"))),
        pa.table({"subject": [f"<{EX}a>"], "predicate": [f"<{EX}isIn>"], "object": [f"<{EX}b>"]}),
    ],
)
@pytest.mark.parametrize("at", [5, 5.0, datetime(1970, 1, 1, 0, 0, 5, tzinfo=UTC), "1970-01-01T00:00:05Z"])
def test_what_can_be_pushed(facts: Any, at: Any) -> None:
    stream = KnowledgeGraph(Program()).stream("RANGE 2s STEP 1s")
    stream.push(facts, at)
    list(stream.advance(to=6))
    assert (EX_("a"), EX_("isIn"), EX_("b")) in stream


@pytest.mark.parametrize("times", [[5, 6], [5.0, 6.0], ["1970-01-01T00:00:05Z", "1970-01-01T00:00:06Z"]])
def test_a_frame_may_bring_its_timestamps(times: list[Any]) -> None:
    table = pa.table({"subject": ["<x:a>", "<x:b>"], "predicate": ["<x:p>"] * 2, "object": ["<x:o>"] * 2, "timestamp": times})
    for frame in (table, table.to_pandas()):
        stream = KnowledgeGraph(Program()).stream("RANGE 1s STEP 1s")
        stream.push(frame)
        held = []
        for t in (6, 7):
            list(stream.advance(to=t))
            held += [str(s) for s, _, _ in stream.graph.explicit]
        assert held == ["x:a", "x:b"]


def mistake(act: Any) -> str:
    with pytest.raises(UserError) as error:
        act()
    return str(error.value)


def test_mistakes_are_one_numbered_line_and_change_nothing() -> None:
    stream: Stream = graph().stream({POSITIONS: "RANGE 10s STEP 1s"})
    assert mistake(lambda: stream.register("REGISTER QUERY q AS SELEKT")).startswith("<query>:1:21: error EG601")
    text = FIGURE_2.replace(POSITIONS, "http://nowhere")
    assert mistake(lambda: stream.register(text, "f.rq")).startswith(
        "f.rq:5:13: error EG604: no stream is called <http://nowhere>"
    )
    assert "EG602" in mistake(lambda: stream.register(FIGURE_2.replace("10sec", "10parsecs")))
    stream.register(FIGURE_2)
    assert "EG604: a query is called" in mistake(lambda: stream.register(FIGURE_2))
    assert "EG604" in mistake(lambda: stream.push(is_in("a", "b"), 1, "elsewhere"))
    assert "EG603" in mistake(lambda: stream.push(is_in("a", "b"), "soon"))
    assert "EG603" in mistake(lambda: stream.push(is_in("a", "b")))
    assert "EG603" in mistake(lambda: stream.push(is_in("a", "b"), np.array([1, 2])))
    assert "EG001" in mistake(lambda: stream.push("<a b> c", 1))
    assert "EG302" in mistake(lambda: graph().stream("RANGE 1s", algorithm="magic"))
    assert "EG602" in mistake(lambda: graph().stream("RANGE 0s"))
    assert "EG602" in mistake(lambda: graph().stream("RANGE TRIPLES 100 STEP 0s"))
    assert "EG602" in mistake(lambda: graph().stream("RANGE TRIPLES 100 TUMBLING"))
    assert "EG602" in mistake(lambda: graph().stream("RANGE 10s TUMBLING STEP 1s"))
    assert "EG604" in mistake(lambda: graph().stream().register(FIGURE_2.replace("[RANGE 10sec STEP 1sec]", "")))
    assert "EG604" in mistake(lambda: len(graph().stream()))
    assert stream.behind == (0, 0) and stream.now is None and stream.late == 0
    assert list(stream.advance()) == []


def test_answers_as_columns() -> None:
    stream = KnowledgeGraph(Program()).stream()
    stream.register(
        "REGISTER QUERY q AS SELECT ?x ?n FROM STREAM <x:s> [RANGE 2s STEP 1s] { ?x <x:p> ?y OPTIONAL { ?x <x:n> ?n } }"
    )
    stream.push('<x:a> <x:p> <x:o> . \n <x:b> <x:p> <x:o> . \n <x:b> <x:n> "7" .', 0)
    (answers,) = stream.advance(to=1)
    at = datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert sorted(answers.to_arrow().to_pylist(), key=str) == [
        {"time": at, "query": "q", "change": "all", "x": "<x:a>", "n": None},
        {"time": at, "query": "q", "change": "all", "x": "<x:b>", "n": '"7"'},
    ]
    assert answers.time == at and len(answers) == 2 and answers.change == "all"
    assert sorted((str(row.x), row.n) for row in answers)[1] == ("x:b", Literal("7"))


def test_what_rules_deny_of_terms_does_not_change() -> None:
    """`owl2rl-full` negates a built-in: that two literals have the same value."""
    kg = KnowledgeGraph("owl2rl-full")
    kg.update(insert=f'<{EX}ann> <{EX}age> "7"^^<http://www.w3.org/2001/XMLSchema#int> .')
    stream = kg.stream("RANGE 9s STEP 1s", algorithm="expiry")
    facts = [f'<{EX}bob> <{EX}age> "{n}"^^<http://www.w3.org/2001/XMLSchema#int> .' for n in ("8", "07")]
    for second, fact in enumerate(facts):
        stream.push(fact, second)
        list(stream.advance(to=second + 1))
        fresh = KnowledgeGraph("owl2rl-full")
        fresh.update(insert=[*kg.explicit])
        fresh.update(insert="\n".join(facts[: second + 1]))
        assert everything(stream.graph) == everything(fresh)
