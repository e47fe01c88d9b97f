"""LUBM data as N-Triples: the ontology first, then university after university.

Contract: the output is a function of (universities, seed), whatever the number of processes. Each university
draws from a random stream of its own, so university u is the same text in LUBM(N) and in LUBM(M), and memory
holds a few universities (some 20 MB each), never the whole set.

Trap: the lines of a file are not distinct. Degrees name any of 1000 universities, and each university states
the type of those it names, once; two universities may state the same one. Nothing else repeats. ``Summary``
counts both: ``triples`` are lines, ``distinct`` is what a store should report after loading.

The profile is that of UBA 1.7, the benchmark's own generator, as published in Yuanbo Guo, Zhengxiang Pan and
Jeff Heflin, "LUBM: A Benchmark for OWL Knowledge Base Systems", Journal of Web Semantics 3(2-3), 2005,
https://doi.org/10.1016/j.websem.2005.06.005. Departures: the draws are not UBA's, so counts agree in
distribution only, save the numbers of departments (see ``STREAMS``); and UBA repeats the type of a university
at every degree, so that its counts of statements lie some 3 % above the distinct ones.
"""

import gzip
import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from importlib.resources import files
from itertools import chain
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import NamedTuple

from pyoxigraph import BlankNode, RdfFormat, parse


class Range(NamedTuple):
    """Both ends included, every value as likely as the other."""

    low: int
    high: int

    def times(self, factor: int) -> "Range":
        return Range(self.low * factor, self.high * factor)


class Rank(NamedTuple):
    """One class of faculty: how many a department has, and how many publications each has."""

    name: str
    members: Range
    publications: Range


# The profile. Faculty are professors and lecturers; lecturers neither advise nor have a research interest.
# One of the full professors heads the department.
DEPARTMENTS = Range(15, 25)  # per university
PROFESSORS = (
    Rank("FullProfessor", members=Range(7, 10), publications=Range(15, 20)),
    Rank("AssociateProfessor", members=Range(10, 14), publications=Range(10, 18)),
    Rank("AssistantProfessor", members=Range(8, 11), publications=Range(5, 10)),
)
LECTURERS = Rank("Lecturer", members=Range(5, 7), publications=Range(0, 5))
RESEARCH_GROUPS = Range(10, 20)  # per department
COURSES_TAUGHT = Range(1, 2)  # per faculty, none taught by two
GRADUATE_COURSES_TAUGHT = Range(1, 2)  # per faculty, none taught by two
UNDERGRADUATES = Range(8, 14)  # per faculty
UNDERGRADUATE_COURSES = Range(2, 4)  # taken by each
UNDERGRADUATES_PER_ADVISED = 5  # one in five has an advisor
GRADUATES = Range(3, 4)  # per faculty
GRADUATE_COURSES = Range(1, 3)  # taken by each
GRADUATE_PUBLICATIONS = Range(0, 5)  # co-authored by each
GRADUATES_PER_TEACHING_ASSISTANT = Range(4, 5)
GRADUATES_PER_RESEARCH_ASSISTANT = Range(3, 4)  # none of them a teaching assistant
RESEARCH_TOPICS = 30
DEGREE_UNIVERSITIES = 1000  # University0 to University999, however few of them have data of their own

# Names the random streams. Chosen among the integers so that seed 0 has as many departments as UBA draws for
# its own seed 0: 15, 93, 189, 402 and 999 in LUBM(1), (5), (10), (20) and (50).
STREAMS = 21405147

UB = "http://swat.cse.lehigh.edu/onto/univ-bench.owl#"
TYPE = " <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> "
ADVISOR = f" <{UB}advisor> "
DOCTORAL_DEGREE_FROM = f" <{UB}doctoralDegreeFrom> "
EMAIL_ADDRESS = f" <{UB}emailAddress> "
HEAD_OF = f" <{UB}headOf> "
MASTERS_DEGREE_FROM = f" <{UB}mastersDegreeFrom> "
MEMBER_OF = f" <{UB}memberOf> "
NAME = f" <{UB}name> "
PUBLICATION_AUTHOR = f" <{UB}publicationAuthor> "
RESEARCH_INTEREST = f" <{UB}researchInterest> "
SUB_ORGANIZATION_OF = f" <{UB}subOrganizationOf> "
TAKES_COURSE = f" <{UB}takesCourse> "
TEACHER_OF = f" <{UB}teacherOf> "
TEACHING_ASSISTANT_OF = f" <{UB}teachingAssistantOf> "
TELEPHONE = f" <{UB}telephone> "
UNDERGRADUATE_DEGREE_FROM = f" <{UB}undergraduateDegreeFrom> "
WORKS_FOR = f" <{UB}worksFor> "


