"""DuckDB: the same rules as a semi-naive loop in SQL, one table per predicate, over ids numbered by Evergraph's reader.

    INSERT INTO head SELECT DISTINCT … FROM (variant UNION ALL variant …) WHERE NOT EXISTS (… head …)

One statement per relation and round. A variant is a rule instance with one body atom over the new rows of its table,
the atoms before it over all rows and those after it over the rows seen before, so that no derivation is made twice.
Rows are only ever appended, so "seen before" is a range of `rowid`. Joins are ordered by DuckDB, which knows the
sizes of its tables. Which rules are evaluated, and in which order, is in `instances.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from evergraph.bench.peers.base import Outcome, SameRules, timed
from evergraph.bench.peers.instances import Counts, Instance, Instances
from evergraph.bench.peers.patterns import Encoded, Key, Pattern, Value, portable, read
from evergraph.bench.peers.sql import select
from evergraph.rules.model import TYPE, Program, Variable


class DuckDB(SameRules):
    name = "duckdb"
    package = "duckdb"
    modules: tuple[str, ...] = ("duckdb",)

    def run(self, file: Path, rules: str, cores: int) -> Outcome:
        import duckdb

        program, notes = portable(Program.load(rules), file)
        connection = duckdb.connect(config={"threads": cores})
        with timed() as load:
            encoded = read(file, program)
            tables = Tables(connection, Counts(encoded.rules, encoded.number(TYPE)))
            tables.load(encoded)
        with timed() as materialise:
            tables.close(encoded)
        return Outcome(tables.triples, load.seconds, materialise.seconds, notes)


class Tables:
    """One table per relation, columns `c0, c1, …`, rows distinct and never changed."""

    def __init__(self, connection: Any, counts: Counts) -> None:
        self._sql, self.counts = connection, counts

    @property
    def triples(self) -> int:
        return sum(self.counts.rows[key] for key in self.counts.predicates)

    def load(self, encoded: Encoded) -> None:
        """Split the triples by predicate, drop repetitions, and add the facts of the program."""
        subject, predicate, value = encoded.triples
        order = np.argsort(predicate, kind="stable")
        keys, starts = np.unique(predicate[order], return_index=True)
        for key, part in zip(keys.tolist(), np.split(order, starts[1:]), strict=True):
            self._sql.register("batch", pa.table({"c0": subject[part], "c1": value[part]}))
            self._insert(key, 2, "SELECT * FROM batch")
            self._sql.unregister("batch")
        for fact in encoded.facts:
            key, _ = self.counts.node(fact)
            self._insert(key, len(fact.args), _select(fact.args, [], ()))

    def close(self, encoded: Encoded) -> None:
        """Evaluate stale instances until there are none."""
        instances = Instances(encoded.rules, self.counts, self._rows)
        while chosen := instances.next():
            for head, stale in chosen.items():
                variants: list[str] = []
                for instance in stale:
                    now = instances.now(instance)
                    variants += _variants(instance, now)
                    instance.seen = now
                if variants:
                    self._insert(head, len(stale[0].rule.head.args), " UNION ALL ".join(variants))

    def _insert(self, key: Key, arity: int, candidates: str) -> None:
        """Add the candidates that are not known, each once."""
        names = [f"c{i}" for i in range(arity)]
        if key not in self.counts.rows:
            self._sql.execute(f"CREATE TABLE {_table(key)} ({', '.join(f'{c} UINTEGER' for c in names)})")
            self.counts.rows[key] = 0
        before, known = self.counts.rows[key], ""
        if before:
            same = " AND ".join(f"k.{c} = n.{c}" for c in names)
            known = f" WHERE NOT EXISTS (SELECT 1 FROM {_table(key)} k WHERE {same})"
        self._sql.execute(f"INSERT INTO {_table(key)} SELECT DISTINCT {', '.join(names)} FROM ({candidates}) n{known}")
        self._recount(key, before)

    def _recount(self, key: Key, before: int) -> None:
        self.counts.rows[key] = self._sql.execute(f"SELECT count(*) FROM {_table(key)}").fetchall()[0][0]
        if key == self.counts.type_id and self.counts.classes and self.counts.rows[key] > before:
            named = ", ".join(map(str, self.counts.classes))
            new = f"SELECT c1, count(*) FROM {_table(key)} WHERE rowid >= {before} AND c1 IN ({named}) GROUP BY c1"
            for target, count in self._sql.execute(new).fetchall():
                self.counts.classes[target] += count

    def _rows(self, names: Sequence[Variable], atoms: Sequence[Pattern]) -> list[tuple[int, ...]]:
        found = _select(names, [(atom, "") for atom in atoms], ())
        rows: list[tuple[int, ...]] = self._sql.execute(f"SELECT DISTINCT * FROM ({found})").fetchall()
        return rows


def _variants(instance: Instance, now: Sequence[int]) -> Iterator[str]:
    """A SELECT for each body atom whose table has grown; none where an atom after it had nothing before."""
    seen = instance.seen
    for number in range(len(now)):
        if seen[number] == now[number] or 0 in seen[number + 1 :]:
            continue
        ranges = [""] * len(now)
        if seen[number]:
            ranges[number] = f"rowid >= {seen[number]}"
        for later in range(number + 1, len(now)):
            if seen[later] < now[later]:
                ranges[later] = f"rowid < {seen[later]}"
        rule = instance.rule
        yield _select(rule.head.args, list(zip(rule.body, ranges, strict=True)), rule.unequal)


def _select(head: Sequence[Value], body: Sequence[tuple[Pattern, str]], unequal: Sequence[tuple[Value, Value]]) -> str:
    """A query over tables; each atom comes with the range of rows to read, empty for all."""
    tables = []
    for atom, rows in body:
        assert not isinstance(atom.relation, Variable)
        name = _table(atom.relation)
        tables.append((f"(SELECT * FROM {name} WHERE {rows})" if rows else name, atom.args))
    return select(head, tables, unequal, "UINTEGER")


def _table(key: Key) -> str:
    return f"t{key}" if isinstance(key, int) else f'"r:{key}"'
