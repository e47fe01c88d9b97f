"""Rule text: what is printed parses back, every mistake is named with its place and a hint, and the shipped sets are whole."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evergraph import Program, UserError
from evergraph.errors import MISTAKES
from evergraph.rules.model import (
    OWL,
    RDF,
    RDFS,
    TRIPLE,
    TYPE,
    XSD,
    Atom,
    BodyItem,
    Comparison,
    Negation,
    Operator,
    Rule,
    Term,
    Variable,
)
from evergraph.rules.sources import SETS
from evergraph.rules.stratify import stratify
from strategies import NAMES, programs

EX = "http://example.org/"
X, Y = Variable("x"), Variable("y")
INTEGER = f"<{XSD}integer>"


def mistakes_of(text: str, file: str = "<text>") -> list[UserError]:
    with pytest.raises(UserError) as raised:
        Program.parse(text, file)
    return list(raised.value.mistakes)


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


# -- printing and parsing ----------------------------------------------------------------------------------------------

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
tags = st.sampled_from(["en", "en-gb", "zh-hant-tw", "x-private"])
datatypes = st.sampled_from(
    [f"{XSD}integer", f"{XSD}decimal", f"{XSD}double", f"{XSD}boolean", f"{XSD}date", f"{EX}unit", "x:y"]
)
lexical = st.one_of(texts, st.from_regex(r"[+-]?[0-9]{1,3}(\.[0-9]{1,2})?([eE][+-]?[0-9]{1,2})?", fullmatch=True))
iris = st.sampled_from(
    [f"<{EX}a-b>", f"<{EX}a.b>", f"<{EX}é>", f"<{EX}>", f"<{EX}sub/deep>", f"<{EX}a%20b>", "<urn:x:1>", f"<{XSD}integer>"]
)
constants = st.one_of(
    iris,
    st.sampled_from(["_:b", "_:B_1", f'"true"^^<{XSD}boolean>', f'"TRUE"^^<{XSD}boolean>']),
    texts.map(lambda t: str(ox.Literal(t))),
    st.builds(lambda t, tag: str(ox.Literal(t, language=tag)), texts, tags),
    st.builds(lambda t, d: str(ox.Literal(t, datatype=ox.NamedNode(d))), lexical, datatypes),
)
prefix_maps = st.dictionaries(
    st.sampled_from(["ex", "", "deep", "rdf", "a-b", "e1"]),
    st.sampled_from([EX, f"{EX}sub/", f"{XSD}", "urn:x:", "http://example.org"]),
    max_size=4,
)


def replaced(program: Program, change: Callable[[Term], Term], name: str, prefixes: dict[str, str]) -> Program:
    """The program with its constants changed, its rules named and its prefixes declared."""

    def atom(a: Atom) -> Atom:
        return Atom(a.relation, tuple(map(change, a.terms)))

    def item(i: BodyItem) -> BodyItem:
        match i:
            case Negation(inside):
                return Negation(atom(inside))
            case Comparison(operator, left, right):
                return Comparison(operator, change(left), change(right))
        return atom(i)

    rules = tuple(Rule(atom(r.head), tuple(map(item, r.body)), name) for r in program.rules)
    facts = tuple(Atom("fact", (change(n),)) for n in NAMES)
    return Program(rules, facts, {"rdf": RDF, "rdfs": RDFS, "owl": OWL, "xsd": XSD, **prefixes})


@given(programs)
@settings(max_examples=100)
def test_printed_programs_parse_back(program: Program) -> None:
    assert Program.parse(str(program)) == program


@given(programs, st.lists(constants, min_size=len(NAMES), max_size=len(NAMES)), texts, prefix_maps)
@settings(max_examples=250)
def test_printed_programs_of_any_constants_names_and_prefixes_parse_back(
    program: Program, terms: list[str], name: str, prefixes: dict[str, str]
) -> None:
    chosen = dict(zip(NAMES, terms, strict=True))
    wanted = replaced(program, lambda t: chosen.get(t, t) if isinstance(t, str) else t, name, prefixes)
    again = Program.parse(str(wanted))
    assert again == wanted
    assert again.prefixes == wanted.prefixes
    assert str(again) == str(wanted)


@pytest.mark.parametrize("kind", ["integer", "decimal", "double", "float", "boolean", "string", "int"])
def test_a_literal_keeps_its_datatype_and_its_lexical_form(kind: str) -> None:
    forms = ["1", "12", "+12", "-0", "1.5", "1.", "12.50", ".5", "1e5", "12E5", "1.5E-3", "+1e+1", "true", "false", "INF", "1٣"]
    facts = tuple(Atom("fact", (str(ox.Literal(form, datatype=ox.NamedNode(f"{XSD}{kind}"))),)) for form in forms)
    assert Program.parse(str(Program(facts=facts))).facts == facts


@pytest.mark.parametrize(
    ("written", "term"),
    [
        ("1", f'"1"^^{INTEGER}'),
        ("-007", f'"-007"^^{INTEGER}'),
        ("+1.50", f'"+1.50"^^<{XSD}decimal>'),
        ("1e5", f'"1e5"^^<{XSD}double>'),
        ("-1.5E-3", f'"-1.5E-3"^^<{XSD}double>'),
        ("true", f'"true"^^<{XSD}boolean>'),
        ("false", f'"false"^^<{XSD}boolean>'),
        ("a", TYPE),
        ('"plain"', '"plain"'),
        ('"plain"^^xsd:string', '"plain"'),
        (r'"q\"b\\n\nt\tu\u00E9U\U0001F600"', '"q\\"b\\\\n\\nt\\tué' + "U\U0001f600" + '"'),
        ('"full. stop % no comment"', '"full. stop % no comment"'),
        ('"colour"@en-GB', '"colour"@en-gb'),
        ('"01"^^xsd:integer', f'"01"^^{INTEGER}'),
        ('"x"^^<http://example.org/unit>', f'"x"^^<{EX}unit>'),
        ("_:b1", "_:b1"),
        ("<http://example.org/é>", f"<{EX}é>"),
        ("ex:a", f"<{EX}a>"),
        ("ex:a.b-c", f"<{EX}a.b-c>"),
        ("ex:", f"<{EX}>"),
        (":a", "<urn:empty:a>"),
        ("owl:sameAs", f"<{OWL}sameAs>"),
    ],
)
def test_a_term_is_read_as_written(written: str, term: str) -> None:
    program = Program.parse(f"@prefix ex: <{EX}> .\n@prefix : <urn:empty:> .\nfact({written}).")
    assert program.facts == (Atom("fact", (term,)),)


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("ex:Person[?x] :- ex:Student[?x] .", "[?x, rdf:type, ex:Person] :- [?x, rdf:type, ex:Student] ."),
        ("ex:p[?x, ?y] :- ex:q[?y, ?x] .", "[?x, ex:p, ?y] :- [?y, ex:q, ?x] ."),
        ("<http://example.org/p>[?x, 1] :- r(?x) .", "[?x, ex:p, 1] :- r(?x) ."),
        ("[?x, a, ex:C] :- r(?x) .", "[?x, rdf:type, ex:C] :- r(?x) ."),
        ("p(?x) :- q(?x), ~r(?x) .", "p(?x) :- q(?x), NOT r(?x) ."),
        ("p(?x) :- q(?x), ~ex:C[?x] .", "p(?x) :- q(?x), NOT [?x, a, ex:C] ."),
        ("p(?x),r(?x):-q(?x).", "p(?x) :- q(?x) . r(?x) :- q(?x) ."),
        ("p(1), q(2) .", "p(1) . q(2) ."),
        ("% nothing\np(1) . % p(2) .", "p(1) ."),
        ("p(?x)\n  :- q(?x,\n ?y) .", "p(?x) :- q(?x, ?y) ."),
    ],
)
def test_short_forms_mean_the_long_ones(short: str, long: str) -> None:
    prefix = f"@prefix ex: <{EX}> .\n"
    assert Program.parse(prefix + short) == Program.parse(prefix + long)


def test_a_rule_with_several_heads_is_several_rules_of_one_name() -> None:
    program = Program.parse('#[name("both")] p(?x), [?x, a, ?y] :- q(?x, ?y), ?x != ?y .')
    body = (Atom("q", (X, Y)), Comparison(Operator.UNEQUAL, X, Y))
    assert program.rules == (Rule(Atom("p", (X,)), body, "both"), Rule(Atom(TRIPLE, (X, TYPE, Y)), body, "both"))
    assert program.without(["both"]).rules == ()


@pytest.mark.parametrize("operator", [o for o in Operator if o != Operator.ILLTYPED])
def test_comparisons_are_read(operator: Operator) -> None:
    program = Program.parse(f"p(?x) :- q(?x, ?y), ?x {operator} ?y, ?y {operator} 2 .")
    assert program.rules[0].comparisons == (Comparison(operator, X, Y), Comparison(operator, Y, f'"2"^^{INTEGER}'))
    assert Program.parse(str(program)) == program


def test_the_filter_on_literals_is_a_comparison() -> None:
    program = Program.parse("p(?x) :- q(?x, ?y), ILLTYPED(?x, ?y) .")
    assert program.rules[0].comparisons == (Comparison(Operator.ILLTYPED, X, Y),)
    assert Program.parse(str(program)) == program


def test_relations_are_named_with_their_arities() -> None:
    program = Program.parse("p(?x) :- q(?x, ?y), NOT r(), DATATYPE(?x, ?y), [?x, ?y, ?x] . s(1, 2, 3) .")
    assert program.relations == {"p": 1, "q": 2, "r": 0, "s": 3}


def test_strata_follow_negation() -> None:
    program = Program.parse("top(?x) :- node(?x), NOT odd(?x) . odd(?x) :- node(?x), NOT even(?x) . even(?x) :- zero(?x) .")
    heads = [sorted({rule.head.relation for rule in stratum}) for stratum in stratify(program)]
    assert heads == [["even"], ["odd"], ["top"]]


def test_strata_tell_predicates_and_classes_apart() -> None:
    text = f"@prefix ex: <{EX}> .\nex:B[?x] :- ex:A[?x], NOT ex:C[?x] . ex:p[?x, ?y] :- ex:q[?x, ?y], NOT ex:r[?x, ?y] ."
    assert len(stratify(Program.parse(text))) == 1
    assert len(stratify(Program.parse(text + "ex:C[?x] :- ex:p[?x, ?y] ."))) == 2


# -- mistakes ----------------------------------------------------------------------------------------------------------

CYCLE = "[?, <http://example.org/p>, ?]"
SINGLE = {
    "head": ("p(1) .\nq(?x, ?z) :-\n  p(?x) .", "EG003", 2, 1, "unsafe variable ?z in the head", "use ?z in a positive atom"),
    "named rule": ('#[name("r1")]\n  q(?z) :- p(?x) .', "EG003", 2, 3, "in the head of rule r1", "use ?z in a positive atom"),
    "negation": ("q(?x) :- p(?x), NOT r(?z) .", "EG003", 1, 21, "unsafe variable ?z in a negation", "use ?z in a positive"),
    "comparison": ("q(?x) :- p(?x), ?x < ?z .", "EG003", 1, 20, "unsafe variable ?z in a comparison", "use ?z in a positive"),
    "fact": ("p(1) .\n  p(?x) .", "EG003", 2, 3, "unsafe variable ?x in a fact", "did a body get lost?"),
    "arity": (
        "p(?x, ?x) :- r(?x) .\nq(?x) :- p(?x) .",
        "EG004",
        2,
        10,
        "p(?x) has 1 arguments, but p has 2",
        "the same number of arguments",
    ),
    "built-in arity": ("q(?x) :- DATATYPE(?x) .", "EG004", 1, 10, "DATATYPE has 2 (built in)", "same number of arguments"),
    "cycle": (
        "a(?x) :- b(?x) .\nb(?x) :- c(?x), NOT a(?x) .",
        "EG005",
        2,
        1,
        "negation in a cycle: b → NOT a → b",
        "break the cycle",
    ),
    "triple cycle": (
        f"@prefix ex: <{EX}> .\n ex:p[?x, ?y] :- ex:q[?x, ?y], NOT ex:p[?y, ?x] .",
        "EG005",
        2,
        2,
        f"{CYCLE} → NOT {CYCLE}",
        "must not depend on its own negation",
    ),
    "prefix": (
        "p(1) .\nq(2, foo:bar) .",
        "EG002",
        2,
        6,
        "unknown prefix 'foo:'",
        "'@prefix foo: <…> .'; known: owl, rdf, rdfs, xsd",
    ),
    "built-in head": ("DATATYPE(?x, ?y) :- p(?x, ?y) .", "EG006", 1, 1, "DATATYPE is built in", "choose another name"),
    "built-in fact": ("p(1) . SAMEVALUE(1, 2) .", "EG006", 1, 8, "SAMEVALUE is built in", "choose another name"),
    "filter as head": ("ILLTYPED(?x, ?y) :- p(?x, ?y) .", "EG006", 1, 1, "ILLTYPED is built in", "choose another name"),
    "negated filter": ("q(?x) :- p(?x), NOT ILLTYPED(?x, ?x) .", "EG006", 1, 21, "cannot be negated", "ILLTYPED(?lt, ?dt)"),
    "character": ("p(1) .\n q($) .", "EG001", 2, 4, "unexpected character '$'", "quote strings"),
    "open string": ('p("one) .', "EG001", 1, 3, "unexpected character '\"'", "quote strings"),
    "token": ("p(1) .\nq(?x) :- p(?x) r(?x) .", "EG001", 2, 16, "unexpected 'r'", "expected ',' or '.'"),
    "no full stop": ("p(1) .\nq(2)", "EG001", 2, 4, "the last statement does not end", "end every rule and fact with '.'"),
    "bare word": ("p(word) .", "EG001", 1, 3, "'word' is not a term", 'write ?word, ex:word or "word"'),
    "two terms": ("[?x, ?y] :- p(?x, ?y) .", "EG001", 1, 8, "unexpected ']'", "expected ','"),
    "rule set": ('p(1) .\n @include "rdfz" .', "EG007", 2, 2, "no rule set is called 'rdfz'", "use one of rhodf, rdfs, "),
    "include": ('@include "gone.dlog" .', "EG101", 1, 1, "cannot read gone.dlog: No such file", "check the path"),
}


@pytest.mark.parametrize(("text", "code", "line", "column", "message", "hint"), SINGLE.values(), ids=SINGLE)
def test_a_mistake_has_number_place_and_hint(text: str, code: str, line: int, column: int, message: str, hint: str) -> None:
    (mistake,) = mistakes_of(text, "rules.dlog")
    assert (mistake.code, mistake.position and (mistake.position.line, mistake.position.column)) == (code, (line, column))
    assert message in mistake.message
    assert hint in mistake.hint
    assert str(mistake).startswith(f"rules.dlog:{line}:{column}: error {code}: ")
    assert code in MISTAKES


TEN_MISTAKES = """\
@prefix ex: <http://example.org/> .
edge(1, 2) .
edge(1, 2, 3) .
path(?x, ?z) :- edge(?x, ?y) .
path(?x, ?y) :- edge(?x, ?y), NOT blocked(?w) .
path(?x, ?y) :- edge(?x, ?y), ?x < ?w .
node(?x) .
ex:p[?x, foo:y] :- edge(?x, ?y) .
SAMEVALUE(?x, ?y) :- edge(?x, ?y) .
@include "no-such-set" .
path(?x ?y) :- edge(?x, ?y) .
p(1) & q(2) .
good(?x) :- edge(?x, ?y) .
"""
TEN_PLACES = [
    ("EG004", 3, 1),
    ("EG003", 4, 1),
    ("EG003", 5, 35),
    ("EG003", 6, 34),
    ("EG003", 7, 1),
    ("EG002", 8, 10),
    ("EG006", 9, 1),
    ("EG007", 10, 1),
    ("EG001", 11, 9),
    ("EG001", 12, 6),
]


def test_ten_mistakes_are_reported_at_once_in_the_order_of_their_places() -> None:
    found = mistakes_of(TEN_MISTAKES, "ten.dlog")
    assert [(m.code, m.position.line, m.position.column) for m in found if m.position] == TEN_PLACES
    assert len(found) == 10
    assert len({m.message for m in found}) == 10


def test_places_are_right_after_a_character_that_starts_nothing() -> None:
    found = mistakes_of("p(1) .\nq($) .\n\n  p(?x) .\nr(&) .\ns(?y) .")
    assert [(m.code, str(m.position)) for m in found] == [
        ("EG001", "<text>:2:3"),
        ("EG003", "<text>:4:3"),
        ("EG001", "<text>:5:3"),
        ("EG003", "<text>:6:1"),
    ]


def test_the_text_of_many_mistakes_is_one_line_each() -> None:
    with pytest.raises(UserError) as raised:
        Program.parse(TEN_MISTAKES, "ten.dlog")
    lines = str(raised.value).splitlines()
    for line, (code, at, column) in zip(lines, TEN_PLACES, strict=True):
        assert line.startswith(f"ten.dlog:{at}:{column}: error {code}: ")


def test_an_unknown_rule_set_is_named_with_those_there_are() -> None:
    with pytest.raises(UserError) as raised:
        Program.load("owl3")
    assert (raised.value.code, raised.value.position) == ("EG007", None)
    assert "'owl3'" in raised.value.message
    assert all(name in raised.value.hint for name in SETS)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError) as raised:
        Program.load(tmp_path / "gone.dlog")
    assert raised.value.code == "EG101"
    assert str(tmp_path / "gone.dlog") in raised.value.message


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    path = tmp_path / "latin.dlog"
    path.write_bytes('p("é") .'.encode("latin-1"))
    with pytest.raises(UserError) as raised:
        Program.load(path)
    assert (raised.value.code, "UTF-8" in raised.value.message) == ("EG103", True)


def test_mistakes_in_a_file_carry_its_name(tmp_path: Path) -> None:
    path = write(tmp_path / "rules.dlog", "p(1) .\np(?x) .\n")
    with pytest.raises(UserError) as raised:
        Program.load(path)
    assert str(raised.value.position) == f"{path}:2:1"


# -- includes ----------------------------------------------------------------------------------------------------------


def test_an_include_brings_rules_facts_and_prefixes(tmp_path: Path) -> None:
    part = write(tmp_path / "part.dlog", f"@prefix ex: <{EX}> .\nex:p[?x, ?y] :- ex:q[?x, ?y] .\nex:q[ex:a, ex:b] .\n")
    program = Program.parse(f'@include "{part}" .\nex:r[?x, ?y] :- ex:p[?x, ?y] .')
    assert program.rules[0] == Program.load(part).rules[0]
    assert program.rules[1].head == Atom(TRIPLE, (X, f"<{EX}r>", Y))
    assert program.facts == Program.load(part).facts
    assert program.prefixes["ex"] == EX


def test_an_include_of_a_rule_set_by_name() -> None:
    program = Program.parse('@include "rhodf" .\nnode(?x) :- [?x, ?p, ?y] .')
    assert program.rules[:-1] == Program.load("rhodf").rules
    assert program.rules[-1].head == Atom("node", (X,))


def test_a_file_that_includes_itself(tmp_path: Path) -> None:
    path = tmp_path / "loop.dlog"
    write(path, f'p(1) .\n@include "{path}" .\n')
    with pytest.raises(UserError) as raised:
        Program.load(path)
    assert (raised.value.code, str(raised.value.position)) == ("EG008", f"{path}:2:1")
    assert f"{path} → {path}" in raised.value.message


def test_two_files_that_include_each_other(tmp_path: Path) -> None:
    one, two = tmp_path / "one.dlog", tmp_path / "two.dlog"
    write(one, f'@include "{two}" .\n')
    write(two, f'\n@include "{one}" .\n')
    with pytest.raises(UserError) as raised:
        Program.load(one)
    assert (raised.value.code, str(raised.value.position)) == ("EG008", f"{two}:2:1")
    assert f"{one} → {two} → {one}" in raised.value.message


def test_mistakes_of_an_included_file_have_their_place_there(tmp_path: Path) -> None:
    part = write(tmp_path / "a.dlog", "p(1) .\n\nq(?x) .\n")
    whole = write(tmp_path / "b.dlog", f'@include "{part}" .\nr(?x) .\n')
    with pytest.raises(UserError) as raised:
        Program.load(whole)
    assert [str(m.position) for m in raised.value.mistakes] == [f"{part}:3:1", f"{whole}:2:1"]


def test_arities_are_compared_across_includes(tmp_path: Path) -> None:
    part = write(tmp_path / "part.dlog", "p(?x) :- r(?x) .\n")
    (mistake,) = mistakes_of(f'@include "{part}" .\nq(?x) :- p(?x, ?y) .')
    assert (mistake.code, str(mistake.position)) == ("EG004", "<text>:2:10")


# -- the shipped sets --------------------------------------------------------------------------------------------------

W3C = {
    "Table 4": "eq-ref eq-sym eq-trans eq-rep-s eq-rep-p eq-rep-o eq-diff1 eq-diff2 eq-diff3",
    "Table 5": "prp-ap prp-dom prp-rng prp-fp prp-ifp prp-irp prp-symp prp-asyp prp-trp prp-spo1 prp-spo2 prp-eqp1 prp-eqp2 "
    "prp-pdw prp-adp prp-inv1 prp-inv2 prp-key prp-npa1 prp-npa2",
    "Table 6": "cls-thing cls-nothing1 cls-nothing2 cls-int1 cls-int2 cls-uni cls-com cls-svf1 cls-svf2 cls-avf cls-hv1 "
    "cls-hv2 cls-maxc1 cls-maxc2 cls-maxqc1 cls-maxqc2 cls-maxqc3 cls-maxqc4 cls-oo",
    "Table 7": "cax-sco cax-eqc1 cax-eqc2 cax-dw cax-adc",
    "Table 8": "dt-type1 dt-type2 dt-eq dt-diff dt-not-type",
    "Table 9": "scm-cls scm-sco scm-eqc1 scm-eqc2 scm-op scm-dp scm-spo scm-eqp1 scm-eqp2 scm-dom1 scm-dom2 scm-rng1 scm-rng2 "
    "scm-hv scm-svf1 scm-svf2 scm-avf1 scm-avf2 scm-int scm-uni",
}
AXIOMS = {"prp-ap": 9, "cls-thing": 1, "cls-nothing1": 1, "dt-type1": 32}
"""Rules of the tables without a body, and how many facts each is."""
FULL_ONLY = {"eq-ref", "dt-type2", "dt-diff", "scm-cls", "scm-op", "scm-dp", *AXIOMS}


def w3c_names() -> set[str]:
    return {name for names in W3C.values() for name in names.split()}


def test_the_tables_have_78_rules() -> None:
    assert sum(len(names.split()) for names in W3C.values()) == len(w3c_names()) == 78


def test_owl2rl_full_has_every_rule_of_the_w3c_tables() -> None:
    program = Program.load("owl2rl-full")
    named = {rule.name for rule in program.rules}
    assert w3c_names() - named == set(AXIOMS)
    assert all(name.partition(":")[0] in w3c_names() | {"LIST"} for name in named)
    assert len(program.facts) == len(set(program.facts)) == sum(AXIOMS.values())


def test_owl2rl_lacks_the_rules_it_says_it_lacks() -> None:
    program = Program.load("owl2rl")
    assert w3c_names() - {rule.name for rule in program.rules} == FULL_ONLY
    assert program.facts == ()


@pytest.mark.parametrize(
    ("name", "rules"), [("rhodf", 6), ("rdfs", 13), ("rdfs-jena", 13), ("owl2rl", 89), ("owl2rl-full", 102)]
)
def test_a_shipped_set_loads_and_parses_back(name: str, rules: int) -> None:
    program = Program.load(name)
    assert len(program.rules) == rules
    assert all(rule.name for rule in program.rules)
    assert Program.parse(str(program)) == program


def test_the_list_of_sets_is_the_five_that_are_tested() -> None:
    assert SETS == ("rhodf", "rdfs", "rdfs-jena", "owl2rl", "owl2rl-full")
