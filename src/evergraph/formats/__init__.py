"""RDF files in and out."""

from evergraph.formats.files import Progress, Rejects, expand, read_files, read_text
from evergraph.formats.write import write_ntriples

__all__ = ["Progress", "Rejects", "expand", "read_files", "read_text", "write_ntriples"]
