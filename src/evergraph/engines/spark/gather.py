"""Relations of the shards, brought to the driver when someone reads them.

Every fact is read from its owner, so that copies at further homes are counted once. Cost: the relations that are asked for;
the files are mapped, so that what is not read costs nothing.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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

    def at(self, state: State, role: str, shard: int, keys: Iterable[Key] | None = None) -> Runs:
        """Relations as they stand at a shard: some of them, or all."""
        wanted = None if keys is None else set(keys)
        manifest = [files.Stored(*s) for s in state.answers.get(shard, {}).get("manifest", ())]
        chosen = tuple(s for s in manifest if s.role == role and (wanted is None or key_of(s.key) in wanted))
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
        held = state.total(ALL).keys() | state.total(EXPLICIT).keys()
        keys = {k for k in held if relation == (TRIPLE if isinstance(k, int) else k)}
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
        """The change when facts may have gone, shard by shard. Cost: what changed, where relations stand on the same base."""
        arrays = self.arrays
        inserted, deleted = _Sum(arrays), _Sum(arrays)
        for shard in before.answers.keys() | after.answers.keys():
            manifests = [self._manifest(state, shard) for state in (before, after)]
            changed = (entry for entry in set(manifests[0]) ^ set(manifests[1]) if entry.role in (ALL, EXPLICIT))
            keys = {key_of(entry.key) for entry in changed}
            for key in (key for key in keys if not hidden(key)):
                old, new = _on_one_base(*(self._relation(manifest, ALL, key) for manifest in manifests))
                was, now = _on_one_base(*(self._relation(manifest, EXPLICIT, key) for manifest in manifests))
                for total, some, other, mine, theirs in ((inserted, new, old, now, was), (deleted, old, new, was, now)):
                    came = self._owned(after, shard, _less(some, other))
                    total.add(key, came, self._owned(after, shard, _less(mine, theirs)), mine)
        return Change(inserted.difference(), deleted.difference())

    def _manifest(self, state: State, shard: int) -> list[files.Stored]:
        return [files.Stored(*entry) for entry in state.answers.get(shard, {}).get("manifest", ())]

    def _relation(self, manifest: list[files.Stored], role: str, key: Key) -> tuple[files.Stored, Relation] | None:
        """A relation as a shard keeps it, and where its base stands."""
        mine = tuple(s for s in manifest if s.role == role and key_of(s.key) == key)
        if not mine:
            return None
        base = min((s for s in mine if s.part == "base"), key=lambda s: s.columns)
        return base, files.load(self.arrays, self.folder, mine, [role])[role][key]

    def _owned(self, state: State, shard: int, run: Run | None) -> Run | None:
        if run is None:
            return None
        return run.where(state.placement.owner(self.arrays, run.arity, run.words) == U64(shard))

    def facts(self, state: State, role: str) -> Facts:
        keys = [k for k in state.total(role) if not hidden(k)]
        return together(_columns(self.all(state, role, keys)))


@dataclass(frozen=True)
class Reader:
    """The facts of one state of the shards; its files stay as long as somebody has this."""

    gatherer: Gatherer
    state: State

    def counts(self, which: Which) -> Counts:
        return counts(self.state, which)

    def rows(self, relation: str, which: Which) -> Sequence[Ids] | None:
        return self.gatherer.rows(self.state, relation, which)

    def contains(self, relation: str, row: Sequence[int]) -> bool:
        return self.gatherer.contains(self.state, relation, row)

    def relations(self, which: Which) -> Mapping[Key, Relation]:
        return Gathered(self.gatherer, self.state, role_of(which), reader=self)


class Gathered(Mapping[Key, Relation]):
    """The relations of all shards; one is brought to the driver when it is asked for, and kept."""

    def __init__(
        self, gatherer: Gatherer, state: State, role: str, all_keys: bool = False, reader: Reader | None = None
    ) -> None:
        """With `all_keys`, hidden relations too."""
        self._gatherer, self.state, self._role, self._reader = gatherer, state, role, reader
        self.sizes = {key: count for key, count in state.total(role).items() if count and (all_keys or not hidden(key))}
        """How many facts each relation has, which is known without reading it."""
        self._found: dict[Key, Relation] = {}

    def after(self, state: State) -> Gathered:
        """The same in another state, hidden relations too; relations that stand where they stood are not read again."""
        out = Gathered(self._gatherer, state, self._role, True)
        before, now = (_places(one, self._role, self._found) for one in (self.state, state))
        out._found = {key: r for key, r in self._found.items() if key in out.sizes and before.get(key) == now.get(key)}
        return out

    def __getitem__(self, key: Key) -> Relation:
        if key not in self.sizes:
            raise KeyError(key)
        if key not in self._found:
            self._found[key] = Relation(self._gatherer.all(self.state, self._role, [key])[key])
        return self._found[key]

    def __contains__(self, key: object) -> bool:
        return key in self.sizes

    def __iter__(self) -> Iterator[Key]:
        return iter(self.sizes)

    def __len__(self) -> int:
        return len(self.sizes)


def counts(state: State, which: Which) -> Counts:
    total, explicit = state.total(ALL), state.total(EXPLICIT)
    if which == Which.EXPLICIT:
        return by_name(explicit)
    return by_name(total if which == Which.ALL else {k: n - explicit.get(k, 0) for k, n in total.items()})


def role_of(which: Which) -> str:
    """The relations to read for some facts: derived ones are all less the explicit ones."""
    return EXPLICIT if which == Which.EXPLICIT else ALL


def _places(state: State, role: str, keys: Container[Key]) -> dict[Key, set[Any]]:
    """Where some relations stand."""
    out: dict[Key, set[Any]] = {}
    for entry in state.manifest:
        if entry[0] == role and key_of(entry[1]) in keys:
            out.setdefault(key_of(entry[1]), set()).add(entry)
    return out


Placed = tuple[files.Stored, Relation] | None


def _on_one_base(old: Placed, new: Placed) -> tuple[Relation | None, Relation | None]:
    """Two states of a relation, on the same run where they stand on the same words."""
    if old is not None and new is not None and old[0] == new[0]:
        return old[1], Relation(old[1].base, new[1].plus, new[1].minus)
    return (old[1] if old is not None else None), (new[1] if new is not None else None)


def _less(some: Relation | None, other: Relation | None) -> Run | None:
    return None if some is None else Run(some.base.arrays, some.arity, some.less(other))


class _Sum:
    """Facts that came, or that went, over all shards."""

    def __init__(self, arrays: Arrays) -> None:
        self.arrays = arrays
        self.runs: dict[Key, list[Run]] = {}
        self.explicit: dict[Key, int] = {}
        self.derived: dict[Key, int] = {}

    def add(self, key: Key, run: Run | None, changed: Run | None, explicit: Relation | None) -> None:
        """What came of a relation at a shard; what became explicit there; and what is."""
        if run is not None:
            self.runs.setdefault(key, []).append(run)
            self.derived[key] = self.derived.get(key, 0) + len(run.without(explicit))
        if changed is not None:
            self.explicit[key] = self.explicit.get(key, 0) + len(changed)

    def difference(self) -> Difference:
        return Difference(by_name(self.explicit), by_name(self.derived), lambda: together(_columns(self._together())))

    def _together(self) -> Runs:
        return {k: Run(self.arrays, rs[0].arity, self.arrays.unique([r.words for r in rs])) for k, rs in self.runs.items()}


def _columns(runs: Mapping[Key, Run]) -> Iterator[tuple[Key, Sequence[Ids]]]:
    return ((key, [run.column(i) for i in range(run.arity)]) for key, run in runs.items())
