"""Between ids and rdflib terms, for one query.

Contract: equal terms have equal ids, also those that only the query knows (`BIND`, `VALUES`, aggregates): they get ids
from the top, below `UNBOUND`, where the dictionary's never reach. Decoding makes each distinct term once a call.
Trap: a blank node keeps its label both ways, so that one taken from an answer is the same node in the next query;
`terms.from_object` would take it for one from outside.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rdflib.term import BNode, Literal, URIRef

from evergraph.sparql.solutions import UNBOUND, ranked
from evergraph.terms import Dictionary, Ids, from_object, to_rdflib
from evergraph.values import Mask

_TOP = int(UNBOUND)
_iri = partial(str.__new__, URIRef)
"""A `URIRef` is a string and nothing more; its constructor looks for characters that no IRI of a graph has."""


class Lexicon:
    def __init__(self, dictionary: Dictionary) -> None:
        self.dictionary = dictionary
        self._own: list[Any] = []
        """Terms that the dictionary lacks; the first has the highest id."""
        self._ids: dict[str, int] = {}

    def find(self, term: Any) -> int:
        """The id of an rdflib term."""
        text = text_of(term)
        known = self._ids.get(text)  # first, as the dictionary may learn the term while the query runs
        if known is None and (known := self.dictionary.find(text)) is None:
            self._own.append(term)
            known = self._ids[text] = _TOP - len(self._own)
        return known

    def column(self, terms: Iterable[Any]) -> Ids:
        """Ids for terms, `UNBOUND` for None."""
        return np.array([_TOP if term is None else self.find(term) for term in terms], np.uint64)

    def stored(self, ids: Ids) -> Mask:
        """Which ids are the dictionary's."""
        return ids < np.uint64(_TOP - len(self._own))

    def terms(self, ids: Ids) -> list[Any]:
        """rdflib terms, None for `UNBOUND`. Cost: linear, and a term made for each distinct id."""
        distinct, place = ranked(ids)
        stored = self.stored(distinct)
        with _without_collection():
            made = rdflib_terms(self.dictionary.decode(distinct[stored]))
            made += [None if i == _TOP else self._own[_TOP - i - 1] for i in distinct[~stored].tolist()]
            objects = np.empty(len(made), object)
            objects[:] = made
            found: list[Any] = objects[place].tolist()
        return found

    def starting(self, ids: Ids, character: str) -> Mask:
        """Which terms start with `<`, `_` or `"`: IRIs, blank nodes or literals."""
        distinct, place = ranked(ids)
        found: Mask = pc.starts_with(self.texts(distinct), character).fill_null(False).to_numpy(zero_copy_only=False)[place]
        return found

    def texts(self, ids: Ids) -> pa.Array:
        """N-Triples terms, null for `UNBOUND`."""
        stored = self.stored(ids)
        if stored.all():
            return self.dictionary.decode(ids)
        own = pa.array([*map(text_of, self._own), None], pa.large_string())
        place = np.minimum(np.uint64(_TOP - 1) - ids[~stored], np.uint64(len(self._own)))  # of UNBOUND, the last
        both = pa.concat_arrays([self.dictionary.decode(ids[stored]), own.take(pa.array(place.astype(np.int64)))])
        order = np.empty(len(ids), np.int64)
        order[np.concatenate([np.flatnonzero(stored), np.flatnonzero(~stored)])] = np.arange(len(ids))
        return both.take(pa.array(order))


def text_of(term: Any) -> str:
    """The N-Triples text of an rdflib term, as the dictionary spells it."""
    if isinstance(term, URIRef):
        return f"<{term}>"
    if isinstance(term, BNode):
        return f"_:{term}"
    try:
        return from_object(term)
    except ValueError:  # a datatype that is no IRI: only the query knows such a term
        return str(term.n3())


def rdflib_terms(texts: pa.Array) -> list[Any]:
    """rdflib terms for a column of N-Triples terms."""
    if pc.all(pc.starts_with(texts, "<")).as_py():
        return list(map(_iri, pc.utf8_slice_codeunits(texts, 1, -1).to_numpy(zero_copy_only=False).tolist()))
    return list(map(_term, texts.to_pylist()))


def _term(text: str) -> Any:
    if text[0] == "<":
        return _iri(text[1:-1])
    if text[-1] == '"' and "\\" not in text:
        return Literal(text[1:-1], normalize=False)
    return to_rdflib(text)


@contextmanager
def _without_collection() -> Iterator[None]:
    """No garbage collection while many terms are made, none of which can be garbage: it would take most of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
