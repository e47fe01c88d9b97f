"""Updates that are submitted: tickets, what readers see meanwhile, what a store has of them, and many threads at a time."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import pandas as pd
import pytest
import rdflib

from conftest import assert_same, everything
from evergraph import KnowledgeGraph, Program, UserError
from evergraph.engines.base import Which
from evergraph.engines.overlap.local import LocalOverlap
from evergraph.submit.live import Live
from evergraph.submit.stretch import Stretch
from evergraph.submit.ticket import Ticket
from stores import assert_equal, changes_of, replayed

LAYERS = "q(?x) :- p(?x) . r(?x) :- q(?x) . s(?x) :- r(?x) ."
TRIPLES = """@prefix ex: <http://ex/> .
[?x, ex:q, ?y] :- [?x, ex:p, ?y] . [?x, ex:r, ?y] :- [?x, ex:q, ?y] . [?x, ex:s, ?y] :- [?x, ex:r, ?y] ."""
ALGORITHMS = ["dred", "counting", "backward-forward"]
ORDER = ["submitted", "running", "in place", "settled", "failed"]
WAIT = 120
SECONDS = 60
"""How long threads submit and read under load."""
BAD = "<http://ex/oops"


def layers(facts: str = "p(0) .", **options: Any) -> KnowledgeGraph:
    kg = KnowledgeGraph(Program.parse(LAYERS), **options)
    kg.update(insert=facts)
    return kg


def by_hand(kg: KnowledgeGraph) -> KnowledgeGraph:
    kg._submissions.take_over()
    return kg


def advance(kg: KnowledgeGraph, steps: int = 1) -> None:
    for _ in range(steps):
        kg._submissions.advance()


def finish_stretch(kg: KnowledgeGraph) -> None:
    while kg._submissions.stretch is not None:
        kg._submissions.advance()


def line(name: Any, predicate: str = "p") -> str:
    return f"<http://ex/{name}> <http://ex/{predicate}> <http://ex/o> .\n"


def sizes(kg: Any) -> tuple[int, ...]:
    counts = kg.counts()
    return tuple(counts.get(name, 0) for name in "pqrs")


# -- tickets -------------------------------------------------------------------------------------------------------------


def test_a_ticket_comes_at_once_and_tells_how_far_it_is() -> None:
    kg = by_hand(layers())
    ticket = kg.submit(insert="p(1) .")
    assert (ticket.number, ticket.status, ticket.done, ticket.report, ticket.error) == (1, "submitted", False, None, None)
    seen = [str(ticket.status)]
    while kg._submissions.advance():
        seen.append(str(ticket.status))
    assert seen == sorted(seen, key=ORDER.index) and seen[1] == "running" and seen[-1] == "settled"
    assert ticket.done and (ticket.joined_at, ticket.in_place_at) == (0, 4)
    assert ticket.report is not None and ticket.report.inserted.derived == {"q": 1, "r": 1, "s": 1}
    assert ticket.wait() is ticket.report and ticket.wait(until="in place") is ticket.report
    assert repr(ticket) == "<update 1, settled>"


def test_an_update_may_be_in_place_before_it_has_settled() -> None:
    kg = by_hand(layers())
    first = kg.submit(insert="p(1) .")
    advance(kg, 2)
    second = kg.submit(insert="p(2) . p(3) .")
    seen = set()
    while kg._submissions.advance():
        seen.add((str(first.status), str(second.status)))
    assert seen & {("in place", "running"), ("running", "in place")} and first.report is second.report
    assert first.report is not None and first.report.inserted.explicit == {"p": 3}


def test_waiting_ends_by_itself_and_by_the_clock() -> None:
    kg = by_hand(layers())
    ticket = kg.submit(insert="p(1) .")
    for wait in (lambda: ticket.wait(0.01), lambda: ticket.wait(0.01, "in place")):
        with pytest.raises(TimeoutError, match=r"update 1 is submitted after 0\.01 seconds"):
            wait()
    with pytest.raises(ValueError, match="tomorrow"):
        ticket.wait(until="tomorrow")
    waiting = threading.Thread(target=ticket.wait, args=(WAIT,))
    waiting.start()
    kg.settle(WAIT)
    waiting.join(WAIT)
    assert not waiting.is_alive()


def test_settle_ends_by_the_clock() -> None:
    kg = layers()
    with kg._submissions.working:
        ticket = kg.submit(insert="p(1) .")
        with pytest.raises(TimeoutError):
            kg.settle(0.05)
    kg.settle(WAIT)
    assert ticket.status == "settled" and sizes(kg) == (2, 2, 2, 2)
    kg.settle(0)


def test_an_update_comes_after_what_was_submitted() -> None:
    kg = layers()
    tickets = [kg.submit(insert=f"p({n}) .") for n in range(1, 50)]
    report = kg.update(delete="p(7) . p(100) .", insert="p(50) .")
    assert all(ticket.status == "settled" for ticket in tickets)
    assert (report.deleted.explicit, report.inserted.explicit) == ({"p": 1}, {"p": 1}) and sizes(kg) == (50,) * 4
    assert report.missed.absent == 1


def test_updates_count_in_the_order_of_submission() -> None:
    kg, rng = layers(), Random(5)
    held = {0}
    for _ in range(300):
        n = rng.randrange(4)
        if rng.random() < 0.5:
            kg.submit(insert=f"p({n}) .")
            held.add(n)
        else:
            kg.submit(delete=f"p({n}) .")
            held.discard(n)
    kg.settle(WAIT)
    assert {int(row[0]) for row in kg.relation("s")} == held and kg.verify() == 4 * len(held)


# -- what an update is given -----------------------------------------------------------------------------------------------


def graph_of(text: str) -> rdflib.Graph:
    return rdflib.Graph().parse(data=text, format="nt")


def frame_of(text: str) -> pd.DataFrame:
    return pd.DataFrame([row.rstrip(" .").split(" ") for row in text.splitlines()], columns=["subject", "predicate", "object"])


def rows_of(text: str) -> list[tuple[str, ...]]:
    return [tuple(row.rstrip(" .").split(" ")) for row in text.splitlines()]


FORMS: dict[str, Callable[[str, Path], Any]] = {
    "text": lambda text, _: text,
    "list": lambda text, _: rows_of(text),
    "generator": lambda text, _: (row for row in rows_of(text)),
    "rdflib": lambda text, _: graph_of(text),
    "pandas": lambda text, _: frame_of(text),
    "file": lambda text, path: (path.write_text(text), path)[1],
    "files": lambda text, path: (path.write_text(text), [str(path)])[1],
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_facts_is_read(form: str, tmp_path: Path) -> None:
    kg = KnowledgeGraph(Program.parse(TRIPLES))
    kg.submit(insert=FORMS[form](line(1) + line(2) + line(3), tmp_path / "a.nt"))
    kg.submit(delete=FORMS[form](line(2), tmp_path / "b.nt"), insert=FORMS[form](line(4), tmp_path / "c.nt"))
    kg.settle(WAIT)
    assert kg.counts() == {"[]": 12} and kg.verify() == 12
    assert {str(s) for s, p, _ in kg.explicit} == {f"http://ex/{n}" for n in (1, 3, 4)}


def test_what_the_caller_changes_after_submitting_does_not_count() -> None:
    kg = by_hand(KnowledgeGraph(Program.parse(TRIPLES)))
    rows, graph, frame = rows_of(line(1)), graph_of(line(2)), frame_of(line(3))
    for source in (rows, graph, frame):
        kg.submit(insert=source)
    rows.append(rows_of(line(9))[0])
    graph.parse(data=line(9), format="nt")
    frame.loc[0, "subject"] = "<http://ex/9>"
    kg.settle(WAIT)
    assert {str(s) for s, _, _ in kg.explicit} == {"http://ex/1", "http://ex/2", "http://ex/3"}


# -- mistakes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("running", [False, True], ids=["at rest", "while a stretch runs"])
def test_a_mistake_fails_its_own_ticket(place: int, running: bool) -> None:
    kg = by_hand(layers())
    others = [kg.submit(insert="p(10) .")] if running else []
    advance(kg, 2 * running)
    tickets = []
    for n in range(3):
        if n == place:
            bad = kg.submit(insert=BAD)
        tickets.append(kg.submit(insert=f"p({n + 1}) ."))
        advance(kg, n * running)
    if place == 3:
        bad = kg.submit(delete=BAD)
    kg.settle(WAIT)
    assert [ticket.status for ticket in (*others, *tickets)] == ["settled"] * (3 + running) and bad.status == "failed"
    with pytest.raises(UserError, match="EG001"):
        bad.wait()
    assert bad.report is None and "failed: " in repr(bad) and sizes(kg) == (4 + running,) * 4 and kg.verify()


def test_mistakes_in_other_threads_disturb_nobody() -> None:
    kg = layers()
    tickets = [(kg.submit(insert=f"p({n}) ."), kg.submit(insert=BAD)) for n in range(1, 40)]
    kg.settle(WAIT)
    assert {(str(good.status), str(bad.status)) for good, bad in tickets} == {("settled", "failed")} and sizes(kg)[3] == 40


def test_an_unknown_algorithm_is_told_at_once() -> None:
    kg = layers()
    with pytest.raises(UserError, match="EG302"):
        kg.submit(insert="p(1) .", algorithm="magic")
    assert sizes(kg) == (1,) * 4 and not kg._submissions._open


def test_an_old_version_takes_no_updates(tmp_path: Path) -> None:
    kg = layers(store=tmp_path / "g")
    kg.update(insert="p(1) .")
    with pytest.raises(UserError, match="EG407"):
        KnowledgeGraph.open(tmp_path / "g", version=0).submit(insert="p(2) .")


def test_a_new_relation_with_two_arities_fails_the_ticket_that_comes_second() -> None:
    kg = layers()
    tickets = [kg.submit(insert=text) for text in ("new(1) .", "new(1, 2) .", "p(1) .", "p(1, 2) .", "new(2) .")]
    kg.settle(WAIT)
    assert [str(ticket.status) for ticket in tickets] == ["settled", "failed", "settled", "failed", "settled"]
    for ticket in tickets[1::2]:
        with pytest.raises(UserError, match="EG004"):
            ticket.wait()
    assert kg.counts() == {"new": 2, **dict.fromkeys("pqrs", 2)}


# -- turns of their own ----------------------------------------------------------------------------------------------------


def test_updates_by_different_algorithms_do_not_overlap_and_come_in_order() -> None:
    kg, rng = by_hand(layers()), Random(3)
    other = layers()
    tickets = []
    for n in range(40):
        algorithm = ["dred", "counting", "backward-forward", "recompute", "declarative", "auto"][n % 6]
        update = {"insert": f"p({rng.randrange(9)}) .", "delete": f"p({rng.randrange(9)}) . p({rng.randrange(9)}) ."}
        tickets.append(kg.submit(**update, algorithm=algorithm))
        other.update(**update)
        advance(kg, rng.randrange(3))
        stretch = kg._submissions.stretch
        assert stretch is None or {ticket.algorithm for ticket in stretch.tickets} <= {"auto", stretch.algorithm}
    kg.settle(WAIT)
    assert all(ticket.status == "settled" for ticket in tickets)
    alone = [ticket for ticket in tickets if ticket.algorithm in ("recompute", "declarative")]
    assert {ticket.report.algorithm for ticket in alone if ticket.report} == {"recompute", "declarative"}
    assert_equal(kg, other)


def test_the_first_facts_of_a_graph_are_submitted_too() -> None:
    kg = KnowledgeGraph(Program.parse(f"{LAYERS} p(0) ."))
    new = KnowledgeGraph(Program.parse(LAYERS))
    first, second = new.submit(insert="p(0) ."), new.submit(insert="p(1) .", delete="p(0) .")
    new.settle(WAIT)
    assert first.report and second.report and sizes(new) == (1,) * 4
    assert kg.submit(insert="p(1) .").wait(WAIT) and sizes(kg) == (2,) * 4


def test_new_names_meet_rules_about_every_predicate() -> None:
    kg = KnowledgeGraph("rhodf")
    sub = "<http://www.w3.org/2000/01/rdf-schema#subPropertyOf>"
    kg.update(insert=line(0))
    kg.submit(insert=line(1))
    kg.submit(insert=f"<http://ex/p> {sub} <http://ex/new> .")
    kg.submit(insert=line(2, "new"))
    kg.submit(insert=line(3))
    kg.settle(WAIT)
    assert len(list(kg.query("SELECT ?x { ?x <http://ex/new> ?y }"))) == 4 and kg.verify()


def test_equal_names_have_one_representative_and_updates_come_in_order() -> None:
    kg, other = KnowledgeGraph("owl2rl"), KnowledgeGraph("owl2rl")
    same = "<http://www.w3.org/2002/07/owl#sameAs>"
    updates = [
        (line(0), ""),
        (f"<http://ex/0> {same} <http://ex/1> .", ""),
        (line(1, "q"), line(0)),
        (line(2), ""),
        ("", line(1, "q")),
    ]
    for insert, delete in updates:
        kg.submit(insert=insert, delete=delete)
        other.update(insert=insert, delete=delete)
    kg.settle(WAIT)
    assert_equal(kg, other)
    assert kg.live().settled and kg.verify()


@pytest.mark.parametrize("engine", ["memory", "reference"])
def test_engines_that_do_not_overlap_take_turns(engine: str) -> None:
    kg = layers(engine=engine)
    for n in range(5):
        kg.submit(insert=f"p({n}) .", delete=f"p({n - 1}) .")
    kg.settle(WAIT)
    assert sizes(kg) == (1,) * 4


# -- readers ---------------------------------------------------------------------------------------------------------------


def seen(kg: Any) -> dict[str, Any]:
    """What every reading method says."""
    stats = kg.stats()
    return {
        "len": len(kg),
        "in": [tuple(row) in kg for row in rows_of(line(0, "s") + line(1) + line(1, "q"))],
        "query": sorted(map(str, kg.query("SELECT ?x ?p { ?x ?p ?y }"))),
        "counts": [kg.counts(which) for which in Which],
        "relation": sorted(kg.relation("t")),
        "explicit": sorted(kg.explicit),
        "derived": sorted(kg.derived),
        "arrow": sorted(map(str, kg.to_arrow().to_pylist())),
        "stats": {name: stats[name] for name in ("explicit", "derived", "predicates", "relations")},
        "version": kg.version,
    }


READ = f"{TRIPLES} t(?x) :- [?x, ex:s, ?y] ."


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_readers_see_the_last_settled_version_while_updates_run(algorithm: str) -> None:
    kg = KnowledgeGraph(Program.parse(READ))
    kg.update(insert=line(0))
    by_hand(kg)
    before = seen(kg)
    kg.submit(insert=line(1), delete=line(0), algorithm=algorithm)
    advance(kg)
    steps = 0
    while kg._submissions.stretch is not None:
        assert seen(kg) == before and kg.verify() == 5
        assert str(kg.explain(line(0, "s"))) and kg.to_pandas().shape == (4, 3)
        with pytest.raises(UserError):
            kg.explain(line(1, "q"))
        steps += 1
        advance(kg)
    assert steps > 3
    after = seen(kg)
    assert after != before and after["len"] == 4 and kg.verify() == 5 and kg.explain(line(1, "s"))


def test_the_state_in_between_says_so_and_stays_what_it_is() -> None:
    kg = KnowledgeGraph(Program.parse(READ))
    kg.update(insert=line(0))
    by_hand(kg)
    assert kg.live().settled and repr(kg.live()) == "<live graph, settled>"
    tickets = [kg.submit(insert=line(1)), kg.submit(insert=line(2))]
    advance(kg)
    taken: list[tuple[Live, Any]] = []
    while kg._submissions.stretch is not None:
        live = kg.live()
        assert not live.settled and live.unsettled == tuple(tickets)
        assert repr(live) == "<live graph, not settled: updates 1, 2>"
        taken.append((live, seen(live)))
        advance(kg)
    rows = [said["len"] for _, said in taken]
    assert rows == sorted(rows) and rows[0] > 4 and rows[-1] == 12
    assert all(seen(live) == said and not live.settled for live, said in taken)
    assert len(list(taken[0][0].query("SELECT ?x { ?x <http://ex/p> ?y }"))) == 3
    assert seen(kg.live()) == {**seen(kg), "version": None} and kg.live().unsettled == ()


def test_a_deletion_is_seen_in_between() -> None:
    kg = by_hand(layers("p(0) . p(1) ."))
    kg.submit(delete="p(1) .")
    advance(kg)
    assert sizes(kg) == (2,) * 4 and sizes(kg.live()) != (2,) * 4
    kg.submit(insert="p(1) .")
    kg.settle(WAIT)
    assert sizes(kg) == (2,) * 4 and kg.verify()


# -- stores ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["auto", *ALGORITHMS])
def test_each_settled_point_is_a_version(tmp_path: Path, algorithm: str) -> None:
    kg, rng = by_hand(layers(store=tmp_path / "g")), Random(7)
    settled = [set(everything(kg))]
    for round in range(6):
        for _ in range(4):
            kg.submit(insert=f"p({rng.randrange(9)}) .", delete=f"p({rng.randrange(9)}) .", algorithm=algorithm)
            advance(kg, rng.randrange(2))
        kg.submit(insert=f"p({100 + round}) .", algorithm=algorithm)
        before = kg.version
        while kg._submissions.advance():
            if kg.version != before:
                before = kg.version
                settled.append(set(everything(kg)))
                again = KnowledgeGraph.open(tmp_path / "g")
                assert again.version == kg.version == len(settled) - 1
                assert_same(everything(again), settled[-1])
    assert kg.version == len(settled) - 1 >= 6
    for (explicit, derived), want in zip(replayed(kg), settled, strict=True):
        assert_same(explicit | derived, want)
    net = {fact for kind, fact, _ in changes_of(kg, kg.version, "p") if kind == "insert"}
    assert net == {fact for fact in settled[-1] - settled[-2] if fact.startswith("p(")}
    assert kg.verify() and KnowledgeGraph.open(tmp_path / "g").verify()


def test_an_update_and_its_opposite_make_no_version(tmp_path: Path) -> None:
    kg = by_hand(layers(store=tmp_path / "g"))
    tickets = [kg.submit(insert="p(1) ."), kg.submit(delete="p(1) .")]
    kg.settle(WAIT)
    assert kg.version == 0 and tickets[1].report is not None and tickets[1].report.version == 0


@pytest.mark.parametrize("where", ["step", "commit", "join", "settle"])
@pytest.mark.parametrize("algorithm", ["dred", "counting"])
def test_a_stretch_that_fails_leaves_everything_as_it_was(tmp_path: Path, where: str, algorithm: str) -> None:
    kg = layers("p(0) . p(1) .", store=tmp_path / "g")
    kg.update(insert="p(5) .", algorithm=algorithm)
    by_hand(kg)
    before, files = everything(kg), seen_files(tmp_path / "g")
    tickets = [kg.submit(insert="p(2) .", delete="p(1) .", algorithm=algorithm)]
    advance(kg, 2)
    tickets.append(kg.submit(insert="p(3) .", delete="p(0) .", algorithm=algorithm))
    later = kg.submit(insert="p(4) .", algorithm="recompute")
    owner: Any = {"commit": type(kg._store), "join": LocalOverlap}.get(where, Stretch)
    with patch.object(owner, where, side_effect=OSError("no space")):
        finish_stretch(kg)
    assert [str(ticket.status) for ticket in tickets] == ["failed", "failed"] and later.status == "submitted"
    for ticket in tickets:
        with pytest.raises(OSError, match="no space"):
            ticket.wait()
    assert_same(everything(kg), before)
    assert kg.verify() and kg.version == 1 and seen_files(tmp_path / "g") == files
    kg.settle(WAIT)
    assert later.status == "settled" and kg.version == 2
    kg.submit(insert="p(2) .", delete="p(1) .", algorithm=algorithm)
    kg.settle(WAIT)
    assert {int(row[0]) for row in kg.relation("s")} == {0, 2, 4, 5} and kg.verify()
    assert_same(everything(KnowledgeGraph.open(tmp_path / "g")), everything(kg))


def seen_files(path: Path) -> set[str]:
    return {str(p.relative_to(path)) for p in path.rglob("*") if p.is_file() and "_submitted" not in str(p)}


def test_counts_are_kept_across_stretches(tmp_path: Path) -> None:
    kg = layers(store=tmp_path / "g")
    kg.update(insert="p(1) .", algorithm="counting")
    by_hand(kg)
    for n in range(2, 6):
        kg.submit(insert=f"p({n}) .", delete=f"p({n - 2}) .")
        advance(kg, n)
    kg.settle(WAIT)
    assert kg._engine.counted
    again = KnowledgeGraph.open(tmp_path / "g")
    assert again._engine.counted and again.submit(delete="p(4) .").wait(WAIT).algorithm == "counting"
    assert sizes(again) == (1,) * 4 and again.verify()
    assert KnowledgeGraph.open(tmp_path / "g")._engine.counted


# -- streams ---------------------------------------------------------------------------------------------------------------


def test_windows_follow_submitted_updates_at_the_next_tick() -> None:
    kg = KnowledgeGraph(Program.parse(TRIPLES))
    kg.update(insert=line(0))
    stream = kg.stream("RANGE 10s STEP 1s")
    stream.push(line("a"), 1)
    stream.advance(2)
    query = "SELECT ?x { ?x <http://ex/s> ?y }"
    assert len(list(stream.query(query))) == 2
    kg.submit(insert=line(1)).wait(WAIT)
    stream.advance(3)
    assert len(list(stream.query(query))) == 3 and len(list(kg.query(query))) == 2


# -- threads ---------------------------------------------------------------------------------------------------------------

PAIRS = """@prefix ex: <http://ex/> .
[?x, ex:r, ?y] :- [?x, ex:p, ?y], [?x, ex:q, ?y] .
[?x, ex:bad, ?y] :- [?x, ex:p, ?y], NOT [?x, ex:q, ?y] .
[?x, ex:bad, ?y] :- [?x, ex:q, ?y], NOT [?x, ex:p, ?y] ."""
COUNT = "SELECT ?p (COUNT(?x) AS ?n) { ?x ?p ?y } GROUP BY ?p"


class Load:
    """Threads that submit and read until the time is over."""

    def __init__(self, kg: KnowledgeGraph, seconds: float, algorithm: str = "auto") -> None:
        self.kg, self.algorithm, self.until = kg, algorithm, time.monotonic() + seconds
        self.wrong: list[BaseException] = []
        self.held: list[set[int]] = [set() for _ in range(4)]
        self.tickets: list[Ticket] = []
        self.reads = 0

    @property
    def over(self) -> bool:
        return bool(self.wrong) or time.monotonic() > self.until

    def write(self, number: int) -> None:
        rng, held, mine = Random(number), self.held[number], []
        while not self.over:
            name = rng.randrange(50)
            both = line(f"{number}_{name}") + line(f"{number}_{name}", "q")
            if rng.random() < 0.6:
                mine.append(self.kg.submit(insert=both, algorithm=self.algorithm))
                held.add(name)
            else:
                mine.append(self.kg.submit(delete=both, algorithm=self.algorithm))
                held.discard(name)
            if rng.random() < 0.05 or len(mine) % 50 == 0:
                mine[-1].wait(WAIT) if rng.random() < 0.5 else self.kg.settle(WAIT)
        self.tickets += mine

    def query(self) -> None:
        rows = {str(p): int(n) for p, n in self.kg.query(COUNT)}
        assert len(set(rows.values())) <= 1 and "http://ex/bad" not in rows, rows

    def count(self) -> None:
        total = self.kg.counts().get("[]", 0)
        assert total % 3 == 0, total

    def live(self) -> None:
        live = self.kg.live()
        assert len(list(live.triples())) == len(live)
        if live.settled:
            assert len(live) % 3 == 0

    def read(self, look: Callable[[], None]) -> None:
        while not self.over:
            look()
            self.reads += 1
            time.sleep(0.001)

    def run(self, *more: Callable[[], None]) -> None:
        def safely(work: Callable[..., None], *args: Any) -> None:
            try:
                work(*args)
            except BaseException as error:
                self.wrong.append(error)

        jobs = [(self.write, n) for n in range(4)] + [(self.read, look) for look in (self.query, self.count, self.live, *more)]
        threads = [threading.Thread(target=safely, args=job, daemon=True) for job in jobs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(0.0, self.until - time.monotonic()) + WAIT)
        assert not any(thread.is_alive() for thread in threads), "somebody waits for ever"
        if self.wrong:
            raise self.wrong[0]
        self.kg.settle(WAIT)
        assert self.reads and self.tickets and {str(ticket.status) for ticket in self.tickets} == {"settled"}
        names = [f"{number}_{name}" for number, held in enumerate(self.held) for name in held]
        want = {(f"http://ex/{name}", f"http://ex/{p}") for name in names for p in "pqr"}
        assert {(str(s), str(p)) for s, p, _ in self.kg.triples()} == want
        assert self.kg.verify() == len(want) and self.kg.live().settled


def pairs(**options: Any) -> KnowledgeGraph:
    """With what makes it a graph already; a name that no thread has."""
    kg = KnowledgeGraph(Program.parse(PAIRS), **options)
    kg.update(insert=line("first") + line("first", "q"))
    kg.update(delete=line("first") + line("first", "q"), insert=line("0_0") + line("0_0", "q"))
    return kg


def test_threads_for_a_minute() -> None:
    load = Load(pairs(), SECONDS)
    load.held[0].add(0)
    load.run()


def test_threads_with_counting() -> None:
    kg = pairs()
    load = Load(kg, SECONDS / 6, "counting")
    load.held[0].add(0)
    load.run()
    assert kg._engine.counted


def test_threads_with_a_store_and_a_reader_that_opens_it(tmp_path: Path) -> None:
    kg = pairs(store=tmp_path / "g")
    load = Load(kg, SECONDS / 6)
    load.held[0].add(0)

    def reopen() -> None:
        other = KnowledgeGraph.open(tmp_path / "g")
        rows = {str(p): int(n) for p, n in other.query(COUNT)}
        assert len(set(rows.values())) <= 1 and "http://ex/bad" not in rows, rows

    load.run(reopen)
    assert_equal(KnowledgeGraph.open(tmp_path / "g"), kg)
    assert kg.unsettled == ()


# -- the end of a program ----------------------------------------------------------------------------------------------------


def test_a_program_that_does_not_wait_has_its_updates_settled(tmp_path: Path) -> None:
    code = f"""
