"""`evergraph update --follow`: what it takes and when, what it says, how it ends, and that no file is applied twice."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from evergraph import KnowledgeGraph
from evergraph.cli import following
from evergraph.errors import UserError
from evergraph.formats.patch import Change, read_changes
from evergraph.store import Store, log
from evergraph.store.submitted import SUBMITTED
from test_cli import EX, TYPE, Run, run_command, written  # noqa: F401 - a fixture
from test_cli_updates import PERSON, STUDENT, held, is_a, store_of_students  # noqa: F401 - a fixture

MAIN = "from evergraph.cli import main; main()"
SECONDS = 60
"""How long a test waits for what must come."""


def patch(name: str, *rows: str) -> Path:
    """A patch in the folder `feed`, which appears when it is whole."""
    Path("feed").mkdir(exist_ok=True)
    part = written(f"feed/.{name}.part", "".join(rows))
    return part.rename(f"feed/{name}")


def adds(name: str) -> str:
    return f"A {is_a(name)}"


def deletes(name: str) -> str:
    return f"D {is_a(name)}"


def students(store: Path) -> set[str]:
    """Who is a student; each must be a person too."""
    found = {fact.split()[0] for fact in held(store) if fact.endswith(f"{TYPE} {STUDENT} .\n")}
    assert found == {fact.split()[0] for fact in held(store) if fact.endswith(f"{TYPE} {PERSON} .\n")}
    return {name.removeprefix(f"<{EX}").rstrip(">") for name in found}


def applied(store: Path) -> list[str]:
    """The files that versions name, in their order."""
    return [Path(name).name for name in log.tickets(store)]


@contextmanager
def following_in(*arguments: object, code: str = MAIN) -> Iterator[subprocess.Popen[str]]:
    """The command as a process of its own."""
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    words = [sys.executable, "-c", code, "update", *map(str, arguments)]
    with subprocess.Popen(words, text=True, bufsize=1, **pipes) as process:
        try:
            yield process
        finally:
            process.kill()


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def ended(process: subprocess.Popen[str]) -> tuple[int, list[str], list[str]]:
    """Exit code, lines, and mistakes of a process that ends by itself."""
    out, err = process.communicate(timeout=SECONDS)
    assert "Traceback" not in err, err
    return process.returncode, out.splitlines(), [line for line in err.splitlines() if not line.endswith("…")]


def eventually(what: Callable[[], bool]) -> None:
    until = time.monotonic() + SECONDS
    while not what():
        assert time.monotonic() < until, "it did not come about"
        time.sleep(0.01)


# -- a folder ----------------------------------------------------------------------------------------------------------


def test_files_that_are_there_are_taken_by_name_and_once_ends(run: Run, store: Path) -> None:
    patch("3.rdfp", adds("ann"))
    patch("1.rdfp", adds("cid"), deletes("bob"))
    patch("2.rdfp", deletes("cid"), deletes("ann"), adds("dee"))
    for name in (".4.rdfp", "5.rdfp.tmp", "6.rdfp.part", "notes.txt"):
        written(f"feed/{name}", adds("zed"))
    Path("feed/folder.rdfp").mkdir()
    done = run("update", store, "--follow", "feed", "--once")
    assert (done.code, done.mistakes) == (0, [])
    assert students(store) == {"ann", "dee"} and applied(store) == ["1.rdfp", "2.rdfp", "3.rdfp"]
    assert sum(int(found) for found in re.findall(r"^(\d+) updates? \(", done.out, re.MULTILINE)) == 3
    assert done.out.splitlines()[-1].endswith(f"uni is at version {Store(store).snapshot().version}")
    assert run("verify", store).code == 0


def test_a_line_tells_what_was_taken_and_what_it_did(run: Run, store: Path) -> None:
    patch("1.rdfp", adds("cid"), deletes("bob"))
    done = run("update", store, "--follow", "feed", "--once")
    assert re.sub(r"\d+\.\d+ s", "T s", done.out) == (
        "1 update (1.rdfp): inserted 1 explicit and 1 derived facts, deleted 1 explicit and 1 derived facts; "
        "dred on memory; T s; uni is at version 1\n"
    )


def test_a_line_of_json_for_each_settled_point(run: Run, store: Path) -> None:
    names = [f"{n:02}.rdfp" for n in range(20)]
    for n, name in enumerate(names):
        patch(name, adds(f"x{n}"))
    answers = [
        json.loads(line) for line in run("update", store, "--follow", "feed", "--once", "--output", "json").out.splitlines()
    ]
    assert [name for answer in answers for name in answer["taken"]] == names
    assert all(answer["updates"] == len(answer["taken"]) and answer["store"] == "uni" for answer in answers)
    assert [answer["version"] for answer in answers] == list(range(1, len(answers) + 1))
    assert sum(answer["inserted"]["explicit"]["triples"] for answer in answers) == 20
    assert all({"deleted", "algorithm", "seconds", "engine"} <= answer.keys() for answer in answers)


def test_files_that_appear_are_taken_until_a_signal_comes(run: Run, store: Path) -> None:
    patch("1.rdfp", adds("cid"))
    for sent in (signal.SIGTERM, signal.SIGINT):
        with following_in(store, "--follow", "feed") as process:
            assert sent == signal.SIGINT or line_of(process).startswith("1 update (1.rdfp): ")
            for n in range(2, 5):
                patch(f"{sent}-{n}.rdfp", adds(f"x{sent}{n}"), deletes(f"x{sent}{n - 1}"))
                assert line_of(process).startswith(f"1 update ({sent}-{n}.rdfp): inserted 1 explicit")
            process.send_signal(sent)
            assert ended(process) == (0, [], [])
    assert students(store) == {"ann", "bob", "cid", "x154", "x24"}


def test_what_was_taken_settles_before_the_end(run: Run, store: Path) -> None:
    """The signal comes while updates are under way: what was taken is in the store, and the rest is there the next time."""
    for n in range(300):
        patch(f"{n:03}.rdfp", adds(f"x{n}"))
    with following_in(store, "--follow", "feed", "--output", "json") as process:
        first = json.loads(line_of(process))
        process.send_signal(signal.SIGTERM)
        code, lines, mistakes = ended(process)
    taken = [name for answer in (first, *map(json.loads, lines)) for name in answer["taken"]]
    assert (code, mistakes) == (0, []) and taken == applied(store) == [f"{n:03}.rdfp" for n in range(len(taken))]
    assert not (store / SUBMITTED).exists()
    assert run("update", store, "--follow", "feed", "--once").code == 0
    assert applied(store) == [f"{n:03}.rdfp" for n in range(300)]


def test_a_malformed_file_fails_alone_and_is_tried_again_next_time(run: Run, store: Path) -> None:
    patch("1.rdfp", adds("cid"))
    patch("2.rdfp", adds("dee"), "A oops .\n", "B oops .\n")
    patch("3.rdfp", adds("eve"))
    written("feed/4.rdfp", "").write_bytes(b"A \xff .\n")
    done = run("update", store, "--follow", "feed", "--once")
    feed = Path("feed").resolve()
    assert done.code == 2 and [line.split(" (hint")[0].split(": malformed")[0] for line in done.mistakes] == [
        f"{feed}/2.rdfp:2:3: error EG103",
        f"{feed}/2.rdfp:3:1: error EG103",
        f"error EG101: cannot read {feed}/4.rdfp: 'utf-8' codec can't decode byte 0xff in position 2: invalid start byte",
    ]
    assert applied(store) == ["1.rdfp", "3.rdfp"] and students(store) == {"ann", "bob", "cid", "eve"}
    Path("feed/4.rdfp").unlink()
    patch("2.rdfp", adds("dee"))
    assert run("update", store, "--follow", "feed", "--once").code == 0
    assert applied(store) == ["1.rdfp", "3.rdfp", "2.rdfp"] and "dee" in students(store)


def test_a_folder_followed_again_applies_no_file_twice(run: Run, store: Path) -> None:
    """Neither a file that changed something nor one that changed nothing: again, after the second, it would."""
    patch("1.rdfp", adds("ann"))
    patch("2.rdfp", deletes("ann"))
    patch("3.rdfp", "# nothing\n")
    for _ in range(2):
        assert run("update", store, "--follow", "feed", "--once").code == 0
        assert students(store) == {"bob"} and applied(store) == ["1.rdfp", "2.rdfp"]
    Path("feed").rename("other")
    assert run("update", store, "--follow", "other", "--once").code == 0
    assert len(applied(store)) == 4, "files of another folder are others"


def test_blank_nodes_are_those_of_the_graph(run: Run, store: Path) -> None:
    (printed,) = (line for line in held(store) if "_:" in line)
    patch("1.rdfp", f"D {printed}", f"A _:new <{EX}knows> <{EX}bob> .\n")
    patch("2.rdfp", f"A _:new <{EX}knows> <{EX}ann> .\n")
    run("update", store, "--follow", "feed", "--once")
    assert {line for line in held(store) if "_:" in line} == {f"_:new <{EX}knows> <{EX}{name}> .\n" for name in ("ann", "bob")}


def test_two_do_not_follow_one_folder_into_one_store(run: Run, store: Path) -> None:
    patch("1.rdfp", adds("cid"))
    with following_in(store, "--follow", "feed") as process:
        line_of(process)
        done = run("update", store, "--follow", "feed", "--once")
        assert done.code == 2 and done.mistakes[0].startswith("error EG402: another process follows ")
        process.send_signal(signal.SIGTERM)
        assert ended(process)[0] == 0
    assert run("update", store, "--follow", "feed", "--once").code == 0


def test_nothing_is_taken_after_the_store_could_not_be_written(run: Run, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Later patches may need earlier ones. The next time they come in their order."""
    for n in range(5):
        patch(f"{n}.rdfp", adds("cid") if n % 2 else deletes("cid"))
    real, calls = log.commit, []

    def commit(*given: Any, **named: Any) -> Any:
        calls.append(given)
        if len(calls) == 1:
            raise UserError("EG403", "the disk is full", "make room")
        return real(*given, **named)

    with monkeypatch.context() as patched:
        patched.setattr(log, "commit", commit)
        done = run("update", store, "--follow", "feed", "--once")
    assert (done.code, done.out, done.mistakes) == (2, "", ["error EG403: the disk is full (hint: make room)"])
    assert applied(store) == [] and not (store / SUBMITTED).exists()
    assert run("update", store, "--follow", "feed", "--once").code == 0
    assert applied(store) == [f"{n}.rdfp" for n in range(5)]


