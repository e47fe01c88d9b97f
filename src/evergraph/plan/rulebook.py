"""The rulebook: the rules in force by stratum, shape and constants, and what engines get of them.

A rule of a shape that many rules have is a row of the shape's parameter relation; others are compiled one by one. What is
compiled is kept while rules change (`plan.transition`).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any

from evergraph.plan.compile import Parameters, Plan, Written
from evergraph.plan.equality import grouped, reflexive, reflexive_constants
from evergraph.plan.model import PARAMETER, PlanRule, encode_rules
from evergraph.plan.schema import Guarded, Rules, assemble, cut_guard, survey
from evergraph.plan.shapes import LIFT_FROM, Lifted, digest, hidden, lift, plain, switched
from evergraph.rules.equality import Equality, axioms, is_axiom
from evergraph.rules.model import BUILTIN_RELATIONS, SAME, TRIPLE, TYPE, Program, Rule
from evergraph.rules.shape import Constants, Shape, shape_of
from evergraph.rules.stratify import Pattern, levels, pattern
from evergraph.terms import Dictionary, Ids


@dataclass(frozen=True, slots=True)
class Unit:
    """A rule, or the rule of a shape, as engines get it: with its guard cut out."""

    guarded: tuple[Guarded, ...]

    @property
    def switch(self) -> str:
        """The relation without arguments that says whether the rule is in force, where that changes."""
        return f"{PARAMETER}rule{digest([rule.content for rule, _ in self.guarded])}"

    @property
    def switched(self) -> Unit:
        """The rule while its switch is on."""
        rules = switched([rule for rule, _ in self.guarded], self.switch)
        return Unit(tuple((rule, guard) for rule, (_, guard) in zip(rules, self.guarded, strict=True)))


@dataclass(frozen=True, slots=True)
class Member:
    number: int
    """The place of the rule among all: that of its row in a store."""
    rule: Rule


@dataclass(frozen=True, slots=True)
class Group:
    """The rules of one shape in one stratum."""

    members: dict[Constants, Member]
    lifts: tuple[tuple[Lifted, Unit], ...] = ()
    """Most of them as rows; there are several where rules came later that have other constants in common."""
    singles: Mapping[Constants, Unit] = field(default_factory=dict)
    """Those that are no rows."""

    def row_of(self, constants: Constants) -> Lifted | None:
        """Where a rule is, or would be, a row."""
        return next((lifted for lifted, _ in self.lifts if lifted.takes(constants)), None)

    @property
    def units(self) -> Iterator[Unit]:
        yield from (unit for _, unit in self.lifts)
        yield from self.singles.values()


Stratum = Mapping[Shape, Group]
Level = Mapping[Pattern, int]


class Rulebook:
    """All rules in force. Nothing changes one but `Change.settle`, which has its rules come and go."""

    def __init__(self, compiler: Compiler, level: Level, strata: Sequence[Stratum], number: int) -> None:
        self.compiler, self.level, self.strata = compiler, level, strata
        self.next = number
        """The number of the next rule."""
        self._plan: Plan | None = None

    @staticmethod
    def of(
        program: Program,
        dictionary: Dictionary,
        values: Any = None,
        numbers: Sequence[int] = (),
        equality: Equality = Equality.OFF,
    ) -> Rulebook:
        """The rulebook of a program; `numbers` are those of its rules, if they have some. Cost: linear in the rules."""
        numbered = list(numbers or range(1, len(program.rules) + 1))
        compiler = Compiler(dictionary, values, program.prefixes, equality)
        return Rulebook.made(compiler, list(map(Member, numbered, program.rules)), 1 + max(numbered, default=0))

    @staticmethod
    def made(compiler: Compiler, members: Sequence[Member], number: int) -> Rulebook:
        level = levels(Program(tuple(member.rule for member in members)))
        return Rulebook(compiler, level, compiler.compiled(members, level), number)

    # -- reading -----------------------------------------------------------------------------------------------------

    @property
    def members(self) -> list[Member]:
        """All rules, in their order. Cost: a sort."""
        found = [m for stratum in self.strata for group in stratum.values() for m in group.members.values()]
        return sorted(found, key=lambda member: member.number)

    @property
    def samples(self) -> list[Rule]:
        """One rule of each shape: what does not depend on constants can be asked of these."""
        return [next(iter(group.members.values())).rule for stratum in self.strata for group in stratum.values()]

    def __len__(self) -> int:
        return sum(len(group.members) for stratum in self.strata for group in stratum.values())

    @property
    def program(self) -> Program:
        return Program(tuple(member.rule for member in self.members), (), self.compiler.prefixes)

    def find(self, rule: Rule) -> Member | None:
        """The rule in force that says the same, if there is one."""
        stratum = stratum_of(rule, self.level)
        if stratum is None or stratum >= len(self.strata):
            return None
        shape, constants = shape_of(rule)
        group = self.strata[stratum].get(shape)
        return group.members.get(constants) if group is not None else None

    def grown(self, level: Level, size: int, number: int, after: Callable[[], list[Member]]) -> Rulebook:
        """The same book when only rows come and go: nothing is compiled."""
        book = Rulebook(self.compiler, level, self.strata, number)
        written = cache(lambda: self.compiler.written(after(), level))
        book._plan = replace(self.plan, size=size, written=written)
        return book

    def meets(self, relations: Mapping[str, int]) -> bool:
        """Learn of relations that facts mention; returns whether there are rules for them now: what is equal is replaced."""
        compiler = self.compiler
        new = {name: n for name, n in relations.items() if name not in (TRIPLE, *BUILTIN_RELATIONS, *compiler.named)}
        if compiler.same is None or not new:
            return False
        compiler.named = {**compiler.named, **new}
        if not new.keys() - Program(tuple(self.samples)).relations.keys():
            return False  # until the rules that mention them go
        self._plan = None
        return True

    @property
    def plan(self) -> Plan:
        """The plan of the rules in force, made once."""
        if self._plan is None:
            self._plan = self._make_plan()
        return self._plan

    def _make_plan(self) -> Plan:
        units = [[unit for group in stratum.values() for unit in group.units] for stratum in self.strata]
        written = cache(lambda: self.compiler.written(self.members, self.level))
        return self.compiler.plan(units, self.compiler.parameters(self.strata), written, len(self))


class Compiler:
    """From rules to units and plans."""

    def __init__(
        self, dictionary: Dictionary, values: Any, prefixes: Mapping[str, str], equality: Equality = Equality.OFF
    ) -> None:
        self.dictionary, self.values, self.prefixes, self.equality = dictionary, values, prefixes, equality
        self.type_id = self.id(TYPE)
        self.same = self.id(SAME) if equality != Equality.OFF else None
        self.named: dict[str, int] = {}
        """Relations that facts mention and rules may not: under axioms, equals are replaced in these too."""

    def id(self, text: str) -> int:
        return int(self.dictionary.encode([text])[0])

    def columns(self, lifted: Lifted, rows: Sequence[Constants]) -> list[Ids]:
        """Rows of a parameter relation, as facts come."""
        return [self.dictionary.encode(column) for column in lifted.columns(rows)]

    def lift(self, stratum: int, shape: Shape, members: Mapping[Constants, Member]) -> Lifted:
        sample = next(iter(members.values())).rule
        return lift(sample, list(members), self.id, f"shape{stratum}.{digest(shape)}.")

    def compiled(self, members: Iterable[Member], level: Level) -> list[Stratum]:
        """Rules by stratum and shape, with their units; of rules that say the same, the first. Cost: linear in the rules."""
        grouped: list[dict[Shape, dict[Constants, Member]]] = [{}]
        for member in members:
            stratum = stratum_of(member.rule, level) or 0
            while stratum >= len(grouped):
                grouped.append({})
            shape, constants = shape_of(member.rule)
            grouped[stratum].setdefault(shape, {}).setdefault(constants, member)
        return [self._stratum(number, groups) for number, groups in enumerate(grouped)]

    def _stratum(self, number: int, groups: Mapping[Shape, dict[Constants, Member]]) -> Stratum:
        """The groups of a stratum. What is schema is known when all of its rules are."""
        lifted = {shape: self.lift(number, shape, m) for shape, m in groups.items() if len(m) >= LIFT_FROM}
        alone = {s: {c: self.forms(one.rule) for c, one in m.items()} for s, m in groups.items() if s not in lifted}
        forms = [self.grouped(one.rule) for one in lifted.values()] + [f for group in alone.values() for f in group.values()]
        known = survey([rule for one in forms for rule in one], self.type_id)
        out = {}
        for shape, members in groups.items():
            if shape in lifted:
                out[shape] = Group(members, ((lifted[shape], unit(self.grouped(lifted[shape].rule), known)),))
            else:
                out[shape] = Group(members, singles={c: unit(rules, known) for c, rules in alone[shape].items()})
        return out

    def forms(self, rule: Rule) -> tuple[PlanRule, ...]:
        """What engines get of one rule, before guards are cut: nothing, of one that says what equality means anyway."""
        return () if self.same is not None and is_axiom(rule) else self.grouped(plain(rule, self.id))

    def grouped(self, rule: PlanRule) -> tuple[PlanRule, ...]:
        return grouped(rule, self.same) if self.same is not None and self.equality == Equality.REWRITE else (rule,)

    def parameters(self, strata: Iterable[Stratum], less: Container[int] = ()) -> dict[str, Callable[[], list[Ids]]]:
        """The rows of parameter relations, when they are asked for, without rules of some numbers."""

        def rows(group: Group, lifted: Lifted) -> list[Ids]:
            kept = (c for c, member in group.members.items() if c not in group.singles and member.number not in less)
            return self.columns(lifted, [c for c in kept if group.row_of(c) is lifted])

        groups = [(group, lifted) for stratum in strata for group in stratum.values() for lifted, _ in group.lifts]
        return {lifted.name: partial(rows, group, lifted) for group, lifted in groups}

    def written(self, members: Iterable[Member], level: Level) -> tuple[tuple[PlanRule, ...], ...]:
        """Rules with constants encoded, by stratum."""
        strata: list[list[Rule]] = [[] for _ in range(1 + max(level.values(), default=0))]
        for member in members:
            strata[stratum_of(member.rule, level) or 0].append(member.rule)
        more = self._axioms([rule for rules in strata for rule in rules])
        return tuple(tuple(encode_rules([*rules, *more], self.dictionary.encode)) for rules in strata)

    def _axioms(self, rules: Sequence[Rule]) -> tuple[Rule, ...]:
        """What equality means for the relations of these rules, and of facts."""
        return axioms({**Program(tuple(rules)).relations, **self.named}) if self.same is not None else ()

    def plan(self, strata: Iterable[Iterable[Unit]], parameters: Parameters, written: Written, size: int) -> Plan:
        guarded = [[pair for unit in units for pair in unit.guarded] for units in strata]
        rules = tuple(assemble(pairs, self.type_id) for pairs in self._with_equality(guarded))
        rewrites = self.equality == Equality.REWRITE
        return Plan(rules, parameters, written, size, self.type_id, self.values, self.same, rewrites)

    def _with_equality(self, strata: list[list[Guarded]]) -> list[list[Guarded]]:
        """What equality means, in every stratum."""
        if self.same is None:
            return strata
        same = self.same
        above = [rule for pairs in strata[1:] for rule, _ in pairs]
        general = [*reflexive(same)]
        if self.equality == Equality.AXIOMS:
            rules = [rule for pairs in strata for rule, _ in pairs]
            general = list(encode_rules(self._axioms_of(rules), self.dictionary.encode))
        more = [[*reflexive_constants(above, same)], *([] for _ in strata[1:])]
        return [[*pairs, *((rule, ()) for rule in (*general, *special))] for pairs, special in zip(strata, more, strict=True)]

    def _axioms_of(self, rules: Iterable[PlanRule]) -> tuple[Rule, ...]:
        atoms = (atom for rule in rules for atom in (rule.head, *rule.body, *rule.negated))
        named = {
            a.relation: len(a.args) for a in atoms if isinstance(a.relation, str) and not a.open and not hidden(a.relation)
        }
        return axioms({**named, **self.named})


def unit(rules: Iterable[PlanRule], known: Rules) -> Unit:
    """Rules that belong together, with their guards cut out."""
    return Unit(tuple(pair for rule in rules for pair in cut_guard(rule, known)))


def stratum_of(rule: Rule, level: Level) -> int | None:
    """The stratum of a rule; None if no rule has a head like its."""
    return level.get(pattern(rule.head)) if level else 0
