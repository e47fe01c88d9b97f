"""Evergraph keeps the consequences of rules true while facts and rules change."""

from evergraph.errors import UserError
from evergraph.graph import KnowledgeGraph
from evergraph.report import Report
from evergraph.rules.model import Program

__version__ = "0.1.0"
__all__ = ["KnowledgeGraph", "Program", "Report", "UserError", "__version__"]
