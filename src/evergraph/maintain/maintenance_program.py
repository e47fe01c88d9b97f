"""The maintenance program: deletion and rederivation as rules.

What it does: rewrites a program into another one. Given what was materialised and which explicit facts come and go, the other
program derives which facts of each relation come and go. It is an ordinary program: it prints, it parses, any engine runs it.

Paper: Volz, Staab, Motik: Incremental Maintenance of Materialized Ontologies. ODBASE 2003, §3.2. The same rules stand in
    Barbieri, Braga, Ceri, Della Valle, Grossniklaus: Incremental Reasoning on Streams and Rich Background Knowledge. ESWC
    2010, Table 2.
Symbols: p → `State.old`, what was materialised. p^Del → `deleted`, p^Red → `rederived`, p^Ins → `inserted`, p^New → `new`,
    p^Plus → `plus`, p^Minus → `minus`; printed as `p_Del`, `p_Red`, … t → triples, t_ext → explicit triples. D_i, R, I_i,
    N_1 to N_3, P, M → ends of rule names, such as `rdfs9 D1`; R_1, the rule that links t to t_ext, is called `t ext`.
Invariant: given are `p`, closed under the rules; `p_ext_Del`, which was explicit and is no longer; `p_ext_Ins`, which is and
    was not; `p_ext_New`, all that is. Of relations that no rule derives, `r`, `r_Del`, `r_Ins` and `r_New` are given. Then
    p_Del is a part of p and p_Red of p_Del; p_Minus goes and p_Plus comes: p_New is p less p_Minus and with p_Plus.
Departures: every derived relation has its `_ext`, not only triples. Comparisons are copied into every rule. Built-in relations
    only grow: no rule asks what went from them.
    Negation, which the paper allows and does not rewrite: where r_i is negated, D_i reads r_i^Plus and I_i reads r_i^Minus.
    What came takes away instances that were there, so the rest of D_i reads the old state; what went makes instances that are
    there now, so the rest of I_i reads the new one. Net changes, because r_i^Del holds facts that stay and make no instance.
    They are known, since r_i belongs to a lower stratum, and the result is stratified: within a stratum only N_1 negates p^Del,
    and M p^Ins and p^Red; p^Del depends on none of p^Red, p^Ins and p^New, and these on none of p^Plus and p^Minus.
    Triples are one relation here, but programs may derive them in several strata: bachelors are men who are not married. Then
    each of these strata has its own maintenance relations, `t1_Del`, `t2_Del`, … Each starts with the net changes of the one
    before, and rederives by the rules of all strata so far. What a stratum reads is settled by then. The last has the result.
Cost and traps: 2 · body atoms + rules + 5 · derived relations, counted in rules. To evaluate them costs at least the
    materialisation, which N_1 copies. §3.3 counts 62 for Figure 1: 15 rules with 21 body atoms. Printed in the figure are 13
    with 20, or 14 with 21 if the link to t_ext is counted; that gives 61, one rederivation less.
Example: the rule of Barbieri et al., §2.3, and what becomes of it in Table 3.
    >>> from evergraph.rules.printer import print_rule
    >>> program = Program.parse('#[name("R")] isIn(?x, ?z) :- isIn(?x, ?y), isIn(?y, ?z) .')
    >>> for rule in rewrite(program, asserted=()).rules:
    ...     print(print_rule(Rule(rule.head, rule.body)), end="")
    isIn_Del(?x, ?z) :- isIn_Del(?x, ?y), isIn(?y, ?z) .
    isIn_Del(?x, ?z) :- isIn(?x, ?y), isIn_Del(?y, ?z) .
    isIn_Red(?x, ?z) :- isIn_Del(?x, ?z), isIn_New(?x, ?y), isIn_New(?y, ?z) .
    isIn_Ins(?x, ?z) :- isIn_Ins(?x, ?y), isIn_New(?y, ?z) .
    isIn_Ins(?x, ?z) :- isIn_New(?x, ?y), isIn_Ins(?y, ?z) .
    isIn_New(?x, ?y) :- isIn(?x, ?y), NOT isIn_Del(?x, ?y) .
    isIn_New(?x, ?y) :- isIn_Red(?x, ?y) .
    isIn_New(?x, ?y) :- isIn_Ins(?x, ?y) .
    isIn_Plus(?x, ?y) :- isIn_Ins(?x, ?y), NOT isIn(?x, ?y) .
    isIn_Minus(?x, ?y) :- isIn_Del(?x, ?y), NOT isIn_Ins(?x, ?y), NOT isIn_Red(?x, ?y) .
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import pairwise

from evergraph.rules.model import BUILTIN_RELATIONS, TRIPLE, Atom, BodyItem, Comparison, Negation, Program, Rule, Variable
from evergraph.rules.stratify import stratify

TRIPLES = "t"
"""What the triple relation is called, if the program has no relation of this name."""


def rewrite(program: Program, asserted: Collection[str] | None = None) -> Program:
    """The maintenance program of a program, in the paper's order. Cost: linear in what it returns.

    `asserted` are the derived relations that may hold explicit facts too, and so have a link to their `_ext`; None is all.
    Without the link, an explicit fact that is overdeleted does not come back.
    """
    rewriting = Rewriting(program, asserted)
    phases = (rewriting.deletions, rewriting.rederivations, rewriting.insertions, rewriting.new_states, rewriting.differentials)
    return Program(tuple(rule for phase in phases for rule in phase()), (), program.prefixes)


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
    def plus(self) -> str:
        return self.inserted if self.given else f"{self.stem}Plus"

    @property
    def minus(self) -> str:
        return self.deleted if self.given else f"{self.stem}Minus"

    @property
    def names(self) -> tuple[str, ...]:
        if self.given:
            return (self.deleted, self.inserted, self.new)
        return (self.deleted, self.rederived, self.inserted, self.new, self.plus, self.minus)


class Rewriting:
    """A program's relations with their states, and the five phases."""

    def __init__(self, program: Program, asserted: Collection[str] | None = None) -> None:
        named = [Rule(rule.head, rule.body, rule.name or f"R{number}") for number, rule in enumerate(program.rules, 1)]
        self._rules = [(k, rule) for k, rules in enumerate(stratify(Program(tuple(named)))) for rule in rules]
        """Rules with their strata."""
        self.arities = {a.relation: len(a.terms) for r in named for a in (r.head, *r.atoms, *r.negations)}
        self._writers = _writers(self._rules)
        self._asserted = [name for name in self._writers if asserted is None or name in asserted]
        self._separator, self._triples = "_", TRIPLES
        while not self._names_are_free({*program.relations, *self.arities}):
            self._separator, self._triples = f"{self._separator}_", f"{self._triples}_"
        self._rules[:0] = [(self._writers[name][0], self._link(name)) for name in self._asserted]

    def _names_are_free(self, taken: set[str]) -> bool:
        """Whether no two relations get the same name."""
        found = [self._triples] if TRIPLE in self.arities else []
        found += [self.explicit(name).old for name in self._asserted]
        found += [n for name in self.arities for state in self._states(name) for n in state.names]
        found += [n for name in self._asserted for n in self.explicit(name).names]
        return len(found) == len({*found}) and not taken & {*found}

    def _link(self, name: str) -> Rule:
        """R_1: what is explicit is there."""
        terms = _variables(self.arities[name])
        return Rule(Atom(name, terms), (Atom(self.explicit(name).old, terms),), f"{self._name(name)} ext")

    # -- states ------------------------------------------------------------------------------------------------------

    def state(self, name: str, stratum: int) -> State:
        """A relation as it is once a stratum of the program is settled."""
        return self._states(name)[bisect_right(self._writers.get(name, ()), stratum) - 1]

    def last(self, name: str) -> State:
        """A relation as it is in the end."""
        return self._states(name)[-1]

    def explicit(self, name: str) -> State:
        """The explicit facts of a derived relation: a relation that is given."""
        stem = f"{self._name(name)}{self._separator}ext"
        return State(stem, f"{stem}{self._separator}", True)

    def _states(self, name: str) -> list[State]:
        """A derived relation has a state for each of its strata, a given one has one."""
        old, strata = self._name(name), self._writers.get(name, ())
        if len(strata) < 2:
            return [State(old, f"{old}{self._separator}", not strata)]
        return [State(old, f"{old}{number}{self._separator}", False) for number, _ in enumerate(strata, 1)]

    def _name(self, name: str) -> str:
        return self._triples if name == TRIPLE else name

    # -- phases ------------------------------------------------------------------------------------------------------

    def deletions(self) -> Iterator[Rule]:
        """D_i: p^Del :- r_1, …, r_i^Del, …, r_n."""
        for before, after, name, terms in self._steps():
            yield _rule(f"{name} D", after.deleted, terms, Atom(before.minus, terms))
        for stratum, rule in self._rules:
            head = Atom(self.state(rule.head.relation, stratum).deleted, rule.head.terms)
            for number, place in enumerate(_predicates(rule), 1):
                if not isinstance(rule.body[place], Atom) or not _built_in(rule.body[place]):
                    yield Rule(head, self._body(rule, stratum, place, old=True), f"{rule.name} D{number}")

    def rederivations(self) -> Iterator[Rule]:
        """R: p^Red :- p^Del, r_1^New, …, r_n^New."""
        for stratum, rule in self._rules:
            name, terms = rule.head.relation, rule.head.terms
            for writer, state in zip(self._writers[name], self._states(name), strict=True):
                if writer >= stratum:
                    body = (Atom(state.deleted, terms), *self._body(rule, stratum, None, old=False))
                    yield Rule(Atom(state.rederived, terms), body, f"{rule.name} R")

    def insertions(self) -> Iterator[Rule]:
        """I_i: p^Ins :- r_1^New, …, r_i^Ins, …, r_n^New."""
        for before, after, name, terms in self._steps():
            yield _rule(f"{name} I", after.inserted, terms, Atom(before.plus, terms))
        for stratum, rule in self._rules:
            head = Atom(self.state(rule.head.relation, stratum).inserted, rule.head.terms)
            for number, place in enumerate(_predicates(rule), 1):
                if isinstance(rule.body[place], Atom) or not _built_in(rule.body[place]):
                    yield Rule(head, self._body(rule, stratum, place, old=False), f"{rule.name} I{number}")

    def new_states(self) -> Iterator[Rule]:
        """N_1: p^New :- p, ¬p^Del.  N_2: p^New :- p^Red.  N_3: p^New :- p^Ins."""
        for state, name, terms in self._all_states():
            yield _rule(f"{name} N1", state.new, terms, Atom(state.old, terms), _not(state.deleted, terms))
            yield _rule(f"{name} N2", state.new, terms, Atom(state.rederived, terms))
            yield _rule(f"{name} N3", state.new, terms, Atom(state.inserted, terms))

    def differentials(self) -> Iterator[Rule]:
        """P: p^Plus :- p^Ins, ¬p.  M: p^Minus :- p^Del, ¬p^Ins, ¬p^Red."""
        for state, name, terms in self._all_states():
            yield _rule(f"{name} P", state.plus, terms, Atom(state.inserted, terms), _not(state.old, terms))
            kept = (_not(state.inserted, terms), _not(state.rederived, terms))
            yield _rule(f"{name} M", state.minus, terms, Atom(state.deleted, terms), *kept)

    def _body(self, rule: Rule, stratum: int, changed: int | None, old: bool) -> tuple[BodyItem, ...]:
        """The body over the old or the new state, one of its predicates over what has changed."""
        out: list[BodyItem] = []
        for place, item in enumerate(rule.body):
            if isinstance(item, Comparison):
                out.append(item)
            elif isinstance(item, Atom):
                state = self.state(item.relation, stratum)
                change = state.deleted if old else state.inserted
                out.append(Atom(change if place == changed else state.old if old else state.new, item.terms))
            else:
                state = self.state(item.atom.relation, stratum - 1)
                if place == changed:
                    out.append(Atom(state.plus if old else state.minus, item.atom.terms))
                else:
                    out.append(_not(state.old if old else state.new, item.atom.terms))
        return tuple(out)

    def _all_states(self) -> Iterator[tuple[State, str, tuple[Variable, ...]]]:
        for name in self._writers:
            for state in self._states(name):
                yield state, state.stem.removesuffix(self._separator), _variables(self.arities[name])

    def _steps(self) -> Iterator[tuple[State, State, str, tuple[Variable, ...]]]:
        """The states of relations that have several, each with the next."""
        for name in self._writers:
            states = self._states(name)
            for before, after in pairwise(states):
                yield before, after, after.stem.removesuffix(self._separator), _variables(self.arities[name])


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


def _predicates(rule: Rule) -> list[int]:
    """The places of the body that are no comparisons."""
    return [place for place, item in enumerate(rule.body) if not isinstance(item, Comparison)]


def _built_in(item: BodyItem) -> bool:
    atom = item.atom if isinstance(item, Negation) else item
    return isinstance(atom, Atom) and atom.relation in BUILTIN_RELATIONS


def _variables(arity: int) -> tuple[Variable, ...]:
    return tuple(map(Variable, "xyz"[:arity] if arity <= 3 else (f"x{i}" for i in range(1, arity + 1))))


def _rule(name: str, head: str, terms: tuple[Variable, ...], *body: BodyItem) -> Rule:
    return Rule(Atom(head, terms), body, name)


def _not(relation: str, terms: tuple[Variable | str, ...]) -> Negation:
    return Negation(Atom(relation, terms))
