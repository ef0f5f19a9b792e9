"""Write the synthetic discharges of one hospital: deterministic, nobody's data.

Diagnosis, treatment and outcome of a stay are all sensitive, and depend on each other and on age and sex. Postcodes
are made up.

    python examples/discharges/generate.py        writes discharges.csv
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
ROWS = 1500
DIAGNOSES = {
    "Pneumonia": 12, "Asthma": 6, "Heart failure": 11, "Angina": 8, "Stroke": 6, "Hip fracture": 7,
    "Wrist fracture": 7, "Normal delivery": 9, "Abortion": 2, "Depression": 5, "Schizophrenia": 2, "HIV": 1.5,
    "Sepsis": 4, "Tuberculosis": 1.5,
}  # fmt: skip
OLD = {"Heart failure", "Angina", "Stroke", "Hip fracture", "Sepsis"}
PREGNANT = {"Normal delivery", "Abortion"}
TREATMENTS = {
    "Pneumonia": {"Antibiotics": 8, "Oxygen": 3}, "Asthma": {"Oxygen": 4, "Observation": 4},
    "Heart failure": {"Medication": 7, "Surgery": 2}, "Angina": {"Medication": 5, "Surgery": 4},
    "Stroke": {"Medication": 5, "Rehabilitation": 5}, "Hip fracture": {"Surgery": 8, "Rehabilitation": 2},
    "Wrist fracture": {"Surgery": 4, "Observation": 5}, "Normal delivery": {"Observation": 8, "Surgery": 2},
    "Abortion": {"Surgery": 4, "Medication": 5}, "Depression": {"Medication": 6, "Psychotherapy": 5},
    "Schizophrenia": {"Medication": 8, "Psychotherapy": 2}, "HIV": {"Antivirals": 9, "Observation": 1},
    "Sepsis": {"Antibiotics": 9, "Oxygen": 2}, "Tuberculosis": {"Antibiotics": 9, "Observation": 1},
}  # fmt: skip
DEADLY = {"Heart failure": 0.12, "Stroke": 0.15, "Sepsis": 0.25, "Pneumonia": 0.07, "Hip fracture": 0.06}
POSTCODES = ("3010", "3011", "3012", "3050", "3052", "3107", "3109", "3161", "3162", "3168")
CROWDED = (20, 15, 12, 10, 10, 9, 8, 6, 6, 4)
"""Of every postcode, as a share."""


def choose(rng: np.random.Generator, weights: dict[str, float]) -> str:
    names = list(weights)
    share = np.array([weights[name] for name in names], dtype=float)
    return str(rng.choice(names, p=share / share.sum()))


def stay(rng: np.random.Generator) -> dict[str, object]:
    age = int(np.clip(rng.normal(54, 22), 16, 99))
    sex = "M" if rng.random() < 0.48 else "F"
    diagnoses = {
        name: weight * ((3 if age > 60 else 0.3) if name in OLD else 1) for name, weight in DIAGNOSES.items()
    }
    for name in PREGNANT:
        diagnoses[name] *= 3 if sex == "F" and age < 45 else 0
    diagnosis = choose(rng, diagnoses)
    treatment = choose(rng, TREATMENTS[diagnosis])
    emergency = rng.random() < (0.2 if treatment in {"Rehabilitation", "Psychotherapy"} else 0.6)
    died = rng.random() < DEADLY.get(diagnosis, 0.005) * (age / 60)
    return {
        "age": age,
        "sex": sex,
        "postcode": str(rng.choice(POSTCODES, p=np.array(CROWDED) / sum(CROWDED))),
        "admission": "Emergency" if emergency else str(rng.choice(["Referral", "Transfer"], p=[0.8, 0.2])),
        "diagnosis": diagnosis,
        "treatment": treatment,
        "outcome": "Died" if died else "Home" if rng.random() < 0.8 else "Care",
    }


def main() -> None:
    rng = np.random.default_rng([2026, 13])
    rows = [stay(rng) for _ in range(ROWS)]
    with (HERE / "discharges.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
