"""A fact as it is given to `explain`: terms, an atom, or text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import pyoxigraph as ox

from evergraph.errors import UserError
from evergraph.rules.model import TRIPLE, Atom, Program, Rule
from evergraph.rules.printer import print_atom
from evergraph.terms import from_object

_NTRIPLES = re.compile(r"\s*(<[^>]*>\s*|_:\S+\s+)<")


def read_fact(fact: Any, prefixes: Mapping[str, str]) -> Atom:
    """One fact without variables. Blank nodes are the graph's own; text may use the prefixes, and those of every program.

    >>> read_fact("path(1, ex:a)", {"ex": "http://ex/"}).terms
    ('"1"^^<http://www.w3.org/2001/XMLSchema#integer>', '<http://ex/a>')
    """
    if isinstance(fact, str):
        fact = _parsed(fact, prefixes)
    if isinstance(fact, Atom):
        if list(fact.variables):
            raise UserError("EG105", f"{print_atom(fact)} has variables", "only a single fact can be explained")
        return fact
    if isinstance(fact, ox.Triple | ox.Quad):
        fact = (fact.subject, fact.predicate, fact.object)
    terms = tuple(from_object(term, own=True) for term in fact) if isinstance(fact, Iterable) else ()
    if len(terms) != 3:
        raise UserError("EG105", f"not a fact: {fact!r}", "give subject, predicate, object, or text such as 'path(1, 2)'")
    return Atom(TRIPLE, terms)


def _parsed(text: str, prefixes: Mapping[str, str]) -> Any:
    """A fact that is given as text: a line of N-Triples, or Datalog with the prefixes of the rules."""
    body = text.strip().removesuffix(".")
    if _NTRIPLES.match(text):
        try:
            found: list[Any] = list(ox.parse(f"{body} .", format=ox.RdfFormat.N_TRIPLES))
        except SyntaxError as error:
            raise UserError("EG103", f"not a triple: {text}", "write <subject> <predicate> <object>") from error
    else:
        known = "".join(f"@prefix {prefix}: <{iri}> . " for prefix, iri in prefixes.items())
        try:
            program = Program.parse(f"{known}{body} .")
        except UserError as error:
            raise UserError(error.code, f"not a fact: {text}: {error.message}", error.hint) from error
        found = [*program.facts, *program.rules]
    if len(found) != 1 or isinstance(found[0], Rule):
        raise UserError("EG105", f"not a fact: {text}", "give one fact, such as path(1, 2)")
    return found[0]
