"""One superstep at one shard: merge the mail, close locally, keep what lives here, send the rest.

Runs in Spark's Python workers. Everything it needs comes in through a `Job` and the rows of its shard; everything it has to
say goes out as rows: the shard's relations, mail for other shards, and one row of statistics.

Invariant: between supersteps every fact is, or is on its way, to all of its homes; a shard is closed under the rules over
the facts it holds. When no mail is under way, the whole is closed: each rule instance meets at some shard.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from evergraph.engines.arrays import Arrays, Words
from evergraph.engines.fixpoint import Fixpoint
from evergraph.engines.kernel import Kernel
from evergraph.engines.relation import Relation, Run
from evergraph.engines.spark.placement import Placement
from evergraph.engines.spark.rows import (
    Kind,
    Row,
    key_of,
    name_of,
    read_relations,
    read_rows,
    relation_rows,
    to_table,
    words_row,
)
from evergraph.plan.model import Key
from evergraph.plan.schedule import Component


@dataclass(frozen=True, slots=True)
class Job:
    """What all shards do in a superstep."""

    placement: Placement
    labels: tuple[int, ...]
    """What shards are called in Spark's rows."""
    update: int
    """The number of the update, so that what arrived in another is not mistaken for this one's."""
    named: frozenset[int]
    """Classes that rules name: each shard says which of them have instances."""
    components: tuple[Component, ...]
    values: Any
    full: bool
    """Evaluate everything, not only what arrives."""
    reopen: bool
    """Take all that arrived in this update as new again: a further stratum reads it."""
    keep_arrived: bool
    """Remember what arrives until the update is committed."""
    forget: bool
    """Start again from explicit facts."""
    resend: tuple[Key, ...]
    """Relations that are placed by more arguments than before."""


