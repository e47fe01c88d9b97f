"""The command line. Exit codes: 0 done, 1 the answer is no, 2 a user mistake, one line each and never a traceback.

Nothing heavy is imported before a command needs it: `evergraph --help` answers at once and starts no JVM.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from evergraph.bench.cli import app as bench_app
from evergraph.errors import UserError

Progress = Callable[[str, float], None]

app = typer.Typer(
    help="Evergraph keeps the consequences of rules true while facts and rules change.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
rules_app = typer.Typer(help="Look at rules.", no_args_is_help=True)
app.add_typer(rules_app, name="rules")
app.add_typer(bench_app, name="bench")


class EngineName(StrEnum):
    MEMORY = "memory"
    SPARK = "spark"
    REFERENCE = "reference"


class Output(StrEnum):
    TEXT = "text"
    JSON = "json"


class OnError(StrEnum):
    FAIL = "fail"
    SKIP = "skip"


class FactsChoice(StrEnum):
    ALL = "all"
    EXPLICIT = "explicit"
    DERIVED = "derived"


Data = Annotated[
    list[str], typer.Argument(help="Files, folders or globs: .nt .nq .ttl .trig .rdf .owl .jsonld, also .gz .bz2 .zst")
]
RulesOption = Annotated[
    str, typer.Option("--rules", "-r", help="A rule set (rhodf, rdfs, rdfs-jena, owl2rl, owl2rl-full) or a .dlog file")
]
EngineOption = Annotated[EngineName, typer.Option("--engine", help="Where to compute")]
MasterOption = Annotated[str, typer.Option("--master", help="Spark's master: local[*], spark://…, yarn, k8s://…")]
OutputOption = Annotated[Output, typer.Option("--output", help="How to report")]
OnErrorOption = Annotated[
    OnError, typer.Option("--on-error", help="Bad lines: stop, or skip them and save them to rejected.txt")
]


@app.command()
def materialise(
    data: Data,
    to: Annotated[Path, typer.Option("--to", "-o", help="The .nt or .nt.gz file to write")],
    rules: RulesOption = "rdfs",
    facts: Annotated[FactsChoice, typer.Option("--facts", help="Which facts to write")] = FactsChoice.ALL,
    engine: EngineOption = EngineName.MEMORY,
    master: MasterOption = "local[*]",
    on_error: OnErrorOption = OnError.FAIL,
    output: OutputOption = Output.TEXT,
) -> None:
    """Read files, draw every consequence, write N-Triples."""
    from evergraph.formats import write_ntriples

    if not to.name.endswith((".nt", ".nt.gz")):
        raise UserError("EG102", f"cannot write {to}", "name a file that ends in .nt or .nt.gz")
    if not to.parent.is_dir() or to.is_dir():
        raise UserError("EG101", f"cannot write {to}", "name a file in a folder that exists")
    kg, report, rejected = _build(data, rules, engine, master, on_error, to.with_name("rejected.txt"))
    with _progress("write"):
        written = write_ntriples(kg.blocks(str(facts)), to)
    answer = {
        "written": written.lines,
        "left_out": written.left_out,
        "file": str(to),
        "rejected": rejected,
        **report.as_dict(),
    }
    _say(
        output,
        answer,
        f"{_many(report.inserted.explicit)} explicit and {_many(report.inserted.derived)} derived facts "
        f"in {report.seconds:.2f} s; wrote {_count(written.lines, 'triple')} to {to}"
        + (
            f"\n{_count(written.left_out, 'triple')} about literals left out: N-Triples cannot write them"
            * bool(written.left_out)
        )
        + _rejected_text(rejected, to.with_name("rejected.txt")),
    )


@app.command()
def check(
    data: Data,
    rules: RulesOption = "owl2rl",
    engine: EngineOption = EngineName.MEMORY,
    master: MasterOption = "local[*]",
    on_error: OnErrorOption = OnError.FAIL,
    output: OutputOption = Output.TEXT,
) -> None:
    """Say whether the data contradicts the rules (relation `inconsistency`). Exit code 1 if it does."""
    kg, _, rejected = _build(data, rules, engine, master, on_error, Path("rejected.txt"))
    found = kg.relation("inconsistency") if "inconsistency" in kg.rules.relations else []
    rows = [[term.n3() for term in row] for row in sorted(found)]
    lines = [f"{row[0].strip(chr(34))}: {' '.join(dict.fromkeys(row[1:]))}" for row in rows]
    _say(
        output,
        {"consistent": not rows, "inconsistencies": rows, "rejected": rejected},
        "\n".join([*lines, _count(len(rows), "inconsistency", "inconsistencies") if rows else "consistent"])
        + _rejected_text(rejected, Path("rejected.txt")),
    )
    raise typer.Exit(1 if rows else 0)


@rules_app.command("check")
def rules_check(
    file: Annotated[str, typer.Argument(help="A .dlog file or the name of a rule set")], output: OutputOption = Output.TEXT
) -> None:
    """Parse a rule file and report every mistake in it."""
    from evergraph.rules.model import Program
    from evergraph.rules.stratify import stratify

    program = Program.load(file)
    strata = len(stratify(program))
    answer = {"rules": len(program.rules), "facts": len(program.facts), "strata": strata, "relations": program.relations}
    _say(
        output,
        answer,
        f"{file}: {len(program.rules)} rules, {len(program.facts)} facts, {strata} {'stratum' if strata == 1 else 'strata'}",
    )


@rules_app.command("show")
def rules_show(file: Annotated[str, typer.Argument(help="A .dlog file or the name of a rule set")]) -> None:
    """Print a program in text syntax, includes resolved."""
    from evergraph.rules.model import Program

    typer.echo(str(Program.load(file)), nl=False)


@app.command()
def demo(engine: EngineOption = EngineName.SPARK, master: MasterOption = "local[2]") -> None:
    """A small university graph: read, close, insert, see what changed."""
    from evergraph.demo import run

    run(str(engine), master)


def _build(
    data: list[str], rules: str, engine: EngineName, master: str, on_error: OnError, rejected: Path
) -> tuple[Any, Any, int]:
    """A graph of the data under the rules, with progress on a terminal."""
    from evergraph.formats import Rejects, expand
    from evergraph.graph import KnowledgeGraph
    from evergraph.rules.model import Program

    program = Program.load(rules)
    files = [str(path) for path in expand(data)]
    where: Any = str(engine)
    if engine == EngineName.SPARK:
        from evergraph.engines.spark import make_session

        with _progress("start Spark"):
            where = make_session(master)
    rejects = Rejects() if on_error == OnError.SKIP else None
    kg = KnowledgeGraph(program, engine=where)
    with _progress("read") as progress:
        report = kg.update(insert=files, rejects=rejects, progress=progress)
    if rejects:
        rejects.write(rejected)
    return kg, report, len(rejects or ())


@contextmanager
def _progress(what: str) -> Iterator[Progress]:
    """A bar on a terminal, a plain line per kind of work elsewhere; both on standard error."""
    from rich import progress as bars
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        seen = {what}
        console.print(f"{what} …", highlight=False)

        def say(stage: str, done: float) -> None:
            if stage not in seen:
                seen.add(stage)
                console.print(f"{stage} …", highlight=False)

        yield say
        return
    columns = (bars.TextColumn("{task.description:>12}"), bars.BarColumn(), bars.TimeElapsedColumn())
    with bars.Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(what, total=None)

        def show(stage: str, done: float) -> None:
            bar.update(task, description=stage, total=1.0 if done else None, completed=done)

        yield show


def _say(output: Output, answer: dict[str, Any], text: str) -> None:
    typer.echo(json.dumps(answer, ensure_ascii=False) if output == Output.JSON else text)


def _many(counts: dict[str, int]) -> str:
    return f"{sum(counts.values()):,}"


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _rejected_text(count: int, saved: Path) -> str:
    return f"\n{_count(count, 'bad line')} skipped, saved to {saved}" if count else ""


def main() -> None:
    """Run a command; a user's mistake is one line and exit code 2."""
    try:
        app()
    except UserError as error:
        for mistake in error.mistakes:
            print(mistake, file=sys.stderr)
        sys.exit(2)
