"""Ontologies as rules: what each construct of OWL 2 gives, exactly; assertions; the examples of the paper."""

from __future__ import annotations

import pytest

from evergraph import Program
from ontologies import HEADER, compiled, facts_of, outside_of, rules_of

SOME = "[ owl:onProperty :p ; owl:someValuesFrom :B ]"
INSIDE = {
    "subclass": (":A rdfs:subClassOf :B .", [":B[?x] :- :A[?x]"]),
    "equivalent classes": (":A owl:equivalentClass :B .", [":B[?x] :- :A[?x]", ":A[?x] :- :B[?x]"]),
    "intersection on the left": ("[ owl:intersectionOf (:A :B) ] rdfs:subClassOf :C .", [":C[?x] :- :A[?x], :B[?x]"]),
    "intersection on the right": (
        ":C rdfs:subClassOf [ owl:intersectionOf (:A :B) ] .",
        [":A[?x] :- :C[?x]", ":B[?x] :- :C[?x]"],
    ),
    "union on the left": ("[ owl:unionOf (:A :B) ] rdfs:subClassOf :C .", [":C[?x] :- :A[?x]", ":C[?x] :- :B[?x]"]),
    "intersection of unions on the left": (
        "[ owl:intersectionOf ([ owl:unionOf (:A :B) ] [ owl:unionOf (:D :E) ]) ] rdfs:subClassOf :C .",
        [":C[?x] :- :A[?x], :D[?x]", ":C[?x] :- :A[?x], :E[?x]", ":C[?x] :- :B[?x], :D[?x]", ":C[?x] :- :B[?x], :E[?x]"],
    ),
    "intersection or union of one or none": (
        ":A rdfs:subClassOf [ owl:unionOf (:B) ], [ owl:unionOf () ], [ owl:intersectionOf () ] .",
        [":B[?x] :- :A[?x]", 'inconsistency("cls-nothing2", ?x, ?x) :- :A[?x]'],
    ),
    "some values on the left": (f"{SOME} rdfs:subClassOf :A .", [":A[?x] :- :p[?x, ?y], :B[?y]"]),
    "some values of anything": (
        "[ owl:onProperty :p ; owl:someValuesFrom owl:Thing ] rdfs:subClassOf :A .",
        [":A[?x] :- :p[?x, ?y]"],
    ),
    "some values of some values": (
        f"[ owl:onProperty :q ; owl:someValuesFrom {SOME} ] rdfs:subClassOf :A .",
        [":A[?x] :- :q[?x, ?y], :p[?y, ?z], :B[?z]"],
    ),
    "some values, which can only be one, on the right": (
        ":A rdfs:subClassOf [ owl:onProperty :p ; owl:someValuesFrom [ owl:oneOf (:i) ] ] .",
        [":p[?x, :i] :- :A[?x]"],
    ),
    "all values on the right": (
        ":A rdfs:subClassOf [ owl:onProperty :p ; owl:allValuesFrom :B ] .",
        [":B[?y] :- :A[?x], :p[?x, ?y]"],
    ),
    "all values of all values": (
        ":A rdfs:subClassOf [ owl:onProperty :p ; owl:allValuesFrom [ owl:onProperty :q ; owl:allValuesFrom :B ] ] .",
        [":B[?z] :- :A[?x], :p[?x, ?y], :q[?y, ?z]"],
    ),
    "all values are nothing": (
        ":A rdfs:subClassOf [ owl:onProperty :p ; owl:allValuesFrom owl:Nothing ] .",
        ['inconsistency("cls-nothing2", ?y, ?y) :- :A[?x], :p[?x, ?y]'],
    ),
    "a value on both sides": (
        ":A owl:equivalentClass [ owl:onProperty :p ; owl:hasValue 1 ] .",
        [":p[?x, 1] :- :A[?x]", ":A[?x] :- :p[?x, 1]"],
    ),
    "one of several, as a filler": (
        "[ owl:onProperty :p ; owl:someValuesFrom [ owl:oneOf (:i :j) ] ] rdfs:subClassOf :A .",
        [":A[?x] :- :p[?x, :i]", ":A[?x] :- :p[?x, :j]"],
    ),
    "one of several, who is something else too": (
        "[ owl:intersectionOf (:A [ owl:oneOf (:i) ]) ] rdfs:subClassOf :B .",
        [":B[:i] :- :A[:i]"],
    ),
    "one who is two": (
        "[ owl:intersectionOf ([ owl:oneOf (:i) ] [ owl:oneOf (:j) ]) ] rdfs:subClassOf :B .",
        [":B[:i] :- owl:sameAs[:i, :j]"],
    ),
    "the only one on the right": (":A rdfs:subClassOf [ owl:oneOf (:i) ] .", ["owl:sameAs[?x, :i] :- :A[?x], ?x != :i"]),
    "complement on the right": (
        ":A rdfs:subClassOf [ owl:complementOf :B ] .",
        ['inconsistency("cls-com", ?x, ?x) :- :A[?x], :B[?x]'],
    ),
    "complement of a union on the right": (
        ":A rdfs:subClassOf [ owl:complementOf [ owl:unionOf (:B :C) ] ] .",
        ['inconsistency("cls-com", ?x, ?x) :- :A[?x], :B[?x]', 'inconsistency("cls-com", ?x, ?x) :- :A[?x], :C[?x]'],
    ),
    "nothing on the right": (":A rdfs:subClassOf owl:Nothing .", ['inconsistency("cls-nothing2", ?x, ?x) :- :A[?x]']),
    "nothing on the left, anything on the right": ("owl:Nothing rdfs:subClassOf :A . :A rdfs:subClassOf owl:Thing .", []),
    "everything, bound on the right": (
        "owl:Thing rdfs:subClassOf [ owl:onProperty :p ; owl:allValuesFrom :B ] .",
        [":B[?y] :- :p[?x, ?y]"],
    ),
    "itself on both sides": (
        ":A owl:equivalentClass [ owl:onProperty :p ; owl:hasSelf true ] .",
        [":p[?x, ?x] :- :A[?x]", ":A[?x] :- :p[?x, ?x]"],
    ),
    "at most one": (
        ':A rdfs:subClassOf [ owl:onProperty :p ; owl:maxCardinality "1"^^xsd:nonNegativeInteger ] .',
        ["owl:sameAs[?y, ?z] :- :A[?x], :p[?x, ?y], :p[?x, ?z], ?y != ?z"],
    ),
    "at most one of a class": (
        ":A rdfs:subClassOf [ owl:onProperty :p ; owl:maxQualifiedCardinality 1 ; owl:onClass :B ] .",
        ["owl:sameAs[?y, ?z] :- :A[?x], :p[?x, ?y], :B[?y], :p[?x, ?z], :B[?z], ?y != ?z"],
    ),
    "at most one of two": (
        ":A rdfs:subClassOf [ owl:onProperty :p ; owl:maxQualifiedCardinality 1 ; owl:onClass [ owl:oneOf (:i :j) ] ] .",
        ["owl:sameAs[:i, :j] :- :A[?x], :p[?x, :i], :p[?x, :j]", "owl:sameAs[:j, :i] :- :A[?x], :p[?x, :j], :p[?x, :i]"],
    ),
    "none": (
        ":A rdfs:subClassOf [ owl:onProperty :p ; owl:maxCardinality 0 ] .",
        ['inconsistency("cls-maxc1", ?x, ?y) :- :A[?x], :p[?x, ?y]'],
    ),
    "none of a class": (
        ":A rdfs:subClassOf [ owl:onProperty :p ; owl:maxQualifiedCardinality 0 ; owl:onClass :B ] .",
        ['inconsistency("cls-maxqc1", ?x, ?y) :- :A[?x], :p[?x, ?y], :B[?y]'],
    ),
    "none of anything": (
        ":A rdfs:subClassOf [ owl:onProperty :p ; owl:qualifiedCardinality 0 ; owl:onClass owl:Thing ] .",
        ['inconsistency("cls-maxqc2", ?x, ?y) :- :A[?x], :p[?x, ?y]'],
    ),
    "at least one on the left": (
        "[ owl:onProperty :p ; owl:minQualifiedCardinality 1 ; owl:onClass :B ] rdfs:subClassOf :A .",
        [":A[?x] :- :p[?x, ?y], :B[?y]"],
    ),
    "at least none": (
        "[ owl:intersectionOf (:A [ owl:onProperty :p ; owl:minCardinality 0 ]) ] rdfs:subClassOf :B ."
        ":A rdfs:subClassOf [ owl:onProperty :p ; owl:minCardinality 0 ] .",
        [":B[?x] :- :A[?x]"],
    ),
    "exactly one of a functional property on the left": (
        ":p a owl:FunctionalProperty . [ owl:onProperty :p ; owl:cardinality 1 ] rdfs:subClassOf :A .",
        [":A[?x] :- :p[?x, ?y]", "owl:sameAs[?y, ?z] :- :p[?x, ?y], :p[?x, ?z], ?y != ?z"],
    ),
    "at most two of a functional property on the left": (
        ":p a owl:InverseFunctionalProperty ."
        "[ owl:intersectionOf (:B [ owl:onProperty [ owl:inverseOf :p ] ; owl:maxCardinality 2 ]) ] rdfs:subClassOf :A .",
        [":A[?x] :- :B[?x]", "owl:sameAs[?y, ?z] :- :p[?y, ?x], :p[?z, ?x], ?y != ?z"],
    ),
    "disjoint classes": (":A owl:disjointWith :B .", ['inconsistency("cax-dw", ?x, ?x) :- :A[?x], :B[?x]']),
    "all disjoint classes": (
        "[] a owl:AllDisjointClasses ; owl:members (:A :B :C) .",
        [
            'inconsistency("cax-adc", ?x, ?x) :- :A[?x], :B[?x]',
            'inconsistency("cax-adc", ?x, ?x) :- :A[?x], :C[?x]',
            'inconsistency("cax-adc", ?x, ?x) :- :B[?x], :C[?x]',
        ],
    ),
    "key": (
        ":A owl:hasKey (:p :q) .",
        ["owl:sameAs[?x, ?y] :- :A[?x], :p[?x, ?z], :q[?x, ?u], :A[?y], :p[?y, ?z], :q[?y, ?u], ?x != ?y"],
    ),
    "a class that is its own definition": (":A owl:unionOf (:B) .", [":B[?x] :- :A[?x]", ":A[?x] :- :B[?x]"]),
    "domain": (":p rdfs:domain :A .", [":A[?x] :- :p[?x, ?y]"]),
    "domain of an expression": (
        ":p rdfs:domain [ owl:onProperty :q ; owl:allValuesFrom :A ] .",
        [":A[?z] :- :p[?x, ?y], :q[?x, ?z]"],
    ),
    "range": (":p rdfs:range :A .", [":A[?y] :- :p[?x, ?y]"]),
    "range of an expression": (
        ":p rdfs:range [ owl:intersectionOf (:A [ owl:complementOf :B ]) ] .",
        [":A[?y] :- :p[?x, ?y]", 'inconsistency("cls-com", ?y, ?y) :- :p[?x, ?y], :B[?y]'],
    ),
    "range of a datatype": (
        ":p rdfs:range xsd:integer .",
        ['inconsistency("dt-not-type", ?y, xsd:integer) :- :p[?x, ?y], ILLTYPED(?y, xsd:integer)'],
    ),
    "range of all literals": (":p rdfs:range rdfs:Literal .", []),
    "a datatype on the left": (
        "[ owl:onProperty :p ; owl:someValuesFrom xsd:integer ] rdfs:subClassOf :A .",
        [":A[?x] :- :p[?x, ?y], DATATYPE(?y, xsd:integer)"],
    ),
    "subproperty": (":p rdfs:subPropertyOf :q .", [":q[?x, ?y] :- :p[?x, ?y]"]),
    "subproperty of everything": (":p rdfs:subPropertyOf owl:topObjectProperty .", []),
    "equivalent properties": (":p owl:equivalentProperty :q .", [":q[?x, ?y] :- :p[?x, ?y]", ":p[?x, ?y] :- :q[?x, ?y]"]),
    "inverse properties": (":p owl:inverseOf :q .", [":q[?y, ?x] :- :p[?x, ?y]", ":p[?y, ?x] :- :q[?x, ?y]"]),
    "inverse in a restriction": (
        "[ owl:onProperty [ owl:inverseOf :p ] ; owl:someValuesFrom :B ] rdfs:subClassOf :A .",
        [":A[?x] :- :p[?y, ?x], :B[?y]"],
    ),
    "inverse as a superproperty": (":p rdfs:subPropertyOf [ owl:inverseOf :q ] .", [":q[?y, ?x] :- :p[?x, ?y]"]),
    "inverse of an inverse": ("[ owl:inverseOf [ owl:inverseOf :p ] ] rdfs:range :A .", [":A[?y] :- :p[?x, ?y]"]),
    "chain": (":p owl:propertyChainAxiom (:q :r :s) .", [":p[?x, ?u] :- :q[?x, ?y], :r[?y, ?z], :s[?z, ?u]"]),
    "chain of inverses": (
        ":p owl:propertyChainAxiom (:q [ owl:inverseOf :r ]) .",
        [":p[?x, ?z] :- :q[?x, ?y], :r[?z, ?y]"],
    ),
    "long chain": (
        ":p owl:propertyChainAxiom (:q :q :q :q :q :q :q) .",
        [":p[?x, ?y1] :- :q[?x, ?y], :q[?y, ?z], :q[?z, ?u], :q[?u, ?v], :q[?v, ?w], :q[?w, ?x1], :q[?x1, ?y1]"],
    ),
    "disjoint properties": (
        ":p owl:propertyDisjointWith :q .",
        ['inconsistency("prp-pdw", ?x, ?y) :- :p[?x, ?y], :q[?x, ?y]'],
    ),
    "all disjoint properties": (
        "[] a owl:AllDisjointProperties ; owl:members (:p [ owl:inverseOf :q ]) .",
        ['inconsistency("prp-adp", ?x, ?y) :- :p[?x, ?y], :q[?y, ?x]'],
    ),
    "functional": (":p a owl:FunctionalProperty .", ["owl:sameAs[?y, ?z] :- :p[?x, ?y], :p[?x, ?z], ?y != ?z"]),
    "inverse functional": (":p a owl:InverseFunctionalProperty .", ["owl:sameAs[?y, ?z] :- :p[?y, ?x], :p[?z, ?x], ?y != ?z"]),
    "symmetric": (":p a owl:SymmetricProperty .", [":p[?y, ?x] :- :p[?x, ?y]"]),
    "asymmetric": (":p a owl:AsymmetricProperty .", ['inconsistency("prp-asyp", ?x, ?y) :- :p[?x, ?y], :p[?y, ?x]']),
    "transitive": (":p a owl:TransitiveProperty .", [":p[?x, ?z] :- :p[?x, ?y], :p[?y, ?z]"]),
    "irreflexive": (":p a owl:IrreflexiveProperty .", ['inconsistency("prp-irp", ?x, ?x) :- :p[?x, ?x]']),
    "different individuals": (
        ":i owl:differentFrom :j .",
        ['inconsistency("eq-diff1", :i, :j) :- owl:sameAs[:i, :j]', 'inconsistency("eq-diff1", :j, :i) :- owl:sameAs[:j, :i]'],
    ),
    "all different": (
        "[] a owl:AllDifferent ; owl:members (:i :j) . [] a owl:AllDifferent ; owl:distinctMembers (:k :l) .",
        [
            'inconsistency("eq-diff2", :i, :j) :- owl:sameAs[:i, :j]',
            'inconsistency("eq-diff2", :j, :i) :- owl:sameAs[:j, :i]',
            'inconsistency("eq-diff3", :k, :l) :- owl:sameAs[:k, :l]',
            'inconsistency("eq-diff3", :l, :k) :- owl:sameAs[:l, :k]',
        ],
    ),
    "negative assertions": (
        "[] a owl:NegativePropertyAssertion ; owl:sourceIndividual :i ; owl:assertionProperty :p ; owl:targetIndividual :j ."
        "[] owl:sourceIndividual :i ; owl:assertionProperty :p ; owl:targetValue 1 .",
        ['inconsistency("prp-npa2", :i, 1) :- :p[:i, 1]', 'inconsistency("prp-npa1", :i, :j) :- :p[:i, :j]'],
    ),
    "an individual of an expression": (
        ":i a [ owl:onProperty :p ; owl:allValuesFrom :A ] .",
        [":A[?x] :- :p[:i, ?x]"],
    ),
    "what goes without saying": (":A rdfs:subClassOf :A . :p rdfs:subPropertyOf :p .", []),
    "what is said twice": (":A rdfs:subClassOf :B ; owl:equivalentClass :B .", [":B[?x] :- :A[?x]", ":A[?x] :- :B[?x]"]),
}


