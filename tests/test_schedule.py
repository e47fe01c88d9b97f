"""Plans: which rules run, in which order and how often, as the schema, the shapes and the size of a change allow."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from conftest import assert_same, everything
from evergraph import KnowledgeGraph, Program, Report
from evergraph.engines.kernel import Kernel
from evergraph.plan.compile import Plan, compile_program
from evergraph.plan.model import PARAMETER
from evergraph.plan.schedule import Component, Schedule
from evergraph.plan.shapes import LIFT_FROM
from evergraph.rules.model import TRIPLE, TYPE, Atom, Rule, Variable
from evergraph.terms import Dictionary

EX = "http://example.org/"
PREFIX = f"@prefix ex: <{EX}> .\n"
X = Variable("x")

UNIVERSITY = """
rdfs:subPropertyOf[ex:headOf, ex:worksFor] .
rdfs:subPropertyOf[ex:worksFor, ex:memberOf] .
rdfs:domain[ex:worksFor, ex:Employee] .
rdfs:subClassOf[ex:Employee, ex:Person] .
rdfs:subClassOf[ex:Student, ex:Person] .
ex:headOf[ex:ada, ex:databases] .
ex:memberOf[ex:alan, ex:databases] .
ex:takes[ex:alan, ex:algebra] .
ex:Student[ex:alan] .
"""


def graph(rules: str | Program, text: str = "", engine: str = "memory") -> KnowledgeGraph:
    kg = KnowledgeGraph(rules, engine=engine, equality="off")
    if text:
        kg.update(insert=PREFIX + text)
    return kg


def schedule(kg: KnowledgeGraph) -> Schedule:
    engine: Any = getattr(kg._engine, "now", kg._engine)
    (scheduler,) = engine.shard.schedulers
    found: Schedule = scheduler.schedule({}, False)
    return found


def heads(kg: KnowledgeGraph, component: Component) -> set[str]:
    """The local names of what a component derives."""
    keys = {k for task in component.tasks for k in (task.heads or {task.rule.head.relation})}
    return {kg._dictionary.term(k)[1:-1].rpartition("/")[2].rpartition("#")[2] if isinstance(k, int) else k for k in keys}


def scheduled(kg: KnowledgeGraph) -> set[str]:
    """The names of the rules that have a task."""
    return {task.rule.name for component in schedule(kg).components for task in component.tasks}


@contextmanager
def counted_runs() -> Iterator[list[str]]:
    """The names of the rules the kernel evaluates, one for each evaluation."""
    names: list[str] = []
    real = Kernel.run

    def run(self: Kernel, rule: Any, *args: Any) -> None:
        names.append(rule.name)
        real(self, rule, *args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Kernel, "run", run)
        yield names


# -- order -------------------------------------------------------------------------------------------------------------


def test_properties_are_settled_from_the_narrowest_to_the_widest() -> None:
    kg = graph("rhodf", UNIVERSITY)
    plan = schedule(kg)
    assert plan.settled
    assert [heads(kg, component) for component in plan.components] == [{"worksFor"}, {"memberOf"}, {"type"}]
    assert [component.recursive for component in plan.components] == [False, False, True]
    assert [[task.inner for task in component.tasks] for component in plan.components[:2]] == [[()], [()]]


def test_a_closed_class_hierarchy_absorbs_its_own_output() -> None:
    (task,) = [t for c in schedule(graph("rhodf", UNIVERSITY)).components for t in c.tasks if t.rule.name == "rdfs9"]
    assert task.absorbing
    open_ended = Program.parse("[?x, a, ?c] :- [?b, rdfs:subClassOf, ?c], [?x, a, ?b] .")
    chain = "rdfs:subClassOf[ex:A, ex:B] . rdfs:subClassOf[ex:B, ex:C] . ex:A[ex:x] ."
    kg = graph(open_ended, chain)
    (task,) = schedule(kg).components[0].tasks
    assert not task.absorbing
    assert_same(everything(kg), everything(graph(open_ended, chain, "reference")))


def test_two_properties_that_imply_each_other_are_one_recursive_component() -> None:
    text = (
        "rdfs:subPropertyOf[ex:p, ex:q] . rdfs:subPropertyOf[ex:q, ex:p] . rdfs:subPropertyOf[ex:q, ex:r] . ex:p[ex:a, ex:b] ."
    )
    kg = graph("rhodf", text)
    found = [(heads(kg, component), component.recursive) for component in schedule(kg).components]
    assert found == [({"p", "q"}, True), ({"r"}, False)]
    assert_same(everything(kg), everything(graph("rhodf", text, "reference")))


def test_rules_that_cannot_fire_are_not_scheduled() -> None:
    kg = graph("owl2rl", UNIVERSITY)
    assert scheduled(kg) == {"prp-spo1", "prp-dom", "cax-sco", "dt-not-type"}
    assert not any(name.startswith("eq-rep") for name in scheduled(kg))


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("owl:sameAs[ex:ada, ex:countess] .", {"eq-rep-s", "eq-rep-p", "eq-rep-o", "eq-sym", "eq-trans"}),
        ("owl:inverseOf[ex:member, ex:memberOf] .", {"prp-inv1", "prp-inv2"}),
        ("owl:TransitiveProperty[ex:takes] .", {"prp-trp"}),
        ("owl:disjointWith[ex:Student, ex:Employee] .", {"cax-dw"}),
    ],
)
def test_what_arrives_later_schedules_what_it_makes_fire(text: str, rules: set[str]) -> None:
    kg = graph("owl2rl", UNIVERSITY)
    before = scheduled(kg)
    kg.update(insert=PREFIX + text)
    assert not rules & before
    assert rules <= scheduled(kg)
    assert_same(everything(kg), everything(graph("owl2rl", UNIVERSITY + text, "reference")))


def test_a_schedule_is_kept_while_it_fits() -> None:
    kg = graph("rhodf", UNIVERSITY)
    before = schedule(kg)
    kg.update(insert=PREFIX + "ex:headOf[ex:grace, ex:compilers] .")
    assert schedule(kg) is before
    kg.update(insert=PREFIX + "rdfs:subPropertyOf[ex:takes, ex:attends] .")
    assert schedule(kg) is not before
    assert {"attends"} in [heads(kg, component) for component in schedule(kg).components]


# -- schema that comes from data ---------------------------------------------------------------------------------------

DERIVED_SCHEMA = {
    "types by another name": (
        "rdfs:subPropertyOf[ex:myType, rdf:type] . rdfs:subClassOf[ex:C, ex:D] .",
        "ex:myType[ex:a, ex:C] . ex:myType[ex:p, owl:SymmetricProperty] . ex:p[ex:a, ex:b] .",
        {"rhodf": True, "rdfs": False, "owl2rl": False},
    ),
    "subclasses by another name": (
        "rdfs:subPropertyOf[ex:narrower, rdfs:subClassOf] .",
        "ex:narrower[ex:C, ex:D] . ex:narrower[ex:D, ex:E] . ex:C[ex:a] .",
        {"rhodf": False, "rdfs": False, "owl2rl": False},
    ),
    "a class of transitive properties": (
        "rdfs:subClassOf[ex:Chain, owl:TransitiveProperty] .",
        "ex:Chain[ex:p] . ex:p[ex:a, ex:b] . ex:p[ex:b, ex:c] . ex:p[ex:c, ex:d] .",
        {"rhodf": True, "rdfs": True, "owl2rl": False},
    ),
    "a domain that makes subproperties": (
        "rdfs:subPropertyOf[ex:refines, rdfs:subPropertyOf] . rdfs:domain[ex:q, ex:C] .",
        "ex:refines[ex:p, ex:q] . ex:p[ex:a, ex:b] .",
        {"rhodf": False, "rdfs": False, "owl2rl": False},
    ),
    "plain schema": (
        "rdfs:subClassOf[ex:C, ex:D] . rdfs:domain[ex:p, ex:C] .",
        "ex:p[ex:a, ex:b] . ex:C[ex:c] .",
        {"rhodf": True, "owl2rl": True},
    ),
}


@pytest.mark.parametrize(
    ("schema", "data", "rules", "settled"),
    [(s, d, rules, settled) for s, d, sets in DERIVED_SCHEMA.values() for rules, settled in sets.items()],
    ids=[f"{name}, {rules}" for name, (_, _, sets) in DERIVED_SCHEMA.items() for rules in sets],
)
def test_schema_from_data_is_seen_and_right(schema: str, data: str, rules: str, settled: bool) -> None:
    at_once = graph(rules, schema + data)
    assert schedule(at_once).settled == settled
    want = everything(graph(rules, schema + data, "reference"))
    assert_same(everything(at_once), want, "at once")
    for first, second in ((schema, data), (data, schema)):
        stepwise = graph(rules, first)
        stepwise.update(insert=PREFIX + second)
        assert_same(everything(stepwise), want, f"{first} before {second}")


# -- shapes ------------------------------------------------------------------------------------------------------------


def class_rules(count: int) -> Program:
    return Program(
        tuple(
            Rule(Atom(TRIPLE, (X, TYPE, f"<{EX}D{i}>")), (Atom(TRIPLE, (X, TYPE, f"<{EX}C{i}>")),), f"r{i}")
            for i in range(count)
        )
    )


def compiled(program: Program) -> Plan:
    return compile_program(program, Dictionary())


def rows_of(plan: Plan) -> dict[str, list[tuple[int, ...]]]:
    """The rows of the parameter relations."""
    return {name: list(zip(*(c.tolist() for c in cs), strict=True)) for name, cs in plan.parameter_facts.items()}


def instances(count: int) -> list[Atom]:
    return [Atom(TRIPLE, (f"<{EX}x{i}>", TYPE, f"<{EX}C{i}>")) for i in range(count)]


def evaluations(kg: KnowledgeGraph) -> tuple[int, int]:
    """Kernel evaluations for a first materialisation of ten facts, and for one more fact."""
    with counted_runs() as first:
        report = kg.update(insert=instances(10))
    assert report.inserted.derived == {TRIPLE: 10}
    with counted_runs() as second:
        report = kg.update(insert=[Atom(TRIPLE, (f"<{EX}late>", TYPE, f"<{EX}C1>"))])
    assert report.inserted.derived == {TRIPLE: 1}
    return len(first), len(second)


def test_a_hundred_thousand_rules_of_one_shape_are_one_rule_and_a_relation() -> None:
    kg = KnowledgeGraph(class_rules(100_000))
    ((name, rows),) = rows_of(kg._plan).items()
    (rules,) = kg._plan.strata
    (rule,) = rules.rules
    assert name.startswith(PARAMETER)
    assert len(rows) == len(set(rows)) == 100_000
    assert rule.body[0].relation == name
    assert len(kg._plan.rules[0]) == 100_000
    few = KnowledgeGraph(class_rules(20))
    many_evaluations = evaluations(kg)
    assert many_evaluations == evaluations(few)
    assert max(many_evaluations) <= 3
    assert (len(kg), len(few)) == (22, 22)


@pytest.mark.parametrize("count", [LIFT_FROM - 1, LIFT_FROM])
def test_few_rules_of_a_shape_stay_as_they_are(count: int) -> None:
    plan = compiled(class_rules(count))
    (rules,) = plan.strata
    if count < LIFT_FROM:
        assert len(rules.rules) == len(plan.rules[0])
        assert not plan.parameters
    else:
        assert len(rules.rules) == 1
        assert [len(rows) for rows in rows_of(plan).values()] == [count]


def test_constants_that_all_rules_of_a_shape_share_stay_in_the_rule() -> None:
    text = "".join(f"ex:Big[?x] :- ex:p{i}[?x, ex:yes], ?x != ex:n{i} .\n" for i in range(10))
    plan = compiled(Program.parse(PREFIX + text))
    (rows,) = rows_of(plan).values()
    assert {len(row) for row in rows} == {2}
    (rule,) = plan.strata[0].rules
    assert sum(isinstance(value, int) for value in (rule.head.relation, *rule.head.args, *rule.body[1].args)) == 3


def test_rules_of_different_shapes_do_not_mix() -> None:
    text = "".join(
        f"ex:D{i}[?x] :- ex:C{i}[?x] . ex:q{i}[?y, ?x] :- ex:p{i}[?x, ?y] . r{i}(?x) :- ex:C{i}[?x] .\n" for i in range(10)
    )
    program = Program.parse(PREFIX + text)
    plan = compiled(program)
    assert sorted(len(rows) for rows in rows_of(plan).values()) == [10, 10]
    assert len(plan.strata[0].rules) == 2 + 10
    facts = PREFIX + "".join(f"ex:C{i}[ex:x{i}] . ex:p{i}[ex:x{i}, ex:y] .\n" for i in range(0, 10, 3))
    fast, slow = KnowledgeGraph(program), KnowledgeGraph(program, engine="reference")
    fast.update(insert=facts)
    slow.update(insert=facts)
    assert_same(everything(fast), everything(slow))


# -- the work of a change ----------------------------------------------------------------------------------------------


def population(start: int, count: int) -> list[Atom]:
    """People who head departments, study and advise; everyone on their own."""
    out = []
    for i in range(start, start + count):
        person, place = f"<{EX}person{i}>", f"<{EX}place{i}>"
        out.append(Atom(TRIPLE, (person, f"<{EX}headOf>", place)))
        out.append(Atom(TRIPLE, (f"<{EX}student{i}>", TYPE, f"<{EX}Student>")))
        out.append(Atom(TRIPLE, (place, f"<{EX}partOf>", f"<{EX}whole{i}>")))
        out.append(Atom(TRIPLE, (f"<{EX}whole{i}>", f"<{EX}partOf>", f"<{EX}top{i}>")))
    return out


WORK = UNIVERSITY + "owl:TransitiveProperty[ex:partOf] . owl:inverseOf[ex:member, ex:memberOf] ."


def work_of_insertion(rules: str, size: int) -> tuple[Report, list[str]]:
    kg = graph(rules, WORK)
    kg.update(insert=population(1000, size))
    with counted_runs() as names:
        report = kg.update(insert=population(0, 25))
    return report, names


@pytest.mark.parametrize("rules", ["rhodf", "rdfs", "owl2rl"])
def test_the_work_of_an_insertion_does_not_depend_on_the_size_of_the_graph(rules: str) -> None:
    (small, small_runs), (large, large_runs) = work_of_insertion(rules, 200), work_of_insertion(rules, 1600)
    assert small.inserted.explicit == large.inserted.explicit == {TRIPLE: 100}
    assert small.inserted.derived == large.inserted.derived
    assert small.derivations == large.derivations > 100
    assert small.rounds == large.rounds
    assert small_runs == large_runs


def test_facts_of_which_nothing_follows_make_no_derivation() -> None:
    kg = graph("rhodf", UNIVERSITY)
    kg.update(insert=PREFIX + "ex:takes[ex:grace, ex:algebra] .")
    with counted_runs() as names:
        report = kg.update(insert=PREFIX + "ex:takes[ex:alan, ex:logic] .")
    assert (report.derivations, report.inserted.explicit, report.inserted.derived) == (0, {TRIPLE: 1}, {})
    assert len(names) <= sum(len(component.tasks) for component in schedule(kg).components) - 1
    assert "rdfs9" not in names
    assert report.rounds <= len(schedule(kg).components)
