"""What a graph holds, counted: facts by predicate, class and relation; its store's tables, files and bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from evergraph.engines.base import Which
from evergraph.engines.equality.expansion import Expansion
from evergraph.engines.relation import Relation
from evergraph.plan.model import Key
from evergraph.reading import Reading
from evergraph.store.log import LATER, TABLES

Split = dict[str, dict[str, int]]
"""Explicit and derived counts by name, the largest first."""


def stats(kg: Reading) -> dict[str, Any]:
    """Cost: linear in the types; the rest is known. With cliques, linear in the facts that are kept; none is expanded."""
    held = kg._held
    everything, explicit = held.relations(Which.ALL), held.relations(Which.EXPLICIT)
    if isinstance(everything, Expansion):
        sizes = everything.sizes()
    else:
        sizes = {key: len(relation) for key, relation in everything.items()}
    given = {key: len(relation) for key, relation in explicit.items()}
    type_id = kg._dictionary.find("<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>")
    classes = [_by_class(source, type_id) for source in (everything, explicit)]
    return {
        "version": kg.version,
        "explicit": sum(given.values()),
        "derived": sum(sizes.values()) - sum(given.values()),
        "terms": len(kg._dictionary),
        "rules": len(kg._book),
        "equality": {"kept": kg.equality, **kg._rewriting.kept()} if kg._rewriting is not None else None,
        "predicates": _split(kg, {k: n for k, n in sizes.items() if isinstance(k, int)}, given),
        "classes": _split(kg, *classes),
        "relations": _split(kg, {k: n for k, n in sizes.items() if isinstance(k, str)}, given),
        "tables": _tables(kg),
    }


def _by_class(source: Mapping[Key, Relation], type_id: int | None) -> dict[Key, int]:
    if isinstance(source, Expansion):
        return source.tally(type_id, 1) if type_id is not None else {}
    relation = source.get(type_id) if type_id is not None else None
    if relation is None:
        return {}
    found, counts = np.unique(relation.columns()[1], return_counts=True)
    return dict(zip(found.tolist(), counts.tolist(), strict=True))


def _split(kg: Reading, sizes: Mapping[Key, int], explicit: Mapping[Key, int]) -> Split:
    ordered = sorted(sizes, key=lambda key: (-sizes[key], str(key)))
    return {
        kg._dictionary.term(key) if isinstance(key, int) else key: {
            "explicit": explicit.get(key, 0),
            "derived": sizes[key] - explicit.get(key, 0),
        }
        for key in ordered
        if sizes[key]
    }


def _tables(kg: Reading) -> Split:
    if kg._snapshot is None:
        return {}
    out = {}
    for name in TABLES:
        files = kg._snapshot.files(name)
        if files or name not in LATER:
            out[name] = {"files": len(files), "rows": sum(f.rows for f in files), "bytes": sum(f.size for f in files)}
    return out
