"""Why a fact holds: `explain` gives a proof down to explicit facts."""

from evergraph.explain.ask import explain
from evergraph.explain.proof import Kind, Proof

__all__ = ["Kind", "Proof", "explain"]
