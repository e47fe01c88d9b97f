"""xsd:duration, dayTimeDuration and yearMonthDuration: their values, and what order they have.

Contract: a duration is a number of months and a number of seconds, and equals those with the same two. One is less than
another if it ends earlier from each of four instants, chosen so that months between them have every length in every order
(XML Schema 1.1, Part 2, §3.3.6.2). So a month is longer than 27 days, and neither longer nor shorter than 30: that is an error.
Trap: rdflib's own durations have no order once there are months in them, and take `PT`, weeks and fractions of years.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from rdflib.namespace import XSD
from rdflib.term import Literal

_SIGN, _DATE, _DAYS = r"(-)?P(?=.)", r"(?:([0-9]+)Y)?(?:([0-9]+)M)?", r"(?:([0-9]+)D)?"
_TIME = r"(?:T(?=[0-9])(?:([0-9]+)H)?(?:([0-9]+)M)?(?:([0-9]+(?:\.[0-9]+)?)S)?)?"
FORMS = {
    XSD.duration: re.compile(_SIGN + _DATE + _DAYS + _TIME),
    XSD.dayTimeDuration: re.compile(_SIGN + "()()" + _DAYS + _TIME),
    XSD.yearMonthDuration: re.compile(_SIGN + _DATE + "()()()()"),
}
"""How durations are written: sign, years, months, days, hours, minutes, seconds."""
STARTS = (1696 * 12 + 8, 1697 * 12 + 1, 1903 * 12 + 2, 1903 * 12 + 6)
"""The instants durations are compared from, as months since the year 0: each is the first of its month."""


@dataclass(frozen=True, slots=True)
class Duration:
    """A duration; comparing two that have no order is a TypeError.

    >>> month, day = Duration(months=1, seconds=Fraction(0)), Fraction(86400)
    >>> month > Duration(0, 27 * day), month < Duration(0, 32 * day)
    (True, True)
    """

    months: int
    seconds: Fraction

    @classmethod
    def of(cls, literal: Literal) -> Duration | None:
        """The value of a literal of one of these datatypes, None if it is ill-formed."""
        found = FORMS[literal.datatype].fullmatch(literal) if literal.datatype else None
        if found is None:
            return None
        sign = -1 if found[1] else 1
        try:
            years, months, days, hours, minutes, seconds = (Fraction(part or 0) for part in found.groups()[1:])
        except ValueError:  # more digits than Python reads
            return None
        return cls(sign * int(years * 12 + months), sign * (((days * 24 + hours) * 60 + minutes) * 60 + seconds))

    def __lt__(self, other: Duration) -> bool:
        return self._sign(other) < 0

    def __le__(self, other: Duration) -> bool:
        return self._sign(other) <= 0

    def __gt__(self, other: Duration) -> bool:
        return self._sign(other) > 0

    def __ge__(self, other: Duration) -> bool:
        return self._sign(other) >= 0

    def _sign(self, other: Duration) -> int:
        if self == other:
            return 0
        ends = [(self._end(start), other._end(start)) for start in STARTS]
        if all(a < b for a, b in ends):
            return -1
        if all(a > b for a, b in ends):
            return 1
        raise TypeError("these durations have no order")

    def _end(self, start: int) -> Fraction:
        """Seconds since the year 0 at the end of the duration, if it starts with a month."""
        year, month = divmod(start + self.months - 2, 12)  # a year from March on ends with the leap day
        days = 365 * year + year // 4 - year // 100 + year // 400 + (153 * month + 2) // 5
        return 86400 * days + self.seconds
