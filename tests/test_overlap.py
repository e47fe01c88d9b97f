"""Updates that overlap: whenever each joins, the result is that of one after the other (Illich, Glimm 2023)."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from evergraph import KnowledgeGraph, Program
from evergraph.engines.arrays import U64
from evergraph.engines.marks import count_of, rank_of
from evergraph.engines.relation import Relation
from evergraph.engines.sets import runs_of, with_runs
from evergraph.maintain.dynamic import CROWD, PATIENCE, TURN, Step
from overlapping import BOTH, Turns, Update, assert_equal, graph, interleavings, serial
from strategies import dense_changes, layered_programs, ontology_updates, programs
from test_counting import Fact, instances
from test_deletions import ontology_changes

IN_PROCESS = ["dred", "counting", "backward-forward"]
generated = settings(max_examples=100, phases=[Phase.explicit, Phase.reuse, Phase.generate])
any_programs, seeds = programs | layered_programs, st.integers(0, 2**32)
CIRCLE = "b() :- a() . c() :- b() . a() :- c() ."


def begun(rules: str, base: str, algorithm: str, engine: str = "memory", chunk: int = 1 << 13) -> Turns:
    kg = graph(Program.parse(rules), engine)
    kg.update(insert=f"other() . {base}")
    return Turns(kg, algorithm, chunk)


def names(turns: Turns) -> set[str]:
    """What is there, less the fact that makes a graph of it."""
    return {fact.removesuffix("()") for fact in turns.there()} - {"other"}


def count(turns: Turns, name: str) -> int:
    """How many derivations count for a fact without arguments."""
    shard = turns.shard
    assert shard.marks is not None
    return int(count_of(shard.marks[name].of(shard.arrays, shard.arrays.pack([], 1)))[0]) if name in shard.marks else 0


# -- the paper's examples ------------------------------------------------------------------------------------------------


def example_1(algorithm: str) -> Turns:
    """A, B and C have been derived, C has not been processed; then A is deleted."""
    turns = begun(CIRCLE, "", algorithm)
    turns.join("a() .")
    turns.step(Step.ACTIVATE, 1)
    turns.step(Step.ACTIVATE, 1)
    assert names(turns) == {"a", "b", "c"}
    turns.join(delete="a() .")
    return turns


@pytest.mark.parametrize("algorithm", IN_PROCESS)
def test_illich_2023_example_1_deletion_overtakes_addition(algorithm: str) -> None:
    turns = example_1(algorithm)
    turns.step(Step.WITHDRAW, 2)
    turns.step(Step.WITHDRAW, 2)
    assert names(turns) == set()
    turns.finish()
    assert turns.kg.counts() == {"other": 1} and turns.kg.verify()


@pytest.mark.parametrize("algorithm", IN_PROCESS)
def test_illich_2023_example_1_addition_overtakes_deletion(algorithm: str) -> None:
    """C derives A before the deletion of A gets anywhere: A is there, so nothing is added, and the deletion goes on."""
    turns = example_1(algorithm)
    turns.step(Step.ACTIVATE, 1)
    assert names(turns) == {"a", "b", "c"}
    turns.finish()
    assert turns.kg.counts() == {"other": 1} and turns.kg.verify()


@pytest.mark.parametrize("algorithm", IN_PROCESS)
def test_illich_2023_example_1_no_overtaking(algorithm: str) -> None:
    """Deletion and addition take turns: A has gone when C derives it, and is not added before the deletion is through."""
    turns = example_1(algorithm)
    turns.step(Step.WITHDRAW, 2)
    assert names(turns) == {"b", "c"}
    turns.step(Step.ACTIVATE, 1)
    assert names(turns) == {"b", "c"}
    turns.step(Step.WITHDRAW, 2)
    assert names(turns) == {"c"}
    turns.step(Step.WITHDRAW, 2)
    assert names(turns) == set()
    turns.finish()
    assert turns.kg.counts() == {"other": 1} and turns.dynamic.steps < 10


@pytest.mark.parametrize("algorithm", ["dred", "counting"])
def test_an_addition_that_runs_after_a_deletion_ends(algorithm: str) -> None:
    """A later update brings A back by C, which is still to go, and is always one fact behind the deletion, round and round."""
    turns = begun(f"{CIRCLE} a() :- x(), c() .", "a() .", algorithm)
    turns.join(delete="a() .")
    turns.step(Step.WITHDRAW, 1)
    turns.join("x() .")
    turns.step(Step.ACTIVATE, 2)
    while not turns.dynamic.settled:
        for step, epoch in ((Step.REDERIVE, 2), (Step.WITHDRAW, 1), (Step.ACTIVATE, 2)):
            waiting = turns.overlap.waiting().get(epoch)
            if waiting and {Step.REDERIVE: waiting.recalled, Step.WITHDRAW: waiting.doubted}.get(step, waiting.pending):
                turns.step(step, epoch)
        if not any(w.doubted or w.recalled or w.pending for w in turns.overlap.waiting().values()):
            break
        assert turns.dynamic.steps < 40
    turns.finish()
    assert turns.kg.counts() == {"other": 1, "x": 1} and turns.kg.verify()


@pytest.mark.parametrize("algorithm", IN_PROCESS)
def test_illich_2023_example_2_invalid_deletion(algorithm: str) -> None:
    """A, deleted, comes back by D while the deletion is on its way round; it must not reach A a second time."""
    turns = begun(f"{CIRCLE} a() :- d() .", "a() .", algorithm)
    turns.join("d() .", "a() .")
    while not turns.dynamic.settled:
        turns.step()
    assert turns.dynamic.steps < 12
    turns.finish()
    assert turns.kg.counts() == {"a": 1, "b": 1, "c": 1, "d": 1, "other": 1} and turns.kg.verify()


@pytest.mark.parametrize("algorithm", IN_PROCESS)
def test_illich_2023_example_3_deletion_without_derivation(algorithm: str) -> None:
    """D has derived C, A has derived nothing yet: deleting A leaves C alone, and B never comes."""
    turns = begun("b() :- a() . c() :- a() . c() :- d() .", "", algorithm)
    turns.join("d() .")
    turns.step(Step.ACTIVATE, 1)
    turns.join("a() .")
    turns.join(delete="a() .")
    assert names(turns) == {"c", "d"}
    if algorithm == "counting":
        assert count(turns, "c") == 1
    turns.finish()
    assert turns.kg.counts() == {"c": 1, "d": 1, "other": 1}
    if algorithm == "counting":
        assert count(turns, "c") == 1


def test_illich_2023_example_3_a_count_falls_for_a_derivation_that_was_made() -> None:
    turns = begun("b() :- a() . c() :- a() . c() :- d() .", "", "counting")
    turns.join("a() . d() .")
    turns.step(Step.ACTIVATE, 1)
    assert count(turns, "c") == 2
    turns.join(delete="a() .")
    turns.step(Step.WITHDRAW, 2)
    assert count(turns, "c") == 1
    turns.finish()
    assert turns.kg.counts() == {"c": 1, "d": 1, "other": 1}


@pytest.mark.parametrize("algorithm", IN_PROCESS)
def test_illich_2023_example_4_duplicate_derivation(algorithm: str) -> None:
    """The deletion of A has taken B and not C when A comes back: C is not derived a second time."""
    turns = begun("b() :- a() . c() :- a() .", "a() .", algorithm, chunk=1)
    turns.join(delete="a() .")
    turns.step(Step.WITHDRAW, 1)
    turns.step(Step.WITHDRAW, 1)
    assert names(turns) in ({"b"}, {"c"})
    turns.join("a() .")
    turns.finish()
    assert turns.kg.counts() == {"a": 1, "b": 1, "c": 1, "other": 1}
    if algorithm == "counting":
        assert (count(turns, "b"), count(turns, "c")) == (1, 1)


# -- cancelling ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("engine", "algorithm"), BOTH)
def test_a_fact_that_comes_back_stops_its_deletion(engine: str, algorithm: str) -> None:
    """Before the first step nothing has happened, and nothing does; after it, what has not been touched stays untouched."""
    turns = begun("q(?x) :- p(?x) . r(?x) :- q(?x) .", "p(1) . p(2) .", algorithm, engine)
    before = turns.there()
    turns.join(delete="p(1) .")
    turns.join("p(1) .")
    assert turns.dynamic.settled and turns.there() == before
    epoch = turns.join(delete="p(1) .")
    turns.step(Step.WITHDRAW, epoch)
    left = turns.there()
    assert len(before - left) == 1
    epoch = turns.join("p(1) .")
    turns.step(Step.ACTIVATE, epoch)
    assert turns.there() == before
    while not turns.dynamic.settled:
        turns.step()
        assert (engine == "shards" and algorithm == "dred") or turns.there() == before
    assert turns.there() == before


@pytest.mark.parametrize(("engine", "algorithm"), [one for one in BOTH if one[1] != "dred"])
def test_a_fact_that_comes_back_overtakes_its_deletion(engine: str, algorithm: str) -> None:
    """The deletion is far from where it began when the fact comes back: the end of the chain is never touched."""
    reach = "q(?x, ?z) :- q(?x, ?y), p(?y, ?z) . q(?x, ?y) :- p(?x, ?y) ."
    turns = begun(reach, chain(20, "p"), algorithm, engine)
    before = turns.there()
    turns.join(delete="p(0, 1) .")
    for _ in range(5):
        turns.step()
    left = turns.there()
    assert 3 <= len(before - left) <= 6
    turns.join("p(0, 1) .")
    touched = set[str]()
    while not turns.dynamic.settled:
        turns.step()
        touched |= before - turns.there()
    assert turns.there() == before and len(touched) < 12


@pytest.mark.parametrize(("engine", "algorithm"), BOTH)
def test_a_fact_that_goes_stops_its_insertion(engine: str, algorithm: str) -> None:
    turns = begun("q(?x) :- p(?x) . r(?x) :- q(?x) .", "", algorithm, engine)
    turns.join("p(1) .")
    turns.join(delete="p(1) .")
    while not turns.dynamic.settled:
        turns.step()
        assert turns.there() == {"other()"}


@pytest.mark.parametrize(("engine", "algorithm"), BOTH)
def test_the_order_of_submission_decides(engine: str, algorithm: str) -> None:
    for updates in (["+", "-"], ["-", "+"], ["+", "-", "+"], ["-", "+", "-"]):
        for steps in (0, 1):
            turns = begun("q(?x) :- p(?x) .", "p(1) .", algorithm, engine)
            for sign in updates:
                turns.join(*(("p(1) .", ()) if sign == "+" else ((), "p(1) .")))
                for _ in range(steps):
                    if not turns.dynamic.settled:
                        turns.step()
            turns.finish()
            assert ("p" in turns.kg.counts()) == (updates[-1] == "+") == ("q" in turns.kg.counts())


# -- all interleavings ---------------------------------------------------------------------------------------------------

SMALL: dict[str, tuple[str, str, list[Update]]] = {
    "circle": (f"{CIRCLE} a() :- d() .", "", [("a() .", ()), ((), "a() ."), ("d() .", ())]),
    "circle of three": (
        "q(?x, ?z) :- q(?x, ?y), q(?y, ?z) . q(?x, ?y) :- p(?x, ?y) .",
        "p(1, 2) . p(2, 3) .",
        [("p(3, 1) .", "p(1, 2) ."), ("p(1, 2) .", "p(2, 3) ."), ("p(2, 3) .", "p(3, 1) .")],
    ),
    "two ways": (
        "c(?x) :- a(?x) . c(?x) :- b(?x) . d(?x) :- c(?x) . e(?x) :- d(?x), a(?x) .",
        "a(1) . b(1) . a(2) .",
        [((), "a(1) . a(2) ."), ("b(2) .", "b(1) ."), ("a(1) .", ())],
    ),
    "negation": (
        "q(?x) :- p(?x), NOT r(?x) . s(?x) :- q(?x) . t(?x) :- p(?x), NOT s(?x) . r(?x) :- u(?x) .",
        "p(1) . p(2) . u(2) .",
        [("u(1) .", "u(2) ."), ((), "u(1) ."), ("u(2) .", "p(1) .")],
    ),
    "negation above a circle": (
        "q(?x) :- p(?x) . q(?y) :- q(?x), e(?x, ?y) . n(?x) :- e(?x, ?y), NOT q(?x) . m(?x) :- n(?x) .",
        "p(1) . e(1, 2) . e(2, 3) . e(3, 1) .",
        [((), "p(1) ."), ("p(3) .", "e(1, 2) ."), ("p(1) .", "p(3) .")],
    ),
}


@pytest.mark.parametrize(
    ("engine", "algorithm", "chunk"), [(*one, 1 << 13) for one in BOTH] + [("memory", a, 1) for a in IN_PROCESS]
)
@pytest.mark.parametrize("name", SMALL)
def test_every_interleaving_equals_serial_application(name: str, engine: str, algorithm: str, chunk: int) -> None:
    rules, base, updates = SMALL[name]
    expected = serial(Program.parse(rules), f"other() . {base}", updates)
    tried = 0
    for turns, waits in interleavings(lambda: begun(rules, base, algorithm, engine, chunk), updates):
        assert_equal(turns.kg, expected, f"{name}, joining after {waits} steps")
        tried += 1
    assert tried >= 10


@pytest.mark.parametrize("algorithm", IN_PROCESS)
def test_many_random_interleavings_of_a_larger_graph(algorithm: str) -> None:
    """A hundred edges among thirty nodes, reachability and its negation; each time other updates join after other steps."""
    rules = "q(?x, ?y) :- e(?x, ?y) . q(?x, ?z) :- q(?x, ?y), e(?y, ?z) . apart(?x, ?y) :- n(?x), n(?y), NOT q(?x, ?y) ."
    nodes = range(30)
    rng = Random(algorithm)
    kg = KnowledgeGraph(Program.parse(rules))
    edges = {(rng.choice(nodes), rng.choice(nodes)) for _ in range(45)}
    kg.update(insert=" ".join([*(f"n({i}) ." for i in nodes), *(f"e({a}, {b}) ." for a, b in sorted(edges))]))
    for _ in range(250):
        turns = Turns(kg, algorithm, rng.choice([3, 40, 1000]))
        for _ in range(4):
            gone = {edge for edge in sorted(edges) if rng.random() < 0.06}
            come = {(rng.choice(nodes), rng.choice(nodes)) for _ in range(len(gone))} - gone
            edges = (edges - gone) | come
            turns.join(*(" ".join(f"e({a}, {b}) ." for a, b in sorted(some)) for some in (come, gone)))
            for _ in range(rng.choice([0, 1, 2, 4, 8])):
                if not turns.dynamic.settled:
                    turns.any_step(rng) if rng.random() < 0.3 else turns.step()
        turns.finish()
        reached = {a: {b for x, b in edges if x == a} for a in nodes}
        for middle in nodes:
            for a in nodes:
                if middle in reached[a]:
                    reached[a] |= reached[middle]
        pairs = {(int(a), int(b)) for a, b in kg.relation("q")}
        assert pairs == {(a, b) for a in nodes for b in reached[a]}
        assert len(kg.relation("apart")) == len(nodes) ** 2 - len(pairs)


# -- laws ----------------------------------------------------------------------------------------------------------------


def history(program: Program, seed: int) -> list[Update]:
    """Many facts, then updates that undo each other's work."""
    rng = Random(seed)
    first, *changes = dense_changes(program, rng)
    again = list(dense_changes(program, rng))[1:]
    some = [fact for fact in first[0] if rng.random() < 0.4]
    undone = [(insert, [f for f in some if f not in insert]) for insert, _ in again]
    return [first, *changes, *undone, (some, [])]


