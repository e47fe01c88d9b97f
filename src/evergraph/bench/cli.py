"""`evergraph bench NAME`: data for measuring, and one command per benchmark. Each prints a table and writes JSON."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from evergraph.cli.common import Output, OutputOption
from evergraph.errors import UserError

app = typer.Typer(help="Make benchmark data, and measure.", no_args_is_help=True)

Sizes = Annotated[list[int], typer.Option("--size", help="Universities of LUBM; give it several times")]
RuleSets = Annotated[list[str], typer.Option("--rules", help="A rule set; give it several times")]
Out = Annotated[Path, typer.Option("--out", help="Where results go")]
DataFolder = Annotated[Path, typer.Option("--data", help="Where benchmark data is kept, and made when it is not there")]
Scale = Annotated[float, typer.Option("--scale", min=0.001, help="A part of the size, or a multiple of it")]
Seed = Annotated[int, typer.Option("--seed", help="The same seed gives the same data")]


@app.command("lubm-data")
def lubm_data(
    universities: Annotated[int, typer.Option("--universities", min=1, help="How many; one is about 100,000 triples")],
    seed: Annotated[int, typer.Option("--seed", help="The same seed gives the same file")] = 0,
    to: Annotated[Path | None, typer.Option("--to", help="The .nt or .nt.gz file; by default lubm-N.nt")] = None,
    processes: Annotated[int | None, typer.Option("--processes", min=1, help="By default one per core")] = None,
) -> None:
    """Write the LUBM benchmark: univ-bench ontology and generated universities."""
    from evergraph.bench.lubm import write

    file = to or Path(f"lubm-{universities}.nt")
    if not file.name.endswith((".nt", ".nt.gz")):
        raise UserError("EG102", f"cannot write {file}", "name a file that ends in .nt or .nt.gz")
    summary = write(universities, file, seed=seed, processes=processes)
    typer.echo(f"{summary.triples:,} lines, {summary.distinct:,} distinct triples, {summary.bytes:,} bytes in {file}")


@app.command()
def materialise(
    size: Sizes = [1, 10, 50],  # noqa: B006 - Typer reads the default, nothing changes it
    rules: RuleSets = ["rhodf", "owl2rl"],  # noqa: B006
    system: Annotated[list[str] | None, typer.Option("--system", help="A system; by default all")] = None,
    cores: Annotated[int, typer.Option("--cores", min=1, help="Cores that each system is held to")] = 1,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Seconds after which a run is stopped")] = 600,
    repeat: Annotated[int, typer.Option("--repeat", min=1, help="Runs of which the best counts")] = 3,
    out: Out = Path("bench-results"),
    data: DataFolder = Path("bench-data"),
) -> None:
    """The closure, beside the peers that pip can install."""
    _needs("matplotlib")
    from evergraph.bench.materialise import main

    raise typer.Exit(main(size, rules, system or None, cores, limit, repeat, out, data))


@app.command()
def insert(
    size: Sizes = [1, 50],  # noqa: B006
    rules: RuleSets = ["rhodf", "owl2rl"],  # noqa: B006
    out: Out = Path("bench-results"),
    data: DataFolder = Path("bench-data"),
) -> None:
    """Inserting 100 facts into graphs of different sizes; bytes per fact."""
    from evergraph.bench.insert import main

    raise typer.Exit(main(size, rules, out, data))


@app.command()
def updates(
    universities: Annotated[list[int], typer.Option("--universities", min=1, help="Of LUBM; give it several times")] = [10, 50],  # noqa: B006
    rules: RuleSets = ["rhodf", "owl2rl"],  # noqa: B006
    algorithm: Annotated[list[str] | None, typer.Option("--algorithm", help="An algorithm; by default all")] = None,
    part: Annotated[
        list[str] | None,
        typer.Option("--part", help="urbani, deletions, growth, counting, pathway, spark; by default not spark"),
    ] = None,
    spark: Annotated[bool, typer.Option("--spark", help="Measure on Spark too")] = False,
    limit: Annotated[float, typer.Option("--limit", min=0.1, help="Seconds after which an update is stopped")] = 60,
    out: Out = Path("bench-results"),
    data: DataFolder = Path("bench-data"),
    output: OutputOption = Output.TEXT,
) -> None:
    """Deletions and insertions by every algorithm, beside recomputation, the literature and pathway."""
    from evergraph.bench.updates.command import PARTS, main

    parts = [*(part or (name for name in PARTS if name != "spark")), *(["spark"] if spark else [])]
    raise typer.Exit(main(universities, rules, algorithm or None, parts, limit, out, data, output == Output.JSON))


@app.command()
def volz(
    only: Annotated[
        list[str] | None, typer.Option("--only", help="taxonomy, database or dl; give it several times; by default all")
    ] = None,
    depth: Annotated[list[int], typer.Option("--depth", min=2, help="Levels of classes; give it several times")] = [3, 4, 5],  # noqa: B006
    change: Annotated[list[int], typer.Option("--change", min=1, max=99, help="Percent that go and come back")] = [10, 15],  # noqa: B006
    algorithm: Annotated[list[str], typer.Option("--algorithm", help="An algorithm; give it several times")] = [  # noqa: B006
        "auto",
        "declarative",
    ],
    runs: Annotated[int, typer.Option("--runs", min=1, help="Runs of which mean, least and most are told")] = 5,
    limit: Annotated[float, typer.Option("--limit", min=0.1, help="Seconds after which a run is stopped")] = 600,
    out: Out = Path("bench-results"),
    output: OutputOption = Output.TEXT,
) -> None:
    """Rules and facts that come and go: the evaluation of Volz et al. 2003, the paper's figures beside ours."""
    from evergraph.bench.volz.command import main
    from evergraph.bench.volz.generator import KINDS

    raise typer.Exit(main(only or KINDS, depth, change, algorithm, runs, limit, out, output == Output.JSON))