import sys
from evergraph import KnowledgeGraph, Program
kg = KnowledgeGraph(Program.parse({LAYERS!r}), store=sys.argv[1])
for n in range(20):
    kg.submit(insert=f"p({{n}}) .")
del kg
"""
    args = [sys.executable, "-c", code, str(tmp_path / "g")]
    ended = subprocess.run(args, capture_output=True, text=True, check=False, timeout=WAIT)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert sizes(KnowledgeGraph.open(tmp_path / "g")) == (20,) * 4


# -- Spark -------------------------------------------------------------------------------------------------------------------


@pytest.mark.spark
@pytest.mark.parametrize(("stored", "algorithm"), [(False, "dred"), (True, "counting")], ids=["in memory", "with a store"])
def test_updates_overlap_on_spark(spark: Any, tmp_path: Path, stored: bool, algorithm: str) -> None:
    path = tmp_path / "g"
    kg = KnowledgeGraph(Program.parse(TRIPLES), engine=spark, store=path if stored else None)
    other = KnowledgeGraph(Program.parse(TRIPLES))
    for graph in (kg, other):
        graph.update(insert=line(0) + line(1), algorithm=algorithm)
    by_hand(kg)
    before = set(kg.triples())
    updates = [(line(2), line(0)), (line(0) + line(3), line(1)), (line(1), line(2))]
    tickets = []
    for steps, (insert, delete) in zip((2, 3, 1), updates, strict=True):
        tickets.append(kg.submit(insert=insert, delete=delete, algorithm=algorithm))
        other.update(insert=insert, delete=delete)
        advance(kg, steps)
    live = kg.live()
    there = set(live.triples())
    assert kg._submissions.stretch is not None and not live.settled and set(kg.triples()) == before != there
    held = kg._held
    kg.settle(WAIT)
    assert {str(ticket.status) for ticket in tickets} == {"settled"} and tickets[0].report is tickets[2].report
    assert set(kg.triples()) == set(other.triples()) and set(kg.explicit) == set(other.explicit) and kg.verify() == 12
    kg.update(delete=line(3))
    kg.update(insert=line(4))
    assert set(live.triples()) == there, "its files are there as long as somebody has it"
    assert held.counts(Which.ALL) == {"[]": len(before)} and len(held.rows("[]", Which.ALL)[0]) == len(before)
    if stored:
        assert kg.version == 3 and set(KnowledgeGraph.open(path).triples()) == set(kg.triples())
