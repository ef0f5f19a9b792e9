"""Write the synthetic tables of the blood transfusion example: deterministic, nobody's data.

Three hospitals with different patients: A a large city hospital, B a trauma centre with younger men, C a
rural hospital with older patients. Whether a patient is transfused depends on the surgery, age and
haemoglobin; a rare surgery, `Transgender`, is what the table must not give away.

    python examples/transfusion/generate.py        writes hospital-a.csv, hospital-b.csv, hospital-c.csv
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
JOBS = {
    "Janitor": 10, "Mover": 8, "Carpenter": 9, "Technician": 12, "Electrician": 7,
    "Lawyer": 5, "Doctor": 4, "Engineer": 8, "Teacher": 11, "Clerk": 13, "Retired": 6,
}  # fmt: skip
SURGERIES = {
    "Vascular": 14, "Urology": 13, "Orthopaedic": 22, "Cardiac": 12, "Plastic": 9,
    "Obstetric": 12, "Trauma": 14, "Transgender": 1.6,
}  # fmt: skip
BLEEDING = {
    "Vascular": 0.9, "Urology": -0.7, "Orthopaedic": 0.1, "Cardiac": 1.5, "Plastic": -1.8,
    "Obstetric": -0.6, "Trauma": 1.1, "Transgender": -0.4,
}  # fmt: skip
DISTRICTS = ["Central", "East", "North", "South", "West", "Islands"]


@dataclass(frozen=True)
class Hospital:
    """How one hospital's patients differ."""

    name: str
    rows: int
    mean_age: float
    share_male: float
    districts: tuple[float, ...]
    surgeries: dict[str, float]


HOSPITALS = (
    Hospital("a", 2104, 47, 0.48, (30, 25, 15, 15, 13, 2), {"Cardiac": 1.5}),
    Hospital(
        "b", 1987, 38, 0.66, (10, 12, 40, 20, 16, 2), {"Trauma": 2.5, "Orthopaedic": 1.4, "Obstetric": 0.3}
    ),
    Hospital("c", 1895, 58, 0.51, (5, 8, 10, 12, 25, 40), {"Urology": 1.6, "Transgender": 0.5}),
)


def choose(rng: np.random.Generator, weights: dict[str, float]) -> str:
    names = list(weights)
    share = np.array([weights[name] for name in names], dtype=float)
    return str(rng.choice(names, p=share / share.sum()))


def patient(rng: np.random.Generator, hospital: Hospital) -> dict[str, object]:
    age = int(np.clip(rng.normal(hospital.mean_age, 17), 16, 97))
    sex = "M" if rng.random() < hospital.share_male else "F"
    jobs = dict(JOBS)
    jobs["Retired"] *= 25 if age >= 65 else 0.1
    if sex == "M":
        jobs |= {job: jobs[job] * 2.5 for job in ("Mover", "Carpenter", "Electrician")}
    surgeries = {s: w * hospital.surgeries.get(s, 1) for s, w in SURGERIES.items()}
    surgeries["Obstetric"] *= 0 if sex == "M" or age > 48 else 3
    surgeries["Cardiac"] *= 0.2 if age < 40 else 1.5
    surgeries["Transgender"] *= 0 if age > 60 else 1
    surgery = choose(rng, surgeries)
    weight = float(np.clip(rng.normal(82 if sex == "M" else 68, 13), 38, 159.5))
    haemoglobin = float(
        np.clip(rng.normal(14.2 if sex == "M" else 12.9, 1.5) - 0.015 * max(age - 60, 0), 6, 18.9)
    )
    odds = BLEEDING[surgery] + 0.02 * (age - 50) - 0.75 * (haemoglobin - 12.5) - 0.4
    transfused = "Y" if rng.random() < 1 / (1 + np.exp(-odds)) else "N"
    district = str(rng.choice(DISTRICTS, p=np.array(hospital.districts) / sum(hospital.districts)))
    return {
        "job": choose(rng, jobs),
        "sex": sex,
        "age": age,
        "weight": f"{weight:.1f}",
        "haemoglobin": f"{haemoglobin:.1f}",
        "district": "?" if rng.random() < 0.01 else district,
        "transfused": transfused,
        "surgery": surgery,
    }


def main() -> None:
    for hospital in HOSPITALS:
        rng = np.random.default_rng([2026, ord(hospital.name)])
        rows = [patient(rng, hospital) for _ in range(hospital.rows)]
        with (HERE / f"hospital-{hospital.name}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, ["patient", *rows[0]], lineterminator="\n")
            writer.writeheader()
            for number, row in enumerate(rows):
                writer.writerow({"patient": f"{hospital.name.upper()}{number:05d}", **row})


if __name__ == "__main__":
    main()
