"""What `submit` returns: an update on its way."""

from __future__ import annotations

import threading
import uuid
from enum import StrEnum
from typing import Any

from evergraph.errors import UserError
from evergraph.report import Report
from evergraph.store.log import GivenName


class Status(StrEnum):
    SUBMITTED = "submitted"
    """It has not joined yet."""
    RUNNING = "running"
    """It has joined; what it brings about is not all in place."""
    IN_PLACE = "in place"
    """All of it is in place, and `live` shows it; others that overlap are not done."""
    SETTLED = "settled"
    """Readers see it."""
    FAILED = "failed"
    """The graph is as if it had never been submitted."""


_ORDER = list(Status)


class Ticket:
    """One submitted update: how far it is, and what came of it."""

    def __init__(self, number: int, insert: Any, delete: Any, algorithm: str, name: str | None = None) -> None:
        self.number, self.algorithm = number, algorithm
        self.name = uuid.uuid4().hex if name is None else GivenName(name)
        """What the history of a store calls it."""
        self.insert, self.delete = insert, delete
        self.error: BaseException | None = None
        """Why it failed."""
        self.report: Report | None = None
        """The net change of all updates that settled with it."""
        self.joined_at: int | None = None
        self.in_place_at: int | None = None
        """After how many steps of the maintenance it joined, and was in place; None if it did neither while others ran."""
        self._status = Status.SUBMITTED
        self._changed = threading.Condition()

    @property
    def status(self) -> Status:
        return self._status

    @property
    def done(self) -> bool:
        """Whether it has settled or failed."""
        return self._status in (Status.SETTLED, Status.FAILED)

    def wait(self, timeout: float | None = None, until: Status | str = Status.SETTLED) -> Report | None:
        """Wait until the update has settled, or is in place; returns its report, which it has when it has settled.

        Raises what made it fail, or `TimeoutError` after so many seconds.
        """
        wanted = _ORDER.index(Status(until))
        with self._changed:
            if not self._changed.wait_for(lambda: self.done or _ORDER.index(self._status) >= wanted, timeout):
                raise TimeoutError(f"update {self.number} is {self._status} after {timeout} seconds")
        if self.error is not None:
            raise self.error
        return self.report

    def end(self, timeout: float | None = None) -> None:
        """Wait until it has settled or failed, whichever it is."""
        with self._changed:
            if not self._changed.wait_for(lambda: self.done, timeout):
                raise TimeoutError(f"update {self.number} is {self._status} after {timeout:.1f} seconds")

    def move(self, status: Status) -> None:
        """Told by whoever works on it."""
        with self._changed:
            self._status = status
            if self.done:
                self.insert = self.delete = ()
            self._changed.notify_all()

    def fail(self, error: BaseException) -> None:
        self.error = error
        self.move(Status.FAILED)

    def __repr__(self) -> str:
        said = f": {self.error}" if isinstance(self.error, UserError) else ""
        return f"<update {self.number}, {self._status}{said}>"
