"""What a user gives to change a store, put together: files to insert and to delete, and patches."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def gather(insert: list[str], delete: list[str], patches: list[Path]) -> tuple[Any, Any]:
    """Everything to insert and everything to delete; a later patch has the last word over an earlier one."""
    from evergraph.formats import expand
    from evergraph.formats.patch import read_patch

    if not patches:
        return [str(p) for p in expand(insert)], [str(p) for p in expand(delete)]
    wanted: dict[str, bool] = {}
    for patch in patches:
        added, gone = read_patch(patch)
        wanted |= dict.fromkeys(gone, False) | dict.fromkeys(added, True)
    if insert or delete:
        wanted = dict.fromkeys(_lines(delete), False) | dict.fromkeys(_lines(insert), True) | wanted
    return [t for t, added in wanted.items() if added], [t for t, added in wanted.items() if not added]


def _lines(paths: list[str]) -> list[str]:
    """The triples of files, as lines of N-Triples."""
    from itertools import count

    from evergraph.formats import expand, read_files

    out: list[str] = []
    for block in read_files(expand(paths), count(1).__next__):
        columns = [column.to_pylist() for column in block]
        out += [f"{s} {p} {o} ." for s, p, o in zip(*columns, strict=True)]
    return out
