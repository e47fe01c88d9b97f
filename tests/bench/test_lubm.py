"""The LUBM generator keeps its promises: one text per (universities, seed), and the published profile."""

import gzip
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import pytest
from pyoxigraph import BlankNode, Literal, NamedNode, RdfFormat, parse

from evergraph.bench.lubm import ontology, triples_of_university, write

UB = "http://swat.cse.lehigh.edu/onto/univ-bench.owl#"
OWL = "http://www.w3.org/2002/07/owl#"
FACULTY = ("FullProfessor", "AssociateProfessor", "AssistantProfessor", "Lecturer")


@dataclass
class Graph:
    """Parsed triples, by predicate without namespace: subject to objects."""

    size: int = 0
    objects: defaultdict[str, defaultdict[str, list[str]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )

    def of_type(self, name: str) -> list[str]:
        return [subject for subject, types in self.objects["type"].items() if UB + name in types]

    def counts(self, name: str, predicate: str) -> list[int]:
        """For each individual of a class, how many values it has of a property."""
        return [len(self.objects[predicate].get(subject, ())) for subject in self.of_type(name)]


def graph_of(text: str) -> Graph:
    graph = Graph()
    for quad in parse(text, format=RdfFormat.N_TRIPLES):
        assert isinstance(quad.subject, NamedNode | BlankNode)
        assert isinstance(quad.object, NamedNode | BlankNode | Literal)
        predicate = quad.predicate.value.rpartition("#")[2]
        graph.objects[predicate][quad.subject.value].append(quad.object.value)
        graph.size += 1
    return graph


@pytest.fixture(scope="module")
def lines() -> list[str]:
    return list(triples_of_university(0, seed=0))


@pytest.fixture(scope="module")
def university(lines: list[str]) -> Graph:
    return graph_of("\n".join(lines) + "\n")


def per_department(individuals: list[str]) -> Counter[str]:
    """How many of these IRIs each department's host holds."""
    return Counter(iri.split("/")[2] for iri in individuals)


def within(values: list[int], low: int, high: int) -> bool:
    """All inside, and both ends reached: enough are drawn here for a missing end to be an error."""
    return min(values) == low and max(values) == high


def test_ontology_declares_43_classes_and_32_properties() -> None:
    graph = graph_of(ontology())
    types = graph.objects["type"]
    kinds = Counter(kind for subject in types for kind in types[subject])
    assert kinds[OWL + "Class"] == 43
    assert kinds[OWL + "ObjectProperty"] + kinds[OWL + "TransitiveProperty"] == 25
    assert kinds[OWL + "DatatypeProperty"] == 7
    assert graph.size == 293


def test_ontology_is_the_same_text_at_every_call() -> None:
    assert ontology() == ontology()


def test_ontology_axioms() -> None:
    objects = graph_of(ontology()).objects
    assert objects["subPropertyOf"][UB + "headOf"] == [UB + "worksFor"]
    assert objects["subPropertyOf"][UB + "worksFor"] == [UB + "memberOf"]
    assert objects["inverseOf"][UB + "memberOf"] == [UB + "member"]
    assert objects["inverseOf"][UB + "degreeFrom"] == [UB + "hasAlumnus"]
    assert objects["type"][UB + "subOrganizationOf"] == [OWL + "TransitiveProperty"]
    assert objects["range"][UB + "advisor"] == [UB + "Professor"]
    assert UB + "Person" in objects["subClassOf"][UB + "GraduateStudent"]
    (person_and,) = objects["intersectionOf"][UB + "Chair"]
    assert objects["first"][person_and] == [UB + "Person"]
    (restriction,) = objects["first"][objects["rest"][person_and][0]]
    assert objects["onProperty"][restriction] == [UB + "headOf"]
    assert objects["someValuesFrom"][restriction] == [UB + "Department"]


def test_text_does_not_depend_on_the_number_of_processes(tmp_path: Path) -> None:
    alone, together = tmp_path / "alone.nt", tmp_path / "together.nt"
    summary = write(3, alone, seed=7, processes=1)
    assert write(3, together, seed=7, processes=2) == summary
    assert alone.read_bytes() == together.read_bytes()


def test_universities_are_the_same_in_every_size(tmp_path: Path, lines: list[str]) -> None:
    one, two = tmp_path / "one.nt", tmp_path / "two.nt"
    write(1, one)
    write(2, two, processes=1)
    first = ontology() + "\n".join(lines) + "\n"
    assert one.read_text() == first
    assert two.read_text() == first + "\n".join(triples_of_university(1, seed=0)) + "\n"


def test_seeds_differ(lines: list[str]) -> None:
    assert list(islice(triples_of_university(0, seed=1), 1000)) != lines[:1000]


def test_summary_counts_lines_distinct_triples_and_bytes(tmp_path: Path) -> None:
    out = tmp_path / "two.nt"
    summary = write(2, out, processes=1)
    written = out.read_text().splitlines()
    assert summary.triples == len(written)
    assert summary.distinct == len(set(written)) < len(written)
    assert summary.universities == 2
    assert summary.bytes == out.stat().st_size


def test_gzip_holds_the_same_text(tmp_path: Path, lines: list[str]) -> None:
    out = tmp_path / "one.nt.gz"
    summary = write(1, out)
    assert gzip.decompress(out.read_bytes()).decode() == ontology() + "\n".join(lines) + "\n"
    assert summary.bytes == out.stat().st_size
    assert [path.name for path in tmp_path.iterdir()] == ["one.nt.gz"]


@pytest.mark.parametrize(
    ("universities", "name", "processes"), [(0, "a.nt", 1), (1, "a.nt", 0), (1, "a.ttl", 1), (1, "a.gz", 1)]
)
def test_what_cannot_be_written_is_refused(tmp_path: Path, universities: int, name: str, processes: int) -> None:
    with pytest.raises(ValueError):
        write(universities, tmp_path / name, processes=processes)
    assert not list(tmp_path.iterdir())


def test_one_university_is_about_100_thousand_triples(lines: list[str], university: Graph) -> None:
    assert 100_000 < len(lines) < 103_000
    assert len(set(lines)) == len(lines) == university.size


def test_departments_are_as_many_as_published() -> None:
    departments = [
        sum(line.endswith(f"<{UB}Department> .") for line in triples_of_university(index, seed=0)) for index in range(5)
    ]
    assert departments[0] == 15
    assert sum(departments) == 93
    assert all(15 <= number <= 25 for number in departments)


def test_faculty_of_each_department(university: Graph) -> None:
    spans = {
        "FullProfessor": (7, 10),
        "AssociateProfessor": (10, 14),
        "AssistantProfessor": (8, 11),
        "Lecturer": (5, 7),
        "ResearchGroup": (10, 20),
    }
    for name, (low, high) in spans.items():
        numbers = per_department(university.of_type(name))
        assert len(numbers) == 15
        assert all(low <= number <= high for number in numbers.values()), name


def test_students_of_each_department(university: Graph) -> None:
    faculty = per_department([iri for name in FACULTY for iri in university.of_type(name)])
    undergraduates = per_department(university.of_type("UndergraduateStudent"))
    graduates = per_department(university.of_type("GraduateStudent"))
    teaching = per_department(university.of_type("TeachingAssistant"))
    research = per_department(university.of_type("ResearchAssistant"))
    for host, number in faculty.items():
        assert 8 * number <= undergraduates[host] <= 14 * number
        assert 3 * number <= graduates[host] <= 4 * number
        assert graduates[host] // 5 <= teaching[host] <= graduates[host] // 4
        assert graduates[host] // 4 <= research[host] <= graduates[host] // 3
    assistants = university.of_type("TeachingAssistant") + university.of_type("ResearchAssistant")
    assert len(set(assistants)) == len(assistants)
    assert set(assistants) < set(university.of_type("GraduateStudent"))


def test_teaching(university: Graph) -> None:
    assert within(university.counts("UndergraduateStudent", "takesCourse"), 2, 4)
    assert within(university.counts("GraduateStudent", "takesCourse"), 1, 3)
    assert set(university.counts("TeachingAssistant", "teachingAssistantOf")) == {1}
    graduate_courses = set(university.of_type("GraduateCourse"))
    for name in FACULTY:
        for person in university.of_type(name):
            taught = university.objects["teacherOf"][person]
            assert 1 <= len(graduate_courses.intersection(taught)) <= 2
            assert 1 <= len(set(taught) - graduate_courses) <= 2
    taught = [course for courses in university.objects["teacherOf"].values() for course in courses]
    assert sorted(taught) == sorted(university.of_type("Course") + university.of_type("GraduateCourse"))


def test_advisors_are_professors(university: Graph) -> None:
    assert set(university.counts("GraduateStudent", "advisor")) == {1}
    advised = university.counts("UndergraduateStudent", "advisor")
    assert 0.17 < sum(advised) / len(advised) < 0.23
    professors = {iri for name in FACULTY[:3] for iri in university.of_type(name)}
    assert all(set(advisors) <= professors for advisors in university.objects["advisor"].values())


def test_publications(university: Graph) -> None:
    spans = dict(zip(FACULTY, ((15, 20), (10, 18), (5, 10), (0, 5)), strict=True))
    authors = university.objects["publicationAuthor"]
    written = Counter(author for names in authors.values() for author in names)
    for name, (low, high) in spans.items():
        assert within([written[person] for person in university.of_type(name)], low, high), name
    assert within([written[person] for person in university.of_type("GraduateStudent")], 0, 5)
    assert set(authors) == set(university.of_type("Publication"))


def test_people_are_described(university: Graph) -> None:
    for name in (*FACULTY, "UndergraduateStudent", "GraduateStudent"):
        for predicate in ("name", "emailAddress", "telephone"):
            assert set(university.counts(name, predicate)) == {1}
    for name in FACULTY:
        for predicate in ("worksFor", "undergraduateDegreeFrom", "mastersDegreeFrom", "doctoralDegreeFrom"):
            assert set(university.counts(name, predicate)) == {1}
        assert set(university.counts(name, "researchInterest")) == {int(name != "Lecturer")}
    assert set(university.counts("GraduateStudent", "undergraduateDegreeFrom")) == {1}
    heads = university.objects["headOf"]
    assert set(heads) <= set(university.of_type("FullProfessor"))
    assert sorted(head for heads_of in heads.values() for head in heads_of) == sorted(university.of_type("Department"))


def test_every_university_named_is_typed(university: Graph) -> None:
    named = {"http://www.University0.edu"}
    for predicate in ("undergraduateDegreeFrom", "mastersDegreeFrom", "doctoralDegreeFrom"):
        named.update(*university.objects[predicate].values())
    assert named == set(university.of_type("University"))


def test_iris_are_written_as_the_benchmark_writes_them(university: Graph) -> None:
    department = "http://www.Department0.University0.edu"
    professor = f"{department}/FullProfessor0"
    assert university.objects["type"][f"{professor}/Publication3"] == [UB + "Publication"]
    assert university.objects["type"][f"{department}/GraduateCourse0"] == [UB + "GraduateCourse"]
    assert university.objects["subOrganizationOf"][department] == ["http://www.University0.edu"]
    assert university.objects["name"][professor] == ["FullProfessor0"]
    assert university.objects["emailAddress"][professor] == ["FullProfessor0@Department0.University0.edu"]
    assert university.objects["worksFor"][professor] == [department]
    assert f"{department}/GraduateStudent12" in university.of_type("GraduateStudent")
