"""RDF Patch: what each kind of line means, where its mistakes are reported, and which blank nodes its labels name."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from evergraph import KnowledgeGraph
from evergraph.cli.changes import gather
from evergraph.errors import UserError
from evergraph.formats.files import MOST_MISTAKES
from evergraph.formats.patch import read_patch
from test_cli import EX, Run, run_command, written  # noqa: F401 - a fixture
from test_cli_updates import held, told

TRIPLE = f"<{EX}a> <{EX}p> <{EX}b> ."


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def read(text: str) -> tuple[list[str], list[str]]:
    return read_patch(written("change.rdfp", text))


def mistakes(text: str) -> list[str]:
    """Line, column and message of each mistake."""
    with pytest.raises(UserError) as raised:
        read(text)
    found = []
    for mistake in raised.value.mistakes:
        assert mistake.code == "EG103" and mistake.hint and mistake.position is not None
        assert mistake.position.file == "change.rdfp" and mistake.message.startswith("malformed line: ")
        found.append(f"{mistake.position.line}:{mistake.position.column} {mistake.message.removeprefix('malformed line: ')}")
    return found


# -- prefixes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", [" .", ".", "", " . # a comment", "\t."])
@pytest.mark.parametrize("iri", [f"<{EX}>", f'"{EX}"'])
@pytest.mark.parametrize("name", ['"ex"', "ex", "ex:", '"ex:"'])
def test_a_prefix_and_its_iri_are_plain_or_quoted(name: str, iri: str, end: str) -> None:
    assert read(f"PA {name} {iri}{end}\nA ex:a ex:p ex:b .\n") == ([TRIPLE], [])


@pytest.mark.parametrize("name", ['""', ":"])
def test_the_empty_prefix(name: str) -> None:
    assert read(f"PA {name} <{EX}> .\nD :a :p :b .\n") == ([], [TRIPLE])


@pytest.mark.parametrize("end", [" .", "", "."])
@pytest.mark.parametrize("name", ['"ex"', "ex", "ex:"])
def test_a_prefix_is_gone_after_its_deletion(name: str, end: str) -> None:
    text = f"PA ex <{EX}> .\nA ex:a ex:p ex:b .\nPD {name}{end}\nA ex:a ex:p ex:c .\n"
    assert mistakes(text) == ["4:3 no PA line says what ex: stands for"]


def test_a_prefix_may_be_given_anew_and_for_one_graph() -> None:
    text = f"PA ex <urn:x:> .\nA ex:a ex:p ex:b .\nPA ex <{EX}> <{EX}graph> .\nA ex:a ex:p ex:b .\n"
    assert read(text)[0] == ["<urn:x:a> <urn:x:p> <urn:x:b> .", TRIPLE]


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("A ex:a.b ex:p ex:c.", f"<{EX}a.b> <{EX}p> <{EX}c> ."),
        (r"A ex:a\,b ex:p ex:%20 .", f"<{EX}a,b> <{EX}p> <{EX}%20> ."),
        ('A ex:a ex:p "ex:b <ex:c> \\" ex:d"^^ex:t .', f'<{EX}a> <{EX}p> "ex:b <ex:c> \\" ex:d"^^<{EX}t> .'),
        ("A ex:a ex:p <ex:b> . # ex:c unknown:d", f"<{EX}a> <{EX}p> <ex:b> ."),
        ('A ex:a ex:p "x"@en-us ex:g .', f'<{EX}a> <{EX}p> "x"@en-us .'),
        ("A _:ex:a ex:p ex:b .", None),
    ],
)
def test_prefixed_names_stand_wherever_an_iri_may(text: str, want: str | None) -> None:
    if want is None:
        assert len(mistakes(f"PA ex <{EX}> .\n{text}\n")) == 1
    else:
        assert read(f"PA ex <{EX}> .\n{text}\n") == ([want], [])


@pytest.mark.parametrize("prefixed", [False, True])
@pytest.mark.parametrize("graph", [f"<{EX}g>", "_:g", "ex:g"])
def test_graph_names_are_read_and_dropped(prefixed: bool, graph: str) -> None:
    triple = "ex:a ex:p ex:b" if prefixed else TRIPLE.removesuffix(" .")
    other = f'<{EX}a> <{EX}p> "x"@en .'
    text = f'PA "ex" "{EX}" .\nA {triple} {graph} .\nD ex:a ex:p "x"@en {graph} .\n'
    assert read(text) == ([TRIPLE], [other])


@pytest.mark.parametrize(
    ("line", "want"),
    [
        ("PA", "3 a prefix is expected, plain or in quotes"),
        ("PA .", "4 a prefix is expected, plain or in quotes"),
        (f"PA <{EX}> .", "4 a prefix is expected, plain or in quotes"),
        (f'PA "e x" <{EX}> .', "4 a prefix is expected, plain or in quotes"),
        ("PA ex .", "7 an IRI is expected, in angle brackets or in quotes"),
        ("  PA   ex   oops .", "13 an IRI is expected, in angle brackets or in quotes"),
        (f"PA ex <{EX} .", "7 an IRI is expected, in angle brackets or in quotes"),
        (f"PA ex <{EX}> oops .", f"{len(EX) + 10} the line should end here"),
        (f"PA ex <{EX}> . oops", f"{len(EX) + 12} the line should end here"),
        ("PD .", "4 a prefix is expected, plain or in quotes"),
        ("PD ex oops .", "7 the line should end here"),
        ("TX oops .", "4 the line should end here"),
        ("TC . .", "6 the line should end here"),
        (" TA oops", "5 the line should end here"),
    ],
)
def test_a_bad_line_is_reported_at_its_own_line(line: str, want: str) -> None:
    assert mistakes(f"TX .\n{line}\nA {TRIPLE}\nTC .\n") == [f"2:{want}"]


@pytest.mark.parametrize("quoted", [False, True])
@pytest.mark.parametrize("iri", ["no scheme", "relative", "http://ex/{", "http://ex/ a"])
def test_a_prefix_for_what_is_no_iri_is_reported_at_its_own_line(iri: str, quoted: bool) -> None:
    spelled = f'"{iri}"' if quoted else f"<{iri}>"
    (mistake,) = mistakes(f"TX .\nPA  ex {spelled} .\nTC .\n")
    assert mistake.startswith("2:8 ") and "Parser" not in mistake


# -- lines -------------------------------------------------------------------------------------------------------------


def test_lines_end_where_lines_of_n_quads_end() -> None:
    """Other ends of lines that Unicode knows may stand within a literal."""
    inside = "\x0b\x0c\x1c\x85\u2028"
    (line,), _ = read(f'\ufeffA <{EX}a> <{EX}p> "x{inside}y" .\r\nTX .\r\n')
    assert "\u2028" in line and line.startswith(f'<{EX}a> <{EX}p> "x') and line.endswith('y" .')
    assert mistakes(f'A <{EX}a> <{EX}p> "{inside}" .\noops\n') == ["2:1 no line of a patch starts with oops"]


def test_equal_triples_are_one_however_they_are_spelled() -> None:
    string = "<http://www.w3.org/2001/XMLSchema#string>"
    text = f'A <{EX}a> <{EX}p> "\\u0078" .\nD\t<{EX}a>\t<{EX}p> "x"^^{string} <{EX}g>.\n'
    assert read(text) == ([], [f'<{EX}a> <{EX}p> "x" .'])


@pytest.mark.parametrize("space", ["", "  ", "\t "])
@pytest.mark.parametrize("gap", [" ", "   ", "\t"])
@pytest.mark.parametrize("head", ["", f"PA ex <{EX}> .\n"])
def test_columns_count_from_the_start_of_the_line(head: str, gap: str, space: str) -> None:
    start = len(f"{space}A{gap}")
    bad = f"<{EX}ä> <{EX}p> "
    line = 2 if head else 1
    want = f"{line}:{start + len(bad) + 1} The object of a triple must be an IRI, a blank node or a literal"
    assert mistakes(f"{head}{space}A{gap}{bad}oops .\n") == [want]
    assert mistakes(f"{head}{space}X{gap}oops .\n") == [f"{line}:{len(space) + 1} no line of a patch starts with X"]


@pytest.mark.parametrize(
    ("line", "column"),
    [
        ("A ex:a oops ex:b .", 8),
        ("A ex:a ex:p oops .", 13),
        ("A ex:a ex:p ex:b oops .", 18),
        ("A ex:a ex:p ex:b", 17),
        ("A  ex:a ex:p ex:b . ex:c", 21),
        ('A ex:a "x" ex:b .', 8),
        ('A ex:a ex:p "x"^^no:t .', 18),
        ("A <_:x> ex:p oops .", 14),
        ("A <_:x> <_:y> ex:b .", 9),
    ],
)
def test_columns_are_those_of_the_line_as_it_is_written(line: str, column: int) -> None:
    (mistake,) = mistakes(f"PA ex <{EX}> .\n{line}\n")
    assert mistake.startswith(f"2:{column} ") and "column" not in mistake


@pytest.mark.parametrize("line", ["A", "A ", "D # nothing", "A ."])
def test_a_line_without_a_triple_is_a_mistake(line: str) -> None:
    assert len(mistakes(f"A {TRIPLE}\n{line}\n")) == 1


@pytest.mark.parametrize("value", [f"<<( <{EX}a> <{EX}p> <{EX}b> )>>", '"x"@en--ltr'])
def test_terms_that_no_graph_takes_are_mistakes_with_a_place(value: str) -> None:
    (mistake,) = mistakes(f"\n  D <{EX}a> <{EX}p> {value} .\n")
    assert mistake.startswith("2:5 ") and mistake.endswith("are not supported")


def test_a_file_that_is_no_patch_is_not_told_line_by_line() -> None:
    assert len(mistakes(f"{TRIPLE}\n" * 1000)) == MOST_MISTAKES


@pytest.mark.parametrize(
    "line",
    [
        'A <http://ex/{i}> <http://ex/p> "n{i}" .',
        'D _:f1_x{i} <http://ex/p> "\\"{i}"@en <http://ex/g> .',
        "A p7:n{i} p8:p p9:c{i} p9:g .",
    ],
    ids=["triples", "quads", "prefixed names"],
)
def test_a_hundred_thousand_lines_take_seconds_however_many_prefixes_there_are(line: str) -> None:
    count = 100_000
    prefixes = "".join(f"PA p{i} <http://ex/{i}/> .\n" for i in range(100))
    start = time.process_time()
    added, gone = read(prefixes + "\n".join(line.replace("{i}", str(i)) for i in range(count)))
    assert len(added) + len(gone) == count
    assert time.process_time() - start < 10


# -- blank nodes -------------------------------------------------------------------------------------------------------


def knows(subject: str, value: str) -> str:
    return f"{subject} <{EX}knows> {value} .\n"


ANN, BOB = f"<{EX}ann>", f"<{EX}bob>"


@pytest.fixture
def store(run: Run) -> Path:
    """Ann knows a node from the store's first file."""
    data = written("data.nt", knows(ANN, "_:x"))
    assert run("load", data, "--rules", "rhodf", "--store", "s", "--engine", "memory").code == 0
    assert held(Path("s")) == {knows(ANN, "_:f1_x")}
    return Path("s")


