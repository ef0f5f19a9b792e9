"""Movements of people: two generators similar to published data sets, and two real sets.

The data sets behind published figures on trajectories are not public. City-like and Metro-like have their shapes
and sizes: a city of 26 blocks and 24 hours, and a network of 65 stations and 60 minutes. Every generator is a
function of its arguments and a seed. The real sets are tracks of cars and buses, and sets of diagnoses, both of
../shared/data.
"""

from __future__ import annotations

import csv
import gzip
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np

from anonymize.table import Ints
from benchmarks.shared_jobs import SHARED, SharedDataAbsent

HOURS = 24
MINUTES = 60
LAST_START = 48
EVERY = 3
"""Minutes between two trains of the same line and direction."""
DIAGNOSES = tuple(f"diag {number}" for number in range(1, 6))
LINES = (
    tuple(f"green {i}" for i in range(1, 28)),
    tuple(f"orange {i}" for i in range(1, 29)),
    ("green 15", "yellow 2", "yellow 3"),
    tuple(f"blue {i}" for i in range(1, 13)),
)
SAME = {"orange 9": "green 15", "orange 15": "green 9", "orange 19": "blue 1", "blue 9": "orange 4"}
"""Stations of several lines, by their unused names: Berri-UQAM, Lionel-Groulx, Snowdon, Jean-Talon."""


@dataclass(frozen=True)
class Readings:
    """Readings of records, in no order; a record may have no reading.

    records:    the record of each reading, a number below ``n_records``; items: cell · n_places + place;
                int64, shape (n_readings,) each.
    sensitive:  by record the place of its value in ``values``: int64, shape (n_records,).
    n_cells:    of time; 1 for sets of values, which have no time.
    """

    name: str
    records: Ints = field(repr=False)
    items: Ints = field(repr=False)
    sensitive: Ints = field(repr=False)
    places: tuple[str, ...]
    n_cells: int
    values: tuple[str, ...] = DIAGNOSES

    @property
    def n_records(self) -> int:
        return len(self.sensitive)

    @property
    def domain(self) -> int:
        return self.n_cells * len(self.places)

    def once(self) -> Readings:
        """Return every reading once, by record and item."""
        keys = np.unique(self.records * self.domain + self.items)
        return Readings(
            self.name,
            keys // self.domain,
            keys % self.domain,
            self.sensitive,
            self.places,
            self.n_cells,
            self.values,
        )

    def write(self, path: Path) -> None:
        """Write a table with a line for every reading: person, place, time, and the record's sensitive value."""
        cells, places = np.divmod(self.items, len(self.places))
        columns = zip(
            self.records.tolist(),
            places.tolist(),
            cells.tolist(),
            self.sensitive[self.records].tolist(),
            strict=True,
        )
        with path.open("w", newline="") as file:
            file.write("who,place,time,diagnosis\n")
            file.writelines(
                f"{who},{self.places[place]},{cell},{self.values[value]}\n"
                for who, place, cell, value in columns
            )


def _blocks() -> tuple[tuple[str, ...], list[list[int]]]:
    """Return a grid of 5 × 5 blocks and a further block at a corner, and the neighbours of each block."""
    names = (*(f"block {row}{column}" for row in "abcde" for column in range(1, 6)), "block f1")
    near: list[list[int]] = [[] for _ in names]
    for row in range(5):
        for column in range(5):
            here = row * 5 + column
            steps = ((row - 1, column), (row, column - 1), (row, column + 1), (row + 1, column))
            near[here] = [r * 5 + c for r, c in steps if 0 <= r < 5 and 0 <= c < 5]
    near[20].append(25)
    near[25].append(20)
    return names, near


def _walk(near: Sequence[Sequence[int]], length: int, rng: np.random.Generator) -> list[int]:
    """Walk from a random block to random neighbours; turn back only without an alternative."""
    walk = [int(rng.integers(len(near)))]
    while len(walk) < length:
        ways = [block for block in near[walk[-1]] if len(walk) < 2 or block != walk[-2]]
        walk.append(int(rng.choice(ways or near[walk[-1]])))
    return walk


def _routes(near: Sequence[Sequence[int]], n: int, rng: np.random.Generator) -> tuple[Ints, Ints, Ints]:
    """Draw routes of 8 to 12 hops: their blocks, hop by hop, shape (n, 13); their lengths; their start hours."""
    longest = 13
    walks = np.zeros((n, longest), dtype=np.int64)
    lengths = rng.integers(8, longest, n)
    for route in range(n):
        walks[route, : lengths[route]] = _walk(near, int(lengths[route]), rng)
    return walks, lengths, np.clip(np.rint(rng.normal(8, 3.5, n)), 0, 15).astype(np.int64)


