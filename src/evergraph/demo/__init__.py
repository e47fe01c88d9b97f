"""The main job on a small graph, step by step, in words."""

from evergraph.demo.run import run

__all__ = ["run"]