@pytest.mark.parametrize("name", INSIDE)
def test_what_a_construct_gives(name: str) -> None:
    text, rules = INSIDE[name]
    ontology = compiled(text)
    assert rules_of(ontology) == rules
    assert outside_of(ontology) == []
    assert Program.parse(str(ontology)) == ontology


def test_volz_table_1() -> None:
    ontology = compiled(
        ":hasChild rdfs:subPropertyOf :inDynasty . :inDynasty a owl:TransitiveProperty, owl:SymmetricProperty ."
    )
    assert rules_of(ontology) == [
        ":inDynasty[?x, ?y] :- :hasChild[?x, ?y]",
        ":inDynasty[?y, ?x] :- :inDynasty[?x, ?y]",
        ":inDynasty[?x, ?z] :- :inDynasty[?x, ?y], :inDynasty[?y, ?z]",
    ]
    assert [r.name for r in ontology.rules] == [
        ":hasChild SubPropertyOf :inDynasty",
        "Symmetric :inDynasty",
        "Transitive :inDynasty",
    ]


WINE = "[ owl:intersectionOf (:PotableLiquid [ owl:onProperty :hasMaker ; owl:{} :Winery ]) ]"


def test_volz_section_2_2_wine_gives_what_follows_from_the_axiom() -> None:
    """The paper prints one rule more, which makes wine of what a winery made: that is in the equivalence below."""
    ontology = compiled(f":Wine rdfs:subClassOf {WINE.format('allValuesFrom')} .")
    assert rules_of(ontology) == [":PotableLiquid[?x] :- :Wine[?x]", ":Winery[?y] :- :Wine[?x], :hasMaker[?x, ?y]"]
    assert not ontology.outside


