"""Read a small university graph, close it, insert one fact, and show what each step made true."""

from __future__ import annotations

from importlib.resources import as_file, files
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from evergraph.graph import KnowledgeGraph
from evergraph.report import Report
from evergraph.rules.model import OWL, RDF, RDFS

INSERTION = "<http://example.org/grace> <http://example.org/headOf> <http://example.org/databases> ."
PREFIXES = {"http://example.org/": ":", RDF: "rdf:", RDFS: "rdfs:", OWL: "owl:"}


def run(engine: str, master: str) -> None:
    """The whole demonstration. With Spark it takes about half a minute, most of it Spark starting."""
    console = Console(width=100, highlight=False)
    where: Any = engine
    if engine == "spark":
        from evergraph.engines.spark import make_session

        console.print(f"Starting Spark ({master}) …")
        where = make_session(master)
    kg = KnowledgeGraph("owl2rl", engine=where)
    console.print(f"\n[bold]1. Read and close[/] a university graph under {len(kg.rules.rules)} OWL 2 RL rules")
    with as_file(files("evergraph.demo").joinpath("university.ttl")) as path:
        report = kg.update(insert=path)
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
    console.print(f"\n{len(kg)} triples hold: {kg.counts('explicit')['[]']} explicit, the rest follow. Every one is kept true.")


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


def _short(term: Any) -> str:
    for namespace, prefix in PREFIXES.items():
        if str(term).startswith(namespace):
            return prefix + str(term)[len(namespace) :]
    return str(term.n3())