def city(
    n_records: int = 80_000,
    *,
    routes: int = 300,
    skew: float = 0.8,
    irregular: float = 0.0,
    seed: int = 1,
) -> Readings:
    """Draw citizens in 26 blocks over 24 hours, an hour in each: they ride parts of routes of different popularity.

    skew:       popularity falls as the −skew-th power of a route's rank.
    irregular:  the part of the citizens who walk at random.
    """
    rng = np.random.default_rng(seed)
    names, near = _blocks()
    walks, lengths, starts = _routes(near, routes, rng)
    popular = np.arange(1, routes + 1) ** -skew
    route = rng.choice(routes, n_records, p=popular / popular.sum())
    first = rng.geometric(0.55, n_records) - 1
    last = lengths[route] - rng.geometric(0.55, n_records) + 1
    first = np.minimum(first, lengths[route] - 2)
    last = np.maximum(last, first + 2)
    hop = np.arange(walks.shape[1])
    own = np.flatnonzero(rng.random(n_records) < irregular)
    ridden = (hop >= first[:, None]) & (hop < last[:, None])
    ridden[own] = False
    records, at = np.nonzero(ridden)
    hours = starts[route[records]] + at
    places = walks[route[records], at]
    for walker in own.tolist():
        length = max(int(rng.poisson(8)), 1)
        records = np.append(records, np.full(length, walker))
        hours = np.append(hours, int(rng.integers(HOURS)) + np.arange(length))
        places = np.append(places, _walk(near, length, rng))
    within = hours < HOURS
    name = f"City-like, {n_records:,}, {routes} routes, {irregular:.1%} irregular"
    items = (hours * len(names) + places)[within]
    sensitive = rng.integers(0, len(DIAGNOSES), n_records)
    return Readings(name, records[within], items, sensitive, names, HOURS).once()


@dataclass(frozen=True)
class _Stop:
    """A station as a stop of a line in a direction: 2 · line + direction, and the place on the way."""

    train: int
    order: int


def _rides(stations: Sequence[str]) -> list[list[list[int]]]:
    """Return, by origin and destination, the stations on a shortest way, without the lines."""
    number = {name: i for i, name in enumerate(stations)}
    near: list[list[int]] = [[] for _ in stations]
    for line in LINES:
        for a, b in pairwise(number[SAME.get(name, name)] for name in line):
            near[a].append(b)
            near[b].append(a)
    ways: list[list[list[int]]] = []
    for origin in range(len(stations)):
        found: dict[int, list[int]] = {origin: [origin]}
        front = [origin]
        while front:
            here = front.pop(0)
            for to in near[here]:
                if to not in found:
                    found[to] = [*found[here], to]
                    front.append(to)
        ways.append([found[to] for to in range(len(stations))])
    return ways


def _trains(stations: Sequence[str]) -> dict[tuple[int, int], _Stop]:
    """Return, by two neighbouring stations, the train between the two."""
    number = {name: i for i, name in enumerate(stations)}
    found = {}
    for line, names in enumerate(LINES):
        stops = [number[SAME.get(name, name)] for name in names]
        for direction, order in enumerate((stops, stops[::-1])):
            for place, (a, b) in enumerate(pairwise(order)):
                found[a, b] = _Stop(2 * line + direction, place)
    return found


def _ride(way: Sequence[int], minute: int, trains: dict[tuple[int, int], _Stop]) -> Iterator[tuple[int, int]]:
    """Yield station and minute, from the first train at or after ``minute``; at a change of trains, the minute of
    departure.
    """
    on = -1
    for a, b in pairwise(way):
        stop = trains[a, b]
        if stop.train != on:
            on = stop.train
            # Trains of a line and direction leave its terminus at minutes `on`, `on` + 3, ...
            minute += (on + stop.order - minute) % EVERY
        yield a, minute
        minute += 1
    yield way[-1], minute


