"""Shards and their files: the work of opening a store and of writing a version, nothing moved between shards."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from evergraph.engines.arrays import Arrays, Words
from evergraph.engines.changes import Held, changes
from evergraph.engines.relation import Relation, Run
from evergraph.engines.spark import files
from evergraph.engines.spark.job import ALL, EXPLICIT, Job
from evergraph.engines.spark.jobs import Work
from evergraph.engines.spark.superstep import Superstep
from evergraph.plan.model import Key
from evergraph.store.log import StoredFile
from evergraph.store.read import held, parts_of
from evergraph.store.write import write_changes


def opening(job: Job, triples: Sequence[StoredFile], named: Sequence[StoredFile]) -> Work:
    """Read the files of a shard into relations of its own; what mentions a moved name of the job is explicit only."""

    def work(shard: int) -> Any:
        mine = ([file for file in group if file.shard == shard] for group in (triples, named))
        facts = held(parts_of(*mine))
        step = Superstep(job, shard)
        step.take(facts.all, facts.explicit)
        return json.loads(step.answer(0.0))

    return work


@dataclass(frozen=True, slots=True)
class Writing:
    """What a shard needs to know to write its part of a version."""

    store: Path
    folder: Path
    job: Job
    before: dict[int, dict[str, Any]]
    after: dict[int, dict[str, Any]]
    files: tuple[StoredFile, ...]


def writing(what: Writing) -> Work:
    """Write what changed at a shard; says which files came and which went."""

    def work(shard: int) -> Any:
        old, new = (set(map(tuple, said.get(shard, {}).get("manifest", ()))) for said in (what.before, what.after))
        changed = {entry[1] for entry in old ^ new}
        before, after = (_owned(what, [e for e in side if e[1] in changed], shard) for side in (old, new))
        mine = [file for file in what.files if file.shard == shard]
        added, removed = write_changes(what.store, shard, mine, list(changes(before, after)))
        return {"added": [asdict(file) for file in added], "removed": [str(file.path) for file in removed]}

    return work


def _owned(what: Writing, manifest: Sequence[tuple[Any, ...]], shard: int) -> Held:
    """The facts that a shard owns, of the relations that changed; with names, also explicit facts not in normal form."""
    arrays = Arrays()
    stored = tuple(files.Stored(*entry) for entry in sorted(manifest))
    loaded = files.load(arrays, what.folder, stored, (ALL, EXPLICIT))

    def mine(relation: Relation) -> Relation:
        words: Words = relation.rows()
        mask = what.job.placement.owner(arrays, relation.arity, words) == shard
        return Relation(Run(arrays, relation.arity, tuple(w[mask] for w in words)))

    everything: dict[Key, Relation] = {key: mine(r) for key, r in loaded[ALL].items()}
    for key, given in loaded[EXPLICIT].items() if what.job.same is not None else ():
        known = everything.get(key)
        everything[key] = given if known is None else known.add(Run(arrays, given.arity, given.less(known)))
    return Held(everything, dict(loaded[EXPLICIT]))
