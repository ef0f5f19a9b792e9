"""Tables in files: what is read, and what is said of a file that cannot be read."""

from __future__ import annotations

import gzip
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from anonymize.errors import DataError
from jobs.data.sources import Csv, Feather, Parquet, Source
from jobs.errors import problem_of
from jobs.file.bundle import Bundle
from jobs.loading import open_task
from jobs.reading import load_table
from tests.support import jobs
from tests.support.csv_tables import codes, lines
from tests.support.parts import latin_1_as_text
from tests.support.samples import columns, single_job


@pytest.fixture
def bundle() -> Bundle:
    return jobs.bundle_of(single_job())


@pytest.mark.parametrize("harm", ["cut the head", "cut the tail", "flip", "no gzip at all"])
def test_a_damaged_gzip(tmp_path: Path, bundle: Bundle, harm: str) -> None:
    table = lines(*([str(i), "Mover", str(i * 7919 % 97), "Y", "Heart"] for i in range(20_000)))
    packed = bytearray(gzip.compress(table.encode()))
    if harm == "flip":
        packed[40:44] = bytes(4)
    content = {
        "cut the head": packed[:60],
        "cut the tail": packed[:-20],
        "flip": packed,
        "no gzip at all": table.encode(),
    }[harm]
    (tmp_path / "table.csv.gz").write_bytes(content)
    with pytest.raises(DataError) as caught:
        load_table(Csv(tmp_path / "table.csv.gz"), open_task(bundle))
    assert caught.value.error_id == "data-unreadable"


@pytest.mark.parametrize("kind", [Csv, Parquet])
def test_a_file_that_cannot_be_read(tmp_path: Path, bundle: Bundle, kind: type[Csv] | type[Parquet]) -> None:
    (tmp_path / "text").write_text("no parquet")
    for name in ("absent", ".", *(["text"] if kind is Parquet else [])):
        with pytest.raises(DataError) as caught:
            load_table(kind(tmp_path / name), open_task(bundle))
        problem = problem_of(caught.value)
        assert problem.error_id == ("file-missing" if name == "absent" else "data-unreadable")
        assert str(tmp_path) in problem.cause + problem.private
        assert str(tmp_path) not in json.dumps(problem.shared())
        if name == "absent":  # no data: the owner's log may say where and why
            assert problem.cause == f"{tmp_path / name}: No such file or directory"
            assert caught.value.remedy.startswith("correct the path under `data` in the configuration of")


# ---- parquet


def parquet(path: Path, **changed: Any) -> Source:
    values: dict[str, Any] = {
        "patient": [1, 2, 3],
        "job": ["Janitor", None, "Lawyer"],
        "age": [5, 15.5, 99],
        "transfused": ["Y", "N", "Y"],
        "surgery": pa.array(["Heart", "Rare", "Knee"]).dictionary_encode(),
        **changed,
    }
    pyarrow.parquet.write_table(pa.table(values), path)
    return Parquet(path)


@pytest.mark.parametrize(
    "ages",
    [
        [5, 15, 99],
        [5.0, 15.5, 99.0],
        ["5", " 15.5", "99"],
        [Decimal("5.00"), Decimal("15.50"), Decimal("99.00")],
        pa.array([5, 15, 99], pa.uint8()).dictionary_encode(),
    ],
)
def test_parquet_says_the_same_as_csv(tmp_path: Path, bundle: Bundle, ages: Any) -> None:
    loaded = load_table(parquet(tmp_path / "t.parquet", age=ages), open_task(bundle))
    assert codes(loaded.table) == [(0, 0, 0), (2, 9, 1), (3, 1, 5)]


def test_parquet_nulls_are_missing_cells(tmp_path: Path, bundle: Bundle) -> None:
    loaded = load_table(parquet(tmp_path / "t.parquet", age=pa.array([5, None, 7])), open_task(bundle))
    assert (loaded.rows.read, loaded.rows.n_dropped) == (3, 1)
    with pytest.raises(DataError) as caught:
        load_table(parquet(tmp_path / "t.parquet", transfused=["Y", None, "N"]), open_task(bundle))
    assert caught.value.error_id == "data-missing-value"


@pytest.mark.parametrize(
    ("changed", "error_id"),
    [
        ({"age": [[5], [6], [7]]}, "data-unreadable"),
        ({"age": [True, False, True]}, "data-outside-domain"),
        ({"job": [1, 2, 3]}, "data-unknown-value"),
        ({"patient": [1, 1, 2]}, "data-duplicate-id"),
    ],
)
def test_parquet_with_bad_columns(
    tmp_path: Path, bundle: Bundle, changed: dict[str, Any], error_id: str
) -> None:
    with pytest.raises(DataError) as caught:
        load_table(parquet(tmp_path / "t.parquet", **changed), open_task(bundle))
    assert caught.value.error_id == error_id


