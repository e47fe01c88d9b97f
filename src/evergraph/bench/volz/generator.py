"""The ontologies of Volz et al. 2003, §5.3, as rules and facts: `taxonomy`, `database` and `dl`.

What it makes: a symmetric tree of classes, D levels of NS children each below a root that stands for everything and is not
counted; NI instances a class; P properties a class, each with a value for every third instance. The DLP translation of its
axioms gives one rule each, over triples:

    c_i ⊑ c             [?x, a, c] :- [?x, a, c_i]                          all kinds
    ⊤ ⊑ ∀p⁻.c           [?x, a, c] :- [?x, p, ?y]                           database: the domain of each property
    ⊤ ⊑ ∀p.d            [?y, a, d] :- [?x, p, ?y]                           database: its range
    ∃p_k.c_{i-1} ⊑ c    [?x, a, c] :- [?x, p_k, ?y], [?y, a, c_{i-1}]       dl: with c_i ⊑ c the paper's c_i ⊔ ∃p_k.c_{i-1} ⊑ c

Names: the classes of the first level are c1 to c5, the children of c1 are c11 to c15; the properties of c1 are c1p0 to c1p4.

Paper: Volz, Staab, Motik: Incremental Maintenance of Materialized Ontologies. ODBASE 2003, §5.3, Tests 1 to 3.
Symbols: D → depth, NS → CHILDREN, NI → INSTANCES, P → PROPERTIES; c, c_i, p_k → `class_`, `children`, `property_`.
Counts: for D = 5 the paper has 3950 classes, 19750 properties and class instantiations, 32915 property instantiations. The
    last three follow from the first: 5 · 3950, 5 · 3950, 5 · ⌊19750 / 3⌋. The first is no sum of powers of five; the tree has
    5 + 25 + 125 + 625 + 3125 = 3905, of which 3950 looks a slip of two digits. So here 3905, 19525, 19525 and 32540.
Departures: what the paper leaves open is settled so. Property k of a class has its values in the class's child number k + 2,
    counted round, so that the query of Test 2, c1 ⊓ ∃p0.c12, asks for a property and its range; a leaf's in what would be its
    parent's. The axiom of child i takes the property whose values are in child i - 1, for the first child the last one. A class
    of `dl` has its definition and no domain or range, which would already imply it.
Cost: linear in what is made. Trap: no fact of `dl` follows from ∃p_k.c_{i-1} ⊑ c alone before facts are removed.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product

import pyarrow as pa
import pyarrow.compute as pc

from evergraph.rules.model import TRIPLE, TYPE, Atom, Program, Rule, Term, Variable

KINDS = ("taxonomy", "database", "dl")
CHILDREN = INSTANCES = PROPERTIES = 5
EVERY = 3
"""One instance of so many has values for the properties of its class."""
SPACE = "http://example.org/volz#"
X, Y = Variable("x"), Variable("y")


@dataclass(frozen=True, slots=True)
class Ontology:
    """Rules, facts as a table of triples, and the query that is asked of them."""

    kind: str
    depth: int
    program: Program
    facts: pa.Table
    query: str
    asked: tuple[str, ...]
    """The classes that the query is about."""
    counts: dict[str, int]

    def needed(self) -> Program:
        """The rules that the query depends on: those that derive its classes, or what those are derived from.

        Cost: linear in the rules.
        """
        by_class: dict[Term, list[Rule]] = {}
        for rule in self.program.rules:
            by_class.setdefault(rule.head.terms[2], []).append(rule)
        found: list[Rule] = []
        wanted: list[Term] = list(self.asked)
        while wanted:
            rules = by_class.pop(wanted.pop(), [])
            found += rules
            wanted += [atom.terms[2] for rule in rules for atom in rule.atoms if atom.terms[1] == TYPE]
        return Program(tuple(found))

    def some_facts(self, percent: int, turn: int) -> tuple[pa.Table, pa.Table]:
        """So many of a hundred facts, others at each turn, and the rest. Cost: linear in all facts."""
        rows = self.facts.num_rows
        drawn = set(_random(self, "facts", turn).sample(range(rows), rows * percent // 100))
        chosen = pa.array([row in drawn for row in range(rows)])
        return self.facts.filter(chosen), self.facts.filter(pc.invert(chosen))

    def one_rule(self, turn: int) -> tuple[Program, Program]:
        """One rule, another at each turn, and the rest."""
        return self._split(1, "rule", turn)

    def some_rules(self, percent: int, turn: int) -> tuple[Program, Program]:
        """So many of a hundred rules, others at each turn, and the rest. Cost: linear in all rules."""
        return self._split(len(self.program.rules) * percent // 100, "rules", turn)

    def _split(self, count: int, what: str, turn: int) -> tuple[Program, Program]:
        rules = self.program.rules
        drawn = set(_random(self, what, turn).sample(range(len(rules)), count))
        chosen, rest = (tuple(r for i, r in enumerate(rules) if (i in drawn) == side) for side in (True, False))
        return Program(chosen), Program(rest)


def make(kind: str, depth: int, seed: int = 0) -> Ontology:
    """The ontology of a kind, of two levels or more; the same seed gives the same one.

    >>> ontology = make("taxonomy", 2)
    >>> ontology.counts
    {'classes': 30, 'properties': 0, 'class_instantiations': 150, 'property_instantiations': 0, 'rules': 25}
    >>> ontology.program.rules[0] == Program.parse(f"<{SPACE}c1>[?x] :- <{SPACE}c11>[?x] .").rules[0]
    True
    """
    draw = random.Random(f"{seed} {kind} {depth}")
    classes = ["".join(path) for level in range(depth) for path in product(_digits(), repeat=level + 1)]
    with_properties = kind != "taxonomy"
    values = list(_values(classes, depth, draw)) if with_properties else []
    types = [(f"{c}i{n}", c) for c in classes for n in range(INSTANCES)]
    rules = tuple(_rules(kind, classes, depth))
    facts = pa.table(
        {
            "subject": [_iri(f"c{i}") for i, _ in types] + [_iri(f"c{i}") for i, _, _ in values],
            "predicate": [TYPE] * len(types) + [_iri(f"c{p}") for _, p, _ in values],
            "object": [_iri(f"c{c}") for _, c in types] + [_iri(f"c{j}") for _, _, j in values],
        }
    )
    counts = {
        "classes": len(classes),
        "properties": len(classes) * PROPERTIES if with_properties else 0,
        "class_instantiations": len(types),
        "property_instantiations": len(values),
        "rules": len(rules),
    }
    query, asked = _query(kind, depth, draw)
    return Ontology(kind, depth, Program(rules), facts, query, asked, counts)


def _rules(kind: str, classes: Iterable[str], depth: int) -> Iterator[Rule]:
    for name in classes:
        children = [name + digit for digit in _digits()] if len(name) < depth else []
        for place, child in enumerate(children):
            yield Rule(_is_a(X, name), (_is_a(X, child),))
            if kind == "dl":
                before = children[place - 1]
                number = next(k for k in range(PROPERTIES) if _range(name, k, depth) == before)
                yield Rule(_is_a(X, name), (Atom(TRIPLE, (X, property_(name, number), Y)), _is_a(Y, before)))
        if kind == "database":
            for number in range(PROPERTIES):
                related = Atom(TRIPLE, (X, property_(name, number), Y))
                yield Rule(_is_a(X, name), (related,))
                yield Rule(_is_a(Y, _range(name, number, depth)), (related,))


def _values(classes: list[str], depth: int, draw: random.Random) -> Iterator[tuple[str, str, str]]:
    """Instance, property, value: all properties of a class, for every third instance of all there are."""
    for place in range(EVERY - 1, len(classes) * INSTANCES, EVERY):
        name, instance = classes[place // INSTANCES], place % INSTANCES
        for number in range(PROPERTIES):
            yield f"{name}i{instance}", f"{name}p{number}", f"{_range(name, number, depth)}i{draw.randrange(INSTANCES)}"


def _query(kind: str, depth: int, draw: random.Random) -> tuple[str, tuple[str, ...]]:
    """The extension of a class of the first level, or c1 ⊓ ∃p0.c12; and the classes it is about."""
    if kind == "database":
        asked = class_("1"), class_(_range("1", 0, depth))
        return f"SELECT ?x {{ ?x a {asked[0]} ; {property_('1', 0)} ?y . ?y a {asked[1]} }}", asked
    first = class_(draw.choice(_digits()))
    return f"SELECT ?x {{ ?x a {first} }}", (first,)


def _range(name: str, number: int, depth: int) -> str:
    """The class that a property has its values in."""
    above = name if len(name) < depth else name[:-1]
    return above + _digits()[(number + 1) % CHILDREN]


def class_(name: str) -> str:
    return _iri(f"c{name}")


def property_(name: str, number: int) -> str:
    return _iri(f"c{name}p{number}")


def _is_a(who: Variable, name: str) -> Atom:
    return Atom(TRIPLE, (who, TYPE, class_(name)))


def _iri(name: str) -> str:
    return f"<{SPACE}{name}>"


def _digits() -> str:
    return "".join(map(str, range(1, CHILDREN + 1)))


def _random(ontology: Ontology, what: str, turn: int) -> random.Random:
    return random.Random(f"{ontology.kind} {ontology.depth} {what} {turn}")
