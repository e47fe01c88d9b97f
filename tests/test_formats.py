"""RDF files: every format and compression gives the same triples, and every mistake in one its number and place."""

from __future__ import annotations

import bz2
import gzip
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pyarrow as pa
import pyoxigraph as ox
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from evergraph import KnowledgeGraph, UserError
from evergraph.formats import Rejects, expand, files, read_files, read_text, write_ntriples
from evergraph.formats.ntriples import CANONICAL_QUAD, CANONICAL_TRIPLE

EX = "http://example.org/"
Triple = tuple[str, str, str]

DATA = f"""\
<{EX}a> <{EX}p> <{EX}b> .
<{EX}a> <{EX}p> "plain" .
<{EX}a> <{EX}p> "with \\"quotes\\", a tab\\t and a line\\nend" .
<{EX}é> <{EX}p> "漢字 \U0001f600"@zh-hant .
<{EX}a> <{EX}q> "01"^^<http://www.w3.org/2001/XMLSchema#integer> .
<{EX}a> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <{EX}C> .
"""
GRAPHS = f"""\
<{EX}a> <{EX}p> "default" .
<{EX}a> <{EX}p> "one" <{EX}g1> .
<{EX}a> <{EX}p> "two" <{EX}g2> .
<{EX}a> <{EX}p> "one" <{EX}g2> .
<{EX}a> <{EX}p> "blank" _:g .
"""
PACK: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".zst": lambda data: pa.compress(data, codec="zstd", asbytes=True),
}


def canonical(data: bytes | str, format_: ox.RdfFormat = ox.RdfFormat.N_TRIPLES) -> list[Triple]:
    """What pyoxigraph reads, in its own spelling."""
    return sorted((str(q.subject), str(q.predicate), str(q.object)) for q in ox.parse(data, format=format_))


def read(*paths: Path, rejects: Rejects | None = None) -> list[Triple]:
    blocks = read_files(paths, count(1).__next__, rejects)
    return sorted(row for block in blocks for row in zip(*(c.to_pylist() for c in block), strict=True))


def text(data: str | bytes) -> list[Triple]:
    return sorted(row for block in read_text(data) for row in zip(*(c.to_pylist() for c in block), strict=True))


def written(path: Path, data: bytes | str) -> Path:
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def mistake(path: Path) -> UserError:
    with pytest.raises(UserError) as raised:
        read(path)
    return raised.value


@contextmanager
def block_bytes(size: int) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "BLOCK_BYTES", size)
        yield


def serialised(data: str, format_: ox.RdfFormat) -> bytes:
    quads = ox.parse(data, format=ox.RdfFormat.N_QUADS)
    single = format_ in (ox.RdfFormat.N_TRIPLES, ox.RdfFormat.TURTLE, ox.RdfFormat.RDF_XML)
    return ox.serialize((q.triple for q in quads) if single else quads, format=format_) or b""


# -- formats -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compression", PACK)
@pytest.mark.parametrize("ending", files.FORMATS)
def test_every_format_and_compression_gives_the_same_triples(ending: str, compression: str, tmp_path: Path) -> None:
    data = PACK[compression](serialised(DATA, files.FORMATS[ending]))
    assert read(written(tmp_path / f"data{ending}{compression}", data)) == canonical(DATA)


def test_the_formats_and_compressions_are_those_that_are_promised() -> None:
    assert list(files.FORMATS) == [".nt", ".nq", ".ttl", ".trig", ".rdf", ".owl", ".jsonld"]
    assert list(files.COMPRESSIONS) == [".gz", ".bz2", ".zst"]


@pytest.mark.parametrize("ending", [".nq", ".trig", ".jsonld"])
def test_the_graphs_of_a_file_are_taken_together(ending: str, tmp_path: Path) -> None:
    path = written(tmp_path / f"graphs{ending}", serialised(GRAPHS, files.FORMATS[ending]))
    assert {o for _, _, o in read(path)} == {'"default"', '"one"', '"two"', '"blank"'}
    kg = KnowledgeGraph("rhodf")
    kg.update(insert=path)
    assert len(kg) == 4


@pytest.mark.parametrize(
    ("ending", "data"),
    [(e, "") for e in files.FORMATS if e != ".jsonld"]
    + [(".jsonld", "{}"), (".jsonld", "[]"), (".ttl", f"@prefix ex: <{EX}> .\n"), (".ttl", "# nothing\n"), (".nt.gz", "")],
)
def test_a_file_without_triples(ending: str, data: str, tmp_path: Path) -> None:
    path = written(tmp_path / f"empty{ending}", gzip.compress(b"") if ending.endswith(".gz") else data)
    assert read(path) == []
    kg = KnowledgeGraph("rhodf")
    assert len(kg.update(insert=path).inserted) == 0


