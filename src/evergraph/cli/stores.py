"""Commands over stores: `load`, `update`, `query`, `explain`, `export`, `stats`, `history`, `changes`, `verify`, `compact`."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from evergraph.cli.common import (
    Data,
    EngineName,
    EqualityOption,
    FactsChoice,
    FactsOption,
    MasterOption,
    OnError,
    OnErrorOption,
    Output,
    OutputOption,
    StoreArgument,
    VersionOption,
    count_of,
    graph_of,
    many,
    progress_of,
    rejected_text,
    say,
    session_for,
    table_of,
    tell_outside,
    text_in,
    whole_file,
)
from evergraph.cli.updating import AlgorithmOption, DryRunOption, WhereOption, change, loaded, opened
from evergraph.errors import UserError

SHOWN = 20
"""Rows of a table of predicates or classes; all of them in `--output json`."""


TermArgument = Annotated[str, typer.Argument(help='<iri>, prefix:name, a, _:blank, 1 or "literal"')]


class AnswerFormat(StrEnum):
    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    NT = "nt"


class TripleFormat(StrEnum):
    NT = "nt"
    TTL = "ttl"


def load(
    data: Data,
    store: Annotated[Path, typer.Option("--store", "-s", help="The folder of the store, new or not")],
    rules: Annotated[
        str | None, typer.Option("--rules", "-r", help="For a new store: a rule set or a .dlog file; rdfs if not given")
    ] = None,
    equality: EqualityOption = None,
    engine: Annotated[EngineName, typer.Option("--engine", help="Where to compute")] = EngineName.SPARK,
    master: MasterOption = "local[*]",
    on_error: OnErrorOption = OnError.FAIL,
    output: OutputOption = Output.TEXT,
) -> None:
    """Read files into a store, draw every consequence, commit one version. A second load adds to the first."""
    from evergraph.formats import Rejects, expand

    paths = [str(path) for path in expand(data)]
    kg = _for_loading(store, rules, equality, engine, master)
    rejects = Rejects() if on_error == OnError.SKIP else None
    with progress_of("read") as progress:
        report = kg.update(insert=paths, rejects=rejects, progress=progress, operation="load")
    saved = store.with_name(f"{store.name}.rejected.txt")
    if rejects:
        rejects.write(saved)
    rows = [(p.name, p.facts, f"{p.seconds:.2f} s", f"{p.facts / max(p.seconds, 1e-9):,.0f}/s") for p in report.phases]
    typer.echo(table_of(("stage", "rows", "time", "rate"), rows), err=True)
    say(
        output,
        {"store": str(store), "rejected": len(rejects or ()), **report.as_dict()},
        f"{many(report.inserted.explicit)} explicit and {many(report.inserted.derived)} derived facts "
        f"in {report.seconds:.2f} s; {store} is at version {report.version}" + rejected_text(len(rejects or ()), saved),
    )


def _for_loading(store: Path, rules: str | None, equality: str | None, engine: EngineName, master: str) -> Any:
    """The graph of a store that exists, or a new one."""
    from evergraph.graph import KnowledgeGraph
    from evergraph.rules.equality import equality_of
    from evergraph.rules.model import Program
    from evergraph.store import Store

    equality_of(equality, Program())
    program = Program.load(rules) if rules is not None else None
    if program is not None:
        tell_outside(program.outside, str(rules))
    if not Store(store).exists:
        return KnowledgeGraph(program or "rdfs", equality=equality, engine=session_for(engine, master), store=store)
    where = session_for(engine, master)
    with progress_of("open"):
        kg = graph_of(store, engine=where)
    if program is not None and kg.rules.rules != program.rules:
        hint = "leave out --rules, or change them: evergraph rules replace"
        raise UserError("EG408", f"{store} has other rules than {rules}", hint)
    if equality is not None and kg.equality != equality:
        hint = "leave out --equality, or load into a new store"
        raise UserError("EG408", f"{store} has equality {kg.equality}, not {equality}", hint)
    return kg


def update(
    store: StoreArgument,
    insert: Annotated[list[str] | None, typer.Option("--insert", "-i", help="Files to insert; give it several times")] = None,
    delete: Annotated[list[str] | None, typer.Option("--delete", "-d", help="Files to delete; give it several times")] = None,
    patch: Annotated[list[Path] | None, typer.Option("--patch", "-p", help="RDF Patch files, in their order")] = None,
    insert_rules: Annotated[
        list[str] | None, typer.Option("--insert-rules", help="Files of rules, or rule sets, to put in force")
    ] = None,
    delete_rules: Annotated[
        list[str] | None, typer.Option("--delete-rules", help="Files of rules, or rule sets, to take away")
    ] = None,
    ontology: Annotated[
        list[str] | None, typer.Option("--ontology", help="The ontology from now on: what the last one said beyond it goes")
    ] = None,
    algorithm: AlgorithmOption = "auto",
    dry_run: DryRunOption = False,
    follow: Annotated[
        str | None,
        typer.Option("--follow", help="Take RDF Patch as it arrives: .rdfp files of a folder, or - for standard input"),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="With --follow: take what is there, and end")] = False,
    engine: WhereOption = EngineName.MEMORY,
    master: MasterOption = "local[*]",
    output: OutputOption = Output.TEXT,
) -> None:
    """Delete and insert facts and rules, keep every consequence true, commit one version. Deletions come first.

    With --follow, each file or transaction is an update, and each point where all have settled is a version.
    """
    from evergraph.cli.changes import gather

    if follow is not None:
        from evergraph.cli import following

        facts = {"--insert": insert, "--delete": delete, "--patch": patch, "--dry-run": dry_run}
        others = {**facts, "--insert-rules": insert_rules, "--delete-rules": delete_rules, "--ontology": ontology}
        following.follow(store, follow, once, algorithm, engine, master, output, others)
        return
    if once:
        raise UserError("EG302", "--once goes with --follow only", "leave it out, or give --follow FOLDER")
    rules = {"insert_rules": loaded(insert_rules or []), "delete_rules": loaded(delete_rules or [])}
    given = gather(insert or [], delete or [], patch or [], bool(insert_rules or delete_rules or ontology))
    kg = opened(store, engine, master)
    change(kg, store, output, dry_run, insert=given[0], delete=given[1], **rules, ontology=ontology, algorithm=algorithm)


def query(
    store: StoreArgument,
    text: Annotated[str | None, typer.Argument(metavar="[QUERY]", help="SPARQL: SELECT, ASK, CONSTRUCT or DESCRIBE")] = None,
    file: Annotated[Path | None, typer.Option("--file", "-f", help="A file with the query")] = None,
    format_: Annotated[AnswerFormat, typer.Option("--format", help="How to print the answers")] = AnswerFormat.TABLE,
    facts: FactsOption = FactsChoice.ALL,
    version: VersionOption = None,
) -> None:
    """Ask a question in SPARQL."""
    from evergraph.cli.answers import show

    if (text is None) == (file is None):
        raise UserError("EG302", "give a query, or a file with one", "evergraph query DIR 'SELECT …', or --file FILE")
    if file is not None:
        text = text_in(file)
    assert text is not None
    show(_open(store, version).query(text, which=str(facts)), str(format_))


def explain(
    store: StoreArgument,
    subject: TermArgument,
    predicate: TermArgument,
    object_: Annotated[str, typer.Argument(metavar="OBJECT", help="The same")],
    every: Annotated[bool, typer.Option("--all", help="Every rule instance that supports it, one step each")] = False,
    version: VersionOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Why a triple holds: a proof down to explicit facts, each step with its rule."""
    proof = _open(store, version).explain(f"[{subject}, {predicate}, {object_}]", every)
    say(output, proof.as_dict(), str(proof))


