"""Spark without Evergraph: the same rules as a semi-naive loop of DataFrame joins, as a Spark user would write it.

Triples are one table of ids, named relations one table each. A round is one query per head relation: the union of all
rules, each with one body atom over what the last round brought, less what is known. Written with care, so that it is
a fair peer: the schema is closed first over its own few facts; rules of which an atom has no facts are left out of
the query; small atoms are broadcast; lineage is cut in every round, through Parquet, because
Spark 4.3 loses columns in self-joins of frames cut by `localCheckpoint`. Trap: the number of jobs follows the number
of rounds, and the size of a query the number of rules that can fire.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from evergraph.bench.peers.base import Outcome, SameRules, timed
from evergraph.bench.peers.patterns import Encoded, Key, Pattern, PatternRule, Value, portable, read
from evergraph.bench.peers.sql import select
from evergraph.rules.model import TRIPLE, TYPE, Program, Variable

BROADCAST_ROWS = 100_000
SCHEMA_ROWS = 10_000
PIECES = 8
"""A table of more parts than this is written as one."""
SETTINGS = {
    "spark.driver.memory": "8g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}

Node = tuple[Key, int | None]
"""A relation, a predicate, or the instances of one class that rules name; `TRIPLE` for all triples."""
Frames = Mapping[str, Any]


class SparkJoins(SameRules):
    name = "spark-joins"
    package = "'pyspark>=4' 'pandas<3'"
    modules: tuple[str, ...] = ("pyspark",)

    def run(self, file: Path, rules: str, cores: int) -> Outcome:
        from pyspark.sql import SparkSession

        program, notes = portable(Program.load(rules), file)
        with timed() as starting:
            builder = SparkSession.builder.master(f"local[{cores}]").appName("spark-joins")
            builder = builder.config("spark.sql.shuffle.partitions", str(4 * cores))
            for name, value in SETTINGS.items():
                builder = builder.config(name, value)
            session = builder.getOrCreate()
        with TemporaryDirectory() as folder:
            with timed() as load:
                encoded = read(file, program)
                parquet = str(Path(folder, "triples.parquet"))
                columns = {f"c{i}": pa.array(c, pa.int64()) for i, c in enumerate(encoded.triples)}
                pq.write_table(pa.table(columns), parquet)
                loop = Loop(session, encoded, Path(folder))
                facts = loop.load(session.read.parquet(parquet))
            with timed() as materialise:
                closed = loop.close(facts)
            triples = closed[TRIPLE].count()
        session.stop()
        notes.append(f"session start of {starting.seconds:.1f} s not counted")
        return Outcome(triples, load.seconds, materialise.seconds, notes)


class Loop:
    """Facts are frames by relation, with columns `c0, c1, …`; those of triples are subject, predicate, object."""

    def __init__(self, session: Any, encoded: Encoded, folder: Path) -> None:
        self._session, self._encoded, self._folder = session, encoded, folder
        self._files = 0
        self._type = encoded.number(TYPE)
        bodies = [atom for rule in encoded.rules for atom in rule.body]
        self._classes = {a.args[1] for a in bodies if a.relation == self._type and isinstance(a.args[1], int)}

    def load(self, triples: Any) -> Frames:
        """The triples of a file and the facts of the program, each once."""
        found = {TRIPLE: [triples]}
        for fact in self._encoded.facts:
            row = self._session.sql(select(_columns(fact), [], (), "BIGINT"))
            found.setdefault(_relation(fact), []).append(row)
        return {name: self._cut(_union(frames).distinct()) for name, frames in found.items()}

    def close(self, facts: Frames) -> Frames:
        """First the rules over small relations alone, over the facts they read; then all rules over everything."""
        counts = self._count(facts)
        schema = [rule for rule in self._encoded.rules if self._is_schema(rule, counts)]
        small = {name: self._read_by(schema, name, frame) for name, frame in facts.items()}
        closed = self._rounds(schema, small)
        everything = {name: [frame, *closed[name][1:]] for name, frame in facts.items()}
        everything |= {name: frames for name, frames in closed.items() if name not in facts}
        done = self._rounds(self._encoded.rules, {name: _union(frames) for name, frames in everything.items()})
        return {name: _union(frames) for name, frames in done.items()}

    def _rounds(self, rules: Sequence[PatternRule], facts: Frames) -> dict[str, list[Any]]:
        """The closure of facts under rules: the facts first, then what each round brought."""
        old: dict[str, list[Any]] = {}
        delta, counts_old, counts_delta = facts, Counter[Node](), self._count(facts)
        while delta:
            every = {name: [*old.get(name, []), *([delta[name]] if name in delta else [])] for name in old.keys() | delta}
            for prefix, frames in (("old", old), ("new", {n: [f] for n, f in delta.items()}), ("all", every)):
                for name, parts in frames.items():
                    _union(parts).createOrReplaceTempView(_view(prefix, name))
            queries: dict[str, list[str]] = {}
            for rule in rules:
                queries.setdefault(_relation(rule.head), []).extend(self._variants(rule, counts_old, counts_delta))
            old, counts_old = every, counts_old + counts_delta
            found = {name: self._less(" UNION ALL ".join(parts), old.get(name)) for name, parts in queries.items() if parts}
            counts_delta = self._count(found)
            delta = {name: frame for name, frame in found.items() if counts_delta[name, None]}
            old = {name: parts if len(parts) <= PIECES else [self._cut(_union(parts))] for name, parts in old.items()}
        return old

    def _less(self, query: str, known: list[Any] | None) -> Any:
        """What a query gives beyond what is known, computed now."""
        found = self._session.sql(query).distinct()
        return self._cut(found.join(_union(known), on=found.columns, how="left_anti") if known else found)

    def _cut(self, frame: Any) -> Any:
        """Computed now, written as Parquet and read back: no lineage, and Spark knows the size."""
        self._files += 1
        path = str(self._folder / str(self._files))
        frame.write.parquet(path)
        return self._session.read.schema(frame.schema).parquet(path)

    def _variants(self, rule: PatternRule, old: Counter[Node], delta: Counter[Node]) -> Iterator[str]:
        """A SELECT for each body atom with new facts, unless another atom has none in what it reads."""
        for number in range(len(rule.body)):
            sizes, body = [], []
            for place, atom in enumerate(rule.body):
                prefix = "new" if place == number else "all" if place < number else "old"
                node = self._node(atom)
                sizes.append({"new": delta[node], "old": old[node], "all": old[node] + delta[node]}[prefix])
                body.append((_view(prefix, _relation(atom)), _columns(atom)))
            if all(sizes):
                largest = sizes.index(max(sizes))
                small = [f"a{i}" for i, n in enumerate(sizes) if n <= BROADCAST_ROWS and i != largest]
                hint = f"/*+ BROADCAST({', '.join(small)}) */ " if small else ""
                yield select(_columns(rule.head), body, rule.unequal, "BIGINT", hint)

    # -- sizes -------------------------------------------------------------------------------------------------------

    def _node(self, atom: Pattern) -> Node:
        if isinstance(atom.relation, Variable):
            return TRIPLE, None
        target = atom.args[1] if atom.relation == self._type else None
        return atom.relation, target if isinstance(target, int) and target in self._classes else None

    def _count(self, facts: Frames) -> Counter[Node]:
        """Facts by relation, by predicate, and by class where rules name it: one job for each frame."""
        counts: Counter[Node] = Counter()
        for name, frame in facts.items():
            if name != TRIPLE:
                counts[name, None] = frame.count()
                continue
            named = ", ".join(map(str, sorted(self._classes))) or "NULL"
            target = f"CASE WHEN c1 = {self._type} AND c2 IN ({named}) THEN c2 END"
            for predicate, class_, rows in frame.groupBy("c1", _expression(target)).count().collect():
                counts[TRIPLE, None] += rows
                counts[predicate, None] += rows
                if class_ is not None:
                    counts[predicate, class_] += rows
        return counts

    def _is_schema(self, rule: PatternRule, counts: Counter[Node]) -> bool:
        atoms = (rule.head, *rule.body)
        return all(not isinstance(a.relation, Variable) and counts[self._node(a)] <= SCHEMA_ROWS for a in atoms)

    def _read_by(self, rules: Sequence[PatternRule], name: str, frame: Any) -> Any:
        """The facts of a relation that these rules read or write."""
        if name != TRIPLE:
            return frame
        nodes = {self._node(a) for rule in rules for a in (rule.head, *rule.body)}
        whole = [str(key) for key, target in nodes if isinstance(key, int) and target is None]
        classes = [str(target) for _, target in nodes if target is not None]
        chosen = f"c1 IN ({', '.join(whole) or 'NULL'})"
        return self._cut(frame.where(f"{chosen} OR (c1 = {self._type} AND c2 IN ({', '.join(classes) or 'NULL'}))"))


def _relation(atom: Pattern) -> str:
    return atom.relation if isinstance(atom.relation, str) else TRIPLE


def _columns(atom: Pattern) -> tuple[Value, ...]:
    return atom.args if isinstance(atom.relation, str) else (atom.args[0], atom.relation, atom.args[1])


def _view(prefix: str, name: str) -> str:
    return f"{prefix}_triples" if name == TRIPLE else f"{prefix}_r_{name}"


def _union(frames: Sequence[Any]) -> Any:
    return reduce(lambda a, b: a.unionAll(b), frames)


def _expression(text: str) -> Any:
    from pyspark.sql.functions import expr

    return expr(text)
