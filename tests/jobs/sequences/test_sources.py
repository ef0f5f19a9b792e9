"""Sequences whose table is in a database or in many files: the same paths, and the same release, as of the CSV."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.csv
import pyarrow.parquet
import pytest

from anonymize.errors import DataError
from coordinator.run import run_alone
from jobs.data.postgres import Postgres
from jobs.data.sources import Csv, Source
from jobs.data.sql.duck_tables import DuckDb
from jobs.errors import problem_of
from jobs.release_csv import TABLE
from jobs.sequences.reading import load_tracks
from tests.support import jobs
from tests.support.databases import DSN_ENV, Database
from tests.support.wards import movements, table, wards_job

SOURCES = ("postgres", "postgres, other order", "parquet", "csv files")
HARD = ("g07,ER,2.5,flu", " g7,XR,3,HIV", "x,,1,flu", "y,ER,?,HIV", "g7 ,ICU,7,HIV")
"""Ids that differ in a zero or in blanks alone, and readings without a place or a time."""


def moved(kind: str, file: Csv, database: Database) -> Source:
    """The table of a file in a database or in other files."""
    if kind.startswith("postgres"):
        database.load(file.path)
        if "order" in kind:
            database.run("CREATE TABLE again AS SELECT * FROM patients ORDER BY md5(patients::text)")
            return Postgres(DSN_ENV, table="public.again")
        return Postgres(DSN_ENV, query="SELECT * FROM patients")
    folder = file.path.parent / "parts"
    folder.mkdir()
    if kind == "csv files":
        header, *lines = file.path.read_text().splitlines(keepends=True)
        for i in range(3):
            (folder / f"{i}.csv").write_text("".join([header, *lines[i::3]]))
    else:
        text = pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(file.column_names(), "string"))
        whole = pyarrow.csv.read_csv(file.path, convert_options=text)
        for i in range(0, whole.num_rows, 50):
            pyarrow.parquet.write_table(whole.slice(i, 50), folder / f"{i:05d}.parquet")
    return DuckDb(folder, "200MB")


def lines_of(n: int) -> list[str]:
    return [*HARD, *(line for record in movements(n) for line in record)]


@pytest.mark.parametrize("kind", SOURCES)
def test_the_readings_of_a_record_are_found_wherever_they_stand(
    tmp_path: Path, database: Database, kind: str
) -> None:
    file, task = table(tmp_path, *lines_of(150)), jobs.task_of(wards_job())
    expected, found = load_tracks(file, task), load_tracks(moved(kind, file, database), task)
    assert found.canonical() == expected.canonical()
    assert found.rows == expected.rows
    assert (found.rows.records, len(found.rows.fields()["dropped"])) == (152, 2)


@pytest.mark.parametrize("kind", SOURCES)
def test_a_release_is_that_of_the_file(tmp_path: Path, database: Database, kind: str) -> None:
    file, task = table(tmp_path, *lines_of(60)), jobs.task_of(wards_job())
    run_alone(task, file, tmp_path / "csv")
    run_alone(task, moved(kind, file, database), tmp_path / "out")
    assert (tmp_path / "out" / TABLE).read_bytes() == (tmp_path / "csv" / TABLE).read_bytes()


@pytest.mark.parametrize("kind", ["postgres", "parquet"])
@pytest.mark.parametrize(
    ("line", "error_id"),
    [
        ("1,OR,2,flu", "data-unknown-value"),
        ("1,ER,24,flu", "data-outside-domain"),
        (",ER,2,flu", "data-missing-id"),
        ("0,ER,23,HIV", "data-record-varies"),
    ],
)
def test_a_reading_that_is_refused_is_told_to_the_owner_alone(
    tmp_path: Path, database: Database, kind: str, line: str, error_id: str
) -> None:
    first = ["0,ER,1,flu", *lines_of(10)]
    file, task = table(tmp_path, *first, line), jobs.task_of(wards_job())
    told: list[Any] = []
    for source in (file, moved(kind, file, database)):
        with pytest.raises(DataError) as caught:
            load_tracks(source, task)
        told.append(problem_of(caught.value))
    assert [problem.error_id for problem in told] == [error_id] * 2
    assert told[0].shared() == told[1].shared()
    assert ("in a row" if kind == "postgres" else "row ") in told[1].private
