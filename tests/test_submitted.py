"""What a store tells of updates that were submitted: nothing once they have settled or failed, and what a crash has lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from evergraph import KnowledgeGraph, UserError
from evergraph.inputs import OwnLines, in_words
from evergraph.store import Store, log
from evergraph.store.submitted import SUBMITTED, Journal, UnsettledWarning, told, unsettled
from test_cli import Run, run_command  # noqa: F401 - a fixture

TYPE, SUB = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>", "<http://www.w3.org/2000/01/rdf-schema#subClassOf>"


def is_a(name: str, class_: str = "A") -> str:
    return f"<http://ex/{name}> {TYPE} <http://ex/{class_}> ."


@pytest.fixture
def path(tmp_path: Path) -> Path:
    KnowledgeGraph("rhodf", store=tmp_path / "g").update(insert=f"<http://ex/A> {SUB} <http://ex/B> .\n{is_a('ann')}")
    return tmp_path / "g"


def by_hand(path: Path) -> KnowledgeGraph:
    kg = KnowledgeGraph.open(path)
    kg._submissions.take_over()
    return kg


def records(path: Path) -> list[str]:
    """The lines that are there."""
    return [line for file in (path / SUBMITTED).glob("*") for line in file.read_text().splitlines()]


CHILD = """
import os, signal, sys
from evergraph import KnowledgeGraph
from evergraph.store import log
kg = KnowledgeGraph.open(sys.argv[1])
def die():
    os.kill(os.getpid(), signal.SIGKILL)
"""


def killed(path: Path, code: str) -> None:
    """Run a process over a store that kills itself."""
    done = subprocess.run([sys.executable, "-c", CHILD + code, str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr


LOSES_TWO = f"""
kg._submissions.take_over()
kg.submit(insert={is_a("bob")!r}).number
kg.settle()
kg.submit(insert={is_a("cid")!r}, delete=[{is_a("ann")!r}, {is_a("bob")!r}])
kg.submit(insert=[{is_a("dee")!r}], name="feed/7.rdfp")
die()
"""


def opened(path: Path) -> KnowledgeGraph:
    with pytest.warns(UnsettledWarning):
        return KnowledgeGraph.open(path)


def test_a_record_is_there_until_its_update_has_settled(path: Path) -> None:
    kg = by_hand(path)
    first, second = kg.submit(insert=is_a("bob")), kg.submit(insert=[is_a("cid")], name="mine")
    assert [ticket.name in line for ticket, line in zip((first, second), records(path), strict=True)] == [True, True]
    assert second.name == "mine"
    kg.settle()
    assert first.done and second.done and not (path / SUBMITTED).exists()
    assert list(log.tickets(path)) == [first.name, "mine"]
    third = kg.submit(delete=[is_a("cid")])
    assert len(records(path)) == 1
    kg.settle()
    assert third.done and not (path / SUBMITTED).exists()


def test_whoever_waits_for_a_ticket_finds_its_record_gone(path: Path) -> None:
    kg = KnowledgeGraph.open(path)
    for n in range(20):
        kg.submit(insert=is_a(f"x{n}")).wait(60)
        assert not (path / SUBMITTED).exists()


def test_a_mistake_fails_its_own_ticket_and_takes_its_record(path: Path) -> None:
    kg = by_hand(path)
    tickets = [kg.submit(insert=text) for text in (is_a("bob"), "<http://ex/oops", is_a("cid"))]
    assert len(records(path)) == 3
    kg.settle()
    assert [ticket.status for ticket in tickets] == ["settled", "failed", "settled"]
    with pytest.raises(UserError):
        tickets[1].wait()
    assert not (path / SUBMITTED).exists() and kg.unsettled == ()
    assert len(kg) == 7


def test_what_a_crash_has_lost_is_told_until_an_update_settles(path: Path) -> None:
    killed(path, LOSES_TWO)
    with pytest.warns(UnsettledWarning, match="2 updates were submitted and lost before settling: update 2 ") as caught:
        kg = KnowledgeGraph.open(path)
    assert len(caught) == 1 and "\n" not in str(caught[0].message) and caught[0].filename == __file__
    two, three = kg.unsettled
    assert (two.number, two.given, two.insert, two.delete, two.version) == (2, False, "1 line of text", "2 facts", 1)
    assert (three.number, three.given, three.name, three.insert, three.delete) == (3, True, "feed/7.rdfp", "1 fact", "")
    assert two.time <= three.time and (kg.version, len(kg)) == (1, 5)
    assert opened(path).unsettled == (two, three), "reading them takes nothing away"
    kg.update(insert=is_a("eve"), dry_run=True)
    assert kg.unsettled == (two, three)
    with pytest.raises(UserError):
        kg.update(insert="<http://ex/oops")
    assert kg.unsettled == (two, three)
    kg.update(insert=is_a("eve"))
    assert kg.unsettled == () and not (path / SUBMITTED).exists()
    assert KnowledgeGraph.open(path).unsettled == ()


def test_a_submitted_update_that_settles_drops_them_too(path: Path) -> None:
    killed(path, LOSES_TWO)
    kg = opened(path)
    kg.submit(insert=is_a("eve")).wait(60)
    assert kg.unsettled == () and not (path / SUBMITTED).exists()


def test_an_update_that_was_committed_is_not_lost_even_if_its_record_stays(path: Path) -> None:
    """The crash comes between the commit and the removal of the record."""
    code = f"""
