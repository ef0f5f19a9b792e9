"""Arrow (Feather) files: the same table as in Parquet, and what is said of damaged ones."""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from anonymize.errors import DataError
from jobs.data.arrow_file import ArrowFile
from jobs.data.by_path import source_of_path
from jobs.data.sources import FileSource, Parquet
from jobs.errors import problem_of
from jobs.loading import open_task
from jobs.reading import load_table
from tests.support import jobs
from tests.support.csv_tables import codes
from tests.support.samples import single_job

N = 70_001
"""More rows than are read at a time."""


def cells() -> pa.Table:
    """Columns of many types, with nulls."""
    return pa.table(
        {
            "number": pa.array([None if i % 7 == 0 else i - 9 for i in range(N)], pa.int64()),
            "double": pa.array([i / 8 for i in range(N)]),
            "decimal": pa.array([Decimal(i) / 4 for i in range(N)], pa.decimal128(12, 2)),
            "text": pa.array([f"ü{i % 5}" if i % 3 else None for i in range(N)]).dictionary_encode(),
            "day": pa.array([i % 400 for i in range(N)], pa.date32()),
        }
    )


def texts(source: FileSource, names: Sequence[str]) -> dict[str, list[str]]:
    read: dict[str, list[str]] = pa.Table.from_batches(source.batches(names)).to_pydict()
    return read


@pytest.mark.parametrize("compression", ["uncompressed", "lz4", "zstd"])
@pytest.mark.parametrize("rows", [N, 999])
def test_it_has_the_texts_of_parquet_in_the_order_asked_for(
    tmp_path: Path, compression: str, rows: int
) -> None:
    pyarrow.parquet.write_table(cells(), tmp_path / "t.parquet")
    pyarrow.feather.write_feather(cells(), str(tmp_path / "t.arrow"), compression, chunksize=rows)
    found = ArrowFile(tmp_path / "t.arrow")
    assert source_of_path(tmp_path / "t.arrow") == found
    assert found.column_names() == cells().column_names
    for names in (["text", "number"], ["day", "decimal", "double"]):
        assert texts(found, names) == texts(Parquet(tmp_path / "t.parquet"), names)


def test_a_job_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "t.feather"
    write(path, age=[5, 15, 99])
    loaded = load_table(source_of_path(path), open_task(jobs.bundle_of(single_job())))
    assert codes(loaded.table) == [(0, 0, 0), (2, 9, 1), (3, 1, 5)]


def write(path: Path, **changed: Any) -> None:
    values = {
        "patient": [1, 2, 3],
        "job": ["Janitor", None, "Lawyer"],
        "age": [5, 15, 99],
        "transfused": ["Y", "N", "Y"],
        "surgery": ["Heart", "Rare", "Knee"],
        **changed,
    }
    pyarrow.feather.write_feather(pa.table(values), str(path), "uncompressed")


def refused(path: Path) -> DataError:
    with pytest.raises(DataError) as caught:
        load_table(ArrowFile(path), open_task(jobs.bundle_of(single_job())))
    assert str(path) not in json.dumps(problem_of(caught.value).shared())
    return caught.value


@pytest.mark.parametrize("content", [b"", b"no Arrow", b"ARROW1\0\0", b"FEA1" + bytes(60)])
def test_what_is_no_arrow_file(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "t.arrow").write_bytes(content)
    error = refused(tmp_path / "t.arrow")
    assert error.error_id == "data-unreadable"
    assert str(tmp_path / "t.arrow") in error.private


def test_a_text_that_would_be_read_from_beside_the_file_is_refused(tmp_path: Path) -> None:
    """Offsets of texts point into the bytes of all; between the first and the last, Arrow trusts them."""
    path = tmp_path / "t.arrow"
    write(path, job=["Janitor", "Painter", "Lawyer"])
    ends = b"".join(n.to_bytes(4, "little") for n in (0, 7, 14, 20))
    content = path.read_bytes()
    assert content.count(ends) == 1
    path.write_bytes(
        content.replace(ends, ends.replace((7).to_bytes(4, "little"), (17).to_bytes(4, "little")))
    )
    assert refused(path).error_id == "data-unreadable"


def test_a_text_that_is_no_utf_8_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.arrow"
    write(path, job=["Janitor", "Painter", "Lawyer"])
    content = path.read_bytes()
    assert content.count(b"Painter") == 1
    path.write_bytes(content.replace(b"Painter", b"P\xffinter"))
    assert refused(path).error_id == "data-unreadable"


def test_an_absent_file_and_a_folder(tmp_path: Path) -> None:
    assert refused(tmp_path / "absent.arrow").error_id == "file-missing"
    assert refused(tmp_path).error_id == "data-unreadable"


def test_a_column_that_went_meanwhile(tmp_path: Path) -> None:
    write(tmp_path / "t.arrow")
    with pytest.raises(DataError, match="the table changed while it was read"):
        list(ArrowFile(tmp_path / "t.arrow").batches(["patient", "ward"]))
