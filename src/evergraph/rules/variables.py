"""Variables of rules that are made."""

from __future__ import annotations

from evergraph.rules.model import Variable


def variables(arity: int) -> tuple[Variable, ...]:
    """A variable for each argument: `?x, ?y, ?z`, or numbered if there are more than three."""
    return tuple(map(Variable, "xyz"[:arity] if arity <= 3 else (f"x{i}" for i in range(1, arity + 1))))