def run(kg: KnowledgeGraph, updates: list[Update], algorithm: str, rng: Random, chunk: int, check: Any = None) -> None:
    """The first update; then the others in stretches of several, each joining after some steps, in any order of steps."""
    kg.update(insert=updates[0][0])
    position = 1
    while position < len(updates):
        turns = Turns(kg, algorithm, chunk)
        for insert, delete in updates[position : position + 4]:
            turns.join(insert, delete)
            for _ in range(rng.choice([0, 1, 1, 2, 3, 20])):
                if not turns.dynamic.settled:
                    turns.any_step(rng) if rng.random() < 0.5 else turns.step()
                    if check is not None:
                        check(turns)
        turns.finish()
        position += 4


@pytest.mark.parametrize("algorithm", IN_PROCESS)
def test_overlapping_updates_equal_serial_ones(algorithm: str) -> None:
    @given(any_programs, seeds, st.sampled_from([1, 2, 1000]))
    @settings(generated, max_examples=400)
    def law(program: Program, seed: int, chunk: int) -> None:
        updates = history(program, seed)
        kg = graph(program, "memory")
        run(kg, updates, algorithm, Random(seed), chunk)
        assert_equal(kg, serial(program, updates[0][0], updates[1:]), f"{program}\n{updates}")

    law()


