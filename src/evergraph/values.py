"""The values of literals: comparisons, datatypes and equal spellings, for whole columns of ids.

`compare` answers as SPARQL does: numbers by value across types, strings by code point, dateTimes on the timeline, and
`=` on anything else by identity. `datatypes` and `same_values` answer as OWL 2 does, by the identity of values. Known
are xsd:string, boolean, dateTime, float, double, decimal, and integer with the twelve types derived from it.
Trap: the two views differ. By `=`, 0.1 the decimal equals 0.1 the double, -0.0 equals 0.0, and an instant equals itself
at another offset; to OWL all of these are different values. A dateTime without time zone is compared as UTC.

Every id gets a row of `ROW` once, when it is new, by Arrow kernels over all new terms; comparing reads rows. Of a
number a row holds the nearest float64; only pairs that tie there, and are not of one canonical form, are compared
exactly, from their text. A lexical form is taken as it stands: white space around a number makes it ill-formed.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Hashable, Iterable, Sequence
from decimal import Decimal
from operator import ge, le
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyoxigraph as ox

from evergraph.rules.model import BUILTIN_RELATIONS, XSD, Operator, Rule
from evergraph.terms import Dictionary, Ids

Mask = npt.NDArray[np.bool_]
Signs = npt.NDArray[np.int8]
"""-1, 0, 1 as the left is less than, equal to or greater than the right; `UNORDERED` where a NaN takes part."""
Builtins = dict[str, Callable[[int], tuple[Ids, ...]]]
"""What fills built-in relations, given the number of terms that have been seen."""
Instant = tuple[int, str, int | None]
"""Whole seconds; the digits of the fraction, less trailing zeros (these two give the order); any offset in minutes."""

ROW = np.dtype(
    [
        ("first", np.uint64),  # the id that stands for all literals of this value; of a term without a value, its own
        ("number", np.float64),  # numbers, booleans, and seconds on the timeline
        ("single", np.float32),  # a decimal or a float rounded once, for comparison with floats
        ("member", np.uint32),  # bit b: the value is in the value space of datatype b
        ("space", np.int8),
        ("names", np.int8),  # of a datatype's IRI, its bit; 0 for all other terms
    ],
    align=True,
)

NONE, STRING, BOOLEAN, DATETIME, DECIMAL, FLOAT, DOUBLE, ILL_FORMED = range(8)
"""Value spaces. NONE: no literal, or one of a datatype not known here; ILL_FORMED: known, but without a value."""
KINDS = np.array([0, STRING, BOOLEAN, DATETIME, DECIMAL, DECIMAL, DECIMAL, 0], np.int8)
"""By value space: terms of one kind compare with each other, those of kind 0 with nothing."""
UNORDERED = 2
_extending = threading.RLock()
"""Readers ask for values in any thread."""

BOUNDS: dict[str, tuple[int | None, int | None]] = {
    "integer": (None, None),
    "nonPositiveInteger": (None, 0),
    "negativeInteger": (None, -1),
    "nonNegativeInteger": (0, None),
    "positiveInteger": (1, None),
}
for _name, _size in {"Long": 64, "Int": 32, "Short": 16, "Byte": 8}.items():
    BOUNDS[_name.lower()] = (-(1 << _size - 1), (1 << _size - 1) - 1)
    BOUNDS[f"unsigned{_name}"] = (0, (1 << _size) - 1)
SPACES = {"string": STRING, "boolean": BOOLEAN, "dateTime": DATETIME, "float": FLOAT, "double": DOUBLE}
SPACES |= dict.fromkeys(("decimal", *BOUNDS), DECIMAL)
BIT = {name: bit for bit, name in enumerate(SPACES, 1)}

INTEGER_FORM = r"^[+-]?[0-9]+$"
DECIMAL_FORM = r"^[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)$"
DECIMAL_PARTS = r"^(?:\+|(-))?0*([0-9]*)(?:\.([0-9]*?)0*)?$"
FLOAT_FORM = r"^(?:[+-]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[Ee][+-]?[0-9]+)?|INF)|NaN)$"
BOOLEAN_FORMS = ("false", "0", "true", "1")
DATETIME_FORM = re.compile(
    r"(-?(?:[1-9][0-9]{4,}|[0-9]{4}))-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?"
    r"(?:(Z)|([+-])([0-9]{2}):([0-9]{2}))?"
)
DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)

ORDERINGS: dict[str, Callable[[Signs], Mask]] = {
    Operator.LESS: lambda signs: signs == -1,
    Operator.LESS_OR_EQUAL: lambda signs: signs <= 0,
    Operator.GREATER: lambda signs: signs == 1,
    Operator.GREATER_OR_EQUAL: lambda signs: (signs == 0) | (signs == 1),
}


class Values:
    """The values of a dictionary's literals.

    >>> d = Dictionary()
    >>> one, two = d.encode([f'"01"^^<{XSD}byte>', f'"2.0"^^<{XSD}decimal>']).reshape(2, 1)
    >>> Values(d).compare("<", one, two).tolist()
    [True]
    """

    def __init__(self, dictionary: Dictionary) -> None:
        self._dictionary = dictionary
        self._rows = np.zeros(0, ROW)
        self._count = 0
        self._firsts: tuple[dict[Hashable, int], ...] = tuple({} for _ in KINDS)
        self._followers: Ids = np.zeros(0, np.uint64)

    @classmethod
    def over(cls, dictionary: Dictionary, rows: npt.NDArray[Any]) -> Values:
        """Values whose rows were made elsewhere; good for comparing."""
        values = cls(dictionary)
        values._rows, values._count = rows, len(rows)
        return values

    def rows_since(self, start: int) -> tuple[npt.NDArray[Any], pa.Array]:
        """The rows of all terms from this id on, and the terms."""
        self._extend()
        return self._rows[start : self._count], self._dictionary.since(start)

    def name_datatypes(self) -> None:
        """Give the known datatypes their ids now, so that the data's terms do not come between them."""
        self._dictionary.encode([_iri(name) for name in BIT])

    def supported(self, start: int) -> tuple[Ids]:
        """The datatypes that are known here, once: when nothing has been seen before."""
        return (self._dictionary.encode([_iri(name) for name in BIT] if start == 0 else []),)

    def compare(self, operator: str, left: Ids, right: Ids) -> Mask:
        """Mask for two equally long columns. Cost: linear; exact or textual work once per distinct pair that needs it.

        ILLTYPED: the left is a literal of a known datatype, the right a known datatype whose value space lacks its
        value; a literal that is ill-formed has no value, so that it is ill-typed for all of them.
        """
        self._extend()
        if operator == Operator.ILLTYPED:
            return self._ill_typed(left, right)
        spaces = self._rows["space"]
        kinds = KINDS[spaces[left]]
        comparable: Mask = (kinds != 0) & (kinds == KINDS[spaces[right]])
        if operator in ORDERINGS:
            rows = np.flatnonzero(comparable)
            comparable[rows] = ORDERINGS[operator](self._signs(left[rows], right[rows]))
            return comparable
        equal: Mask = left == right
        rows = np.flatnonzero(comparable & (kinds != STRING) & ~equal)
        equal[rows] = self._signs(left[rows], right[rows]) == 0
        return equal if Operator(operator) == Operator.EQUAL else ~equal

    def datatypes(self, start: int) -> tuple[Ids, Ids]:
        """Rows (literal, datatype) for the literals from id `start` on: the known datatypes its value belongs to.

        The datatypes are encoded in the dictionary, which may add terms to it.
        """
        self._extend()
        members = self._rows["member"][start : self._count]
        literals = np.flatnonzero(members)
        members = members[literals]
        literals = (literals + start).astype(np.uint64)
        found = int(np.bitwise_or.reduce(members))
        columns = [np.zeros((2, 0), np.uint64)]
        for name, bit in BIT.items():
            if found >> bit & 1:
                ids = literals[_has(members, bit)]
                columns.append(np.stack([ids, np.broadcast_to(self._dictionary.encode([_iri(name)]), ids.shape)]))
        left, right = np.concatenate(columns, axis=1)
        return left, right

    def same_values(self, start: int) -> tuple[Ids, Ids]:
        """All (x, y) with x ≠ y, one value, and x or y from `start` on. Cost: the literals that have such a partner."""
        self._extend()
        followers = self._followers
        groups: Ids = self._rows["first"][followers]
        touched = np.unique(groups[(followers >= start) | (groups >= start)])
        inside = np.isin(groups, touched)
        members = np.concatenate([touched, followers[inside]])
        groups = np.concatenate([touched, groups[inside]])
        order = np.argsort(groups, kind="stable")
        members, groups = members[order], groups[order]
        new = np.flatnonzero(members >= start)
        begins = np.searchsorted(groups, groups[new])
        sizes = np.searchsorted(groups, groups[new], "right") - begins
        left = np.repeat(members[new], sizes)
        right = members[np.arange(len(left)) + np.repeat(begins - np.cumsum(sizes) + sizes, sizes)]
        different = left != right
        left, right = left[different], right[different]
        old = right < start
        return np.concatenate([left, right[old]]), np.concatenate([right, left[old]])

    def _ill_typed(self, left: Ids, right: Ids) -> Mask:
        names = self._rows["names"][right]
        known: Mask = (self._rows["space"][left] != NONE) & (names != 0)
        return known & ~_has(self._rows["member"][left], names)

    def _signs(self, left: Ids, right: Ids) -> Signs:
        """How pairs of comparable terms compare."""
        rows = self._rows
        spaces, others = rows["space"][left], rows["space"][right]
        signs = _signs(rows["number"][left], rows["number"][right])
        single = np.flatnonzero(((spaces == FLOAT) | (others == FLOAT)) & (spaces != DOUBLE) & (others != DOUBLE))
        signs[single] = _signs(rows["single"][left[single]], rows["single"][right[single]])
        ties = (signs == 0) & (spaces == others) & (rows["first"][left] != rows["first"][right])
        for space, settle in ((STRING, self._settle_strings), (DECIMAL, self._settle), (DATETIME, self._settle)):
            tied = np.flatnonzero(ties & (spaces == space))
            if len(tied):
                pairs, places = np.unique(left[tied] << np.uint64(32) | right[tied], return_inverse=True)
                signs[tied] = settle(pairs >> np.uint64(32), pairs & np.uint64(0xFFFFFFFF))[places]
        return signs

    def _settle(self, left: Ids, right: Ids) -> Signs:
        """How decimals or instants compare, exactly."""
        exact = {number: _exact(self._dictionary.term(number)) for number in np.union1d(left, right).tolist()}
        pairs = [(exact[a], exact[b]) for a, b in zip(left.tolist(), right.tolist(), strict=True)]
        return np.array([(a > b) - (a < b) for a, b in pairs], np.int8)

    def _settle_strings(self, left: Ids, right: Ids) -> Signs:
        """How different strings compare, by code point, which is the order of their bytes in UTF-8."""
        return np.where(_mask(pc.less(self._strings(left), self._strings(right))), -1, 1).astype(np.int8)

    def _strings(self, ids: Ids) -> pa.Array:
        """The strings that plain literals stand for."""
        texts = self._dictionary.decode(ids)
        escaped = pc.match_substring(texts, "\\")
        strings = pc.utf8_slice_codeunits(texts, 1, -1)
        if not pc.any(escaped).as_py():
            return strings
        lines = "".join(f"<x:s> <x:p> {text} .\n" for text in texts.filter(escaped).to_pylist())
        plain = [triple.object.value for triple in ox.parse(lines, format=ox.RdfFormat.N_TRIPLES)]
        return pc.replace_with_mask(strings, escaped, pa.array(plain, pa.large_string()))

    def _extend(self) -> None:
        """Fill the rows of terms that are new since the last time. Cost: linear in these terms."""
        if self._count < len(self._dictionary):
            with _extending:
                self._fill(self._count, len(self._dictionary))

    def _fill(self, known: int, count: int) -> None:
        if known == count:
            return
        if count > len(self._rows):
            rows = np.zeros(max(count, 2 * known), ROW)
            rows[:known] = self._rows[:known]
            self._rows = rows
        new = self._rows[known:count]
        ids = np.arange(known, count, dtype=np.uint64)
        new["first"] = ids
        terms = self._dictionary.since(known).slice(0, count - known)  # others may have come meanwhile
        literal = _mask(pc.starts_with(terms, '"'))
        plain = literal & _mask(pc.ends_with(terms, '"'))
        new["space"][plain] = STRING
        new["member"][plain] = 1 << BIT["string"]
        typed = np.flatnonzero(literal & _mask(pc.ends_with(terms, ">")))
        terms = terms.take(pa.array(typed))
        for name, bit in BIT.items():
            number = self._dictionary.find(_iri(name))
            if number is not None:
                self._rows["names"][number] = bit
            suffix = f'"^^{_iri(name)}'
            mask = pc.ends_with(terms, suffix)
            if pc.any(mask).as_py():
                self._read(name, ids[typed[_mask(mask)]], pc.utf8_slice_codeunits(terms.filter(mask), 1, -len(suffix)))
        followers = ids[new["first"] != ids]
        if len(followers):
            self._followers = np.concatenate([self._followers, followers])
        self._count = count

    def _read(self, name: str, ids: Ids, lexical: pa.Array) -> None:
        """Fill the rows of literals of one datatype."""
        self._rows["space"][ids] = ILL_FORMED
        space = SPACES[name]
        if space == DECIMAL:
            self._read_decimals(name, ids, lexical)
        elif space == BOOLEAN:
            forms = pc.index_in(lexical, pa.array(BOOLEAN_FORMS, pa.large_string()))
            numbers = forms.drop_null().to_numpy() // 2
            self._store(name, ids[_mask(forms.is_valid())], numbers, numbers.tolist())
        elif space == DATETIME:
            instants = list(map(_instant, lexical.to_pylist()))
            keys = [instant for instant in instants if instant]
            numbers = np.array([float(Decimal(whole)) + float(f"0.{part}") for whole, part, _ in keys], np.float64)
            self._store(name, ids[np.array([instant is not None for instant in instants])], numbers, keys)
        else:
            well = pc.match_substring_regex(lexical, FLOAT_FORM)
            texts = pc.utf8_ltrim(lexical.filter(well), "+")
            numbers = texts.cast(pa.float32() if space == FLOAT else pa.float64()).to_numpy()
            keys = numbers.view(np.uint32 if space == FLOAT else np.uint64).tolist()
            self._store(name, ids[_mask(well)], numbers, keys)

    def _read_decimals(self, name: str, ids: Ids, lexical: pa.Array) -> None:
        """Decimals in a canonical form that always has a point: `12.`, `-.5`, and `0.` for nought of either sign."""
        well = pc.match_substring_regex(lexical, INTEGER_FORM if name in BOUNDS else DECIMAL_FORM)
        ids = ids[_mask(well)]
        keys = pc.replace_substring_regex(lexical.filter(well), DECIMAL_PARTS, r"\1\2.\3")
        keys = pc.if_else(pc.is_in(keys, pa.array([".", "-."], pa.large_string())), "0.", keys)
        numbers = keys.cast(pa.float64()).to_numpy()
        whole = _mask(pc.ends_with(keys, "."))
        members = np.full(len(ids), 1 << BIT["decimal"], np.uint32)
        for derived, (low, high) in BOUNDS.items():
            inside = _within(ge, numbers, keys, low) & _within(le, numbers, keys, high)
            members[whole & inside] |= np.uint32(1 << BIT[derived])
        inside = _has(members, BIT[name])
        ids, keys = ids[inside], keys.filter(pa.array(inside))
        self._store(name, ids, numbers[inside], keys.to_pylist())
        self._rows["single"][ids] = keys.cast(pa.float32()).to_numpy()
        self._rows["member"][ids] = members[inside]

    def _store(self, name: str, ids: Ids, numbers: npt.NDArray[Any], keys: Sequence[Hashable]) -> None:
        """Fill the rows of well-formed literals; those with equal keys have one value."""
        rows, space = self._rows, SPACES[name]
        rows["space"][ids] = space
        rows["number"][ids] = numbers
        if space == FLOAT:
            rows["single"][ids] = numbers
        rows["member"][ids] = 1 << BIT[name]
        rows["first"][ids] = list(map(self._firsts[space].setdefault, keys, ids.tolist()))


