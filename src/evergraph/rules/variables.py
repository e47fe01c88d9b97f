"""What variables are called: it does not matter, and rules that are made need some."""

from __future__ import annotations

from evergraph.rules.model import Atom, BodyItem, Comparison, Negation, Rule, Term, Variable


def same(rule: Rule) -> tuple[Atom, tuple[BodyItem, ...]]:
    """What two rules have in common that differ only in their names and in the names of variables. Cost: linear in the rule.

    >>> from evergraph.rules.model import Program
    >>> rules = Program.parse('p(?x) :- q(?x, ?y) . #[name("n")] p(?y) :- q(?y, ?x) . p(?x) :- q(?x, ?x) .').rules
    >>> same(rules[0]) == same(rules[1]), same(rules[0]) == same(rules[2])
    (True, False)
    """
    numbers: dict[Variable, Variable] = {}

    def term(t: Term) -> Term:
        return numbers.setdefault(t, Variable(str(len(numbers)))) if isinstance(t, Variable) else t

    def atom(a: Atom) -> Atom:
        return Atom(a.relation, tuple(map(term, a.terms)))

    def item(i: BodyItem) -> BodyItem:
        if isinstance(i, Comparison):
            return Comparison(i.operator, term(i.left), term(i.right))
        return Negation(atom(i.atom)) if isinstance(i, Negation) else atom(i)

    return atom(rule.head), tuple(map(item, rule.body))


def variables(arity: int) -> tuple[Variable, ...]:
    """A variable for each argument: `?x, ?y, ?z`, or numbered if there are more than three."""
    return tuple(map(Variable, "xyz"[:arity] if arity <= 3 else (f"x{i}" for i in range(1, arity + 1))))
