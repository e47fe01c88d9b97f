"""Everything `insert` takes, as columns of ids by relation.

A path or list of paths, N-Triples or Datalog text, an iterable of triples, an rdflib graph, a pandas, Arrow or Spark frame.
Contract: the whole input is read and checked before anything is returned, so that a mistake in it changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyoxigraph as ox

from evergraph.errors import Position, UserError
from evergraph.formats import Progress, Rejects, expand, read_files, read_text
from evergraph.formats.files import OWN, is_data_file
from evergraph.formats.ntriples import canonical_terms
from evergraph.rules.model import TRIPLE, Atom, Program
from evergraph.terms import Dictionary, Ids, from_object

COLUMNS = ("subject", "predicate", "object")
_NTRIPLES = re.compile(r"\s*(#(?!\[)|(<[^>]*>\s*|_:\S+\s+)<)")
_GLOB = re.compile(r"[^\s()]*[*?][^\s()]*$")
MOST_PATH = 4096
_FILE_NUMBER = r"^_:f(?P<number>[0-9]{1,15})_"
"""The number of the file in the name of a blank node; with more digits it is none that files will ever have."""


@dataclass(frozen=True, slots=True)
class OwnLines:
    """Lines of N-Triples to insert whose blank nodes are the graph's own: those that it has of these names, or new ones."""

    lines: list[str]


def read(
    source: Any,
    dictionary: Dictionary,
    rejects: Rejects | None = None,
    progress: Progress | None = None,
    own: bool = False,
) -> dict[str, list[Ids]]:
    """Columns of ids for one input of any accepted type; with `own`, its blank nodes are those of the graph."""
    collected = _Columns(dictionary, progress, own)
    try:
        _read(source, collected, rejects)
    except (ValueError, TypeError, pa.ArrowException) as error:
        reason = str(error).strip().splitlines()[0]
        raise UserError("EG105", f"cannot read facts: {reason}", "give terms in N-Triples syntax, without gaps") from error
    return collected.facts()


def kept(source: Any) -> Any:
    """The same input, for reading it later: what the caller may change or use up meanwhile is copied."""
    if isinstance(source, str | Path | bytes | Program | OwnLines):
        return source
    if (table := _as_table(source)) is not None:
        return table
    return tuple(source) if isinstance(source, Iterable) else source


def in_words(source: Any) -> str:
    """What an input is, in a few words: names of files, or how much it is. Empty if it is nothing."""
    items = source if isinstance(source, tuple) else (source,)
    if items and _names_file(items[0]):
        more = f" and {len(items) - 3:,} more" if len(items) > 3 else ""
        return ", ".join(map(str, items[:3])) + more
    if isinstance(source, str | bytes):
        lines = len(source.splitlines())
        return f"{lines:,} {'line' if lines == 1 else 'lines'} of text" if lines else ""
    if isinstance(source, Program):
        count = len(source.facts)
    elif isinstance(source, pa.Table):
        count = source.num_rows
    else:
        count = len(source.lines if isinstance(source, OwnLines) else items)
    return f"{count:,} {'fact' if count == 1 else 'facts'}" if count else ""


def files_of(source: Any) -> tuple[list[Path], Any]:
    """The data files of an input that names files, and what else there is in it."""
    items = [source] if isinstance(source, str | Path) else source
    if not isinstance(items, list | tuple) or not items or not all(_names_file(item) for item in items):
        return [], source
    return expand([i for i in items if not str(i).endswith(".dlog")]), [i for i in items if str(i).endswith(".dlog")]


def _names_file(item: Any) -> bool:
    return isinstance(item, Path) or (isinstance(item, str) and _is_path(item))


def add(facts: dict[str, list[Ids]], more: dict[str, list[Ids]]) -> None:
    """Put further columns below those of the same relation."""
    for name, columns in more.items():
        known = facts.get(name)
        if known is not None and len(known) != len(columns):
            raise arity_clash(name, len(columns), len(known))
        facts[name] = [np.concatenate(pair) for pair in zip(known, columns, strict=True)] if known else columns


