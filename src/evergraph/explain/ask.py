"""From a question to a proof in the words of the user: `explain`.

Contract: rules are used as they were written, over the materialisation as it is. Every step is an instance of the rule it
names, its premises hold, what it negates does not, and following premises ends at explicit facts and built-ins.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np

from evergraph.engines.arrays import U64, Arrays
from evergraph.engines.base import Readable, Which
from evergraph.errors import UserError
from evergraph.explain.fact import read_fact
from evergraph.explain.proof import Kind, Proof
from evergraph.explain.search import MOST, Ground, Search, Step
from evergraph.explain.sources import Builtins, Facts, Heads, Rows
from evergraph.inputs import arity_clash
from evergraph.maintain.verify import Differs
from evergraph.plan.compile import Plan
from evergraph.plan.model import PlanAtom, PlanRule, Value, is_variable
from evergraph.plan.rulebook import Rulebook
from evergraph.rules.model import (
    BUILTIN_RELATIONS,
    TRIPLE,
    Atom,
    BodyItem,
    Comparison,
    Negation,
    Operator,
    Rule,
    Term,
    Variable,
)
from evergraph.rules.printer import print_atom, print_rule, print_term
from evergraph.terms import Dictionary
from evergraph.values import Values

NAMED = 8
"""So many rules that could derive a fact are named when it does not hold."""


class Graph(Protocol):
    """What of a graph is read."""

    _book: Rulebook
    _dictionary: Dictionary
    _values: Values
    _plan: Plan
    _arities: dict[str, int]
    _builtins: dict[str, Rows]

    @property
    def _held(self) -> Readable: ...


def explain(kg: Graph, fact: Any, every: bool = False) -> Proof:
    """Why a fact holds: a proof down to explicit facts, of the smallest height as far as that is quick to find.

    `fact` is a triple (rdflib or pyoxigraph terms, or N-Triples strings, blank nodes as the graph calls them), an `Atom`, or
    text: `path(1, 2)`, `[ex:ann, a, ex:Person]`, a line of N-Triples. With `every`, the proof has no steps of its own but
    `alternatives`: each rule instance over the materialisation that supports the fact, those that use it included.
    Cost: linear in the rules; the instances that support the facts of the proof and of those around it, see `search`.
    """
    return _Question(kg).answer(read_fact(fact, kg._book.compiler.prefixes), every)


class _Question:
    """The state of a graph while one fact is explained."""

    def __init__(self, kg: Graph) -> None:
        self.kg, self.prefixes = kg, kg._book.compiler.prefixes
        builtins, held = Builtins(kg._builtins), kg._held
        self.held, self.explicit = (Facts(held.relations(w), builtins) for w in (Which.ALL, Which.EXPLICIT))
        self.heads = Heads([rule for stratum in kg._plan.rules for rule in stratum])
        self.texts: dict[int, str] = {}
        """Terms by id, those that the answer needs."""
        self.names: dict[int, str] = {}
        """What rules are called, by their identity."""

    def answer(self, atom: Atom, every: bool) -> Proof:
        goal = self.goal(atom)
        kind = self.kind(goal)
        if every:
            return Proof(atom, kind, alternatives=self.alternatives(goal), prefixes=self.prefixes)
        if kind != Kind.DERIVED:
            return Proof(atom, kind, prefixes=self.prefixes)
        found = self.search(MOST).prove(goal) or self.search(None).prove(goal)
        if found is None:
            raise Differs([], [print_atom(atom, self.prefixes)])
        return self.proof(found)

    def search(self, most: int | None) -> Search:
        return Search(self.heads, self.held, self.explicit, self.kg._values, most)

    # -- what is asked -----------------------------------------------------------------------------------------------

    def goal(self, atom: Atom) -> Ground:
        """The fact in ids, if it holds."""
        name, known = atom.relation, {**BUILTIN_RELATIONS, **self.kg._arities}
        if name not in known:
            shown = ", ".join(sorted(known.keys() - BUILTIN_RELATIONS - {TRIPLE})) or "none"
            raise UserError("EG301", f"no relation is called {name!r}", f"the rules and facts mention: {shown}")
        if len(atom.terms) != known[name]:
            raise arity_clash(name, len(atom.terms), known[name])
        ids: list[int] = []
        for term in map(str, atom.terms):
            found = self.kg._dictionary.find(term)
            if found is None:
                raise self.mistake(atom, f"no fact or rule mentions {print_term(term, self.prefixes)}")
            ids.append(found)
        goal: Ground = (ids[1], (ids[0], ids[2])) if name == TRIPLE else (name, tuple(ids))
        if not self.holds(self.held, goal):
            raise self.mistake(atom, self.why_not(goal))
        return goal

    def holds(self, facts: Facts, goal: Ground) -> bool:
        relation = facts.get(goal[0])
        return relation is not None and bool(relation.contains(Arrays().pack([U64(v) for v in goal[1]], 1))[0])

    def kind(self, goal: Ground) -> Kind:
        if goal[0] in BUILTIN_RELATIONS:
            return Kind.BUILT_IN
        return Kind.EXPLICIT if self.holds(self.explicit, goal) else Kind.DERIVED

    def mistake(self, atom: Atom, why: str) -> UserError:
        return UserError("EG303", f"{print_atom(atom, self.prefixes)} does not hold", why)

    def why_not(self, goal: Ground) -> str:
        """Which rules could have derived a fact, by their heads alone."""
        rules = [rule for rule in self.heads.rules if _may_be(rule.head, goal)]
        if not rules:
            return "it is not explicit, and no rule derives facts like it"
        names = ", ".join(dict.fromkeys(map(self.name, rules[:NAMED])))
        more = f" and {len(rules) - NAMED} more" if len(rules) > NAMED else ""
        return f"it is not explicit, and none of the rules that could derive it does: {names}{more}"

    # -- the answer --------------------------------------------------------------------------------------------------

    def proof(self, steps: dict[int, Step]) -> Proof:
        """The goal's proof, from steps in the order in which they can be taken. Cost: the proof."""
        self.read_terms(steps.values())
        made: dict[int, Proof] = {}
        for number, step in steps.items():
            for fact, atom in zip(step.premises, step.block.rule.body, strict=True):
                if fact not in made:
                    made[fact] = self.leaf(step, atom, Kind.EXPLICIT)
            made[number] = self.step(step, [made[fact] for fact in step.premises])
        return made[0]

    def alternatives(self, goal: Ground) -> tuple[Proof, ...]:
        """Every instance that supports the goal, with nothing below what it needs."""
        search = self.search(None)
        steps = search.supports(goal)
        self.read_terms(steps)
        out = []
        for step in steps:
            kinds = [Kind.EXPLICIT if search.given.values[fact] else Kind.DERIVED for fact in step.premises]
            premises = [self.leaf(step, atom, kind) for atom, kind in zip(step.block.rule.body, kinds, strict=True)]
            out.append(self.step(step, premises))
        return tuple(out)

    def leaf(self, step: Step, atom: PlanAtom, kind: Kind) -> Proof:
        kind = Kind.BUILT_IN if atom.relation in BUILTIN_RELATIONS else kind
        return Proof(self.fact(step, atom), kind, prefixes=self.prefixes)

    def step(self, step: Step, premises: Sequence[Proof]) -> Proof:
        rule = step.block.rule
        for check in rule.filters:
            left, right = (self.texts[int(step.block.value(v, step.row))] for v in (check.left, check.right))
            comparison = Comparison(Operator(check.operator), left, right)
            premises = [*premises, Proof(comparison, Kind.BUILT_IN, prefixes=self.prefixes)]
        absent = tuple(self.fact(step, atom) for atom in rule.negated)
        fact = self.fact(step, rule.head)
        return Proof(fact, Kind.DERIVED, self.name(rule), tuple(premises), absent, prefixes=self.prefixes)

    def fact(self, step: Step, atom: PlanAtom) -> Atom:
        """What an atom of a rule is in an instance."""
        key, args = step.block.ground(atom, step.row)
        terms = [self.texts[arg] for arg in args]
        if isinstance(key, int):
            return Atom(TRIPLE, (terms[0], self.texts[key], terms[1]))
        return Atom(key, tuple(terms))

    def read_terms(self, steps: Iterable[Step]) -> None:
        """Decode at once what the steps speak of."""
        ids: set[int] = set()
        for step in steps:
            ids.update(int(column[step.row]) for column in step.block.bindings.values())
            ids.update(_constants(step.block.rule))
        numbers = np.array(sorted(ids), np.uint64)
        self.texts = dict(zip(numbers.tolist(), self.kg._dictionary.decode(numbers).to_pylist(), strict=True))

    def name(self, rule: PlanRule) -> str:
        """The rule's name, or else its text as it was written. Cost of the latter: linear in the program, once for a rule."""
        if id(rule) not in self.names:
            self.names[id(rule)] = rule.name or self.text(rule)
        return self.names[id(rule)]

    def text(self, rule: PlanRule) -> str:
        head = self.pattern(rule.head)
        body: list[BodyItem] = [*map(self.pattern, rule.body), *(Negation(self.pattern(a)) for a in rule.negated)]
        body += [Comparison(Operator(f.operator), self.term(f.left), self.term(f.right)) for f in rule.filters]
        written = (r for r in self.kg._book.program.rules if r.head == head and set(r.body) == set(body))
        return print_rule(next(written, Rule(head, tuple(body))), self.prefixes).removesuffix(" .\n")

    def pattern(self, atom: PlanAtom) -> Atom:
        terms = [self.term(arg) for arg in atom.args]
        if isinstance(atom.relation, int) or atom.open:
            return Atom(TRIPLE, (terms[0], self.term(atom.relation), terms[1]))
        return Atom(atom.relation, tuple(terms))

    def term(self, value: Value) -> Term:
        return Variable(value[1:]) if isinstance(value, str) else self.kg._dictionary.term(value)


def _constants(rule: PlanRule) -> set[int]:
    values = [v for atom in (rule.head, *rule.body, *rule.negated) for v in (atom.relation, *atom.args)]
    values += [v for check in rule.filters for v in (check.left, check.right)]
    return {v for v in values if isinstance(v, int)}


def _may_be(head: PlanAtom, goal: Ground) -> bool:
    """Whether a head can be this fact: the same constants, and one value for each variable."""
    key, args = goal
    if head.relation != key and not (head.open and isinstance(key, int)):
        return False
    bound: dict[Value, Value] = {}
    pairs = zip((head.relation, *head.args), (key, *args), strict=True)
    return all(bound.setdefault(v, value) == value if is_variable(v) else v == value for v, value in pairs)
