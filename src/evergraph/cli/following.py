"""`evergraph update --follow`: RDF Patch as it arrives, in a folder or on standard input.

Each file of a folder, and each transaction of standard input, is one update that is submitted and joins those under way; each
point where all have settled is one version of the store and is told in one line. Contract: a mistake fails the update it is in.
If the store itself cannot be written, nothing after that is taken: later patches may need earlier ones.
A file is known by its path. The version that holds its update says so, in the same commit: after a crash, a file is applied if
no version names it, and no file twice. A file that failed is tried again when its folder is followed again.
Cost: a look at the folder every fifth of a second, linear in the files there; at the start a line for each version.
"""

from __future__ import annotations

import fcntl
import hashlib
import math
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from evergraph.cli.common import EngineName, Output, count_of, many, say
from evergraph.cli.updating import opened
from evergraph.errors import UserError, UserErrors

if TYPE_CHECKING:
    from evergraph.report import Report
    from evergraph.submit.ticket import Ticket

STDIN = "-"
ENDING = ".rdfp"
POLL_SECONDS = 0.2
TOLD_SECONDS = 0.02
"""How long a settled update may go untold."""
AHEAD = 64
"""So many updates may be under way; no more is read before some have settled."""
CHUNK = 1 << 16
SHOWN = 3


def follow(
    store: Path,
    source: str,
    once: bool,
    algorithm: str,
    engine: EngineName,
    master: str,
    output: Output,
    others: dict[str, Any],
) -> None:
    """Take patches from a folder, or (`-`) from standard input; exit code 2 if one failed. `others` are options beside it."""
    from evergraph.changing import check_algorithm

    for name, given in others.items():
        if given:
            raise UserError("EG302", f"--follow and {name} do not go together", "put it into a patch, or update before")
    check_algorithm(algorithm)
    if source != STDIN and not Path(source).is_dir():
        raise UserError("EG101", f"no such folder: {source}", "name a folder of RDF Patch files, or - for standard input")
    with ExitStack() as held:
        if source != STDIN:
            held.enter_context(_alone(store, Path(source).resolve()))
        told = held.enter_context(_stopping())
        kg: Any = opened(store, engine, master)
        kg._submissions.in_order = True
        feed = Feed(kg, store, algorithm, output, told)
        try:
            if source == STDIN:
                feed.take_input(sys.stdin.fileno())
            else:
                feed.take_folder(Path(source).resolve(), once)
            feed.settle()
        except BrokenPipeError:  # who reads the answers has seen enough
            with suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            feed.settle()
    if feed.failed:
        raise typer.Exit(2)


