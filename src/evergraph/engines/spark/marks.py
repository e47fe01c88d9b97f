"""Marks of a shard's facts between supersteps, as runs that `files` can keep.

The marks of a relation's base are an array beside it, 8 bytes a fact; those that came later stand with their rows. So marks
that a superstep does not touch are not written again.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from evergraph.engines.arrays import U64, Arrays
from evergraph.engines.marks import Marks
from evergraph.engines.relation import Relation, Run
from evergraph.engines.spark.files import Roles
from evergraph.engines.spark.job import ALL, LATER, MARKS
from evergraph.plan.model import Key


def read(arrays: Arrays, roles: Roles) -> dict[Key, Marks]:
    out = {}
    for key in roles[MARKS].keys() | roles[LATER].keys():
        relation, nothing = roles[ALL][key], arrays.empty(roles[ALL][key].arity)
        beside, later = roles[MARKS].get(key), roles[LATER].get(key)
        words, values = (relation.base.words, beside.base.words[0]) if beside is not None else (nothing, np.empty(0, U64))
        *more, more_values = later.base.words if later is not None else (*nothing, np.empty(0, U64))
        out[key] = Marks(words, values, tuple(more), more_values)
    return out


def write(arrays: Arrays, marks: Mapping[Key, Marks], relations: Mapping[Key, Relation], before: Roles) -> Roles:
    """Cost: that of merging the relations whose base is a new one."""
    out: dict[str, dict[Key, Relation]] = {MARKS: {}, LATER: {}}
    for key in marks.keys() & relations.keys():
        one = marks[key].settle(arrays, relations[key])
        for role, words in ((MARKS, (one.values,)), (LATER, (*one.more, one.more_values))):
            if len(words[-1]):
                known = before[role].get(key)
                if known is None or known.base.words[-1] is not words[-1]:
                    known = Relation(Run(arrays, 2 * len(words), words))
                out[role][key] = known
    return out
