"""What commands share: options, progress, and how answers are said."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from evergraph.errors import UserError

if TYPE_CHECKING:
    from evergraph.graph import KnowledgeGraph

Progress = Callable[[str, float], None]


class EngineName(StrEnum):
    MEMORY = "memory"
    GPU = "gpu"
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
EqualityOption = Annotated[
    str | None,
    typer.Option("--equality", help="Names that are the same: rewrite, axioms or off; rewrite if a rule derives owl:sameAs"),
]
EngineOption = Annotated[EngineName, typer.Option("--engine", help="Where to compute")]
MasterOption = Annotated[str, typer.Option("--master", help="Spark's master: local[*], spark://…, yarn, k8s://…")]
OutputOption = Annotated[Output, typer.Option("--output", help="How to report")]
OnErrorOption = Annotated[
    OnError, typer.Option("--on-error", help="Bad lines: stop, or skip them and save them to rejected.txt")
]
StoreArgument = Annotated[Path, typer.Argument(help="The folder of a store")]
VersionOption = Annotated[int | None, typer.Option("--version", help="An older version; see evergraph history")]
FactsOption = Annotated[FactsChoice, typer.Option("--facts", help="Which facts to see")]


def session_for(engine: EngineName, master: str) -> Any:
    """What to give a graph for an engine: its name, or a Spark session."""
    if engine != EngineName.SPARK:
        return str(engine)
    from evergraph.engines.spark import make_session

    with progress_of("start Spark"):
        return make_session(master)


def graph_of(store: Path, **given: Any) -> KnowledgeGraph:
    """The graph of a store. That updates were lost is said in a line on standard error."""
    from evergraph.graph import KnowledgeGraph
    from evergraph.store.submitted import UnsettledWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UnsettledWarning)
        kg = KnowledgeGraph.open(store, **given)
    for warning in caught:
        if issubclass(warning.category, UnsettledWarning):
            typer.echo(f"{store}: {warning.message}", err=True)
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    return kg


@contextmanager
def progress_of(what: str) -> Iterator[Progress]:
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


def say(output: Output, answer: dict[str, Any], text: str) -> None:
    typer.echo(json.dumps(answer, ensure_ascii=False) if output == Output.JSON else text)


def tell_outside(outside: Sequence[Any], what: str) -> None:
    """Say on standard error what rules cannot say of an ontology."""
    for item in outside:
        typer.echo(f"outside: {item.axiom} ({item.reason})", err=True)
    if outside:
        typer.echo(f"{what}: {outside_count(outside)}", err=True)


def outside_count(outside: Sequence[Any]) -> str:
    count = len({item.axiom for item in outside})
    return f"{count_of(count, 'axiom')} {'falls' if count == 1 else 'fall'} outside, in whole or in part"


def many(counts: dict[str, int]) -> str:
    return f"{sum(counts.values()):,}"


def count_of(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def texts_of(terms: Iterable[Any]) -> list[str]:
    """rdflib terms in N-Triples syntax, which has no line breaks."""
    from evergraph.terms import from_object

    return [from_object(term, own=True) for term in terms]


def text_in(file: Path) -> str:
    """What a file of a query says."""
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError("EG101", f"cannot read {file}: {error}", "check the path") from error


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write, which appears when it is whole."""
    check_target(path)
    part = path.with_name(f"{path.name}.part")
    try:
        with part.open("wb") as out:
            yield out
        part.replace(path)
    except OSError as error:
        raise UserError("EG101", f"cannot write {path}: {error.strerror}", "check the folder and its permissions") from error
    finally:
        part.unlink(missing_ok=True)


def check_target(path: Path) -> None:
    """Refuse a file that cannot be one before any work is done."""
    if path.is_dir() or not path.parent.is_dir():
        raise UserError("EG101", f"cannot write {path}", "name a file in a folder that exists")


def rejected_text(count: int, saved: Path) -> str:
    return f"\n{count_of(count, 'bad line')} skipped, saved to {saved}" if count else ""


def table_of(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Columns in line, numbers to the right."""
    lines = [[f"{v:,}" if isinstance(v, int) else str(v) for v in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(header, *lines, strict=True)]
    right = [all(line[i][:1].isdigit() for line in lines) for i in range(len(header))]

    def show(row: Sequence[str]) -> str:
        cells = (c.rjust(w) if r else c.ljust(w) for c, w, r in zip(row, widths, right, strict=True))
        return "  ".join(cells).rstrip()

    return "\n".join([show(header), *map(show, lines)])
