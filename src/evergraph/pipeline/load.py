"""From files to facts in shards, on Spark: parse, number, encode; and from shards to a committed version.

Paper: Urbani, Margara, Jacobs, van Harmelen, Bal: DynamiTE: Parallel Materialization of Dynamic RDF Data. ISWC 2013, §3,
    https://doi.org/10.1007/978-3-642-41335-3_41
Symbols: Compress Input → `parse`, `dictionary`, `encode`; Create Indices, Full Materialization → the Spark engine's closing;
    Copy into Indices → `write`.
Departures: six B-trees become one arrangement of files that serves look-ups by subject and by object (`store.layout`); what
    the paper copies into place is written once, by the shard that owns it. The update δ need not fit in memory.
Cost: linear. Strings cross the network once, as the distinct terms of each block; the rest is ids. Terms stay in files: the
    driver sees those of the rules, and all of them only if a rule compares or asks for datatypes.
"""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from evergraph.engines.arrays import Arrays
from evergraph.engines.base import Engine
from evergraph.engines.equality.engine import Rewriting
from evergraph.engines.equality.names import Names
from evergraph.engines.relation import Run
from evergraph.engines.spark.engine import SparkEngine
from evergraph.engines.spark.jobs import FAILURES, each, failure
from evergraph.engines.spark.watch import watched
from evergraph.formats import Piece, Progress, Rejects, cut_files
from evergraph.formats.files import BLOCK_BYTES, raise_bad, size_of
from evergraph.formats.ntriples import BadLine
from evergraph.maintain.outcome import Phase
from evergraph.pipeline.blocks import Parsed, parsing
from evergraph.pipeline.encode import Encoded, Task, encoding, writing_terms
from evergraph.pipeline.number import COUNTED, TERMS, linking, recalling, telling
from evergraph.pipeline.shards import Writing, opening, writing
from evergraph.plan.model import Key
from evergraph.store import Info, Snapshot, Store
from evergraph.store.dictionary import FileDictionary
from evergraph.store.layout import DICTIONARY, FACTS, RELATIONS, TERMS_PER_FILE, NewFile, write_terms
from evergraph.store.lock import Scratch
from evergraph.store.names import NameRows
from evergraph.store.rules import RuleRows

PIECES_PER_TASK = 4
MOST_BLOCKS = 16
PART_BYTES = 1 << 28
"""Bytes of text whose terms one task numbers."""


