"""Ontologies as rules: OWL 2 compiled in the manner of description logic programs."""

from evergraph.rules.owl.compile import compile_ontology

__all__ = ["compile_ontology"]
