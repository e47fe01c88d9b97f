"""RDF terms as N-Triples text, and the dictionary that numbers them.

A term is a `str` in the spelling pyoxigraph prints. Ids are dense, in order of first sight, below 2³², so that a pair of
ids packs into one `uint64`. Encoding keeps the exact lexical form; equal values in different spellings stay different terms.
Trap: language tags are lower case, as RDF 1.1 allows and as rdflib and pyoxigraph do.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyoxigraph as ox

from evergraph.errors import UserError

Ids = npt.NDArray[np.uint64]
MOST_TERMS = 1 << 32
TAIL_FRACTION = 8
"""New terms are appended to the large array when they pass an eighth of it: taking from many chunks copies them all."""
_NO_TERMS = pa.nulls(0, pa.large_string())
_growing, adding = threading.Lock(), threading.RLock()
SCOPED = r"^_:(u*f[0-9]+_)"
"""Labels that look like those of blank nodes from files; given from elsewhere they get one more u."""
_PLAIN_IRI = re.compile(r"<[a-z]+:(//[A-Za-z0-9.\-]+/)?[A-Za-z0-9.\-_/#]*>$", re.ASCII)


class Dictionary:
    """Terms to ids and back.

    >>> d = Dictionary()
    >>> d.encode(["<http://a>", "<http://b>", "<http://a>"]).tolist()
    [0, 1, 0]
    >>> d.term(1), len(d)
    ('<http://b>', 2)
    """

    def __init__(self, stored: pa.ChunkedArray | None = None, scopes: int = 0) -> None:
        """`stored` are terms that have their ids already, `scopes` the number of files that blank nodes came from."""
        base = pa.concat_arrays(stored.chunks) if stored is not None and len(stored) else _NO_TERMS
        self._arrow = (base, _NO_TERMS)
        """The terms in Arrow's form, as far as they have been asked for in it: a large array and a small one."""
        self._stored = len(base)
        self._index: dict[str, int] | None = None if self._stored else {}
        self._new: list[str] = []
        """The terms after the stored ones."""
        self.scopes = scopes

    def __len__(self) -> int:
        return self._stored + len(self._new)

    def next_scope(self) -> int:
        """A number for the blank nodes of one more file."""
        self.scopes += 1
        return self.scopes

    def encode(self, terms: Sequence[str]) -> Ids:
        """Ids for terms, new ones for terms not seen before. Cost: one dictionary look-up each."""
        index = self._known()
        found = list(map(index.get, terms))
        if None in found:
            with adding:
                new = dict.fromkeys(t for t, i in zip(terms, found, strict=True) if i is None and t not in index)
                if (first := len(self)) + len(new) >= MOST_TERMS:
                    raise UserError("EG106", "more than 2³² distinct terms", "split the data over several graphs")
                self._new.extend(new)  # before anyone finds their ids
                index.update(zip(new, count(first)))
            found = list(map(index.get, terms))
        return np.array(found, np.uint64)

    def encode_column(self, column: pa.Array) -> Ids:
        """Ids for a column of terms; each distinct term is looked up once."""
        encoded = column.dictionary_encode()
        ids: Ids = self.encode(encoded.dictionary.to_pylist())[encoded.indices.to_numpy()]
        return ids

    def find(self, term: str) -> int | None:
        """The id of a term, None if it was never seen."""
        return self._known().get(term)

    def _known(self) -> dict[str, int]:
        """Ids by term. Cost: linear in the stored terms, the first time something is looked up by its text."""
        if self._index is None:
            with _growing:
                if self._index is None:
                    self._index = dict(zip(self._arrow[0].slice(0, self._stored).to_pylist(), count()))
        return self._index

    def term(self, number: int) -> str:
        return self._new[number - self._stored] if number >= self._stored else str(self._arrow[0][number].as_py())

    def since(self, number: int) -> pa.Array:
        """The terms from this id on."""
        base, tail = self._grow()
        base, tail = base.slice(number), tail.slice(max(0, number - len(base)))
        return pa.concat_arrays([base, tail]) if len(base) and len(tail) else base if len(base) else tail

    def decode(self, ids: Ids) -> pa.Array:
        """A column of terms for a column of ids. Cost: linear in the column, and once in the terms that are new."""
        base, tail = self._grow()
        late = ids >= len(base)
        if not late.any():
            return base.take(pa.array(ids.astype(np.int64)))
        early = ~late
        parts = [base.take(pa.array(ids[early].astype(np.int64))), tail.take(pa.array(ids[late] - np.uint64(len(base))))]
        place = np.empty(len(ids), np.int64)
        place[early], place[late] = np.arange(len(parts[0])), np.arange(len(parts[0]), len(ids))
        return pa.concat_arrays(parts).take(pa.array(place))

    def _grow(self) -> tuple[pa.Array, pa.Array]:
        """Bring new terms into Arrow's form; the large array is copied when the small one is no longer small.

        Readers do so in any thread while a writer brings terms.
        """
        if sum(map(len, self._arrow)) < len(self):
            with _growing:
                base, tail = self._arrow
                late = self._new[len(base) + len(tail) - self._stored :]
                tail = pa.concat_arrays([tail, pa.array(late, pa.large_string())])
                if len(tail) * TAIL_FRACTION > len(base):
                    base, tail = pa.concat_arrays([base, tail]), _NO_TERMS
                self._arrow = (base, tail)
        return self._arrow