def patched(run: Run, store: Path, text: str) -> set[str]:
    told(run("update", store, "--patch", written("change.rdfp", text)))
    return held(store)


@pytest.mark.parametrize("label", ["_:f1_x", "<_:f1_x>"])
def test_a_label_that_the_graph_has_is_that_node(run: Run, store: Path, label: str) -> None:
    assert patched(run, store, f"A {knows(BOB, label)}") == {knows(ANN, "_:f1_x"), knows(BOB, "_:f1_x")}
    assert patched(run, store, f"D {knows(ANN, label)}A {knows(label, BOB)}") == {knows(BOB, "_:f1_x"), knows("_:f1_x", BOB)}
    assert patched(run, store, f"D {knows(BOB, label)}") == {knows("_:f1_x", BOB)}


@pytest.mark.parametrize("label", ["_:x", "_:f1_y", "_:f2_x", "_:uf2_x", "_:f99999999999999999999_x"])
def test_any_other_label_is_one_new_node_that_later_patches_can_name(run: Run, store: Path, label: str) -> None:
    old = knows(ANN, "_:f1_x")
    assert patched(run, store, f"A {knows(ANN, label)}A {knows(label, BOB)}") == {old, knows(ANN, label), knows(label, BOB)}
    assert patched(run, store, f"D {knows(ANN, label)}") == {old, knows(label, BOB)}


