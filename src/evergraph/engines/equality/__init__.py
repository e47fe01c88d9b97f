"""Equality by representatives (Motik et al. 2015): names, merging, what a normalised graph stands for, and the engine."""