def parse_term(text: str) -> str:
    """One term in N-Triples syntax, in canonical spelling."""
    line = f"<http://s> <http://p> {text} ."
    try:
        parsed = list(ox.parse(line, format=ox.RdfFormat.N_TRIPLES))
    except SyntaxError as error:
        raise UserError("EG103", f"not a term: {text}", 'write <iri>, _:blank or "literal"') from error
    if len(parsed) != 1:
        raise UserError("EG103", f"not a term: {text}", 'write <iri>, _:blank or "literal"')
    return str(parsed[0].object)


def from_object(value: Any, own: bool = False) -> str:
    """The text of an rdflib or pyoxigraph term, or of a string in N-Triples syntax.

    A blank node comes from elsewhere and is never one of the graph's, unless it is said to be the graph's `own`.
    """
    text = _text_of(value)
    return text if own else _unscoped(text)


def _text_of(value: Any) -> str:
    if isinstance(value, ox.NamedNode | ox.BlankNode | ox.Literal):
        return str(value)
    if hasattr(value, "n3"):
        return _from_rdflib(value)
    if isinstance(value, str):
        return value if _PLAIN_IRI.match(value) else parse_term(value)
    raise UserError("EG105", f"not a term: {value!r}", "give rdflib or pyoxigraph terms, or N-Triples strings")


def _from_rdflib(value: Any) -> str:
    import rdflib

    if isinstance(value, rdflib.Literal):
        if value.language:
            return str(ox.Literal(str(value), language=value.language))
        return str(ox.Literal(str(value), datatype=ox.NamedNode(value.datatype) if value.datatype else None))
    if isinstance(value, rdflib.BNode):
        return str(ox.BlankNode(str(value)))
    if not isinstance(value, rdflib.URIRef):
        raise UserError("EG105", f"not a term: {value!r}", "give IRIs, blank nodes and literals")
    return str(ox.NamedNode(str(value)))


def _unscoped(term: str) -> str:
    """A blank node that comes from no file: never the name of one that does."""
    return re.sub(SCOPED, r"_:u\1", term) if term.startswith("_:") else term


def to_rdflib(text: str) -> Any:
    """The rdflib term for a term's text, with its lexical form untouched."""
    import rdflib

    if text.startswith("<"):
        return rdflib.URIRef(text[1:-1])
    if text.startswith("_:"):
        return rdflib.BNode(text[2:])
    literal = next(iter(ox.parse(f"<x:s> <x:p> {text} .", format=ox.RdfFormat.N_TRIPLES))).object
    assert isinstance(literal, ox.Literal)
    if literal.language:
        return rdflib.Literal(literal.value, lang=literal.language)
    plain = literal.datatype.value == "http://www.w3.org/2001/XMLSchema#string"
    return rdflib.Literal(literal.value, datatype=None if plain else literal.datatype.value, normalize=False)


def rdflib_rows(columns: Iterable[pa.Array]) -> Iterator[tuple[Any, ...]]:
    """Rows of rdflib terms, one at a time."""
    for row in zip(*(c.to_pylist() for c in columns), strict=True):
        yield tuple(map(to_rdflib, row))
