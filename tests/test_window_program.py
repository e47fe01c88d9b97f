"""The maintenance program of a window: Table 6 line by line, and what other programs become."""

from __future__ import annotations

from random import Random

import pytest

from evergraph import Program, UserError
from evergraph.maintain.window_program import BY_RELATION, given, window_program
from evergraph.rules.sources import SETS
from test_cli import EX, Run, run_command, written  # noqa: F401 - a fixture

RULE = '#[name("R")] isIn(?x, ?z) :- isIn(?x, ?y), isIn(?y, ?z) .'
TABLE_6 = """
isIn_New(?x, ?y)[?T] :- isIn(?x, ?y)[?T], NOT isIn(?x, ?y)[?T1], ?T1 = now - 1 .  % Δ1New(isIn)
isIn_New(?x, ?y)[?T] :- isIn_Ins(?x, ?y)[?T], NOT isIn_Old(?x, ?y)[?T] .  % Δ2New(isIn)
isIn_Old(?x, ?y)[?T] :- isIn_Ins(?x, ?y)[?T1], isIn(?x, ?y)[?T], ?T1 > ?T .  % Δ1Old(isIn)
isIn_Old(?x, ?y)[?T] :- isIn_Ins(?x, ?y)[?T1], isIn_Ins(?x, ?y)[?T], ?T1 > ?T .  % Δ2Old(isIn)
isIn_Minus(?x, ?y)[?T1] :- isIn(?x, ?y)[?T1], ?T1 = now - 1, NOT isIn_Ins(?x, ?y)[?T1] .  % Δ1−(isIn)
isIn_Minus(?x, ?y)[?T] :- isIn_Old(?x, ?y)[?T] .  % Δ2−(isIn)
isIn_PlusPlus(?x, ?y)[?T] :- isIn_New(?x, ?y)[?T], NOT isIn(?x, ?y)[?T1] .  % Δ++(isIn)
isIn_Plus(?x, ?y)[?T] :- isIn_PlusPlus(?x, ?y)[?T], NOT isIn_Old(?x, ?y)[?T1] .  % Δ+(isIn)
isIn_Ins(?x, ?z)[?T] :- isIn_Ins(?x, ?y)[?T1], isIn_New(?y, ?z)[?T2], ?T = min(?T1, ?T2) .  % ΔIns(R)
isIn_Ins(?x, ?z)[?T] :- isIn_New(?x, ?y)[?T1], isIn_Ins(?y, ?z)[?T2], ?T = min(?T1, ?T2) .  % ΔIns(R)
""".strip().splitlines()
FUNCTIONS = list(BY_RELATION)


def lines_of(text: str) -> list[str]:
    return window_program(Program.parse(text)).splitlines()


def rewritten(text: str) -> list[str]:
    """The lines that a program's rules become, without their names."""
    return [line.partition("  %")[0] for line in lines_of(text) if "% ΔIns" in line]


# -- the paper ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(10), ids=[*FUNCTIONS, "ΔIns, first", "ΔIns, second"])
def test_barbieri_2010_table_6(number: int) -> None:
    """In our spelling; of Δ1− the paper prints the head with a T that nothing binds."""
    assert lines_of(RULE)[number] == TABLE_6[number]


def test_barbieri_2010_table_6_has_no_other_lines() -> None:
    assert len(lines_of(RULE)) == len(TABLE_6)


Timed = set[tuple[str, str, int]]


def step(before: Timed, enters: Timed, now: int, same_time: bool) -> Timed:
    """Table 6 evaluated, from the latest time to the earliest; with `same_time`, what Δ1New, Δ++ and Δ+ negate has time T."""
    ins, new = set(enters), Timed()

    def is_old(x: str, y: str, time: int) -> bool:
        return any((x, y) == (a, b) and later > time for a, b, later in ins)

    for time in sorted({t for *_, t in before | enters}, reverse=True):
        while True:
            now_new = {(x, y, t) for x, y, t in before if t == time != now - 1 and (same_time or (x, y, now - 1) not in before)}
            now_new |= {(x, y, t) for x, y, t in ins if t == time and not is_old(x, y, t)}
            new |= now_new
            joins = {(x, z, min(s, t)) for x, y, s in ins for a, z, t in new if a == y}
            joins |= {(x, z, min(s, t)) for x, y, s in new for a, z, t in ins if a == y}
            if {fact for fact in joins if fact[2] >= time} <= ins:
                break
            ins |= {fact for fact in joins if fact[2] >= time}
    old = {fact for fact in before | ins if is_old(*fact)}
    minus = {fact for fact in before if fact[2] == now - 1} | old
    if same_time:
        plus = new - before - old
    else:
        pairs, olds = {(x, y) for x, y, _ in before}, {(x, y) for x, y, _ in old}
        plus = {(x, y, t) for x, y, t in new if (x, y) not in pairs and (x, y) not in olds}
    return (before - minus) | plus


def latest(facts: Timed) -> dict[tuple[str, str], int]:
    return {(x, y): max(t for a, b, t in facts if (a, b) == (x, y)) for x, y, _ in facts}


