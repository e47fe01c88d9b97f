"""Timestamped facts, a block of lines at a time: N-Triples and N-Quads behind a timestamp, and JSON lines.

Contract: what the lines say, in their order, terms in canonical spelling. A line goes the fast way, through Arrow's kernels,
only when strict patterns say that nothing in it is unusual; any other goes through Python, and a bad one is told of.
Trap: as in `formats.ntriples`, the patterns must stay narrower than what Python takes, and be read the same way.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from io import BytesIO
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as arrow_json

from evergraph.errors import UserError
from evergraph.formats.ntriples import (
    CANONICAL_TERMS,
    LANGUAGE_STRING,
    NOT_UTF8,
    BadLine,
    OnBadLine,
    plain_strings,
    read_rows,
    split_at_spaces,
)
from evergraph.stream.times import Instants, instant_of
from evergraph.terms import parse_term

Mask = npt.NDArray[np.bool_]
TERMS = ("subject", "predicate", "object")
KEYS = (*TERMS, "timestamp", "stream")

_DAY = r"(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))"
_STAMP = (
    r"(?:[0-9]{1,10}(?:\.[0-9]{1,6})?"
    rf"|[1-9][0-9]{{3}}-{_DAY}T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{{1,6}})?Z?)"
)
PLAIN_STAMP = rf"^{_STAMP}$"
"""Timestamps that kernels read: numbers, and dates that need no calendar."""
PLAIN_LINE = rf"^{_STAMP} [<_]"
_LINE = re.compile(r"[ \t]*(?P<stamp>[^ \t]+)[ \t]*(?P<rest>.*)", re.DOTALL)

_TEXT = r'"(?:[^"\\\x00-\x1f]|\\["\\])*"'
_NUMBER = r"(?:0|[1-9][0-9]*)(?:\.[0-9]+)?"
_PAIR = (
    rf'(?:"(?:subject|predicate|object)"[ \t]*:[ \t]*{_TEXT}|"stream"[ \t]*:[ \t]*(?:{_TEXT}|null)'
    rf'|"timestamp"[ \t]*:[ \t]*(?:{_TEXT}|{_NUMBER}))'
)
PLAIN_OBJECT = rf"^[ \t]*\{{[ \t]*{_PAIR}(?:[ \t]*,[ \t]*{_PAIR})*[ \t]*\}}[ \t]*$"
"""Objects of the known keys alone that Arrow reads as Python does."""
_STAMP_NUMBER = r'"timestamp"[ \t]*:[ \t]*([0-9.]+)'
"""A timestamp that is a number. Only a key of a plain object looks so: quotes within its texts are escaped."""
_SCHEMA = pa.schema([(key, pa.string()) for key in KEYS])

_TERM = re.compile(r'<[^<>\s]*>|_:[^\s#]+|"(?:[^"\\]|\\.)*"(?:@[A-Za-z]+(?:-[A-Za-z0-9]+)*|\^\^<[^<>\s]*>)?', re.DOTALL)
"""Text that is one term and nothing more, if it is a term."""
_KINDS = (("<", "_"), ("<",), ("<", "_", '"'))
"""How subjects, predicates and objects start."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What some lines say, in their order."""

    columns: list[pa.Array]
    """Subject, predicate and object."""
    streams: pa.Array
    """The stream of each fact, an IRI without brackets; empty for the default stream."""
    timestamps: Instants


# -- a timestamp, then N-Triples or N-Quads ----------------------------------------------------------------------------


def read_stamped(lines: pa.Array, first_line: int, quads: bool, on_bad: OnBadLine) -> Facts:
    """Timestamps are cut off; what remains are lines of N-Triples or N-Quads."""
    plain = pc.match_substring_regex(lines, PLAIN_LINE)
    fast = np.asarray(plain)
    stamps, rests = split_at_spaces(lines.filter(plain), 1)
    instants = np.zeros(len(lines), np.int64)
    instants[fast] = _instants(stamps)
    if not fast.all():
        texts = []
        for place in np.flatnonzero(~fast).tolist():
            instants[place], rest = _cut_stamp(lines[place].as_py(), first_line + place, on_bad)
            texts.append(rest)
        rests = _merged(fast, rests, pa.array(texts, pa.string()))

    def tell(bad: BadLine) -> None:
        """What is wrong with the rest of a line, as said of the whole."""
        text = lines[bad.line - first_line].as_py()
        on_bad(replace(bad, column=bad.column + len(text) - len(bad.text), text=text))

    rows = read_rows(rests, first_line, quads, tell)
    *columns, graphs = rows.columns
    unnamed = np.asarray(pc.starts_with(graphs, "_:"))
    for place in rows.places[unnamed].tolist():
        on_bad(BadLine(first_line + place, 1, "the name of a stream is an IRI", lines[place].as_py()))
    facts = Facts(columns, pc.utf8_slice_codeunits(graphs, 1, -1), instants[rows.places])
    return _only(facts, ~unnamed)


