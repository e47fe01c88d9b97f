"""What could go wrong between threads, and between a graph that submits and another writer: each case by hand."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evergraph import KnowledgeGraph, Program, UserError
from evergraph.engines.overlap.local import LocalOverlap
from evergraph.store.dictionary import FileDictionary
from evergraph.submit.stretch import Stretch
from evergraph.terms import Dictionary
from evergraph.values import Values

LAYERS = "q(?x) :- p(?x) . r(?x) :- q(?x) . s(?x) :- r(?x) ."
TYPED = "typed(?x, ?y) :- DATATYPE(?x, ?y) . q(?x) :- p(?x) . r(?x) :- q(?x) ."
WAIT = 60
"""Seconds after which something hangs."""


class Panic(BaseException):
    """What a library in Rust raises when it gives up: no Exception."""


def layers(store: Path | None = None, facts: str = "p(0) .", rules: str = LAYERS) -> KnowledgeGraph:
    kg = KnowledgeGraph(Program.parse(rules), store=store)
    kg.update(insert=facts)
    return kg


def by_hand(kg: KnowledgeGraph) -> KnowledgeGraph:
    kg._submissions.take_over()
    return kg


def fails(error: BaseException, times: int = 1, after: int = 0) -> Callable[..., Any]:
    """A method that raises a few times, after it did its work as often as said."""
    calls = iter([*[None] * after, *[error] * times])
    return lambda: next(calls, None)


def broken(owner: Any, name: str, error: BaseException, after: int = 0, times: int = 1) -> Any:
    """Patch a method to raise."""
    real, due = getattr(owner, name), fails(error, times, after)

    def method(*args: Any, **named: Any) -> Any:
        if (raised := due()) is not None:
            raise raised
        return real(*args, **named)

    return patch.object(owner, name, method)


# -- whatever goes wrong, nobody waits for ever ------------------------------------------------------------------------


@pytest.mark.parametrize("error", [RuntimeError("no"), Panic("no")], ids=["an exception", "a panic"])
@pytest.mark.parametrize(
    ("owner", "name"),
    [
        ("evergraph.submit.submissions", "choose"),
        ("evergraph.submit.submissions", "Stretch"),
        ("evergraph.inputs", "read"),
        ("evergraph.changing.Changing", "_prepare"),
        ("evergraph.submit.submissions.Submissions", "_alone"),
        ("evergraph.submit.stretch.Stretch", "join"),
        ("evergraph.submit.stretch.Stretch", "step"),
        ("evergraph.submit.stretch.Stretch", "settle"),
    ],
)
def test_an_update_that_breaks_anywhere_fails_its_ticket_and_no_other(owner: str, name: str, error: BaseException) -> None:
    kg = layers()
    place = _resolve(owner)
    algorithm = "recompute" if name == "_alone" else "auto"
    with broken(place, name, error):
        ticket = kg.submit(insert="p(1) .", algorithm=algorithm)
        with pytest.raises(type(error)):
            ticket.wait(WAIT)
    assert kg.counts() == {"p": 1, "q": 1, "r": 1, "s": 1} and kg.verify()
    assert kg.submit(insert="p(2) .").wait(WAIT) and kg.counts()["s"] == 2
    assert kg.update(insert="p(3) .").inserted.derived["s"] == 1 and kg.verify()


def _resolve(path: str) -> Any:
    import pkgutil

    return pkgutil.resolve_name(path)


def test_an_update_that_breaks_while_it_joins_others_fails_with_them() -> None:
    kg = by_hand(layers())
    tickets = [kg.submit(insert="p(1) .")]
    kg._submissions.advance()
    tickets.append(kg.submit(insert="p(2) ."))
    later = kg.submit(insert="p(3) .", algorithm="recompute")
    with broken(LocalOverlap, "join", RuntimeError("no")):
        kg._submissions.advance()
    assert [ticket.status for ticket in tickets] == ["failed", "failed"]
    kg.settle(WAIT)
    assert later.status == "settled" and kg.counts()["s"] == 2 and kg.verify()


def test_an_update_that_cannot_be_read_for_no_fault_of_its_own_fails_alone() -> None:
    kg = by_hand(layers())
    first = kg.submit(insert="p(1) .")
    kg._submissions.advance()
    second, third = kg.submit(insert="p(2) ."), kg.submit(insert="p(3) .")
    with broken(_resolve("evergraph.inputs"), "read", Panic("no")):
        kg._submissions.advance()
    kg.settle(WAIT)
    assert [ticket.status for ticket in (first, second, third)] == ["settled", "failed", "settled"]
    assert kg.counts()["s"] == 3


def test_what_cannot_be_taken_back_is_told_and_nobody_waits() -> None:
    kg = layers()
    with broken(Stretch, "step", RuntimeError("no")), broken(Stretch, "abandon", OSError("not even that")):
        ticket = kg.submit(insert="p(1) .")
        with pytest.raises((RuntimeError, OSError)):
            ticket.wait(WAIT)
    done = threading.Event()
    threading.Thread(target=lambda: (kg.settle(), done.set()), daemon=True).start()
    assert done.wait(WAIT), "whoever waits for nothing does not wait"


def test_a_state_in_between_that_cannot_be_read_is_the_fault_of_whoever_asks() -> None:
    kg = layers()
    step, asking = threading.Event(), threading.Event()
    real = Stretch.step

    def slow(self: Stretch) -> None:
        step.set()
        assert asking.wait(WAIT)
        real(self)

    found: list[Any] = []

    def ask() -> None:
        try:
            found.append(kg.live())
        except BaseException as error:
            found.append(error)

    with patch.object(Stretch, "step", slow), broken(LocalOverlap, "live", OSError("gone")):
        ticket = kg.submit(insert="p(1) .")
        assert step.wait(WAIT)
        reader = threading.Thread(target=ask, daemon=True)
        reader.start()
        while not kg._submissions._asking:
            pass
        asking.set()
        reader.join(WAIT)
        assert isinstance(found[0], OSError)
        assert ticket.wait(WAIT)
    assert kg.live().settled and kg.counts()["s"] == 2


def test_a_thread_that_cannot_be_started_leaves_nothing_behind() -> None:
    kg = layers()
    with broken(threading.Thread, "start", RuntimeError("can't start new thread")), pytest.raises(RuntimeError):
        kg.submit(insert="p(1) .")
    assert kg.submit(insert="p(2) .").wait(WAIT)
    kg.settle(WAIT)
    assert kg.counts()["p"] == 2


def test_the_state_in_between_does_not_wait_for_an_update_of_another_kind() -> None:
    """Whoever is told of progress may look at the graph, while another thread's update waits for its turn."""
    kg = layers()
    looked: list[Any] = []

    def look(stage: str, part: float) -> None:
        if not looked:
            threading.Thread(target=kg.submit, kwargs={"insert": "p(1) ."}).start()
            while not kg._submissions._open:
                pass
            looked.append(kg.live())

    done = threading.Event()
    threading.Thread(target=lambda: (kg.update(insert="p(2) .", progress=look), done.set()), daemon=True).start()
    assert done.wait(WAIT) and looked[0].settled and looked[0].counts()["p"] == 1
    kg.settle(WAIT)
    assert kg.counts()["s"] == 3


