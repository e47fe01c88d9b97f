"""What a change of rules is to an engine: a change of facts.

    rule inserted or deleted  =  row inserted into or deleted from the parameter relation of its shape

In words: under a *transition plan* the rules that come and those that go stand side by side, each in force by a row: that of
its shape or, where a rule is alone in its shape, the one fact of a relation without arguments. The rows that go are deleted and
those that come inserted by whatever algorithm maintains facts. Then the plan of the new rules takes over: it says the same, and
nothing has to be derived for it. A shape whose last row has gone is not in it, one that has become common has a relation.

With negation the strata may change; the transition plan has those of all rules, old and new, together. Where old and new rules
contradict each other (one negates what the other derives, and the other way round) there is none: all is derived anew.
Cost: the change, and a pass over the compiled rules, of which there are as many as shapes; with negation, a pass over all
rules, which are compiled anew if their strata change.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

from evergraph import inputs
from evergraph.errors import UserError, raise_all
from evergraph.plan.compile import Plan
from evergraph.plan.rulebook import Compiler, Group, Level, Member, Rulebook, Stratum, Unit, stratum_of, unit
from evergraph.plan.schema import survey
from evergraph.plan.shapes import LIFT_FROM
from evergraph.rules.checks import unstratified
from evergraph.rules.equality import unsettled
from evergraph.rules.model import Negation, Program, Rule
from evergraph.rules.printer import print_rule
from evergraph.rules.shape import Constants, Shape, shape_of
from evergraph.rules.stratify import levels, negative_cycle
from evergraph.terms import Ids

Rows = dict[str, list[Ids]]
"""Rows of parameter relations, as facts come."""
Places = Mapping[tuple[int, Shape], Mapping[Constants, Member]]
"""Rules by stratum and shape."""


@dataclass(frozen=True, slots=True)
class Step:
    """Rows of parameter relations to delete and to insert under a plan."""

    plan: Plan
    insert: Rows
    delete: Rows


@dataclass(frozen=True, slots=True)
class Change:
    """A change of rules that may be made."""

    inserted: tuple[Member, ...]
    deleted: tuple[Member, ...]
    step: Step | None
    """The way there; None where old and new rules contradict each other."""
    anew: Step
    """The same without a way: what parameter relations hold in the end, under the plan in the end."""
    book: Rulebook
    """The rules in force after it, once it is settled."""
    after: Callable[[], list[Member]]
    """The same, before it is."""
    _come: tuple[tuple[dict[Constants, Member], Constants, Member], ...] = ()
    _go: tuple[tuple[dict[Constants, Member], Constants], ...] = ()

    def settle(self) -> None:
        """Let rules come and go in the book, when the engine has followed. Cost: the change."""
        for members, constants in self._go:
            del members[constants]
        for members, constants, member in self._come:
            members[constants] = member


def change_rules(book: Rulebook, insert: Iterable[Rule], delete: Iterable[Rule]) -> Change | None:
    """What to do for rules to come and go; None if that is nothing. A rule that does both stays; one that is there is."""
    coming = {shape_of(rule): rule for rule in insert}
    going: dict[int, Member] = {}
    missing: list[UserError] = []
    for rule in delete:
        member = book.find(rule)
        if member is None:
            missing.append(_not_there(rule))
        elif shape_of(rule) not in coming:
            going[member.number] = member
    raise_all(missing)
    new = [rule for rule in coming.values() if book.find(rule) is None]
    came = [Member(number, rule) for number, rule in enumerate(new, book.next)]
    if not came and not going:
        return None
    return _changed(book, came, list(going.values()))


def _not_there(rule: Rule) -> UserError:
    text = print_rule(Rule(rule.head, rule.body)).strip()
    return UserError("EG009", f"no such rule: {text}", "evergraph rules show prints the rules in force", rule.position)


def _changed(book: Rulebook, came: Sequence[Member], gone: Sequence[Member]) -> Change:
    number = book.next + len(came)
    if not book.level and not any(isinstance(item, Negation) for member in came for item in member.rule.body):
        return _in_place(book, {}, came, gone, number)
    numbers = {member.number for member in gone}
    before = book.members
    after = [member for member in before if member.number not in numbers] + list(came)
    raise_all([*unstratified(_program(after)), *(unsettled(_program(after)) if book.compiler.same is not None else ())])
    everything = [*before, *came]
    together = negative_cycle(_program(everything)) is None
    level = levels(_program(everything)) if together else {}
    if together and _agree(book, level):
        return _in_place(book, level, came, gone, number)
    compiler, new = book.compiler, Rulebook.made(book.compiler, after, number)
    step = None
    if together:
        strata = compiler.compiled(everything, level)
        step = _step(compiler, strata, level, _places(came, level), _places(gone, level), lambda: after)
    rows = new.plan.parameter_facts
    going_on = {name: columns for name, columns in book.plan.parameter_facts.items() if name in rows}
    return Change(tuple(came), tuple(gone), step, Step(new.plan, rows, inputs.less(going_on, rows)), new, lambda: after)


def _program(members: Iterable[Member]) -> Program:
    return Program(tuple(member.rule for member in members))


def _agree(book: Rulebook, level: Level) -> bool:
    """Whether rules keep their strata."""
    return all(
        stratum_of(member.rule, level) == number
        for number, stratum in enumerate(book.strata)
        for group in stratum.values()
        for member in group.members.values()
    )


def _places(members: Iterable[Member], level: Level) -> Places:
    out: dict[tuple[int, Shape], dict[Constants, Member]] = {}
    for member in members:
        shape, constants = shape_of(member.rule)
        out.setdefault((stratum_of(member.rule, level) or 0, shape), {})[constants] = member
    return out


# -- a book that keeps its strata --------------------------------------------------------------------------------------


def _in_place(book: Rulebook, level: Level, came: Sequence[Member], gone: Sequence[Member], number: int) -> Change:
    """The change that keeps what is compiled; `level` is that of all rules, old and new."""
    compiler = book.compiler
    coming, going = _places(came, level), _places(gone, level)
    numbers = {member.number for member in gone}

    def after() -> list[Member]:
        return [*(member for member in book.members if member.number not in numbers), *came]

    strata = book.strata
    if _only_rows(strata, coming, going):
        new = book.grown(level, len(book) + len(came) - len(gone), number, after)
        plan = new.plan
        step = way = Step(plan, _rows(compiler, strata, coming), _rows(compiler, strata, going))
    else:
        strata = _with(compiler, strata, coming)
        left, relifted = _without(compiler, strata, coming, going)
        new = Rulebook(compiler, level, left, number)
        way = _step(compiler, strata, level, coming, going, after)
        plan = replace(new.plan, parameters={**compiler.parameters(left, numbers), **relifted})
        kept = plan.parameters.keys() - relifted.keys()
        insert, delete = ({name: rows[name] for name in rows if name in kept} for rows in (way.insert, way.delete))
        step = Step(plan, insert, delete)
    come = tuple((strata[n][s].members, c, member) for (n, s), rows in coming.items() for c, member in rows.items())
    go = tuple((strata[n][s].members, c) for (n, s), rows in going.items() for c in rows)
    return Change(tuple(came), tuple(gone), way, step, new, after, come, go)


def _only_rows(strata: Sequence[Stratum], coming: Places, going: Places) -> bool:
    """Whether rules come and go as rows of relations that are there and keep some."""
    for place in {**coming, **going}:
        number, shape = place
        group = strata[number].get(shape) if number < len(strata) else None
        come, gone = coming.get(place, {}), going.get(place, {})
        if group is None or any(c in group.singles or group.row_of(c) is None for c in (*come, *gone)):
            return False
        if len(group.members) - len(group.singles) + len(come) == len(gone):
            return False
    return True


def _with(compiler: Compiler, strata: Sequence[Stratum], coming: Places) -> Sequence[Stratum]:
    """The strata with the rules that come compiled, and not yet members."""
    out = [dict(stratum) for stratum in strata]
    for (number, shape), rows in coming.items():
        while number >= len(out):
            out.append({})
        group = out[number].get(shape, Group({}))
        alone = {constants: member for constants, member in rows.items() if group.row_of(constants) is None}
        out[number][shape] = _compile(compiler, out[number], (number, shape), group, alone)
    return out


def _without(
    compiler: Compiler, strata: Sequence[Stratum], coming: Places, going: Places
) -> tuple[Sequence[Stratum], dict[str, Callable[[], list[Ids]]]]:
    """The strata without the rules that go; and rows of relations that now hold rules which stood alone so far.

    A rule that stands alone although a relation would take it goes on to do so: its row would be looked for there.
    """
    out = [dict(stratum) for stratum in strata]
    relifted: dict[str, Callable[[], list[Ids]]] = {}
    for number, shape in {**coming, **going}:
        group, come, gone = strata[number][shape], coming.get((number, shape), {}), going.get((number, shape), {})
        if len(group.members) + len(come) == len(gone):
            del out[number][shape]
            continue
        singles = {constants: unit for constants, unit in group.singles.items() if constants not in gone}
        alone = [constants for constants in singles if group.row_of(constants) is None]
        left = len(group.members) + len(come) - len(gone) - len(singles)
        group = replace(group, singles=singles, lifts=group.lifts if left else ())
        if len(alone) >= LIFT_FROM:
            members = {constants: come.get(constants) or group.members[constants] for constants in alone}
            others = {constants: unit for constants, unit in singles.items() if constants not in members}
            group = _compile(compiler, out[number], (number, shape), replace(group, singles=others), members)
            lifted = group.lifts[-1][0]
            relifted[lifted.name] = partial(compiler.columns, lifted, list(members))
        out[number][shape] = group
    while len(out) > 1 and not out[-1]:
        out.pop()
    return out, relifted


def _compile(
    compiler: Compiler, stratum: Stratum, at: tuple[int, Shape], group: Group, members: Mapping[Constants, Member]
) -> Group:
    """A group with some more rules compiled, as rows of a new relation if they are many."""
    if not members:
        return group
    others = [rule for one in stratum.values() for compiled in one.units for rule, _ in compiled.guarded]
    if len(members) >= LIFT_FROM:
        lifted = compiler.lift(*at, members)
        forms = compiler.grouped(lifted.rule)
        return replace(group, lifts=(*group.lifts, (lifted, unit(forms, survey([*others, *forms], compiler.type_id)))))
    rules = {constants: compiler.forms(member.rule) for constants, member in members.items()}
    known = survey([*others, *(rule for one in rules.values() for rule in one)], compiler.type_id)
    return replace(group, singles={**group.singles, **{c: unit(one, known) for c, one in rules.items()}})


# -- one step ----------------------------------------------------------------------------------------------------------


def _step(
    compiler: Compiler,
    strata: Sequence[Stratum],
    level: Level,
    coming: Places,
    going: Places,
    after: Callable[[], list[Member]],
) -> Step:
    """The rows that come and go, under a plan in which both kinds of rules stand; `after` are the rules in force then."""
    marked = {place: {*coming.get(place, ()), *going.get(place, ())} for place in {**coming, **going}}
    units = [
        [unit for shape, group in stratum.items() for unit in _units(group, marked.get((number, shape), ()))]
        for number, stratum in enumerate(strata)
    ]
    parameters = compiler.parameters(strata, {member.number for rows in coming.values() for member in rows.values()})
    insert, delete = _rows(compiler, strata, coming), _rows(compiler, strata, going)
    parameters |= {name: list for name, columns in delete.items() if not columns}
    size = sum(len(group.members) for stratum in strata for group in stratum.values())
    plan = compiler.plan(units, parameters, cache(lambda: compiler.written(after(), level)), size)
    return Step(plan, insert, delete)


def _units(group: Group, marked: Container[Constants]) -> Iterator[Unit]:
    yield from (unit for _, unit in group.lifts)
    yield from (unit.switched if constants in marked else unit for constants, unit in group.singles.items())


def _rows(compiler: Compiler, strata: Sequence[Stratum], places: Places) -> Rows:
    """What puts rules in force: rows of their shapes' relations, and switches."""
    out: Rows = {}
    for (number, shape), members in places.items():
        group = strata[number][shape]
        for constants in members:
            if constants in group.singles:
                out[group.singles[constants].switch] = []
        for lifted, _ in group.lifts:
            rows = [c for c in members if c not in group.singles and group.row_of(c) is lifted]
            if rows:
                out[lifted.name] = compiler.columns(lifted, rows)
    return out
