"""Decoded triples as one view, in DuckDB or in Spark: `subject, predicate, object` as N-Triples terms.

The view reads the store's own files, by the list that its version commits; nothing is copied. Where one name stands for all
that are the same, it shows every one: facts are joined with the names on each place.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from evergraph.engines.base import Which
from evergraph.errors import UserError
from evergraph.store.layout import DICTIONARY, FACTS, NAMES
from evergraph.store.log import Snapshot

DECODE = """SELECT s.term AS subject, p.term AS predicate, o.term AS object
FROM {facts} AS f JOIN {terms} AS s ON s.id = f.subject JOIN {terms} AS p ON p.id = f.predicate
JOIN {terms} AS o ON o.id = f.object"""
EVERY_NAME = """WITH stored AS (
  SELECT f.subject, f.predicate, f.object, f.explicit, coalesce(s.name, p.name, o.name) IS NOT NULL AS apart
  FROM {facts} AS f LEFT JOIN {names} AS s ON s.name = f.subject LEFT JOIN {names} AS p ON p.name = f.predicate
  LEFT JOIN {names} AS o ON o.name = f.object
), members AS (
  SELECT name, representative FROM {names} UNION SELECT representative, representative FROM {names}
), shown AS (
  SELECT coalesce(s.name, f.subject) AS subject, coalesce(p.name, f.predicate) AS predicate,
    coalesce(o.name, f.object) AS object, f.explicit AND coalesce(s.name, f.subject) = f.subject
    AND coalesce(p.name, f.predicate) = f.predicate AND coalesce(o.name, f.object) = f.object AS explicit
  FROM stored AS f LEFT JOIN members AS s ON s.representative = f.subject
  LEFT JOIN members AS p ON p.representative = f.predicate LEFT JOIN members AS o ON o.representative = f.object
  WHERE NOT f.apart
)
SELECT f.subject, f.predicate, f.object, f.explicit OR g.explicit IS NOT NULL AS explicit
FROM shown AS f LEFT JOIN (SELECT * FROM stored WHERE apart) AS g
ON g.subject = f.subject AND g.predicate = f.predicate AND g.object = f.object"""
"""A stored fact that mentions a moved name is explicit; the others are in normal form, and a shown row comes of one of them."""
CHOICE = {Which.ALL: "", Which.EXPLICIT: "\nWHERE f.explicit", Which.DERIVED: "\nWHERE NOT f.explicit"}


def create_view(snapshot: Snapshot, engine: Any, name: str, which: Which) -> Any:
    """Make the view in a DuckDB connection or a SparkSession; returns it as that engine's relation or frame."""
    if hasattr(engine, "sparkContext"):
        frame = decoded(snapshot, engine, which)
        frame.createOrReplaceTempView(name)
        return frame
    if hasattr(engine, "execute") and hasattr(engine, "table"):
        facts, terms = (_scan(snapshot, table) for table in (FACTS, DICTIONARY))
        if snapshot.files(NAMES):
            facts = f"({EVERY_NAME.format(facts=facts, names=_scan(snapshot, NAMES))})"
        engine.execute(f'CREATE OR REPLACE VIEW "{name}" AS {DECODE.format(facts=facts, terms=terms)}{CHOICE[which]}')
        return engine.table(f'"{name}"')
    raise UserError("EG105", f"cannot make a view in {type(engine).__name__}", "give a DuckDB connection or a SparkSession")


def decoded(snapshot: Snapshot, session: Any, which: Which) -> Any:
    """The triples as a Spark frame, made when it is asked for."""
    facts, terms = frame(snapshot, session, FACTS), frame(snapshot, session, DICTIONARY)
    sql = DECODE.format(facts="{facts}", terms="{terms}") + CHOICE[which]
    return session.sql(sql, facts=facts, terms=terms)


def frame(snapshot: Snapshot, session: Any, table: str) -> Any:
    """A table of the store as a Spark frame; that of facts with every name. Cost: nothing until Spark is asked for rows."""
    if table == FACTS and snapshot.files(NAMES):
        return session.sql(EVERY_NAME, facts=_stored(snapshot, session, FACTS), names=_stored(snapshot, session, NAMES))
    return _stored(snapshot, session, table)


def _stored(snapshot: Snapshot, session: Any, table: str) -> Any:
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
