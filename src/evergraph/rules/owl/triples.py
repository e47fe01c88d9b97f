"""The triples of an ontology, indexed once, and the names its reader knows.

Contract: several files are one ontology; what they say twice counts once; nothing depends on the order of their lines. Blank
nodes of different files are different. Cost: linear in the triples.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from pathlib import Path

import pyarrow as pa
import pyoxigraph as ox

from evergraph.formats import read_files
from evergraph.formats.files import COMPRESSIONS, FORMATS
from evergraph.rules.model import PREFIXES, TYPE
from evergraph.rules.owl.vocabulary import FIRST, NIL, REST
from evergraph.rules.printer import print_term

Triple = tuple[str, str, str]
_PREFIX = re.compile(r"([A-Za-z][\w\-]*)?$", re.ASCII)
ROUNDS = 3
"""How far around an anonymous individual its label looks."""


class Malformed(Exception):
    """What a node should say and does not."""


class Triples:
    """Look-ups by subject and predicate, and lists."""

    def __init__(self, triples: Iterable[Triple]) -> None:
        self.all = list(dict.fromkeys(triples))
        self._of: dict[str, dict[str, list[str]]] = {}
        for subject, predicate, value in self.all:
            self._of.setdefault(subject, {}).setdefault(predicate, []).append(value)

    def of(self, subject: str) -> Mapping[str, Sequence[str]]:
        """The values of a subject by predicate."""
        return self._of.get(subject, {})

    def types(self, subject: str) -> Sequence[str]:
        return self.of(subject).get(TYPE, ())

    def one(self, subject: str, predicate: str) -> str:
        """The only value that a node has."""
        values = self.of(subject).get(predicate, ())
        if len(values) != 1:
            raise Malformed(f"{'no' if not values else 'more than one'} {print_term(predicate)}")
        return values[0]

    def items(self, start: str) -> list[str]:
        """The members of a list. Cost: linear in them."""
        found, seen = [], set()
        while start != NIL:
            if start in seen:
                raise Malformed("a list that contains itself")
            seen.add(start)
            try:
                found.append(self.one(start, FIRST))
                start = self.one(start, REST)
            except Malformed as error:
                raise Malformed(f"a list with a cell that has {error}") from error
        return found


def read(paths: Sequence[Path]) -> Triples:
    """Every triple of the files; a file that does not parse is an error with its place."""
    scopes = count(1)
    blocks = read_files(paths, lambda: next(scopes))
    return Triples(row for block in blocks for row in zip(*(column.to_pylist() for column in block), strict=True))


def prefixes_of(paths: Iterable[Path]) -> dict[str, str]:
    """The prefixes that files declare before their first triple; the first to declare one has it."""
    found = dict(PREFIXES)
    for path in paths:
        compression = COMPRESSIONS.get(path.suffix)
        format_ = FORMATS[Path(path.stem if compression else path.name).suffix]
        with pa.input_stream(str(path), compression=compression) as stream:
            parser = ox.parse(stream, format=format_, base_iri="file:///")
            next(parser, None)
            # An empty namespace, or one that is no beginning of an absolute IRI, cannot be written in rules.
            usable = {name: iri for name, iri in parser.prefixes.items() if _PREFIX.match(name) and ":" in iri}
        found = {**usable, **found}
    return {**{name: found[name] for name in PREFIXES}, **dict(sorted(found.items() - PREFIXES.items()))}


def label_individuals(facts: Iterable[Triple]) -> dict[str, str]:
    """Labels for the blank nodes of facts that come from what is said of them, and not from a parser's counter.

    Two that say the same are told apart by the order in which they come. Cost: `ROUNDS` passes over the facts about them.
    """
    around: dict[str, list[tuple[str, str, str]]] = defaultdict(list)
    for subject, predicate, value in facts:
        if subject.startswith("_:"):
            around[subject].append((">", predicate, value))
        if value.startswith("_:"):
            around[value].append(("<", predicate, subject))
    colours = dict.fromkeys(around, "")
    for _ in range(ROUNDS):
        colours = {
            node: hashlib.sha256(repr(sorted((d, p, colours.get(o, o)) for d, p, o in said)).encode()).hexdigest()[:16]
            for node, said in around.items()
        }
    seen: dict[str, int] = defaultdict(int)
    labels = {}
    for node, colour in colours.items():
        seen[colour] += 1
        labels[node] = f"_:o{colour}" + (f"_{seen[colour]}" if seen[colour] > 1 else "")
    return labels
