"""What a stream has to remember so that another process can go on with it: all of it but the background.

    restore(new stream, load(folder))   where   save(state_of(stream), folder)

In words: the facts in the windows with their ends, the facts that wait, the clocks, and the answers that the next ones are
compared with. Answers and expiries of all later ticks are those of the stream that was never interrupted. Facts are kept as
terms, since ids are good within one process only, and so the background may have changed in between.
Cost: follows the windows and the answers whose changes are told; the background is not looked at, save by `restore`, which
lays the windows beside it again.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from evergraph.engines.arrays import U64, Array
from evergraph.engines.windows.lives import end_of, ends_of
from evergraph.errors import UserError
from evergraph.stream.dataset import Arrived, Dataset
from evergraph.stream.stream import Stream
from evergraph.stream.window import Window
from evergraph.terms import Dictionary, Ids

FORMAT = 1
HELD, WAITING = "window", "waiting"
FACTS = pa.schema([("terms", pa.list_(pa.large_string())), ("at", pa.int64())])
"""`at` is when a fact ends by its clock, or when it happened if it waits."""
_HINT = "use another checkpointLocation, or register the queries that it was made with"


@dataclass(frozen=True, slots=True)
class State:
    """`about` is a JSON document: the stream it belongs to, its clocks, and which rows of `facts` are which."""

    about: dict[str, Any]
    facts: pa.Table
    previous: dict[str, pa.Table]
    """Answers of the last tick by query, where only changes are told."""


def state_of(stream: Stream) -> State:
    """The state between two ticks, or after some. Cost: linear in what the windows hold and what waits."""
    datasets, parts, facts = [], [], [FACTS.empty_table()]
    for number, dataset in enumerate(stream._datasets.values()):
        nows = {clock: int(now) for clock, now in dataset.nows.items()}
        datasets.append({"windows": _texts(dataset.windows), "nows": nows})
        for place, name, relation, columns, at in _contents(dataset):
            parts.append([number, place, name, relation, len(columns), len(at)])
            facts.append(_table(stream._terms, columns, at))
    about = {
        "format": FORMAT,
        "stream": identity(stream),
        "now": stream._now,
        "ticked": stream._ticked,
        "latest": stream._latest,
        "late": stream.late,
        "rejected": stream.rejected,
        "scopes": stream._terms.scopes,
        "datasets": datasets,
        "parts": parts,
    }
    previous = {name: registered.previous for name, registered in stream.queries.items() if registered.previous.num_columns}
    return State(about, pa.concat_tables(facts), previous)


def restore(stream: Stream, state: State) -> None:
    """Make a stream with the same queries and windows what the one was that the state is of."""
    check(stream, state)
    about = state.about
    stream._renew_terms(about["scopes"])
    parts = _parts(state, stream._terms)
    datasets = {json.dumps(_texts(dataset.windows)): dataset for dataset in stream._datasets.values()}
    for number, kept in enumerate(about["datasets"]):
        dataset = datasets[json.dumps(kept["windows"])]
        mine = [part for at, *part in parts if at == number]
        dataset.nows = dict(kept["nows"])
        dataset.waiting = {name: [] for name in dataset.windows}
        for place, name, relation, columns, at in mine:
            if place == WAITING:
                dataset.waiting[name].append(Arrived(relation, columns, at))
        held = [(name, relation, columns, ends_of(at)) for place, name, relation, columns, at in mine if place == HELD]
        dataset.refill(stream._kg, stream._terms, stream._values, held)
    stream._now, stream._ticked, stream._latest = about["now"], about["ticked"], dict(about["latest"])
    stream.late, stream.rejected = about["late"], about["rejected"]
    for name, registered in stream.queries.items():
        registered.previous = state.previous.get(name, pa.table({}))
        registered.asked_at, registered.answered = -1, None


def check(stream: Stream, state: State) -> None:
    """Refuse the state of another stream."""
    mine, other = identity(stream), state.about["stream"]
    for part in mine:
        if mine[part] != other.get(part):
            raise UserError(
                "EG608", f"the checkpoint is of a stream with other {part}: {_difference(mine, other, part)}", _HINT
            )


def identity(stream: Stream) -> dict[str, Any]:
    """What makes two streams the same, in words of the user."""
    return {
        "queries": {name: registered.continuous.text.strip() for name, registered in stream.queries.items()},
        "windows": sorted(_texts(dataset.windows) for dataset in stream._datasets.values()),
        "algorithm": stream.algorithm,
        "lateness": stream.lateness,
    }


def _difference(mine: dict[str, Any], other: dict[str, Any], part: str) -> str:
    if part != "queries":
        return f"{other.get(part)}, not {mine[part]}"
    names = [name for name in {**other[part], **mine[part]} if other[part].get(name) != mine[part].get(name)]
    return ", ".join(names) or "they are in another order"


def _texts(windows: dict[str, Window]) -> list[list[Any]]:
    return sorted([name, "triples" if w.counts else "time", w.extent, w.step] for name, w in windows.items())


# -- facts as terms --------------------------------------------------------------------------------------------------


def _contents(dataset: Dataset) -> Iterator[tuple[str, str, str, Sequence[Ids], Array]]:
    """Place, clock or stream, relation, columns, and when."""
    for clock, relation, columns, ends in dataset.held():
        yield HELD, clock, relation, columns, (ends - U64(end_of(0))).astype(np.int64)
    for name, arrived in dataset.waiting.items():
        for part in _joined(arrived):
            yield WAITING, name, part.name, part.columns, part.times


def _joined(arrived: list[Arrived]) -> Iterator[Arrived]:
    """Parts that follow each other as one, where they are of one relation: windows of triples go by their order."""
    start = 0
    for at in range(1, len(arrived) + 1):
        if at == len(arrived) or arrived[at].name != arrived[start].name:
            some = arrived[start:at]
            columns = [np.concatenate(c) for c in zip(*(part.columns for part in some), strict=True)]
            yield Arrived(some[0].name, columns, np.concatenate([part.times for part in some]))
            start = at


def _table(terms: Dictionary, columns: Sequence[Ids], at: Array) -> pa.Table:
    size, arity = len(at), len(columns)
    decoded = pa.concat_arrays([pa.nulls(0, pa.large_string()), *(terms.decode(column) for column in columns)])
    by_row = decoded.take(pa.array(np.arange(size * arity).reshape(arity, size).T.ravel()))
    offsets = pa.array(np.arange(size + 1, dtype=np.int32) * arity, pa.int32())
    return pa.table([pa.ListArray.from_arrays(offsets, by_row), pa.array(at, pa.int64())], schema=FACTS)


def _parts(state: State, terms: Dictionary) -> list[tuple[int, str, str, str, list[Ids], Array]]:
    """Dataset, place, clock or stream, relation, columns of ids, and when."""
    out, start = [], 0
    facts = state.facts.combine_chunks()
    for number, place, name, relation, arity, size in state.about["parts"]:
        rows = facts.slice(start, size)
        flat = pa.concat_arrays([chunk.flatten() for chunk in rows.column("terms").chunks])
        columns = [terms.encode_column(flat.take(pa.array(np.arange(c, size * arity, arity)))) for c in range(arity)]
        out.append((number, place, name, relation, columns, rows.column("at").to_numpy()))
        start += size
    return out


# -- on disk ---------------------------------------------------------------------------------------------------------


def save(state: State, folder: Path) -> None:
    """Write a state, whole or not at all; one that is there is replaced."""
    half = folder.with_name(f".{folder.name}.half")
    shutil.rmtree(half, ignore_errors=True)
    half.mkdir(parents=True)
    tables = {"facts": state.facts, **{f"previous-{n}": table for n, table in enumerate(state.previous.values())}}
    for name, table in tables.items():
        write_whole(half / f"{name}.arrow", partial(_write_arrow, table))
    document = json.dumps({**state.about, "previous": list(state.previous)}, indent=1)
    write_whole(half / "state.json", lambda path: path.write_text(document, encoding="utf-8"))
    remove(folder)
    half.rename(folder)
    _sync(folder.parent)


def remove(folder: Path) -> None:
    """Remove a state that may be there, whole or not at all."""
    if folder.exists():
        shutil.rmtree(folder.rename(folder.with_name(f".{folder.name}.old")))


def load(folder: Path) -> State:
    try:
        about = json.loads((folder / "state.json").read_text(encoding="utf-8"))
        if about["format"] > FORMAT:
            raise UserError("EG608", f"{folder} is of a newer format", "install a newer Evergraph")
        previous = {name: _read_arrow(folder / f"previous-{n}.arrow") for n, name in enumerate(about.pop("previous"))}
        return State(about, _read_arrow(folder / "facts.arrow"), previous)
    except (OSError, ValueError, KeyError, pa.ArrowException) as error:
        raise UserError("EG608", f"no state of a stream in {folder}: {error}", "use another checkpointLocation") from error


def write_whole(path: Path, write: Callable[[Path], Any]) -> None:
    """Write a file, whole or not at all: under a name that readers pass over, then under its own."""
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_name(f".{path.name}.half")
    write(half)
    _sync(half)
    half.replace(path)
    _sync(path.parent)


def _sync(path: Path) -> None:
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _write_arrow(table: pa.Table, path: Path) -> None:
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def _read_arrow(path: Path) -> pa.Table:
    with pa.OSFile(str(path), "rb") as file:
        return pa.ipc.open_file(file).read_all()
