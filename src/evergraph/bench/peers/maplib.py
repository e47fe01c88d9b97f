"""maplib: its own RDFS rules (2, 3, 5, 6, 8, 9, 10, 11), over Polars.

Trap: it keeps inferred triples apart and `Model.size` does not count them; what `infer_rdfs` returns is how many it
added.
"""

from __future__ import annotations

from pathlib import Path

from evergraph.bench.peers.base import Outcome, timed


class Maplib:
    name = "maplib"
    package = "maplib"
    modules: tuple[str, ...] = ("maplib",)
    same_rules = False
    smallest_only = False

    def rules_for(self, rules: str) -> str | None:
        return "its RDFS" if rules in ("rhodf", "rdfs") else None

    def run(self, file: Path, rules: str, cores: int) -> Outcome:
        from maplib import Model

        model = Model()
        with timed() as load:
            model.read(str(file), format="ntriples")
        with timed() as materialise:
            inferred = model.infer_rdfs()
        return Outcome(model.size() + inferred, load.seconds, materialise.seconds)
