"""The list of peers, in the order of the table."""

from __future__ import annotations

from evergraph.bench.peers.base import Peer
from evergraph.bench.peers.clingo import Clingo
from evergraph.bench.peers.duckdb import DuckDB
from evergraph.bench.peers.evergraph import Evergraph, EvergraphSpark
from evergraph.bench.peers.maplib import Maplib
from evergraph.bench.peers.nemo import Nemo
from evergraph.bench.peers.owlrl import Owlrl
from evergraph.bench.peers.reasonable import Reasonable
from evergraph.bench.peers.spark_joins import SparkJoins
from evergraph.errors import UserError

PEERS: tuple[Peer, ...] = (
    Evergraph(),
    DuckDB(),
    Maplib(),
    Clingo(),
    Nemo(),
    Reasonable(),
    Owlrl(),
    EvergraphSpark(),
    SparkJoins(),
)


def find(name: str) -> Peer:
    """The peer of this name."""
    for peer in PEERS:
        if peer.name == name:
            return peer
    raise UserError("EG302", f"no system is called {name!r}", f"use some of {', '.join(p.name for p in PEERS)}")
