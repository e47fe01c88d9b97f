"""The two sides of an axiom: what a class expression is in the body of a rule, and what it is in the head.

`L ⊑ R` is read as *whoever is in L is in R*. On the left an expression tests an individual, so it becomes atoms of a body, a
union several bodies. On the right it claims something of one, so it becomes heads, an intersection several. What can stand on
one side only (∃ on the left, ∀ on the right) falls outside on the other.

Paper: Grosof, Horrocks, Volz, Decker, "Description Logic Programs", WWW 2003, section 4, doi:10.1145/775152.775160; used by
Volz et al. 2003, section 2.2.

Symbols: L, R → `left`, `right`. T_b (the paper's Lb) → `body`. T_h (its Lh) → `head`.

Departures. Contradictions are facts `inconsistency(rule, culprit, culprit)` under the W3C names of OWL 2 RL, where the paper
stops. Equality (functional properties, keys, at most one) is `owl:sameAs` in a head. What cannot be said is collected part
by part, and the rest of the axiom is compiled.

Cost and traps. Linear in the rules that come out, but an intersection of unions on the left is their product: past
`MOST_BODIES` the axiom is outside.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass, field
from itertools import product

from evergraph.rules.model import TRIPLE, TYPE, Atom, Comparison, Operator, Rule, Term, Variable
from evergraph.rules.owl.expressions import (
    EVERYTHING,
    And,
    Beyond,
    Count,
    Data,
    Expression,
    Itself,
    Named,
    Not,
    OneOf,
    Only,
    Or,
    Property,
    Some,
    Value,
)
from evergraph.rules.owl.finish import Body, atom, finish, inconsistency, variable
from evergraph.rules.owl.vocabulary import KNOWN_DATATYPES, LITERAL, NOTHING, SAME, THING

MOST_BODIES = 1000

EXISTS = "a rule cannot make up an individual"
CHOICE = "a rule cannot leave a choice open"
ABSENCE = "no fact says that something is missing"
COUNTING = "rules count to one"


class TooMany(Exception):
    """An axiom whose unions multiply."""


@dataclass(slots=True)
class Sides:
    """One axiom: its rules and facts as they come, and what of it falls outside."""

    show: Callable[[Expression], str]
    functional: Container[Property]
    name: str
    rules: list[Rule] = field(default_factory=list)
    facts: list[Atom] = field(default_factory=list)
    lost: dict[str, None] = field(default_factory=dict)
    _variables: int = 0

    def fresh(self) -> Variable:
        self._variables += 1
        return variable(self._variables - 1)

    def implies(self, left: Expression, right: Expression) -> None:
        """`left ⊑ right`."""
        x = self.fresh()
        self.head(right, x, self.body(left, x))

    def clash(self, rule: str, *parts: Expression) -> None:
        """Nothing is in all of these."""
        x = self.fresh()
        self.emit(inconsistency(rule, x, x), self.body(And(parts), x))

    def body(self, expression: Expression, x: Variable) -> list[Body]:
        """The ways for x to be in an expression on the left."""
        match expression:
            case Named(iri):
                return [] if iri == NOTHING else [Body()] if iri == THING else [Body((atom(Property(TYPE), x, iri),))]
            case Data(iri) if iri == LITERAL:
                return [Body()]
            case Data(iri) if iri in KNOWN_DATATYPES:
                return [Body((Atom("DATATYPE", (x, iri)),))]
            case And(parts):
                return self.both([self.body(part, x) for part in parts])
            case Or(parts):
                return [body for part in parts for body in self.body(part, x)]
            case OneOf(members):
                return [Body(fixed=((x, member),)) for member in members]
            case Value(p, value):
                return [Body((atom(p, x, value),))]
            case Itself(p):
                return [Body((atom(p, x, x),))]
            case Some(p, filler):
                y = self.fresh()
                return self.both([[Body((atom(p, x, y),))], self.body(filler, y)])
            case Count("min", 0, _, _):
                return [Body()]
            case Count("min" | "exactly", 1, p, filler) if expression.kind == "min" or p in self.functional:
                return self.body(Some(p, filler or EVERYTHING), x)
            case Count("max", number, p, _) if number and p in self.functional:
                return [Body()]
            case _:
                self.lose(expression, "left", _reason_left(expression))
                return []

    def head(self, expression: Expression, x: Variable, bodies: list[Body]) -> None:
        """What a rule says of x, for each of these bodies, if x is in an expression on the right."""
        if not bodies:
            return
        match expression:
            case Named(iri) if iri == THING:
                pass
            case Named(iri) if iri == NOTHING:
                self.emit(inconsistency("cls-nothing2", x, x), bodies)
            case Named(iri):
                self.emit(atom(Property(TYPE), x, iri), bodies)
            case Data(iri) if iri == LITERAL:
                pass
            case Data(iri) if iri in KNOWN_DATATYPES:
                test = Comparison(Operator.ILLTYPED, x, iri)
                self.emit(inconsistency("dt-not-type", x, iri), self.both([bodies, [Body((test,))]]))
            case And(parts):
                for part in parts:
                    self.head(part, x, bodies)
            case Not(part):
                self.emit(inconsistency("cls-com", x, x), self.both([bodies, self.body(part, x)]))
            case OneOf((only,)) if not only.startswith('"'):
                self.same(x, only, bodies)
            case Value(p, value) | Some(p, OneOf((value,))):
                self.emit(atom(p, x, value), bodies)
            case Itself(p):
                self.emit(atom(p, x, x), bodies)
            case Only(p, filler):
                y = self.fresh()
                self.head(filler, y, self.both([bodies, [Body((atom(p, x, y),))]]))
            case Count("min", 0, _, _):
                pass
            case Count("exactly", 0 | 1 as number, p, filler):
                self.head(Count("min", number, p, filler), x, bodies)
                self.head(Count("max", number, p, filler), x, bodies)
            case Count("max", 0, p, filler):
                y = self.fresh()
                rule = "cls-maxc1" if filler is None else "cls-maxqc2" if filler == EVERYTHING else "cls-maxqc1"
                self.emit(inconsistency(rule, x, y), self.both([bodies, *self._link(p, x, y, filler)]))
            case Count("max", 1, p, filler):
                y, z = self.fresh(), self.fresh()
                self.same(y, z, self.both([bodies, *self._link(p, x, y, filler), *self._link(p, x, z, filler)]))
            case _:
                self.lose(expression, "right", _reason_right(expression))

    def same(self, x: Term, y: Term, bodies: list[Body]) -> None:
        """Two terms that are not one are the same; of one term that goes without saying."""
        self.emit(Atom(TRIPLE, (x, SAME, y)), self.both([bodies, [Body((Comparison(Operator.UNEQUAL, x, y),))]]))

    def both(self, choices: list[list[Body]]) -> list[Body]:
        """One body of each of these, in every way."""
        bodies = [Body()]
        for choice in choices:
            if len(bodies) * len(choice) > MOST_BODIES and len(bodies) > 1 and len(choice) > 1:
                raise TooMany
            bodies = [one + other for one, other in product(bodies, choice)]
        return bodies

    def emit(self, head: Atom, bodies: Iterable[Body]) -> None:
        """A rule for each body, or a fact where nothing is left to ask."""
        for body in bodies:
            match finish(head, body, self.name):
                case Rule() as rule:
                    self.rules.append(rule)
                case Atom() as fact:
                    self.facts.append(fact)
                case str(reason):
                    self.lost[reason] = None

    def lose(self, part: Expression, side: str, reason: str) -> None:
        """This part of the axiom falls outside."""
        self.lost[reason if isinstance(part, Beyond) else f"{self.show(part)} on the {side}: {reason}"] = None

    def _link(self, p: Property, x: Variable, y: Variable, filler: Expression | None) -> tuple[list[Body], list[Body]]:
        """p leads from x to y, and y is in the filler."""
        return [Body((atom(p, x, y),))], self.body(filler or EVERYTHING, y)


def _reason_left(expression: Expression) -> str:
    match expression:
        case Beyond(reason):
            return reason
        case Data():
            return "the values of this datatype are not known"
        case Count("min"):
            return COUNTING
        case _:
            return ABSENCE


def _reason_right(expression: Expression) -> str:
    match expression:
        case Beyond(reason):
            return reason
        case Data():
            return "the values of this datatype are not known"
        case Count("min", 1, _, _) | Some():
            return EXISTS
        case Count():
            return COUNTING
        case _:
            return CHOICE
