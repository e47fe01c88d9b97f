"""Split predicates (Volz et al. 2003, §4.3): as printed, equivalent, and a changed rule concerns what depends on it."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from conftest import assert_same, everything
from evergraph import KnowledgeGraph, Program
from evergraph.maintain.change_program import RuleChange
from evergraph.rules.model import TRIPLE, TYPE, Atom
from evergraph.rules.printer import print_atom
from evergraph.rules.sources import SETS
from evergraph.rules.split import Split, split
from strategies import EX, dense_changes, layered_programs, ontology_updates, programs
from test_declarative_rules import TRIPLES, assert_changes, divided, table_1


def parse(text: str) -> Program:
    return Program.parse(f"@prefix ex: <{EX}> . {text}")


def atoms_of(kg: KnowledgeGraph) -> list[Atom]:
    out = []
    for name in kg.counts():
        columns = [kg._dictionary.decode(column).to_pylist() for column in kg._engine.rows(name, "all") or []]
        out += [Atom(name, tuple(row)) for row in zip(*columns, strict=True)] if columns else [Atom(name, ())]
    return out


def materialised(program: Program, facts: Iterable[Atom]) -> KnowledgeGraph:
    kg = KnowledgeGraph(program, equality="off")
    kg.update(insert=list(facts))
    return kg


def joined(found: Split, facts: Iterable[Atom]) -> set[str]:
    """What the program over split relations derives, as facts of the relations that were split."""
    kg = materialised(found.program, found.distribute(facts))
    return {print_atom(atom) for atom in found.joined(atoms_of(kg))}


# -- as printed --------------------------------------------------------------------------------------------------------


def test_volz_section_4_3() -> None:
    """The example: the second rule of Table 1 over triples. That t is complete, something has to ask for."""
    found = split(parse(f"{TRIPLES[1]} all(?x, ?y, ?z) :- [?x, ?y, ?z] ."))
    assert str(found.program).splitlines() == [
        f"@prefix ex: <{EX}> .",
        "t_Rest(?x, ?y, ?z) :- t_Ext_Rest(?x, ?y, ?z) .",
        "t_inDynasty_2(?x, ?y, ?z) :- t_Ext_inDynasty_2(?x, ?y, ?z) .",
        "t(?x, ?y, ?z) :- t_Rest(?x, ?y, ?z) .",
        "t(?x, ?y, ?z) :- t_inDynasty_2(?x, ?y, ?z) .",
        "t_inDynasty_2(?x, ex:inDynasty, ?y) :- t_inDynasty_2(?x, ex:inDynasty, ?z), t_inDynasty_2(?z, ex:inDynasty, ?y) .",
        "all(?x, ?y, ?z) :- t(?x, ?y, ?z) .",
    ]
    assert found.explicit == ["t_Ext_Rest", "t_Ext_inDynasty_2"]
    assert found.points == {"t_inDynasty_2": (f"<{EX}inDynasty>",)}


def rules_about(name: str, program: Program) -> list[str]:
    return [line for line in str(program).splitlines() if line.startswith(f"{name}(")]


def test_classes_are_the_finer_split_points() -> None:
    found = split(parse("ex:B[?x] :- ex:A[?x] . typed(?x) :- [?x, a, ?c] ."))
    assert found.program.relations.keys() == {
        "t_Rest", "t_Ext_Rest", "t_type_2", "t_type_2_Rest", "t_Ext_type_2_Rest", "typed",
        "t_type_2_A_3", "t_Ext_type_2_A_3", "t_type_2_B_3", "t_Ext_type_2_B_3",
    }  # fmt: skip
    assert rules_about("t_type_2", found.program) == [
        f"t_type_2(?x, ?y, ?z) :- t_type_2_{part}(?x, ?y, ?z) ." for part in ("Rest", "A_3", "B_3")
    ]
    assert rules_about("t_type_2_B_3", found.program)[-1] == (
        "t_type_2_B_3(?x, rdf:type, ex:B) :- t_type_2_A_3(?x, rdf:type, ex:A) ."
    )


def test_a_variable_in_a_head_writes_to_the_rest_and_parts_select() -> None:
    found = split(parse("[?x, ?q, ?y] :- rdfs:subPropertyOf[?p, ?q], [?x, ?p, ?y] . ex:A[?x] :- ex:p[?x, ?y] ."))
    assert rules_about("t_Rest", found.program)[-1] == (
        "t_Rest(?x, ?q, ?y) :- t_subPropertyOf_2(?p, rdfs:subPropertyOf, ?q), t(?x, ?p, ?y) ."
    )
    assert rules_about("t_p_2", found.program)[-1] == "t_p_2(?x, ex:p, ?z) :- t_Rest(?x, ex:p, ?z) ."
    assert "t_type_2_Rest(?x, rdf:type, ?z) :- t_Rest(?x, rdf:type, ?z) ." in str(found.program)
    assert "t_type_2_A_3(?x, rdf:type, ex:A) :- t_type_2_Rest(?x, rdf:type, ex:A) ." in str(found.program)
    assert "t_Rest(?x, rdf:type" not in str(split(parse("ex:A[?x] :- [?x, ?p, ?y] .")).program)


def test_a_named_relation_is_split_at_one_argument() -> None:
    found = split(parse("p(?x, 2) :- p(1, ?x), p(?y, 2), p(?z, 3) . q(?x) :- p(?x, ?y) ."))
    assert found.points == {
        name: (f'"{n}"^^<http://www.w3.org/2001/XMLSchema#integer>',) for name, n in [("p_2_2", 2), ("p_3_2", 3)]
    }
    assert rules_about("p_2_2", found.program)[-1] == "p_2_2(?x, 2) :- p(1, ?x), p_2_2(?y, 2), p_3_2(?z, 3) ."
    assert [atom.relation for atom in found.distribute(parse("p(1, 2) . p(1, 5) . q(2) .").facts)] == [
        "p_Ext_2_2",
        "p_Ext_Rest",
        "q",
    ]


def test_without_constants_nothing_is_split() -> None:
    program = parse("[?x, ?p, ?z] :- [?x, ?p, ?y], [?y, ?p, ?z], edge(?x, ?y) . edge(1, 2) .")
    assert split(program).program == program
    assert split(program).points == {}


def test_facts_among_the_rules_are_distributed() -> None:
    found = split(parse("ex:B[?x] :- ex:A[?x] . ex:A[1] . ex:C[2] . ex:p[3, 4] . node(5) ."))
    assert [fact.relation for fact in found.program.facts] == ["t_Ext_type_2_A_3", "t_Ext_type_2_Rest", "t_Ext_Rest", "node"]


def test_no_two_relations_have_one_name() -> None:
    triples = "<http://a/p>[?x, ?y], <http://b/p>[?x, ?y], <http://c/p2>[?x, ?y]"
    program = parse(f"t(?x) :- {triples}, t_Rest(?x) . q(1, ?x) :- t(?x), q_Rest(?x) .")
    found = split(program)
    names = [name for root in found.parts.values() for part in root.all() for name in {part.whole, part.own, part.explicit}]
    assert len(names) == len({*names})
    assert {*names} & program.relations.keys() == {"q"}
    assert found.points.keys() == {"t___p__2", "t___p2__2", "t___p22__2", "q__1__1"}
    assert Program.parse(str(found.program)) == found.program


# -- laws --------------------------------------------------------------------------------------------------------------

ONCE = settings(max_examples=150, phases=[Phase.generate], suppress_health_check=[HealthCheck.too_slow])


@given(programs | layered_programs, st.integers(0, 2**32))
@ONCE
def test_split_programs_are_equivalent_and_parse_back(program: Program, seed: int) -> None:
    found = split(program)
    assert Program.parse(str(found.program)) == found.program
    for facts, _ in dense_changes(program, Random(seed)):
        assert_same(joined(found, facts), everything(materialised(program, facts)), f"{program}\n{found.program}\n{facts}")


GENERIC = parse("""
    [?x, ?q, ?y] :- ex:sub[?p, ?q], [?x, ?p, ?y] .
    [?x, a, ?c] :- ex:domain[?p, ?c], [?x, ?p, ?y] .
    [?x, a, ?d] :- [?x, a, ?c], ex:sub[?c, ?d] .
    [?y, ?p, ?x] :- [?x, ?p, ?y], ex:Symmetric[?p] .
    ex:q[?x, ?z] :- ex:p[?x, ?y], ex:p[?y, ?z] .
    ex:sub[?x, ?y] :- ex:q[?x, ?y], ex:C[?y] .
    ex:D[?x] :- ex:C[?x] .
    seen(?x, ex:a) :- ex:D[?x] .
    seen(?x, ?y) :- seen(?y, ex:a), node(?x) .
    alone(?x) :- node(?x), NOT ex:D[?x], NOT seen(?x, ex:a), NOT [?x, ?x, ?x] .
