"""The pipeline on executors that are processes of their own: the same bytes as in process, also when one of them dies.

A second Spark context cannot live in the test process: run as a script this file is the driver, which does the same load
once for each moment at which an executor may die.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from itertools import count, islice
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from evergraph import KnowledgeGraph
from evergraph.bench.lubm.generator import ontology, triples_of_university
from evergraph.engines.base import Which
from evergraph.engines.spark import SparkEngine, make_session
from evergraph.engines.spark.job import Step
from evergraph.pipeline.load import Pipeline
from evergraph.rules.model import TRIPLE
from evergraph.store import Store
from evergraph.store.log import TABLES

pytestmark = pytest.mark.spark

MASTER = "local-cluster[2,1,1024]"
TRIPLES = 30_000
MORE = "<http://ex/late> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://ex/Class> ."


def contents(path: Path) -> dict[str, Any]:
    """Rows and hashes of a store's files by table and shard, and what its last version says of itself."""
    snapshot = Store(path).snapshot()
    found: dict[str, Any] = {
        table: sorted([f.shard or 0, f.rows, hashlib.sha256(f.path.read_bytes()).hexdigest()] for f in snapshot.files(table))
        for table in TABLES
    }
    return found | {name: getattr(snapshot.info, name) for name in ("explicit", "derived", "terms", "scopes")}


def load(folder: Path, name: str, engine: Any) -> dict[str, Any]:
    """A load, a second one with an update by text before it, and a deletion; returns what each left in the store."""
    kg = KnowledgeGraph("owl2rl", store=folder / name, engine=engine, equality="off")
    kg.update(insert=[folder / "ontology.nt", folder / "first.nt"], operation="load")
    left = [contents(folder / name)]
    kg.update(insert=MORE)
    kg.update(insert=folder / "second.nt")
    left.append(contents(folder / name))
    kg.update(delete=(folder / "gone.nt").read_text(), algorithm="backward-forward")
    return {"left": [*left, contents(folder / name)], "len": len(kg), "version": kg.version}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data, and what the memory engine makes of it."""
    folder = tmp_path_factory.mktemp("cluster")
    lines = list(islice(triples_of_university(0, 0), TRIPLES))
    (folder / "ontology.nt").write_text(ontology())
    (folder / "first.nt").write_text("\n".join(lines[: TRIPLES // 2]))
    (folder / "second.nt").write_text("\n".join(lines[TRIPLES // 2 :]))
    (folder / "gone.nt").write_text("\n".join(lines[:: TRIPLES // 10]))
    (folder / "memory.json").write_text(json.dumps(load(folder, "memory", "memory")))
    return folder


# -- the driver ------------------------------------------------------------------------------------------------------


def executors() -> list[Any]:
    """The executors of this driver, the youngest last."""
    import psutil

    found = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            if any("CoarseGrainedExecutorBackend" in word for word in process.cmdline()):
                found.append(process)
    return sorted(found, key=lambda p: p.create_time())


def kill_one() -> None:
    """End an executor by kill -9; Spark will start another."""
    victim = executors()[-1]
    victim.kill()
    victim.wait()


@contextmanager
def deadly(owner: Any, name: str, number: int, when: str, counts: Callable[..., bool] = lambda *_: True) -> Iterator[list[str]]:
    """Let an executor die before, while or after a method runs for the n-th time that counts; yields the list of deaths."""
    real: Callable[..., Any] = getattr(owner, name)
    calls, deaths = count(1), []

    def die() -> None:
        kill_one()
        deaths.append(name)

    def called(*given: Any, **named: Any) -> Any:
        now = when if counts(*given) and next(calls) == number else ""
        if now == "before":
            die()
        timer = threading.Timer(0.3, die)
        if now == "while":
            timer.start()
        out = real(*given, **named)
        if now == "while":
            timer.join()
        if now == "after":
            die()
        return out

    with patch.object(owner, name, called):
        yield deaths


MOMENTS: dict[str, Any] = {
    "never": None,
    "after parsing": (Pipeline, "_number", 1, "before"),
    "after numbering": (Pipeline, "_number", 1, "after"),
    "while a superstep runs": (SparkEngine, "_superstep", 1, "while"),
    "after the first superstep": (SparkEngine, "_superstep", 1, "after"),
    "while files are written": (Pipeline, "write", 1, "while"),
    "in an update": (SparkEngine, "_close", 2, "before"),
    "while proofs are looked for": (SparkEngine, "_superstep", 1, "after", lambda _, job, *__: job.step == Step.PROVE),
}


def count_attempts() -> list[int]:
    """A list that counts closings, and how often supersteps were begun for them."""
    closings = [0, 0]
    for place, name in enumerate(("_run", "_supersteps")):
        real = getattr(SparkEngine, name)

        def called(*given: Any, real: Callable[..., Any] = real, place: int = place) -> Any:
            closings[place] += 1
            return real(*given)

        setattr(SparkEngine, name, called)
    return closings


def drive(folder: Path) -> None:
    session = make_session(MASTER)
    SparkEngine.near = -1  # executors are to work, and to die
    closings = count_attempts()
    for when, moment in MOMENTS.items():
        while len(executors()) < 2:
            time.sleep(0.2)
        closings[:] = 0, 0
        death: AbstractContextManager[list[str]] = deadly(*moment) if moment is not None else nullcontext([])
        with death as deaths:
            found = load(folder, when, session)
        said = {"deaths": len(deaths), "again": closings[1] - closings[0], "found": found}
        (folder / f"{when}.json").write_text(json.dumps(said))
    session.stop()


@pytest.fixture(scope="module")
def driven(folder: Path) -> Path:
    import pyspark

    done = subprocess.run(
        [sys.executable, __file__, str(folder)],
        env={**os.environ, "SPARK_HOME": str(Path(pyspark.__file__).parent), "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    (folder / "driver.log").write_text("\n".join(line for line in done.stderr.splitlines() if not line.startswith("\tat ")))
    return folder


@pytest.mark.parametrize("when", MOMENTS)
def test_a_cluster_gives_the_same_bytes_when_an_executor_dies(driven: Path, when: str) -> None:
    assert (driven / f"{when}.json").exists(), (driven / "driver.log").read_text()[-6000:]
    said, want = (json.loads((driven / f"{name}.json").read_text()) for name in (when, "memory"))
    assert said["found"] == want
    assert said["deaths"] == (when != "never")
    if when in ("never", "after the first superstep", "while proofs are looked for"):
        assert (said["again"] > 0) == (when != "never"), "mail that was lost is sent again"
    kg = KnowledgeGraph.open(driven / when)
    assert kg.verify() == sum(kg.counts().values()) and kg.counts(Which.DERIVED)[TRIPLE] > 5_000


if __name__ == "__main__":
    drive(Path(sys.argv[1]))
