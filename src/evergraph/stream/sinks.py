"""Where the answers of micro-batches go: files, Delta tables, the console.

Contract: a batch that is written again leaves what one that is written once leaves. A file has the number of its batch in its
name and is replaced; a Delta table knows which batches it has, as an application's transactions.
Every query has a folder of its own: `time`, `query`, `change`, then its variables; `subject, predicate, object` of a CONSTRUCT,
`answer` of an ASK. A variable called like one of the first three gets an underscore.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Protocol
from zlib import crc32

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from evergraph.stream.answers import Answers
from evergraph.stream.checkpoint import write_whole
from evergraph.stream.times import text_of

Tables = Mapping[str, pa.Table]


class Sink(Protocol):
    def write(self, batch: int, tables: Tables) -> None:
        """Write the answers of a batch, by query; tables have rows."""


def tables_of(answers: Iterable[Answers]) -> dict[str, pa.Table]:
    """Answers of several ticks by query; of those that have none there is nothing."""
    found: dict[str, list[pa.Table]] = {}
    for one in answers:
        table = one.to_arrow()
        if table.num_rows:
            found.setdefault(one.query, []).append(table)
    return {name: pa.concat_tables(tables) for name, tables in found.items()}


class Files:
    """`path/query/batch-00000012.parquet`."""

    def __init__(self, path: Path, kind: str, options: Mapping[str, str]) -> None:
        self.path, self.kind = path, kind
        header = options.get("header", "false").lower() == "true"
        self._writers: dict[str, Callable[[pa.Table, Path], Any]] = {
            "parquet": pq.write_table,
            "json": _write_json,
            "csv": partial(_write_csv, header),
        }

    def write(self, batch: int, tables: Tables) -> None:
        for name, table in tables.items():
            path = self.path / folder_of(name) / f"batch-{batch:08}.{self.kind}"
            write_whole(path, partial(self._writers[self.kind], table))


class Delta:
    """A table for each query at `path/query`; `application` stands for the checkpoint."""

    def __init__(self, path: str, application: str) -> None:
        self.path, self.application = path, application

    def write(self, batch: int, tables: Tables) -> None:
        for name, table in tables.items():
            target = f"{self.path}/{folder_of(name)}"
            if DeltaTable.is_deltatable(target):
                done = DeltaTable(target).transaction_version(self.application)
                if done is not None and done >= batch:
                    continue
            properties = CommitProperties(app_transactions=[Transaction(self.application, batch)])
            write_deltalake(target, table, mode="append", commit_properties=properties)


class Console:
    """As Spark's console has it, a table for each query."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.rows = int(options.get("numrows", 20))
        self.cut = options.get("truncate", "true").lower() == "true"

    def write(self, batch: int, tables: Tables) -> None:
        line = "-" * 43
        print(line, f"Batch: {batch}", line, sep="\n")
        for table in tables.values():
            print(self._shown(_with_text(table)))

    def _shown(self, table: pa.Table) -> str:
        first = table.slice(0, self.rows).to_pylist()
        rows = [["NULL" if v is None else self._cut(str(v)) for v in row.values()] for row in first]
        widths = [max(3, *map(len, column)) for column in zip(table.column_names, *rows, strict=True)]
        rule = "+".join(["", *("-" * width for width in widths), ""])
        head, *lines = (
            "|".join(["", *(f"{v:>{width}}" for v, width in zip(row, widths, strict=True)), ""])
            for row in (table.column_names, *rows)
        )
        more = [f"only showing top {self.rows} rows"] if table.num_rows > self.rows else []
        return "\n".join([rule, head, rule, *lines, rule, *more, ""])

    def _cut(self, text: str) -> str:
        return text[:17] + "..." if self.cut and len(text) > 20 else text


def folder_of(query: str) -> str:
    """A query's name as that of a folder: of an IRI the letters, and a number so that no other has the same."""
    plain = re.sub(r"^[._]|[^\w.-]+", "-", query)
    return plain if plain == query else f"{plain}-{crc32(query.encode()):08x}"


def _with_text(table: pa.Table) -> pa.Table:
    times = [text_of(instant) for instant in table.column("time").cast(pa.int64()).to_pylist()]
    return table.set_column(0, "time", pa.array(times, pa.string()))


def _write_json(table: pa.Table, path: Path) -> None:
    with path.open("w", encoding="utf-8") as file:
        for row in _with_text(table).to_pylist():
            file.write(json.dumps({name: v for name, v in row.items() if v is not None}, ensure_ascii=False) + "\n")


def _write_csv(header: bool, table: pa.Table, path: Path) -> None:
    pyarrow.csv.write_csv(_with_text(table), path, pyarrow.csv.WriteOptions(include_header=header))
