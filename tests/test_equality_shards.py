"""Equality by representatives on shards, without Spark: random programs against the axioms of equality."""

from __future__ import annotations

from random import Random
from typing import Any
from unittest.mock import patch

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from conftest import assert_same, everything
from evergraph import KnowledgeGraph, Program
from evergraph.engines.base import Which
from evergraph.engines.equality.engine import Rewriting
from evergraph.engines.spark.engine import SparkEngine
from evergraph.engines.spark.merging import MergingSpark
from evergraph.errors import UserError
from evergraph.rules.model import Atom
from strategies import ontology_updates
from test_shards import InProcess

PREFIX = "@prefix : <http://ex/> .\n"
NAMES = [f":n{i}" for i in range(6)]
LITERALS = ['"1"^^xsd:integer', '"01"^^xsd:integer', '"2"^^xsd:integer', '"3"^^xsd:integer']
VARIABLES = ["?x", "?y", "?z"]
KNOWN = "r(?x, ?y) :- r(?x, ?y), r(?y, ?x) ."
"""A rule that stays, so that the axioms are about this relation as long as there are facts of it."""


class Shards(InProcess, MergingSpark):
    """Merging shards, one after another in this process."""


def merging(program: Program, shards: int) -> KnowledgeGraph:
    kg = KnowledgeGraph(Program(program.rules), equality="rewrite")
    kg._engine = Rewriting(Shards(kg._plan, None, shards=shards), kg._plan)
    kg.update(insert=Program(facts=program.facts))
    return kg


def text(lines: list[str]) -> Any:
    return PREFIX + "\n".join(lines) if lines else ()


