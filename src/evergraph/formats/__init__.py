"""RDF files in and out."""

from evergraph.formats.files import Piece, Progress, Rejects, cut_files, expand, read_files, read_piece, read_text
from evergraph.formats.write import write_ntriples

__all__ = [
    "Piece",
    "Progress",
    "Rejects",
    "cut_files",
    "expand",
    "read_files",
    "read_piece",
    "read_text",
    "write_ntriples",
]
