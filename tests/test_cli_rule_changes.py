"""`evergraph rules add`, `remove`, `replace` and `diff`, and rules in `update` and `history`: what they print and change."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from evergraph import KnowledgeGraph, Program
from evergraph.store import Store
from test_cli import EX, Run, run_command, written  # noqa: F401 - a fixture
from test_cli_updates import PERSON, STUDENT, held, is_a, refused, told

PREFIX = f"@prefix ex: <{EX}> .\n"
PERSONS = "ex:Person[?x] :- ex:Student[?x] ."
AGENTS = "ex:Agent[?x] :- ex:Person[?x] ."
PATHS = "path(?x, ?y) :- edge(?x, ?y) ."
LONGER = "path(?x, ?z) :- path(?x, ?y), edge(?y, ?z) ."
AGENT = f"<{EX}Agent>"
ONTOLOGY = f"<{EX}Person> <http://www.w3.org/2000/01/rdf-schema#subClassOf> {AGENT} .\n"


def rules(name: str, *texts: str) -> Path:
    return written(name, PREFIX + "".join(f"{text}\n" for text in texts))


def full(rule: str) -> str:
    """A rule as it is printed where nobody gave a prefix."""
    return re.sub(r"ex:(\w+)", rf"<{EX}\1>", rule)


def in_force(store: Path, version: int | None = None) -> list[str]:
    """The rules of a version, a line each."""
    program = KnowledgeGraph.open(store, version=version).rules
    known = Program(program.rules, prefixes={"ex": EX})
    return [line for line in str(known).splitlines() if not line.startswith(("@", "#"))]


@pytest.fixture
def store(run: Run) -> Path:
    """Ann is a student, and so a person; there are two edges, and a path over each."""
    first = rules("rules.dlog", PERSONS, PATHS, "edge(1, 2) . edge(2, 3) .")
    data = written("data.nt", is_a("ann"))
    assert run("load", data, "--rules", first, "--store", "uni", "--engine", "memory").code == 0
    return Path("uni")


# -- add, remove, replace ----------------------------------------------------------------------------------------------


def test_added_rules_are_one_version_and_are_told_with_what_they_derive(run: Run, store: Path) -> None:
    lines = told(run("rules", "add", store, rules("more.dlog", AGENTS, PERSONS), rules("long.dlog", LONGER)))
    assert lines[:-1] == [
        f"+ {AGENTS}",
        f"+ {LONGER}",
        "inserted 2 rules, deleted 0 rules",
        "inserted 0 explicit and 2 derived facts",
        "deleted 0 explicit and 0 derived facts",
    ]
    assert lines[-1].endswith("; T s; uni is at version 1")
    assert in_force(store) == [PERSONS, PATHS, AGENTS, LONGER]
    assert is_a("ann", AGENT) in held(store, "derived")
    assert run("verify", store).code == 0


def test_removed_rules_take_along_what_followed_from_nothing_else(run: Run, store: Path) -> None:
    lines = told(run("rules", "remove", store, rules("gone.dlog", "ex:Person[?other] :- ex:Student[?other] .")))
    assert lines[:4] == [
        f"- {PERSONS}",
        "inserted 0 rules, deleted 1 rule",
        "inserted 0 explicit and 0 derived facts",
        "deleted 0 explicit and 1 derived facts",
    ]
    assert in_force(store) == [PATHS] and is_a("ann", PERSON) not in held(store)
    assert in_force(store, 0) == [PERSONS, PATHS]


def test_replaced_rules_come_and_go_by_the_difference(run: Run, store: Path) -> None:
    lines = told(run("rules", "replace", store, rules("new.dlog", LONGER, PATHS)))
    assert lines[:3] == [f"- {PERSONS}", f"+ {LONGER}", "inserted 1 rule, deleted 1 rule"]
    assert in_force(store) == [PATHS, LONGER]
    again = told(run("rules", "replace", store, "new.dlog"))
    assert again[:2] == ["inserted 0 explicit and 0 derived facts", "deleted 0 explicit and 0 derived facts"]
    assert again[-1].endswith("uni is at version 1")


def test_rules_of_an_ontology_are_replaced_only_if_that_is_asked_for(run: Run, store: Path) -> None:
    assert run("update", store, "--ontology", written("onto.nt", ONTOLOGY)).code == 0
    assert in_force(store) == [PERSONS, PATHS, AGENTS]
    assert told(run("rules", "replace", store, rules("new.dlog", PATHS)))[0] == f"- {PERSONS}"
    assert in_force(store) == [PATHS, AGENTS]
    assert told(run("rules", "replace", store, "new.dlog", "--all"))[0] == f"- {AGENTS}"
    assert in_force(store) == [PATHS]


@pytest.mark.parametrize("algorithm", ["dred", "declarative", "recompute"])
def test_rules_change_by_the_algorithm_that_was_asked_for(run: Run, store: Path, algorithm: str) -> None:
    ended = run("rules", "replace", store, rules("new.dlog", LONGER, PATHS, AGENTS), "--algorithm", algorithm)
    assert told(ended)[-1].startswith(f"{algorithm} on memory: asked for; ")
    assert run("verify", store).code == 0


def test_a_dry_run_prints_rules_and_facts_of_every_kind_and_changes_nothing(run: Run, store: Path) -> None:
    before = held(store)
    lines = told(run("rules", "replace", store, rules("new.dlog", PATHS, LONGER), "--dry-run"))
    assert lines[:4] == [f"- {PERSONS}", f"+ {LONGER}", "- " + is_a("ann", PERSON).removesuffix(" .\n"), "+ path(1, 3)"]
    assert lines[-1].endswith("nothing was changed")
    assert (held(store), in_force(store), Store(store).snapshot().version) == (before, [PERSONS, PATHS], 0)


def test_a_change_of_rules_in_json(run: Run, store: Path) -> None:
    ended = run("rules", "replace", store, rules("new.dlog", PATHS, LONGER), "--output", "json")
    answer = json.loads(ended.out)
    assert (answer["inserted_rules"], answer["deleted_rules"]) == ([LONGER], [PERSONS])
    assert (answer["rules_inserted"], answer["rules_deleted"], answer["version"]) == (1, 1, 1)
    assert answer["inserted"]["derived"] == {"path": 1} and answer["deleted"]["derived"] == {"triples": 1}


def test_a_rule_set_is_added_by_its_name_and_its_rules_lose_no_name(run: Run, store: Path) -> None:
    assert told(run("rules", "add", store, "rhodf"))[6] == "inserted 6 rules, deleted 0 rules"
    assert {rule.name for rule in KnowledgeGraph.open(store).rules.rules} >= {r.name for r in Program.load("rhodf").rules}


MISTAKES = {
    "a rule that is not there": (["rules", "remove", "uni", "long.dlog"], "long.dlog:2:1: error EG009: "),
    "an unknown rule set": (["rules", "add", "uni", "owl3"], "error EG007: "),
    "a file that is not there": (["rules", "replace", "uni", "none.dlog"], "error EG101: "),
    "no store": (["rules", "add", "nowhere", "long.dlog"], "error EG401: "),
    "an unknown algorithm": (["rules", "add", "uni", "long.dlog", "--algorithm", "magic"], "error EG302: "),
    "a syntax error": (["rules", "add", "uni", "bad.dlog"], "bad.dlog:1:14: error EG001: "),
    "another arity": (["rules", "add", "uni", "wide.dlog"], "error EG004: "),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_line_and_changes_nothing(run: Run, store: Path, name: str) -> None:
    rules("long.dlog", LONGER)
    written("bad.dlog", "path(?x, ?y) :- ")
    written("wide.dlog", "path(?x, ?y, ?y) :- edge(?x, ?y) .")
    arguments, start = MISTAKES[name]
    (line,) = refused(run, store, *arguments)
    assert line.startswith(start)


# -- update and history ------------------------------------------------------------------------------------------------


def test_facts_and_rules_change_in_one_version(run: Run, store: Path) -> None:
    given = ("--insert", written("bob.nt", is_a("bob")), "--delete", written("ann.nt", is_a("ann")))
    more = ("--insert-rules", rules("in.dlog", AGENTS), "--insert-rules", rules("long.dlog", LONGER))
    lines = told(run("update", store, *given, *more, "--delete-rules", rules("out.dlog", PATHS)))
    assert lines[:4] == [f"- {PATHS}", f"+ {AGENTS}", f"+ {LONGER}", "inserted 2 rules, deleted 1 rule"]
    assert held(store) == {is_a("bob", class_) for class_ in (STUDENT, PERSON, AGENT)}
    assert Store(store).snapshot().version == 1


def test_an_ontology_takes_the_place_of_the_last_one(run: Run, store: Path) -> None:
    first, second = written("one.nt", ONTOLOGY), written("two.nt", ONTOLOGY.replace("Person", "Student"))
    assert told(run("update", store, "--ontology", first))[0] == f"+ {full(AGENTS)}"
    lines = told(run("update", store, "--ontology", second))
    assert lines[:2] == [f"- {full(AGENTS)}", f"+ {full(AGENTS.replace('Person', 'Student'))}"]
    both = json.loads(run("update", store, "--ontology", first, "--ontology", second, "--output", "json").out)
    assert (both["rules_inserted"], both["rules_deleted"]) == (1, 0)


def test_a_rule_file_to_delete_must_be_of_rules_that_are_there(run: Run, store: Path) -> None:
    (line,) = refused(run, store, "update", store, "--delete-rules", rules("long.dlog", LONGER))
    assert line.startswith("long.dlog:2:1: error EG009: no such rule: ")


def test_the_history_tells_how_many_rules_there_were_and_what_came_and_went(run: Run, store: Path) -> None:
    run("rules", "replace", store, rules("new.dlog", PATHS, LONGER, AGENTS))
    head, *rows = run("history", store).out.splitlines()
    assert head.split()[-4:] == ["rules", "came", "and", "went"]
    assert rows[0].endswith("3  +2 -1") and rows[1].endswith("  2")
    versions = json.loads(run("history", store, "--output", "json").out)["versions"]
    assert [version["rules"] for version in versions] == [3, 2]
    assert (versions[0]["report"]["rules_inserted"], versions[0]["report"]["rules_deleted"]) == (2, 1)


# -- diff --------------------------------------------------------------------------------------------------------------


def test_files_that_differ_give_lines_and_exit_code_1(run: Run) -> None:
    ended = run("rules", "diff", rules("a.dlog", PERSONS, PATHS), rules("b.dlog", LONGER, PATHS, AGENTS))
    assert (ended.code, ended.err) == (1, "")
    assert ended.out.splitlines() == [f"- {PERSONS}", f"+ {LONGER}", f"+ {AGENTS}"]


def test_names_of_rules_and_variables_order_and_facts_make_no_difference(run: Run) -> None:
    other = '#[name("persons")]\nex:Person[?who] :- ex:Student[?who] .'
    ended = run("rules", "diff", rules("a.dlog", PERSONS, PATHS), rules("b.dlog", PATHS, other, "edge(1, 2) ."))
    assert (ended.code, ended.out, ended.err) == (0, "", "")


def test_a_rule_set_is_compared_with_another_in_json(run: Run) -> None:
    ended = run("rules", "diff", "owl2rl", "owl2rl-full", "--output", "json")
    answer = json.loads(ended.out)
    assert (ended.code, answer["same"], answer["deleted"]) == (1, False, [])
    assert len(answer["inserted"]) == len(Program.load("owl2rl-full").rules) - len(Program.load("owl2rl").rules)
    same = run("rules", "diff", "rhodf", "rhodf", "--output", "json")
    assert (same.code, json.loads(same.out)) == (0, {"same": True, "deleted": [], "inserted": []})


def test_versions_of_a_store_are_compared_with_each_other_with_files_and_with_ontologies(run: Run, store: Path) -> None:
    run("rules", "replace", store, rules("new.dlog", PATHS, AGENTS))
    assert told_lines(run, "uni@0", "uni@1") == (1, [f"- {full(PERSONS)}", f"+ {full(AGENTS)}"])
    assert told_lines(run, "uni@1", "uni") == (0, [])
    assert told_lines(run, "uni", "new.dlog") == (0, [])
    written("onto.nt", ONTOLOGY)
    code, lines = told_lines(run, "onto.nt", "uni")
    assert (code, lines) == (1, [f"+ {PATHS}"])


def told_lines(run: Run, a: str, b: str) -> tuple[int, list[str]]:
    ended = run("rules", "diff", a, b)
    return ended.code, ended.out.splitlines()


@pytest.mark.parametrize(
    ("source", "start"),
    [("uni@9", "error EG405: "), ("nowhere@1", "error EG401: "), ("owl3", "error EG007: "), ("none.dlog", "error EG101: ")],
)
def test_what_cannot_be_compared_is_a_mistake(run: Run, store: Path, source: str, start: str) -> None:
    ended = run("rules", "diff", "rules.dlog", source)
    assert (ended.code, ended.out) == (2, "") and ended.mistakes[0].startswith(start)
