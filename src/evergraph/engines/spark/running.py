"""Supersteps: jobs over the shards that have mail, until there is none; little mail is dealt with in the driver."""

from __future__ import annotations

import json
import weakref
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from evergraph.engines.base import Closed
from evergraph.engines.spark import mail
from evergraph.engines.spark.gather import Reader
from evergraph.engines.spark.job import Job
from evergraph.engines.spark.jobs import FAILURES, failure, lost
from evergraph.engines.spark.mail import DDL, Kind, Letter
from evergraph.engines.spark.parcels import FactFiles, frame
from evergraph.engines.spark.state import State
from evergraph.engines.spark.superstep import Superstep, superstep

ATTEMPTS = 3


class Running:
    """How an engine runs a job. The fields are set by whoever makes it."""

    near = 1 << 20
    """Supersteps with mail of up to so many bytes run in the driver: a Spark job costs more than they do."""

    spark: Any
    folder: Path
    shards: int
    labels: Sequence[int]
    state: State
    jobs: int
    supersteps: int
    readers: list[weakref.ref[Reader]]
    """Who may still read an earlier state."""
    said: list[dict[str, Any]]
    """What shards have answered in this update."""

    def _frame(self, letters: Sequence[Letter]) -> Any:
        return frame(self.spark, letters)

    def _run(self, job: Job, letters: list[Letter], more: FactFiles | None) -> Closed:
        """Supersteps until there is no mail.

        Spark repeats tasks that fail, but the mail of an executor that is lost is lost with it. The state before is still
        there, in files and in `job`: everything is done again from it.
        """
        before, said = self.state, len(self.said)
        for attempt in range(ATTEMPTS):
            try:
                return self._supersteps(job, letters, more)
            except FAILURES as error:
                self.state, self.said[said:] = before, []
                if attempt == ATTEMPTS - 1 or not lost(error):
                    raise failure(error) from error
        raise AssertionError("unreachable")

    def _supersteps(self, job: Job, letters: list[Letter], more: FactFiles | None) -> Closed:
        job = replace(job, answers=dict(self.state.answers))
        called = {one.shard for one in letters}
        if job.full or job.forget or job.reopen or job.resend or job.begin:
            letters = letters + [Letter(n, Kind.CALL, "", 0, b"") for n in self.labels if n not in called]
        rounds = derivations = examined = 0
        inbox: Any = letters
        if more is not None or job.full or job.forget or job.resend or not self._few(letters):
            inbox = self._frame(letters) if letters else None
        if more is not None:
            scattered = more.letters(self.spark, job.placement, self.labels)
            inbox = scattered if inbox is None else inbox.union(scattered)
        while inbox is not None and inbox != []:
            answers, inbox = self._nearby(job, inbox) if isinstance(inbox, list) else self._superstep(job, inbox)
            self.supersteps += 1
            rounds += max(a["rounds"] for a in answers.values())
            derivations += sum(a["derivations"] for a in answers.values())
            examined += sum(a["examined"] for a in answers.values())
            self.state = replace(self.state, answers={**self.state.answers, **answers}, counted=job.counting)
            job = replace(job, answers=dict(self.state.answers), full=False, reopen=False, forget=False, resend=())
            job = replace(job, begin=False, decided=False, searching=bool(self.state.aiming), drop=frozenset())
            self.said += answers.values()
        return Closed(rounds, derivations, examined)

    def _few(self, letters: Sequence[Letter]) -> bool:
        return sum(len(one.words) for one in letters) <= self.near

    def _nearby(self, job: Job, letters: list[Letter]) -> tuple[dict[int, dict[str, Any]], Any]:
        """A superstep of little mail, in the driver: it reads the shards' files where they stand, and no job is started."""
        answers: dict[int, dict[str, Any]] = {}
        out: list[Letter] = []
        for label in dict.fromkeys(one.shard for one in letters):
            inbox = mail.to_table([one for one in letters if one.shard == label])
            for one in mail.letters(Superstep(job, self.labels.index(label)).run(inbox)):
                if one.kind == Kind.ANSWER:
                    answer = json.loads(one.words)
                    answers[answer["shard"]] = answer
                else:
                    out.append(one)
        return answers, out if self._few(out) else self._frame(out)

    def _superstep(self, job: Job, inbox: Any) -> tuple[dict[int, dict[str, Any]], Any | None]:
        """One job: the shards with mail do their part; returns their answers and the mail they leave, if any."""
        out = inbox.repartition(self.shards, "shard").groupBy("shard").applyInArrow(superstep(job), DDL)
        out = out.localCheckpoint(eager=False)
        rows = out.where(f"kind = '{Kind.ANSWER}'").select("words").collect()
        self.jobs += 1
        answers = {(answer := json.loads(bytes(row["words"])))["shard"]: answer for row in rows}
        more = any(answer["to"] for answer in answers.values())
        return answers, out.where(f"kind <> '{Kind.ANSWER}'") if more else None

    def _sweep(self, *states: State) -> None:
        """Delete the files that neither these states need nor those that somebody reads."""
        self.readers = [reader for reader in self.readers if reader() is not None]
        read = (found.state for reader in self.readers if (found := reader()) is not None)
        needed = set[str]().union(*(state.files for state in (*states, *read)))
        for path in self.folder.iterdir():
            if path.name not in needed and path.is_file():
                path.unlink()