class Superstep:
    def __init__(self, job: Job, shard: int, state: pa.Table) -> None:
        self.job, self.shard = job, shard
        self.arrays = Arrays()
        self.outbox: dict[int, dict[tuple[Key, int], list[Words]]] = {}
        found = read_relations(self.arrays, state, str(job.update))
        self.explicit = found.get(Kind.EXPLICIT, {})
        self.relations = {} if job.forget else found.get(Kind.RELATION, {})
        self.arrived = found.get(Kind.ARRIVED, {}) if job.keep_arrived else {}
        self.fixpoint = Fixpoint(Kernel(self.arrays, job.values), self.relations, self.sieve)

    def run(self, mail: pa.Table) -> pa.Table:
        start = time.perf_counter()
        if self.job.forget:
            self._start_again()
        for key in self.job.resend:
            if key in self.relations:
                self._send(key, self.relations[key].arity, self._owned(self.relations[key]))
        self._receive(mail)
        if self.job.reopen:
            for key, relation in self.arrived.items():
                known = self.fixpoint.arrived.get(key)
                self.fixpoint.arrived[key] = relation.base if known is None else relation.base.merge(known)
        self.fixpoint.close(self.job.components, self.job.full)
        return self._table(time.perf_counter() - start)

    def sieve(self, key: Key, arity: int, words: Words) -> Words:
        """Send derived rows to their homes and keep those that live here."""
        return self._send(key, arity, words)

    def _send(self, key: Key, arity: int, words: Words) -> Words:
        here = words
        for number, mask in enumerate(self.job.placement.homes(self.arrays, key, arity, words)):
            part = words if bool(mask.all()) else tuple(w[mask] for w in words)
            if number == self.shard:
                here = part
            elif len(part[0]):
                self.outbox.setdefault(number, {}).setdefault((key, arity), []).append(part)
        return here

    def _start_again(self) -> None:
        for key, relation in self.explicit.items():
            words = relation.rows()
            self._send(key, relation.arity, words)
            self.fixpoint.insert({key: Run(self.arrays, relation.arity, words)})

    def _receive(self, mail: pa.Table) -> None:
        """Merge the mail; what another shard made explicit here is explicit here."""
        inbox: dict[Key, list[Words]] = {}
        arities: dict[Key, int] = {}
        for row, words in read_rows(mail):
            key = key_of(row.key)
            arities[key] = row.arity
            inbox.setdefault(key, []).append(words)
            if row.kind == Kind.EXPLICIT_MAIL:
                self._make_explicit(key, row.arity, words)
        for key, parts in inbox.items():
            self.fixpoint.insert({key: Run(self.arrays, arities[key], self.arrays.unique(parts))})

    def _make_explicit(self, key: Key, arity: int, words: Words) -> None:
        known = self.explicit.get(key)
        if known is None:
            self.explicit[key] = Relation(Run(self.arrays, arity, words))
        else:
            self.explicit[key] = known.add(Run(self.arrays, arity, known.new(words)))

    def _table(self, seconds: float) -> pa.Table:
        rows: list[Row] = []
        label = self.job.labels[self.shard]
        for key, relation in self.relations.items():
            rows += relation_rows(label, Kind.RELATION, key, relation)
        for key, relation in self.explicit.items():
            rows += relation_rows(label, Kind.EXPLICIT, key, relation)
        if self.job.keep_arrived:
            for key, run in self.fixpoint.arrived.items():
                known = self.arrived.get(key)
                if known is not None:
                    run = known.base.merge(Run(self.arrays, run.arity, known.new(run.words)))
                self.arrived[key] = Relation(Run(self.arrays, run.arity, run.words))
            for key, relation in self.arrived.items():
                row = words_row(label, Kind.ARRIVED, key, relation.arity, relation.rows())
                rows.append(row._replace(part=str(self.job.update)))
        sent = 0
        for number, parcels in self.outbox.items():
            for (key, arity), parts in parcels.items():
                words = self.arrays.unique(parts)
                sent += len(words[0])
                rows.append(words_row(self.job.labels[number], Kind.MAIL, key, arity, words))
        rows.append(Row(label, Kind.STATS, "", 0, "", "", self._stats(seconds, sent)))
        return to_table(rows)

    def _stats(self, seconds: float, sent: int) -> bytes:
        def owned(relations: dict[Key, Relation]) -> dict[str, int]:
            return {name_of(k): len(self._owned(r)[0]) for k, r in relations.items()}

        arrived = owned(self.arrived)
        stats = {
            "shard": self.shard,
            "all": owned(self.relations),
            "explicit": {name_of(k): len(r) for k, r in self.explicit.items()},
            "arrived": arrived,
            "arrived explicit": {name_of(k): self._explicit_among(k, r) for k, r in self.arrived.items()},
            "classes": self._classes(),
            "sent": sent,
            "to": {str(number): sum(len(w[0]) for ws in p.values() for w in ws) for number, p in self.outbox.items()},
            "rounds": self.fixpoint.rounds,
            "derivations": self.fixpoint.kernel.derivations,
            "seconds": seconds,
        }
        return json.dumps(stats).encode()

    def _owned(self, relation: Relation) -> Words:
        """The rows of which this shard is the owner."""
        words = relation.rows()
        mask = self.job.placement.owner(self.arrays, relation.arity, words) == self.shard
        return tuple(w[mask] for w in words)

    def _explicit_among(self, key: Key, relation: Relation) -> int:
        known = self.explicit.get(key)
        return 0 if known is None else int(known.contains(self._owned(relation)).sum())

    def _classes(self) -> list[int]:
        """Named classes with instances at this shard."""
        relation = self.relations.get(self.job.placement.type_id)
        if relation is None or not self.job.named:
            return []
        return sorted({c for run, _ in relation.parts() for c in self.job.named.intersection(run.distinct(1).tolist())})


def superstep(job: Job) -> Any:
    """The function that Spark calls for each shard with its state and its mail."""

    def run(key: tuple[pa.Scalar, ...], state: pa.Table, mail: pa.Table) -> pa.Table:
        return Superstep(job, job.labels.index(key[0].as_py()), state).run(mail)

    return run
