"""The Lehigh University Benchmark: the univ-bench ontology and a generator of its data."""

from evergraph.bench.lubm.generator import Summary, ontology, triples_of_university, write

__all__ = ["Summary", "ontology", "triples_of_university", "write"]
