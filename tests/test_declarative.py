"""Maintenance programs: the papers' examples as printed, and what they maintain equals recomputation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from conftest import assert_same, everything
from evergraph import KnowledgeGraph, Program
from evergraph.engines.base import Engine, Facts, Which
from evergraph.engines.gpu.engine import GpuEngine
from evergraph.engines.memory import MemoryEngine
from evergraph.engines.reference import ReferenceEngine
from evergraph.formats import Progress
from evergraph.maintain.choose import Experience, maintain
from evergraph.maintain.declarative import Maintenance, declarative
from evergraph.maintain.maintenance_program import rewrite
from evergraph.maintain.outcome import Outcome
from evergraph.plan.compile import Plan
from evergraph.rules.model import RDFS, TRIPLE, XSD, Atom, BodyItem, Rule
from evergraph.rules.sources import SETS
from strategies import EX, dense_changes, layered_programs, ontology_updates, programs


@contextmanager
def maintained(program: Program, engine: type[Engine] = MemoryEngine) -> Iterator[KnowledgeGraph]:
    """A graph whose updates are made by a maintenance program, which this engine runs, unless they name an algorithm."""

    def update(
        target: Engine,
        plan: Plan,
        insert: Facts,
        delete: Facts,
        algorithm: str,
        maintenance: Callable[[], Maintenance],
        experience: Experience,
        progress: Progress | None = None,
    ) -> Outcome:
        if algorithm != "auto" or not isinstance(target, MemoryEngine | GpuEngine):
            return maintain(target, plan, insert, delete, algorithm, maintenance, experience, progress)
        return declarative(target, plan, maintenance(), insert, delete, "asked for", progress, engine)

    with patch("evergraph.changing.maintain", update):
        yield KnowledgeGraph(program, equality="off")


def rules_of(program: Program) -> set[tuple[Atom, tuple[BodyItem, ...]]]:
    return {(rule.head, rule.body) for rule in program.rules}


# -- the papers' examples ----------------------------------------------------------------------------------------------

VOLZ = Program.parse("""
    #[name("R2")]
    [?a, rdfs:subClassOf, ?c] :- [?b, rdfs:subClassOf, ?c], [?a, rdfs:subClassOf, ?b] .
