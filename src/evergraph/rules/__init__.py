"""Rules: the model, its text syntax, checks, stratification and shapes."""

from evergraph.rules.model import (
    TRIPLE,
    Atom,
    Comparison,
    Negation,
    Operator,
    Program,
    Rule,
    Variable,
)

__all__ = ["TRIPLE", "Atom", "Comparison", "Negation", "Operator", "Program", "Rule", "Variable"]
