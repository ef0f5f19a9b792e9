"""A made-up table whose records all differ, as one holder's job: the hard case of groups on three columns or more.

Leaf partitions become as many as the records, and every group of every few columns is tested for each specialization.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv

from benchmarks.shared_jobs import OUT

SEED = 7
N_VALUES = 16


def distinct_job(n_rows: int, n_columns: int, known: int, least: int) -> Path:
    """Make the job with its table; return the folder. L is ``known`` and K is ``least``."""
    folder = OUT / "jobs" / f"distinct-{n_rows}-{n_columns}-{known}-{least}"
    if folder.exists():
        return folder
    work = folder.with_suffix(".new")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    rng = np.random.default_rng(SEED)
    codes = rng.integers(0, N_VALUES, (n_columns, n_rows))
    values = np.array([f"v{value:02d}" for value in range(N_VALUES)])
    above = codes[:3].sum(axis=0) + rng.integers(0, N_VALUES, n_rows) > 2 * N_VALUES
    table = {f"q{i}": values[own] for i, own in enumerate(codes)} | {"class": np.where(above, "Y", "N")}
    csv.write_csv(pa.table(table), work / "raw.csv")
    (work / "job.yaml").write_text(json.dumps(_fields(list(values), n_columns, known, least)))
    work.rename(folder)
    return folder


def _fields(values: list[str], n_columns: int, known: int, least: int) -> dict[str, Any]:
    tree = {"*": _halved([str(value) for value in values])}
    columns: dict[str, Any] = {f"q{i}": {"role": "qid", "taxonomy": tree} for i in range(n_columns)}
    columns["class"] = {"role": "class", "domain": ["N", "Y"]}
    lkc = {"L": known, "K": least}
    goal = {"goal": "classification", "score": "infogain"}
    job = {"version": 1, "name": "distinct", "partition": "single", "model": {"lkc": lkc}, **goal}
    return {**job, "columns": columns, "data": "raw.csv"}


def _halved(values: list[str]) -> Any:
    """A tree of two children at every node."""
    if len(values) == 2:
        return values
    half = len(values) // 2
    return {f"{part[0]} to {part[-1]}": _halved(part) for part in (values[:half], values[half:])}
