"""Disjoint copies of a graph, as ids: what rules are about stays, everything else is once more in each copy.

In words: classes, properties and what axioms mention are the same names in every copy; an individual or a literal of copy k has
the id it had, plus k times the number of terms. No term is written out: the copies are of columns, and of rows of values.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evergraph import KnowledgeGraph
from evergraph.engines.base import Facts, Which
from evergraph.plan.compile import Plan
from evergraph.rules.model import TRIPLE
from evergraph.terms import Ids
from evergraph.values import Values

VOCABULARY = "<http://www.w3.org/"
"""Where the predicates of axioms come from; `rdf:type` does too, and says nothing of its subject."""


@dataclass(frozen=True, slots=True)
class Copies:
    """Explicit facts and what rules compare, for an engine that is given no terms."""

    facts: Facts
    plan: Plan
    terms: int

    @property
    def triples(self) -> int:
        return len(self.facts[TRIPLE][0])


def copies_of(kg: KnowledgeGraph, count: int) -> Copies:
    """So many copies of a graph's explicit facts, and its rules for them. Cost: linear in them."""
    facts: dict[str, Any] = {TRIPLE: kg._held.rows(TRIPLE, Which.EXPLICIT)}
    facts |= {name: list(rows(0)) for name, rows in kg._builtins.items()}
    kept = _kept(kg, facts)
    terms = len(kept)
    copied = {name: [_copied(column, kept, count) for column in columns] for name, columns in facts.items()}
    rows, _ = kg._values.rows_since(0)
    many = np.tile(rows, count)
    many["first"] = _copied(rows["first"], kept, count)
    return Copies(copied, replace(kg._plan, values=Values.over(kg._dictionary, many)), terms * count)


def _kept(kg: KnowledgeGraph, facts: Facts) -> np.ndarray[Any, Any]:
    """For each id, whether it is the same in every copy."""
    subject, predicate, value = facts[TRIPLE]
    type_id = kg._plan.type_id
    axioms = [p for p in np.unique(predicate).tolist() if p != type_id and kg._dictionary.term(p).startswith(VOCABULARY)]
    about = np.isin(predicate, axioms)
    kept = np.zeros(len(kg._dictionary), bool)
    for ids in (predicate, value[predicate == type_id], subject[about], value[about]):
        kept[ids] = True
    for columns in (facts[name] for name in facts if name != TRIPLE):
        kept[columns[-1]] = True
    kept[[number for number in range(min(64, len(kept))) if kg._dictionary.term(number).startswith(VOCABULARY)]] = True
    return kept


def _copied(column: Ids, kept: np.ndarray[Any, Any], count: int) -> Ids:
    moved = np.where(kept[column], np.uint64(0), np.uint64(len(kept)))
    return np.concatenate([column + moved * np.uint64(number) for number in range(count)])
