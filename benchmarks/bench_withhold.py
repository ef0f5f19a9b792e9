"""What `withhold` frees: loss, error and rows at 0, 0.5, 2 and 5 % of the rows (semantics §10.9). `make bench`.

Adult; first encounters of diabetes130, three of whose 71,518 records have an odd gender; and a small table made like
a customer file with three odd records. Error: entropy tree on all rows, 2/3 for training, as in bench_utility.
"""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from anonymize.criteria.confidence import Confidences
from anonymize.criteria.size import Size
from anonymize.lkc.metrics import measure
from anonymize.lkc.requirement import Ask, AskedList
from anonymize.lkc.single import anonymize_alone
from anonymize.lkc.withholding import withheld_rows
from anonymize.release import release_of_rows
from anonymize.table import CodedTable
from benchmarks.bench_utility import tree_error
from benchmarks.shared_jobs import OUT, SHARED, shared_job
from benchmarks.support import Row, publish
from jobs.data.sources import Csv
from jobs.lkc.asked import job_score
from jobs.loading import load_task, open_task
from jobs.reading import load_table
from jobs.task import Task

SHARES = (Fraction(0), Fraction(1, 200), Fraction(1, 50), Fraction(1, 20))


def rows_of(name: str, task: Task, table: CodedTable, L: int, K: int) -> list[Row]:
    """Every share of one setting."""
    asked = AskedList((Ask(L, (Size(K), Confidences())),))
    goal, (class_name, *_) = job_score(task.job), (*task.job.names("class"), "")
    found = []
    for share in SHARES:
        gone = withheld_rows(table, asked, goal, int(share * table.n_records), lambda rows: {})
        left = table.some(np.setdiff1d(np.arange(len(table.cells)), gone))
        cut = anonymize_alone(left, asked, goal).cut
        release = release_of_rows(left, cut)
        loss = mean(measure(release, table.schema, cut).generalization_loss.values())
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


def made(name: str, fields: Mapping[str, Any], rows: Sequence[Mapping[str, str]]) -> tuple[Task, CodedTable]:
    """A job with its table in the cache folder."""
    folder = OUT / "withhold" / name
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "t.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(fields["columns"]), extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    path = folder / "job.yaml"
    path.write_text(json.dumps(fields))
    task = load_task(path)
    return task, load_table(Csv(folder / "t.csv"), task).table


def _job(name: str, columns: Mapping[str, Any], goal: str) -> dict[str, Any]:
    model = {"lkc": {"L": 4, "K": 20}}
    common = {"version": "1", "name": name, "partition": "single", "data": "t.csv", "model": model}
    return {**common, "goal": goal, "columns": dict(columns)}


def _numbers(low: int, high: int, step: int = 1) -> dict[str, Any]:
    return {"role": "qid", "numeric": {"min": low, "max": high, "step": step}}


def _values(rows: Sequence[Mapping[str, str]], name: str) -> dict[str, Any]:
    return {"role": "qid", "taxonomy": {"*": sorted({row[name] for row in rows} - {"?", ""})}}


def diabetes() -> tuple[Task, CodedTable]:
    """First encounters; class: readmitted within 30 days."""
    path = SHARED / "data" / "diabetes130" / "diabetic_data.csv.gz"
    with gzip.open(path, "rt", newline="") as file:
        first: dict[str, dict[str, str]] = {}
        for row in csv.DictReader(file):
            first.setdefault(row["patient_nbr"], row)
    rows = [{**row, "soon": "yes" if row["readmitted"] == "<30" else "no"} for row in first.values()]
    categories = ("race", "gender", "age", "admission_type_id", "admission_source_id", "insulin", "change")
    columns = {name: _values(rows, name) for name in categories} | {
        "time_in_hospital": _numbers(1, 15),
        "num_medications": _numbers(0, 85, 5),
        "number_diagnoses": _numbers(1, 17),
        "number_inpatient": _numbers(0, 24),
        "soon": {"role": "class", "domain": ["yes", "no"]},
    }
    return made("diabetes", _job("diabetes", columns, "classification"), rows)


def customers(n: int = 5000) -> tuple[Task, CodedTable]:
    """Two genders but for three records, an income with a long tail, a skewed state: goal general."""
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
        "GENDER": _values(rows, "GENDER"),
        "INCOME": _numbers(0, 40),
        "STATE": _values(rows, "STATE"),
        "AGE": _numbers(18, 78, 5),
    }
    return made("customers", _job("customers", columns, "general"), rows)


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
