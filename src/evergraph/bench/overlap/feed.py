"""What cancelling saves: while a large deletion runs, half of what it deletes is inserted again.

    share = derivations of the updates that overlap  /  derivations of the same updates one after the other

The insertions arrive in batches, one after each of the deletion's first steps; all at once after the first; and, for the
sweep, all at once when so much of its steps is done: what has been withdrawn by then has to be derived again. Steps are done by
hand, so that numbers of derivations are the same in each run. Every way starts from a graph as it was loaded, because counts
remember how facts came.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from evergraph.bench.overlap.subject import Done, Say, State, Subject
from evergraph.bench.updates.facts import Given, given

BATCHES = 5
SWEEP = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True, slots=True)
class Serial:
    """The updates one after the other."""

    derivations: int
    examined: int
    seconds: float
    deletion: int
    """Derivations of the deletion alone."""
    state: State


def measure(subject: Subject, say: Say) -> Iterator[dict[str, Any]]:
    """A row for each way in which the insertions arrive."""
    named = f"LUBM({subject.universities}) {subject.rules} {subject.algorithm}: a deletion of which half comes back"
    lines = subject.large
    half = lines[: len(lines) // 2]
    size = -(-len(half) // BATCHES)
    large, once = given(lines), [given(half)]
    batches = [given(half[start : start + size]) for start in range(0, len(half), size)]
    say(f"{named}, one after the other")
    serial = {len(some): in_turn(subject, large, some) for some in (once, batches)}
    _fresh(subject)
    steps = subject.submit(delete=large).report.rounds
    ways: list[tuple[str, float | None, Sequence[int], list[Given]]] = [
        ("batches", None, range(1, len(batches) + 1), batches),
        ("first step", None, [1], once),
        *(("sweep", share, [max(1, round(share * steps))], once) for share in SWEEP),
    ]
    for way, share, arrivals, some in ways:
        say(f"{named}, {way}{'' if share is None else f' {share:.0%}'}")
        yield subject.row("feed", way=way, share=share, **_run(subject, large, some, arrivals, steps, serial[len(some)]))


def in_turn(subject: Subject, large: Given, batches: Sequence[Given]) -> Serial:
    """One after the other, by the same algorithm."""
    _fresh(subject)
    done: list[Done] = [subject.update(delete=large), *(subject.update(insert=batch) for batch in batches)]
    reports = [one.report for one in done]
    sums = sum(r.derivations for r in reports), sum(r.examined for r in reports), sum(one.seconds for one in done)
    return Serial(*sums, reports[0].derivations, subject.state())


def _run(
    subject: Subject, large: Given, batches: Sequence[Given], arrivals: Sequence[int], steps: int, serial: Serial
) -> dict[str, Any]:
    """Each batch is submitted when so many steps have been done."""
    _fresh(subject)
    started = perf_counter()
    with subject.by_hand() as advance:
        deletion = subject.put(delete=large)
        tickets = []
        for batch, after in zip(batches, arrivals, strict=True):
            while (subject.steps < after or not subject.steps) and not deletion.done:
                advance()
            tickets.append(subject.put(insert=batch))
    seconds = perf_counter() - started
    reports = list({id(t.report): t.report for t in (deletion, *tickets) if t.report is not None}.values())
    derivations, examined = sum(r.derivations for r in reports), sum(r.examined for r in reports)
    return {
        "batches": len(batches),
        "arrivals": list(arrivals),
        "joined_at": [ticket.joined_at for ticket in tickets],
        "steps": steps,
        "settled": len(reports),
        "derivations": derivations,
        "examined": examined,
        "seconds": seconds,
        "serial": {"derivations": serial.derivations, "examined": serial.examined, "seconds": serial.seconds},
        "serial_deletion": serial.deletion,
        "ratio": derivations / max(1, serial.derivations),
        "ratio_examined": examined / max(1, serial.examined),
        "verified": subject.check(serial.state, "insertions that cancel"),
    }


def _fresh(subject: Subject) -> None:
    subject.load()
    subject.check(subject.base, "another load")
