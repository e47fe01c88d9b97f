"""`evergraph rules maintenance --from` and `rules split`: what they print is the program, and parses."""

from __future__ import annotations

from evergraph import Program
from evergraph.maintain.change_program import rewrite_change
from evergraph.maintain.maintenance_program import rewrite
from evergraph.rules.split import split
from test_cli import EX, Run, run_command, written  # noqa: F401 - a fixture

TWO = "d(?x, ?y) :- c(?x, ?y) .\nd(?x, ?y) :- d(?x, ?z), d(?z, ?y) .\n"
THREE = f"{TWO}d(?x, ?y) :- d(?y, ?x) .\n"


def test_rules_maintenance_from_prints_the_program_of_the_change(run: Run) -> None:
    ended = run("rules", "maintenance", written("three.dlog", THREE), "--from", written("two.dlog", TWO))
    assert ended.code == 0
    assert ended.out.splitlines()[0] == "% given: d_ext_New, c_New, d"
    assert Program.parse(ended.out) == rewrite_change(Program.parse(TWO), Program.parse(THREE))
    assert "d_Temp(?x, ?y) :- d_Temp(?y, ?x) ." in ended.out


def test_rules_maintenance_from_the_same_rules_prints_the_maintenance_program(run: Run) -> None:
    plain = run("rules", "maintenance", "rhodf")
    assert run("rules", "maintenance", "rhodf", "--from", "rhodf").out == plain.out
    assert Program.parse(plain.out) == rewrite(Program.load("rhodf"))


def test_rules_maintenance_from_rules_that_do_not_fit(run: Run) -> None:
    old = written("old.dlog", "d(?x) :- c(?x, ?y) .")
    ended = run("rules", "maintenance", written("three.dlog", THREE), "--from", old)
    assert (ended.code, ended.out) == (2, "")
    assert ended.mistakes == [
        "error EG004: d has 2 arguments in the new rules and 1 in the old ones "
        "(hint: give a relation the same number of arguments everywhere)"
    ]
    assert run("rules", "maintenance", "rhodf", "--from", "rdfz").mistakes[0].startswith("error EG007:")


def test_rules_split_prints_the_program_over_split_relations(run: Run) -> None:
    text = f"@prefix ex: <{EX}> .\nex:B[?x] :- ex:A[?x] .\nex:A[1] .\n"
    ended = run("rules", "split", written("classes.dlog", text))
    assert (
        ended.out.splitlines()[0] == "% explicit facts go to: t_Ext_Rest, t_Ext_type_2_Rest, t_Ext_type_2_A_3, t_Ext_type_2_B_3"
    )
    assert Program.parse(ended.out) == split(Program.parse(text)).program
    assert ended.out.endswith("t_Ext_type_2_A_3(1, rdf:type, ex:A) .\n")
    assert run("rules", "split", written("plain.dlog", TWO)).out == TWO
