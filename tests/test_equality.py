"""Equality by representatives: names, groups, what readers see, and how much work it is. Laws: `test_equality_laws.py`."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from conftest import assert_same, everything
from evergraph import KnowledgeGraph, Program, UserError
from evergraph.engine_choice import in_process
from evergraph.engines.arrays import U64, Arrays
from evergraph.engines.base import Which
from evergraph.engines.equality.engine import Rewriting
from evergraph.engines.equality.expansion import Expansion
from evergraph.engines.equality.explicit import Explicit
from evergraph.engines.equality.names import Names
from evergraph.engines.relation import Relation, run_of
from evergraph.explain import explain
from evergraph.plan.equality import ONE, ONE_IF_UNEQUAL, grouped, is_group
from evergraph.plan.model import PARAMETER, Key, PlanRule, encode_rules
from evergraph.plan.shapes import hidden
from evergraph.rules.equality import Equality, derives_equality, equality_of, is_axiom
from evergraph.rules.model import OWL, SAME, TRIPLE, Atom
from evergraph.rules.printer import print_atom
from evergraph.terms import Dictionary
from proofs import Held, check, least_heights
from proofs import some as some_of
from strategies import coming_and_going, equal_programs, equal_updates

EX = "http://example.org/"
PREFIX = f"@prefix : <{EX}> .\n"
FUNCTIONAL = "[?y, owl:sameAs, ?z] :- [?x, :p, ?y], [?x, :p, ?z] ."
ARRAYS = Arrays()
HELPER = f"{PARAMETER}helper"


def graph(rules: str, facts: str = "", **options: Any) -> KnowledgeGraph:
    kg = KnowledgeGraph(Program.parse(PREFIX + rules), **options)
    if facts:
        kg.update(insert=PREFIX + facts)
    return kg


def engine(kg: KnowledgeGraph) -> Rewriting:
    found = in_process(kg._engine)
    assert isinstance(found, Rewriting)
    return found


def short(term: str) -> str:
    return term.removeprefix(f"<{EX}").removesuffix(">") if term != SAME else "≈"


def kept(kg: KnowledgeGraph) -> tuple[dict[str, str], set[str]]:
    """π, of names that are not their own representatives, and I: what is kept."""
    names, decode = engine(kg).names, kg._dictionary.term
    moved = zip(names.moved.tolist(), names.represented.tolist(), strict=True)
    facts = set()
    for key, relation in engine(kg).below.held().items():
        if not hidden(key):
            for left, right in zip(*(c.tolist() for c in relation.columns()), strict=True):
                facts.add(" ".join(map(short, (decode(left), decode(int(key)), decode(right)))))
    return {short(decode(name)): short(decode(one)) for name, one in moved}, facts


# -- the paper ---------------------------------------------------------------------------------------------------------


def test_the_example_of_section_3_1() -> None:
    """A relation is bijective; a fact goes, two names part, and the graph that is kept grows."""
    rules = """
    [?y1, owl:sameAs, ?y2] :- [?y1, :R, ?x], [?y2, :R, ?x] .
    [?y1, owl:sameAs, ?y2] :- [?x, :R, ?y1], [?x, :R, ?y2] ."""
    kg = graph(rules, "[:a, :R, :b] . [:c, :R, :d] . [:a, :R, :d] .")
    assert kept(kg) == ({"c": "a", "d": "b"}, {"a R b", "a ≈ a", "R ≈ R", "b ≈ b", "≈ ≈ ≈"})
    assert len(kg) == 14
    report = kg.update(delete=PREFIX + "[:a, :R, :d] .", algorithm="backward-forward")
    assert kept(kg) == ({}, {"a R b", "a ≈ a", "R ≈ R", "b ≈ b", "≈ ≈ ≈", "c R d", "c ≈ c", "d ≈ d"})
    assert (len(kg), report.deleted.explicit, report.deleted.derived) == (8, {TRIPLE: 1}, {TRIPLE: 5})
    assert not report.inserted.explicit and not report.inserted.derived


# -- what equality is --------------------------------------------------------------------------------------------------


def test_the_default_is_to_rewrite_where_a_rule_derives_equality() -> None:
    assert equality_of(None, Program.load("owl2rl")) == Equality.REWRITE
    assert {equality_of(None, Program.load(name)) for name in ("rhodf", "rdfs", "rdfs-jena")} == {Equality.OFF}
    assert equality_of(None, Program.parse(PREFIX + FUNCTIONAL)) == Equality.REWRITE
    assert equality_of(None, Program.parse(PREFIX + "[:a, owl:sameAs, :b] .")) == Equality.REWRITE
    for asked in Equality:
        assert equality_of(str(asked), Program()) == asked
    with pytest.raises(UserError, match=r"EG302.*no equality is called 'on'.*rewrite, axioms, off"):
        KnowledgeGraph("rhodf", equality="on")


def test_where_equality_depends_on_a_negation_the_default_is_off() -> None:
    """`owl2rl-full` tells values apart by a negation, and any triple may follow from that by its other rules."""
    assert equality_of(None, Program.load("owl2rl-full")) == Equality.OFF
    with pytest.raises(UserError, match=r"EG010.*differentFrom"):
        KnowledgeGraph("owl2rl-full", equality="rewrite")


def test_rules_that_say_what_equality_means_derive_none() -> None:
    full = Program.load("owl2rl-full")
    known = [rule for rule in full.rules if is_axiom(rule)]
    assert {rule.name for rule in known} == {"eq-ref", "eq-sym", "eq-trans", "eq-rep-s", "eq-rep-p", "eq-rep-o"}
    assert len(known) == sum(rule.name.startswith(("eq-ref", "eq-sym", "eq-trans", "eq-rep")) for rule in full.rules)
    assert not derives_equality(Program(tuple(known)))
    assert derives_equality(full.without(["prp-fp"]))


@pytest.mark.parametrize(
    ("rule", "axiom"),
    [
        ("[?b, owl:sameAs, ?a] :- [?a, owl:sameAs, ?b] .", True),
        ("[?a, owl:sameAs, ?c] :- [?b, owl:sameAs, ?c], [?a, owl:sameAs, ?b] .", True),
        ("[?s, ?p, ?n] :- [?o, owl:sameAs, ?n], [?s, ?p, ?o] .", True),
        ("[?p, owl:sameAs, ?p] :- [?s, ?p, ?o] .", True),
        ("[?a, owl:sameAs, ?b] :- [?a, ?p, ?b] .", False),
        ("[?s, :p, ?n] :- [?s, :p, ?o], [?o, owl:sameAs, ?n] .", False),
        ("[?n, ?p, ?o] :- [?s, ?p, ?o], [?s, owl:sameAs, ?m], [?m, owl:sameAs, ?n] .", False),
    ],
)
def test_axioms_are_known_whatever_their_variables_are_called(rule: str, axiom: bool) -> None:
    assert is_axiom(Program.parse(PREFIX + rule).rules[0]) == axiom


@pytest.mark.parametrize("equality", ["rewrite", "axioms"])
def test_equality_must_not_depend_on_a_negation(equality: str) -> None:
    rules = "q(?x) :- p(?x, ?x) .\n[?x, owl:sameAs, ?y] :- p(?x, ?y), NOT q(?x) ."
    with pytest.raises(UserError, match=r"<text>:3:\d+: error EG010: equality depends on a negation: .*use equality off"):
        graph(rules, equality=equality)
    kg = graph(rules, "p(1, 2) .", equality="off")
    assert len(kg) == 1
    settled = graph("[?x, owl:sameAs, ?y] :- p(?x, ?y) . q(?x) :- n(?x), NOT p(?x, ?x) .", equality=equality)
    with pytest.raises(UserError, match="EG010"):
        settled.update(insert_rules=PREFIX + "[?x, owl:sameAs, ?y] :- n(?x), n(?y), q(?x), q(?y) .")
    assert len(settled.rules.rules) == 2


def test_off_takes_same_as_for_a_property_like_any_other() -> None:
    kg = graph(FUNCTIONAL, "[:a, :p, :b] . [:a, :p, :c] . [:b, :q, :d] .", equality="off")
    assert len(kg) == 3 + 4
    assert not isinstance(in_process(kg._engine), Rewriting)


@pytest.mark.parametrize("algorithm", ["dred", "counting", "declarative"])
def test_algorithms_that_do_not_rewrite_say_so(algorithm: str) -> None:
    kg = graph(FUNCTIONAL, "[:a, :p, :b] . [:a, :p, :c] .")
    with pytest.raises(UserError, match=f"EG205: {algorithm} does not maintain equality .*backward-forward"):
        kg.update(delete=PREFIX + "[:a, :p, :c] .", algorithm=algorithm)
    assert len(kg) == 2 + 4 + 3


@pytest.mark.parametrize("equality", ["rewrite", "axioms"])
def test_relations_that_only_a_rehearsal_met_are_met_again(equality: str) -> None:
    kg = graph("[?x, :q, ?y] :- [?x, :p, ?y] .", "[:b, owl:sameAs, :c] .", equality=equality)
    kg.update(insert=PREFIX + "seen(:b) .", dry_run=True)
    kg.update(insert=PREFIX + "seen(:b) .")
    assert len(kg.relation("seen")) == 2
    kg.verify()


@pytest.mark.parametrize("equality", ["rewrite", "axioms"])
def test_a_relation_is_known_when_the_rules_that_mentioned_it_are_gone(equality: str) -> None:
    rule = "[?x, a, :Seen] :- seen(?x) ."
    kg = graph(rule, "seen(:b) .", equality=equality)
    kg.update(delete_rules=PREFIX + rule)
    kg.update(insert=PREFIX + "[:b, owl:sameAs, :c] .")
    assert len(kg.relation("seen")) == 2
    kg.verify()
    kg.verify("reference")


def test_rules_that_go_before_there_is_a_fact_may_meet_a_relation() -> None:
    rule = PREFIX + FUNCTIONAL
    kg = graph(FUNCTIONAL)
    report = kg.update(insert="seen(1) .", delete_rules=rule)
    assert (len(kg.rules.rules), len(report.rules_deleted)) == (0, 1)


@pytest.mark.parametrize("algorithm", ["auto", "dred", "counting", "backward-forward", "declarative"])
def test_axioms_below_a_negation_do_not_read_what_is_above_it(algorithm: str) -> None:
    """What an upper stratum has derived before is no reason to replace names in it, in a lower one."""
    rules = f"{FUNCTIONAL} alone(?x) :- n(?x), NOT [?x, :knows, :z] . [?x, :lonely, :z] :- alone(?x) ."
    kg = graph(rules, "n(:b) . n(:c) . [:c, :knows, :z] . [:a, :p, :b] .", equality="axioms")
    kg.update(insert=PREFIX + "[:a, :p, :c] .", algorithm=algorithm)
    assert not [row for row in kg.triples() if str(row[1]) == f"{EX}lonely"]
    kg.verify()
    kg.verify("reference")


# -- names -------------------------------------------------------------------------------------------------------------


def ids(*values: int) -> Any:
    return np.asarray(values, U64)


def merged(names: Names, *pairs: tuple[int, int], first: int = 1000) -> Names:
    left, right = (ids(*(pair[i] for pair in pairs)) for i in (0, 1))
    return names.merged(left, right, first)[0]


def as_dict(names: Names) -> dict[int, int]:
    return dict(zip(names.moved.tolist(), names.represented.tolist(), strict=True))


def test_the_smallest_name_represents_a_clique() -> None:
    names = merged(Names.none(ARRAYS), (7, 9), (9, 2), (4, 5))
    assert as_dict(names) == {7: 2, 9: 2, 5: 4}
    assert names.of(ids(1, 2, 5, 7, 9, 11)).tolist() == [1, 2, 4, 2, 2, 11]
    assert [names.name(n) for n in (9, 3)] == [2, 3]
    assert names.has(ids(2, 5, 9)).tolist() == [False, True, True]
    assert names.alone(ids(2, 3, 4)).tolist() == [False, True, False]
    cliques, sizes = names.cliques()
    assert (cliques.tolist(), sizes.tolist(), len(names)) == ([2, 4], [3, 2], 3)
    assert names.sizes(ids(4, 2, 6)).tolist() == [2, 3, 1]


def test_merging_tells_which_representatives_gave_way() -> None:
    names = merged(Names.none(ARRAYS), (7, 9), (4, 5))
    after, changed = names.merged(ids(9, 1), ids(5, 8), 1000)
    assert as_dict(after) == {5: 4, 7: 4, 9: 4, 8: 1}
    assert as_dict(changed) == {7: 4, 8: 1}
    assert as_dict(names) == {9: 7, 5: 4}


def test_same_as_represents_its_clique_whatever_its_id() -> None:
    names = merged(Names.none(ARRAYS), (7, 3), (7, 9), first=7)
    assert as_dict(names) == {3: 7, 9: 7}
    assert as_dict(merged(names, (2, 9), (1, 4), first=7)) == {2: 7, 3: 7, 9: 7, 4: 1}
    kg = graph("[?x, :q, ?y] :- [?x, :p, ?y] .", "[:early, owl:sameAs, owl:sameAs] .", equality="rewrite")
    assert kept(kg)[0] == {"early": "≈"}
    kg.update(insert=PREFIX + "[:a, :early, :b] .")
    assert kept(kg)[0] == {"early": "≈", "b": "a"}


def test_members_are_the_names_that_one_stands_for() -> None:
    names = merged(Names.none(ARRAYS), (7, 9), (9, 2), (4, 5))
    places, members = names.members(ids(4, 3, 2))
    assert sorted(zip(places.tolist(), members.tolist(), strict=True)) == [(0, 4), (0, 5), (1, 3), (2, 2), (2, 7), (2, 9)]
    places, members = Names.none(ARRAYS).members(ids(4))
    assert (places.tolist(), members.tolist()) == ([0], [4])


def test_less_are_the_names_that_have_another_representative() -> None:
    old = merged(Names.none(ARRAYS), (7, 9), (4, 5))
    new = merged(old, (2, 7))
    assert new.less(old).tolist() == old.less(new).tolist() == [7, 9]
    assert new.less(new).tolist() == [] and old.less(Names.none(ARRAYS)).tolist() == [5, 9]


pairs = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=8)


@given(pairs, pairs)
def test_names_are_the_components_of_all_pairs(some: list[tuple[int, int]], more: list[tuple[int, int]]) -> None:
    first = 5
    cliques = {n: {n} for n in range(13)}
    for left, right in (*some, *more):
        joined = cliques[left] | cliques[right]
        cliques |= dict.fromkeys(joined, joined)
    names = merged(merged(Names.none(ARRAYS), *some, first=first), *more, first=first)
    want = {n: first if first in clique else min(clique) for n, clique in cliques.items()}
    assert dict(enumerate(names.of(np.arange(13, dtype=U64)).tolist())) == want
    assert as_dict(names) == {n: one for n, one in want.items() if n != one}
    assert as_dict(Names.of_pairs(ARRAYS, ids(*reversed(want)), ids(*reversed(want.values())))) == as_dict(names)


# -- what a normalised graph stands for --------------------------------------------------------------------------------


def relations(**rows: Iterable[tuple[int, ...]]) -> dict[Key, Relation]:
    """Relations by name; `p7` has the predicate 7."""
    out: dict[Key, Relation] = {}
    for name, some in rows.items():
        columns = [np.asarray(column, U64) for column in zip(*some, strict=True)]
        out[int(name[1:]) if name[1:].isdigit() else name] = Relation(run_of(ARRAYS, columns, len(columns[0])))
    return out


def rows_of(relation: Relation) -> set[tuple[int, ...]]:
    return {*zip(*(c.tolist() for c in relation.columns()), strict=True)}


def test_readers_see_every_name_and_only_what_is_read_is_expanded() -> None:
    names = merged(Names.none(ARRAYS), (2, 9), (3, 8), (20, 21))
    view = Expansion(relations(p20=[(2, 3), (4, 5)], p30=[(4, 4)], seen=[(2, 2, 4)], **{HELPER: [(2, 2)]}), names)
    assert {*view} == {20, 21, 30, "seen"} and len(view) == 4
    assert 21 in view and 22 not in view and HELPER not in view
    assert view.sizes() == {20: 5, 21: 5, 30: 1, "seen": 4}
    assert not view._made
    assert rows_of(view[21]) == rows_of(view[20]) == {(2, 3), (2, 8), (9, 3), (9, 8), (4, 5)}
    assert rows_of(view["seen"]) == {(2, 2, 4), (2, 9, 4), (9, 2, 4), (9, 9, 4)}
    assert view[30] is view.relations[30]
    assert view.contains(21, [ids(9, 9, 4), ids(8, 4, 5)], 3).tolist() == [True, False, True]
    assert view.contains(99, [ids(9), ids(8)], 1).tolist() == [False]


def test_explicit_facts_are_found_by_what_stands_for_them() -> None:
    names = merged(Names.none(ARRAYS), (2, 9), (20, 21))
    explicit = Explicit.of(relations(p20=[(2, 3), (9, 3)], p21=[(9, 3), (4, 4)], seen=[(9, 1)]), names)
    found = explicit.behind({key: r.base for key, r in relations(p20=[(2, 3)], seen=[(2, 1)]).items()})
    assert {key: rows_of(Relation(run)) for key, run in found.items()} == {20: {(2, 3), (9, 3)}, 21: {(9, 3)}, "seen": {(9, 1)}}
    assert {key: rows_of(Relation(run)) for key, run in explicit.apart().items()} == {
        20: {(9, 3)},
        21: {(9, 3), (4, 4)},
        "seen": {(9, 1)},
    }
    assert explicit.mentioned(ids(1, 3, 9, 21, 22)).tolist() == [False, True, True, True, False]


small = st.integers(0, 6)
rows = st.sets(st.tuples(small, small), min_size=1, max_size=8)
states = st.tuples(rows, rows, rows, st.lists(st.tuples(small, small), max_size=4))


@given(st.lists(states, min_size=1, max_size=4))
def test_explicit_facts_after_a_change_are_those_found_anew(steps: list[Any]) -> None:
    known: Explicit | None = None
    for two, five, seen, equal in steps:
        facts, names = relations(p2=two, p5=five, seen=seen), merged(Names.none(ARRAYS), *equal)
        anew = Explicit.of(facts, names)
        known = anew if known is None else known.after(facts, names)
        kept, want = ({k: rows_of(r) for k, r in one.aside.items() if len(r)} for one in (known, anew))
        assert kept == want


# -- groups ------------------------------------------------------------------------------------------------------------


def forms(rule: str) -> tuple[PlanRule, tuple[PlanRule, ...]]:
    """A rule as a plan has it, and what is made of it."""
    dictionary = Dictionary()
    plain = encode_rules(Program.parse(PREFIX + rule).rules, dictionary.encode)[0]
    return plain, grouped(plain, int(dictionary.encode([SAME])[0]))


@pytest.mark.parametrize(
    "rule",
    [
        FUNCTIONAL,
        "[?x, owl:sameAs, ?y] :- [?x, :p, ?z], [?y, :p, ?z] .",
        "[?x, owl:sameAs, ?y] :- [?x, a, :C], [?x, :p, ?z], [?y, a, :C], [?y, :p, ?z] .",
        "[?y, owl:sameAs, ?z] :- [?p, a, owl:FunctionalProperty], [?x, ?p, ?y], [?x, ?p, ?z] .",
        "[?y, owl:sameAs, ?z] :- [?x, :p, ?y], [?x, :p, ?z], ?y > 1, ?z > 1 .",
        "[?y, owl:sameAs, ?z] :- [?y, a, :C], [?z, a, :C] .",
        "[?y, owl:sameAs, ?z] :- [?x, :p, ?y], [?x, :p, ?z], ?x > 1 .",
    ],
)
def test_rules_that_make_a_group_one_are_grouped(rule: str) -> None:
    plain, (found,) = forms(rule)
    assert is_group(found.head.relation) and not str(found.head.relation).startswith(ONE_IF_UNEQUAL)
    assert len(found.body) < len(plain.body) and len(found.filters) <= len(plain.filters)


def test_values_that_differ_make_a_group_one() -> None:
    _, (found,) = forms(FUNCTIONAL.replace(" .", ", ?y != ?z ."))
    assert str(found.head.relation).startswith(ONE_IF_UNEQUAL) and not found.filters
    _, (turned,) = forms(FUNCTIONAL.replace(" .", ", ?z != ?y ."))
    assert str(turned.head.relation).startswith(ONE_IF_UNEQUAL)


@pytest.mark.parametrize(
    "rule",
    [
        "[?y, owl:sameAs, ?z] :- [?x, :p, ?y], [?x, :q, ?z] .",
        "[?y, owl:sameAs, ?z] :- [?x, :p, ?y], [?x, :p, ?z], ?y > 1 .",
        "[?y, owl:sameAs, ?z] :- [?y, a, :C], [?z, a, :D] .",
    ],
)
def test_the_two_parts_of_other_rules_feed_one_group(rule: str) -> None:
    plain, (one, other) = forms(rule)
    assert one.head.relation == other.head.relation and str(one.head.relation).startswith(ONE)
    assert one.head.args[:-1] == other.head.args[:-1] and one.head.args[-1] != other.head.args[-1]
    assert one.body == other.body == plain.body


def test_names_that_only_relations_mention_are_the_same_as_themselves() -> None:
    _, (found, itself) = forms("[?y, owl:sameAs, ?z] :- r(?x, ?y), r(?x, ?z) .")
    assert itself.head.args == ("?y", "?y") and itself.body[0].relation == found.head.relation


@pytest.mark.parametrize(
    "rule",
    [
        "[?y, owl:sameAs, ?z] :- [?y, :p, ?z] .",
        "[?y, owl:sameAs, ?z] :- [?x, :p, ?y], [?x, :p, ?z], ?y < ?z .",
        "[?y, owl:sameAs, ?z] :- [?x, :p, ?y], [?x, :p, ?z], ?y = ?z .",
        "[?y, owl:sameAs, ?z] :- [?x, :p, ?y], [?x, :q, ?z], ?y != ?z .",
        "[?y, owl:sameAs, ?z] :- [?x, :p, ?y], [?x, :p, ?z], [?y, :q, ?z] .",
        "[?y, owl:sameAs, :a] :- [?x, :p, ?y] .",
        "[?y, owl:sameAs, ?y] :- [?x, :p, ?y] .",
        "[?y, :q, ?z] :- [?x, :p, ?y], [?x, :p, ?z] .",
        "r(?y, ?z) :- [?x, :p, ?y], [?x, :p, ?z] .",
    ],
)
def test_rules_about_pairs_stay_as_they_are(rule: str) -> None:
    plain, found = forms(rule)
    assert found == (plain,)


# -- how much work it is -----------------------------------------------------------------------------------------------


def values(n: int) -> str:
    return "".join(f"[:a, :p, :v{i}] . [:v{i}, :q, :w{i}] . " for i in range(n))


@pytest.mark.parametrize("rule", [FUNCTIONAL, FUNCTIONAL.replace(" .", ", ?y != ?z .")])
def test_values_of_a_functional_property_are_merged_and_parted_in_linear_work(rule: str) -> None:
    loads, deletions = [], []
    for n in (100, 200, 400):
        kg = graph(rule)
        loads.append(kg.update(insert=PREFIX + values(n)))
        assert engine(kg).kept()["largest"] == n
        deletions.append(kg.update(delete=PREFIX + "[:a, :p, :v7] .", algorithm="backward-forward"))
        assert engine(kg).kept()["largest"] == n - 1
    for reports in (loads, deletions):
        for smaller, larger in pairwise(reports):
            assert larger.derivations < 2.1 * smaller.derivations
            assert larger.examined < 2.1 * smaller.examined


def test_idle_rules_add_no_work_to_a_deletion() -> None:
    reports = {}
    for idle in (0, 200, 400):
        rules = "".join(f"[?x, rdf:type, ?y] :- [?x, :idle{i:03}, ?y] . " for i in range(idle))
        kg = graph(FUNCTIONAL + rules)
        kg.update(insert=PREFIX + "".join(f"[:a{i}, :p, :v{i}] . [:a{i}, :p, :u{i}] . [:u{i}, a, :C] ." for i in range(50)))
        reports[idle] = kg.update(delete=PREFIX + "[:a7, :p, :v7] .", algorithm="backward-forward")
    for few, many in pairwise(reports.values()):
        assert (few.derivations, few.examined, few.rounds) == (many.derivations, many.examined, many.rounds)


@pytest.mark.work
def test_merging_and_parting_two_names_touches_only_facts_that_mention_them() -> None:
    work = []
    for n in (500, 4000):
        kg = graph(FUNCTIONAL, "".join(f"[:s{i}, :q, :o{i}] . " for i in range(n)))
        kg.update(insert=PREFIX + "[:x, :p, :b] . [:b, :q, :e] . [:c, :q, :f] .")
        merging = kg.update(insert=PREFIX + "[:x, :p, :c] .")
        assert kept(kg)[0] == {"c": "b"}
        parting = kg.update(delete=PREFIX + "[:x, :p, :c] .")
        work.append([(r.algorithm, r.derivations, r.examined, r.rounds) for r in (merging, parting)])
    assert work[0] == work[1]
    assert [step[0] for step in work[0]] == ["seminaive", "backward-forward"]
    assert all(step[2] < 50 for step in work[0])


def test_counting_a_large_clique_expands_nothing() -> None:
    kg = graph(FUNCTIONAL, values(300))
    assert len(kg) == kg.counts()[TRIPLE] > 300 * 300
    assert not engine(kg)._expansion()._made
    assert engine(kg).kept()["facts"] < 1000


# -- queries -----------------------------------------------------------------------------------------------------------

PEOPLE = """
[:ann, :mail, "a"] . [:anna, :mail, "a"] . [:anne, :mail, "a"] . [:bob, :mail, "b"] .
[:ann, :knows, :bob] . [:bob, :knows, :anna] . [:anne, :age, 7] . [:bob, :age, 9] . [:knows, owl:sameAs, :met] .
"""
QUERIES = [
    "SELECT ?x { ?x :knows :bob }",
    "SELECT (COUNT(*) AS ?n) { ?x :knows ?y }",
    "SELECT (COUNT(DISTINCT ?x) AS ?n) { ?x :knows ?y }",
    "SELECT ?x ?y ?z { ?x :knows ?y . ?y :knows ?z }",
    "SELECT ?x (COUNT(?y) AS ?n) { ?x ?p ?y } GROUP BY ?x",
    'SELECT ?x { ?x :age 7 FILTER (STRENDS(STR(?x), "anne")) }',
    "SELECT ?x (STR(?x) AS ?s) (STRLEN(STR(?x)) AS ?n) { ?x :age ?a }",
    "SELECT ?x ?y { ?x :age ?a . ?y :age ?b FILTER (?x != ?y) }",
    "SELECT ?x ?y { ?x owl:sameAs ?y FILTER (?x != ?y) }",
    "SELECT ?y { :ann :knows/:knows ?y }",
    "SELECT ?y { :anna (:knows|:met)+ ?y }",
    "SELECT ?x ?y { ?x :knows* ?y }",
    "SELECT ?x ?p { ?x ?p :bob }",
    "SELECT ?x ?a { ?x :mail ?m OPTIONAL { ?x :age ?a } }",
    "SELECT ?x { ?x :mail ?m FILTER NOT EXISTS { ?x :knows :ann } }",
    "SELECT ?x { VALUES ?x { :ann :anna :nobody } ?x :age ?a }",
    "ASK { :anna :met :bob }",
]


@pytest.mark.parametrize("which", [Which.ALL, Which.EXPLICIT])
@pytest.mark.parametrize("question", QUERIES)
def test_answers_are_those_under_axioms_as_often(question: str, which: Which) -> None:
    text = f"PREFIX : <{EX}> PREFIX owl: <{OWL}> {question}"
    found = []
    for equality in ("rewrite", "axioms"):
        kg = graph("[?x, owl:sameAs, ?y] :- [?x, :mail, ?m], [?y, :mail, ?m] .", PEOPLE, equality=equality)
        answer = kg.query(text, which=which)
        found.append(answer.askAnswer if answer.type == "ASK" else sorted(map(str, answer)))
    assert found[0] == found[1]
    if which == Which.ALL:
        assert found[0]


def test_answers_have_the_names_that_were_given() -> None:
    kg = graph("[?x, owl:sameAs, ?y] :- [?x, :mail, ?m], [?y, :mail, ?m] .", PEOPLE)
    names = {str(row.x).removeprefix(EX) for row in kg.query(f"PREFIX : <{EX}> SELECT ?x {{ ?x :met :bob }}")}
    assert names == {"ann", "anna", "anne"}
    explicit = kg.query(f"PREFIX : <{EX}> SELECT ?x {{ ?x :knows :bob }}", which="explicit")
    assert [str(row.x).removeprefix(EX) for row in explicit] == ["ann"]


# -- why ---------------------------------------------------------------------------------------------------------------

WHY = """\
:age[:ann, 7]  by equal in place 1
├─ :age[:anne, 7]  explicit
└─ owl:sameAs[:anne, :ann]  by mail
   ├─ :mail[:anne, "a"]  explicit
   └─ :mail[:ann, "a"]  explicit"""
ITSELF = """\
owl:sameAs[7, 7]  by equal to itself
└─ :age[:anne, 7]  explicit"""


@pytest.mark.parametrize("equality", ["rewrite", "axioms"])
def test_a_proof_says_where_names_are_the_same(equality: str) -> None:
    rule = '#[name("mail")] [?x, owl:sameAs, ?y] :- [?x, :mail, ?m], [?y, :mail, ?m] .'
    kg = graph(rule, '[:ann, :mail, "a"] . [:anne, :mail, "a"] . [:anne, :age, 7] . [:bob, :mail, "b"] .', equality=equality)
    assert str(explain(kg, f"<{EX}age>[<{EX}ann>, 7]")) == WHY
    assert str(explain(kg, "owl:sameAs[7, 7]")) == ITSELF


@pytest.mark.parametrize("equality", ["rewrite", "axioms"])
def test_every_fact_has_a_proof_of_the_smallest_height(equality: str) -> None:
    @given(equal_programs, equal_updates)
    @settings(max_examples=25, phases=[Phase.generate])
    def law(program: Program, steps: list[tuple[list[Atom], int]]) -> None:
        kg = KnowledgeGraph(program, equality=equality)
        for insert, delete in coming_and_going(steps):
            kg.update(insert=insert, delete=delete)
        held = Held(kg)
        heights = least_heights(held, list(held.instances())) if len(held.all) < 80 else {}
        for fact in some_of(held.derived, 6):
            height = check(held, explain(kg, fact))
            assert height == heights.get(fact, height), print_atom(fact)

    law()


def test_explicit_facts_are_shown_as_they_were_given() -> None:
    kg = graph(FUNCTIONAL, "[:a, :p, :b] . [:a, :p, :c] . [:c, :q, :d] .")
    want = {print_atom(Atom(TRIPLE, tuple(f"<{EX}{n}>" for n in row))) for row in ("apb", "apc", "cqd")}
    assert_same(everything(kg, Which.EXPLICIT), want)


def test_what_comes_takes_away_what_negated_it_where_no_rule_derives_equality() -> None:
    kg = KnowledgeGraph(Program.parse("q(?x) :- p(?x, ?w), NOT r(?w, ?x) . p(1, 2) . p(3, 2) ."), equality="rewrite")
    kg.update(insert="r(2, 1) . p(4, 2) .", delete="p(3, 2) .")
    assert sorted(int(x) for (x,) in kg.relation("q")) == [4]
    kg.verify()
