"""Two ways to reason with one ontology give one answer: its own rules over data, and `owl2rl` over ontology and data.

Random ontologies of axioms that rules can say in whole. Compared are the class and property assertions about individuals, and
the contradictions. Compiled rules derive `owl:sameAs` but replace nothing by its equals, so the law with axioms of equality
adds the rules of `owl2rl` that do; there contradictions are compared by name, since `owl2rl` replaces individuals in the
ontology too and finds each culprit under all its names. And whatever triples there are, they compile.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import assert_same, everything
from evergraph import KnowledgeGraph, Program
from evergraph.rules.model import PREFIXES, TYPE
from evergraph.rules.owl import compile_ontology
from evergraph.rules.owl.axioms import ABOUT, AMONG, BETWEEN
from evergraph.rules.owl.compile import Compiler
from evergraph.rules.owl.triples import Triple, Triples
from evergraph.rules.owl.vocabulary import (
    ASSERTED,
    BOTTOMS,
    EXPRESSION_PARTS,
    FIRST,
    LITERAL,
    MEMBERS,
    NEGATIVE,
    NIL,
    NOTHING,
    REST,
    SOURCE,
    TARGET,
    TARGET_VALUE,
    THING,
    TOPS,
)
from ontologies import EX, HEADER

CLASSES, PROPERTIES, INDIVIDUALS = ([f":{name}" for name in names] for names in ("ABCD", "pqr", "ijkl"))
OWL2RL = Program.load("owl2rl")
EQUALITY = Program(tuple(r for r in OWL2RL.rules if r.name in ("eq-sym", "eq-trans", "eq-rep-s", "eq-rep-p", "eq-rep-o")))
NUMBER = '"{}"^^xsd:nonNegativeInteger'
AT_MOST_ONE = f"[ owl:onProperty {{}} ; owl:maxQualifiedCardinality {NUMBER.format(1)} ; owl:onClass {{}} ]"

classes, names, individuals = map(st.sampled_from, (CLASSES, PROPERTIES, INDIVIDUALS))
properties = st.one_of(names, st.builds("[ owl:inverseOf {} ]".format, names))


def lists(members: st.SearchStrategy[str], least: int = 1) -> st.SearchStrategy[str]:
    return st.lists(members, min_size=least, max_size=3).map(lambda found: f"({' '.join(found)})")


def restriction(kind: str, fillers: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.builds(f"[ owl:onProperty {{}} ; owl:{kind} {{}} ]".format, properties, fillers)


values = restriction("hasValue", individuals)
lefts = st.recursive(
    st.one_of(classes, values, st.builds("[ owl:oneOf {} ]".format, lists(individuals))),
    lambda inner: st.one_of(
        st.builds("[ owl:intersectionOf {} ]".format, lists(inner)),
        st.builds("[ owl:unionOf {} ]".format, lists(inner)),
        restriction("someValuesFrom", st.one_of(inner, st.just("owl:Thing"))),
    ),
    max_leaves=4,
)
rights = st.recursive(
    st.one_of(classes, values, st.just("owl:Nothing"), st.builds("[ owl:complementOf {} ]".format, lefts)),
    lambda inner: st.one_of(
        st.builds("[ owl:intersectionOf {} ]".format, lists(inner)),
        restriction("allValuesFrom", inner),
    ),
    max_leaves=4,
)
boths = st.one_of(classes, values, st.builds("[ owl:intersectionOf {} ]".format, lists(st.one_of(classes, values))))
axioms = st.one_of(
    st.builds("{} rdfs:subClassOf {} .".format, lefts, rights),
    st.builds("{} rdfs:subClassOf {} .".format, lefts, rights),
    st.builds("{} owl:equivalentClass {} .".format, boths, boths),
    st.builds("{} owl:intersectionOf {} .".format, classes, lists(boths)),
    st.builds("{} owl:disjointWith {} .".format, lefts, lefts),
    st.builds("[] a owl:AllDisjointClasses ; owl:members {} .".format, lists(lefts)),
    st.builds("{} rdfs:domain {} .".format, names, rights),
    st.builds("{} rdfs:range {} .".format, names, rights),
    st.builds("{} {} {} .".format, properties, st.just("rdfs:subPropertyOf"), properties),
    st.builds("{} owl:equivalentProperty {} .".format, names, properties),
    st.builds("{} owl:inverseOf {} .".format, names, names),
    st.builds("{} owl:propertyChainAxiom {} .".format, names, lists(properties)),
    st.builds("{} owl:propertyDisjointWith {} .".format, names, properties),
    st.builds("[] a owl:AllDisjointProperties ; owl:members {} .".format, lists(properties)),
    st.builds("{} a owl:{}Property .".format, names, st.sampled_from(["Symmetric", "Transitive", "Irreflexive", "Asymmetric"])),
    st.builds(
        "[] owl:sourceIndividual {} ; owl:assertionProperty {} ; owl:targetIndividual {} .".format,
        individuals,
        names,
        individuals,
    ),
    st.builds("{} a {} .".format, individuals, rights),
)
equalities = st.one_of(
    st.builds("{} a owl:{}FunctionalProperty .".format, names, st.sampled_from(["", "Inverse"])),
    st.builds("{} owl:hasKey {} .".format, classes, lists(names)),
    st.builds("{} rdfs:subClassOf {} .".format, lefts, restriction("maxCardinality", st.just(NUMBER.format(1)))),
    st.builds("{} rdfs:subClassOf {} .".format, lefts, restriction("maxCardinality", st.just(NUMBER.format(0)))),
    st.builds("{} rdfs:subClassOf {} .".format, lefts, st.builds(AT_MOST_ONE.format, properties, lefts)),
    st.builds("{} owl:differentFrom {} .".format, individuals, individuals),
    st.builds("{} owl:sameAs {} .".format, individuals, individuals),
    st.builds("[] a owl:AllDifferent ; owl:members {} .".format, lists(individuals, 2)),
)
facts = st.one_of(
    st.builds("{} a {} .".format, individuals, classes),
    st.builds("{} {} {} .".format, individuals, names, individuals),
)


def consequences(program: Program, *files: Path) -> set[str]:
    """What follows about individuals, classes and properties, and every contradiction, in text syntax."""
    kg = KnowledgeGraph(program, equality="off")
    kg.update(insert=list(files))
    relations = {f"<{EX}{name[1:]}>" for name in CLASSES + PROPERTIES} | {"inconsistency", "owl:sameAs"}
    about = {fact for fact in everything(kg) if fact.partition("(")[0].partition("[")[0] in relations}
    return {fact for fact in about if "_:" not in fact}


def both_ways(ontology: list[str], data: list[str], extra: Program) -> tuple[set[str], set[str]]:
    """The consequences by compiled rules and by `owl2rl`."""
    with TemporaryDirectory() as folder:
        schema, base = Path(folder, "schema.ttl"), Path(folder, "data.ttl")
        schema.write_text(HEADER + "\n".join(ontology))
        base.write_text(HEADER + "\n".join(data))
        compiled = compile_ontology([schema])
        assert not compiled.outside
        program = Program(compiled.rules + extra.rules, compiled.facts)
        return consequences(program, base), consequences(OWL2RL, schema, base)


@given(st.lists(axioms, min_size=1, max_size=6), st.lists(facts, min_size=1, max_size=8))
@settings(max_examples=150)
def test_compiled_rules_say_what_owl2rl_says(ontology: list[str], data: list[str]) -> None:
    got, want = both_ways(ontology, data, Program())
    assert_same(got, want, "\n".join(ontology + data))


@given(st.lists(equalities, min_size=1, max_size=3), st.lists(axioms, max_size=3), st.lists(facts, min_size=1, max_size=8))
@settings(max_examples=100)
def test_with_equality_added_they_still_do(equal: list[str], ontology: list[str], data: list[str]) -> None:
    got, want = ({_by_name(fact) for fact in side} for side in both_ways(equal + ontology, data, EQUALITY))
    assert_same(got, want, "\n".join(equal + ontology + data))


def _by_name(fact: str) -> str:
    return fact.partition(",")[0] if fact.startswith("inconsistency") else fact


# -- anything at all ---------------------------------------------------------------------------------------------------

NODES = [*(f"<{EX}{name}>" for name in "ABpqi"), *(f"_:{name}" for name in "abcdef")]
ODD = ['"1"', '"0"', '"x"', NIL, THING, NOTHING, LITERAL, *sorted(TOPS | BOTTOMS)]
PARTS = [*sorted(EXPRESSION_PARTS), FIRST, REST, *MEMBERS, SOURCE, ASSERTED, TARGET, TARGET_VALUE]
any_triples = st.one_of(
    st.tuples(st.sampled_from(NODES), st.sampled_from([*BETWEEN, *PARTS, f"<{EX}p>"]), st.sampled_from(NODES + ODD)),
    st.tuples(st.sampled_from(NODES), st.just(TYPE), st.sampled_from([*ABOUT, *AMONG, NEGATIVE, NOTHING, *NODES])),
    st.tuples(st.sampled_from(NODES), st.just(REST), st.just(NIL)),
)


@given(st.lists(any_triples, max_size=40, unique=True), st.randoms(use_true_random=False))
@settings(max_examples=300)
def test_any_triples_compile_to_a_program_that_parses_in_whatever_order(triples: list[Triple], random: Random) -> None:
    once = Compiler(Triples(triples), PREFIXES).run()
    assert Program.parse(str(once)) == once
    assert not any("_:" in str(term) for rule in once.rules for atom in (rule.head, *rule.atoms) for term in atom.terms)
    random.shuffle(triples)
    again = Compiler(Triples(triples), PREFIXES).run()
    assert again.rules == once.rules
    assert again.outside == once.outside
