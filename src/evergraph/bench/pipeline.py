"""From text to a committed store, stage by stage: `evergraph bench pipeline`.

Each load runs in a process of its own, with a Spark session that has done nothing before; starting the session is not
counted. Beside it: Urbani et al. 2013, Fig. 5 (left), LUBM(1000) on eight cores, all of their stages together. Trap: peaks of
memory are the sum of each process's own, which need not have come at one time.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from rich.table import Table

from evergraph.bench import results
from evergraph.bench.run_one import _descendants, _high_water

URBANI_SECONDS = {"compress": 876, "index": 7953, "close": 886, "copy": 5967}
URBANI_TRIPLES, URBANI_CORES = 138_000_000, 8
URBANI = sum(URBANI_SECONDS.values()) * URBANI_CORES / URBANI_TRIPLES
"""Core seconds a triple, all of their stages."""
STAGES = ("parse", "dictionary", "encode", "close", "write")


def main(sizes: list[int], rules: str, engines: list[str], cores: int, out: Path, data: Path = Path("bench-data")) -> int:
    """Measure, print a table, write `pipeline.json` into `out`."""
    rows: list[dict[str, Any]] = []
    for engine in engines:
        for universities in sorted(sizes):
            row = {"universities": universities, **measure(engine, rules, results.lubm(universities, data), cores)}
            least = next((r for r in rows if r["engine"] == engine), row)
            row["to_linear"] = (row["seconds"] / least["seconds"]) / (row["triples"] / least["triples"])
            row["times_urbani"] = URBANI / (row["seconds"] * cores / row["triples"])
            rows.append(row)
    results.console().print(table(rows))
    results.save(out / "pipeline.json", rows, cores=cores, urbani=URBANI_SECONDS)
    return 0


def measure(engine: str, rules: str, file: Path, cores: int) -> dict[str, Any]:
    """One load in a new process."""
    with TemporaryDirectory(prefix="evergraph-bench-", dir=file.parent) as folder:
        said = Path(folder) / "said.json"
        arguments = [engine, rules, str(file), str(Path(folder) / "store"), str(cores), str(said)]
        subprocess.run([sys.executable, "-m", "evergraph.bench.pipeline", *arguments], check=True)
        found: dict[str, Any] = json.loads(said.read_text())
        return found


def load(engine: str, rules: str, file: Path, store: Path, cores: int) -> dict[str, Any]:
    """Load here and say how it went."""
    from evergraph import KnowledgeGraph

    where: Any = engine
    if engine == "spark":
        from evergraph.engines.spark import make_session

        where = make_session(f"local[{cores}]")
        where.range(1).count()
    start = perf_counter()
    kg = KnowledgeGraph(rules, engine=where, store=store, equality="off")
    report = kg.update(insert=[file], operation="load")
    seconds = perf_counter() - start
    phases = {phase.name: phase.seconds for phase in report.phases}
    close = sum(s for name, s in phases.items() if name.startswith("stratum")) + phases["insert"]
    stages = {name: phases.get(name, 0.0) for name in ("parse", "dictionary", "encode")}
    stages["parse"] += phases["read"]
    stages |= {"close": close, "write": phases["commit"]}
    tables = kg.stats()["tables"]
    facts = sum(kg.counts().values())
    parsed = next(phase.facts for phase in report.phases if phase.name in ("parse", "read"))
    return {
        "engine": engine,
        "rules": rules,
        "triples": parsed,
        "facts": facts,
        "seconds": seconds,
        "stages": stages,
        "memory": _memory(),
        "bytes": {name: t["bytes"] for name, t in tables.items()},
    }


def _memory() -> dict[str, int]:
    """Peak resident bytes of the JVM, of this process and of Spark's Python workers."""
    found = {"jvm": 0, "driver": _high_water("self") or 0, "workers": 0}
    for child in _descendants(os.getpid()):
        name = Path(f"/proc/{child}/comm").read_text().strip() if Path(f"/proc/{child}").exists() else ""
        found["jvm" if name == "java" else "workers"] += _high_water(child) or 0
    return found


def table(rows: list[dict[str, Any]]) -> Table:
    out = Table(title="Text to committed store, seconds")
    for name in ("engine", "rules"):
        out.add_column(name)
    columns = ("LUBM", "triples", *STAGES, "all", "triples/s", "JVM MB", "Python MB", "bytes/fact", "to linear", "× Urbani")
    for name in columns:
        out.add_column(name, justify="right")
    for row in rows:
        memory = row["memory"]
        out.add_row(
            row["engine"],
            row["rules"],
            str(row["universities"]),
            f"{row['triples'] / 1e6:.2f} M",
            *(f"{row['stages'][stage]:.1f}" for stage in STAGES),
            f"{row['seconds']:.1f}",
            f"{row['triples'] / row['seconds'] / 1e3:,.0f} k",
            f"{memory['jvm'] / 1e6:,.0f}",
            f"{(memory['driver'] + memory['workers']) / 1e6:,.0f}",
            f"{sum(row['bytes'].values()) / row['facts']:.2f}",
            f"{row['to_linear']:.2f}",
            f"{row['times_urbani']:.0f}",
        )
    return out


if __name__ == "__main__":
    engine, rules, file, store, cores, said = sys.argv[1:]
    Path(said).write_text(json.dumps(load(engine, rules, Path(file), Path(store), int(cores))))
    shutil.rmtree(store, ignore_errors=True)
