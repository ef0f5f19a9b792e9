"""Print a small synthetic OMOP database (CDM 5.4) as SQL: deterministic, nobody's data.

Four tables of the common data model with all columns that it requires, and `location`. Diagnoses have codes of ICD-10
as source values and the concept 0, "no matching concept": vocabularies with licences of their own are not needed. The
concepts of gender, race and visits are those of the model's own documentation.

    python examples/omop/generate.py | psql "$JOINTCUT_DSN"        makes the schema `omop` anew
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TextIO

import numpy as np

SEED = 2026
PERSONS = 1200
FIRST = datetime(2025, 1, 6)
DAYS = 84
GENDERS = {8507: 49, 8532: 51}
RACES = {8527: 76, 8516: 14, 8515: 10}
ZIPS = ("02115", "02118", "02130", "02139", "02141", "02446")
INPATIENT, OUTPATIENT, EMERGENCY = 9201, 9202, 9203
EHR = 32817
"""The type of what comes from a health record."""
CODES = {
    "A09": 5, "B20": 2, "C34": 3, "C50": 3, "E11": 14, "E78": 13, "F10": 4, "F32": 8, "G40": 3, "I10": 20, "I21": 4,
    "I48": 5, "J18": 6, "J44": 7, "J45": 6, "K21": 8, "K35": 3, "M17": 7, "M54": 9, "N39": 5, "O80": 3, "S72": 4,
}  # fmt: skip
"""Codes of ICD-10, by how frequent they are."""

TABLES = """
DROP SCHEMA IF EXISTS omop CASCADE;
CREATE SCHEMA omop;
CREATE TABLE omop.location (
    location_id integer PRIMARY KEY, zip varchar(9)
);
CREATE TABLE omop.person (
    person_id integer PRIMARY KEY, gender_concept_id integer NOT NULL, year_of_birth integer NOT NULL,
    race_concept_id integer NOT NULL, ethnicity_concept_id integer NOT NULL,
    location_id integer REFERENCES omop.location
);
CREATE TABLE omop.visit_occurrence (
    visit_occurrence_id integer PRIMARY KEY, person_id integer NOT NULL REFERENCES omop.person,
    visit_concept_id integer NOT NULL, visit_start_date date NOT NULL, visit_start_datetime timestamp,
    visit_end_date date NOT NULL, visit_type_concept_id integer NOT NULL
);
CREATE TABLE omop.condition_occurrence (
    condition_occurrence_id integer PRIMARY KEY, person_id integer NOT NULL REFERENCES omop.person,
    condition_concept_id integer NOT NULL, condition_start_date date NOT NULL,
    condition_type_concept_id integer NOT NULL,
    visit_occurrence_id integer REFERENCES omop.visit_occurrence, condition_source_value varchar(50)
);
CREATE TABLE omop.death (
    person_id integer PRIMARY KEY REFERENCES omop.person, death_date date NOT NULL
);
"""


@dataclass
class Rows:
    """The rows of every table, in the order in which they can be inserted."""

    location: list[tuple[object, ...]] = field(default_factory=list)
    person: list[tuple[object, ...]] = field(default_factory=list)
    visit_occurrence: list[tuple[object, ...]] = field(default_factory=list)
    condition_occurrence: list[tuple[object, ...]] = field(default_factory=list)
    death: list[tuple[object, ...]] = field(default_factory=list)


def choose(rng: np.random.Generator, weights: dict[int, int]) -> int:
    share = np.array(list(weights.values()), dtype=float)
    return int(rng.choice(list(weights), p=share / share.sum()))


def visits(rng: np.random.Generator, frail: bool) -> Iterator[tuple[int, datetime]]:
    """What kinds of visits a person makes, and when: appointments, some after an emergency."""
    at = FIRST + timedelta(hours=float(rng.uniform(0, DAYS * 12)))
    for _ in range(1 + int(rng.poisson(2.2 if frail else 0.9))):
        kind = choose(rng, {OUTPATIENT: 70, EMERGENCY: 22 if frail else 12, INPATIENT: 5})
        if at > FIRST + timedelta(days=DAYS):
            return
        yield kind, at
        if kind == EMERGENCY and rng.random() < 0.5:
            at += timedelta(hours=float(rng.uniform(2, 9)))
            yield INPATIENT, at
        at += timedelta(days=float(rng.choice([7, 14, 28])), hours=float(rng.normal(0, 4)))


def conditions(rng: np.random.Generator, age: int) -> list[str]:
    """The codes of a person, at least one; old people have more."""
    weights = np.array(
        [w * (2 if code[0] in "IEJ" and age > 55 else 1) for code, w in CODES.items()], dtype=float
    )
    n = 1 + int(rng.poisson(0.5 + age / 50))
    return [str(c) for c in rng.choice(list(CODES), size=min(n, 6), replace=False, p=weights / weights.sum())]


def database() -> Rows:
    rng, rows = np.random.default_rng(SEED), Rows()
    rows.location += [(i, zip_) for i, zip_ in enumerate(ZIPS, 1)]
    for person in range(1, PERSONS + 1):
        year = int(rng.integers(1936, 2008))
        place = int(rng.integers(1, len(ZIPS) + 1))
        rows.person.append((person, choose(rng, GENDERS), year, choose(rng, RACES), 0, place))
        codes = conditions(rng, 2025 - year)
        made = list(visits(rng, len(codes) > 2))
        first = len(rows.visit_occurrence) + 1
        for number, (kind, at) in enumerate(made, first):
            start = at.isoformat(sep=" ", timespec="minutes")
            rows.visit_occurrence.append((number, person, kind, start[:10], start, start[:10], EHR))
        for code in codes:
            place = int(rng.integers(len(made)))
            occurrence, day = len(rows.condition_occurrence) + 1, made[place][1].date().isoformat()
            rows.condition_occurrence.append((occurrence, person, 0, day, EHR, first + place, code))
        if rng.random() < (0.09 if year < 1955 else 0.01):
            rows.death.append((person, (FIRST + timedelta(days=DAYS)).date().isoformat()))
    return rows


def write(out: TextIO) -> None:
    out.write(TABLES)
    for table, rows in vars(database()).items():
        out.write(f"COPY omop.{table} FROM stdin;\n")
        out.writelines("\t".join(map(str, row)) + "\n" for row in rows)
        out.write("\\.\n")


if __name__ == "__main__":
    write(sys.stdout)
