"""Commands that change the rules of a store, and that compare rules: `rules add`, `remove`, `replace` and `diff`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evergraph.cli.common import EngineName, MasterOption, Output, OutputOption, StoreArgument, say
from evergraph.cli.updating import AlgorithmOption, DryRunOption, WhereOption, change, loaded, opened, rule_lines

if TYPE_CHECKING:
    from evergraph.rules.model import Program

RuleFiles = Annotated[list[str], typer.Argument(help="Files of rules, ontologies, or names of rule sets")]
RuleSource = Annotated[
    str, typer.Argument(help="A .dlog file, an ontology, the name of a rule set, a store, or DIR@VERSION for an older version")
]


def add(
    store: StoreArgument,
    file: RuleFiles,
    algorithm: AlgorithmOption = "auto",
    dry_run: DryRunOption = False,
    engine: WhereOption = EngineName.MEMORY,
    master: MasterOption = "local[*]",
    output: OutputOption = Output.TEXT,
) -> None:
    """Put rules in force, draw what follows from them, commit one version. Rules that are there stay as they are."""
    rules = loaded(file)
    change(opened(store, engine, master), store, output, dry_run, insert_rules=rules, algorithm=algorithm)


def remove(
    store: StoreArgument,
    file: RuleFiles,
    algorithm: AlgorithmOption = "auto",
    dry_run: DryRunOption = False,
    engine: WhereOption = EngineName.MEMORY,
    master: MasterOption = "local[*]",
    output: OutputOption = Output.TEXT,
) -> None:
    """Take rules away, and with them what followed from nothing else; commit one version."""
    rules = loaded(file)
    change(opened(store, engine, master), store, output, dry_run, delete_rules=rules, algorithm=algorithm)


def replace(
    store: StoreArgument,
    file: RuleFiles,
    every: Annotated[bool, typer.Option("--all", help="Replace rules that came from an ontology too")] = False,
    algorithm: AlgorithmOption = "auto",
    dry_run: DryRunOption = False,
    engine: WhereOption = EngineName.MEMORY,
    master: MasterOption = "local[*]",
    output: OutputOption = Output.TEXT,
) -> None:
    """Make these the rules of a store: those that differ come and go, in one version."""
    from evergraph.rules.model import ONTOLOGY, Program

    rules = loaded(file)
    kg = opened(store, engine, master)
    old = Program(tuple(rule for rule in kg.rules.rules if every or rule.origin != ONTOLOGY))
    change(kg, store, output, dry_run, insert_rules=rules, delete_rules=old, algorithm=algorithm)


def diff(a: RuleSource, b: RuleSource, output: OutputOption = Output.TEXT) -> None:
    """The rules that only A has (-), and those that only B has (+). Exit code 1 if there are any.

    Rules are the same whatever they and their variables are called. Facts that stand among them do not count.
    """
    from evergraph.rules.shape import shape_of

    before, after = _source(a), _source(b)
    mine, theirs = ({shape_of(rule): rule for rule in program.rules} for program in (before, after))
    gone = rule_lines((rule for key, rule in mine.items() if key not in theirs), before.prefixes)
    come = rule_lines((rule for key, rule in theirs.items() if key not in mine), after.prefixes)
    lines = [f"- {line}" for line in gone] + [f"+ {line}" for line in come]
    if lines or output == Output.JSON:
        say(output, {"same": not lines, "deleted": gone, "inserted": come}, "\n".join(lines))
    raise typer.Exit(1 if lines else 0)


def _source(name: str) -> Program:
    """The rules of a file, a rule set or a version of a store."""
    from evergraph.rules.model import Program
    from evergraph.store import Store
    from evergraph.store.rules import read_rules

    folder, _, version = name.rpartition("@")
    if version.isdecimal() and folder and not Path(name).exists():
        return read_rules(Store(folder).snapshot(int(version))).program
    store = Store(name)
    return read_rules(store.snapshot()).program if store.exists else Program.load(name)