@pytest.mark.parametrize("engine", ["memory", pytest.param("spark", marks=pytest.mark.spark)])
def test_a_node_that_a_patch_named_is_none_of_a_later_file(store: Path, engine: str, request: pytest.FixtureRequest) -> None:
    """Nodes of files are called after the number of their file: a number that a patch has used is not given again."""
    where = request.getfixturevalue("spark") if engine == "spark" else engine
    store = store.absolute()  # Spark's workers are where they were started
    text = f"D {knows(BOB, '_:f2_x')}A {knows(ANN, '_:f2_x')}A {knows('_:f3_x', BOB)}"
    inserts, deletes = gather([], [], [written("change.rdfp", text)])
    KnowledgeGraph.open(store, engine=where).update(insert=inserts, delete=deletes)
    KnowledgeGraph.open(store, engine=where).update(insert=written("more.nt", knows(BOB, "_:x")).absolute())
    want = {knows(ANN, "_:f1_x"), knows(ANN, "_:f2_x"), knows("_:f3_x", BOB), knows(BOB, "_:f4_x")}
    assert held(store) == want


def test_a_replica_follows_by_patches(run: Run, store: Path) -> None:
    """What a store prints, as a patch for an empty one, and then the same changes to both."""
    exported = run("export", store).out
    assert run("load", written("none.nt", knows(BOB, BOB)), "-r", "rhodf", "--store", "t", "--engine", "memory").code == 0
    patched(run, Path("t"), "".join(f"A {line}\n" for line in exported.splitlines()) + f"D {knows(BOB, BOB)}")
    for change in (f"A {knows('_:f1_x', '_:new')}", f"D {knows(ANN, '_:f1_x')}A {knows('_:new', ANN)}"):
        assert patched(run, store, change) == patched(run, Path("t"), change)


def test_blank_nodes_of_lines_that_are_no_patch_stay_their_own(store: Path) -> None:
    kg = KnowledgeGraph.open(store)
    kg.update(insert=[knows(BOB, "_:f1_x")])
    assert held(store) == {knows(ANN, "_:f1_x"), knows(BOB, "_:uf1_x")}
