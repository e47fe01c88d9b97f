"""What takes too long is stopped, in this process, by a signal."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Stopped(Exception):
    """It took too long."""


@contextmanager
def stopped_after(seconds: float) -> Iterator[None]:
    """Raise `Stopped` in a block that takes longer. Main thread only.

    Python drops an exception that comes while an object is deleted, so it comes again and again; one more may therefore come
    while the timer is being stopped.
    """

    def stop(*_: Any) -> None:
        raise Stopped

    before = signal.signal(signal.SIGALRM, stop)
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, seconds, 0.1)
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except Stopped:
        signal.setitimer(signal.ITIMER_REAL, 0)
        raise
    finally:
        signal.signal(signal.SIGALRM, before)
