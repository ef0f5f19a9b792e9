"""Adult's four sensitive columns: a table whose records all have one of two values, and what then can be asked for.

Every record has capital gain 0 or capital loss 0, so whoever rules out one of these values knows the other one, in
any group (../shared/data).
"""

from __future__ import annotations

import csv
import gzip
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.commands import invoke
from tests.support.network import write_job
from tests.support.shared import shared

QID = (
    "age",
    "education",
    "marital-status",
    "relationship",
    "race",
    "sex",
    "hours-per-week",
    "native-country",
)
SENSITIVE = ("workclass", "occupation", "capital-gain", "capital-loss")
GAIN = {"min": "0", "max": "100000", "cuts": ["1", "3000", "5000", "7000", "15000"]}
LOSS = {"min": "0", "max": "5000", "cuts": ["1", "1500", "2000"]}
NOTHING = "[0,1)"


def of_grid(numeric: Mapping[str, Any], *, protected: bool) -> dict[str, Any]:
    """A sensitive column of amounts, of which nothing at all is protected, or not."""
    edges = [numeric["min"], *numeric["cuts"], numeric["max"]]
    cells = [f"[{low},{high})" for low, high in itertools.pairwise(edges)]
    values = {} if protected else {"values": cells[1:]}
    return {"role": "sensitive", "numeric": numeric, **values}


def job(rows: Sequence[Mapping[str, str]], diversity: int, *, protected: bool) -> dict[str, Any]:
    """The job of benchmarks/RESULTS.md; protected: also that a person has no gain, or no loss."""
    hierarchies = shared("data/adult/hierarchies")
    numeric = {"age": ("17", "91"), "hours-per-week": ("1", "100")}
    columns: dict[str, Any] = {}
    for name in QID:
        if name in numeric:
            low, high = numeric[name]
            columns[name] = {"role": "qid", "numeric": {"min": low, "max": high, "step": "1"}}
        else:
            path = str(hierarchies / f"{name}.csv")
            columns[name] = {"role": "qid", "taxonomy": path, "missing": "drop"}
    for name in ("workclass", "occupation"):
        columns[name] = {"role": "sensitive", "domain": sorted({row[name] for row in rows})}
    columns["capital-gain"] = of_grid(GAIN, protected=protected)
    columns["capital-loss"] = of_grid(LOSS, protected=protected)
    model = {"lkc": {"L": "all", "K": "50", "C": "1", "diversity": str(diversity)}}
    common = {"version": "1", "name": "adult", "partition": "single", "data": "table.csv"}
    return {**common, "method": "kd", "goal": "general", "model": model, "columns": columns}


@pytest.fixture(scope="module")
def rows() -> list[dict[str, str]]:
    """The 45,222 complete records."""
    with gzip.open(shared("data/adult/adult.csv.gz"), "rt", newline="") as file:
        return [row for row in csv.DictReader(file) if "?" not in row.values()]


def ran(folder: Path, rows: Sequence[Mapping[str, str]], diversity: int, *, protected: bool) -> Any:
    names = (*QID, *SENSITIVE)
    with (folder / "table.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, names, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    path = write_job(folder, job(rows, diversity, protected=protected))
    return invoke("coordinator", "run", path, "--out", folder / "out")


def test_two_values_cover_all(tmp_path: Path, rows: list[dict[str, str]]) -> None:
    assert all(row["capital-gain"] == "0" or row["capital-loss"] == "0" for row in rows)
    done = ran(tmp_path, rows, 3, protected=True)
    assert done.code == 1
    assert "the fully generalized table already violates diversity" in done.err
    assert "protect fewer values" in done.err


def diverse(group: Sequence[Sequence[str]]) -> bool:
    """Return True if nobody who rules out one value is left with one protected one, nor anybody who rules out
    none.
    """
    values = sorted({(i, value) for row in group for i, value in enumerate(row)})
    has = np.array([[row[i] == value for row in group] for i, value in values])
    is_protected = np.array([i < 2 or value != NOTHING for i, value in values])
    if has[is_protected].all(axis=1).any():
        return False
    for one in range(len(values)):
        left = has[:, ~has[one]]
        if left.shape[1] and left[is_protected].all(axis=1).any():
            return False
    return True


@pytest.mark.more
def test_with_both_zeros_unprotected_it_runs(tmp_path: Path, rows: list[dict[str, str]]) -> None:
    """Every group counted by the definition."""
    done = ran(tmp_path, rows, 3, protected=False)
    assert done.code == 0, done.err
    groups: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    for row in csv.DictReader((tmp_path / "out" / "anonymized.csv").read_text().splitlines()):
        groups.setdefault(tuple(row[name] for name in QID), []).append(tuple(row[name] for name in SENSITIVE))
    assert len(groups) == 308
    assert all(len(group) >= 50 and diverse(group) for group in groups.values())
