"""Split predicates: each constant predicate, and each class, gets a relation of its own.

What it does: turns a program into an equivalent one in which atoms with a constant at a certain place read and write a relation
for that constant. What no rule asks for stays together in another one. A change of a rule then concerns the relations that
depend on it, and not all triples.

Paper: Volz, Staab, Motik: Incremental Maintenance of Materialized Ontologies. ODBASE 2003, §4.3.
Symbols: split point c_i → constant c at argument i. p^{c_i} → `p_c_i`, p_Ext^{c_i} → `p_Ext_c_i`, with the local name of c;
    p^Rest → `p_Rest`, p_Ext^Rest → `p_Ext_Rest`. The constant stays among the arguments, as printed. t → triples.
Invariant: facts of p that have c at i are those of p_c_i; together with p_Rest they are p. Explicit facts are in the `_Ext`
    relations, each in one.
Departures: the paper prints `t :- t_Ext^{c_i}`, and explicit facts in the body of its rule. Its text says `p :- p^{c_i}`, and
    over explicit facts the rule would not be recursive. So `t :- t_c_i`, and bodies read `t_c_i`. The whole p is derived only
    where a rule reads it, with a variable at i.
    Triples are split by predicate. `rdf:type` is split once more, by class: `t_type_2_Person_3` and `t_type_2_Rest` make up
    `t_type_2`. Other relations are split at one argument, the one that has constants in most atoms, so that the parts are
    disjoint; constants elsewhere are no split points.
    Rules with a variable at i in their head, of which the paper does not speak, may derive facts of any part. They write to
    p_Rest, and each part selects what is its own: `p_c_i(x, c, z) :- p_Rest(x, c, z)`. p_Rest then holds some facts that parts
    hold too; only p reads it besides.
Cost and traps: rules and split points. To compare two programs, as a change of rules does, give each the other as `also`: a
    constant that only one of them has would move facts from p_Rest to a new part.
Example: the second rule of Table 1.
    >>> dynasty = "@prefix : <http://example.org/> . :inDynasty[?x, ?y] :- :inDynasty[?x, ?z], :inDynasty[?z, ?y] ."
    >>> print(split(Program.parse(dynasty)).program, end="")
    @prefix : <http://example.org/> .
    t_Rest(?x, ?y, ?z) :- t_Ext_Rest(?x, ?y, ?z) .
    t_inDynasty_2(?x, ?y, ?z) :- t_Ext_inDynasty_2(?x, ?y, ?z) .
    t_inDynasty_2(?x, :inDynasty, ?y) :- t_inDynasty_2(?x, :inDynasty, ?z), t_inDynasty_2(?z, :inDynasty, ?y) .
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from evergraph.rules.model import (
    BUILTIN_RELATIONS,
    TRIPLE,
    TYPE,
    Atom,
    BodyItem,
    Comparison,
    Negation,
    Program,
    Rule,
    Term,
    Variable,
)
from evergraph.rules.variables import variables

TRIPLES = "t"
"""What the triple relation is called, if the program has no relation of this name."""


@dataclass(slots=True)
class Part:
    """The facts of a relation that have certain constants; it may be split further, at one argument."""

    stem: str
    """The name of the relation that is split."""
    separator: str
    fixed: dict[int, str] = field(default_factory=dict)
    """The constants, by argument."""
    ends: tuple[str, ...] = ()
    """What they are called in the names of relations."""
    at: int = 0
    parts: dict[str, Part] = field(default_factory=dict)
    """By the constant that stands at the argument `at`."""

    @property
    def whole(self) -> str:
        """The relation that holds all of it."""
        return self.separator.join((self.stem, *self.ends))

    @property
    def own(self) -> str:
        """The relation that rules write to: of a part with parts, what belongs to none of them."""
        return self.separator.join((self.whole, "Rest")) if self.parts else self.whole

    @property
    def explicit(self) -> str:
        """The relation that explicit facts go to, if they belong to no part of this one."""
        return self.separator.join((self.stem, "Ext", *self.ends, *(["Rest"] if self.parts else [])))

    def find(self, terms: tuple[Term, ...]) -> Part:
        """The smallest part that all facts of these terms belong to."""
        term = terms[self.at] if self.parts else None
        return self.parts[term].find(terms) if isinstance(term, str) and term in self.parts else self

    def all(self) -> Iterator[Part]:
        yield self
        for part in self.parts.values():
            yield from part.all()


@dataclass(frozen=True, slots=True)
class Split:
    """The program over split relations, and where facts belong."""

    program: Program
    parts: dict[str, Part]
    """By relation that is split."""

    @property
    def points(self) -> dict[str, tuple[str, ...]]:
        """Relations of split points, with their constants."""
        return {p.whole: tuple(p.fixed.values()) for root in self.parts.values() for p in root.all() if p.fixed}

    @property
    def explicit(self) -> list[str]:
        """The relations that explicit facts of split relations go to."""
        return [part.explicit for root in self.parts.values() for part in root.all()]

    def distribute(self, facts: Iterable[Atom]) -> list[Atom]:
        """Explicit facts, each in the `_Ext` relation it belongs to. Cost: linear in them."""
        return [Atom(self.parts[f.relation].find(f.terms).explicit, f.terms) if f.relation in self.parts else f for f in facts]

    def joined(self, facts: Iterable[Atom]) -> set[Atom]:
        """Facts of split relations as those of the relations they came from, and others as they are. Cost: linear in them."""
        names = {part.own: name for name, root in self.parts.items() for part in root.all()}
        derived = {p.whole for root in self.parts.values() for p in root.all()} - names.keys() | {*self.explicit}
        return {Atom(names.get(f.relation, f.relation), f.terms) for f in facts if f.relation not in derived}


def split(program: Program, also: Program | None = None) -> Split:
    """The program over split relations; constants of `also` are split points too. Cost: linear in both, and in the points."""
    rules, others = program.rules, also or Program()
    atoms = [atom for rule in (*rules, *others.rules) for atom in (rule.head, *rule.atoms, *rule.negations)]
    parts = _parts(atoms, {atom.relation for atom in (*atoms, *program.facts, *others.facts)})
    arities = {atom.relation: len(atom.terms) for atom in atoms}
    over = [Rule(_head(parts, rule.head), tuple(_item(parts, item) for item in rule.body), rule.name) for rule in rules]
    read = {atom.relation for rule in over for atom in (*rule.atoms, *rule.negations)}
    written = {rule.head.relation for rule in over}
    made: list[Rule] = []
    for name, root in parts.items():
        terms = variables(arities[name])
        made += [*_links(root, terms), *_wholes(root, terms, read), *_selections(root, terms, written)]
    facts = Split(Program(), parts).distribute(program.facts)
    return Split(Program((*made, *over), tuple(facts), program.prefixes), parts)


# -- split points ------------------------------------------------------------------------------------------------------


def _parts(atoms: list[Atom], taken: set[str]) -> dict[str, Part]:
    """Relations that have a constant at the argument where they are split, with their parts; no two have the same name.

    Constants are taken in the order of their text, so that programs with the same ones get the same names.
    """
    rows: dict[str, list[tuple[Term, ...]]] = {}
    for atom in atoms:
        if atom.relation not in BUILTIN_RELATIONS:
            rows.setdefault(atom.relation, []).append(atom.terms)
    separator, triples = "_", TRIPLES
    while True:
        roots = {name: Part(triples if name == TRIPLE else name, separator) for name in sorted(rows)}
        for name, root in roots.items():
            _divide(root, rows[name], 1 if name == TRIPLE else _place(rows[name]))
        found = {name: root for name, root in roots.items() if root.parts}
        if TRIPLE in found and TYPE in found[TRIPLE].parts:
            _divide(found[TRIPLE].parts[TYPE], [terms for terms in rows[TRIPLE] if terms[1] == TYPE], 2)
        names = [n for root in found.values() for part in root.all() for n in {part.whole, part.own, part.explicit}]
        if len(names) == len({*names}) and not (taken - found.keys()) & {*names}:
            return found
        separator, triples = f"{separator}_", f"{triples}_"


def _place(rows: list[tuple[Term, ...]]) -> int:
    """The argument that has constants in most atoms, the first of them."""
    counts = Counter(place for terms in rows for place, term in enumerate(terms) if isinstance(term, str))
    return min(counts, key=lambda place: (-counts[place], place), default=0)


def _divide(part: Part, rows: list[tuple[Term, ...]], at: int) -> None:
    """Give a part a part for each constant that stands at an argument."""
    part.at = at
    labels: set[str] = set()
    for constant in sorted({term for terms in rows for term in terms[at : at + 1] if isinstance(term, str)}):
        label, number = _label(constant), 1
        while label in labels:
            number += 1
            label = f"{_label(constant)}{number}"
        labels.add(label)
        ends = (*part.ends, f"{label}{part.separator}{at + 1}")
        part.parts[constant] = Part(part.stem, part.separator, {**part.fixed, at: constant}, ends)


def _label(constant: str) -> str:
    """The local name of an IRI, or the text of a literal, as part of a name."""
    text = constant[1:].rpartition('"')[0] if constant.startswith('"') else constant.strip("<>")
    last = [word for word in re.split(r"[#/:]", text) if word] or [text]
    return re.sub(r"\W+", "_", last[-1], flags=re.ASCII).strip("_")[:40] or "c"


# -- rules -------------------------------------------------------------------------------------------------------------


def _links(root: Part, terms: tuple[Variable, ...]) -> Iterator[Rule]:
    """p^{c_i} :- p_Ext^{c_i}."""
    for part in root.all():
        yield Rule(Atom(part.own, terms), (Atom(part.explicit, terms),))


def _wholes(part: Part, terms: tuple[Variable, ...], read: set[str]) -> Iterator[Rule]:
    """p :- p^{c_i}, if a rule reads p, or something p is a part of."""
    if not part.parts:
        return
    wanted = part.whole in read
    if wanted:
        for body in (part.own, *(inner.whole for inner in part.parts.values())):
            yield Rule(Atom(part.whole, terms), (Atom(body, terms),))
    for inner in part.parts.values():
        yield from _wholes(inner, terms, read | {inner.whole} if wanted else read)


def _selections(part: Part, terms: tuple[Variable, ...], written: set[str]) -> Iterator[Rule]:
    """p^{c_i}(…, c, …) :- p^Rest(…, c, …), if rules write to p^Rest; they then write to p^{c_i} too."""
    if part.parts and part.own in written:
        for inner in part.parts.values():
            chosen = tuple(inner.fixed.get(place, term) for place, term in enumerate(terms))
            yield Rule(Atom(inner.own, chosen), (Atom(part.own, chosen),))
        written = written | {inner.own for inner in part.parts.values()}
    for inner in part.parts.values():
        yield from _selections(inner, terms, written)


def _head(parts: dict[str, Part], atom: Atom) -> Atom:
    return Atom(parts[atom.relation].find(atom.terms).own, atom.terms) if atom.relation in parts else atom


def _item(parts: dict[str, Part], item: BodyItem) -> BodyItem:
    if isinstance(item, Comparison):
        return item
    atom = item.atom if isinstance(item, Negation) else item
    if atom.relation in parts:
        atom = Atom(parts[atom.relation].find(atom.terms).whole, atom.terms)
    return Negation(atom) if isinstance(item, Negation) else atom
