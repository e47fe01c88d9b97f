"""`KnowledgeGraph`: facts, rules, and every consequence, kept true."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evergraph import inputs
from evergraph.engines.base import Engine, LocalEngine, Which, together
from evergraph.engines.changes import Held, changes
from evergraph.engines.memory import MemoryEngine
from evergraph.engines.reference import ReferenceEngine
from evergraph.errors import UserError
from evergraph.formats import Progress, Rejects
from evergraph.maintain.choose import ALGORITHMS, Experience, maintain
from evergraph.maintain.declarative import Maintenance
from evergraph.maintain.outcome import Outcome, Phase
from evergraph.maintain.seminaive import insert as insert_seminaive
from evergraph.maintain.verify import Differs, differences
from evergraph.plan.compile import Plan, compile_program
from evergraph.reading import Reading
from evergraph.report import Report, make_report
from evergraph.rules.model import BUILTIN_RELATIONS, TRIPLE, Program
from evergraph.store import Info, Snapshot, Store
from evergraph.store.counts import read_counts
from evergraph.store.dictionary import FileDictionary
from evergraph.store.layout import COUNTS, SHARDS
from evergraph.store.lock import Scratch
from evergraph.store.log import writes
from evergraph.store.read import read_facts, read_program, read_terms
from evergraph.terms import Dictionary, Ids
from evergraph.values import Values

if TYPE_CHECKING:
    from evergraph.pipeline.encode import Encoded
    from evergraph.pipeline.load import Pipeline

ENGINES = ("memory", "spark", "reference")


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a caller of `update` wants."""

    insert: Any
    delete: Any
    algorithm: str
    dry_run: bool
    rejects: Rejects | None
    progress: Progress | None
    operation: str


