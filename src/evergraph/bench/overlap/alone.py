"""What `submit` costs when nothing overlaps: beside `update` by the same algorithm, in turns.

Facts are deleted and inserted again, both timed, by one and then by the other; who is first changes from turn to turn. Before
that they are deleted and inserted once without a clock, so that both find what the other leaves (see `subject`).
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import Any

from evergraph.bench.overlap.subject import Say, Subject
from evergraph.bench.updates.facts import given

SIZES = (1, 10, 100, 1000, 10_000)
MANY = 8
"""Times as many turns for few facts, which vary more."""
FEW = 1000
WAYS = ("update", "submit")


def measure(subject: Subject, repeat: int, say: Say) -> Iterator[dict[str, Any]]:
    """Two rows for each number of facts: deleting and inserting."""
    ten = len(subject.large)
    for count in [*(size for size in SIZES if size < ten), ten]:
        say(f"LUBM({subject.universities}) {subject.rules} {subject.algorithm}: {count:,} facts and nothing beside them")
        took: dict[tuple[str, str], list[float]] = {}
        right = True
        for turn in range(repeat * (MANY if count <= FEW else 1)):
            right &= _turn(subject, count, turn, took)
        for operation in ("delete", "insert"):
            update, submit = (took[operation, way] for way in WAYS)
            ratios = [b / a for a, b in zip(update, submit, strict=True)]
            yield subject.row(
                "alone",
                operation=operation,
                facts=count,
                update=median(update),
                submit=median(submit),
                ratio=median(submit) / median(update),
                ratio_of_turns=median(ratios),
                verified=right,
                runs={"update": update, "submit": submit},
            )


def _turn(subject: Subject, count: int, turn: int, took: dict[tuple[str, str], list[float]]) -> bool:
    facts = given(subject.facts.draw(count, turn))
    subject.update(delete=facts)
    expected = subject.state()
    subject.update(insert=facts)
    right = True
    for way in WAYS if turn % 2 == 0 else reversed(WAYS):
        apply = subject.update if way == "update" else subject.submit
        took.setdefault(("delete", way), []).append(apply(delete=facts).seconds)
        right &= subject.check(expected, f"a deletion of {count:,} facts by {way}")
        took.setdefault(("insert", way), []).append(apply(insert=facts).seconds)
        right &= subject.check(subject.base, f"an insertion of {count:,} facts by {way}")
    return right
