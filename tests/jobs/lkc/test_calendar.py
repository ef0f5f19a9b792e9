"""`dates` with `levels`: dates are published as units of the calendar, by one holder and by several."""

from __future__ import annotations

import csv
import random
from collections import Counter
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from jobs.errors import ConfigError
from jobs.loading import parse_job
from tests.support import jobs
from tests.support.clusters import single_clusters
from tests.support.commands import invoke
from tests.support.job_files import job_file

CAME = {
    "role": "qid",
    "dates": {"from": "2023-01-01", "to": "2025-01-01", "levels": ["month", "year", "quarter"]},
}
SEX = {"role": "qid", "suppress": ["m", "f"]}
PARTIES = {name: {"address": f"127.0.0.1:740{i}"} for i, name in enumerate("abc")}


def table() -> list[dict[str, str]]:
    rng = random.Random(5)  # noqa: S311
    rows = []
    for i in range(200):
        year = 2023 if rng.random() < 0.1 else 2024  # few in the first year: its months stay together
        day = f"{year}-{rng.randrange(1, 13):02d}-{rng.randrange(1, 29):02d}"
        form = [day, f"{day} 10:30", f" {day}T01:02:03"][i % 3]
        rows.append({"id": str(i), "came": "" if i % 40 == 0 else form, "sex": rng.choice("mf")})
    return rows


def fields(**changes: Any) -> dict[str, Any]:
    return {
        "version": "1",
        "name": "calendar",
        "partition": "single",
        "goal": "general",
        "data": "table.csv",
        "model": {"lkc": {"L": "2", "K": "3"}},
        "columns": {"came": CAME, "sex": SEX},
        **changes,
    }


def run(folder: Path, **changes: Any) -> list[dict[str, str]]:
    folder.mkdir(exist_ok=True)
    job = job_file(folder, fields(**changes))
    jobs.write_csv(folder / "table.csv", table())
    ran = invoke("coordinator", "run", job, "--out", folder / "out")
    assert ran.code == 0, ran.err
    checked = invoke("coordinator", "verify", job, folder / "out")
    assert checked.code == 0, checked.err
    return rows_of(folder / "out")


