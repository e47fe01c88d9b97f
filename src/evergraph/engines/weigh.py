"""How much hangs on rules: a bound on their instances, from counts alone.

    instances of a rule  ≤  the facts that match its rarest body atom

In words: a rule is weighed by the rows that put it in force. For each row, an atom of the body has as many matches as its
relation has facts or, where its second argument is known, as many as have that argument: the instances of a class.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce

from evergraph.engines.arrays import U64, Array, Arrays
from evergraph.engines.base import Facts
from evergraph.engines.relation import Relation
from evergraph.plan.model import Key, PlanAtom, PlanRule, Value, is_variable


def weigh(arrays: Arrays, rules: Iterable[PlanRule], rows: Facts, held: Mapping[Key, Relation]) -> int:
    """The weight of the rules that these rows of parameter relations put in force. Cost: a search for each row and atom."""
    total = 0
    for rule in rules:
        for parameters in (atom for atom in rule.body if atom.relation in rows):
            columns = rows[str(parameters.relation)]
            known: dict[Value, Array] = {a: arrays.xp.asarray(c) for a, c in zip(parameters.args, columns, strict=True)}
            count = len(columns[0]) if columns else 1
            others = [atom for atom in rule.body if atom is not parameters]
            least = [_matches(arrays, atom, known, count, held) for atom in others]
            if least:
                total += int(reduce(arrays.xp.minimum, least).sum())
    return total


def _matches(arrays: Arrays, atom: PlanAtom, known: Mapping[Value, Array], count: int, held: Mapping[Key, Relation]) -> Array:
    """For each row, the facts that match an atom, or more."""
    xp = arrays.xp
    if atom.open:
        keys = known.get(atom.relation)
        if keys is None:
            return xp.full(count, sum(r.count for k, r in held.items() if isinstance(k, int)))
        return xp.asarray([held[key].count if key in held else 0 for key in keys.tolist()])
    relation = held.get(atom.relation)
    if relation is None:
        return xp.zeros(count, int)
    last = atom.args[1] if len(atom.args) == 2 else "?"
    values = known.get(last) if is_variable(last) else xp.full(count, U64(last))
    if values is None:
        return xp.full(count, relation.count)
    found = xp.zeros(count, int)
    for run, _ in relation.parts():
        low, high = arrays.find_ranges(run.in_order((1, 0)), [values], count)
        found = found + (high - low)
    return found
