"""Tables in memory give the release of the same table as CSV, and unfit tables are refused in words."""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import jointcut as jc
from anonymize.errors import DataError
from jobs.data.wording import AS_WRITTEN
from jointcut.api.frames import arrow_of, frame_of
from tests.support.visits import as_csv, rows_of, visits, visits_job


def as_numpy_strings(table: pd.DataFrame) -> pd.DataFrame:
    return table.astype(dict.fromkeys(("sex", "place", "day", "result"), object))


def as_categories(table: pd.DataFrame) -> pd.DataFrame:
    return table.astype({"sex": "category", "place": "category", "result": "category", "age": "Int64"})


def as_days(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(day=pd.to_datetime(table["day"]))


def as_texts(table: pd.DataFrame) -> pd.DataFrame:
    return table.astype({"age": "Int64"}).astype("string")


FORMS: dict[str, Callable[[pd.DataFrame], Any]] = {
    "pandas": lambda table: table,
    "pandas, object": as_numpy_strings,
    "pandas, categories": as_categories,
    "pandas, days": as_days,
    "pandas, texts": as_texts,
    "pandas, index": lambda table: table.set_index(pd.Index(range(7, 7 + len(table)), name="row")),
    "pandas, pieces": lambda table: pd.concat([table[:20], table[20:]]),
    "polars": pl.DataFrame,
    "polars, categories": lambda table: pl.DataFrame(table).with_columns(pl.col("sex").cast(pl.Categorical)),
    "arrow": lambda table: pa.table({name: list(map(present, table[name])) for name in table}),
}


def present(value: Any) -> Any:
    return None if pd.isna(value) else value


@pytest.fixture(scope="module")
def from_csv(tmp_path_factory: pytest.TempPathFactory) -> jc.Result:
    """The release of the table as CSV."""
    table = as_csv(tmp_path_factory.mktemp("csv") / "table.csv", visits())
    return jc.anonymize(table, visits_job())


@pytest.mark.parametrize("form", FORMS)
def test_a_table_in_memory_gives_the_release_of_the_csv(form: str, from_csv: jc.Result) -> None:
    result = jc.anonymize(FORMS[form](visits()), visits_job())
    assert rows_of(result.folder) == rows_of(from_csv.folder)
    assert public(result.report) == public(from_csv.report)


def public(report: dict[str, Any]) -> dict[str, Any]:
    """Return a report without time and files: rows are shuffled."""
    return {key: value for key, value in report.items() if key not in ("finished", "cost", "files")}


@pytest.mark.parametrize("form", FORMS)
def test_every_cell_has_the_text_of_the_csv(form: str, tmp_path: Path) -> None:
    """Cell by cell; a CSV of pandas writes whole numbers beside a missing number with a fraction."""
    expected = pl.read_csv(
        as_csv(tmp_path / "table.csv", visits().astype({"age": "Int64"})), infer_schema=False
    )
    with frame_of(FORMS[form](visits()), AS_WRITTEN, None) as source:
        (batch,) = source.batches(expected.columns)
    for name in expected.columns:
        texts = [text or None for text in batch.column(name).to_pylist()]
        if name == "weight":
            assert list(map(float, texts)) == list(map(float, expected[name]))
        else:
            assert texts == expected[name].to_list(), name


def test_no_file_of_a_table_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other processes have folders in the usual place, so this test has a place of its own."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with frame_of(visits(), AS_WRITTEN, None) as source:
        assert source.path.parent.stat().st_mode & 0o777 == 0o700
    result = jc.anonymize(visits(), visits_job())
    assert result.folder.parent.stat().st_mode & 0o777 == 0o700
    with pytest.raises(jc.Error):
        jc.anonymize(visits().drop(columns="sex"), visits_job())
    del result
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def test_texts_of_every_type() -> None:
    table = pa.table(
        {
            "whole": pa.array([1, None], pa.uint8()),
            "real": pa.array([0.1, None], pa.float32()),
            "exact": pa.array([Decimal("1.50"), None], pa.decimal128(5, 2)),
            "truth": [True, None],
            "day": [date(2024, 1, 31), None],
            "moment": [datetime(2024, 1, 31, 10), None],
            "clock": pa.array([time(10, 30), None], pa.time32("s")),
            "nothing": pa.nulls(2),
            "code": pa.array(["a", None]).dictionary_encode(),
            "number code": pa.array([7, None]).dictionary_encode(),
            "pieces": pa.chunked_array([["b"], [None]]),
        }
    )
    with frame_of(table, AS_WRITTEN, None) as source:
        (batch,) = source.batches(table.column_names)
    texts = ["1", "0.1", "1.50", "true", "2024-01-31", "2024-01-31 10:00:00", "10:30:00", "", "a", "7", "b"]
    assert [[column[0].as_py(), column[1].as_py()] for column in batch.columns] == [
        [text, ""] for text in texts
    ]


def moments(*texts: str) -> pd.DataFrame:
    return pd.DataFrame({"t": pd.to_datetime(list(texts))})


def test_the_values_of_a_column_are_a_domain_of_the_column(tmp_path: Path) -> None:
    """With a missing cell, pandas has floats in place of whole numbers."""
    table = visits().assign(flag=[float(row % 3) or None for row in range(len(visits()))])
    named = jc.Column(role="qid", suppress=table["flag"].dropna().unique())
    found = jc.anonymize(table, visits_job().with_(columns={"flag": named}), tmp_path / "out")
    assert set(found.table["flag"]) <= {"1", "2", "*", "?"}


def test_moments_are_days_if_all_are() -> None:
    assert arrow_of(moments("2024-01-31", "2024-02-01")).column("t").type == pa.date32()
    assert arrow_of(moments("2024-01-31 10:00", "2024-02-01 00:00")).column("t").type == pa.timestamp("s")


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_the_last_moment_of_a_day_stays_on_the_day(unit: str) -> None:
    moment = pd.Timestamp("1950-03-01 23:59:59.999").as_unit("ns").to_numpy().astype(f"datetime64[{unit}]")
    for table in (pa.table({"t": pa.array([moment])}), pd.DataFrame({"t": [moment]})):
        assert arrow_of(table).column("t").to_pylist() == [datetime(1950, 3, 1, 23, 59, 59)]


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64()])
def test_nan_is_a_missing_cell_in_every_table(kind: pa.DataType) -> None:
    cells = pa.array(np.array([1, np.nan, 2], dtype=kind.to_pandas_dtype()), from_pandas=False)
    codes = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), cells)
    for table in (
        pa.table({"x": cells}),
        pa.table({"x": codes}),
        pl.DataFrame({"x": [1.0, float("nan"), 2.0]}),
    ):
        column = arrow_of(table).column("x")
        assert column.to_pylist() == [1, None, 2]


