"""Instants and durations, as whole microseconds: what Spark's timestamps are made of, and exact to add.

An instant is microseconds since 1970 in UTC, a duration a number of them. Users give datetimes, numbers of seconds, or text.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import numpy.typing as npt

from evergraph.errors import UserError

SECOND = 1_000_000
Instants = npt.NDArray[np.int64]
"""A column of instants."""
UNITS = {
    "us": 1,
    **dict.fromkeys(("ms", "msec", "millisecond", "milliseconds"), 1000),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), SECOND),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60 * SECOND),
    **dict.fromkeys(("h", "hour", "hours"), 3600 * SECOND),
    **dict.fromkeys(("d", "day", "days"), 86400 * SECOND),
}
LATEST = 1 << 61
"""Instants are less than this far from 1970, so that adding a range to one stays within 64 bits."""
_DURATION = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]+)\s*$")
_ISO = re.compile(r"P(?:([0-9]+)D)?(?:T(?:([0-9]+)H)?(?:([0-9]+)M)?(?:([0-9]+(?:\.[0-9]+)?)S)?)?$")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def duration_of(value: Any) -> int:
    """A duration: a `timedelta`, a number of seconds, or text such as `10s`, `10 sec`, `500ms`, `PT10S`.

    >>> duration_of("10sec"), duration_of("1.5 min"), duration_of("PT1H"), duration_of(0.25)
    (10000000, 90000000, 3600000000, 250000)
    """
    if isinstance(value, timedelta):
        return value // timedelta(microseconds=1)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _micros(value)
    text = str(value)
    if (found := _DURATION.match(text)) and found[2].lower() in UNITS:
        return int(Decimal(found[1]) * UNITS[found[2].lower()])
    if (found := _ISO.match(text.strip())) and any(found.groups()):
        days, hours, minutes, seconds = (Decimal(part or 0) for part in found.groups())
        return int((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * SECOND)
    raise UserError("EG602", f"not a duration: {text!r}", "write 500ms, 10s, 5min, 2h, 1d or PT10S")


def instant_of(value: Any) -> int:
    """An instant: a `datetime`, a number of seconds since 1970, or either as text. Without a time zone it is in UTC.

    >>> instant_of(12), instant_of("1970-01-01T00:00:12Z"), instant_of("12.5")
    (12000000, 12000000, 12500000)
    """
    if isinstance(value, datetime):
        zoned = value if value.tzinfo else value.replace(tzinfo=UTC)
        return (zoned - _EPOCH) // timedelta(microseconds=1)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _micros(value)
    try:
        return _micros(Decimal(str(value)))
    except InvalidOperation:
        pass
    try:
        return instant_of(datetime.fromisoformat(str(value).strip()))
    except ValueError as error:
        hint = "give a datetime, seconds since 1970, or text such as 2010-05-30T08:00:00Z"
        raise UserError("EG603", f"not a timestamp: {value!r}", hint) from error


def _micros(seconds: float | Decimal) -> int:
    exact = Decimal(seconds) if isinstance(seconds, int) else Decimal(str(seconds))
    if not exact.is_finite() or abs(exact) >= LATEST // SECOND:
        raise UserError("EG603", f"not a timestamp: {exact:.6g}", "give seconds since 1970")
    return round(exact * SECOND)


def seconds_of(micros: int) -> int | float:
    """An instant or a duration in seconds, as a whole number where it is one."""
    return micros // SECOND if micros % SECOND == 0 else micros / SECOND


def datetime_of(instant: int) -> datetime:
    return _EPOCH + timedelta(microseconds=instant)


def text_of(instant: int) -> str:
    """An instant as xsd:dateTime has it.

    >>> text_of(12_000_000), text_of(12_500_000)
    ('1970-01-01T00:00:12Z', '1970-01-01T00:00:12.500000Z')
    """
    return datetime_of(instant).isoformat().replace("+00:00", "Z")
