"""Reading many rules: filling in skeletons gives what parsing gives, mistakes and places too, and parses each form once."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evergraph import Program, UserError
from evergraph.rules.model import Atom, Comparison, Negation, Rule
from evergraph.rules.skeletons import Skeletons
from evergraph.rules.statement import Reader
from strategies import programs

PREFIX = "@prefix ex: <http://example.org/> .\n"
STATEMENTS = [
    "ex:C[?x] :- ex:D[?x] .\n",
    "ex:p[?x, ?y] :- ex:q[?y, ?x], NOT ex:r[?x, 1] .\n",
    "edge(1, 2) .\n",
    "p(?x) :- q(?x, ?y), ?x < ?y, ?y >= 3 .\n",
    '#[name("some name")]\n p(?x), r(?x) :- q(?x, "v") .\n',
    'p("a"@en, "5"^^xsd:integer) .\n',
    "q(?x,\n  ?y) :- [?x, ex:p, ?y],\n far(?y, <http://a/b>, ?x), ILLTYPED(?x, ?y).\n",
    "[_:b, a, ex:C] .\n",
    "p(?z) :- q(?x, ?y) .\n",
    "p(1,2).q(1).\n",
    "r(?x) :- p(?x), NOT r(?x) .",
    "% a comment. ex:a\n",
]
PIECES = [
    "ex:a",
    "ex:b.c",
    "<http://e/x>",
    "<relative>",
    '"s"',
    '"a.b%c"',
    '"x"@en',
    '"5"^^xsd:integer',
    '"z"^^ex:t',
    "1",
    "1.5",
    "-2",
    "+3e4",
    "_:b",
    "?x",
    "?y",
    "a",
    "true",
    "p",
    "q(",
    "r(",
    ")",
    "[",
    "]",
    ",",
    ":-",
    ".",
    "NOT",
    "~",
    "NOT:x",
    "=",
    "!=",
    "<",
    "<=",
    ">",
    "%",
    '#[name("n")]',
    "#[name(",
    "@prefix",
    "@en",
    "^^",
    "$",
    "&",
    '"',
    "\\",
    "é",
    "ex:é",
    "ex:",
    "foo:bar",
    ":x",
    ":",
    "::a",
    "ILLTYPED(?x,?y)",
    "DATATYPE(?x)",
    "p(?x)",
    "ex:C[?x]",
    "-",
    "+",
    "_:a[?x]",
    "1[?x]",
    '"a"[',
    '"\\u00e9"',
    '"\\q"',
    '"x"^^rdf:langString',
    "1e5x",
    "ex:a-",
    "ex:a-:b",
    "p(?x,",
]


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """A statement with a piece of something put into it."""
    text = draw(st.sampled_from(STATEMENTS))
    for _ in range(draw(st.integers(0, 2))):
        start = draw(st.integers(0, len(text)))
        stop = start + draw(st.integers(0, 2))
        text = text[:start] + draw(st.sampled_from([*PIECES, " ", "\n", "% c ex:a\n", ""])) + text[stop:]
    return text


texts = st.builds(lambda prefix, parts: prefix + "".join(parts), st.sampled_from([PREFIX, ""]), st.lists(damaged(), max_size=6))


def told(text: str) -> Any:
    """Everything a text is read as, places included, or every mistake; triples of a body have no place of their own."""
    try:
        program = Program.parse(text, "f")
    except UserError as error:
        return [str(mistake) for mistake in error.mistakes]
    rules = [(rule, rule.name, str(rule.position), [_place(item) for item in rule.body]) for rule in program.rules]
    return rules, [(fact, str(fact.position)) for fact in program.facts], program.prefixes


def _place(item: Atom | Negation | Comparison) -> str:
    return "" if isinstance(item, Atom) and item.relation == "[]" else str(item.position)


def parsed(text: str) -> Any:
    """The same without skeletons."""
    with patch.object(Skeletons, "fill", lambda *_: None):
        return told(text)


@given(texts)
@settings(max_examples=400)
def test_filling_in_is_parsing(text: str) -> None:
    assert told(text) == parsed(text)


@given(programs)
@settings(max_examples=50)
def test_filling_in_is_parsing_for_programs_that_are_printed(program: Program) -> None:
    assert told(str(program)) == parsed(str(program))


@pytest.mark.parametrize("statement", STATEMENTS[:8])
def test_every_form_without_a_mistake_is_filled_in(statement: str) -> None:
    with patch.object(Reader, "read", autospec=True, side_effect=Reader.read) as read:
        told(PREFIX + 3 * statement)
    assert read.call_count == 3, "the prefix as a skeleton and as itself, and the form"


def test_the_parser_sees_a_form_once_and_not_a_rule() -> None:
    text = PREFIX + "".join(
        f'ex:C{i}[?x] :- ex:C{i + 1}[?x] .\n#[name("r{i}")]\n  ex:p{i}[?x, ?y] :- <http://a/{i}>[?y, ?x], edge(?x, {i}) .'
        for i in range(500)
    )
    with patch.object(Reader, "read", autospec=True, side_effect=Reader.read) as read:
        program = Program.parse(text)
    assert read.call_count == 4, "two for the prefix, one for each form"
    assert len(program.rules) == 1000 and program.rules[-1].name == "r499"


def test_a_mistake_among_many_rules_has_its_place() -> None:
    good = "ex:C{0}[?x] :- ex:C1{0}[?x], edge(?x, ?x) .\n"
    bad = "  ex:C[?x] :- ex:C[?x], wxyz:D[?x] .\nex:C[?x] :- ex:C1[?x], edge(?x) .\n"
    text = PREFIX + "".join(map(good.format, range(100))) + bad + "".join(map(good.format, range(100)))
    assert told(text) == parsed(text)
    assert [line.partition(" error")[0] for line in told(text)] == ["f:102:25:", "f:103:24:"]


def test_prefixes_hold_from_where_they_stand() -> None:
    statement = "ex:C[?x] :- ex:D[?x] .\n"
    program = Program.parse(PREFIX + statement + "@prefix ex: <urn:ex:> .\n" + statement)
    assert [rule.head.terms[2] for rule in program.rules] == ["<http://example.org/C>", "<urn:ex:C>"]


def test_a_name_that_cannot_be_read_is_a_mistake() -> None:
    with pytest.raises(UserError, match=r"f:2:8: error EG001: not a name: .*unknown escape \\m"):
        Program.parse('p(1) .\n#[name("\\m")] p(?x) :- q(?x) .', "f")


def test_rules_of_one_form_share_their_variables() -> None:
    first, second = Program.parse("p(?x) :- q(?x, 1) . p(?x) :- q(?x, 2) .").rules
    assert isinstance(first, Rule) and first.head.terms[0] is second.head.terms[0]


def test_cost_follows_the_rules_and_not_their_square() -> None:
    def work(rules: int) -> int:
        """Calls, and the characters that they are given, but for the text itself: pieces of it are short."""
        text = PREFIX + "".join(f"ex:C{i}[?x] :- ex:D{i}[?x] ." for i in range(rules))
        done = 0

        def count(frame: FrameType, event: str, _: Any) -> None:
            nonlocal done
            done += event in ("call", "c_call")
            if event == "call":
                done += sum(len(value) for value in frame.f_locals.values() if isinstance(value, str) and value is not text)

        sys.setprofile(count)
        try:
            Program.parse(text)
        finally:
            sys.setprofile(None)
        return done

    work(1)  # which builds the parser
    assert work(4000) < 5 * work(1000)