class Pipeline:
    """What ties a Spark engine to a store."""

    def __init__(self, engine: SparkEngine, store: Store, scratch: Scratch, over: Rewriting | None = None) -> None:
        """`over` keeps representatives over the engine, where names may be the same."""
        self.engine, self.store, self.session = engine, store, engine.spark
        self.maintained: Engine = engine if over is None else over
        """What a graph updates and reads."""
        self.scratch = scratch
        self._terms: list[NewFile] = []
        """Dictionary files that are not committed yet."""

    def open(self, snapshot: Snapshot, names: Names | None = None) -> None:
        """Let every shard read the facts it owns; these names stand for others in them."""
        if names is not None and isinstance(self.maintained, Rewriting):
            self.maintained.recall(names)
        work = opening(self.engine.job(), snapshot.files(FACTS), snapshot.files(RELATIONS))
        answers = each(self.session, self.engine.shards, work)
        self.engine.opened({answer["shard"]: answer for answer in answers})

    def read(
        self, paths: Sequence[Path], dictionary: FileDictionary, rejects: Rejects | None, progress: Progress | None
    ) -> tuple[Encoded, list[Phase]]:
        """Facts of files, encoded; terms that are new get their ids and stand in dictionary files."""
        folder = self.scratch.path / uuid.uuid4().hex
        folder.mkdir()
        tasks = int(self.session.sparkContext.defaultParallelism)
        size = sum(map(size_of, paths))
        blocks = min(MOST_BLOCKS, max(1, size // (BLOCK_BYTES * tasks * PIECES_PER_TASK)))
        pieces = cut_files(paths, dictionary.next_scope, blocks)
        stages = _Stages(self.session, progress)
        with stages("parse") as stage:
            said = each(self.session, len(pieces), parsing(pieces, folder, rejects is not None))
            parsed = [Parsed(**{**one, "bad": [BadLine(**line) for line in one["bad"]]}) for one in said]
            _refuse(pieces, parsed, rejects)
            stage.facts = sum(one.triples for one in parsed)
        with stages("dictionary") as stage:
            parts = max(tasks, math.ceil(size / PART_BYTES))
            base, counts = len(dictionary), [one.blocks for one in parsed]
            stage.facts = self._number(folder, counts, dictionary, parts)
        with stages("encode") as stage:
            placement = self.engine.state.placement
            task = Task(folder, tuple(counts), parts, base, placement, self.engine.job().named)
            found = each(self.session, len(pieces), encoding(task))
            self._write_terms(folder, dictionary, base, [one["new"] for one in found])
            stage.facts = sum(one.triples for one in parsed)
        common: dict[Key, list[Any]] = {}
        for one in found:
            for key, words in one["common"]:
                common.setdefault(key, []).append((np.array(words, np.uint64),))
        arrays = Arrays()
        encoded = Encoded(
            folder,
            tuple(tuple((key, count) for key, count in one["counts"]) for one in found),
            {key: Run(arrays, 2, arrays.unique(rows)) for key, rows in common.items()},
            frozenset().union(*(one["classes"] for one in found)),
        )
        return encoded, stages.done

    def _number(self, folder: Path, blocks: Sequence[int], dictionary: FileDictionary, parts: int) -> int:
        """Give ids to terms; returns how many are new."""
        count = len(blocks)
        rows = self.session.range(0, count, 1, count).mapInArrow(telling(folder, blocks), TERMS)
        known = pa.table({"term": pa.array(dictionary.given, pa.string()), "position": _ids_of_given(dictionary)})
        rows = rows.unionAll(self.session.createDataFrame(known))
        if dictionary.files:
            files = len(dictionary.files)
            stored = self.session.range(0, files, 1, files).mapInArrow(recalling(dictionary.files, folder, blocks), TERMS)
            rows = rows.unionAll(stored)
        try:
            counted = rows.repartition(parts, "term").mapInArrow(linking(folder), COUNTED).collect()
        except FAILURES as error:
            raise failure(error) from error
        return sum(row["new"] for row in counted)

    def _write_terms(self, folder: Path, dictionary: FileDictionary, base: int, new: Sequence[Sequence[int]]) -> None:
        """Write the driver's terms and those of all blocks to dictionary files."""
        places = [(piece, block) for piece, counts in enumerate(new) for block in range(len(counts))]
        counts = [count for piece in new for count in piece]
        before = list(accumulate(counts, initial=base))
        first = base - len(dictionary.given)
        files = math.ceil((before[-1] - first) / TERMS_PER_FILE)
        if files:
            blocks = [(piece, block, start) for (piece, block), start in zip(places, before, strict=False)]
            said = each(self.session, files, writing_terms(folder, self.store.path, blocks, first, list(dictionary.given)))
            made = [NewFile(**one) for one in said]
            self._terms += made
            dictionary.add_files(self.store.path / DICTIONARY, made, first)

    def write(
        self, base: Snapshot | None, info: Info, dictionary: FileDictionary, rules: RuleRows | None, names: NameRows
    ) -> Snapshot:
        """Commit what the engine has done since `begin`: each shard writes its part."""
        given = pa.array(dictionary.given, pa.large_string())
        terms = write_terms(self.store.path, given, len(dictionary) - len(given))
        dictionary.add_files(self.store.path / DICTIONARY, terms, len(dictionary) - len(given))
        files = tuple(f for name in (FACTS, RELATIONS) for f in (base.files(name) if base is not None else ()))
        before, after = self.engine.answers()
        what = Writing(self.store.path, self.engine.folder, self.engine.job(), before, after, files)
        said = each(self.session, self.engine.shards, writing(what))
        added = [NewFile(**file) for one in said for file in one["added"]]
        gone = {path for one in said for path in one["removed"]}
        removed = [file for file in files if str(file.path) in gone]
        if base is not None and not (added or removed or rules or names or info.to_keep):
            return base
        made = self.store.commit_files(base, info, [*self._terms, *terms, *added], removed, rules, names)
        self._terms = []
        return made


class _Stages:
    """The stages of a load, timed and told."""

    def __init__(self, session: Any, progress: Progress | None) -> None:
        self.session, self.progress = session, progress
        self.done: list[Phase] = []

    @contextmanager
    def __call__(self, name: str) -> Iterator[Phase]:
        phase = Phase(name)
        start = time.perf_counter()
        with watched(self.session, name, self.progress):
            yield phase
        phase.seconds = time.perf_counter() - start
        self.done.append(phase)


def _ids_of_given(dictionary: FileDictionary) -> pa.Array:
    return pa.array(np.arange(len(dictionary) - len(dictionary.given), len(dictionary)), pa.int64())


def _refuse(pieces: Sequence[Piece], parsed: Sequence[Parsed], rejects: Rejects | None) -> None:
    """Raise for bad lines, or keep them, with the numbers they have in their files."""
    lines = 0
    for number, (piece, one) in enumerate(zip(pieces, parsed, strict=True)):
        if number and pieces[number - 1].file != piece.file:
            lines = 0
        bad = [BadLine(b.line + lines, b.column, b.message, b.text) for b in one.bad]
        if bad and rejects is None:
            raise_bad(str(piece.path), bad)
        if rejects is not None:
            rejects.lines += ((str(piece.path), line) for line in bad)
        lines += one.lines
