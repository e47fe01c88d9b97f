"""The command line: exit codes, one line per mistake and no traceback, nothing written on a mistake, text and JSON reports."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from evergraph import KnowledgeGraph, Program
from evergraph.cli import main
from evergraph.rules.sources import SETS
from test_rules import TEN_MISTAKES, TEN_PLACES

EX = "http://example.org/"
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
SUBCLASS = "<http://www.w3.org/2000/01/rdf-schema#subClassOf>"
DISJOINT = "<http://www.w3.org/2002/07/owl#disjointWith>"
EXPLICIT = f'<{EX}Student> {SUBCLASS} <{EX}Person> .\n<{EX}ann> {TYPE} <{EX}Student> .\n<{EX}ann> <{EX}name> "Ann" .\n'
DERIVED = f"<{EX}ann> {TYPE} <{EX}Person> .\n"
CONTRADICTION = f"<{EX}Dog> {DISJOINT} <{EX}Cat> .\n<{EX}rex> {TYPE} <{EX}Dog> .\n<{EX}rex> {TYPE} <{EX}Cat> .\n"
STYLE = re.compile(r"\x1b\[[0-9;]*m")


@dataclass
class Ended:
    code: int
    out: str
    err: str

    @property
    def mistakes(self) -> list[str]:
        """The lines on standard error, less those that tell of progress."""
        return [line for line in self.err.splitlines() if not line.endswith("…")]


Run = Callable[..., Ended]


@pytest.fixture(name="run")
def run_command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Runs a command in an empty folder, in this process."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: object) -> Ended:
        monkeypatch.setattr(sys, "argv", ["evergraph", *map(str, arguments)])
        code: Any = 0
        try:
            main()
        except SystemExit as ended:
            code = ended.code or 0
        captured = capsys.readouterr()
        return Ended(code, STYLE.sub("", captured.out), STYLE.sub("", captured.err))

    return call


def written(name: str, text: str = EXPLICIT) -> Path:
    path = Path(name)
    path.write_text(text, encoding="utf-8")
    return path


def lines(path: str) -> list[str]:
    return sorted(Path(path).read_text(encoding="utf-8").splitlines())


def in_folder() -> list[str]:
    return sorted(path.name for path in Path().iterdir())


# -- materialise -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("facts", "want"),
    [("all", EXPLICIT + DERIVED), ("explicit", EXPLICIT), ("derived", DERIVED)],
    ids=["all", "explicit", "derived"],
)
def test_materialise_writes_the_facts_that_were_asked_for(run: Run, facts: str, want: str) -> None:
    written("data.nt")
    ended = run("materialise", "data.nt", "--rules", "rhodf", "--to", "out.nt", "--facts", facts)
    assert (ended.code, ended.mistakes) == (0, [])
    assert lines("out.nt") == sorted(want.splitlines())
    assert ended.out.startswith("3 explicit and 1 derived facts in ")
    assert ended.out.endswith(" to out.nt\n")
    assert in_folder() == ["data.nt", "out.nt"]


@pytest.mark.parametrize("engine", ["memory", "reference"])
def test_materialise_takes_an_engine(run: Run, engine: str) -> None:
    written("data.nt")
    ended = run("materialise", "data.nt", "-r", "rhodf", "-o", "out.nt", "--engine", engine, "--output", "json")
    assert json.loads(ended.out)["engine"] == engine
    assert lines("out.nt") == sorted((EXPLICIT + DERIVED).splitlines())


def test_materialise_reports_in_json(run: Run) -> None:
    written("data.nt")
    ended = run("materialise", "data.nt", "--rules", "rhodf", "--to", "out.nt.gz", "--output", "json")
    answer = json.loads(ended.out)
    assert ended.code == 0
    assert (answer["written"], answer["file"], answer["rejected"]) == (4, "out.nt.gz", 0)
    assert answer["inserted"] == {"explicit": {"triples": 3}, "derived": {"triples": 1}}
    assert answer["deleted"] == {"explicit": {}, "derived": {}}
    assert (answer["algorithm"], answer["engine"]) == ("seminaive", "memory")
    assert [phase["name"] for phase in answer["phases"]] == ["read", "insert", "stratum 1", "commit"]


def test_materialise_reads_folders_globs_and_several_files(run: Run) -> None:
    Path("deep").mkdir()
    statements = EXPLICIT.splitlines(keepends=True)
    for name, text in zip(("deep/a.nt", "b1.nt", "c.ttl"), statements, strict=True):
        written(name, text)
    ended = run("materialise", "deep", "b*.nt", "c.ttl", "--rules", "rhodf", "--to", "out.nt")
    assert ended.code == 0
    assert lines("out.nt") == sorted((EXPLICIT + DERIVED).splitlines())


def test_materialise_takes_a_rule_file(run: Run) -> None:
    written("data.nt")
    written("rules.dlog", f"@prefix ex: <{EX}> .\nex:Named[?x] :- ex:name[?x, ?n] .\n")
    assert run("materialise", "data.nt", "--rules", "rules.dlog", "--to", "out.nt", "--facts", "derived").code == 0
    assert lines("out.nt") == [f"<{EX}ann> {TYPE} <{EX}Named> ."]


def test_bad_lines_are_skipped_and_saved_when_asked(run: Run) -> None:
    bad = f"<{EX}bob> oops .\n"
    written("data.nt", bad + EXPLICIT)
    ended = run("materialise", "data.nt", "--rules", "rhodf", "--to", "out.nt", "--on-error", "skip")
    assert (ended.code, ended.mistakes) == (0, [])
    assert ended.out.endswith("\n1 bad line skipped, saved to rejected.txt\n")
    assert lines("out.nt") == sorted((EXPLICIT + DERIVED).splitlines())
    place, line = Path("rejected.txt").read_text().splitlines()
    assert (place.startswith("# data.nt:1:"), line) == (True, bad.strip())


def test_no_file_of_bad_lines_without_bad_lines(run: Run) -> None:
    written("data.nt")
    ended = run("materialise", "data.nt", "--to", "out.nt", "--on-error", "skip", "--output", "json")
    assert (ended.code, json.loads(ended.out)["rejected"]) == (0, 0)
    assert in_folder() == ["data.nt", "out.nt"]


# -- mistakes ----------------------------------------------------------------------------------------------------------

MISTAKES: dict[str, tuple[list[str], list[str]]] = {
    "a bad line": (["materialise", "bad.nt", "--to", "out.nt"], ["bad.nt:2:1: error EG103: malformed line"]),
    "two bad lines": (
        ["materialise", "worse.nt", "--to", "out.nt"],
        ["worse.nt:1:1: error EG103", "worse.nt:3:1: error EG103"],
    ),
    "a missing file": (["materialise", "gone.nt", "--to", "out.nt"], ["error EG101: no such file: gone.nt"]),
    "a missing second file": (["materialise", "data.nt", "gone.nt", "--to", "out.nt"], ["error EG101: no such file: gone.nt"]),
    "an unknown type": (["materialise", "data.csv", "--to", "out.nt"], ["error EG102: unknown file type: data.csv"]),
    "a damaged file": (["materialise", "data.nt.gz", "--to", "out.nt"], ["error EG104: data.nt.gz is damaged"]),
    "an unknown target": (["materialise", "data.nt", "--to", "out.ttl"], ["error EG102: cannot write out.ttl"]),
    "an unknown rule set": (
        ["materialise", "data.nt", "--to", "out.nt", "-r", "rdfz"],
        ["error EG007: no rule set is called 'rdfz'"],
    ),
    "a rule file with mistakes": (
        ["materialise", "data.nt", "--to", "out.nt", "--rules", "bad.dlog"],
        ["bad.dlog:1:1: error EG003: unsafe variable ?x", "bad.dlog:2:1: error EG003: unsafe variable ?y"],
    ),
    "check of a bad line": (["check", "bad.nt"], ["bad.nt:2:1: error EG103"]),
    "check of a missing file": (["check", "gone.nt"], ["error EG101: no such file: gone.nt"]),
    "rules check of a missing file": (["rules", "check", "gone.dlog"], ["error EG101: cannot read gone.dlog"]),
    "rules show of an unknown set": (["rules", "show", "rdfz"], ["error EG007: no rule set is called 'rdfz'"]),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_line_and_exit_code_2(run: Run, mistake: str) -> None:
    arguments, wanted = MISTAKES[mistake]
    for name, text in {
        "data.nt": EXPLICIT,
        "bad.nt": EXPLICIT.splitlines()[0] + "\noops\n",
        "worse.nt": f"oops\n{EXPLICIT.splitlines()[0]}\noops again\n",
        "data.csv": "a,b\n",
        "data.nt.gz": "not compressed",
        "bad.dlog": "p(?x) .\np(?y) .\n",
        "out.nt": "from before",
    }.items():
        written(name, text)
    before = in_folder()
    ended = run(*arguments)
    assert (ended.code, ended.out) == (2, "")
    assert len(ended.mistakes) == len(wanted)
    assert all(line.startswith(start) for line, start in zip(ended.mistakes, wanted, strict=True))
    assert all(" (hint: " in line for line in ended.mistakes)
    assert "Traceback" not in ended.err
    assert in_folder() == before
    assert Path("out.nt").read_text() == "from before"


@pytest.mark.parametrize(
    "arguments",
    [
        ["materialise"],
        ["materialise", "data.nt"],
        ["materialise", "data.nt", "--to", "out.nt", "--engine", "quantum"],
        ["materialise", "data.nt", "--to", "out.nt", "--facts", "some"],
        ["check", "data.nt", "--output", "xml"],
        ["frobnicate"],
        ["rules", "frobnicate"],
    ],
    ids=" ".join,
)
def test_a_wrong_call_is_exit_code_2(run: Run, arguments: list[str]) -> None:
    written("data.nt")
    ended = run(*arguments)
    assert (ended.code, ended.out) == (2, "")
    assert "Usage:" in ended.err
    assert "Traceback" not in ended.err
    assert in_folder() == ["data.nt"]


def test_an_interruption_writes_nothing(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    written("data.nt")

    def interrupted(self: KnowledgeGraph, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(KnowledgeGraph, "update", interrupted)
    ended = run("materialise", "data.nt", "--to", "out.nt")
    assert (ended.code, ended.out) == (130, "")
    assert "Traceback" not in ended.err
    assert in_folder() == ["data.nt"]


# -- check -------------------------------------------------------------------------------------------------------------


def test_check_says_that_data_is_consistent(run: Run) -> None:
    written("data.nt")
    assert (ended := run("check", "data.nt")).code == 0
    assert ended.out == "consistent\n"
    assert json.loads(run("check", "data.nt", "--output", "json").out) == {
        "consistent": True,
        "inconsistencies": [],
        "rejected": 0,
    }


def test_check_names_what_is_wrong_and_exits_with_1(run: Run) -> None:
    written("data.nt", CONTRADICTION)
    ended = run("check", "data.nt")
    assert (ended.code, ended.mistakes) == (1, [])
    assert ended.out == f"cax-dw: <{EX}rex>\n1 inconsistency\n"


def test_check_in_json(run: Run) -> None:
    written("data.nt", CONTRADICTION)
    ended = run("check", "data.nt", "--output", "json")
    assert ended.code == 1
    assert json.loads(ended.out) == {
        "consistent": False,
        "inconsistencies": [['"cax-dw"', f"<{EX}rex>", f"<{EX}rex>"]],
        "rejected": 0,
    }


def test_check_takes_rules_of_ones_own(run: Run) -> None:
    written("data.nt")
    written("rules.dlog", f'inconsistency("named", ?x, ?n) :- [?x, <{EX}name>, ?n] .\n')
    assert run("check", "data.nt", "--rules", "rules.dlog").out == f'named: <{EX}ann> "Ann"\n1 inconsistency\n'
    assert run("check", "data.nt", "--rules", "rhodf").out == "consistent\n"


def test_check_lists_culprits_of_every_kind(run: Run) -> None:
    xsd = "http://www.w3.org/2001/XMLSchema#"
    ill = [f'"x"^^<{xsd}integer>', f'"2024-13-01T00:00:00"^^<{xsd}dateTime>', f'"300"^^<{xsd}byte>']
    data = "".join(f"<{EX}a> <{EX}p> {term} .\n" for term in ill)
    schema = f"<{EX}p> <http://www.w3.org/2000/01/rdf-schema#range> <{xsd}integer> .\n"
    written("data.nt", data + schema + CONTRADICTION)
    ended = run("check", "data.nt", "--output", "json")
    found = json.loads(ended.out)["inconsistencies"]
    assert ended.code == 1
    assert sorted(row[1] for row in found if row[0] == '"dt-not-type"') == sorted(ill)
    assert [row[1] for row in found if row[0] == '"cax-dw"'] == [f"<{EX}rex>"]


# -- rules -------------------------------------------------------------------------------------------------------------


def test_rules_check_reports_all_ten_mistakes(run: Run) -> None:
    written("ten.dlog", TEN_MISTAKES)
    ended = run("rules", "check", "ten.dlog")
    assert (ended.code, ended.out) == (2, "")
    assert len(ended.mistakes) == 10
    for line, (code, at, column) in zip(ended.mistakes, TEN_PLACES, strict=True):
        assert line.startswith(f"ten.dlog:{at}:{column}: error {code}: ")


def test_rules_check_counts_what_is_there(run: Run) -> None:
    written("good.dlog", "odd(?x) :- node(?x), NOT even(?x) .\neven(?x) :- zero(?x) .\nnode(1) .\n")
    assert run("rules", "check", "good.dlog").out == "good.dlog: 2 rules, 1 facts, 2 strata\n"
    answer = json.loads(run("rules", "check", "good.dlog", "--output", "json").out)
    assert answer == {"rules": 2, "facts": 1, "strata": 2, "relations": {"odd": 1, "node": 1, "even": 1, "zero": 1}}


@pytest.mark.parametrize("name", SETS)
def test_rules_check_takes_the_shipped_sets(run: Run, name: str) -> None:
    ended = run("rules", "check", name)
    assert ended.code == 0
    assert ended.out.startswith(f"{name}: {len(Program.load(name).rules)} rules, ")


@pytest.mark.parametrize("name", ["rhodf", "owl2rl-full"])
def test_rules_show_prints_what_parses_back(run: Run, name: str) -> None:
    ended = run("rules", "show", name)
    assert (ended.code, ended.err) == (0, "")
    assert "@include" not in ended.out
    assert Program.parse(ended.out) == Program.load(name)


def test_rules_show_keeps_prefixes_and_resolves_includes(run: Run) -> None:
    written("part.dlog", "node(?x) :- edge(?x, ?y) .\n")
    written("whole.dlog", f'@prefix ex: <{EX}> .\n@include "part.dlog" .\nex:Node[?x] :- node(?x) .\n')
    ended = run("rules", "show", "whole.dlog")
    assert ended.out == f"@prefix ex: <{EX}> .\nnode(?x) :- edge(?x, ?y) .\nex:Node[?x] :- node(?x) .\n"


# -- the rest ----------------------------------------------------------------------------------------------------------


def test_the_demonstration_shows_what_one_fact_changes(run: Run) -> None:
    ended = run("demo", "--engine", "memory")
    assert (ended.code, ended.mistakes) == (0, [])
    assert "+ :grace :headOf :databases\n" in ended.out
    for follows in (":grace :worksFor :databases", ":grace :memberOf :databases", ":grace rdf:type :Employee"):
        assert f"+ {follows}   follows\n" in ended.out
    assert "version 1: update, 21 explicit, 32 derived facts" in ended.out
    assert "- :grace rdf:type :Student   followed\n" in ended.out and ":Person[:grace]  by prp-dom\n" in ended.out
    assert "+ :ada :colleague :grace   follows\n" in ended.out
    for follows in (":countess owl:sameAs :ada", ":countess :worksFor :databases", ":ada :wrote :notes"):
        assert f"+ {follows}   follows\n" in ended.out
    assert "the names part by backward-forward, " in ended.out
    assert "all 53 facts are the same" in ended.out
    assert in_folder() == []


@pytest.mark.parametrize(
    ("command", "mentions"),
    [
        ([], ["materialise", "check", "rules", "demo"]),
        (["materialise"], ["--rules", "--to", "--facts", "--engine", "--master", "--on-error", "--output"]),
        (["check"], ["--rules", "--engine", "--on-error", "--output"]),
        (["rules"], ["check", "show"]),
        (["rules", "check"], ["--output"]),
        (["rules", "show"], ["file"]),
        (["demo"], ["--engine", "--master"]),
    ],
    ids=lambda value: " ".join(value) or "evergraph",
)
def test_help_names_every_command_and_option(run: Run, command: list[str], mentions: list[str]) -> None:
    ended = run(*command, "--help")
    assert (ended.code, ended.err) == (0, "")
    assert [word for word in mentions if word not in ended.out] == []


def modules_after(statement: str) -> set[str]:
    """The top-level modules that are there after a statement in a fresh interpreter."""
    code = f"{statement}\nimport sys\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


@pytest.mark.parametrize("statement", ["import evergraph", "import evergraph.cli"])
def test_importing_is_light(statement: str) -> None:
    modules = modules_after(statement)
    assert "evergraph" in modules
    assert {"pyspark", "py4j", "pandas", "rdflib", "lark", "rich"} & modules == set()


def test_the_command_runs_as_a_process(tmp_path: Path) -> None:
    data = tmp_path / "data.nt"
    data.write_text(CONTRADICTION)
    command = [sys.executable, "-c", "from evergraph.cli import main; main()", "check", str(data), "--output", "json"]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (ended.returncode, json.loads(ended.stdout)["consistent"]) == (1, False)
    assert [line for line in ended.stderr.splitlines() if not line.endswith("…")] == []
