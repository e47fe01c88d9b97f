"""A university graph with equality, in the manner of UOBM, written as N-Triples: some people have two or three names.

What it makes: universities of ten departments; a department has faculty, students, courses, publications and research groups.
Each person has the facts that LUBM's have, and UOBM's: likes, friends, and `hasSameHomeTownWith` in a chain through a group of
two to six people, which is symmetric and transitive and so becomes a clique. Names of one person are found to be equal by an
inverse functional property (the personal id, the e-mail address, what a professor teaches or heads), by a functional one (the
advisor of a student, stated by two of the professor's names; the home pages of names that are equal) or by a stated
owl:sameAs. Each name has facts of its own. With `equal=False` everyone has one name, and nothing equal is derived.

Paper: Ma et al.: Towards a Complete OWL Ontology Benchmark. ESWC 2006; the properties are theirs, the shares are ours.
Contract: the same seed gives the same file, of exactly so many distinct triples: the last department is cut off where they
are reached. A smaller file is the beginning of a larger one.
Invariant: the names of one person never meet those of another, so that no clique has more than three names, and a home town
never more than six people. Cost: linear; about a million triples a second.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import count, islice, pairwise
from pathlib import Path
from random import Random
from typing import TypeVar

SPACE = "http://example.org/university#"
DATA = "http://example.org/"
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
SAME = "<http://www.w3.org/2002/07/owl#sameAs>"
DEPARTMENTS = 10
"""Of a university."""
RANKS = {"FullProfessor": 3, "AssociateProfessor": 4, "AssistantProfessor": 3, "Lecturer": 2}
"""How many of each a department has."""
STUDENTS = {"UndergraduateStudent": 80, "GraduateStudent": 25}
GROUPS = 3
PUBLICATIONS = 5
"""Of a member of faculty."""
DEGREES_FROM = 200
"""Universities that people have degrees from, whether they have data of their own or not."""
INTERESTS = {"BallSport": 6, "Sport": 6, "Art": 8, "Science": 10}
TWO_NAMES, THREE_NAMES = 0.05, 0.01
"""The shares of people with so many."""
TOWN = (2, 6)
"""People of one home town."""
Person = list[str]
"""Someone, by all names."""
T = TypeVar("T")


def write(path: Path, triples: int, seed: int = 0, equal: bool = True) -> None:
    """Write so many triples; the file has its name when it is complete."""
    partial = path.with_name(path.name + ".part")
    partial.parent.mkdir(parents=True, exist_ok=True)
    try:
        with partial.open("w", encoding="ascii", newline="\n") as file:
            file.writelines(islice(lines(seed, equal), triples))
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def lines(seed: int = 0, equal: bool = True) -> Iterator[str]:
    """Triples without end, each a line; no two are the same."""
    yield from (_line(interest, TYPE, _term(kind)) for interest, kind in _interests())
    for university in count():
        iri = f"<{DATA}u{university}>"
        yield _line(iri, TYPE, _term("University"))
        yield _line(iri, _term("name"), f'"University {university}"')
        for number in range(DEPARTMENTS):
            yield from dict.fromkeys(_Department(university, number, Random(f"{seed}/{university}/{number}"), equal).lines)


class _Department:
    """One department: `lines`, and what its later lines refer back to."""

    def __init__(self, university: int, number: int, random: Random, equal: bool) -> None:
        self._random, self._equal = random, equal
        self._base = f"{DATA}u{university}/d{number}"
        self._iri = f"<{self._base}>"
        self._courses: list[str] = []
        self._graduate_courses: list[str] = []
        self._publications: list[str] = []
        self._liked = [interest for interest, _ in _interests()]
        self.lines: list[str] = []
        self._say(self._iri, TYPE, _term("Department"))
        self._say(self._iri, _term("subOrganizationOf"), f"<{DATA}u{university}>")
        groups = [f"<{self._base}/group{n}>" for n in range(GROUPS)]
        for group in groups:
            self._say(group, TYPE, _term("ResearchGroup"))
            self._say(group, _term("subOrganizationOf"), self._iri)
        faculty = [self._faculty(rank, n) for rank, many in RANKS.items() for n in range(many)]
        for name in faculty[0]:
            self._say(name, _term("isHeadOf"), self._iri)
        professors = faculty[: -RANKS["Lecturer"]]
        students = [self._student(kind, n, professors, groups) for kind, many in STUDENTS.items() for n in range(many)]
        self._towns([*faculty, *students])

    def _faculty(self, rank: str, number: int) -> Person:
        person = self._person(rank, number, "worksFor")
        taught = self._course("Course", self._courses), self._course("GraduateCourse", self._graduate_courses)
        for name in person:
            for degree in ("Undergraduate", "Master", "Doctoral"):
                self._say(name, _term(f"has{degree}DegreeFrom"), f"<{DATA}u{self._below(DEGREES_FROM)}>")
            for course in taught if name is person[0] else taught[:1]:
                self._say(name, _term("teacherOf"), course)
        for work in range(PUBLICATIONS):
            publication = f"<{self._base}/{rank}{number}/publication{work}>"
            self._publications.append(publication)
            self._say(publication, TYPE, _term(("JournalArticle", "ConferencePaper", "Book")[work % 3]))
            self._say(publication, _term("name"), f'"Publication {work}"')
            self._say(publication, _term("publicationAuthor"), self._one(person))
        return person

    def _student(self, kind: str, number: int, professors: list[Person], groups: list[str]) -> Person:
        person = self._person(kind, number, "enrolledIn")
        graduate = kind == "GraduateStudent"
        advisor = self._one(professors) if graduate or self._chance(0.2) else None
        for name in person:
            for _ in range(2 if graduate else 3):
                self._say(name, _term("takesCourse"), self._one(self._graduate_courses if graduate else self._courses))
            if advisor is not None:
                self._say(name, _term("hasAdvisor"), self._one(advisor))
        if graduate:
            name = self._one(person)
            self._say(name, _term("hasUndergraduateDegreeFrom"), f"<{DATA}u{self._below(DEGREES_FROM)}>")
            self._say(self._one(self._publications), _term("publicationAuthor"), name)
            if self._chance(0.2):
                self._say(name, _term("teachingAssistantOf"), self._one(self._courses))
            elif self._chance(0.3):
                self._say(name, _term("isResearchAssistantOf"), self._one(groups))
        return person

    def _person(self, kind: str, number: int, belongs: str) -> Person:
        drawn = self._random.random() if self._equal else 1.0
        many = 3 if drawn < THREE_NAMES else 2 if drawn < THREE_NAMES + TWO_NAMES else 1
        names = [f"<{self._base}/{kind}{number}{'-' * n}>" for n in range(many)]
        for n, name in enumerate(names):
            by = self._one(("personalId", "emailAddress", "sameAs")) if n else ""
            twice = n > 0 and self._chance(0.2)
            self._say(name, TYPE, _term(kind))
            self._say(name, _term("name"), f'"{kind} {number}"')
            self._say(name, _term(belongs), self._iri)
            for key in ("personalId", "emailAddress"):
                whose = names[0] if key == by or twice else name
                self._say(name, _term(key), f'"{key} {whose[len(DATA) + 1 : -1]}"')
            if by == "sameAs":
                self._say(names[0], SAME, name)
            if self._chance(0.3):
                self._say(name, _term("homePage"), f"{name[:-1]}/home>")
                self._say(f"{name[:-1]}/home>", _term("name"), f'"{kind} {number} at home"')
            self._say(name, _term(self._one(("like", "like", "love", "isCrazyAbout"))), self._one(self._liked))
        return names

    def _towns(self, people: list[Person]) -> None:
        """Home towns, each stated as a chain, and friends: any name of each."""
        people.sort(key=lambda _: self._random.random())
        rest = iter(people[: int(len(people) * 0.8)])
        while town := list(islice(rest, TOWN[0] + self._below(TOWN[1] - TOWN[0] + 1))):
            for one, other in pairwise(town):
                self._say(self._one(one), _term("hasSameHomeTownWith"), self._one(other))
        half = len(people) // 2
        for one, other in zip(people[:half], people[half:], strict=False):
            self._say(self._one(one), _term("isFriendOf"), self._one(other))

    def _course(self, kind: str, courses: list[str]) -> str:
        course = f"<{self._base}/{kind}{len(courses)}>"
        courses.append(course)
        self._say(course, TYPE, _term(kind))
        self._say(course, _term("name"), f'"{kind} {len(courses)}"')
        return course

    def _say(self, subject: str, predicate: str, value: str) -> None:
        self.lines.append(_line(subject, predicate, value))

    def _below(self, bound: int) -> int:
        return int(self._random.random() * bound)

    def _chance(self, share: float) -> bool:
        return self._random.random() < share

    def _one(self, of: Sequence[T]) -> T:
        return of[int(self._random.random() * len(of))]


@cache
def _interests() -> tuple[tuple[str, str], ...]:
    """What can be liked, and its class."""
    return tuple((f"<{DATA}{kind}{n}>", kind) for kind, many in INTERESTS.items() for n in range(many))


@cache
def _term(name: str) -> str:
    return f"<{SPACE}{name}>"


def _line(subject: str, predicate: str, value: str) -> str:
    return f"{subject} {predicate} {value} .\n"
