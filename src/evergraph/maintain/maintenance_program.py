"""The maintenance program: deletion and rederivation as rules.

What it does: rewrites a program into another one. Given what was materialised and which explicit facts come and go, the other
program derives which facts of each relation come and go. It is an ordinary program: it prints, it parses, any engine runs it.

Paper: Volz, Staab, Motik: Incremental Maintenance of Materialized Ontologies. ODBASE 2003, §3.2. The same rules stand in
    Barbieri, Braga, Ceri, Della Valle, Grossniklaus: Incremental Reasoning on Streams and Rich Background Knowledge. ESWC
    2010, Table 2.
Symbols: p → `State.old` (see `states`), what was materialised. p^Del → `deleted`, p^Red → `rederived`, p^Ins → `inserted`,
    p^New → `new`, p^Plus → `plus`, p^Minus → `minus`; printed as `p_Del`, `p_Red`, … t → triples, t_ext → explicit triples.
    D_i, R, I_i, N_1 to N_3, P, M → ends of rule names, such as `rdfs9 D1`; R_1, the rule that links t to t_ext, → `t ext`.
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
    Where several strata derive triples, each has its own maintenance relations, `t1_Del`, `t2_Del`, … Each starts with the net
    changes of the one before, and rederives by the rules of all strata so far.
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

from collections.abc import Collection, Iterator

from evergraph.maintain.states import State, States, predicates
from evergraph.rules.model import BUILTIN_RELATIONS, Atom, BodyItem, Comparison, Negation, Program, Rule, Term


def rewrite(program: Program, asserted: Collection[str] | None = None) -> Program:
    """The maintenance program of a program, in the paper's order. Cost: linear in what it returns.

    `asserted` are the derived relations that may hold explicit facts too, and so have a link to their `_ext`; None is all.
    Without the link, an explicit fact that is overdeleted does not come back.
    """
    rewriting = Rewriting(States(program, asserted))
    return Program(tuple(rewriting.program()), (), program.prefixes)


class Rewriting:
    """The five phases, by rule and by relation; with a rule comes its stratum."""

    def __init__(self, states: States) -> None:
        self.states = states

    def program(self, without: Collection[str] = ()) -> Iterator[Rule]:
        """All rules in the paper's order; of the relations `without`, none that say why a fact may go or come."""
        rules = [(stratum, rule) for stratum, rule in self.states.rules if rule.head.relation not in without]
        names = [name for name in self.states.derived if name not in without]
        for step, phase in (
            (self.step_deletions, self.deletions),
            (None, self.rederivations),
            (self.step_insertions, self.insertions),
        ):
            if step:
                yield from (rule for name in names for rule in step(name))
            yield from (made for stratum, rule in rules for made in phase(rule, stratum))
        yield from (rule for name in names for rule in self.new_states(name))
        yield from (rule for name in names for rule in self.differentials(name))

    # -- by rule: the paper's dynamic maintenance rules ----------------------------------------------------------------

    def deletions(self, rule: Rule, stratum: int) -> Iterator[Rule]:
        """D_i: p^Del :- r_1, …, r_i^Del, …, r_n."""
        head = Atom(self.states.of(rule.head.relation, stratum).deleted, rule.head.terms)
        for number, place in enumerate(predicates(rule), 1):
            if not isinstance(rule.body[place], Atom) or not _built_in(rule.body[place]):
                yield Rule(head, self._body(rule, stratum, place, old=True), f"{rule.name} D{number}")

    def rederivations(self, rule: Rule, stratum: int) -> Iterator[Rule]:
        """R: p^Red :- p^Del, r_1^New, …, r_n^New."""
        terms = rule.head.terms
        for state in self.states.since(rule.head.relation, stratum):
            body = (Atom(state.deleted, terms), *self._body(rule, stratum, None, old=False))
            yield Rule(Atom(state.rederived, terms), body, f"{rule.name} R")

    def insertions(self, rule: Rule, stratum: int) -> Iterator[Rule]:
        """I_i: p^Ins :- r_1^New, …, r_i^Ins, …, r_n^New."""
        head = Atom(self.states.of(rule.head.relation, stratum).inserted, rule.head.terms)
        for number, place in enumerate(predicates(rule), 1):
            if isinstance(rule.body[place], Atom) or not _built_in(rule.body[place]):
                yield Rule(head, self._body(rule, stratum, place, old=False), f"{rule.name} I{number}")

    # -- by relation: the static ones ----------------------------------------------------------------------------------

    def step_deletions(self, name: str) -> Iterator[Rule]:
        """What went from a state goes from the next."""
        for before, after in self.states.steps(name):
            yield self.rule(name, after, "D", after.deleted, before.minus)

    def step_insertions(self, name: str) -> Iterator[Rule]:
        """What came into a state comes into the next."""
        for before, after in self.states.steps(name):
            yield self.rule(name, after, "I", after.inserted, before.plus)

    def new_states(self, name: str) -> Iterator[Rule]:
        """N_1: p^New :- p, ¬p^Del.  N_2: p^New :- p^Red.  N_3: p^New :- p^Ins."""
        for state in self.states.all(name):
            yield self.rule(name, state, "N1", state.new, state.old, state.deleted)
            yield self.rule(name, state, "N2", state.new, state.rederived)
            yield self.rule(name, state, "N3", state.new, state.inserted)

    def differentials(self, name: str) -> Iterator[Rule]:
        """P: p^Plus :- p^Ins, ¬p.  M: p^Minus :- p^Del, ¬p^Ins, ¬p^Red."""
        for state in self.states.all(name):
            yield self.rule(name, state, "P", state.plus, state.inserted, state.old)
            yield self.rule(name, state, "M", state.minus, state.deleted, state.inserted, state.rederived)

    def rule(self, name: str, state: State, end: str, head: str, positive: str, *negated: str) -> Rule:
        """head :- positive, ¬negated, …: a rule about whole states of a relation."""
        terms = self.states.variables(name)
        body: tuple[BodyItem, ...] = (Atom(positive, terms), *(_not(relation, terms) for relation in negated))
        return Rule(Atom(head, terms), body, f"{self.states.label(state)} {end}")

    def _body(self, rule: Rule, stratum: int, changed: int | None, old: bool) -> tuple[BodyItem, ...]:
        """The body over the old or the new state, one of its predicates over what has changed."""
        out: list[BodyItem] = []
        for place, item in enumerate(rule.body):
            if isinstance(item, Comparison):
                out.append(item)
            elif isinstance(item, Atom):
                state = self.states.of(item.relation, stratum)
                change = state.deleted if old else state.inserted
                out.append(Atom(change if place == changed else state.old if old else state.new, item.terms))
            else:
                state = self.states.of(item.atom.relation, stratum - 1)
                if place == changed:
                    out.append(Atom(state.plus if old else state.minus, item.atom.terms))
                else:
                    out.append(_not(state.old if old else state.new, item.atom.terms))
        return tuple(out)


def _built_in(item: BodyItem) -> bool:
    atom = item.atom if isinstance(item, Negation) else item
    return isinstance(atom, Atom) and atom.relation in BUILTIN_RELATIONS


def _not(relation: str, terms: tuple[Term, ...]) -> Negation:
    return Negation(Atom(relation, terms))
