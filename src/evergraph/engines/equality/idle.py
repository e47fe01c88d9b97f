"""Equalities and rules that do nothing in the graph as it is, and so should cost nothing.

In words: most graphs have a great many facts c ≈ c and no rule that could read one, given the facts there are. Whether such a
fact holds need not be proved, then: it does as long as some fact mentions c. Of rules that are rows of a parameter relation,
those whose predicates have no facts are left out of a search.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evergraph.engines.arrays import U64, Array
from evergraph.engines.equality.merging import marked
from evergraph.engines.equality.names import Names
from evergraph.engines.relation import Relation, Run
from evergraph.plan.model import Key, PlanRule, is_parameter

Relations = Mapping[Key, Relation]


def reads(rules: Sequence[PlanRule], held: Relations, same: int) -> bool:
    """Whether one of these rules could use an equality in the graph as it is. Cost: a search for each rule."""
    for rule in rules:
        if any(not atom.open and not len(held.get(atom.relation, ())) for atom in rule.body):
            continue
        for atom in rule.body:
            if atom.relation == same or (atom.open and _may_be(atom.relation, rule, held, same)):
                return True
    return False


def brings(rules: Sequence[PlanRule], held: Relations, same: int) -> bool:
    """Whether one of these rules could make a name the same as itself that it does not read in a triple."""
    for rule in rules:
        head = rule.head
        if head.relation == same or (head.open and _may_be(head.relation, rule, held, same)):
            read = {term for atom in rule.body if atom.open or isinstance(atom.relation, int) for term in atom.args}
            if not read.issuperset(head.args) and all(atom.open or len(held.get(atom.relation, ())) for atom in rule.body):
                return True
    return False


def _may_be(variable: Key, rule: PlanRule, held: Relations, name: int) -> bool:
    """Whether all relations that bind a variable have this name for it."""
    for atom in rule.body:
        if not atom.open and variable in atom.args:
            place, relation = atom.args.index(variable), held.get(atom.relation)
            if relation is None or not relation.meets(place, relation.base.arrays.xp.asarray([name], dtype=U64)):
                return False
    return True


def lively(rules: Sequence[PlanRule], parameters: Relations, held: Relations, names: Names) -> dict[Key, Relation]:
    """Parameter relations without the rows of rules that read a predicate which has no facts. Cost: linear in their rows."""
    live = names.arrays.xp.asarray(sorted(k for k, r in held.items() if isinstance(k, int) and len(r)), dtype=U64)
    masks: dict[Key, Array] = {}
    for rule in rules:
        for atom in (a for a in rule.body if is_parameter(a.relation) and a.relation in parameters):
            places = {atom.args.index(a.relation) for a in rule.body if a.open and a.relation in atom.args}
            columns = parameters[atom.relation].columns()
            mask = names.arrays.xp.ones(len(parameters[atom.relation]), bool)
            for place in places:
                mask &= marked(names.arrays, live, names.of(columns[place]))
            masks[atom.relation] = masks.get(atom.relation, False) | mask
    return {
        key: Relation(Run(names.arrays, parameters[key].arity, tuple(w[mask] for w in parameters[key].rows())))
        for key, mask in masks.items()
        if not bool(mask.all())
    }


def unmentioned(facts: Relations, names: Array, same: int, first: int) -> Array:
    """The names that no triple mentions but equalities; any other triple mentions `owl:sameAs`, by what it makes equal.

    Cost: a search for each in every relation until it is found; the relation `first` is likely to have it.
    """
    for key, relation in sorted(facts.items(), key=lambda item: item[0] != first):
        if not len(names):
            break
        if isinstance(key, int) and key != same and len(relation):
            names = names[(names != U64(key)) & (names != U64(same))]
            names = names[~relation.has(0, names) & ~relation.has(1, names)]
    return names
