"""`evergraph bench rules` and `vocabulary`: programs of the forms they claim, histories of small changes, honest figures."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from typer.testing import CliRunner

from evergraph import KnowledgeGraph, Program
from evergraph.bench.rules.axioms import KINDS, PREFIX, Axiom, program
from evergraph.bench.rules.forms import FORMS, fill
from evergraph.bench.rules.generate import Large, Tree, generate
from evergraph.bench.rules.history import LEAST, MOST, Vocabulary, first, versions
from evergraph.bench.rules.measure import Changes, same_instances, set_up
from evergraph.bench.rules.vocabulary import draw
from evergraph.cli import app

SCALE = 0.004


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Large:
    return generate(tmp_path_factory.mktemp("large"), SCALE)


# -- programs --------------------------------------------------------------------------------------------------------


def test_an_axiom_says_as_a_rule_what_it_says_as_a_triple() -> None:
    data = [("<http://example.org/a>", "<http://example.org/p>", "<http://example.org/b>")]
    data.append((data[0][0], "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>", "<http://example.org/C>"))
    for axiom in (Axiom("subclass", "C", "D"), *(Axiom(kind, "p", "q") for kind in KINDS if kind != "subclass")):
        rules, triples = KnowledgeGraph(program([axiom])), KnowledgeGraph("rhodf")
        rules.update(insert=data)
        triples.update(insert=[*data, axiom.triple])
        assert len(rules) == 3 and not same_instances(rules, triples), axiom


def test_there_are_forty_forms_and_no_two_are_the_same() -> None:
    forms = [*(rule.format("c", "c") for _, rule in KINDS.values()), *(fill(name, lambda _: "c") for name in FORMS)]
    shapes = set()
    for form in forms:
        names: dict[str, str] = {}
        shapes.add(re.sub(r"\?\w+", lambda found: names.setdefault(found.group(), f"?v{len(names)}"), form))  # noqa: B023
    assert len(forms) == len(shapes) == len(Program.parse(PREFIX + "\n".join(forms)).rules) == 40


def test_a_form_about_one_property_is_symmetric_or_transitive() -> None:
    names = iter("abc")
    assert fill("chain of two", lambda _: next(names), same=True) == ":a[?x, ?z] :- :a[?x, ?y], :a[?y, ?z] ."


def test_trees_have_their_levels() -> None:
    tree = Tree.of("C", 1000, 5)
    assert tree.size == 1000 and [len(level) for level in tree.levels][:2] == [1, 5]
    axioms = list(tree.axioms("subclass", Random(0)))
    assert len({axiom.lower for axiom in axioms}) == len(axioms) == 999
    depth = {"C0": 0}
    for axiom in axioms:
        depth[axiom.lower] = depth[axiom.upper] + 1
    assert max(depth.values()) == 4


def test_a_program_has_rules_of_every_form(large: Large) -> None:
    for form, rules in large.others.items():
        assert {re.sub(r":\w+", ":c", rule) for rule in rules} == {fill(form, lambda _: "c")}
    assert list(large.others) == list(FORMS) and {axiom.kind for axiom in large.axioms} == set(KINDS)


def test_the_same_seed_gives_the_same_files(large: Large, tmp_path: Path) -> None:
    again, other = generate(tmp_path / "again", SCALE), generate(tmp_path / "other", SCALE, seed=1)
    for name, file in large.files.items():
        assert file.read_bytes() == again.files[name].read_bytes() != other.files[name].read_bytes()
    assert Program.load(large.files["rules"]).rules == Program.parse(PREFIX + "\n".join(large.rules)).rules
    assert len(set(large.rules)) == len(large.rules) > 900


def test_rules_and_triples_derive_the_same(large: Large) -> None:
    rules, triples = set_up(large, "rules"), set_up(large, "triples")
    assert same_instances(rules.graph, triples.graph) == ""
    assert set(rules.stages) == {"parse rules", "compile", "parse facts", "close"}
    assert rules.seconds == pytest.approx(sum(rules.stages.values())) and rules.derived > 10_000
    triples.graph.update(insert=[("<urn:x>", "<http://example.org/p1>", "<urn:y>")])
    assert "as rules" in same_instances(rules.graph, triples.graph)


def test_graphs_of_as_many_facts_that_are_others_are_told_apart() -> None:
    one, other = KnowledgeGraph("rhodf"), KnowledgeGraph("rhodf")
    for graph, value in ((one, "<urn:b>"), (other, "<urn:c>")):
        graph.update(insert=[("<urn:a>", "<urn:p>", value)])
    assert same_instances(one, other) == "<urn:p>: other facts as rules than as triples"


def test_rules_go_and_come_back(large: Large) -> None:
    changes = Changes(set_up(large, "rules").graph, Random(0))
    rows = [*changes.one_by_one(large), changes.many(large)]
    assert changes.wrong == ""
    assert [row["kind"] for row in rows][:4] == list(KINDS) and rows[-1]["rules"] == len(large.rules) // 10
    assert all(
        row[f"{way}_to_recompute"] == pytest.approx(row[way] / changes.recompute)
        for row in rows
        for way in ("delete", "insert")
    )
    assert rows[-1]["delete_facts"] > 0


def test_a_change_that_leaves_other_facts_is_wrong(large: Large, monkeypatch: pytest.MonkeyPatch) -> None:
    changes = Changes(set_up(large, "rules").graph, Random(0))
    changes.sizes = {}
    changes.many(large)
    assert "other facts than before" in changes.wrong


# -- histories -------------------------------------------------------------------------------------------------------


def depths(axioms: frozenset[Axiom], kind: str) -> dict[str, int]:
    above = {axiom.lower: axiom.upper for axiom in axioms if axiom.kind == kind}
    out = {}
    for name in above:
        steps, at = 0, name
        while at in above:
            steps, at = steps + 1, above[at]
            assert steps <= len(above), "a cycle"
        out[name] = steps
    return out


def test_a_history_is_of_small_changes_and_stays_a_tree() -> None:
    rng = Random(3)
    history = list(versions(first(300, 80, rng), 10, rng))
    assert len(history) == 11
    for before, after in pairwise(history):
        changed = len(before ^ after) / len(before)
        assert LEAST <= changed < 2 * MOST
        classes = {"C0", *depths(after, "subclass")}
        properties = {"p300", *depths(after, "subproperty")}
        for axiom in after:
            ends = {"subclass": (classes, classes), "subproperty": (properties, properties)}
            lower, upper = ends.get(axiom.kind, (properties, classes))
            assert axiom.lower in lower and axiom.upper in upper, axiom
    assert any(len(after - before) and len(before - after) for before, after in pairwise(history))


def test_a_renamed_class_takes_everything_along() -> None:
    vocabulary = Vocabulary()
    vocabulary.above = {"subclass": {"C0": "", "C1": "C0", "C2": "C1"}, "subproperty": {"p3": ""}}
    vocabulary.ends = {"domain": {"p3": "C1"}, "range": {}}
    vocabulary.made = 4
    from evergraph.bench.rules.history import rename

    class Chosen(Random):
        def choice(self, seq):  # type: ignore[no-untyped-def]
            return "C1" if "C1" in seq else "subclass"

    rename(vocabulary, Chosen())
    assert vocabulary.above["subclass"] == {"C0": "", "C1": "C4", "C2": "C4", "C4": "C0"}
    assert vocabulary.ends["domain"] == {"p3": "C4"}


def test_the_fringe_is_what_few_facts_use() -> None:
    vocabulary = Vocabulary()
    vocabulary.above["subclass"] = {"C0": "", "C1": "C0", "C2": "C1", "C3": "C0"}
    vocabulary.used.update(C0=50, C1=1, C2=5, C3=3)
    drawn = {}
    for vocabulary.most in (2, 5, 6):
        drawn[vocabulary.most] = {vocabulary.draw("subclass", Random(seed)) for seed in range(30)}
    assert drawn == {2: {"C3"}, 5: {"C2", "C3"}, 6: {"C1", "C2", "C3"}}


# -- the commands ----------------------------------------------------------------------------------------------------


def test_bench_rules_prints_tables_and_writes_json(tmp_path: Path) -> None:
    arguments = ["bench", "rules", "--scale", str(SCALE), "--out", str(tmp_path), "--data", str(tmp_path / "data")]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert "Set-up from files" in done.stdout and "all kinds" in done.stdout
    found = json.loads((tmp_path / "rules.json").read_text())
    assert [row["form"] for row in found["rows"]] == ["rules", "triples"] and found["wrong"] == ""
    assert found["ratio"] == pytest.approx(found["rows"][0]["seconds"] / found["rows"][1]["seconds"])
    assert {"machine", "date", "commit", "recompute", "changes", "memory"} <= found.keys()


def test_bench_vocabulary_prints_a_table_and_writes_json(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["bench", "vocabulary", "--scale", "0.02", "--versions", "3", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    found = json.loads((tmp_path / "vocabulary.json").read_text())
    assert [(row["history"], row["version"]) for row in found["rows"]] == [
        (history, version) for history in ("fringe", "anywhere") for version in (1, 2, 3)
    ]
    assert found["wrong"] == []
    assert all(row["ratio"] == pytest.approx(row["recompute"] / row["auto"]) for row in found["rows"])
    assert found["ratios"]["fringe"]["least"] == min(row["ratio"] for row in found["rows"][:3])


def test_the_chart_is_a_file(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    times = {"auto": 0.01, "recompute": 1.0, "triples": 0.02}
    rows = [{"history": history, "version": n, **times} for history in ("fringe", "anywhere") for n in (1, 2)]
    assert draw(rows, tmp_path / "chart.png") and (tmp_path / "chart.png").stat().st_size > 1000
