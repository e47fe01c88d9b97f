"""What is small is done on the host, whatever the rest is: a GPU has little to do for it.

    components whose relations are all small     closed here
    rules whose first relations are small        begun here, and gone on with on the device
    what a constant says of predicates           looked up there, and begun with here

In words: most components of a schedule are about the schema, some rows each, and so is what most other rules begin with. They
are evaluated where that costs least, and what they derive goes to the device when a rule there reads it. Relations never
change, so that what was made of the same relations last time is known: a recomputation after facts went costs nothing for the
schema.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from evergraph.engines.arrays import U64, Arrays
from evergraph.engines.evaluation import Body, Check, Evaluation
from evergraph.engines.kernel import Kernel, Values
from evergraph.engines.mirror import Mirror
from evergraph.engines.relation import Relation, Run, alike
from evergraph.engines.table import Table, stacked
from evergraph.plan.model import Key, PlanAtom, PlanRule
from evergraph.plan.schedule import Component

if TYPE_CHECKING:
    from evergraph.engines.fixpoint import Fixpoint

Constant = tuple[int, int]
"""A place among arguments, and the id that stands there."""
MOST = 1024
"""Of so many components at most, and of so many beginnings of rules, is known what they derived."""
AHEAD = 8
"""Of relations that are small enough for the host, those of one part in so many are joined here before others are read."""


class Derived(NamedTuple):
    """What a component made of all the facts that it reads."""

    component: Component
    given: Mapping[Key, Relation]
    runs: Sequence[tuple[Key, Run]]
    """What was new, in the order in which it was derived."""
    relations: Mapping[Key, Relation]
    """Those that became others."""
    rounds: int
    derivations: int
    examined: int


class Near:
    def __init__(self, xp: Any, values: Values | None) -> None:
        self.mirror = Mirror(xp)
        self.kernel = Kernel(Arrays(), values)
        self._derived: dict[int, Derived] = {}
        self._begun: dict[tuple[Any, ...], tuple[PlanRule, Sequence[Relation], Table]] = {}
        self._looked_up: dict[tuple[Key, frozenset[Constant]], Relation] = {}

    def here(self, relation: Relation) -> Relation:
        """A relation on the host. Cost: its rows are carried over if they are not there yet."""
        return self.mirror.relation(relation, self.kernel.arrays)

    def ahead(self, rule: Evaluation, body: Body, checks: list[Check]) -> tuple[Table, Body, list[Check]]:
        """What small relations of a rule that hang together say, joined and checked here; and what there is left to do."""
        names, most = rule.kernel.names, rule.arrays.module.near // AHEAD
        if names is not None and len(names):
            return Table(1, {}, {}), body, checks
        body = self._about_predicates(body, most)
        sizes = {i: source[atom.relation].count for i, (atom, source) in enumerate(body) if not atom.open}
        few = sorted((i for i, size in sizes.items() if size <= most), key=sizes.__getitem__)
        if not few:
            return Table(1, {}, {}), body, checks
        bound = body[few[0]][0].variables
        for i in few * len(few):
            bound |= body[i][0].variables if body[i][0].variables & bound else frozenset()
        chosen = tuple(i for i in few if body[i][0].variables <= bound)
        rest = [one for i, one in enumerate(body) if i not in chosen]
        now: list[Check] = [check for check in checks if not isinstance(check, PlanAtom) and rule.variables(check) <= bound]
        later = [check for check in checks if check not in now]
        wanted = rule.wanted.union(*(atom.variables for atom, _ in rest), *map(rule.variables, later))
        table = self._beginning(rule, wanted, [body[i] for i in chosen], now, chosen)
        rule.kernel.examined += table.count
        return table, rest, later

    def _about_predicates(self, body: Body, most: int) -> Body:
        """The same body, where an atom of a large relation with a constant, and whose variable is a predicate of another atom,
        as in `[?p, rdf:type, owl:TransitiveProperty]`, reads the rows with that constant alone, on the host.

        Predicates are taken one by one, so that the host has to know them in any case. Cost: two searches and a transfer each.
        """
        predicates = {atom.relation for atom, _ in body if atom.open}
        found = list(body)
        for i, (atom, source) in enumerate(body):
            if atom.open or len(atom.args) != 2 or source[atom.relation].count <= most:
                continue
            for place in (0, 1):
                value = atom.args[place]
                if isinstance(value, int) and atom.args[1 - place] in predicates:
                    rows = self._picked(atom.relation, source[atom.relation], {(place, value)}, most)
                    if rows is not None:
                        found[i] = atom, {atom.relation: rows}
        return found

    def _beginning(
        self, rule: Evaluation, wanted: frozenset[str], body: Body, checks: list[Check], chosen: tuple[int, ...]
    ) -> Table:
        """The bindings of some atoms of a rule, by their numbers. Cost: their join, or nothing."""
        asked = id(rule.rule), wanted, rule.heads, chosen
        given = [source[atom.relation] for atom, source in body]
        known = self._begun.get(asked)
        if known is not None and known[0] is rule.rule and all(map(alike, known[1], given)):
            return known[2]
        found: list[Table] = []
        here: Body = [(atom, {atom.relation: self.here(one)}) for (atom, _), one in zip(body, given, strict=True)]
        Evaluation(self.kernel, rule.rule, wanted, {}, found.append, rule.heads).checked(Table(1, {}, {}), here, checks)
        table = stacked(self.kernel.xp, found)
        if table.count == 1:
            table = Table(1, {}, table.fixed | {name: column[0] for name, column in table.columns.items()})
        table.near = bool(table.columns)
        _remember(self._begun, asked, (rule.rule, given, table))
        return table

    def close(self, fixpoint: Fixpoint, component: Component, full: bool) -> bool:
        """As `Fixpoint.close` where a component reads and derives few facts; False, and nothing done, where it may not.

        Cost: the component's, or nothing; rows that are not on the host yet are carried over.
        """
        last = self._derived.get(id(component)) if full else None
        if last is not None and last.component is not component:
            last = None
        given = self._read(fixpoint, component, full)
        if given is None:
            return False
        if last is not None and all(alike(given.get(key), last.given.get(key)) for key in given.keys() | last.given.keys()):
            derived = last
        else:
            derived = self._derive(fixpoint, component, given, full)
            if full:
                _remember(self._derived, id(component), derived)
        for key, run in derived.runs:
            fixpoint.arrive(key, run)
        fixpoint.relations.update(derived.relations)
        if fixpoint.trace is not None:
            fixpoint.trace += derived.runs
        fixpoint.rounds += derived.rounds
        fixpoint.kernel.derivations += derived.derivations
        fixpoint.kernel.examined += derived.examined
        return True

    def _read(self, fixpoint: Fixpoint, component: Component, full: bool) -> dict[Key, Relation] | None:
        """What a component reads, if that is little and all names stand for themselves: small relations and, of large ones,
        what constants pick out."""
        names, most = fixpoint.kernel.names, fixpoint.arrays.module.near
        if names is not None and len(names):
            return None
        given: dict[Key, Relation] = {}
        picked: dict[Key, set[Constant]] = {}
        for task in component.tasks:
            for atom in (task.rule.head, *task.rule.body, *task.rule.negated):
                if atom.open:
                    return None
                relation = fixpoint.relations.get(atom.relation)
                if relation is None:
                    continue
                if len(relation) <= most:
                    given[atom.relation] = relation
                    continue
                constants = [(place, value) for place, value in enumerate(atom.args) if isinstance(value, int)]
                if not full or atom is task.rule.head or relation.arity != 2 or not constants:
                    return None
                picked.setdefault(atom.relation, set()).add(constants[-1])
        for key, some in picked.items():
            found = self._picked(key, fixpoint.relations[key], some, most)
            if found is None:
                return None
            given[key] = found
        return given

    def _picked(self, key: Key, relation: Relation, constants: set[Constant], most: int) -> Relation | None:
        """The pairs with one of these constants in its place, on the host; None if they are many. Cost: two searches each.

        Where they are what they were last time, it is the same relation, so that what was made of it is known.
        """
        module, host = relation.base.arrays.module, self.kernel.arrays
        words = [host.empty(2)]
        for place, value in constants:
            for run, minus in relation.parts():
                (row,) = run.beginning((place, 1 - place), [U64(value)], minus)
                if len(row) > most:
                    return None
                if len(row):
                    row = module.host(row)
                    words.append((host.module.swapped(row) if place else row,))
        found, asked = Relation(Run(host, 2, host.unique(words))), (key, frozenset(constants))
        before = self._looked_up.get(asked)
        if before is not None and before.same(found):
            return before
        _remember(self._looked_up, asked, found)
        return found

    def _derive(self, fixpoint: Fixpoint, component: Component, given: Mapping[Key, Relation], full: bool) -> Derived:
        host, device, mirror = self.kernel.arrays, fixpoint.arrays, self.mirror
        here = {key: self.here(relation) for key, relation in given.items()}
        side = type(fixpoint)(self.kernel, dict(here))
        trace: list[tuple[Key, Run]] = []
        side.trace = trace
        if not full:
            for key in given.keys() & fixpoint.arrived.keys():
                side.arrived.add(key, mirror.run(fixpoint.arrived[key], host))
                side.before[key] = self.here(fixpoint.before[key])
        derivations, examined = self.kernel.derivations, self.kernel.examined
        side.close((component,), full)
        return Derived(
            component,
            given,
            [(key, mirror.run(run, device)) for key, run in trace],
            {k: mirror.relation(relation, device) for k, relation in side.relations.items() if relation is not here.get(k)},
            side.rounds,
            self.kernel.derivations - derivations,
            self.kernel.examined - examined,
        )


def _remember(known: dict[Any, Any], key: Any, value: Any) -> None:
    """Rather begin anew than remember ever more."""
    if len(known) >= MOST:
        known.clear()
    known[key] = value
