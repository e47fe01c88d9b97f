"""The systems that `evergraph bench materialise` measures."""

from evergraph.bench.peers.base import Outcome, Peer, Unsupported
from evergraph.bench.peers.registry import PEERS, find

__all__ = ["PEERS", "Outcome", "Peer", "Unsupported", "find"]
