"""The paper's synthetic data: a pool of trees, all of one property, of which a part is background and the rest streams.

What it makes: trees whose nodes have `fan_out` children each, so many levels below the root; each child `isIn` its parent.
The triples of all trees are shuffled into one pool. The background is its beginning; the rest streams, in its order.

Paper: Barbieri, Braga, Ceri, Della Valle, Grossniklaus: Incremental Reasoning on Streams and Rich Background Knowledge. ESWC
    2010, §5: "trees of triples all using isIn as property", with "the depth of the tree and the number of trees" to choose.
Departures: how many children a node has the paper leaves open. How the background is extracted too: here at random.
Invariant: a node has one parent, so no triple is in the pool twice, and there is one path at most between two nodes: of a whole
    tree the closure has k · fan_out^k pairs from level k. Same arguments, same pool.
Cost: linear; five million triples a second as numbers, two million as terms.
Trap: a tree that has lost some of its triples to the stream falls apart. The smaller the background is against the pool, the
    smaller is its closure, by more than its share.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from evergraph import Program
from evergraph.bench.windows.terms import Numbers, names, table

SPACE = "http://example/"
IS_IN = f"<{SPACE}isIn>"


@dataclass(frozen=True, slots=True)
class Pool:
    """Triples as numbers of nodes: each `child` isIn the `parent` of its place."""

    child: Numbers
    parent: Numbers

    def __len__(self) -> int:
        return len(self.child)

    def table(self, rows: Numbers | slice = slice(None)) -> pa.Table:
        """Some rows, or all, as a table of N-Triples terms. Cost: linear in them."""
        return table(names(f"<{SPACE}n", self.child[rows]), IS_IN, names(f"<{SPACE}n", self.parent[rows]))


def rules() -> Program:
    """The rule R of §2.3 over triples, and nothing else."""
    return Program.parse(f'#[name("R")] {IS_IN}[?x, ?z] :- {IS_IN}[?x, ?y], {IS_IN}[?y, ?z] .')


def triples_of_tree(depth: int, fan_out: int) -> int:
    """
    >>> triples_of_tree(3, 2)
    14
    """
    return sum(fan_out**level for level in range(1, depth + 1))


def closure_of_tree(depth: int, fan_out: int) -> int:
    """A node has its ancestors: as many as its level.

    >>> closure_of_tree(3, 2)
    34
    """
    return sum(level * fan_out**level for level in range(1, depth + 1))


def grow(trees: int, depth: int, fan_out: int, seed: int = 0) -> Pool:
    """The pool of so many trees. Nodes of a tree are numbered level by level, from its root.

    >>> pool = grow(trees=1, depth=2, fan_out=2)
    >>> sorted(zip(pool.child.tolist(), pool.parent.tolist()))
    [(1, 0), (2, 0), (3, 1), (4, 1), (5, 2), (6, 2)]
    """
    size = triples_of_tree(depth, fan_out)
    order = np.random.default_rng(seed).permutation(trees * size)
    tree, node = order // size, order % size + 1
    root = tree * (size + 1)
    return Pool(root + node, root + (node - 1) // fan_out)


def grow_for(triples: int, depth: int, fan_out: int, seed: int = 0) -> Pool:
    """The pool of the fewest trees that have so many triples."""
    return grow(-(-triples // triples_of_tree(depth, fan_out)), depth, fan_out, seed)