def _cut_stamp(text: str, line: int, on_bad: OnBadLine) -> tuple[int, str]:
    """The timestamp of a line and what follows it: nothing if it is bad, or if the line says nothing."""
    if text.startswith(NOT_UTF8):
        on_bad(BadLine(line, 1, "not UTF-8", text.removeprefix(NOT_UTF8)))
        return 0, ""
    found = _LINE.match(text)
    if found is None or found["stamp"].startswith("#"):
        return 0, ""
    try:
        instant = instant_of(found["stamp"])
    except UserError as error:
        on_bad(BadLine(line, found.start("stamp") + 1, error.message, text))
        return 0, ""
    if not found["rest"] or found["rest"].startswith("#"):
        on_bad(BadLine(line, found.start("rest") + 1, "no triple follows the timestamp", text))
        return 0, ""
    return instant, found["rest"]


def _instants(stamps: pa.Array) -> Instants:
    """Plain timestamps as microseconds."""
    out = np.empty(len(stamps), np.int64)
    dated = pc.match_substring(stamps, "T")
    where = np.asarray(dated)
    if where.any():
        dates = pc.utf8_rtrim(stamps.filter(dated), "Z")
        out[where] = np.asarray(dates.cast(pa.timestamp("us")).cast(pa.int64()))
    if not where.all():
        numbers = pc.extract_regex(stamps.filter(pc.invert(dated)), r"^(?P<whole>[0-9]+)\.?(?P<part>[0-9]*)$")
        whole, part = (pc.struct_field(numbers, name) for name in ("whole", "part"))
        out[~where] = np.asarray(pc.binary_join_element_wise(whole, pc.utf8_rpad(part, 6, "0"), "").cast(pa.int64()))
    return out


# -- JSON lines --------------------------------------------------------------------------------------------------------


def read_json(lines: pa.Array, first_line: int, on_bad: OnBadLine) -> Facts:
    """Objects as columns of text with a place for each line; then each column is checked and spelled canonically."""
    said: Mask = np.ones(len(lines), bool)
    """Which lines say something that is not known to be bad."""

    def refuse(place: int, message: str, column: int = 1) -> None:
        said[place] = False
        text = lines[place].as_py()
        on_bad(BadLine(first_line + place, column, message, text.removeprefix(NOT_UTF8)))

    columns = _objects(lines, said, refuse)
    instants = _timestamps(columns[3], said, refuse)
    for number in range(len(TERMS)):
        columns[number] = _terms(columns[number], number, said, refuse)
    streams = _names(columns[4], said, refuse)
    return _only(Facts(columns[:3], streams, instants), said)


Refuse = Callable[..., None]


def _objects(lines: pa.Array, said: Mask, refuse: Refuse) -> list[pa.Array]:
    """A column of text for each key, with null where there is nothing."""
    plain = pc.match_substring_regex(lines, PLAIN_OBJECT)
    fast = np.asarray(plain)
    table = _plain_objects(lines.filter(plain)) if fast.any() else _SCHEMA.empty_table()
    if table is None:
        fast, table = np.zeros(len(lines), bool), _SCHEMA.empty_table()
    rows: list[dict[str, str]] = []
    for place in np.flatnonzero(~fast).tolist():
        rows.append(_object(lines[place].as_py(), place, said, refuse))
    others = [pa.array([row.get(key) for row in rows], pa.string()) for key in KEYS]
    given = [pa.concat_arrays(column.chunks) if len(table) else column.combine_chunks() for column in table.columns]
    return [_merged(fast, a, b) if rows else a for a, b in zip(given, others, strict=True)]


def _plain_objects(lines: pa.Array) -> pa.Table | None:
    """Plain objects by Arrow's reader; None if it refuses one, since it does not say which: a key may stand there twice."""
    texts = pc.replace_substring_regex(lines, pattern=_STAMP_NUMBER, replacement=r'"timestamp":"\1"')
    joined = pc.binary_join(pa.ListArray.from_arrays([0, len(texts)], texts), "\n")[0].as_py().encode()
    try:
        return arrow_json.read_json(
            BytesIO(joined),
            read_options=arrow_json.ReadOptions(use_threads=False, block_size=len(joined) + 1),
            parse_options=arrow_json.ParseOptions(explicit_schema=_SCHEMA, unexpected_field_behavior="error"),
        )
    except pa.ArrowInvalid:
        return None


