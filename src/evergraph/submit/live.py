"""What `live` returns: a graph between two steps of its maintenance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evergraph.engines.base import Readable
from evergraph.reading import Reading
from evergraph.submit.ticket import Ticket

if TYPE_CHECKING:
    from evergraph.submitting import Submitting


class Live(Reading):
    """A graph while updates overlap: between two steps facts may be there that do not follow, and others be missing.

    It stays what it is when the work goes on; it answers what a graph does.
    """

    _store = _snapshot = None

    def __init__(self, graph: Submitting, facts: Readable, tickets: tuple[Ticket, ...]) -> None:
        self._dictionary, self._values, self._book, self._plan = graph._dictionary, graph._values, graph._book, graph._plan
        self._arities, self._equality, self._builtins = graph._arities, graph._equality, graph._builtins
        self._engine = facts  # type: ignore[assignment]  # of an engine, what readers ask
        self.unsettled = tickets
        """The updates whose work is under way."""

    @property
    def settled(self) -> bool:
        """Whether this is a settled version after all."""
        return not self.unsettled

    def __repr__(self) -> str:
        under_way = ", ".join(str(ticket.number) for ticket in self.unsettled)
        return f"<live graph, {f'not settled: updates {under_way}' if under_way else 'settled'}>"
