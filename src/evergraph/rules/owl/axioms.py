"""The axioms of OWL 2, one function each: operands in, rules and what falls outside collected in `Sides`.

Most are a class inclusion in disguise, and are compiled as the one that they stand for: `p Domain C` is `p some owl:Thing ⊑ C`,
`p Range C` is `owl:Thing ⊑ p only C`, `Functional p` is `owl:Thing ⊑ p max 1`. The others are about properties: a chain of
properties in the body, one in the head, where an inverse swaps its two arguments.

Trap: disjointness and difference of n members are n(n-1)/2 pairs, so that many rules. They are of one shape, which engines
evaluate as one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, pairwise
from typing import Protocol

from evergraph.rules.model import TRIPLE, Atom
from evergraph.rules.owl.expressions import EVERYTHING, Count, Expression, OneOf, Only, Or, Property, Some
from evergraph.rules.owl.finish import Body, atom, inconsistency
from evergraph.rules.owl.sides import Sides
from evergraph.rules.owl.triples import Malformed, Triples
from evergraph.rules.owl.vocabulary import (
    ASSERTED,
    DIFFERENT,
    DOMAIN,
    INVERSE,
    MEMBERS,
    RANGE,
    SAME,
    SOURCE,
    SUB_CLASS,
    SUB_PROPERTY,
    TARGET,
    TARGET_VALUE,
    owl,
)


class Reader(Protocol):
    """What an axiom needs of the ontology it is in."""

    triples: Triples

    def class_of(self, node: str) -> Expression: ...
    def property_of(self, node: str) -> Property: ...
    def name(self, term: str) -> str: ...
    def show(self, expression: Expression) -> str: ...
    def show_property(self, property_: Property) -> str: ...
    def axiom(self, text: str) -> Sides:
        """A new axiom of this text."""


# -- classes -----------------------------------------------------------------------------------------------------------


def sub_class(reader: Reader, subject: str, value: str) -> None:
    left, right = reader.class_of(subject), reader.class_of(value)
    reader.axiom(f"{reader.show(left)} SubClassOf {reader.show(right)}").implies(left, right)


def equivalent_classes(reader: Reader, subject: str, value: str) -> None:
    equivalent(reader, reader.class_of(subject), reader.class_of(value))


def equivalent(reader: Reader, left: Expression, right: Expression) -> None:
    axiom = reader.axiom(f"{reader.show(left)} EquivalentTo {reader.show(right)}")
    axiom.implies(left, right)
    axiom.implies(right, left)


def disjoint_classes(reader: Reader, subject: str, value: str) -> None:
    left, right = reader.class_of(subject), reader.class_of(value)
    reader.axiom(f"{reader.show(left)} DisjointWith {reader.show(right)}").clash("cax-dw", left, right)


def disjoint_union(reader: Reader, subject: str, value: str) -> None:
    whole, parts = reader.class_of(subject), [reader.class_of(item) for item in reader.triples.items(value)]
    axiom = reader.axiom(f"{reader.show(whole)} DisjointUnionOf {', '.join(map(reader.show, parts))}")
    axiom.implies(Or(tuple(parts)), whole)
    axiom.implies(whole, Or(tuple(parts)))
    for pair in combinations(parts, 2):
        axiom.clash("cax-adc", *pair)


def all_disjoint_classes(reader: Reader, subject: str) -> None:
    parts = [reader.class_of(item) for item in _members(reader, subject)[1]]
    axiom = reader.axiom(f"DisjointClasses {', '.join(map(reader.show, parts))}")
    for pair in combinations(parts, 2):
        axiom.clash("cax-adc", *pair)


def has_key(reader: Reader, subject: str, value: str) -> None:
    members, keys = reader.class_of(subject), [reader.property_of(item) for item in reader.triples.items(value)]
    if not keys:
        raise Malformed("a key of no properties")
    axiom = reader.axiom(f"{reader.show(members)} HasKey {', '.join(map(reader.show_property, keys))}")
    x, y = axiom.fresh(), axiom.fresh()
    shared = [axiom.fresh() for _ in keys]
    one, other = (Body(tuple(atom(p, v, z) for p, z in zip(keys, shared, strict=True))) for v in (x, y))
    axiom.same(x, y, axiom.both([axiom.body(members, x), [one], axiom.body(members, y), [other]]))


# -- properties --------------------------------------------------------------------------------------------------------


def inverse(property_: Property) -> Property:
    return Property(property_.iri, not property_.inverse)


def leads(axiom: Sides, to: Property, *chain: Property) -> None:
    """Where a chain of properties leads, a property leads."""
    stops = [axiom.fresh() for _ in range(len(chain) + 1)]
    links = tuple(atom(p, x, y) for p, (x, y) in zip(chain, pairwise(stops), strict=True))
    axiom.emit(atom(to, stops[0], stops[-1]), [Body(links)])


def never(axiom: Sides, rule: str, left: Property, right: Property) -> None:
    """No two individuals are related by both."""
    x, y = axiom.fresh(), axiom.fresh()
    axiom.emit(inconsistency(rule, x, y), [Body((atom(left, x, y), atom(right, x, y)))])


def domain(reader: Reader, subject: str, value: str) -> None:
    p, right = reader.property_of(subject), reader.class_of(value)
    reader.axiom(f"{reader.show_property(p)} Domain {reader.show(right)}").implies(Some(p, EVERYTHING), right)


def range_(reader: Reader, subject: str, value: str) -> None:
    p, right = reader.property_of(subject), reader.class_of(value)
    reader.axiom(f"{reader.show_property(p)} Range {reader.show(right)}").implies(EVERYTHING, Only(p, right))


def sub_property(reader: Reader, subject: str, value: str) -> None:
    p, q = reader.property_of(subject), reader.property_of(value)
    leads(reader.axiom(f"{reader.show_property(p)} SubPropertyOf {reader.show_property(q)}"), q, p)


def equivalent_properties(reader: Reader, subject: str, value: str) -> None:
    p, q = reader.property_of(subject), reader.property_of(value)
    axiom = reader.axiom(f"{reader.show_property(p)} EquivalentTo {reader.show_property(q)}")
    leads(axiom, q, p)
    leads(axiom, p, q)


def inverse_properties(reader: Reader, subject: str, value: str) -> None:
    p, q = reader.property_of(subject), reader.property_of(value)
    axiom = reader.axiom(f"{reader.show_property(p)} InverseOf {reader.show_property(q)}")
    leads(axiom, inverse(q), p)
    leads(axiom, inverse(p), q)


def property_chain(reader: Reader, subject: str, value: str) -> None:
    to, chain = reader.property_of(subject), [reader.property_of(item) for item in reader.triples.items(value)]
    if not chain:
        raise Malformed("a chain of no properties")
    leads(reader.axiom(f"{' o '.join(map(reader.show_property, chain))} SubPropertyOf {reader.show_property(to)}"), to, *chain)


def disjoint_properties(reader: Reader, subject: str, value: str) -> None:
    p, q = reader.property_of(subject), reader.property_of(value)
    never(reader.axiom(f"{reader.show_property(p)} DisjointWith {reader.show_property(q)}"), "prp-pdw", p, q)


def all_disjoint_properties(reader: Reader, subject: str) -> None:
    parts = [reader.property_of(item) for item in _members(reader, subject)[1]]
    axiom = reader.axiom(f"DisjointProperties {', '.join(map(reader.show_property, parts))}")
    for p, q in combinations(parts, 2):
        never(axiom, "prp-adp", p, q)


def functional(axiom: Sides, p: Property) -> None:
    axiom.implies(EVERYTHING, Count("max", 1, p, None))


def reflexive(axiom: Sides, p: Property) -> None:
    """Of those that the property relates to anything; of others no fact tells that they are there."""
    x, y = axiom.fresh(), axiom.fresh()
    for z in (x, y):
        axiom.emit(atom(p, z, z), [Body((atom(p, x, y),))])
    axiom.lost["of individuals that the property relates to nothing: no fact lists them"] = None


def irreflexive(axiom: Sides, p: Property) -> None:
    x = axiom.fresh()
    axiom.emit(inconsistency("prp-irp", x, x), [Body((atom(p, x, x),))])


# -- individuals -------------------------------------------------------------------------------------------------------


def different(reader: Reader, subject: str, value: str) -> None:
    _differ(reader.axiom(f"{reader.name(subject)} DifferentFrom {reader.name(value)}"), "eq-diff1", subject, value)


def all_different(reader: Reader, subject: str) -> None:
    predicate, members = _members(reader, subject)
    axiom = reader.axiom(f"DifferentIndividuals {', '.join(map(reader.name, members))}")
    for one, other in combinations(members, 2):
        _differ(axiom, "eq-diff2" if predicate == MEMBERS[0] else "eq-diff3", one, other)


def negative_assertion(reader: Reader, subject: str) -> None:
    said = reader.triples.of(subject)
    source, p = reader.triples.one(subject, SOURCE), reader.property_of(reader.triples.one(subject, ASSERTED))
    target, rule = (TARGET, "prp-npa1") if TARGET in said else (TARGET_VALUE, "prp-npa2")
    value = reader.triples.one(subject, target)
    text = f"not ({reader.name(source)} {reader.show_property(p)} {reader.name(value)})"
    reader.axiom(text).emit(inconsistency(rule, source, value), [Body((atom(p, source, value),))])


def assertion(reader: Reader, subject: str, value: str) -> None:
    """An individual in a class expression: its class is what a class of this one individual is part of."""
    right = reader.class_of(value)
    reader.axiom(f"{reader.name(subject)} Type {reader.show(right)}").implies(OneOf((subject,)), right)


def _differ(axiom: Sides, rule: str, one: str, other: str) -> None:
    for x, y in ((one, other), (other, one)):
        axiom.emit(inconsistency(rule, x, y), [Body((Atom(TRIPLE, (x, SAME, y)),))])


def _members(reader: Reader, subject: str) -> tuple[str, Sequence[str]]:
    """The members of an axiom about several, and the predicate that lists them."""
    given = [name for name in MEMBERS if name in reader.triples.of(subject)]
    predicate = given[0] if len(given) == 1 else MEMBERS[0]
    return predicate, reader.triples.items(reader.triples.one(subject, predicate))


# -- what stands for which ---------------------------------------------------------------------------------------------

BETWEEN: dict[str, Callable[[Reader, str, str], None]] = {
    SUB_CLASS: sub_class,
    owl("equivalentClass"): equivalent_classes,
    owl("disjointWith"): disjoint_classes,
    owl("disjointUnionOf"): disjoint_union,
    owl("hasKey"): has_key,
    DOMAIN: domain,
    RANGE: range_,
    SUB_PROPERTY: sub_property,
    owl("equivalentProperty"): equivalent_properties,
    INVERSE: inverse_properties,
    owl("propertyChainAxiom"): property_chain,
    owl("propertyDisjointWith"): disjoint_properties,
    DIFFERENT: different,
}
"""Axioms that are one triple, by predicate."""

ABOUT: dict[str, tuple[str, Callable[[Sides, Property], None]]] = {
    owl("FunctionalProperty"): ("Functional", functional),
    owl("InverseFunctionalProperty"): ("InverseFunctional", lambda axiom, p: functional(axiom, inverse(p))),
    owl("SymmetricProperty"): ("Symmetric", lambda axiom, p: leads(axiom, inverse(p), p)),
    owl("AsymmetricProperty"): ("Asymmetric", lambda axiom, p: never(axiom, "prp-asyp", p, inverse(p))),
    owl("TransitiveProperty"): ("Transitive", lambda axiom, p: leads(axiom, p, p, p)),
    owl("ReflexiveProperty"): ("Reflexive", reflexive),
    owl("IrreflexiveProperty"): ("Irreflexive", irreflexive),
}
"""What a property is, by its type: how it is written, and what it says."""

AMONG: dict[str, Callable[[Reader, str], None]] = {
    owl("AllDisjointClasses"): all_disjoint_classes,
    owl("AllDisjointProperties"): all_disjoint_properties,
    owl("AllDifferent"): all_different,
}
"""Axioms that are a node with members, by its type."""