def _object(text: str, place: int, said: Mask, refuse: Refuse) -> dict[str, str]:
    """The texts of one object; empty if there is none."""
    if not text.strip():
        said[place] = False
        return {}
    if text.startswith(NOT_UTF8):
        refuse(place, "not UTF-8")
        return {}
    try:
        found = json.loads(text, parse_float=Decimal)
    except json.JSONDecodeError as error:
        refuse(place, f"not JSON: {error.msg}", error.colno)
        return {}
    except (ValueError, RecursionError, ArithmeticError):
        refuse(place, "not JSON that can be read")
        return {}
    if not isinstance(found, dict):
        refuse(place, "no JSON object")
        return {}
    given = {key: found[key] for key in KEYS if found.get(key) is not None}
    wrong = next((key for key, value in given.items() if not _fits(key, value)), None)
    if wrong is not None:
        refuse(place, f'"{wrong}" is not text')
        return {}
    return {key: str(value) for key, value in given.items()}


def _fits(key: str, value: Any) -> bool:
    """Text, or the number that a timestamp may be; half of a surrogate pair is no text."""
    if isinstance(value, str):
        return not any("\ud800" <= character <= "\udfff" for character in value)
    return key == "timestamp" and isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _timestamps(column: pa.Array, said: Mask, refuse: Refuse) -> Instants:
    plain = pc.fill_null(pc.match_substring_regex(column, PLAIN_STAMP), False)
    fast = np.asarray(plain)
    out = np.zeros(len(column), np.int64)
    out[fast] = _instants(column.filter(plain))
    for place in np.flatnonzero(said & ~fast).tolist():
        text = column[place].as_py()
        try:
            if text is None:
                refuse(place, 'no "timestamp"')
            else:
                out[place] = instant_of(text)
        except UserError as error:
            refuse(place, error.message)
    return out


def _terms(column: pa.Array, number: int, said: Mask, refuse: Refuse) -> pa.Array:
    """Subjects, predicates or objects in canonical spelling."""
    fast = pc.match_substring_regex(column, CANONICAL_TERMS[number])
    fast = pc.fill_null(pc.and_not(fast, pc.match_substring(column, LANGUAGE_STRING)), False)
    odd = said & ~np.asarray(fast)
    spelled: list[str | None] = []
    for place in np.flatnonzero(odd).tolist():
        text = column[place].as_py()
        try:
            if text is None:
                raise UserError("EG103", f'no "{TERMS[number]}"', "")
            spelled.append(_term(text, number))
        except UserError as error:
            refuse(place, error.message)
            spelled.append(None)
    return _merged(~odd, column.filter(pa.array(~odd)), pa.array(spelled, pa.string())) if spelled else column


def _term(text: str, number: int) -> str:
    if not _TERM.fullmatch(text) or not text.startswith(_KINDS[number]):
        raise UserError("EG103", f"not a term, or no {TERMS[number]}: {text!r}", "")
    return parse_term(text)


def _names(column: pa.Array, said: Mask, refuse: Refuse) -> pa.Array:
    """Streams, with or without brackets; each distinct name is looked at once."""
    given = pc.fill_null(column, "").dictionary_encode()
    names: list[str] = []
    for number, text in enumerate(given.dictionary.to_pylist()):
        try:
            names.append(_term(text if text.startswith("<") else f"<{text}>", 1)[1:-1] if text else "")
        except UserError:
            for place in np.flatnonzero(said & (np.asarray(given.indices) == number)).tolist():
                refuse(place, f"the name of a stream is an IRI: {text!r}")
            names.append("")
    return pa.array(names, pa.string()).take(given.indices)


# -- both --------------------------------------------------------------------------------------------------------------


def _merged(first: Mask, those: pa.Array, others: pa.Array) -> pa.Array:
    """One column of two: those where `first` holds, the others elsewhere."""
    order = np.argsort(np.concatenate([np.flatnonzero(first), np.flatnonzero(~first)]))
    return pa.concat_arrays([those, others]).take(pa.array(order))


def _only(facts: Facts, rows: Mask) -> Facts:
    if not rows.all():
        mask = pa.array(rows)
        facts = Facts([c.filter(mask) for c in facts.columns], facts.streams.filter(mask), facts.timestamps[rows])
    subject, predicate, value = facts.columns
    return replace(facts, columns=[subject, predicate, plain_strings(value)])
