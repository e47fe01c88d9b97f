"""reasonable: its own OWL 2 RL rules, in Rust.

Trap: `reason` hands every triple to Python as rdflib terms, and there is no call that closes without doing so; the
time of that is in the materialisation.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from evergraph.bench.peers.base import Outcome, timed


class Reasonable:
    name = "reasonable"
    package = "reasonable"
    modules: tuple[str, ...] = ("reasonable",)
    same_rules = False
    smallest_only = False

    def rules_for(self, rules: str) -> str | None:
        return "its OWL 2 RL" if rules.startswith("owl2rl") else None

    def run(self, file: Path, rules: str, cores: int) -> Outcome:
        from reasonable import PyReasoner

        reasoner = PyReasoner()
        with TemporaryDirectory() as folder:
            turtle = Path(folder, "data.ttl")  # it goes by the ending, and N-Triples is Turtle
            turtle.symlink_to(file.resolve())
            with timed() as load:
                reasoner.load_file(str(turtle))
        with timed() as materialise:
            triples = reasoner.reason()
        notes = ["materialise includes handing all triples to Python"]
        return Outcome(len(triples), load.seconds, materialise.seconds, notes)