def less(facts: dict[str, list[Ids]], others: dict[str, list[Ids]]) -> dict[str, list[Ids]]:
    """Facts that are not among others. Cost: a sort of those that have a relation in common."""
    out = {}
    for name, columns in facts.items():
        if name not in others:
            out[name] = columns
        elif columns:
            mine, theirs = (np.stack(c, axis=1) for c in (columns, others[name]))
            _, codes = np.unique(np.concatenate([mine, theirs]), axis=0, return_inverse=True)
            keep = ~np.isin(codes[: len(mine)], codes[len(mine) :])
            if keep.any():
                out[name] = [column[keep] for column in columns]
    return out


class _Columns:
    """Parts of columns by relation, joined at the end."""

    def __init__(self, dictionary: Dictionary, progress: Progress | None, own: bool) -> None:
        self.dictionary, self.progress, self.own = dictionary, progress, own
        self._parts: dict[str, list[list[Ids]]] = {}
        self._arities: dict[str, int] = {}

    def add_text(self, relation: str, columns: Iterable[pa.Array]) -> None:
        self._parts.setdefault(relation, []).append([self.dictionary.encode_column(c) for c in columns])

    def add_atoms(self, atoms: Iterable[Atom]) -> None:
        rows: dict[str, list[Any]] = {}
        for atom in atoms:
            if not isinstance(atom, Atom):
                raise _not_understood(atom)
            known = self._arities.setdefault(atom.relation, len(atom.terms))
            if known != len(atom.terms):
                raise arity_clash(atom.relation, len(atom.terms), known, atom.position)
            rows.setdefault(atom.relation, []).append(atom.terms)
        for relation, terms in rows.items():
            columns = [self.dictionary.encode(column) for column in zip(*terms, strict=True)]
            self._parts.setdefault(relation, []).append(columns)

    def facts(self) -> dict[str, list[Ids]]:
        joined = {
            relation: [np.concatenate(column) for column in zip(*parts, strict=True)] for relation, parts in self._parts.items()
        }
        return {relation: columns for relation, columns in joined.items() if not columns or len(columns[0])}


def _read(source: Any, out: _Columns, rejects: Rejects | None) -> None:
    if isinstance(source, Path):
        _read_paths([source], out, rejects)
    elif isinstance(source, str):
        if _is_path(source):
            _read_paths([source], out, rejects)
        else:
            _read_string(source, out)
    elif isinstance(source, OwnLines):
        _read_own(source.lines, out)
    elif isinstance(source, bytes):
        _read_string(source.decode(), out)
    elif isinstance(source, Program):
        _read_program(source, out)
    elif (frame := _as_table(source)) is not None:
        _read_table(frame, out)
    elif isinstance(source, Iterable):
        _read_items(list(source), out, rejects)
    else:
        raise _not_understood(source)


def _is_path(text: str) -> bool:
    """Text that names a file: it has one line, no spaces around an angle bracket, and exists or ends like a data file."""
    if "\n" in text or not text.strip() or _NTRIPLES.match(text) or len(text) > MOST_PATH:
        return False
    if is_data_file(Path(text)) or text.endswith(".dlog") or _GLOB.match(text):
        return True
    try:
        return Path(text).exists()
    except OSError:
        return False


def _read_paths(paths: list[str | Path], out: _Columns, rejects: Rejects | None) -> None:
    data = []
    for path in paths:
        if str(path).endswith(".dlog"):
            _read_program(Program.load(path), out)
        else:
            data.append(path)
    scopes = (lambda: OWN) if out.own else out.dictionary.next_scope
    for block in read_files(expand(data), scopes, rejects, out.progress):
        out.add_text(TRIPLE, block)


def _read_string(text: str, out: _Columns) -> None:
    if not text.strip():
        return
    if _NTRIPLES.match(text):
        for block in read_text(text, scope=OWN if out.own else None):
            out.add_text(TRIPLE, block)
    else:
        _read_program(Program.parse(text), out)


