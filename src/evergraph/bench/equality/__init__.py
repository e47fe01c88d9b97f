"""Equality by representatives measured: the evaluation of Motik et al. 2015 on data of our own, cliques, and idle rules."""
