"""What a user gives to change a store, put together: files to insert and to delete, or patches."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from evergraph.errors import UserError

if TYPE_CHECKING:
    from evergraph.inputs import OwnLines


def gather(
    insert: list[str], delete: list[str], patches: list[Path], rules: bool = False
) -> tuple[list[str] | OwnLines, list[str]]:
    """What to insert and what to delete, as paths or as lines of N-Triples; a later patch has the last word over an earlier.

    Patches come alone: their lines and files would have no order among each other, and blank nodes of a file are its own
    where those of a patch are the graph's. Without facts, there must be `rules` to change.
    """
    from evergraph.formats import expand
    from evergraph.formats.patch import read_patch
    from evergraph.inputs import OwnLines

    if patches and (insert or delete):
        given = "--insert" if insert else "--delete"
        raise UserError("EG302", f"--patch and {given} do not go together", "put it into a patch, or update twice")
    wanted: dict[str, bool] = {}
    for patch in patches:
        added, gone = read_patch(patch)
        wanted |= dict.fromkeys(gone, False) | dict.fromkeys(added, True)
    inserts, deletes = [t for t, added in wanted.items() if added], [t for t, added in wanted.items() if not added]
    inserts += map(str, expand(insert))
    deletes += map(str, expand(delete))
    if not inserts and not deletes and not rules:
        raise UserError("EG302", "nothing to insert or delete", "give --insert, --delete or --patch FILE, or rules")
    return (OwnLines(inserts) if patches else inserts), deletes
