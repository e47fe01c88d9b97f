"""How soon an insertion of one fact is in place that arrives while a large deletion runs.

    ratio = (rest of the deletion + insertion)  /  (submitted to in place)

Above the line stands what it waits when it has its turn after the deletion, both by `update`: what is left of the deletion at
the same point of its time. Below it, what `submit` takes beside the deletion. The insertion arrives
  - `steps`: after so many of the deletion's steps, by hand; what is left counts by the time that the steps before took;
  - `time`: after so much of the time from the deletion's first step to its end, by the clock, wherever the thread is then: in a
    step, or in the commit, which nothing joins;
  - `whole`: after so much of the time from its submission on: at first it is read, and nothing joins meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from time import perf_counter, sleep
from typing import Any

from evergraph.bench.overlap.subject import Done, Say, State, Subject
from evergraph.bench.updates.facts import Given, given
from evergraph.bench.updates.six import UB
from evergraph.submit.live import Live
from evergraph.submit.ticket import Status, Ticket

SHARES = (0.1, 0.3, 0.5)
CLOCKS = ("steps", "time", "whole")
DEPARTMENT = "http://www.Department0.University0.edu"


@dataclass(frozen=True, slots=True)
class Turns:
    """The deletion and the insertion one after the other, and the deletion submitted with nothing else under way."""

    deletion: Done
    insertion: Done
    submitted: Done
    state: State
    """What both leave."""
    brought: list[tuple[Any, ...]]
    """The triples that the insertion brings."""

    @property
    def working(self) -> float:
        """From the first step of the submitted deletion to its end."""
        return self.submitted.report.seconds

    @property
    def commit(self) -> float:
        """Of these, what the commit takes, in which nothing joins."""
        return sum(phase.seconds for phase in self.submitted.report.phases if phase.name == "commit")

    def waits(self, share: float, clock: str) -> float:
        """Seconds until the insertion is in place that arrives when so much of the deletion is done."""
        read = 0.0 if clock == "whole" else self.deletion.read
        return (1 - share) * (self.deletion.seconds - read) + self.insertion.seconds


def newcomer() -> Given:
    """One fact with consequences: somebody new heads a department, so works for it, and is a member."""
    return given([f"<{DEPARTMENT}/Newcomer> <{UB}headOf> <{DEPARTMENT}> ."])


def measure(subject: Subject, repeat: int, say: Say) -> Iterator[dict[str, Any]]:
    """A row for each clock and share. Each run has what it is compared with measured just before."""
    named = f"LUBM({subject.universities}) {subject.rules} {subject.algorithm}: an insertion beside a deletion"
    large, small = given(subject.large), newcomer()
    say(named)
    in_turn(subject, large, small)  # the first one makes indices
    turns: list[Turns] = []
    runs: dict[tuple[str, float], list[dict[str, Any]]] = {(clock, share): [] for clock in CLOCKS for share in SHARES}
    for number in range(repeat):
        say(f"{named}, {number + 1} of {repeat}")
        turns.append(in_turn(subject, large, small))
        for clock, share in runs:
            runs[clock, share].append(beside(subject, large, small, turns[-1], clock, share))
    for (clock, share), some in runs.items():
        yield subject.row("responsiveness", clock=clock, share=share, **_told(turns, some))


def in_turn(subject: Subject, large: Given, small: Given) -> Turns:
    """What there is to compare with."""
    deletion, insertion = subject.update(delete=large), subject.update(insert=small)
    state, brought = subject.state(), list(insertion.report.inserted.triples)
    subject.restore("a deletion and an insertion", delete=small, insert=large)
    submitted = subject.submit(delete=large)
    subject.restore("a deletion that was submitted", insert=large)
    return Turns(deletion, insertion, submitted, state, brought)


def beside(subject: Subject, large: Given, small: Given, turns: Turns, clock: str, share: float) -> dict[str, Any]:
    """Let the insertion arrive while the deletion runs."""
    run = _by_hand if clock == "steps" else _by_clock
    seconds, at, ticket, live = run(subject, large, small, turns, clock, share)
    right = subject.check(turns.state, f"an insertion at {share:.0%} of a deletion ({clock})")
    subject.restore("an insertion beside a deletion", delete=small, insert=large)
    waits = turns.waits(at, clock)
    return {
        "seconds": seconds,
        "waits": waits,
        "ratio": waits / seconds,
        "at": at,
        "joined_at": ticket.joined_at,
        "in_place_at": ticket.in_place_at,
        "beside": not live.settled,
        "live": all(triple in live for triple in turns.brought),
        "verified": right,
    }


Arrived = tuple[float, float, Ticket, Live]
"""How long it took, which part of the deletion's time was over, the insertion, and the graph when it was in place."""


def _by_hand(subject: Subject, large: Given, small: Given, turns: Turns, clock: str, share: float) -> Arrived:
    """Arrive between two steps."""
    steps = max(1, round(share * turns.submitted.report.rounds))
    with subject.by_hand() as advance:
        subject.put(delete=large)
        while advance() and subject.steps < steps:
            pass
        spent, started = subject.spent, perf_counter()
        ticket = subject.put(insert=small)
        while ticket.status in (Status.SUBMITTED, Status.RUNNING):
            advance()
        seconds, live = perf_counter() - started, subject.graph.live()
    report = ticket.wait()
    assert report is not None
    return seconds, spent / report.seconds, ticket, live


def _by_clock(subject: Subject, large: Given, small: Given, turns: Turns, clock: str, share: float) -> Arrived:
    """Arrive at a time, while a thread does the steps; how much was over then is known when the deletion is done."""
    began = perf_counter()
    deletion = subject.put(delete=large)
    if clock == "time":
        deletion.wait(until=Status.RUNNING)
        began = perf_counter()
    sleep(share * (turns.working if clock == "time" else turns.submitted.seconds))
    late, started = deletion.done, perf_counter()
    ticket = subject.put(insert=small)
    ticket.wait(until=Status.IN_PLACE)
    seconds = perf_counter() - started
    live = subject.graph.live()
    deletion.wait()
    at = 1.0 if late else (started - began) / (perf_counter() - began)
    subject.graph.settle()
    return seconds, at, ticket, live


def _told(turns: list[Turns], runs: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        **{name: median(run[name] for run in runs) for name in ("seconds", "waits", "ratio", "at")},
        "worst": min(run["ratio"] for run in runs),
        "deletion": median(turn.deletion.seconds for turn in turns),
        "deletion_read": median(turn.deletion.read for turn in turns),
        "insertion": median(turn.insertion.seconds for turn in turns),
        "submitted": median(turn.submitted.seconds for turn in turns),
        "steps": turns[0].submitted.report.rounds,
        "commit": median(turn.commit for turn in turns),
        "consequences": len(turns[0].brought) - 1,
        "live": all(run["live"] for run in runs),
        "verified": all(run["verified"] for run in runs),
        "runs": runs,
    }
