"""Decoded triples as one view, in DuckDB or in Spark: `subject, predicate, object` as N-Triples terms.

The view reads the store's own files, by the list that its version commits; nothing is copied.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from evergraph.engines.base import Which
from evergraph.errors import UserError
from evergraph.store.layout import DICTIONARY, FACTS
from evergraph.store.log import Snapshot

DECODE = """SELECT s.term AS subject, p.term AS predicate, o.term AS object
FROM {facts} AS f JOIN {terms} AS s ON s.id = f.subject JOIN {terms} AS p ON p.id = f.predicate
JOIN {terms} AS o ON o.id = f.object"""
CHOICE = {Which.ALL: "", Which.EXPLICIT: "\nWHERE f.explicit", Which.DERIVED: "\nWHERE NOT f.explicit"}


def create_view(snapshot: Snapshot, engine: Any, name: str, which: Which) -> Any:
    """Make the view in a DuckDB connection or a SparkSession; returns it as that engine's relation or frame."""
    if hasattr(engine, "sparkContext"):
        frame = decoded(snapshot, engine, which)
        frame.createOrReplaceTempView(name)
        return frame
    if hasattr(engine, "execute") and hasattr(engine, "table"):
        facts, terms = (_scan(snapshot, table) for table in (FACTS, DICTIONARY))
        engine.execute(f'CREATE OR REPLACE VIEW "{name}" AS {DECODE.format(facts=facts, terms=terms)}{CHOICE[which]}')
        return engine.table(f'"{name}"')
    raise UserError("EG105", f"cannot make a view in {type(engine).__name__}", "give a DuckDB connection or a SparkSession")


def decoded(snapshot: Snapshot, session: Any, which: Which) -> Any:
    """The triples as a Spark frame, made when it is asked for."""
    facts, terms = frame(snapshot, session, FACTS), frame(snapshot, session, DICTIONARY)
    sql = DECODE.format(facts="{facts}", terms="{terms}") + CHOICE[which]
    return session.sql(sql, facts=facts, terms=terms)


def frame(snapshot: Snapshot, session: Any, table: str) -> Any:
    """A table of the store as a Spark frame."""
    files = [re.sub(r"([\[\]{}*?\\])", r"\\\1", str(file.path)) for file in snapshot.files(table)]  # Spark takes them for globs
    if not files:
        columns = {FACTS: "subject long, predicate long, object long, explicit boolean", DICTIONARY: "id long, term string"}
        return session.createDataFrame([], columns[table])
    return session.read.parquet(*files)


def _scan(snapshot: Snapshot, table: str) -> str:
    files = [file.path for file in snapshot.files(table)]
    if not files:
        empty = {
            FACTS: "NULL::BIGINT subject, NULL::BIGINT predicate, NULL::BIGINT object, NULL::BOOLEAN explicit",
            DICTIONARY: "NULL::BIGINT id, NULL::VARCHAR term",
        }
        return f"(SELECT {empty[table]} LIMIT 0)"
    return f"read_parquet([{', '.join(map(_quoted, files))}])"


def _quoted(path: Path) -> str:
    text = str(path.resolve()).replace("'", "''")
    return f"'{text}'"