""").rules
"""Rules with variables where relations are split, in heads, bodies and negations, beside rules with constants there."""


@given(st.sets(st.sampled_from(range(len(GENERIC))), min_size=3), st.integers(0, 2**32))
@ONCE
def test_facts_that_generic_rules_derive_reach_the_parts_they_belong_to(chosen: set[int], seed: int) -> None:
    rng, program = Random(seed), Program(tuple(GENERIC[number] for number in sorted(chosen)))
    names = [*(f"<{EX}{name}>" for name in ("a", "p", "q", "C", "D")), TYPE]
    predicates = [f"<{EX}{name}>" for name in ("sub", "domain", "p")] + [TYPE]
    facts = [Atom(TRIPLE, (rng.choice(names), rng.choice(predicates), rng.choice(names))) for _ in range(16)]
    facts += [Atom(TRIPLE, (rng.choice(names), TYPE, f"<{EX}Symmetric>")), Atom("node", (names[0],)), Atom("node", (names[3],))]
    found = split(program)
    assert_same(joined(found, facts), everything(materialised(program, facts)), f"{program}\n{found.program}\n{facts}")


@pytest.mark.parametrize("rules", SETS)
def test_split_rule_sets_are_equivalent(rules: str) -> None:
    program = Program.load(rules)
    found = split(program)
    assert Program.parse(str(found.program)) == found.program

    @given(ontology_updates)
    @settings(ONCE, max_examples=5)
    def law(steps: list[list[Atom]]) -> None:
        facts = [fact for step in steps for fact in step]
        assert_same(joined(found, facts), everything(materialised(program, facts)))

    law()


@given(programs | layered_programs, st.integers(0, 2**32))
@settings(ONCE, max_examples=60)
def test_a_change_of_rules_over_split_relations(program: Program, seed: int) -> None:
    """Both programs have the split points of both, so facts stay where they are."""
    rng = Random(seed)
    before, after = divided(program, rng)
    old, new = split(before, after), split(after, before)
    assert old.points == new.points
    insert, _ = next(dense_changes(program, rng))
    facts = old.distribute(insert)
    assert_changes(old.program, new.program, facts[::2], facts[1::2], facts[:2])


# -- a changed rule ----------------------------------------------------------------------------------------------------

OTHERS = """
    ex:Relative[?x] :- ex:inDynasty[?x, ?y] .
    ex:near[?x, ?y] :- ex:livesWith[?x, ?y] .  ex:near[?x, ?z] :- ex:near[?x, ?y], ex:near[?y, ?z] .
    ex:Neighbour[?x] :- ex:near[?x, ?y] .
