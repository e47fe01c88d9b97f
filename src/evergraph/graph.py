"""`KnowledgeGraph`: facts, rules, and every consequence, kept true."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from evergraph import inputs
from evergraph.engines.base import Difference, Engine, Which
from evergraph.engines.memory import MemoryEngine
from evergraph.engines.reference import ReferenceEngine
from evergraph.errors import UserError
from evergraph.formats import Progress, Rejects
from evergraph.maintain.outcome import Phase
from evergraph.maintain.seminaive import insert as insert_seminaive
from evergraph.plan.compile import Plan, compile_program
from evergraph.report import Report, make_report
from evergraph.rules.model import BUILTIN_RELATIONS, TRIPLE, Program
from evergraph.terms import Dictionary, Ids, from_object, rdflib_rows
from evergraph.values import Values

ENGINES = ("memory", "spark", "reference")
BLOCK_ROWS = 1 << 17


class KnowledgeGraph:
    """A materialised graph: explicit facts, and all that follows from them by the rules.

    >>> kg = KnowledgeGraph("rhodf")
    >>> report = kg.update(insert='''
    ...     <http://ex/Student> <http://www.w3.org/2000/01/rdf-schema#subClassOf> <http://ex/Person> .
    ...     <http://ex/ann> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://ex/Student> .''')
    >>> len(kg), report.inserted.derived
    (3, {'[]': 1})
    """

    def __init__(self, rules: str | Path | Program = "rdfs", *, engine: Any = "memory") -> None:
        """`rules` is a `Program`, the name of a rule set or a file; `engine` a name of `ENGINES` or a SparkSession."""
        self._rules = rules if isinstance(rules, Program) else Program.load(rules)
        self._dictionary = Dictionary()
        self._values = Values(self._dictionary)
        self._plan = compile_program(self._rules, self._dictionary, self._values)
        self._engine = _make_engine(engine, self._plan)
        self._arities = {**self._rules.relations, TRIPLE: 3}
        self._builtins = self._mentioned_builtins()
        self._literals_seen = 0
        if self._rules.facts or any(not rule.atoms for rule in self._rules.rules):
            self.update(insert=Program(facts=self._rules.facts))

    # -- changing ----------------------------------------------------------------------------------------------------

    def update(self, *, insert: Any = (), rejects: Rejects | None = None, progress: Progress | None = None) -> Report:
        """Insert facts and keep the materialisation true: one atomic change.

        `insert` takes a path or list of paths, N-Triples or Datalog text, an iterable of triples (rdflib or pyoxigraph
        terms, or N-Triples strings), an rdflib Graph, or a pandas, Arrow or Spark frame with columns `subject, predicate,
        object`. An exception leaves the graph as it was. With `rejects`, bad lines of files are kept there and skipped;
        `progress` is told how far the work is.
        Cost: the rule instances that use a new fact.
        """
        start = time.perf_counter()
        facts = inputs.read(insert, self._dictionary, rejects, progress)
        arities = {name: len(columns) for name, columns in facts.items()}
        self._check_arities(arities)
        seen = len(self._dictionary)
        for name, rows in self._builtins.items():
            columns = rows(self._literals_seen)
            if len(columns[0]):
                facts[name] = list(columns)
        read = Phase("read", time.perf_counter() - start, sum(len(c[0]) for c in facts.values() if c))
        self._engine.begin()
        try:
            outcome = insert_seminaive(self._engine, self._plan, facts, progress)
            with outcome.phase("commit"):
                change = self._engine.commit()
        except BaseException:
            self._engine.rollback()
            raise
        self._literals_seen = seen
        self._arities = arities | self._arities
        outcome.phases.insert(0, read)
        return make_report(outcome, self._engine.name, change.inserted, change.deleted, self._difference)

    def _check_arities(self, found: dict[str, int]) -> None:
        for name, arity in found.items():
            expected = self._arities.get(name, arity)
            if expected != arity:
                raise inputs.arity_clash(name, arity, expected)

    def _mentioned_builtins(self) -> dict[str, Callable[[int], tuple[Ids, ...]]]:
        mentioned = {a.relation for rule in self._rules.rules for a in (*rule.atoms, *rule.negations)}
        values = self._values
        rows = {"DATATYPE": values.datatypes, "SAMEVALUE": values.same_values, "SUPPORTED": values.supported}
        return {name: rows[name] for name in BUILTIN_RELATIONS if name in mentioned}

    # -- reading -----------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        """The number of triples, explicit and derived."""
        return self._engine.counts(Which.ALL).get(TRIPLE, 0)

    def __contains__(self, triple: Iterable[Any]) -> bool:
        """Whether a triple (rdflib or pyoxigraph terms, or N-Triples strings) holds."""
        ids = [self._dictionary.find(from_object(term)) for term in triple]
        if len(ids) != 3:
            raise UserError("EG105", f"a triple has three terms, not {len(ids)}", "give subject, predicate, object")
        return None not in ids and self._engine.contains(TRIPLE, [i for i in ids if i is not None])

    @property
    def explicit(self) -> Iterator[tuple[Any, ...]]:
        """The triples that were inserted, as rdflib terms."""
        return self.triples(Which.EXPLICIT)

    @property
    def derived(self) -> Iterator[tuple[Any, ...]]:
        """The triples that follow and were not inserted, as rdflib terms."""
        return self.triples(Which.DERIVED)

    def triples(self, which: Which | str = Which.ALL) -> Iterator[tuple[Any, ...]]:
        """All triples, or the explicit or derived ones, as rdflib terms."""
        for block in self.blocks(which):
            yield from rdflib_rows(block)

    def blocks(self, which: Which | str = Which.ALL) -> Iterator[tuple[pa.Array, pa.Array, pa.Array]]:
        """The same in blocks of three columns of N-Triples terms."""
        yield from self._blocks(self._engine.rows(TRIPLE, Which(which)))

    def relation(self, name: str) -> list[tuple[Any, ...]]:
        """The rows of a named relation, as rdflib terms."""
        rows = self._engine.rows(name, Which.ALL)
        if rows is None:
            if name not in self._rules.relations:
                known = ", ".join(sorted(self._rules.relations)) or "none"
                raise UserError("EG301", f"no relation is called {name!r}", f"the rules mention: {known}")
            return []
        return list(rdflib_rows([self._dictionary.decode(c) for c in rows])) if rows else [()]

    def counts(self, which: Which | str = Which.ALL) -> dict[str, int]:
        """Numbers of facts by relation; triples under `[]`."""
        return self._engine.counts(Which(which))

    @property
    def rules(self) -> Program:
        """The program in force."""
        return self._rules

    def _blocks(self, columns: Sequence[Ids] | None) -> Iterator[tuple[pa.Array, pa.Array, pa.Array]]:
        if columns is None:
            return
        for start in range(0, len(columns[0]), BLOCK_ROWS):
            part = [self._dictionary.decode(np.asarray(c[start : start + BLOCK_ROWS])) for c in columns]
            yield part[0], part[1], part[2]

    def _difference(self, difference: Difference) -> Iterator[tuple[Any, ...]]:
        for block in self._blocks(difference.rows().get(TRIPLE)):
            yield from rdflib_rows(block)


def _make_engine(engine: Any, plan: Plan) -> Engine:
    if engine == "memory":
        return MemoryEngine(plan)
    if engine == "reference":
        return ReferenceEngine(plan)
    if engine == "spark" or hasattr(engine, "sparkContext"):
        from evergraph.engines.spark import SparkEngine, make_session

        return SparkEngine(plan, make_session() if engine == "spark" else engine)
    raise UserError("EG201", f"no engine is called {engine!r}", f"use one of {', '.join(ENGINES)} or a SparkSession")
