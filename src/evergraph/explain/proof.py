"""A proof: a fact, the rule that gives it, and proofs of what the rule needs.

Contract: no fact is below itself, and what is explicit or built in has nothing below it. A fact that is used twice has one
`Proof`, used twice, so that a proof has as many parts as it has facts.
Trap: as a tree it can be far larger than that, and far deeper than Python's stack. Nothing here is recursive, the text and
the dictionary say once what is used often, and proofs compare by identity.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from evergraph.rules.model import PREFIXES, Atom, Comparison, Operator
from evergraph.rules.printer import print_atom, print_term

Fact = Atom | Comparison
"""What a rule needs to be true: a fact, or a comparison of two terms."""


class Kind(StrEnum):
    EXPLICIT = "explicit"
    DERIVED = "derived"
    BUILT_IN = "built-in"


@dataclass(frozen=True, slots=True, eq=False)
class Proof:
    """Why a fact holds; `print` shows it as a tree, a step a line with the rule's name, `as_dict` is for JSON.

    >>> edge = Proof(Atom("edge", ("<http://a>", "<http://b>")), Kind.EXPLICIT)
    >>> print(Proof(Atom("path", edge.fact.terms), Kind.DERIVED, "base", (edge,)))
    path(<http://a>, <http://b>)  by base
    └─ edge(<http://a>, <http://b>)  explicit
    """

    fact: Fact
    kind: Kind
    rule: str | None = None
    """The name of the rule, its text if it has no name; None where no rule was used or none was asked for."""
    premises: tuple[Proof, ...] = field(default=(), repr=False)
    """What the rule needed, in the order of its body, comparisons last."""
    absent: tuple[Atom, ...] = ()
    """What the rule needed not to hold."""
    alternatives: tuple[Proof, ...] = field(default=(), repr=False)
    """Every rule instance that supports the fact, one step each, where these were asked for in place of one proof."""
    prefixes: Mapping[str, str] = field(default_factory=lambda: PREFIXES, repr=False)

    def __str__(self) -> str:
        """The proof as a tree. A derived fact that occurs again is shown with its proof once, the first time."""
        lines: list[str] = []
        shown: set[Fact] = set()
        ways = set(self.alternatives)
        rest: list[tuple[Proof | Atom, str, str]] = [(self, "", "")]
        while rest:
            item, branch, indent = rest.pop()
            if isinstance(item, Atom):
                lines.append(f"{branch}NOT {_show(item, self.prefixes)}  absent")
                continue
            if item.rule is not None and item.fact in shown and item not in ways:
                lines.append(f"{branch}{_show(item.fact, self.prefixes)}  see above")
                continue
            fact = "" if item in ways else f"{_show(item.fact, self.prefixes)}  "
            lines.append(f"{branch}{fact}{item._how()}")
            shown.add(item.fact)
            below: list[Proof | Atom] = [*item.alternatives, *item.premises, *item.absent]
            last = len(below) - 1
            for place in range(last, -1, -1):
                here, under = ("└─ ", "   ") if place == last else ("├─ ", "│  ")
                rest.append((below[place], indent + here, indent + under))
        return "\n".join(lines)

    def _how(self) -> str:
        if self.rule is not None:
            return f"by {self.rule}"
        if not self.alternatives:
            return str(self.kind)
        ways = "one way" if len(self.alternatives) == 1 else f"{len(self.alternatives):,} ways"
        return f"explicit, and derived in {ways}" if self.kind == Kind.EXPLICIT else f"derived in {ways}"

    def walk(self) -> Iterator[Proof]:
        """This proof and all below it, each fact once and after what it is derived from; alternatives each by itself."""
        seen: set[Fact] = set()
        ways = set(self.alternatives)
        rest = [(self, False)]
        while rest:
            proof, done = rest.pop()
            if done:
                yield proof
            elif proof.fact not in seen or proof in ways:
                seen.add(proof.fact)
                rest.append((proof, True))
                rest += [(below, False) for below in (*proof.premises[::-1], *proof.alternatives[::-1])]

    def as_dict(self) -> dict[str, Any]:
        """The proof for JSON, flat: `facts` has each fact once, `steps` each rule instance, in an order to follow.

        Steps refer to facts by their text: Datalog with the prefixes that every program knows. `terms` are N-Triples.
        """
        facts: dict[str, dict[str, Any]] = {}
        steps: list[dict[str, Any]] = []
        for proof in self.walk():
            text = _show(proof.fact)
            facts[text] = {"fact": text, **_parts(proof.fact), "kind": str(proof.kind)}
            if proof.rule is not None:
                premises, absent = [_show(p.fact) for p in proof.premises], [_show(a) for a in proof.absent]
                steps.append({"fact": text, "rule": proof.rule, "premises": premises, "absent": absent})
        return {"fact": _show(self.fact), "facts": list(facts.values()), "steps": steps}


def _show(fact: Fact, prefixes: Mapping[str, str] = PREFIXES) -> str:
    if isinstance(fact, Atom):
        return print_atom(fact, prefixes)
    left, right = print_term(fact.left, prefixes), print_term(fact.right, prefixes)
    return f"ILLTYPED({left}, {right})" if fact.operator == Operator.ILLTYPED else f"{left} {fact.operator} {right}"


def _parts(fact: Fact) -> dict[str, Any]:
    if isinstance(fact, Atom):
        return {"relation": fact.relation, "terms": list(fact.terms)}
    return {"relation": str(fact.operator), "terms": [fact.left, fact.right]}
