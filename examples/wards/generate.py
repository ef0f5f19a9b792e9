"""Write the synthetic tables of the ward example: deterministic, nobody's data.

Three hospitals with one vocabulary of wards: A a large city hospital, B a trauma centre, C a rural hospital that
sends most of its surgery elsewhere. A patient follows one of a few pathways, with delays, detours and early
discharges; the moment of entering each ward is read. Some patients have HIV, which the table must not give away; in B
they are seen in the isolation ward more often than others.

    python examples/wards/generate.py        writes hospital-a.csv, hospital-b.csv, hospital-c.csv
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
FIRST = datetime(2026, 3, 2)
DAYS = 60
PATHWAYS = {
    "fracture": (
        ("emergency", 0),
        ("radiology", 3),
        ("surgery", 14),
        ("orthopaedics", 20),
        ("radiology", 66),
    ),
    "heart": (("emergency", 0), ("cardiology", 4), ("intensive care", 10), ("cardiology", 40)),
    "planned": (("admission", 0), ("surgery", 16), ("intensive care", 22), ("medicine", 34)),
    "infection": (("emergency", 0), ("medicine", 8), ("radiology", 26), ("medicine", 32)),
    "isolated": (("emergency", 0), ("isolation", 6), ("medicine", 54)),
    "birth": (("admission", 0), ("maternity", 3), ("maternity", 30)),
}
"""Wards, and hours after admission at which they are entered."""
DETOURS = ("radiology", "medicine", "intensive care", "cardiology")
DIAGNOSES = {"HIV": 3, "cancer": 14, "diabetes": 25, "none": 58}


@dataclass(frozen=True)
class Hospital:
    """How one hospital's patients differ. ``pathways``: weights, in the order of PATHWAYS."""

    name: str
    patients: int
    pathways: tuple[float, ...]
    detours: float


HOSPITALS = (
    Hospital("a", 620, (18, 22, 24, 20, 4, 12), 0.06),
    Hospital("b", 480, (42, 12, 22, 14, 10, 0), 0.10),
    Hospital("c", 340, (10, 20, 6, 40, 3, 21), 0.04),
)


def choose(rng: np.random.Generator, weights: dict[str, float]) -> str:
    share = np.array(list(weights.values()), dtype=float)
    return str(rng.choice(list(weights), p=share / share.sum()))


def stay(rng: np.random.Generator, hospital: Hospital) -> Iterator[tuple[str, datetime, str]]:
    """Ward, moment and diagnosis at every ward that a patient enters."""
    pathway = choose(rng, dict(zip(PATHWAYS, hospital.pathways, strict=True)))
    diagnoses = {name: float(weight) for name, weight in DIAGNOSES.items()}
    diagnoses["HIV"] *= 6 if pathway == "isolated" and hospital.name == "b" else 1
    diagnosis = choose(rng, diagnoses)
    admitted = FIRST + timedelta(minutes=int(rng.integers(DAYS * 24 * 60)))
    wards = list(PATHWAYS[pathway])
    if rng.random() < hospital.detours:
        wards.insert(
            int(rng.integers(1, len(wards) + 1)), (str(rng.choice(DETOURS)), int(rng.integers(2, 60)))
        )
    late = 0.0
    for number, (ward, hours) in enumerate(sorted(wards, key=lambda each: each[1])):
        if number > 1 and rng.random() < 0.06:
            return  # discharged
        late += float(rng.exponential(0.7)) if number else 0
        yield ward, admitted + timedelta(hours=hours + late), diagnosis


def main() -> None:
    for hospital in HOSPITALS:
        rng = np.random.default_rng([2026, ord(hospital.name)])
        with (HERE / f"hospital-{hospital.name}.csv").open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["stay", "ward", "entered", "diagnosis"])
            for number in range(hospital.patients):
                for ward, entered, diagnosis in stay(rng, hospital):
                    at = entered.isoformat(timespec="minutes")
                    writer.writerow([f"{hospital.name.upper()}{number:04d}", ward, at, diagnosis])


if __name__ == "__main__":
    main()
