"""Changes of rules by the paper's own method (Volz et al. 2003, §4.2): the program of a change finds what comes and goes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations, pairwise, permutations, product
from random import Random
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from conftest import assert_same, everything
from evergraph import KnowledgeGraph, Program, inputs
from evergraph.engines.base import Facts
from evergraph.errors import UserError
from evergraph.maintain.change_program import RuleChange, rewrite_change
from evergraph.maintain.declarative import Maintenance, declarative
from evergraph.maintain.maintenance_program import rewrite
from evergraph.plan.compile import compile_program
from evergraph.rules.model import Atom, Rule
from evergraph.rules.printer import print_atom
from strategies import EX, dense_changes, layered_programs, programs

Sets = tuple[set[str], set[str]]


def change(
    before: Program, after: Program, facts: Sequence[Atom], insert: Sequence[Atom] = (), delete: Sequence[Atom] = ()
) -> Sets:
    """What comes into the materialisation of `before` and what goes from it, as the program of the change finds it."""
    kg, found = KnowledgeGraph(before), list[set[str]]()
    kg.update(insert=list(facts))

    def replace(plus: Facts, minus: Facts) -> None:
        found.extend({text for name, columns in net.items() for text in texts(kg, name, columns)} for net in (plus, minus))

    maintenance = Maintenance.of(after, kg._dictionary, kg._values, before)
    plan = compile_program(after, kg._dictionary, kg._values)
    given = [inputs.read(list(some), kg._dictionary) for some in (insert, delete)]
    kg._engine.begin()
    with patch.object(kg._engine, "replace", replace):
        declarative(kg._engine, plan, maintenance, given[0], given[1], "asked for")
    kg._engine.rollback()
    return found[0], found[1]


def texts(kg: KnowledgeGraph, name: str, columns: Iterable[object]) -> list[str]:
    rows = zip(*(kg._dictionary.decode(column).to_pylist() for column in columns), strict=True) if columns else [()]
    return [print_atom(Atom(name, tuple(row))) for row in rows]


def materialised(program: Program, facts: Iterable[Atom]) -> set[str]:
    kg = KnowledgeGraph(program, engine="reference")
    kg.update(insert=list(facts))
    return everything(kg)


def assert_changes(
    before: Program,
    after: Program,
    facts: Sequence[Atom],
    insert: Sequence[Atom] = (),
    delete: Sequence[Atom] = (),
) -> None:
    """The program of the change finds the difference of the two materialisations, if there is an old one."""
    old, new = materialised(before, facts), materialised(after, ({*facts} - {*delete}) | {*insert})
    if not old:
        return
    said = f"before:\n{before}\nafter:\n{after}\nfacts {facts}, inserting {insert}, deleting {delete}"
    plus, minus = change(before, after, facts, insert, delete)
    assert_same(plus, new - old, f"{said}\nwhat comes")
    assert_same(minus, old - new, f"{said}\nwhat goes")


# -- Volz, Table 1 -----------------------------------------------------------------------------------------------------

NAMED = [
    "inDynasty(?x, ?y) :- hasChild(?x, ?y) .",
    "inDynasty(?x, ?y) :- inDynasty(?x, ?z), inDynasty(?z, ?y) .",
    "inDynasty(?x, ?y) :- inDynasty(?y, ?x) .",
]
TRIPLES = [rule.replace("(", "[").replace(")", "]").replace("inD", "ex:inD").replace("hasC", "ex:hasC") for rule in NAMED]
CHILDREN = {(1, 2), (2, 3), (4, 3)}
ORDERS = list(permutations(range(3)))
SUBSETS = [frozenset(chosen) for n in range(4) for chosen in combinations(range(3), n)]


def table_1(chosen: Iterable[int], rules: list[str]) -> Program:
    return Program.parse(f"@prefix ex: <{EX}> ." + "\n".join(rules[number] for number in sorted(chosen)))


def children(rules: list[str]) -> list[Atom]:
    """hasChild, and triples about other things."""
    if rules is NAMED:
        return list(Program.parse(" ".join(f"hasChild({x}, {y}) ." for x, y in CHILDREN)).facts)
    text = " ".join(f"ex:hasChild[{x}, {y}] ." for x, y in CHILDREN)
    return list(Program.parse(f"@prefix ex: <{EX}> . {text} ex:name[1, 9] . ex:Person[1] .").facts)


def dynasty(facts: set[str]) -> set[tuple[int, int]]:
    """Pairs of inDynasty, by relation or by triple."""
    found = [fact.replace("[", "(").rstrip("])").partition("(")[2] for fact in facts if "inDynasty" in fact]
    return {(int(x), int(y)) for x, y in (fact.split(", ") for fact in found)}


@pytest.mark.parametrize("rules", [NAMED, TRIPLES], ids=["named", "triples"])
def test_volz_section_4_1(rules: list[str]) -> None:
    """Each extension that the example names, by the change that leads there."""

    def extension(before: set[int], after: set[int]) -> set[tuple[int, int]]:
        old = materialised(table_1(before, rules), children(rules))
        plus, minus = change(table_1(before, rules), table_1(after, rules), children(rules))
        assert minus <= old and not plus & old
        return dynasty((old - minus) | plus)

    assert extension({0}, {0, 1}) == extension({1}, {0, 1}) == CHILDREN | {(1, 3)}
    assert extension({0, 1}, {1}) == set()
    assert extension({0, 1}, {0}) == CHILDREN
    assert extension({0, 1}, {0, 1, 2}) == set(product(range(1, 5), repeat=2)) > {(1, 4)}


@pytest.mark.parametrize("rules", [NAMED, TRIPLES], ids=["named", "triples"])
def test_volz_table_1_in_every_order(rules: list[str]) -> None:
    """Rules added one by one in each order, then taken away one by one in each; and every change at once."""
    adding = {pair for order in ORDERS for pair in pairwise(frozenset(order[:n]) for n in range(4))}
    steps = {*adding, *((after, before) for before, after in adding), *product(SUBSETS, repeat=2)}
    assert len(steps) == 64
    facts = children(rules)
    for before, after in steps:
        assert_changes(table_1(before, rules), table_1(after, rules), facts)


def test_volz_section_4_2_as_printed() -> None:
    """The rules that the paper prints, but that hasChild is read as it is afterwards, and explicit facts count."""
    got = rewrite_change(table_1({0, 1}, NAMED), table_1({0, 1, 2}, NAMED))
    want = Program.parse("""
        inDynasty_Temp(?x, ?y) :- hasChild_New(?x, ?y) .
        inDynasty_Temp(?x, ?y) :- inDynasty_Temp(?x, ?z), inDynasty_Temp(?z, ?y) .
        inDynasty_Temp(?x, ?y) :- inDynasty_Temp(?y, ?x) .
        inDynasty_Temp(?x, ?y) :- inDynasty_ext_New(?x, ?y) .
        inDynasty_Ins(?x, ?y) :- inDynasty_Temp(?x, ?y), NOT inDynasty(?x, ?y) .
        inDynasty_Del(?x, ?y) :- inDynasty(?x, ?y), NOT inDynasty_Temp(?x, ?y) .
    """)
    heads = ("inDynasty_Temp", "inDynasty_Ins", "inDynasty_Del")
    assert {(r.head, r.body) for r in got.rules if r.head.relation in heads} == {(r.head, r.body) for r in want.rules}
    names = "inDynasty ext T|R1 T|R2 T|R3 T|inDynasty TD|inDynasty TI|inDynasty N1|inDynasty N3|inDynasty P|inDynasty M"
    assert [rule.name for rule in got.rules] == names.split("|")


# -- what is derived anew ----------------------------------------------------------------------------------------------


def test_relations_in_a_cycle_with_a_changed_one_are_derived_anew_and_others_are_not() -> None:
    text = "p(?x) :- q(?x) . q(?x) :- p(?x) . low(?x) :- n(?x) . p(?x) :- low(?x) . high(?x) :- q(?x), NOT low(?x) ."
    change = RuleChange(Program.parse(text), Program.parse(text + "p(?x) :- m(?x) ."))
    assert change.anew == {"p", "q"}
    derived = {rule.head.relation for rule in change.program().rules}
    assert {"p_Temp", "q_Temp", "low_Red", "high_Red"} <= derived
    assert not {"low_Temp", "high_Temp", "p_Red", "q_Red"} & derived


def test_names_of_rules_and_variables_are_no_change() -> None:
    before = Program.parse("p(?x, ?z) :- p(?x, ?y), p(?y, ?z), NOT q(?x) . p(?x, ?y) :- e(?x, ?y), ?x < ?y .")
    after = Program.parse('#[name("b")] p(?y, ?x) :- e(?y, ?x), ?y < ?x . p(?a, ?c) :- p(?a, ?b), p(?b, ?c), NOT q(?a) .')
    assert not RuleChange(before, after).anew
    assert rewrite_change(before, after) == rewrite(after)
    assert RuleChange(before, Program.parse("p(?x, ?z) :- p(?x, ?y), p(?y, ?z), NOT q(?z) .")).anew == {"p"}


def test_a_relation_that_lost_its_last_rule_keeps_its_explicit_facts() -> None:
    before = Program.parse("p(?x) :- n(?x) . o(?x) :- n(?x), NOT p(?x) . n(1) . n(2) . p(2) . p(3) .")
    facts = list(before.facts)
    for after in ("o(?x) :- n(?x), NOT p(?x) .", "o(?x) :- n(?x) .", "m(?x) :- p(?x) .", ""):
        assert_changes(Program(before.rules), Program.parse(after), facts)
        assert_changes(Program(before.rules), Program.parse(after), facts, insert=facts[:0], delete=facts[1:3])
    assert change(Program(before.rules), Program(), facts) == (set(), {"p(1)"})


def test_strata_may_change_with_the_rules() -> None:
    """What negated may be negated now, and triples move between strata."""
    texts = [
        "ex:A[?x] :- ex:n[?x, ?x], NOT ex:B[?x] . ex:C[?x] :- ex:A[?x] . r(?x) :- ex:C[?x] .",
        "ex:B[?x] :- ex:n[?x, ?x], NOT ex:A[?x] . ex:C[?x] :- ex:A[?x] . r(?x) :- ex:C[?x] .",
        "ex:A[?x] :- ex:n[?x, ?x], NOT ex:B[?x] . ex:B[?x] :- m(?x), NOT ex:D[?x] . r(?x) :- ex:C[?x] .",
        "ex:C[?x] :- r(?x), NOT ex:D[?x] . r(?x) :- ex:n[?x, ?y] .",
        "r(?x) :- ex:C[?x], NOT m(?x) .",
    ]
    changes = [Program.parse(f"@prefix ex: <{EX}> . {text}") for text in texts]
    facts = Program.parse(
        f"@prefix ex: <{EX}> . ex:n[1, 1] . ex:n[2, 2] . ex:B[1] . m(2) . m(3) . ex:C[3] . ex:D[3] . r(4) ."
    ).facts
    for before, after in permutations(changes, 2):
        assert_changes(before, after, list(facts))
        assert_changes(before, after, list(facts[:5]), list(facts[5:]), list(facts[2:4]))


def test_the_program_of_a_change_avoids_the_names_of_both() -> None:
    before = Program.parse("p(?x) :- n(?x) . p_Temp(?x) :- m(?x) .")
    after = Program.parse("p(?x) :- m(?x) . p(?x) :- p_New(?x) .")
    relations = rewrite_change(before, after).relations
    assert {"p__Temp", "p_Temp__Temp", "p_New__New"} <= relations.keys()
    facts = Program.parse("n(1) . m(2) . p_New(3) . p_Temp(4) .").facts
    assert_changes(before, after, list(facts))
    assert_changes(after, before, list(facts))


def test_a_relation_has_one_arity_before_and_after() -> None:
    with pytest.raises(UserError, match=r"EG004.*p has 2 arguments in the new rules and 1 in the old ones"):
        rewrite_change(Program.parse("p(?x) :- n(?x) ."), Program.parse("p(?x, ?x) :- n(?x) ."))


# -- laws --------------------------------------------------------------------------------------------------------------

ONCE = settings(max_examples=150, phases=[Phase.generate], suppress_health_check=[HealthCheck.too_slow])


def divided(program: Program, rng: Random) -> tuple[Program, Program]:
    """Two programs that have some rules in common; together they are stratified, and so each is."""
    rules: list[list[Rule]] = [[], []]
    for rule in program.rules:
        for chosen in rng.choice([(0,), (1,), (0, 1), (0, 1)]):
            rules[chosen].append(rule)
    return Program(tuple(rules[0])), Program(tuple(rules[1]))


@given(programs | layered_programs, st.integers(0, 2**32))
@ONCE
def test_programs_of_changes_parse_back(program: Program, seed: int) -> None:
    """Which they only do if they are safe and stratified."""
    rewritten = rewrite_change(*divided(program, Random(seed)))
    assert Program.parse(str(rewritten)) == rewritten


@pytest.mark.parametrize("strategy", [programs, layered_programs], ids=["programs", "layered"])
def test_rules_and_facts_that_change_together(strategy: st.SearchStrategy[Program]) -> None:
    @given(strategy, st.integers(0, 2**32))
    @ONCE
    def law(program: Program, seed: int) -> None:
        rng, there = Random(seed), set[Atom]()
        for insert, delete in dense_changes(program, rng):
            assert_changes(*divided(program, rng), sorted(there, key=str), insert, delete)
            there = (there - {*delete}) | {*insert}

    law()


@pytest.mark.parametrize(("before", "after"), [("rhodf", "rdfs"), ("rdfs", "rhodf"), ("rdfs-jena", "rdfs")])
def test_rule_sets_that_replace_each_other(before: str, after: str) -> None:
    facts = Program.parse(f"""@prefix ex: <{EX}> .
        rdfs:subClassOf[ex:A, ex:B] . rdfs:subClassOf[ex:B, ex:C] . rdfs:domain[ex:p, ex:A] . rdfs:subPropertyOf[ex:q, ex:p] .
        ex:q[ex:a, ex:b] . ex:B[ex:b] . rdfs:Class[ex:A] .
    """).facts
    assert_changes(Program.load(before), Program.load(after), list(facts), list(facts[4:]), list(facts[:1]))
