"""Timestamped triples: every syntax, from files, folders and pipes, in order, with bad lines told of and passed by."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import os
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyoxigraph as ox
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from evergraph.errors import UserError
from evergraph.formats.ntriples import BadLine, OnBadLine
from evergraph.stream.sources import ROWS, Batch, read_blocks, source_files
from evergraph.stream.times import instant_of

S, P, V, G, H = (f"<http://ex/{name}>" for name in "spvgh")
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
STRING = "http://www.w3.org/2001/XMLSchema#string"
Fact = tuple[str, int, str, str, str]
"""Stream, timestamp, subject, predicate and object."""


def read_source(path: str | Path, on_bad: OnBadLine, format_: str | None = None, rows: int = ROWS) -> Iterator[Batch]:
    """All batches of a source."""
    files = source_files(path, format_)
    return (batch for file in files for batches in read_blocks(file, on_bad, format_, rows) for batch in batches)


def facts_of(batch: Batch) -> list[Fact]:
    columns = (column.to_pylist() for column in batch.columns)
    return [(batch.stream, *row) for row in zip(batch.timestamps.tolist(), *columns, strict=True)]


def read(path: str | Path, format_: str | None = None, rows: int = 1 << 14) -> tuple[list[Fact], list[BadLine]]:
    bad: list[BadLine] = []
    return [fact for batch in read_source(path, bad.append, format_, rows) for fact in facts_of(batch)], bad


def read_text(tmp_path: Path, text: str | bytes, name: str = "data.nq", **given: Any) -> tuple[list[Fact], list[BadLine]]:
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read(path, **given)


# -- timestamps --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stamp", "micros"),
    [
        ("12", 12_000_000),
        ("0", 0),
        ("12.5", 12_500_000),
        ("1763280001.123456", 1_763_280_001_123_456),
        ("-3", -3_000_000),
        ("1e3", 1_000_000_000),
        ("0.0000005", 0),
        ("1970-01-01T00:00:12Z", 12_000_000),
        ("1970-01-01T00:00:12", 12_000_000),
        ("1970-01-01T00:00:12.5Z", 12_500_000),
        ("1970-01-01T01:00:12+01:00", 12_000_000),
        ("1970-01-01T00:00:12.123456Z", 12_123_456),
        ("2024-02-29T00:00:00Z", 1_709_164_800_000_000),
        ("1969-12-31T23:59:59Z", -1_000_000),
        ("0099-01-01T00:00:00Z", -59_042_995_200_000_000),
    ],
)
def test_a_timestamp_is_a_number_of_seconds_or_a_date(tmp_path: Path, stamp: str, micros: int) -> None:
    want = [("", micros, S, P, V)]
    assert read_text(tmp_path, f"{stamp} {S} {P} {V} .\n", "a.nt") == (want, [])
    triple = {"subject": S, "predicate": P, "object": V}
    assert read_text(tmp_path, json.dumps({**triple, "timestamp": stamp}), "a.jsonl") == (want, [])
    assert instant_of(stamp) == micros
    if "-" not in stamp[1:]:
        text = json.dumps({**triple, "timestamp": 0}).replace(": 0}", f": {stamp}}}")
        assert read_text(tmp_path, text, "b.jsonl") == (want, [])


@pytest.mark.parametrize(
    "stamp",
    ["x", "2026-02-30T00:00:00Z", "2026-13-01T00:00:00Z", "2023-02-29T00:00:00Z", "NaN", "inf", "1e999999", "9" * 400, "12:00"],
)
def test_a_bad_timestamp_is_a_bad_line(tmp_path: Path, stamp: str) -> None:
    line = f"{stamp} {S} {P} {V} ."
    found, (bad,) = read_text(tmp_path, f"1 {S} {P} {V} .\n {line}\n2 {S} {P} {V} .\n")
    assert [fact[1] for fact in found] == [1_000_000, 2_000_000]
    assert (bad.line, bad.column, bad.text) == (2, 2, f" {line}")
    assert bad.message.startswith("not a timestamp: ")
    text = json.dumps({"subject": S, "predicate": P, "object": V, "timestamp": stamp})
    found, (bad,) = read_text(tmp_path, text, "a.json")
    assert (found, bad.line, bad.text) == ([], 1, text)


# -- lines -------------------------------------------------------------------------------------------------------------


def test_graph_names_are_streams_and_each_stream_keeps_its_order(tmp_path: Path) -> None:
    lines = [f"5 {S} {P} {V} {G} .", f"4 {S} {P} {V} .", f"3 {S} {P} {H} {G} .", f"2 {S} {P} {S} {H} .", f"1 {S} {P} {S} ."]
    found, bad = read_text(tmp_path, "\n".join(lines) + "\n")
    assert [(stream, time // 10**6) for stream, time, *_ in found] == [
        ("http://ex/g", 5),
        ("http://ex/g", 3),
        ("", 4),
        ("", 1),
        ("http://ex/h", 2),
    ]
    assert bad == []


def test_the_batches_of_the_same_lines_come_together(tmp_path: Path) -> None:
    path = tmp_path / "a.nq"
    path.write_text("".join(f"{n} {S} {P} {V} {(G, H)[n % 2]} .\n" for n in range(6)))
    blocks = list(read_blocks(path, lambda bad: None, rows=4))
    assert [[(batch.stream[-1], len(batch)) for batch in block] for block in blocks] == [
        [("g", 2), ("h", 2)],
        [("g", 1), ("h", 1)],
    ]


def test_canonical_and_careful_lines_are_read_in_their_order(tmp_path: Path) -> None:
    lines = [
        f"1 {S} {P} {V} .",
        f'2\t{S}  {P} "a\\u00e9" . # said so',
        "# nothing",
        "",
        f"   3 {S} {P} {V} {G} .",
        f'4 {S} {P} "x"^^<{STRING}> .',
        f'5 {S} {P} "7"^^<{INTEGER}> {G} .',
        f'6 {S} {P} "a b"@en .',
        f'7 {S} {P} "a"@EN .',
    ]
    for rows in (1, 2, 100):
        found, bad = read_text(tmp_path, "\n".join(lines), rows=rows)
        assert [fact[4] for fact in sorted(found, key=lambda fact: fact[1])] == [
            V,
            '"aé"',
            V,
            '"x"',
            f'"7"^^<{INTEGER}>',
            '"a b"@en',
            '"a"@en',
        ]
        assert bad == []


def test_bad_lines_are_told_in_order_with_their_places(tmp_path: Path) -> None:
    lines = [
        f"1 {S} oops {V} .",
        f"when {S} {P} {V} .",
        f"3 {S} {P} {V} .",
        "4",
        "5 # nothing",
        f"6 {S} {P} {V} _:g .",
        f"7 {S} {P} {V}",
        f'8 "s" {P} {V} .',
    ]
    found, bad = read_text(tmp_path, ("\n".join(lines) + "\n9 \xff\n").encode("latin-1"))
    assert found == [("", 3_000_000, S, P, V)]
    assert [b.line for b in bad] == [1, 2, 4, 5, 6, 7, 8, 9]
    assert [b.text for b in bad[:7]] == [lines[b.line - 1] for b in bad[:7]]
    assert bad[0].column == len(f"1 {S} ") + 1
    assert [b.message for b in bad if b.line in (2, 4, 5, 6, 9)] == [
        "not a timestamp: 'when'",
        "no triple follows the timestamp",
        "no triple follows the timestamp",
        "the name of a stream is an IRI",
        "not UTF-8",
    ]


def test_a_graph_name_in_n_triples_is_a_bad_line(tmp_path: Path) -> None:
    found, (bad,) = read_text(tmp_path, f"1 {S} {P} {V} .\n2 {S} {P} {V} {G} .\n", "a.nt")
    assert (len(found), bad.line) == (1, 2)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("count", [3, 2000])
def test_lines_end_the_same_way_in_small_and_in_large_blocks(tmp_path: Path, end: str, count: int) -> None:
    text = "".join(f"{n} {S} {P} {V} .{end}" for n in range(count)) + "x"
    found, (bad,) = read_text(tmp_path, text)
    assert [fact[1] for fact in found] == [n * 10**6 for n in range(count)]
    assert (bad.line, bad.text) == (count + 1, "x")


def test_blank_nodes_keep_their_labels_but_never_those_of_the_graph(tmp_path: Path) -> None:
    labels = ["_:a", "_:f1_a", "_:uf1_a", "_:f1"]
    want = ["_:a", "_:uf1_a", "_:uuf1_a", "_:f1"]
    found, _ = read_text(tmp_path, "".join(f"1 {label} {P} {label} .\n" for label in labels))
    assert [fact[2::2] for fact in found] == [(label, label) for label in want]
    objects = [{"subject": label, "predicate": P, "object": label, "timestamp": 1} for label in labels]
    found, _ = read_text(tmp_path, "\n".join(map(json.dumps, objects)), "a.json")
    assert [fact[2::2] for fact in found] == [(label, label) for label in want]


# -- JSON lines --------------------------------------------------------------------------------------------------------


def test_objects_with_keys_in_any_order_and_streams_with_or_without_brackets(tmp_path: Path) -> None:
    lines = [
        f'{{"subject": "{S}", "predicate": "{P}", "object": "{V}", "timestamp": 1}}',
        f'{{"timestamp":"2","object":"\\"a \\\\n \\\\\\" b\\"","predicate":"{P}","subject":"{S}","stream":"{G}"}}',
        f'{{"stream": "http://ex/g", "subject": "{S}", "predicate": "{P}", "object": "\\"caf\\u00e9\\"", "timestamp": 3.5}}',
        f'{{"subject": "{S}", "predicate": "{P}", "object": "{V}", "timestamp": 4, "stream": null, "more": [1]}}',
        "",
        f'{{"subject": "{S}", "predicate": "{P}", "object": "\\"x\\"^^<{STRING}>", "timestamp": 5e0, "stream": ""}}',
        f'{{"subject": "{S}", "subject": "{H}", "predicate": "{P}", "object": "{V}", "timestamp": 6}}',
    ]
    for rows in (1, 3, 100):
        found, bad = read_text(tmp_path, "\n".join(lines), "a.ndjson", rows=rows)
        assert sorted(found, key=lambda fact: fact[1]) == [
            ("", 1_000_000, S, P, V),
            ("http://ex/g", 2_000_000, S, P, '"a \\n \\" b"'),
            ("http://ex/g", 3_500_000, S, P, '"café"'),
            ("", 4_000_000, S, P, V),
            ("", 5_000_000, S, P, '"x"'),
            ("", 6_000_000, H, P, V),
        ]
        assert bad == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"subject": None}, 'no "subject"'),
        ({"timestamp": None}, 'no "timestamp"'),
        ({"object": 5}, '"object" is not text'),
        ({"timestamp": True}, '"timestamp" is not text'),
        ({"timestamp": [1]}, '"timestamp" is not text'),
        ({"subject": '"s"'}, "not a term, or no subject: "),
        ({"predicate": "_:p"}, "not a term, or no predicate: "),
        ({"predicate": f"{P} {V}", "object": ""}, "not a term, or no predicate: "),
        ({"object": '"a" . #'}, "not a term, or no object: "),
        ({"object": "http://ex/o"}, "not a term, or no object: "),
        ({"object": "<o>"}, "not a term: <o>"),
        ({"object": '"\ud800"'}, '"object" is not text'),
        ({"object": '"x"@en--ltr'}, "not a term, or no object: "),
        ({"object": '"x"^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString>'}, "not a term: "),
        ({"stream": "a stream"}, "the name of a stream is an IRI: 'a stream'"),
        ({"stream": "_:g"}, "the name of a stream is an IRI: '_:g'"),
    ],
    ids=str,
)
def test_an_object_that_is_no_fact_is_a_bad_line(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    good = {"subject": S, "predicate": P, "object": V, "timestamp": 1}
    wrong = {key: value for key, value in {**good, **change}.items() if value is not None}
    lines = [json.dumps(good), json.dumps(wrong), json.dumps(good)]
    found, (bad,) = read_text(tmp_path, "\n".join(lines), "a.jsonl")
    assert len(found) == 2
    assert (bad.line, bad.text) == (2, lines[1]) and bad.message.startswith(message)


@pytest.mark.parametrize(
    "text", ["{", "[1, 2]", "12", "{}", '{"subject": }', "[" * 100_000, '{"timestamp": ' + "1" * 5000 + "}"]
)
def test_what_is_no_object_is_a_bad_line(tmp_path: Path, text: str) -> None:
    found, (bad,) = read_text(tmp_path, text, "a.jsonl")
    assert (found, bad.line, bad.text) == ([], 1, text)


# -- files, folders and pipes ------------------------------------------------------------------------------------------

LINES = "".join(f"{n} {S} {P} {V} .\n" for n in range(4))
OBJECTS = "\n".join(json.dumps({"timestamp": n, "subject": S, "predicate": P, "object": V}) for n in range(4))
WANT = [("", n * 10**6, S, P, V) for n in range(4)]


def test_compressed_files(tmp_path: Path) -> None:
    for name, data in (
        ("a.nt.gz", gzip.compress(LINES.encode())),
        ("a.nq.bz2", bz2.compress(LINES.encode())),
        ("a.nt.zst", pa.compress(LINES.encode(), codec="zstd", asbytes=True)),
    ):
        assert read_text(tmp_path, data, name) == (WANT, []), name
    with pytest.raises(UserError, match="EG104"):
        read_text(tmp_path, gzip.compress(LINES.encode())[:-9], "cut.nt.gz")


def test_a_folder_is_read_in_the_order_of_names_and_a_glob_too(tmp_path: Path) -> None:
    for n, name in enumerate(("a.nt", "b.jsonl", "c.nq")):
        line = json.dumps({"subject": S, "predicate": P, "object": V, "timestamp": n}) if n == 1 else f"{n} {S} {P} {V} .\n"
        (tmp_path / name).write_text(line)
    (tmp_path / "notes.txt").write_text("nothing of that kind")
    assert read(tmp_path) == (WANT[:3], [])
    assert read(str(tmp_path / "?.n*")) == ([WANT[0], WANT[2]], [])


@pytest.mark.parametrize(("name", "code"), [("no.nt", "EG101"), ("notes.txt", "EG102"), ("empty", "EG102")])
def test_mistakes_in_names_are_told_before_anything_is_read(tmp_path: Path, name: str, code: str) -> None:
    (tmp_path / "notes.txt").write_text(LINES)
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match=code):
        read_source(tmp_path / name, lambda bad: None)


def test_a_format_says_what_an_ending_does_not(tmp_path: Path) -> None:
    assert read_text(tmp_path, LINES, "notes.txt", format_="nt") == (WANT, [])
    with pytest.raises(UserError, match="EG302"):
        read_source(tmp_path / "notes.txt", lambda bad: None, "xml")


def stdin(monkeypatch: pytest.MonkeyPatch, data: Any) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(data))


@pytest.mark.parametrize("text", [LINES, "\n \n# comment\n" + LINES, "\n" + OBJECTS], ids=["lines", "comment", "json"])
def test_standard_input_is_known_by_its_first_line(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    stdin(monkeypatch, io.BytesIO(text.encode()))
    assert read("-") == (WANT, [])


def test_a_format_goes_before_the_first_line(monkeypatch: pytest.MonkeyPatch) -> None:
    stdin(monkeypatch, io.BytesIO(f"1 {S} {P} {V} {G} .\n".encode()))
    found, bad = read("-", "nt")
    assert (found, len(bad)) == ([], 1)


def test_lines_of_a_pipe_come_as_they_arrive(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    stdin(monkeypatch, os.fdopen(reader, "rb"))
    lines = LINES.encode().splitlines(keepends=True)
    batches = read_source("-", lambda bad: None)
    with os.fdopen(writer, "wb", buffering=0) as out:
        for n, line in enumerate(lines):
            out.write(line + lines[(n + 1) % 4][:10] if n < 3 else line)
            assert facts_of(next(batches)) == [WANT[n]]
            lines[(n + 1) % 4] = lines[(n + 1) % 4][10:]
    assert list(batches) == []
    sys.stdin.close()


def test_a_named_pipe_is_read_like_standard_input(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    threading.Thread(target=lambda: (tmp_path / "pipe").write_text(LINES)).start()
    assert read(tmp_path / "pipe") == (WANT, [])


# -- the law: as line by line ------------------------------------------------------------------------------------------

ODD_STAMPS = [
    "-1.5",
    "1e3",
    "2024-02-29T12:00:00Z",
    "2023-02-29T12:00:00Z",
    "2026-04-31T00:00:00Z",
    "x",
    "24:00",
    "１２",
    "1_0",
]
stamps = st.one_of(
    st.integers(0, 10**10 - 1).map(str),
    st.decimals(0, 10**9, places=6).map(lambda d: format(d, "f")),
    st.datetimes(timezones=st.sampled_from([None, UTC, timezone(timedelta(hours=-3.5))])).map(datetime.isoformat),
    st.datetimes().map(lambda d: d.isoformat() + "Z"),
    st.sampled_from(ODD_STAMPS),
)
characters = st.text(st.characters(exclude_categories=["Cs"], exclude_characters='"\\\n\r'), max_size=6)
GOOD = [S, V, "_:b", "_:f1_x", "<http://ex/é>", '"\\t\\"x"', f'"1"^^<{INTEGER}>', f'"s"^^<{STRING}>', '"a"@en-GB']
BAD = ["<a b>", "<rel>", "oops", "", '"', '"x"@', "_:", '"a" . #', f"{P} {V}"]
terms = st.one_of(st.sampled_from(GOOD), characters.map('"{}"'.format), st.sampled_from(BAD))
separators = st.sampled_from([" ", " ", " ", "\t", "  "])
names = st.sampled_from(["", "", G, H, "_:g", "<g>", "<http://ex/a b>"])


@st.composite
def stamped_lines(draw: st.DrawFn) -> str:
    kind = draw(st.integers(0, 9))
    if kind == 0:
        return draw(st.sampled_from(["", "  ", "# said", "12", f"{S} {P} {V} .", "12 #", "{}"]))
    gap = " " if kind < 7 else draw(separators)
    parts = [draw(stamps), draw(st.sampled_from([S, "_:b"]) if kind < 7 else terms), P, draw(terms), draw(names), "."]
    return gap.join(part for part in parts if part)


def slow_lines(lines: list[str], quads: bool) -> tuple[list[Fact], list[int]]:
    """Line by line, with the parser alone."""
    found: list[Fact] = []
    bad = []
    format_ = ox.RdfFormat.N_QUADS if quads else ox.RdfFormat.N_TRIPLES
    for number, line in enumerate(lines, 1):
        stamp, _, rest = line.replace("\t", " ").strip(" ").partition(" ")
        if not stamp or stamp.startswith("#"):
            continue
        at = line.index(stamp) + len(stamp)
        try:
            (quad,) = ox.parse(line[at:], format=format_)
            if isinstance(quad.graph_name, ox.BlankNode):
                raise ValueError(rest)
            graph = quad.graph_name.value if isinstance(quad.graph_name, ox.NamedNode) else ""
            terms = [str(term).replace("_:f1_", "_:uf1_") for term in (quad.subject, quad.predicate, quad.object)]
            found.append((graph, instant_of(stamp), *terms))  # type: ignore[arg-type]
        except (SyntaxError, ValueError, UserError):
            bad.append(number)
    return found, bad


def by_stream(facts: list[Fact]) -> dict[str, list[Fact]]:
    return {stream: [fact for fact in facts if fact[0] == stream] for stream in {fact[0] for fact in facts}}


@given(st.lists(stamped_lines(), max_size=12), st.booleans(), st.integers(1, 13))
@example([f"12 {S} {P} {V} .", f'13 {S} {P} "a" {G} .', f"14  {S} {P} {V} ."], True, 13)
@settings(max_examples=400, deadline=None)
def test_lines_are_read_as_one_by_one(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], quads: bool, rows: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "law.nq"
    path.write_bytes("\n".join(lines).encode())
    found, bad = read(path, "nq" if quads else "nt", rows)
    want, wrong = slow_lines(lines, quads)
    assert by_stream(found) == by_stream(want)
    assert [b.line for b in bad] == wrong
    assert all(b.text == lines[b.line - 1] for b in bad)


@st.composite
def object_lines(draw: st.DrawFn) -> str:
    if draw(st.integers(0, 9)) == 0:
        return draw(st.sampled_from(["", " ", "{", "[]", "x", '{"subject": 1}', '{"a": "b"}']))
    row = {"subject": draw(st.sampled_from([S, "_:b"]) | terms), "predicate": P, "object": draw(terms)}
    row["stream"] = draw(names)
    numbers = st.integers(0, 10**10) | st.decimals(0, 10**9, places=6).map(float)
    row["timestamp"] = draw(stamps | numbers)  # type: ignore[assignment]
    for key in draw(st.lists(st.sampled_from(list(row)), max_size=1) if draw(st.integers(0, 5)) == 0 else st.just([])):
        del row[key]
    if draw(st.integers(0, 5)) == 0:
        row["more"] = "x"
    pairs = draw(st.permutations(list(row.items())))
    return json.dumps(dict(pairs), ensure_ascii=draw(st.booleans()), separators=draw(st.sampled_from([None, (",", ":")])))


def slow_objects(lines: list[str]) -> tuple[list[Fact], list[int]]:
    """Object by object, each as the line of N-Quads that it stands for, if its parts are terms when alone."""
    found: list[Fact] = []
    bad = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            parts = [row["subject"], row["predicate"], row["object"]]
            if any(part in BAD for part in parts):
                raise ValueError(line)
            stream = row.get("stream", "")
            want, wrong = slow_lines([f"{row['timestamp']} {' '.join(parts)} {stream} ."], True)
            found += want
            bad += [number for _ in wrong]
        except (ValueError, KeyError, TypeError, AttributeError):
            bad.append(number)
    return found, bad


@given(st.lists(object_lines(), max_size=12), st.integers(1, 13))
@settings(max_examples=300, deadline=None)
def test_objects_are_read_as_one_by_one(tmp_path_factory: pytest.TempPathFactory, lines: list[str], rows: int) -> None:
    path = tmp_path_factory.getbasetemp() / "law.json"
    path.write_bytes("\n".join(lines).encode())
    found, bad = read(path, None, rows)
    want, wrong = slow_objects(lines)
    assert by_stream(found) == by_stream(want)
    assert [b.line for b in bad] == wrong
    assert all(b.text == lines[b.line - 1] for b in bad)
