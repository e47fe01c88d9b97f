"""Where programs come from: the shipped rule sets by name, and files by their ending."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from evergraph.errors import Position, UserError
from evergraph.formats.files import is_data_file
from evergraph.rules.model import Program

SETS = ("rhodf", "rdfs", "rdfs-jena", "owl2rl", "owl2rl-full")


def load(source: str | Path, including: tuple[str, ...] = (), at: Position | None = None) -> Program:
    """A rule set by name, a `.dlog` file or an ontology; `including` are the files that are being read, outermost first.

    A file that another includes is looked for beside it.
    """
    from evergraph.rules.parse import parse

    if including and source not in SETS and including[-1] not in SETS:
        source = str(Path(including[-1]).parent / source)
    if is_ontology(source):
        return _ontology(source, at)
    if str(source) in including:
        chain = " → ".join((*including, str(source)))
        raise UserError("EG008", f"a file includes itself: {chain}", "remove one @include", at)
    return parse(_text(source, at), _name(source), (*including, str(source)))


def is_ontology(source: str | Path) -> bool:
    """Whether a source is a file of RDF, by its ending."""
    return is_data_file(Path(source))


def _ontology(source: str | Path, at: Position | None) -> Program:
    from evergraph.rules.owl import compile_ontology

    try:
        return compile_ontology([source])
    except UserError as error:
        if error.position or at is None:
            raise
        raise UserError(error.code, error.message, error.hint, at) from error


def _text(source: str | Path, at: Position | None) -> str:
    if source in SETS:
        return files("evergraph.rules.sets").joinpath(f"{source}.dlog").read_text(encoding="utf-8")
    path = Path(source)
    if path.suffix != ".dlog":
        raise UserError(
            "EG007",
            f"no rule set is called {str(source)!r}",
            f"use one of {', '.join(SETS)}, or the path of a .dlog file or an ontology",
            at,
        )
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError("EG101", f"cannot read {path}: {error.strerror}", "check the path", at) from error
    except UnicodeDecodeError as error:
        raise UserError("EG103", f"{path} is not UTF-8 text", "save it as UTF-8", at) from error


def _name(source: str | Path) -> str:
    return f"{source}.dlog" if source in SETS else str(source)
