"""Updates that are submitted, and join those under way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from evergraph import inputs
from evergraph.changing import Changing, check_algorithm
from evergraph.store.submitted import Unsettled, unsettled
from evergraph.submit.live import Live
from evergraph.submit.submissions import Submissions
from evergraph.submit.ticket import Ticket


class Submitting(Changing):
    """How updates of a graph overlap."""

    _submissions: Submissions

    def submit(self, *, insert: Any = (), delete: Any = (), algorithm: str = "auto", name: str | None = None) -> Ticket:
        """Delete and insert facts as `update` does, but return at once: the update joins those that are under way.

        It reacts at the next step of the maintenance: an operation and its opposite from another update cancel, in the order of
        submission. When all have settled, the graph is what the updates make of it one after the other; each settled point is
        one version of a store. Until then readers see the last settled version. A mistake in the input fails this ticket alone.
        `algorithm` is one of `ALGORITHMS`; updates that name different ones do not overlap, nor do those that are recomputed.
        `name` is what the history of a store calls the update, which is then in a version even if it changed nothing. A store
        has a record of the update until it has settled: after a crash, `unsettled` tells of it.
        Cost: here a line in a file if there is a store; then that of `update`, less what cancels.
        """
        check_algorithm(algorithm)
        if self._store is not None:
            self._check_latest()
        return self._submissions.put(inputs.kept(insert), inputs.kept(delete), algorithm, name)

    @property
    def unsettled(self) -> tuple[Unsettled, ...]:
        """Updates of the store that were submitted and lost when their process ended, until a later update settles."""
        return () if self._store is None else unsettled(self._store.path)

    def settle(self, timeout: float | None = None) -> None:
        """Wait until every update submitted so far has settled or failed; `TimeoutError` after so many seconds."""
        self._submissions.settle(timeout)

    def live(self) -> Live:
        """The state in between, as of the next step: facts of updates that have not settled come and go in it."""
        return self._submissions.live()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Updates that were submitted before have settled."""
        with self._at_rest(), super()._writing():
            yield

    @contextmanager
    def _at_rest(self) -> Iterator[None]:
        """Nothing is under way, and nothing begins."""
        self._submissions.settle()
        with self._submissions.working:
            yield
