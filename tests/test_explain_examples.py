"""Proofs of small programs, as they are printed; how facts are named; and mistakes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyoxigraph as ox
import pytest
import rdflib

from evergraph import UserError
from evergraph.engines.relation import Relation, run_of
from evergraph.explain import Kind, explain
from evergraph.rules.model import TRIPLE, TYPE, XSD, Atom, Variable
from evergraph.rules.printer import print_atom
from proofs import EX, PATHS, ROADS, TREE, WAYS, Held, check, graph


def test_text_of_a_proof() -> None:
    assert str(explain(graph(PATHS, ROADS), "path(1, 3)")) == TREE


def test_text_of_every_instance() -> None:
    assert str(explain(graph(PATHS, ROADS), "path(2, 3)", every=True)) == WAYS


def test_an_explicit_fact_is_its_own_proof() -> None:
    kg = graph(PATHS, ROADS + "path(1, 2) .")
    for fact in ("edge(1, 2)", "path(1, 2)"):
        proof = explain(kg, fact)
        assert (proof.kind, proof.rule, proof.premises) == (Kind.EXPLICIT, None, ())
        assert str(proof) == f"{fact}  explicit"
    assert str(explain(kg, "edge(1, 2)", every=True)) == "edge(1, 2)  explicit"
    every = explain(kg, "path(1, 2)", every=True)
    assert str(every).startswith("path(1, 2)  explicit, and derived in 2 ways\n├─ by base\n")


def test_what_occurs_again_is_shown_once() -> None:
    kg = graph('#[name("r")] top(?x) :- low(?x), mid(?x) . #[name("m")] mid(?x) :- low(?x) . #[name("l")] low(?x) :- b(?x) .')
    kg.update(insert="b(1) .")
    shown = str(explain(kg, "top(1)")).splitlines()
    assert shown[1:] == ["├─ low(1)  by l", "│  └─ b(1)  explicit", "└─ mid(1)  by m", "   └─ low(1)  see above"]


def test_facts_that_support_each_other() -> None:
    """p and q hold each other up all the way; only one explicit fact, far off, holds both."""
    rules = "p(?x) :- q(?x) . q(?x) :- p(?x) . p(?y) :- p(?x), next(?x, ?y) . q(?x) :- next(?x, ?y), q(?y) ."
    kg = graph(rules, "p(0) ." + "".join(f"next({i}, {i + 1}) ." for i in range(20)))
    held = Held(kg)
    for fact in held.derived:
        check(held, explain(kg, fact))
    kg.update(delete="p(0) .")
    with pytest.raises(UserError, match="EG303"):
        explain(kg, "q(5)")


def test_a_chain_is_halved_and_not_walked() -> None:
    kg = graph("path(?x, ?y) :- edge(?x, ?y) . path(?x, ?z) :- path(?x, ?y), path(?y, ?z) .")
    kg.update(insert="".join(f"edge({i}, {i + 1}) . " for i in range(33)))
    held = Held(kg)
    for length in range(1, 34):
        assert check(held, explain(kg, f"path(0, {length})")) == (length - 1).bit_length() + 1


def test_a_cycle_is_left_where_an_explicit_fact_is() -> None:
    ring = "".join(f"edge({i}, {(i + 1) % 12}) . " for i in range(12))
    kg = graph("path(?x, ?y) :- edge(?x, ?y) . path(?x, ?z) :- path(?x, ?y), path(?y, ?z) .", ring)
    held = Held(kg)
    assert {check(held, explain(kg, fact)) for fact in held.derived} == {1, 2, 3, 4, 5}


def test_negated_atoms_are_shown_as_absent() -> None:
    kg = graph("odd(?x) :- node(?x), NOT even(?x) . even(?x) :- node(?x), two(?x) .", "node(1) . node(2) . two(2) .")
    proof = explain(kg, "odd(1)")
    assert list(map(print_atom, proof.absent)) == ["even(1)"]
    assert proof.rule == "odd(?x) :- node(?x), NOT even(?x)"
    with pytest.raises(UserError, match=r"EG303.*odd\(2\) does not hold.*could derive it does: odd\(\?x\) :- "):
        explain(kg, "odd(2)")


def test_instances_that_negation_rules_out_are_not_used() -> None:
    rules = "out(?x) :- edge(?x, ?y), NOT shut(?y) . shut(?y) :- gate(?y), NOT open(?y) ."
    kg = graph(rules, "edge(1, 2) . edge(1, 3) . edge(1, 4) . gate(2) . gate(4) . shut(4) . open(3) .")
    proof = explain(kg, "out(1)")
    assert list(map(print_atom, (*(p.fact for p in proof.premises), *proof.absent))) == ["edge(1, 3)", "shut(3)"]
    assert len(explain(kg, "out(1)", every=True).alternatives) == 1


def test_a_rule_without_positive_atoms() -> None:
    kg = graph('#[name("r")] open(1) :- NOT closed(1), 1 < 2 .')
    assert str(explain(kg, "open(1)")) == "open(1)  by r\n├─ 1 < 2  built-in\n└─ NOT closed(1)  absent"


def test_relations_of_any_width() -> None:
    kg = graph(
        '#[name("f")] flag() :- wide(?a, ?b, ?c, ?d, ?e) . #[name("w")] wide(?e, ?b, ?c, ?d, ?a) :- in(?a, ?b, ?c, ?d, ?e) .'
    )
    kg.update(insert="in(1, 2, 3, 4, 5) . in(5, 2, 3, 4, 1) .")
    held = Held(kg)
    assert [check(held, explain(kg, fact)) for fact in ("wide(5, 2, 3, 4, 1)", "flag()")] == [1, 2]
    assert len(explain(kg, "flag()", every=True).alternatives) == 2


def test_built_in_relations_are_premises() -> None:
    rules = """
    #[name("int")] int(?x) :- has(?x), DATATYPE(?x, xsd:integer) .
    #[name("same")] same(?x, ?y) :- has(?x), has(?y), SAMEVALUE(?x, ?y) .
    #[name("other")] other(?x, ?y) :- int(?x), int(?y), NOT SAMEVALUE(?x, ?y), ?x != ?y .
    #[name("known")] known(?d) :- SUPPORTED(?d), uses(?d) .
    #[name("bad")] bad(?x) :- has(?x), SUPPORTED(?d), ILLTYPED(?x, ?d), ?d = xsd:boolean .
    """
    kg = graph(rules, "has(1) . has(01) . has(2) . uses(xsd:byte) .")
    held = Held(kg)
    for fact in held.derived:
        check(held, explain(kg, fact))
    shown = "same(1, 01)  by same\n├─ has(1)  explicit\n├─ has(01)  explicit\n└─ SAMEVALUE(1, 01)  built-in"
    assert str(explain(kg, "same(1, 01)")) == shown
    assert str(explain(kg, "other(1, 2)")).endswith("├─ 1 != 2  built-in\n└─ NOT SAMEVALUE(1, 2)  absent")
    assert "ILLTYPED(1, xsd:boolean)  built-in" in str(explain(kg, "bad(1)"))
    byte = Atom("SUPPORTED", (f"<{XSD}byte>",))
    assert str(explain(kg, byte)) == str(explain(kg, byte, every=True)) == "SUPPORTED(xsd:byte)  built-in"


def test_built_in_relations_are_made_when_a_rule_reads_them() -> None:
    def forbidden(start: int) -> Any:
        raise AssertionError("not asked for")

    kg = graph("[?y, <http://ex/back>, ?x] :- [?x, ?p, ?y] . int(?x) :- DATATYPE(?x, xsd:int) .", f"<{EX}a> <{EX}p> <{EX}b> .")
    kg._builtins["DATATYPE"] = forbidden
    assert explain(kg, (f"<{EX}b>", f"<{EX}back>", f"<{EX}a>")).kind == Kind.DERIVED


def test_variable_predicates() -> None:
    rules = '#[name("sub")] [?x, ?q, ?y] :- [?p, rdfs:subPropertyOf, ?q], [?x, ?p, ?y] .'
    kg = graph(f"@prefix ex: <{EX}> . {rules}")
    kg.update(insert=f"<{EX}p> <http://www.w3.org/2000/01/rdf-schema#subPropertyOf> <{EX}q> .\n<{EX}a> <{EX}p> <{EX}b> .")
    shown = "ex:q[ex:a, ex:b]  by sub\n├─ rdfs:subPropertyOf[ex:p, ex:q]  explicit\n└─ ex:p[ex:a, ex:b]  explicit"
    assert str(explain(kg, (f"<{EX}a>", f"<{EX}q>", f"<{EX}b>"))) == shown


def test_rules_of_one_shape_keep_their_names() -> None:
    """Ten class axioms are one rule to the engine, with their constants in a relation of its own."""
    axioms = "".join(f'#[name("axiom {i}")] [?x, a, <{EX}C{i + 1}>] :- [?x, a, <{EX}C{i}>] . ' for i in range(10))
    kg = graph(axioms, f"<{EX}a> {TYPE} <{EX}C0> .")
    held = Held(kg)
    proof = explain(kg, (f"<{EX}a>", TYPE, f"<{EX}C10>"))
    assert check(held, proof) == 10
    assert [p.rule for p in proof.walk()] == [None, *(f"axiom {i}" for i in range(10))]


def test_each_way_of_naming_a_fact() -> None:
    kg = graph(f'@prefix ex: <{EX}> . #[name("r")] [?x, a, ex:C] :- [?x, a, ex:B] .', f"<{EX}a> {TYPE} <{EX}B> .")
    names = [f"{EX}a", TYPE[1:-1], f"{EX}C"]
    given_as: list[Any] = [
        tuple(f"<{n}>" for n in names),
        [rdflib.URIRef(n) for n in names],
        [ox.NamedNode(n) for n in names],
        ox.Triple(*(ox.NamedNode(n) for n in names)),
        Atom(TRIPLE, tuple(f"<{n}>" for n in names)),
        "ex:C[ex:a]",
        "[ex:a, a, ex:C] .",
        " ".join(f"<{n}>" for n in names) + " .",
    ]
    for fact in given_as:
        assert str(explain(kg, fact)) == "ex:C[ex:a]  by r\n└─ ex:B[ex:a]  explicit", fact


def test_blank_nodes_by_the_names_the_graph_gives_them(tmp_path: Path) -> None:
    (tmp_path / "blank.nt").write_text(f"_:b {TYPE} <{EX}B> .\n")
    kg = graph(f'#[name("r")] [?x, a, <{EX}C>] :- [?x, a, <{EX}B>] .')
    kg.update(insert=tmp_path / "blank.nt")
    (triple,) = kg.derived
    assert explain(kg, triple).rule == "r"
    assert explain(kg, print_atom(Atom(TRIPLE, tuple(t.n3() for t in triple)))).rule == "r"


MISTAKES: dict[str, tuple[Any, str]] = {
    "a fact that does not hold": ("path(4, 1)", r"EG303: path\(4, 1\) does not hold .hint: .* base, step\)"),
    "a term that nothing mentions": ("path(1, 77)", "EG303.*no fact or rule mentions 77"),
    "a fact no rule derives": ("edge(4, 1)", "EG303.*no rule derives facts like it"),
    "a triple": ((f"<{EX}a>", TYPE, f"<{EX}b>"), "EG303"),
    "an unknown relation": ("road(1, 2)", "EG301.*'road'.*closed, edge, path"),
    "the wrong number of arguments": ("path(1)", "EG004"),
    "a built-in that is not used": (Atom("SUPPORTED", (f"<{XSD}byte>",)), "EG303"),
    "a variable": ("path(1, ?x)", "EG003"),
    "an atom with a variable": (Atom("path", (Variable("x"), Variable("x"))), "EG105.*variables"),
    "bad syntax": ("path(1", r"EG001: not a fact: path\(1: "),
    "a rule": ("path(1, 2) :- edge(1, 2)", "EG105"),
    "two facts": ("edge(1, 2) . edge(2, 3)", "EG105"),
    "an unknown prefix": ("path(1, no:x)", "EG002"),
    "a bad line": (f"<{EX}a> <{EX}b> c .", "EG103"),
    "two terms": ((f"<{EX}a>", f"<{EX}b>"), "EG105"),
    "a number": (7, "EG105"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes(mistake: str) -> None:
    fact, wanted = MISTAKES[mistake]
    for every in (False, True):
        with pytest.raises(UserError, match=wanted):
            explain(graph(PATHS, ROADS), fact, every)


def test_a_fact_without_a_proof_is_damage() -> None:
    kg = graph("p(?x) :- q(?x) . q(?x) :- p(?x) .", "p(1) . r(2) .")
    shard = getattr(kg._engine, "now", kg._engine).shard
    row = [shard.arrays.xp.asarray(kg._dictionary.encode([f'"2"^^<{XSD}integer>']))]
    for name in "pq":
        shard.relations[name] = Relation(run_of(shard.arrays, row, 1))
    kg._publish()
    with pytest.raises(UserError, match="EG409"):
        explain(kg, "p(2)")