LINE = f"<{EX}a> <{EX}p> <{EX}b> ."
OTHER = f'<{EX}a> <{EX}p> "x" .'


@pytest.mark.parametrize(
    "data",
    [
        f"{LINE}\n{OTHER}",
        f"{LINE}\r\n{OTHER}\r\n",
        f"{LINE}\r\n{OTHER}",
        f"{LINE}\r{OTHER}\r",
        f"\n\n{LINE}\n\n\n{OTHER}\n\n",
        f"# comment\n{LINE} # about it\n   # another\n{OTHER}#and that",
        f"  {LINE}\n\t{OTHER}\t\n",
        f'<{EX}a>\t<{EX}p>\t<{EX}b>\t.\n<{EX}a>   <{EX}p> "x"   .\n',
        f'<{EX}a><{EX}p><{EX}b>.\n<{EX}a><{EX}p>"x".\n',
        f'{LINE}\n<{EX}a> <{EX}p> "x"^^<http://www.w3.org/2001/XMLSchema#string> .\n',
        f"\ufeff{LINE}\n{OTHER}\n",
        f"{LINE}\n{OTHER}\n{LINE}\n",
    ],
    ids=["no end", "CRLF", "CRLF, no end", "CR", "blank", "comments", "margins", "tabs", "tight", "string", "BOM", "twice"],
)
@pytest.mark.parametrize("ending", [".nt", ".nq"])
def test_lines_may_be_laid_out_freely(data: str, ending: str, tmp_path: Path) -> None:
    assert set(read(written(tmp_path / f"lines{ending}", data))) == set(canonical(f"{LINE}\n{OTHER}"))


@pytest.mark.parametrize("size", [1, 7, 64, 1000])
def test_blocks_of_any_size_give_the_same_triples(size: int, tmp_path: Path) -> None:
    data = "".join(f'<{EX}s{i}> <{EX}p> "line {i} \\u00E9 é" .\r\n' for i in range(60)) + LINE
    path = written(tmp_path / "data.nt", data)
    with block_bytes(size):
        assert read(path) == canonical(data)


def test_blank_nodes_carry_the_scope_of_their_file(tmp_path: Path) -> None:
    data = f"_:b <{EX}p> _:c .\n_:b <{EX}p> <{EX}a> .\n"
    one, two = written(tmp_path / "one.nt", data), written(tmp_path / "two.nq", data)
    assert {s for s, _, _ in read(one, two)} == {"_:f1_b", "_:f2_b"}
    assert {s for s, _, _ in text(data)} == {"_:b"}


def test_relative_iris_have_a_base(tmp_path: Path) -> None:
    path = written(tmp_path / "data.ttl", f"<a> <{EX}p> <#b> .")
    assert read(path) == [("<file:///a>", f"<{EX}p>", "<file:///#b>")]


# -- finding files -----------------------------------------------------------------------------------------------------


