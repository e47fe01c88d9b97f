"""Small ontologies for tests: Turtle text in, the compiled ontology out."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from evergraph.rules.model import Program
from evergraph.rules.owl import compile_ontology
from evergraph.rules.printer import print_atom, print_rule

EX = "http://example.org/"
HEADER = f"""@prefix : <{EX}> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""


def compiled(*texts: str) -> Program:
    """Turtle texts, each a file, as one ontology."""
    with TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{number}.ttl" for number in range(len(texts))]
        for path, text in zip(paths, texts, strict=True):
            path.write_text(HEADER + text, encoding="utf-8")
        return compile_ontology(paths)


def rules_of(ontology: Program) -> list[str]:
    """The rules as printed, without their names."""
    prefixes = ontology.prefixes
    return [print_rule(rule, prefixes).splitlines()[-1].removesuffix(" .") for rule in ontology.rules]


def facts_of(ontology: Program) -> list[str]:
    return [print_atom(fact, ontology.prefixes) for fact in ontology.facts]


def outside_of(ontology: Program) -> list[tuple[str, str]]:
    return [(item.axiom, item.reason) for item in ontology.outside]
