"""The four axioms that RDFS can say as a triple and Datalog as a rule: subclass, subproperty, domain, range.

    kind          triple                          rule
    subclass      C rdfs:subClassOf D             D[?x] :- C[?x] .
    subproperty   p rdfs:subPropertyOf q          q[?x, ?y] :- p[?x, ?y] .
    domain        p rdfs:domain C                 C[?x] :- p[?x, ?y] .
    range         p rdfs:range C                  C[?y] :- p[?x, ?y] .

Under the rule set `rhodf` the triples say of instances what the rules say; of the schema they say more, its closure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from evergraph.rules.model import RDFS, Program

NAMESPACE = "http://example.org/"
PREFIX = f"@prefix : <{NAMESPACE}> .\n"
KINDS = {
    "subclass": (f"<{RDFS}subClassOf>", ":{1}[?x] :- :{0}[?x] ."),
    "subproperty": (f"<{RDFS}subPropertyOf>", ":{1}[?x, ?y] :- :{0}[?x, ?y] ."),
    "domain": (f"<{RDFS}domain>", ":{1}[?x] :- :{0}[?x, ?y] ."),
    "range": (f"<{RDFS}range>", ":{1}[?y] :- :{0}[?x, ?y] ."),
}
"""The predicate of the triple, and the rule."""


@dataclass(frozen=True, slots=True, order=True)
class Axiom:
    """An axiom about two names.

    >>> print(Axiom("domain", "worksFor", "Person").rule)
    :Person[?x] :- :worksFor[?x, ?y] .
    """

    kind: str
    lower: str
    upper: str

    @property
    def rule(self) -> str:
        return KINDS[self.kind][1].format(self.lower, self.upper)

    @property
    def triple(self) -> tuple[str, str, str]:
        return iri(self.lower), KINDS[self.kind][0], iri(self.upper)


def iri(name: str) -> str:
    return f"<{NAMESPACE}{name}>"


def program(axioms: Iterable[Axiom]) -> Program:
    """The axioms as rules. Cost: linear."""
    return Program.parse(PREFIX + "\n".join(axiom.rule for axiom in axioms))
