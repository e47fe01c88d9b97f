"""Relations of the shards, brought to the driver when someone reads them.

Every fact is read from its owner, so that copies at further homes are counted once. Cost: the relations that are asked for;
the files are mapped, so that what is not read costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from evergraph.engines.arrays import U64, Arrays, Words
from evergraph.engines.base import Change, Counts, Difference, Facts, Which, by_name, together
from evergraph.engines.relation import Relation, Run
from evergraph.engines.spark import files
from evergraph.engines.spark.job import ALL, EXPLICIT
from evergraph.engines.spark.mail import key_of
from evergraph.engines.spark.state import State
from evergraph.plan.model import Key
from evergraph.plan.shapes import hidden
from evergraph.rules.model import TRIPLE
from evergraph.terms import Ids

Runs = dict[Key, Run]


class Gatherer:
    """Reads what shards keep in a folder."""

    def __init__(self, arrays: Arrays, folder: Path) -> None:
        self.arrays, self.folder = arrays, folder

    def at(self, state: State, role: str, shard: int, keys: Iterable[Key]) -> Runs:
        """Relations as they stand at a shard."""
        wanted = set(keys)
        manifest = [files.Stored(*s) for s in state.answers.get(shard, {}).get("manifest", ())]
        chosen = tuple(s for s in manifest if s.role == role and key_of(s.key) in wanted)
        loaded = files.load(self.arrays, self.folder, chosen, [role])[role]
        return {key: Run(self.arrays, relation.arity, relation.rows()) for key, relation in loaded.items()}

    def all(self, state: State, role: str, keys: Iterable[Key]) -> Runs:
        """All facts of these relations, each from its owner."""
        arrays, wanted = self.arrays, set(keys)
        parts: dict[tuple[Key, int], list[Words]] = {}
        for shard in state.answers:
            for key, run in self.at(state, role, shard, wanted).items():
                mine = state.placement.owner(arrays, run.arity, run.words) == U64(shard)
                parts.setdefault((key, run.arity), []).append(tuple(w[mine] for w in run.words))
        return {key: Run(arrays, arity, arrays.unique(found)) for (key, arity), found in parts.items()}

    def rows(self, state: State, relation: str, which: Which) -> Sequence[Ids] | None:
        keys = {k for k in state.total(ALL) if relation == (TRIPLE if isinstance(k, int) else k)}
        if not keys:
            return None
        found = self.all(state, role_of(which), keys)
        if which == Which.DERIVED:
            explicit = self.all(state, EXPLICIT, keys)
            found = {k: run.without(explicit.get(k)) for k, run in found.items()}
        return together(_columns(found)).get(relation)

    def contains(self, state: State, relation: str, row: Sequence[int]) -> bool:
        """Cost: a look at one relation of the shard that owns the fact."""
        key: Key = relation
        if relation == TRIPLE:
            subject, key, value = row
            row = (subject, value)
        words = self.arrays.pack([U64(v) for v in row], 1)
        owner = int(state.placement.owner(self.arrays, len(row), words)[0])
        found = self.at(state, ALL, owner, [key]).get(key)
        return found is not None and bool(found.contains(words)[0])

    def compared(self, before: State, after: State) -> Change:
        """The change when facts may have gone. Cost: the relations that are not as they were."""
        changed = {key_of(entry[1]) for entry in before.manifest ^ after.manifest if entry[0] in (ALL, EXPLICIT)}
        keys = {key for key in changed if not hidden(key)}
        old, new = (self.all(state, ALL, keys) for state in (before, after))
        was, now = (self.all(state, EXPLICIT, keys) for state in (before, after))
        return Change(_difference(new, old, now, was), _difference(old, new, was, now))

    def facts(self, state: State, role: str) -> Facts:
        keys = [k for k in state.total(role) if not hidden(k)]
        return together(_columns(self.all(state, role, keys)))


class Gathered(Mapping[Key, Relation]):
    """The relations of all shards; one is brought to the driver when it is asked for, and kept."""

    def __init__(self, gatherer: Gatherer, state: State, role: str) -> None:
        self._gatherer, self._state, self._role = gatherer, state, role
        self._keys = {key for key, count in state.total(role).items() if count and not hidden(key)}
        self._found: dict[Key, Relation] = {}

    def __getitem__(self, key: Key) -> Relation:
        if key not in self._keys:
            raise KeyError(key)
        if key not in self._found:
            self._found[key] = Relation(self._gatherer.all(self._state, self._role, [key])[key])
        return self._found[key]

    def __iter__(self) -> Iterator[Key]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)


def counts(state: State, which: Which) -> Counts:
    total, explicit = state.total(ALL), state.total(EXPLICIT)
    if which == Which.EXPLICIT:
        return by_name(explicit)
    return by_name(total if which == Which.ALL else {k: n - explicit.get(k, 0) for k, n in total.items()})


def role_of(which: Which) -> str:
    """The relations to read for some facts: derived ones are all less the explicit ones."""
    return EXPLICIT if which == Which.EXPLICIT else ALL


def _difference(some: Runs, others: Runs, mine: Runs, theirs: Runs) -> Difference:
    """Facts of one side that the other has not, and those that are explicit on one side and not on the other."""
    runs = {k: run.without(others.get(k)) for k, run in some.items()}
    changed = {k: len(run.without(theirs.get(k))) for k, run in mine.items()}
    derived = {k: len(run.without(mine.get(k))) for k, run in runs.items()}
    return Difference(by_name(changed), by_name(derived), lambda: together(_columns(runs)))


def _columns(runs: Mapping[Key, Run]) -> Iterator[tuple[Key, Sequence[Ids]]]:
    return ((key, [run.column(i) for i in range(run.arity)]) for key, run in runs.items())
