"""The `.dlog` writer: `parse(print(program)) == program` for every program."""

from __future__ import annotations

import re
from collections.abc import Mapping

from evergraph.rules.model import (
    PREFIXES,
    TRIPLE,
    TYPE,
    XSD,
    Atom,
    BodyItem,
    Comparison,
    Negation,
    Operator,
    Program,
    Rule,
    Term,
    Variable,
)

_LOCAL = re.compile(r"[A-Za-z0-9_](?:[\w\-]*)?$", re.ASCII)
_BARE = {
    "integer": re.compile(r"[+-]?\d+$", re.ASCII),
    "decimal": re.compile(r"[+-]?\d+\.\d+$", re.ASCII),
    "double": re.compile(r"[+-]?\d+(\.\d+)?[eE][+-]?\d+$", re.ASCII),
    "boolean": re.compile(r"(true|false)$"),
}


def print_program(program: Program) -> str:
    """One line per prefix, rule and fact, in their order. Cost: linear in the program."""
    extra = {k: v for k, v in program.prefixes.items() if PREFIXES.get(k) != v}
    lines = [f"@prefix {prefix}: <{iri}> .\n" for prefix, iri in extra.items()]
    lines += [print_rule(rule, program.prefixes) for rule in program.rules]
    lines += [f"{print_atom(fact, program.prefixes)} .\n" for fact in program.facts]
    return "".join(lines)


def print_rule(rule: Rule, prefixes: Mapping[str, str] = PREFIXES) -> str:
    name = f"#[name({_quote(rule.name)})]\n" if rule.name else ""
    return f"{name}{print_atom(rule.head, prefixes)} :- {', '.join(print_item(item, prefixes) for item in rule.body)} .\n"


def print_item(item: BodyItem, prefixes: Mapping[str, str] = PREFIXES) -> str:
    """An atom, a negated one or a comparison, as it stands in a body."""
    if isinstance(item, Negation):
        return f"NOT {print_atom(item.atom, prefixes)}"
    if isinstance(item, Comparison):
        return _comparison(item, prefixes)
    return print_atom(item, prefixes)


def print_atom(atom: Atom, prefixes: Mapping[str, str] = PREFIXES) -> str:
    terms = [print_term(t, prefixes) for t in atom.terms]
    if atom.relation != TRIPLE:
        return f"{atom.relation}({', '.join(terms)})"
    _, predicate, value = atom.terms
    if predicate == TYPE and isinstance(value, str) and value.startswith("<"):
        return f"{terms[2]}[{terms[0]}]"
    if isinstance(predicate, str) and predicate.startswith("<"):
        return f"{terms[1]}[{terms[0]}, {terms[2]}]"
    return f"[{', '.join(terms)}]"


def _comparison(item: Comparison, prefixes: Mapping[str, str]) -> str:
    left, right = print_term(item.left, prefixes), print_term(item.right, prefixes)
    if item.operator == Operator.ILLTYPED:
        return f"ILLTYPED({left}, {right})"
    return f"{left} {item.operator} {right}"


def print_term(term: Term, prefixes: Mapping[str, str] = PREFIXES) -> str:
    """A term as short as the prefixes allow."""
    if isinstance(term, Variable) or term.startswith("_:"):
        return str(term)
    if term.startswith("<"):
        return _iri(term, prefixes)
    lexical, _, datatype = term.rpartition("^^") if term.endswith(">") else (term, "", "")
    if not datatype:
        return term
    pattern = _BARE.get(datatype[1:-1].removeprefix(XSD))
    if pattern and pattern.match(lexical[1:-1]):
        return lexical[1:-1]
    return f"{lexical}^^{_iri(datatype, prefixes)}"


def _iri(term: str, prefixes: Mapping[str, str]) -> str:
    iri = term[1:-1]
    for prefix, namespace in prefixes.items():
        if iri.startswith(namespace) and _LOCAL.match(iri[len(namespace) :]):
            return f"{prefix}:{iri[len(namespace) :]}"
    return term


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    return f'"{escaped}"'
