"""The maintenance program of a window: insertion and expiry as rules.

What it does: rewrites a program without negation into another one, printed. Each fact there has a time at which it expires, in
square brackets after it. Given what was materialised and which facts enter the window, the other program derives which facts
of each relation come and go. It is for reading: nothing parses it, and engines run what it says on arrays.

Paper: Barbieri, Braga, Ceri, Della Valle, Grossniklaus: Incremental Reasoning on Streams and Rich Background Knowledge. ESWC
    2010, §3: Tables 4 and 5; Table 6 is its example.
Symbols: P → `isIn`, what was materialised. P^Ins → `isIn_Ins`, what enters the window and what follows from it. P^New →
    `isIn_New`, what is there afterwards. P^Old → `isIn_Old`, what is there for longer by another derivation. P⁺⁺ →
    `isIn_PlusPlus`, without a meaning of its own. P⁺ → `isIn_Plus`, what comes. P⁻ → `isIn_Minus`, what goes. **P**, all
    relations of the program → `Names.arities`. T, T₁, … → `?T`, `?T1`, …; Δ₁^New and its like → `Δ1New(isIn)`, at the end of
    their lines; R → a rule's name, or `R1`, `R2`, … by its place.
Invariant: given are `now`; P, closed under the rules, each fact with the latest time that a derivation gives it; of P^Ins, what
    enters, with times of now or later. A derivation holds as long as all its facts do, so its time is the least of theirs.
    Then P less P⁻ and with P⁺ is closed again, and nothing in it has expired. The background expires never: its time is ∞.
Departures: P⁻ by Δ₁⁻ has the time T₁ of its body, where the paper prints a T that nothing binds. Comparisons are copied, and so
    are negated built-ins: what two literals have to do with each other never changes. Other built-ins count as relations.
    Else the lines are the paper's, and not all are to be taken at their word. Δ⁺⁺ negates P, and Δ⁺ P^Old, at any time T₁: a
    fact that is there and is derived for longer then goes by Δ₂⁻ and comes by nothing, where Figure 4 has it stay. T for T₁ in
    both keeps it, but lets a fact that is there and enters with a shorter time have that too; when the shorter one expires,
    Δ₁^New drops both, unless it has T for T₁ as well. So read, the program does what §3 says; tests evaluate it both ways.
    Engines keep one time for each fact, the latest. `now - 1` is the instant before, of a window that moves by one; where it
    moves further, all times before now are meant.
Cost and traps: 8 · relations + body atoms, counted in rules. To evaluate them costs at least the materialisation, which Δ₁^New
    copies. The program is not stratified: P^New negates P^Old, which P^Ins makes, which P^New makes. But P^Old at T asks for
    P^Ins later than T, and a derivation is never later than its facts: from the latest time to the earliest, each negation is
    settled before it is asked. With NOT in a body no time is known: a fact ends when something comes that its rule denies.
    Such a program is refused, EG606.
Example: the rule of §2.3, and what becomes of it in Table 6; lines are cut at their comments.
    >>> program = Program.parse('#[name("R")] isIn(?x, ?z) :- isIn(?x, ?y), isIn(?y, ?z) .')
    >>> for line in window_program(program).splitlines():
    ...     print(line.partition("  %")[0])
    isIn_New(?x, ?y)[?T] :- isIn(?x, ?y)[?T], NOT isIn(?x, ?y)[?T1], ?T1 = now - 1 .
    isIn_New(?x, ?y)[?T] :- isIn_Ins(?x, ?y)[?T], NOT isIn_Old(?x, ?y)[?T] .
    isIn_Old(?x, ?y)[?T] :- isIn_Ins(?x, ?y)[?T1], isIn(?x, ?y)[?T], ?T1 > ?T .
    isIn_Old(?x, ?y)[?T] :- isIn_Ins(?x, ?y)[?T1], isIn_Ins(?x, ?y)[?T], ?T1 > ?T .
    isIn_Minus(?x, ?y)[?T1] :- isIn(?x, ?y)[?T1], ?T1 = now - 1, NOT isIn_Ins(?x, ?y)[?T1] .
    isIn_Minus(?x, ?y)[?T] :- isIn_Old(?x, ?y)[?T] .
    isIn_PlusPlus(?x, ?y)[?T] :- isIn_New(?x, ?y)[?T], NOT isIn(?x, ?y)[?T1] .
    isIn_Plus(?x, ?y)[?T] :- isIn_PlusPlus(?x, ?y)[?T], NOT isIn_Old(?x, ?y)[?T1] .
    isIn_Ins(?x, ?z)[?T] :- isIn_Ins(?x, ?y)[?T1], isIn_New(?y, ?z)[?T2], ?T = min(?T1, ?T2) .
    isIn_Ins(?x, ?z)[?T] :- isIn_New(?x, ?y)[?T1], isIn_Ins(?y, ?z)[?T2], ?T = min(?T1, ?T2) .
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from evergraph.errors import UserError, raise_all
from evergraph.maintain.states import TRIPLES
from evergraph.rules.model import BUILTIN_RELATIONS, PREFIXES, TRIPLE, Atom, Program, Rule
from evergraph.rules.printer import print_atom, print_item, print_rule
from evergraph.rules.variables import variables

ENDS = ("New", "Ins", "Old", "PlusPlus", "Plus", "Minus")
"""Of the relations that tell what becomes of one."""

BY_RELATION = {
    "Δ1New": "{New}[{T}] :- {P}[{T}], NOT {P}[{T}1], {T}1 = now - 1 .",
    "Δ2New": "{New}[{T}] :- {Ins}[{T}], NOT {Old}[{T}] .",
    "Δ1Old": "{Old}[{T}] :- {Ins}[{T}1], {P}[{T}], {T}1 > {T} .",
    "Δ2Old": "{Old}[{T}] :- {Ins}[{T}1], {Ins}[{T}], {T}1 > {T} .",
    "Δ1−": "{Minus}[{T}1] :- {P}[{T}1], {T}1 = now - 1, NOT {Ins}[{T}1] .",
    "Δ2−": "{Minus}[{T}] :- {Old}[{T}] .",
    "Δ++": "{PlusPlus}[{T}] :- {New}[{T}], NOT {P}[{T}1] .",
    "Δ+": "{Plus}[{T}] :- {PlusPlus}[{T}], NOT {Old}[{T}1] .",
}
"""The upper half of Table 5, in its order."""


def window_program(program: Program) -> str:
    """The maintenance program of a window over a program, a line for each prefix and rule. Cost: linear in what it returns."""
    raise_all(negating(program))
    names = Names(program)
    lines = [f"@prefix {prefix}: <{iri}> ." for prefix, iri in program.prefixes.items() if PREFIXES.get(prefix) != iri]
    lines += [line for name in names.arities for line in _of_relation(name, names)]
    lines += [line for n, rule in enumerate(program.rules, 1) for line in _of_rule(rule, f"R{n}", names, program.prefixes)]
    return "".join(f"{line}\n" for line in lines)


def given(program: Program) -> list[str]:
    """The relations that a window's program is given: all as they are, and what enters of each."""
    names = Names(program)
    return [names.of(name, end) for end in ("", "Ins") for name in names.arities]


