"""Real tables for the worth of releases: four of ../shared/data, and a table of a PyPI package.

Grids and roles are made up here; taxonomies are flat but for Adult's. Rows without a number are left out. Three of
the tables occur twice, with a different class and sensitive column: no parameter of any score was chosen on these
tasks.
"""

from __future__ import annotations

import csv
import gzip
import importlib.util
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from anonymize.table import CodedTable
from benchmarks.shared_jobs import OUT, SHARED, shared_job
from evaluation.rows import Rows, read_rows
from jobs.data.sources import Csv
from jobs.loading import load_task
from jobs.reading import load_table
from jobs.task import Task

Records = Sequence[Mapping[str, str]]


class DataAbsent(Exception):
    """A data set is not on this machine; the message names its source."""


@dataclass(frozen=True)
class DataSet:
    """A table with settings for anonymization.

    bound:     the C of the settings, in addition to 1: maximum share of protected values in a group.
    min_leaf:  minimum number of records in a leaf of a learned tree.
    splits:    number of splits into training rows and held-out rows.
    """

    name: str
    load: Callable[[], Rows]
    sizes: tuple[int, int, int]
    bound: Fraction
    min_leaf: int
    splits: int


def job_of(name: str, columns: Mapping[str, Any], goal: str = "classification") -> dict[str, Any]:
    """Return a single holder's job."""
    model = {"lkc": {"L": 4, "K": 20}}
    common = {"version": "1", "name": name, "partition": "single", "data": "t.csv", "model": model}
    return {**common, "goal": goal, "columns": dict(columns)}


def written(fields: Mapping[str, Any], rows: Records) -> tuple[Task, Path]:
    """Write the job into the cache folder; return it and the path of the table."""
    folder = OUT / "data_sets" / str(fields["name"])
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "t.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(fields["columns"]), extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    path = folder / "job.yaml"
    path.write_text(json.dumps(fields))
    return load_task(path), folder / "t.csv"


def made(fields: Mapping[str, Any], rows: Records) -> tuple[Task, CodedTable]:
    """Return the job, and its table in the form given to a run."""
    task, path = written(fields, rows)
    return task, load_table(Csv(path), task).table


def _rows(name: str, columns: Mapping[str, Any], rows: Records) -> Rows:
    task, path = written(job_of(name, columns), rows)
    return read_rows(Csv(path), task)


def numbers(low: float, high: float, step: float = 1) -> dict[str, Any]:
    return {"role": "qid", "numeric": {"min": low, "max": high, "step": step}}


def values(rows: Records, name: str) -> dict[str, Any]:
    return {"role": "qid", "taxonomy": {"*": sorted({row[name] for row in rows} - {"?", ""})}}


def sensitive(*protected: str) -> dict[str, Any]:
    return {"role": "sensitive", "values": list(protected), "C": 1}


def the_class(rows: Records, name: str) -> dict[str, Any]:
    return {"role": "class", "domain": sorted({row[name] for row in rows})}


def first_encounters() -> list[dict[str, str]]:
    """Return the first encounter of every patient of diabetes130: 71,518."""
    path = SHARED / "data" / "diabetes130" / "diabetic_data.csv.gz"
    with gzip.open(path, "rt", newline="") as file:
        first: dict[str, dict[str, str]] = {}
        for row in csv.DictReader(file):
            first.setdefault(row["patient_nbr"], row)
    return list(first.values())


def _adult() -> Rows:
    """Load 13 quasi-identifiers with the taxonomies of ../shared/data; class: income; sensitive: marital status."""
    folder = shared_job("adult")
    return read_rows(Csv(folder / "raw.csv"), load_task(folder / "job.yaml"))


_GROUPS: Mapping[str, Sequence[str]] = {
    "office": ("Adm-clerical", "Exec-managerial", "Prof-specialty", "Sales", "Tech-support"),
    "manual": (
        "Craft-repair",
        "Farming-fishing",
        "Handlers-cleaners",
        "Machine-op-inspct",
        "Transport-moving",
    ),
    "service": ("Armed-Forces", "Other-service", "Priv-house-serv", "Protective-serv"),
}


