"""Bodies that one shard can evaluate: every atom that is not replicated shares one variable, the rule's *meeting point*.

    q(?x, ?w) :- a(?x, ?y), b(?y, ?z), c(?z, ?w) .
→   µ(?x, ?z) :- a(?x, ?y), b(?y, ?z) .        q(?x, ?w) :- µ(?x, ?z), c(?z, ?w) .

In words: facts live where the hash of an argument says. A body can be evaluated at one shard when its facts meet there, at
the shard of a variable that all of them contain; a body without such a variable is cut by helper relations until each piece
has one. Schema atoms are everywhere and need no meeting. Where atoms share nothing at all, one of them is replicated.
Trap: a shard may hold copies of facts whose partners live elsewhere. For a join that only means less work found there; for a
negation it would mean finding absent what is not, so a rule that negates says `HERE`: only at the shard of its meeting point.
Copies also let several shards find the same instance. Where instances are counted, every rule says `HERE` (`Local.once`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from evergraph.plan.model import PARAMETER, PlanAtom, PlanFilter, PlanRule, Value, is_variable
from evergraph.plan.schema import Node, Rules
from evergraph.plan.shapes import digest, unswitched

HERE = "HERE"
"""The operator of a filter that holds where the shard is the one of its argument."""


@dataclass(frozen=True, slots=True)
class Local:
    """Rules cut for locality, with the meeting point of each (None if any shard will do), and what is everywhere."""

    rules: Rules
    meeting: tuple[str | None, ...]
    replicated: frozenset[Node]
    """Relations, and instances of named classes, that every shard holds."""
    once: tuple[PlanRule, ...]
    """The same rules, each instance found at one shard only: that of its meeting point, the owner of its one fact that is not
    everywhere or, where all are, the owner of its head."""


def localise(rules: Rules) -> Local:
    """Cut what needs cutting. Cost: linear in the rules, a few passes over long bodies."""
    cutter = _Cutter(rules)
    for rule, guard in zip(rules.rules, rules.guards, strict=True):
        cutter.add(rule, guard)
    return Local(
        replace(rules, rules=tuple(cutter.rules), guards=tuple(cutter.guards)),
        tuple(cutter.meeting),
        frozenset(cutter.replicated),
        tuple(cutter.once),
    )


class _Cutter:
    def __init__(self, source: Rules) -> None:
        self.source = source
        self.rules: list[PlanRule] = []
        self.guards: list[tuple[PlanAtom, ...]] = []
        self.meeting: list[str | None] = []
        self.once: list[PlanRule] = []
        self.replicated: set[Node] = set(source.schema)
        self.stem, self.cuts = "", 0

    def add(self, rule: PlanRule, guard: tuple[PlanAtom, ...]) -> None:
        self.stem, self.cuts = f"{PARAMETER}cut{digest(unswitched(rule).content)}.", 0
        placed = [a for a in rule.body if not self._everywhere(a)]
        negated = [a for a in rule.negated if not self._everywhere(a)]
        while (point := _common(placed + negated)) is None and (negated or len(placed) > 1):
            rule, placed, negated = self._cut(rule, guard, placed, negated)
        if negated:
            rule = _here(rule, str(point))
        meets = negated or len(placed) > 1
        self._keep(rule, guard, point if meets else None, str(point) if meets else _owner(placed[0] if placed else rule.head))

    def _everywhere(self, atom: PlanAtom) -> bool:
        if ("?", None) in self.replicated and (atom.open or isinstance(atom.relation, int)):
            return True
        return not atom.open and bool({self.source.node(atom.relation, atom.args), (atom.relation, None)} & self.replicated)

    def _keep(self, rule: PlanRule, guard: tuple[PlanAtom, ...], point: str | None, once: Value) -> None:
        self.rules.append(rule)
        self.guards.append(guard)
        self.meeting.append(point)
        self.once.append(_here(rule, once))

    def _cut(
        self, rule: PlanRule, guard: tuple[PlanAtom, ...], placed: list[PlanAtom], negated: list[PlanAtom]
    ) -> tuple[PlanRule, list[PlanAtom], list[PlanAtom]]:
        """Put the atoms that share the commonest variable into a helper relation; or one negation with its host."""
        if len(placed) > 1:
            counts = Counter(v for a in placed for v in _arguments(a))
            point, shared = counts.most_common(1)[0] if counts else ("", 0)
            if shared < 2:
                self._replicate(placed[-1])
                return rule, placed[:-1], negated
            group, away = [a for a in placed if point in a.args], []
        else:
            away = [negated[0]]
            group = placed
            shared_with = _arguments(negated[0]) & (_arguments(placed[0]) if placed else set())
            if not shared_with:
                self._replicate(negated[0])
                return rule, placed, negated[1:]
            point = sorted(shared_with)[0]
        inside = [a for a in rule.body if a in group or (a not in placed and self._everywhere(a))]
        others = [a for a in placed if a not in group]
        rest = [a for a in rule.negated if a not in away]
        known = set().union(*(a.variables for a in inside))
        wanted = rule.head.variables.union(*(a.variables for a in (*others, *rest)), *(f.variables for f in rule.filters))
        helper = PlanAtom(f"{self.stem}{self.cuts}", tuple(sorted(known & wanted)))
        self.cuts += 1
        piece = PlanRule(rule.name, helper, tuple(inside), tuple(away))
        self._keep(_here(piece, point) if away else piece, guard, point, point)
        cut = PlanRule(rule.name, rule.head, (helper, *others), tuple(rest), rule.filters)
        return cut, [helper, *others], [a for a in negated if a not in away]

    def _replicate(self, atom: PlanAtom) -> None:
        self.replicated.add(("?", None) if atom.open else self.source.node(atom.relation, atom.args))


def _here(rule: PlanRule, term: Value) -> PlanRule:
    """The rule at the shard of a term only."""
    here = PlanFilter(HERE, term, term)
    return rule if here in rule.filters else replace(rule, filters=(*rule.filters, here))


def _owner(atom: PlanAtom) -> Value:
    """The term at whose shard the facts of an atom are owned: id 0 belongs to shard 0, and so do facts without arguments."""
    return atom.args[0] if atom.args else 0


def _arguments(atom: PlanAtom) -> set[str]:
    return {str(a) for a in atom.args if is_variable(a)}


def _common(atoms: list[PlanAtom]) -> str | None:
    """A variable that is an argument of every atom; the one that most atoms have in first place."""
    if not atoms:
        return None
    shared = set.intersection(*map(_arguments, atoms))
    if not shared:
        return None
    return max(sorted(shared), key=lambda v: sum(a.args[0] == v for a in atoms))