def test_no_more_is_read_than_may_be_under_way(run: Run, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "AHEAD", 2)
    most = []
    real = following.Feed._submit

    def submit(self: following.Feed, *given: Any) -> None:
        real(self, *given)
        most.append(len(self._open))

    monkeypatch.setattr(following.Feed, "_submit", submit)
    for n in range(12):
        patch(f"{n:02}.rdfp", adds(f"x{n}"))
    assert run("update", store, "--follow", "feed", "--once").code == 0
    assert max(most) <= 2 and len(students(store)) == 14


# -- kill -9 -----------------------------------------------------------------------------------------------------------

FILES = 12
DEADLY = """
import os, signal, sys
from evergraph.store import log, submitted
from evergraph.cli import following
where, deadly = sys.argv.pop(), int(sys.argv.pop())
owner, name = {
    "before": (log, "commit"),
    "tables": (log, "_commit_table"),
    "after": (log, "commit"),
    "record": (submitted.Journal, "begun"),
    "ended": (submitted.Journal, "ended"),
}[where]
real, calls = getattr(owner, name), []
def watched(*given, **named):
    calls.append(1)
    die = lambda: os.kill(os.getpid(), signal.SIGKILL) if len(calls) == deadly else None
    if where in ("before", "ended"):
        die()
    found = real(*given, **named)
    die()
    return found
setattr(owner, name, watched)
following.AHEAD = 3
"""