@pytest.mark.parametrize("algorithm", ["dred", "counting"])
def test_overlapping_updates_of_shards_equal_serial_ones(algorithm: str) -> None:
    @given(any_programs, seeds, st.sampled_from([1, 1000]), st.sampled_from([1, 2, 3]))
    @settings(generated, max_examples=60)
    def law(program: Program, seed: int, chunk: int, shards: int) -> None:
        updates = history(program, seed)[:5]
        kg = graph(program, "shards", shards)
        run(kg, updates, algorithm, Random(seed), chunk)
        assert_equal(kg, serial(program, updates[0][0], updates[1:]), f"{program}\n{updates}")

    law()


@pytest.mark.parametrize("rules", ["rhodf", "owl2rl"])
@pytest.mark.parametrize("algorithm", IN_PROCESS)
def test_overlapping_updates_change_the_schema(rules: str, algorithm: str) -> None:
    program = Program.load(rules)

    @given(ontology_updates, st.integers(0, 2**32), st.sampled_from([3, 1000]))
    @settings(generated, max_examples=15)
    def law(steps: list[Any], seed: int, chunk: int) -> None:
        kg = KnowledgeGraph(program, equality="off")
        kg.update(insert="<http://ex/a> <http://ex/b> <http://ex/c> .")
        run(kg, [((), ()), *ontology_changes(steps, Random(seed))], algorithm, Random(seed), chunk)
        kg.verify()

    law()


