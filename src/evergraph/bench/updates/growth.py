"""Cost follows the change: a hundred facts out of a small graph and out of a large one, and in again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evergraph.bench.updates.cells import Cell
from evergraph.bench.updates.deletions import HUNDRED


def growth(cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """For each rule set, algorithm and operation the smallest graph beside the largest; only where both were measured."""
    done = [cell for cell in cells if cell.update == HUNDRED.name and cell.status == "ok"]
    rows = []
    for rules, algorithm, operation in dict.fromkeys((c.rules, c.algorithm, c.operation) for c in done):
        mine = [c for c in done if (c.rules, c.algorithm, c.operation) == (rules, algorithm, operation)]
        small, large = (pick(mine, key=lambda c: c.universities) for pick in (min, max))
        if small.universities == large.universities:
            continue
        assert small.seconds is not None and large.seconds is not None
        rows.append(
            {
                "rules": rules,
                "algorithm": algorithm,
                "operation": operation,
                "small": small.universities,
                "large": large.universities,
                "small_seconds": small.seconds,
                "large_seconds": large.seconds,
                "ratio": large.seconds / small.seconds,
            }
        )
    return rows