def test_folders_and_globs_become_files(tmp_path: Path) -> None:
    for name in ("b.nt", "a.ttl", "notes.txt", "deep/c.nq.gz", "deep/d.dlog"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert expand([tmp_path]) == [tmp_path / "a.ttl", tmp_path / "b.nt", tmp_path / "deep/c.nq.gz"]
    assert expand([f"{tmp_path}/*.nt", tmp_path / "a.ttl"]) == [tmp_path / "b.nt", tmp_path / "a.ttl"]
    assert expand([f"{tmp_path}/**/*.gz"]) == [tmp_path / "deep/c.nq.gz"]


@pytest.mark.parametrize(("name", "code"), [("gone.nt", "EG101"), ("*.ttl", "EG101"), ("empty", "EG102")])
def test_what_is_not_there_is_a_mistake(name: str, code: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError) as raised:
        expand([tmp_path / name])
    assert raised.value.code == code
    assert str(tmp_path / name) in raised.value.message


# -- mistakes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["data.csv", "data", "data.gz", "data.txt.gz", "data.nt.zip", "data.nt.7z"])
def test_an_unknown_type_is_named_with_those_there_are(name: str, tmp_path: Path) -> None:
    found = mistake(written(tmp_path / name, LINE))
    assert (found.code, str(tmp_path / name) in found.message) == ("EG102", True)
    assert ".nt .nq .ttl .trig .rdf .owl .jsonld" in found.hint


def test_a_type_is_checked_before_anything_is_read(tmp_path: Path) -> None:
    bad, unknown = written(tmp_path / "bad.nt", "oops\n"), written(tmp_path / "data.csv", "")
    with pytest.raises(UserError) as raised:
        read(bad, unknown)
    assert raised.value.code == "EG102"


MANY = "".join(f"<{EX}s{i}> <{EX}p> <{EX}o{i * 7919 % 1000}> .\n" for i in range(1000)).encode()


@pytest.mark.parametrize("compression", [".gz", ".bz2", ".zst"])
@pytest.mark.parametrize("ending", [".nt", ".ttl"])
@pytest.mark.parametrize("damage", ["cut", "other"])
def test_a_damaged_compressed_file(compression: str, ending: str, damage: str, tmp_path: Path) -> None:
    packed = PACK[compression](MANY)
    path = written(tmp_path / f"data{ending}{compression}", packed[: len(packed) // 2] if damage == "cut" else MANY)
    found = mistake(path)
    assert (found.code, found.position) == ("EG104", None)
    assert f"{path} is damaged or cut off" in found.message
    assert found.hint == "compress or copy the file again"


@pytest.mark.parametrize("tail", [1, 4, 8])
def test_a_gzip_file_that_lacks_its_last_bytes(tail: int, tmp_path: Path) -> None:
    assert mistake(written(tmp_path / "data.nt.gz", gzip.compress(MANY)[:-tail])).code == "EG104"


def test_a_gzip_file_of_several_parts(tmp_path: Path) -> None:
    parts = gzip.compress(f"{LINE}\n".encode()) + gzip.compress(f"{OTHER}\n".encode())
    assert read(written(tmp_path / "data.nt.gz", parts)) == canonical(f"{LINE}\n{OTHER}")


@pytest.mark.parametrize(
    ("ending", "data", "line", "column"),
    [
        (".nt", f"{LINE}\n{OTHER}\n<{EX}a> <{EX}p>\n".encode(), 3, None),
        (".nt", f'{LINE}\n<{EX}a> "p" <{EX}b> .\n'.encode(), 2, len(EX) + 5),
        (".nt", f'{LINE}\n<x:a> <x:p> "'.encode() + b'\xff" .\n', 2, None),
        (".nt", f'{LINE}\r\n\r\n# x\r\n<x:a> <x:p> "open .\r\n'.encode(), 4, None),
        (".nt", f"{LINE} {LINE}\n".encode(), 1, len(LINE) + 2),
        (".nt", b"<x:a> <x:p> <<( <x:a> <x:b> <x:c> )>> .\n", 1, 1),
        (".nq", f"{LINE}\n<{EX}a> <{EX}p> <{EX}b> <{EX}g> <{EX}h> .\n".encode(), 2, None),
        (".ttl", f"@prefix ex: <{EX}> .\nex:a ex:p\n  oops .\n".encode(), 3, 3),
        (".ttl", b'<x:a>\n<x:p> "\xff" .\n', 2, None),
        (".trig", f"<{EX}g> {{\n {LINE}\n".encode(), 3, None),
        (".jsonld", b'{"@id":\n ]}', 2, None),
        (".rdf", b"<rdf:RDF", 1, None),
    ],
    ids=lambda value: str(value)[:24] if not isinstance(value, bytes) else "",
)
def test_malformed_data_has_its_place(ending: str, data: bytes, line: int, column: int | None, tmp_path: Path) -> None:
    path = written(tmp_path / f"data{ending}", data)
    found = mistake(path)
    assert found.code == "EG103"
    assert found.position is not None
    assert (found.position.file, found.position.line) == (str(path), line)
    assert column is None or found.position.column == column


@pytest.mark.parametrize("size", [30, 100, 8 << 20])
@pytest.mark.parametrize("at", [1, 2, 57, 199, 200])
def test_line_numbers_are_right_across_blocks(size: int, at: int, tmp_path: Path) -> None:
    lines = [OTHER if i % 3 else f'<{EX}a> <{EX}p> "\\u0041{i}" .' for i in range(1, 201)]
    lines[at - 1] = f"<{EX}a> <{EX}p> ."
    path = written(tmp_path / "data.nt", "\n".join(lines))
    with block_bytes(size):
        found = mistake(path)
    assert str(found.mistakes[0].position) == f"{path}:{at}:{len(lines[at - 1])}"
    assert len(found.mistakes) == 1


def test_no_more_mistakes_are_listed_than_one_can_read(tmp_path: Path) -> None:
    found = mistake(written(tmp_path / "data.nt", "oops\n" * 50))
    assert [m.position and m.position.line for m in found.mistakes] == list(range(1, files.MOST_MISTAKES + 1))


# -- skipping bad lines ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [40, 8 << 20])
def test_bad_lines_are_counted_and_kept_with_their_places(size: int, tmp_path: Path) -> None:
    lines = [f"<{EX}s{i}> <{EX}p> <{EX}o> ." for i in range(1, 101)]
    bad = {3: "oops", 50: f"<{EX}a> <{EX}p> .", 51: f'<{EX}a> <{EX}p> "open .', 100: "<a> <b> <c> ."}
    for number, line in bad.items():
        lines[number - 1] = line
    path = written(tmp_path / "data.nt", "\n".join(lines) + "\n")
    rejects = Rejects()
    with block_bytes(size):
        found = read(path, rejects=rejects)
    assert len(found) == 96
    assert [(file, line.line, line.text) for file, line in rejects.lines] == [(str(path), n, t) for n, t in bad.items()]
    assert len(rejects) == 4


def test_a_line_that_is_rejected_says_nothing(tmp_path: Path) -> None:
    """The parser finds a quad in it before it finds the mistake."""
    path, rejects = tmp_path / "a.nq", Rejects()
    path.write_text("<x:s> <x:p> <x:o> <x:g> <x:h> .\n<x:s> <x:p> <x:q> .\n")
    blocks = list(read_files([path], count(1).__next__, rejects))
    assert [block[2].to_pylist() for block in blocks] == [["<x:q>"]]
    assert [bad.line for _, bad in rejects.lines] == [1]


def test_rejected_lines_are_written_below_their_places(tmp_path: Path) -> None:
    one = written(tmp_path / "one.nt", f"oops\n{LINE}\n")
    two = written(tmp_path / "two.nt", f"{LINE}\n<{EX}é> <{EX}p> .\n")
    rejects, out = Rejects(), tmp_path / "rejected.txt"
    read(one, two, rejects=rejects)
    rejects.write(out)
    lines = out.read_text(encoding="utf-8").splitlines()
    assert [lines[1], lines[3]] == ["oops", f"<{EX}é> <{EX}p> ."]
    assert lines[0].startswith(f"# {one}:1:1: ")
    assert re.match(rf"# {re.escape(str(two))}:2:\d+: \w", lines[2])
    assert len(lines) == 4


def test_a_graph_takes_the_good_lines_and_leaves_the_bad(tmp_path: Path) -> None:
    kg, rejects = KnowledgeGraph("rhodf"), Rejects()
    report = kg.update(insert=written(tmp_path / "data.nt", f"oops\n{LINE}\n{OTHER}\noops\n"), rejects=rejects)
    assert (len(kg), report.inserted.explicit, len(rejects)) == (2, {"[]": 2}, 2)


def test_bad_lines_are_skipped_in_line_formats_only(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="EG103"):
        read(written(tmp_path / "data.ttl", f"{LINE}\noops\n"), rejects=Rejects())


# -- the fast way and the careful way ----------------------------------------------------------------------------------

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=15)
locals_ = st.text(st.characters(categories=["L", "N"], max_codepoint=0xD7FF), max_size=8)
iris = st.builds(
    lambda scheme, local: ox.NamedNode(scheme + local),
    st.sampled_from(["http://example.org/", "urn:x:", "http://example.org/a#", "mailto:a@", "x:%C3%A9", "http://h:80/?q="]),
    locals_,
)
blanks = st.builds(ox.BlankNode, st.from_regex(r"[A-Za-z0-9_]{1,6}", fullmatch=True))
literals = st.one_of(
    st.builds(ox.Literal, texts),
    st.builds(
        lambda t, tag: ox.Literal(t, language=tag), texts, st.sampled_from(["en", "en-GB", "zh-Hant", "x-a1", "de-1996"])
    ),
    st.builds(lambda t, d: ox.Literal(t, datatype=d), texts, iris),
)
random_triples = st.lists(
    st.builds(ox.Triple, st.one_of(iris, blanks), iris, st.one_of(iris, blanks, literals, literals)), min_size=1, max_size=8
)


@given(random_triples)
@settings(max_examples=200)
def test_what_pyoxigraph_writes_is_read_as_pyoxigraph_reads_it(given_triples: list[ox.Triple]) -> None:
    data = ox.serialize(given_triples, format=ox.RdfFormat.N_TRIPLES) or b""
    assert text(data) == canonical(data)


@given(random_triples, st.sampled_from([ox.RdfFormat.N_QUADS, ox.RdfFormat.TURTLE, ox.RdfFormat.TRIG]))
@settings(max_examples=100)
def test_other_formats_are_read_as_pyoxigraph_reads_them(given_triples: list[ox.Triple], format_: ox.RdfFormat) -> None:
    data = ox.serialize(given_triples, format=format_) or b""
    ending = next(e for e, f in files.FORMATS.items() if f == format_)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "_scoped", lambda terms, scope: terms)
        blocks = list(files._read(pa.BufferReader(data), format_, f"data{ending}", 1, None))
    found = sorted(row for block in blocks for row in zip(*(c.to_pylist() for c in block), strict=True))
    assert found == canonical(data, format_)


escapes = st.one_of(
    st.characters(exclude_categories=["Cs"], exclude_characters='"\\\n\r\ufffe\uffff'),
    st.sampled_from(["\\t", "\\b", "\\n", "\\r", "\\f", '\\"', "\\'", "\\\\"]),
    st.characters(exclude_categories=["Cs"], max_codepoint=0xFFFF).map(lambda c: f"\\u{ord(c):04X}"),
    st.characters(exclude_categories=["Cs"]).map(lambda c: f"\\U{ord(c):08x}"),
)


@given(st.lists(st.lists(escapes, max_size=8).map("".join), min_size=1, max_size=5))
@settings(max_examples=200)
def test_literals_written_any_way_are_read_as_pyoxigraph_reads_them(values: list[str]) -> None:
    data = "".join(f'<{EX}s> <{EX}p> "{value}" .\n' for value in values)
    assert text(data) == canonical(data)


def test_every_character_is_read_as_pyoxigraph_reads_it() -> None:
    skipped = {*'\n\r"\\', "\ufffe", "\uffff", *map(chr, range(0xD800, 0xE000))}
    characters = [chr(code) for code in range(0x10000) if chr(code) not in skipped]
    groups = ["".join(characters[i : i + 4]) for i in range(0, len(characters), 4)]
    data = "".join(f'<{EX}s> <{EX}p> "{group}" .\n' for group in groups)
    assert text(data) == canonical(data)


def python_pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(
        pattern.removesuffix("$")
        .replace(r"\x{C0}", "\u00c0")
        .replace(r"\x{D7FF}", "\ud7ff")
        .replace(r"\x{FFFE}", "\ufffe")
        .replace(r"\x{FFFF}", "\uffff")
        + r"\Z"
    )


@pytest.mark.parametrize(
    ("pattern", "format_"),
    [(CANONICAL_TRIPLE, ox.RdfFormat.N_TRIPLES), (CANONICAL_QUAD, ox.RdfFormat.N_QUADS)],
    ids=["triples", "quads"],
)
def test_lines_that_go_the_fast_way_are_read_as_pyoxigraph_reads_them(pattern: str, format_: ox.RdfFormat) -> None:
    @given(st.from_regex(python_pattern(pattern)))
    @settings(max_examples=60)
    def law(line: str) -> None:
        assume(not {"\ufffe", "\uffff"} & set(line))
        try:
            want = canonical(line, format_)
        except SyntaxError:
            return
        (block,) = files._read(pa.BufferReader(line.encode()), format_, "line", None, None)
        assert sorted(zip(*(c.to_pylist() for c in block), strict=True)) == want

    law()


# -- writing -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["out.nt", "out.nt.gz"])
def test_what_is_written_is_read_again(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    assert write_ntriples(read_text(DATA), path) == (6, 0)
    assert read(path) == canonical(DATA)
    raw = path.read_bytes()
    assert sorted((gzip.decompress(raw) if name.endswith(".gz") else raw).decode().splitlines()) == sorted(DATA.splitlines())


def test_a_file_appears_only_when_it_is_whole(tmp_path: Path) -> None:
    path = written(tmp_path / "out.nt", "before")

    def blocks() -> Iterator[tuple[pa.Array, pa.Array, pa.Array]]:
        yield from read_text(DATA)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_ntriples(blocks(), path)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_progress_grows_to_the_whole(tmp_path: Path) -> None:
    paths = [written(tmp_path / f"{i}.nt", MANY) for i in range(2)]
    told: list[tuple[str, float]] = []
    with block_bytes(4096):
        list(read_files(paths, count(1).__next__, None, lambda stage, done: told.append((stage, done))))
    assert {stage for stage, _ in told} == {"read"}
    assert [done for _, done in told] == sorted(done for _, done in told)
    assert len(told) > 10
    assert told[-1][1] == 1.0
