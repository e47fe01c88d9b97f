"""A rule body as one SELECT, for every peer that speaks SQL."""

from __future__ import annotations

from collections.abc import Sequence

from evergraph.bench.peers.patterns import Value
from evergraph.rules.model import Variable


def select(
    head: Sequence[Value],
    body: Sequence[tuple[str, Sequence[Value]]],
    unequal: Sequence[tuple[Value, Value]],
    id_type: str,
    hint: str = "",
) -> str:
    """A conjunctive query: tables (or subqueries) with columns `c0, c1, …` and the values their columns take.

    >>> x, y = Variable("x"), Variable("y")
    >>> select([x], [("t5", [x, y]), ("t6", [y, 7])], [(x, y)], "INT")
    'SELECT CAST(a0.c0 AS INT) AS c0 FROM t5 a0, t6 a1 WHERE a1.c0 = a0.c1 AND a1.c1 = 7 AND a0.c0 <> a0.c1'
    """
    columns: dict[Variable, str] = {}
    where: list[str] = []

    def text(value: Value) -> str:
        return columns[value] if isinstance(value, Variable) else str(value)

    for number, (_, values) in enumerate(body):
        for place, value in enumerate(values):
            column = f"a{number}.c{place}"
            if isinstance(value, Variable) and value not in columns:
                columns[value] = column
            else:
                where.append(f"{column} = {text(value)}")
    where += [f"{text(a)} <> {text(b)}" for a, b in unequal]
    chosen = ", ".join(f"CAST({text(v)} AS {id_type}) AS c{i}" for i, v in enumerate(head))
    parts = [f"SELECT {hint}{chosen}"]
    if body:
        parts.append("FROM " + ", ".join(f"{table} a{n}" for n, (table, _) in enumerate(body)))
    if where:
        parts.append("WHERE " + " AND ".join(where))
    return " ".join(parts)
