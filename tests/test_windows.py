"""Facts that expire: the paper's figure second by second, and what a slide costs."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest

from evergraph import KnowledgeGraph, Program, UserError
from evergraph.engine_choice import in_process
from evergraph.engines.arrays import U64, Arrays
from evergraph.engines.base import Which
from evergraph.engines.relation import Run
from evergraph.engines.windows.entering import entering
from evergraph.engines.windows.expiry import Expiring, Slid
from evergraph.engines.windows.layered import Layered, layered
from evergraph.engines.windows.lives import FOREVER, Lives, end_of, instant_of

TRANSITIVE = "isIn(?x, ?z) :- isIn(?x, ?y), isIn(?y, ?z) ."


class Window:
    """An `Expiring` over a graph, with facts as pairs of names."""

    def __init__(self, text: str = TRANSITIVE, below: str = "", names: str = "ABCDE") -> None:
        kg = KnowledgeGraph(Program.parse(text), equality="off")
        kg.update(insert=below or "other(0) .")
        self.terms = kg._dictionary
        self.ids = dict(zip(names, self.terms.encode([f"<http://example.org/{n}>" for n in names]).tolist(), strict=True))
        self.names = {number: name for name, number in self.ids.items()}
        shard = in_process(kg._engine).shard  # type: ignore[attr-defined]
        rules = shard.plan.strata[0].rules
        self.window = Expiring(rules, dict(shard.relations), dict(shard.explicit), kg._values, 1)

    def slide(self, now: int, *facts: str, end: int = 0) -> Slid:
        """Facts such as `AB`, all with the same end."""
        columns = [np.array([self.ids[f[i]] for f in facts], np.uint64) for i in range(2)]
        ends = np.full(len(facts), end_of(end), U64)
        return self.window.slide(end_of(now), entering(Arrays(), [("isIn", columns, ends)]))

    def ends(self, lives: Lives | None = None) -> dict[str, int]:
        out = {}
        for _, relation, ends in (lives or self.window.lives).rows():
            for x, y, end in zip(*(c.tolist() for c in relation.columns()), ends.tolist(), strict=True):
                out[self.names[x] + self.names[y]] = instant_of(end)
        return out

    def entailments(self) -> dict[str, int]:
        given = self.ends(self.window.given)
        return {fact: end for fact, end in self.ends().items() if fact not in given or given[fact] != end}


def test_barbieri_2010_figure_4_second_by_second() -> None:
    """A window of ten seconds: what enters in second n is tagged n + 10, and dropped when now - 1 is its tag."""
    w = Window()
    w.slide(1, "AB", end=11)
    assert (w.ends(w.window.given), w.entailments()) == ({"AB": 11}, {})
    w.slide(2, "BC", end=12)
    assert (w.ends(w.window.given), w.entailments()) == ({"AB": 11, "BC": 12}, {"AC": 11})
    w.slide(3, "CD", end=13)
    assert w.ends(w.window.given) == {"AB": 11, "BC": 12, "CD": 13}
    assert w.entailments() == {"AC": 11, "BD": 12, "AD": 11}
    slid = w.slide(4, "AE", "ED", end=14)
    assert w.ends(w.window.given) == {"AB": 11, "BC": 12, "CD": 13, "AE": 14, "ED": 14}
    assert w.entailments() == {"AC": 11, "BD": 12, "AD": 14}
    assert (slid.came, slid.rose, slid.went) == (2, 1, 0)
    for now in range(5, 12):
        slid = w.slide(now)
        assert (slid.came, slid.went, slid.derivations) == (0, 0, 0)
        assert len(w.ends()) == 8
    assert w.slide(12).went == 2
    assert (w.ends(w.window.given), w.entailments()) == ({"BC": 12, "CD": 13, "AE": 14, "ED": 14}, {"BD": 12, "AD": 14})
    assert w.slide(13).went == 2
    assert (w.ends(w.window.given), w.entailments()) == ({"CD": 13, "AE": 14, "ED": 14}, {"AD": 14})
    assert w.slide(14).went == 1
    assert w.slide(15).went == 3
    assert w.ends() == {} and w.window.lives.relations == {}


def test_a_fact_that_is_seen_again_lives_on() -> None:
    w = Window()
    w.slide(1, "AB", "BC", end=5)
    slid = w.slide(3, "AB", end=8)
    assert w.ends() == {"AB": 8, "BC": 5, "AC": 5} and (slid.came, slid.rose) == (0, 1)
    w.slide(4, "BC", end=7)
    assert w.ends() == {"AB": 8, "BC": 7, "AC": 7}
    w.slide(6)
    assert w.ends() == {"AB": 8, "BC": 7, "AC": 7}
    w.slide(8)
    assert w.ends() == {"AB": 8}


def test_a_shorter_life_changes_nothing() -> None:
    w = Window()
    w.slide(1, "AB", end=9)
    slid = w.slide(2, "AB", end=5)
    assert w.ends() == {"AB": 9} and (slid.came, slid.rose, slid.derivations) == (0, 0, 0)


def test_what_the_graph_says_does_not_expire_and_is_not_followed() -> None:
    below = "isIn(<http://example.org/A>, <http://example.org/B>) . isIn(<http://example.org/B>, <http://example.org/C>) ."
    w = Window(below=below)
    slid = w.slide(1, "AB", "AC", end=5)
    assert w.ends() == {} and slid.derivations == 0
    w.slide(2, "CD", end=6)
    assert w.ends() == {"CD": 6, "AD": 6, "BD": 6}
    assert w.window.counts(Which.ALL)["isIn"] == 6
    w.slide(7)
    assert w.window.counts(Which.ALL)["isIn"] == 3 and w.window.counts(Which.EXPLICIT)["isIn"] == 2


def test_a_slide_costs_what_changes_and_not_what_is_there() -> None:
    """The work of the same slide beside graphs and windows of any size."""

    def work(size: int) -> tuple[int, int]:
        names = [f"<http://example.org/n{n}>" for n in range(size)]
        below = [f"isIn({a}, {b}) ." for a, b in zip(names[::4], names[1::4], strict=False)]
        w = Window(below=" ".join(below))
        columns = [w.terms.encode(names[2::4]), w.terms.encode(names[3::4])]
        count = min(map(len, columns))
        many = [c[:count] for c in columns]
        w.window.slide(end_of(1), entering(Arrays(), [("isIn", many, np.full(count, end_of(50), U64))]))
        w.slide(2, "AB", end=4)
        slid = w.slide(3, "BC", "CD", end=5)
        gone = w.slide(5)
        return slid.derivations + slid.examined, gone.derivations + gone.examined

    assert work(400) == work(4000)


def pairs(*rows: tuple[int, int]) -> tuple[np.ndarray, ...]:
    return (np.array(sorted(a << 32 | b for a, b in rows), np.uint64),)


def given(lives: Lives, rows: Iterable[tuple[int, int]], end: int) -> None:
    words = pairs(*rows)
    lives.put(1, 2, words, np.full(len(words[0]), end, U64), lives.of(1, words) < U64(lives.now))


@pytest.mark.parametrize("width", [1, 3, 7, 100])
def test_a_calendar_of_any_page_lets_go_at_the_right_time(width: int) -> None:
    rng = np.random.default_rng(width)
    lives, want = Lives(Arrays(), width), {}
    for now in range(100, 180):
        gone = lives.leave(now)
        left = {row for row, end in want.items() if end < now}
        want = {row: end for row, end in want.items() if end >= now}
        found = {(int(w) >> 32, int(w) & 0xFFFFFFFF) for run in gone.values() for w in run.words[0]}
        assert found == left
        for row in {(int(a), int(b)) for a, b in rng.integers(0, 6, (rng.integers(0, 5), 2))}:
            end = now + int(rng.integers(0, 30))
            if end > want.get(row, 0):
                given(lives, [row], end)
                want[row] = end
        held = {(int(w) >> 32, int(w) & 0xFFFFFFFF) for r in lives.relations.values() for w in r.rows()[0]}
        assert held == set(want)


def test_what_never_ends_is_in_no_calendar() -> None:
    lives = Lives(Arrays(), 1)
    lives.put(1, 2, pairs((1, 2)), np.array([FOREVER]), np.ones(1, bool))
    assert lives.leave(2**63) == {} and lives.relations[1].count == 1 and not lives._pages


def test_two_layers_read_as_one() -> None:
    arrays = Arrays()
    below, above = (Run(arrays, 2, pairs(*rows)) for rows in ([(1, 2), (3, 4)], [(1, 5), (2, 2)]))
    from evergraph.engines.relation import Relation

    both = layered(Relation(below), Relation(above))
    assert isinstance(both, Layered) and len(both) == 4
    assert both.rows()[0].tolist() == pairs((1, 2), (1, 5), (2, 2), (3, 4))[0].tolist()
    assert both.contains(pairs((1, 5), (3, 4), (9, 9))).tolist() == [True, True, False]
    less = both.remove(Run(arrays, 2, pairs((1, 2), (2, 2)))).add(Run(arrays, 2, pairs((7, 7))))
    assert less.rows()[0].tolist() == pairs((1, 5), (3, 4), (7, 7))[0].tolist()
    assert both.less(Relation(below))[0].tolist() == above.words[0].tolist()
    assert both.settled().rows()[0].tolist() == both.rows()[0].tolist()
    assert layered(None, None) is None and layered(Relation(below), None) is not None


@pytest.mark.parametrize(
    ("text", "equality", "windows", "says"),
    [
        ('#[name("lonely")] q(?x) :- p(?x), NOT r(?x) .', "off", {"s": "RANGE 10s"}, "lonely"),
        ("q(?x) :- p(?x), NOT r(?x) .", "off", {"s": "RANGE 10s"}, "q(?x) :- p(?x), NOT r(?x) ."),
        ("[?x, owl:sameAs, ?y] :- p(?x, ?y) .", "rewrite", {"s": "RANGE 10s"}, "representatives"),
        ("q(?x) :- p(?x) .", "off", {"s": "RANGE 10s", "n": "RANGE TRIPLES 5"}, "clocks"),
    ],
)
def test_windows_that_cannot_be_kept_by_expiry(text: str, equality: str, windows: dict[str, str], says: str) -> None:
    kg = KnowledgeGraph(Program.parse(text), equality=equality)
    with pytest.raises(UserError, match="EG606") as error:
        kg.stream(windows, algorithm="expiry")
    assert says in str(error.value)
    stream = kg.stream(windows)
    assert stream.graph.algorithm != "expiry" and says in stream.graph.reason
