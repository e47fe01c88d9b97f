"""What Volz et al. 2003 measured: the averages of their Appendix A, milliseconds, as far as they can be read.

How it was read. The appendix is a scan: each line has an average, a minimum and a maximum of five runs for each of six
measures, and one figure for the query on the materialisation, 19 in all; most lines lack some figures, and long parts of others
repeat one figure. An average is taken where its place is sure and it lies between the minimum and the maximum beside it, or,
where the maximum is lost, above the minimum. A place is sure if it is counted from an end of the line or lies beside whole
triples. What could be read in two ways, or has a figure that five runs cannot give, is left open; nothing was put right or
filled in. So `310 170 355 230 531` at the beginning of a line of `dl` may give the third figure to the query or to the set-up:
310 is certain, the set-up is not known. Lines are in the paper's order, and their D is read off that where the scan has another
one; the last line, `database` with D = 5 and 15 %, is missing. `OOM`: the engine ran out of memory.

Machine: Pentium IV Mobile, 2 GHz, 512 MB, Windows XP, Java 1.4.1, the KAON Datalog engine. The text adds that facts of
`database` with D = 5 took almost 16 minutes to maintain in one run.
"""

from __future__ import annotations

Figure = float | str | None
OOM: Figure = "OoM"
LOST: Figure = None

MEASURES = ("orig query", "set-up", "remove rule", "add rule", "remove facts", "add facts", "query")
"""(a), (b), (d), (c), (f), (e), (g) of §5.2, in the order of Appendix A."""

APPENDIX_A: dict[tuple[str, int, int], tuple[Figure, ...]] = {
    ("taxonomy", 3, 10): (LOST, LOST, LOST, LOST, LOST, 1284, 0),
    ("taxonomy", 4, 10): (377, LOST, LOST, LOST, LOST, LOST, 0),
    ("taxonomy", 5, 10): (1767, LOST, LOST, LOST, LOST, LOST, LOST),
    ("taxonomy", 3, 15): (147, LOST, LOST, 1301, LOST, 1357, 0),
    ("taxonomy", 4, 15): (378, LOST, LOST, LOST, LOST, LOST, 0),
    ("taxonomy", 5, 15): (1765, LOST, LOST, LOST, LOST, LOST, LOST),
    ("dl", 3, 10): (310, LOST, 2979, 3009, LOST, 3620, 10),
    ("dl", 4, 10): (2764, LOST, 52613, 51864, LOST, 136128, 0),
    ("dl", 5, 10): (OOM,) * 7,
    ("dl", 3, 15): (263, LOST, LOST, 3307, 3242, LOST, 0),
    ("dl", 4, 15): (2774, 3720, 61979, 61283, 58339, 90277, 0),
    ("dl", 5, 15): (OOM,) * 7,
    ("database", 3, 10): (152, LOST, 1492, 1489, 1402, 1399, 0),
    ("database", 4, 10): (482, 1464, LOST, LOST, LOST, LOST, LOST),
    ("database", 5, 10): (LOST, LOST, LOST, LOST, LOST, LOST, 0),
    ("database", 3, 15): (LOST, LOST, LOST, LOST, LOST, LOST, 0),
    ("database", 4, 15): (425, LOST, 8112, LOST, LOST, 8011, 0),
}
"""By kind, D and Change in percent; figures in the order of `MEASURES`."""


def published(kind: str, depth: int, change: int) -> dict[str, Figure]:
    """The figures of a line by measure; none known where the paper has no such line.

    >>> published("dl", 4, 15)["set-up"], published("dl", 5, 10)["query"], published("dl", 7, 10)["query"]
    (3720, 'OoM', None)
    """
    return dict(zip(MEASURES, APPENDIX_A.get((kind, depth, change), (None,) * 7), strict=True))
