"""Many names of one thing: how long it takes until they are one clique, and how the work grows with their number.

The names become equal as the values of a functional property of one subject (`functional`), or by a chain of stated owl:sameAs
(`chain`). Each name has ten facts of its own, in eight of which it is the subject and in two the object. With axioms, n names
have n² equalities, found by n³ derivations, and n times all facts; with representatives both should grow with the facts, the
pairs of values of the functional property aside.

Each run has a process of its own, `python -m evergraph.bench.equality.cliques KIND NAMES SYSTEM CORES RESULT`, which is ended
at the limit: what axioms derive in one round may be more than memory holds, so the process may take no more than a share of it.
reasonable, a peer that pip can install, closes the same facts by its own OWL 2 RL rules, which have equality as axioms.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from evergraph import Program
from evergraph.bench import run_one
from evergraph.bench.apart import apart
from evergraph.bench.equality.generator import DATA, SAME, SPACE, TYPE
from evergraph.bench.equality.programs import Equality, graph, held, timed_update
from evergraph.bench.updates.deletions import Say

KINDS = ("functional", "chain")
SYSTEMS = ("rewrite", "axioms", "reasonable")
OUT, IN = 8, 2
"""Facts of a name of which it is the subject, and the object."""
MEMORY = 0.7
"""The share of the machine's memory that a run may take."""
ONLY = f"<{SPACE}only>"
RULES = f"[?a, owl:sameAs, ?b] :- [?x, {ONLY}, ?a], [?x, {ONLY}, ?b] ."


def lines(kind: str, names: int) -> Iterator[str]:
    """The facts, each a line of N-Triples; that the property is functional stands among them for those who go by that."""
    every = [f"<{DATA}name{n}>" for n in range(names)]
    if kind == "functional":
        yield f"{ONLY} {TYPE} <http://www.w3.org/2002/07/owl#FunctionalProperty> .\n"
        yield from (f"<{DATA}one> {ONLY} {name} .\n" for name in every)
    else:
        yield from (f"{name} {SAME} {after} .\n" for name, after in pairwise(every))
    for name in every:
        yield from (f"{name} <{SPACE}out{n}> {name[:-1]}/out{n}> .\n" for n in range(OUT))
        yield from (f"{name[:-1]}/in{n}> <{SPACE}in{n}> {name} .\n" for n in range(IN))


def measure(kinds: Sequence[str], names: Sequence[int], limit: float, say: Say) -> list[dict[str, Any]]:
    """A row for each kind, system and number of names; a system that was stopped is not asked for more names."""
    rows: list[dict[str, Any]] = []
    for kind in kinds:
        for system in SYSTEMS:
            slow = ""
            for number in sorted(set(names)):
                row = {"kind": kind, "names": number, "system": system, "limit": limit}
                if slow:
                    rows.append(row | {"status": "skipped", "line": slow})
                    continue
                say(f"a clique of {number:,} names, {kind}, {system}")
                found = apart("evergraph.bench.equality.cliques", [kind, str(number), system], 1, limit)
                if found["line"].startswith("killed by signal 6 "):  # how Rust ends where an allocation fails
                    found = _too_large()
                rows.append(row | found)
                if rows[-1]["status"] not in ("ok", "missing"):
                    slow = f"{number:,} names: {rows[-1]['line']}"
    return rows


def run(kind: str, names: int, system: str) -> dict[str, Any]:
    """One materialisation, in this process."""
    return peer(kind, names, system) if system == "reasonable" else ours(kind, names, cast("Equality", system))


def ours(kind: str, names: int, equality: Equality) -> dict[str, Any]:
    kg = graph(Program.parse(RULES), equality)
    text = "".join(lines(kind, names))
    explicit = text.count("\n")
    seconds, report = timed_update(kg, insert=text)
    row = {"seconds": seconds, "derivations": report.derivations, "explicit": explicit, "facts": held(kg), "expanded": len(kg)}
    return {"status": "ok", "line": "", **row, "per_fact": report.derivations / explicit}


def peer(kind: str, names: int, system: str) -> dict[str, Any]:
    """A peer tells no derivations; its time includes handing all triples to Python."""
    with TemporaryDirectory() as folder:
        file = Path(folder, "clique.nt")
        file.write_text("".join(lines(kind, names)))
        found = run_one.run(system, "owl2rl", file, 1)
    row = {"status": found["status"], "line": found["line"]}
    return row | ({"seconds": found["materialise"], "facts": found["triples"]} if found["status"] == "ok" else {})


def main(arguments: Sequence[str]) -> None:
    kind, names, system, cores, result = arguments
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: int(cores)])
    resource.setrlimit(resource.RLIMIT_AS, (_memory(), _memory()))
    try:
        found = run(kind, int(names), system)
    except MemoryError:
        found = _too_large()
    Path(result).write_text(json.dumps(found))


def _too_large() -> dict[str, Any]:
    return {"status": "memory", "line": f"needs more than {_memory() / 2**30:.0f} GiB"}


def _memory() -> int:
    """Bytes that a run may take."""
    return int(MEMORY * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


if __name__ == "__main__":
    main(sys.argv[1:])
