"""Pass 1: no row is dropped, whatever its cells hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from jobs.dp.settings import SYNTHETIC_TABLE
from jobs.reading import load_table
from jobs.release.csv import read_csv
from tests.support import jobs
from tests.support.joint import sample_rows
from tests.support.samples import COLUMNS
from tests.support.synthetic_jobs import own_columns, synthesize, synthetic_single, write_table

WELL = {"patient": "1", "job": "Mover", "age": "15", "transfused": "N", "surgery": "Knee"}
OTHER = {"other": "Lawyer"}


def codes(tmp_path: Path, rows: list[dict[str, str]], **changes: Any) -> tuple[list[list[int]], Any]:
    task = jobs.task_of(synthetic_single(columns=own_columns(**changes)))
    loaded = load_table(write_table(tmp_path, rows), task)
    table = loaded.table
    found = np.repeat(np.stack([*table.qid, table.axis(0)], axis=1), table.weights, axis=0)
    return sorted(found.tolist()), loaded.rows


def test_every_cell_has_its_leaf(tmp_path: Path) -> None:
    """Job, age, surgery, class: `?` comes after the leaves of a taxonomy, a missing number after the grid."""
    task = jobs.task_of(synthetic_single())
    assert [column.n_leaves for column in task.schema.qid] == [4, 11, 4]
    odd = [
        {"job": "?", "age": "", "surgery": ""},
        {"job": "Baker", "age": "old"},
        {"age": "-5"},
        {"age": "1e9"},
    ]
    found, rows = codes(tmp_path, [WELL, *({**WELL, **each} for each in odd)])
    assert found == [[1, 0, 1, 1], [1, 1, 1, 1], [1, 9, 1, 1], [3, 10, 1, 1], [3, 10, 3, 1]]
    assert (rows.read, rows.used, rows.dropped) == (5, 5, {})


def test_an_unknown_value_counts_as_other_where_the_job_has_one(tmp_path: Path) -> None:
    found, _ = codes(
        tmp_path, [{**WELL, "job": "Baker"}, {**WELL, "job": ""}], job={**COLUMNS["job"], **OTHER}
    )
    assert [each[0] for each in found] == [2, 3]


def test_a_missing_class_is_other_or_the_first(tmp_path: Path) -> None:
    rows = [{**WELL, "transfused": "?"}, {**WELL, "transfused": "maybe"}]
    assert [each[3] for each in codes(tmp_path, rows)[0]] == [0, 0]
    other = {**COLUMNS["transfused"], "other": "N"}
    assert [each[3] for each in codes(tmp_path, rows, transfused=other)[0]] == [1, 1]


def test_the_owner_is_told_of_numbers_outside_and_not_of_missing_ones(tmp_path: Path) -> None:
    rows = [WELL, {**WELL, "age": ""}, {**WELL, "age": "?"}, {**WELL, "age": "200"}, {**WELL, "age": "old"}]
    assert codes(tmp_path, rows)[1].outside == {"age": 2}


def never(name: str, **more: str) -> dict[str, Any]:
    return {**own_columns()[name], "missing": "never", **more}


def test_a_column_that_is_never_missing_has_no_value_for_it(tmp_path: Path) -> None:
    changed = {name: never(name) for name in ("job", "age", "surgery")}
    task = jobs.task_of(synthetic_single(columns=own_columns(**changed)))
    assert [column.n_leaves for column in task.schema.qid] == [3, 10, 3]
    odd = [{"job": "?", "age": "", "surgery": ""}, {"job": "Baker", "age": "old", "surgery": "Eye"}]
    found, rows = codes(tmp_path, [WELL, *({**WELL, **each} for each in odd)], **changed)
    assert found == [[0, 0, 0, 1], [0, 0, 0, 1], [1, 1, 1, 1]]
    assert (rows.used, rows.outside) == (3, {"job": 2, "age": 2, "surgery": 2})


def test_a_missing_cell_of_such_a_column_is_other_where_the_job_has_one(tmp_path: Path) -> None:
    rows = [{**WELL, "job": "?"}, {**WELL, "job": "Baker"}]
    assert [each[0] for each in codes(tmp_path, rows, job=never("job", **OTHER))[0]] == [2, 2]


def test_no_row_of_the_table_has_a_missing_cell_there(tmp_path: Path) -> None:
    """At an epsilon of which a large share of the rows would be `?` otherwise."""
    changed = own_columns(job=never("job"), age=never("age"))
    task = jobs.task_of(synthetic_single({"epsilon": "0.05"}, columns=changed))
    synthesize(task, write_table(tmp_path, sample_rows(900)), tmp_path / "out")  # far more than the noise
    table = read_csv(tmp_path / "out" / SYNTHETIC_TABLE, task.job.published)
    assert table.n_rows
    assert not {"?", ""} & {*table.columns["job"].labels, *table.columns["age"].labels}
