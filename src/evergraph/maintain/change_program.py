"""The maintenance program of a change of rules: what comes and what goes when relations are defined anew.

What it does: given the rules before and after, it makes a program like the maintenance program. Relations whose rules have
changed are derived once more, into temporary relations, by the new rules; what differs from what was there comes or goes. All
others follow by their maintenance rules. Facts may change in the same update.

Paper: Volz, Staab, Motik: Incremental Maintenance of Materialized Ontologies. ODBASE 2003, §4.2.
Symbols: p^Temp → `State.temporary`, printed as `p_Temp`. The others stand in `maintenance_program`. Rule names end in `T` where
    a rule derives p^Temp, and in `TD` and `TI` for the two rules that compare it with p.
Invariant: given are `p`, closed under the old rules, and the explicit facts as in `maintenance_program`. p^Temp is what p is
    afterwards; where there is one, p^Del and p^Ins are net changes, and p^New equals p^Temp.
Departures: p^Temp reads explicit facts (`p_ext_New`) and other relations (`r_New`) as they are afterwards, as the paper allows:
    "the new facts can already be taken into account when p^Temp is computed". It prints hasChild, which does not change.
    The paper substitutes self-references of p. Here every relation that depends on p and that p depends on, under the new
    rules, is derived anew with p and read as Temp: p^Temp would read r^New, which needs p^Del, which needs p^Temp, negated.
    Relations that are derived anew have no D_i, R and I_i, and no p^Red: Temp already says all that these could add.
    Where several strata derive triples, `t1_Temp` goes into `t2_Temp`, and so on. Strata are those of the new program. The old
    one may have had others: a relation that keeps its rules was closed under them either way, and that is all D_i asks for.
    A relation that lost its last rule is derived anew from its explicit facts alone.
Cost and traps: that of the maintenance program, and deriving anew all relations with changed rules. With triples in one
    relation that is the whole materialisation, if one rule about triples changes: §4.3, `evergraph.rules.split`.
Example: Table 1 less and with its third rule.
    >>> two = "d(?x, ?y) :- c(?x, ?y) . d(?x, ?y) :- d(?x, ?z), d(?z, ?y) ."
    >>> program = rewrite_change(Program.parse(two), Program.parse(two + "d(?x, ?y) :- d(?y, ?x) ."))
    >>> print(Program(tuple(Rule(rule.head, rule.body) for rule in program.rules)), end="")
    d_Temp(?x, ?y) :- d_ext_New(?x, ?y) .
    d_Temp(?x, ?y) :- c_New(?x, ?y) .
    d_Temp(?x, ?y) :- d_Temp(?x, ?z), d_Temp(?z, ?y) .
    d_Temp(?x, ?y) :- d_Temp(?y, ?x) .
    d_Del(?x, ?y) :- d(?x, ?y), NOT d_Temp(?x, ?y) .
    d_Ins(?x, ?y) :- d_Temp(?x, ?y), NOT d(?x, ?y) .
    d_New(?x, ?y) :- d(?x, ?y), NOT d_Del(?x, ?y) .
    d_New(?x, ?y) :- d_Ins(?x, ?y) .
    d_Plus(?x, ?y) :- d_Ins(?x, ?y), NOT d(?x, ?y) .
    d_Minus(?x, ?y) :- d_Del(?x, ?y), NOT d_Ins(?x, ?y) .
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from evergraph.errors import UserError
from evergraph.maintain.maintenance_program import Rewriting
from evergraph.maintain.states import State, States
from evergraph.rules.model import Atom, BodyItem, Comparison, Negation, Program, Rule
from evergraph.rules.shape import shape_of
from evergraph.rules.stratify import strongly_connected


def rewrite_change(before: Program, after: Program, asserted: Collection[str] | None = None) -> Program:
    """The maintenance program of the change from one program to another. Cost: linear in what it returns.

    If they have the same rules, it is the maintenance program of both. `asserted` is that of `rewrite`.
    """
    return RuleChange(before, after, asserted).program()


class RuleChange:
    """What is derived anew, and the program that does it."""

    def __init__(self, before: Program, after: Program, asserted: Collection[str] | None = None) -> None:
        old, new = ({shape_of(rule): rule for rule in program.rules} for program in (before, after))
        changed = [rule for key, rule in (old | new).items() if (key in old) != (key in new)]
        _check_arities(before, after)
        kept = {rule.head.relation for rule in after.rules}
        lost = {rule.head.relation: len(rule.head.terms) for rule in changed if rule.head.relation not in kept}
        self.states = States(after, asserted, lost)
        self.anew = _together(self.states, {rule.head.relation for rule in changed})
        """Relations that are derived anew."""
        self._prefixes = {**before.prefixes, **after.prefixes}

    def program(self) -> Program:
        """Temporary relations, what they say comes and goes, and the maintenance rules of all other relations."""
        rewriting = Rewriting(self.states)
        anew = [name for name in self.states.derived if name in self.anew]
        rules = [rule for name in anew for rule in self._temporary(rewriting, name)]
        rules += [rule for name in anew for rule in self._compared(rewriting, name)]
        return Program((*rules, *rewriting.program(without=self.anew)), (), self._prefixes)

    def _temporary(self, rewriting: Rewriting, name: str) -> Iterator[Rule]:
        """p^Temp :- r_1^Temp or r_1^New, …"""
        for before, after in self.states.steps(name):
            yield rewriting.rule(name, after, "T", after.temporary, before.temporary)
        for stratum, rule in self.states.rules:
            if rule.head.relation == name:
                head = Atom(self.states.of(name, stratum).temporary, rule.head.terms)
                yield Rule(head, tuple(self._body(rule, stratum)), f"{rule.name} T")

    def _body(self, rule: Rule, stratum: int) -> Iterator[BodyItem]:
        for item in rule.body:
            if isinstance(item, Comparison):
                yield item
            elif isinstance(item, Negation):
                state = self.states.of(item.atom.relation, stratum - 1)
                yield Negation(Atom(self._afterwards(item.atom.relation, state), item.atom.terms))
            else:
                yield Atom(self._afterwards(item.relation, self.states.of(item.relation, stratum)), item.terms)

    def _afterwards(self, name: str, state: State) -> str:
        return state.temporary if name in self.anew else state.new

    def _compared(self, rewriting: Rewriting, name: str) -> Iterator[Rule]:
        """p^Del :- p, ¬p^Temp.  p^Ins :- p^Temp, ¬p.  And N_1, N_3, P and M without p^Red."""
        for state in self.states.all(name):
            yield rewriting.rule(name, state, "TD", state.deleted, state.old, state.temporary)
            yield rewriting.rule(name, state, "TI", state.inserted, state.temporary, state.old)
            yield rewriting.rule(name, state, "N1", state.new, state.old, state.deleted)
            yield rewriting.rule(name, state, "N3", state.new, state.inserted)
            yield rewriting.rule(name, state, "P", state.plus, state.inserted, state.old)
            yield rewriting.rule(name, state, "M", state.minus, state.deleted, state.inserted)


def _together(states: States, changed: set[str]) -> frozenset[str]:
    """Relations with changed rules, and those that depend on one and that it depends on.

    All states of a relation are among them or none, since each temporary one starts with the one before.
    """
    edges: dict[State, list[State]] = {}
    names = {state: name for name in states.derived for state in states.all(name)}
    for name in states.derived:
        for before, after in states.steps(name):
            edges.setdefault(after, []).append(before)
    for stratum, rule in states.rules:
        edges.setdefault(states.of(rule.head.relation, stratum), []).extend(states.read(rule, stratum))
    components = [{names[state] for state in found if state in names} for found in strongly_connected(edges)]
    anew = set(changed)
    while more := {name for found in components if found & anew for name in found} - anew:
        anew |= more
    return frozenset(anew)


def _check_arities(before: Program, after: Program) -> None:
    old = before.relations
    for name, arity in after.relations.items():
        if old.get(name, arity) != arity:
            raise UserError(
                "EG004",
                f"{name} has {arity} arguments in the new rules and {old[name]} in the old ones",
                "give a relation the same number of arguments everywhere",
            )