def _adult_occupation() -> Rows:
    """Load Adult with class: the group of the occupation; sensitive: a high income; weights of the census are left
    out.
    """
    group = {name: of for of, names in _GROUPS.items() for name in names}
    with (shared_job("adult") / "raw.csv").open(newline="") as file:
        rows = [{**row, "group": group[row["occupation"]]} for row in csv.DictReader(file)]
    categories = ("workclass", "education", "marital-status", "relationship", "race", "sex", "native-country")
    columns = {name: values(rows, name) for name in categories} | {
        "age": numbers(17, 91),
        "education-num": numbers(1, 17),
        "capital-gain": numbers(0, 100_000, 781),
        "capital-loss": numbers(0, 4357, 35),
        "hours-per-week": numbers(1, 100),
        "income": sensitive(">50K"),
        "group": the_class(rows, "group"),
    }
    return _rows("adult-occupation", columns, rows)


_MEASURED: Mapping[str, Any] = {
    "age": numbers(18, 102),
    "num.co": numbers(0, 10),
    "scoma": numbers(0, 105, 5),
    "avtisst": numbers(0, 84),
    "meanbp": numbers(0, 200, 5),
    "hrt": numbers(0, 305, 5),
    "resp": numbers(0, 92, 2),
    "temp": numbers(31, 42, 0.5),
    "wblc": numbers(0, 201),
    "crea": numbers(0, 22, 0.5),
    "sod": numbers(110, 182),
}
"""Measures of support2 on the first day."""


def _support2_rows() -> Records:
    with gzip.open(SHARED / "data" / "support2" / "support2.csv.gz", "rt", newline="") as file:
        return [row for row in csv.DictReader(file) if all(row[name] for name in _MEASURED)]


def _support2() -> Rows:
    """Load demographics and values of the first day; class: death in hospital; sensitive: cancer."""
    rows = _support2_rows()
    categories = ("sex", "dzgroup", "income", "race", "diabetes", "dementia")
    columns = {name: values(rows, name) for name in categories} | dict(_MEASURED)
    columns |= {"ca": sensitive("metastatic", "yes"), "hospdead": the_class(rows, "hospdead")}
    return _rows("support2", columns, rows)


def _support2_disease() -> Rows:
    """Load support2 with class: the class of the disease, of four; sensitive: death in hospital."""
    rows = _support2_rows()
    categories = ("sex", "income", "race", "diabetes", "dementia", "ca")
    columns = {name: values(rows, name) for name in categories} | dict(_MEASURED)
    columns |= {"hospdead": sensitive("1"), "dzclass": the_class(rows, "dzclass")}
    return _rows("support2-disease", columns, rows)


_CHAPTERS = ("140-239", "290-319")
"""Neoplasms, and mental disorders."""


_OF_STAY: Mapping[str, Any] = {
    "time_in_hospital": numbers(1, 15),
    "num_lab_procedures": numbers(0, 135, 5),
    "num_procedures": numbers(0, 7),
    "num_medications": numbers(0, 85, 5),
    "number_outpatient": numbers(0, 43),
    "number_emergency": numbers(0, 77),
    "number_inpatient": numbers(0, 22),
    "number_diagnoses": numbers(1, 17),
}
"""Counts of an encounter in diabetes130."""


def _diabetes() -> Rows:
    """Load first encounters; class: readmitted; sensitive: the chapter of the first diagnosis."""
    path = SHARED / "data" / "diabetes130" / "icd9.csv"
    parts = [line.split(";") for line in path.read_text().splitlines()]
    chapter = {code: above for code, _, above, *_ in parts}
    rows = [
        {**row, "again": "no" if row["readmitted"] == "NO" else "yes", "chapter": chapter[row["diag_1"]]}
        for row in first_encounters()
        if row["gender"] != "Unknown/Invalid" and row["diag_1"] != "?"
    ]
    categories = (
        *("race", "gender", "age", "admission_type_id", "discharge_disposition_id", "admission_source_id"),
        *("max_glu_serum", "A1Cresult", "insulin", "change", "diabetesMed"),
    )
    columns = {name: values(rows, name) for name in categories} | dict(_OF_STAY)
    columns |= {"chapter": sensitive(*_CHAPTERS), "again": the_class(rows, "again")}
    return _rows("diabetes130", columns, rows)


