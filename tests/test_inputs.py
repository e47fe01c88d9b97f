"""Every way of giving facts makes the same graph, a mistake in one changes nothing, and no term is altered on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyoxigraph as ox
import pytest
import rdflib

from conftest import assert_same, everything, triples
from evergraph import KnowledgeGraph, Program, Report, UserError
from evergraph.engines.base import Which
from evergraph.engines.memory import MemoryEngine
from evergraph.formats import write_ntriples
from evergraph.rules.model import RDFS, TRIPLE, TYPE, XSD, Atom

EX = "http://example.org/"
SUBCLASS = f"<{RDFS}subClassOf>"
ROWS = [
    (f"<{EX}Student>", SUBCLASS, f"<{EX}Person>"),
    (f"<{EX}ann>", TYPE, f"<{EX}Student>"),
    (f"<{EX}ann>", f"<{EX}name>", '"Ann \\"é\\" \\\\ \\n"@en'),
    (f"<{EX}ann>", f"<{EX}age>", f'"7"^^<{XSD}integer>'),
    ("_:b", f"<{EX}knows>", f"<{EX}ann>"),
]
NTRIPLES = "".join(f"{s} {p} {o} .\n" for s, p, o in ROWS)
DERIVED = (f"<{EX}ann>", TYPE, f"<{EX}Person>")
RULES = Program.parse("[?x, a, ?d] :- [?c, rdfs:subClassOf, ?d], [?x, a, ?c] . seen(?x) :- [?x, ?p, ?y] .")


def graph(insert: Any = (), rules: str | Program = "rhodf") -> KnowledgeGraph:
    kg = KnowledgeGraph(rules)
    kg.update(insert=insert)
    return kg


def objects(kg: KnowledgeGraph, predicate: str = "p") -> list[str]:
    """The objects of one predicate, as N-Triples terms."""
    found = [row for block in kg.blocks() for row in zip(*(c.to_pylist() for c in block), strict=True)]
    return sorted(o for _, p, o in found if p == f"<{EX}{predicate}>")


def lines(*values: str) -> str:
    return "".join(f"<{EX}s> <{EX}p> {value} .\n" for value in values)


def terms(row: Iterable[str]) -> list[Any]:
    """pyoxigraph terms."""
    (quad,) = ox.parse(f"{' '.join(row)} .", format=ox.RdfFormat.N_TRIPLES)
    return [quad.subject, quad.predicate, quad.object]


def rdflib_graph() -> rdflib.Graph:
    return rdflib.Graph().parse(data=NTRIPLES, format="nt", bnode_context={"b": rdflib.BNode("b")})


def to_rdflib(row: Iterable[str]) -> tuple[Any, ...]:
    return tuple(rdflib.BNode(t[2:]) if t.startswith("_:") else rdflib.util.from_n3(t) for t in row)


def columns() -> dict[str, list[str]]:
    return {name: [row[i] for row in ROWS] for i, name in enumerate(("subject", "predicate", "object"))}


def datalog() -> str:
    return "".join(f"[{s}, {p}, {o}] .\n" for s, p, o in ROWS)


def in_files(folder: Path) -> list[Path]:
    """The data in two files, blank node and all, in one folder."""
    one, two = folder / "one.nt", folder / "two.nt"
    one.write_text("".join(NTRIPLES.splitlines(keepends=True)[:2]))
    two.write_text("".join(NTRIPLES.splitlines(keepends=True)[2:]))
    return [one, two]


SOURCES: dict[str, Callable[[Path], Any]] = {
    "N-Triples text": lambda _: NTRIPLES,
    "N-Triples bytes": lambda _: NTRIPLES.encode(),
    "N-Triples lines": lambda _: NTRIPLES.splitlines(),
    "a generator of lines": lambda _: (line for line in NTRIPLES.splitlines(keepends=True)),
    "Datalog text": lambda _: datalog(),
    "a program": lambda _: Program.parse(datalog()),
    "atoms": lambda _: [Atom(TRIPLE, row) for row in ROWS],
    "triples of strings": lambda _: ROWS,
    "lists of strings": lambda _: [list(row) for row in ROWS],
    "quads of strings": lambda _: [(*row, f"<{EX}g>") for row in ROWS],
    "a set of triples": lambda _: set(ROWS),
    "triples of rdflib terms": lambda _: [to_rdflib(row) for row in ROWS],
    "a generator of rdflib terms": lambda _: (to_rdflib(row) for row in ROWS),
    "triples of pyoxigraph terms": lambda _: [tuple(terms(row)) for row in ROWS],
    "pyoxigraph triples": lambda _: [ox.Triple(*terms(row)) for row in ROWS],
    "pyoxigraph quads": lambda _: [ox.Quad(*terms(row), ox.NamedNode(f"{EX}g")) for row in ROWS],
    "an rdflib graph": lambda _: rdflib_graph(),
    "an rdflib dataset": lambda _: dataset(),
    "a pandas frame": lambda _: pd.DataFrame(columns()),
    "a pandas frame of categories": lambda _: pd.DataFrame(columns(), dtype="category"),
    "a pandas frame with more columns": lambda _: pd.DataFrame({"extra": range(len(ROWS)), **columns()}, index=[7] * len(ROWS)),
    "an Arrow table": lambda _: pa.table(columns()),
    "an Arrow table in chunks": lambda _: pa.concat_tables([pa.table(columns())[:2], pa.table(columns())[2:]]),
    "an Arrow table of dictionaries": lambda _: pa.table({k: pa.array(v).dictionary_encode() for k, v in columns().items()}),
    "an Arrow record batch": lambda _: pa.RecordBatch.from_pydict(columns()),
    "a path": lambda folder: whole_file(folder),
    "a path as text": lambda folder: str(whole_file(folder)),
    "a list of paths": in_files,
    "a list of paths as text": lambda folder: [str(path) for path in in_files(folder)],
    "a folder": lambda folder: [in_files(folder), folder][1],
    "a folder as text": lambda folder: [in_files(folder), str(folder)][1],
    "a glob": lambda folder: [in_files(folder), str(folder / "*.nt")][1],
    "a glob in a list": lambda folder: [in_files(folder), [folder / "o*.nt", folder / "t*.nt"]][1],
    "a Datalog file": lambda folder: datalog_file(folder),
    "Datalog and data files": lambda folder: [datalog_file(folder), *in_files(folder)[:1]],
}


def dataset() -> rdflib.Dataset:
    out = rdflib.Dataset()
    for row in ROWS:
        out.add((*to_rdflib(row), rdflib.URIRef(f"{EX}g")))
    return out


def whole_file(folder: Path) -> Path:
    path = folder / "all.nt"
    path.write_text(NTRIPLES)
    return path


def datalog_file(folder: Path) -> Path:
    path = folder / "facts.dlog"
    path.write_text(datalog())
    return path


def without_scopes(facts: set[str]) -> set[str]:
    """Blank nodes of files under the labels they have there."""
    return {fact.replace("_:f1_b", "_:b").replace("_:f2_b", "_:b") for fact in facts}


@pytest.mark.parametrize("source", SOURCES)
def test_every_kind_of_input_makes_the_same_graph(source: str, tmp_path: Path) -> None:
    kg = KnowledgeGraph("rhodf")
    report = kg.update(insert=SOURCES[source](tmp_path))
    assert_same(without_scopes(triples(kg)), triples(graph(NTRIPLES)), source)
    assert (report.inserted.explicit, report.inserted.derived) == ({TRIPLE: 5}, {TRIPLE: 1})


@pytest.mark.parametrize(
    "nothing", ["", " \n ", [], (), iter([]), b"", pa.table(dict.fromkeys(columns(), pa.array([], pa.string())))]
)
def test_nothing_is_an_input_too(nothing: Any) -> None:
    kg = graph(NTRIPLES)
    report = kg.update(insert=nothing)
    assert (len(report.inserted), len(report.deleted), len(kg)) == (0, 0, 6)


def test_named_relations_come_from_datalog(tmp_path: Path) -> None:
    path = tmp_path / "edges.dlog"
    path.write_text('edge(1, "two") .\nedge(<http://example.org/a>, _:b) .\nflag() .\n')
    want = {'edge(1, "two")', f"edge(<{EX}a>, _:b)", "flag()"}
    for source in (path, path.read_text(), Program.load(path), list(Program.load(path).facts)):
        assert_same(everything(graph(source)), want)


# -- reading -----------------------------------------------------------------------------------------------------------


def test_what_a_graph_says_of_itself() -> None:
    kg = graph(NTRIPLES, RULES)
    assert len(kg) == 6
    assert kg.rules == Program(RULES.rules)
    assert {to_rdflib(row) for row in ROWS} == set(kg.explicit)
    assert list(kg.derived) == [to_rdflib(DERIVED)]
    assert {*kg.explicit, *kg.derived} == set(kg.triples()) == set(kg.triples("all"))
    assert set(kg.relation("seen")) == {(rdflib.URIRef(f"{EX}ann"),), (rdflib.URIRef(f"{EX}Student"),), (rdflib.BNode("b"),)}
    assert kg.counts() == {TRIPLE: 6, "seen": 3}
    assert kg.counts("explicit") == {TRIPLE: 5}
    assert kg.counts(Which.DERIVED) == {TRIPLE: 1, "seen": 3}


@pytest.mark.parametrize("convert", [tuple, list, to_rdflib, terms], ids=["strings", "list", "rdflib", "pyoxigraph"])
def test_membership_takes_terms_of_every_kind(convert: Callable[[Any], Any]) -> None:
    kg = graph(NTRIPLES)
    assert all(convert(row) in kg for row in [*ROWS, DERIVED])
    assert convert((f"<{EX}ann>", TYPE, f"<{EX}Dog>")) not in kg
    assert convert((f"<{EX}Person>", TYPE, f"<{EX}ann>")) not in kg


def test_membership_asks_for_three_terms() -> None:
    with pytest.raises(UserError, match=r"EG105.*three terms, not 2"):
        assert (f"<{EX}a>", f"<{EX}b>") in graph()


def test_a_relation_without_facts_is_empty_and_an_unknown_one_a_mistake() -> None:
    kg = graph("", Program.parse("path(?x, ?y) :- edge(?x, ?y) ."))
    assert kg.relation("path") == kg.relation("edge") == []
    with pytest.raises(UserError) as raised:
        kg.relation("paths")
    assert (raised.value.code, raised.value.hint) == ("EG301", "the rules mention: edge, path")


def test_rows_of_a_relation_without_columns() -> None:
    kg = graph("p(1) .", Program.parse("some() :- p(?x) . none() :- q(?x) ."))
    assert (kg.relation("some"), kg.relation("none")) == ([()], [])


def test_an_engine_that_is_not_there() -> None:
    with pytest.raises(UserError) as raised:
        KnowledgeGraph("rdfs", engine="quantum")
    assert (raised.value.code, "memory, gpu, spark, reference" in raised.value.hint) == ("EG201", True)


# -- nothing changes on a mistake --------------------------------------------------------------------------------------


def good_and_bad(folder: Path) -> list[Path]:
    good, bad = folder / "good.nt", folder / "bad.nt"
    good.write_text(lines('"new"'))
    bad.write_text(lines('"fine"') + "oops\n" + lines('"later"'))
    return [good, bad]


MISTAKES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "a bad line in the second file": (good_and_bad, "EG103"),
    "a bad line of text": (lambda _: lines('"new"', "5"), "EG103"),
    "a file that is not there": (lambda folder: [good_and_bad(folder)[0], folder / "gone.nt"], "EG101"),
    "a path that is not there": (lambda folder: str(folder / "gone.nt"), "EG101"),
    "a file of unknown type": (lambda _: Path(__file__), "EG102"),
    "too many arguments": (lambda _: "new(1) . edge(1, 2, 3) .", "EG004"),
    "too few arguments for an explicit relation": (lambda _: "new(1) . mark(1) .", "EG004"),
    "two arities at once": (lambda _: "new(1) . new(1, 2) .", "EG004"),
    "a number": (lambda _: 42, "EG105"),
    "nothing at all": (lambda _: None, "EG105"),
    "triples of two": (lambda _: [ROWS[0], ROWS[1][:2]], "EG105"),
    "a triple of numbers": (lambda _: [ROWS[0], (1, 2, 3)], "EG105"),
    "a string that is no term": (lambda _: [(f"<{EX}new>", f"<{EX}p>", "plain")], "EG103"),
    "a frame without a column": (lambda _: pd.DataFrame(columns()).drop(columns="object"), "EG105"),
    "a table without a column": (lambda _: pa.table({"s": ["x"]}), "EG105"),
    "a rule among facts": (lambda _: "new(1) . p(?x) :- new(?x) .", "EG105"),
    "a program with rules": (lambda _: Program.load("rhodf"), "EG105"),
    "a variable in a fact": (lambda _: "new(?x) .", "EG003"),
    "a built-in as a fact": (lambda _: "DATATYPE(1, 2) .", "EG006"),
    "Datalog that does not parse": (lambda _: "new(1) . new(2", "EG001"),
}

State = tuple[set[str], set[str], list[dict[str, int]], int]


def state(kg: KnowledgeGraph) -> State:
    return everything(kg), everything(kg, Which.EXPLICIT), [kg.counts(w) for w in Which], len(kg)


def before_mistakes() -> KnowledgeGraph:
    return graph(NTRIPLES + lines('"old"'), Program((*RULES.rules, *Program.parse("p(?x) :- edge(?x, ?y) .").rules)))


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_leaves_the_graph_as_it_was(mistake: str, tmp_path: Path) -> None:
    source, code = MISTAKES[mistake]
    kg = before_mistakes()
    kg.update(insert="edge(1, 2) . mark(1, 2) .")
    before = state(kg)
    with pytest.raises(UserError) as raised:
        kg.update(insert=source(tmp_path))
    assert raised.value.code == code
    assert state(kg) == before
    report = kg.update(insert=lines('"new"'))
    assert (report.inserted.explicit, report.inserted.derived) == ({TRIPLE: 1}, {})


def test_the_place_of_a_bad_line_in_the_second_file(tmp_path: Path) -> None:
    with pytest.raises(UserError) as raised:
        graph(good_and_bad(tmp_path))
    assert str(raised.value.position) == f"{tmp_path / 'bad.nt'}:2:1"


@pytest.mark.parametrize("moment", ["insert", "close", "commit"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_an_interruption_inside_the_engine_leaves_the_graph_as_it_was(
    moment: str, error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    kg = before_mistakes()
    before = state(kg)
    insertion = f"<{EX}bob> {TYPE} <{EX}Student> .\n<{EX}bob> <{EX}new> <{EX}ann> ."
    real = getattr(MemoryEngine, moment)

    def interrupted(self: MemoryEngine, *args: Any) -> Any:
        real(self, *args)
        raise error

    monkeypatch.setattr(MemoryEngine, moment, interrupted)
    with pytest.raises(error):
        kg.update(insert=insertion)
    monkeypatch.undo()
    assert state(kg) == before
    report = kg.update(insert=insertion)
    assert (report.inserted.explicit, report.inserted.derived) == ({TRIPLE: 2}, {TRIPLE: 1, "seen": 1})


def test_a_deletion_that_is_interrupted_leaves_the_graph_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    kg = graph("node(1) . node(2) . bad(2) .", Program.parse("good(?x) :- node(?x), NOT bad(?x) ."))
    before = state(kg)
    assert "good(1)" in before[0]

    def interrupted(self: MemoryEngine) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(MemoryEngine, "commit", interrupted)
        with pytest.raises(KeyboardInterrupt):
            kg.update(insert="bad(1) .")
    assert state(kg) == before
    report = kg.update(insert="bad(1) .")
    assert (report.algorithm, report.deleted.derived) == ("dred", {"good": 1})
    assert_same(everything(kg), ["node(1)", "node(2)", "bad(1)", "bad(2)"])


# -- terms stay what they are ------------------------------------------------------------------------------------------

LEXICAL = {
    "integer": ["1", "01", "+1", "-0", "1.0", "x"],
    "decimal": ["1.50", "+1.", ".5", "-0.0"],
    "double": ["1E5", "1e05", "INF", "NaN", "-0"],
    "float": ["1.10", "INF"],
    "boolean": ["true", "1", "TRUE"],
    "dateTime": ["2024-02-30T00:00:00", "2024-01-01T24:00:00Z", "2024-01-01T00:00:00.000+00:00"],
    "date": ["2024-1-1", "2024-01-01Z"],
    "time": ["24:00:00"],
    "duration": ["P0Y", "-P1D"],
    "hexBinary": ["0fB7", "0FB7"],
    "base64Binary": ["YQ==", "YQ= ="],
    "anyURI": ["a b", "%20"],
    "gYear": ["0001"],
    "normalizedString": [" two  spaces "],
    "unsignedByte": ["256", "-1"],
    "nonNegativeInteger": ["-0"],
}
TERMS = [
    '"plain"',
    '""',
    '"quotes \\" and \\\\ backslashes \\\\n"',
    '"\\\\"',
    '"lines\\nof\\r\\ntext\\tand tabs"',
    '"control \\u0000 \\u0001 \\b \\f \\u001F \\u007F"',
    '"next line \u0085, line separator \u2028, paragraph \u2029, no-break \u00a0"',
    '"é ß 漢字 ﷺ"',
    '"e\u0301 is not é"',
    '"\U0001f600 \U0010fffd \U00020000"',
    '"right \u202e left, joiner \u200d, mark \ufeff"',
    "\"'single'\"",
    '"looks like <http://example.org/a> . # no comment"',
    '"^^<http://example.org/no-datatype>"',
    '"@en"',
    '"x"@en',
    '"x"@en-gb',
    '"x"@zh-hant-tw',
    '" . "@de',
    f'"a\\"b"^^<{EX}é>',
    f'"x"^^<{EX}my%20type#part>',
    f"<{EX}é/漢字>",
    f"<{EX}%C3%A9>",
    f"<{EX}%c3%a9>",
    f"<{EX}\U0001f600>",
    f"<{EX}a?b=c&d=(e)#f>",
    "<urn:isbn:0451450523>",
    "<mailto:ann@example.org>",
    "<tag:example.org,2024:x'y>",
    f"<{EX}>",
    "<http://EXAMPLE.org/../a/./b>",
    *(f'"{form}"^^<{XSD}{datatype}>' for datatype, forms in LEXICAL.items() for form in forms),
]


def test_the_terms_are_written_as_pyoxigraph_writes_them() -> None:
    assert [str(terms((f"<{EX}s>", f"<{EX}p>", term))[2]) for term in TERMS] == TERMS


@pytest.mark.parametrize("how", ["text", "file", "strings", "rdflib", "pyoxigraph", "Datalog", "Arrow"])
def test_terms_survive_insertion_exactly(how: str, tmp_path: Path) -> None:
    rows = [(f"<{EX}s>", f"<{EX}p>", term) for term in TERMS]
    path = tmp_path / "terms.nt"
    path.write_text(lines(*TERMS), encoding="utf-8")
    sources: dict[str, Any] = {
        "text": lines(*TERMS),
        "file": path,
        "strings": rows,
        "rdflib": list(graph(lines(*TERMS)).explicit),
        "pyoxigraph": [tuple(terms(row)) for row in rows],
        "Datalog": "".join(f"[{s}, {p}, {o}] .\n" for s, p, o in rows),
        "Arrow": pa.table({name: [row[i] for row in rows] for i, name in enumerate(("subject", "predicate", "object"))}),
    }
    kg = graph(sources[how])
    assert objects(kg) == sorted(TERMS)
    assert len(kg) == len(TERMS)
    assert all(row in kg for row in rows)


@pytest.mark.parametrize("name", ["out.nt", "out.nt.gz"])
def test_terms_survive_writing_and_reading_again(name: str, tmp_path: Path) -> None:
    kg = graph(lines(*TERMS))
    assert write_ntriples(kg.blocks(), tmp_path / name) == (len(TERMS), 0)
    again = graph(tmp_path / name)
    assert objects(again) == sorted(TERMS)
    assert_same(triples(again), triples(kg))
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_rdflib_sees_the_same_literals() -> None:
    kg = graph(lines(*TERMS))
    quads = ox.parse(lines(*TERMS), format=ox.RdfFormat.N_TRIPLES)
    want = {(q.object.value, q.object.language, q.object.datatype.value) for q in quads if isinstance(q.object, ox.Literal)}
    string = rdflib.URIRef(f"{XSD}string")
    language = rdflib.URIRef("http://www.w3.org/1999/02/22-rdf-syntax-ns#langString")
    literals = [o for _, _, o in kg.explicit if isinstance(o, rdflib.Literal)]
    assert {(str(o), o.language, str(o.datatype or (language if o.language else string))) for o in literals} == want


@pytest.mark.parametrize(
    "spellings",
    [
        ['"é"', '"\\u00E9"', '"\\u00e9"', '"\\U000000E9"'],
        ['"a"', '"\\u0061"', f'"a"^^<{XSD}string>'],
        ['"\t"', '"\\t"', '"\\u0009"'],
        ['"\x01"', '"\\u0001"'],
        ['"\x7f"', '"\\u007F"'],
        ['"x"@en', '"x"@EN', '"x"@eN'],
        ['"x"@en-gb', '"x"@en-GB'],
        [f"<{EX}é>", f"<{EX}\\u00E9>", f"<{EX}\\U000000e9>"],
        ['"\U0001f600"', '"\\U0001F600"'],
        [f'"1"^^<{XSD}integer>', f'"\\u0031"^^<{XSD}integer>', f'"1"^^<{XSD}\\u0069nteger>'],
    ],
    ids=lambda spellings: spellings[0].encode("unicode_escape").decode(),
)
def test_one_term_in_several_spellings_is_one_term(spellings: list[str], tmp_path: Path) -> None:
    path = tmp_path / "spellings.nt"
    path.write_text(lines(*spellings), encoding="utf-8")
    want = str(terms((f"<{EX}s>", f"<{EX}p>", spellings[0]))[2])
    assert objects(graph(path)) == objects(graph(lines(*spellings))) == [want]


@pytest.mark.parametrize(
    "values",
    [
        ['"1"', f'"1"^^<{XSD}integer>', f'"01"^^<{XSD}integer>', f'"1"^^<{XSD}int>', '"1"@en'],
        [f"<{EX}a>", f'"{EX}a"', f'"<{EX}a>"'],
        ['"é"', '"e\u0301"'],
        [f"<{EX}%41>", f"<{EX}A>", f"<{EX}a>"],
        ['"x"@en', '"x"@en-gb', '"x"'],
        ['""', '" "'],
    ],
    ids=lambda values: values[0].encode("unicode_escape").decode(),
)
def test_terms_that_only_look_alike_stay_apart(values: list[str]) -> None:
    assert objects(graph(lines(*values))) == sorted(values)


# -- blank nodes -------------------------------------------------------------------------------------------------------


def blank_file(path: Path, name: str) -> Path:
    path.write_text(f"_:b <{EX}p> <{EX}{name}> .\n_:b <{EX}q> _:b .\n_:c <{EX}p> <{EX}{name}> .\n")
    return path


def test_a_label_is_one_node_in_a_file_and_two_nodes_in_two_files(tmp_path: Path) -> None:
    kg = graph([blank_file(tmp_path / "one.nt", "one"), blank_file(tmp_path / "two.nt", "two")])
    q = [(s, o) for s, p, o in kg.explicit if p == rdflib.URIRef(f"{EX}q")]
    assert len(q) == len(set(q)) == 2
    assert all(s == o for s, o in q)
    assert len({s for s, _, _ in kg.explicit}) == 4
    one = {s for s, _, o in kg.explicit if o == rdflib.URIRef(f"{EX}one")}
    two = {s for s, _, o in kg.explicit if o == rdflib.URIRef(f"{EX}two")}
    assert (len(one), len(two), one & two) == (2, 2, set())


def test_a_file_read_twice_has_its_blank_nodes_twice(tmp_path: Path) -> None:
    path = blank_file(tmp_path / "one.nt", "one")
    kg = graph(path)
    report = kg.update(insert=path)
    assert report.inserted.explicit == {TRIPLE: 3}


def test_labels_in_text_mean_the_same_node_every_time() -> None:
    kg = graph(f"_:b <{EX}p> <{EX}a> .")
    assert len(kg.update(insert=f"_:b <{EX}p> <{EX}a> .").inserted) == 0
    assert ("_:b", f"<{EX}p>", f"<{EX}a>") in kg


# -- reports -----------------------------------------------------------------------------------------------------------


def counts_of(report: Report) -> tuple[dict[str, int], dict[str, int]]:
    return report.inserted.explicit, report.inserted.derived


def test_a_derived_fact_that_is_inserted_becomes_explicit() -> None:
    kg = graph(NTRIPLES)
    assert to_rdflib(DERIVED) in set(kg.derived)
    report = kg.update(insert=[DERIVED])
    assert counts_of(report) == ({TRIPLE: 1}, {})
    assert list(report.inserted.triples) == []
    assert (list(kg.derived), to_rdflib(DERIVED) in set(kg.explicit), len(kg)) == ([], True, 6)
    assert kg.counts("explicit") == {TRIPLE: 6}


def test_a_fact_that_is_there_already_is_not_counted() -> None:
    kg = graph(NTRIPLES)
    assert counts_of(kg.update(insert=NTRIPLES)) == ({}, {})
    assert counts_of(kg.update(insert=[ROWS[0], ROWS[0], (f"<{EX}new>", SUBCLASS, f"<{EX}Person>")])) == ({TRIPLE: 1}, {})


def test_a_report_says_what_came() -> None:
    kg = graph(NTRIPLES)
    report = kg.update(insert=f"<{EX}bob> {TYPE} <{EX}Student> .")
    assert counts_of(report) == ({TRIPLE: 1}, {TRIPLE: 1})
    came = {to_rdflib((f"<{EX}bob>", TYPE, f"<{EX}{c}>")) for c in ("Student", "Person")}
    assert set(report.inserted.triples) == came
    assert (len(report.inserted), len(report.deleted)) == (2, 0)
    assert (report.algorithm, report.reason, report.engine) == ("seminaive", "insertions only", "memory")
    assert [phase.name for phase in report.phases] == ["read", "insert", "stratum 1", "commit"]
    assert report.seconds == sum(phase.seconds for phase in report.phases)
    answer = report.as_dict()
    assert answer["inserted"] == {"explicit": {"triples": 1}, "derived": {"triples": 1}}
    assert answer["phases"][0]["facts"] == 1


def test_a_report_says_what_went() -> None:
    kg = graph("node(1) . node(2) .", Program.parse("good(?x) :- node(?x), NOT bad(?x) ."))
    report = kg.update(insert="bad(1) . node(3) .")
    assert counts_of(report) == ({"bad": 1, "node": 1}, {"good": 1})
    assert report.deleted.derived == {"good": 1}
    assert report.algorithm == "dred"
    assert "negate" in report.reason


def test_facts_of_a_program_are_explicit_from_the_start() -> None:
    kg = KnowledgeGraph(Program.parse("path(?x, ?y) :- edge(?x, ?y) . edge(1, 2) ."))
    assert kg.counts("explicit") == {"edge": 1}
    assert kg.counts("derived") == {"path": 1}
