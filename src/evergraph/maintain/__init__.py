"""Maintenance algorithms, one paper, one file."""