def negating(program: Program) -> list[UserError]:
    """The rules that negate what may come and go, as mistakes."""
    hint = "leave out NOT, or maintain the window by another algorithm: auto finds one"
    return [
        UserError("EG606", f"negation has no expiry: {_said(rule, program.prefixes)}", hint, rule.position)
        for rule in program.rules
        if any(atom.relation not in BUILTIN_RELATIONS for atom in rule.negations)
    ]


class Names:
    """What relations and times are called, so that no two names clash: `p__Ins` in a program that has a `p_Ins`, `?T_` in one
    that has a `?T` or a `?T1`."""

    def __init__(self, program: Program) -> None:
        atoms = [atom for rule in program.rules for atom in (rule.head, *rule.atoms)]
        self.arities = {atom.relation: len(atom.terms) for atom in atoms}
        self.separator, self._triples, self.time = "_", TRIPLES, "T"
        while not self._are_free({*program.relations}):
            self.separator, self._triples = f"{self.separator}_", f"{self._triples}_"
        taken = {v.name for rule in program.rules for item in (rule.head, *rule.body) for v in item.variables}
        while any(re.fullmatch(rf"{self.time}[0-9]*", name) for name in taken):
            self.time += "_"

    def of(self, relation: str, end: str = "") -> str:
        stem = self._triples if relation == TRIPLE else relation
        return f"{stem}{self.separator}{end}" if end else stem

    def _are_free(self, taken: set[str]) -> bool:
        made = [self.of(name, end) for name in self.arities for end in ENDS]
        made += [self._triples] if TRIPLE in self.arities else []
        return len(made) == len({*made}) and not taken & {*made}


def _of_relation(relation: str, names: Names) -> Iterator[str]:
    """Δ₁^New to Δ⁺: rules about whole relations."""
    terms = variables(names.arities[relation])
    atoms = {end or "P": print_atom(Atom(names.of(relation, end), terms)) for end in ("", *ENDS)}
    for function, text in BY_RELATION.items():
        yield f"{text.format(**atoms, T=f'?{names.time}')}  % {function}({names.of(relation)})"


def _of_rule(rule: Rule, label: str, names: Names, prefixes: Mapping[str, str]) -> Iterator[str]:
    """Δ^Ins: H^Ins[T] :- B₁^New[T₁], …, B_i^Ins[T_i], …, B_n^New[T_n], T = min(T₁, …, T_n), for each i."""

    def timed(atom: Atom, end: str, number: str) -> str:
        return f"{print_atom(Atom(names.of(atom.relation, end), atom.terms), prefixes)}[?{names.time}{number}]"

    head = timed(rule.head, "Ins", "")
    least = f"?{names.time} = min({', '.join(f'?{names.time}{n}' for n in range(1, len(rule.atoms) + 1))})"
    for entering in range(1, len(rule.atoms) + 1):
        body, number = [], 0
        for item in rule.body:
            if isinstance(item, Atom):
                number += 1
                body.append(timed(item, "Ins" if number == entering else "New", str(number)))
            else:
                body.append(print_item(item, prefixes))
        yield f"{head} :- {', '.join([*body, least])} .  % ΔIns({_one_line(rule.name) or label})"


def _said(rule: Rule, prefixes: Mapping[str, str]) -> str:
    return f"rule {_one_line(rule.name)}" if rule.name else print_rule(rule, prefixes).strip()


def _one_line(text: str) -> str:
    return " ".join(text.split())
