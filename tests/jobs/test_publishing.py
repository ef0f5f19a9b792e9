"""Pass 2: labels of the cut, and columns as they stand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anonymize.cut import top
from anonymize.errors import DataError
from jobs.data import sources
from jobs.data.sources import Csv, Source
from jobs.file.bundle import Bundle
from jobs.loading import open_task
from jobs.publishing import cell_columns, generalized_rows
from jobs.reading import load_table
from jobs.vertical import load_columns
from tests.support import jobs
from tests.support.csv_tables import GOOD, HEADER, lines
from tests.support.samples import columns, single_job, vertical_job

SECRET = "Zebra-4711"


def second_pass(bundle: Bundle, path: Path) -> list[tuple[str, ...]]:
    source = Csv(path)
    schema = load_table(source, open_task(bundle)).table.schema
    rows: list[tuple[str, ...]] = []
    for batch in generalized_rows(source, open_task(bundle), schema, top(schema)):
        assert batch.schema.names == list(bundle.job.published)
        rows += zip(*(column.to_pylist() for column in batch.columns), strict=True)
    return rows


def test_the_second_pass_publishes_labels_and_plain_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "_BLOCK_BYTES", 100)
    bundle = jobs.bundle_of(single_job(columns=columns(ward={"role": "plain"})))
    rows = [[str(i), "Mover", "5" if i % 3 else "?", "Y", "Heart", f"w{i}, \n"] for i in range(30)]
    (tmp_path / "t.csv").write_text(lines(*rows, header=[*HEADER, "ward"]))
    expected = [("Any", "[0,100)", "Y", "Heart", f"w{i}, \n") for i in range(30) if i % 3]
    assert second_pass(bundle, tmp_path / "t.csv") == expected


def test_both_passes_read_a_missing_cell_as_the_same_value(tmp_path: Path) -> None:
    """An empty class cell is the listed `?`: pass 2 must publish what pass 1 counted."""
    changed = columns(
        transfused={"role": "class", "domain": ["Y", "?"]},
        surgery={"role": "sensitive", "domain": ["Heart", ""]},
        ward={"role": "plain"},
    )
    bundle = jobs.bundle_of(single_job(columns=changed))
    (tmp_path / "t.csv").write_text(
        lines(["1", "Mover", "5", "", "?", "w"], ["2", "Mover", "5", "?", "", ""], header=[*HEADER, "ward"])
    )
    assert second_pass(bundle, tmp_path / "t.csv") == [
        ("Any", "[0,100)", "?", "", "w"),
        ("Any", "[0,100)", "?", "", ""),
    ]


def test_a_table_that_changes_between_the_passes_is_noticed(tmp_path: Path) -> None:
    bundle = jobs.bundle_of(single_job(columns=columns(transfused={"role": "class"}, ward={"role": "plain"})))
    source, header = Csv(tmp_path / "t.csv"), [*HEADER, "ward"]
    source.path.write_text(lines([*GOOD, "w"], header=header))
    schema = load_table(source, open_task(bundle)).table.schema
    source.path.write_text(lines([*GOOD[:3], SECRET, "Heart", "w"], header=header))
    with pytest.raises(DataError) as caught:
        list(generalized_rows(source, open_task(bundle), schema, top(schema)))
    assert caught.value.error_id == "data-unknown-value"
    assert SECRET not in str(caught.value)


# ---- vertical jobs


def written(folder: Path, header: str, rows: list[list[str]]) -> Source:
    path = folder / "t.csv"
    path.write_text("\n".join([header, *(",".join(row) for row in rows)]) + "\n", encoding="utf-8")
    return Csv(path)


def vertical(**changes: Any) -> Bundle:
    return jobs.bundle_of(vertical_job(**changes))


PLAIN = {
    "columns": columns(ward={"role": "plain"}, note={"role": "plain"}),
    "parties": {
        "loan": {"address": "127.0.0.1:7401", "columns": ["job", "note"]},
        "bank": {"address": "127.0.0.1:7402", "columns": ["age", "ward", "surgery"]},
    },
}


def test_what_is_published_by_cell(tmp_path: Path) -> None:
    """Sensitive and plain columns of the rows asked for, in their order; dropped rows do not shift it."""
    rows = [
        ["1", "12", "Rare", "Y", "north"],
        ["?", "13", "Heart", "Y", "lost"],
        ["2", "", "Heart", "Y", "lost too"],
        ["3", "14", "Knee", "N", ""],
        ["4", "15", "Heart", "N", "south"],
    ]
    source = written(tmp_path, "patient,age,surgery,transfused,ward", rows)
    job = vertical(**PLAIN)
    holding = load_columns(source, open_task(job), "bank").holding
    assert len(holding.ids) == 3
    batch = cell_columns(source, open_task(job), "bank", holding, np.array([2, 0, 1, 2]))
    assert batch.schema.names == ["surgery", "ward"]
    assert batch.column("surgery").to_pylist() == ["Heart", "Rare", "Knee", "Heart"]
    assert batch.column("ward").to_pylist() == ["south", "north", "", "south"]


def test_only_plain_columns(tmp_path: Path) -> None:
    source = written(
        tmp_path, "patient,job,transfused,note", [["1", "Lawyer", "Y", "a"], ["2", "Lawyer", "N", "b"]]
    )
    job = vertical(**PLAIN)
    holding = load_columns(source, open_task(job), "loan").holding
    assert cell_columns(source, open_task(job), "loan", holding, np.array([1, 0])).to_pydict() == {
        "note": ["b", "a"]
    }


def test_plain_columns_of_many_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "_BLOCK_BYTES", 64)
    rows = [[str(i), "Lawyer", "YN"[i % 2], f"note {i % 7}"] for i in range(40)]
    source = written(tmp_path, "patient,job,transfused,note", rows)
    assert len(list(source.batches(["note"]))) > 5
    job = vertical(**PLAIN)
    holding = load_columns(source, open_task(job), "loan").holding
    wanted = np.arange(39, -1, -3)
    batch = cell_columns(source, open_task(job), "loan", holding, wanted)
    assert batch.column("note").to_pylist() == [f"note {i % 7}" for i in wanted]


def test_a_table_that_changed_is_refused(tmp_path: Path) -> None:
    rows = [["1", "Lawyer", "Y", "a"], ["2", "Mover", "N", "b"], ["3", "Lawyer", "N", "c"]]
    header = "patient,job,transfused,note"
    job = vertical(**PLAIN)
    holding = load_columns(written(tmp_path, header, rows), open_task(job), "loan").holding
    others = {
        "shorter": rows[:1],
        "in another order": [rows[0], rows[2], rows[1]],
        "other people": [*rows[:2], ["4", *rows[2][1:]]],
        "another value": [*rows[:2], ["3", "Mover", "N", "c"]],
        "another class": [*rows[:2], ["3", "Lawyer", "Y", "c"]],
    }
    for other in others.values():
        with pytest.raises(DataError, match="the table changed during the job"):
            cell_columns(written(tmp_path, header, other), open_task(job), "loan", holding, np.array([0, 1]))
    again = cell_columns(written(tmp_path, header, rows), open_task(job), "loan", holding, np.array([2, 0]))
    assert again.column("note").to_pylist() == ["c", "a"]