def builtins_of(values: Values, rules: Iterable[Rule]) -> Builtins:
    """The built-in relations that these rules mention, with what fills them."""
    mentioned = {a.relation for rule in rules for a in (*rule.atoms, *rule.negations)}
    rows: Builtins = {"DATATYPE": values.datatypes, "SAMEVALUE": values.same_values, "SUPPORTED": values.supported}
    found = {name: rows[name] for name in BUILTIN_RELATIONS if name in mentioned}
    if found:
        values.name_datatypes()
    return found


def _iri(name: str) -> str:
    return f"<{XSD}{name}>"


def _mask(column: pa.Array) -> Mask:
    return np.asarray(column.to_numpy(zero_copy_only=False), np.bool_)


def _has(members: npt.NDArray[np.uint32], bits: int | npt.NDArray[np.int8]) -> Mask:
    """The sets that have a bit, or each its own."""
    return (members >> np.asarray(bits, np.uint32) & np.uint32(1)).astype(np.bool_)


def _signs(left: npt.NDArray[Any], right: npt.NDArray[Any]) -> Signs:
    signs = (left > right).astype(np.int8) - (left < right)
    signs[np.isnan(left) | np.isnan(right)] = UNORDERED
    return signs


def _within(test: Callable[[Any, Any], Any], numbers: npt.NDArray[Any], keys: pa.Array, bound: int | None) -> Mask:
    """The decimals that pass a test against a bound, by their nearest float64, exactly where that ties."""
    if bound is None:
        return np.ones(len(numbers), np.bool_)
    passed: Mask = test(numbers, float(bound))
    for row in np.flatnonzero(numbers == float(bound)).tolist():
        passed[row] = test(Decimal(keys[row].as_py()), bound)
    return passed


