"""One writer at a time: a lock of the operating system on a file, which goes with the process that holds it.

Trap: the file itself stays and means nothing; what counts is who holds it. It says who, for the message others get.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import socket
import time
import uuid
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from evergraph.errors import UserError
from evergraph.store.log import writes

NAME = ".writer"
SCRATCH = "_scratch"
WAIT_SECONDS = 30.0
ATTEMPTS = 100
"""At a scratch folder: more sweepers than that in the same moments are a disk that does not keep folders."""


@contextmanager
def writing(store: Path, wait: float = WAIT_SECONDS) -> Iterator[None]:
    """Hold the store's lock; wait so many seconds for another writer, then say who it is."""
    with (store / NAME).open("a+", encoding="utf-8") as file:
        _acquire(file.fileno(), store, time.monotonic() + wait)
        file.truncate(0)
        file.write(f"process {os.getpid()} on {socket.gethostname()} since {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC")
        file.flush()
        yield


def _acquire(descriptor: int, store: Path, until: float) -> None:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= until:
                who = (store / NAME).read_text(encoding="utf-8") or "another process"
                raise UserError("EG402", f"{store} is being written: {who}", "wait for it, or stop it") from None
            time.sleep(0.05)


class Scratch:
    """A folder beside the tables for work in progress. It is deleted when it is done with, or by the next writer."""

    def __init__(self, store: Path) -> None:
        with writes(store):
            self.path, self._owner = _own_folder(store / SCRATCH)
        weakref.finalize(self, _remove, self.path, self._owner)


def _own_folder(parent: Path) -> tuple[Path, TextIO]:
    """A new folder and the lock on it.

    Trap: between the two a sweeper may take it for one whose maker has died, and delete it. The lock of a file that is gone
    protects nothing, so look after locking, and make another.
    """
    for _ in range(ATTEMPTS):
        folder = parent / uuid.uuid4().hex
        with suppress(FileNotFoundError):
            folder.mkdir(parents=True)
            owner = (folder / NAME).open("w")
            fcntl.flock(owner.fileno(), fcntl.LOCK_EX)
            if (folder / NAME).exists():
                return folder, owner
            owner.close()
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(parent))


def _remove(folder: Path, owner: TextIO) -> None:
    """A scratch folder, and what was made for it and is empty without it."""
    shutil.rmtree(folder, ignore_errors=True)
    owner.close()
    for empty in (folder.parent, folder.parent.parent):
        try:
            empty.rmdir()
        except OSError:
            return


def sweep_scratch(store: Path) -> None:
    """Delete the scratch folders of processes that are gone."""
    for folder in (store / SCRATCH).glob("*"):
        try:
            with (folder / NAME).open("a") as owner:
                fcntl.flock(owner.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            continue