def _diabetes_insulin() -> Rows:
    """Load first encounters; class: insulin not given, steady or changed; sensitive: readmitted within 30 days."""
    doses = {"No": "no", "Steady": "steady", "Up": "changed", "Down": "changed"}
    rows = [{**row, "dose": doses[row["insulin"]]} for row in first_encounters()]
    categories = (
        *("race", "gender", "age", "admission_type_id", "discharge_disposition_id", "admission_source_id"),
        *("max_glu_serum", "A1Cresult", "change", "diabetesMed"),
    )
    columns = {name: values(rows, name) for name in categories} | dict(_OF_STAY)
    columns |= {"readmitted": sensitive("<30"), "dose": the_class(rows, "dose")}
    return _rows("diabetes130-insulin", columns, rows)


def _crx() -> Rows:
    """Load complete rows; class: A16; sensitive: A4."""
    with (SHARED / "data" / "crx" / "crx.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if "?" not in row.values()]
    categories = ("A1", "A5", "A6", "A7", "A9", "A10", "A12", "A13")
    columns = {name: values(rows, name) for name in categories} | {
        "A2": numbers(0, 100, 2),
        "A3": numbers(0, 30),
        "A8": numbers(0, 30),
        "A11": numbers(0, 70),
        "A14": numbers(0, 2200, 20),
        "A15": numbers(0, 100100, 100),
        "A4": sensitive("l", "y"),
        "A16": the_class(rows, "A16"),
    }
    return _rows("crx", columns, rows)


def _fair() -> Rows:
    """Load women on their marriages (Fair 1978); class: rating of the marriage, 1 to 5; sensitive: any affair.

    No parameter of any score was chosen on the table.
    """
    package = importlib.util.find_spec("statsmodels")
    if package is None or package.origin is None:
        raise DataAbsent(
            "fair.csv comes with the PyPI package statsmodels: pip install --no-deps statsmodels"
        )
    path = Path(package.origin).parent / "datasets" / "fair" / "fair.csv"
    with path.open(newline="") as file:
        rows = [
            {**row, "affair": "yes" if float(row["affairs"]) > 0 else "no"} for row in csv.DictReader(file)
        ]
    columns = {name: values(rows, name) for name in ("occupation", "occupation_husb")} | {
        "age": numbers(17, 43),
        "yrs_married": numbers(0, 24),
        "children": numbers(0, 6),
        "religious": numbers(1, 5),
        "educ": numbers(9, 21),
        "affair": sensitive("yes"),
        "rate_marriage": the_class(rows, "rate_marriage"),
    }
    return _rows("fair", columns, rows)


DATA_SETS: Mapping[str, DataSet] = {
    each.name: each
    for each in (
        DataSet("Adult", _adult, (20, 50, 100), Fraction(1, 5), 20, 3),
        DataSet("support2", _support2, (10, 20, 50), Fraction("0.35"), 20, 5),
        DataSet("diabetes130", _diabetes, (20, 50, 100), Fraction(1, 10), 50, 2),
        DataSet("crx", _crx, (5, 10, 20), Fraction(1, 2), 5, 20),
        DataSet("fair", _fair, (10, 20, 50), Fraction(1, 2), 20, 10),
        DataSet("Adult, occupation", _adult_occupation, (20, 50, 100), Fraction(1, 2), 20, 2),
        DataSet("support2, disease", _support2_disease, (10, 20, 50), Fraction(1, 2), 20, 5),
        DataSet("diabetes130, insulin", _diabetes_insulin, (20, 50, 100), Fraction(1, 5), 50, 1),
    )
}
