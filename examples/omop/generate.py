"""Write a synthetic clinic as tables of the OMOP Common Data Model 5.4: deterministic, nobody's data.

The tables have the columns that views.sql reads, by the names and types of the model (schema.sql). Concepts of sex,
race and visits have the numbers of the OMOP vocabulary. Groups and diseases are a short list of our own, with numbers
above 2,000,000,000, which the model leaves to each site. A disease has a code of ICD-10.

    python examples/omop/generate.py        writes person.csv, visit_occurrence.csv, condition_occurrence.csv,
                                            concept.csv and concept_ancestor.csv
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
PERSONS = 3000
FIRST, DAYS = date(2023, 1, 2), 1090
"""First day of the records, and their number of days."""
YEAR = 2026

FEMALE, MALE = 8532, 8507
RACES = {8527: ("White", 70), 8516: ("Black or African American", 17), 8515: ("Asian", 13)}
"""Name and weight."""
OUTPATIENT, EMERGENCY, INPATIENT, HOME = 9202, 9203, 9201, 581476
VISITS = {
    OUTPATIENT: "Outpatient Visit",
    EMERGENCY: "Emergency Room Visit",
    INPATIENT: "Inpatient Visit",
    HOME: "Home Visit",
}
LOCAL = 2_000_000_000
"""Concepts above this number belong to the site."""
PROTECTED = ("Chronic viral infection", "Substance use disorder", "Mental disorder")
"""Groups of diseases that a release must not give away."""


@dataclass(frozen=True)
class Disease:
    """A disease.

    code:   ICD-10.
    share:  of people aged 60.
    slope:  growth of the share by ten years of age, as a factor.
    visits: visits that the disease leads to, each with days from the first visit.
    women:  factor of the share for women.
    men:    factor of the share for men.
    ages:   youngest and oldest age.
    group:  a protected group, or none.
    """

    code: str
    name: str
    share: float
    slope: float
    visits: tuple[tuple[int, int], ...]
    women: float = 1
    men: float = 1
    ages: tuple[int, int] = (0, 110)
    group: str = ""


CHECKED = ((OUTPATIENT, 0), (OUTPATIENT, 91))
ONCE = ((OUTPATIENT, 0),)
ADMITTED = ((EMERGENCY, 0), (INPATIENT, 0), (OUTPATIENT, 30))
PLANNED = ((OUTPATIENT, 0), (INPATIENT, 45), (OUTPATIENT, 90))
CHECK_UP = Disease("Z00.0", "General medical examination", 0.4, 0.95, ONCE)
DISEASES = (
    CHECK_UP,
    Disease("I10", "Essential hypertension", 0.24, 1.5, CHECKED),
    Disease("I25.1", "Atherosclerotic heart disease", 0.06, 1.9, CHECKED, women=0.6, ages=(35, 110)),
    Disease("I48.9", "Atrial fibrillation", 0.03, 2.1, ADMITTED, ages=(40, 110)),
    Disease("I50.9", "Heart failure", 0.03, 2.1, (*ADMITTED, (HOME, 60)), ages=(40, 110)),
    Disease("E11.9", "Type 2 diabetes", 0.12, 1.5, (*CHECKED, (OUTPATIENT, 182)), ages=(20, 110)),
    Disease("E78.5", "Hyperlipidaemia", 0.14, 1.4, CHECKED, ages=(20, 110)),
    Disease("E03.9", "Hypothyroidism", 0.03, 1.2, ONCE, women=3),
    Disease("J45.9", "Asthma", 0.05, 0.85, CHECKED),
    Disease("J44.9", "Chronic obstructive pulmonary disease", 0.05, 1.6, ADMITTED, ages=(40, 110)),
    Disease("J18.9", "Pneumonia", 0.02, 1.4, ADMITTED),
    Disease("J06.9", "Acute upper respiratory infection", 0.08, 0.8, ONCE),
    Disease("K21.9", "Gastro-oesophageal reflux", 0.07, 1.1, ONCE),
    Disease("K80.2", "Gallstones", 0.03, 1.1, PLANNED, women=1.8, ages=(18, 110)),
    Disease("K35.8", "Acute appendicitis", 0.02, 0.75, ((EMERGENCY, 0), (INPATIENT, 0)), ages=(5, 80)),
    Disease("M54.5", "Low back pain", 0.11, 1.1, ONCE, ages=(15, 110)),
    Disease("M17.1", "Arthrosis of the knee", 0.06, 1.6, PLANNED, women=1.4, ages=(40, 110)),
    Disease("S52.5", "Fracture of the wrist", 0.03, 1.1, ((EMERGENCY, 0), (OUTPATIENT, 14))),
    Disease("S72.0", "Fracture of the hip", 0.01, 2.3, (*ADMITTED, (HOME, 60)), women=1.8, ages=(50, 110)),
    Disease("N39.0", "Urinary tract infection", 0.05, 1.2, ONCE, women=3),
    Disease("C50.9", "Cancer of the breast", 0.06, 1.3, PLANNED, men=0, ages=(30, 110)),
    Disease("C61", "Cancer of the prostate", 0.04, 1.6, PLANNED, women=0, ages=(45, 110)),
    Disease(
        "O80.0", "Spontaneous delivery", 0.25, 1, ((OUTPATIENT, 0), (INPATIENT, 120)), men=0, ages=(17, 44)
    ),
    Disease("F32.9", "Depressive episode", 0.07, 0.9, CHECKED, 1.6, 1, (14, 110), PROTECTED[2]),
    Disease("F41.1", "Generalized anxiety disorder", 0.04, 0.9, CHECKED, 1.6, 1, (14, 110), PROTECTED[2]),
    Disease("F10.2", "Alcohol dependence", 0.03, 0.95, ADMITTED, 0.5, 1, (18, 85), PROTECTED[1]),
    Disease("F11.2", "Opioid dependence", 0.01, 0.6, CHECKED, 0.6, 1, (18, 75), PROTECTED[1]),
    Disease("B18.2", "Chronic viral hepatitis C", 0.01, 0.95, CHECKED, 0.7, 1, (18, 90), PROTECTED[0]),
    Disease(
        "B20", "Human immunodeficiency virus disease", 0.006, 0.8, CHECKED, 0.4, 1, (18, 80), PROTECTED[0]
    ),
)
GROUPS = {name: LOCAL + 1 + number for number, name in enumerate(PROTECTED)}
CONCEPTS = {disease.code: LOCAL + 101 + number for number, disease in enumerate(DISEASES)}
"""Number of the concept by name or code."""

Rows = list[tuple[object, ...]]


@dataclass(frozen=True)
class Person:
    """A person. age: at the end of the records."""

    number: int
    age: int
    is_woman: bool
    race: int

    def share(self, disease: Disease) -> float:
        """Return the probability of a disease."""
        if not disease.ages[0] <= self.age <= disease.ages[1]:
            return 0
        by_sex = disease.women if self.is_woman else disease.men
        return min(0.8, disease.share * disease.slope ** ((self.age - 60) / 10) * by_sex)


def persons(rng: np.random.Generator) -> Iterator[Person]:
    weights = np.array([weight for _, weight in RACES.values()], dtype=float)
    for number in range(1, PERSONS + 1):
        race = int(rng.choice(list(RACES), p=weights / weights.sum()))
        age = int(np.clip(rng.normal(48, 23), 0, 97))
        yield Person(number, age, bool(rng.random() < 0.53), race)


def episodes(rng: np.random.Generator, person: Person) -> Iterator[tuple[Disease, date]]:
    """Draw the diseases of a person, each with the day of the first visit. Everybody comes for something."""
    found = [disease for disease in DISEASES if rng.random() < person.share(disease)]
    for disease in found if any(not each.group for each in found) else [CHECK_UP, *found]:
        yield disease, FIRST + timedelta(days=int(rng.integers(DAYS - 200)))


def visits_of(rng: np.random.Generator, found: Sequence[tuple[Disease, date]]) -> set[tuple[date, int]]:
    """Draw the visits of a person. Some appointments are missed."""
    visits = set()
    for disease, first in found:
        for kind, days in disease.visits:
            if days == 0:
                visits.add((first, kind))
            elif rng.random() < 0.75:
                visits.add((first + timedelta(days=days + int(rng.integers(7))), kind))
    return visits


def tables(rng: np.random.Generator) -> dict[str, Rows]:
    """Return every table, its header first."""
    people: Rows = [("person_id", "gender_concept_id", "year_of_birth", "race_concept_id")]
    visits: Rows = [("visit_occurrence_id", "person_id", "visit_concept_id", "visit_start_date")]
    conditions: Rows = [
        ("condition_occurrence_id", "person_id", "condition_concept_id", "condition_start_date")
    ]
    for person in persons(rng):
        sex = FEMALE if person.is_woman else MALE
        people.append((person.number, sex, YEAR - person.age, person.race))
        found = list(episodes(rng, person))
        for disease, day in found:
            conditions.append((len(conditions), person.number, CONCEPTS[disease.code], day))
        for day, kind in sorted(visits_of(rng, found)):
            visits.append((len(visits), person.number, kind, day))
    return {
        "person": people,
        "visit_occurrence": visits,
        "condition_occurrence": conditions,
        "concept": list(concepts()),
        "concept_ancestor": list(ancestors()),
    }


def concepts() -> Iterator[tuple[object, ...]]:
    yield "concept_id", "concept_name", "domain_id", "vocabulary_id", "concept_code"
    yield FEMALE, "FEMALE", "Gender", "Gender", "F"
    yield MALE, "MALE", "Gender", "Gender", "M"
    for number, (race, (name, _)) in enumerate(RACES.items(), 1):
        yield race, name, "Race", "Race", number
    for kind, name in VISITS.items():
        yield kind, name, "Visit", "Visit", name.replace(" ", "")
    for name, number in GROUPS.items():
        yield number, name, "Condition", "Clinic", f"G{number - LOCAL}"
    for disease in DISEASES:
        yield CONCEPTS[disease.code], disease.name, "Condition", "ICD10", disease.code


def ancestors() -> Iterator[tuple[object, ...]]:
    yield (
        "ancestor_concept_id",
        "descendant_concept_id",
        "min_levels_of_separation",
        "max_levels_of_separation",
    )
    for disease in DISEASES:
        if disease.group:
            yield GROUPS[disease.group], CONCEPTS[disease.code], 1, 1


def main() -> None:
    for name, rows in tables(np.random.default_rng([2026, 35])).items():
        with (HERE / f"{name}.csv").open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)


if __name__ == "__main__":
    main()
