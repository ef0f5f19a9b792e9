"""One holder's LKC release: a whole folder and a line in the ledger, or neither."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from anonymize.errors import DataError, PrivacyError
from anonymize.tds import Observer
from jobs import publishing
from jobs.data.sources import Csv
from jobs.errors import BudgetError, ConfigError
from jobs.lkc.single import release_to_folder
from jobs.options import NO_OPTIONS, Noted, Options
from jobs.owner import listing as listing_of_jobs
from jobs.owner.ledger import ChargedJob, PrivacyLedger
from jobs.page.page import PAGE
from jobs.release.csv import REPORT, TABLE, read_csv
from jobs.release.folder import OWN_PAGE, new_folder
from jobs.release.sums import SUMS, check_folder, release_digest
from jobs.stopwatch import Stopwatch
from tests.support import jobs
from tests.support.commands import listing
from tests.support.joint import sample_rows
from tests.support.samples import AS_IT_IS, COLUMNS, columns, single_job


@pytest.fixture
def source(tmp_path: Path) -> Csv:
    return Csv(jobs.write_csv(tmp_path / "table.csv", sample_rows(60), COLUMNS))


def release(source: Csv, out: Path, options: Options = NO_OPTIONS, **changes: Any) -> Noted:
    task = jobs.task_of(single_job(**changes))
    return release_to_folder(task, source, out, options, Stopwatch(lambda name: None), Observer())


def entries(source: Csv, options: Options = NO_OPTIONS) -> list[str]:
    return [entry.state for entry in options.own_ledger(source).entries()]


def test_a_release_without_a_ledger_begins_none(source: Csv, tmp_path: Path) -> None:
    """Without DP releases it would limit nothing."""
    noted = release(source, tmp_path / "out")
    assert (noted.again, noted.charged) == (False, ())
    assert listing(tmp_path / "out") == [SUMS, TABLE, OWN_PAGE, PAGE, REPORT]
    check_folder(tmp_path / "out", (TABLE, REPORT))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "table.csv"]
    assert read_csv(tmp_path / "out" / TABLE, ["job", "age", "transfused", "surgery"]).n_rows == 60


def test_a_release_is_listed_where_a_ledger_is_named_or_there(source: Csv, tmp_path: Path) -> None:
    named = Options(ledger=tmp_path / "my.ledger")
    release(source, tmp_path / "one", named)
    assert entries(source, named) == ["released"]
    NO_OPTIONS.own_ledger(source).reserve(ChargedJob("lkc", "another", bytes(32)), None)
    release(source, tmp_path / "two")
    assert entries(source)[1:] == ["released"]


def test_the_ledger_knows_the_digest_of_what_was_written(source: Csv, tmp_path: Path) -> None:
    options = Options(ledger=tmp_path / "my.ledger")
    release(source, tmp_path / "out", options)
    digest = release_digest((tmp_path / "out" / SUMS).read_bytes())
    (entry,) = options.own_ledger(source).entries()
    assert [delivery.release for delivery in entry.deliveries] == [digest.hex()]


def test_requirements_that_cannot_be_met_leave_nothing(source: Csv, tmp_path: Path) -> None:
    options = Options(ledger=tmp_path / "my.ledger")
    with pytest.raises(PrivacyError):
        release(source, tmp_path / "out", options, model={"lkc": {"L": "2", "K": "61", "C": "1"}})
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]
    assert entries(source, options) == []


def test_a_folder_that_is_there_stays_as_it_is(source: Csv, tmp_path: Path) -> None:
    options = Options(ledger=tmp_path / "my.ledger")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").touch()
    with pytest.raises(ConfigError) as caught:
        release(source, tmp_path / "out", options)
    assert caught.value.problem.error_id == "output-exists"
    assert listing(tmp_path / "out") == ["mine"]
    assert entries(source, options) == []


def test_a_release_that_could_not_be_put_in_place_is_given_back(
    source: Csv, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reserved at the last moment; the folder is lost in the very next one."""
    options = Options(ledger=tmp_path / "my.ledger")

    class Failing:
        def __init__(self, out: Path) -> None:
            self._folder = new_folder(out)

        def __enter__(self) -> Path:
            return self._folder.__enter__()

        def __exit__(self, *_: object) -> None:
            error = OSError("the disk is gone")
            self._folder.__exit__(OSError, error, None)
            raise error

    monkeypatch.setattr(listing_of_jobs, "new_folder", Failing)
    with pytest.raises((OSError, ConfigError)):
        release(source, tmp_path / "out", options)
    assert entries(source, options) == ["returned"]
    assert not (tmp_path / "out").exists()


def test_a_release_in_place_stays_charged_whatever_the_ledger_says(
    source: Csv, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = Options(ledger=tmp_path / "my.ledger")

    def failing(*_: object, **__: object) -> None:
        raise BudgetError("io-failed", "the disk is full")

    monkeypatch.setattr(PrivacyLedger, "deliver", failing)
    with pytest.raises(BudgetError):
        release(source, tmp_path / "out", options)
    assert (tmp_path / "out" / TABLE).is_file()
    assert entries(source, options) == ["reserved"]


def test_plain_columns_stay_with_their_rows(source: Csv, tmp_path: Path) -> None:
    release(source, tmp_path / "out", columns=columns(patient=AS_IT_IS))
    names = ["patient", "job", "age", "transfused", "surgery"]
    released = read_csv(tmp_path / "out" / TABLE, names)
    rows = {row["patient"]: row["surgery"] for row in sample_rows(60)}
    cells = [
        [c.labels[code] for code in c.codes]
        for c in released.ordered(["patient", "surgery"]).columns.values()
    ]
    assert dict(zip(*cells, strict=True)) == rows


def test_a_table_that_changes_between_the_passes(
    source: Csv, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = publishing.generalized_rows

    def changed(*arguments: Any) -> Any:
        jobs.write_csv(source.path, sample_rows(59), COLUMNS)
        return original(*arguments)

    monkeypatch.setattr(publishing, "generalized_rows", changed)
    with pytest.raises(DataError, match="changed while it was read"):
        release(source, tmp_path / "out", columns=columns(patient=AS_IT_IS))
    assert not (tmp_path / "out").exists()
