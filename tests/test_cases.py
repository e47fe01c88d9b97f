"""Cases: a folder of files is a test, on every engine. See `tests/cases/README.md`."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import assert_same, everything, triples
from evergraph import KnowledgeGraph, Program
from evergraph.formats import read_text
from evergraph.rules.model import SAME, TRIPLE, Atom
from evergraph.rules.printer import print_atom
from evergraph.rules.sources import SETS

CASES = Path(__file__).parent / "cases"
STEPS = {"delete": "delete", "insert": "insert", "delete-rules": "delete_rules", "insert-rules": "insert_rules"}
FOLDERS = sorted(p.parent for pattern in ("base.nt", "base.dlog") for p in CASES.rglob(pattern))


def called(folder: Path) -> str:
    return f"{folder.parent.name}/{folder.name}"


def rules_of(folder: Path) -> Program:
    own = folder / "rules.dlog"
    return Program.load(own) if own.exists() else Program.load(folder.parent.name)


def reflexive(facts: set[Atom]) -> set[Atom]:
    """Every name of a triple is the same as itself, `owl:sameAs` among them."""
    names = {name for fact in facts if fact.relation == TRIPLE for name in fact.terms}
    return {Atom(TRIPLE, (name, SAME, name)) for name in ({*names, SAME} if names else names)}


def expected(folder: Path, step: str, equality: str) -> tuple[set[str], set[str]]:
    """Triples and facts of named relations that a step leaves behind."""
    facts: set[Atom] = set()
    if (text := folder / f"{step}.expect.nt").exists():
        for block in read_text(text.read_bytes()):
            facts |= {Atom(TRIPLE, row) for row in zip(*(c.to_pylist() for c in block), strict=True)}
    if (program := folder / f"{step}.expect.dlog").exists():
        facts |= set(Program.load(program).facts)
    if equality != "off":
        facts |= reflexive(facts)
    shown = {f: print_atom(f) for f in facts}
    return {s for f, s in shown.items() if f.relation == TRIPLE}, {s for f, s in shown.items() if f.relation != TRIPLE}


def source(path: Path) -> object:
    return path.read_text() if path.suffix == ".nt" else path


def run_case(folder: Path, program: Program, engine: object, algorithm: str = "auto", equality: str = "off") -> None:
    """Insert the base, then delete and insert what each step says, and compare with what is expected after each."""
    kg = KnowledgeGraph(program, engine=engine, equality=equality)
    for path in (folder / "base.nt", folder / "base.dlog"):
        if path.exists():
            kg.update(insert=source(path), algorithm=algorithm)
    assert_expected(kg, folder, "00", equality)
    for step in sorted({path.name[:2] for kind in STEPS for path in folder.glob(f"[0-9][0-9].{kind}.*")}):
        for kind, word in STEPS.items():
            for path in sorted(folder.glob(f"{step}.{kind}.*")):
                kg.update(**{word: path if "rules" in kind else source(path)}, algorithm=algorithm)
        assert_expected(kg, folder, step, equality)


def assert_expected(kg: KnowledgeGraph, folder: Path, step: str, equality: str) -> None:
    want_triples, want_named = expected(folder, step, equality)
    shown = {name for f in want_named for name in [f.partition("(")[0]]} | {"inconsistency"}
    assert_same(triples(kg), want_triples, f"{folder.name} after step {step}")
    named = {f for f in everything(kg) if f.partition("(")[0] in shown}
    assert_same(named, want_named, f"{folder.name} after step {step}, named relations")


def test_there_are_cases() -> None:
    assert {folder.parent.name for folder in FOLDERS} >= set(SETS)


EQUALITY = [folder for folder in FOLDERS if folder.parent.name == "equality"]
OTHERS = [folder for folder in FOLDERS if folder not in EQUALITY]


@pytest.mark.parametrize("engine", ["memory", "reference"])
@pytest.mark.parametrize("folder", OTHERS, ids=called)
def test_case(folder: Path, engine: str) -> None:
    run_case(folder, rules_of(folder), engine)


def deleting(folders: list[Path]) -> list[Path]:
    return [folder for folder in folders if any(folder.glob("*.delete.*")) or any(folder.glob("*-rules.dlog"))]


@pytest.mark.parametrize("algorithm", ["recompute", "declarative", "dred", "counting", "backward-forward"])
@pytest.mark.parametrize("folder", deleting(OTHERS), ids=called)
def test_case_by_every_algorithm(folder: Path, algorithm: str) -> None:
    run_case(folder, rules_of(folder), "memory", algorithm)


@pytest.mark.parametrize(("equality", "engine"), [("rewrite", "memory"), ("axioms", "memory"), ("axioms", "reference")])
@pytest.mark.parametrize("folder", EQUALITY, ids=called)
def test_case_of_equality(folder: Path, equality: str, engine: str) -> None:
    run_case(folder, rules_of(folder), engine, equality=equality)


@pytest.mark.parametrize(
    ("equality", "algorithm"),
    [
        *(("rewrite", algorithm) for algorithm in ("recompute", "backward-forward")),
        *(("axioms", algorithm) for algorithm in ("recompute", "declarative", "dred", "counting", "backward-forward")),
    ],
)
@pytest.mark.parametrize("folder", deleting(EQUALITY), ids=called)
def test_case_of_equality_by_every_algorithm(folder: Path, equality: str, algorithm: str) -> None:
    run_case(folder, rules_of(folder), "memory", algorithm, equality)


@pytest.mark.parametrize("equality", ["rewrite", "axioms"])
@pytest.mark.parametrize("folder", [f for f in OTHERS if f.parent.name == "owl2rl"], ids=called)
def test_case_of_owl_under_equality(folder: Path, equality: str) -> None:
    """Equality says what the eq- rules say, and that every name is the same as itself."""
    run_case(folder, rules_of(folder), "memory", equality=equality)


@pytest.mark.spark
@pytest.mark.parametrize("folder", OTHERS, ids=called)
def test_case_on_spark(folder: Path, spark: object) -> None:
    run_case(folder, rules_of(folder), spark)
