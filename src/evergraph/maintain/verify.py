"""Whether a materialisation is what recomputation gives: the two differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evergraph.engines.relation import Relation
from evergraph.errors import UserError
from evergraph.plan.model import Key
from evergraph.terms import Ids

SHOWN = 10
Rows = dict[Key, Sequence[Ids]]


class Differs(UserError):
    """A materialisation that lacks facts, or holds facts that do not follow; both in text syntax."""

    def __init__(self, missing: list[str], extra: list[str]) -> None:
        self.missing, self.extra = missing, extra
        super().__init__(
            "EG409",
            f"{len(missing)} facts are missing and {len(extra)} do not follow",
            "load the data again into a new store, and report this: it is a bug, or a file was changed by hand",
        )

    def lines(self, most: int = SHOWN) -> list[str]:
        """Both differences, as far as they fit."""
        out = []
        for sign, facts in (("-", self.missing), ("+", self.extra)):
            out += [f"{sign} {fact}" for fact in facts[:most]]
            if len(facts) > most:
                out.append(f"{sign} … and {len(facts) - most:,} more")
        return out


def differences(want: Mapping[Key, Relation], got: Mapping[Key, Relation]) -> tuple[Rows, Rows]:
    """Facts that should be there and are not, and facts that are there and should not. Cost: linear."""
    return _less(want, got), _less(got, want)


def _less(some: Mapping[Key, Relation], others: Mapping[Key, Relation]) -> Rows:
    out: Rows = {}
    for key, relation in some.items():
        words = relation.less(others.get(key))
        if len(words[0]):
            out[key] = [relation.base.arrays.column(words, i) for i in range(relation.arity)]
    return out
