"""From a head and a body, as expressions gave them, to a rule that can be read, a fact, or the reason why it is neither.

Trap: a body may be empty (everything there is) or unsafe, and it may fix a variable to two individuals, who then must be the
same. All of that is settled here, so that the translation of expressions need not think of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from evergraph.rules.model import ONTOLOGY, TRIPLE, Atom, Comparison, Operator, Rule, Term, Variable
from evergraph.rules.owl.expressions import Property
from evergraph.rules.owl.vocabulary import BOTTOMS, SAME, TOPS

LETTERS = "xyzuvw"
EVERYONE = "it is about everything there is, which no fact lists"
ANONYMOUS = "a rule cannot speak of an individual without a name"
EMPTY = "a rule cannot say that a property is empty"

Item = Atom | Comparison


@dataclass(frozen=True, slots=True)
class Body:
    """One way to be on the left: atoms, and variables that can only be one term."""

    items: tuple[Item, ...] = ()
    fixed: tuple[tuple[Variable, str], ...] = ()

    def __add__(self, other: Body) -> Body:
        return Body(self.items + other.items, self.fixed + other.fixed)


@cache
def variable(number: int) -> Variable:
    """x, y, z, u, v, w, x1, y1 and so on."""
    turn, place = divmod(number, len(LETTERS))
    return Variable(f"{LETTERS[place]}{turn or ''}")


def _number(v: Variable) -> int:
    return LETTERS.index(v.name[0]) + len(LETTERS) * int(v.name[1:] or 0)


def atom(property_: Property, x: Term, y: Term) -> Atom:
    """The triple in which a property, or the inverse of one, leads from x to y."""
    return Atom(TRIPLE, (y, property_.iri, x) if property_.inverse else (x, property_.iri, y))


def inconsistency(rule: str, x: Term, y: Term) -> Atom:
    """A contradiction as `owl2rl` says it: the W3C name of the rule and two culprits."""
    return Atom("inconsistency", (f'"{rule}"', x, y))


def finish(head: Atom, body: Body, name: str) -> Rule | Atom | str | None:
    """The rule, or the fact if nothing is left to ask; why it cannot be said; None if it says nothing.

    Variables that other bodies of the axiom use leave gaps in their row, which are closed.
    """
    fixed, items = _fix(body)
    said = _replace_atom(head, fixed)
    bound = {v for item in items if isinstance(item, Atom) for v in item.variables}
    asked = {*said.variables, *(v for item in items if isinstance(item, Comparison) for v in item.variables)}
    used, claimed = _predicates(items), _predicates([said])
    if said in items or claimed & TOPS or used & BOTTOMS or any(_never(item) for item in items):
        return None
    if asked - bound or used & TOPS or (items and not used):
        return EVERYONE
    if claimed & BOTTOMS:
        return EMPTY
    if not items:
        return said
    if any(isinstance(t, str) and t.startswith("_:") for item in (said, *items) for t in _terms(item)):
        return ANONYMOUS
    in_order = sorted(bound, key=_number)
    letters: dict[Term, Term] = {v: variable(i) for i, v in enumerate(in_order) if v != variable(i)}
    return Rule(_replace_atom(said, letters), tuple(_replace(item, letters) for item in items), name, ONTOLOGY)


def _fix(body: Body) -> tuple[dict[Term, Term], tuple[Item, ...]]:
    """The terms that variables are fixed to, and the items with these in their place, each once."""
    fixed: dict[Term, Term] = {}
    equal = []
    for x, term in body.fixed:
        if fixed.setdefault(x, term) != term:
            equal.append(Atom(TRIPLE, (fixed[x], SAME, term)))
    items = dict.fromkeys(_replace(item, fixed) for item in (*body.items, *equal))
    return fixed, tuple(item for item in items if not _always(item))


def _always(item: Item) -> bool:
    """Two terms that differ."""
    return _fixed_apart(item) and _terms(item)[0] != _terms(item)[1]


def _never(item: Item) -> bool:
    """A term that differs from itself."""
    return _fixed_apart(item) and _terms(item)[0] == _terms(item)[1]


def _fixed_apart(item: Item) -> bool:
    return isinstance(item, Comparison) and item.operator == Operator.UNEQUAL and not any(item.variables)


def _replace_atom(item: Atom, terms: dict[Term, Term]) -> Atom:
    return Atom(item.relation, tuple(terms.get(t, t) for t in item.terms)) if terms else item


def _replace(item: Item, terms: dict[Term, Term]) -> Item:
    if not terms:
        return item
    if isinstance(item, Atom):
        return _replace_atom(item, terms)
    return Comparison(item.operator, terms.get(item.left, item.left), terms.get(item.right, item.right))


def _terms(item: Item) -> tuple[Term, ...]:
    return item.terms if isinstance(item, Atom) else (item.left, item.right)


def _predicates(items: Iterable[Item]) -> set[Term]:
    return {item.terms[1] for item in items if isinstance(item, Atom)}
