"""clingo: the same rules as a program for its grounder, whose bottom-up instantiation is a semi-naive closure.

Facts are grounded first, as one program part, the rules after them as another: the first is the load, the second the
materialisation. Terms are ids, numbered by Evergraph's reader. Trap: heads are facts only while the program is
positive, which `portable` sees to.
"""

from __future__ import annotations

from pathlib import Path

from evergraph.bench.peers.base import Outcome, SameRules, timed
from evergraph.bench.peers.patterns import Key, Pattern, PatternRule, Value, portable, read
from evergraph.rules.model import Program, Variable


class Clingo(SameRules):
    name = "clingo"
    package = "clingo"
    modules: tuple[str, ...] = ("clingo",)

    def run(self, file: Path, rules: str, cores: int) -> Outcome:
        from clingo import Control

        program, notes = portable(Program.load(rules), file)
        control = Control(["--warn=none"])
        with timed() as load:
            encoded = read(file, program)
            triples = zip(*(column.tolist() for column in encoded.triples), strict=True)
            facts = "\n".join(f"t({s},{p},{o})." for s, p, o in triples)
            more = "\n".join(f"{_atom(fact)}." for fact in encoded.facts)
            control.add("base", [], f"{facts}\n{more}")
            control.ground([("base", [])])
        with timed() as materialise:
            control.add("rules", [], "\n".join(map(_rule, encoded.rules)))
            control.ground([("rules", [])])
        size = sum(1 for _ in control.symbolic_atoms.by_signature("t", 3))
        return Outcome(size, load.seconds, materialise.seconds, notes)


def _rule(rule: PatternRule) -> str:
    body = [_atom(a) for a in rule.body] + [f"{_value(a)} != {_value(b)}" for a, b in rule.unequal]
    return f"{_atom(rule.head)} :- {', '.join(body)}."


def _atom(pattern: Pattern) -> str:
    if isinstance(pattern.relation, str):
        return f"r_{pattern.relation}({', '.join(map(_value, pattern.args))})"
    subject, value = map(_value, pattern.args)
    return f"t({subject}, {_value(pattern.relation)}, {value})"


def _value(value: Value | Key) -> str:
    return f"V_{value.name}" if isinstance(value, Variable) else str(value)
