"""Maintaining maintenance rules: a rule that comes or goes takes its maintenance rules along.

What it does: keeps the maintenance rules of a program while rules are inserted and deleted, without rewriting the program from
scratch: a relation gets its rules with its first rule and loses them with its last, a rule has its own.

Paper: Volz, Staab, Motik: Incremental Maintenance of Materialized Ontologies. ODBASE 2003, §4.4, Algorithm 1.
Symbols: R → `rules`, MR → `maintenance_rules`, P → `predicates`, MP → `maintenance_predicates`, ruleMaintenance →
    `rule_maintenance`, rules(p) → `rules_of(p)`, head(r) → `rule.head.relation`, ∘ → `Operator`, staticMaintenanceRules →
    `_static`, dynamicMaintenanceRules → `_dynamic`.
Invariant: before and after `change`, MR is what `rewrite` gives for R, as a set, and but for the numbers that rules without a
    name are called by.
Departures: ∖ takes away the maintenance rules that ∪ has put down for a rule, and does not generate them again to do so. Static
    ones are put down for p and not for the rule that was the first to derive it, which need not be the last.
    The rule that links p to its explicit facts comes and goes with p, so its maintenance rules count as static; so do the
    rules that lead from one state of p to the next.
    In the paper the maintenance rules of r depend on r alone. Here they also depend on what relations are called in them, which
    other rules may change: triples are derived in one more stratum (`t_Del`, now `t1_Del` and `t2_Del`); a negated relation is
    no longer given (`q_Ins`, now `q_Plus`); a relation takes a name that was free (`p_Del`, now `p__Del`). What is put down for
    such a rule or relation is replaced.
Cost and traps: strata and names are found anew, which is linear in the program; maintenance rules are made for what changed.
Example:
    >>> kept = MaintenanceRules(Program.parse("p(?x) :- q(?x) ."))
    >>> kept.change(Program.parse("p(?x) :- r(?x) . r(?x) :- q(?x) .").rules, Operator.INSERT)
    >>> sorted(kept.predicates), len(kept.maintenance_rules), len(kept.maintenance_predicates)
    (['p', 'r'], 25, 14)
    >>> kept.change(Program.parse("p(?x) :- q(?x) . p(?x) :- r(?x) .").rules, Operator.DELETE)
    >>> sorted(kept.predicates), len(kept.maintenance_rules), len(kept.maintenance_predicates)
    (['r'], 11, 7)
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from evergraph.maintain.maintenance_program import Rewriting
from evergraph.maintain.states import State, States
from evergraph.rules.model import Program, Rule
from evergraph.rules.shape import Identity, shape_of


class Operator(StrEnum):
    INSERT = "∪"
    DELETE = "∖"


class MaintenanceRules:
    """The paper's data structures, and `change`, which keeps them."""

    def __init__(self, program: Program | None = None) -> None:
        self.maintenance_rules: set[Rule] = set()
        self._rules: dict[Identity, Rule] = {}
        self._by_predicate: dict[str, set[Identity]] = {}
        self._made: dict[Identity | str, tuple[list[State], set[Rule]]] = {}
        """By rule and by predicate: the states that its maintenance rules name, and these rules."""
        self._numbered = 0
        if program is not None:
            self.change(program.rules, Operator.INSERT)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """In the order in which they came; a rule without a name has a number."""
        return tuple(self._rules.values())

    @property
    def predicates(self) -> frozenset[str]:
        return frozenset(self._by_predicate)

    @property
    def maintenance_predicates(self) -> frozenset[str]:
        """Cost: linear in the predicates."""
        return frozenset(name for p in self._by_predicate for state in self._made[p][0] for name in state.names)

    def rule_maintenance(self, rule: Rule) -> frozenset[Rule]:
        """The maintenance rules of a rule; none if it is not there."""
        key = shape_of(rule)
        return frozenset(self._made[key][1]) if key in self._made else frozenset()

    def rules_of(self, predicate: str) -> tuple[Rule, ...]:
        return tuple(rule for rule in self._rules.values() if rule.head.relation == predicate)

    def change(self, rules: Iterable[Rule], operator: Operator) -> None:
        """Algorithm 1; a rule that is there already, or is not there to be deleted, changes nothing.

        Cost: strata and names of the program, and the maintenance rules of what changed.
        """
        inserting = operator == Operator.INSERT
        changes = {key: rule for key, rule in ((shape_of(rule), rule) for rule in rules) if (key in self._rules) != inserting}
        for key, rule in changes.items():  # R = R ∘ Changes
            if inserting:
                self._rules[key] = self._named(rule)
            else:
                del self._rules[key]
        states = States(Program(self.rules))
        strata = {shape_of(rule): stratum for stratum, rule in states.rules}
        for key, rule in changes.items():
            p = rule.head.relation
            if inserting:
                if p not in self._by_predicate:  # the first rule of p
                    self._by_predicate[p] = set()
                    self._put(p, *self._static(states, p))
                self._by_predicate[p].add(key)
                self._put(key, *self._dynamic(states, self._rules[key], strata[key]))
            else:
                if self._by_predicate[p] == {key}:  # the last one
                    del self._by_predicate[p]
                    self._drop(p)
                else:
                    self._by_predicate[p].remove(key)
                self._drop(key)
        self._rename(states, strata)

    def _rename(self, states: States, strata: dict[Identity, int]) -> None:
        """Replace what names states that are called otherwise now."""
        for p in self._by_predicate:
            if self._made[p][0] != states.all(p):
                self._drop(p)
                self._put(p, *self._static(states, p))
        for key, rule in self._rules.items():
            if self._made[key][0] != _named_states(states, rule, strata[key]):
                self._drop(key)
                self._put(key, *self._dynamic(states, rule, strata[key]))

    def _static(self, states: States, p: str) -> tuple[list[State], set[Rule]]:
        """The rules for p^New, p^Plus and p^Minus, for explicit facts of p, and from one state of p to the next."""
        rewriting = Rewriting(states)
        found = {*rewriting.new_states(p), *rewriting.differentials(p)}
        found |= {*rewriting.step_deletions(p), *rewriting.step_insertions(p)}
        for stratum, link in states.links(p):
            found |= self._dynamic(states, link, stratum)[1]
        return states.all(p), found

    def _dynamic(self, states: States, rule: Rule, stratum: int) -> tuple[list[State], set[Rule]]:
        """The rules for p^Del, p^Red and p^Ins that come from one rule."""
        rewriting = Rewriting(states)
        phases = (rewriting.deletions, rewriting.rederivations, rewriting.insertions)
        return _named_states(states, rule, stratum), {made for phase in phases for made in phase(rule, stratum)}

    def _put(self, key: Identity | str, states: list[State], made: set[Rule]) -> None:
        self._made[key] = states, made
        self.maintenance_rules |= made

    def _drop(self, key: Identity | str) -> None:
        self.maintenance_rules -= self._made.pop(key)[1]

    def _named(self, rule: Rule) -> Rule:
        self._numbered += 1
        return Rule(rule.head, rule.body, rule.name or f"R{self._numbered}")


def _named_states(states: States, rule: Rule, stratum: int) -> list[State]:
    """All states that the maintenance rules of a rule name: of its body, and of its head from its stratum on."""
    return [*states.read(rule, stratum), *states.since(rule.head.relation, stratum)]
