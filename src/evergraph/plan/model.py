"""Rules as engines see them: constants are ids, triples with a known predicate are binary relations.

A relation is named by a *key*: the id of a predicate (the split relations of Volz et al. §4.3), or the name of a named
relation; a body or head atom may have a variable in that place (`[?x, ?p, ?y]`). Everything here is plain data: it is
pickled into Spark's workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from evergraph.rules.model import TRIPLE, Atom, Rule, Term, Variable

Value = int | str
"""The id of a constant, or a variable such as `?x`."""
Key = int | str
"""The id of a predicate, the name of a relation, or a variable that stands for a predicate."""


def is_variable(value: Value) -> bool:
    return isinstance(value, str) and value.startswith("?")


@dataclass(frozen=True, slots=True)
class PlanAtom:
    relation: Key
    args: tuple[Value, ...]
    open: bool = field(init=False, compare=False, repr=False)
    """Whether the predicate is a variable."""
    variables: frozenset[str] = field(init=False, compare=False, repr=False)
    """Every variable of the atom, that of its predicate included."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "open", is_variable(self.relation))
        object.__setattr__(self, "variables", frozenset(str(v) for v in (self.relation, *self.args) if is_variable(v)))

    def __str__(self) -> str:
        return f"{self.relation}({', '.join(map(str, self.args))})"


@dataclass(frozen=True, slots=True)
class PlanFilter:
    operator: str
    left: Value
    right: Value

    @property
    def variables(self) -> frozenset[str]:
        return frozenset(str(v) for v in (self.left, self.right) if is_variable(v))


class Probe(NamedTuple):
    """A variable of a body atom that is also a column of a parameter relation, which stands in another atom."""

    atom: int
    place: int
    """The argument; -1 for the predicate."""
    parameters: int
    column: int


PARAMETER = "µ"
"""Names of parameter relations start with this; no name in a program can."""


def is_parameter(key: Key) -> bool:
    return isinstance(key, str) and key.startswith(PARAMETER)


@dataclass(frozen=True, slots=True)
class PlanRule:
    name: str
    head: PlanAtom
    body: tuple[PlanAtom, ...]
    negated: tuple[PlanAtom, ...] = ()
    filters: tuple[PlanFilter, ...] = ()
    _asked: PlanRule | None = field(init=False, default=None, compare=False, repr=False)
    _probes: tuple[Probe, ...] | None = field(init=False, default=None, compare=False, repr=False)

    @property
    def variables(self) -> frozenset[str]:
        """Every variable of the body: what tells one instance from another."""
        return frozenset().union(*(atom.variables for atom in self.body))

    @property
    def content(self) -> tuple[object, ...]:
        """The rule without its name."""
        return self.head, self.body, self.negated, self.filters

    @property
    def asked(self) -> PlanRule:
        """The rule with its head in its body: it derives only what the first atom's source holds."""
        if self._asked is None:
            asked = PlanRule(self.name, self.head, (self.head, *self.body), self.negated, self.filters)
            object.__setattr__(self, "_asked", asked)
        assert self._asked is not None
        return self._asked

    @property
    def probes(self) -> tuple[Probe, ...]:
        """What can be asked of a small change before the rule is evaluated: whether it meets the rows of the rule's shape."""
        if self._probes is None:
            object.__setattr__(self, "_probes", tuple(_probes(self.body)))
        assert self._probes is not None
        return self._probes

    def __str__(self) -> str:
        return f"{self.head} :- {', '.join(map(str, self.body))}"


def _probes(body: tuple[PlanAtom, ...]) -> Iterator[Probe]:
    for number, parameters in enumerate(body):
        if not is_parameter(parameters.relation):
            continue
        columns = {variable: column for column, variable in enumerate(parameters.args) if is_variable(variable)}
        for other, atom in enumerate(body):
            if atom.open and atom.relation in columns:
                yield Probe(other, -1, number, columns[atom.relation])
            elif other != number and not atom.open:
                for place, variable in enumerate(atom.args):
                    if variable in columns:
                        yield Probe(other, place, number, columns[variable])


Encode = Callable[[Sequence[str]], Iterable[int]]


def encode_rules(rules: Sequence[Rule], encode: Encode) -> list[PlanRule]:
    """Rules with ids for constants. Cost: linear in the rules; each distinct constant is looked up once."""
    constants = dict.fromkeys(t for rule in rules for t in _terms(rule) if not isinstance(t, Variable))
    ids = dict(zip(constants, map(int, encode(list(constants))), strict=True))

    def value(term: Term) -> Value:
        return str(term) if isinstance(term, Variable) else ids[term]

    def atom(a: Atom) -> PlanAtom:
        if a.relation == TRIPLE:
            subject, predicate, object_ = map(value, a.terms)
            return PlanAtom(predicate, (subject, object_))
        return PlanAtom(a.relation, tuple(map(value, a.terms)))

    return [
        PlanRule(
            rule.name,
            atom(rule.head),
            tuple(map(atom, rule.atoms)),
            tuple(map(atom, rule.negations)),
            tuple(PlanFilter(str(c.operator), value(c.left), value(c.right)) for c in rule.comparisons),
        )
        for rule in rules
    ]


def _terms(rule: Rule) -> Iterable[Term]:
    for atom in (rule.head, *rule.atoms, *rule.negations):
        yield from atom.terms
    for comparison in rule.comparisons:
        yield comparison.left
        yield comparison.right
