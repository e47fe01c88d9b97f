"""After every tick the materialisation, and the expiry of every fact, are those computed from scratch."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from conftest import assert_same, everything
from evergraph import KnowledgeGraph, Program
from evergraph.engines.base import Which
from evergraph.rules.model import Atom, Negation, Rule
from evergraph.rules.printer import print_atom
from evergraph.stream.window import Window
from strategies import dense_changes, facts, layered_programs, programs
from windows import Slow, closure, ends_of, expiries

WINDOWS = [Window(6, 1), Window(4, 2), Window(3, 3), Window(5, 2), Window(2, 1)]
COUNTS = [Window(5, 1, True), Window(3, 2, True)]
ONCE = settings(phases=[Phase.generate])
"""Every example makes and closes many graphs: no time for shrinking."""
ALGORITHMS = ("recompute", "declarative", "dred", "counting", "backward-forward")


def positive(program: Program) -> Program:
    """The program without what it negates."""
    rules = (Rule(r.head, tuple(b for b in r.body if not isinstance(b, Negation)), r.name) for r in program.rules)
    return Program(tuple(rule for rule in rules if rule.atoms))


any_program = programs | layered_programs
positive_programs = any_program.map(positive).filter(lambda program: bool(program.rules))
some_windows = st.lists(st.sampled_from(WINDOWS + COUNTS), min_size=1, max_size=3)
background = st.lists(facts(), max_size=4)


def follow(
    program: Program,
    below: list[Atom],
    windows: list[Window],
    seed: int,
    *,
    algorithm: str = "auto",
    ticks: int = 12,
    lateness: int = 0,
    update_at: int | None = None,
) -> None:
    """Random facts of the program's own names, repeated, late and with gaps, through a stream and beside it."""
    rng = Random(seed)
    pool = sorted({fact for insert, _ in dense_changes(program, rng) for fact in insert}, key=print_atom)
    named = {f"http://example.org/s{n}": window for n, window in enumerate(windows)}
    kg = KnowledgeGraph(program, equality="off")
    kg.update(insert=below)
    stream = kg.stream(named, algorithm=algorithm)
    stream.lateness = lateness
    slow = {name: Slow(window) for name, window in named.items()}
    period = stream._period
    own = stream.graph.period
    latest = dict.fromkeys(named, -(10**9))
    now = -(10**9)
    late = 0
    for tick in range(1, ticks):
        for _ in range(rng.choice([0, 0, 1, 2, 3, 4]) if pool else 0):
            name, fact = rng.choice(list(named)), rng.choice(pool)
            time = tick - 1 - rng.choice([0, 0, 0, 1, 2, 5])
            passed = max(latest[name], now if stream._ticked else latest[name]) - lateness
            stream.push([fact], time / 10**6, name)
            latest[name] = max(latest[name], time)
            if time < passed // period * period:
                late += 1
                continue
            slow[name].arrive(time, fact)
        if update_at == tick:
            more = rng.sample(pool, min(2, len(pool)))
            gone = below[:1]
            kg.update(insert=more, delete=gone)
            below = [fact for fact in below if fact not in gone] + [fact for fact in more if fact not in below]
        assert list(stream.advance(to=tick / 10**6)) == []
        before, now = now, tick // period * period
        if now == before:
            continue
        by_stream = {name: one.contents(now, own) for name, one in slow.items()}
        graph = stream.graph
        held: dict[Atom, int] = {}
        for contents in by_stream.values():
            for fact, end in contents.items():
                held[fact] = max(held.get(fact, end), end)
        what = f"{program}\nbelow {below}\nholding {held} at {now} by {graph.algorithm}"
        assert_same(everything(graph), closure(program, [*below, *held]), what)
        assert_same(everything(graph, Which.EXPLICIT), map(print_atom, [*below, *held]), what)
        if graph.algorithm == "expiry":
            assert ends_of(graph) == expiries(program, below, held), what
    assert stream.late == late


@given(positive_programs, background, st.lists(st.sampled_from(WINDOWS), min_size=1, max_size=3), st.integers(0, 2**32))
@settings(ONCE, max_examples=120)
def test_by_expiry(program: Program, below: list[Atom], windows: list[Window], seed: int) -> None:
    follow(program, below, windows, seed, algorithm="expiry")


@given(positive_programs, background, st.sampled_from(WINDOWS), st.integers(1, 4), st.integers(0, 2**32))
@settings(ONCE, max_examples=60)
def test_late_facts_by_expiry(program: Program, below: list[Atom], window: Window, lateness: int, seed: int) -> None:
    follow(program, below, [window], seed, algorithm="expiry", lateness=lateness)


@given(positive_programs, background, st.sampled_from(COUNTS), st.integers(0, 2**32))
@settings(ONCE, max_examples=60)
def test_the_last_triples_by_expiry(program: Program, below: list[Atom], window: Window, seed: int) -> None:
    follow(program, below, [window], seed, algorithm="expiry")


@given(positive_programs, background, st.lists(st.sampled_from(WINDOWS), min_size=1, max_size=2), st.integers(0, 2**32))
@settings(ONCE, max_examples=60)
def test_the_graph_below_changes(program: Program, below: list[Atom], windows: list[Window], seed: int) -> None:
    follow(program, below, windows, seed, update_at=6)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@given(
    programs | layered_programs,
    background,
    some_windows,
    st.integers(0, 2**32),
)
@settings(ONCE, max_examples=25)
def test_by_updates(algorithm: str, program: Program, below: list[Atom], windows: list[Window], seed: int) -> None:
    follow(program, below, windows, seed, algorithm=algorithm, ticks=8)


@given(
    programs | layered_programs,
    background,
    some_windows,
    st.integers(0, 2**32),
)
@settings(ONCE, max_examples=40)
def test_whatever_suits(program: Program, below: list[Atom], windows: list[Window], seed: int) -> None:
    follow(program, below, windows, seed, lateness=2)
