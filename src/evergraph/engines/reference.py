"""The reference engine: Python sets, naive evaluation. It says what is correct; it is never made faster.

    facts ← facts ∪ {head of every rule instance over facts}, until nothing is new, stratum by stratum

It takes the rules as they were written, so that it shares nothing with the plans and the kernel it is compared with.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from evergraph.engines.base import STEP, Change, Closed, Counts, Difference, Facts, Keep, Missed, Which
from evergraph.engines.changes import Changed, Held, changes
from evergraph.engines.marks import Counted
from evergraph.engines.relation import Relation
from evergraph.engines.shard import Shard
from evergraph.plan.compile import Plan
from evergraph.plan.model import Key, PlanAtom, PlanRule, is_parameter, is_variable
from evergraph.plan.shapes import hidden
from evergraph.rules.model import BUILTIN_RELATIONS, TRIPLE
from evergraph.terms import Ids

Fact = tuple[str | int, ...]
"""Relation name, then ids; a triple is (TRIPLE, subject, predicate, object)."""


class ReferenceEngine:
    name = "reference"
    rewrites = False
    overlaps = frozenset[Keep]()

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.explicit: set[Fact] = set()
        self.facts: set[Fact] = set()
        self._saved: tuple[set[Fact], set[Fact]] = (set(), set())
        self._before = plan
        self._missed = Missed()

    def fresh(self, plan: Plan) -> ReferenceEngine:
        return ReferenceEngine(plan)

    def begin(self) -> None:
        self._saved, self._missed, self._before = (set(self.explicit), set(self.facts)), Missed(), self.plan

    def step(self, expected: int) -> int:
        return STEP

    def place(self, expected: int | None) -> str:
        return ""

    def adopt(self, plan: Plan) -> None:
        self.plan = plan

    def weigh(self, rows: Facts) -> int | None:
        return None

    def insert(self, facts: Facts) -> bool:
        self.explicit |= _facts(facts)
        self.facts |= self.explicit
        return True

    def retract(self, facts: Facts, counting: bool = False) -> None:
        given = _facts(facts)
        missed = given - self.explicit
        self.explicit -= given
        self._missed = Missed(len(missed - self.facts), len(missed & self.facts))

    def missed(self) -> Missed:
        return self._missed

    def retreat(self, stratum: int, keep: Keep) -> Closed:
        if stratum == 0:
            self.forget_derived()
        return Closed(0, 0)

    def replace(self, plus: Facts, minus: Facts) -> None:
        self.facts = (self.facts - _facts(minus)) | _facts(plus)

    def advance(self, stratum: int) -> Closed:
        return self.close(stratum, True)

    def close(self, stratum: int, full: bool) -> Closed:
        rounds = derivations = 0
        new: set[Fact] | None = None
        while new is None or new:
            derived = [head for rule in self.plan.rules[stratum] for head in self._heads(rule)]
            new = set(derived) - self.facts
            self.facts |= new
            rounds, derivations = rounds + 1, derivations + len(derived)
        return Closed(rounds, derivations)

    def forget_derived(self, counting: bool = False) -> None:
        self.facts = set(self.explicit)

    counted_by = ""

    @property
    def counted(self) -> bool:
        return False

    def count(self) -> int:
        return 0

    def commit(self) -> Change:
        explicit, facts = self._saved
        came, went = self.facts - facts, facts - self.facts
        return Change(
            Difference(_count(self.explicit - explicit), _count(came - self.explicit), lambda: _columns(came)),
            Difference(_count(explicit - self.explicit), _count(went - explicit), lambda: _columns(went)),
        )

    def changes(self) -> Iterator[Changed]:
        explicit, facts = self._saved
        return changes(Held(self._runs(facts), self._runs(explicit)), Held(self._runs(self.facts), self._runs(self.explicit)))

    def count_changes(self) -> tuple[bool, list[Counted]]:
        return False, []

    def all_counts(self) -> list[Counted]:
        return []

    def load(self, facts: Held, counts: Mapping[Key, Counted] | None = None) -> None:
        for source, into in ((facts.all, self.facts), (facts.explicit, self.explicit)):
            for key, relation in source.items():
                for row in zip(*(c.tolist() for c in relation.columns()), strict=True) if relation.arity else [()]:
                    into.add((TRIPLE, row[0], key, row[1]) if isinstance(key, int) else (key, *row))

    def prepare(self, builtins: Facts) -> None:
        self.insert(builtins)

    def rollback(self) -> None:
        self.explicit, self.facts = self._saved
        self.plan = self._before

    def still(self) -> ReferenceEngine:
        out = ReferenceEngine(self.plan)
        out.explicit, out.facts = set(self.explicit), set(self.facts)
        return out

    def counts(self, which: Which) -> Counts:
        return _count(self._which(which))

    def rows(self, relation: str, which: Which) -> Sequence[Ids] | None:
        return _columns({f for f in self._which(which) if f[0] == relation}).get(relation)

    def contains(self, relation: str, row: Sequence[int]) -> bool:
        return (relation, *row) in self.facts

    def relations(self, which: Which) -> dict[Key, Relation]:
        return self._runs(self._which(which))

    def _runs(self, facts: set[Fact]) -> dict[Key, Relation]:
        return {key: Relation(run) for key, run in Shard(self.plan).runs(_columns(facts)).items() if not hidden(key)}

    def _which(self, which: Which) -> set[Fact]:
        if which == Which.EXPLICIT:
            return self.explicit
        return self.facts - self.explicit if which == Which.DERIVED else self.facts

    def _heads(self, rule: PlanRule) -> list[Fact]:
        """The head of every instance of the rule over the facts."""
        index: dict[str | int, list[Fact]] = defaultdict(list)
        for fact in self.facts:
            index[fact[0]].append(fact)
            if fact[0] == TRIPLE:
                index[fact[2]].append(fact)

        def match(body: Sequence[PlanAtom], bound: dict[str, int]) -> Iterator[dict[str, int]]:
            if not body:
                yield bound
                return
            pattern = _fact(body[0], bound)
            key = pattern[2] if pattern[0] == TRIPLE and isinstance(pattern[2], int) else pattern[0]
            for fact in index[key]:
                new = dict(bound)
                pairs = zip(pattern[1:], fact[1:], strict=True)
                if all(new.setdefault(str(p), int(f)) == f if is_variable(p) else p == f for p, f in pairs):
                    yield from match(body[1:], new)

        return [_fact(rule.head, env) for env in match(rule.body, {}) if self._passes(rule, env)]

    def _passes(self, rule: PlanRule, env: dict[str, int]) -> bool:
        for check in rule.filters:
            left, right = (np.array([env.get(str(v), v)], np.uint64) for v in (check.left, check.right))
            if not self.plan.values.compare(check.operator, left, right)[0]:
                return False
        return not any(_fact(atom, env) in self.facts for atom in rule.negated)


def _fact(atom: PlanAtom, env: dict[str, int]) -> Fact:
    """The atom with its variables filled in as far as they are bound."""
    args = [env.get(str(a), a) for a in atom.args]
    if isinstance(atom.relation, int) or atom.open:
        return (TRIPLE, args[0], env.get(str(atom.relation), atom.relation), args[1])
    return (atom.relation, *args)


def _facts(columns: Facts) -> set[Fact]:
    """Rows as facts; those of parameter relations mean nothing here, where rules are what was written."""
    known = {name: cs for name, cs in columns.items() if not is_parameter(name)}
    rows = {name: zip(*(c.tolist() for c in cs), strict=True) if cs else [()] for name, cs in known.items()}
    return {(name, *row) for name, found in rows.items() for row in found}


def _count(facts: set[Fact]) -> Counts:
    out: Counts = {}
    for fact in facts:
        if fact[0] not in BUILTIN_RELATIONS:
            out[str(fact[0])] = out.get(str(fact[0]), 0) + 1
    return out


def _columns(facts: set[Fact]) -> dict[str, Sequence[Ids]]:
    by_name: dict[str, list[Fact]] = defaultdict(list)
    for fact in sorted(facts, key=str):
        by_name[str(fact[0])].append(fact[1:])
    return {name: [np.array(c, np.uint64) for c in zip(*rows, strict=True)] for name, rows in by_name.items()}