def closed(explicit: Timed) -> dict[tuple[str, str], int]:
    """The latest time of each pair: that at which the last path between them breaks."""
    found: dict[tuple[str, str], int] = {}
    for time in sorted({t for *_, t in explicit}):
        pairs = {(x, y) for x, y, t in explicit if t >= time}
        while more := {(x, z) for x, y in pairs for a, z in pairs if a == y} - pairs:
            pairs |= more
        found |= dict.fromkeys(pairs, time)
    return found


FIGURE_4 = {1: ["AB"], 2: ["BC"], 3: ["CD"], 4: ["AE", "ED"]}


def test_barbieri_2010_figure_4() -> None:
    facts = Timed()
    for now in range(1, 16):
        facts = step(facts, {(a, b, now + 10) for a, b in FIGURE_4.get(now, [])}, now, same_time=True)
        explicit = {(a, b, t) for a, b, t in facts if a + b in FIGURE_4.get(t - 10, [])}
        assert facts == {(*pair, t) for pair, t in closed(explicit).items()}
        if now == 3:
            assert ("A", "D", 11) in facts
        if now == 4:
            assert ("A", "D", 14) in facts and ("A", "D", 11) not in facts
    assert facts == set()


def test_taken_at_its_word_table_6_loses_a_fact_that_is_derived_for_longer() -> None:
    facts = Timed()
    for now in range(1, 5):
        facts = step(facts, {(a, b, now + 10) for a, b in FIGURE_4.get(now, [])}, now, same_time=False)
    assert not any((x, y) == ("A", "D") for x, y, _ in facts)


@pytest.mark.parametrize("seed", range(20))
def test_with_the_same_time_under_its_negations_table_6_keeps_windows_true(seed: int) -> None:
    draw, facts, explicit = Random(seed), Timed(), Timed()
    for now in range(1, 25):
        enters = {(draw.choice("ABCDEF"), draw.choice("ABCDEF"), now + draw.randrange(8)) for _ in range(draw.randrange(4))}
        explicit = {fact for fact in explicit if fact[2] >= now} | enters
        facts = step(facts, enters, now, same_time=True)
        assert latest(facts) == closed(explicit)


# -- other programs ----------------------------------------------------------------------------------------------------


def test_all_relations_have_their_functions_and_each_atom_its_rule() -> None:
    text = """
        #[name("R")] near(?x, ?y) :- isIn(?x, ?z), isIn(?y, ?z), open(?z), ?x != ?y, ?x < 5 .
        [?x, rdf:type, ?c] :- [?p, rdfs:domain, ?c], [?x, ?p, ?y] .
    """
    lines = lines_of(text)
    names = [line.partition("  % ")[2] for line in lines]
    relations = ["near", "isIn", "open", "t"]
    assert names[:32] == [f"{function}({name})" for name in relations for function in FUNCTIONS]
    assert names[32:] == ["ΔIns(R)"] * 3 + ["ΔIns(R2)"] * 2
    assert lines[-3].startswith(
        "near_Ins(?x, ?y)[?T] :- isIn_New(?x, ?z)[?T1], isIn_New(?y, ?z)[?T2], open_Ins(?z)[?T3], "
        "?x != ?y, ?x < 5, ?T = min(?T1, ?T2, ?T3) ."
    )
    assert lines[-2].startswith(
        "t_Ins(?x, rdf:type, ?c)[?T] :- t_Ins(?p, rdfs:domain, ?c)[?T1], t_New(?x, ?p, ?y)[?T2], ?T = min(?T1, ?T2) ."
    )
    assert "t_Minus(?x, ?y, ?z)[?T] :- t_Old(?x, ?y, ?z)[?T] .  % Δ2−(t)" in lines
    assert given(Program.parse(text)) == [*relations, *(f"{name}_Ins" for name in relations)]


def test_a_comparison_stays_where_it_stands_and_is_given_no_time() -> None:
    assert rewritten("p(?x) :- ?x > 1, q(?x), ILLTYPED(?x, ?d), r(?d) .") == [
        "p_Ins(?x)[?T] :- ?x > 1, q_Ins(?x)[?T1], ILLTYPED(?x, ?d), r_New(?d)[?T2], ?T = min(?T1, ?T2) .",
        "p_Ins(?x)[?T] :- ?x > 1, q_New(?x)[?T1], ILLTYPED(?x, ?d), r_Ins(?d)[?T2], ?T = min(?T1, ?T2) .",
    ]


def test_a_single_atom_and_none() -> None:
    assert rewritten("p(?x) :- q(?x) .") == ["p_Ins(?x)[?T] :- q_Ins(?x)[?T1], ?T = min(?T1) ."]
    assert rewritten("p(1) :- 1 < 2 .") == []
    assert lines_of("p(1) .") == []


def test_more_arguments_than_letters_and_none() -> None:
    lines = lines_of("flag() :- p(?a, ?b, ?c, ?d) .")
    assert "p_Minus(?x1, ?x2, ?x3, ?x4)[?T] :- p_Old(?x1, ?x2, ?x3, ?x4)[?T] .  % Δ2−(p)" in lines
    assert "flag_Minus()[?T] :- flag_Old()[?T] .  % Δ2−(flag)" in lines


