"""Insertions and deletions, by every algorithm, beside recomputation, the literature and other systems."""