@dataclass(frozen=True)
class Summary:
    """What ``write`` wrote: lines, distinct triples, universities, and the size of the file."""

    triples: int
    distinct: int
    universities: int
    bytes: int


def write(universities: int, out: Path, *, seed: int = 0, processes: int | None = None) -> Summary:
    """Write LUBM(``universities``) to ``out``, a ``.nt`` or ``.nt.gz`` file, and say how much that was.

    ``processes`` defaults to the number of cores. A compressed file has one gzip member for the ontology and
    one per university, which readers of the format take as one text. The file appears under its name when it
    is complete; until then it is ``out`` + ``.part``, removed on failure.

    Trap: with more than one process, workers are spawned, so a script calls this under
    ``if __name__ == "__main__"``.
    """
    if universities < 1:
        raise ValueError(f"LUBM needs at least one university, not {universities}")
    if processes is not None and processes < 1:
        raise ValueError(f"generation needs at least one process, not {processes}")
    if not out.name.endswith((".nt", ".nt.gz")):
        raise ValueError(f"LUBM is written as .nt or .nt.gz, not as {out.name}")
    compress = out.suffix == ".gz"
    workers = min(universities, processes or os.cpu_count() or 1)
    head = ontology()
    triples, repeated, typed = head.count("\n"), 0, set[int]()
    partial = out.with_name(out.name + ".part")
    try:
        with partial.open("wb") as file:
            size = file.write(_packed(head, compress))
            for part in _parts(universities, seed, compress, workers):
                size += file.write(part.data)
                triples += part.triples
                repeated += len(typed & part.typed)
                typed |= part.typed
        partial.replace(out)
    finally:
        partial.unlink(missing_ok=True)
    return Summary(triples=triples, distinct=triples - repeated, universities=universities, bytes=size)


def triples_of_university(index: int, seed: int) -> Iterator[str]:
    """The N-Triples lines of one university, without line ends and without repetition."""
    return chain.from_iterable(_blocks(index, seed, set()))


def ontology() -> str:
    """The univ-bench ontology as N-Triples text: 293 lines, the same at every call.

    The parser gives blank nodes random labels, so they are renumbered in the order of the document.
    """
    turtle = files("evergraph.bench.lubm").joinpath("univ-bench.ttl").read_bytes()
    labels: dict[BlankNode, str] = {}

    def written(term: object) -> str:
        if isinstance(term, BlankNode):
            return labels.setdefault(term, f"_:univbench{len(labels)}")
        return str(term)

    return "".join(
        f"{written(quad.subject)} {quad.predicate} {written(quad.object)} .\n"
        for quad in parse(turtle, format=RdfFormat.TURTLE)
    )


class _Part(NamedTuple):
    """One university, ready to be written, and the universities whose type it states."""

    data: bytes
    triples: int
    typed: set[int]


def _parts(universities: int, seed: int, compress: bool, workers: int) -> Iterator[_Part]:
    """The universities in order, made ahead of the writer by no more than two per worker."""
    if workers == 1:
        for index in range(universities):
            yield _part(index, seed, compress)
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        ahead: deque[Future[_Part]] = deque()
        for index in range(universities):
            ahead.append(pool.submit(_part, index, seed, compress))
            if len(ahead) > 2 * workers:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()


def _part(index: int, seed: int, compress: bool) -> _Part:
    typed: set[int] = set()
    triples, texts = 0, []
    for block in _blocks(index, seed, typed):
        triples += len(block)
        texts.append("\n".join(block) + "\n")
    return _Part(_packed("".join(texts), compress), triples, typed)


def _packed(text: str, compress: bool) -> bytes:
    return gzip.compress(text.encode(), compresslevel=6, mtime=0) if compress else text.encode()


