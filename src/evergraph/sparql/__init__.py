"""SPARQL 1.1 over the materialisation."""

from evergraph.sparql.answers import Answers
from evergraph.sparql.query import query
from evergraph.sparql.view import View

__all__ = ["Answers", "View", "query"]
