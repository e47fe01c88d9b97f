"""Edges of what users give: each of these once gave a wrong answer, a traceback or a misleading message."""

import subprocess
import sys

import pyarrow as pa
import pytest
import rdflib

from evergraph import KnowledgeGraph, Program, UserError
from evergraph.engines.memory import MemoryEngine
from evergraph.formats import write_ntriples
from evergraph.rules.model import Atom

EX, RDFS = "http://example.org/", "http://www.w3.org/2000/01/rdf-schema#"
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
EDGE = Program.parse("p(?x, ?y) :- edge(?x, ?y) .")


def interrupted(self):
    raise KeyboardInterrupt


def test_schedule_after_rollback(monkeypatch):
    sub = f"<{RDFS}subClassOf>"
    kg = KnowledgeGraph(Program.parse("[?x, a, ?c] :- [?b, rdfs:subClassOf, ?c], [?x, a, ?b] ."))
    kg.update(insert=f"<{EX}A> {sub} <{EX}B> .\n<{EX}B> {sub} <{EX}C> .\n<{EX}y> {TYPE} <{EX}Z> .")
    with monkeypatch.context() as patch:
        patch.setattr(MemoryEngine, "commit", interrupted)
        with pytest.raises(KeyboardInterrupt):
            kg.update(insert=f"<{EX}A> {sub} <{EX}C> .")
    kg.update(insert=f"<{EX}x> {TYPE} <{EX}A> .")
    assert (f"<{EX}x>", TYPE, f"<{EX}C>") in kg


def test_lifted_rules_without_positive_atoms():
    program = Program.parse("".join(f"p({i}) :- NOT q({i}) . " for i in range(8)))
    fast, slow = KnowledgeGraph(program), KnowledgeGraph(program, engine="reference")
    for kg in (fast, slow):
        kg.update(insert="r(1) .")
    assert len(fast.relation("p")) == len(slow.relation("p")) == 8


def test_rule_without_positive_atoms_holds_at_once():
    assert len(KnowledgeGraph(Program.parse("p(1) :- NOT q(1) .")).relation("p")) == 1


@pytest.mark.parametrize("text", ["# only a comment\n", "\n\n"])
def test_file_without_triples(text, tmp_path):
    (tmp_path / "c.nt").write_text(text)
    assert len(KnowledgeGraph("rhodf").update(insert=tmp_path / "c.nt").inserted) == 0


def test_comment_text():
    assert len(KnowledgeGraph("rhodf").update(insert="# only a comment").inserted) == 0


def test_04c_all_lines_rejected(tmp_path):
    from evergraph.formats import Rejects

    (tmp_path / "c.nt").write_text("oops\n")
    assert len(KnowledgeGraph("rhodf").update(insert=tmp_path / "c.nt", rejects=Rejects()).inserted) == 0


def test_long_datalog_on_one_line():
    assert KnowledgeGraph(EDGE).update(insert="edge(1, 2) . " * 30).inserted.explicit == {"edge": 1}


def test_datalog_that_starts_with_a_name():
    kg = KnowledgeGraph(EDGE)
    kg.update(insert='#[name("first")]\nedge(1, 2) .')
    assert kg.counts()["edge"] == 1


@pytest.mark.parametrize(
    "term", ['"x"@abcdefghijkl', '"x"@a-b', '"x"^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString>']
)
def test_fast_way_admits_what_cannot_be_read_back(term):
    kg = KnowledgeGraph("rhodf")
    try:
        kg.update(insert=f"<{EX}a> <{EX}p> {term} .")
    except UserError:
        return
    assert len(list(kg.explicit)) == 1


def test_fast_way_admits_bad_iris():
    with pytest.raises(UserError):
        KnowledgeGraph("rhodf").update(insert=f"<http://a:b:c/> <{EX}p> <{EX}b> .")


def test_noncharacters_have_two_spellings():
    kg = KnowledgeGraph("rhodf")
    kg.update(insert=f'<{EX}a> <{EX}p> "\ufffe" .\n<{EX}a> <{EX}p> "\\uFFFE" .')
    assert len(kg) == 1


def test_output_can_be_read_again(tmp_path):
    kg = KnowledgeGraph("rdfs")
    kg.update(insert=f'<{EX}a> <{EX}p> "lit" .')
    write_ntriples(kg.blocks(), tmp_path / "out.nt")
    KnowledgeGraph("rdfs").update(insert=tmp_path / "out.nt")