def test_when_settle_returns_every_ticket_says_so() -> None:
    """Also in the moment in which its record goes."""
    kg = by_hand(layers())
    ticket = kg.submit(insert="p(1) .")
    seen: list[bool] = []
    real = type(ticket).move

    def move(self: Any, status: Any) -> None:
        if status == "settled":
            waiting = threading.Thread(
                target=lambda: (kg._submissions.__class__.settle(kg._submissions), seen.append(self.done))
            )
            with patch.object(kg._submissions, "by_hand", False):
                waiting.start()
                waiting.join(0.1)
        real(self, status)

    with patch.object(type(ticket), "move", move):
        kg.settle(WAIT)
    while not seen:
        pass
    assert seen == [True]


def test_who_takes_over_works_alone() -> None:
    """The thread that waits for more updates is gone: two would take the same one from the queue."""
    kg = layers()
    with patch("evergraph.submit.submissions.REST", WAIT):
        kg.submit(insert="p(1) .").wait(WAIT)
        thread = kg._submissions._thread
        assert thread is not None and thread.is_alive()
        by_hand(kg)
        assert not thread.is_alive()
        ticket = kg.submit(insert="p(2) .")
        assert kg._submissions._thread is None and ticket.status == "submitted"
        kg._submissions.hand_back()
        assert ticket.status == "settled" and kg.submit(insert="p(3) .").wait(WAIT) and kg.counts()["s"] == 4
        kg._submissions.take_over()


@pytest.mark.parametrize("algorithm", ["auto", "recompute"])
def test_a_lock_that_cannot_be_given_back_leaves_nobody_waiting(algorithm: str) -> None:
    kg = layers()
    with broken(kg._submissions._closing, "close", OSError("no")):
        ticket = kg.submit(insert="p(1) .", algorithm=algorithm)
        ticket.end(WAIT)
    kg.settle(WAIT)
    assert ticket.status == "settled" and kg.submit(insert="p(2) .").wait(WAIT) and kg.counts()["s"] == 3


def test_a_thread_that_fails_where_nobody_waits_goes_on() -> None:
    """The lock cannot be given back after an update whose input was wrong, and which has been told so already."""
    kg = layers()
    with broken(kg._submissions._closing, "close", OSError("no")):
        ticket = kg.submit(insert="<http://ex/oops")
        ticket.end(WAIT)
        assert ticket.status == "failed" and isinstance(ticket.error, UserError)
        assert kg.submit(insert="p(2) .").wait(WAIT) and kg.counts()["s"] == 2


