"""Everything that reads a graph and changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa

from evergraph.engines.base import Difference, Engine, Readable, RewritingEngine, Which
from evergraph.errors import UserError
from evergraph.inputs import COLUMNS
from evergraph.plan.compile import Plan
from evergraph.plan.model import Key
from evergraph.plan.rulebook import Rulebook
from evergraph.rules.equality import Equality
from evergraph.rules.model import TRIPLE, Atom, Program
from evergraph.rules.printer import print_atom
from evergraph.store import Snapshot, Store
from evergraph.store.layout import DICTIONARY, FACTS
from evergraph.store.view import decoded, frame
from evergraph.terms import Dictionary, Ids, from_object, rdflib_rows
from evergraph.values import Values

if TYPE_CHECKING:
    from evergraph.explain import Proof

BLOCK_ROWS = 1 << 17
RESULTS = ("rdflib", "arrow", "pandas", "spark")


class Reading:
    """What a graph answers. The fields are set by whoever makes it."""

    _book: Rulebook
    _dictionary: Dictionary
    _values: Values
    _engine: Engine
    _plan: Plan
    _arities: dict[str, int]
    _equality: Equality
    """What is made of names that are the same."""
    _builtins: dict[str, Callable[[int], tuple[Ids, ...]]]
    _store: Store | None
    _snapshot: Snapshot | None

    @property
    def _held(self) -> Readable:
        """The facts that readers see."""
        return self._engine

    def __len__(self) -> int:
        """The number of triples, explicit and derived."""
        return self._held.counts(Which.ALL).get(TRIPLE, 0)

    def __contains__(self, triple: Iterable[Any]) -> bool:
        """Whether a triple (rdflib or pyoxigraph terms, or N-Triples strings) holds."""
        held = self._held
        ids = [self._dictionary.find(from_object(term, own=True)) for term in triple]
        if len(ids) != 3:
            raise UserError("EG105", f"a triple has three terms, not {len(ids)}", "give subject, predicate, object")
        return None not in ids and held.contains(TRIPLE, [i for i in ids if i is not None])

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
        yield from self._blocks(self._held.rows(TRIPLE, Which(which)))

    def relation(self, name: str) -> list[tuple[Any, ...]]:
        """The rows of a named relation, as rdflib terms."""
        rows = self._held.rows(name, Which.ALL)
        if rows is None:
            relations = Program(tuple(self._book.samples)).relations
            if name not in relations:
                known = ", ".join(sorted(relations)) or "none"
                raise UserError("EG301", f"no relation is called {name!r}", f"the rules mention: {known}")
            return []
        return list(rdflib_rows([self._dictionary.decode(c) for c in rows])) if rows else [()]

    @property
    def _rewriting(self) -> RewritingEngine | None:
        """The engine, if under it one name stands for all that are the same."""
        return cast(RewritingEngine, self._engine) if getattr(self._engine, "rewrites", False) else None

    def counts(self, which: Which | str = Which.ALL) -> dict[str, int]:
        """Numbers of facts by relation; triples under `[]`."""
        return self._held.counts(Which(which))

    @property
    def rules(self) -> Program:
        """The program in force."""
        return self._book.program

    @property
    def equality(self) -> str:
        """What becomes of names that are the same: `rewrite`, `axioms` or `off`."""
        return str(self._equality)

    def _blocks(self, columns: Sequence[Ids] | None) -> Iterator[tuple[pa.Array, pa.Array, pa.Array]]:
        if columns is None:
            return
        for start in range(0, len(columns[0]), BLOCK_ROWS):
            part = [self._dictionary.decode(np.asarray(c[start : start + BLOCK_ROWS])) for c in columns]
            yield part[0], part[1], part[2]

    def _difference(self, difference: Difference) -> Iterator[tuple[Any, ...]]:
        for block in self._blocks(difference.rows().get(TRIPLE)):
            yield from rdflib_rows(block)

    def _named(self, difference: Difference) -> list[str]:
        return self._atoms({name: columns for name, columns in difference.rows().items() if name != TRIPLE})

    def _atoms(self, facts: Mapping[Key, Sequence[Ids]]) -> list[str]:
        """Facts in text syntax, in order."""
        out = []
        for key, columns in facts.items():
            terms = [self._dictionary.decode(column).to_pylist() for column in columns]
            if isinstance(key, int):
                terms.insert(1, [self._dictionary.term(key)] * len(terms[0]))
            name = TRIPLE if isinstance(key, int) else key
            out += [print_atom(Atom(name, row)) for row in (zip(*terms, strict=True) if terms else [()])]
        return sorted(out)

    def query(
        self,
        text: str,
        *,
        which: Which | str = Which.ALL,
        result: str = "rdflib",
        bindings: Mapping[str, Any] | None = None,
        namespaces: Mapping[str, Any] | None = None,
    ) -> Any:
        """The answers of a SPARQL 1.1 query over all triples or, `which`, the explicit ones.

        `result` says as what: an rdflib `Result` that also has `to_arrow` and `to_pandas`, or a frame: `arrow`, `pandas`,
        `spark`. A Spark frame is made when Spark asks for it, of a basic graph pattern with its projection.
        `bindings` gives variables their values beforehand, `namespaces` are prefixes, as rdflib has them.
        """
        from evergraph.sparql import View, query

        if result not in RESULTS:
            raise UserError("EG302", f"no result is called {result!r}", f"use one of {', '.join(RESULTS)}")
        if result == "spark":
            return self._spark_answers(text, Which(which))
        answers = query(View.of(self, which), text, bindings, namespaces)
        return answers if result == "rdflib" else answers.to_arrow() if result == "arrow" else answers.to_pandas()

    def explain(self, fact: Any, every: bool = False) -> Proof:
        """Why a fact holds: a proof down to explicit facts, each step with the name of its rule; `print` shows it as a tree.

        `fact` is a triple as `update` takes them, an `Atom`, or text such as `path(1, 2)`. With `every`, the proof has
        `alternatives` in place of steps: every rule instance that supports the fact.
        """
        from evergraph.explain import explain

        return explain(self, fact, every)

    def _spark_answers(self, text: str, which: Which) -> Any:
        from evergraph.sparql.spark import to_frame

        session = self._session()
        if self._snapshot is not None:
            triples = frame(self._snapshot, session, FACTS)
            if which != Which.ALL:
                triples = triples.where("explicit" if which == Which.EXPLICIT else "NOT explicit")
            return to_frame(text, triples, frame(self._snapshot, session, DICTIONARY), self._dictionary.find)
        ids = [c.astype(np.int64) for c in self._held.rows(TRIPLE, which) or [np.zeros(0, np.uint64)] * 3]
        terms = self._dictionary.since(0).cast(pa.string())
        triples = session.createDataFrame(pa.table(ids, names=list(COLUMNS)))
        dictionary = session.createDataFrame(pa.table([np.arange(len(terms)), terms], names=["id", "term"]))
        return to_frame(text, triples, dictionary, self._dictionary.find)

    def _session(self) -> Any:
        from evergraph.engines.spark import make_session

        return getattr(self._engine, "spark", None) or make_session()

    # -- as something else -------------------------------------------------------------------------------------------

    def to_arrow(self, which: Which | str = Which.ALL) -> pa.Table:
        """The triples as a table `subject, predicate, object` of N-Triples terms."""
        schema = pa.schema([(name, pa.large_string()) for name in COLUMNS])
        return pa.Table.from_batches((pa.record_batch(list(block), schema=schema) for block in self.blocks(which)), schema)

    def to_pandas(self, which: Which | str = Which.ALL) -> Any:
        """The same as a pandas frame."""
        return self.to_arrow(which).to_pandas()

    def to_spark(self, session: Any = None, which: Which | str = Which.ALL) -> Any:
        """The same as a Spark frame; that of a store reads the store's files and is made when Spark asks for it."""
        session = session or self._session()
        if self._snapshot is not None:
            return decoded(self._snapshot, session, Which(which))
        return session.createDataFrame(self.to_arrow(which).cast(pa.schema([(name, pa.string()) for name in COLUMNS])))

    def to_rdflib(self, which: Which | str = Which.ALL) -> Any:
        """An rdflib `Graph` that reads this graph, as it is whenever it is asked, and inserts into it."""
        from rdflib import Graph

        from evergraph.sparql.store import EvergraphStore

        return Graph(store=EvergraphStore(self, which=which))

    def change_feed(self, starting_version: int = 0, ending_version: int | None = None, relation: str = TRIPLE) -> pa.Table:
        """What versions of the graph's store inserted, deleted and changed, with the columns of Delta's change feed."""
        if self._store is None or self._snapshot is None:
            raise UserError("EG401", "the graph has no store, and so no versions", "open it from one, or make it with store=")
        last = self._snapshot.version if ending_version is None else ending_version
        return self._store.change_feed(starting_version, last, relation)

    def stats(self) -> dict[str, Any]:
        """Facts by predicate, class and relation, explicit and derived; the store's tables, files and bytes."""
        from evergraph.stats import stats

        return stats(self)

    @property
    def version(self) -> int | None:
        """The version of the store that this is; None without a store."""
        return self._snapshot.version if self._snapshot is not None else None
