"""The graph as a store of rdflib, for `rdflib.Graph(store="evergraph")` and all that works on an rdflib graph.

Contract: reading sees the materialisation, or the explicit triples alone. What is added waits until somebody reads, commits
or closes, and is then inserted as one update, with its consequences. Only explicit triples can be removed. `Graph.query` is
answered by `evergraph.sparql.query`.
Trap: `len` and iteration count derived triples, and rules derive some whose subject is a literal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rdflib.plugins.sparql.sparql import Query
from rdflib.plugins.stores.memory import SimpleMemory
from rdflib.store import VALID_STORE, Store
from rdflib.term import BNode, Literal, URIRef

from evergraph.engines.base import Which
from evergraph.errors import UserError
from evergraph.rules.model import TRIPLE, Atom
from evergraph.sparql.lexicon import Lexicon, text_of
from evergraph.sparql.patterns import Pattern, scan
from evergraph.sparql.view import View
from evergraph.terms import from_object

if TYPE_CHECKING:
    from evergraph.reading import Reading

NAMES = ("subject", "predicate", "object")


class ViewStore(Store):
    """A snapshot, for reading."""

    def __init__(self, view: View | None = None) -> None:
        super().__init__()
        self._view = view
        self._prefixes = SimpleMemory()

    @property
    def view(self) -> View:
        assert self._view is not None
        return self._view

    def triples(self, triple_pattern: Any, context: Any = None) -> Iterator[tuple[Any, Iterator[Any]]]:
        """The triples that have the given terms, None standing for any. Cost: a search, and what is read of the answer."""
        view = self.view
        lexicon = Lexicon(view.dictionary)
        terms = dict(zip(NAMES, triple_pattern, strict=True))
        pattern = Pattern(*(name if term is None else lexicon.find(term) for name, term in terms.items()))
        for block in scan(view, pattern):
            columns = [
                lexicon.terms(block.columns[name]) if term is None else [term] * block.count for name, term in terms.items()
            ]
            for triple in zip(*columns, strict=True):
                yield triple, iter((context,))

    def __len__(self, context: Any = None) -> int:
        return len(self.view)

    def query(
        self,
        query: Query | str,
        initNs: Mapping[str, Any],
        initBindings: Mapping[str, Any],
        queryGraph: str,
        **kwargs: Any,
    ) -> Any:
        from evergraph.sparql.query import query as answer

        return answer(self.view, query, initBindings, initNs, kwargs.get("base"))

    def bind(self, prefix: str, namespace: URIRef, override: bool = True) -> None:
        self._prefixes.bind(prefix, namespace, override)

    def namespace(self, prefix: str) -> URIRef | None:
        return self._prefixes.namespace(prefix)

    def prefix(self, namespace: URIRef) -> str | None:
        return self._prefixes.prefix(namespace)

    def namespaces(self) -> Iterator[tuple[str, URIRef]]:
        return self._prefixes.namespaces()


class EvergraphStore(ViewStore):
    """A `KnowledgeGraph` to read and to change; without one given or opened, an empty one with the rules of RDFS."""

    def __init__(
        self,
        graph: Reading | None = None,
        which: Which | str = Which.ALL,
        configuration: str | None = None,
        identifier: Any = None,
    ) -> None:
        super().__init__()
        self._graph: Any = graph
        self._which, self.identifier = Which(which), identifier
        self._added: list[Atom] = []
        if configuration:
            self.open(configuration)

    @property
    def graph(self) -> Any:
        """The graph, with everything that was added."""
        if self._graph is None:
            from evergraph.graph import KnowledgeGraph

            self._graph = KnowledgeGraph("rdfs")
        if self._added:
            added, self._added = self._added, []
            self._graph.update(insert=added)
        return self._graph

    @property
    def view(self) -> View:
        return View.of(self.graph, self._which)

    def open(self, configuration: Any, create: bool = False) -> int:
        """Open the graph that is stored in a folder; with `create`, make a new one there if there is none."""
        from evergraph.graph import KnowledgeGraph

        new = create and not Path(configuration).exists()
        self._graph = KnowledgeGraph("rdfs", store=configuration) if new else KnowledgeGraph.open(configuration)
        return VALID_STORE

    def close(self, commit_pending_transaction: bool = False) -> None:
        self.commit()
        if hasattr(self._graph, "close"):
            self._graph.close()

    def commit(self) -> None:
        if self._added:
            _ = self.graph

    def rollback(self) -> None:
        """Forget what was added and has not been read since."""
        self._added = []

    def __len__(self, context: Any = None) -> int:
        return int(self.graph.counts(self._which).get(TRIPLE, 0))

    def add(self, triple: Any, context: Any, quoted: bool = False) -> None:
        super().add(triple, context, quoted)
        if isinstance(triple[0], Literal) or not isinstance(triple[1], URIRef):
            raise UserError("EG105", f"not a triple: {triple}", "a subject is no literal, a predicate an IRI")
        self._added.append(self._atom(triple))

    def remove(self, triple: Any, context: Any = None) -> None:
        """Remove the explicit triples that have the given terms, None standing for any."""
        graph = self.graph
        explicit = ViewStore(View.of(graph, Which.EXPLICIT))
        graph.update(delete=[self._atom(found) for found, _ in explicit.triples(triple)])
        super().remove(triple, context)

    def _atom(self, triple: Any) -> Atom:
        """A triple in N-Triples terms. A blank node that the graph has is that node, any other one from outside."""
        return Atom(TRIPLE, tuple(map(self._text, triple)))

    def _text(self, term: Any) -> str:
        if isinstance(term, BNode) and self._graph is not None and self._graph._dictionary.find(text_of(term)) is not None:
            return text_of(term)
        return from_object(term)
