"""nemo: the same rules as nemo's own text, over one ternary relation.

Predicates and classes that rules name have relations of their own for bodies to read; rdf:type as a whole has not, it
would be copied for nothing. With the ternary relation alone, some rules (scm-svf1, prp-fp) run for minutes on LUBM(1).
Trap: `reason` reads the file and closes in one call, so only the total is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from evergraph.bench.peers.base import Outcome, SameRules, timed
from evergraph.bench.peers.patterns import portable
from evergraph.rules.model import TRIPLE, TYPE, Atom, Program, Rule, Variable

TRIPLES = "triple"


class Nemo(SameRules):
    name = "nemo"
    package = "nemo-python"
    modules: tuple[str, ...] = ("nmo_python",)

    def run(self, file: Path, rules: str, cores: int) -> Outcome:
        import nmo_python

        program, notes = portable(Program.load(rules), file)
        text = program_text(program, file)
        with timed() as total:
            engine = nmo_python.NemoEngine(nmo_python.load_string(text))
            engine.reason()
        triples = sum(1 for _ in engine.result(TRIPLES))
        return Outcome(triples, None, total.seconds, notes)


def program_text(program: Program, file: Path) -> str:
    """The whole program: one import, then rules and facts, a line each."""
    bodies = [atom for rule in program.rules for atom in rule.atoms]
    keys = dict.fromkeys(key for atom in bodies if (key := _key(atom)) is not None)
    split = {key: f"p_{number}" for number, key in enumerate(keys)}
    lines = [f'@import {TRIPLES} :- ntriples{{resource="{file.resolve()}"}} .']
    for (predicate, value), name in split.items():
        lines.append(f"{name}(?s{'' if value else ', ?o'}) :- {TRIPLES}(?s, {predicate}, {value or '?o'}) .")
    lines += (_rule(rule, split) for rule in program.rules)
    lines += (f"{_atom(fact, {})} ." for fact in program.facts)
    return "\n".join(lines)


Key = tuple[str, str | None]
"""A predicate, or rdf:type and a class."""


def _key(atom: Atom) -> Key | None:
    """What a body atom can read instead of all triples."""
    if atom.relation != TRIPLE or isinstance(atom.terms[1], Variable):
        return None
    if atom.terms[1] != TYPE:
        return atom.terms[1], None
    return None if isinstance(atom.terms[2], Variable) else (TYPE, atom.terms[2])


def _rule(rule: Rule, split: Mapping[Key, str]) -> str:
    body = [_atom(a, split) for a in rule.atoms] + [f"{c.left} != {c.right}" for c in rule.comparisons]
    return f"{_atom(rule.head, {})} :- {', '.join(body)} ."


def _atom(atom: Atom, split: Mapping[Key, str]) -> str:
    terms = list(map(str, atom.terms))
    if atom.relation != TRIPLE:
        return f"r_{atom.relation}({', '.join(terms)})"
    key = _key(atom)
    if key is None or key not in split:
        return f"{TRIPLES}({', '.join(terms)})"
    return f"{split[key]}({terms[0]})" if key[1] else f"{split[key]}({terms[0]}, {terms[2]})"
