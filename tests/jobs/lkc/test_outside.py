"""`outside: missing`: values outside a domain count as missing cells, and the owner is told."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from jobs.errors import ConfigError
from jobs.loading import parse_job
from tests.support import jobs
from tests.support.commands import invoke
from tests.support.job_files import job_file

CITY = {"role": "qid", "suppress": ["Bonn", "Lyon"], "outside": "missing"}
AGE = {"role": "qid", "numeric": {"min": "0", "max": "100", "step": "10"}, "outside": "missing"}


def fields(**columns: Any) -> dict[str, Any]:
    return {
        "version": "1",
        "name": "outside",
        "partition": "single",
        "goal": "general",
        "data": "table.csv",
        "model": {"lkc": {"L": "2", "K": "2", "C": "1"}},
        "columns": columns,
    }


def ran(tmp_path: Path, **columns: Any) -> tuple[list[dict[str, str]], dict[str, Any], str]:
    """Run and verify; return the table, the report and the owner's notes."""
    rows = [
        {"city": c, "age": a, "ill": i} for c, a, i in 10 * [("Bonn", "17", "flu"), ("Lyon", "44", "cold")]
    ]
    rows += 3 * [{"city": "Oslo", "age": "20", "ill": "gout"}] + [
        {"city": "Bonn", "age": "104", "ill": "flu"}
    ]
    rows += [{"city": "Bonn", "age": "old", "ill": "flu"}, {"city": "", "age": "20", "ill": "flu"}]
    job = job_file(tmp_path, fields(**columns))
    jobs.write_csv(tmp_path / "table.csv", rows)
    run = invoke("coordinator", "run", job, "--out", tmp_path / "out")
    assert run.code == 0, run.err
    assert invoke("coordinator", "verify", job, tmp_path / "out").code == 0
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    with (tmp_path / "out" / "anonymized.csv").open(newline="") as file:
        return list(csv.DictReader(file)), report, run.err


def test_a_category_outside_counts_as_missing(tmp_path: Path) -> None:
    table, report, told = ran(tmp_path, city=CITY)
    assert len(table) == 26
    assert sum(row["city"] in ("?", "*") for row in table) >= 4
    assert "Oslo" not in {row["city"] for row in table}
    assert "outside" not in report["data"]
    assert "3 rows have a value outside the domain of city" in told


def test_a_number_outside_drops_its_row(tmp_path: Path) -> None:
    table, report, told = ran(tmp_path, age=AGE)
    assert len(table) == 24
    assert (report["data"]["read"], report["data"]["used"]) == (26, 24)
    assert "2 rows have a value outside the domain of age" in told


def test_a_category_outside_drops_its_row_with_missing_drop(tmp_path: Path) -> None:
    table, _, _ = ran(tmp_path, city=CITY | {"missing": "drop"})
    assert len(table) == 22


def test_sensitive_values_outside_are_missing_values(tmp_path: Path) -> None:
    ill = {"role": "sensitive", "domain": ["flu", "cold"], "missing": "leaf", "outside": "missing"}
    table, _, told = ran(tmp_path, age=AGE, ill=ill)
    assert {row["ill"] for row in table} == {"flu", "cold", "?"}
    assert "3 rows have a value outside the domain of ill" in told


def test_sensitive_numbers_outside_are_missing_values(tmp_path: Path) -> None:
    table, _, _ = ran(tmp_path, city=CITY, age=AGE | {"role": "sensitive", "missing": "leaf"})
    assert len(table) == 26
    assert sum(row["age"] == "?" for row in table) == 2


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"city": {"role": "class", "outside": "missing"}}, "needs the values of the column"),
        (
            {"city": {"role": "class", "domain": ["a"], "outside": "missing"}},
            "needs the values of the column",
        ),
        ({"city": {"role": "plain", "outside": "missing"}}, "a column of role plain has no key 'outside'"),
        ({"city": CITY | {"outside": "drop"}}, "columns.city.outside"),
    ],
)
def test_errors_say_what_is_missing(columns: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_job(fields(age=AGE, **columns), "job.yaml")


def test_joint_and_dp_jobs_have_no_such_key() -> None:
    joint = {**fields(city=CITY), "partition": "horizontal", "parties": {"a": {}, "b": {}, "c": {}}}
    dp = {**fields(city=CITY), "model": {"dp": {"method": "synthetic", "epsilon": "1"}}}
    dp["columns"] = {"city": {"role": "qid", "taxonomy": {"*": ["Bonn", "Lyon"]}, "outside": "missing"}}
    for job in ({key: value for key, value in joint.items() if key != "data"}, dp):
        with pytest.raises(ConfigError, match=r"columns\.city\.outside is for LKC jobs of one holder"):
            parse_job(job, "job.yaml")