""")
FIGURE_2 = ["ab", "bc", "cg", "dc", "eb", "ed", "fe"]
"""Explicit edges, each below the next. The figure is not in the text; these give the sets in the text."""


def edges(pairs: str | list[str]) -> list[Atom]:
    pairs = pairs.split() if isinstance(pairs, str) else pairs
    return [Atom(TRIPLE, (f"<{EX}{a}>", f"<{RDFS}subClassOf>", f"<{EX}{b}>")) for a, b in pairs]


def closed(pairs: list[str]) -> list[str]:
    found = {*pairs}
    while more := {a + d for a, b in found for c, d in found if b == c} - found:
        found |= more
    return sorted(found)


def pairs_of(kg: KnowledgeGraph, relation: str) -> set[str]:
    return {str(s)[-1] + str(o)[-1] for s, _, o in kg.relation(relation)}


def test_volz_section_3_2() -> None:
    """The rules of the example as printed; R1 is the link to t_ext."""
    want = Program.parse("""
        t_Del(?x, ?y, ?z) :- t_ext_Del(?x, ?y, ?z) .
        t_Del(?a, rdfs:subClassOf, ?c) :- t_Del(?b, rdfs:subClassOf, ?c), t(?a, rdfs:subClassOf, ?b) .
        t_Del(?a, rdfs:subClassOf, ?c) :- t(?b, rdfs:subClassOf, ?c), t_Del(?a, rdfs:subClassOf, ?b) .
        t_Red(?x, ?y, ?z) :- t_Del(?x, ?y, ?z), t_ext_New(?x, ?y, ?z) .
        t_Red(?a, rdfs:subClassOf, ?c) :-
            t_Del(?a, rdfs:subClassOf, ?c), t_New(?b, rdfs:subClassOf, ?c), t_New(?a, rdfs:subClassOf, ?b) .
        t_Ins(?x, ?y, ?z) :- t_ext_Ins(?x, ?y, ?z) .
        t_Ins(?a, rdfs:subClassOf, ?c) :- t_Ins(?b, rdfs:subClassOf, ?c), t_New(?a, rdfs:subClassOf, ?b) .
        t_Ins(?a, rdfs:subClassOf, ?c) :- t_New(?b, rdfs:subClassOf, ?c), t_Ins(?a, rdfs:subClassOf, ?b) .
        t_New(?x, ?y, ?z) :- t(?x, ?y, ?z), NOT t_Del(?x, ?y, ?z) .
        t_New(?x, ?y, ?z) :- t_Red(?x, ?y, ?z) .
        t_New(?x, ?y, ?z) :- t_Ins(?x, ?y, ?z) .
        t_Plus(?x, ?y, ?z) :- t_Ins(?x, ?y, ?z), NOT t(?x, ?y, ?z) .
        t_Minus(?x, ?y, ?z) :- t_Del(?x, ?y, ?z), NOT t_Ins(?x, ?y, ?z), NOT t_Red(?x, ?y, ?z) .
    """)
    got = rewrite(VOLZ)
    assert rules_of(got) == rules_of(want)
    assert len(got.rules) == len(want.rules)
    names = "t ext D1|R2 D1|R2 D2|t ext R|R2 R|t ext I1|R2 I1|R2 I2|t N1|t N2|t N3|t P|t M"
    assert [rule.name for rule in got.rules] == names.split("|")


@pytest.mark.parametrize("engine", ["memory", "reference"])
def test_volz_figure_2(engine: str) -> None:
    """Every extension that §3.2 prints, from the maintenance program as an ordinary program."""
    kg = KnowledgeGraph(rewrite(VOLZ), engine=engine)
    given = {"t": closed(FIGURE_2), "t_ext_Del": ["bc"], "t_ext_Ins": ["hd"], "t_ext_New": [*FIGURE_2, "hd"]}
    given["t_ext_New"].remove("bc")
    kg.update(insert=[Atom(name, edge.terms) for name, pairs in given.items() for edge in edges(pairs)])
    assert pairs_of(kg, "t_Del") == {"bc", "bg", "ac", "ag", "ec", "eg", "fc", "fg"}
    assert pairs_of(kg, "t_Red") == {"ec", "eg", "fc", "fg"}
    assert pairs_of(kg, "t_Ins") == {"hd", "hc", "hg"}
    assert pairs_of(kg, "t_Plus") == {"hd", "hc", "hg"}
    assert pairs_of(kg, "t_Minus") == {"ac", "ag", "bc", "bg"}
    assert pairs_of(kg, "t_New") == {*closed(given["t_ext_New"])}


def test_volz_figure_2_as_an_update() -> None:
    with maintained(VOLZ) as kg:
        kg.update(insert=edges(FIGURE_2))
        report = kg.update(insert=edges("hd"), delete=edges("bc"))
        assert report.algorithm == "declarative"
        assert (report.inserted.explicit, report.inserted.derived) == ({"[]": 1}, {"[]": 2})
        assert (report.deleted.explicit, report.deleted.derived) == ({"[]": 1}, {"[]": 3})
        assert kg.verify() == len(closed(["ab", "cg", "dc", "eb", "ed", "fe", "hd"]))


def test_volz_section_3_3() -> None:
    """The paper counts 15 rules with 21 body atoms and 62 rules in all; its figure has 13, with the link 14, so 61."""
    program = Program.load("rdfs")
    rules, atoms = len(program.rules) + 1, sum(len(rule.atoms) for rule in program.rules) + 1
    names = [rule.name.split()[-1] for rule in rewrite(program).rules]
    assert (rules, atoms) == (14, 21)
    assert sum(name.startswith("D") for name in names) == sum(name.startswith("I") for name in names) == 21
    assert names.count("R") == rules
    assert len(names) == 2 * atoms + rules + 5 == 61


def test_barbieri_table_3() -> None:
    """All ten rules, in our spelling of P⁺ and P⁻; the first of the two for isIn^Del is misprinted with two deltas."""
    want = Program.parse("""
        isIn_New(?x, ?y) :- isIn(?x, ?y), NOT isIn_Del(?x, ?y) .
        isIn_New(?x, ?y) :- isIn_Red(?x, ?y) .
        isIn_New(?x, ?y) :- isIn_Ins(?x, ?y) .
        isIn_Plus(?x, ?y) :- isIn_Ins(?x, ?y), NOT isIn(?x, ?y) .
        isIn_Minus(?x, ?y) :- isIn_Del(?x, ?y), NOT isIn_Ins(?x, ?y), NOT isIn_Red(?x, ?y) .
        isIn_Red(?x, ?z) :- isIn_Del(?x, ?z), isIn_New(?x, ?y), isIn_New(?y, ?z) .
        isIn_Del(?x, ?z) :- isIn_Del(?x, ?y), isIn(?y, ?z) .
        isIn_Del(?x, ?z) :- isIn(?x, ?y), isIn_Del(?y, ?z) .
        isIn_Ins(?x, ?z) :- isIn_Ins(?x, ?y), isIn_New(?y, ?z) .
        isIn_Ins(?x, ?z) :- isIn_New(?x, ?y), isIn_Ins(?y, ?z) .
    """)
    got = rewrite(Program.parse("isIn(?x, ?z) :- isIn(?x, ?y), isIn(?y, ?z) ."), asserted=())
    assert rules_of(got) == rules_of(want)
    assert len(got.rules) == len(want.rules)


# -- rewriting ---------------------------------------------------------------------------------------------------------


def test_names_avoid_those_of_the_program() -> None:
    program = Program.parse(
        "t(?x) :- p_Del(?x) . p_Del(?x) :- p(?x), NOT t__ext(?x) . p(?x) :- edge(?x) . [?x, ?x, ?x] :- t(?x) ."
    )
    names = rewrite(program).relations
    assert {"p", "p_Del", "t", "t__ext"} <= names.keys()
    assert {"p___Del", "p_Del___Del", "t___Del", "t_____Del"} <= names.keys()
    assert Program.parse(str(rewrite(program))) == rewrite(program)


def test_a_program_without_triples_may_call_a_relation_t() -> None:
    names = rewrite(Program.parse("t(?x) :- u(?x) .")).relations
    ends = ["Del", "Red", "Ins", "New", "Plus", "Minus", "ext_Del", "ext_Ins", "ext_New"]
    assert {*names} == {"t", *(f"t_{end}" for end in ends), "u_Del", "u_Ins", "u_New"}


def test_negation_reads_net_changes() -> None:
    got = rewrite(Program.parse('#[name("a")] p(?x) :- n(?x), NOT q(?x), ?x != 1 . q(?x) :- m(?x) .'))
    rules = {rule.name: str(Program((Rule(rule.head, rule.body),))).strip() for rule in got.rules}
    assert rules["a D1"] == "p_Del(?x) :- n_Del(?x), NOT q(?x), ?x != 1 ."
    assert rules["a D2"] == "p_Del(?x) :- n(?x), q_Plus(?x), ?x != 1 ."
    assert rules["a R"] == "p_Red(?x) :- p_Del(?x), n_New(?x), NOT q_New(?x), ?x != 1 ."
    assert rules["a I1"] == "p_Ins(?x) :- n_Ins(?x), NOT q_New(?x), ?x != 1 ."
    assert rules["a I2"] == "p_Ins(?x) :- n_New(?x), q_Minus(?x), ?x != 1 ."


def test_built_ins_only_grow() -> None:
    rules = rewrite(Program.parse("p(?x) :- n(?x), DATATYPE(?x, ?d), NOT SAMEVALUE(?x, ?x), ILLTYPED(?x, ?d) .")).rules
    read = {atom.relation for rule in rules for atom in (*rule.atoms, *rule.negations)}
    assert {name for name in read if name[0].isupper()} == {
        "DATATYPE", "DATATYPE_Ins", "DATATYPE_New", "SAMEVALUE", "SAMEVALUE_Ins", "SAMEVALUE_New",
    }  # fmt: skip


@pytest.mark.parametrize("rules", SETS)
def test_rewritten_rule_sets_parse_back(rules: str) -> None:
    rewritten = rewrite(Program.load(rules))
    assert Program.parse(str(rewritten)) == rewritten


# -- programs ---------------------------------------------------------------------------------------------------------

ONCE = settings(max_examples=150, phases=[Phase.generate], suppress_health_check=[HealthCheck.too_slow])


@given(programs | layered_programs)
@ONCE
def test_rewritten_programs_parse_back(program: Program) -> None:
    """Which they only do if they are safe and stratified."""
    assert Program.parse(str(rewrite(program))) == rewrite(program)


# -- maintenance -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", [programs, layered_programs], ids=["programs", "layered"])
@pytest.mark.parametrize("engine", [MemoryEngine, ReferenceEngine])
def test_maintenance_equals_recomputation(strategy: st.SearchStrategy[Program], engine: type[Engine]) -> None:
    @given(strategy, st.integers(0, 2**32))
    @settings(ONCE, max_examples=150 if engine is MemoryEngine else 25)
    def law(program: Program, seed: int) -> None:
        slow = KnowledgeGraph(program, engine="reference")
        with maintained(program, engine) as fast:
            for insert, delete in dense_changes(program, Random(seed)):
                got = fast.update(insert=insert, delete=delete)
                want = slow.update(insert=insert, delete=delete, algorithm="recompute")
                said = f"{program}\nseed {seed}, inserting {insert}, deleting {delete}"
                assert_same(everything(fast), everything(slow), said)
                assert_same(everything(fast, Which.EXPLICIT), everything(slow, Which.EXPLICIT), said)
                assert (got.inserted, got.deleted, got.missed) == (want.inserted, want.deleted, want.missed)

    law()


@pytest.mark.parametrize(("rules", "examples"), [("rhodf", 20), ("rdfs", 10), ("owl2rl-full", 3)])
def test_rule_sets_equal_recomputation_between_other_algorithms(rules: str, examples: int) -> None:
    program = Program.load(rules)

    @given(ontology_updates, st.integers(0, 2**32))
    @settings(ONCE, max_examples=examples)
    def law(steps: list[list[Atom]], seed: int) -> None:
        rng, there = Random(seed), set[Atom]()
        with maintained(program) as kg:
            for number, insert in enumerate([*steps, []]):
                delete = [fact for fact in sorted(there, key=str) if rng.random() < 0.4 and fact not in insert]
                there = (there - {*delete}) | {*insert}
                kg.update(insert=insert, delete=delete, algorithm="auto" if number % 2 else "dred")
                kg.verify()

    law()


def test_a_fact_that_still_follows_is_derived_and_an_explicit_one_stays() -> None:
    with maintained(
        Program.parse("p(?x, ?z) :- p(?x, ?y), p(?y, ?z) . p(1, 2) . p(2, 3) . p(1, 3) . p(3, 4) . p(2, 4) .")
    ) as kg:
        report = kg.update(delete="p(1, 3) . p(3, 4) . p(5, 6) . p(1, 4) .")
        assert everything(kg) == {"p(1, 2)", "p(2, 3)", "p(1, 3)", "p(2, 4)", "p(1, 4)"}
        assert everything(kg, Which.DERIVED) == {"p(1, 3)", "p(1, 4)"}
        assert (report.missed.absent, report.missed.derived) == (1, 1)


def test_a_triple_comes_back_by_a_rule_of_a_lower_stratum() -> None:
    """The class of ex:a is lost to the negation above and kept by what it was made as below."""
    program = Program.parse("""@prefix ex: <http://example.org/> .
        [?x, a, ?c] :- ex:made[?x, ?c] .
        ex:C[?x] :- ex:n[?x, ?x], NOT ex:D[?x] .
        ex:made[ex:a, ex:C] .  ex:n[ex:a, ex:a] .  ex:n[ex:b, ex:b] .
    """)
    with maintained(program) as kg:
        for name in "ab":
            kg.update(insert=f"@prefix ex: <http://example.org/> . ex:made[ex:{name}, ex:D] .")
        assert f"<{EX}C>[<{EX}a>]" in everything(kg)
        assert f"<{EX}C>[<{EX}b>]" not in everything(kg)
        kg.verify()


def test_rules_without_positive_atoms() -> None:
    with maintained(Program.parse("flag() :- NOT odd(1) . odd(?x) :- node(?x) . p(1) :- 1 < 2 .")) as kg:
        assert everything(kg) == {"flag()", "p(1)"}
        kg.update(insert="node(1) .")
        assert everything(kg) == {"node(1)", "odd(1)", "p(1)"}
        kg.update(delete="node(1) .", insert="p(1) .")
        kg.update(delete="p(1) .")
        assert everything(kg) == {"flag()", "p(1)"}


def test_relations_that_no_rule_derives_or_knows() -> None:
    with maintained(Program.parse("far(?x) :- edge(?x, ?y), NOT near(?y) .")) as kg:
        kg.update(insert="edge(1, 2) . edge(3, 2) . near(4) . other(5) . other(6) .")
        kg.update(insert="near(2) . new(7) .", delete="near(4) . other(5) . edge(3, 2) .")
        assert everything(kg) == {"edge(1, 2)", "near(2)", "other(6)", "new(7)"}
        kg.update(delete="near(2) . new(7) .")
        assert everything(kg) == {"edge(1, 2)", "other(6)", "far(1)"}


def test_literals_that_arrive_with_an_update() -> None:
    with maintained(Program.load("owl2rl-full")) as kg:
        first = f'<{EX}a> <{EX}p> "1"^^<{XSD}integer> .'
        kg.update(insert=first)
        kg.update(insert=f'<{EX}b> <{EX}p> "01"^^<{XSD}integer> .\n<{EX}c> <{EX}p> "2"^^<{XSD}byte> .')
        kg.verify()
        kg.update(delete=first, insert=f'<{EX}a> <{EX}p> "02"^^<{XSD}integer> .')
        kg.verify()


def test_helper_relations_follow() -> None:
    """Other algorithms read guards and schedules that `replace` has to keep: a definition comes, goes and comes again."""
    prefix = "@prefix ex: <http://example.org/> ."
    program = Program.parse(f"""{prefix}
        [?x, a, ?c] :- [?c, owl:someValuesFrom, ?d], [?c, owl:onProperty, ?p], [?x, ?p, ?y], [?y, a, ?d] .
        [?x, ?q, ?y] :- [?p, rdfs:subPropertyOf, ?q], [?x, ?p, ?y] .
    """)
    schema = f"{prefix} owl:someValuesFrom[ex:C, ex:D] . owl:onProperty[ex:C, ex:q] . rdfs:subPropertyOf[ex:p, ex:q] ."
    with maintained(program) as kg:
        kg.update(insert=f"{prefix} ex:D[ex:d] . ex:p[ex:a0, ex:d] .")
        for number in range(1, 7, 2):
            kg.update(insert=schema)
            kg.update(insert=f"{prefix} ex:p[ex:a{number}, ex:d] .", algorithm="dred")
            assert f"<{EX}C>[<{EX}a{number}>]" in everything(kg)
            kg.update(delete=schema)
            kg.update(insert=f"{prefix} ex:p[ex:a{number}, ex:e] . ex:q[ex:a{number + 1}, ex:d] .", algorithm="dred")
            assert not any(fact.startswith(f"<{EX}C>") for fact in everything(kg))
            kg.verify()


def test_an_update_that_fails_leaves_the_graph_as_it_was() -> None:
    with maintained(Program.load("rhodf")) as kg:
        kg.update(insert=edges(FIGURE_2))
        before = everything(kg)
        with patch.object(kg._engine, "commit", side_effect=KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
            kg.update(delete=edges("bc"))
        assert_same(everything(kg), before)
        kg.update(delete=edges("bc"))
        kg.verify()
