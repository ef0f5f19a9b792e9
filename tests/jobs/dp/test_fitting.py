"""A single holder's table that does not fit its domains costs nothing; and joint jobs say nothing of theirs."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from anonymize.errors import DataError
from anonymize.tds import Observer
from jobs.data.sources import Csv
from jobs.dp import requirement
from jobs.dp.single import release_to_folder
from jobs.errors import ConfigError
from jobs.loading import open_task, parse_job
from jobs.options import NO_OPTIONS, Noted
from jobs.release.csv import REPORT
from jobs.stopwatch import Stopwatch
from jobs.task import Task
from tests.support import jobs
from tests.support.commands import invoke
from tests.support.dp_jobs import dp_joint, dp_single
from tests.support.joint import sample_rows
from tests.support.samples import COLUMNS
from tests.support.shared import shared
from tests.support.synthetic_jobs import synthesize, synthetic_single


def table(folder: Path, n_fitting: int, n_strange: int, n_missing: int = 0, strange: str = "£87.4") -> Csv:
    rows = sample_rows(n_fitting + n_strange + n_missing)
    for i, row in enumerate(rows):
        row["age"] = "15" if i < n_fitting else strange if i < n_fitting + n_strange else ""
    return Csv(jobs.write_csv(folder / "table.csv", rows, COLUMNS))


def counted(task: Task, source: Csv, out: Path) -> Noted:
    return release_to_folder(task, source, out, NO_OPTIONS, Stopwatch(lambda name: None), Observer())


@pytest.mark.parametrize(("job", "run"), [(dp_single, counted), (synthetic_single, synthesize)])
def test_nothing_is_charged_for_a_table_that_does_not_fit(tmp_path: Path, job: Any, run: Any) -> None:
    source = table(tmp_path, 40, 60)
    with pytest.raises(DataError) as caught:
        run(jobs.task_of(job()), source, tmp_path / "out")
    assert caught.value.column == "age"
    assert "more than 1/2 of the cells fit nowhere" in str(caught.value)
    assert "60 cells of 100 outside the domain, the first on line 42: '£87.4'" in caught.value.private
    assert "87" not in f"{caught.value}{caught.value!r}"
    assert not NO_OPTIONS.own_ledger(source).entries()
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("fits", "strange", "missing", "share", "refused"),
    [
        (50, 50, 0, None, False),
        (49, 51, 0, None, True),
        (0, 10, 90, None, True),
        (0, 0, 100, None, False),
        (0, 100, 0, "1", False),
        (99, 1, 0, "0", True),
        (100, 0, 0, "0", False),
        (80, 20, 0, "1/10", True),
    ],
)
def test_the_share_is_of_the_cells_that_are_not_missing(
    tmp_path: Path, fits: int, strange: int, missing: int, share: str | None, refused: bool
) -> None:
    task = jobs.task_of(synthetic_single(None if share is None else {"max_outside": share}))
    source = table(tmp_path, fits, strange, missing)
    if refused:
        with pytest.raises(DataError):
            synthesize(task, source, tmp_path / "out")
    else:
        synthesize(task, source, tmp_path / "out")
    assert len(NO_OPTIONS.own_ledger(source).entries()) == (not refused)


def test_what_does_not_fit_is_told_to_the_owner_and_stands_in_no_file(tmp_path: Path) -> None:
    noted = synthesize(
        jobs.task_of(synthetic_single()), table(tmp_path, 90, 10, strange="old"), tmp_path / "out"
    )
    assert noted.strays == ("age: 10 cells of 100 outside the domain, the first on line 92: 'old'",)
    assert "old" not in repr(noted.rows)
    assert noted.rows is not None
    assert "strays" not in noted.rows.fields()
    report = (tmp_path / "out" / REPORT).read_text()
    assert "'old'" not in report
    assert "outside" not in json.loads(report)


@pytest.mark.parametrize("partition", ["horizontal", "vertical"])
def test_joint_jobs_have_no_such_refusal(tmp_path: Path, partition: str) -> None:
    fields = dp_joint(partition)
    with pytest.raises(ConfigError, match="max_outside is for jobs of a single holder"):
        parse_job({**fields, "model": {"dp": {**fields["model"]["dp"], "max_outside": "1"}}}, "job.yaml")
    source = table(tmp_path, 0, 10)
    loaded = open_task(jobs.bundle_of(fields)).load(source, "hospital-a")
    assert loaded.rows.read == 10


def test_the_folder_of_a_table_of_which_nothing_fits(tmp_path: Path) -> None:
    """Folder 09: seen before the run, refused before the charge, and released where the owner means it."""
    folder = tmp_path / "case"
    folder.mkdir()
    for name in ("job.yaml", "records.csv"):
        (folder / name).write_bytes((shared("cases/09-dp-nothing-fits-the-domain") / name).read_bytes())
    job, out = folder / "job.yaml", folder / "out"
    seen = invoke("coordinator", "check", job)
    assert seen.code == 0
    assert "numbers have a decimal comma" in seen.err
    assert (
        "sex: 300 cells of 300 outside the domain, the first on line 2: 'm'; the value would fit as 'M'"
        in seen.out
    )
    assert "a run would be refused before a charge, for sex, smoker" in seen.out
    ran = invoke("coordinator", "run", job, "--out", out)
    assert ran.code == 7
    assert "line 2: 'm'; the value would fit as 'M'" in ran.err
    assert sorted(path.name for path in folder.iterdir()) == ["job.yaml", "records.csv"]
    job.write_text(job.read_text().replace("epsilon: 1,", "epsilon: 1, max_outside: 1,"))
    assert invoke("coordinator", "run", job, "--out", out).code == 0


def test_check_is_for_tables_of_one_holder(tmp_path: Path) -> None:
    job = tmp_path / "job.json"
    job.write_text(json.dumps(dp_joint("horizontal")))
    ran = invoke("coordinator", "check", job)
    assert ran.code == 2
    assert "party check --job" in ran.err


def noise_said(fields: dict[str, Any]) -> float:
    line, *_ = jobs.task_of(fields).model.described(jobs.task_of(fields)).notes
    return float(line.split("standard deviation of about ")[1].split()[0])


@pytest.mark.parametrize("epsilon", ["0.1", "1", "8"])
def test_validate_says_the_noise_of_a_count(epsilon: str) -> None:
    """From the law itself, at the least rate that the account leaves to the counts."""
    rate = float(epsilon) / 2
    q = math.exp(-rate)
    weights = [q ** abs(k) for k in range(-4000, 4001)]
    variance = sum(k * k * w for k, w in zip(range(-4000, 4001), weights, strict=True)) / sum(weights)
    assert noise_said(dp_single({"epsilon": epsilon})) == pytest.approx(math.sqrt(variance), rel=5e-3)


def test_noises_of_two_parties_and_of_several_records_add_up() -> None:
    one = noise_said(dp_single({"epsilon": "0.5"}))
    assert noise_said(dp_joint("horizontal", {"epsilon": "0.5"})) == one
    each = noise_said(dp_joint("horizontal", {"epsilon": "0.5", "noise": "each"}))
    assert each == pytest.approx(math.sqrt(2) * one, rel=1e-2)
    three = noise_said(dp_single({"epsilon": "0.5", "max_records_per_person": "3"}))
    assert three == pytest.approx(3 * one, rel=2e-2)


def test_no_run_leaves_less_than_half_of_epsilon_to_its_counts() -> None:
    task = jobs.task_of(dp_single())
    asked = requirement.requirement(task)
    schema = task.schema
    numeric = sum(column.is_numeric for column in schema.qid)
    most = asked.step_epsilon(schema) * (numeric + 2 * asked.specializations)
    assert asked.epsilon - most == asked.epsilon / 2