@pytest.mark.parametrize("where", ["before", "tables", "after", "record", "ended"])
def test_each_file_is_applied_exactly_once_however_often_it_is_killed(run: Run, store: Path, where: str) -> None:
    """Later files take back what earlier ones did: one that comes twice, or in another order, would show."""
    for n in range(FILES):
        rows = (adds(f"x{n % 3}"), deletes(f"x{(n + 1) % 3}"), adds(f"y{n}"), deletes(f"y{n - 2}"), adds("ann"))
        patch(f"{n:02}.rdfp", *rows)
    shutil.copytree(store, "serial")
    for n in range(FILES):
        assert run("update", "serial", "--patch", f"feed/{n:02}.rdfp").code == 0
    kills = 0
    for deadly in (1, 2, 1, 3, 1000):
        settled = held_versions(store)
        with following_in(store, "--follow", "feed", "--once", deadly, where, code=DEADLY + MAIN) as process:
            process.communicate(timeout=SECONDS)
        kills += process.returncode == -signal.SIGKILL
        assert process.returncode in (0, -signal.SIGKILL)
        assert held_versions(store)[: len(settled)] == settled, "what was settled stays"
        names = applied(store)
        assert names == [f"{n:02}.rdfp" for n in range(len(names))]
        if process.returncode == 0 and deadly == 1000:
            break
    assert kills >= 3
    assert applied(store) == [f"{n:02}.rdfp" for n in range(FILES)]
    assert held(store) == held(Path("serial")) and held(store, "explicit") == held(Path("serial"), "explicit")
    assert KnowledgeGraph.open(store).unsettled == () and run("verify", store).code == 0


def held_versions(store: Path) -> list[tuple[Any, Any]]:
    return [(one.version, one.info.explicit) for one in reversed(Store(store).history())]