from evergraph.store.submitted import Journal
Journal.ended = lambda *_: die()
kg._submissions.take_over()
kg.submit(insert={is_a("bob")!r})
kg.submit(insert={is_a("cid")!r})
kg.settle()
"""
    killed(path, code)
    assert len(records(path)) == 2
    kg = KnowledgeGraph.open(path)
    assert (kg.unsettled, kg.version, len(kg)) == ((), 1, 7)


def test_the_crash_of_a_first_update_leaves_a_folder_that_a_store_can_be_made_in(tmp_path: Path) -> None:
    code = "kg = KnowledgeGraph('rhodf', store=sys.argv[1] + '/new')\nkg._submissions.take_over()\nkg.submit(insert='p(1) .')\n"
    KnowledgeGraph("rhodf", store=tmp_path / "g").update(insert=is_a("x"))
    killed(tmp_path / "g", code + "die()")
    lost = unsettled(tmp_path / "g" / "new")
    assert [(one.number, one.version) for one in lost] == [(1, -1)]
    kg = KnowledgeGraph("rhodf", store=tmp_path / "g" / "new")
    assert kg.unsettled == lost
    kg.submit(insert="p(2) .").wait(60)
    assert kg.unsettled == () and kg.counts() == {"p": 1}


def test_a_folder_that_is_no_store_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    kg = KnowledgeGraph("rhodf", store=tmp_path)
    with pytest.raises(UserError, match="EG401"):
        kg.submit(insert=is_a("x"))
    assert [file.name for file in tmp_path.iterdir()] == ["mine.txt"]


def test_a_graph_without_a_store_has_no_records() -> None:
    kg = KnowledgeGraph("rhodf")
    kg.submit(insert=is_a("x"), name="mine").wait(60)
    assert kg.unsettled == ()


# -- several processes -------------------------------------------------------------------------------------------------


@pytest.fixture
def other(path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has submitted an update, and waits."""
    code = f"""
kg._submissions.take_over()
kg.submit(insert={is_a("bob")!r}, name="theirs")
print("submitted", flush=True)
sys.stdin.readline()
kg.settle()
"""
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", CHILD + code, str(path)], **pipes) as process:
        assert process.stdout is not None and process.stdout.readline() == "submitted\n"
        yield process
        process.kill()


def test_what_a_living_process_has_under_way_is_not_lost(path: Path, other: subprocess.Popen[str]) -> None:
    kg = KnowledgeGraph.open(path)
    assert kg.unsettled == () and len(records(path)) == 1
    kg.submit(insert=is_a("cid")).wait(60)
    assert len(records(path)) == 1, "nobody else takes it away"
    other.communicate("go on\n")
    assert other.returncode == 0 and not (path / SUBMITTED).exists()
    assert KnowledgeGraph.open(path).unsettled == () and len(KnowledgeGraph.open(path)) == 7


def test_of_two_processes_the_one_that_is_killed_loses_its_own(path: Path, other: subprocess.Popen[str]) -> None:
    mine = by_hand(path)
    mine.submit(insert=is_a("cid"), name="mine")
    other.kill()
    other.wait()
    assert [one.name for one in mine.unsettled] == ["theirs"]
    assert [one.name for one in opened(path).unsettled] == ["theirs"]
    mine.settle()
    assert mine.unsettled == () and not (path / SUBMITTED).exists()


# -- the records themselves --------------------------------------------------------------------------------------------


def test_half_a_line_is_passed_by(path: Path) -> None:
    killed(path, LOSES_TWO)
    (file,) = (path / SUBMITTED).glob("*")
    os.truncate(file, file.stat().st_size - 5)
    assert [one.number for one in unsettled(path)] == [2]


def test_a_name_that_was_given_is_in_a_version_even_if_nothing_changes(path: Path) -> None:
    kg = KnowledgeGraph.open(path)
    kg.submit(insert=is_a("ann")).wait(60)
    assert kg.version == 0
    kg.submit(insert=is_a("ann"), name="again").wait(60)
    assert kg.version == 1 and Store(path).snapshot().info.report["tickets"] == ["again"]
    assert kg.verify() == 3


def test_a_record_costs_little(tmp_path: Path) -> None:
    """A short line, handed to the operating system once; the file is opened for the first, and no disk is waited for."""
    journal = Journal(tmp_path)
    calls = {name: patch.object(os, name, wraps=getattr(os, name)) for name in ("open", "write", "fsync")}
    with calls["open"] as opened, calls["write"] as written, calls["fsync"] as synced:
        for number in range(200):
            journal.begun(number, "name", 0, "1 fact", "")
    assert (opened.call_count, written.call_count, synced.call_count) == (1, 200, 0)
    assert max(len(call.args[1]) for call in written.call_args_list) < 200


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ((), ""),
        ("", ""),
        (("a.nt", "b.nt"), "a.nt, b.nt"),
        (tuple(f"{n}.nt" for n in range(9)), "0.nt, 1.nt, 2.nt and 6 more"),
        (Path("a.ttl"), "a.ttl"),
        (OwnLines([is_a("x")]), "1 fact"),
        ((is_a("x"), is_a("y")), "2 facts"),
        ("p(1) .\np(2) .", "2 lines of text"),
    ],
    ids=["nothing", "no text", "files", "many files", "a path", "lines", "facts", "text"],
)
def test_an_input_in_words(source: Any, words: str) -> None:
    assert in_words(source) == words


# -- the command line --------------------------------------------------------------------------------------------------


def test_commands_tell_of_lost_updates_in_a_line(run: Run, path: Path) -> None:
    killed(path, LOSES_TWO)
    line = f"{path}: {told(unsettled(path))}"
    assert line.endswith("update 2 (insert 1 line of text, delete 2 facts); feed/7.rdfp (insert 1 fact)")
    ended = run("stats", path)
    assert (ended.code, ended.mistakes) == (0, [line])
    Path("eve.nt").write_text(is_a("eve"))
    ended = run("update", path, "--insert", "eve.nt")
    assert (ended.code, ended.mistakes) == (0, [line])
    assert run("stats", path).mistakes == []
