"""Proofs: each is checked step by step against the rules as they were written, and against every instance there is."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyoxigraph as ox
import pytest
import rdflib
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from evergraph import KnowledgeGraph, Program, UserError
from evergraph.engines.base import Which
from evergraph.engines.kernel import Table, _Evaluation
from evergraph.engines.relation import Relation, run_of
from evergraph.explain import Kind, Proof, ask, explain, search
from evergraph.explain.ask import _Question
from evergraph.explain.proof import Fact
from evergraph.rules.model import BUILTIN_RELATIONS, TRIPLE, TYPE, XSD, Atom, Comparison, Rule, Term, Variable
from evergraph.rules.printer import print_atom, print_rule
from strategies import CLASSES, LEVELS, NAMES, NUMBERS, PREDICATES, ontology_updates, rules

EX = "http://ex/"
GENERATE = settings(max_examples=100, phases=[Phase.generate])
SOME = 12
"""Derived facts of a random graph that are explained."""
Binding = Mapping[Variable, Term]
Instance = tuple[str, Atom, tuple[Fact, ...], tuple[Atom, ...]]
"""Name of the rule, head, premises, absent."""


# -- the checker: unification over atoms, nothing shared with plans, ids and the kernel ---------------------------------


class Held:
    """What a graph holds, as atoms."""

    def __init__(self, kg: KnowledgeGraph) -> None:
        self.kg = kg
        self.all, self.explicit = (set(self._atoms(which)) for which in (Which.ALL, Which.EXPLICIT))
        self.builtins = {
            Atom(name, row)
            for name, rows in kg._builtins.items()
            for row in zip(*(kg._dictionary.decode(c).to_pylist() for c in rows(0)), strict=True)
        }
        self.derived = sorted(self.all - self.explicit, key=str)

    def _atoms(self, which: Which) -> Iterator[Atom]:
        for name in self.kg.counts(which):
            columns = [self.kg._dictionary.decode(c).to_pylist() for c in self.kg._engine.rows(name, which) or []]
            for row in zip(*columns, strict=True) if columns else [()]:
                yield Atom(name, tuple(row))

    def true(self, fact: Fact) -> bool:
        if isinstance(fact, Atom):
            return fact in self.all or fact in self.builtins
        left, right = (self.kg._dictionary.encode([str(t)]) for t in (fact.left, fact.right))
        return bool(self.kg._values.compare(str(fact.operator), left, right)[0])

    def instances(self) -> Iterator[Instance]:
        """Every rule instance over the facts, by trying them all."""
        index: dict[tuple[str, Any], list[Atom]] = {}
        for fact in self.all | self.builtins:
            index.setdefault((fact.relation, None), []).append(fact)
            if fact.relation == TRIPLE:
                index.setdefault((TRIPLE, fact.terms[1]), []).append(fact)

        def match(atoms: tuple[Atom, ...], binding: Binding) -> Iterator[Binding]:
            if not atoms:
                yield binding
                return
            pattern = filled(atoms[0], binding)
            predicate = pattern.terms[1] if pattern.relation == TRIPLE else None
            for fact in index.get((pattern.relation, None if isinstance(predicate, Variable) else predicate), ()):
                bound = unified(pattern, fact, binding)
                if bound is not None:
                    yield from match(atoms[1:], bound)

        for rule in self.kg.rules.rules:
            for binding in match(rule.atoms, {}):
                found = instance(rule, binding)
                if all(map(self.true, found[2])) and not any(map(self.true, found[3])):
                    yield found


def filled(atom: Atom, binding: Binding) -> Atom:
    return Atom(atom.relation, tuple(binding.get(t, t) if isinstance(t, Variable) else t for t in atom.terms))


def unified(pattern: Atom, fact: Atom, binding: Binding) -> Binding | None:
    """The binding under which a pattern is the fact."""
    if pattern.relation != fact.relation or len(pattern.terms) != len(fact.terms):
        return None
    bound = dict(binding)
    for term, value in zip(pattern.terms, fact.terms, strict=True):
        if (bound.setdefault(term, value) if isinstance(term, Variable) else term) != value:
            return None
    return bound


def instance(rule: Rule, binding: Binding) -> Instance:
    def value(term: Term) -> Term:
        return binding[term] if isinstance(term, Variable) else term

    comparisons = tuple(Comparison(c.operator, value(c.left), value(c.right)) for c in rule.comparisons)
    premises = (*(filled(a, binding) for a in rule.atoms), *comparisons)
    return called(rule), filled(rule.head, binding), premises, tuple(filled(a, binding) for a in rule.negations)


def called(rule: Rule) -> str:
    return rule.name or print_rule(rule).removesuffix(" .\n")


def check(held: Held, proof: Proof) -> int:
    """Fail unless every step is an instance of its rule and following premises ends at explicit facts; returns the height."""
    heights: dict[Fact, int] = {}
    below: list[tuple[Proof, bool]] = [(proof, False)]
    above: set[Fact] = set()
    while below:
        item, done = below.pop()
        if done:
            above.discard(item.fact)
            heights[item.fact] = check_step(held, item, heights)
        elif item.fact not in heights:
            assert item.fact not in above, f"{item.fact} is used in its own proof"
            above.add(item.fact)
            below += [(item, True), *((premise, False) for premise in item.premises)]
    return heights[proof.fact]


def check_step(held: Held, proof: Proof, heights: dict[Fact, int]) -> int:
    assert held.true(proof.fact), proof
    if proof.kind != Kind.DERIVED:
        assert (proof.rule, proof.premises, proof.absent) == (None, (), ())
        built_in = isinstance(proof.fact, Comparison) or proof.fact.relation in BUILTIN_RELATIONS
        assert (proof.kind == Kind.BUILT_IN) == built_in
        assert built_in or proof.fact in held.explicit, proof
        return 0
    check_instance(held, proof)
    return 1 + max((heights[p.fact] for p in proof.premises), default=0)


def check_instance(held: Held, proof: Proof) -> None:
    assert proof.fact not in held.explicit, proof
    assert not any(map(held.true, proof.absent)), proof
    wanted = (proof.rule, proof.fact, tuple(p.fact for p in proof.premises), proof.absent)
    for rule in held.kg.rules.rules:
        if called(rule) == proof.rule:
            binding: Binding | None = {}
            for pattern, premise in zip(rule.atoms, proof.premises, strict=False):
                if binding is not None and isinstance(premise.fact, Atom):
                    binding = unified(pattern, premise.fact, binding)
            if binding is not None and instance(rule, binding) == wanted:
                return
    raise AssertionError(f"no rule is called {proof.rule} and has the instance {wanted}")


def least_heights(held: Held, instances: list[Instance]) -> dict[Atom, int]:
    """The round in which naive evaluation comes across each fact."""
    heights = dict.fromkeys(held.explicit | held.builtins, 0)
    for height in range(1, len(held.all) + 2):
        ready = {head for _, head, premises, _ in instances if all(p in heights for p in premises if isinstance(p, Atom))}
        heights |= dict.fromkeys(ready - heights.keys(), height)
    return heights


def dense_facts(seed: int) -> list[Atom]:
    """A few dozen facts over few terms: rules find much to join, and one fact is supported in many ways."""
    random = Random(seed)
    terms = [*NAMES[:2], CLASSES[0], *NUMBERS]
    share = random.choice((0.1, 0.2, 0.4))
    names = [(name, LEVELS[name][1]) for name in ("edge", "path", "node", "wide", "odd")]
    rows = [Atom(name, row) for name, arity in names for row in product(terms, repeat=arity)]
    rows += [Atom(TRIPLE, row) for row in product(terms[:3], PREDICATES, terms)]
    return [fact for fact in rows if random.random() < share / len(fact.terms)]


BACKBONE = Program.parse("""
@prefix ex: <http://example.org/> .
path(?x, ?y) :- edge(?x, ?y) .
path(?x, ?z) :- path(?x, ?y), path(?y, ?z) .
edge(?y, ?x) :- path(?x, ?y), node(?x) .
node(?y) :- edge(?x, ?y), node(?x), ?x != ?y .
[?x, ex:p, ?y] :- edge(?x, ?y), node(?y) .
edge(?x, ?y) :- [?x, ex:q, ?y] .
[?x, ?q, ?y] :- [?p, rdfs:subClassOf, ?q], [?x, ?p, ?y] .
[?x, ex:q, ?z] :- [?x, ex:p, ?y], [?y, ?p, ?z] .
far(?x, ?y) :- path(?x, ?y), NOT edge(?x, ?y) .
odd(?x) :- path(?x, ?y), NOT path(?y, ?x), NOT [?x, ex:p, ?y] .
far(?x, ?z) :- far(?x, ?y), far(?y, ?z), odd(?z) .
top(?x, ?y) :- far(?x, ?z), edge(?z, ?y), NOT odd(?y), ?x != ?y .
flag() :- top(?x, ?y) .
""").rules
"""Rules that recur, through each other too; a random part of them is in every random program."""
PROGRAMS = st.builds(
    lambda chosen, more: Program((*chosen, *more)),
    st.lists(st.sampled_from(BACKBONE), min_size=4, unique=True),
    st.lists(rules(), max_size=4),
)
DENSE = (PROGRAMS, st.integers(0, 1 << 32).map(dense_facts))


def graph(rules: str, facts: str = "", engine: str = "memory") -> KnowledgeGraph:
    kg = KnowledgeGraph(Program.parse(rules), engine=engine)
    if facts:
        kg.update(insert=facts)
    return kg


def some(facts: list[Atom], most: int = SOME) -> list[Atom]:
    """Facts from all over the list."""
    return facts[:: max(1, len(facts) // most)]


# -- laws --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("engine", "examples"), [("memory", 150), ("reference", 60)])
def test_every_derived_fact_has_a_proof_of_the_smallest_height(engine: str, examples: int) -> None:
    @given(*DENSE)
    @settings(max_examples=examples, phases=[Phase.generate])
    def law(program: Program, facts: list[Atom]) -> None:
        kg = KnowledgeGraph(program, engine=engine)
        kg.update(insert=facts)
        held = Held(kg)
        heights = least_heights(held, list(held.instances()))
        for fact in some(held.derived):
            assert check(held, explain(kg, fact)) == heights[fact]
        for fact in some(sorted(held.explicit, key=str), 3):
            assert explain(kg, fact).kind == Kind.EXPLICIT

    law()


@given(*DENSE)
@GENERATE
def test_every_instance_is_listed_and_no_other(program: Program, facts: list[Atom]) -> None:
    kg = KnowledgeGraph(program)
    kg.update(insert=facts)
    held = Held(kg)
    wanted: dict[Atom, Counter[Instance]] = {}
    for found in held.instances():
        wanted.setdefault(found[1], Counter())[found] += 1
    for fact in some(sorted(held.all, key=str)):
        proof = explain(kg, fact, every=True)
        assert proof.kind == (Kind.EXPLICIT if fact in held.explicit else Kind.DERIVED)
        shown = [(a.rule, a.fact, tuple(p.fact for p in a.premises), a.absent) for a in proof.alternatives]
        assert Counter(shown) == wanted.get(fact, Counter())
        for premise in (p for a in proof.alternatives for p in a.premises if isinstance(p.fact, Atom)):
            assert premise.kind == (Kind.EXPLICIT if premise.fact in held.explicit else Kind.DERIVED)
            assert not premise.premises


@given(*DENSE)
@GENERATE
def test_proofs_are_right_when_the_search_is_cut_short(program: Program, facts: list[Atom]) -> None:
    """One instance for each fact and rule first, and no patience for shorter proofs."""
    kg = KnowledgeGraph(program)
    kg.update(insert=facts)
    held = Held(kg)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ask, "MOST", 1)
        patch.setattr(search, "PATIENCE", 0)
        for fact in some(held.derived):
            check(held, explain(kg, fact))


@given(*DENSE)
@GENERATE
def test_proofs_follow_updates(program: Program, facts: list[Atom]) -> None:
    kg = KnowledgeGraph(program)
    kg.update(insert=facts[::2])
    kg.update(insert=facts[1::2], delete=facts[::4])
    held = Held(kg)
    for fact in some(held.derived, 10):
        check(held, explain(kg, fact))


@pytest.mark.parametrize(("rules", "examples"), [("rdfs", 20), ("owl2rl", 10), ("owl2rl-full", 3)])
def test_rule_sets(rules: str, examples: int) -> None:
    program = Program.load(rules)

    @given(ontology_updates)
    @settings(max_examples=examples, phases=[Phase.generate])
    def law(steps: list[list[Atom]]) -> None:
        kg = KnowledgeGraph(program)
        kg.update(insert=[fact for facts in steps for fact in facts])
        held = Held(kg)
        for fact in some(held.derived, 15):
            check(held, explain(kg, fact))

    law()


# -- examples ----------------------------------------------------------------------------------------------------------

PATHS = """
@prefix ex: <http://ex/> .
#[name("base")] path(?x, ?y) :- edge(?x, ?y) .
#[name("step")] path(?x, ?z) :- path(?x, ?y), path(?y, ?z), ?x != ?z, NOT closed(?y) .
"""
ROADS = "edge(1, 2) . edge(2, 3) . edge(3, 1) . edge(2, 4) . closed(4) ."

TREE = """\
path(1, 3)  by step
├─ path(1, 2)  by base
│  └─ edge(1, 2)  explicit
├─ path(2, 3)  by base
│  └─ edge(2, 3)  explicit
├─ 1 != 3  built-in
└─ NOT closed(2)  absent"""

WAYS = """\
path(2, 3)  derived in 2 ways
├─ by base
│  └─ edge(2, 3)  explicit
└─ by step
   ├─ path(2, 1)  derived
   ├─ path(1, 3)  derived
   ├─ 2 != 3  built-in
   └─ NOT closed(1)  absent"""


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
    row = [kg._dictionary.encode([f'"2"^^<{XSD}integer>'])]
    shard = kg._engine.shard  # type: ignore[attr-defined]
    for name in "pq":
        shard.relations[name] = Relation(run_of(shard.arrays, row, 1))
    with pytest.raises(UserError, match="EG409"):
        explain(kg, "p(2)")


# -- JSON --------------------------------------------------------------------------------------------------------------


def from_dict(answer: dict[str, Any]) -> Proof:
    """The proof that a dictionary tells of."""
    facts: dict[str, Fact] = {}
    for row in answer["facts"]:
        atom = Atom(row["relation"], tuple(row["terms"]))
        comparison = row["kind"] == Kind.BUILT_IN and row["relation"] not in BUILTIN_RELATIONS
        facts[row["fact"]] = Comparison(row["relation"], *row["terms"]) if comparison else atom
    kinds = {row["fact"]: Kind(row["kind"]) for row in answer["facts"]}
    made: dict[str, Proof] = {}
    for step in answer["steps"]:
        for text in step["premises"]:
            made.setdefault(text, Proof(facts[text], kinds[text]))
        absent = tuple(Program.parse(f"{text} .").facts[0] for text in step["absent"])
        premises = tuple(made[text] for text in step["premises"])
        made[step["fact"]] = Proof(facts[step["fact"]], Kind.DERIVED, step["rule"], premises, absent)
    return made[answer["fact"]]


@given(*DENSE)
@settings(max_examples=40, phases=[Phase.generate])
def test_json_says_all_that_the_proof_does(program: Program, facts: list[Atom]) -> None:
    kg = KnowledgeGraph(program)
    kg.update(insert=facts)
    held = Held(kg)
    for fact in some(held.derived, 5):
        proof = explain(kg, fact)
        read = from_dict(json.loads(json.dumps(proof.as_dict())))
        assert read.as_dict() == proof.as_dict()
        assert check(held, read) == check(held, proof)


@pytest.mark.parametrize("kind", [Kind.DERIVED, Kind.EXPLICIT])
def test_json_of_every_instance(kind: Kind) -> None:
    kg = graph(PATHS, ROADS + ("path(2, 3) ." if kind == Kind.EXPLICIT else ""))
    answer = explain(kg, "path(2, 3)", every=True).as_dict()
    assert json.loads(json.dumps(answer)) == answer
    assert [step["rule"] for step in answer["steps"]] == ["base", "step"]
    assert {f["fact"]: f["kind"] for f in answer["facts"]} == {
        "path(2, 3)": kind,
        "edge(2, 3)": "explicit",
        "path(2, 1)": "derived",
        "path(1, 3)": "derived",
        "2 != 3": "built-in",
    }


# -- stores and Spark --------------------------------------------------------------------------------------------------


def test_a_store_explains_what_it_holds(tmp_path: Path) -> None:
    rules = "same(?x, ?y) :- has(?x), has(?y), SAMEVALUE(?x, ?y) . also(?x) :- same(?x, ?y) ."
    kg = KnowledgeGraph(Program.parse(rules), store=tmp_path / "store")
    kg.update(insert="has(1) . has(01) .")
    kg.update(delete="has(01) .")
    for version in (0, None):
        opened = KnowledgeGraph.open(tmp_path / "store", version=version)
        held = Held(opened)
        assert len(held.derived) == (4 if version == 0 else 0)
        for fact in held.derived:
            check(held, explain(opened, fact))


@pytest.mark.spark
def test_spark_explains_too(spark: Any) -> None:
    kg = KnowledgeGraph(Program.parse(PATHS), engine=spark)
    kg.update(insert=ROADS)
    assert str(explain(kg, "path(1, 3)")) == TREE
    assert str(explain(kg, "path(2, 3)", every=True)) == WAYS


# -- size --------------------------------------------------------------------------------------------------------------


def test_deep_proofs_need_no_stack() -> None:
    length = 1100
    kg = graph("path(?x, ?y) :- edge(?x, ?y) . path(?x, ?z) :- edge(?x, ?y), path(?y, ?z) .")
    kg.update(insert="".join(f"edge({i}, {i + 1}) . " for i in range(length)))
    proof = explain(kg, f"path(0, {length})")
    assert len(str(proof).splitlines()) == len(list(proof.walk())) == 2 * length
    assert len(json.dumps(proof.as_dict())) < 1000 * length


def test_proofs_with_many_uses_of_one_fact_stay_small() -> None:
    """As a tree this proof would have 2⁶⁰ leaves."""
    kg = graph('#[name("r")] p(?y) :- next(?x, ?z, ?y), p(?x), p(?z) .', "p(0) . next(0, 0, 1) .")
    kg.update(insert="".join(f"next({i}, {i - 1}, {i + 1}) . " for i in range(1, 60)))
    proof = explain(kg, "p(60)")
    assert len(list(proof.walk())) == 60 + 61
    assert str(proof).count("see above") == 58
    assert len(proof.as_dict()["steps"]) == 60


def test_a_cut_search_goes_on_when_the_first_instances_lead_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """All but the last of a thousand facts rest on what they support."""
    monkeypatch.setattr(ask, "MOST", 10)
    kg = graph("q() :- p(?x) . p(?x) :- q(), n(?x) . p(?x) :- r(?x) . r(?x) :- s(?x) .")
    kg.update(insert="".join(f"n({i}) . " for i in range(100)) + "s(100) .")
    assert check(Held(kg), explain(kg, "q()")) == 3


@pytest.mark.parametrize("every", [False, True])
def test_work_does_not_grow_with_unrelated_data(every: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of all the tables that joins make, and instances, for one fact among ever more chains."""
    rows = 0
    checked = _Evaluation._checked

    def counting(self: _Evaluation, table: Table, *rest: Any) -> None:
        nonlocal rows
        rows += table.count
        checked(self, table, *rest)

    monkeypatch.setattr(_Evaluation, "_checked", counting)

    def work(chains: int) -> tuple[int, int, int]:
        nonlocal rows
        kg = graph(PATHS)
        pairs = [(100 * c + i, 100 * c + i + 1) for c in range(chains) for i in range(8)]
        kg.update(insert="".join(f"edge({a}, {b}) . " for a, b in pairs))
        question = _Question(kg)
        looked = question.search(ask.MOST)
        goal = question.goal(Atom("path", tuple(f'"{n}"^^<{XSD}integer>' for n in (0, 8))))
        rows = 0
        assert looked.supports(goal) if every else looked.prove(goal)
        return rows, looked.kernel.derivations, looked.numbers.count

    assert work(20) == work(200)
    assert np.prod(work(20)) > 0