def rows_of(out: Path) -> list[dict[str, str]]:
    with (out / "anonymized.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def units(day: str) -> set[str]:
    """Return all units that hold a date, from its text."""
    year, month, _ = day.strip()[:10].split("-")
    return {f"{year}-{month}", f"{year}-Q{(int(month) - 1) // 3 + 1}", year, "*"}


@pytest.mark.parametrize("missing", ["leaf", "drop"])
def test_every_date_is_in_its_published_unit(missing: str, tmp_path: Path) -> None:
    released = run(tmp_path, columns={"came": {**CAME, "missing": missing}, "sex": SEX})
    full = [row for row in table() if row["came"]]
    kept = table() if missing == "leaf" else full
    assert len(released) == len(kept)
    cut = {row["came"] for row in released}
    assert {"2023", "2024-01"} <= cut or {"2023-Q1", "2024-01"} <= cut
    expected = Counter()
    for row in kept:
        if row["came"]:
            (unit,) = units(row["came"]) & cut
            expected[unit] += 1
        else:
            expected["?"] += 1
    assert Counter(row["came"] for row in released) == expected


@pytest.mark.parametrize("mode", ["sealed", "leader", "vertical"])
def test_several_holders_make_the_table_of_one(mode: str, tmp_path: Path) -> None:
    columns = {"came": {**CAME, "missing": "leaf"}, "sex": SEX}
    joint: dict[str, Any] = {"partition": "horizontal", "parties": PARTIES, "disclosure": mode}
    if mode == "leader":
        joint["leader"] = "a"
    if mode == "vertical":
        columns = {"id": {"role": "id"}, **columns}
        parties = {"a": {**PARTIES["a"], "columns": ["came"]}, "b": {**PARTIES["b"], "columns": ["sex"]}}
        joint = {"partition": "vertical", "parties": parties}
    expected = run(tmp_path / "single", columns=columns)
    (tmp_path / "joint").mkdir()
    whole = fields(columns=columns, **joint)
    job = job_file(tmp_path / "joint", {key: value for key, value in whole.items() if key != "data"})
    data = []
    for place, name in enumerate(joint["parties"]):
        rows = table() if mode == "vertical" else table()[place::3]
        data += ["--data", f"{name}={jobs.write_csv(tmp_path / 'joint' / f'{name}.csv', rows)}"]
    ran = invoke("coordinator", "simulate", job, *data, "--out", tmp_path / "out", "--in-process")
    assert ran.code == 0, ran.err
    counts = [Counter(tuple(row.items()) for row in rows) for rows in (expected, rows_of(tmp_path / "out"))]
    assert counts[0] == counts[1]


def test_levels_have_one_order() -> None:
    other = {**CAME, "dates": {**CAME["dates"], "levels": ["year", "quarter", "month", "month"]}}  # type: ignore[dict-item]
    texts = {
        jobs.bundle_of(fields(columns={"came": came, "sex": SEX})).job.canonical() for came in (CAME, other)
    }
    assert len(texts) == 1


DATES = CAME["dates"]
ENDS = {"from": "2024-01-01", "to": "2025-01-01"}


def week_of(day: str) -> str:
    year, week, _ = date.fromisoformat(day.strip()[:10]).isocalendar()
    return f"{year}-W{week:02d}"


def test_dates_are_published_as_weeks(tmp_path: Path) -> None:
    dates = {"from": "2024-01-01", "to": "2025-01-06", "levels": ["day", "week"]}
    weeks = {"role": "qid", "refine": "child", "dates": dates, "outside": "missing"}
    released = run(tmp_path, columns={"came": weeks, "sex": SEX}, model={"lkc": {"L": "1", "K": "2"}})
    own = Counter(week_of(row["came"]) for row in table() if row["came"].strip().startswith("2024"))
    found = Counter(row["came"] for row in released if "-W" in row["came"] and "other" not in row["came"])
    assert len(found) > 20
    for week, n in found.items():
        assert n <= own[week]


@pytest.mark.parametrize(
    ("unit", "length"), [("day", "1d"), ("week", "7d"), ("month", "1mo"), ("quarter", "3mo"), ("year", "1y")]
)
def test_units_of_a_step_are_lengths(unit: str, length: str) -> None:
    texts = {
        jobs.bundle_of(
            fields(columns={"came": {"role": "qid", "dates": {**ENDS, "step": step}}, "sex": SEX})
        ).job.canonical()
        for step in (unit, length)
    }
    assert len(texts) == 1


WEEKLY = {
    "lkc": {"L": "2", "K": "3"},
    "dp": {"epsilon": "2", "specializations": "3"},
    "synthetic": {"epsilon": "2", "method": "synthetic"},
}


@pytest.mark.parametrize("name", WEEKLY)
def test_weeks_in_every_model(name: str, tmp_path: Path) -> None:
    column = {"role": "qid", "dates": {"from": "2023-01-02", "to": "2025-01-06", "step": "week"}}
    sex = {"role": "class", "domain": ["m", "f"]}
    model = {"dp" if name == "synthetic" else name: WEEKLY[name]}
    job = job_file(tmp_path, fields(columns={"came": column, "sex": sex}, model=model, goal="classification"))
    rows = [row for row in table() if "2023-01-01" not in row["came"]]
    jobs.write_csv(tmp_path / "table.csv", rows)
    ran = invoke("coordinator", "run", job, "--out", tmp_path / "out")
    assert ran.code == 0, ran.err
    assert invoke("coordinator", "verify", job, tmp_path / "out").code == 0
    (path,) = [
        tmp_path / "out" / name
        for name in ("anonymized.csv", "counts.csv", "synthetic.csv")
        if (tmp_path / "out" / name).exists()
    ]
    with path.open(newline="", encoding="utf-8") as file:
        values = {row["came"] for row in csv.DictReader(file)} - {"", "*"}
    days = [
        date.fromisoformat(day) for value in values for day in value.split(" or ")[0].strip("[)").split(",")
    ]
    assert days
    if path.name != "synthetic.csv":  # drawn rows have every day of a week
        assert all(day.weekday() == 0 for day in days)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"columns": {"came": {**CAME, "dates": {**DATES, "step": "1mo"}}}}, "either `step` or `levels`"),
        ({"columns": {"came": {**CAME, "dates": {**DATES, "levels": []}}}}, "levels"),
        ({"columns": {"came": {**CAME, "dates": {**DATES, "levels": ["fortnight"]}}}}, "levels"),
        (
            {"columns": {"came": {**CAME, "dates": {**DATES, "levels": ["month", "week"]}}}},
            "no level holds weeks: write",
        ),
        (
            {"columns": {"came": {"role": "qid", "dates": {**ENDS, "from": "2024-01-02", "step": "week"}}}},
            "`step: week` begins inside a week: write a `from` that is the first day of a week, a Monday, or `step",
        ),
        (
            {
                "columns": {
                    "came": {"role": "qid", "dates": {**ENDS, "from": "2024-02-01", "step": "quarter"}}
                }
            },
            "begins inside a quarter: write a `from` that is the first day of a quarter, or `step: 3mo`",
        ),
        (
            {"columns": {"came": {"role": "qid", "dates": {**ENDS, "step": "fortnight"}}}},
            "or day, week, month, quarter or year",
        ),
        (
            {"columns": {"came": {**CAME, "dates": {**DATES, "time": "keep"}}}},
            "`time: keep` is for synthetic",
        ),
        (
            {"columns": {"came": CAME}, "model": {"dp": {"epsilon": "1", "method": "synthetic"}}},
            "write `step`",
        ),
        (
            {"model": {"lkc": {"L": "all", "K": "3", "release": "anatomy", "quasi": "exact"}}},
            "`step`|anatomy",
        ),
        (
            {k: v for k, v in single_clusters().items() if k not in ("columns",)}
            | {"columns": {**single_clusters()["columns"], "came": CAME}},
            "write `step`",
        ),
    ],
)
def test_what_levels_cannot_mean(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        parse_job(fields(**changes), "job")
