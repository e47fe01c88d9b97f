"""What is true whatever else is, while facts are in doubt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from evergraph.engines.relation import Relation, Run
from evergraph.engines.shard import Shard
from evergraph.plan.model import Key

Relations = Mapping[Key, Relation]


class Certain(Mapping[Key, Relation]):
    """Explicit facts and those that are known to follow, under their own names: true whatever else is."""

    def __init__(self, explicit: Relations, known: Shard) -> None:
        self.explicit, self.known = explicit, known
        self._both: dict[Key, tuple[Relation, Relation]] = {}

    def __getitem__(self, key: Key) -> Relation:
        given, found = self.explicit.get(key), self.known.relations.get(key)
        if given is None or found is None:
            return self.explicit[key] if found is None else found
        last = self._both.get(key)
        if last is None or last[0] is not found:
            last = self._both[key] = found, given.add(Run(given.base.arrays, given.arity, given.new(found.rows())))
        return last[1]

    def __iter__(self) -> Iterator[Key]:
        return iter({**self.explicit, **self.known.relations})

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, key: object) -> bool:
        return key in self.explicit or key in self.known.relations
