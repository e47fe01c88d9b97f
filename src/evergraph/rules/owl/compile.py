"""An ontology compiled into rules, and the list of what rules cannot say.

What it does. Every triple of the files is looked at once: as an axiom, which gives rules; as an assertion, which is a fact; as
part of an axiom or an expression, which is read with it; or as an annotation or declaration, which says nothing to a reasoner.
What rules cannot say of an axiom is listed with the reason, and what they can is compiled.

Paper: Volz, Staab, Motik, "Incremental Maintenance of Materialized Ontologies", ODBASE 2003, section 2.2; the translation is
that of Grosof et al. 2003 (`sides.py`).

Symbols: none beyond `sides.py`.

Departures: the paper's rules for its Wine axiom contain one that does not follow from it; see docs/ontologies.md. Equality is
derived as `owl:sameAs`, and nothing is replaced by its equals: that is what the eq- rules of `owl2rl` are for.

Cost and traps. Linear in the triples, and in the rules that come out. Rules and facts come sorted, by kind of axiom and then
by text, so that two files that say the same in another order give the same program.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from evergraph.formats import expand
from evergraph.rules.model import OWL, TRIPLE, TYPE, XSD, Atom, Outside, Program, Rule
from evergraph.rules.owl.axioms import ABOUT, AMONG, BETWEEN, assertion, equivalent, negative_assertion
from evergraph.rules.owl.expressions import Expression, Expressions, Property, show, show_property
from evergraph.rules.owl.sides import MOST_BODIES, Sides, TooMany
from evergraph.rules.owl.triples import Malformed, Triples, label_individuals, prefixes_of, read
from evergraph.rules.owl.vocabulary import (
    ANNOTATED,
    ANNOTATION_PROPERTY,
    ANNOTATIONS,
    ASSERTED,
    CONSTRUCTORS,
    DECLARATIONS,
    DOMAIN,
    EXPRESSION_PARTS,
    FIRST,
    IMPORTS,
    INVERSE,
    LANGUAGE_RANGE,
    MEMBERS,
    NEGATIVE,
    NOTHING,
    RANGE,
    REST,
    SAME,
    SOURCE,
    SUB_PROPERTY,
    SWRL,
    SWRL_RULE,
    TARGET,
    TARGET_VALUE,
    owl,
)
from evergraph.rules.printer import print_term

NEGATIVE_PARTS = {SOURCE, ASSERTED, TARGET, TARGET_VALUE}
EXPRESSION_MARKS = {*EXPRESSION_PARTS, INVERSE}
KINDS = [*BETWEEN, *CONSTRUCTORS, *ABOUT, *AMONG, TYPE, NEGATIVE]
"""The order in which axioms are listed."""
TOO_MANY = f"its unions multiply to more than {MOST_BODIES:,} rules; give some of them names"


def compile_ontology(sources: Sequence[str | Path]) -> Program:
    """Files, folders or globs as one ontology. Cost: linear in the triples and in the rules that come out."""
    paths = expand(sources)
    triples = read(paths)
    return Compiler(triples, prefixes_of(paths)).run()


class Compiler:
    """Looks at every triple of an ontology once.

    >>> from evergraph.rules.owl.vocabulary import ON_PROPERTY, SUB_CLASS
    >>> restriction = [("_:r", ON_PROPERTY, "<e:p>"), ("_:r", owl("allValuesFrom"), "<e:B>")]
    >>> print(Compiler(Triples([("<e:A>", SUB_CLASS, "_:r"), *restriction]), {}).run(), end="")
    #[name("<e:A> SubClassOf <e:p> only <e:B>")]
    <e:B>[?y] :- <e:A>[?x], <e:p>[?x, ?y] .
    """

    def __init__(self, triples: Triples, prefixes: Mapping[str, str]) -> None:
        self.triples, self._prefixes = triples, prefixes
        self._expressions = Expressions(triples)
        self._names: dict[str, str] = {}
        self._axioms: list[tuple[int, str, Sides]] = []
        self._kind = 0
        self._facts: list[tuple[str, str, str]] = []
        self._looked_at: set[str] = set()
        with_type: dict[str, set[str]] = {}
        for subject, predicate, value in triples.all:
            if predicate == TYPE:
                with_type.setdefault(value, set()).add(subject)
        none: set[str] = set()
        self._functional = {Property(p) for p in with_type.get(owl("FunctionalProperty"), none)}
        self._functional |= {Property(p, True) for p in with_type.get(owl("InverseFunctionalProperty"), none)}
        properties = with_type.get(owl("ObjectProperty"), none) | with_type.get(owl("DatatypeProperty"), none)
        self._annotating = ANNOTATIONS | with_type.get(ANNOTATION_PROPERTY, none) - properties - BETWEEN.keys()
        self._annotated = {subject for name in ANNOTATED for subject in with_type.get(name, none)}

    # What axioms ask for.

    def class_of(self, node: str) -> Expression:
        return self._expressions.of(node)

    def property_of(self, node: str) -> Property:
        return self._expressions.property(node)

    def name(self, term: str) -> str:
        """A term with its prefix."""
        if term not in self._names:
            self._names[term] = "[]" if term.startswith("_:") else print_term(term, self._prefixes)
        return self._names[term]

    def show(self, expression: Expression) -> str:
        return show(expression, self.name)

    def show_property(self, property_: Property) -> str:
        return show_property(property_, self.name)

    def axiom(self, text: str) -> Sides:
        sides = Sides(self.show, self._functional, text)
        self._axioms.append((self._kind, text, sides))
        return sides

    # What is made of the triples.

    def run(self) -> Program:
        kinds = {kind: number for number, kind in enumerate(KINDS)}
        for subject, predicate, value in self.triples.all:
            self._kind = kinds.get(value if predicate == TYPE and value in kinds else predicate, len(kinds))
            try:
                self._look(subject, predicate, value)
            except Malformed as error:
                self._list(subject, predicate, value, error)
            except TooMany:
                self._axioms[-1][2].lost[TOO_MANY] = None
        self._axioms.sort(key=lambda axiom: (*axiom[:2], tuple(axiom[2].lost)))
        rules: dict[tuple[Atom, object], Rule] = {}
        for _, _, sides in self._axioms:
            for rule in sides.rules:
                rules.setdefault((rule.head, rule.body), rule)
        outside = tuple(Outside(text, reason) for _, text, sides in self._axioms for reason in sides.lost)
        return Program(tuple(rules.values()), tuple(self._all_facts()), self._prefixes, outside)

    def _look(self, subject: str, predicate: str, value: str) -> None:
        if predicate == IMPORTS:
            if owl("Ontology") not in self.triples.types(value):
                self.axiom(f"Import {self.name(value)}").lost["is not followed; give its file as well"] = None
        elif subject in self._annotated or predicate in self._annotating or _is_part(predicate):
            return
        elif predicate == TYPE:
            self._look_at_type(subject, value)
        elif predicate in BETWEEN:
            annotates = subject in self._annotating and predicate in (DOMAIN, RANGE, SUB_PROPERTY)
            if not annotates and not (predicate == INVERSE and subject.startswith("_:")):
                BETWEEN[predicate](self, subject, value)
        elif predicate in EXPRESSION_PARTS:
            self._look_at_definition(subject, predicate, value)
        elif predicate in MEMBERS:
            if AMONG.keys().isdisjoint(self.triples.types(subject)):
                raise Malformed("members that are not said to be different or disjoint")
        elif predicate in NEGATIVE_PARTS:
            self._look_at_negative(subject)
        elif predicate.startswith(f"<{OWL}") and predicate != SAME:
            raise Malformed("no word of OWL 2 for an axiom")
        elif not self._is_expression(subject):
            self._facts.append((subject, predicate, value))

    def _look_at_type(self, subject: str, value: str) -> None:
        if value in ABOUT:
            word, say = ABOUT[value]
            p = self.property_of(subject)
            say(self.axiom(f"{word} {self.show_property(p)}"), p)
        elif value in AMONG:
            AMONG[value](self, subject)
        elif value == NEGATIVE:
            self._look_at_negative(subject)
        elif value == SWRL_RULE:
            self.axiom(f"Rule {self.name(subject)}").lost["SWRL is not read; write the rule in a .dlog file"] = None
        elif value in DECLARATIONS or value.startswith(SWRL) or self._is_expression(subject):
            return
        elif not value.startswith("<") or value == NOTHING:
            assertion(self, subject, value)
        elif value.startswith(f"<{OWL}"):
            raise Malformed("no class of OWL 2")
        else:
            self._facts.append((subject, TYPE, value))

    def _look_at_definition(self, subject: str, predicate: str, value: str) -> None:
        """A name that is itself the node of an expression is equivalent to it; an anonymous one is read where it is used."""
        if subject.startswith("_:"):
            return
        if predicate in CONSTRUCTORS:
            equivalent(self, self.class_of(subject), self._expressions.defined(subject, predicate, value))
        elif self.triples.of(subject).keys().isdisjoint(CONSTRUCTORS):
            raise Malformed("a restriction that restricts nothing")

    def _look_at_negative(self, subject: str) -> None:
        """Once, whichever of its triples comes first."""
        if subject in self._looked_at:
            return
        self._looked_at.add(subject)
        self._kind = KINDS.index(NEGATIVE)
        try:
            negative_assertion(self, subject)
        except Malformed as error:
            self._list(subject, TYPE, NEGATIVE, error)

    def _is_expression(self, node: str) -> bool:
        return node.startswith("_:") and not EXPRESSION_MARKS.isdisjoint(self.triples.of(node))

    def _list(self, subject: str, predicate: str, value: str, error: Malformed) -> None:
        """A triple that is no axiom but should have been one."""
        self.axiom(" ".join(map(self.name, (subject, predicate, value)))).lost[f"malformed: {error}"] = None

    def _all_facts(self) -> Iterator[Atom]:
        """Assertions and what axioms came down to, sorted; anonymous individuals by what is said of them."""
        said = [Atom(TRIPLE, triple) for triple in self._facts]
        said += [fact for _, _, sides in self._axioms for fact in sides.facts]
        labels = label_individuals((str(s), str(p), str(o)) for s, p, o in (fact.terms for fact in said))
        renamed = {(fact.relation, tuple(labels.get(str(t), str(t)) for t in fact.terms)) for fact in said}
        return (Atom(relation, terms) for relation, terms in sorted(renamed))


def _is_part(predicate: str) -> bool:
    """Cells of lists, the facets of datatype restrictions, and atoms of SWRL, which are nodes of their own."""
    return predicate in (FIRST, REST, LANGUAGE_RANGE) or predicate.startswith((f"<{XSD}", SWRL))
