"""Property paths (SPARQL 1.1 Query, §9 and §18.4).

Sequences, inverses, alternatives and negated sets count every way through the graph, so they become triple patterns and
unions of them (`alternatives`). `*`, `+` and `?` do not count: they are relations, the pairs that a path connects (`reach`),
found breadth first from the nodes at one end for all of them together, each round a join of what the last one found.
Cost: the pairs. Trap: with variables at both ends that is every pair of the graph, and `*` and `?` add every node to itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, islice, product
from typing import Any

import numpy as np
from rdflib.paths import AlternativePath, InvPath, MulPath, NegatedPath, SequencePath
from rdflib.term import URIRef

from evergraph.engines.arrays import LOW, SHIFT, U64
from evergraph.sparql.solutions import ARRAYS, expand
from evergraph.sparql.view import View
from evergraph.terms import Ids

Triple = tuple[Any, Any, Any]
_NOTHING = np.zeros(0, U64)


def is_known(path: Any) -> bool:
    """Whether a path is of the kinds that are handled here."""
    if isinstance(path, NegatedPath):
        return all(isinstance(each, URIRef) for each in path.args)
    if isinstance(path, SequencePath | AlternativePath):
        return all(map(is_known, path.args))
    if isinstance(path, InvPath | MulPath):
        return is_known(path.arg if isinstance(path, InvPath) else path.path)
    return isinstance(path, URIRef)


def alternatives(triples: list[Triple], fresh: Iterator[str] | None = None) -> list[list[Triple]]:
    """Triples whose predicates may be paths, as a union of joins of triples whose predicates are terms, `MulPath` or
    `NegatedPath`. `fresh` are names for the nodes in the middle of sequences."""
    fresh = fresh or (f"_:path {number}" for number in count())  # no variable has such a name
    ways = [_ways(*triple, fresh) for triple in triples]
    return [[triple for way in choice for triple in way] for choice in product(*ways)]


def _ways(subject: Any, path: Any, value: Any, fresh: Iterator[str]) -> list[list[Triple]]:
    if isinstance(path, InvPath):
        return _ways(value, path.arg, subject, fresh)
    if isinstance(path, AlternativePath):
        return [way for each in path.args for way in _ways(subject, each, value, fresh)]
    if isinstance(path, SequencePath):
        ends = [subject, *islice(fresh, len(path.args) - 1), value]
        return alternatives(list(zip(ends, path.args, ends[1:], strict=False)), fresh)
    return [[(subject, path, value)]]


def others(view: View, path: NegatedPath) -> list[int]:
    """The predicates that a negated set leaves."""
    excluded = {view.dictionary.find(f"<{each}>") for each in path.args}
    return [key for key in view.predicates() if key not in excluded]


def reach(view: View, path: Any, starts: Ids | None, inverse: bool = False) -> Ids:
    """The pairs (from, to) that a path connects, packed and in order: those from these distinct ids, or all."""
    if isinstance(path, URIRef):
        return _unique(list(_pairs(view, view.dictionary.find(f"<{path}>"), starts, inverse)))
    if isinstance(path, InvPath):
        return reach(view, path.arg, starts, not inverse)
    if isinstance(path, AlternativePath):
        return _unique([reach(view, each, starts, inverse) for each in path.args])
    if isinstance(path, NegatedPath):
        return _unique([pairs for key in others(view, path) for pairs in _pairs(view, key, starts, inverse)])
    if isinstance(path, SequencePath):
        steps = path.args[::-1] if inverse else path.args
        found = reach(view, steps[0], starts, inverse)
        for step in steps[1:]:
            found = _composed(found, reach(view, step, _ends(found), inverse))
        return found
    assert isinstance(path, MulPath)
    if starts is None and path.zero:
        starts = _nodes(view)
    known = starts << SHIFT | starts if path.zero and starts is not None else reach(view, path.path, starts, inverse)
    delta = known
    while len(delta):
        found = _composed(delta, reach(view, path.path, _ends(delta), inverse))
        delta = found[~ARRAYS.contains((known,), (found,))]
        known = _unique([known, delta])
        if not path.more:
            break
    return known


def _pairs(view: View, predicate: int | None, starts: Ids | None, inverse: bool) -> Iterator[Ids]:
    relation = None if predicate is None else view.relation(predicate)
    if relation is None:
        return
    order = (1, 0) if inverse else (0, 1)
    for run, minus in relation.parts():
        words = run.in_order(order)
        pairs = words[0]
        if starts is not None:
            _, place = expand(*ARRAYS.find_ranges(words, [starts], len(starts)))
            pairs = pairs[place]
        yield pairs if minus is None else pairs[~ARRAYS.contains(minus.in_order(order), (pairs,))]


def _composed(left: Ids, right: Ids) -> Ids:
    """The pairs (a, c) for which there are (a, b) and (b, c)."""
    number, place = expand(*ARRAYS.find_ranges((right,), [left & LOW], len(left)))
    return _unique([left[number] >> SHIFT << SHIFT | right[place] & LOW])


def _ends(pairs: Ids) -> Ids:
    ends: Ids = ARRAYS.distinct(pairs & LOW)
    return ends


def _nodes(view: View) -> Ids:
    """Every subject and every object."""
    parts = [_NOTHING]
    for key in view.predicates():
        relation = view.relations[key]
        parts += [ARRAYS.distinct(column) for column in relation.columns()]
    nodes: Ids = ARRAYS.distinct(np.concatenate(parts))
    return nodes


def _unique(parts: list[Ids]) -> Ids:
    found: Ids = ARRAYS.unique([(part,) for part in parts])[0] if parts else _NOTHING
    return found
