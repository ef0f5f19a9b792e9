"""`withhold` in a job: which jobs may say it, what is published of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from anonymize.tds import Observer
from jobs.data.sources import Csv
from jobs.errors import PartyError
from jobs.lkc import single
from jobs.lkc.checked import verify_table
from jobs.lkc.options.withhold import Withhold
from jobs.lkc.report import shown_fields
from jobs.lkc.single import release_to_folder
from jobs.options import NO_OPTIONS
from jobs.reading import load_table
from jobs.release.csv import REPORT, TABLE
from jobs.release.folder import OWN_PAGE
from jobs.stopwatch import Stopwatch
from tests.support import jobs
from tests.support.joint import sample_rows
from tests.support.refusals import refused
from tests.support.samples import columns, joint_job, single_job, vertical_job


def job(withhold: str | None = "1/5", **changes: Any) -> dict[str, Any]:
    model = {"lkc": {"L": "2", "K": "5", "C": "0.6"}}
    return single_job(**{"model": model, "goal": "general", "withhold": withhold, **changes})


def run(folder: Path, fields: dict[str, Any], rows: Sequence[Mapping[str, str]]) -> Any:
    task, source = jobs.task_of(fields), Csv(jobs.write_csv(folder / "table.csv", rows))
    release_to_folder(task, source, folder / "out", NO_OPTIONS, Stopwatch(lambda name: None), Observer())
    return json.loads((folder / "out" / REPORT).read_text())


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        (joint_job(withhold="0.01"), "`withhold` is for the table of a single holder"),
        (vertical_job(withhold="0.01"), "`withhold` is for the table of a single holder"),
        (job(columns=columns(ward={"role": "plain"})), "columns.ward: plain columns are read after"),
        (job("0.6"), "write a share of the rows, from 0 to 1/2"),
        (job("-0.1"), "write a share of the rows, from 0 to 1/2"),
        (job("some"), "`model.lkc.withhold`"),
    ],
)
def test_where_it_makes_no_sense_it_is_refused_with_the_reason(fields: dict[str, Any], says: str) -> None:
    assert says in refused(fields).message


def test_none_is_the_job_without_it() -> None:
    assert jobs.bundle_of(job("0")).digest == jobs.bundle_of(job(None)).digest
    assert jobs.bundle_of(job("0.05")).digest == jobs.bundle_of(job("1/20")).digest


def test_nothing_but_how_many_rows_is_told(tmp_path: Path) -> None:
    report = run(tmp_path, job(), sample_rows(100))
    told = report["withheld"]
    assert set(told) == {"limit", "rows", "share", "meaning"}
    assert told["limit"] == "1/5"
    assert 0 < told["rows"] <= 20
    assert report["rows"] == 100 - told["rows"]
    assert report["data"]["used"] == 100
    assert Withhold.phase not in report["cost"]["seconds"]  # it would tell how many runs there were
    assert len((tmp_path / "out" / TABLE).read_text().splitlines()) == 1 + report["rows"]
    assert f"{told['rows']} rows of 100" in told["meaning"]
    assert report["risk"]["withheld"] == told["rows"]
    assert "withheld and are missing in these figures" in report["risk"]["meaning"]
    assert told["meaning"] in shown_fields(jobs.task_of(job()), report).lines
    verify_table(jobs.task_of(job()), tmp_path / "out")


def odd_rows() -> list[dict[str, str]]:
    """Sample rows; only two Lawyers, who block specializations, have one class and one sensitive value."""
    rows = [{**row, "job": row["job"].replace("Lawyer", "Mover")} for row in sample_rows(100)]
    odd = {"job": "Lawyer", "transfused": "Unheard", "surgery": "Unspeakable"}
    return [row | odd if i in {3, 50} else row for i, row in enumerate(rows)]


def left_to_data(**changes: Any) -> dict[str, Any]:
    """The sample columns, with domains of class and sensitive column that are found in the data."""
    sensitive = {"role": "sensitive", **changes}
    return columns(transfused={"role": "class"}, surgery=sensitive)


def of_one_column(**changes: Any) -> dict[str, Any]:
    return job("1/20", model={"lkc": {"L": "1", "K": "5", "C": "0.6"}}, **changes)


@pytest.mark.parametrize("goal", ["general", "classification"])
@pytest.mark.parametrize("protected", [{}, {"values": ["Rare"]}])
def test_no_value_of_withheld_rows_alone_is_in_any_file(
    tmp_path: Path, goal: str, protected: dict[str, Any]
) -> None:
    """Nor does it change anything: the report is that of the table without these rows."""
    fields, rows = of_one_column(goal=goal, columns=left_to_data(**protected)), odd_rows()
    report = run(tmp_path, fields, rows)
    assert report["withheld"]["rows"] == 2
    (tmp_path / "out" / OWN_PAGE).unlink()  # the owner's alone
    files = [path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert len(files) == 4
    assert any(b"Heart" in text for text in files)
    for value in (b"Unspeakable", b"Unheard"):
        assert not any(value in text for text in files)
    assert b"Lawyer" not in (tmp_path / "out" / TABLE).read_bytes()
    (tmp_path / "rest").mkdir()
    without = {"lkc": {key: said for key, said in fields["model"]["lkc"].items() if key != "withhold"}}
    rest = run(tmp_path / "rest", {**fields, "model": without}, [r for r in rows if r["job"] != "Lawyer"])
    assert report["model"]["lkc"].pop("withhold")
    about = {"job_sha256", "canonical", "started", "finished", "withheld", "data", "files", "cost"}
    assert report["risk"].pop("withheld") == 2
    left = (
        "2 records were withheld and are missing in these figures, which describe the records in the table."
    )
    assert report["risk"]["meaning"] == f"{rest['risk']['meaning']} {left}"
    report["risk"]["meaning"] = rest["risk"]["meaning"]
    told = [{key: value for key, value in each.items() if key not in about} for each in (report, rest)]
    assert told[0] == told[1]


def test_a_protected_value_that_the_job_lists_stays_protected(tmp_path: Path) -> None:
    """Though only withheld rows have it: the job says so itself."""
    listed = left_to_data(values=["Unspeakable"])
    report = run(tmp_path, of_one_column(columns=listed), odd_rows())
    assert report["withheld"]["rows"] == 2
    assert report["sensitive"]["surgery"]["values"] == ["Unspeakable"]
    assert "Unspeakable" not in (tmp_path / "out" / TABLE).read_text()


def test_a_limit_of_less_than_a_row_withholds_nothing(tmp_path: Path) -> None:
    report = run(tmp_path, job("0.001"), sample_rows(100))
    assert report["withheld"]["rows"] == 0
    assert "Nothing was withheld" in report["withheld"]["meaning"]
    (tmp_path / "plain").mkdir()
    plain = run(tmp_path / "plain", job(None), sample_rows(100))
    assert "withheld" not in plain
    assert report["cut"] == plain["cut"]


def test_people_are_counted_in_what_is_left(tmp_path: Path) -> None:
    rows = [{**row, "patient": str(i % 30)} for i, row in enumerate(sample_rows(100))]
    model = {"lkc": {"L": "2", "K": "5", "C": "0.6"}, "unit": "person"}
    report = run(tmp_path, job("0.2", model=model), rows)
    assert report["withheld"]["rows"] > 0
    assert report["rows"] + report["withheld"]["rows"] == 100


def test_what_is_published_is_what_is_verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that puts the withheld rows back is stopped."""
    fields = of_one_column(columns=left_to_data())
    task, taken = jobs.task_of(fields), []

    def keeps_all(option: Withhold, task: Any, loaded: Any, shown: Any) -> Any:
        taken.append(kept(option, task, loaded, shown))
        return loaded

    run_of, kept = single.anonymized, Withhold.kept
    monkeypatch.setattr(Withhold, "kept", keeps_all)
    monkeypatch.setattr(single, "anonymized", lambda task, loaded, shown: run_of(task, taken[0], shown))
    with pytest.raises(PartyError, match="violates K"):
        run(tmp_path, fields, odd_rows())
    assert not (tmp_path / "out").exists()
    loaded = load_table(Csv(tmp_path / "table.csv"), task)
    assert taken[0].table.n_records < loaded.table.n_records
