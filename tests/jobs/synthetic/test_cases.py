"""Inputs that people bring (../shared/cases), and what comes of them."""

from __future__ import annotations

import shutil
from datetime import datetime
from pathlib import Path

import pytest

from jobs.dp.settings import SYNTHETIC_TABLE
from jobs.release.csv import read_csv
from tests.support.commands import invoke
from tests.support.shared import shared


def case(tmp_path: Path, name: str, changes: dict[str, str]) -> Path:
    """A copy of a folder, its job changed as its owner would change it."""
    folder = tmp_path / "case"
    shutil.copytree(shared(f"cases/{name}"), folder)
    job = folder / "job.yaml"
    text = job.read_text()
    for old, new in changes.items():
        assert text.count(old) >= 1
        text = text.replace(old, new)
    job.write_text(text)
    return folder


def test_flags_that_are_never_missing(tmp_path: Path) -> None:
    """Folder 12, as its owner would say it: no row has `?`."""
    said = {"[0, 1]}}": "[0, 1]}, missing: never}", "[0, 1]}\n": "[0, 1], missing: never}\n"}
    folder = case(tmp_path, "12-synthetic-invented-missing", said)
    ran = invoke("coordinator", "run", folder / "job.yaml", "--out", folder / "out")
    assert ran.code == 0, ran.err
    table = read_csv((folder / "out" / SYNTHETIC_TABLE).read_bytes(), ("a", "b", "c"), SYNTHETIC_TABLE)
    assert {label for column in table.columns.values() for label in column.labels} <= {"0", "1"}


def dates_in(path: Path) -> list[str]:
    lines = path.read_text().splitlines()
    place = lines[0].split(",").index("admitted")
    return [line.split(",")[place] for line in lines[1:]]


@pytest.mark.parametrize("time", ["cut", "keep"])
def test_every_date_that_is_drawn_exists(tmp_path: Path, time: str) -> None:
    """Folder 10, with the domain of dates that the hint names."""
    numeric = "numeric: {min: 20240101, max: 20250101, step: 100}"
    dates = f"dates: {{from: 2024-01-01, to: 2025-01-01, step: 1mo, form: YYYYMMDD, time: {time}}}"
    folder = case(
        tmp_path, "10-synthetic-dates", {numeric: dates, "admitted: {": "admitted: {missing: never, "}
    )
    ran = invoke("coordinator", "run", folder / "job.yaml", "--out", folder / "out")
    assert ran.code == 0, ran.err
    assert "outside" not in ran.out + ran.err
    form = "%Y%m%d" if time == "cut" else "%Y%m%d %H:%M:%S"
    drawn = [datetime.strptime(text, form) for text in dates_in(folder / "out" / SYNTHETIC_TABLE)]
    assert len(drawn) > 100
    assert {each.year for each in drawn} == {2024}
    assert len({each.month for each in drawn}) > 6
    checked = invoke("coordinator", "verify", folder / "job.yaml", folder / "out")
    assert checked.code == 0, checked.err


def test_lkc_jobs_take_dates_alike(tmp_path: Path) -> None:
    """The same column generalized: intervals print as dates, whatever form the table has."""
    numeric = "numeric: {min: 20240101, max: 20250101, step: 100}"
    changes = {
        numeric: "dates: {from: 2024-01-01, to: 2025-01-01, step: 1mo}",
        "dp: {method: synthetic, epsilon: 2, max_rows: 1000}": "lkc: {L: 1, K: 20, C: 1}",
    }
    folder = case(tmp_path, "10-synthetic-dates", changes)
    table = folder / "records.csv"
    lines = table.read_text().splitlines()
    table.write_text(
        "\n".join([lines[0], *(f"{t[:4]}-{t[4:6]}-{t[6:8]} 10:00:00{t[8:]}" for t in lines[1:])])
    )
    ran = invoke("coordinator", "run", folder / "job.yaml", "--out", folder / "out")
    assert ran.code == 0, ran.err
    text = (folder / "out" / "anonymized.csv").read_text()
    assert "2024-07-01)" in text or "[2024-07-01" in text
    checked = invoke("coordinator", "verify", folder / "job.yaml", folder / "out")
    assert checked.code == 0, checked.err


def test_a_text_that_is_no_date_is_told_to_its_owner(tmp_path: Path) -> None:
    numeric = "numeric: {min: 20240101, max: 20250101, step: 100}"
    changes = {
        numeric: "dates: {from: 2024-01-01, to: 2025-01-01, step: 1mo}",
        "dp: {method: synthetic, epsilon: 2, max_rows: 1000}": "lkc: {L: 1, K: 20, C: 1}",
    }
    folder = case(tmp_path, "10-synthetic-dates", changes)
    ran = invoke("coordinator", "run", folder / "job.yaml", "--out", folder / "out")
    assert ran.code != 0
    assert "line 2: '20241002'; the value is not a date written as YYYY-MM-DD" in ran.err


@pytest.mark.parametrize(
    "model",
    [
        "lkc: {L: all, K: 2, C: 0.9, release: anatomy, quasi: exact}",
        "lkc: {L: all, K: 20, C: 1, method: kd}",
    ],
)
def test_other_methods_take_dates(tmp_path: Path, model: str) -> None:
    changes = {
        "numeric: {min: 20240101, max: 20250101, step: 100}": (
            "dates: {from: 2024-01-01, to: 2025-01-01, step: 1mo, form: YYYYMMDD}"
        ),
        "dp: {method: synthetic, epsilon: 2, max_rows: 1000}": model,
    }
    folder = case(tmp_path, "10-synthetic-dates", changes)
    ran = invoke("coordinator", "run", folder / "job.yaml", "--out", folder / "out")
    assert ran.code == 0, ran.err
    assert any("2024" in path.read_text() for path in (folder / "out").glob("*.csv"))
    checked = invoke("coordinator", "verify", folder / "job.yaml", folder / "out")
    assert checked.code == 0, checked.err


def test_diffgen_takes_dates(tmp_path: Path) -> None:
    changes = {
        "numeric: {min: 20240101, max: 20250101, step: 100}": (
            "dates: {from: 2024-01-01, to: 2025-01-01, step: 1mo, form: YYYYMMDD}"
        ),
        "method: synthetic, epsilon: 2,": "epsilon: 10, specializations: 2,",
        "goal: general\n": "goal: classification\n",
        "role: sensitive": "role: class",
    }
    folder = case(tmp_path, "10-synthetic-dates", changes)
    ran = invoke("coordinator", "run", folder / "job.yaml", "--out", folder / "out")
    assert ran.code == 0, ran.err
    checked = invoke("coordinator", "verify", folder / "job.yaml", folder / "out")
    assert checked.code == 0, checked.err
