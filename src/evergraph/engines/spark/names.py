"""Names where workers can look them up: which stands for which, in files that are written once."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from evergraph.engines.arrays import U64, Arrays
from evergraph.engines.equality.names import Names


@dataclass(frozen=True, slots=True)
class StoredNames:
    """Moved names and what stands for them, one after the other in a file."""

    path: Path
    count: int

    def open(self) -> Names:
        return _open(self.path, self.count)


class NameFiles:
    """The driver's side."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._stored: dict[int, tuple[Names, StoredNames]] = {}
        """By identity of the names, which stay alive with it."""

    def save(self, names: Names) -> StoredNames:
        """Cost: linear in the moved names, once."""
        known = self._stored.get(id(names))
        if known is None:
            self.folder.mkdir(exist_ok=True)
            path = self.folder / uuid.uuid4().hex
            np.concatenate([names.moved, names.represented]).astype(U64).tofile(path)
            known = self._stored[id(names)] = names, StoredNames(path, len(names))
        return known[1]

    def sweep(self, *needed: Names) -> None:
        """Delete all but these."""
        kept = {id(names) for names in needed}
        for number in [number for number in self._stored if number not in kept]:
            self._stored.pop(number)[1].path.unlink(missing_ok=True)


@lru_cache(maxsize=4)
def _open(path: Path, count: int) -> Names:
    both = np.fromfile(path, U64) if count else np.empty(0, U64)
    return Names(Arrays(), both[:count], both[count:])