def export(
    store: StoreArgument,
    facts: FactsOption = FactsChoice.ALL,
    format_: Annotated[TripleFormat, typer.Option("--format", help="N-Triples or Turtle")] = TripleFormat.NT,
    to: Annotated[Path | None, typer.Option("--to", "-o", help="The file to write; standard output if not given")] = None,
    version: VersionOption = None,
) -> None:
    """Write the triples of a store."""
    from evergraph.formats.write import write_ntriples, write_stream

    kg = _open(store, version)
    if to is not None and format_ == TripleFormat.NT and to.name.endswith((".nt", ".nt.gz")):
        written = write_ntriples(kg.blocks(str(facts)), to)
    elif to is not None:
        with whole_file(to) as out:
            written = write_stream(kg.blocks(str(facts)), out, str(format_))
    else:
        written = write_stream(kg.blocks(str(facts)), sys.stdout.buffer, str(format_))
    note = f"wrote {count_of(written.lines, 'triple')}" + (f" to {to}" if to else "")
    if written.left_out:
        note += f"; {written.left_out:,} about literals left out: RDF has no syntax for them"
    typer.echo(note, err=True)


def stats(store: StoreArgument, version: VersionOption = None, output: OutputOption = Output.TEXT) -> None:
    """Facts by predicate and class, explicit and derived; the dictionary; files and bytes."""
    kg = _open(store, version)
    found = kg.stats()
    lines = [
        f"version {found['version']}: {found['explicit']:,} explicit and {found['derived']:,} derived facts, "
        f"{found['terms']:,} terms, {found['rules']:,} rules",
    ]
    if found["equality"] is not None:
        lines.append(_cliques(found["equality"], found["explicit"] + found["derived"]))
    for what in ("predicates", "classes", "relations"):
        rows = [(name, n["explicit"], n["derived"]) for name, n in found[what].items()]
        if rows:
            lines += ["", table_of((what, "explicit", "derived"), rows[:SHOWN])]
        if len(rows) > SHOWN:
            lines.append(f"… and {len(rows) - SHOWN:,} more")
    sizes = [(name, t["files"], t["rows"], t["bytes"]) for name, t in found["tables"].items()]
    lines += ["", table_of(("table", "files", "rows", "bytes"), sizes)]
    say(output, found, "\n".join(lines))


