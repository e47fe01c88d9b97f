"""The order of terms: unbound, blank nodes, IRIs, literals (SPARQL 1.1 Query, §15.1); for `ORDER BY`, `MIN` and `MAX`.

Among literals numbers come first, by value; then each datatype and language by itself, by value where Python has an order
for it and by text otherwise. The specification leaves that to us. Cost: a sort of the distinct terms.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow.compute as pc
from rdflib.term import BNode, Literal

from evergraph.sparql.lexicon import Lexicon
from evergraph.sparql.solutions import Index, ranked
from evergraph.terms import Ids


def ranks(lexicon: Lexicon, column: Ids) -> Index:
    """Numbers in the order of the terms, equal where the order does not tell them apart."""
    distinct, place = ranked(column)
    texts = lexicon.texts(distinct)
    if pc.all(pc.starts_with(texts, "<"), skip_nulls=False).as_py():
        order = pc.rank(pc.utf8_slice_codeunits(texts, 1, -1), tiebreaker="dense").to_numpy().astype(np.int64)
        return order[place]  # type: ignore[no-any-return]
    keys = list(map(_key, lexicon.terms(distinct)))
    rank = np.zeros(len(keys), np.int64)
    number, last = 0, None
    for at in sorted(range(len(keys)), key=keys.__getitem__):
        number += last is not None and keys[at] != keys[last]
        rank[at], last = number, at
    return rank[place]


def _key(term: Any) -> tuple[Any, ...]:
    if term is None:
        return (0,)
    if not isinstance(term, Literal):
        return (1 if isinstance(term, BNode) else 2, str(term))
    value = None if term.ill_typed else term.value
    kind = f"{term.datatype or ''} {term.language or ''}"
    if isinstance(value, bool | str) or type(value) is date:
        return (4, kind, 0, value)
    if isinstance(value, int | float | Decimal):
        return (3, 1, value) if value == value else (3, 0)  # NaN first
    if isinstance(value, datetime):
        return (4, kind, 0, value if value.tzinfo else value.replace(tzinfo=UTC))
    return (4, kind, 1, str(term))
