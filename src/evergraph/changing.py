"""Everything that changes a graph: facts and rules that come and go, in one atomic update."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evergraph import inputs
from evergraph.becoming import Becoming, Columns
from evergraph.engines.base import Which
from evergraph.engines.changes import Changed, Held, changes
from evergraph.engines.equality.names import Names
from evergraph.engines.equality.stored import normal_graph
from evergraph.errors import UserError
from evergraph.formats import Progress, Rejects
from evergraph.maintain.choose import ALGORITHMS, maintain
from evergraph.maintain.declarative import Maintenance
from evergraph.maintain.maintenance_rules import MaintenanceRules, Operator
from evergraph.maintain.outcome import Outcome, Phase
from evergraph.maintain.rule_changes import maintain_rules
from evergraph.plan.rulebook import Member
from evergraph.plan.transition import Change, change_rules
from evergraph.report import Report, make_report
from evergraph.rules.equality import Equality
from evergraph.rules.inputs import read_rules
from evergraph.rules.model import ONTOLOGY, Atom, Outside, Program, Rule
from evergraph.rules.shape import shape_of
from evergraph.store import Info, Snapshot
from evergraph.store.dictionary import FileDictionary
from evergraph.store.layout import SHARDS
from evergraph.store.log import writes
from evergraph.store.names import NameRows, read_names
from evergraph.store.read import read_facts
from evergraph.store.rules import RuleRows
from evergraph.store.submitted import drop_left
from evergraph.terms import Ids
from evergraph.values import Builtins, builtins_of

if TYPE_CHECKING:
    from evergraph.pipeline.encode import Encoded


@dataclass(frozen=True, slots=True)
class Read:
    """Facts to insert and to delete, as they were read."""

    insert: Columns
    delete: Columns
    staged: Encoded | None = None
    """Facts to insert that stay in files."""
    stages: tuple[Phase, ...] = ()

    @property
    def arities(self) -> dict[str, int]:
        return {name: len(columns) for both in (self.delete, self.insert) for name, columns in both.items()}


@dataclass(frozen=True, slots=True)
class Asked:
    """What a caller of `update` wants."""

    insert: Any
    delete: Any
    insert_rules: Any
    delete_rules: Any
    ontology: Any
    algorithm: str
    dry_run: bool
    rejects: Rejects | None
    progress: Progress | None
    operation: str
    read: Read | None = None
    """The facts, if they have been read already."""
    ticket: str | None = None
    """The ticket of an update that was submitted."""


@dataclass(frozen=True, slots=True)
class _Rules:
    """Rules that come and go, and the facts that stood among them."""

    change: Change | None
    inserted: tuple[Member, ...] = ()
    deleted: tuple[Member, ...] = ()
    insert: tuple[Atom, ...] = ()
    delete: tuple[Atom, ...] = ()
    assertions: frozenset[Atom] = frozenset()
    """What the ontology asserts after the update."""
    outside: tuple[Outside, ...] = ()
    """What ontologies say that rules cannot."""


class Changing(Becoming):
    """How a graph changes. An exception leaves it, and its store, as it was."""

    _first: Program
    """Facts that stand among the rules: part of the first update."""
    _old: bool

    def update(
        self,
        *,
        insert: Any = (),
        delete: Any = (),
        insert_rules: Any = None,
        delete_rules: Any = None,
        ontology: Any = None,
        algorithm: str = "auto",
        dry_run: bool = False,
        rejects: Rejects | None = None,
        progress: Progress | None = None,
        operation: str = "update",
    ) -> Report:
        """Delete and insert facts and rules and keep the materialisation true: one atomic change, one version of a store.

        Deletions come first: a fact or rule that is deleted and inserted stays. Facts are a path or list of paths, N-Triples or
        Datalog text, an iterable of triples (rdflib or pyoxigraph terms, or N-Triples strings), an rdflib Graph, or a pandas,
        Arrow or Spark frame with columns `subject, predicate, object`. Blank nodes of facts to delete are those of the graph.
        Rules are a `Program`, `.dlog` text, the path or paths of rule files, the name of a rule set, or an iterable of `Rule`;
        facts that stand among them come and go with them. A rule is the same whatever its variables and it itself are called.
        `ontology` is the path or paths of an ontology, which becomes that of the graph: rules come and go by the difference to
        the one before. `algorithm` is one of `ALGORITHMS`; `auto` picks. With `dry_run` the report is all there is of it. With
        `rejects`, bad lines of files are kept there and skipped; `progress` is told how far the work is; `operation` is what
        the store's history calls the change. An exception leaves the graph as it was.
        Cost: the rule instances that use a fact, or are of a rule, that comes or goes.
        """
        check_algorithm(algorithm)
        asked = Asked(insert, delete, insert_rules, delete_rules, ontology, algorithm, dry_run, rejects, progress, operation)
        with self._writing():
            return self._update(asked)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """The graph as its store has it last, which nobody else changes meanwhile."""
        if self._store is None:
            yield
            return
        self._check_latest()
        with self._store.writing():
            self._catch_up(self._store)
            with writes(self._store.path):
                yield

    def _check_latest(self) -> None:
        if self._old:
            assert self._snapshot is not None
            raise UserError(
                "EG407", f"version {self._snapshot.version} is not the last one", "open the store without a version"
            )

    # -- one update --------------------------------------------------------------------------------------------------

    def _update(self, asked: Asked) -> Report:
        self._prepare()
        start = time.perf_counter()
        rules = self._read_rules(asked)
        before = dict(self.__dict__)
        try:
            if rules.change is not None and self._pristine:
                self._begin_with(rules.change.after())
                rules = replace(rules, change=None)
            self._engine.begin()
            report = self._change(asked, rules, start)
        except BaseException:
            self._engine.rollback()
            self.__dict__.update(before)
            self._stale = self._pipeline is not None
            raise
        if asked.dry_run:
            self.__dict__.update(before)
            self._stale = self._pipeline is not None
        return report

    def _begin_with(self, members: Sequence[Member]) -> None:
        """Other rules before there is anything to maintain."""
        program = Program(tuple(member.rule for member in members), (), self._book.compiler.prefixes)
        self._setup(program, self._dictionary, self._engine_choice, numbers=[member.number for member in members])

    def _read_rules(self, asked: Asked) -> _Rules:
        """The rules that are to come and to go, checked against those in force."""
        came, gone = read_rules(asked.insert_rules), read_rules(asked.delete_rules)
        insert, delete = list(came.rules), list(gone.rules)
        facts, less, said = dict.fromkeys(came.facts), dict.fromkeys(gone.facts), self._assertions
        outside = list(came.outside)
        if asked.ontology is not None:
            from evergraph.rules.owl import compile_ontology

            program = compile_ontology(_listed(asked.ontology))
            outside += program.outside
            said = frozenset(program.facts)
            known = {shape_of(rule) for rule in program.rules}
            delete += [m.rule for m in self._book.members if m.rule.origin == ONTOLOGY and shape_of(m.rule) not in known]
            insert += program.rules
            facts |= dict.fromkeys(fact for fact in program.facts if fact not in self._assertions)
            less |= dict.fromkeys(self._assertions - said)
        self._check_arities(Program(tuple(insert), tuple(facts)).relations)
        change = change_rules(self._book, insert, delete)
        inserted, deleted = (change.inserted, change.deleted) if change is not None else ((), ())
        return _Rules(change, inserted, deleted, tuple(facts), tuple(less), said, tuple(outside))

    def _change(self, asked: Asked, rules: _Rules, start: float) -> Report:
        read = asked.read or self._read_all(asked, rules)
        if (book := self._book.meeting(read.arities)) is not self._book:
            if book.plan is not self._plan:
                self._engine.adopt(book.plan)
            self._book, self._plan, self._maintenance = book, book.plan, None
            if rules.change is not None:
                rules = self._read_rules(asked)
        builtins = self._builtins | builtins_of(self._values, [member.rule for member in rules.inserted])
        seen = len(self._dictionary)
        facts = {**read.insert, **self._new_literals(builtins)}
        spent = time.perf_counter() - start - sum(stage.seconds for stage in read.stages)
        phase = Phase("read", spent, sum(len(c[0]) for both in (read.delete, facts) for c in both.values() if c))
        if read.staged is not None and self._pipeline is not None:
            self._pipeline.engine.stage(read.staged)
        outcome = self._maintain(asked, rules.change, facts, read.delete)
        outcome.phases[:0] = [*read.stages, phase]
        outcome.tickets = [asked.ticket] if asked.ticket is not None else []
        with outcome.phase("commit"):
            if asked.progress is not None:
                asked.progress("commit", 0.0)
            storing = self._store is not None and not asked.dry_run
            write = self._to_write(asked.operation, outcome, rules) if storing else None
            change = self._engine.commit()
            version = write() if write is not None else None
        if asked.dry_run:
            self._engine.rollback()
        else:
            self._settle(rules, read.arities, builtins, seen)
        came, went = (tuple(member.rule for member in members) for members in (rules.inserted, rules.deleted))
        names = (came, went)
        return make_report(outcome, self._engine.name, change, names, rules.outside, self._difference, self._named, version)

    def _read_all(self, asked: Asked, rules: _Rules) -> Read:
        """The facts of an update, and those that stand among its rules. A fact that is inserted is not deleted."""
        delete = inputs.read(asked.delete, self._dictionary, asked.rejects, asked.progress, own=True)
        inputs.add(delete, inputs.read([*rules.delete], self._dictionary, own=True))
        facts, staged, stages = self._read(asked.insert, asked.rejects, asked.progress)
        inputs.add(facts, inputs.read([*rules.insert], self._dictionary, own=True))
        for found in (delete, facts):
            self._check_arities({name: len(columns) for name, columns in found.items()})
        for name in delete.keys() & facts.keys():
            if len(delete[name]) != len(facts[name]):
                raise inputs.arity_clash(name, len(delete[name]), len(facts[name]))
        return Read(facts, inputs.less(delete, facts), staged, tuple(stages))

    def _new_literals(self, builtins: Builtins) -> Columns:
        """What built-in relations say of terms that have come since the last update."""
        found = {name: list(rows(self._literals_seen if name in self._builtins else 0)) for name, rows in builtins.items()}
        return {name: columns for name, columns in found.items() if len(columns[0])}

    def _maintain(self, asked: Asked, change: Change | None, facts: Columns, delete: Columns) -> Outcome:
        if change is None:
            return maintain(
                self._engine,
                self._plan,
                facts,
                delete,
                asked.algorithm,
                self._maintenance_program,
                self._experience,
                asked.progress,
            )

        def maintenance() -> Maintenance:
            before, after = (self._meant(rules) for rules in (self.rules.rules, [member.rule for member in change.after()]))
            return Maintenance.of(after, self._dictionary, self._values, before)

        algorithm, experience, plan = asked.algorithm, self._experience, self._plan
        return maintain_rules(self._engine, change, facts, delete, algorithm, maintenance, experience, plan, asked.progress)

    def _settle(self, rules: _Rules, arities: dict[str, int], builtins: Builtins, seen: int) -> None:
        """What is known after an update that was made."""
        if rules.change is not None:
            rules.change.settle()
            if self._maintenance_rules is not None:
                self._maintenance_rules.change([member.rule for member in rules.deleted], Operator.DELETE)
                self._maintenance_rules.change([member.rule for member in rules.inserted], Operator.INSERT)
            self._book, self._plan = rules.change.book, rules.change.anew.plan
            self._maintenance = None
        self._arities = Program(tuple(m.rule for m in rules.inserted)).relations | arities | self._arities
        self._assertions, self._builtins, self._literals_seen = rules.assertions, builtins, seen
        self._first, self._pristine = Program(), False
        self._publish()
        if self._store is not None:
            drop_left(self._store.path)

    def _maintenance_program(self) -> Maintenance:
        """The rules of the `declarative` algorithm, made when it is first asked for and kept from then on."""
        if self._maintenance is None and self._equality != Equality.OFF:
            self._maintenance = Maintenance.of(self._meant(self.rules.rules), self._dictionary, self._values)
        if self._maintenance is not None:
            return self._maintenance
        if self._maintenance_rules is None:
            self._maintenance_rules = MaintenanceRules(self.rules)
        self._maintenance = Maintenance.kept(self._maintenance_rules, self._dictionary, self._values)
        return self._maintenance

    def _meant(self, rules: Sequence[Rule]) -> Program:
        """Rules, and those that equality stands for."""
        return Program((*rules, *self._book.compiler.axioms(rules)))

    def _read(
        self, insert: Any, rejects: Rejects | None, progress: Progress | None
    ) -> tuple[dict[str, list[Ids]], Encoded | None, list[Phase]]:
        """The facts to insert. On Spark with a store, files are read by the workers and stay in files."""
        facts = inputs.read([*self._first.facts], self._dictionary)
        if self._pipeline is None:
            inputs.add(facts, inputs.read(insert, self._dictionary, rejects, progress))
            return facts, None, []
        paths, rest = inputs.files_of(insert)
        inputs.add(facts, inputs.read(rest, self._dictionary, rejects, progress))
        if not paths:
            return facts, None, []
        assert isinstance(self._dictionary, FileDictionary)
        return facts, *self._pipeline.read(paths, self._dictionary, rejects, progress)

    def _same_rules(self) -> _Rules:
        """No change of rules."""
        return _Rules(None, assertions=self._assertions)

    def _to_write(self, operation: str, outcome: Outcome, rules: _Rules) -> Callable[[], int]:
        """What commits to the store what the engine has done, if that is anything, and returns the store's version.

        To be called when the engine has committed: that may fail, and what the store has stays. Spark's files are written here.
        """
        assert self._store is not None
        base = self._snapshot
        size = len(self._book) + (len(rules.inserted) - len(rules.deleted) if rules.change is not None else 0)
        info = self._info(operation, self._said(outcome, rules), size)
        changed_rules = self._rule_rows(base is None, rules)
        if self._pipeline is not None:
            assert isinstance(self._dictionary, FileDictionary)
            names = NameRows.between(*rewriting.name_changes()) if (rewriting := self._rewriting) else NameRows()
            self._snapshot = snapshot = self._pipeline.write(base, info, self._dictionary, changed_rules, names)
            return lambda: snapshot.version
        changed, names = self._stored_changes(base)
        anew, counts = self._local.count_changes()
        something = changed or changed_rules or names or anew or info.to_keep
        if base is not None and not something and info.counts == base.info.counts:
            return lambda: base.version
        terms = self._dictionary.since(base.info.terms if base is not None else 0)
        store = self._store

        def write() -> int:
            self._snapshot = store.commit(base, info, changed, terms, changed_rules, counts, anew, names)
            return self._snapshot.version

        return write

    def _stored_changes(self, base: Snapshot | None) -> tuple[list[Changed], NameRows]:
        """What the update has done to the stored facts and names. Cost: linear in the graph if the engine holds every fact."""
        if (rewriting := self._rewriting) is not None:
            return list(rewriting.changes()), NameRows.between(*rewriting.name_changes())
        if self._equality != Equality.REWRITE:
            return list(self._local.changes()), NameRows()
        facts, names = self._stored()
        before = read_facts(base) if base is not None else Held()
        return list(changes(before, facts)), NameRows.between(read_names(base), names)

    def _stored(self) -> tuple[Held, Names]:
        """All that a store holds of the facts and names of this graph."""
        if (rewriting := self._rewriting) is not None:
            return rewriting.stored(), rewriting.names
        facts = Held(self._engine.relations(Which.ALL), self._engine.relations(Which.EXPLICIT))
        if self._equality != Equality.REWRITE or self._plan.same is None:
            return facts, read_names(None)
        return normal_graph(facts, self._plan.same)

    def _said(self, outcome: Outcome, rules: _Rules) -> dict[str, Any]:
        """What the store's history tells of an update."""
        said: dict[str, Any] = {"algorithm": outcome.algorithm, "derivations": outcome.derivations}
        if outcome.tickets:
            said["tickets"] = outcome.tickets
        if rules.inserted or rules.deleted:
            said |= {"rules_inserted": len(rules.inserted), "rules_deleted": len(rules.deleted)}
        return said

    def _rule_rows(self, first: bool, rules: _Rules) -> RuleRows:
        """What changes in the store's table of rules."""
        come = rules.assertions if first else rules.assertions - self._assertions
        if not first:
            return RuleRows(rules.inserted, tuple(come), rules.deleted, tuple(self._assertions - rules.assertions))
        members = rules.change.after() if rules.change is not None else self._book.members
        return RuleRows(tuple(members), tuple(come))

    def _info(self, operation: str, report: dict[str, Any], rules: int) -> Info:
        """What a version says of itself."""
        shards = self._snapshot.info.shards if self._snapshot is not None else SHARDS
        explicit, derived = self._engine.counts(Which.EXPLICIT), self._engine.counts(Which.DERIVED)
        counts = self._engine.counted_by
        terms, scopes = len(self._dictionary), self._dictionary.scopes
        said = (report, counts, self.equality)
        return Info(operation, shards, terms, scopes, explicit, derived, rules, {}, *said)

    def _check_arities(self, found: dict[str, int]) -> None:
        for name, arity in found.items():
            expected = self._arities.get(name, arity)
            if expected != arity:
                raise inputs.arity_clash(name, arity, expected)


def check_algorithm(name: str) -> None:
    if name not in ALGORITHMS:
        raise UserError("EG302", f"no algorithm is called {name!r}", f"use one of {', '.join(ALGORITHMS)}")


def _listed(paths: Any) -> list[Any]:
    return [paths] if isinstance(paths, str | Path) else list(paths)
