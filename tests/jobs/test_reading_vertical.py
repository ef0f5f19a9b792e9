"""Pass 1 and 2 of a party in a vertical job: ids as they are compared, its own columns, plain ones by cell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from anonymize.errors import DataError
from jobs.data.sources import Csv, Source
from jobs.data.tables import Loaded, LoadedColumns
from jobs.file.bundle import Bundle
from jobs.loading import open_task
from jobs.vertical import load_columns
from tests.support import jobs
from tests.support.samples import columns, joint_job, vertical_job

ROWS = [
    ["7", "Janitor", "Y"],
    [" 8", "Lawyer", "N"],
    ["9\u00a0", "", "Y"],
]


def written(folder: Path, header: str, rows: list[list[str]]) -> Source:
    path = folder / "t.csv"
    path.write_text("\n".join([header, *(",".join(row) for row in rows)]) + "\n", encoding="utf-8")
    return Csv(path)


def bundle(**changes: Any) -> Bundle:
    return jobs.bundle_of(vertical_job(**changes))


def loaded(folder: Path, rows: list[list[str]] = ROWS, me: str = "loan", **changes: Any) -> LoadedColumns:
    return load_columns(written(folder, "patient,job,transfused", rows), open_task(bundle(**changes)), me)


def test_own_columns_and_the_class(tmp_path: Path) -> None:
    found = loaded(tmp_path)
    assert (found.rows.read, found.rows.n_dropped) == (3, 0)
    holding = found.holding
    job, age = holding.qid
    assert age is None
    assert job is not None
    assert job.tolist() == [0, 2, 3]  # an empty cell is the leaf ?
    assert holding.classes is not None
    assert holding.classes.tolist() == [0, 1, 0]
    assert holding.sensitive == (None,)


def test_two_id_columns(tmp_path: Path) -> None:
    two = columns(country={"role": "id"})
    rows = [["1", "DE", "Janitor", "Y"], ["1", "FR", "Janitor", "Y"]]
    source = written(tmp_path, "patient,country,job,transfused", rows)
    holding = load_columns(source, open_task(bundle(columns=two)), "loan").holding
    assert holding.ids == [b"\0\0\0\x011\0\0\0\x02DE", b"\0\0\0\x011\0\0\0\x02FR"]


def test_ids_that_become_equal_are_duplicates(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        loaded(tmp_path, [["A1", "Janitor", "Y"], ["\uff21\uff11", "Lawyer", "Y"]])
    assert caught.value.error_id == "data-duplicate-id"
    assert "A1" not in str(caught.value)


@pytest.mark.parametrize("missing", ["", "  ", "?", "\u00a0"])
def test_a_row_without_an_id_is_dropped(tmp_path: Path, missing: str) -> None:
    found = loaded(tmp_path, [["1", "Janitor", "Y"], [missing, "Lawyer", "N"], [missing, "Lawyer", "N"]])
    assert (found.rows.read, found.rows.n_dropped, len(found.holding.ids)) == (3, 2, 1)


def test_rows_are_dropped_for_own_columns_only(tmp_path: Path) -> None:
    source = written(
        tmp_path, "patient,age,surgery,transfused", [["1", "", "Rare", "Y"], ["2", "17", "Knee", "N"]]
    )
    found = load_columns(source, open_task(bundle()), "bank")
    assert (found.rows.n_dropped, found.holding.ids) == (1, [b"\0\0\0\x012"])
    codes = found.holding.sensitive[0]
    assert codes is not None
    assert codes.tolist() == [1]


def test_columns_of_other_parties_are_not_wanted(tmp_path: Path) -> None:
    assert loaded(tmp_path).holding.ids
    with pytest.raises(DataError) as caught:
        load_columns(written(tmp_path, "patient,job", [["1", "Janitor"]]), open_task(bundle()), "loan")
    assert (caught.value.error_id, caught.value.column) == ("data-missing-column", "transfused")
    shared = columns(transfused={"role": "class", "domain": ["Y", "N"], "shared_by": "bank"})
    source = written(tmp_path, "patient,job", [["1", "Janitor"]])
    assert load_columns(source, open_task(bundle(columns=shared)), "loan").holding.classes is None


def test_every_job_has_its_pass_1(tmp_path: Path) -> None:
    source = written(tmp_path, "patient,job,age,transfused,surgery", [["1", "Janitor", "5", "Y", "Rare"]])
    assert isinstance(open_task(bundle()).load(source, "loan"), LoadedColumns)
    assert isinstance(open_task(jobs.bundle_of(joint_job())).load(source, "hospital-a"), Loaded)
