"""A device that runs out of memory: one numbered line, and graph, store and readers are as they were."""

from __future__ import annotations

import gc
import shutil
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from conftest import everything
from device import Device, DeviceArray
from evergraph import KnowledgeGraph, Program
from evergraph.engines.base import Which
from evergraph.engines.gpu.device import BYTES
from evergraph.errors import UserError
from evergraph.store import Store
from gpus import DEVICE, HOST, array_module, engine_of, graph, little_room, on, standing_in  # noqa: F401 - a fixture

RULES = "path(?x, ?y) :- edge(?x, ?y) . path(?x, ?z) :- path(?x, ?y), edge(?y, ?z) . lone(?x) :- node(?x), NOT path(?x, ?x) ."
SAME = f"{RULES} [?x, <http://www.w3.org/2002/07/owl#sameAs>, ?y] :- alike(?x, ?y) ."
FACTS = "edge(1, 2) . edge(2, 3) . edge(3, 1) . edge(4, 5) . node(1) . node(4) . node(5) ."
MERGED = f"{FACTS} alike(<http://ex/a>, <http://ex/b>) . edge(<http://ex/a>, 5) . edge(5, <http://ex/b>) ."
Change = dict[str, Any]
Graphs = Callable[[], KnowledgeGraph]
BOTH_WAYS = {"insert": "edge(5, 1) .", "delete": "edge(2, 3) . node(5) ."}
CHANGES: dict[str, Change] = {
    "insert": {"insert": "edge(5, 6) . edge(6, 1) . node(6) ."},
    **{name: {**BOTH_WAYS, "algorithm": name} for name in ("recompute", "declarative", "dred", "counting", "backward-forward")},
    "rules": {"insert_rules": "far(?x, ?z) :- path(?x, ?y), edge(?y, ?z) .", "delete_rules": "path(?x, ?y) :- edge(?x, ?y) ."},
}


def state(kg: KnowledgeGraph) -> tuple[Any, ...]:
    return {which: everything(kg, which) for which in Which}, kg.rules, kg.counts(), kg.version if kg._store else None