def test_files_that_a_crash_lost_are_told_by_name_and_applied_next_time(run: Run, store: Path) -> None:
    patch("1.rdfp", adds("cid"))
    with following_in(store, "--follow", "feed", "--once", 1, "before", code=DEADLY + MAIN) as process:
        process.communicate(timeout=SECONDS)
    lost = Path("feed/1.rdfp").resolve()
    line = f"uni: 1 update was submitted and lost before settling: {lost} (insert 1 fact)"
    assert run("stats", store).mistakes == [line]
    done = run("update", store, "--follow", "feed", "--once")
    assert (done.code, done.mistakes) == (0, [line]) and "cid" in students(store)
    assert run("stats", store).mistakes == []


# -- standard input ----------------------------------------------------------------------------------------------------


def said(process: subprocess.Popen[str], *rows: str) -> None:
    assert process.stdin is not None
    process.stdin.write("".join(rows))
    process.stdin.flush()


def test_each_transaction_is_an_update_as_soon_as_it_ends(run: Run, store: Path) -> None:
    with following_in(store, "--follow", "-", "--output", "json") as process:
        said(process, "TX .\n", adds("cid"), "TC .\n")
        assert (json.loads(line_of(process))["taken"], students(store)) == (["-:1"], {"ann", "bob", "cid"})
        said(process, adds("dee"), "TX .\n", deletes("dee"), adds("eve"))
        assert json.loads(line_of(process))["taken"] == ["-:4"]
        assert students(store) == {"ann", "bob", "cid", "dee"}
        said(process, "TC .\nTX .\n", adds("zed"), "TA .\n", adds("fay"))
        assert json.loads(line_of(process))["taken"] == ["-:5"]
        code, lines, mistakes = ended(process)
    assert (code, mistakes, [json.loads(line)["taken"] for line in lines]) == (0, [], [["-:12"]])
    assert students(store) == {"ann", "bob", "cid", "eve", "fay"}


def test_a_malformed_transaction_fails_alone(run: Run, store: Path) -> None:
    with following_in(store, "--follow", "-") as process:
        said(process, "TX .\n", adds("cid"), "TC .\nTX .\n", adds("dee"), "A oops .\nTC .\nTX .\n", adds("eve"), "TC .\nTX .\n")
        code, lines, mistakes = ended(process)
    assert code == 2 and [line.split(":", 3)[:3] for line in mistakes] == [["-", "6", "3"], ["-", "11", "1"]]
    assert "this transaction does not end" in mistakes[1]
    assert students(store) == {"ann", "bob", "cid", "eve"} and all(" update" in line for line in lines)


@pytest.mark.parametrize("half", ["TX .\n", ""], ids=["transaction", "lines"])
def test_a_signal_ends_standard_input_too_and_what_has_begun_is_dropped(run: Run, store: Path, half: str) -> None:
    with following_in(store, "--follow", "-") as process:
        said(process, "TX .\n", adds("cid"), "TC .\n", half, adds("dee"))
        line_of(process)
        process.send_signal(signal.SIGINT)
        assert process.wait(SECONDS) == 0
    assert students(store) == {"ann", "bob", "cid"}


def test_a_file_as_standard_input(run: Run, store: Path) -> None:
    text = f"\ufeffPA ex: <{EX}> .\nTX .\nA ex:cid {TYPE} ex:Student .\nTC .\nA ex:dee {TYPE} ex:Student ."
    with written("all.rdfp", text).open() as file:
        words = [sys.executable, "-c", MAIN, "update", str(store), "--follow", "-"]
        done = subprocess.run(words, stdin=file, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    assert students(store) == {"ann", "bob", "cid", "dee"}


def test_who_has_seen_enough_loses_nothing(run: Run, store: Path) -> None:
    """The reader of the lines goes away: what was taken settles."""
    with following_in(store, "--follow", "-") as process:
        assert process.stdout is not None
        process.stdout.close()
        said(process, "TX .\n", adds("cid"), "TC .\n")
        eventually(lambda: process.poll() is not None)
    assert process.returncode == 0 and "cid" in students(store)


def changes(*rows: str) -> list[Change]:
    return list(read_changes("".join(rows).split("\n"), "-"))


def spelled(found: list[Change]) -> list[tuple[int, list[str], list[str]]]:
    return [(one.line, [f"{t}\n" for t in one.insert], [f"{t}\n" for t in one.delete]) for one in found]


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("", []),
        ("TX .\nTC .\n", []),
        (f"\n# a\n{adds('a')}", [(2, [is_a("a")], [])]),
        (f"{adds('a')}TC .\n{deletes('a')}", [(1, [is_a("a")], []), (3, [], [is_a("a")])]),
        (f"{adds('a')}TA .\n{adds('b')}", [(3, [is_a("b")], [])]),
        (f"TX .\n{adds('a')}{deletes('a')}TC .\nH x <y> .\nTX .\n{adds('b')}TC", [(1, [], [is_a("a")]), (6, [is_a("b")], [])]),
    ],
    ids=["nothing", "empty", "no transaction", "no TX", "aborted", "two"],
)
def test_what_a_feed_says(text: str, want: list[Any]) -> None:
    assert spelled(changes(text)) == want


