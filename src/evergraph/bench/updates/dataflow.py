"""A hundred facts out of LUBM and in again, in pathway's incremental dataflow and in Evergraph, one process each.

`python -m evergraph.bench.updates.dataflow SYSTEM FILE FACTS TURNS CORES RESULT`. Both are given the same lists of triples as
strings, and are timed until their closure is what it has to be; both must reach closures of the same sizes.

pathway is given ρdf as its users would write it for speed: the schema's closures first, by iteration, then one join a rule
over data that is split by predicate. That is complete where no predicate lies below those of RDFS, as in LUBM; the sizes of the
closures are compared. Trap: pathway's work is done when `on_time_end` is called for a time at which something changed, so
that an update without any effect would be waited for in vain.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from threading import Event
from time import perf_counter
from typing import Any

from evergraph.bench.run_one import importable
from evergraph.bench.updates.facts import InstanceFacts, Triple, triple
from evergraph.rules.model import TYPE

RDFS = "http://www.w3.org/2000/01/rdf-schema#"
SYSTEMS = {"evergraph": "evergraph", "pathway": "pathway"}
"""What must be importable for each."""
PATIENCE = 120.0
"""Seconds after which a change that was not told is an error."""

Step = Callable[[str, Sequence[Triple]], int]
"""Load, delete or insert, and say how many triples the closure then has."""


def run(system: str, file: Path, facts: int, turns: int) -> dict[str, Any]:
    """Load, then delete and insert again; seconds of each, and the sizes of the closure."""
    if not importable(SYSTEMS[system]):
        return {"status": "missing", "line": f"not installed: pip install {SYSTEMS[system]}"}
    drawn = InstanceFacts(file)
    samples = [[triple(line) for line in drawn.draw(facts, turn)] for turn in range(turns)]
    everything = [triple(line) for line in dict.fromkeys(file.read_text().splitlines())]
    found: dict[str, Any] = {"status": "ok", "line": "", "delete": [], "insert": [], "closure_after": []}

    def script(step: Step) -> None:
        start = perf_counter()
        found["closure"] = step("load", everything)
        found["load"] = perf_counter() - start
        for sample in samples:
            for what in ("delete", "insert"):
                start = perf_counter()
                size = step(what, sample)
                found[what].append(perf_counter() - start)
                if what == "delete":
                    found["closure_after"].append(size)
                elif size != found["closure"]:
                    raise AssertionError(f"{size:,} triples after an insertion that should give {found['closure']:,}")

    {"evergraph": in_evergraph, "pathway": in_pathway}[system](script)
    return found


def in_evergraph(script: Callable[[Step], None]) -> None:
    from evergraph import KnowledgeGraph

    graph = KnowledgeGraph("rhodf")

    def step(what: str, triples: Sequence[Triple]) -> int:
        if what == "delete":
            graph.update(delete=triples)
        else:
            graph.update(insert=triples)
        return len(graph)

    script(step)


def in_pathway(script: Callable[[Step], None]) -> None:
    import pathway as pw

    ids: dict[str, int] = {}
    done = Event()
    size, changed = 0, False

    class Source(pw.io.python.ConnectorSubject):  # type: ignore[misc]
        def run(self) -> None:
            script(self.step)

        def step(self, what: str, triples: Iterable[Triple]) -> int:
            done.clear()
            for terms in triples:
                s, p, o = (ids.setdefault(term, len(ids)) for term in terms)
                if what == "delete":
                    self.delete(s=s, p=p, o=o)
                else:
                    self.next(s=s, p=p, o=o)
            self.commit()
            if not done.wait(PATIENCE):
                raise TimeoutError(f"pathway told no change after {what}")
            return size

        @property
        def _deletions_enabled(self) -> bool:
            return True  # pathway looks for calls of `delete` in `run` itself and would not find this one

    class Columns(pw.Schema):  # type: ignore[misc]
        s: int = pw.column_definition(primary_key=True)
        p: int = pw.column_definition(primary_key=True)
        o: int = pw.column_definition(primary_key=True)

    def on_change(key: Any, row: Any, time: int, is_addition: bool) -> None:
        nonlocal size, changed
        size += 1 if is_addition else -1
        changed = True

    def on_time_end(time: int) -> None:
        nonlocal changed
        if changed:
            changed = False
            done.set()

    names = {n: ids.setdefault(f"<{RDFS}{n}>", len(ids)) for n in ("subClassOf", "subPropertyOf", "domain", "range")}
    triples = pw.io.python.read(Source(), schema=Columns, autocommit_duration_ms=None)
    closure = closed(pw, triples, names, ids.setdefault(TYPE, len(ids)))
    pw.io.subscribe(closure, on_change=on_change, on_time_end=on_time_end)
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)


def closed(pw: Any, triples: Any, names: dict[str, int], type_id: int) -> Any:
    """The table of all triples that follow under ρdf from a table with columns `s, p, o`, without repetition."""

    def distinct(*tables: Any) -> Any:
        all_rows = pw.Table.concat_reindex(*tables)
        columns = [all_rows[name] for name in all_rows.column_names()]
        return all_rows.groupby(*columns).reduce(*columns)

    def pairs(name: str) -> Any:
        rows = triples.filter(triples.p == names[name])
        return rows.select(a=rows.s, b=rows.o)

    def further(c: Any) -> Any:
        copy = c.copy()
        return distinct(c, c.join(copy, c.b == copy.a).select(a=pw.left.a, b=pw.right.b))

    def transitive(name: str) -> Any:
        return pw.iterate(further, c=pw.iterate_universe(distinct(pairs(name))))

    above_class, above_property = transitive("subClassOf"), transitive("subPropertyOf")
    domain, range_ = pairs("domain"), pairs("range")
    given = triples.filter((triples.p != names["subClassOf"]) & (triples.p != names["subPropertyOf"]))
    above = given.join(above_property, given.p == above_property.a).select(s=pw.left.s, p=pw.right.b, o=pw.left.o)
    facts = distinct(given, above)
    stated = facts.filter(facts.p == type_id)
    types = distinct(
        stated.select(stated.s, stated.o),
        facts.join(domain, facts.p == domain.a).select(s=pw.left.s, o=pw.right.b),
        facts.join(range_, facts.p == range_.a).select(s=pw.left.o, o=pw.right.b),
    )
    types = distinct(types, types.join(above_class, types.o == above_class.a).select(s=pw.left.s, o=pw.right.b))
    return pw.Table.concat_reindex(
        facts.filter(facts.p != type_id),
        types.select(s=types.s, p=type_id, o=types.o),
        above_class.select(s=above_class.a, p=names["subClassOf"], o=above_class.b),
        above_property.select(s=above_property.a, p=names["subPropertyOf"], o=above_property.b),
    )


def main(arguments: list[str]) -> None:
    system, file, facts, turns, cores, result = arguments
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: int(cores)])
    Path(result).write_text(json.dumps(run(system, Path(file), int(facts), int(turns))))


if __name__ == "__main__":
    main(sys.argv[1:])
