"""The table of rules: a row for each rule in force, and for each fact that the graph's ontology asserts.

    number, name, origin, rule        the text of the rule; its place among all; where it came from

A version adds a file with the rules that came, and writes those files anew that hold rules which went.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evergraph.plan.rulebook import Member
from evergraph.rules.model import Atom, Program
from evergraph.rules.printer import print_atom, print_rule
from evergraph.store.layout import RULES, SCHEMAS, NewFile, write_file
from evergraph.store.log import Snapshot, StoredFile
from evergraph.store.read import read_table, read_tables

ASSERTION = "assertion"
"""The origin of a fact of the ontology."""


@dataclass(frozen=True, slots=True)
class RuleRows:
    """What changes in the table."""

    rules: tuple[Member, ...] = ()
    assertions: tuple[Atom, ...] = ()
    less_rules: tuple[Member, ...] = ()
    less_assertions: tuple[Atom, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.rules or self.assertions or self.less_rules or self.less_assertions)


@dataclass(frozen=True, slots=True)
class StoredRules:
    program: Program
    numbers: list[int]
    """Of the rules, in their order."""
    assertions: frozenset[Atom]


def write_rules(store: Path, files: Sequence[StoredFile], rows: RuleRows) -> tuple[list[NewFile], list[StoredFile]]:
    """Files to add to the table, whose files these are, and to remove from it. Cost: the change, and the files it is in."""
    added: list[NewFile] = []
    removed: list[StoredFile] = []
    numbers = pa.array([member.number for member in rows.less_rules], pa.int64())
    texts = pa.array(map(_text, rows.less_assertions), pa.string())
    for file in files if len(numbers) or len(texts) else ():
        table = read_table(file.path)
        asserted = pc.equal(table.column("origin"), ASSERTION)
        gone = pc.if_else(asserted, pc.is_in(table.column("rule"), texts), pc.is_in(table.column("number"), numbers))
        kept = table.filter(pc.invert(gone))
        if len(kept) < len(table):
            removed.append(file)
            added += [write_file(store, RULES, kept)] * bool(len(kept))
    new = [(m.number, m.rule.name, m.rule.origin, print_rule(m.rule)) for m in rows.rules]
    new += [(0, "", ASSERTION, text) for text in sorted(map(_text, rows.assertions))]
    if new or not files:
        columns = list(zip(*new, strict=True)) or [()] * 4
        added.append(write_file(store, RULES, pa.table([list(c) for c in columns], schema=SCHEMAS[RULES])))
    return added, removed


def merge_rules(store: Path, files: Sequence[StoredFile]) -> NewFile:
    """All rows in one file, in their order."""
    rows = pa.concat_tables(read_tables(files))
    return write_file(store, RULES, rows.take(pa.array(np.argsort(rows.column("number").to_numpy(), kind="stable"))))


def _text(fact: Atom) -> str:
    return f"{print_atom(fact)} .\n"


def read_rules(snapshot: Snapshot) -> StoredRules:
    """The rules of a version. Cost: linear in their text."""
    tables = list(read_tables(snapshot.files(RULES)))
    rows = pa.concat_tables(tables).to_pylist() if tables else []
    rules = sorted((row for row in rows if row["origin"] != ASSERTION), key=lambda row: row["number"])
    program = _parsed(row["rule"] for row in rules)
    facts = _parsed(row["rule"] for row in rows if row["origin"] == ASSERTION).facts
    origins = (row["origin"] for row in rules)
    known = tuple(replace(rule, origin=origin) if origin else rule for rule, origin in zip(program.rules, origins, strict=True))
    return StoredRules(Program(known), [row["number"] for row in rules], frozenset(facts))


def _parsed(texts: Iterable[str]) -> Program:
    return Program.parse("".join(texts))