def _blocks(index: int, seed: int, typed: set[int]) -> Iterator[list[str]]:
    """The lines of the university itself, then those of each department; fills ``typed`` on the way."""
    dice = _Dice(seed, index)
    departments = dice.among(DEPARTMENTS)
    typed.add(index)
    university = _university(index)
    yield [f"{university}{TYPE}<{UB}University> .", f'{university}{NAME}"University{index}" .']
    for number in range(departments):
        yield _Department(index, number, dice, typed).lines


def _university(index: int) -> str:
    return f"<http://www.University{index}.edu>"


class _Dice:
    """The random stream of one university.

    Only ``Random.random`` is used: the one method whose sequence Python promises to keep between versions.
    """

    def __init__(self, seed: int, index: int) -> None:
        self._random = Random(f"{STREAMS}/{seed}/{index}").random

    def below(self, bound: int) -> int:
        return int(self._random() * bound)

    def among(self, span: Range) -> int:
        return span.low + int(self._random() * (span.high - span.low + 1))

    def distinct(self, count: int, bound: int) -> list[int]:
        """``count`` different numbers below ``bound``, in random order: the first steps of a shuffle."""
        numbers = list(range(bound))
        for place in range(count):
            other = place + int(self._random() * (bound - place))
            numbers[place], numbers[other] = numbers[other], numbers[place]
        return numbers[:count]