def test_cli_target_cannot_be_written(tmp_path):
    (tmp_path / "a.nt").write_text(f"<{EX}a> <{EX}p> <{EX}b> .\n")
    command = [sys.executable, "-c", "from evergraph.cli import main; main()", "materialise", "a.nt", "--to", "gone/out.nt"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (ended.returncode, "Traceback" in ended.stderr) == (2, False)


@pytest.mark.parametrize(
    "source",
    [
        b"\xff",
        [f"<{EX}a> <{EX}p> <{EX}b> .", 5],
        [Atom("edge", ('"1"', '"2"')), 5],
        [Atom("new", ('"1"', '"2"')), Atom("new", ('"1"',))],
        pa.table({"subject": [f"<{EX}a>", None], "predicate": [f"<{EX}p>"] * 2, "object": [f"<{EX}b>"] * 2}),
        [(rdflib.URIRef(EX), rdflib.URIRef(EX), rdflib.Literal("x", datatype=rdflib.URIRef("relative")))],
    ],
    ids=["bytes", "mixed lines", "mixed atoms", "atoms of two arities", "null in frame", "relative datatype"],
)
def test_mistakes_that_are_no_user_errors(source):
    with pytest.raises(UserError):
        KnowledgeGraph(EDGE).update(insert=source)


def test_two_datalog_files_of_two_arities(tmp_path):
    (tmp_path / "a.dlog").write_text("new(1) .")
    (tmp_path / "b.dlog").write_text("new(1, 2) .")
    with pytest.raises(UserError):
        KnowledgeGraph(EDGE).update(insert=[tmp_path / "a.dlog", tmp_path / "b.dlog"])


@pytest.mark.parametrize(
    "term",
    [
        '"\\uZZZZ"',
        '"\\u12"',
        '"\\U00110000"',
        '"\\uD800"',
        '"\\q"',
        '"x"@abcdefghijkl',
        '"x"^^<>',
        '"x"^^<relative>',
        '"x"^^rdf:langString',
        "<relative>",
    ],
)
def test_rule_text_that_should_be_a_user_error(term):
    with pytest.raises(UserError):
        Program.parse(f"p({term}) .")


@pytest.mark.parametrize("subject", ["<relative>", '<http://a"b>', "<http://a\\u00E9>", "<>", "<a><b>"])
def test_strings_in_angle_brackets_are_not_checked(subject):
    kg = KnowledgeGraph("rhodf")
    try:
        kg.update(insert=[(subject, f"<{EX}p>", f"<{EX}b>")])
    except UserError:
        return
    assert [s for b in kg.blocks() for s in b[0].to_pylist()] == ["<http://aé>"]


@pytest.mark.parametrize(
    "row",
    [
        (rdflib.Variable("x"), rdflib.URIRef(EX), rdflib.URIRef(EX)),
        (rdflib.URIRef("http://a b"), rdflib.URIRef(EX), rdflib.URIRef(EX)),
        (rdflib.URIRef(EX), rdflib.Literal("p"), rdflib.URIRef(EX)),
        (rdflib.URIRef(EX), rdflib.BNode("p"), rdflib.URIRef(EX)),
    ],
    ids=["variable", "space in an IRI", "literal predicate", "blank predicate"],
)
def test_terms_that_no_triple_can_have(row):
    with pytest.raises(UserError):
        KnowledgeGraph("rhodf").update(insert=[row])


def test_tight_ntriples_text():
    assert len(KnowledgeGraph("rhodf").update(insert=f"<{EX}a><{EX}p><{EX}b>.").inserted) == 1


def test_glob_without_an_ending(tmp_path):
    (tmp_path / "part-1.nt").write_text(f"<{EX}a> <{EX}p> <{EX}b> .\n")
    assert len(KnowledgeGraph("rhodf").update(insert=str(tmp_path / "part-*")).inserted) == 1


def test_include_beside_the_file(tmp_path):
    (tmp_path / "part.dlog").write_text("p(1) .")
    (tmp_path / "whole.dlog").write_text('@include "part.dlog" .')
    assert len(Program.load(tmp_path / "whole.dlog").facts) == 1


def test_arity_clash_blames_the_later():
    with pytest.raises(UserError) as raised:
        Program.parse("p(1, 2) .\nq(?x) :- p(?x) .")
    assert raised.value.position.line == 2


def test_one_bad_character_is_one_mistake():
    with pytest.raises(UserError) as raised:
        Program.parse("p(?x) :- q(?x),\n  $r(?x),\n  s(?x) .\n")
    assert [m.code for m in raised.value.mistakes] == ["EG001"]


def test_every_mistake_at_once():
    with pytest.raises(UserError) as raised:
        Program.parse("p(foo:a, bar:b) .\n")
    assert len(raised.value.mistakes) == 2


def test_negation_in_a_cycle_beside_another_mistake():
    with pytest.raises(UserError) as raised:
        Program.parse("a(?x) :- c(?x), NOT a(?x) .\nd(?y) :- c(?x) .")
    assert [m.code for m in raised.value.mistakes] == ["EG005", "EG003"]


def test_check_says_that_lines_were_skipped(tmp_path):
    (tmp_path / "a.nt").write_text(f"oops\n<{EX}a> <{EX}p> <{EX}b> .\n")
    ended = subprocess.run(
        [sys.executable, "-c", "from evergraph.cli import main; main()", "check", "a.nt", "--on-error", "skip"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert "1 bad line" in ended.stdout


def test_not_utf8_is_called_so(tmp_path):
    (tmp_path / "a.nt").write_bytes(b'<x:a> <x:p> "\xff" .\n')
    with pytest.raises(UserError, match="UTF-8"):
        KnowledgeGraph("rhodf").update(insert=tmp_path / "a.nt")


def test_blank_node_of_a_file_and_of_text(tmp_path):
    (tmp_path / "a.nt").write_text(f"_:b <{EX}p> <{EX}o> .\n")
    kg = KnowledgeGraph("rhodf")
    kg.update(insert=f"_:f1_b <{EX}p> <{EX}o> .")
    kg.update(insert=tmp_path / "a.nt")
    assert len(kg) == 2
