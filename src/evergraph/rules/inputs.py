"""Everything `insert_rules` and `delete_rules` take, as one program."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from evergraph.errors import UserError, raise_all
from evergraph.rules.checks import check
from evergraph.rules.model import Program, Rule
from evergraph.rules.sources import SETS


def read_rules(source: Any) -> Program:
    """A program, `.dlog` text, the path of a rule file or ontology, the name of a rule set, rules, or several of these.

    Cost: linear in it.
    """
    if source is None:
        return Program()
    if isinstance(source, Program):
        return source
    if isinstance(source, Path) or (isinstance(source, str) and _names_one(source)):
        return Program.load(source)
    if isinstance(source, str):
        return Program.parse(source)
    if not isinstance(source, Iterable):
        raise _not_rules(source)
    rules: list[Rule] = []
    programs: list[Program] = []
    for item in source:
        if isinstance(item, Rule):
            rules.append(item)
        elif isinstance(item, str | Path | Program):
            programs.append(read_rules(item))
        else:
            raise _not_rules(item)
    given = Program(tuple(rules))
    raise_all(check(given))
    everything = [given, *programs]
    prefixes = {prefix: iri for program in everything for prefix, iri in program.prefixes.items()}
    chosen = tuple(rule for program in everything for rule in program.rules)
    facts = tuple(fact for program in everything for fact in program.facts)
    return Program(chosen, facts, prefixes, tuple(item for program in everything for item in program.outside))


def _names_one(text: str) -> bool:
    return text in SETS or ("\n" not in text and ":-" not in text and "." in text and bool(Path(text).suffix[1:].strip()))


def _not_rules(source: Any) -> UserError:
    return UserError(
        "EG105", f"these are no rules: {type(source).__name__}", "give a Program, text, the path of a file, or rules"
    )
