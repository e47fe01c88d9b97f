"""The relations of a shard between supersteps: files of packed words, and a manifest of what stands where in them.

A superstep writes one file with the runs it made and refers to the files of earlier ones for the rest, so that it pays for
what changed. Files are never written again; reading maps them into memory, and a relation that no join asks for is never
read. The manifest is small and lives in the driver: going back to an older one takes an update back.
Trap: the folder must be one that every worker and the driver can open. For `local` masters that is any folder.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from evergraph.engines.arrays import Arrays, Words
from evergraph.engines.relation import Order, Relation, Run
from evergraph.engines.spark.mail import cut, key_of, name_of, width_of
from evergraph.plan.model import Key


class Stored(NamedTuple):
    """Where one run of a relation, in one order of its columns, stands."""

    role: str
    """What the relation is to the shard: see `superstep`."""
    key: str
    arity: int
    part: str
    """`base`, `plus` or `minus`."""
    columns: str
    file: str
    start: int
    size: int
    """Words, from `start` on."""


Manifest = tuple[Stored, ...]
Roles = Mapping[str, Mapping[Key, Relation]]
"""Relations by role and key."""


def load(arrays: Arrays, folder: Path, manifest: Manifest, roles: Iterable[str]) -> dict[str, dict[Key, Relation]]:
    """The relations of a shard; what is not touched is not read."""
    wanted = set(roles)
    maps: dict[str, np.memmap] = {}
    runs: dict[tuple[str, str], dict[str, dict[Order, Words]]] = {}
    arities: dict[tuple[str, str], int] = {}
    for stored in manifest:
        if stored.role not in wanted:
            continue
        words = np.empty(0, np.uint64)
        if stored.size:
            if stored.file not in maps:
                maps[stored.file] = np.memmap(folder / stored.file, np.uint64, mode="r")
            words = np.asarray(maps[stored.file][stored.start : stored.start + stored.size])
        arities[stored.role, stored.key] = stored.arity
        parts = runs.setdefault((stored.role, stored.key), {})
        parts.setdefault(stored.part, {})[_order(stored.columns)] = cut(words, width_of(stored.arity))
    out: dict[str, dict[Key, Relation]] = {role: {} for role in wanted}
    for (role, name), parts in runs.items():
        arity = arities[role, name]
        made = {p: Run(arrays, arity, orders.pop(tuple(range(arity))), orders) for p, orders in parts.items()}
        out[role][key_of(name)] = Relation(made["base"], made.get("plus"), made.get("minus"))
    return out


def save(folder: Path, roles: Roles, before: Roles, manifest: Manifest) -> Manifest:
    """Write the runs that are not in `before` to a new file; returns the manifest of all."""
    known: dict[tuple[str, str, str, str], Stored] = {(s.role, s.key, s.part, s.columns): s for s in manifest}
    file = f"{uuid.uuid4().hex}.words"
    out: list[Stored] = []
    position = 0
    with (folder / file).open("wb") as target:
        for role, relations in roles.items():
            for key, relation in relations.items():
                old = before.get(role, {}).get(key)
                for part in ("base", "plus", "minus"):
                    run, was = getattr(relation, part), getattr(old, part, None)
                    for order, words in run.orders.items() if run is not None else ():
                        place = (role, name_of(key), part, _show(order))
                        if run is was and place in known:
                            out.append(known[place])
                            continue
                        count = sum(map(len, words))
                        for word in words:
                            word.tofile(target)
                        out.append(Stored(role, name_of(key), run.arity, part, _show(order), file, position, count))
                        position += count
    if not position:
        (folder / file).unlink()
    return tuple(out)


def _show(order: Order) -> str:
    return ",".join(map(str, order))


def _order(text: str) -> Order:
    return tuple(map(int, text.split(","))) if text else ()
