"""Reasoning over streams: windows by expiry, continuous queries, Structured Streaming."""
