"""How far Spark is with its jobs, told while they run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

EVERY_SECONDS = 0.25


@contextmanager
def watched(session: Any, stage: str, progress: Callable[[str, float], None] | None) -> Iterator[None]:
    """Tell `progress` which share of the running tasks is done, until the work inside is."""
    if progress is None:
        yield
        return
    progress(stage, 0.0)
    over = threading.Event()
    watcher = threading.Thread(target=_watch, args=(session.sparkContext.statusTracker(), stage, progress, over), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def _watch(tracker: Any, stage: str, progress: Callable[[str, float], None], over: threading.Event) -> None:
    while not over.wait(EVERY_SECONDS):
        infos = [info for number in tracker.getActiveStageIds() if (info := tracker.getStageInfo(number)) is not None]
        tasks = sum(info.numTasks for info in infos)
        if tasks:
            progress(stage, sum(info.numCompletedTasks for info in infos) / tasks)
