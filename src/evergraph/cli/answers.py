"""Answers of queries and feeds on standard output: as a table, CSV, JSON or N-Triples."""

from __future__ import annotations

import json
import sys
from typing import Any

import pyarrow as pa
import typer

from evergraph.cli.common import table_of
from evergraph.errors import UserError


def show(answers: Any, format_: str) -> None:
    """An rdflib result. SELECT and ASK as the SPARQL recommendations have it in CSV and JSON."""
    if answers.type in ("CONSTRUCT", "DESCRIBE"):
        _show_graph(answers, format_)
    elif format_ == "nt":
        raise UserError("EG302", f"{answers.type} has no triples to print", "use table, csv or json")
    elif format_ in ("csv", "json") and answers.type == "SELECT":
        sys.stdout.buffer.write(answers.serialize(format=format_))
        sys.stdout.write("\n" if format_ == "json" else "")
    elif format_ == "json":
        typer.echo(json.dumps({"head": {}, "boolean": bool(answers)}))
    elif answers.type == "ASK":
        typer.echo("yes" if answers else "no")
    else:
        show_table(answers.to_arrow(), format_)


def show_table(table: pa.Table, format_: str) -> None:
    """Rows of any table, terms as they are written in N-Triples."""
    if format_ == "csv":
        import pyarrow.csv as csv

        csv.write_csv(table, sys.stdout.buffer)
    elif format_ == "json":
        for row in table.to_pylist():
            typer.echo(json.dumps(row, ensure_ascii=False, default=str))
    elif format_ == "nt":
        raise UserError("EG302", "the change feed is no set of triples", "use table, csv or json")
    else:
        _show_box(table)


def _show_box(table: pa.Table) -> None:
    """Folded into the width of a terminal; elsewhere as wide as it is."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False, markup=False)
    rows = zip(*(("" if v is None else str(v) for v in c.to_pylist()) for c in table.columns), strict=True)
    if not console.is_terminal:
        typer.echo(table_of(table.column_names, rows))
        return
    shown = Table(box=box.SIMPLE)
    for name in table.column_names:
        shown.add_column(name, overflow="fold")
    for row in rows:
        shown.add_row(*row)
    console.print(shown)
    console.print(f"{table.num_rows:,} {'row' if table.num_rows == 1 else 'rows'}")


def _show_graph(answers: Any, format_: str) -> None:
    if format_ in ("table", "nt"):
        sys.stdout.write(answers.graph.serialize(format="nt"))
    elif format_ == "json":
        typer.echo(answers.graph.serialize(format="json-ld"))
    else:
        raise UserError("EG302", f"{answers.type} gives triples, which have no CSV", "use nt, table or json")
