"""Tables that DuckDB reads: names and places mean what the owner means by them, whatever DuckDB takes them for."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anonymize.errors import DataError
from jobs.data.duckdb import DuckDb
from tests.support.jobs import write_csv
from tests.support.parts import CODING, ROWS, parquet

each_kind = pytest.mark.parametrize("kind", ["parquet", "csv"])


def write(path: Path, rows: Sequence[Mapping[str, str]]) -> None:
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist([dict(row) for row in rows]), path)
    else:
        write_csv(path, rows)


def table(path: Path) -> DuckDb:
    return DuckDb("visits", path.parent, path=path)


def rows_of(source: DuckDb, *names: str) -> list[tuple[str, ...]]:
    """Return the rows of some columns, as both ways of reading have them."""
    batches = list(source.batches(list(names)))
    assert sorted(
        {cell for cells in source._distinct(list(names)) or () for cell in cells.to_pylist()}
    ) == sorted({cell for batch in batches for column in batch.columns for cell in column.to_pylist()})
    return [row for b in batches for row in zip(*(c.to_pylist() for c in b.columns), strict=True)]


def refused(source: DuckDb) -> str:
    with pytest.raises(DataError) as caught:
        source.column_names()
    return caught.value.private


@each_kind
@pytest.mark.parametrize("name", ["visits[1]", "a*b", "q?", "{a,b}", "back\\slash", "it's"])
def test_signs_of_a_pattern_in_a_name_stand_for_themselves(tmp_path: Path, name: str, kind: str) -> None:
    """A file beside fits the name as a pattern. A file that is read twice would count each person twice."""
    for number, each in enumerate((name, "visits1", "axb", "qx")):
        write(tmp_path / f"{each}.{kind}", [{"city": f"{number}"}] * 3)
    assert rows_of(table(tmp_path / f"{name}.{kind}"), "city") == [("0",)] * 3
    every = sorted(rows_of(table(tmp_path / f"*.{kind}"), "city"))
    assert every == [(city,) for city in "0123" for _ in range(3)]


def test_names_that_differ_in_case_alone(tmp_path: Path) -> None:
    """DuckDB takes both for one column, so that a requirement would be counted on another column."""
    rows = [{"Diag": "Flu", "diag": "HIV"}] * 2
    write(tmp_path / "all.parquet", rows)
    said = refused(table(tmp_path / "all.parquet"))
    assert "the columns Diag and diag, which DuckDB takes for one: rename one of them" in said
    write(tmp_path / "all.csv", rows)
    assert rows_of(table(tmp_path / "all.csv"), "diag") == [("HIV",)] * 2
    assert rows_of(table(tmp_path / "all.csv"), "Diag") == [("Flu",)] * 2


def test_headers_with_empty_and_equal_names(tmp_path: Path) -> None:
    """A program may write its index under an empty name."""
    (tmp_path / "all.csv").write_text(",age,note,note,\n0,5,a,b,\n1,6,c,d,\n")
    assert rows_of(table(tmp_path / "all.csv"), "age") == [("5",), ("6",)]


@each_kind
def test_folders_above_the_table_give_no_column(tmp_path: Path, kind: str) -> None:
    whole = tmp_path / "CITY=old" / "table"
    folder = whole / "year=20%2F25" / "ward=__HIVE_DEFAULT_PARTITION__"
    folder.mkdir(parents=True)
    write(folder / f"it.{kind}", [{"city": "Paris"}])
    assert table(whole).column_names() == ["city", "year", "ward"]
    assert rows_of(table(whole), "city", "year", "ward") == [("Paris", "20/25", "")]
    for alone in (f"it.{kind}", f"*.{kind}"):
        assert table(folder / alone).column_names() == ["city"]
        assert rows_of(table(folder / alone), "city") == [("Paris",)]


def test_folders_may_have_any_name(tmp_path: Path) -> None:
    folder = tmp_path / "wa rd.(1)+{x}'=it's=x y" / "not a key" / "b=2"
    folder.mkdir(parents=True)
    write(folder / "it.parquet", [{"city": "Paris"}])
    source = table(tmp_path)
    assert source.column_names() == ["city", "wa rd.(1)+{x}'", "b"]
    assert rows_of(source, "wa rd.(1)+{x}'", "b") == [("it's=x y", "2")]


@each_kind
def test_a_folder_named_as_a_column_of_the_files_is_refused(tmp_path: Path, kind: str) -> None:
    (tmp_path / "DIAG=Flu").mkdir()
    write(tmp_path / "DIAG=Flu" / f"all.{kind}", [{"diag": "HIV"}])
    assert "and its folders have the columns diag and DIAG" in refused(table(tmp_path))


def test_folders_that_name_different_columns_are_refused(tmp_path: Path) -> None:
    for name in ("year=2025", "month=1"):
        (tmp_path / name).mkdir()
        write(tmp_path / name / "all.parquet", [{"diag": "HIV"}])
    assert "name other columns than those of" in refused(table(tmp_path))


def test_no_row_of_the_table_is_in_an_error(tmp_path: Path) -> None:
    long = "Bob Smith " * 2000
    (tmp_path / "all.csv").write_text(f'age,city,ill\n1,"Köln",Flu\n2,Köln,Flu,"{long}\nBob Smith"\n')
    with pytest.raises(DataError) as caught:
        table(tmp_path / "all.csv").collapse(CODING)
    said = caught.value.private
    assert "Bob" not in said
    assert "CSV Error on Line: 3; Expected Number of Columns: 3 Found: 4; file = " in said
    assert len(said) < 600


def test_the_time_zone_of_the_machine_changes_no_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = pa.array([datetime(2020, 1, 19, tzinfo=UTC)], pa.timestamp("us", tz="UTC"))
    pq.write_table(pa.table({"at": at}), tmp_path / "all.parquet")
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        assert rows_of(table(tmp_path / "all.parquet"), "at") == [("2020-01-19 00:00:00+00",)]
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("after", ["_distinct", "_counted", "_count_ids"])
def test_a_table_that_changes_between_the_questions_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: str
) -> None:
    """Half of the rows would be gone, and every text would still have a number."""
    parquet(tmp_path / "all.parquet", ROWS)
    ask = getattr(DuckDb, after)

    def asked(self: DuckDb, *given: Any) -> Any:
        found = ask(self, *given)
        found = list(found) if after == "_counted" else found
        parquet(tmp_path / "all.parquet", ROWS[::2])
        return found

    monkeypatch.setattr(DuckDb, after, asked)
    coding = replace(CODING, coders={"age": CODING.coders["age"]}, ids=("ill",))
    with pytest.raises(DataError) as caught:
        table(tmp_path / "all.parquet").collapse(coding)
    assert str(caught.value) == "the table changed while it was read"
