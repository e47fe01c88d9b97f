"""What commands that change a store share: their options, the update itself, and how it is told.

An update is told as the rules that come and go, with `--dry-run` the facts too, and then in short. Trap: a dry run over a large
store prints a line for every fact that would change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evergraph.cli.common import (
    EngineName,
    Output,
    count_of,
    graph_of,
    many,
    progress_of,
    say,
    session_for,
    tell_outside,
    texts_of,
)

if TYPE_CHECKING:
    from evergraph.graph import KnowledgeGraph
    from evergraph.report import Net, Report
    from evergraph.rules.model import Program, Rule

AlgorithmOption = Annotated[
    str, typer.Option("--algorithm", help="auto, recompute, declarative, dred, counting or backward-forward")
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Say what would change, and change nothing")]
WhereOption = Annotated[EngineName, typer.Option("--engine", help="Where to compute")]


def opened(store: Path, engine: EngineName, master: str) -> KnowledgeGraph:
    """The graph of a store's last version."""
    where = session_for(engine, master)
    with progress_of("open"):
        return graph_of(store, engine=where)


def loaded(files: Iterable[str]) -> Program:
    """The rules, and the facts among them, of several files or rule sets. Cost: linear in them."""
    from evergraph.rules.inputs import read_rules
    from evergraph.rules.model import Program

    return read_rules(map(Program.load, files))


def change(kg: KnowledgeGraph, store: Path, output: Output, dry_run: bool, **given: Any) -> None:
    """Update the graph of a store with what `KnowledgeGraph.update` is given, and tell of it."""
    programs = (kg.rules, *(given[name] for name in ("delete_rules", "insert_rules") if name in given))
    prefixes = {prefix: iri for program in programs for prefix, iri in program.prefixes.items()}
    with progress_of("update") as progress:
        report = kg.update(**given, dry_run=dry_run, progress=progress)
    tell_outside(report.outside, "the ontology")
    gone, come = (rule_lines(rules, prefixes) for rules in (report.rules_deleted, report.rules_inserted))
    lines = [f"- {line}" for line in gone] + [f"+ {line}" for line in come]
    if dry_run:
        lines += sorted(f"- {fact}" for fact in _facts(report.deleted))
        lines += sorted(f"+ {fact}" for fact in _facts(report.inserted))
    lines += _summary(report, store, dry_run)
    answer = {"store": str(store), "dry_run": dry_run, "inserted_rules": come, "deleted_rules": gone, **report.as_dict()}
    say(output, answer, "\n".join(lines))


def rule_lines(rules: Iterable[Rule], prefixes: Mapping[str, str]) -> list[str]:
    """Rules in text syntax without their names, a line each."""
    from evergraph.rules.model import Rule
    from evergraph.rules.printer import print_rule

    return [print_rule(Rule(rule.head, rule.body), prefixes).rstrip("\n") for rule in rules]


def _facts(net: Net) -> Iterator[str]:
    """Triples as N-Triples writes their terms, facts of named relations as rules do."""
    for triple in net.triples:
        yield " ".join(texts_of(triple))
    yield from net.named


def _summary(report: Report, store: Path, dry_run: bool) -> Iterator[str]:
    if report.rules_inserted or report.rules_deleted:
        yield f"inserted {count_of(len(report.rules_inserted), 'rule')}, deleted {count_of(len(report.rules_deleted), 'rule')}"
    for word, net in (("inserted", report.inserted), ("deleted", report.deleted)):
        yield f"{word} {many(net.explicit)} explicit and {many(net.derived)} derived facts"
    missed = report.missed
    if missed.derived:
        only = "only follows, and stays" if missed.derived == 1 else "only follow, and stay"
        yield f"{count_of(missed.derived, 'fact')} to delete {only}: see evergraph explain"
    if missed.absent:
        yield f"{count_of(missed.absent, 'fact')} to delete {'was' if missed.absent == 1 else 'were'} not there"
    end = "nothing was changed" if dry_run else f"{store} is at version {report.version}"
    yield f"{report.algorithm} on {report.engine}: {report.reason}; {report.seconds:.2f} s; {end}"
