"""A large program and its data, from a seed: 250,000 rules of 40 forms and 2,000,000 facts at scale 1.

Classes and properties are trees of a fixed depth in which every level is so many times the one above; nearly everything is
therefore at the bottom, as in taxonomies there are. 96 % of the rules are axioms of RDFS, the others are of the forms of
`forms.py`, as many of each. Facts: two of five say a type, the others relate individuals, one in five of them to a hub, so that
values are met again. Domains and ranges are classes high up, as in vocabularies there are. A smaller scale has relatively more
individuals: properties of the middle level have fewer below them then, and would relate everybody to everybody.

Files: `rules.dlog` (all rules), `others.dlog` (those that RDFS cannot say, with `rhodf` included), `schema.nt` (the axioms as
triples) and `facts.nt`. Cost: linear, about 10 s at scale 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

from evergraph.bench.rules.axioms import PREFIX, Axiom, iri
from evergraph.bench.rules.forms import FORMS, SAME, fill
from evergraph.rules.model import TYPE

AXIOMS = {"subclass": 210_000, "subproperty": 10_000, "domain": 10_000, "range": 10_000}
OTHERS = 10_000
TYPES, RELATIONS = 800_000, 1_200_000
INDIVIDUALS, HUBS = 500_000, 1000
CLASS_LEVELS, PROPERTY_LEVELS = 10, 4
ENDS, HIGH, LOW = range(1, 3), range(2, 4), range(6, 8)
"""Levels of the classes that are domains and ranges, that rules derive, and that they ask for."""


@dataclass(frozen=True, slots=True)
class Tree:
    """Numbered names in levels, the root first; every level is so many times the one above it."""

    letter: str
    levels: list[range]

    @property
    def size(self) -> int:
        return self.levels[-1].stop

    def name(self, number: int) -> str:
        return f"{self.letter}{number}"

    def draw(self, rng: Random, levels: range) -> str:
        """One of the names of these levels."""
        return self.name(rng.randrange(self.levels[levels.start].start, self.levels[levels.stop - 1].stop))

    def axioms(self, kind: str, rng: Random) -> Iterator[Axiom]:
        """Every name but the root below one of the level above."""
        for above, level in zip(self.levels, self.levels[1:], strict=False):
            for number in level:
                yield Axiom(kind, self.name(number), self.name(rng.choice(above)))

    @staticmethod
    def of(letter: str, size: int, levels: int) -> Tree:
        ratio = 1.0
        while sum(int(ratio**level) for level in range(levels)) < size:
            ratio += 0.001
        stops = [sum(int(ratio**level) for level in range(n + 1)) for n in range(levels)]
        return Tree(letter, [range(start, stop) for start, stop in zip([0, *stops], [*stops[:-1], size], strict=False)])


@dataclass(frozen=True, slots=True)
class Large:
    """A program in its two parts, and the folder of its files."""

    axioms: list[Axiom]
    others: dict[str, list[str]]
    """Rules by form."""
    folder: Path

    @property
    def rules(self) -> list[str]:
        """All rules, as lines of `rules.dlog`."""
        return [*(axiom.rule for axiom in self.axioms), *(rule for rules in self.others.values() for rule in rules)]

    @property
    def files(self) -> dict[str, Path]:
        names = ("rules.dlog", "others.dlog", "schema.nt", "facts.nt")
        return {Path(name).stem: self.folder / name for name in names}


def generate(folder: Path, scale: float = 1.0, seed: int = 0) -> Large:
    """Draw a program and its facts, and write their files."""
    rng = Random(seed)
    classes = Tree.of("C", _scaled(AXIOMS["subclass"], scale) + 1, CLASS_LEVELS)
    properties = Tree.of("p", _scaled(AXIOMS["subproperty"], scale) + 1, PROPERTY_LEVELS)
    individuals, hubs = (_scaled(number, scale ** (1 / 3)) for number in (INDIVIDUALS, HUBS))
    axioms = [*classes.axioms("subclass", rng), *properties.axioms("subproperty", rng)]
    for kind in ("domain", "range"):
        chosen = sorted(rng.sample(range(properties.size), _scaled(AXIOMS[kind], scale)))
        axioms += [Axiom(kind, properties.name(number), classes.draw(rng, ENDS)) for number in chosen]

    def draw(symbol: str) -> str:
        match symbol:
            case "c" | "C":
                return classes.draw(rng, LOW if symbol == "c" else HIGH)
            case "p" | "P":
                return properties.draw(rng, range(2, 4) if symbol == "p" else range(1, 2))
        return f"i{rng.randrange(hubs)}"

    each = max(1, _scaled(OTHERS, scale) // len(FORMS))
    drawn = {form: [fill(form, draw, form in SAME and n % 2 == 0) for n in range(each)] for form in FORMS}
    others = {form: list(dict.fromkeys(rules)) for form, rules in drawn.items()}
    large = Large(axioms, others, folder)
    folder.mkdir(parents=True, exist_ok=True)
    _write(large, classes, properties, rng, scale, individuals, hubs)
    return large


def _write(large: Large, classes: Tree, properties: Tree, rng: Random, scale: float, individuals: int, hubs: int) -> None:
    files = large.files
    files["rules"].write_text(PREFIX + "\n".join(large.rules) + "\n")
    others = "\n".join(rule for rules in large.others.values() for rule in rules)
    files["others"].write_text(f'{PREFIX}@include "rhodf" .\n{others}\n')
    with files["schema"].open("w") as stream:
        stream.writelines(f"{' '.join(axiom.triple)} .\n" for axiom in large.axioms)
    with files["facts"].open("w") as stream:
        for _ in range(_scaled(TYPES, scale)):
            one, class_ = rng.randrange(individuals), rng.randrange(classes.size)
            stream.write(f"{iri(f'i{one}')} {TYPE} {iri(classes.name(class_))} .\n")
        for _ in range(_scaled(RELATIONS, scale)):
            one, relation = rng.randrange(individuals), rng.randrange(properties.size)
            other = rng.randrange(hubs if rng.random() < 0.2 else individuals)
            stream.write(f"{iri(f'i{one}')} {iri(properties.name(relation))} {iri(f'i{other}')} .\n")


def _scaled(number: int, scale: float) -> int:
    return max(10, round(number * scale))