@pytest.mark.parametrize("kind", [Parquet, Feather])
@pytest.mark.parametrize("cells", [[[1]], [{"a": 1}], [b"\xff"]])
def test_a_column_without_texts_is_named(
    tmp_path: Path, kind: type[Parquet | Feather], cells: list[Any]
) -> None:
    path = tmp_path / "table"
    write = pyarrow.parquet.write_table if kind is Parquet else pyarrow.feather.write_feather
    write(pa.table({"notes": cells}), path)
    with pytest.raises(DataError) as caught:
        list(kind(path).batches(["notes"]))
    assert caught.value.private.startswith(f"{path}: column notes has values of type ")


@pytest.mark.parametrize("quote", ["", '"'])
def test_a_value_may_be_long(tmp_path: Path, quote: str) -> None:
    """Python's reader of CSV, which looks at the first lines, takes 131,072 characters."""
    values = ["x" * 200_000, "y", "z" * 200_000]
    (tmp_path / "t.csv").write_text(
        "\n".join(f"{quote}{value}{quote},1" for value in ["notes", *values]) + "\n"
    )
    batches = list(Csv(tmp_path / "t.csv").batches(["notes"]))
    assert [cell for batch in batches for cell in batch.column(0).to_pylist()] == values


HOSTILE = {
    **{kind: [None, 0, 7, 7, None, 127] for kind in ("int8", "int16", "int32", "uint8", "uint16", "uint32")},
    "int64": [-(2**63), 2**63 - 1, None, 2**53 + 1, 0, -1],
    "uint64": [2**64 - 1, 2**53 + 1, None, 0, 0, 1],
    "float32": [0.1, None, float("nan"), -0.0, 0.0, 16777217.0],
    "float64": [0.1, None, float("nan"), -0.0, 0.0, 1e300, 5e-324, float("-inf"), 2.5, 123456789012345680.0],
    "bool": [True, None, False],
    "string": ["", None, "?", " 5", "a", "a"],
    "date32": [0, None, 20_000],
}
HOSTILE_TYPES = {"bool": pa.bool_(), "string": pa.string(), "date32": pa.date32()}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_column_of_any_type_is_the_text_of_each_of_its_cells(tmp_path: Path, kind: str) -> None:
    """As if every cell had been written as text first, and a float64 of -0 as 0."""
    column = pa.array(HOSTILE[kind] * 2, HOSTILE_TYPES.get(kind) or getattr(pa, kind)())
    expected = ["" if cell is None else cell for cell in column.cast(pa.string()).to_pylist()]
    if kind == "float64":
        expected = ["0" if cell == "-0" else cell for cell in expected]
    pyarrow.parquet.write_table(pa.table({"cells": column}), tmp_path / "t.parquet", row_group_size=7)
    batches = list(Parquet(tmp_path / "t.parquet").batches(["cells"]))
    assert [cell for batch in batches for cell in batch.column(0).to_pylist()] == expected


def test_text_in_a_parquet_file_that_is_no_utf_8(tmp_path: Path) -> None:
    source = Parquet(tmp_path / latin_1_as_text(tmp_path))
    with pytest.raises(DataError) as caught:
        list(source.batches(["age", "city"]))
    assert caught.value.error_id == "data-unreadable"
    assert "column city has text that is no UTF-8; write the file again" in caught.value.private
    assert "Kiel" not in caught.value.private


def test_whole_numbers_beside_a_missing_cell_are_written_in_digits(tmp_path: Path) -> None:
    """As pandas writes ids of 11 digits of which one is missing. The text is compared with ids of a CSV."""
    numbers = [24_019_755_831, None, 2**53 - 1, -(10**15), 1e10]
    pyarrow.parquet.write_table(pa.table({"id": pa.array(numbers, pa.float64())}), tmp_path / "t.parquet")
    (batch,) = Parquet(tmp_path / "t.parquet").batches(["id"])
    texts = ["24019755831", "", "9007199254740991", "-1000000000000000", "10000000000"]
    assert batch.column(0).to_pylist() == texts


def test_parquet_column_names_may_have_dots(tmp_path: Path) -> None:
    job = jobs.bundle_of(
        single_job(goal="general", columns={"a.b": columns()["job"], "a": columns()["age"]}, name="dots")
    )
    pyarrow.parquet.write_table(pa.table({"a": [5], "a.b": ["Mover"], "c": [1]}), tmp_path / "t.parquet")
    assert codes(load_table(Parquet(tmp_path / "t.parquet"), open_task(job)).table) == [(1, 0, 0)]
