"""`evergraph update`, `explain` and `rules maintenance`: what they print, what they change, and how they say no."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from evergraph import KnowledgeGraph, Program
from evergraph.maintain.choose import ALGORITHMS
from evergraph.store import Store
from test_cli import EX, SUBCLASS, TYPE, Ended, Run, in_folder, run_command, written  # noqa: F401 - a fixture

STUDENT, PERSON = f"<{EX}Student>", f"<{EX}Person>"
SCHEMA = f"{STUDENT} {SUBCLASS} {PERSON} .\n"
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"


def is_a(name: str, class_: str = STUDENT) -> str:
    return f"<{EX}{name}> {TYPE} {class_} .\n"


@pytest.fixture(name="store")
def store_of_students(run: Run) -> Path:
    """Ann and Bob are students, and so persons; Ann knows someone without a name."""
    data = SCHEMA + is_a("ann") + is_a("bob") + f"<{EX}ann> <{EX}knows> _:x .\n"
    assert run("load", written("data.nt", data), "--rules", "rhodf", "--store", "uni", "--engine", "memory").code == 0
    return Path("uni")


def held(store: Path, facts: str = "all") -> set[str]:
    """The triples of the last version, as lines."""
    blocks = KnowledgeGraph.open(store).blocks(facts)
    return {" ".join(row) + " .\n" for block in blocks for row in zip(*(c.to_pylist() for c in block), strict=True)}


def told(ended: Ended) -> list[str]:
    """What was said, without the time it took."""
    assert (ended.code, ended.mistakes) == (0, [])
    return re.sub(r"\d+\.\d+ s", "T s", ended.out).splitlines()


def refused(run: Run, store: Path, *arguments: object) -> list[str]:
    """The mistakes of a command that leaves the store as it is."""
    before = {path: path.read_bytes() for path in store.rglob("*") if path.is_file() and path.name != ".writer"}
    ended = run(*arguments)
    assert (ended.code, ended.out) == (2, "") and "Traceback" not in ended.err
    assert {path: path.read_bytes() for path in before} == before
    assert Store(store).snapshot().version == 0
    return ended.mistakes


# -- update: files -----------------------------------------------------------------------------------------------------


def test_an_update_is_one_version_and_says_what_it_did(run: Run, store: Path) -> None:
    ended = run("update", store, "--insert", written("cid.nt", is_a("cid")), "-d", written("ann.nt", is_a("ann")))
    assert told(ended) == [
        "inserted 1 explicit and 1 derived facts",
        "deleted 1 explicit and 1 derived facts",
        "dred on memory: 1 of 4 explicit facts are to go; T s; uni is at version 1",
    ]
    assert {fact for fact in held(store) if TYPE in fact} == {
        is_a(name, class_) for name in ("bob", "cid") for class_ in (STUDENT, PERSON)
    }


def test_files_can_be_given_several_times_as_folders_and_as_globs(run: Run, store: Path) -> None:
    Path("more").mkdir()
    names = ("cid", "dee", "eve", "fay")
    for path, name in zip(("more/cid.nt", "x1.nt", "x2.nt", "fay.ttl"), names, strict=True):
        written(path, is_a(name))
    run("update", store, "-i", "more", "-i", "x*.nt", "-i", "fay.ttl")
    assert {is_a(name, PERSON) for name in names} <= held(store, "derived")
    ended = run("update", store, "-d", "more", "-d", "x*.nt", "-d", "fay.ttl")
    assert told(ended)[1] == "deleted 4 explicit and 4 derived facts"
    assert [version.version for version in Store(store).history()] == [2, 1, 0]


def test_facts_of_relations_are_inserted_and_deleted_too(run: Run, store: Path) -> None:
    file = written("edges.dlog", "edge(1, 2) . edge(2, 3) .")
    assert told(run("update", store, "--insert", file))[0] == "inserted 2 explicit and 0 derived facts"
    answer = json.loads(run("update", store, "--delete", file, "--output", "json").out)
    assert answer["deleted"] == {"explicit": {"edge": 2}, "derived": {}}


def test_an_update_in_json(run: Run, store: Path) -> None:
    gone = written("gone.nt", is_a("ann") + is_a("zed") + is_a("bob", PERSON))
    ended = run("update", store, "--delete", gone, "--insert", written("new.nt", is_a("cid")), "--output", "json")
    answer = json.loads(ended.out)
    assert (answer["store"], answer["dry_run"], answer["version"]) == ("uni", False, 1)
    assert answer["inserted"] == {"explicit": {"triples": 1}, "derived": {"triples": 1}}
    assert answer["deleted"] == {"explicit": {"triples": 1}, "derived": {"triples": 1}}
    assert (answer["not_there"], answer["not_explicit"]) == (1, 1)
    assert (answer["algorithm"], answer["engine"]) == ("dred", "memory")


@pytest.mark.parametrize(
    ("gone", "line"),
    [
        (is_a("zed"), "1 fact to delete was not there"),
        (is_a("zed") + is_a("yan"), "2 facts to delete were not there"),
        (is_a("ann", PERSON), "1 fact to delete only follows, and stays: see evergraph explain"),
        (is_a("ann", PERSON) + is_a("bob", PERSON), "2 facts to delete only follow, and stay: see evergraph explain"),
    ],
    ids=["one absent", "two absent", "one derived", "two derived"],
)
def test_what_cannot_be_deleted_is_counted_and_no_mistake(run: Run, store: Path, gone: str, line: str) -> None:
    before = held(store)
    lines = told(run("update", store, "--delete", written("gone.nt", gone)))
    assert lines[:2] == ["inserted 0 explicit and 0 derived facts", "deleted 0 explicit and 0 derived facts"]
    assert lines[2:-1] == [line] and lines[-1].endswith("uni is at version 0")
    assert held(store) == before


def test_what_was_absent_and_what_only_follows_are_told_apart(run: Run, store: Path) -> None:
    gone = written("gone.nt", is_a("zed") + is_a("ann", PERSON))
    assert [line.split(" to delete ")[1] for line in told(run("update", store, "--delete", gone))[2:4]] == [
        "only follows, and stays: see evergraph explain",
        "was not there",
    ]


def test_a_fact_that_is_deleted_and_inserted_stays(run: Run, store: Path) -> None:
    both = written("both.nt", is_a("ann") + is_a("cid"))
    assert told(run("update", store, "--delete", both, "--insert", both))[:2] == [
        "inserted 1 explicit and 1 derived facts",
        "deleted 0 explicit and 0 derived facts",
    ]
    assert {is_a("ann"), is_a("cid")} <= held(store, "explicit")


def test_an_explicit_fact_that_still_follows_stays_as_derived(run: Run, store: Path) -> None:
    fact = written("fact.nt", is_a("ann", PERSON))
    run("update", store, "--insert", fact)
    assert is_a("ann", PERSON) in held(store, "explicit")
    assert told(run("update", store, "--delete", fact))[1] == "deleted 1 explicit and 0 derived facts"
    assert is_a("ann", PERSON) in held(store, "derived")


def test_blank_nodes_to_delete_are_those_that_export_prints(run: Run, store: Path) -> None:
    label = f"<{EX}ann> <{EX}knows> _:x .\n"
    assert "1 fact to delete was not there" in told(run("update", store, "--delete", written("mine.nt", label)))
    (printed,) = (line for line in run("export", store).out.splitlines(keepends=True) if "_:" in line)
    assert told(run("update", store, "--delete", written("its.nt", printed)))[1] == "deleted 1 explicit and 0 derived facts"


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm_gives_the_same_store(run: Run, store: Path, algorithm: str) -> None:
    arguments = ("--delete", written("old.nt", is_a("ann")), "--insert", written("new.nt", is_a("cid")))
    answer = json.loads(run("update", store, *arguments, "--algorithm", algorithm, "--output", "json").out)
    assert answer["algorithm"] == ("dred" if algorithm == "auto" else algorithm)
    assert {fact for fact in held(store, "derived") if TYPE in fact} == {is_a("bob", PERSON), is_a("cid", PERSON)}
    assert run("verify", store).code == 0


def test_the_help_names_every_algorithm(run: Run) -> None:
    words = re.findall(r"[\w-]+", run("update", "--help").out)
    assert [name for name in ALGORITHMS if name not in words] == []


# -- update: dry runs --------------------------------------------------------------------------------------------------


def test_a_dry_run_prints_what_would_change_and_changes_nothing(run: Run, store: Path) -> None:
    before = {path: path.read_bytes() for path in store.rglob("*.json")}
    arguments = ("--delete", written("old.nt", is_a("ann")), "--insert", written("new.nt", is_a("cid")), "--dry-run")
    assert told(run("update", store, *arguments)) == [
        *(f"- {is_a('ann', class_)[:-3]}" for class_ in (PERSON, STUDENT)),
        *(f"+ {is_a('cid', class_)[:-3]}" for class_ in (PERSON, STUDENT)),
        "inserted 1 explicit and 1 derived facts",
        "deleted 1 explicit and 1 derived facts",
        "dred on memory: 1 of 4 explicit facts are to go; T s; nothing was changed",
    ]
    answer = json.loads(run("update", store, *arguments, "--output", "json").out)
    assert (answer["dry_run"], answer["version"], answer["deleted"]["derived"]) == (True, None, {"triples": 1})
    assert {path: path.read_bytes() for path in store.rglob("*.json")} == before


ODD = f"""\
<{EX}a> <{EX}p> "two\\nlines and \\"quotes\\"" .
<{EX}a> <{EX}p> "not a number"^^<{INTEGER}> .
<{EX}a> <{EX}p> "007"^^<{INTEGER}> .
<{EX}a> <{EX}p> "2020-01-01T00:00:00"^^<http://www.w3.org/2001/XMLSchema#dateTime> .
<{EX}a> <{EX}p> "2020-01-01T00:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> .
<{EX}a> <{EX}p> "Zoë"@en .
"""


def test_a_dry_run_prints_a_line_a_triple_whatever_its_terms(run: Run, store: Path) -> None:
    lines = told(run("update", store, "--insert", written("odd.nt", ODD), "--dry-run"))
    assert lines[:-3] == [f"+ {line[:-2]}" for line in sorted(ODD.splitlines())]


@pytest.mark.parametrize("command", ["update uni --insert odd.nt --dry-run", "query uni 'SELECT ?o { ?s ?p ?o }'"])
def test_values_that_are_none_are_no_tracebacks(run: Run, store: Path, command: str) -> None:
    """rdflib logs each of them, with a stack; as a process, because tests catch what is logged."""
    run("update", store, "--insert", written("odd.nt", ODD))
    run("update", store, "--insert", written("odd.nt", ODD.replace("/a>", "/b>")), "--output", "json")
    written("odd.nt", ODD.replace("/a>", "/c>"))
    words = [word.strip("'") for word in re.findall(r"'[^']*'|\S+", command)]
    code = "from evergraph.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
    assert "not a number" in done.stdout
    assert [line for line in done.stderr.splitlines() if not line.endswith("…")] == []


# -- update: patches ---------------------------------------------------------------------------------------------------


def test_a_patch_with_prefixes_and_transactions(run: Run, store: Path) -> None:
    patch = f"""
        # from a log of changes
        H id <urn:uuid:1> .
        TX .
        PA ex: <{EX}> .
        D ex:ann {TYPE} ex:Student .
        A ex:cid {TYPE} ex:Student .
        TC .
        TX .
        A ex:eve {TYPE} ex:Student .
        TA .
        TX .
        PD ex: .
        {"A " + is_a("dee")}
        TC .
    """
    assert told(run("update", store, "--patch", written("change.rdfp", patch)))[:2] == [
        "inserted 2 explicit and 2 derived facts",
        "deleted 1 explicit and 1 derived facts",
    ]
    assert {fact for fact in held(store) if PERSON in fact} == {SCHEMA, *(is_a(name, PERSON) for name in ("bob", "cid", "dee"))}


def test_lines_of_a_patch_and_patches_take_effect_in_their_order(run: Run, store: Path) -> None:
    first = written("1.rdfp", f"A {is_a('cid')}D {is_a('cid')}D {is_a('ann')}A {is_a('ann')}D {is_a('bob')}A {is_a('dee')}")
    second = written("2.rdfp", f"A {is_a('bob')}D {is_a('dee')}A {is_a('eve')}")
    ended = run("update", store, "--patch", first, "-p", second, "--dry-run")
    assert [line for line in told(ended) if STUDENT in line] == [f"+ {is_a('eve')[:-3]}"]
    ended = run("update", store, "--patch", second, "-p", first, "--dry-run")
    changed = [f"- {is_a('bob')[:-3]}", f"+ {is_a('dee')[:-3]}", f"+ {is_a('eve')[:-3]}"]
    assert [line for line in told(ended) if STUDENT in line] == changed


def test_a_patch_that_says_nothing_is_a_mistake(run: Run, store: Path) -> None:
    (line,) = refused(run, store, "update", store, "--patch", written("empty.rdfp", f"TX .\nA {is_a('cid')}TA .\n"))
    assert line.startswith("error EG302: nothing to insert or delete (hint: ")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (f"TX .\nA {is_a('cid')}A <{EX}a> <{EX}p> oops .\n", "3:49"),
        (f"A {is_a('cid')}X whatever .\n", "2:1"),
        (f"D <{EX}a> .\n", "1:26"),
        (f"A {is_a('cid').strip()} {is_a('dee')}", f"1:{len(is_a('cid')) + 3}"),
    ],
    ids=["a bad term", "an unknown line", "one term", "two triples"],
)
def test_a_bad_patch_is_one_line_with_its_place_and_changes_nothing(run: Run, store: Path, text: str, place: str) -> None:
    (line,) = refused(run, store, "update", store, "--patch", written("bad.rdfp", text))
    assert line.startswith(f"bad.rdfp:{place}: error EG103: malformed line: ") and " (hint: " in line


def test_every_mistake_of_a_patch_is_told(run: Run, store: Path) -> None:
    patch = written("bad.rdfp", f"oops\nA {is_a('cid')}A nothing\nD <{EX}a> .\n")
    lines = refused(run, store, "update", store, "--patch", patch)
    assert [line.split(":")[1] for line in lines] == ["1", "3", "4"]


def test_a_patch_comes_alone(run: Run, store: Path) -> None:
    """Files and lines of a patch have no order among each other, and blank nodes of both mean different things."""
    patch, file = written("change.rdfp", f"A {is_a('cid')}"), written("file.nt", is_a("dee"))
    for option in ("--insert", "--delete"):
        (line,) = refused(run, store, "update", store, "--patch", patch, option, file)
        assert line.startswith("error EG302: --patch and ") and "(hint: " in line


# -- update: mistakes --------------------------------------------------------------------------------------------------

MISTAKES: dict[str, tuple[list[str], str]] = {
    "nothing to do": (["update", "uni"], "error EG302: nothing to insert or delete"),
    "a missing file": (["update", "uni", "--insert", "gone.nt"], "error EG101: no such file: gone.nt"),
    "a missing patch": (["update", "uni", "--patch", "gone.rdfp"], "error EG101: cannot read gone.rdfp"),
    "a bad line": (["update", "uni", "--insert", "good.nt", "--insert", "bad.nt"], "bad.nt:2:1: error EG103: malformed line"),
    "a bad line to delete": (["update", "uni", "--delete", "bad.nt"], "bad.nt:2:1: error EG103: malformed line"),
    "a rule": (["update", "uni", "--insert", "rule.dlog"], "rule.dlog:1:1: error EG105: a rule stands among the facts"),
    "an algorithm": (["update", "uni", "--insert", "good.nt", "--algorithm", "magic"], "error EG302: no algorithm is called"),
    "no store": (["update", "nowhere", "--insert", "good.nt"], "error EG401: no store at nowhere"),
    "a fact that is not there": (
        ["explain", "uni", f"<{EX}ann>", "a", f"<{EX}Dog>"],
        f"error EG303: <{EX}Dog>[<{EX}ann>] does not hold (hint: no fact or rule mentions <{EX}Dog>)",
    ),
    "a fact that does not follow": (
        ["explain", "uni", PERSON, "a", PERSON],
        f"error EG303: {PERSON}[{PERSON}] does not hold (hint: ",
    ),
    "not a term": (["explain", "uni", "ann", "a", PERSON], "error EG001: not a fact: [ann, a, "),
    "a variable": (["explain", "uni", "?x", "a", PERSON], "error EG003: "),
    "an unknown prefix": (["explain", "uni", "ex:ann", "a", PERSON], "error EG002: "),
    "an unknown version": (["explain", "uni", f"<{EX}ann>", "a", PERSON, "--version", "7"], "error EG405: uni has no"),
    "an unknown rule set": (["rules", "maintenance", "rdfz"], "error EG007: no rule set is called 'rdfz'"),
    "a folder to export to": (["export", "uni", "--to", "."], "error EG101: cannot write ."),
    "no folder to export to": (["export", "uni", "--format", "ttl", "--to", "no/x.ttl"], "error EG101: cannot write no/x.ttl"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_line_and_the_store_is_as_it_was(run: Run, store: Path, mistake: str) -> None:
    arguments, start = MISTAKES[mistake]
    for name, text in {"good.nt": is_a("cid"), "bad.nt": is_a("cid") + "oops\n", "rule.dlog": "p(?x) :- q(?x) ."}.items():
        written(name, text)
    before = in_folder()
    (line,) = refused(run, store, *arguments)
    assert line.startswith(start) and " (hint: " in line
    assert in_folder() == before


# -- explain -----------------------------------------------------------------------------------------------------------


def test_explain_prints_a_proof(run: Run, store: Path) -> None:
    assert told(run("explain", store, f"<{EX}ann>", "a", PERSON)) == [
        f"{PERSON}[<{EX}ann>]  by rdfs9",
        f"├─ rdfs:subClassOf[{STUDENT}, {PERSON}]  explicit",
        f"└─ {STUDENT}[<{EX}ann>]  explicit",
    ]
    assert told(run("explain", store, f"<{EX}ann>", "rdf:type", STUDENT)) == [f"{STUDENT}[<{EX}ann>]  explicit"]


def test_explain_prints_every_instance(run: Run, store: Path) -> None:
    more = written("more.nt", f"<{EX}Member> {SUBCLASS} {PERSON} .\n" + is_a("ann", f"<{EX}Member>"))
    run("update", store, "--insert", more)
    lines = told(run("explain", store, f"<{EX}ann>", "a", PERSON, "--all"))
    assert lines[0] == f"{PERSON}[<{EX}ann>]  derived in 2 ways"
    assert {line.split("[")[0].split()[-1] for line in lines if f"[<{EX}ann>]  explicit" in line} == {STUDENT, f"<{EX}Member>"}
    run("update", store, "--insert", written("person.nt", is_a("ann", PERSON)))
    assert run("explain", store, f"<{EX}ann>", "a", PERSON, "--all").out.startswith(
        f"{PERSON}[<{EX}ann>]  explicit, and derived in 2 ways\n"
    )
    assert told(run("explain", store, f"<{EX}ann>", "a", PERSON, "--all", "--version", 0))[0].endswith("derived in one way")


@pytest.mark.parametrize("options", [[], ["--all"]], ids=["one proof", "all"])
def test_explain_in_json(run: Run, store: Path, options: list[str]) -> None:
    answer = json.loads(run("explain", store, f"<{EX}ann>", "a", PERSON, *options, "--output", "json").out)
    assert answer["fact"] == f"{PERSON}[<{EX}ann>]"
    premises = [f"rdfs:subClassOf[{STUDENT}, {PERSON}]", f"{STUDENT}[<{EX}ann>]"]
    assert answer["steps"] == [{"fact": answer["fact"], "rule": "rdfs9", "premises": premises, "absent": []}]
    assert {row["fact"]: row["kind"] for row in answer["facts"]} == {
        answer["fact"]: "derived",
        **dict.fromkeys(premises, "explicit"),
    }


def test_explain_takes_terms_of_every_kind(run: Run, store: Path) -> None:
    terms = ["1", '"two\\nlines"', '"Zoë"@en', "true", f"<{EX}ann>"]
    spelled = [f'"1"^^<{INTEGER}>', *terms[1:3], '"true"^^<http://www.w3.org/2001/XMLSchema#boolean>', terms[4]]
    run("update", store, "--insert", written("new.nt", "".join(f"<{EX}ann> <{EX}has> {term} .\n" for term in spelled)))
    (blank,) = {line.split()[2] for line in held(store) if "_:" in line}
    for term in terms:
        assert len(told(run("explain", store, f"<{EX}ann>", f"<{EX}has>", term))) == 1
    assert told(run("explain", store, f"<{EX}ann>", f"<{EX}knows>", blank)) == [f"<{EX}knows>[<{EX}ann>, {blank}]  explicit"]


# -- rules maintenance -------------------------------------------------------------------------------------------------


def test_rules_maintenance_prints_the_program_of_volz_section_3_2(run: Run) -> None:
    rule = '#[name("R2")] [?a, rdfs:subClassOf, ?c] :- [?b, rdfs:subClassOf, ?c], [?a, rdfs:subClassOf, ?b] .'
    lines = told(run("rules", "maintenance", written("volz.dlog", rule)))
    assert lines[0] == "% given: t_ext_Del, t, t_ext_New, t_ext_Ins"
    assert dict(zip(lines[1::2], lines[2::2], strict=True)) == {
        f'#[name("{name}")]': f"{text} ."
        for name, text in {
            "t ext D1": "t_Del(?x, ?y, ?z) :- t_ext_Del(?x, ?y, ?z)",
            "R2 D1": "t_Del(?a, rdfs:subClassOf, ?c) :- t_Del(?b, rdfs:subClassOf, ?c), t(?a, rdfs:subClassOf, ?b)",
            "R2 D2": "t_Del(?a, rdfs:subClassOf, ?c) :- t(?b, rdfs:subClassOf, ?c), t_Del(?a, rdfs:subClassOf, ?b)",
            "t ext R": "t_Red(?x, ?y, ?z) :- t_Del(?x, ?y, ?z), t_ext_New(?x, ?y, ?z)",
            "R2 R": "t_Red(?a, rdfs:subClassOf, ?c) :- "
            "t_Del(?a, rdfs:subClassOf, ?c), t_New(?b, rdfs:subClassOf, ?c), t_New(?a, rdfs:subClassOf, ?b)",
            "t ext I1": "t_Ins(?x, ?y, ?z) :- t_ext_Ins(?x, ?y, ?z)",
            "R2 I1": "t_Ins(?a, rdfs:subClassOf, ?c) :- t_Ins(?b, rdfs:subClassOf, ?c), t_New(?a, rdfs:subClassOf, ?b)",
            "R2 I2": "t_Ins(?a, rdfs:subClassOf, ?c) :- t_New(?b, rdfs:subClassOf, ?c), t_Ins(?a, rdfs:subClassOf, ?b)",
            "t N1": "t_New(?x, ?y, ?z) :- t(?x, ?y, ?z), NOT t_Del(?x, ?y, ?z)",
            "t N2": "t_New(?x, ?y, ?z) :- t_Red(?x, ?y, ?z)",
            "t N3": "t_New(?x, ?y, ?z) :- t_Ins(?x, ?y, ?z)",
            "t P": "t_Plus(?x, ?y, ?z) :- t_Ins(?x, ?y, ?z), NOT t(?x, ?y, ?z)",
            "t M": "t_Minus(?x, ?y, ?z) :- t_Del(?x, ?y, ?z), NOT t_Ins(?x, ?y, ?z), NOT t_Red(?x, ?y, ?z)",
        }.items()
    }


def test_rules_maintenance_has_the_size_that_volz_section_3_3_says(run: Run) -> None:
    """Two for each atom of a body, one for each rule, and five; the link to the explicit facts is a rule with one atom."""
    axioms = Program.load("rdfs")
    rules, atoms = len(axioms.rules) + 1, sum(len(rule.atoms) for rule in axioms.rules) + 1
    ended = run("rules", "maintenance", "rdfs")
    printed = Program.parse(ended.out)
    assert len(printed.rules) == 2 * atoms + rules + 5
    assert len({rule.name for rule in printed.rules}) == len(printed.rules)