class Case:
    """Random rules and facts that make names the same, predicates and `owl:sameAs` among them."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.negates = rng.random() < 0.15
        self.many = [f"[?x, :n4, :n{i % 6}] :- [?x, :n{i // 6}, :n{(i + 1) % 6}] ." for i in range(9)] * (rng.random() < 0.2)
        self.rules = [KNOWN, *(self.rule() for _ in range(rng.randint(1, 5))), *self.many]
        if self.negates:
            self.rules.append("q(?x) :- [?x, ?p, ?y], NOT [?y, :n1, ?x] .")

    def name(self) -> str:
        return self.rng.choice(NAMES)

    def atom(self) -> str:
        rng = self.rng
        if rng.random() < 0.15:
            return f"r({rng.choice(VARIABLES)}, {rng.choice(VARIABLES) if rng.random() < 0.8 else self.name()})"
        predicate = rng.choice(VARIABLES) if rng.random() < 0.2 else rng.choice(["owl:sameAs", "rdf:type", *NAMES])
        subject, value = (rng.choice(VARIABLES) if rng.random() < 0.85 else self.name() for _ in range(2))
        return f"[{subject}, {predicate}, {value}]"

    def rule(self) -> str:
        rng = self.rng
        if rng.random() < 0.25:
            unequal = ", ?y != ?z" * (rng.random() < 0.5)
            return f"[?y, owl:sameAs, ?z] :- [?x, {self.name()}, ?y], [?x, {self.name()}, ?z]{unequal} ."
        body = [self.atom() for _ in range(rng.randint(1, 3))]
        bound = sorted({v for atom in body for v in VARIABLES if v in atom})
        if not bound:
            return self.rule()
        terms = [*bound, self.name()]
        if rng.random() < 0.5:
            head = f"[{rng.choice(bound)}, owl:sameAs, {rng.choice(bound)}]"
        elif rng.random() < 0.3:
            head = f"r({rng.choice(bound)}, {rng.choice(terms)})"
        else:
            predicate = rng.choice(bound) if rng.random() < 0.15 and not self.negates else self.name()
            head = f"[{rng.choice(terms)}, {predicate}, {rng.choice(terms)}]"
        for _ in range(rng.choice([0, 0, 0, 1])):
            body.append(f"{rng.choice(bound)} {rng.choice(['!=', '<', '='])} {rng.choice([*bound, *LITERALS])}")
        return f"{head} :- {', '.join(body)} ."

    def fact(self) -> str:
        rng = self.rng
        if rng.random() < 0.1:
            return f"r({self.name()}, {rng.choice([*NAMES, *LITERALS])}) ."
        predicate = "owl:sameAs" if rng.random() < 0.15 else rng.choice([*NAMES, "rdf:type"])
        subject, value = (rng.choice(some if rng.random() < 0.95 else ["owl:sameAs"]) for some in (NAMES, [*NAMES, *LITERALS]))
        return f"[{subject}, {predicate}, {value}] ."

    def steps(self, changing: bool) -> list[dict[str, Any]]:
        rng, there, out = self.rng, list[str](), list[dict[str, Any]]()
        rules = self.rules[1:]
        for _ in range(rng.randint(3, 6)):
            come = [self.fact() for _ in range(rng.randint(1, 4))] if rng.random() < 0.6 or not there else []
            go = rng.sample(there, min(len(there), rng.randint(1, 3))) if there and rng.random() < 0.6 else []
            there = [fact for fact in there if fact not in go] + come
            step: dict[str, Any] = {"insert": text(come), "delete": text(go)}
            if changing and rng.random() < 0.5:
                new = [self.rule()]
                old = [rules.pop(rng.randrange(len(rules)))] if len(rules) > 1 and rng.random() < 0.6 else []
                rules += new
                step |= {"insert_rules": text(new)} | ({"delete_rules": text(old)} if old else {})
            out.append(step)
        return out


def assert_equal_to_axioms(seed: int, shards: int, changing: bool) -> None:
    case = Case(Random(seed))
    try:
        program = Program.parse(text(case.rules))
        slow = KnowledgeGraph(program, equality="axioms")
    except UserError:
        return
    slow.update()
    many = merging(program, shards)
    for number, step in enumerate(case.steps(changing)):
        what = f"{seed}: {text(case.rules)}\n{step}\nafter step {number}, {shards} shards"
        try:
            expected = slow.update(**step, algorithm="recompute")
        except UserError:
            return
        asked = case.rng.choice(["auto", "backward-forward", "recompute"]) if step["delete"] else "auto"
        if case.rng.random() < 0.2:
            before = everything(many)
            many.update(**step, algorithm=asked, dry_run=True)
            assert_same(everything(many), before, f"{what}, which was not made")
        report = many.update(**step, algorithm=asked)
        assert_same(everything(many), everything(slow), what)
        assert_same(everything(many, Which.EXPLICIT), everything(slow, Which.EXPLICIT), f"{what}, explicit")
        assert (report.inserted, report.deleted) == (expected.inserted, expected.deleted), what
        assert many.counts() == slow.counts() and many.counts(Which.DERIVED) == slow.counts(Which.DERIVED), what


@given(st.integers(0, 2**32), st.sampled_from([1, 2, 3, 7]))
@settings(max_examples=40, phases=[Phase.explicit, Phase.reuse, Phase.generate])
def test_shards_equal_axioms_after_every_update(seed: int, shards: int) -> None:
    assert_equal_to_axioms(seed, shards, changing=False)


@given(st.integers(0, 2**32), st.sampled_from([1, 3]))
@settings(max_examples=25, phases=[Phase.explicit, Phase.reuse, Phase.generate])
def test_shards_equal_axioms_when_rules_change(seed: int, shards: int) -> None:
    assert_equal_to_axioms(seed, shards, changing=True)


@given(st.integers(0, 2**32), st.sampled_from([0, 40, 1 << 20]))
@settings(max_examples=25, phases=[Phase.explicit, Phase.reuse, Phase.generate])
def test_little_mail_about_names_is_read_in_the_driver(seed: int, near: int) -> None:
    with patch.object(SparkEngine, "near", near):
        assert_equal_to_axioms(seed, 3, changing=True)


@given(ontology_updates, st.integers(0, 2**32), st.sampled_from([2, 5]))
@settings(max_examples=12, phases=[Phase.explicit, Phase.reuse, Phase.generate])
def test_data_changes_the_schema_and_names(steps: list[list[Atom]], seed: int, shards: int) -> None:
    """OWL 2 RL: classes and properties are merged, and functional properties merge their values."""
    program, rng, there = Program.load("owl2rl"), Random(seed), set[Atom]()
    many, one = merging(program, shards), KnowledgeGraph(program, equality="rewrite")
    for insert in steps:
        delete = [fact for fact in sorted(there, key=str) if rng.random() < 0.4 and fact not in insert]
        there = (there - {*delete}) | {*insert}
        for kg in (many, one):
            kg.update(insert=insert, delete=delete)
        assert_same(everything(many), everything(one), f"{steps}, {delete}")
