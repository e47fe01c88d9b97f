"""A small university graph in a store: insert a fact, delete one, add a rule; what each made true, and why; ask, verify.

On the way, beside the store: two names turn out to be one person's, and part again; someone is in a room for a while; updates
overlap."""

from __future__ import annotations

import re
from importlib.resources import as_file, files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from evergraph.graph import KnowledgeGraph
from evergraph.report import Report
from evergraph.rules.model import OWL, RDF, RDFS
from evergraph.store import Store

QUESTION = """PREFIX : <http://example.org/>
SELECT ?who ?what WHERE { ?who :memberOf ?what } ORDER BY ?who ?what"""
INSERTION = "<http://example.org/grace> <http://example.org/headOf> <http://example.org/databases> ."
DELETION = "<http://example.org/grace> <http://example.org/advisor> <http://example.org/alan> ."
RULE = """@prefix : <http://example.org/> .
:colleague[?x, ?y] :- :memberOf[?x, ?z], :memberOf[?y, ?z], ?x != ?y ."""
MAIL = """@prefix : <http://example.org/> .
[:mail, a, owl:InverseFunctionalProperty] . [:ada, :mail, "ada@example.org"] . [:countess, :wrote, :notes] ."""
SAME_MAIL = '<http://example.org/countess> <http://example.org/mail> "ada@example.org" .'
WHERE = """REGISTER QUERY where COMPUTE EVERY 1s AS PREFIX : <http://example.org/>
SELECT ?who ?group FROM STREAM :doors [RANGE 3s STEP 1s] WHERE { ?who :isIn ?room . ?who :memberOf ?group }"""
ENTERS = "<http://example.org/grace> <http://example.org/isIn> <http://example.org/library> ."
HEADS = "<http://example.org/alan> <http://example.org/headOf> <http://example.org/databases> ."
OTHER = "<http://example.org/student{}> <http://example.org/advisor> <http://example.org/ada> ."
STAYS = ("<http://example.org/grace>", f"<{RDF}type>", "<http://example.org/Person>")
PREFIXES = {"http://example.org/": ":", RDF: "rdf:", RDFS: "rdfs:", OWL: "owl:"}


def run(engine: str, master: str) -> None:
    """The whole demonstration. With Spark it takes about half a minute, most of it Spark starting."""
    console = Console(width=100, highlight=False)
    where: Any = engine
    if engine == "spark":
        from evergraph.engines.spark import make_session

        console.print(f"Starting Spark ({master}) …")
        where = make_session(master)
    with (
        TemporaryDirectory(prefix="evergraph-demo-") as folder,
        as_file(files("evergraph.demo").joinpath("university.ttl")) as data,
    ):
        _steps(console, where, f"{folder}/university", data)


def _steps(console: Console, engine: Any, store: str, data: Path) -> None:
    kg = KnowledgeGraph("owl2rl", engine=engine, store=store, equality="off")
    console.print(f"\n[bold]1. Load[/] a university graph into a store, under {len(kg.rules.rules)} OWL 2 RL rules")
    report = kg.update(insert=data, operation="load")
    _summary(console, report)
    console.print("   People and what follows about them:")
    _people(console, kg)
    console.print("\n[bold]2. Insert one fact[/]   :grace :headOf :databases")
    report = kg.update(insert=INSERTION)
    _summary(console, report)
    console.print("   What it changed:")
    explicit = set(kg.explicit)
    for triple in sorted(report.inserted.triples):
        note = "" if triple in explicit else "   follows"
        console.print(Text(f"   + {_show(triple)}{note}", style="green"))
    console.print("\n[bold]3. Delete one fact[/]   :grace :advisor :alan")
    report = kg.update(delete=DELETION)
    console.print(f"   {report.algorithm}: {report.derivations} derivations, {report.seconds:.2f} s; what it changed:")
    for triple in sorted(report.deleted.triples):
        note = "" if triple[1].endswith("advisor") else "   followed"
        console.print(Text(f"   - {_show(triple)}{note}", style="red"))
    reader = KnowledgeGraph.open(store)
    console.print("   She is a person still, and this is why:")
    for line in str(reader.explain(STAYS)).splitlines():
        console.print(Text(f"   {_shorten(line)}"))
    console.print("\n[bold]4. Add one rule[/]   " + RULE.splitlines()[-1].strip())
    report = kg.update(insert_rules=RULE)
    console.print(f"   {report.algorithm}: {report.derivations} derivations, {report.seconds:.2f} s; what it changed:")
    for triple in sorted(report.inserted.triples):
        console.print(Text(f"   + {_show(triple)}   follows", style="green"))
    _two_names(console, data)
    reader = KnowledgeGraph.open(store)
    _stream(console, reader)
    _overlap(console, data)
    console.print("\n[bold]8. Ask the store[/] in SPARQL: who is a member of what?")
    for row in reader.query(QUESTION):
        console.print(f"   {_short(row.who)}  {_short(row.what)}")
    console.print("\n[bold]9. Versions, and the proof[/]")
    for version in Store(store).history():
        explicit_count, derived = sum(version.info.explicit.values()), sum(version.info.derived.values())
        console.print(
            f"   version {version.version}: {version.info.operation}, {explicit_count} explicit, {derived} derived facts"
        )
    console.print(f"   recomputed from scratch: all {reader.verify()} facts are the same. Every one is kept true.")