@app.command()
def equality(
    size: Annotated[list[int], typer.Option("--size", min=1, help="Triples of the university; give it several times")] = [  # noqa: B006
        1_000_000,
        5_000_000,
    ],
    delete: Annotated[list[int], typer.Option("--delete", min=1, help="Facts to delete; give it several times")] = [  # noqa: B006
        100,
        1000,
        5000,
    ],
    share: Annotated[list[float], typer.Option("--share", min=0, max=50, help="Percent to delete; give it several times")] = [  # noqa: B006
        5,
        10,
        25,
    ],
    clique: Annotated[list[int], typer.Option("--clique", min=2, help="Names of a clique; give it several times")] = [  # noqa: B006
        100,
        200,
        500,
        1000,
        2000,
        4000,
    ],
    part: Annotated[list[str] | None, typer.Option("--part", help="university, cliques, idle or plain; by default all")] = None,
    repeat: Annotated[int, typer.Option("--repeat", min=1, help="Runs of which the median counts")] = 3,
    limit: Annotated[float, typer.Option("--limit", min=0.1, help="Seconds after which a cell is stopped")] = 120,
    patience: Annotated[float, typer.Option("--patience", min=0.1, help="Seconds that a materialisation may take")] = 600,
    seed: Seed = 0,
    out: Out = Path("bench-results"),
    data: DataFolder = Path("bench-data"),
    output: OutputOption = Output.TEXT,
) -> None:
    """Equality by representatives and by axioms: Table 1 of Motik et al. 2015, large cliques, idle rules, no equality."""
    from evergraph.bench.equality.command import PARTS, Asked, main

    asked = Asked(size, delete, share, clique, repeat, limit, patience, seed, data)
    raise typer.Exit(main(asked, part or PARTS, out, output == Output.JSON))


@app.command()
def windows(
    facts: Annotated[int, typer.Option("--facts", min=100, help="Of the background of Figure 7")] = 100_000,
    share: Annotated[
        list[float] | None,
        typer.Option("--share", min=0.001, max=100, help="Percent that enters at a step; several times; by default 0.05 to 30"),
    ] = None,
    steps: Annotated[int, typer.Option("--steps", min=1, help="Steps of which the median counts")] = 5,
    background: Annotated[int, typer.Option("--background", min=1000, help="Facts beside the mobility window")] = 1_000_000,
    window: Annotated[int, typer.Option("--window", min=1, help="Facts that enter while one is in that window")] = 100_000,
    seconds: Annotated[int, typer.Option("--seconds", min=2, help="Range of that window, which steps by one")] = 100,
    every: Annotated[
        int | None,
        typer.Option("--every", min=1, help="Seconds after which travellers say the same again; by default when it has left"),
    ] = None,
    ticks: Annotated[int, typer.Option("--ticks", min=1, help="Ticks of that window to measure")] = 10_000,
    peer: Annotated[list[str] | None, typer.Option("--peer", help="An algorithm beside expiry; several times")] = None,
    peer_ticks: Annotated[int, typer.Option("--peer-ticks", min=0, help="Ticks of each; none with 0")] = 5,
    batches: Annotated[int, typer.Option("--batches", min=1, max=90, help="Micro-batches of Spark to measure")] = 30,
    part: Annotated[
        list[str] | None, typer.Option("--part", help="figure7, mobility or spark; several times; by default all")
    ] = None,
    limit: Annotated[float, typer.Option("--limit", min=0.1, help="Seconds after which an algorithm is stopped")] = 120,
    seed: Seed = 0,
    out: Out = Path("bench-results"),
    output: OutputOption = Output.TEXT,
) -> None:
    """Windows over streams: Figure 7 of Barbieri et al. 2010, their mobility scenario tick by tick, and by Spark's batches."""
    from evergraph.bench.windows.command import PARTS, PEERS, Asked, main
    from evergraph.bench.windows.figure7 import SHARES

    peers = (peer or PEERS) if peer_ticks else ()
    scenario = background, window, seconds, every, ticks, peers, peer_ticks, batches
    asked = Asked(facts, share or SHARES, steps, *scenario, limit, seed)
    raise typer.Exit(main(asked, part or list(PARTS), out, output == Output.JSON))