@contextmanager
def _stopping() -> Iterator[int]:
    """What can be read once a signal asks this process to end. Until then the signal does nothing else."""
    told, tell = socket.socketpair()
    tell.setblocking(False)
    wakeup = signal.set_wakeup_fd(tell.fileno(), warn_on_full_buffer=False)
    before = {number: signal.signal(number, lambda *_: None) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield told.fileno()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(wakeup)
        told.close()
        tell.close()


@contextmanager
def _alone(store: Path, folder: Path) -> Iterator[None]:
    """Nobody else follows this folder into this store. The file of the lock stays and means nothing."""
    from evergraph.store import Store, log

    Store(store).snapshot()
    name = f".follows-{hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]}"
    with log.writes(store):
        file = (store / name).open("a")
    with file as lock:
        try:
            fcntl.flock(lock.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            hint = "wait for it, or stop it"
            raise UserError("EG402", f"another process follows {folder} into {store}", hint) from None
        yield


class _Stopped(Exception):
    """It is time to end, and the input has not ended."""


class Feed:
    """Submits patches as they come, and tells what came of them."""

    def __init__(self, kg: Any, store: Path, algorithm: str, output: Output, stop: int) -> None:
        self.kg, self.store, self.algorithm, self.output, self.stop = kg, store, algorithm, output, stop
        self.failed = False
        """Whether an update has failed."""
        self.broken: BaseException | None = None
        """Why, if it was not its input."""
        self._open: list[tuple[str, Ticket]] = []
        """The updates that have not been told of, by what they are called here."""

    # -- where patches come from -------------------------------------------------------------------------------------

    def take_folder(self, folder: Path, once: bool) -> None:
        """The files there by name, then, unless `once`, those that appear, until a signal comes."""
        from evergraph.formats.patch import read_patch
        from evergraph.store import log

        taken = set(log.tickets(self.store))
        while True:
            new = [(path, name) for path in _patches(folder) if (name := _known_as(path)) not in taken]
            for path, name in new:
                if self._stopped(0, wait_for_room=True):
                    return
                taken.add(name)
                try:
                    self._submit(path.name, *read_patch(path), name)
                except UserError as error:
                    self._fail(error)
            if once or self._stopped(0 if new else POLL_SECONDS):
                return

    def take_input(self, file: int) -> None:
        """The transactions of standard input, until it ends or a signal comes."""
        from evergraph.formats.patch import read_changes

        with suppress(_Stopped):
            for change in read_changes(self._lines(file), STDIN):
                if change.mistakes:
                    self._fail(UserErrors(change.mistakes))
                else:
                    self._submit(f"{STDIN}:{change.line}", change.insert, change.delete)

    def _lines(self, file: int) -> Iterator[str]:
        """The lines of a pipe as they arrive. After a signal, what has not ended is dropped: it may be half a change."""
        rest, first = b"", True
        while not self._stopped(None, file, wait_for_room=True):
            data = os.read(file, CHUNK)
            *lines, rest = (rest + data).split(b"\n")
            if not data:
                lines, rest = [rest], b""
            for line in lines:
                yield line.decode("utf-8-sig" if first else "utf-8", errors="surrogateescape")
                first = False
            if not data:
                return
        raise _Stopped

    def _stopped(self, seconds: float | None, file: int | None = None, wait_for_room: bool = False) -> bool:
        """Wait so long, or until there is something to read, and tell meanwhile what has settled. True: it is time to end."""
        until = math.inf if seconds is None else time.monotonic() + seconds
        while True:
            self._tell()
            if self.broken is not None:
                return True
            full = wait_for_room and len(self._open) >= AHEAD
            left = TOLD_SECONDS if full else max(0.0, until - time.monotonic())
            pause = min(left, TOLD_SECONDS) if self._open else left
            inputs = [self.stop] if full or file is None else [self.stop, file]
            ready = select.select(inputs, [], [], None if pause == math.inf else pause)[0]
            if self.stop in ready:
                return True
            if not full and (ready or time.monotonic() >= until):
                return False

    # -- what becomes of them ----------------------------------------------------------------------------------------

    def _submit(self, called: str, insert: list[str], delete: list[str], name: str | None = None) -> None:
        from evergraph.inputs import OwnLines

        if insert or delete:
            ticket = self.kg.submit(insert=OwnLines(insert), delete=delete, algorithm=self.algorithm, name=name)
            self._open.append((called, ticket))

    def settle(self) -> None:
        """Wait for what was taken, and tell of it."""
        while self._open:
            self._open[0][1].end()
            self._tell()

    def _tell(self) -> None:
        """A line for each settled point since the last call, and for each mistake."""
        while (found := next((ticket for _, ticket in self._open if ticket.done), None)) is not None:
            if found.error is not None:
                together = [(c, t) for c, t in self._open if t is found]
                if found.error is not self.broken:
                    self.broken = found.error
                    self._fail(found.error)
            else:  # all that settle at one point have its report before the first of them is done
                together = [(c, t) for c, t in self._open if t.report is found.report]
                assert found.report is not None
                self._say([called for called, _ in together], found.report)
            self._open = [pair for pair in self._open if pair not in together]

    def _say(self, called: list[str], report: Report) -> None:
        net = (("inserted", report.inserted), ("deleted", report.deleted))
        facts = ", ".join(f"{word} {many(n.explicit)} explicit and {many(n.derived)} derived facts" for word, n in net)
        names = ", ".join(called[:SHOWN]) + (f", … {called[-1]}" if len(called) > SHOWN else "")
        how = f"{report.algorithm} on {report.engine}; {report.seconds:.2f} s; {self.store} is at version {report.version}"
        answer = {"store": str(self.store), "updates": len(called), "taken": called, **report.as_dict()}
        say(self.output, answer, f"{count_of(len(called), 'update')} ({names}): {facts}; {how}")

    def _fail(self, error: BaseException) -> None:
        if not isinstance(error, UserError):
            raise error
        self.failed = True
        for mistake in error.mistakes:
            typer.echo(str(mistake), err=True)


def _known_as(path: Path) -> str:
    """What the history of a store calls a file: its path, which is text whatever bytes it is made of."""
    return os.fsencode(path).decode("utf-8", errors="backslashreplace")


def _patches(folder: Path) -> list[Path]:
    """The patches in a folder by name. Those that are being written have a name that begins with a dot, or another ending."""
    try:
        with os.scandir(folder) as inside:
            names = [e.name for e in inside if e.name.endswith(ENDING) and not e.name.startswith(".") and e.is_file()]
    except OSError as error:
        raise UserError("EG101", f"cannot read {folder}: {error.strerror}", "check the folder and its permissions") from error
    return [folder / name for name in sorted(names)]
