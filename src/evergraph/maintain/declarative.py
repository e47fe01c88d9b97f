"""Deletion by a maintenance program: DRed written as rules, run by an ordinary engine.

What it does: the rules are rewritten into rules about what comes and goes (`maintenance_program`), which are kept while rules
change (`maintenance_rules`); an update that changes them has a program of its own (`change_program`). An update gives a fresh
engine what was materialised and which explicit facts come and go, and lets it close these rules. What they say came or went
then comes into the materialisation or goes from it.

Paper: Volz, Staab, Motik: Incremental Maintenance of Materialized Ontologies. ODBASE 2003, §3.4 (evaluation) over §3.2, §4.2.
Symbols: p → the old materialisation, given as facts, since "the initial rules defining the predicates are not considered";
    p_ext^Del, p_ext^Ins, p_ext^New → `_given`; p^Plus, p^Minus → `_net`. The others stand in `maintenance_program`.
Invariant: before and after, the materialisation is closed under the rules and holds the explicit facts; before a change of
    rules, under the old ones, while the engine has the new ones already. Until the fresh engine is done, nothing has changed.
Departures: those of the rewriting. A fact that is explicit no longer and still follows stays as derived. An empty
    materialisation has no old state: it is made by the rules themselves.
Cost and traps: the whole materialisation, whatever changes: it is handed over, and N_1 copies it; §3.4 says so of axioms over
    one relation of triples. It may take longer than recomputation. Here to be read and compared: `dred` is the same in steps.
Example: `p(2, 3)` ceases to be explicit; `p(1, 3)` followed from it, and is explicit too.
    >>> from evergraph import KnowledgeGraph, Program
    >>> from evergraph.maintain.maintenance_program import rewrite
    >>> program = Program.parse("p(?x, ?z) :- p(?x, ?y), p(?y, ?z) .")
    >>> kg = KnowledgeGraph(rewrite(program))
    >>> report = kg.update(insert="p(1, 2) . p(2, 3) . p(1, 3) . p_ext_Del(2, 3) . p_ext_New(1, 2) . p_ext_New(1, 3) .")
    >>> {name: sorted((int(x), int(y)) for x, y in kg.relation(name)) for name in ("p_Del", "p_Red", "p_New", "p_Minus")}
    {'p_Del': [(1, 3), (2, 3)], 'p_Red': [(1, 3)], 'p_New': [(1, 2), (1, 3)], 'p_Minus': [(2, 3)]}
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from evergraph import inputs
from evergraph.engines.base import Engine, Facts, Which, together
from evergraph.formats import Progress
from evergraph.maintain.change_program import RuleChange
from evergraph.maintain.maintenance_rules import MaintenanceRules
from evergraph.maintain.outcome import Outcome
from evergraph.maintain.seminaive import insert as seminaive
from evergraph.maintain.states import States
from evergraph.plan.compile import Plan, compile_program
from evergraph.plan.model import is_parameter
from evergraph.rules.model import BUILTIN_RELATIONS, Program
from evergraph.terms import Dictionary, Ids

Columns = dict[str, list[Ids]]


@dataclass(frozen=True, slots=True)
class Maintenance:
    """A maintenance program, ready to run; made once for a program, and for each change of its rules."""

    states: States
    plan: Plan
    read: frozenset[str]
    """Relations that its rules read."""

    @staticmethod
    def of(program: Program, dictionary: Dictionary, values: Any = None, before: Program | None = None) -> Maintenance:
        """With `before`, that of the change from this program. Cost: linear in the maintenance program."""
        change = RuleChange(before or program, program)
        return Maintenance._made(change.states, change.program(), dictionary, values)

    @staticmethod
    def kept(rules: MaintenanceRules, dictionary: Dictionary, values: Any = None) -> Maintenance:
        """That of maintenance rules that Algorithm 1 keeps. Cost: linear in them."""
        rewritten = Program(tuple(sorted(rules.maintenance_rules, key=lambda rule: (rule.name, str(rule.head)))))
        return Maintenance._made(States(Program(rules.rules)), rewritten, dictionary, values)

    @staticmethod
    def _made(states: States, rewritten: Program, dictionary: Dictionary, values: Any) -> Maintenance:
        read = frozenset(atom.relation for rule in rewritten.rules for atom in (*rule.atoms, *rule.negations))
        return Maintenance(states, compile_program(rewritten, dictionary, values), read)


def declarative(
    engine: Engine,
    plan: Plan,
    maintenance: Maintenance,
    insert: Facts,
    delete: Facts,
    reason: str,
    progress: Progress | None = None,
    make_engine: Callable[[Plan], Engine] | None = None,
) -> Outcome:
    """Delete and insert explicit facts; the caller commits or rolls back.

    `make_engine` gives the engine for the rules; without it they run on one of the same kind, on Spark in the same session.
    """
    if not engine.counts(Which.ALL):
        engine.retract(delete)
        outcome = seminaive(engine, plan, insert, progress)
        outcome.reason, outcome.missed = "nothing is materialised yet", engine.missed()
        return outcome
    outcome = Outcome("declarative", reason)
    fresh = (make_engine or engine.fresh)(maintenance.plan)
    with outcome.phase("give") as phase:
        came, went, given = _given(engine, maintenance, _lists(insert), _lists(delete))
        phase.facts = _count(given)
    fresh.begin()
    closed = seminaive(fresh, maintenance.plan, given, progress)
    fresh.commit()
    outcome.phases += closed.phases
    outcome.rounds, outcome.derivations, outcome.examined = closed.rounds, closed.derivations, closed.examined
    with outcome.phase("replace") as phase:
        plus, minus = _net(fresh, maintenance, came, went)
        engine.retract(delete)
        engine.insert(insert)
        engine.replace(plus, minus)
        phase.facts = _count(plus) + _count(minus)
    outcome.missed = engine.missed()
    return outcome


def _given(engine: Engine, maintenance: Maintenance, insert: Columns, delete: Columns) -> tuple[Columns, Columns, Columns]:
    """§3.4: explicit facts that come and that go, and every relation that no maintenance rule derives, if one reads it.

    Rows of parameter relations, by which the engine has the rules, come and go beside the facts.
    """
    old, explicit = _facts(engine, maintenance, Which.ALL), _facts(engine, maintenance, Which.EXPLICIT)
    delete = inputs.less(delete, insert)
    came, went = inputs.less(insert, explicit), inputs.less(delete, inputs.less(delete, explicit))
    new = inputs.less(explicit, went)
    went |= {name: columns for name, columns in delete.items() if is_parameter(name)}
    inputs.add(new, came)
    given: Columns = {}
    for name in maintenance.states.arities:
        last = maintenance.states.last(name)
        state = last if last.given else maintenance.states.explicit(name)
        found = {last.old: old, state.deleted: went, state.inserted: came, state.new: new}
        given |= {relation: facts[name] for relation, facts in found.items() if name in facts and relation in maintenance.read}
    return came, went, given


def _facts(engine: Engine, maintenance: Maintenance, which: Which) -> Columns:
    """All facts, or the explicit ones, and the rows of built-in relations that rules read."""
    facts = together((key, relation.columns()) for key, relation in engine.relations(which).items() if len(relation))
    for name in BUILTIN_RELATIONS.keys() & maintenance.states.arities.keys():
        rows = engine.rows(name, Which.ALL)
        if rows is not None and len(rows[0]):
            facts[name] = rows
    return _lists(facts)


def _net(fresh: Engine, maintenance: Maintenance, came: Columns, went: Columns) -> tuple[Columns, Columns]:
    """What comes into the materialisation and what goes from it: of relations that no rule derives, what was explicit."""
    states = {name: maintenance.states.last(name) for name in maintenance.states.arities}
    derived = {name: state for name, state in states.items() if not state.given}
    plus, minus = ({name: facts[name] for name in facts if name not in derived} for facts in (came, went))
    counts = fresh.counts(Which.ALL)
    for name, state in derived.items():
        for relation, net in ((state.plus, plus), (state.minus, minus)):
            rows = fresh.rows(relation, Which.ALL) if relation in counts else None
            if rows is not None:
                net[name] = list(rows)
    return plus, minus


def _count(facts: Facts) -> int:
    return sum(len(columns[0]) for columns in facts.values() if columns)


def _lists(facts: Facts) -> Columns:
    return {name: list(columns) for name, columns in facts.items()}