HOSTILE: dict[str, tuple[Any, str]] = {
    "number as name": (pd.DataFrame({1: ["a"]}), "is of type int"),
    "names twice": (pd.DataFrame([["a", "b"]], columns=["x", "x"]), "two columns have the name x"),
    "index of levels": (
        visits().set_index(["sex", "place"]),
        "index of several levels",
    ),
    "names of levels": (
        pd.DataFrame([["a"]], columns=pd.MultiIndex.from_tuples([("x", "y")])),
        "name each column by one text: df.columns = ",
    ),
    "mixed": (pd.DataFrame({"sex": ["a", 1]}), "column sex has values of no type"),
    "complex": (pd.DataFrame({"sex": [1j]}), "column sex has values of no type"),
    "lists": (pd.DataFrame({"sex": [[1]]}), "column sex has values of type list"),
    "bytes": (pa.table({"sex": [b"a"]}), "column sex has values of type binary"),
    "periods": (pd.DataFrame({"sex": pd.period_range("2024", periods=2)}), "column sex has values of type"),
    "zone": (pd.DataFrame({"sex": pd.to_datetime(["2024-01-01T00:00Z"])}), "moments with a time zone"),
    "structs": (pl.DataFrame({"sex": [{"a": 1}]}), "column sex has values of type struct"),
    "wide numbers": (
        pl.DataFrame({"x": pl.Series([1]).cast(pl.Int128)}),
        "the table has a column of a type that Arrow does not know",
    ),
    "objects": (
        pl.DataFrame({"sex": [object()]}, schema={"sex": pl.Object}),
        "column sex has values of type fixed_size_binary",
    ),
    "arrow twice": (pa.table([[1], [2]], names=["x", "x"]), "two columns have the name x"),
    "dict": ({"x": [1]}, "no table can be read from a dict"),
    "array": (np.zeros((2, 2)), "no table can be read from a ndarray"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_unfit_tables_are_refused(case: str) -> None:
    table, words = HOSTILE[case]
    with pytest.raises(jc.Error) as refused:
        jc.anonymize(table, visits_job())
    assert words in str(refused.value)
    assert "What to do: " in str(refused.value)
    assert refused.value.id in ("data-unreadable", "usage")
    assert refused.value.remedy


def test_a_column_that_the_job_does_not_name_may_be_anything(tmp_path: Path) -> None:
    """Its values go into no file, and its name into the advice on a missing column."""
    beside = visits().assign(shape=[[1, "secret"]] * len(visits()), note="secret")
    result = jc.anonymize(beside, visits_job())
    assert rows_of(result.folder) == rows_of(jc.anonymize(visits(), visits_job()).folder)
    with frame_of(beside, AS_WRITTEN, None, lambda name: name in visits()) as source:
        assert b"secret" not in source.path.read_bytes()
    with pytest.raises(jc.Error) as missing:
        jc.anonymize(beside.rename(columns={"sex": "gender"}), visits_job())
    assert missing.value.id == "data-missing-column"
    assert "gender" in missing.value.private


def test_texts_of_several_types_keep_missing_cells() -> None:
    df = pd.DataFrame({"x": pd.Series([1, "a", None, 2.5], dtype=object)})
    with pytest.raises(DataError) as caught:
        arrow_of(df)
    _, _, remedy = caught.value.remedy.partition(": ")
    exec(remedy, {"df": df})  # noqa: S102  as a user would
    assert arrow_of(df).column("x").to_pylist() == ["1", "a", None, "2.5"]


@pytest.mark.parametrize("table", [visits().head(0), pl.DataFrame(visits().head(0)), pd.DataFrame()])
def test_an_empty_table_is_refused(table: Any) -> None:
    with pytest.raises(jc.Error) as refused:
        jc.anonymize(table, visits_job())
    assert refused.value.id == "data-empty"


def test_an_error_shows_no_value() -> None:
    table = visits().replace({"place": {"east": "a secret"}})
    with pytest.raises(jc.Error) as refused:
        jc.anonymize(table, visits_job())
    error = refused.value
    assert (error.id, error.column, error.exit_code) == ("data-unknown-value", "place", 7)
    assert "secret" not in f"{error} {error!r} {error.message} {error.where}"
    assert "a secret" in error.private
    assert error.__cause__ is None
    assert error.__suppress_context__


def test_words_of_the_job_apply_to_a_table_in_memory() -> None:
    """A decimal comma is for texts: a number has no sign."""
    data = {"path": "table.csv", "missing": ["-"], "rename": {"Sex": "sex"}, "decimal": ","}
    plain = jc.anonymize(visits(), visits_job())
    worded = jc.anonymize(
        visits().rename(columns={"sex": "Sex"}).fillna({"place": "-"}), visits_job(data=data)
    )
    assert rows_of(worded.folder) == rows_of(plain.folder)
    texts = visits().astype({"weight": "string", "age": "string"}).rename(columns={"sex": "Sex"})
    texts["weight"] = texts["weight"].str.replace(".", ",")
    texts["age"] = texts["age"].str.replace(".0", "")
    assert rows_of(jc.anonymize(texts, visits_job(data=data)).folder) == rows_of(plain.folder)