def assert_invariant(turns: Turns) -> None:
    """Between any two steps: counts are the derivations that were made; heads are there or candidates; facts have support."""
    shard, facts = turns.shard, turns.inner.facts

    def rows(relations: dict[Any, Relation]) -> dict[Any, list[tuple[int, ...]]]:
        return {k: list(zip(*(c.tolist() for c in r.columns()), strict=True)) if r.arity else [()] * len(r)
                for k, r in relations.items()}  # fmt: skip

    gone = with_runs(facts.candidates.all(), runs_of(facts.recalled.all()))
    active, pending, candidates, doubted, explicit = map(
        rows, (shard.relations, facts.pending.all(), gone, facts.doubted.all(), shard.explicit)
    )
    there = {(k, row) for held in (active, pending) for k, found in held.items() for row in found}
    assert len(there) == sum(len(found) for held in (active, pending) for found in held.values())
    assert not there & {(k, row) for k, found in candidates.items() for row in found}
    marks = {
        (k, row): int(shard.marks[k].of(shard.arrays, shard.arrays.pack([U64(v) for v in row], 1))[0])
        if shard.marks and k in shard.marks
        else 0
        for k, row in there
    }
    found: Counter[Fact] = Counter()
    for rule in (rule for stratum in shard.plan.strata for rule in stratum.rules):
        for head, body in instances(rule, active, shard.plan.values):
            assert head in there or head[1] in candidates.get(head[0], []), head
            if shard.marks is not None and head in there:
                found[head] += max((rank_of(U64(marks[f])) for f in body), default=0) < rank_of(U64(marks[head]))
    if shard.marks is not None:
        for fact in there:
            assert int(count_of(U64(marks[fact]))) == found[fact], fact
            key, row = fact
            assert found[fact] or row in explicit.get(key, []) or row in doubted.get(key, []), fact