def test_volz_section_2_2_the_first_rule_of_wine_is_that_of_an_equivalence() -> None:
    ontology = compiled(f":Wine owl:equivalentClass {WINE.format('someValuesFrom')} .")
    assert rules_of(ontology) == [
        ":PotableLiquid[?x] :- :Wine[?x]",
        ":Wine[?x] :- :PotableLiquid[?x], :hasMaker[?x, ?y], :Winery[?y]",
    ]
    assert len(ontology.outside) == 1


# -- assertions --------------------------------------------------------------------------------------------------------


def test_assertions_are_facts_and_annotations_are_not() -> None:
    ontology = compiled(
        """
        <http://o/> a owl:Ontology ; :creator "Ann" ; owl:versionInfo "1" .
        :A a owl:Class ; rdfs:label "A" ; :note "n" ; :weight 1 . :note a owl:AnnotationProperty ; rdfs:range xsd:date .
        :i a :A, owl:NamedIndividual, owl:Thing ; :p :j, "x"@en ; owl:sameAs :k .
        :A rdfs:subClassOf :B . [] a owl:Axiom ; owl:annotatedSource :A ; owl:annotatedProperty rdfs:subClassOf ;
            owl:annotatedTarget :B ; rdfs:comment "why" ; :p :q .
        :B rdfs:subClassOf [ a owl:Restriction, :Odd ; owl:onProperty :p ; owl:allValuesFrom :A ; :p :q ] .
        """
    )
    assert facts_of(ontology) == [
        ":weight[:A, 1]",
        ':p[:i, "x"@en]',
        ":p[:i, :j]",
        ":A[:i]",
        "owl:sameAs[:i, :k]",
    ]
    assert rules_of(ontology) == [":B[?x] :- :A[?x]", ":A[?y] :- :B[?x], :p[?x, ?y]"]
    assert not ontology.outside