@app.command()
def overlap(
    universities: Annotated[int, typer.Option("--universities", min=1, help="Of LUBM")] = 10,
    rules: RuleSets = ["rhodf", "owl2rl"],  # noqa: B006
    algorithm: Annotated[
        list[str] | None, typer.Option("--algorithm", help="An algorithm; by default all that overlap")
    ] = None,
    part: Annotated[
        list[str] | None, typer.Option("--part", help="responsiveness, alone or feed; several times; by default all")
    ] = None,
    repeat: Annotated[int, typer.Option("--repeat", min=1, help="Runs of which the median counts; few facts have more")] = 5,
    seed: Seed = 0,
    out: Out = Path("bench-results"),
    data: DataFolder = Path("bench-data"),
    output: OutputOption = Output.TEXT,
) -> None:
    """Updates that overlap: one fact beside a large deletion, a feed that cancels, and what it costs when nothing overlaps."""
    from evergraph.bench.overlap.command import PARTS, Asked, main
    from evergraph.maintain.dynamic import OVERLAPPING

    asked = Asked(universities, rules, algorithm or list(OVERLAPPING), repeat, seed, data)
    raise typer.Exit(main(asked, part or list(PARTS), out, output == Output.JSON))


@app.command()
def pipeline(
    size: Sizes = [10, 50, 100],  # noqa: B006
    rules: Annotated[str, typer.Option("--rules", help="A rule set")] = "rhodf",
    engine: Annotated[list[str], typer.Option("--engine", help="spark or memory")] = ["spark", "memory"],  # noqa: B006
    cores: Annotated[int, typer.Option("--cores", min=1, help="Spark's cores")] = 2,
    out: Out = Path("bench-results"),
    data: DataFolder = Path("bench-data"),
) -> None:
    """From text to a committed store, stage by stage."""
    _needs("psutil")
    from evergraph.bench.pipeline import main

    raise typer.Exit(main(size, rules, engine, cores, out, data))


@app.command()
def gpu(
    universities: Annotated[int, typer.Option("--universities", min=1, help="Of LUBM")] = 50,
    copies: Annotated[int, typer.Option("--copies", min=1, help="Disjoint copies for the large closures")] = 20,
    rules: RuleSets = ["rhodf", "owl2rl"],  # noqa: B006
    part: Annotated[list[str] | None, typer.Option("--part", help="closure, stages, updates; by default all")] = None,
    repeat: Annotated[int, typer.Option("--repeat", min=1, help="Runs, after one that compiles")] = 3,
    out: Out = Path("bench-results"),
    data: DataFolder = Path("bench-data"),
    output: OutputOption = Output.TEXT,
) -> None:
    """Closures, tables to tables, and updates on a GPU, beside the memory engine."""
    from evergraph.bench.gpu.command import PARTS, Asked, main

    raise typer.Exit(main(Asked(universities, copies, rules, repeat, data), part or PARTS, out, output == Output.JSON))


@app.command()
def queries(
    universities: Annotated[int, typer.Option("--universities", min=1)] = 10,
    rules: Annotated[str, typer.Option("--rules", help="A rule set")] = "owl2rl",
    limit: Annotated[int, typer.Option("--limit", min=1, help="Seconds after which a query is stopped")] = 60,
    out: Out = Path("bench-results"),
    data: DataFolder = Path("bench-data"),
) -> None:
    """The queries of LUBM, beside rdflib and pyoxigraph."""
    from evergraph.bench.queries import main

    raise typer.Exit(main(universities, rules, limit, out, data))


@app.command()
def taxonomy(
    classes: Annotated[int, typer.Option("--classes", min=10)] = 100_000,
    instances: Annotated[int, typer.Option("--instances", min=10)] = 1_000_000,
    out: Out = Path("bench-results"),
) -> None:
    """A wide taxonomy, as triples and as one rule for each class, at a tenth of the size and in full."""
    from evergraph.bench.taxonomy import main

    raise typer.Exit(main(classes, instances, out))


@app.command()
def rules(
    scale: Scale = 1.0,
    seed: Seed = 0,
    out: Out = Path("bench-results"),
    data: DataFolder = Path("bench-data"),
) -> None:
    """A program of 250,000 rules over two million facts: set up, as rules and as triples, and changed rule by rule."""
    from evergraph.bench.rules.command import main

    raise typer.Exit(main(scale, seed, out, data))


@app.command()
def vocabulary(
    versions: Annotated[int, typer.Option("--versions", min=1, help="How many versions to go through")] = 20,
    scale: Scale = 1.0,
    seed: Seed = 0,
    out: Out = Path("bench-results"),
) -> None:
    """A vocabulary of 2,000 names over a million facts, replayed through versions of itself."""
    from evergraph.bench.rules.vocabulary import main

    raise typer.Exit(main(scale, versions, seed, out))


def _needs(package: str) -> None:
    if find_spec(package) is None:
        raise UserError("EG203", f"this benchmark needs {package}", "pip install 'evergraph[bench]'")