@pytest.mark.parametrize("algorithm", IN_PROCESS)
def test_invariant_between_any_two_steps(algorithm: str) -> None:
    @given(any_programs, seeds, st.sampled_from([1, 2, 1000]))
    @settings(generated, max_examples=60)
    def law(program: Program, seed: int, chunk: int) -> None:
        kg = graph(program, "memory")
        run(kg, history(program, seed)[:5], algorithm, Random(seed), chunk, assert_invariant)

    law()


# -- nobody starves ------------------------------------------------------------------------------------------------------


def chain(length: int, name: str = "e") -> str:
    return " ".join(f"{name}({i}, {i + 1}) ." for i in range(length))


REACH = "q(?x, ?y) :- e(?x, ?y) . q(?x, ?z) :- q(?x, ?y), e(?y, ?z) . t(?x) :- s(?x) . u(?x) :- t(?x) ."


@pytest.mark.parametrize(("engine", "algorithm"), BOTH)
@pytest.mark.parametrize("first", ["insertion", "deletion"])
def test_endless_updates_do_not_starve_an_old_one(engine: str, algorithm: str, first: str) -> None:
    """An update of another part joins before every step; the first is in place after its own steps, and its share of all."""
    length = 6
    alone = begun(REACH, chain(length), algorithm, engine)
    change: Update = ("e(100, 0) .", ()) if first == "insertion" else ((), "e(0, 1) .")
    alone.join(*change)
    while not alone.dynamic.settled:
        alone.step()
    turns = begun(REACH, chain(length), algorithm, engine)
    epoch = turns.join(*change)
    while not turns.dynamic.is_through(epoch):
        turns.join(f"s({turns.dynamic.steps}) .", f"s({turns.dynamic.steps - 3}) .")
        turns.step()
    assert turns.dynamic.steps <= TURN * (alone.dynamic.steps + 1)


