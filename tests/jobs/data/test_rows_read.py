"""Every row that is left out is counted, and told to nobody but its owner."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jobs.data.coders import BAD, Unlisted
from jobs.data.rows_read import RowsRead, matched_words
from jobs.data.sources import Csv
from jobs.data.tables import Loaded, LoadedColumns
from jobs.errors import Problem
from jobs.loading import open_task
from tests.support import jobs
from tests.support.dp_jobs import dp_single
from tests.support.samples import COLUMNS, columns, single_job

GOOD = {"patient": "1", "job": "Mover", "age": "5", "transfused": "Y", "surgery": "Heart"}


def loaded(folder: Path, fields: dict[str, Any], *changes: dict[str, str]) -> Loaded | LoadedColumns:
    rows = [{**GOOD, "patient": str(i), **changed} for i, changed in enumerate(changes)]
    path = jobs.write_csv(folder / "t.csv", rows, COLUMNS)
    return open_task(jobs.bundle_of(fields)).load(Csv(path), "hospital-a")


def test_a_row_counts_at_every_column_that_drops_it(tmp_path: Path) -> None:
    dropping = columns(
        job={**COLUMNS["job"], "missing": "drop"}, surgery={**COLUMNS["surgery"], "missing": "drop"}
    )
    job = single_job(columns=dropping)
    changes = [{}, {"age": ""}, {"age": " ? ", "job": "?"}, {"job": ""}, {"surgery": ""}, {"age": "7"}]
    rows = loaded(tmp_path, job, *changes).rows
    assert rows == RowsRead(
        6, 2, {"job": {"missing": 2}, "age": {"missing": 2}, "surgery": {"missing": 1}}, {}
    )
    assert rows.n_dropped == 4
    assert rows.fields() == {
        "read": 6,
        "dropped": {"job": {"missing": 2}, "age": {"missing": 2}, "surgery": {"missing": 1}},
        "used": 2,
    }
    assert rows.words()[:2] == [
        "6 rows read, 4 left out, 2 used",
        "left out: 2 rows have no value (an empty cell, `?` or a text of `missing`) in job",
    ]


def test_dp_jobs_tell_missing_from_unusable(tmp_path: Path) -> None:
    rows = loaded(
        tmp_path, dp_single(), {}, {"age": ""}, {"age": "old"}, {"transfused": "maybe"}, {"age": "999"}
    ).rows
    assert (rows.read, rows.used) == (5, 2)
    assert rows.dropped == {"age": {"missing": 1, "unusable": 1}, "transfused": {"unusable": 1}}
    assert rows.outside == {"age": 2, "transfused": 1}
    assert rows.words() == [
        "5 rows read, 3 left out, 2 used",
        "left out: 1 row has no value (an empty cell, `?` or a text of `missing`) in age",
        "left out: 1 row has a value that is no number or not in the domain in age",
        "left out: 1 row has a value that is no number or not in the domain in transfused",
        "2 rows have a value outside the domain of age",
        "1 row has a value outside the domain of transfused",
    ]


def test_the_count_goes_over_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobs.data.sources._BLOCK_BYTES", 200)
    rows = loaded(tmp_path, single_job(), *[{"age": "" if i % 3 == 0 else "5"} for i in range(60)]).rows
    assert rows == RowsRead(60, 40, {"age": {"missing": 20}}, {})


def test_numbers_of_rows_are_in_no_repr(tmp_path: Path) -> None:
    found = loaded(tmp_path, single_job(), *[{}] * 4711 + [{"age": ""}] * 1234)
    assert repr(found) == "Loaded()"
    assert repr(found.rows) == "RowsRead()"
    assert repr(found.table) == "CodedTable()"


def test_values_are_in_no_repr(tmp_path: Path) -> None:
    """Neither of a table whose domains come from its data, nor of what reads them, nor of what a problem keeps."""
    values = Unlisted(BAD).begin()
    values.codes(["HIV", "Flu"])
    assert repr(values) == f"_Numbered(missing={BAD})"
    problem = Problem("data-unknown-value", "a value", private="line 3: 'HIV'", cause="/data/table.csv")
    assert "HIV" not in repr(problem)
    assert "/data" not in repr(problem)


@pytest.mark.parametrize(("n", "hinted"), [(1195, True), (1499, True), (1500, False), (3000, False)])
def test_few_matched_ids_come_with_a_hint(n: int, hinted: bool) -> None:
    words = matched_words(3000, n)
    assert words[0] == f"{n:,} of your 3,000 ids matched"
    assert len(words) == 1 + hinted
    assert json.dumps(words).count("NFKC") == hinted
    assert matched_words(1, 1) == ["1 of your 1 id matched"]