"""
FACTS = """
    ex:hasChild[ex:a, ex:b] . ex:hasChild[ex:b, ex:c] . ex:hasChild[ex:d, ex:c] .
    ex:livesWith[ex:a, ex:b] . ex:livesWith[ex:b, ex:d] . ex:likes[ex:a, ex:d] .
"""


def test_volz_section_4_3_symmetry_is_inserted() -> None:
    """Table 1, rule 3, with rules and facts about other things: only what depends on inDynasty is derived anew or changes."""
    others = parse(OTHERS).rules
    two, three = (Program((*table_1(chosen, TRIPLES).rules, *others)) for chosen in ({0, 1}, {0, 1, 2}))
    before, after = split(two, three), split(three, two)
    change = RuleChange(before.program, after.program, asserted=())
    assert change.anew == {"t_inDynasty_2"}
    counts = evaluated(change, before, parse(FACTS).facts)
    ends = ("_Temp", "_Del", "_Red", "_Ins", "_Plus", "_Minus")
    assert {name: n for name, n in counts.items() if name.endswith(ends)} == {
        "t_inDynasty_2_Temp": 16, "t_inDynasty_2_Ins": 12, "t_inDynasty_2_Plus": 12,
        "t_type_2_Relative_3_Ins": 4, "t_type_2_Relative_3_Plus": 1,
    }  # fmt: skip
    assert counts["t_near_2_New"] == 3


def evaluated(change: RuleChange, before: Split, facts: Iterable[Atom]) -> dict[str, int]:
    """The numbers of facts of the relations of a change program, given what was materialised and no change of facts."""
    old = atoms_of(materialised(before.program, before.distribute(facts)))
    states = {name: change.states.last(name) for name in change.states.arities}
    given = [Atom(states[fact.relation].new, fact.terms) for fact in old if states[fact.relation].given]
    return dict(materialised(change.program(), [*old, *given]).counts())