# -- another writer ----------------------------------------------------------------------------------------------------


def test_an_update_that_waits_its_turn_means_its_own_terms_whatever_others_commit(tmp_path: Path) -> None:
    """It was read while others ran, and they changed nothing: its new terms are in no version when another writer comes."""
    layers(tmp_path / "g", "p(<http://ex/0>) .")
    kg, other = by_hand(KnowledgeGraph.open(tmp_path / "g")), KnowledgeGraph.open(tmp_path / "g")
    kg.submit(delete="p(<http://ex/0>) .")
    kg._submissions.advance()
    kg.submit(insert="p(<http://ex/0>) .")
    kg.submit(insert="p(<http://ex/mine>) .", algorithm="recompute")
    while kg._submissions._queue and kg._submissions.stretch is not None:
        kg._submissions.advance()
    assert kg._submissions._queue and kg.version == 0, "it waits"
    other.update(insert="p(<http://ex/theirs>) .")
    kg.settle(WAIT)
    names = {str(row[0]) for row in kg.relation("p")}
    assert names == {"http://ex/0", "http://ex/mine", "http://ex/theirs"}
    assert {str(row[0]) for row in KnowledgeGraph.open(tmp_path / "g").relation("s")} == names


def test_an_update_that_waits_its_turn_is_checked_when_it_has_it() -> None:
    """Another update has met the relation meanwhile, with another number of arguments."""
    kg = by_hand(layers())
    kg.submit(insert="p(1) .")
    kg._submissions.advance()
    ticket = kg.submit(insert="new(1) .", algorithm="recompute")
    while kg._submissions.stretch is not None:
        kg._submissions.advance()
    with patch.object(kg._submissions, "settle"):
        kg.update(insert="new(1, 2) .")
    kg.settle(WAIT)
    with pytest.raises(UserError, match="EG004"):
        ticket.wait()
    assert kg.counts() == {"new": 1, "p": 2, "q": 2, "r": 2, "s": 2} and kg.verify()


def test_updates_that_overlap_agree_on_the_arguments_of_a_new_relation() -> None:
    kg = by_hand(layers())
    tickets = [kg.submit(insert=f"p({n}) . {fact}") for n, fact in enumerate(("", "new(1) .", "new(1, 2) .", "new(3) ."), 1)]
    kg.settle(WAIT)
    assert [ticket.status for ticket in tickets] == ["settled", "settled", "failed", "settled"]
    with pytest.raises(UserError, match="EG004"):
        tickets[2].wait()
    assert kg.counts() == {"new": 2, "p": 4, "q": 4, "r": 4, "s": 4} and kg.verify()


def test_readers_never_see_half_of_what_another_writer_committed(tmp_path: Path) -> None:
    layers(tmp_path / "g", "p(0) . p(1) .")
    kg, other = by_hand(KnowledgeGraph.open(tmp_path / "g")), KnowledgeGraph.open(tmp_path / "g")
    other.update(insert="p(2) .")
    seen: list[dict[str, int]] = []
    module = _resolve("evergraph.becoming")
    real_facts, real_terms = module.read_facts, module.read_terms

    def look(real: Any) -> Any:
        def read(*args: Any) -> Any:
            seen.append((kg.version, kg.counts(), sorted(kg.relation("p"))))
            found = real(*args)
            seen.append((kg.version, kg.counts(), sorted(kg.relation("p"))))
            return found

        return read

    loaded = type(kg._engine).load

    def load(engine: Any, *args: Any, **named: Any) -> None:
        seen.append((kg.version, kg.counts(), sorted(kg.relation("p"))))
        loaded(engine, *args, **named)

    before = (kg.version, kg.counts(), sorted(kg.relation("p")))
    with (
        patch.object(module, "read_facts", look(real_facts)),
        patch.object(module, "read_terms", look(real_terms)),
        patch.object(type(kg._engine), "load", load),
    ):
        kg.submit(insert="p(3) .")
        kg.settle(WAIT)
    assert len(seen) == 5 and all(one == before for one in seen)
    assert kg.counts() == dict.fromkeys("pqrs", 4) and kg.version == 2


# -- readers and the terms of updates under way ------------------------------------------------------------------------


def test_values_are_right_when_terms_come_while_they_are_filled() -> None:
    dictionary = Dictionary()
    left, right = dictionary.encode(['"1"^^<http://www.w3.org/2001/XMLSchema#integer>', '"b"']).reshape(2, 1)
    values, real = Values(dictionary), dictionary.since

    def since(number: int) -> pa.Array:
        dictionary.encode([f'"late {number}"'])
        return real(number)

    with patch.object(dictionary, "since", since):
        assert values.compare("=", left, left).tolist() == [True]
    assert values.compare("<", dictionary.encode(['"a"']), right).tolist() == [True]