def test_a_mistake_is_that_of_its_transaction() -> None:
    found = changes(adds("a"), "TX oops\n", adds("b"), "TC .\n", adds("c"), "TX .\n", adds("d"), "TX .\n", adds("e"), "TC .\n")
    assert [(one.line, len(one.insert), [m.position.line for m in one.mistakes if m.position]) for one in found] == [
        (1, 1, []),
        (2, 0, [2]),
        (5, 1, []),
        (6, 0, [6]),
        (8, 1, []),
    ]


def test_a_prefix_whose_line_is_malformed_stands_for_nothing() -> None:
    use = f"A ex:a {TYPE} ex:B .\n"
    found = changes(
        "TX .\nPA ex: oops .\n", use, "TC .\nTX .\n", use, "TC .\n", f"PA ex: <{EX}> .\nA oops .\n", "TX .\n", use, "TC .\n"
    )
    assert [[m.position.line for m in one.mistakes if m.position] for one in found] == [[2], [6], [9], []]
    assert found[-1].insert == [f"<{EX}a> {TYPE} <{EX}B> ."]


def test_bytes_that_are_no_text_are_a_mistake(run: Run, store: Path) -> None:
    words = [sys.executable, "-c", MAIN, "update", str(store), "--follow", "-"]
    data = b"TX .\nA <x:\xff> <x:p> <x:o> .\nTC .\n" + adds("cid").encode()
    done = subprocess.run(words, input=data, capture_output=True, timeout=SECONDS, check=False)
    assert done.returncode == 2 and b"-:2:6: error EG103: malformed line: not UTF-8 text" in done.stderr
    assert "cid" in students(store)


# -- options -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "others",
    ["--insert x.nt", "--delete x.nt", "--patch x.rdfp", "--dry-run", "--insert-rules x", "--delete-rules x", "--ontology x"],
)
def test_following_comes_alone(run: Run, store: Path, others: str) -> None:
    Path("feed").mkdir()
    done = run("update", store, "--follow", "feed", *others.split())
    assert (done.code, done.out) == (2, "")
    assert done.mistakes[0].startswith(f"error EG302: --follow and {others.split()[0]} do not go together (hint: ")


@pytest.mark.parametrize(
    ("arguments", "mistake"),
    [
        ("uni --follow nowhere", "error EG101: no such folder: nowhere"),
        ("uni --follow feed --algorithm magic", "error EG302: no algorithm is called 'magic'"),
        ("uni --once", "error EG302: --once goes with --follow only"),
        ("nothing --follow feed", "error EG401: no store at nothing"),
    ],
)
def test_other_mistakes(run: Run, store: Path, arguments: str, mistake: str) -> None:
    Path("feed").mkdir()
    done = run("update", *arguments.split())
    assert (done.code, done.out, len(done.mistakes)) == (2, "", 1) and done.mistakes[0].startswith(mistake)


@pytest.mark.parametrize("algorithm", ["recompute", "counting", "dred", "backward-forward", "declarative"])
def test_an_algorithm_that_is_asked_for(run: Run, store: Path, algorithm: str) -> None:
    for n in range(4):
        patch(f"{n}.rdfp", adds(f"x{n}"), deletes(f"x{n - 1}"))
    done = run("update", store, "--follow", "feed", "--once", "--algorithm", algorithm, "--output", "json")
    assert {json.loads(line)["algorithm"] for line in done.out.splitlines()} == {algorithm}
    assert students(store) == {"ann", "bob", "x3"} and run("verify", store).code == 0


@pytest.mark.parametrize("engine", ["reference", pytest.param("spark", marks=pytest.mark.spark)])
def test_other_engines(run: Run, store: Path, engine: str) -> None:
    patch("1.rdfp", adds("ann"))
    patch("2.rdfp", deletes("ann"), adds("cid"))
    arguments = ("update", store, "--follow", "feed", "--once", "--engine", engine, "--master", "local[2]")
    for _ in range(2):
        assert run(*arguments).code == 0
        assert students(store) == {"bob", "cid"} and applied(store) == ["1.rdfp", "2.rdfp"]