def test_axioms_about_named_individuals_come_down_to_facts() -> None:
    ontology = compiled(
        "[ owl:oneOf (:i :j) ] rdfs:subClassOf :A . :i a [ owl:onProperty :p ; owl:hasValue :j ], owl:Nothing ."
        "[ owl:oneOf (:i) ] rdfs:subClassOf [ owl:oneOf (:j) ] ."
    )
    assert facts_of(ontology) == [
        ":p[:i, :j]",
        ":A[:i]",
        "owl:sameAs[:i, :j]",
        ":A[:j]",
        'inconsistency("cls-nothing2", :i, :i)',
    ]
    assert rules_of(ontology) == []


def test_an_annotation_property_that_is_also_an_object_property_makes_assertions() -> None:
    assert facts_of(compiled(":p a owl:AnnotationProperty, owl:ObjectProperty . :i :p :j .")) == [":p[:i, :j]"]


def test_individuals_without_names_are_called_by_what_is_said_of_them() -> None:
    one, other = compiled("[] :p [ a :A ], [ a :B ] ."), compiled("_:c a :B . _:a :p _:c, _:b . _:b a :A .")
    assert one == other
    assert len({fact.terms[0] for fact in one.facts}) == 3


def test_two_individuals_of_whom_the_same_is_said_stay_two() -> None:
    assert len(compiled(":i :p [ a :A ], [ a :A ] .").facts) == 4


def test_the_same_blank_node_in_two_files_is_two() -> None:
    assert len(compiled("_:b a :A ; :p :i .", "_:b a :B .").facts) == 3
    assert len({f.terms[0] for f in compiled("_:b a :A ; :p :i .", "_:b a :B .").facts}) == 2


# -- the whole ---------------------------------------------------------------------------------------------------------


def test_several_files_are_one_ontology() -> None:
    ontology = compiled(
        "<http://a/> a owl:Ontology ; owl:imports <http://b/> . :A rdfs:subClassOf :B .",
        "<http://b/> a owl:Ontology . :A rdfs:subClassOf :B .",
    )
    assert rules_of(ontology) == [":B[?x] :- :A[?x]"]
    assert not ontology.outside


def test_a_prefix_that_rules_cannot_write_is_not_used() -> None:
    ontology = compiled(
        "@prefix a.b: <http://example.org/> . @prefix owl: <http://example.org/> . a.b:A rdfs:subClassOf owl:B ."
    )
    assert Program.parse(str(ontology)) == ontology
    assert HEADER.splitlines()[0].split()[1] in ontology.rules[0].name
