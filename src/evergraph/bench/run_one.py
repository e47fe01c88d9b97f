"""One closure in a process of its own: `python -m evergraph.bench.run_one SYSTEM RULES FILE CORES RESULT`.

Writes one JSON object to the file RESULT, whatever happens short of being killed; standard output belongs to the
systems. Trap: the process is pinned before anything is imported that starts threads, and thread settings come from
the environment (`environment`), because libraries read them on import.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from importlib import metadata, util
from pathlib import Path
from typing import Any

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS", "RAYON_NUM_THREADS")
VERSIONED = (
    "duckdb",
    "nemo-python",
    "clingo",
    "maplib",
    "reasonable",
    "owlrl",
    "pathway",
    "rdflib",
    "pyspark",
    "cupy-cuda13x",
    "cupy-cuda12x",
    "numpy",
    "pyarrow",
)


def environment(cores: int) -> dict[str, str]:
    """The environment of a run on so many cores."""
    return {**os.environ, **dict.fromkeys(THREADS, str(cores))}


def run(system: str, rules: str, file: Path, cores: int) -> dict[str, Any]:
    """Run one system here and say how it went; `status` is ok, missing, unsupported or failed."""
    from evergraph.bench.peers import Unsupported, find

    peer = find(system)
    if not all(map(importable, peer.modules)):
        return {"status": "missing", "line": f"pip install {peer.package}"}
    try:
        outcome = peer.run(file, rules, cores)
    except Unsupported as reason:
        return {"status": "unsupported", "line": _one_line(reason)}
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a panic in Rust is no Exception
        return {"status": "failed", "line": f"{type(error).__name__}: {_one_line(error)}"}
    memory, of = peak_memory()
    return {
        "status": "ok",
        "line": "",
        "load": outcome.load,
        "materialise": outcome.materialise if outcome.load is not None else None,
        "total": outcome.materialise + (outcome.load or 0.0),
        "triples": outcome.triples,
        "memory": memory,
        "memory_of": of,
        "phases": outcome.phases,
        "notes": outcome.notes,
    }


def versions() -> dict[str, str]:
    """The installed versions of everything measured."""
    out = {"python": sys.version.split()[0]}
    for package in ("evergraph", *VERSIONED):
        try:
            out[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return out


def peak_memory() -> tuple[int, str]:
    """Peak resident bytes of this process, and of its children where it has any (Spark's JVM and workers)."""
    own = _high_water("self")
    if own is None:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024), "process"
    children = [n for n in map(_high_water, _descendants(os.getpid())) if n is not None]
    return own + sum(children), "process and children, sum of peaks" if children else "process"


def _high_water(process: int | str) -> int | None:
    """Unlike `ru_maxrss`, this starts from nothing in a new process, however large the one that started it."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM")), None)


def _descendants(process: int) -> list[int]:
    try:
        import psutil
    except ImportError:
        return []
    return [child.pid for child in psutil.Process(process).children(recursive=True)]


def importable(module: str) -> bool:
    try:
        return util.find_spec(module) is not None
    except ImportError:
        return False


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__


def main(arguments: list[str]) -> None:
    system, rules, file, cores, result = arguments
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: int(cores)])
    found = run(system, rules, Path(file), int(cores))
    Path(result).write_text(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1:])
