"""The command line. Exit codes: 0 done, 1 the answer is no, 2 a user mistake, one line each and never a traceback.

Nothing heavy is imported before a command needs it: `evergraph --help` answers at once and starts no JVM.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable

import typer

from evergraph.bench.cli import app as bench_app
from evergraph.cli import files, rules, stores, streaming
from evergraph.cli.common import EngineName, EngineOption, MasterOption
from evergraph.errors import UserError

app = typer.Typer(
    help="Evergraph keeps the consequences of rules true while facts and rules change.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
COMMANDS: tuple[Callable[..., None], ...] = (
    stores.load,
    stores.update,
    stores.query,
    stores.explain,
    stores.export,
    stores.stats,
    stores.history,
    stores.changes,
    stores.verify,
    stores.compact,
    streaming.stream,
    files.materialise,
    files.check,
)
for command in COMMANDS:
    app.command()(command)
for command in (rules.add, rules.remove, rules.replace, rules.diff):
    files.rules_app.command()(command)
app.add_typer(files.rules_app, name="rules")
app.add_typer(bench_app, name="bench")


@app.command()
def demo(engine: EngineOption = EngineName.SPARK, master: MasterOption = "local[2]") -> None:
    """A small university graph: read, close, insert, see what changed."""
    from evergraph.demo import run

    run(str(engine), master)


def main() -> None:
    """Run a command; a user's mistake is one line and exit code 2."""
    logging.getLogger("rdflib.term").setLevel(logging.ERROR)  # it logs a stack for each literal that has no value
    try:
        app()
    except UserError as error:
        for mistake in error.mistakes:
            print(mistake, file=sys.stderr)
        sys.exit(2)
