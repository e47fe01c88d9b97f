"""owlrl: its own RDFS and OWL 2 RL closures, in Python over rdflib. Trap: a minute and more for LUBM(1)."""

from __future__ import annotations

from pathlib import Path

from evergraph.bench.peers.base import Outcome, timed


class Owlrl:
    name = "owlrl"
    package = "owlrl"
    modules: tuple[str, ...] = ("owlrl",)
    same_rules = False
    smallest_only = True

    def rules_for(self, rules: str) -> str | None:
        if rules.startswith("owl2rl"):
            return "its OWL 2 RL"
        return "its RDFS" if rules in ("rhodf", "rdfs") else None

    def run(self, file: Path, rules: str, cores: int) -> Outcome:
        import owlrl
        import rdflib

        graph = rdflib.Graph()
        with timed() as load:
            graph.parse(str(file), format="nt")
        semantics = owlrl.OWLRL_Semantics if rules.startswith("owl2rl") else owlrl.RDFS_Semantics
        with timed() as materialise:
            owlrl.DeductiveClosure(semantics).expand(graph)
        return Outcome(len(graph), load.seconds, materialise.seconds)