def _exact(term: str) -> Any:
    """A decimal or dateTime as something that Python compares exactly."""
    lexical = term[1 : term.rindex('"')]
    instant = _instant(lexical)
    return instant[:2] if instant else Decimal(lexical)


def _instant(text: str) -> Instant | None:
    """The instant that the lexical form of a dateTime stands for; None if it is ill-formed."""
    match = DATETIME_FORM.fullmatch(text)
    if match is None:
        return None
    year = int(Decimal(match[1]))  # int(str) has a limit on digits
    month, day, hour, minute, second = map(int, match.group(2, 3, 4, 5, 6))
    fraction = (match[7] or "").rstrip("0")
    leap = month == 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if not (1 <= month <= 12 and 1 <= day <= DAYS[month - 1] + leap and minute < 60 and second < 60):
        return None
    if hour > 23 and (hour, minute, second, fraction) != (24, 0, 0, ""):
        return None
    offset = 0 if match[8] else None
    if match[9]:
        hours, minutes = int(match[10]), int(match[11])
        if minutes > 59 or hours * 60 + minutes > 14 * 60:
            return None
        offset = (hours * 60 + minutes) * (-1 if match[9] == "-" else 1)
    years, months = year - (month < 3), (month - 3) % 12  # years that start in March end in the leap day
    days = 365 * years + years // 4 - years // 100 + years // 400 + (153 * months + 2) // 5 + day
    return (days * 24 + hour) * 3600 + (minute - (offset or 0)) * 60 + second, fraction, offset
