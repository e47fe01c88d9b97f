"""A SPARQL query over a view: on columns as far as possible, by rdflib's evaluator for the rest.

Contract: a query that `support.unsupported` has nothing against never passes through rdflib's evaluator. For any other,
rdflib walks the algebra, and `evaluate_part`, which it finds among its custom evaluators, takes the parts that run on
columns. A view is a snapshot, so answers that are read late are still those of the moment of the query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice, repeat
from typing import Any

from rdflib.graph import Graph
from rdflib.plugins.sparql import CUSTOM_EVALS
from rdflib.plugins.sparql.evaluate import evalDescribeQuery, evalPart
from rdflib.plugins.sparql.parserutils import CompValue
from rdflib.plugins.sparql.sparql import FrozenBindings, Query, QueryContext
from rdflib.term import BNode, Identifier, URIRef, Variable

from evergraph.errors import UserError
from evergraph.sparql.algebra import Algebra
from evergraph.sparql.answers import Answers
from evergraph.sparql.lexicon import Lexicon
from evergraph.sparql.prepare import prepare
from evergraph.sparql.solutions import Solutions, distinct
from evergraph.sparql.store import ViewStore
from evergraph.sparql.support import ELSEWHERE, unsupported
from evergraph.sparql.tree import nodes
from evergraph.sparql.view import View


def query(
    view: View,
    text: str | Query,
    bindings: Mapping[str, Any] | None = None,
    namespaces: Mapping[str, Any] | None = None,
    base: str | None = None,
) -> Answers:
    """The answers of a query. `bindings` gives variables their values beforehand, as rdflib's `initBindings`."""
    parsed = prepare(text, namespaces, base) if isinstance(text, str) else text
    algebra, lexicon = parsed.algebra, Lexicon(view.dictionary)
    _refuse(algebra)
    given: dict[Any, Any] = {Variable(str(name).lstrip("?$")): value for name, value in (bindings or {}).items()}
    context = QueryContext(initBindings=given)
    context.prologue = parsed.prologue
    kind = algebra.name.removesuffix("Query").upper()
    if kind == "DESCRIBE":
        context.graph = Graph(ViewStore(view))
        return Answers(kind, graph=_by_rdflib(lambda: evalDescribeQuery(context, algebra))["graph"])
    if unsupported(algebra.p) is None:
        rows = Algebra(view, lexicon, context, given).solve(algebra.p, limit=1 if kind == "ASK" else None)
    else:
        context.graph = Graph(ViewStore(view))
        rows = _by_rdflib(lambda: _columns(evalPart(context, algebra.p), lexicon, 1 if kind == "ASK" else None))
    if kind == "ASK":
        return Answers(kind, ask=rows.count > 0)
    if kind == "CONSTRUCT":
        return Answers(kind, graph=_construct(algebra, rows, lexicon))
    return Answers(kind, algebra.PV, rows, lexicon)


def evaluate_part(context: QueryContext, part: CompValue) -> Iterator[FrozenBindings]:
    """A part of a query that rdflib is evaluating, on columns; `NotImplementedError` hands it back.

    rdflib evaluates the right side of some joins once for each row of the left, whose values are then in the context. They
    may be put into a basic graph pattern, but not into larger parts, where it would matter in which scope they are.
    """
    store = getattr(context.graph, "store", None)
    if not isinstance(store, ViewStore) or not hasattr(Algebra, f"_{part.name}"):
        raise NotImplementedError
    bound = dict(context.bindings.items())
    if (part.name != "BGP" and len(bound) > len(context.initBindings or ())) or unsupported(part) is not None:
        raise NotImplementedError
    view = store.view
    lexicon = Lexicon(view.dictionary)
    rows = Algebra(view, lexicon, context, bound).solve(part)
    return _solutions(context, rows, lexicon, bound)


CUSTOM_EVALS["evergraph"] = evaluate_part


def _solutions(context: QueryContext, rows: Solutions, lexicon: Lexicon, bound: Mapping[Any, Any]) -> Iterator[FrozenBindings]:
    names = {BNode(name[2:]) if name.startswith("_:") else Variable(name): name for name in rows.columns}
    for block in rows.blocks():
        columns = [lexicon.terms(block.columns[name]) for name in names.values()]
        for row in zip(*columns, strict=True) if names else repeat((), block.count):
            found = {name: term for name, term in zip(names, row, strict=True) if term is not None}
            yield FrozenBindings(context, {**bound, **found})


def _columns(found: Iterable[Mapping[Any, Any]], lexicon: Lexicon, limit: int | None) -> Solutions:
    """Solutions of rdflib's as columns."""
    rows = list(islice(found, limit))
    names = dict.fromkeys(name for row in rows for name in row if isinstance(name, Variable))
    return Solutions(len(rows), {str(name): lexicon.column(row.get(name) for row in rows) for name in names})


def _construct(algebra: CompValue, rows: Solutions, lexicon: Lexicon) -> Graph:
    """The triples that a template makes of solutions, without those that lack a term or have one where it cannot be."""
    template = algebra.template
    if not template:
        part = algebra.p
        while part.name != "BGP":
            part = part.p
        template = part.triples
    terms = dict.fromkeys(term for triple in template for term in triple)
    if not any(isinstance(term, BNode) for term in terms):
        rows = distinct(rows, [str(term) for term in terms if isinstance(term, Variable)])
    columns = {term: _instances(term, rows, lexicon) for term in terms}
    graph = Graph()
    for triple in template:
        for s, p, o in zip(*(columns[term] for term in triple), strict=True):
            if isinstance(s, URIRef | BNode) and isinstance(p, URIRef) and o is not None:
                graph.add((s, p, o))
    return graph


def _instances(term: Identifier, rows: Solutions, lexicon: Lexicon) -> Iterable[Any]:
    """What a term of a template stands for in each solution."""
    if isinstance(term, Variable):
        return lexicon.terms(rows.column(str(term)))
    return [BNode() for _ in range(rows.count)] if isinstance(term, BNode) else [term] * rows.count


def _refuse(algebra: CompValue) -> None:
    """Say no to what one graph without network cannot answer, before anything is evaluated."""
    found = ["FROM"] if algebra.datasetClause else [ELSEWHERE[node.name] for node in nodes(algebra) if node.name in ELSEWHERE]
    if found:
        raise UserError("EG503", f"{found[0]} is not supported", "the graph is one: it has no named graphs and asks no other")


def _by_rdflib(evaluate: Callable[[], Any]) -> Any:
    try:
        return evaluate()
    except UserError:
        raise
    except Exception as error:  # rdflib raises bare exceptions
        raise UserError("EG503", f"rdflib cannot evaluate this query: {error}", "write it another way") from error
