"""A graph on a device: where its updates are made, what is carried, how many kernels are launched, and who reads it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from conftest import assert_same, everything
from device import CUDARuntimeError, Device
from evergraph import KnowledgeGraph, Program
from evergraph.engines.base import Which
from evergraph.engines.memory import MemoryEngine
from evergraph.errors import UserError
from evergraph.rules.model import TRIPLE
from gpus import DEVICE, HOST, array_module, engine_of, graph, on, standing_in  # noqa: F401 - a fixture
from test_cli import Run, run_command, written  # noqa: F401 - a fixture

EX = "http://example.org/"
W3 = "<http://www.w3.org/"
RDF = f"{W3}1999/02/22-rdf-syntax-ns#"
TYPE = f"{RDF}type>"
PREFIX = f"@prefix : <{EX}> .\n"
KINSHIP = f"""{PREFIX}
:knows[?y, ?x] :- :knows[?x, ?y] . :Known[?y] :- :knows[?x, ?y] .
:kin[?x, ?z] :- :kin[?x, ?y], :kin[?y, ?z] ."""
HOSTED = "few derivations are expected, so on the host's copy"


def triple(subject: str, predicate: str, value: str) -> str:
    return f"<{EX}{subject}> <{EX}{predicate}> <{EX}{value}> .\n"


def people(count: int, start: int = 0) -> str:
    """Pairs who know each other, and pairs of kin: what follows of each is little."""
    return "".join(triple(f"p{n}", "knows", f"q{n}") + triple(f"p{n}", "kin", f"q{n}") for n in range(start, start + count))


def loaded(count: int = 300, few: int = DEVICE, **options: Any) -> KnowledgeGraph:
    kg = graph(Program.parse(KINSHIP), few, **options)
    kg.update(insert=people(count))
    return kg


def in_memory(count: int = 300) -> KnowledgeGraph:
    kg = KnowledgeGraph(Program.parse(KINSHIP))
    kg.update(insert=people(count))
    return kg


# -- where -----------------------------------------------------------------------------------------------------------------


def test_auto_says_when_it_went_to_the_host(xp: Any) -> None:
    kg = loaded(few=500)
    engine = engine_of(kg)
    assert engine.now is engine.device, "more than a few"
    small = kg.update(insert=people(1, 900))
    assert small.reason == f"insertions only; {HOSTED}" and engine.now is engine.host
    large = kg.update(insert=people(900, 1000))
    assert large.reason == "insertions only" and engine.now is engine.device
    gone = kg.update(delete=people(1, 900))
    assert gone.reason.endswith(HOSTED) and engine.now is engine.host
    kg.verify()


@pytest.mark.parametrize("algorithm", ["recompute", "declarative", "dred", "counting", "backward-forward"])
def test_an_algorithm_that_is_asked_for_stays_on_the_device(xp: Any, algorithm: str) -> None:
    kg = loaded(few=HOST)
    report = kg.update(delete=people(1), algorithm=algorithm)
    assert report.algorithm == algorithm and HOSTED not in report.reason
    assert engine_of(kg).now is engine_of(kg).device
    kg.verify()


@pytest.mark.parametrize(("algorithm", "hosted"), [("auto", True), ("dred", False), ("counting", False)])
def test_updates_overlap_on_the_host_unless_their_algorithm_is_asked_for(xp: Any, algorithm: str, hosted: bool) -> None:
    kg = loaded(few=HOST)
    kg.update(delete=people(1), algorithm="dred")
    ticket = kg.submit(insert=people(1), algorithm=algorithm)
    assert (HOSTED in ticket.wait().reason) == hosted
    assert (engine_of(kg).now is engine_of(kg).host) == hosted
    kg.verify()


def test_rules_that_change_are_followed_where_they_are_few(xp: Any) -> None:
    kg, memory = loaded(few=HOST), in_memory()
    for few in (HOST, DEVICE, HOST):
        for change in ("insert_rules", "delete_rules"):
            asked = {change: PREFIX + ":Kin[?x] :- :kin[?x, ?y] ."}
            on(few, kg).update(**asked)
            memory.update(**asked)
            assert (engine_of(kg).now is engine_of(kg).host) == (few == HOST)
            assert_same(everything(kg), everything(memory))


def test_a_dry_run_and_an_error_leave_the_graph_wherever_they_were_tried(xp: Any) -> None:
    kg = loaded(few=DEVICE)
    before = everything(kg)
    for few in (HOST, DEVICE, HOST, HOST):
        told = on(few, kg).update(insert=people(2, 500), delete=people(2), dry_run=True)
        assert (told.inserted.explicit, told.deleted.explicit) == ({TRIPLE: 4}, {TRIPLE: 4})
        assert_same(everything(kg), before)
        with patch.object(MemoryEngine, "commit", side_effect=KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
            kg.update(insert=people(2, 500), delete=people(2))
        assert_same(everything(kg), before)
    kg.update(delete=people(2))
    kg.verify()


def test_rules_that_were_only_tried_are_not_in_force_wherever_they_were_tried(xp: Any) -> None:
    kg, memory = loaded(few=DEVICE), in_memory()
    tried = {"insert_rules": PREFIX + ":Kin[?x] :- :kin[?x, ?y] . old(?x) :- age(?x, ?n), ?n > 60 ."}
    for few in (HOST, DEVICE, HOST, HOST):
        for asked in (tried, {"insert": f"unheard({few}, 1) ."}):
            on(few, kg).update(**asked, dry_run=True)
            with patch.object(MemoryEngine, "commit", side_effect=KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
                kg.update(**asked)
            assert engine_of(kg).now.state().plan is kg._plan
    for few in (DEVICE, HOST):
        for one in (on(few, kg), memory):
            one.update(insert=people(1, 500 + few % 7))
        assert_same(everything(kg), everything(memory))


# -- what is carried -------------------------------------------------------------------------------------------------------


class Carried:
    """Counts what goes from one memory to the other."""

    def __init__(self, xp: Device) -> None:
        self.xp = xp
        self.told()

    def told(self) -> tuple[int, int]:
        """Elements to the device and from there, since this was asked."""
        found = self.xp.sent, self.xp.fetched
        self.xp.sent = self.xp.fetched = 0
        return found


def test_a_small_update_on_the_host_fetches_what_it_reads_and_only_once() -> None:
    with standing_in() as xp:
        kg, carried = loaded(1000), Carried(xp)
        carried.told()
        one = triple("p7", "kin", "other")
        on(HOST, kg).update(insert=one)
        sent, fetched = carried.told()
        assert sent == 0 and 1000 <= fetched <= 4 * 1000, "of kin, by one or two orders, and not of knows"
        for change in ({"delete": one}, {"insert": one}, {"delete": one}):
            kg.update(**change)
        sent, fetched = carried.told()
        assert sent == 0 and fetched <= 4 * 1000, "what deleting reads beside"
        for change in ({"insert": one}, {"delete": one}):
            kg.update(**change)
        assert carried.told() == (0, 0)
        kg.verify()


def test_what_came_and_went_goes_back_to_the_device_and_the_rest_is_there() -> None:
    with standing_in() as xp:
        kg, carried = loaded(20000), Carried(xp)
        on(HOST, kg).update(insert=people(3, 50000), delete=people(2))
        carried.told()
        on(DEVICE, kg).update(insert=people(1, 60000))
        sent, _ = carried.told()
        assert 0 < sent < 200
        kg.update(insert=people(1, 60001))
        sent, _ = carried.told()
        assert sent < 50
        kg.verify()


def test_marks_that_were_carried_are_not_carried_again() -> None:
    with standing_in() as xp:
        kg, carried = loaded(20000), Carried(xp)
        kg.update(algorithm="counting")
        on(HOST, kg).update(insert=people(1, 50000))
        carried.told()
        assert kg.update(delete=people(1)).algorithm == "counting"
        on(DEVICE, kg).update(delete=people(1, 1), algorithm="counting")
        sent, _ = carried.told()
        assert 0 < sent < 300
        on(HOST, kg).update(delete=people(1, 2))
        _, fetched = carried.told()
        assert fetched < 300
        kg.verify()


def test_readers_fetch_a_relation_once() -> None:
    with standing_in() as xp:
        kg, carried = loaded(2000), Carried(xp)
        carried.told()
        assert kg.counts() == {TRIPLE: 10000}
        assert carried.told() == (0, 0), "how many there are is known"
        asked = f"SELECT (COUNT(*) AS ?n) {{ ?x <{EX}kin> ?y }}"
        kg.query(asked)
        _, fetched = carried.told()
        assert fetched == 4000, "by two orders, as they are there"
        kg.query(asked)
        assert carried.told() == (0, 0)
        kg.update(insert=triple("a", "kin", "b"))
        carried.told()
        kg.query(asked)
        _, fetched = carried.told()
        assert 0 < fetched < 10, "the base is there already"


def test_a_store_is_carried_over_when_it_is_read(tmp_path: Path) -> None:
    in_memory(1000).save(tmp_path / "g")
    with standing_in() as xp:
        kg, carried = KnowledgeGraph.open(tmp_path / "g", engine="gpu"), Carried(xp)
        assert carried.xp.launches["sort"] == 0 and len(kg) == 5000
        carried.told()
        on(HOST, kg).update(insert=people(1, 2000))
        assert carried.told() == (0, 0), "the host has it"
        on(DEVICE, kg).update(insert=triple("a", "kin", "b"))
        sent, _ = carried.told()
        assert 1000 <= sent < 4 * 1000
        kg.verify()


def test_a_large_relation_stays_on_the_device_while_rules_are_chosen_and_run() -> None:
    """Rules of OWL ask which properties are transitive, and much else, of the relation that has all types."""
    subclass, transitive = f"{W3}2000/01/rdf-schema#subClassOf>", f"{W3}2002/07/owl#TransitiveProperty>"
    axioms = f"<{EX}Worker> {subclass} <{EX}Person> .\n<{EX}under> {TYPE} {transitive} .\n"
    workers = "".join(f"<{EX}w{n}> {TYPE} <{EX}Worker> .\n" + triple(f"w{n}", "under", f"w{n // 9}") for n in range(6000))
    with standing_in(near=4096) as xp:
        kg = graph("owl2rl", equality="off")
        kg.update(insert=axioms + workers)
        assert kg.counts()[TRIPLE] > 20000
        assert xp.fetched < 3000
        xp.fetched = 0
        kg.update(algorithm="recompute")
        assert xp.fetched < 3000


def test_predicates_that_a_constant_tells_of_are_looked_up_and_not_searched_for() -> None:
    """Which properties are transitive stands among all types; their relations are then read as if a rule named them."""
    transitive = f"{W3}2002/07/owl#TransitiveProperty>"
    facts = "".join(f"<{EX}w{n}> {TYPE} <{EX}Worker> .\n" for n in range(900))
    facts += "".join(triple(f"w{n}", predicate, f"w{n // 2}") for predicate in ("under", "over") for n in range(1, 600))
    axioms = [f"<{EX}{predicate}> {TYPE} {transitive} .\n" for predicate in ("under", "over")]
    rules = Program.parse(f"[?x, ?p, ?z] :- [?p, {TYPE}, {transitive}], [?x, ?p, ?y], [?y, ?p, ?z] .")
    with standing_in(near=4096) as xp:
        kg, memory = graph(rules), KnowledgeGraph(rules)
        for changes in (
            {"insert": facts},
            {"insert": axioms[0]},
            {"insert": axioms[1]},
            {"delete": axioms[0]},
            {"insert": axioms[0], "delete": axioms[1]},
        ):
            xp.launches.clear()
            reports = [one.update(**changes, algorithm="recompute") for one in (kg, memory)]
            assert reports[0].inserted.derived == reports[1].inserted.derived
            assert reports[0].deleted.derived == reports[1].deleted.derived
            assert not xp.launches["lexsort"], "triples of all predicates, in another order"
        assert_same(everything(kg), everything(memory), "after all changes")


def test_a_recomputation_leaves_the_schema_alone() -> None:
    """What small components derive is known as long as what they read is the same, also of a relation that is large."""
    subclass, intersection = f"{W3}2000/01/rdf-schema#subClassOf>", f"{W3}2002/07/owl#intersectionOf>"
    listed = f"<{EX}l> {RDF}first> <{EX}Worker> .\n<{EX}l> {RDF}rest> {RDF}nil> .\n"
    axioms = f"<{EX}Worker> {subclass} <{EX}Person> .\n<{EX}Both> {intersection} <{EX}l> .\n{listed}"
    workers = "".join(f"<{EX}w{n}> {TYPE} <{EX}Worker> .\n" for n in range(6000))
    with standing_in(near=4096):
        kg = graph("owl2rl", equality="off")
        first = kg.update(insert=axioms + workers)
        near = engine_of(kg).device.shard.near
        assert near is not None
        done = near.kernel.examined
        report = kg.update(delete=f"<{EX}w7> {TYPE} <{EX}Worker> .", algorithm="recompute")
        assert near.kernel.examined == done
        assert report.deleted.derived == {TRIPLE: 2, "allTypes": 1}
        assert first.derivations - 10 < report.derivations < first.derivations
        kg.update(insert=f"<{EX}Person> {subclass} <{EX}Agent> .", algorithm="recompute")
        assert near.kernel.examined > done
        kg.verify()
        everyone = f"<{EX}w8> {TYPE} {W3}2002/07/owl#AllDifferent> .\n<{EX}w8> {W3}2002/07/owl#members> <{EX}l> .\n"
        kg.update(insert=everyone, algorithm="recompute")
        kg.verify()


def test_a_product_has_each_value_once() -> None:
    """One column alone may be read with its repetitions; times another it would be all of them, that often."""
    program = Program.parse("both(?x, ?z) :- node(?x), many(?y, ?z) . seen(?z) :- many(?y, ?z) .")
    facts = " ".join([*(f"node({n}) ." for n in range(40)), *(f"many({n}, {n % 5}) ." for n in range(3000))])
    with standing_in():
        reports = [kg.update(insert=facts) for kg in (graph(program), KnowledgeGraph(program))]
    assert [report.inserted.derived for report in reports] == [{"both": 200, "seen": 5}] * 2
    assert reports[1].derivations == 205
    assert reports[0].derivations <= 200 + 3000


# -- launches --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["auto", "dred", "counting", "backward-forward"])
def test_launches_follow_the_change_and_not_the_graph(algorithm: str) -> None:
    """Nor do waits: none of them is for a fact."""
    with standing_in() as xp:
        launches, waits = [], []
        for count in (24000, 96000):
            kg = loaded(count)
            kg.update(algorithm="counting" if algorithm == "counting" else "recompute")
            kg.update(delete=people(4), algorithm=algorithm)
            xp.launches.clear()
            xp.waits.clear()
            kg.update(insert=people(4, 10**6), algorithm=algorithm)
            kg.update(delete=people(4, 100), algorithm=algorithm)
            launches.append(xp.launches.total())
            waits.append(xp.waits.total())
        assert abs(launches[1] - launches[0]) <= 0.05 * launches[0] + 5, launches
        assert abs(waits[1] - waits[0]) <= 0.05 * waits[0] + 5, waits
        assert waits[0] < launches[0]


@pytest.mark.parametrize("algorithm", ["auto", "dred", "counting", "backward-forward"])
def test_launches_do_not_follow_the_number_of_facts_that_change(algorithm: str) -> None:
    with standing_in() as xp:
        kg, found = loaded(2000), []
        kg.update(algorithm="counting" if algorithm == "counting" else "recompute")
        kg.update(delete=people(20, 1900), algorithm=algorithm)
        for start, size in ((0, 20), (100, 160)):
            xp.launches.clear()
            xp.waits.clear()
            kg.update(delete=people(size, start), algorithm=algorithm)
            found.append(xp.launches.total() + xp.waits.total())
        assert found[1] <= 1.2 * found[0] + 20, found


# -- who reads it ----------------------------------------------------------------------------------------------------------


def test_a_graph_on_a_device_is_asked_like_any_other(xp: Any) -> None:
    kg, memory = loaded(30), in_memory(30)
    for few in (DEVICE, HOST):
        on(few, kg)
        for one in (kg, memory):
            one.update(insert=triple("q1", "kin", "p2"), delete=triple("p3", "kin", "q3"))
        asked = f"SELECT ?x ?y {{ ?x <{EX}kin>+ ?y . ?y a <{EX}Known> }} ORDER BY ?x ?y"
        assert list(kg.query(asked)) == list(memory.query(asked))
        fact = f"<{EX}p1> <{EX}kin> <{EX}p2> ."
        assert str(kg.explain(fact)) == str(memory.explain(fact))
        assert {**kg.stats(), "engine": 0} == {**memory.stats(), "engine": 0}
        for which in Which:
            assert {*kg.triples(which)} == {*memory.triples(which)}
        assert kg.verify("gpu") == memory.verify("gpu") == len(kg)
        for one in (kg, memory):
            one.update(delete=triple("q1", "kin", "p2"), insert=triple("p3", "kin", "q3"))


def test_a_store_is_kept_by_a_graph_on_a_device(xp: Any, tmp_path: Path) -> None:
    kg, memory = loaded(30, store=tmp_path / "g"), loaded_store(tmp_path / "m")
    for few, algorithm in ((DEVICE, "auto"), (HOST, "auto"), (DEVICE, "counting"), (HOST, "auto"), (DEVICE, "auto")):
        number = kg.version or 0
        for one in (on(few, kg), memory):
            one.update(insert=people(1, 100 + number), delete=people(1, number), algorithm=algorithm)
        again = KnowledgeGraph.open(tmp_path / "g")
        assert_same(everything(again), everything(memory))
        again.verify()
    feeds = [one.change_feed().drop_columns("_commit_timestamp").to_pylist() for one in (kg, memory)]
    assert sorted(map(str, feeds[0])) == sorted(map(str, feeds[1]))
    opened = on(DEVICE, KnowledgeGraph.open(tmp_path / "g", engine="gpu"))
    assert opened.update(delete=people(1, 20)).algorithm == "counting"
    kg.update(insert=people(1, 777))
    assert len(kg) == len(opened) + 5, "what another has written is taken over"
    kg.verify()


def loaded_store(folder: Path) -> KnowledgeGraph:
    kg = KnowledgeGraph(Program.parse(KINSHIP), store=folder)
    kg.update(insert=people(30))
    return kg


@pytest.mark.parametrize("few", [DEVICE, HOST])
@pytest.mark.parametrize("algorithm", ["auto", "dred"])
def test_a_stream_beside_a_graph_on_a_device(xp: Any, few: int, algorithm: str) -> None:
    kg, memory = loaded(10, few=few), in_memory(10)
    streams = [one.stream("RANGE 10s STEP 5s", algorithm=algorithm) for one in (kg, memory)]
    for second in (1, 4, 9, 14, 30):
        for one in streams:
            one.push(triple(f"q{second % 3}", "kin", f"s{second}"), second)
            list(one.advance(to=second))
        assert {*streams[0].graph.triples()} == {*streams[1].graph.triples()}
        if second == 9:
            for one in (kg, memory):
                one.update(insert=triple("p9", "kin", "p1"))


# -- no device -------------------------------------------------------------------------------------------------------------


def no_driver() -> int:
    raise CUDARuntimeError(35)


def without(**runtime: Any) -> Device:
    xp = Device()
    for name, value in runtime.items():
        setattr(xp.cuda.runtime, name, value)
    return xp


ABSENT = {
    "no CuPy": (None, "EG203: the gpu engine needs CuPy (hint: pip install 'evergraph[gpu]'"),
    "no driver": (without(getDeviceCount=no_driver, driverGetVersion=lambda: 0), "EG206: no GPU was found (hint: nvidia-smi"),
    "no GPU": (without(getDeviceCount=lambda: 0), "EG206: no GPU was found (hint: nvidia-smi"),
    "old driver": (
        without(getDeviceCount=no_driver, driverGetVersion=lambda: 11080),
        "EG206: the driver is for CUDA 11.8, CuPy for CUDA 13.2 (hint: update the driver",
    ),
}


@pytest.mark.parametrize("why", ABSENT)
def test_without_a_device_there_is_one_numbered_line(why: str, tmp_path: Path) -> None:
    module, line = ABSENT[why]
    in_memory(3).save(tmp_path / "g")
    with patch.dict(sys.modules, {"cupy": module}):
        for make in (lambda: KnowledgeGraph("rhodf", engine="gpu"), lambda: KnowledgeGraph.open(tmp_path / "g", engine="gpu")):
            with pytest.raises(UserError) as told:
                make()
            assert str(told.value).startswith(f"error {line}")
            assert "use the memory engine" in str(told.value)


@pytest.mark.parametrize("why", ABSENT)
def test_without_a_device_a_command_ends_with_one_line(run: Run, why: str) -> None:
    module, line = ABSENT[why]
    written("data.nt")
    with patch.dict(sys.modules, {"cupy": module}):
        for command in (["materialise", "data.nt", "--to", "out.nt"], ["load", "data.nt", "--store", "uni"]):
            ended = run(*command, "--rules", "rhodf", "--engine", "gpu")
            assert ended.code == 2 and len(ended.mistakes) == 1
            assert line in ended.mistakes[0]
            assert not Path("uni").exists() and not Path("out.nt").exists()


def test_commands_take_the_engine(run: Run) -> None:
    written("data.nt")
    with standing_in():
        for command in (["load", "data.nt", "--rules", "rhodf", "--store", "uni"], ["verify", "uni"]):
            assert run(*command, "--engine", "gpu").code == 0
