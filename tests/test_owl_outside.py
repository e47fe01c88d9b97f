"""What rules cannot say: every axiom, or part of one, is listed with its reason, and the rest of it is compiled."""

from __future__ import annotations

from random import Random

import pytest

from evergraph.rules.owl.sides import MOST_BODIES
from ontologies import compiled, facts_of, outside_of, rules_of
from test_owl import INSIDE, SOME

OUTSIDE = {
    "some values on the right": (
        f":A rdfs:subClassOf {SOME} .",
        ":A SubClassOf :p some :B",
        ":p some :B on the right: a rule cannot make up an individual",
        [],
    ),
    "some values in an intersection": (
        f":A rdfs:subClassOf [ owl:intersectionOf (:C {SOME}) ] .",
        ":A SubClassOf :C and (:p some :B)",
        ":p some :B on the right: a rule cannot make up an individual",
        [":C[?x] :- :A[?x]"],
    ),
    "some values below all values": (
        f":A rdfs:subClassOf [ owl:onProperty :q ; owl:allValuesFrom {SOME} ] .",
        ":A SubClassOf :q only (:p some :B)",
        ":p some :B on the right: a rule cannot make up an individual",
        [],
    ),
    "union on the right": (
        ":A rdfs:subClassOf [ owl:unionOf (:B :C) ] .",
        ":A SubClassOf :B or :C",
        ":B or :C on the right: a rule cannot leave a choice open",
        [],
    ),
    "union, both ways": (
        ":A owl:unionOf (:B :C) .",
        ":A EquivalentTo :B or :C",
        ":B or :C on the right: a rule cannot leave a choice open",
        [":A[?x] :- :B[?x]", ":A[?x] :- :C[?x]"],
    ),
    "disjoint union": (
        ":A owl:disjointUnionOf (:B :C) .",
        ":A DisjointUnionOf :B, :C",
        ":B or :C on the right: a rule cannot leave a choice open",
        [":A[?x] :- :B[?x]", ":A[?x] :- :C[?x]", 'inconsistency("cax-adc", ?x, ?x) :- :B[?x], :C[?x]'],
    ),
    "one of several on the right": (
        ":A rdfs:subClassOf [ owl:oneOf (:i :j) ] .",
        ":A SubClassOf {:i, :j}",
        "{:i, :j} on the right: a rule cannot leave a choice open",
        [],
    ),
    "negation on the left": (
        "[ owl:complementOf :A ] rdfs:subClassOf :B .",
        "not :A SubClassOf :B",
        "not :A on the left: no fact says that something is missing",
        [],
    ),
    "negation in a union on the left": (
        "[ owl:unionOf (:A [ owl:complementOf :C ]) ] rdfs:subClassOf :B .",
        ":A or (not :C) SubClassOf :B",
        "not :C on the left: no fact says that something is missing",
        [":B[?x] :- :A[?x]"],
    ),
    "all values on the left": (
        "[ owl:onProperty :p ; owl:allValuesFrom :A ] rdfs:subClassOf :B .",
        ":p only :A SubClassOf :B",
        ":p only :A on the left: no fact says that something is missing",
        [],
    ),
    "at most two": (
        ":A rdfs:subClassOf [ owl:onProperty :p ; owl:maxCardinality 2 ] .",
        ":A SubClassOf :p max 2",
        ":p max 2 on the right: rules count to one",
        [],
    ),
    "at least two on the left": (
        "[ owl:onProperty :p ; owl:minCardinality 2 ] rdfs:subClassOf :A .",
        ":p min 2 SubClassOf :A",
        ":p min 2 on the left: rules count to one",
        [],
    ),
    "exactly one": (
        ":A rdfs:subClassOf [ owl:onProperty :p ; owl:cardinality 1 ] .",
        ":A SubClassOf :p exactly 1",
        ":p min 1 on the right: a rule cannot make up an individual",
        ["owl:sameAs[?y, ?z] :- :A[?x], :p[?x, ?y], :p[?x, ?z], ?y != ?z"],
    ),
    "exactly one on the left": (
        "[ owl:onProperty :p ; owl:cardinality 1 ] rdfs:subClassOf :A .",
        ":p exactly 1 SubClassOf :A",
        ":p exactly 1 on the left: no fact says that something is missing",
        [],
    ),
    "exactly two": (
        ":A rdfs:subClassOf [ owl:onProperty :p ; owl:cardinality 2 ] .",
        ":A SubClassOf :p exactly 2",
        ":p exactly 2 on the right: rules count to one",
        [],
    ),
    "everything on the left": (
        "owl:Thing rdfs:subClassOf :A .",
        "owl:Thing SubClassOf :A",
        "it is about everything there is, which no fact lists",
        [],
    ),
    "everything related": (
        "owl:topObjectProperty rdfs:subPropertyOf :p .",
        "owl:topObjectProperty SubPropertyOf :p",
        "it is about everything there is, which no fact lists",
        [],
    ),
    "a property that is empty": (
        ":p rdfs:subPropertyOf owl:bottomObjectProperty .",
        ":p SubPropertyOf owl:bottomObjectProperty",
        "a rule cannot say that a property is empty",
        [],
    ),
    "reflexive": (
        ":p a owl:ReflexiveProperty .",
        "Reflexive :p",
        "of individuals that the property relates to nothing: no fact lists them",
        [":p[?x, ?x] :- :p[?x, ?y]", ":p[?y, ?y] :- :p[?x, ?y]"],
    ),
    "datatype restriction": (
        ":p rdfs:range [ a rdfs:Datatype ; owl:onDatatype xsd:integer ; owl:withRestrictions ([ xsd:minInclusive 1 ]) ] .",
        ":p Range […]",
        "a datatype restriction",
        [],
    ),
    "datatype that is not known": (
        ":p rdfs:range xsd:date .",
        ":p Range xsd:date",
        "xsd:date on the right: the values of this datatype are not known",
        [],
    ),
    "datatype of one's own": (
        ":d a rdfs:Datatype . [ owl:onProperty :p ; owl:someValuesFrom :d ] rdfs:subClassOf :A .",
        ":p some :d SubClassOf :A",
        ":d on the left: the values of this datatype are not known",
        [],
    ),
    "restriction on several properties": (
        ":A rdfs:subClassOf [ owl:onProperties (:p :q) ; owl:allValuesFrom :d ] .",
        ":A SubClassOf […]",
        "a restriction on several properties",
        [],
    ),
    "an individual without a name in a rule": (
        ":A rdfs:subClassOf [ owl:onProperty :p ; owl:hasValue [] ] .",
        ":A SubClassOf :p value []",
        "a rule cannot speak of an individual without a name",
        [],
    ),
    "import": (
        "<http://a/> a owl:Ontology ; owl:imports <http://b/> .",
        "Import <http://b/>",
        "is not followed; give its file as well",
        [],
    ),
    "rule of SWRL": (
        "@prefix swrl: <http://www.w3.org/2003/11/swrl#> ."
        ":r a swrl:Imp ; swrl:body () ; swrl:head ([ a swrl:ClassAtom ; swrl:classPredicate :A ; swrl:argument1 :i ]) .",
        "Rule :r",
        "SWRL is not read; write the rule in a .dlog file",
        [],
    ),
    "restriction without property": (
        ":A rdfs:subClassOf [ owl:someValuesFrom :B ] .",
        ":A SubClassOf […]",
        "malformed: no owl:onProperty",
        [],
    ),
    "restriction of two properties": (
        ":A rdfs:subClassOf [ owl:onProperty :p, :q ; owl:allValuesFrom :B ] .",
        ":A SubClassOf […]",
        "malformed: more than one owl:onProperty",
        [],
    ),
    "restriction of nothing": (
        ":A owl:onProperty :p .",
        ":A owl:onProperty :p",
        "malformed: a restriction that restricts nothing",
        [],
    ),
    "two restrictions in one": (
        ":A rdfs:subClassOf [ owl:onProperty :p ; owl:allValuesFrom :B ; owl:hasValue :i ] .",
        ":A SubClassOf […]",
        "malformed: an anonymous class that says more than one thing",
        [],
    ),
    "anonymous class without content": (
        ":A rdfs:subClassOf [] .",
        ":A SubClassOf […]",
        "malformed: an anonymous class that says nothing",
        [],
    ),
    "literal as a class": (
        ':A rdfs:subClassOf "B" .',
        ":A SubClassOf […]",
        "malformed: a literal where a class is expected",
        [],
    ),
    "literal as a property": (
        ':p rdfs:subPropertyOf "q" .',
        ':p rdfs:subPropertyOf "q"',
        "malformed: a literal where a property is expected",
        [],
    ),
    "anonymous property without content": (
        ":p rdfs:subPropertyOf [] .",
        ":p rdfs:subPropertyOf []",
        "malformed: no owl:inverseOf",
        [],
    ),
    "property that is its own inverse expression": (
        "_:p owl:inverseOf _:p ; rdfs:domain :A .",
        "[] rdfs:domain :A",
        "malformed: a property that is its own inverse expression",
        [],
    ),
    "list without end": (
        ":A owl:intersectionOf [ rdf:first :B ] .",
        ":A EquivalentTo […]",
        "malformed: a list with a cell that has no rdf:rest",
        [],
    ),
    "list with two ends": (
        ":p owl:propertyChainAxiom [ rdf:first :q ; rdf:rest (), (:r) ] .",
        ":p owl:propertyChainAxiom []",
        "malformed: a list with a cell that has more than one rdf:rest",
        [],
    ),
    "list that contains itself": (
        ":A owl:unionOf _:l . _:l rdf:first :B ; rdf:rest _:l .",
        ":A EquivalentTo […]",
        "malformed: a list that contains itself",
        [],
    ),
    "expression that contains itself": (
        ":A rdfs:subClassOf _:c . _:c owl:complementOf _:c .",
        ":A SubClassOf […]",
        "malformed: an expression that contains itself",
        [],
    ),
    "cardinality that is no number": (
        ':A rdfs:subClassOf [ owl:onProperty :p ; owl:maxCardinality "one" ] .',
        ":A SubClassOf […]",
        "malformed: a cardinality that is no number",
        [],
    ),
    "qualified cardinality without class": (
        ":A rdfs:subClassOf [ owl:onProperty :p ; owl:maxQualifiedCardinality 1 ] .",
        ":A SubClassOf […]",
        "malformed: a cardinality with too many or too few classes to count",
        [],
    ),
    "self that is false": (
        ":A rdfs:subClassOf [ owl:onProperty :p ; owl:hasSelf false ] .",
        ":A SubClassOf […]",
        "malformed: owl:hasSelf that is not true",
        [],
    ),
    "key of nothing": (":A owl:hasKey () .", ":A owl:hasKey rdf:nil", "malformed: a key of no properties", []),
    "chain of nothing": (
        ":p owl:propertyChainAxiom () .",
        ":p owl:propertyChainAxiom rdf:nil",
        "malformed: a chain of no properties",
        [],
    ),
    "members of nothing": (
        "[] owl:members (:A :B) .",
        "[] owl:members []",
        "malformed: members that are not said to be different or disjoint",
        [],
    ),
    "different without members": ("[] a owl:AllDifferent .", "[] rdf:type owl:AllDifferent", "malformed: no owl:members", []),
    "negative assertion without target": (
        "[] a owl:NegativePropertyAssertion ; owl:sourceIndividual :i ; owl:assertionProperty :p .",
        "[] rdf:type owl:NegativePropertyAssertion",
        "malformed: no owl:targetValue",
        [],
    ),
    "a word that OWL does not have": (
        ":A owl:subClassOf :B .",
        ":A owl:subClassOf :B",
        "malformed: no word of OWL 2 for an axiom",
        [],
    ),
    "a class that OWL does not have": (
        ":p a owl:FunctionProperty .",
        ":p rdf:type owl:FunctionProperty",
        "malformed: no class of OWL 2",
        [],
    ),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_what_falls_outside_is_listed_and_the_rest_compiled(name: str) -> None:
    text, axiom, reason, rules = OUTSIDE[name]
    ontology = compiled(text)
    assert outside_of(ontology) == [(axiom, reason)]
    assert rules_of(ontology) == rules
    assert facts_of(ontology) == []


def test_the_order_of_triples_does_not_matter() -> None:
    everything = [text for text, *_ in (*INSIDE.values(), *OUTSIDE.values())]
    want = compiled("\n".join(everything).replace("_:", "_:x"))
    for seed in range(3):
        Random(seed).shuffle(everything)
        got = compiled("\n".join(everything).replace("_:", "_:y"))
        assert str(got) == str(want)
        assert got.outside == want.outside


def test_of_two_expressions_that_contain_each_other_neither_is_read() -> None:
    circle = ":A rdfs:subClassOf _:a . :B rdfs:subClassOf _:b . _:a owl:complementOf _:b . _:b owl:complementOf _:a ."
    reason = "malformed: an expression that contains itself"
    assert outside_of(compiled(circle)) == [(":A SubClassOf […]", reason), (":B SubClassOf […]", reason)]


def test_unions_that_multiply_past_the_limit_are_listed() -> None:
    pair = "[ owl:unionOf (:A{0} :B{0}) ]"
    ten = " ".join(pair.format(n) for n in range(10))
    ontology = compiled(f"[ owl:intersectionOf ({ten}) ] rdfs:subClassOf :C .")
    assert [item.reason for item in ontology.outside] == [
        "its unions multiply to more than 1,000 rules; give some of them names"
    ]
    assert not ontology.rules
    many = " ".join(f":A{n}" for n in range(MOST_BODIES + 1))
    assert len(compiled(f"[ owl:intersectionOf (:B [ owl:unionOf ({many}) ]) ] rdfs:subClassOf :C .").rules) == MOST_BODIES + 1


def test_expressions_that_nest_or_unfold_without_end_are_listed() -> None:
    deep = ":A rdfs:subClassOf " + "[ owl:onProperty :p ; owl:allValuesFrom " * 101 + ":B" + " ]" * 101 + " ."
    assert [item.reason for item in compiled(deep).outside] == ["malformed: nested deeper than 100 levels"]
    wide = "\n".join(f"_:c{n} owl:intersectionOf (_:c{n + 1} _:c{n + 1}) ." for n in range(40))
    ontology = compiled(f":A rdfs:subClassOf _:c0 . {wide} _:c40 owl:complementOf :B .")
    assert {item.reason for item in ontology.outside} == {"malformed: more than 100,000 parts"}
