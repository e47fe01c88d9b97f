"""Proofs to test with, and a checker of proofs: unification over atoms, nothing shared with plans, ids and the kernel.

Also random programs over dense facts, in which rules find much to join and a fact is supported in many ways.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from random import Random
from typing import Any

from hypothesis import strategies as st

from evergraph import KnowledgeGraph, Program
from evergraph.engines.base import Which
from evergraph.explain import Kind, Proof
from evergraph.explain.proof import Fact
from evergraph.rules.model import BUILTIN_RELATIONS, TRIPLE, Atom, Comparison, Rule, Term, Variable
from evergraph.rules.printer import print_rule
from strategies import CLASSES, LEVELS, NAMES, NUMBERS, PREDICATES, rules

EX = "http://ex/"
SOME = 12
"""Derived facts of a random graph that are explained."""
Binding = Mapping[Variable, Term]
Instance = tuple[str, Atom, tuple[Fact, ...], tuple[Atom, ...]]
"""Name of the rule, head, premises, absent."""


class Held:
    """What a graph holds, as atoms."""

    def __init__(self, kg: KnowledgeGraph) -> None:
        self.kg = kg
        self.rules = (*kg.rules.rules, *kg._book.compiler.axioms(kg.rules.rules))
        """The rules, and those that equality stands for."""
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

        for rule in self.rules:
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
    for rule in held.rules:
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