class KnowledgeGraph(Reading):
    """A materialised graph: explicit facts, and all that follows from them by the rules.

    >>> kg = KnowledgeGraph("rhodf")
    >>> report = kg.update(insert='''
    ...     <http://ex/Student> <http://www.w3.org/2000/01/rdf-schema#subClassOf> <http://ex/Person> .
    ...     <http://ex/ann> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://ex/Student> .''')
    >>> len(kg), report.inserted.derived
    (3, {'[]': 1})
    """

    def __init__(
        self, rules: str | Path | Program = "rdfs", *, engine: Any = "memory", store: str | Path | None = None
    ) -> None:
        """`rules` is a `Program`, the name of a rule set or a file; `engine` a name of `ENGINES` or a SparkSession.

        With `store`, a new folder, every update is committed there; `open` takes a store that exists.
        """
        self._store = Store(store) if store is not None else None
        if self._store is not None and self._store.exists:
            raise UserError("EG401", f"{store} is a store already", f"open it: KnowledgeGraph.open({str(store)!r})")
        self._snapshot: Snapshot | None = None
        self._old = self._stale = False
        program = rules if isinstance(rules, Program) else Program.load(rules)
        self._setup(program, FileDictionary() if store is not None and _is_spark(engine) else Dictionary(), engine)
        self._first = Program(facts=program.facts)
        """Facts that stand among the rules: part of the first update."""
        if self._store is None and (program.facts or any(not rule.atoms for rule in program.rules)):
            self.update()

    @classmethod
    def open(cls, path: str | Path, *, version: int | None = None, engine: Any = "memory") -> KnowledgeGraph:
        """The graph of a store: its last version, which updates move on, or an older one, which can only be read.

        Cost: linear in the store, about a second for five million facts.
        """
        self = cls.__new__(cls)
        self._store = Store(path)
        self._first = Program()
        self._old = version is not None and version != self._store.snapshot().version
        self._take(self._store.snapshot(version), engine)
        return self

    def _setup(self, program: Program, dictionary: Dictionary, engine: Any, shards: int = SHARDS) -> None:
        self._rules = program
        self._dictionary = dictionary
        self._values = Values(dictionary)
        self._plan = compile_program(program, dictionary, self._values)
        self._pipeline: Pipeline | None = None
        if self._store is not None and _is_spark(engine):
            self._pipeline = _make_pipeline(engine, self._plan, self._store, shards)
            self._engine: Engine = self._pipeline.engine
        else:
            self._engine = _make_engine(engine, self._plan)
        self._arities = {**program.relations, TRIPLE: 3}
        self._builtins = self._mentioned_builtins()
        self._literals_seen = 0
        self._prepared = True
        self._maintenance: Maintenance | None = None
        self._experience = Experience()
        if self._builtins:
            self._values.name_datatypes()

    def _take(self, snapshot: Snapshot, engine: Any) -> None:
        """Become what a snapshot holds; if it cannot be read, stay what this graph is."""
        before = dict(self.__dict__)
        try:
            self._read_snapshot(snapshot, engine)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _read_snapshot(self, snapshot: Snapshot, engine: Any) -> None:
        self._snapshot = snapshot
        program, info = read_program(snapshot), snapshot.info
        if _is_spark(engine):
            self._setup(program, FileDictionary.of(snapshot), engine, info.shards)
            assert self._pipeline is not None
            self._pipeline.open(snapshot)
            self._arities |= self._pipeline.engine.arities()
        else:
            self._setup(program, Dictionary(read_terms(snapshot), info.scopes), engine)
            facts = read_facts(snapshot)
            self._arities |= {key: relation.arity for key, relation in facts.all.items() if isinstance(key, str)}
            counted = info.counts == self._plan.fingerprint
            self._local.load(facts, read_counts(snapshot.files(COUNTS)) if counted else None)
        self._prepared = self._stale = False

    @property
    def _local(self) -> LocalEngine:
        assert isinstance(self._engine, MemoryEngine | ReferenceEngine)
        return self._engine

    @property
    def _engine_choice(self) -> Any:
        """What to give `open` for an engine like this one."""
        return self._pipeline.session if self._pipeline is not None else self._engine.name

    def save(self, path: str | Path) -> None:
        """Write the graph to a new store. The graph itself is not tied to it: `open` gives one that is."""
        store = Store(path)
        with store.writing():
            if store.exists:
                raise UserError("EG401", f"{path} is a store already", "name a new folder")
            facts = Held(self._engine.relations(Which.ALL), self._engine.relations(Which.EXPLICIT))
            info = self._info("save", {})
            counts = self._local.all_counts() if info.counts else []
            terms, rules = self._dictionary.since(0), Program(self._rules.rules)
            store.commit(None, info, changes(Held(), facts), terms, rules, counts)

    # -- changing ----------------------------------------------------------------------------------------------------

    def update(
        self,
        *,
        insert: Any = (),
        delete: Any = (),
        algorithm: str = "auto",
        dry_run: bool = False,
        rejects: Rejects | None = None,
        progress: Progress | None = None,
        operation: str = "update",
    ) -> Report:
        """Delete and insert facts and keep the materialisation true: one atomic change, one version of the store if any.

        Deletions come first: a fact that is deleted and inserted stays. Both take a path or list of paths, N-Triples or
        Datalog text, an iterable of triples (rdflib or pyoxigraph terms, or N-Triples strings), an rdflib Graph, or a pandas,
        Arrow or Spark frame with columns `subject, predicate, object`. An exception leaves the graph as it was. `algorithm`
        is one of `ALGORITHMS`; `auto` picks. Blank nodes of facts to delete are those of the graph. With `dry_run` the report
        is all there is of it. With `rejects`, bad lines of files are kept there and skipped; `progress` is told how far the
        work is; `operation` is what the store's history calls the change.
        Cost: the rule instances that use a fact that comes or goes.
        """
        if algorithm not in ALGORITHMS:
            raise UserError("EG302", f"no algorithm is called {algorithm!r}", f"use one of {', '.join(ALGORITHMS)}")
        asked = _Asked(insert, delete, algorithm, dry_run, rejects, progress, operation)
        if self._store is None:
            return self._update(asked)
        if self._old:
            assert self._snapshot is not None
            raise UserError(
                "EG407", f"version {self._snapshot.version} is not the last one", "open the store without a version"
            )
        with self._store.writing():
            self._catch_up(self._store)
            with writes(self._store.path):
                return self._update(asked)

    def _catch_up(self, store: Store) -> None:
        """Take over what other writers have committed since this graph was read."""
        if self._stale:
            self._start_again()
        if store.exists:
            last = store.snapshot()
            if self._snapshot is None:
                raise UserError("EG401", f"{store.path} is a store already", "open it with KnowledgeGraph.open")
            if last.version != self._snapshot.version:
                self._take(last, self._engine_choice)

    def _update(self, asked: _Asked) -> Report:
        try:
            self._prepare()
        except BaseException:
            self._stale = True
            raise
        self._engine.begin()
        try:
            return self._change(asked)
        except BaseException:
            self._engine.rollback()
            self._stale = self._pipeline is not None
            raise

    def _change(self, asked: _Asked) -> Report:
        start = time.perf_counter()
        delete = inputs.read(asked.delete, self._dictionary, asked.rejects, asked.progress, own=True)
        facts, staged, stages = self._read(asked.insert, asked.rejects, asked.progress)
        arities = {name: len(columns) for both in (delete, facts) for name, columns in both.items()}
        self._check_arities(arities)
        delete = inputs.less(delete, facts)
        seen = len(self._dictionary)
        for name, rows in self._builtins.items():
            columns = rows(self._literals_seen)
            if len(columns[0]):
                facts[name] = list(columns)
        spent = time.perf_counter() - start - sum(stage.seconds for stage in stages)
        read = Phase("read", spent, sum(len(c[0]) for both in (delete, facts) for c in both.values() if c))
        if staged is not None and self._pipeline is not None:
            self._pipeline.engine.stage(staged)
        outcome = maintain(
            self._engine,
            self._plan,
            facts,
            delete,
            asked.algorithm,
            self._maintenance_program,
            self._experience,
            asked.progress,
        )
        outcome.phases[:0] = [*stages, read]
        with outcome.phase("commit"):
            if asked.progress is not None:
                asked.progress("commit", 0.0)
            version = self._write(asked.operation, outcome) if self._store is not None and not asked.dry_run else None
            change = self._engine.commit()
        if asked.dry_run:
            self._engine.rollback()
            self._stale = self._pipeline is not None
        else:
            self._literals_seen = seen
            self._arities = arities | self._arities
            self._first = Program()
        return make_report(outcome, self._engine.name, change.inserted, change.deleted, self._difference, version)

    def _maintenance_program(self) -> Maintenance:
        """The rules of the `declarative` algorithm, made when it is first asked for."""
        if self._maintenance is None:
            self._maintenance = Maintenance.of(Program(self._rules.rules), self._dictionary, self._values)
        return self._maintenance

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

    def _start_again(self) -> None:
        """Become what the last version holds, or nothing."""
        if self._snapshot is not None:
            self._take(self._snapshot, self._engine_choice)
        else:
            self._setup(self._rules, FileDictionary(), self._engine_choice)
            self._stale = False

    def _prepare(self) -> None:
        """After a store was opened, what is not stored. Cost: linear in the terms if rules have built-ins, once."""
        if not self._prepared:
            self._engine.prepare({name: list(rows(0)) for name, rows in self._builtins.items()})
            self._literals_seen = len(self._dictionary)
            self._prepared = True

    def _write(self, operation: str, outcome: Outcome) -> int:
        """Commit what the engine has done, if that is anything; returns the store's version."""
        assert self._store is not None
        base = self._snapshot
        info = self._info(operation, {"algorithm": outcome.algorithm, "derivations": outcome.derivations})
        rules = Program(self._rules.rules) if base is None else None
        if self._pipeline is not None:
            assert isinstance(self._dictionary, FileDictionary)
            self._snapshot = self._pipeline.write(base, info, self._dictionary, rules)
            return self._snapshot.version
        changed = list(self._local.changes())
        anew, counts = self._local.count_changes()
        if base is not None and not changed and not anew and info.counts == base.info.counts:
            return base.version
        terms = self._dictionary.since(base.info.terms if base is not None else 0)
        self._snapshot = self._store.commit(base, info, changed, terms, rules, counts, anew)
        return self._snapshot.version

    def _info(self, operation: str, report: dict[str, Any]) -> Info:
        """What a version says of itself."""
        shards = self._snapshot.info.shards if self._snapshot is not None else SHARDS
        explicit, derived = self._engine.counts(Which.EXPLICIT), self._engine.counts(Which.DERIVED)
        counts = self._plan.fingerprint if self._engine.counted and isinstance(self._engine, MemoryEngine) else ""
        terms, scopes = len(self._dictionary), self._dictionary.scopes
        return Info(operation, shards, terms, scopes, explicit, derived, report=report, counts=counts)

    def verify(self, engine: Any = "memory") -> int:
        """Recompute everything from the explicit facts and compare; returns the number of facts, or raises `Differs`."""
        fresh = _make_engine(engine, self._plan)
        explicit = self._engine.relations(Which.EXPLICIT)
        facts = together((key, relation.columns()) for key, relation in explicit.items() if len(relation))
        facts |= {name: rows(0) for name, rows in self._builtins.items()}
        fresh.begin()
        insert_seminaive(fresh, self._plan, facts)
        fresh.commit()
        missing, extra = differences(fresh.relations(Which.ALL), self._engine.relations(Which.ALL))
        if missing or extra:
            raise Differs(self._atoms(missing), self._atoms(extra))
        return sum(self._engine.counts(Which.ALL).values())

    def _check_arities(self, found: dict[str, int]) -> None:
        for name, arity in found.items():
            expected = self._arities.get(name, arity)
            if expected != arity:
                raise inputs.arity_clash(name, arity, expected)

    def _mentioned_builtins(self) -> dict[str, Callable[[int], tuple[Ids, ...]]]:
        mentioned = {a.relation for rule in self._rules.rules for a in (*rule.atoms, *rule.negations)}
        values = self._values
        rows = {"DATATYPE": values.datatypes, "SAMEVALUE": values.same_values, "SUPPORTED": values.supported}
        return {name: rows[name] for name in BUILTIN_RELATIONS if name in mentioned}


def _is_spark(engine: Any) -> bool:
    return engine == "spark" or hasattr(engine, "sparkContext")


def _make_engine(engine: Any, plan: Plan) -> Engine:
    if engine == "memory":
        return MemoryEngine(plan)
    if engine == "reference":
        return ReferenceEngine(plan)
    if _is_spark(engine):
        from evergraph.engines.spark import SparkEngine

        return SparkEngine(plan, _session(engine))
    raise UserError("EG201", f"no engine is called {engine!r}", f"use one of {', '.join(ENGINES)} or a SparkSession")


def _make_pipeline(engine: Any, plan: Plan, store: Store, shards: int) -> Pipeline:
    from evergraph.engines.spark import SparkEngine
    from evergraph.pipeline.load import Pipeline

    session = _session(engine)
    scratch = Scratch(store.path)
    return Pipeline(SparkEngine(plan, session, shards, scratch.path), store, scratch)


def _session(engine: Any) -> Any:
    from evergraph.engines.spark import make_session

    return make_session() if engine == "spark" else engine
