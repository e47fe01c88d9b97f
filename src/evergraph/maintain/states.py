"""The relations that tell what becomes of one, and what they are called.

    p        what was materialised          p_Del   may go          p_Red   may go and still follows     p_Plus    comes
    p_ext    what is explicit of it         p_Ins   is derived anew p_New   is there afterwards          p_Minus   goes

`Del` and its like of a relation that no rule derives are given, and are net changes. Names are made longer until no two clash:
`p__Del` in a program that has a relation `p_Del` of its own.

Triples are one relation here, but programs may derive them in several strata: bachelors are men who are not married. Then they
have a state for each of these strata, `t1_Del`, `t2_Del`, …: what a stratum reads is settled in the state it reads, and the
last has the result. A named relation has one stratum and one state.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType

from evergraph.rules.model import TRIPLE, Atom, Comparison, Negation, Program, Rule, Variable
from evergraph.rules.stratify import stratify
from evergraph.rules.variables import variables

TRIPLES = "t"
"""What the triple relation is called, if the program has no relation of this name."""


@dataclass(frozen=True, slots=True)
class State:
    """The names of the relations that tell what becomes of one; of a given relation, changes are net changes."""

    old: str
    stem: str
    given: bool

    @property
    def deleted(self) -> str:
        return f"{self.stem}Del"

    @property
    def rederived(self) -> str:
        return f"{self.stem}Red"

    @property
    def inserted(self) -> str:
        return f"{self.stem}Ins"

    @property
    def new(self) -> str:
        return f"{self.stem}New"

    @property
    def temporary(self) -> str:
        return f"{self.stem}Temp"

    @property
    def plus(self) -> str:
        return self.inserted if self.given else f"{self.stem}Plus"

    @property
    def minus(self) -> str:
        return self.deleted if self.given else f"{self.stem}Minus"

    @property
    def names(self) -> tuple[str, ...]:
        if self.given:
            return (self.deleted, self.inserted, self.new)
        return (self.deleted, self.rederived, self.inserted, self.new, self.plus, self.minus, self.temporary)


class States:
    """A program's rules with their strata, and the states of its relations."""

    def __init__(
        self, program: Program, asserted: Collection[str] | None = None, also: Mapping[str, int] = MappingProxyType({})
    ) -> None:
        """`asserted` are the derived relations that may hold explicit facts too; None is all. `also` are relations, with their
        arities, that count as derived though no rule derives them. Cost: linear in the program."""
        named = [Rule(rule.head, rule.body, rule.name or f"R{number}") for number, rule in enumerate(program.rules, 1)]
        self.rules = [(k, rule) for k, rules in enumerate(stratify(Program(tuple(named)))) for rule in rules]
        """Rules with their strata: first, for each relation that may hold explicit facts, the rule that links it to them."""
        self.arities = {a.relation: len(a.terms) for r in named for a in (r.head, *r.atoms, *r.negations)} | dict(also)
        self._writers = _writers(self.rules) | {name: [-1] for name in also}
        self._asserted = [name for name in self._writers if asserted is None or name in asserted]
        self.separator, self._triples = "_", TRIPLES
        while not self._names_are_free({*program.relations, *self.arities}):
            self.separator, self._triples = f"{self.separator}_", f"{self._triples}_"
        self.rules[:0] = [(self._writers[name][0], self.link(name)) for name in self._asserted]

    def _names_are_free(self, taken: set[str]) -> bool:
        """Whether no two relations get the same name."""
        found = [self._triples] if TRIPLE in self.arities else []
        found += [self.explicit(name).old for name in self._asserted]
        found += [n for name in self.arities for state in self.all(name) for n in state.names]
        found += [n for name in self._asserted for n in self.explicit(name).names]
        return len(found) == len({*found}) and not taken & {*found}

    @property
    def derived(self) -> Collection[str]:
        """The relations that some rule derives, or that count as such."""
        return self._writers.keys()

    def of(self, name: str, stratum: int) -> State:
        """A relation as it is once a stratum of the program is settled."""
        return self.all(name)[bisect_right(self._writers.get(name, ()), stratum) - 1]

    def since(self, name: str, stratum: int) -> list[State]:
        """A derived relation as it is in a stratum that derives it, and in all later ones that do."""
        return self.all(name)[self._writers[name].index(stratum) :]

    def last(self, name: str) -> State:
        """A relation as it is in the end."""
        return self.all(name)[-1]

    def all(self, name: str) -> list[State]:
        """A derived relation has a state for each of its strata, a given one has one."""
        old, strata = self._name(name), self._writers.get(name, ())
        if len(strata) < 2:
            return [State(old, f"{old}{self.separator}", not strata)]
        return [State(old, f"{old}{number}{self.separator}", False) for number, _ in enumerate(strata, 1)]

    def steps(self, name: str) -> Iterator[tuple[State, State]]:
        """The states of a relation that has several, each with the next."""
        return pairwise(self.all(name))

    def explicit(self, name: str) -> State:
        """The explicit facts of a derived relation: a relation that is given."""
        stem = f"{self._name(name)}{self.separator}ext"
        return State(stem, f"{stem}{self.separator}", True)

    def link(self, name: str) -> Rule:
        """R_1: what is explicit is there."""
        terms = self.variables(name)
        return Rule(Atom(name, terms), (Atom(self.explicit(name).old, terms),), f"{self._name(name)} ext")

    def links(self, name: str) -> list[tuple[int, Rule]]:
        """The rule that links a derived relation to its explicit facts, with its stratum, if it may hold any."""
        return [(self._writers[name][0], self.link(name))] if name in self._asserted else []

    def read(self, rule: Rule, stratum: int) -> Iterator[State]:
        """The states that a body reads, in its order: of what it negates, those of the stratum below."""
        for item in rule.body:
            if isinstance(item, Atom):
                yield self.of(item.relation, stratum)
            elif isinstance(item, Negation):
                yield self.of(item.atom.relation, stratum - 1)

    def label(self, state: State) -> str:
        """What a state is called in the names of rules."""
        return state.stem.removesuffix(self.separator)

    def variables(self, name: str) -> tuple[Variable, ...]:
        """A variable for each argument of a relation."""
        return variables(self.arities[name])

    def _name(self, name: str) -> str:
        return self._triples if name == TRIPLE else name


def _writers(rules: list[tuple[int, Rule]]) -> dict[str, list[int]]:
    """The strata that derive each derived relation; -1 comes first where something reads the relation before they do."""
    found: dict[str, set[int]] = {}
    read: dict[str, int] = {}
    for stratum, rule in rules:
        found.setdefault(rule.head.relation, set()).add(stratum)
        for atoms, settled in ((rule.atoms, stratum), (rule.negations, stratum - 1)):
            read |= {a.relation: min(settled, read.get(a.relation, settled)) for a in atoms}
    return {
        name: sorted({*strata, -1} if read.get(name, min(strata)) < min(strata) else strata) for name, strata in found.items()
    }


def predicates(rule: Rule) -> list[int]:
    """The places of the body that are no comparisons."""
    return [place for place, item in enumerate(rule.body) if not isinstance(item, Comparison)]