class _Department:
    """One department: ``lines``, and the individuals that its later lines refer back to."""

    def __init__(self, university: int, number: int, dice: _Dice, typed: set[int]) -> None:
        self._dice = dice
        self._typed = typed
        self._host = f"Department{number}.University{university}.edu"
        self._iri = f"<http://www.{self._host}>"
        self._professors: list[list[str]] = []  # by rank
        self._courses: list[str] = []
        self._graduate_courses: list[str] = []
        self._publications: list[str] = []
        self.lines = [
            f"{self._iri}{TYPE}<{UB}Department> .",
            f'{self._iri}{NAME}"Department{number}" .',
            f"{self._iri}{SUB_ORGANIZATION_OF}{_university(university)} .",
        ]
        self._add_research_groups()
        faculty = self._add_faculty()
        self._add_undergraduates(dice.among(UNDERGRADUATES.times(faculty)))
        self._add_graduates(dice.among(GRADUATES.times(faculty)))

    def _add_research_groups(self) -> None:
        for number in range(self._dice.among(RESEARCH_GROUPS)):
            group = f"<http://www.{self._host}/ResearchGroup{number}>"
            self.lines += (
                f"{group}{TYPE}<{UB}ResearchGroup> .",
                f"{group}{SUB_ORGANIZATION_OF}{self._iri} .",
            )

    def _add_faculty(self) -> int:
        """Professors and lecturers with what they teach and publish; returns how many they are."""
        for rank in PROFESSORS:
            members = self._add_rank(rank)
            for professor in members:
                topic = self._dice.below(RESEARCH_TOPICS)
                self.lines.append(f'{professor}{RESEARCH_INTEREST}"Research{topic}" .')
            self._professors.append(members)
        full = self._professors[0]
        self.lines.append(f"{full[self._dice.below(len(full))]}{HEAD_OF}{self._iri} .")
        return sum(map(len, self._professors)) + len(self._add_rank(LECTURERS))

    def _add_rank(self, rank: Rank) -> list[str]:
        members = []
        for number in range(self._dice.among(rank.members)):
            person = self._add_person(rank.name, number, WORKS_FOR)
            members.append(person)
            for predicate in (UNDERGRADUATE_DEGREE_FROM, MASTERS_DEGREE_FROM, DOCTORAL_DEGREE_FROM):
                self._add_degree(person, predicate)
            for _ in range(self._dice.among(COURSES_TAUGHT)):
                self._add_course(person, "Course", self._courses)
            for _ in range(self._dice.among(GRADUATE_COURSES_TAUGHT)):
                self._add_course(person, "GraduateCourse", self._graduate_courses)
            for work in range(self._dice.among(rank.publications)):
                publication = f"{person[:-1]}/Publication{work}>"
                self._publications.append(publication)
                self.lines += (
                    f"{publication}{TYPE}<{UB}Publication> .",
                    f'{publication}{NAME}"Publication{work}" .',
                    f"{publication}{PUBLICATION_AUTHOR}{person} .",
                )
        return members

    def _add_undergraduates(self, count: int) -> None:
        dice, lines, courses = self._dice, self.lines, self._courses
        for number in range(count):
            student = self._add_person("UndergraduateStudent", number, MEMBER_OF)
            for course in dice.distinct(dice.among(UNDERGRADUATE_COURSES), len(courses)):
                lines.append(f"{student}{TAKES_COURSE}{courses[course]} .")
            if dice.below(UNDERGRADUATES_PER_ADVISED) == 0:
                self._add_advisor(student)

    def _add_graduates(self, count: int) -> None:
        dice, lines, courses = self._dice, self.lines, self._graduate_courses
        publications, students = self._publications, []
        for number in range(count):
            student = self._add_person("GraduateStudent", number, MEMBER_OF)
            students.append(student)
            self._add_degree(student, UNDERGRADUATE_DEGREE_FROM)
            self._add_advisor(student)
            for course in dice.distinct(dice.among(GRADUATE_COURSES), len(courses)):
                lines.append(f"{student}{TAKES_COURSE}{courses[course]} .")
            for work in dice.distinct(dice.among(GRADUATE_PUBLICATIONS), len(publications)):
                lines.append(f"{publications[work]}{PUBLICATION_AUTHOR}{student} .")
        self._add_assistants(students)

    def _add_assistants(self, students: list[str]) -> None:
        """Teaching and research assistants: disjoint, and no two teaching assistants of one course.

        Courses suffice: at most four graduates per faculty, at most a quarter of them teaching.
        """
        teaching = self._share(len(students), GRADUATES_PER_TEACHING_ASSISTANT)
        research = self._share(len(students), GRADUATES_PER_RESEARCH_ASSISTANT)
        chosen = [students[place] for place in self._dice.distinct(teaching + research, len(students))]
        courses = self._dice.distinct(teaching, len(self._courses))
        for student, course in zip(chosen[:teaching], courses, strict=True):
            self.lines += (
                f"{student}{TYPE}<{UB}TeachingAssistant> .",
                f"{student}{TEACHING_ASSISTANT_OF}{self._courses[course]} .",
            )
        self.lines += [f"{student}{TYPE}<{UB}ResearchAssistant> ." for student in chosen[teaching:]]

    def _share(self, whole: int, ratio: Range) -> int:
        return self._dice.among(Range(whole // ratio.high, whole // ratio.low))

    def _add_person(self, kind: str, number: int, belongs: str) -> str:
        name = f"{kind}{number}"
        person = f"<http://www.{self._host}/{name}>"
        self.lines += (
            f"{person}{TYPE}<{UB}{kind}> .",
            f'{person}{NAME}"{name}" .',
            f"{person}{belongs}{self._iri} .",
            f'{person}{EMAIL_ADDRESS}"{name}@{self._host}" .',
            f'{person}{TELEPHONE}"xxx-xxx-xxxx" .',
        )
        return person

    def _add_degree(self, person: str, predicate: str) -> None:
        index = self._dice.below(DEGREE_UNIVERSITIES)
        self.lines.append(f"{person}{predicate}{_university(index)} .")
        if index not in self._typed:
            self._typed.add(index)
            self.lines.append(f"{_university(index)}{TYPE}<{UB}University> .")

    def _add_advisor(self, student: str) -> None:
        """A professor: the rank first, then one of that rank."""
        rank = self._professors[self._dice.below(len(self._professors))]
        self.lines.append(f"{student}{ADVISOR}{rank[self._dice.below(len(rank))]} .")

    def _add_course(self, teacher: str, kind: str, courses: list[str]) -> None:
        name = f"{kind}{len(courses)}"
        course = f"<http://www.{self._host}/{name}>"
        courses.append(course)
        self.lines += (
            f"{teacher}{TEACHER_OF}{course} .",
            f"{course}{TYPE}<{UB}{kind}> .",
            f'{course}{NAME}"{name}" .',
        )
