"""Commands over files: `materialise`, `check`, and `rules`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from evergraph.cli.common import (
    Data,
    EngineName,
    EngineOption,
    EqualityOption,
    FactsChoice,
    MasterOption,
    OnError,
    OnErrorOption,
    Output,
    OutputOption,
    RulesOption,
    VersionOption,
    check_target,
    count_of,
    many,
    outside_count,
    progress_of,
    rejected_text,
    say,
    session_for,
    tell_outside,
    texts_of,
)
from evergraph.errors import UserError

rules_app = typer.Typer(help="Look at rules, compare them, and change those of a store.", no_args_is_help=True)


def materialise(
    data: Data,
    to: Annotated[Path, typer.Option("--to", "-o", help="The .nt or .nt.gz file to write")],
    rules: RulesOption = "rdfs",
    facts: Annotated[FactsChoice, typer.Option("--facts", help="Which facts to write")] = FactsChoice.ALL,
    equality: EqualityOption = None,
    engine: EngineOption = EngineName.MEMORY,
    master: MasterOption = "local[*]",
    on_error: OnErrorOption = OnError.FAIL,
    output: OutputOption = Output.TEXT,
) -> None:
    """Read files, draw every consequence, write N-Triples."""
    from evergraph.formats import write_ntriples

    if not to.name.endswith((".nt", ".nt.gz")):
        raise UserError("EG102", f"cannot write {to}", "name a file that ends in .nt or .nt.gz")
    check_target(to)
    kg, report, rejected = _build(data, rules, equality, engine, master, on_error, to.with_name("rejected.txt"))
    with progress_of("write"):
        written = write_ntriples(kg.blocks(str(facts)), to)
    answer = {
        "written": written.lines,
        "left_out": written.left_out,
        "file": str(to),
        "rejected": rejected,
        **report.as_dict(),
    }
    say(
        output,
        answer,
        f"{many(report.inserted.explicit)} explicit and {many(report.inserted.derived)} derived facts "
        f"in {report.seconds:.2f} s; wrote {count_of(written.lines, 'triple')} to {to}"
        + (
            f"\n{count_of(written.left_out, 'triple')} about literals left out: N-Triples cannot write them"
            * bool(written.left_out)
        )
        + rejected_text(rejected, to.with_name("rejected.txt")),
    )


def check(
    data: Data,
    rules: RulesOption = "owl2rl",
    equality: EqualityOption = None,
    engine: EngineOption = EngineName.MEMORY,
    master: MasterOption = "local[*]",
    on_error: OnErrorOption = OnError.FAIL,
    output: OutputOption = Output.TEXT,
) -> None:
    """Say whether the data contradicts the rules (relation `inconsistency`). Exit code 1 if it does."""
    kg, _, rejected = _build(data, rules, equality, engine, master, on_error, Path("rejected.txt"))
    found = kg.relation("inconsistency") if "inconsistency" in kg.rules.relations else []
    rows = sorted(texts_of(row) for row in found)
    lines = [f"{row[0].strip(chr(34))}: {' '.join(dict.fromkeys(row[1:]))}" for row in rows]
    say(
        output,
        {"consistent": not rows, "inconsistencies": rows, "rejected": rejected},
        "\n".join([*lines, count_of(len(rows), "inconsistency", "inconsistencies") if rows else "consistent"])
        + rejected_text(rejected, Path("rejected.txt")),
    )
    raise typer.Exit(1 if rows else 0)


@rules_app.command("check")
def rules_check(
    file: Annotated[str, typer.Argument(help="A .dlog file, an ontology or the name of a rule set")],
    output: OutputOption = Output.TEXT,
) -> None:
    """Parse a rule file and report every mistake in it; of an ontology, what rules cannot say."""
    from evergraph.rules.stratify import stratify

    program, outside = _load(file)
    strata = len(stratify(program))
    answer = {"rules": len(program.rules), "facts": len(program.facts), "strata": strata, "relations": program.relations}
    text = f"{file}: {len(program.rules)} rules, {len(program.facts)} facts, {strata} {'stratum' if strata == 1 else 'strata'}"
    if outside is not None:
        answer["outside"] = [asdict(item) for item in outside]
        text += f", {outside_count(outside)}"
    say(output, answer, text)


@rules_app.command("show")
def rules_show(
    file: Annotated[str, typer.Argument(help="A .dlog file, an ontology, the name of a rule set, or the folder of a store")],
    version: VersionOption = None,
) -> None:
    """Print a program in text syntax, includes resolved; of an ontology, also what rules cannot say, on standard error."""
    from evergraph.store import Store
    from evergraph.store.rules import read_rules

    store = Store(file)
    program, outside = (read_rules(store.snapshot(version)).program, None) if store.exists else _load(file)
    typer.echo(str(program), nl=False)
    if outside is not None:
        tell_outside(outside, file)


@rules_app.command("maintenance")
def rules_maintenance(
    file: Annotated[str, typer.Argument(help="A .dlog file or the name of a rule set")],
    before: Annotated[str | None, typer.Option("--from", help="The rules before a change to these")] = None,
    window: Annotated[bool, typer.Option("--window", help="The program of a window, where facts expire")] = False,
) -> None:
    """Print the maintenance program of rules: deletion and rederivation as rules (Volz et al. 2003).

    With --from, that of the change of rules: what has other rules is derived anew. With --window, that of a window over a
    stream: facts have the times at which they expire (Barbieri et al. 2010), and what is printed is for reading only.
    """
    from evergraph.maintain.change_program import rewrite_change
    from evergraph.maintain.window_program import given, window_program
    from evergraph.rules.model import Program

    after = Program.load(file)
    if window:
        if before is not None:
            raise UserError("EG302", "--from and --window do not go together", "leave out one of them")
        text = window_program(after)
        typer.echo(f"% given: now, {', '.join(given(after))}\n{text}", nl=False)
        return
    program = rewrite_change(Program.load(before) if before is not None else after, after)
    derived = {rule.head.relation for rule in program.rules}
    typer.echo(f"% given: {', '.join(name for name in program.relations if name not in derived)}")
    typer.echo(str(program), nl=False)


@rules_app.command("split")
def rules_split(file: Annotated[str, typer.Argument(help="A .dlog file or the name of a rule set")]) -> None:
    """Print rules over split relations: each constant predicate and class has its own (Volz et al. 2003, §4.3)."""
    from evergraph.rules.model import Program
    from evergraph.rules.split import split

    found = split(Program.load(file))
    if found.explicit:
        typer.echo(f"% explicit facts go to: {', '.join(found.explicit)}")
    typer.echo(str(found.program), nl=False)


def _load(file: str) -> tuple[Any, Any]:
    """The program of a file or a rule set; of an ontology, also what falls outside it."""
    from evergraph.rules.model import Program
    from evergraph.rules.sources import is_ontology

    program = Program.load(file)
    return program, program.outside if is_ontology(file) else None


def _build(
    data: list[str], rules: str, equality: str | None, engine: EngineName, master: str, on_error: OnError, rejected: Path
) -> tuple[Any, Any, int]:
    """A graph of the data under the rules, with progress on a terminal."""
    from evergraph.formats import Rejects, expand
    from evergraph.graph import KnowledgeGraph
    from evergraph.rules.equality import equality_of
    from evergraph.rules.model import Program

    program = Program.load(rules)
    equality_of(equality, program)  # a mistake in it is told before Spark starts
    tell_outside(program.outside, rules)
    files = [str(path) for path in expand(data)]
    rejects = Rejects() if on_error == OnError.SKIP else None
    kg = KnowledgeGraph(program, equality=equality, engine=session_for(engine, master))
    with progress_of("read") as progress:
        report = kg.update(insert=files, rejects=rejects, progress=progress)
    if rejects:
        rejects.write(rejected)
    return kg, report, len(rejects or ())
