"""What continuous queries answer, tick by tick, on standard output: as tables, CSV or JSON lines.

CSV writes terms as SPARQL's CSV does. JSON writes them as N-Triples, which is how sources of streams are read: answers of one
query can be facts of the next. Contract: a tick is out when it has been shown; nothing waits in a buffer.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterable
from enum import StrEnum
from typing import Any

import typer

from evergraph.cli.common import texts_of

TRIPLE = ("subject", "predicate", "object")
ABOUT = ("time", "query", "change")
"""What each JSON object says of its tick. A variable of one of these names is called by it with its question mark."""


class TickFormat(StrEnum):
    TABLE = "table"
    CSV = "csv"
    JSON = "json"


class Ticks:
    """Shows answers in one format, and remembers which queries have had their header."""

    def __init__(self, format_: TickFormat) -> None:
        self._show = {TickFormat.TABLE: self._table, TickFormat.CSV: self._csv, TickFormat.JSON: self._json}[format_]
        self._headed: set[str] = set()

    def show(self, answers: Any) -> None:
        self._show(answers, answers.time.isoformat().replace("+00:00", "Z"))
        sys.stdout.flush()

    def _table(self, answers: Any, time: str) -> None:
        from evergraph.cli.answers import show

        result, told = answers.result, "" if answers.change == "all" else f" ({answers.change})"
        empty = result.type != "ASK" and not len(result if result.type == "SELECT" else result.graph)
        if empty and told:
            return
        typer.echo(f"{time} {answers.query}{told}")
        if empty:
            typer.echo("no rows" if result.type == "SELECT" else "no triples")
        elif result.type in ("ASK", "SELECT"):
            show(result, "table")
        else:
            for triple in _rows(result)[1]:
                typer.echo(" ".join(texts_of(triple)) + " .")
        typer.echo()

    def _csv(self, answers: Any, time: str) -> None:
        header, rows = _rows(answers.result)
        out = csv.writer(sys.stdout)
        if answers.query not in self._headed:
            self._headed.add(answers.query)
            out.writerow(("time", "query", *header))
        out.writerows((time, answers.query, *map(_plain, row)) for row in rows)

    def _json(self, answers: Any, time: str) -> None:
        header, rows = _rows(answers.result)
        names = [f"?{name}" if name in ABOUT else name for name in header]
        about = dict(zip(ABOUT, (time, answers.query, answers.change), strict=True))
        for row in rows:
            bound = {name: term for name, term in zip(names, row, strict=True) if term is not None}
            values = bound.values() if answers.result.type == "ASK" else texts_of(bound.values())
            typer.echo(json.dumps({**about, **dict(zip(bound, values, strict=True))}, ensure_ascii=False))


def _rows(result: Any) -> tuple[list[str], Iterable[Any]]:
    """The columns of a result and its rows, of rdflib terms; ASK has one row."""
    if result.type == "ASK":
        return ["answer"], [(bool(result.askAnswer),)]
    if result.type == "SELECT":
        return list(map(str, result.vars)), result
    return list(TRIPLE), sorted(result.graph, key=texts_of)


def _plain(term: Any) -> str:
    """A term as SPARQL's CSV has it: IRIs and literals without quotes, nothing for what is not bound."""
    from rdflib.term import BNode

    if isinstance(term, bool):
        return str(term).lower()
    return "" if term is None else f"_:{term}" if isinstance(term, BNode) else str(term)
