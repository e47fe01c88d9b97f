"""The mobility scenario: places, vehicles and travellers as background, and where they are as a stream without end.

    user  isIn  train  isIn  station  isIn  district  isIn  city  isIn  region  isIn  country
    └── streams ──┘└──── streams ────┘└──────────────── background ────────────────────────┘

What it makes. The background has the types of all users, vehicles and places, what a place is in, and a schema: classes of
three levels; what is in something is `Located`, what has something in it is a `Location`, and who has a `remainingTravelTime`
is a `Traveller`. Each second so many facts stream: of ten, seven say in which vehicle a user is, one at which station a vehicle
is, two how long a user has still to travel, to the minute.
Waves. A minute is a wave, if not told otherwise. In a wave a block of the users travels, each in one vehicle, and each vehicle,
of which every other one drives, is at one station; in the next wave others do. So in a window of a wave or less, nobody is in
two vehicles and no vehicle at two stations. Users report about every ten seconds, and so often enter a window that has the same
fact still: 100 seconds of 1,000 facts are 30,000 facts in the window. With `wave` and `every` as long as the window, each
reports once in it: then the window holds all that entered, and at a tick as much leaves as enters.

Paper: Barbieri et al., ESWC 2010, Figures 1 and 2, with the rule of §2.3; `mobility.dlog` are the rules, `figure2.rq` is the
    query, as printed but for the ^^ of its literal and the prefix of that. The paper has no data for it: all figures are ours.
Invariant: the background has exactly so many facts, all distinct; same arguments, same facts. Any second can be made without
    those before it.
Cost: linear; a background of a million facts takes half a second, a second of ten thousand facts a few milliseconds.
Closure: what is in a district has its city, region and country above it: about four `isIn` a place. A position brings the five
    places above a vehicle, or the four above a station for the vehicle and each of its users, and one or two types.
Trap: with more facts a second than a quarter of the users can report, they report more than once a second.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from itertools import count

import numpy as np
import pyarrow as pa

from evergraph import Program
from evergraph.bench.windows.terms import COLUMNS, Numbers, drawn, names, repeated, table
from evergraph.bench.windows.trees import IS_IN, SPACE
from evergraph.errors import UserError
from evergraph.rules.model import RDFS, TYPE, XSD
from evergraph.stream.times import SECOND, instant_of

STREAM = "http://mobileservice.org/positions.trdf"
"""What Figure 2 calls it."""
TRAVEL_TIME = f"<{SPACE}remainingTravelTime>"
WAVE, EVERY = 60, 10
"""In seconds; see `Mobility`."""
START = instant_of("2010-05-30T08:00:00Z")
LEAST = 1000
"""Facts that a background needs to have everything in it."""
USERS, VEHICLES = 0.3, 0.02
"""Shares of the background."""
LEVELS = ("country", "region", "city", "district")
CHILDREN = {"region": 10, "city": 10, "district": 5, "station": 4}
"""Of what is above, about."""
USER_CLASSES = ("Commuter", "Commuter", "Commuter", "Tourist", "User")
VEHICLE_CLASSES = ("Train", "Train", "Tram", "Bus")
SIGHT_CLASSES = ("Shop", "Museum", "Restaurant", "ParkingLot")
SUBCLASSES = {
    "User": ("Commuter", "Tourist"),
    "RailVehicle": ("Train", "Tram"),
    "Vehicle": ("RailVehicle", "Bus"),
    "PointOfInterest": SIGHT_CLASSES,
    "AdministrativeArea": ("District", "City", "Region", "Country"),
    "Place": ("Station", "PointOfInterest", "AdministrativeArea"),
    "Moving": ("Traveller", "Vehicle"),
}


def rules() -> Program:
    """RDFS, and isIn transitive."""
    return Program.load(str(files("evergraph.bench.windows").joinpath("mobility.dlog")))


def query(seconds: int = 10) -> str:
    """The continuous query of Figure 2, with a window of so many seconds."""
    text = files("evergraph.bench.windows").joinpath("figure2.rq").read_text(encoding="utf-8")
    return text.replace("RANGE 10sec", f"RANGE {seconds}sec")


@dataclass(frozen=True)
class Mobility:
    """A background of so many facts, and a stream of so many a second."""

    facts: int = 1_000_000
    rate: int = 1000
    seed: int = 0
    wave: int = WAVE
    """Seconds in which users and vehicles stay where they are."""
    every: int = EVERY
    """Seconds after which a traveller reports again, where there are enough of them."""

    def __post_init__(self) -> None:
        if self.facts < LEAST or self.rate < 1:
            least = f"ask for {LEAST:,} facts and one a second, at least"
            raise UserError("EG302", f"too few: {self.facts:,} facts and {self.rate:,} a second", least)

    @cached_property
    def many(self) -> dict[str, int]:
        """How many there are: countries, regions, …, stations, sights, vehicles and users."""
        vehicles = round(self.facts * VEHICLES)
        places = (self.facts - len(_schema()) - vehicles - round(self.facts * USERS)) // 2
        districts = max(1, places // 17)
        out = {"district": districts, "station": districts * CHILDREN["station"]}
        for below, level in (("district", "city"), ("city", "region"), ("region", "country")):
            out[level] = -(-out[below] // CHILDREN[below])
        out |= {"sight": places - sum(out.values()), "vehicle": vehicles}
        out["user"] = self.facts - len(_schema()) - vehicles - 2 * places + out["country"]
        return out

    def background(self) -> pa.Table:
        """Schema, places, vehicles and users."""
        parts = [_schema()]
        for name, many in self.many.items():
            here = np.arange(many)
            parts.append(table(_named(name, here), TYPE, self._classes(name, here)))
        for name, above in (*zip(LEVELS[1:], LEVELS, strict=False), ("station", "district"), ("sight", "district")):
            here = np.arange(self.many[name])
            parts.append(table(_named(name, here), IS_IN, _named(above, here % self.many[above])))
        return pa.concat_tables(parts).combine_chunks()

    def second(self, number: int) -> pa.Table:
        """The facts of a second, with their timestamps, in their order; seconds count from 0, which is at `START`."""
        wave = number // self.wave
        kinds = drawn(10, self.seed, 1, number, np.arange(self.rate))
        at, station, left = (np.flatnonzero(where) for where in (kinds < 7, kinds == 7, kinds > 7))
        users = self._travelling(wave, _turn(number, len(at), self._per_second(7), self._travellers))
        vehicles = self._driving(wave, _turn(number, len(station), self._per_second(1), self._drivers))
        later = self._travelling(wave, _turn(number, len(left), self._per_second(2), self._travellers))
        parts = (
            (at, table(_named("user", users), IS_IN, _named("vehicle", self._vehicle(wave, users)))),
            (station, table(_named("vehicle", vehicles), IS_IN, _named("station", self._station(wave, vehicles)))),
            (left, table(_named("user", later), TRAVEL_TIME, self._remaining(wave, later))),
        )
        order = np.argsort(np.concatenate([rows for rows, _ in parts]))
        found = pa.concat_tables([part for _, part in parts]).take(pa.array(order)).combine_chunks()
        times = START + number * SECOND + np.arange(self.rate) * SECOND // self.rate
        return found.append_column("timestamp", pa.array(times, pa.timestamp("us", "UTC")))

    def stream(self, first: int = 0) -> Iterator[pa.Table]:
        """Seconds without end, from one on."""
        return (self.second(number) for number in count(first))

    # -- who is where ------------------------------------------------------------------------------------------------

    @property
    def _drivers(self) -> int:
        """Vehicles that drive in a wave: as many as report in `every` seconds, and half of all at most."""
        return min(self._per_second(1) * self.every, self.many["vehicle"] // 2)

    @property
    def _travellers(self) -> int:
        """Users that travel in a wave: as many as report in `every` seconds, and a quarter of all at most."""
        return min(self._per_second(7) * self.every, self.many["user"] // 4)

    def _per_second(self, of_ten: int) -> int:
        return max(1, self.rate * of_ten // 10)

    def _travelling(self, wave: int, places: Numbers) -> Numbers:
        """Users by their place among those who travel in a wave: one block after the other."""
        found: Numbers = (wave * self._travellers + places) % self.many["user"]
        return found

    def _driving(self, wave: int, places: Numbers) -> Numbers:
        """Vehicles by their place among those that drive in a wave: even ones, then odd ones."""
        found: Numbers = 2 * ((wave // 2 * self._drivers + places) % (self.many["vehicle"] // 2)) + wave % 2
        return found

    def _vehicle(self, wave: int, users: Numbers) -> Numbers:
        return self._driving(wave, drawn(self._drivers, self.seed, 2, wave, users))

    def _station(self, wave: int, vehicles: Numbers) -> Numbers:
        return drawn(self.many["station"], self.seed, 3, wave, vehicles)

    def _remaining(self, wave: int, users: Numbers) -> pa.Array:
        return names('"PT', 1 + drawn(60, self.seed, 4, wave, users), f'M"^^<{XSD}duration>')

    def _classes(self, name: str, here: Numbers) -> pa.Array:
        kinds = {"user": USER_CLASSES, "vehicle": VEHICLE_CLASSES, "sight": SIGHT_CLASSES}.get(name)
        if kinds is None:
            return repeated(f"<{SPACE}{name.capitalize()}>", len(here))
        terms = pa.array([f"<{SPACE}{kind}>" for kind in kinds])
        return terms.take(pa.array(drawn(len(kinds), self.seed, 5, here)))


def _schema() -> pa.Table:
    """What RDFS has to know of the classes and the two properties."""
    said = [(low, "subClassOf", high) for high, lows in SUBCLASSES.items() for low in lows]
    said += [("isIn", "domain", "Located"), ("isIn", "range", "Location"), ("remainingTravelTime", "domain", "Traveller")]
    columns = zip(*((f"<{SPACE}{s}>", f"<{RDFS}{p}>", f"<{SPACE}{o}>") for s, p, o in said), strict=True)
    return pa.table([pa.array(column) for column in columns], names=COLUMNS)


def _turn(second: int, many: int, per_second: int, of: int) -> Numbers:
    """Whose turn it is to report in a second, by their places among those who do."""
    found: Numbers = (second * per_second + np.arange(many)) % of
    return found


def _named(name: str, numbers: Numbers) -> pa.Array:
    return names(f"<{SPACE}{name}", numbers)
