"""Numbers to terms and back to tables, a column at a time; and numbers that look drawn and need no state.

Cost: linear; some ten million terms a second.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Numbers = npt.NDArray[np.int64]
COLUMNS = ("subject", "predicate", "object")


def names(stem: str, numbers: Numbers, end: str = ">") -> pa.Array:
    """Terms with numbers: `<stem7>`, or with another end.

    >>> names("<http://example/user", np.array([1, 20])).to_pylist()
    ['<http://example/user1>', '<http://example/user20>']
    """
    return pc.binary_join_element_wise(stem, pa.array(numbers).cast(pa.string()), end, "")


def repeated(term: str, times: int) -> pa.Array:
    """A column of one term."""
    return pa.repeat(pa.scalar(term), times)


def table(subject: pa.Array, predicate: str, object_: pa.Array) -> pa.Table:
    """Triples of one predicate."""
    return pa.table([subject, repeated(predicate, len(subject)), object_], names=COLUMNS)


def drawn(below: int, *keys: Numbers | int) -> Numbers:
    """A number below a bound for each row of keys; the same keys give the same number (SplitMix64, by Steele et al. 2014).

    >>> drawn(10, 7, np.arange(5)).tolist() == drawn(10, 7, np.arange(5)).tolist() != drawn(10, 8, np.arange(5)).tolist()
    True
    """
    state = np.zeros(1, np.uint64)
    with np.errstate(over="ignore"):
        for key in keys:
            state = state + np.asarray(key, np.int64).astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
            state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            state = state ^ (state >> np.uint64(31))
    found: Numbers = (state % np.uint64(below)).astype(np.int64)
    return found
