"""Meters: every source tells all rows of each pass, and about how many there are."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from jobs.data.coders import BAD, Categorical
from jobs.data.coding import Coding, Published
from jobs.data.duckdb import DuckDb
from jobs.data.rows_read import Meter, Rows
from jobs.data.sources import Csv, Feather, FileSource, Parquet, Source
from tests.support.jobs import write_csv

N = 400
ROWS = [{"city": "Rome" if i % 3 else "Oslo", "note": f"number {i:04}"} for i in range(N)]
CODER = Categorical({"Rome": 0, "Oslo": 1}, BAD)
CODING = Coding({"city": CODER}, (), checked=True, outside=False)


class Kept(Meter):
    """Meter that keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[int, int | None]] = []

    def rows(self, read: int, of: Rows) -> None:
        self.told.append((read, of()))


def csv(folder: Path) -> FileSource:
    return Csv(write_csv(folder / "table.csv", ROWS))


def packed(folder: Path) -> FileSource:
    path = folder / "table.csv.gz"
    path.write_bytes(gzip.compress(write_csv(folder / "table.csv", ROWS).read_bytes()))
    return Csv(path)


def parquet(folder: Path) -> FileSource:
    pq.write_table(pa.Table.from_pylist(ROWS), folder / "table.parquet")
    return Parquet(folder / "table.parquet")


def arrow(folder: Path) -> FileSource:
    feather.write_feather(pa.Table.from_pylist(ROWS), folder / "table.feather")
    return Feather(folder / "table.feather")


def many(folder: Path) -> Source:
    for i in range(4):
        pq.write_table(pa.Table.from_pylist(ROWS[i::4]), folder / f"{i}.parquet")
    return DuckDb("visits", folder, path=folder / "*.parquet")


def texts(folder: Path) -> Source:
    return DuckDb("visits", folder, path=csv(folder).path)


@pytest.mark.parametrize(
    ("made", "about"),
    [(csv, N + 1), (packed, None), (parquet, N), (arrow, None), (many, N), (texts, None)],
    ids=lambda each: getattr(each, "__name__", str(each)),
)
def test_a_source_tells_all_rows_of_each_pass(
    tmp_path: Path, made: Callable[[Path], Source], about: int | None
) -> None:
    source, meter = made(tmp_path), Kept()
    metered = source.metered(meter)
    assert metered == source
    coded = metered.collapse(Coding({**CODING.coders}, (), checked=True, outside=True))
    assert coded.rows == source.collapse(Coding({**CODING.coders}, (), checked=True, outside=True)).rows
    if about is None:
        assert {of for _, of in meter.told} == {None}
    else:
        assert {of is not None and abs(of - about) <= N // 50 for _, of in meter.told} == {True}
    assert meter.told[-1][0] == N
    meter.told.clear()
    published = {"city": Published(CODER, pa.array([0, 1]).to_numpy(), pa.array(["Rome", "Oslo"]))}
    assert sum(batch.num_rows for batch in metered.relabel(published, ["city", "note"])) == N
    assert meter.told[-1][0] == N


def test_an_engine_tells_the_beginning_of_each_query(tmp_path: Path) -> None:
    meter = Kept()
    coded = many(tmp_path).metered(meter).collapse(CODING)
    assert coded.weights.sum() == N
    assert meter.told == [(0, N), (0, N)]
