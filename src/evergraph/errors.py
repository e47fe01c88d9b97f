"""Every mistake a user can make: a number, a message, a position and a hint.

Contract: nothing else in the package raises towards the user. A command prints one line per mistake and exits with
code 2; a library call raises `UserError` (or `UserErrors` when several were found at once) and leaves the graph as it was.
Trap: numbers are part of the interface. Add new ones, never reuse one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

MISTAKES = {
    "EG001": "syntax of a rule file",
    "EG002": "unknown prefix",
    "EG003": "unsafe variable",
    "EG004": "arity clash",
    "EG005": "negation in a cycle",
    "EG006": "built-in used wrongly",
    "EG007": "unknown rule set",
    "EG008": "include that includes itself",
    "EG009": "no such rule",
    "EG010": "equality that depends on a negation",
    "EG101": "file not found or not readable",
    "EG102": "unknown file type",
    "EG103": "malformed data",
    "EG104": "damaged compressed file",
    "EG105": "input of a type that is not understood",
    "EG106": "more distinct terms than ids",
    "EG201": "unknown engine",
    "EG202": "no Java",
    "EG203": "a package that is not installed",
    "EG204": "a Spark job failed",
    "EG205": "an algorithm that the engine does not have",
    "EG206": "no GPU, or a driver that is too old",
    "EG207": "a GPU with too little memory",
    "EG301": "unknown relation",
    "EG302": "unknown name of a benchmark, a peer or an option",
    "EG303": "a fact that does not hold",
    "EG401": "no store, or a folder that is something else",
    "EG402": "a store that another process is writing",
    "EG403": "a store that cannot be written",
    "EG404": "a store of a newer format",
    "EG405": "unknown version of a store",
    "EG406": "a damaged file of a store",
    "EG407": "a version that can only be read",
    "EG408": "a store with other rules, or another equality",
    "EG409": "a materialisation that differs from recomputation",
    "EG501": "malformed SPARQL",
    "EG502": "a query that Spark cannot compile",
    "EG503": "a part of SPARQL that is not supported",
    "EG504": "a query with too many intermediate solutions",
    "EG601": "a malformed continuous query",
    "EG602": "a window or a duration that is not understood",
    "EG603": "a timestamp that is not understood",
    "EG604": "a stream or a continuous query that is not known, or known already",
    "EG605": "a fact of a stream that came too late",
    "EG606": "a window that cannot be maintained by expiry",
    "EG607": "a stream too far behind its source",
    "EG608": "a checkpoint that belongs to another stream",
}


@dataclass(frozen=True, slots=True)
class Position:
    """Where in the input: lines and columns count from one."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class UserError(Exception):
    """One mistake, one line."""

    def __init__(self, code: str, message: str, hint: str, position: Position | None = None) -> None:
        assert code in MISTAKES, code
        self.code, self.message, self.hint, self.position = code, message, hint, position
        super().__init__(str(self))

    def __str__(self) -> str:
        place = f"{self.position}: " if self.position else ""
        return f"{place}error {self.code}: {self.message} (hint: {self.hint})"

    def __reduce__(self) -> tuple[type[UserError], tuple[str, str, str, Position | None]]:
        return UserError, (self.code, self.message, self.hint, self.position)

    @property
    def mistakes(self) -> tuple[UserError, ...]:
        return (self,)


class UserErrors(UserError):
    """Several mistakes found in one go, in the order of their positions."""

    def __init__(self, mistakes: Iterable[UserError]) -> None:
        self._mistakes = tuple(sorted(mistakes, key=_place))
        first = self._mistakes[0]
        super().__init__(first.code, first.message, first.hint, first.position)

    def __str__(self) -> str:
        return "\n".join(str(m) for m in self._mistakes)

    def __reduce__(self) -> tuple[type[UserErrors], tuple[tuple[UserError, ...]]]:  # type: ignore[override]
        return UserErrors, (self._mistakes,)

    @property
    def mistakes(self) -> tuple[UserError, ...]:
        return self._mistakes


def raise_all(mistakes: list[UserError]) -> None:
    """Raise what was collected, if anything was."""
    if len(mistakes) == 1:
        raise mistakes[0]
    if mistakes:
        raise UserErrors(mistakes)


def _place(mistake: UserError) -> tuple[str, int, int]:
    at = mistake.position
    return (at.file, at.line, at.column) if at else ("", 0, 0)
