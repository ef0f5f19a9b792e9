"""One holder's DP release: charged before it is made, kept before it is seen, and the same when asked again."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from anonymize.tds import Observer
from jobs.data.sources import Csv
from jobs.dp import single as dp_single_holder
from jobs.dp.counts import COUNTS, read_counts
from jobs.dp.single import release_to_folder
from jobs.errors import BudgetError, ConfigError
from jobs.options import NO_OPTIONS, Noted, Options
from jobs.page.page import PAGE
from jobs.release.csv import REPORT, TABLE
from jobs.release.folder import OWN_PAGE
from jobs.release.sums import SUMS, check_folder
from jobs.stopwatch import Stopwatch
from tests.support import jobs
from tests.support.commands import listing
from tests.support.dp_jobs import dp_single
from tests.support.joint import sample_rows
from tests.support.samples import COLUMNS

ONE = Options(budget=Fraction(1))


@pytest.fixture
def source(tmp_path: Path) -> Csv:
    return Csv(jobs.write_csv(tmp_path / "table.csv", sample_rows(60), COLUMNS))


def release(source: Csv, out: Path, options: Options = NO_OPTIONS, **model: str) -> Noted:
    task = jobs.task_of(dp_single(model))
    return release_to_folder(task, source, out, options, Stopwatch(lambda name: None), Observer())


def states(source: Csv) -> list[str]:
    return [entry.state for entry in NO_OPTIONS.own_ledger(source).entries()]


def spent(source: Csv) -> Fraction:
    return NO_OPTIONS.own_ledger(source).spent()


def test_a_release_is_charged_and_written(source: Csv, tmp_path: Path) -> None:
    noted = release(source, tmp_path / "out", epsilon="0.25")
    assert not noted.again
    assert noted.rows is not None
    assert (noted.rows.read, noted.rows.used) == (60, 60)
    assert listing(tmp_path / "out") == [SUMS, COUNTS, OWN_PAGE, PAGE, REPORT]
    check_folder(tmp_path / "out", (COUNTS, REPORT, TABLE))
    assert (states(source), spent(source)) == (["released"], Fraction("0.25"))


def test_the_same_job_gives_the_same_files_whatever_became_of_the_table(source: Csv, tmp_path: Path) -> None:
    """New noise for the same question would be another answer, which costs; so the first one is given again."""
    release(source, tmp_path / "first", ONE)
    jobs.write_csv(source.path, sample_rows(10, seed=5), COLUMNS)
    assert release(source, tmp_path / "again", ONE) == Noted(again=True, charged=(Fraction(1),))
    for name in (SUMS, COUNTS, REPORT):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "first" / name).read_bytes()
    assert spent(source) == 1


def test_another_job_is_charged_anew_until_nothing_is_left(source: Csv, tmp_path: Path) -> None:
    release(source, tmp_path / "first", ONE, epsilon="0.5")
    release(source, tmp_path / "second", ONE, epsilon="0.5", specializations="1")
    with pytest.raises(BudgetError) as caught:
        release(source, tmp_path / "third", ONE, epsilon="0.01")
    assert caught.value.problem.error_id == "budget-exceeded"
    assert caught.value.problem.advice(to_owner=True).endswith("what is spent: `coordinator budget JOB`")
    assert not (tmp_path / "third").exists()
    assert (states(source), spent(source)) == (["released", "released"], 1)


def test_rows_follow_from_the_counts(source: Csv, tmp_path: Path) -> None:
    release(source, tmp_path / "out", Options(as_records=True))
    assert listing(tmp_path / "out") == [SUMS, TABLE, COUNTS, OWN_PAGE, PAGE, REPORT]
    check_folder(tmp_path / "out", (COUNTS, REPORT, TABLE))
    job = jobs.task_of(dp_single()).job
    _, counts = read_counts(tmp_path / "out" / COUNTS, job.published)
    n_rows = len((tmp_path / "out" / TABLE).read_bytes().splitlines()) - 1
    assert n_rows == max(int(counts.sum()), 0)


def test_a_folder_that_is_there_costs_nothing(source: Csv, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(ConfigError) as caught:
        release(source, tmp_path / "out")
    assert caught.value.problem.error_id == "output-exists"
    assert states(source) == []


def failing(*_: Any, **__: Any) -> Any:
    raise RuntimeError("in the middle")


def test_a_run_that_fails_before_noise_is_drawn_costs_nothing(
    source: Csv, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dp_single_holder, "release_single", failing)
    with pytest.raises(RuntimeError):
        release(source, tmp_path / "out")
    assert (states(source), spent(source)) == (["returned"], 0)
    assert not (tmp_path / "out").exists()


def test_a_run_that_fails_after_that_stays_charged(
    source: Csv, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dp_single_holder, "files_of", failing)
    with pytest.raises(RuntimeError):
        release(source, tmp_path / "out")
    assert (states(source), spent(source)) == (["opened"], 1)
    assert not (tmp_path / "out").exists()


def test_a_release_that_could_not_be_written_is_given_when_asked_again(
    source: Csv, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is kept before anything is written: what was paid for is not lost."""
    with monkeypatch.context() as patched:
        patched.setattr(dp_single_holder, "write_release", failing)
        with pytest.raises(RuntimeError):
            release(source, tmp_path / "out", ONE)
    assert (states(source), spent(source)) == (["finished"], 1)
    assert release(source, tmp_path / "out", ONE).again
    assert (states(source), spent(source)) == (["released"], 1)
