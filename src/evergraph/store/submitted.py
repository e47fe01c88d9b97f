"""What a store knows of updates that were submitted and have not settled.

A process that submits has a file in `_submitted`, which it holds by a lock of the operating system: a line for each ticket when
it is submitted, another when it has settled or failed. The file goes when nothing is under way. After a crash nobody holds the
lock, and the lines tell what was lost, until the next update of anyone settles.
Contract: a line is with the operating system before `submit` returns, so that the end of the process loses none; a machine that
loses power may lose some. An update that a version holds is never told as lost, even if the crash came right after the commit.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evergraph.store import log
from evergraph.store.lock import ATTEMPTS

SUBMITTED = "_submitted"
TOLD = 3
"""Of so many lost updates a line tells what they were."""


class UnsettledWarning(UserWarning):
    """A store was opened that lost updates."""


@dataclass(frozen=True, slots=True)
class Unsettled:
    """An update that was submitted and did not settle before its process ended."""

    name: str
    """What the ticket was called."""
    given: bool
    """Whether whoever submitted it called it so."""
    number: int
    """Which of its graph it was."""
    time: datetime
    """When it was submitted."""
    version: int
    """The version of the store at that time; -1 if there was none."""
    insert: str
    delete: str
    """What it was to insert and to delete: names of files, or how many facts."""

    def __str__(self) -> str:
        what = [f"{word} {source}" for word, source in (("insert", self.insert), ("delete", self.delete)) if source]
        return f"{self.name if self.given else f'update {self.number}'} ({', '.join(what) or 'nothing'})"


class Journal:
    """The records of one graph's tickets. Cost: about ten microseconds a line; a file is made when there is nothing else."""

    def __init__(self, store: Path) -> None:
        self._store = store
        self._open: set[int] = set()
        self._file: int | None = None
        self._path = Path()

    def begun(self, number: int, name: str, version: int, insert: str, delete: str) -> None:
        line = {"name": name, "given": isinstance(name, log.GivenName), "number": number, "version": version}
        with log.writes(self._store):
            if self._file is None:
                self._path, self._file = _own_file(self._store / SUBMITTED)
            self._write({**line, "time": datetime.now(UTC).isoformat(), "insert": insert, "delete": delete})
        self._open.add(number)

    def ended(self, number: int) -> None:
        """Settled or failed. That this cannot be written is no reason to fail: what is in a version is not told as lost."""
        self._open.discard(number)
        with suppress(OSError):
            if self._open:
                self._write({"ended": number})
            elif self._file is not None:
                _remove(self._path)
                os.close(self._file)
                self._file = None

    def _write(self, line: dict[str, Any]) -> None:
        assert self._file is not None
        data = f"{json.dumps(line)}\n".encode()
        if os.write(self._file, data) < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))


def _own_file(folder: Path) -> tuple[Path, int]:
    """A new file and the lock on it.

    Trap: between the two, another writer may take it for that of a process that is gone. The lock of a file that is gone
    protects nothing, so look after locking, and make another.
    """
    for _ in range(ATTEMPTS):
        path = folder / uuid.uuid4().hex
        with suppress(FileNotFoundError):
            folder.mkdir(parents=True, exist_ok=True)
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
            fcntl.flock(file, fcntl.LOCK_EX)
            if path.exists():
                return path, file
            os.close(file)
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(folder))


def _remove(path: Path) -> None:
    """A file of records, and the folders that are empty without it."""
    path.unlink(missing_ok=True)
    with suppress(OSError):
        path.parent.rmdir()
        path.parent.parent.rmdir()


def unsettled(store: Path) -> tuple[Unsettled, ...]:
    """The updates that were lost, in the order in which they were submitted. Cost: a look at a folder that is seldom there."""
    found = [record for path in _files(store) for record in _left(path)]
    if not found:
        return ()
    settled = set(log.tickets(store, min(record.version for record in found)))
    return tuple(sorted((r for r in found if r.name not in settled), key=lambda r: (r.time, r.number)))


def _left(path: Path) -> list[Unsettled]:
    """What a process left, if it is gone. Readers share the lock, so that each of them sees it."""
    found: dict[int, Unsettled] = {}
    with suppress(OSError), path.open(encoding="utf-8", errors="replace") as file:
        fcntl.flock(file.fileno(), fcntl.LOCK_SH | fcntl.LOCK_NB)
        for line in file:
            with suppress(ValueError, KeyError, TypeError):  # the last line of a full disk may be half a line
                said = json.loads(line)
                if "ended" in said:
                    found.pop(said["ended"], None)
                else:
                    found[said["number"]] = Unsettled(**{**said, "time": datetime.fromisoformat(said["time"])})
    return list(found.values())


def drop_left(store: Path) -> None:
    """Forget what processes that are gone have lost. Cost: a look at a folder that is seldom there."""
    for path in _files(store):
        with suppress(OSError), path.open(encoding="utf-8") as file:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove(path)


def _files(store: Path) -> Iterator[Path]:
    try:
        with os.scandir(store / SUBMITTED) as inside:
            return iter([Path(entry.path) for entry in inside])
    except OSError:
        return iter(())


def told(left: Sequence[Unsettled]) -> str:
    """A line about updates that were lost."""
    what = "1 update was" if len(left) == 1 else f"{len(left):,} updates were"
    more = f" and {len(left) - TOLD:,} more" if len(left) > TOLD else ""
    return f"{what} submitted and lost before settling: {'; '.join(map(str, left[:TOLD]))}{more}"
