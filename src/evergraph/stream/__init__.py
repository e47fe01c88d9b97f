"""Reasoning over streams: windows by expiry, continuous queries, Structured Streaming."""

from evergraph.stream.stream import Stream
from evergraph.stream.window import Window

__all__ = ["Stream", "Window"]
