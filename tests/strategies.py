"""Random safe stratified programs, facts and update sequences, for the laws.

Relations sit on levels: a rule may use anything at or below the level of its head and negate only what is below, so every
program is stratified. Triples with variable predicates read and write the triple level, the lowest.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from random import Random

from hypothesis import strategies as st

from evergraph.rules.model import (
    SAME,
    TRIPLE,
    TYPE,
    Atom,
    BodyItem,
    Comparison,
    Negation,
    Operator,
    Program,
    Rule,
    Term,
    Variable,
)

EX = "http://example.org/"
NAMES = [f"<{EX}{c}>" for c in "abcdef"]
PREDICATES = [f"<{EX}p>", f"<{EX}q>", TYPE, "<http://www.w3.org/2000/01/rdf-schema#subClassOf>"]
CLASSES = [f"<{EX}C>", f"<{EX}D>"]
NUMBERS = ['"1"^^<http://www.w3.org/2001/XMLSchema#integer>', '"02"^^<http://www.w3.org/2001/XMLSchema#integer>']
VARIABLES = [Variable(n) for n in "xyzw"]
LEVELS = {
    "edge": (0, 2),
    "path": (0, 2),
    "node": (0, 1),
    "wide": (0, 3),
    "far": (1, 2),
    "odd": (1, 1),
    "top": (2, 2),
    "flag": (2, 0),
}


@st.composite
def terms(draw: st.DrawFn, variables: float = 0.85) -> Term:
    if draw(st.floats(0, 1)) < variables:
        return draw(st.sampled_from(VARIABLES))
    return draw(st.sampled_from(NAMES + CLASSES + NUMBERS))


@st.composite
def triple_atoms(draw: st.DrawFn) -> Atom:
    subject = draw(terms())
    predicate: Term = draw(st.sampled_from([*PREDICATES, *PREDICATES, Variable("p")]))
    value = draw(st.sampled_from(CLASSES)) if predicate == TYPE and draw(st.booleans()) else draw(terms())
    return Atom(TRIPLE, (subject, predicate, value))


@st.composite
def atoms(draw: st.DrawFn, most: int) -> Atom:
    """An atom of a relation at or below a level; triples count as level 0."""
    if draw(st.booleans()):
        return draw(triple_atoms())
    name = draw(st.sampled_from([n for n, (level, _) in LEVELS.items() if level <= most]))
    return Atom(name, tuple(draw(terms()) for _ in range(LEVELS[name][1])))


@st.composite
def rules(draw: st.DrawFn) -> Rule:
    level = draw(st.sampled_from([0, 0, 0, 1, 2]))
    body: list[BodyItem] = [draw(atoms(level)) for _ in range(draw(st.integers(1, 3)))]
    bound = sorted({v for a in body for v in a.variables}, key=str)

    def safe(term: Term) -> Term:
        if isinstance(term, Variable) and term not in bound:
            return draw(st.sampled_from(bound)) if bound else NAMES[0]
        return term

    def safe_atom(atom: Atom) -> Atom:
        return Atom(atom.relation, tuple(map(safe, atom.terms)))

    if level and draw(st.booleans()):
        body.append(Negation(safe_atom(draw(atoms(level - 1)))))
    if len(bound) > 1 and draw(st.integers(0, 4)) == 0:
        operator = draw(st.sampled_from([o for o in Operator if o != Operator.ILLTYPED]))
        body.append(Comparison(operator, bound[0], bound[1]))
    if level == 0 and draw(st.booleans()):
        head = safe_atom(draw(triple_atoms()))
    else:
        name = draw(st.sampled_from([n for n, (at, _) in LEVELS.items() if at == level]))
        head = safe_atom(Atom(name, tuple(draw(terms()) for _ in range(LEVELS[name][1]))))
    return Rule(head, tuple(body))


programs = st.builds(lambda rs: Program(tuple(rs)), st.lists(rules(), min_size=1, max_size=6))


@st.composite
def facts(draw: st.DrawFn) -> Atom:
    constants = st.sampled_from(NAMES + CLASSES + NUMBERS)
    if draw(st.booleans()):
        predicate = draw(st.sampled_from(PREDICATES))
        return Atom(TRIPLE, (draw(st.sampled_from(NAMES + CLASSES)), predicate, draw(constants)))
    name = draw(st.sampled_from(["edge", "edge", "path", "node", "wide", "odd"]))
    return Atom(name, tuple(draw(constants) for _ in range(LEVELS[name][1])))


updates = st.lists(st.lists(facts(), min_size=1, max_size=8), min_size=1, max_size=4)


VOCABULARY = [
    f"<{prefix}{name}>"
    for prefix, names in (
        ("http://www.w3.org/2000/01/rdf-schema#", "subClassOf subPropertyOf domain range"),
        ("http://www.w3.org/2002/07/owl#", "inverseOf equivalentClass sameAs someValuesFrom onProperty hasValue"),
    )
    for name in names.split()
]
KINDS = [f"<http://www.w3.org/2002/07/owl#{k}>" for k in ("TransitiveProperty", "SymmetricProperty", "FunctionalProperty")]


@st.composite
def ontology_triples(draw: st.DrawFn) -> Atom:
    """A triple of RDFS and OWL vocabulary; now and then the vocabulary itself is the subject."""
    names = [*NAMES[:4], *CLASSES, f"<{EX}p>", f"<{EX}q>"]
    subjects = [*names, *names, *names, *VOCABULARY[:4], TYPE, *KINDS]
    predicate = draw(st.sampled_from([*VOCABULARY, TYPE, TYPE, f"<{EX}p>", f"<{EX}q>", f"<{EX}p>"]))
    value = draw(st.sampled_from([*KINDS, *CLASSES] if predicate == TYPE else [*names, *names, *VOCABULARY[:2], *KINDS[:1]]))
    return Atom(TRIPLE, (draw(st.sampled_from(subjects)), predicate, value))


ontology_updates = st.lists(st.lists(ontology_triples(), min_size=1, max_size=6), min_size=1, max_size=3)


# Programs whose rules fire: triples in several strata, and few names, so that most rules have instances.

LAYERS = [
    [f"<{EX}p0>", f"<{EX}q0>", (TYPE, f"<{EX}C0>")],
    [f"<{EX}p1>", f"<{EX}q1>", (TYPE, f"<{EX}C1>")],
    [f"<{EX}p2>", (TYPE, f"<{EX}C2>")],
]


@st.composite
def layered_atoms(draw: st.DrawFn, most: int, least: int = 0) -> Atom:
    """A triple of a layer; a named relation stands beside the triples of each."""
    layer = draw(st.integers(least, most))
    chosen = draw(st.sampled_from([*LAYERS[layer], f"r{layer}"]))
    if isinstance(chosen, tuple):
        return Atom(TRIPLE, (draw(terms()), *chosen))
    if chosen.startswith("r"):
        return Atom(chosen, (draw(terms()), draw(terms())))
    return Atom(TRIPLE, (draw(terms()), chosen, draw(terms())))


@st.composite
def layered_rules(draw: st.DrawFn) -> Rule:
    layer = draw(st.sampled_from([0, 1, 1, 2]))
    body: list[BodyItem] = [draw(layered_atoms(layer)) for _ in range(draw(st.integers(1, 2)))]
    if layer == 2 and draw(st.integers(0, 3)) == 0:
        body.append(Atom(TRIPLE, (Variable("x"), Variable("p"), Variable("y"))))
    bound = sorted({v for a in body for v in a.variables}, key=str)

    def safe(atom: Atom) -> Atom:
        choice = st.sampled_from([*bound, NAMES[0], NAMES[1]])
        return Atom(atom.relation, tuple(draw(choice) if isinstance(t, Variable) and t not in bound else t for t in atom.terms))

    if layer and draw(st.integers(0, 3)):
        body += [Negation(safe(draw(layered_atoms(layer - 1)))) for _ in range(draw(st.integers(1, 2)))]
    return Rule(safe(draw(layered_atoms(layer, layer))), tuple(body))


layered_programs = st.builds(lambda rs: Program(tuple(rs)), st.lists(layered_rules(), min_size=1, max_size=6))


def dense_changes(program: Program, rng: Random) -> Iterator[tuple[list[Atom], list[Atom]]]:
    """Facts to insert and facts to delete, over few names, so that rules have instances: first many, then some."""
    names = [*NAMES[:2], f"<{EX}C>"]
    pool = set()
    for rule in program.rules:
        for atom in (rule.head, *rule.atoms, *rule.negations):
            for values in product(names, repeat=len(atom.terms)):
                row = [v if isinstance(t, Variable) else t for t, v in zip(atom.terms, values, strict=True)]
                if atom.relation == TRIPLE and isinstance(atom.terms[1], Variable):
                    row[1] = rng.choice([f"<{EX}p>", f"<{EX}p0>", f"<{EX}p2>"])
                pool.add(Atom(atom.relation, tuple(row)))
    possible, there = sorted(pool, key=str), set[Atom]()
    for part in (0.3, 0.1, 0.1, 0.3):
        insert = {fact for fact in possible if rng.random() < part}
        delete = {fact for fact in sorted(there, key=str) if rng.random() < part} - insert
        there = (there - delete) | insert
        yield sorted(insert, key=str), sorted(delete, key=str)


# Programs under which names become the same: over few names, which are subjects, predicates, classes and values alike, so that
# cliques of all kinds form; rules mention them too, and compare values.

ALIKE = NAMES
VALUES = [*NUMBERS, '"1.0"^^<http://www.w3.org/2001/XMLSchema#decimal>', '"3"^^<http://www.w3.org/2001/XMLSchema#integer>']
FEW = VARIABLES[:3]


def mostly(often: list[Term], seldom: list[Term], part: int) -> st.SearchStrategy[Term]:
    """One of the first terms, in one of so many cases one of the others."""
    return st.integers(1, part).flatmap(lambda n: st.sampled_from(seldom if n == 1 else often))


@st.composite
def alike_atoms(draw: st.DrawFn) -> Atom:
    term = mostly([*FEW], [*ALIKE], 7)
    if draw(st.integers(0, 4)) == 0:
        return Atom("r", (draw(term), draw(term)))
    predicate = draw(mostly([*ALIKE], [*FEW[:1], *FEW[:1], SAME], 4))
    return Atom(TRIPLE, (draw(term), predicate, draw(term)))


@st.composite
def functional(draw: st.DrawFn) -> Rule:
    """All values of a property are the same, or those that differ as values; or all that have one value."""
    x, y, z = FEW
    name, turned = draw(st.sampled_from(ALIKE)), draw(st.booleans())
    body: list[BodyItem] = [Atom(TRIPLE, (v, name, x) if turned else (x, name, v)) for v in (y, z)]
    if draw(st.booleans()):
        body.append(Comparison(Operator.UNEQUAL, y, z))
    return Rule(Atom(TRIPLE, (y, SAME, z)), tuple(body))


@st.composite
def alike_rules(draw: st.DrawFn) -> Rule:
    if draw(st.integers(0, 3)) == 0:
        return draw(functional())
    body: list[BodyItem] = [draw(alike_atoms()) for _ in range(draw(st.integers(1, 3)))]
    bound: list[Term] = sorted({v for atom in body for v in atom.variables}, key=str)
    if not bound:
        body.append(Atom(TRIPLE, (FEW[0], ALIKE[0], FEW[1])))
        bound = [*FEW[:2]]
    own = st.sampled_from([*bound, *bound, draw(st.sampled_from(ALIKE))])
    kind = draw(st.sampled_from(["same", "same", "same", "triple", "triple", "named"]))
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2]))):
        operator = draw(st.sampled_from([Operator.UNEQUAL, Operator.LESS, Operator.EQUAL, Operator.GREATER]))
        body.append(Comparison(operator, draw(st.sampled_from(bound)), draw(st.sampled_from([*bound, *VALUES]))))
    if kind == "same":
        head = Atom(TRIPLE, (draw(st.sampled_from(bound)), SAME, draw(st.sampled_from(bound))))
    elif kind == "named":
        head = Atom("r", (draw(own), draw(own)))
    else:
        head = Atom(TRIPLE, (draw(own), draw(mostly([*ALIKE], bound, 6)), draw(own)))
    return Rule(head, tuple(body))


equal_programs = st.builds(lambda rs: Program(tuple(rs)), st.lists(alike_rules(), min_size=1, max_size=5))


@st.composite
def alike_facts(draw: st.DrawFn) -> Atom:
    value = draw(mostly([*ALIKE, *ALIKE, *VALUES], [SAME, TYPE], 25))
    if draw(st.integers(0, 5)) == 0:
        return Atom(draw(st.sampled_from(["r", "r", "seen"])), (draw(st.sampled_from(ALIKE)), value))
    predicate = draw(mostly([*ALIKE, TYPE], [SAME], 7))
    return Atom(TRIPLE, (draw(mostly([*ALIKE], [SAME, TYPE], 25)), predicate, value))


equal_updates = st.lists(
    st.tuples(st.lists(alike_facts(), max_size=4, unique=True), st.integers(0, 2**16)), min_size=2, max_size=5
)
"""Facts to insert, and a number that says which of those that are there go."""


def coming_and_going(steps: list[tuple[list[Atom], int]]) -> Iterator[tuple[list[Atom], list[Atom]]]:
    """Facts to insert and facts to delete."""
    there = set[Atom]()
    for insert, seed in steps:
        rng = Random(seed)
        delete = [fact for fact in sorted(there, key=str) if rng.random() < 0.3 and fact not in insert]
        there = (there - {*delete}) | {*insert}
        yield insert, delete
