"""What a query answers: an `rdflib.query.Result` over columns of ids, decoded as it is read.

Contract: everything rdflib offers of a result (iteration over rows, `bindings`, `vars`, `serialize`, `graph`, `askAnswer`,
`len`, `bool`), and columns of N-Triples text (`to_arrow`, `to_pandas`). Rows are decoded in blocks, the first ones small,
so that looking at the first rows of many costs little, and `len` decodes nothing.
Departure from rdflib: a solution that binds nothing is a row like others, as the specification counts it.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableSequence, Sequence
from functools import partial
from itertools import repeat
from typing import Any

import pyarrow as pa
from rdflib.graph import Graph
from rdflib.query import Result, ResultRow
from rdflib.term import Variable

from evergraph.errors import UserError
from evergraph.sparql.lexicon import Lexicon, text_of
from evergraph.sparql.solutions import Solutions

TRIPLE = ("subject", "predicate", "object")


class Answers(Result):
    """Answers of one of four kinds, as `type` says: SELECT, ASK, CONSTRUCT, DESCRIBE."""

    def __init__(
        self,
        kind: str,
        variables: Sequence[Variable] = (),
        solutions: Solutions | None = None,
        lexicon: Lexicon | None = None,
        ask: bool | None = None,
        graph: Graph | None = None,
    ) -> None:
        super().__init__(kind)
        self.vars = list(variables) if kind == "SELECT" else None
        self.askAnswer, self.graph = ask, graph
        self._solutions, self._lexicon = solutions, lexicon

    # -- as rdflib has it ----------------------------------------------------------------------------------------------

    @property  # type: ignore[misc]  # nobody is to set it
    def bindings(self) -> MutableSequence[Any]:
        """A dictionary for each row, without the variables that are not bound in it."""
        if self._bindings is None and self.type == "SELECT":
            assert self.vars is not None
            variables = self.vars
            self._bindings = [
                {v: term for v, term in zip(variables, row, strict=True) if term is not None} for row in self._tuples()
            ]
        return self._bindings

    def __len__(self) -> int:
        return self._solutions.count if self._solutions is not None else super().__len__()

    def __iter__(self) -> Iterator[Any]:
        if self.type != "SELECT":
            return super().__iter__()
        labels = {str(variable): number for number, variable in enumerate(self.vars or ())}
        row = type("Row", (ResultRow,), {"labels": labels, "__slots__": ()})  # labels once, not in every row
        return map(partial(tuple.__new__, row), self._tuples())

    def _tuples(self) -> Iterator[tuple[Any, ...]]:
        assert self._solutions is not None and self._lexicon is not None and self.vars is not None
        for block in self._solutions.blocks():
            columns = [self._lexicon.terms(block.column(str(variable))) for variable in self.vars]
            yield from zip(*columns, strict=True) if columns else repeat((), block.count)

    # -- as columns ----------------------------------------------------------------------------------------------------

    def to_arrow(self) -> pa.Table:
        """A column for each variable, of N-Triples terms and nulls; of a graph its triples; of ASK one boolean."""
        if self.type == "ASK":
            return pa.table({"answer": [self.askAnswer]})
        if self.graph is not None:
            rows = [tuple(map(text_of, triple)) for triple in self.graph]
            return pa.table({name: pa.array([row[n] for row in rows], pa.large_string()) for n, name in enumerate(TRIPLE)})
        assert self._solutions is not None and self._lexicon is not None and self.vars is not None
        names = list(map(str, self.vars))
        return pa.table([self._lexicon.texts(self._solutions.column(name)) for name in names], names)

    def to_pandas(self) -> Any:
        """The same as a pandas frame."""
        try:
            return self.to_arrow().to_pandas()
        except ImportError as error:
            raise UserError("EG203", "pandas is not installed", "pip install pandas, or use to_arrow()") from error