def test_prefixes_come_first_and_shorten() -> None:
    lines = lines_of(f"@prefix ex: <{EX}> . ex:isIn[?x, ?z] :- ex:isIn[?x, ?y], ex:isIn[?y, ?z] .")
    assert lines[0] == f"@prefix ex: <{EX}> ."
    assert lines[-1].startswith("t_Ins(?x, ex:isIn, ?z)[?T] :- t_New(?x, ex:isIn, ?y)[?T1], t_Ins(?y, ex:isIn, ?z)[?T2], ")


@pytest.mark.parametrize(
    ("named", "time"), [("?T", "?T_"), ("?T1", "?T_"), ("?T12", "?T_"), ("?T_", "?T"), ("?Train", "?T"), ("?t", "?T")]
)
def test_times_have_variables_of_their_own(named: str, time: str) -> None:
    assert rewritten(f"p({named}) :- q({named}) .") == [
        f"p_Ins({named})[{time}] :- q_Ins({named})[{time}1], {time} = min({time}1) ."
    ]


def test_times_avoid_all_names_of_the_program() -> None:
    made = rewritten("p(?T) :- q(?T) . p(?y) :- q(?y), r(?T_1), ?y != ?T_1 .")
    assert made[0] == "p_Ins(?T)[?T__] :- q_Ins(?T)[?T__1], ?T__ = min(?T__1) ."


def test_relations_avoid_those_of_the_program() -> None:
    lines = lines_of("t(?x) :- p_Ins(?x) . [?x, ?x, ?x] :- t(?x) . p_Ins(?x) :- p(?x) .")
    assert {"p__Old", "p_Ins__New", "p_Ins__Ins", "t__Ins", "t___Ins"} <= {line.partition("(")[0] for line in lines}
    assert any(line.startswith("t___Ins(?x, ?x, ?x)[?T] :- t__Ins(?x)[?T1]") for line in lines)


def test_a_name_of_two_lines_stays_in_its_comment() -> None:
    assert lines_of('#[name("one\\n two")] p(?x) :- q(?x) .')[-1].endswith("  % ΔIns(one two)")


@pytest.mark.parametrize("rules", SETS)
def test_rule_sets_have_a_line_for_each_function_and_atom(rules: str) -> None:
    program = Program.load(rules)
    relations = {atom.relation for rule in program.rules for atom in (rule.head, *rule.atoms)}
    atoms = sum(len(rule.atoms) for rule in program.rules)
    assert len(window_program(program).splitlines()) == 8 * len(relations) + atoms


def test_negation_is_refused_by_name_and_place() -> None:
    program = Program.parse(f"{RULE}\nout(?x) :- isIn(?x, ?y), NOT train(?x) .", "a.dlog")
    with pytest.raises(UserError) as caught:
        window_program(program)
    assert str(caught.value) == (
        "a.dlog:2:1: error EG606: negation has no expiry: out(?x) :- isIn(?x, ?y), NOT train(?x) . "
        "(hint: leave out NOT, or maintain the window by another algorithm: auto finds one)"
    )


def test_all_negations_are_refused_at_once_by_their_names() -> None:
    text = '#[name("A")] p(?x) :- q(?x), NOT r(?x) . #[name("B")] s(?x) :- p(?x), NOT r(?x) .'
    with pytest.raises(UserError) as caught:
        window_program(Program.parse(text))
    assert [(m.code, m.message) for m in caught.value.mistakes] == [
        ("EG606", "negation has no expiry: rule A"),
        ("EG606", "negation has no expiry: rule B"),
    ]
    assert all(m.position for m in caught.value.mistakes)


def test_a_negated_built_in_is_a_comparison() -> None:
    assert rewritten("p(?x, ?y) :- q(?x), q(?y), NOT SAMEVALUE(?x, ?y) .")[0] == (
        "p_Ins(?x, ?y)[?T] :- q_Ins(?x)[?T1], q_New(?y)[?T2], NOT SAMEVALUE(?x, ?y), ?T = min(?T1, ?T2) ."
    )


# -- the command -------------------------------------------------------------------------------------------------------


def test_rules_maintenance_window_prints_table_6(run: Run) -> None:
    ended = run("rules", "maintenance", written("is-in.dlog", RULE), "--window")
    assert (ended.code, ended.out.splitlines()) == (0, ["% given: now, isIn, isIn_Ins", *TABLE_6])


def test_rules_maintenance_window_takes_rule_sets_and_refuses_negation_and_changes(run: Run) -> None:
    assert run("rules", "maintenance", "rhodf", "--window").out.splitlines()[0] == "% given: now, t, t_Ins"
    refused = run("rules", "maintenance", written("not.dlog", "p(?x) :- q(?x), NOT r(?x) ."), "--window")
    assert (refused.code, refused.out) == (2, "")
    assert refused.mistakes[0].partition(": ")[2].startswith("error EG606: negation has no expiry: p(?x) :- q(?x), NOT r(?x) .")
    both = run("rules", "maintenance", "rhodf", "--window", "--from", "rdfs")
    assert both.mistakes == ["error EG302: --from and --window do not go together (hint: leave out one of them)"]