def metro(n_records: int = 100_000, *, seed: int = 2) -> Readings:
    """Draw passengers of a network of four lines within an hour: trains every 3 minutes, a minute from stop to
    stop.

    Origins and destinations are popular as the −0.7th power of a station's rank; trips have about 9 stations.
    """
    rng = np.random.default_rng(seed)
    stations = tuple(dict.fromkeys(SAME.get(name, name) for line in LINES for name in line))
    n = len(stations)
    ways, trains = _rides(stations), _trains(stations)
    popular = rng.permutation(np.arange(1, n + 1) ** -0.7)
    length = np.array([[len(way) for way in of] for of in ways], dtype=np.float64)
    gravity = popular[:, None] * popular * (length - 1) * np.exp(-length / 4.9)
    trips = rng.choice(n * n, n_records, p=(gravity / gravity.sum()).ravel())
    # Passengers of the same three minutes take the same trains; compute every trip once for every minute.
    keys, which = np.unique(trips * LAST_START + rng.integers(0, LAST_START, n_records), return_inverse=True)
    rides = []
    for key in keys.tolist():
        trip, minute = divmod(key, LAST_START)
        ride = _ride(ways[trip // n][trip % n], minute, trains)
        rides.append([at * n + station for station, at in ride if at < MINUTES])
    sizes = np.array([len(ride) for ride in rides])
    items = np.array([item for ride in rides for item in ride], dtype=np.int64)
    firsts = np.cumsum(sizes) - sizes
    own = sizes[which]
    records = np.repeat(np.arange(n_records), own)
    within = np.arange(own.sum()) - np.repeat(np.cumsum(own) - own, own)
    read = items[np.repeat(firsts[which], own) + within]
    sensitive = rng.integers(0, len(DIAGNOSES), n_records)
    return Readings(f"Metro-like, {n_records:,}", records, read, sensitive, stations, MINUTES).once()


def crowd(n_records: int = 20_000, *, seed: int = 3) -> Readings:
    """Draw people read every hour for 12 hours, at 8 places with probability inverse to the rank of the place."""
    rng = np.random.default_rng(seed)
    hours, places = 12, tuple(f"place {i}" for i in range(1, 9))
    popular = np.arange(1, len(places) + 1) ** -1.0
    at = rng.choice(len(places), (n_records, hours), p=popular / popular.sum())
    items = (np.arange(hours) * len(places) + at).ravel()
    sensitive = rng.integers(0, len(DIAGNOSES), n_records)
    records = np.repeat(np.arange(n_records), hours)
    return Readings(f"a crowd, {n_records:,}", records, items, sensitive, places, hours)


def diagnoses() -> Readings:
    """Return the three-digit ICD-9 categories of every encounter of diabetes130; sensitive: readmission."""
    folder = _shared("diabetes130")
    with (folder / "icd9.csv").open(newline="") as file:
        category = {row[0]: row[1] for row in csv.reader(file, delimiter=";") if row[0] != "?"}
    places = tuple(sorted(set(category.values())))
    number = {name: i for i, name in enumerate(places)}
    readmitted = ("<30", ">30", "NO")
    records, items, sensitive = [], [], []
    with gzip.open(folder / "diabetic_data.csv.gz", "rt", newline="") as table:
        for record, row in enumerate(csv.DictReader(table)):
            codes = [row[f"diag_{i}"] for i in (1, 2, 3) if row[f"diag_{i}"] != "?"]
            records += [record] * len(codes)
            items += [number[category[code]] for code in codes]
            sensitive.append(readmitted.index(row["readmitted"]))
    read = Readings(
        "diabetes130, ICD-9",
        np.array(records, dtype=np.int64),
        np.array(items, dtype=np.int64),
        np.array(sensitive, dtype=np.int64),
        places,
        1,
        readmitted,
    )
    return read.once()


def tracks(*, timed: bool = True, degrees: float = 0.02) -> Readings:
    """Return cars and buses in Aracaju: squares of 0.02° and hours of the day, or squares alone."""
    folder = _shared("trajectories")
    with gzip.open(folder / "gps_aracaju_points.csv.gz", "rt", newline="") as table:
        rows = list(csv.DictReader(table))
    tracked = sorted({row["track_id"] for row in rows})
    squares, hours = [], []
    for row in rows:
        y, x = (int(float(row[name]) // degrees) for name in ("latitude", "longitude"))
        squares.append(f"{y}:{x}")
        hours.append(int(row["time"][11:13]) if timed else 0)
    places = tuple(sorted(set(squares)))
    number = {name: i for i, name in enumerate(places)}
    track = {name: i for i, name in enumerate(tracked)}
    items = [hour * len(places) + number[square] for hour, square in zip(hours, squares, strict=True)]
    read = Readings(
        f"gps_aracaju, {degrees}°{' × hour' if timed else ''}",
        np.array([track[row["track_id"]] for row in rows], dtype=np.int64),
        np.array(items, dtype=np.int64),
        np.zeros(len(tracked), dtype=np.int64),
        places,
        HOURS if timed else 1,
        ("",),
    )
    return read.once()


def _shared(name: str) -> Path:
    folder = SHARED / "data" / name
    if not folder.exists():
        raise SharedDataAbsent("this data set needs ../shared/data, which is not here")
    return folder


def main(name: str, n_records: str, path: str) -> None:
    """Write the readings of a generator, in a process that then ends and frees its memory."""
    {"city": city, "metro": metro}[name](int(n_records)).write(Path(path))


if __name__ == "__main__":
    main(*sys.argv[1:])
