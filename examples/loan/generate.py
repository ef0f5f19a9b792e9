"""Write the synthetic tables of the loan example: deterministic, nobody's data.

A loan company and a bank serve overlapping sets of people: 3,000 each, 2,400 of them common. Whether a loan was
approved depends on what the two know together: job and years in it at the loan company, salary and credit history
at the bank. Credit history is what the table must not give away.

    python examples/loan/generate.py        writes loan-company.csv and bank.csv
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
COMMON, ONLY_ONE = 2400, 600
JOBS = {
    "Writer": (9, 38, "Artist"), "Dancer": (7, 31, "Artist"), "Painter": (6, 35, "Artist"),
    "Engineer": (14, 62, "Professional"), "Lawyer": (9, 68, "Professional"), "Doctor": (6, 74, "Professional"),
    "Clerk": (16, 41, "Service"), "Nurse": (10, 45, "Service"), "Driver": (12, 37, "Service"),
    "Carpenter": (8, 43, "Craft"), "Electrician": (7, 47, "Craft"),
}  # fmt: skip
"""Weight, typical salary in thousands, group."""
PURPOSES = {"car": 40, "house": 22, "studies": 14, "business": 10, "other": 14}
HISTORY = {"clean": 0, "late": -1.1, "defaulted": -2.6, "none": -0.4}


def choose(rng: np.random.Generator, weights: dict[str, float]) -> str:
    share = np.array(list(weights.values()), dtype=float)
    return str(rng.choice(list(weights), p=share / share.sum()))


def history(rng: np.random.Generator, salary: float, age: int) -> str:
    strain = 1 + max(0.0, (45 - salary) / 25)
    weights = {"clean": 62, "late": 14 * strain, "defaulted": 4.5 * strain, "none": 60 if age < 26 else 8}
    return choose(rng, weights)


def person(rng: np.random.Generator, number: int) -> dict[str, object]:
    job = choose(rng, {name: weight for name, (weight, _, _) in JOBS.items()})
    _, usual, group = JOBS[job]
    age = int(np.clip(rng.normal(43, 13), 20, 79))
    sex = (
        "F"
        if rng.random() < (0.85 if job == "Nurse" else 0.15 if job in {"Driver", "Carpenter"} else 0.5)
        else "M"
    )
    salary = int(np.clip(rng.normal(usual + 0.25 * (age - 40) - (3 if sex == "F" else 0), 9), 15, 98))
    credit = history(rng, salary, age)
    years = int(np.clip(rng.exponential(6), 0, age - 18))
    steady = {"Artist": -0.7, "Professional": 0.5, "Service": 0.0, "Craft": 0.2}[group]
    odds = 0.075 * (salary - 46) + steady + 0.09 * min(years, 10) + HISTORY[credit] - 0.1
    return {
        "person": f"{number:06d}",
        "job": job,
        "years": years,
        "purpose": choose(rng, {name: float(weight) for name, weight in PURPOSES.items()}),
        "sex": sex,
        "age": age,
        "salary": salary,
        "credit": credit,
        "approved": "Y" if rng.random() < 1 / (1 + np.exp(-odds)) else "N",
    }


def write(name: str, columns: list[str], people: list[dict[str, object]]) -> None:
    with (HERE / f"{name}.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(people)


def main() -> None:
    rng = np.random.default_rng(2026)
    numbers = rng.permutation(10**6)[: COMMON + 2 * ONLY_ONE]
    people = [person(rng, int(number)) for number in numbers]
    common, loans_only, bank_only = np.split(np.array(people, dtype=object), [COMMON, COMMON + ONLY_ONE])
    for name, only, columns in (
        ("loan-company", loans_only, ["person", "job", "years", "purpose", "approved"]),
        ("bank", bank_only, ["person", "sex", "age", "salary", "credit", "approved"]),
    ):
        write(name, columns, list(rng.permutation(np.concatenate([common, only]))))


if __name__ == "__main__":
    main()
