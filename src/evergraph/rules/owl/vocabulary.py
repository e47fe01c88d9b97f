"""The terms of OWL 2 in RDF, sorted by what the compiler does with them.

From W3C, "OWL 2 Web Ontology Language: Mapping to RDF Graphs (Second Edition)". Trap: a predicate of the OWL namespace that
is in none of these sets is listed as outside, so that a slip such as `owl:subClassOf` is not taken for a fact.
"""

from __future__ import annotations

from evergraph.rules.model import OWL, RDF, RDFS, XSD
from evergraph.values import SPACES


def owl(name: str) -> str:
    return f"<{OWL}{name}>"


def name_of(iri: str) -> str:
    """The name of a term of OWL without its namespace."""
    return iri[len(OWL) + 1 : -1]


def _rdfs(name: str) -> str:
    return f"<{RDFS}{name}>"


FIRST, REST, NIL, LANGUAGE_RANGE = (f"<{RDF}{name}>" for name in ("first", "rest", "nil", "langRange"))
SUB_CLASS, SUB_PROPERTY, DOMAIN, RANGE = map(_rdfs, ("subClassOf", "subPropertyOf", "domain", "range"))
SAME, DIFFERENT, INVERSE, IMPORTS = map(owl, ("sameAs", "differentFrom", "inverseOf", "imports"))
ON_PROPERTY, ON_CLASS, ON_DATA_RANGE = map(owl, ("onProperty", "onClass", "onDataRange"))
THING, NOTHING, LITERAL = owl("Thing"), owl("Nothing"), _rdfs("Literal")
TOPS = {owl("topObjectProperty"), owl("topDataProperty")}
BOTTOMS = {owl("bottomObjectProperty"), owl("bottomDataProperty")}

CARDINALITIES = {
    owl("minCardinality"): "min",
    owl("maxCardinality"): "max",
    owl("cardinality"): "exactly",
    owl("minQualifiedCardinality"): "min",
    owl("maxQualifiedCardinality"): "max",
    owl("qualifiedCardinality"): "exactly",
}
_BOOLEANS = map(owl, ("intersectionOf", "unionOf", "complementOf", "oneOf", "datatypeComplementOf", "onDatatype"))
_RESTRICTIONS = map(owl, ("someValuesFrom", "allValuesFrom", "hasValue", "hasSelf"))
CONSTRUCTORS = (*_BOOLEANS, *_RESTRICTIONS, *CARDINALITIES)
"""A node with one of these is a class expression or a data range."""
EXPRESSION_PARTS = {*CONSTRUCTORS, *map(owl, ("onProperties", "withRestrictions")), ON_PROPERTY, ON_CLASS, ON_DATA_RANGE}

ANNOTATED = {owl(name) for name in ("Ontology", "Axiom", "Annotation")}
"""Nodes that are about the ontology or about its axioms."""
ANNOTATIONS = {_rdfs(name) for name in ("label", "comment", "seeAlso", "isDefinedBy")} | {
    owl(name)
    for name in ("versionInfo", "deprecated", "priorVersion", "backwardCompatibleWith", "incompatibleWith", "versionIRI")
}
ANNOTATION_PROPERTY = owl("AnnotationProperty")
DATATYPES = {_rdfs("Datatype"), owl("DataRange")}
DECLARATIONS = (
    {ANNOTATION_PROPERTY, THING, *DATATYPES, *ANNOTATED}
    | {owl(name) for name in ("Class", "Restriction", "ObjectProperty", "DatatypeProperty", "OntologyProperty")}
    | {owl(name) for name in ("NamedIndividual", "DeprecatedClass", "DeprecatedProperty")}
    | {_rdfs("Class"), _rdfs("ContainerMembershipProperty"), f"<{RDF}Property>", f"<{RDF}List>"}
)
"""Classes whose membership says what kind of thing a term is, or nothing."""

MEMBERS = (owl("members"), owl("distinctMembers"))
NEGATIVE = owl("NegativePropertyAssertion")
SOURCE, ASSERTED, TARGET, TARGET_VALUE = map(owl, ("sourceIndividual", "assertionProperty", "targetIndividual", "targetValue"))

SWRL = "<http://www.w3.org/2003/11/swrl#"
SWRL_RULE = f"{SWRL}Imp>"

KNOWN_DATATYPES = {f"<{XSD}{name}>" for name in SPACES}
"""Datatypes whose values the built-ins `DATATYPE` and `ILLTYPED` know."""
_OTHER_DATATYPES = {f"<{RDF}{name}>" for name in ("langString", "PlainLiteral", "XMLLiteral", "HTML")}


def is_datatype(iri: str) -> bool:
    """Whether an IRI is a datatype by its name alone."""
    return iri.startswith(f"<{XSD}") or iri in _OTHER_DATATYPES or iri in (LITERAL, owl("real"), owl("rational"))
