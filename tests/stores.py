"""Stores to test with: small ones, what is in them, and what their change feeds say."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from conftest import assert_same, everything
from evergraph import KnowledgeGraph, Program
from evergraph.engines.base import Which
from evergraph.rules.model import TRIPLE, Atom
from evergraph.rules.printer import print_atom

CLASSES_OF = "<http://www.w3.org/2000/01/rdf-schema#subClassOf>"
IS_A = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
FAMILY = f"<http://ex/A> {CLASSES_OF} <http://ex/B> .\n<http://ex/x> {IS_A} <http://ex/A> .\n"
CHANGING = "alone(?x) :- node(?x), NOT linked(?x) . linked(?x) :- edge(?x, ?y) . none() :- node(?x), NOT edge(?x, ?x) ."


def assert_equal(got: KnowledgeGraph, want: KnowledgeGraph, what: str = "") -> None:
    for which in (Which.EXPLICIT, Which.DERIVED):
        assert_same(everything(got, which), everything(want, which), f"{which}\n{what}")


def triple(n: int, m: int = 0) -> str:
    return f"<http://ex/s{n}> <http://ex/p> <http://ex/o{m}> .\n"


def made(path: Path, *updates: str, rules: str | Program = "rhodf") -> KnowledgeGraph:
    """A store with these updates, and the graph that made it."""
    kg = KnowledgeGraph(rules, store=path)
    for text in updates:
        kg.update(insert=text)
    return kg


def files(path: Path) -> dict[str, bytes]:
    """Every file of a folder but the lock."""
    return {str(p.relative_to(path)): p.read_bytes() for p in path.rglob("*") if p.is_file() and p.name != ".writer"}


def paths(snapshot: Any, table: str) -> set[str]:
    return {str(file.path) for file in snapshot.files(table)}


def replayed(kg: KnowledgeGraph) -> Iterator[tuple[set[str], set[str]]]:
    """Explicit and derived facts of each version, by the changes of its feed alone."""
    held: tuple[set[str], set[str]] = (set(), set())
    names = {name for version in kg._store.history() for name in version.info.explicit | version.info.derived} | {TRIPLE}
    for version in range(kg.version + 1):
        for row in (row for name in names for row in changes_of(kg, version, name)):
            kind, fact, explicit = row
            place = held[0] if explicit else held[1]
            if kind in ("delete", "update_preimage"):
                place.remove(fact)
            else:
                assert fact not in held[0] | held[1], (version, row)
                place.add(fact)
        yield set(held[0]), set(held[1])


def changes_of(kg: KnowledgeGraph, version: int, relation: str = TRIPLE) -> list[tuple[str, str, bool]]:
    """Kind, fact and explicitness; what goes stands before what comes."""
    rows = kg.change_feed(version, version, relation).to_pylist()
    assert {row["_commit_version"] for row in rows} <= {version}
    terms = [
        tuple(row["arguments"] if relation != TRIPLE else (row[c] for c in ("subject", "predicate", "object"))) for row in rows
    ]
    found = [
        (row["_change_type"], print_atom(Atom(relation, term)), row["explicit"]) for row, term in zip(rows, terms, strict=True)
    ]
    return sorted(found, key=lambda change: change[0] not in ("delete", "update_preimage"))