def _read_own(lines: list[str], out: _Columns) -> None:
    """The number of a file that a label names is not given to a later file, whose nodes would get the same names."""
    for block in read_text("\n".join(lines), scope=OWN):
        for column in (block[0], block[2]):
            numbers = pc.struct_field(pc.extract_regex(column, _FILE_NUMBER), "number").cast(pa.int64())
            out.dictionary.scopes = max(out.dictionary.scopes, pc.max(numbers).as_py() or 0)
        out.add_text(TRIPLE, block)


def _read_program(program: Program, out: _Columns) -> None:
    if program.rules:
        raise UserError(
            "EG105", "a rule stands among the facts", "give rules when the graph is made", program.rules[0].position
        )
    out.add_atoms(program.facts)


def _read_items(items: list[Any], out: _Columns, rejects: Rejects | None) -> None:
    """An iterable: of paths, of N-Triples lines, of Datalog atoms, or of triples."""
    if not items:
        return
    first = items[0]
    if _names_file(first):
        _read_paths(items, out, rejects)
    elif isinstance(first, str):
        if not all(isinstance(item, str) for item in items):
            raise _not_understood(next(item for item in items if not isinstance(item, str)))
        _read_string("\n".join(items), out)
    elif isinstance(first, Atom):
        out.add_atoms(items)
    else:
        rows = [_triple(item, out.own) for item in items]
        out.add_text(TRIPLE, [pa.array(column, pa.string()) for column in zip(*rows, strict=True)])


def _triple(item: Any, own: bool) -> tuple[str, ...]:
    if isinstance(item, ox.Triple | ox.Quad):
        item = (item.subject, item.predicate, item.object)
    if isinstance(item, str) or not hasattr(item, "__len__") or len(item) not in (3, 4):
        raise _not_understood(item)
    subject, predicate, value = (from_object(term, own) for term in tuple(item)[:3])
    if subject.startswith('"') or not predicate.startswith("<"):
        raise UserError("EG105", f"not a triple: {subject} {predicate} {value}", "a subject is no literal, a predicate an IRI")
    return subject, predicate, value


def _as_table(source: Any) -> pa.Table | None:
    """A frame of any known kind as an Arrow table."""
    if isinstance(source, pa.Table):
        return source
    if isinstance(source, pa.RecordBatch):
        return pa.Table.from_batches([source])
    if hasattr(source, "toArrow"):
        table: pa.Table = source.toArrow()
        return table
    if type(source).__module__.startswith("pandas"):
        return pa.Table.from_pandas(source, preserve_index=False)
    if hasattr(source, "to_arrow"):
        converted: pa.Table = source.to_arrow()
        return converted
    return None


def _read_table(table: pa.Table, out: _Columns) -> None:
    missing = [c for c in COLUMNS if c not in table.column_names]
    if missing:
        raise UserError("EG105", f"the frame has no column {missing[0]!r}", f"name the columns {', '.join(COLUMNS)}")
    if table.num_rows:
        out.add_text(TRIPLE, [_terms(table.column(name), out.own) for name in COLUMNS])


def _terms(column: pa.ChunkedArray, own: bool) -> pa.Array:
    """A column of terms in canonical spelling; each distinct value is checked once, by Arrow if it is spelled so already."""
    encoded = column.combine_chunks().dictionary_encode()
    values = encoded.dictionary
    odd = (
        pc.invert(canonical_terms(values)) if pa.types.is_string(values.type) or pa.types.is_large_string(values.type) else None
    )
    if odd is None:
        values = pa.array([from_object(value, own) for value in values.to_pylist()], pa.string())
    elif pc.any(odd).as_py():
        terms = [from_object(value, own) for value in values.filter(odd).to_pylist()]
        values = pc.replace_with_mask(values, odd, pa.array(terms, values.type))
    return values.take(encoded.indices)


def arity_clash(name: str, arity: int, expected: int, position: Position | None = None) -> UserError:
    return UserError(
        "EG004",
        f"a fact of {name} has {arity} arguments, but {name} has {expected}",
        "give a relation the same number of arguments everywhere",
        position,
    )


def _not_understood(source: Any) -> UserError:
    return UserError(
        "EG105",
        f"cannot read facts from {type(source).__name__}",
        "give paths, N-Triples or Datalog text, triples, an rdflib Graph, or a frame with subject, predicate, object",
    )
