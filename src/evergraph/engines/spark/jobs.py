"""Spark jobs with one task for each of some numbers, and what becomes of failures."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from evergraph.errors import Position, UserError

FAILURES = (PySparkException, Py4JError)
Batches = Iterator[pa.RecordBatch]
Work = Callable[[int], Any]


def each(session: Any, count: int, work: Work) -> list[Any]:
    """One job: the work for every number below `count`, each in a task of its own; what they return, as JSON carries it."""
    try:
        rows = session.range(0, count, 1, count).mapInArrow(saying(work), "number long, said string").collect()
    except FAILURES as error:
        raise failure(error) from error
    return [json.loads(row["said"]) for row in sorted(rows, key=lambda row: row["number"])]


def saying(work: Work) -> Callable[[Batches], Batches]:
    def run(batches: Batches) -> Batches:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                said = json.dumps(work(number))
                yield pa.record_batch([pa.array([number], pa.int64()), pa.array([said])], names=["number", "said"])

    return run


def failure(error: Exception) -> UserError:
    """A job's failure in one line: the user's mistake, if a worker found one, or Spark's reason."""
    text = str(error)
    mistake = re.search(r"UserError: (?:(.+?):(\d+):(\d+): )?error (EG\d+): (.*) \(hint: (.*)\)$", text, re.MULTILINE)
    if mistake:
        at = Position(mistake[1], int(mistake[2]), int(mistake[3])) if mistake[1] else None
        return UserError(mistake[4], mistake[5], mistake[6], at)
    lines = [line for line in text.splitlines() if line.strip()]
    named = [line.strip() for line in lines if re.match(r"\w+(Error|Exception|Interrupt): ", line.strip())]
    reason = (named or lines or ["unknown"])[0]
    return UserError("EG204", f"a Spark job failed: {reason}", "see Spark's log; the graph is as it was")


def lost(error: Exception) -> bool:
    """Whether a job failed because an executor went away, which says nothing about the work."""
    return bool(re.search("Checkpoint block|ExecutorLost|executor .*(lost|exited)|FetchFailed|Connection reset", str(error)))
