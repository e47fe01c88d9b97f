"""`KnowledgeGraph`: facts, rules, and every consequence, kept true."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evergraph.engine_choice import is_spark, make_engine
from evergraph.engines.base import Which, together
from evergraph.engines.changes import Held, changes
from evergraph.errors import UserError
from evergraph.maintain.seminaive import insert as insert_seminaive
from evergraph.maintain.verify import Differs, differences
from evergraph.rules.equality import equality_of
from evergraph.rules.model import ONTOLOGY, Program
from evergraph.store import Snapshot, Store
from evergraph.store.dictionary import FileDictionary
from evergraph.store.names import NameRows
from evergraph.store.rules import RuleRows
from evergraph.store.submitted import UnsettledWarning, told
from evergraph.submit.submissions import Submissions
from evergraph.submitting import Submitting
from evergraph.terms import Dictionary

if TYPE_CHECKING:
    from evergraph.stream import Stream, Window


class KnowledgeGraph(Submitting):
    """A materialised graph: explicit facts, and all that follows from them by the rules.

    >>> kg = KnowledgeGraph("rhodf")
    >>> report = kg.update(insert='''
    ...     <http://ex/Student> <http://www.w3.org/2000/01/rdf-schema#subClassOf> <http://ex/Person> .
    ...     <http://ex/ann> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://ex/Student> .''')
    >>> len(kg), report.inserted.derived
    (3, {'[]': 1})
    """

    def __init__(
        self,
        rules: str | Path | Program = "rdfs",
        *,
        equality: str | None = None,
        engine: Any = "memory",
        store: str | Path | None = None,
    ) -> None:
        """`rules` is a `Program`, the name of a rule set or a file; `engine` a name of `ENGINES` or a SparkSession.

        `equality` says what becomes of names that are the same: `rewrite` keeps one name for all of them and shows every one,
        `axioms` derives what follows by rules, `off` takes `owl:sameAs` for a property like any other. By default names are
        rewritten if a rule derives `owl:sameAs`.
        With `store`, a new folder, every update is committed there; `open` takes a store that exists.
        """
        self._store = Store(_place(store, engine)) if store is not None else None
        if self._store is not None and self._store.exists:
            raise UserError("EG401", f"{store} is a store already", f"open it: KnowledgeGraph.open({str(store)!r})")
        self._snapshot: Snapshot | None = None
        self._submissions = Submissions(self)
        self._old = self._stale = False
        program = rules if isinstance(rules, Program) else Program.load(rules)
        if program.outside and program is not rules:
            axioms = len({item.axiom for item in program.outside})
            told = f"rules cannot say all that {rules} does: see Program.load({str(rules)!r}).outside, axioms: {axioms}"
            warnings.warn(told, stacklevel=2)
        self._equality = equality_of(equality, program)
        self._setup(program, FileDictionary() if store is not None and is_spark(engine) else Dictionary(), engine)
        self._first = Program(facts=program.facts)
        ontology = program.rules and all(rule.origin == ONTOLOGY for rule in program.rules)
        self._assertions = frozenset(program.facts if ontology else ())
        if self._store is None and (program.facts or any(not rule.atoms for rule in self._book.samples)):
            self.update()

    @classmethod
    def open(cls, path: str | Path, *, version: int | None = None, engine: Any = "memory") -> KnowledgeGraph:
        """The graph of a store: its last version, which updates move on, or an older one, which can only be read.

        Warns of updates that were submitted and had not settled when their process ended: see `unsettled`.
        Cost: linear in the store, about a second for five million facts.
        """
        self = cls.__new__(cls)
        self._store = Store(_place(path, engine))
        self._submissions = Submissions(self)
        self._first = Program()
        self._old = version is not None and version != self._store.snapshot().version
        self._take(self._store.snapshot(version), engine)
        if left := self.unsettled:
            warnings.warn(told(left), UnsettledWarning, stacklevel=2)
        return self

    def save(self, path: str | Path) -> None:
        """Write the graph to a new store. The graph itself is not tied to it: `open` gives one that is."""
        store = Store(path)
        with self._at_rest(), store.writing():
            if store.exists:
                raise UserError("EG401", f"{path} is a store already", "name a new folder")
            facts, names = self._stored()
            info = self._info("save", {}, len(self._book))
            counts = self._local.all_counts() if info.counts else []
            all_names = NameRows(names.moved, names.represented)
            rules = RuleRows(tuple(self._book.members), tuple(self._assertions))
            store.commit(None, info, changes(Held(), facts), self._dictionary.since(0), rules, counts, names=all_names)

    def stream(
        self,
        windows: str | Window | Mapping[str, str | Window] | None = None,
        *,
        algorithm: str = "auto",
        lateness: Any = 0,
        capacity: int = 1_000_000,
    ) -> Stream:
        """Windows over streams beside this graph, which itself stays as it is: `register` queries, `push` facts, `advance`.

        `windows` are streams by name with their windows, such as `RANGE 10s STEP 1s`, `RANGE 10s TUMBLING` or `RANGE TRIPLES
        100`, or the window of one stream without a name; queries may name streams of their own. `lateness` is how much older
        than the latest one a fact may be, `capacity` how many facts may wait. `algorithm` is `expiry` or one of `update`'s;
        `auto` is expiry wherever rules do not negate. When the graph changes, the windows follow at the next tick.
        """
        from evergraph.stream import Stream

        return Stream(self, windows, algorithm=algorithm, lateness=lateness, capacity=capacity)

    def verify(self, engine: Any = "memory") -> int:
        """Recompute everything from the explicit facts and compare; returns the number of facts, or raises `Differs`."""
        fresh, held = make_engine(engine, self._plan), self._held
        explicit = held.relations(Which.EXPLICIT)
        facts = together((key, relation.columns()) for key, relation in explicit.items() if len(relation))
        facts |= self._settled_literals()
        fresh.begin()
        insert_seminaive(fresh, self._plan, facts)
        fresh.commit()
        missing, extra = differences(fresh.relations(Which.ALL), held.relations(Which.ALL))
        if missing or extra:
            raise Differs(self._atoms(missing), self._atoms(extra))
        return sum(held.counts(Which.ALL).values())


def _place(store: str | Path, engine: Any) -> Path:
    """The folder of a store: for Spark's workers, which may run in another folder, from the root."""
    return Path(store).absolute() if is_spark(engine) else Path(store)
