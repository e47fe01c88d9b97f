"""The answers of a basic graph pattern as a Spark frame, for graphs whose answers are too many for one process.

Compiled are `SELECT`, `DISTINCT`, `LIMIT` and `OFFSET` over one basic graph pattern: triple patterns, property paths but `*`,
`+` and `?`, and filters that compare a variable with an IRI, `sameTerm`, and `&&` of them. Joins are on ids; terms are looked
up at the end, for what is left. Everything else is refused by its name, not approximated.
Trap: Spark takes `?x` and `?X` for one name, so columns are numbered until the end.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

from rdflib.paths import MulPath, NegatedPath
from rdflib.plugins.sparql.parserutils import CompValue
from rdflib.term import BNode, Identifier, URIRef, Variable

from evergraph.errors import UserError
from evergraph.sparql.algebra import name_of
from evergraph.sparql.lexicon import text_of
from evergraph.sparql.paths import Triple, alternatives
from evergraph.sparql.prepare import prepare
from evergraph.sparql.tree import conjuncts

Find = Callable[[str], int | None]
PLACES = ("subject", "predicate", "object")
NAMES = {
    "LeftJoin": "OPTIONAL",
    "Union": "UNION",
    "Minus": "MINUS",
    "Join": "a group inside a group",
    "Extend": "BIND or an expression",
    "ToMultiSet": "VALUES or a subquery",
    "AggregateJoin": "an aggregate",
    "OrderBy": "ORDER BY",
    "Graph": "GRAPH",
    "ServiceGraphPattern": "SERVICE",
}


def to_frame(text: str, triples: Any, dictionary: Any, find: Find) -> Any:
    """A frame with a column of N-Triples terms for each variable of the query.

    `triples` has ids in the columns subject, predicate, object; `dictionary` has the columns id and term; `find` gives the
    id of a constant, None where there is none. Cost: nothing until Spark is asked for rows.
    """
    from pyspark.sql import functions as F

    algebra = prepare(text).algebra
    if algebra.name != "SelectQuery" or algebra.datasetClause:
        raise _refused("FROM" if algebra.datasetClause else algebra.name.removesuffix("Query").upper())
    part, modifiers = algebra.p, []
    while part.name in ("Slice", "Distinct", "Reduced", "Project"):
        modifiers.append(part)
        part = part.p
    conditions: list[Any] = []
    if part.name == "Filter":
        part, conditions = part.p, conjuncts(part.expr)
    if part.name != "BGP":
        raise _refused(NAMES.get(part.name, part.name))
    frame, columns = _pattern(triples, part.triples, conditions, find)
    wanted = [str(variable) for variable in algebra.PV]
    chosen = [F.col(columns[name]) if name in columns else F.lit(None).cast("long") for name in wanted]
    frame = frame.select(*(column.alias(f"w{number}") for number, column in enumerate(chosen)))
    for modifier in reversed(modifiers):
        if modifier.name == "Distinct":
            frame = frame.distinct()
        elif modifier.name == "Slice":
            frame = frame.offset(modifier.start)
            frame = frame if modifier.length is None else frame.limit(modifier.length)
    for number in range(len(wanted)):
        terms = dictionary.select(F.col("id").alias(f"w{number}"), F.col("term").alias(f"t{number}"))
        frame = frame.join(terms, f"w{number}", "left")
    return frame.select(*(f"t{number}" for number in range(len(wanted)))).toDF(*wanted)


def _pattern(triples: Any, pattern: list[Triple], conditions: list[Any], find: Find) -> tuple[Any, dict[str, str]]:
    """The solutions of a basic graph pattern as a frame of ids, and the columns of its variables there."""
    if not pattern:
        raise _refused("a query without triple patterns")
    ways = alternatives(pattern)
    names = dict.fromkeys(name for way in ways for triple in way for term in triple if (name := _name(term)))
    columns = {name: f"v{number}" for number, name in enumerate(names)}
    visible = [columns[name] for triple in pattern for name in map(_name, triple) if name]
    frames = []
    for way in ways:
        parts = sorted((_one(triples, triple, columns, find) for triple in way), key=lambda part: len(part[1]))
        frame = _joined(parts)
        for condition in conditions:
            frame = frame.where(_condition(condition, columns, find))
        frames.append(frame.select(*dict.fromkeys(visible)))
    return reduce(lambda a, b: a.union(b), frames), columns


def _one(triples: Any, triple: Triple, columns: dict[str, str], find: Find) -> tuple[Any, list[str]]:
    """The solutions of a triple pattern, and its columns."""
    from pyspark.sql import functions as F

    found: dict[str, str] = {}
    frame = triples
    for place, term in zip(PLACES, triple, strict=True):
        name = _name(term)
        if isinstance(term, MulPath):
            raise _refused(f"the property path operator {term.mod}")
        if isinstance(term, NegatedPath):
            excluded = [number for each in term.args if (number := find(text_of(each))) is not None]
            frame = frame.where(~F.col(place).isin(excluded)) if excluded else frame
        elif name is None:
            number = find(text_of(term))
            frame = frame.where(F.lit(False) if number is None else F.col(place) == number)
        elif columns[name] in found:
            frame = frame.where(F.col(place) == F.col(found[columns[name]]))
        else:
            found[columns[name]] = place
    return frame.select(*(F.col(place).alias(column) for column, place in found.items())), list(found)


def _joined(parts: list[tuple[Any, list[str]]]) -> Any:
    """All patterns joined, from the most selective one along shared variables as far as these lead."""
    (frame, bound), *rest = parts
    known = set(bound)
    while rest:
        at = next((n for n, (_, names) in enumerate(rest) if known.intersection(names)), 0)
        other, names = rest.pop(at)
        shared = [name for name in names if name in known]
        frame = frame.join(other, shared) if shared else frame.crossJoin(other)
        known.update(names)
    return frame


def _condition(condition: Any, columns: dict[str, str], find: Find) -> Any:
    """A condition that holds between ids exactly if it does between terms."""
    from pyspark.sql import functions as F

    def side(term: Any) -> Any:
        name = _name(term)
        if name is None:
            return F.lit(find(text_of(term)))
        if name not in columns:
            raise _refused(f"a filter on ?{name}, which the pattern does not bind")
        return F.col(columns[name])

    name = condition.name if isinstance(condition, CompValue) else "a constant"
    if name == "Builtin_sameTerm" and all(isinstance(term, Identifier) for term in (condition.arg1, condition.arg2)):
        return side(condition.arg1).eqNullSafe(side(condition.arg2))
    if name == "RelationalExpression" and condition.op in ("=", "!="):
        left, right = condition.expr, condition.other
        if any(isinstance(term, URIRef) for term in (left, right)) and all(isinstance(t, Identifier) for t in (left, right)):
            equal = side(left).eqNullSafe(side(right))
            return equal if condition.op == "=" else ~equal
    raise _refused(f"the filter {name.removeprefix('Builtin_').removesuffix('Expression')}")


def _name(term: Any) -> str | None:
    """The name of a variable; None for constants and paths."""
    if isinstance(term, Variable | BNode):
        return name_of(term)
    return term if type(term) is str else None  # a node in the middle of a path


def _refused(construct: str) -> UserError:
    return UserError(
        "EG502", f"Spark cannot compile {construct}", "ask without Spark: the default result answers all of SPARQL 1.1"
    )