def _two_names(console: Console, data: Path) -> None:
    kg = KnowledgeGraph("owl2rl")
    kg.update(insert=data)
    kg.update(insert=MAIL)
    console.print('\n[bold]5. One person, two names[/]   :countess :mail "ada@example.org", and an address is one person\'s')
    report = kg.update(insert=SAME_MAIL)
    for triple in sorted(report.inserted.triples):
        if triple[0] != triple[2] and _short(triple[0]) in (":ada", ":countess"):
            note = "" if triple[1].endswith("mail") else "   follows"
            console.print(Text(f"   + {_show(triple)}{note}", style="green"))
    report = kg.update(delete=SAME_MAIL)
    console.print(
        f"   Deleted again: the names part by {report.algorithm}, {report.deleted.derived['[]']} facts that followed are gone."
    )


def _stream(console: Console, kg: KnowledgeGraph) -> None:
    console.print("\n[bold]6. Watch a stream[/]   :grace :isIn :library, seen in seconds 1 and 3, in a window of three seconds")
    stream = kg.stream()
    stream.register(WHERE)
    for second in (1, 3):
        stream.push(ENTERS, second)
    for answers in stream.advance(to=8):
        found = sorted({f"{_short(row.who)}, of {_short(row.group)}" for row in answers})
        console.print(f"   second {answers.timestamp}: {'; '.join(found) or 'nobody'}")


def _overlap(console: Console, data: Path) -> None:
    console.print("\n[bold]7. Let updates overlap[/]   :alan :headOf :databases comes, goes and comes again, beside 100 others")
    kg = KnowledgeGraph("rdfs")
    kg.update(insert=data)
    before = len(kg)
    for number in range(100):
        kg.submit(insert=OTHER.format(number))
    tickets = [kg.submit(**{way: HEADS}) for way in ("insert", "delete", "insert")]
    kg.settle()
    found = ", ".join(ticket.status for ticket in tickets)
    console.print(f"   {found}: {len(kg) - before} triples more, and all {kg.verify()} are what one after the other gives.")


def _summary(console: Console, report: Report) -> None:
    explicit, derived = report.inserted.explicit.get("[]", 0), report.inserted.derived.get("[]", 0)
    console.print(
        f"   {explicit} explicit and {derived} derived triples · {report.algorithm} on {report.engine}, "
        f"{report.rounds} rounds, {report.derivations} derivations, {report.seconds:.2f} s"
    )


def _people(console: Console, kg: KnowledgeGraph) -> None:
    explicit = set(kg.explicit)
    table = Table("subject", "predicate", "object", "", box=None, padding=(0, 2, 0, 3), show_header=False)
    for triple in sorted(kg.triples()):
        if triple[0].startswith("http://example.org/") and triple[0].rpartition("/")[2] in ("ada", "alan", "grace"):
            table.add_row(*map(_short, triple), "" if triple in explicit else "follows")
    console.print(table)


def _show(triple: tuple[Any, ...]) -> str:
    return " ".join(map(_short, triple))


def _shorten(text: str) -> str:
    """A proof with prefixed names."""
    for namespace, prefix in PREFIXES.items():
        text = re.sub(f"<{re.escape(namespace)}([^>]*)>", rf"{prefix}\1", text)
    return text


def _short(term: Any) -> str:
    for namespace, prefix in PREFIXES.items():
        if str(term).startswith(namespace):
            return prefix + str(term)[len(namespace) :]
    return str(term.n3())
