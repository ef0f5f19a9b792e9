"""Measures the effect of `withhold`: loss, error and rows at 0, 0.5, 2 and 5 % of the rows (semantics §10.9).

`make bench AREA=lkc`.

Adult; first encounters of diabetes130, three of whose 71,518 records have an odd gender; and a small table made like
a customer file with three odd records. Error: entropy tree on all rows, 2/3 for training, as in bench_utility.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from statistics import mean

import numpy as np

from anonymize.criteria.confidence import Confidences
from anonymize.criteria.size import Size
from anonymize.lkc.metrics import measure_loss
from anonymize.lkc.outliers import outlier_rows
from anonymize.lkc.requirement import Ask, AskedList
from anonymize.lkc.single import anonymize_single
from anonymize.release import release_of_rows
from anonymize.table import CodedTable
from benchmarks.bench_utility import tree_error
from benchmarks.data_sets import first_encounters, job_of, made, numbers, values
from benchmarks.shared_jobs import OUT, shared_job
from benchmarks.support import Row, publish
from jobs.data.sources import Csv
from jobs.lkc.requirement import bounds_of, job_score
from jobs.loading import load_task, open_task
from jobs.reading import load_table
from jobs.task import Task

SHARES = (Fraction(0), Fraction(1, 200), Fraction(1, 50), Fraction(1, 20))


def rows_of(name: str, task: Task, table: CodedTable, L: int, K: int) -> list[Row]:
    """Measure every share of a setting."""
    bounds = tuple(bounds_of(task.job).items())
    asked = AskedList((Ask(L, (Size(K), Confidences(bounds=bounds))),))
    goal, (class_name, *_) = job_score(task.job), (*task.job.names("class"), "")
    found = []
    for share in SHARES:
        gone = outlier_rows(
            table, asked, goal, int(share * table.n_records), lambda rows: (table.some(rows), {})
        )
        left = table.some(np.setdiff1d(np.arange(len(table.cells)), gone))
        cut = anonymize_single(left, asked, goal).cut
        release = release_of_rows(left, cut)
        loss = mean(measure_loss(release, table.schema, cut).values())
        setting = f"{name}, L={L} K={K}, withhold {float(share):.1%}"
        found += [
            Row(f"{setting}: loss", loss, ""),
            Row(f"{setting}: rows withheld", table.n_records - left.n_records, ""),
        ]
        if class_name:
            predictors = [column for column in release.columns if column != class_name]
            found.append(Row(f"{setting}: error", tree_error(release, predictors, class_name), "%"))
    return found


def adult() -> tuple[Task, CodedTable]:
    folder = shared_job("adult")
    task = open_task(load_task(folder / "job.yaml").bundle)
    return task, load_table(Csv(folder / "raw.csv"), task).table


def diabetes() -> tuple[Task, CodedTable]:
    """Return first encounters; class: readmitted within 30 days."""
    rows = [{**row, "soon": "yes" if row["readmitted"] == "<30" else "no"} for row in first_encounters()]
    categories = ("race", "gender", "age", "admission_type_id", "admission_source_id", "insulin", "change")
    columns = {name: values(rows, name) for name in categories} | {
        "time_in_hospital": numbers(1, 15),
        "num_medications": numbers(0, 85, 5),
        "number_diagnoses": numbers(1, 17),
        "number_inpatient": numbers(0, 24),
        "soon": {"role": "class", "domain": ["yes", "no"]},
    }
    return made(job_of("diabetes", columns), rows)


def customers(n: int = 5000) -> tuple[Task, CodedTable]:
    """Return customers: two genders but for three records, an income with a long tail, a skewed state; goal
    general.
    """
    coins = np.random.default_rng(0)
    states = [f"S{i}" for i in range(20)]
    of_state = coins.choice(20, n, p=np.arange(20, 0, -1) / 210).tolist()
    incomes = np.minimum(coins.lognormal(1.5, 0.6, n), 39).astype(int).tolist()
    rows = [
        {"GENDER": "FM"[i % 2], "INCOME": str(income), "STATE": states[state], "AGE": str(18 + i * 7 % 60)}
        for i, (income, state) in enumerate(zip(incomes, of_state, strict=True))
    ]
    for row, odd in zip(rows, "AAC", strict=False):
        row["GENDER"] = odd
    columns = {
        "GENDER": values(rows, "GENDER"),
        "INCOME": numbers(0, 40),
        "STATE": values(rows, "STATE"),
        "AGE": numbers(18, 78, 5),
    }
    return made(job_of("customers", columns, "general"), rows)


def main() -> None:
    rows: list[Row] = []
    for name, data, settings in (
        ("Adult", adult, ((4, 20), (4, 100), (2, 20))),
        ("customers", customers, ((3, 10),)),
        ("diabetes130", diabetes, ((4, 20), (4, 100), (2, 20))),
    ):
        task, table = data()
        for L, K in settings:
            rows += rows_of(name, task, table, L, K)
    publish("What withholding rows frees", rows, Path(OUT.parent / "bench-withhold.json"))


if __name__ == "__main__":
    main()