@pytest.mark.parametrize("algorithm", IN_PROCESS)
def test_endless_updates_settle_in_batches(algorithm: str) -> None:
    """Under more updates than can be done in the time, all settle, each after a number of steps that does not grow."""
    kg = KnowledgeGraph(Program.parse(REACH))
    kg.update(insert=f"{chain(6)} s(0) .", algorithm=algorithm if algorithm == "counting" else "auto")
    work = kg._submissions
    work.take_over()
    tickets, waited = [], []
    for number in range(600):
        for part in range(3):
            tickets.append((kg.submit(insert=f"s({3 * number + part + 1}) .", algorithm=algorithm), number))
        work.advance()
        waited += [number - at for ticket, at in tickets if ticket.done]
        tickets = [(ticket, at) for ticket, at in tickets if not ticket.done]
    own = 4
    assert len(waited) > 1200 and max(waited) < 2 * (PATIENCE + own * CROWD)
    kg.settle()
    assert kg.counts()["u"] == 1801 and kg.verify()


def test_work_follows_the_change() -> None:
    """Instances looked at while one edge of a long chain's end comes and goes do not depend on the chain."""
    seen = []
    for length in (50, 400):
        turns = begun("q(?x, ?z) :- e(?x, ?y), e(?y, ?z) .", chain(length), "counting")
        examined = turns.shard.kernel.examined
        turns.join(delete="e(10, 11) .")
        turns.step()
        turns.join("e(10, 11) .")
        turns.finish()
        seen.append(turns.shard.kernel.examined - examined)
    assert seen[0] == seen[1] > 0


@pytest.mark.parametrize("algorithm", IN_PROCESS)
def test_small_updates_keep_joining_a_long_one(algorithm: str) -> None:
    """However many have been through before, each is in place some steps after it was submitted, while the long one goes on."""
    turns = begun(REACH, chain(40), algorithm, chunk=20)
    long = turns.join(delete="e(0, 1) . e(20, 21) .")
    turns.step()
    number = 0
    while not turns.dynamic.is_through(long):
        assert turns.dynamic.admits
        epoch, began = turns.join(f"s({number}) ."), turns.dynamic.steps
        while not turns.dynamic.is_through(epoch):
            turns.step()
        assert turns.dynamic.steps - began < TURN
        number += 1
    assert number > 2 * PATIENCE / 3


@pytest.mark.parametrize("algorithm", IN_PROCESS)
def test_a_small_deletion_does_not_wait_for_a_long_one(algorithm: str) -> None:
    """What it takes and still follows comes back, and it is through, while the long one goes on."""
    rules = f"{REACH} t(?x) :- w(?x) . w(?x) :- v(?x) ."
    turns = begun(rules, f"{chain(40)} s(1) . v(1) .", algorithm, chunk=20)
    long = turns.join(delete="e(0, 1) . e(20, 21) .")
    turns.step()
    epoch, began = turns.join(delete="s(1) ."), turns.dynamic.steps
    while not turns.dynamic.is_through(epoch):
        turns.step()
    assert turns.dynamic.steps - began < TURN and not turns.dynamic.is_through(long)
    assert {fact[0] for fact in turns.there()} >= {"t", "u"}
    turns.finish()
    assert turns.kg.verify()
