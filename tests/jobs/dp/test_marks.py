"""The texts of missing cells (`data.missing`) in DP jobs: such cells are missing, and no number or value."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jobs.data.sources import source_of_file
from jobs.data.wording import Wording
from jobs.dp.budget import load
from jobs.loading import load_task
from tests.support import jobs
from tests.support.commands import invoke
from tests.support.job_files import job_file

MARKS = ("NA", "-9")
MODELS: dict[str, dict[str, Any]] = {
    "counts.csv": {"epsilon": "4", "specializations": "2"},
    "synthetic.csv": {"epsilon": "4", "method": "synthetic"},
}


def fields(model: dict[str, Any], data: object) -> dict[str, Any]:
    columns = {
        "age": {"role": "qid", "numeric": {"min": "0", "max": "100", "step": "10"}},
        "city": {"role": "qid", "taxonomy": {"*": ["Bern", "Chur"]}},
        "ill": {"role": "class", "domain": ["no", "yes"]},
    }
    return {
        "version": "1",
        "name": "marks",
        "partition": "single",
        "goal": "classification",
        "data": data,
        "model": {"dp": model},
        "columns": columns,
    }


def table(marks: tuple[str, str]) -> list[dict[str, str]]:
    """Return rows in which every fourth age and every fifth city is missing, written by the marks in turn."""
    return [
        {
            "age": marks[i // 4 % 2] if i % 4 == 0 else str(i % 90),
            "city": marks[i // 5 % 2] if i % 5 == 0 else ("Bern", "Chur")[i % 2],
            "ill": ("no", "yes")[i // 2 % 2],
        }
        for i in range(200)
    ]


@pytest.mark.parametrize("file", MODELS)
def test_marked_cells_are_missing(file: str, tmp_path: Path) -> None:
    data = {"path": "table.csv", "missing": list(MARKS)}
    job = job_file(tmp_path, fields(MODELS[file], data))
    jobs.write_csv(tmp_path / "table.csv", table(MARKS))
    ran = invoke("coordinator", "run", job, "--out", tmp_path / "out")
    assert ran.code == 0, ran.err
    assert "missing cells of age: '-9' in 25 rows, 'NA' in 25 rows" in ran.out + ran.err
    assert "missing cells of city: '-9' in 20 rows, 'NA' in 20 rows" in ran.out + ran.err
    assert "outside the domain" not in ran.out + ran.err
    assert invoke("coordinator", "verify", job, tmp_path / "out").code == 0
    with (tmp_path / "out" / file).open(newline="") as found:
        assert not any(mark in row.values() for row in csv.DictReader(found) for mark in MARKS)


@pytest.mark.parametrize("file", MODELS)
def test_marked_cells_count_as_empty_cells(file: str, tmp_path: Path) -> None:
    """In pass 1, since noise differs between runs."""
    task = load_task(job_file(tmp_path, fields(MODELS[file], "table.csv")))
    read = []
    for name, marks, wording in (("marked", MARKS, Wording(missing=MARKS)), ("empty", ("", "?"), Wording())):
        path = jobs.write_csv(tmp_path / f"{name}.csv", table(marks))
        read.append(load(source_of_file(path, wording=wording), task))
    for one, other in zip(read[0].table.qid, read[1].table.qid, strict=True):
        assert np.array_equal(one, other)
    assert np.array_equal(read[0].table.weights, read[1].table.weights)
    assert read[0].rows.used == read[1].rows.used
