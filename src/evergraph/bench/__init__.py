"""Measurements, each a module with a `main`: the closure beside other systems, small insertions, large taxonomies."""
