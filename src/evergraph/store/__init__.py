"""The store: open tables on disk, in versions."""

from evergraph.store.log import Info, Snapshot
from evergraph.store.store import Store

__all__ = ["Info", "Snapshot", "Store"]