def assert_taken_back(xp: Device, begin: Graphs, change: Callable[[KnowledgeGraph], object]) -> KnowledgeGraph:
    """Whenever there is no room, the graph is as it was, and its readers see what they saw; with room, the change is made.

    Tried now and then on the way, and for the last arrays that are made. Returns the graph after the change.
    """
    twin = begin()
    xp.room = 10**9
    change(twin)
    made, xp.room = 10**9 - xp.room, None
    assert made > 8
    for number in sorted({made * i // 5 for i in range(5)} | {made - i for i in range(1, 5)}):
        kg = begin()
        before, held = state(kg), kg._held
        xp.room = number
        try:
            with pytest.raises(UserError, match=r"EG207.* fit into its .* GiB.*the graph is as it was"):
                change(kg)
        finally:
            xp.room = None
        assert kg._held is held
        assert state(kg) == before, number
        change(kg)
        assert state(kg) == state(twin)
    return twin


@pytest.mark.parametrize("counted", [False, True])
@pytest.mark.parametrize("name", CHANGES)
def test_a_graph_is_as_it_was_when_there_is_no_room(name: str, counted: bool) -> None:
    def begun(make: Callable[[Program], KnowledgeGraph] = graph) -> KnowledgeGraph:
        kg = make(Program.parse(RULES))
        kg.update(insert=FACTS, algorithm="counting" if counted else "auto")
        return kg

    with standing_in() as xp:
        kg = assert_taken_back(xp, begun, lambda kg: kg.update(**CHANGES[name]))
        memory = begun(KnowledgeGraph)
        memory.update(**CHANGES[name])
        assert state(kg) == state(memory)


@pytest.mark.parametrize("algorithm", ["auto", "backward-forward", "recompute"])
@pytest.mark.parametrize(
    "change", [{"delete": "alike(<http://ex/a>, <http://ex/b>) ."}, {"insert": "alike(5, 6) . edge(6, 2) ."}]
)
def test_names_are_as_they_were_when_there_is_no_room(algorithm: str, change: Change) -> None:
    def begun(make: Callable[[Program], KnowledgeGraph] = graph) -> KnowledgeGraph:
        kg = make(Program.parse(SAME))
        kg.update(insert=MERGED)
        return kg

    with standing_in() as xp:
        kg = assert_taken_back(xp, begun, lambda kg: kg.update(**change, algorithm=algorithm))
        memory = begun(KnowledgeGraph)
        memory.update(**change, algorithm=algorithm)
        assert state(kg) == state(memory)


@pytest.mark.parametrize("rules", [RULES, SAME], ids=["plain", "same"])
@pytest.mark.parametrize("name", CHANGES)
def test_a_store_is_as_it_was_when_there_is_no_room(tmp_path: Path, name: str, rules: str) -> None:
    """Whatever is still to be done on the device when the change is known is done before the store has it."""
    asked = {**CHANGES[name]}
    if rules is SAME and name in ("declarative", "dred", "counting"):
        asked["algorithm"] = "auto"
    KnowledgeGraph(Program.parse(rules), store=tmp_path / "first").update(insert=FACTS)
    number = count()

    def begun() -> KnowledgeGraph:
        folder = shutil.copytree(tmp_path / "first", tmp_path / str(next(number)))
        return on(DEVICE, KnowledgeGraph.open(folder, engine="gpu"))

    def change(kg: KnowledgeGraph) -> None:
        assert kg._store is not None and Store(kg._store.path).snapshot().version == 0
        kg.update(**asked)

    with standing_in() as xp:
        kg = assert_taken_back(xp, begun, change)
        assert kg._store is not None and kg.version == 1
        again = KnowledgeGraph.open(kg._store.path)
        assert everything(again) == everything(kg)
        again.verify()


@pytest.mark.parametrize("rules", [RULES, SAME], ids=["plain", "same"])
@pytest.mark.parametrize("algorithm", ["auto", "counting"])
def test_a_store_that_finds_no_room_is_opened_when_there_is(tmp_path: Path, rules: str, algorithm: str) -> None:
    """A store whose facts are counted brings its counts along, the others nothing before it is read."""
    if rules is SAME and algorithm == "counting":
        algorithm = "auto"
    KnowledgeGraph(Program.parse(rules), store=tmp_path / "g").update(insert=FACTS, algorithm=algorithm)
    with standing_in() as xp:
        for number in range(0, 40, 3):
            xp.room = number
            try:
                kg = KnowledgeGraph.open(tmp_path / "g", engine="gpu")
                break
            except UserError as error:
                assert error.code == "EG207"
            finally:
                xp.room = None
        assert everything(kg) == everything(KnowledgeGraph.open(tmp_path / "g"))
        on(DEVICE, kg).update(delete="edge(1, 2) .")
        kg.verify()


@pytest.mark.parametrize("algorithm", ["auto", "dred", "counting", "backward-forward"])
def test_a_submitted_update_fails_and_others_go_on(algorithm: str) -> None:
    def begun() -> KnowledgeGraph:
        kg = graph(Program.parse(RULES), equality="off")
        kg.update(insert=FACTS)
        kg._submissions.take_over()
        return kg

    def submitted(kg: KnowledgeGraph) -> None:
        ticket = kg.submit(**BOTH_WAYS, algorithm=algorithm)
        kg.settle()
        ticket.wait()

    with standing_in() as xp:
        kg = assert_taken_back(xp, begun, submitted)
        xp.room = 5
        failed = kg.submit(insert="edge(7, 8) .", algorithm=algorithm)
        while not failed.done:
            kg._submissions.advance()
        xp.room = None
        going = kg.submit(insert="edge(8, 9) .", algorithm=algorithm)
        kg.settle()
        assert isinstance(failed.error, UserError) and failed.error.code == "EG207"
        assert going.wait().inserted.explicit == {"edge": 1}
        kg.verify()


def test_a_graph_that_does_not_fit_on_the_device_any_more_goes_on_on_the_host() -> None:
    with standing_in() as xp:
        kg = graph(Program.parse(RULES))
        kg.update(insert=FACTS)
        on(HOST, kg).update(insert=" ".join(f"node({n}) ." for n in range(100)))
        before = state(kg)
        with little_room(xp, 400), pytest.raises(UserError, match=f"EG207.* about {400 // BYTES} facts fit"):
            kg.update(delete="edge(2, 3) .", algorithm="dred")
        assert state(kg) == before
        with little_room(xp, 400):
            kg.update(delete="edge(2, 3) .")
        assert engine_of(kg).now is engine_of(kg).host
        kg.verify()


def test_a_large_update_finds_no_room(xp: Any) -> None:
    """By CuPy's own limit, where there is a GPU."""
    kg = graph(Program.parse("q(?x, ?z) :- p(?x, ?y), p(?y, ?z) ."))
    kg.update(insert="p(1, 2) . p(2, 3) .")
    before = state(kg)
    many = [("p", (n, n + 1)) for n in range(3, 40_000)]
    with little_room(xp, 1 << 16), pytest.raises(UserError, match="EG207"):
        kg.update(insert=" ".join(f"{name}{row} ." for name, row in many))
    assert state(kg) == before
    kg.update(insert="p(3, 4) .")
    assert kg.counts() == {"p": 3, "q": 2}


# -- what is no longer there ------------------------------------------------------------------------------------------------


def on_device() -> int:
    """Elements of all arrays that the device has room for."""
    gc.collect()
    arrays = {id(one.values): one.values for one in gc.get_objects() if isinstance(one, DeviceArray)}
    return sum(values.size for values in arrays.values() if values.base is None)


@pytest.mark.parametrize("few", [DEVICE, HOST])
@pytest.mark.parametrize("algorithm", ["auto", "recompute", "dred", "counting"])
def test_what_an_update_leaves_behind_is_let_go(few: int, algorithm: str) -> None:
    """Also of relations whose rows no reader on the host has asked for."""
    with standing_in(near=4):
        kg = graph(Program.parse(RULES), few)
        kg.update(insert="".join(f"edge({n}, {n + 1}) . node({n}) ." for n in range(0, 400, 2)))
        found = []
        for turn in range(8):
            some = f"edge({4 * turn}, {4 * turn + 1}) . node({4 * turn}) ."
            kg.update(delete=some, algorithm=algorithm)
            kg.update(insert=some, algorithm=algorithm)
            found.append(on_device())
        assert found[-1] <= found[2] * 1.1 + 50, found