def _cliques(kept: dict[str, Any], facts: int) -> str:
    """How much stands for how much."""
    told = f"{kept['facts']:,} facts in normal form stand for all {facts:,}; "
    if not kept["cliques"]:
        return told + "no two names are the same"
    return told + f"{count_of(kept['cliques'], 'clique')} of {kept['names']:,} names, the largest of {kept['largest']:,}"


def history(store: StoreArgument, output: OutputOption = Output.TEXT) -> None:
    """The versions of a store, the last one first."""
    from evergraph.store import Store

    versions = Store(store).history()
    answer: list[dict[str, Any]] = [
        {
            "version": v.version,
            "timestamp": v.when.isoformat(),
            "operation": v.info.operation,
            "explicit": sum(v.info.explicit.values()),
            "derived": sum(v.info.derived.values()),
            "terms": v.info.terms,
            "rules": v.info.rules,
            "equality": v.info.equality,
            "report": dict(v.info.report),
        }
        for v in versions
    ]
    names = ("version", "time", "operation", "explicit", "derived", "terms", "rules", "came and went")
    rows = [
        (a["version"], f"{a['timestamp'][:19]}Z", *(a[name] for name in names[2:7]), _rules_changed(a["report"]))
        for a in answer
    ]
    say(output, {"versions": answer}, table_of(names, rows))


def _rules_changed(report: dict[str, Any]) -> str:
    """How many rules a version inserted and deleted; empty if none."""
    come, gone = (report.get(name, 0) for name in ("rules_inserted", "rules_deleted"))
    return f"+{come:,} -{gone:,}" if come or gone else ""


def changes(
    store: StoreArgument,
    starting_version: Annotated[int, typer.Option("--starting-version", help="The first version to tell of")] = 0,
    ending_version: Annotated[int | None, typer.Option("--ending-version", help="The last; if not given, the newest")] = None,
    format_: Annotated[AnswerFormat, typer.Option("--format", help="How to print them")] = AnswerFormat.TABLE,
) -> None:
    """The change feed: facts, explicit and derived, that versions inserted, deleted or changed."""
    from evergraph.cli.answers import show_table
    from evergraph.store import Store

    show_table(Store(store).change_feed(starting_version, ending_version), str(format_))


def verify(
    store: StoreArgument,
    engine: Annotated[EngineName, typer.Option("--engine", help="Where to recompute")] = EngineName.MEMORY,
    master: MasterOption = "local[*]",
    version: VersionOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Recompute everything from the explicit facts and compare. Exit code 1, with both differences, if they differ."""
    from evergraph.maintain.verify import Differs

    kg = _open(store, version)
    where = session_for(engine, master)
    try:
        with progress_of("recompute"):
            facts = kg.verify(where)
    except Differs as found:
        answer = {"verified": False, "missing": found.missing, "extra": found.extra}
        say(output, answer, "\n".join([*found.lines(), found.message]))
        raise typer.Exit(1) from None
    say(output, {"verified": True, "facts": facts}, f"verified: {facts:,} facts are what recomputation gives")


def compact(store: StoreArgument, output: OutputOption = Output.TEXT) -> None:
    """Merge small files, and delete those that crashed writers left behind."""
    from evergraph.store import Store

    before = Store(store).snapshot()
    after = Store(store).compact()
    had, have = (sum(len(s.files(name)) for name in ("dictionary", "relations", "facts")) for s in (before, after))
    say(
        output,
        {"version": after.version, "files_before": had, "files": have},
        f"{had:,} files are now {have:,}; {store} is at version {after.version}",
    )


def _open(store: Path, version: int | None) -> Any:
    return graph_of(store, version=version)
