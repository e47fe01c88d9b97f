"""How a graph becomes what rules and a store say it is, and what its readers see of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from evergraph.engine_choice import is_spark, make_engine, make_pipeline
from evergraph.engines.base import Engine, LocalEngine, Readable
from evergraph.engines.equality.stored import every_fact
from evergraph.errors import UserError, raise_all
from evergraph.maintain.choose import Experience
from evergraph.maintain.declarative import Maintenance
from evergraph.maintain.maintenance_rules import MaintenanceRules
from evergraph.plan.rulebook import Rulebook
from evergraph.reading import Reading
from evergraph.rules.equality import Equality, unsettled
from evergraph.rules.model import TRIPLE, Atom, Program
from evergraph.store import Snapshot
from evergraph.store.counts import read_counts
from evergraph.store.dictionary import FileDictionary
from evergraph.store.layout import COUNTS, SHARDS
from evergraph.store.names import read_names
from evergraph.store.read import read_facts, read_terms
from evergraph.store.rules import read_rules as read_stored
from evergraph.terms import Dictionary, Ids
from evergraph.values import Values, builtins_of

if TYPE_CHECKING:
    from evergraph.pipeline.load import Pipeline
    from evergraph.store import Store

Columns = dict[str, list[Ids]]


class Becoming(Reading):
    """A graph and what it was made of."""

    _assertions: frozenset[Atom]
    """Facts that the graph's ontology asserts."""
    _stale: bool
    _settled: Readable
    """The last settled facts, which readers see."""
    _literals_settled: int
    """The number of terms of which built-in relations say something to them."""
    _edition: int = 0
    """Rises whenever the graph has changed."""

    def _setup(
        self,
        program: Program,
        dictionary: Dictionary,
        engine: Any,
        shards: int = SHARDS,
        numbers: Sequence[int] = (),
        named: Mapping[str, int] | None = None,
    ) -> None:
        """Hold nothing, under these rules; `named` are the arities of relations that facts will mention."""
        self._dictionary = dictionary
        self._values = Values(dictionary)
        if self._equality != Equality.OFF:
            raise_all(unsettled(program))
        self._book = Rulebook.of(program, dictionary, self._values, numbers, self._equality).meeting(named or {})
        self._plan = self._book.plan
        self._pipeline: Pipeline | None = None
        if self._store is not None and is_spark(engine):
            self._pipeline = make_pipeline(engine, self._plan, self._store, shards)
            self._engine: Engine = self._pipeline.maintained
        else:
            self._engine = make_engine(engine, self._plan)
        self._arities = {**Program(tuple(self._book.samples)).relations, TRIPLE: 3, **(named or {})}
        self._builtins = builtins_of(self._values, self._book.samples)
        self._literals_seen = 0
        self._prepared = self._pristine = True
        """Whether what is not stored is there; whether there has been no update yet."""
        self._maintenance: Maintenance | None = None
        self._maintenance_rules: MaintenanceRules | None = None
        self._experience = Experience()
        self._publish()

    def _take(self, snapshot: Snapshot, engine: Any) -> None:
        """Become what a snapshot holds, all at once: others may be reading. If it cannot be read, stay what this graph is."""
        fresh = object.__new__(type(self))
        fresh.__dict__.update(self.__dict__)
        fresh._read_snapshot(snapshot, engine)
        self.__dict__.update(fresh.__dict__)

    def _read_snapshot(self, snapshot: Snapshot, engine: Any) -> None:
        self._snapshot = snapshot
        rules, info = read_stored(snapshot), snapshot.info
        self._equality = Equality(info.equality)
        if is_spark(engine):
            self._setup(rules.program, FileDictionary.of(snapshot), engine, info.shards, rules.numbers)
            assert self._pipeline is not None
            self._pipeline.open(snapshot, read_names(snapshot))
            self._arities |= self._pipeline.engine.arities()
        else:
            dictionary = Dictionary(read_terms(snapshot), info.scopes)
            facts = read_facts(snapshot)
            named = {key: relation.arity for key, relation in facts.all.items() if isinstance(key, str)}
            self._setup(rules.program, dictionary, engine, numbers=rules.numbers, named=named)
            counted = bool(info.counts) and info.counts == self._plan.fingerprint
            if (rewriting := self._rewriting) is not None:
                rewriting.load(facts, names=read_names(snapshot))
            else:
                facts = every_fact(facts, read_names(snapshot))
                self._local.load(facts, read_counts(snapshot.files(COUNTS)) if counted else None)
        self._assertions = rules.assertions
        self._prepared = self._stale = self._pristine = False
        self._publish()

    @property
    def _local(self) -> LocalEngine:
        assert self._pipeline is None
        return cast(LocalEngine, self._engine)

    @property
    def _engine_choice(self) -> Any:
        """What to give `open` for an engine like this one."""
        return self._pipeline.session if self._pipeline is not None else self._engine.name

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

    def _start_again(self) -> None:
        """Become what the last version holds, or nothing."""
        if self._snapshot is not None:
            self._take(self._snapshot, self._engine_choice)
        else:
            self._setup(self.rules, FileDictionary(), self._engine_choice)
            self._stale = False

    def _prepare(self) -> None:
        """After a store was opened, what is not stored. Cost: linear in the terms if rules have built-ins, once."""
        if self._prepared:
            return
        try:
            self._engine.prepare({name: list(rows(0)) for name, rows in self._builtins.items()})
        except BaseException:
            self._stale = True
            raise
        self._literals_seen = len(self._dictionary)
        self._prepared = True

    def _publish(self) -> None:
        """Let readers see what is there now, whole, until it is published again."""
        self._settled = self._engine.still()
        self._literals_settled = self._literals_seen if self._prepared else len(self._dictionary)
        self._edition += 1

    @property
    def _held(self) -> Readable:
        return self._settled

    def _settled_literals(self) -> Columns:
        """What built-in relations say of the terms that the settled facts know of: others may be under way."""
        found = {name: list(rows(0)) for name, rows in self._builtins.items()}
        for name in (name for name in ("DATATYPE", "SAMEVALUE") if name in found and self._pipeline is None):
            left, right = found[name]
            known = (left < self._literals_settled) & ((name == "DATATYPE") | (right < self._literals_settled))
            found[name] = [left[known], right[known]]
        return found
