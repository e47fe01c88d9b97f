"""Small ontologies for tests: Turtle text in, the compiled ontology out."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from evergraph.rules.owl import Ontology, compile_ontology
from evergraph.rules.printer import print_atom, print_rule

EX = "http://example.org/"
HEADER = f"""@prefix : <{EX}> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""


def compiled(*texts: str) -> Ontology:
    """Turtle texts, each a file, as one ontology."""
    with TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{number}.ttl" for number in range(len(texts))]
        for path, text in zip(paths, texts, strict=True):
            path.write_text(HEADER + text, encoding="utf-8")
        return compile_ontology(paths)


def rules_of(ontology: Ontology) -> list[str]:
    """The rules as printed, without their names."""
    prefixes = ontology.program.prefixes
    return [print_rule(rule, prefixes).splitlines()[-1].removesuffix(" .") for rule in ontology.program.rules]


def facts_of(ontology: Ontology) -> list[str]:
    return [print_atom(fact, ontology.program.prefixes) for fact in ontology.program.facts]


def outside_of(ontology: Ontology) -> list[tuple[str, str]]:
    return [(item.axiom, item.reason) for item in ontology.outside]