def test_a_term_that_has_an_id_can_be_read() -> None:
    """Whoever finds the id of a term that just comes finds the term by it."""
    dictionary = Dictionary()
    dictionary.encode(["<http://a>"])
    seen: list[int] = []

    class Index(dict[str, int]):
        def update(self, *args: Any) -> None:  # type: ignore[override]
            super().update(*args)
            seen.extend(len(dictionary) - number for number in self.values())
            assert all(dictionary.term(number) == term for term, number in self.items())

    dictionary._index = Index(dictionary._known())
    assert dictionary.encode(["<http://b>", "<http://a>", "<http://b>"]).tolist() == [1, 0, 1]
    assert min(seen) > 0
    assert dictionary.decode(np.array([1, 0], np.uint64)).to_pylist() == ["<http://b>", "<http://a>"]


def test_terms_are_read_while_they_are_filed(tmp_path: Path) -> None:
    dictionary = FileDictionary()
    ids = dictionary.encode(["<http://a>", "<http://b>"])
    pq.write_table(pa.table({"term": pa.array(dictionary.given, pa.string())}), tmp_path / "0.parquet")
    found: list[Any] = []

    class Files(list[Any]):
        def append(self, item: Any) -> None:
            super().append(item)
            reader = threading.Thread(target=lambda: found.append((len(dictionary), dictionary.decode(ids[1:]).to_pylist())))
            reader.start()
            reader.join(0.1)

    dictionary._files = Files()
    dictionary.add_files(tmp_path, [SimpleNamespace(path="0.parquet", rows=2)], 0)  # type: ignore[list-item]
    while not found:
        pass
    assert found == [(2, ["<http://b>"])] and dictionary.since(1).to_pylist() == ["<http://b>"]


def test_a_graph_is_verified_as_it_is_settled_whatever_terms_are_under_way() -> None:
    kg = by_hand(layers(facts='p("a") .', rules=TYPED))
    kg.verify()
    kg.submit(insert='p("b") . p("1"^^<http://www.w3.org/2001/XMLSchema#byte>) .')
    kg._submissions.advance()
    assert kg.verify() == 4
    kg.settle(WAIT)
    assert kg.verify() == 3 * 3 + sum(1 for _ in kg.relation("typed"))


@pytest.mark.parametrize("bad", ['p("b") .\np(', None], ids=["one that fails", "one that waits"])
def test_what_follows_of_terms_is_stored_with_them(tmp_path: Path, bad: str | None) -> None:
    """Terms of an update that did not join are in the version of those that did, and so is what rules say of terms."""
    layers(tmp_path / "g", 'p("a") .', TYPED)
    kg = by_hand(KnowledgeGraph.open(tmp_path / "g"))
    kg.submit(insert='p("c") .')
    kg._submissions.advance()
    lines = ['<http://ex/s> <http://ex/p> "b" .', "oops"]
    kg.submit(insert="\n".join(lines)) if bad else kg.submit(insert='p("b") .', algorithm="recompute")
    while kg._submissions.stretch is not None:
        kg._submissions.advance()
    again = KnowledgeGraph.open(tmp_path / "g")
    again.update(insert='p("d") .')
    assert again.verify()


def test_a_graph_is_saved_as_it_is_settled(tmp_path: Path) -> None:
    kg = by_hand(layers())
    kg.submit(insert="p(1) .")
    kg._submissions.advance()
    kg.save(tmp_path / "copy")
    assert KnowledgeGraph.open(tmp_path / "copy").verify()


# -- the end of a program ----------------------------------------------------------------------------------------------

ENDS = """
import sys
from evergraph import KnowledgeGraph
from evergraph.formats import files
files.BLOCK_BYTES = 1 << 10
kg = KnowledgeGraph.open(sys.argv[1])
kg.submit(insert="p(1) .")
kg.submit(insert=sys.argv[2])
"""


def test_a_program_that_ends_has_its_updates_settled(tmp_path: Path) -> None:
    """Files are read in threads, which are not to be had once the interpreter is on its way out."""
    layers(tmp_path / "g")
    data = "".join(f"<http://ex/{n}> <http://ex/p> <http://ex/{n + 1}> .\n" for n in range(2_000))
    (tmp_path / "data.nt").write_text(data)
    args = [sys.executable, "-c", ENDS, str(tmp_path / "g"), str(tmp_path / "data.nt")]
    ended = subprocess.run(args, capture_output=True, text=True, check=False, timeout=120)
    assert (ended.returncode, ended.stderr) == (0, "")
    kg = KnowledgeGraph.open(tmp_path / "g")
    assert kg.counts()["s"] == 2 and len(kg) == 2_000 and kg.unsettled == ()
