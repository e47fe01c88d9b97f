"""Query text to algebra, by rdflib's parser.

Contract: what cannot be read is a mistake with line and column. Queries are kept by their text, so that asking again does
not parse again: it takes milliseconds, as long as many answers.
Trap: rdflib rewrites literals (`"01"^^xsd:integer` becomes 1, a dateTime's `Z` becomes `+00:00`) unless told not to, by a
switch that is global; it is held off under a lock, and only while parsing. Expressions keep state while they are
evaluated, so every thread has its own queries.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import rdflib
from pyparsing import ParseBaseException
from rdflib.plugins.sparql.algebra import translateQuery
from rdflib.plugins.sparql.parser import parseQuery
from rdflib.plugins.sparql.parserutils import CompValue
from rdflib.plugins.sparql.sparql import Query
from rdflib.term import Variable

from evergraph.errors import Position, UserError
from evergraph.sparql.operators import correct
from evergraph.sparql.tree import nodes

KEPT = 256
"""Queries kept by each thread, the latest used."""

_switch = threading.Lock()
_queries = threading.local()


def prepare(text: str, namespaces: Mapping[str, Any] | None = None, base: str | None = None) -> Query:
    """The query that a text stands for. Cost: 1 to 5 ms, next to nothing for one of the latest."""
    kept: OrderedDict[Any, Query] = _queries.__dict__.setdefault("kept", OrderedDict())
    key = (text, base, tuple(sorted((str(k), str(v)) for k, v in (namespaces or {}).items())))
    query = kept.get(key)
    if query is None:
        query = kept[key] = _parse(text, namespaces, base)
        if len(kept) > KEPT:
            kept.popitem(last=False)
    kept.move_to_end(key)
    return query


def _parse(text: str, namespaces: Mapping[str, Any] | None, base: str | None) -> Query:
    with _switch:
        normalise, rdflib.NORMALIZE_LITERALS = rdflib.NORMALIZE_LITERALS, False
        try:
            parsed = parseQuery(text)
            star = not parsed[1].projection
            query = translateQuery(parsed, base, namespaces)
        except ParseBaseException as error:
            raise _malformed(text, error.loc) from error
        except RecursionError as error:
            raise UserError("EG501", "the query is nested too deeply", "split it into several") from error
        except Exception as error:  # rdflib raises bare exceptions for unknown prefixes and variables used wrongly
            raise _misused(text, str(error)) from error
        finally:
            rdflib.NORMALIZE_LITERALS = normalise
    correct(query.algebra)
    _name_groups(query.algebra)
    if star and query.algebra.name == "SelectQuery":
        query.algebra.PV.sort(key=lambda variable: _place(text, variable))  # it comes in the order of a set
    return query


def _name_groups(query: CompValue) -> None:
    """Give a variable to each expression that is grouped by without one; rdflib's translation leaves None in its place."""
    for part in nodes(query):
        if part.name == "Group" and part.expr and None in part.expr:
            inner = part.p
            for at in reversed(range(len(part.expr))):
                if part.expr[at] is None:
                    while inner.var is not None:
                        inner = inner.p
                    inner["var"] = part.expr[at] = Variable(f"group {at}")


def _place(text: str, variable: str) -> int:
    found = re.search(rf"[?$]{re.escape(variable)}\b", text)
    return found.start() if found else len(text)


def _malformed(text: str, at: int) -> UserError:
    """A syntax error, at the start of the group that the parser gave up on."""
    if re.match(r"(insert|delete|load|clear|create|drop|copy|move|add|with)\b", text[at:], re.IGNORECASE):
        return UserError("EG501", "an update is not a query", "change facts with KnowledgeGraph.update", _position(text, at))
    start = " ".join(text[at : at + 40].split())
    return _mistake(f"malformed SPARQL at '{start}'" if start else "malformed SPARQL: it ends too early", _position(text, at))


def _misused(text: str, reason: str) -> UserError:
    prefix = re.match(r"Unknown namespace prefix : (.*)", reason)
    if prefix is None:
        return _mistake(f"malformed SPARQL: {reason}", _position(text, 0))
    name = "" if prefix[1] == "None" else prefix[1]
    used = re.search(rf"(?<![\w<:]){re.escape(name)}:", text)
    return UserError(
        "EG501",
        f"unknown prefix '{name}:'",
        f"declare it with 'PREFIX {name}: <…>'",
        _position(text, used.start() if used else 0),
    )


def _mistake(reason: str, position: Position) -> UserError:
    return UserError("EG501", reason, "write a SELECT, ASK, CONSTRUCT or DESCRIBE query of SPARQL 1.1", position)


def _position(text: str, at: int) -> Position:
    before = text[:at]
    return Position("<query>", before.count("\n") + 1, at - before.rfind("\n"))
