"""Tables that DuckDB reads are the tables that the readers of single files read, to the text of each cell."""

from __future__ import annotations

import datetime
import gzip
import os
import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet
import pytest

from anonymize.errors import DataError
from anonymize.tds import Observer
from jobs.data.by_path import source_of_path
from jobs.data.coders import BAD, Categorical, Unlisted
from jobs.data.coding import Coding
from jobs.data.sources import Csv, FileSource, Parquet, Source
from jobs.data.sql.duck import started
from jobs.data.sql.duck_tables import DuckDb
from jobs.data.sql.sqlite import Sqlite
from jobs.errors import problem_of
from jobs.lkc.run_alone import release_to_folder
from jobs.options import NO_OPTIONS
from jobs.release_csv import REPORT, TABLE
from jobs.stopwatch import Stopwatch
from tests.support import jobs
from tests.support.joint import sample_rows
from tests.support.pushed import meaning, same_pass_1
from tests.support.samples import COLUMNS, columns, single_job

SMALL = "200MB"


def every_text(*names: str) -> Coding:
    return Coding({name: Unlisted(None) for name in names}, (), checked=True, outside=False)


def texts(source: Any, *names: str) -> Counter[tuple[Any, ...]]:
    """How often the texts of some columns stand together, as pass 1 reads them and as rows are streamed."""
    streamed: Counter[tuple[Any, ...]] = Counter()
    for batch in source.batches(names):
        streamed.update(zip(*(column.to_pylist() for column in batch.columns), strict=True))
    counted = meaning(source.collapse(every_text(*names)))
    as_read: Counter[tuple[Any, ...]] = Counter()
    for row, n in streamed.items():
        as_read[tuple(cell or "?" for cell in row)] += n
    assert counted == as_read
    return streamed


# ---- files

CSVS = {
    "plain": b"a,b\n1,x\n1,x\n,y\n",
    "BOM": b"\xef\xbb\xbfa,b\n1,x\n",
    "quotes": b'a,b\n"1","x, ""y"""\n"","?"\n',
    "line ends": b'a,b\r\n"1\r\n2",x\r\n\r\n3,"y\n"\r\n',
    "no end": b"a,b\n1,x",
    "blanks": b"a,b\n 1 , x\n1,\tx\n",
    "names": b'"a","b","A","b"";--"\n1,x,2,3\n',
    "null words": b"a,b\nNULL,NA\nnan,None\n\\N,null\n",
    "zeros": b"a,b\n007,1e5\n7,1.0\n+7,0x1F\n",
    "header alone": b"a,b\n",
}


@pytest.mark.parametrize("kind", CSVS)
@pytest.mark.parametrize("packed", [False, True])
def test_csv_files_say_what_they_say_elsewhere(tmp_path: Path, kind: str, packed: bool) -> None:
    path = tmp_path / ("t.csv.gz" if packed else "t.csv")
    path.write_bytes(gzip.compress(CSVS[kind]) if packed else CSVS[kind])
    source = DuckDb(path, SMALL)
    assert source.column_names() == Csv(path).column_names()
    same_pass_1(source, Csv(path), every_text("a", "b"))


BROKEN = {
    "ragged": b"a,b\n1\n",
    "too long": b"a,b\n1,2\n1,2,3\n",
    "a lone quote": b'a,b\n1,"x\n2,y\n',
    "UTF-16": "a,b\n1,2\n".encode("utf-16"),
    "Latin-1": b"a,b\n1,\xe9\n",
    "Parquet": b"PAR1 and more",
}


@pytest.mark.parametrize("kind", BROKEN)
def test_csv_files_that_are_refused_elsewhere_are_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(BROKEN[kind])
    told = []
    for source in (DuckDb(path, SMALL), Csv(path)):
        with pytest.raises(DataError) as caught:
            source.collapse(every_text("a", "b"))
        told.append((str(caught.value), caught.value.error_id, problem_of(caught.value).private))
    assert told[0] == told[1]
    assert told[0][1] == "data-unreadable"


TYPES: dict[str, pa.Array] = {
    "seconds": pa.array([0, 1_234_567_890, None], pa.timestamp("s")),
    "milliseconds": pa.array([0, 1_234_567_890_123, None], pa.timestamp("ms")),
    "microseconds": pa.array([0, 1_234_567_890_123_456, None], pa.timestamp("us")),
    "nanoseconds": pa.array([0, 1_234_567_890_123_456_789, None], pa.timestamp("ns")),
    "in a zone": pa.array([0, 1_234_567_890_123_456, None], pa.timestamp("us", "Europe/Berlin")),
    "time": pa.array([0, 1_234_567_890, None], pa.time64("us")),
    "short time": pa.array([0, 1_234_567, None], pa.time32("ms")),
    "date": pa.array([datetime.date(1, 1, 1), datetime.date(2024, 2, 29), None]),
    "duration": pa.array([0, 1_234_567, None], pa.duration("us")),
    "decimal": pa.array([Decimal("5.00"), Decimal("-0.05"), None]),
    "wide decimal": pa.array([Decimal(10) ** 37, Decimal("-1"), None], pa.decimal128(38, 0)),
    "bytes": pa.array([b"a", b"", None], pa.binary()),
    "bool": pa.array([True, False, None]),
    "big": pa.array([2**64 - 1, 0, None], pa.uint64()),
    "large text": pa.array(["a", "", None], pa.large_string()),
    "dictionary": pa.array(["a", "", None]).dictionary_encode(),
    "numbers in a dictionary": pa.array([0.5, -0.0, None]).dictionary_encode(),
    "real": pa.array([float("nan"), -0.0, 0.0, float("inf"), 1e15, 1e-7, None], pa.float64()),
    "short real": pa.array([0.1, float("nan"), 16777217.0, -0.0, None], pa.float32()),
    "null": pa.nulls(2),
}


@pytest.mark.parametrize("kind", TYPES)
def test_cells_of_parquet_files_have_the_texts_they_have_elsewhere(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "t.parquet"
    pa.parquet.write_table(pa.table({kind: pa.concat_arrays([TYPES[kind]] * 2)}), path)
    coding = every_text(kind)
    same_pass_1(DuckDb(path, SMALL), Parquet(path), coding)


@pytest.mark.parametrize("column", [pa.array([[5], [6]]), pa.array([b"\xff", b"a"]), pa.array([{"x": 1}])])
def test_cells_without_a_text_are_refused(tmp_path: Path, column: pa.Array) -> None:
    path = tmp_path / "t.parquet"
    pa.parquet.write_table(pa.table({"x": column}), path)
    for source in (DuckDb(path, SMALL), Parquet(path)):
        with pytest.raises(DataError) as caught:
            source.collapse(every_text("x"))
        assert caught.value.error_id == "data-unreadable"


# ---- many files

PARTS: dict[str, list[dict[str, str]]] = {
    "ward=A%2FB/one": [{"id": "1", "job": "Mover"}, {"id": "2", "job": ""}],
    "ward=A%2FB/two": [{"id": "3", "job": "Mover"}],
    "ward=__HIVE_DEFAULT_PARTITION__/one": [{"id": "4", "job": "Lawyer"}],
}


def written(folder: Path, kind: str) -> Path:
    for name, rows in PARTS.items():
        path = folder / f"{name}.{kind}"
        path.parent.mkdir(parents=True, exist_ok=True)
        if kind == "csv":
            jobs.write_csv(path, rows)
        else:
            pa.parquet.write_table(pa.Table.from_pylist(rows), path)
    (folder / "_temporary").mkdir()
    (folder / "_temporary" / f"left.{kind}").write_bytes(b"no table")
    return folder


WARDS = Counter(
    {("A/B", "1", "Mover"): 1, ("A/B", "2", ""): 1, ("A/B", "3", "Mover"): 1, ("", "4", "Lawyer"): 1}
)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("pattern", ["", "**/*.{kind}", "*/*.{kind}", "ward=*/???.{kind}"])
def test_folders_and_patterns(tmp_path: Path, kind: str, pattern: str) -> None:
    path = written(tmp_path / "stays", kind) / pattern.format(kind=kind)
    source = source_of_path(path)
    assert isinstance(source, DuckDb)
    assert source.column_names() == ["id", "job", "ward"]
    assert texts(source, "ward", "id", "job") == WARDS
    assert source.collapse(every_text("ward")).rows.read == 4
    assert (
        source.place(3)
        == ("line 2" if kind == "csv" else "row 1") + f" of {tmp_path}/stays/ward=A%2FB/two.{kind}"
    )
    assert source.identity == str(path)
    assert source.ledger.name == "stays.privacy.sqlite"
    assert source.ledger.parent == tmp_path


def harm_column(folder: Path, kind: str) -> None:
    pa.parquet.write_table(pa.table({"id": ["9"], "work": ["x"]}), folder / "ward=z.parquet")


def harm_type(folder: Path, kind: str) -> None:
    (folder / "ward=C").mkdir()
    pa.parquet.write_table(pa.table({"id": [9.5], "job": ["x"]}), folder / "ward=C" / "t.parquet")


def harm_folder(folder: Path, kind: str) -> None:
    (folder / "room=C").mkdir()
    pa.parquet.write_table(pa.table({"id": ["9"], "job": ["x"]}), folder / "room=C" / "t.parquet")


def harm_kind(folder: Path, kind: str) -> None:
    (folder / "ward=C").mkdir()
    (folder / "ward=C" / "t.csv").write_text("id,job\n1,x\n")


@pytest.mark.parametrize("harm", [harm_column, harm_type, harm_folder, harm_kind])
def test_files_of_different_tables_are_refused(tmp_path: Path, harm: Callable[[Path, str], None]) -> None:
    folder = written(tmp_path / "stays", "parquet")
    harm(folder, "parquet")
    with pytest.raises(DataError) as caught:
        DuckDb(folder, SMALL).collapse(every_text("id", "job"))
    assert caught.value.error_id == "data-unreadable"


def test_names_that_sql_takes_for_one(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pa.parquet.write_table(pa.table({"age": ["1"], "Age": ["2"]}), path)
    with pytest.raises(DataError) as caught:
        DuckDb(path, SMALL).collapse(every_text("Age"))
    assert "upper and lower case" in caught.value.private
    pa.parquet.write_table(pa.table({"ward": ["1"], "age": ["2"]}), path)
    (tmp_path / "age=7" / "ward=8").mkdir(parents=True)
    moved = path.rename(tmp_path / "age=7" / "ward=8" / "t.parquet")
    assert texts(DuckDb(moved, SMALL), "ward", "age") == Counter({("1", "2"): 1})


@pytest.mark.parametrize("path", ["none.csv", "none/*.parquet", "empty"])
def test_a_table_that_is_not_there(tmp_path: Path, path: str) -> None:
    (tmp_path / "empty").mkdir()
    for ask in (DuckDb.column_names, DuckDb.version, lambda source: source.collapse(every_text("a"))):
        with pytest.raises(DataError) as caught:
            ask(DuckDb(tmp_path / path, SMALL))
        assert caught.value.error_id == "file-missing"
        assert str(tmp_path) not in str(caught.value)


def test_a_name_that_duckdb_takes_for_a_pattern(tmp_path: Path) -> None:
    for name, cell in (("a[1]", "x"), ("a1", "y")):
        pa.parquet.write_table(pa.table({"a": [cell]}), tmp_path / f"{name}.parquet")
    assert texts(DuckDb(tmp_path, SMALL), "a") == Counter({("x",): 1, ("y",): 1})
    assert texts(DuckDb(tmp_path / "a[1].parquet", SMALL), "a") == Counter({("x",): 1})


# ---- databases

CELLS = [("1", None), (2, 5), (2, 5.0), ("x", -0.0), (None, 1e300), ("2", "é")]


def in_sqlite(path: Path, table: str) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute(f'CREATE TABLE "{table}" ("a b", "q""uoted")')  # any type in any cell
        database.executemany(f'INSERT INTO "{table}" VALUES (?, ?)', CELLS)  # noqa: S608
        database.commit()


HOSTILE_TABLE = 'st"ays; DROP TABLE x; --'


def test_sqlite(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    in_sqlite(path, HOSTILE_TABLE.replace('"', '""'))
    source = DuckDb(path, SMALL, table=HOSTILE_TABLE)
    assert source.column_names() == ["a b", 'q"uoted']
    found = texts(source, "a b", 'q"uoted')
    assert found == Counter([("1", ""), ("2", "5"), ("2", "5"), ("x", "-0"), ("", "1e+300"), ("2", "é")])
    assert source.identity == f"{path}#{HOSTILE_TABLE}"
    assert source.place(3) == "row 3"
    for table in ("none", 'st"ays'):
        with pytest.raises(DataError) as caught:
            DuckDb(path, SMALL, table=table).column_names()
        assert caught.value.error_id == "data-unreadable"


def test_sqlite_is_only_read(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    in_sqlite(path, "stays")
    before = path.read_bytes()
    texts(Sqlite(path, "stays"), "a b")
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["t.db"]


def test_duckdb_s_own_databases(tmp_path: Path) -> None:
    path = tmp_path / "t.duckdb"
    with duckdb.connect(str(path)) as database:
        database.execute("""CREATE TABLE "st""ays" (a DOUBLE, b ENUM('x', 'y'), c HUGEINT, d UUID)""")
        database.execute(
            """INSERT INTO "st""ays" VALUES (CAST('-0' AS DOUBLE), 'x', 7, NULL), (NULL, NULL, NULL, NULL)"""
        )
        database.execute("""CREATE VIEW outside AS SELECT * FROM read_csv('/etc/hostname')""")
    source = DuckDb(path, SMALL, table='st"ays')
    assert source.column_names() == ["a", "b", "c", "d"]
    assert texts(source, "a", "b", "c", "d") == Counter([("-0", "x", "7", ""), ("", "", "", "")])
    with pytest.raises(DataError) as caught:
        DuckDb(path, SMALL, table="outside").column_names()
    assert "disabled by configuration" in caught.value.private


def test_texts_that_a_collation_takes_for_equal_are_counted_apart(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "t.duckdb")) as database:
        database.execute("CREATE TABLE t (id VARCHAR COLLATE NOCASE, a VARCHAR COLLATE NOCASE)")
        database.execute("INSERT INTO t VALUES ('x', 'a'), ('X', 'A'), ('y', 'a')")
    source = DuckDb(tmp_path / "t.duckdb", SMALL, table="t")
    assert texts(source, "a") == Counter({("a",): 2, ("A",): 1})
    assert source.collapse(Coding({"a": Unlisted(None)}, ("id",), checked=True, outside=False)).n_ids == 3


LOSES_ITS_PROCESS = """
import duckdb, os, sys
database = duckdb.connect(sys.argv[1])
database.execute("CREATE TABLE t AS SELECT 5 AS a")
database.execute("CHECKPOINT")
database.execute("INSERT INTO t VALUES (6)")
os._exit(0)
"""


def test_a_database_whose_last_rows_are_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "t.duckdb"
    subprocess.run([sys.executable, "-c", LOSES_ITS_PROCESS, str(path)], check=True)
    source = DuckDb(path, SMALL, table="t")
    before = source.version()
    assert texts(source, "a") == Counter({("5",): 1, ("6",): 1})
    assert source.version() == before
    os.utime(f"{path}.wal", ns=(0, 0))
    assert source.version() != before


# ---- what it may not do


def test_it_reaches_the_table_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "other.csv").write_text("a\nsecret\n")
    (tmp_path / "t.csv").write_text("a\n1\n")
    with started([tmp_path / "t.csv"], SMALL) as duck:
        session = duck.loaded(["a"], [])
        for sql in (
            f"FROM read_csv('{tmp_path}/other.csv')",
            f"FROM '{tmp_path}/other.csv'",
            f"COPY (SELECT 1) TO '{tmp_path}/new.csv'",
            f"ATTACH '{tmp_path}/new.duckdb'",
            "SELECT * FROM session",
            "INSTALL httpfs",
            "SET enable_external_access = true",
            "SELECT * FROM read_csv('https://127.0.0.1:1/t.csv')",
        ):
            with pytest.raises((DataError, duckdb.Error)):
                list(session.query(sql))
    assert sorted(each.name for each in tmp_path.iterdir()) == ["other.csv", "t.csv"]


def test_a_value_that_is_refused_is_told_to_the_owner_alone(tmp_path: Path) -> None:
    for name, value in (("1", "Mover"), ("2", "S3CRET")):
        (tmp_path / f"{name}.csv").write_text(f"job\nMover\n{value}\n")
    coding = Coding({"job": Categorical({"Mover": 0}, BAD)}, (), checked=True, outside=False)
    with pytest.raises(DataError) as caught:
        DuckDb(tmp_path, SMALL).collapse(coding)
    assert (caught.value.error_id, caught.value.column) == ("data-unknown-value", "job")
    assert "S3CRET" not in str(caught.value)
    assert caught.value.private == f"line 3 of {tmp_path / '2.csv'}: 'S3CRET'"


def test_what_is_spilled_is_private_and_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than the memory holds: it ends all the same, in a folder of its own that is gone afterwards."""
    path, spilled = tmp_path / "t.parquet", tmp_path / "spilled"
    spilled.mkdir()
    n = 1_500_000
    ids = pa.array([f"person number {i * 7919 % n:030d}" for i in range(n)])
    pa.parquet.write_table(pa.table({"id": ids, "x": pa.array([i % 3 for i in range(n)])}), path)
    monkeypatch.setattr(tempfile, "tempdir", str(spilled))
    seen: list[tuple[str, int]] = []
    coding = Coding({"x": Unlisted(None)}, ("id",), checked=True, outside=False)
    with started([path], "60MB") as duck:
        (folder,) = spilled.iterdir()
        assert folder.stat().st_mode & 0o077 == 0
        session = duck.parquet([path], pa.parquet.read_schema(path), by_folder=False)
        for batch in session.query(f"FROM {session.table} ORDER BY 1"):
            seen += [(file.name, file.stat().st_size) for file in folder.iterdir()] if not seen else []
            assert batch.num_rows
    assert seen
    assert DuckDb(path, "60MB").collapse(coding).n_ids == n
    assert list(spilled.iterdir()) == []


def test_without_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "t.csv").write_text("a\n1\n")
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(DataError) as caught:
        DuckDb(tmp_path / "t.csv", SMALL).collapse(every_text("a"))
    assert caught.value.error_id == "extra-missing"
    assert "jointcut[duckdb]" in problem_of(caught.value).remedy


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_table_that_changes_meanwhile(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = written(tmp_path / "stays", kind)
    source, looks = DuckDb(folder, SMALL), []
    version_of = DuckDb._version_of

    def at_each_look(self: DuckDb, files: Sequence[FileSource]) -> str:
        looks.append(version_of(self, files))
        os.utime(folder / f"ward=A%2FB/one.{kind}", ns=(0, len(looks)))
        return looks[-1]

    monkeypatch.setattr(DuckDb, "_version_of", at_each_look)
    with pytest.raises(DataError, match="the table changed while it was read"):
        source.collapse(every_text("id"))


def test_a_version_is_another_with_each_change(tmp_path: Path) -> None:
    folder = written(tmp_path / "stays", "csv")
    source, found = DuckDb(folder, SMALL), set()
    for change in (
        lambda: None,
        lambda: (folder / "ward=A%2FB" / "one.csv").rename(folder / "ward=A%2FB" / "three.csv"),
        lambda: (folder / "ward=A%2FB" / "two.csv").unlink(),
        lambda: (folder / "ward=A%2FB" / "three.csv").write_text("id,job\n5,Mover\n"),
    ):
        change()
        found.add(source.version())
        assert source.version() in found
    assert len(found) == 4


# ---- a whole release


def test_a_release_is_that_of_the_file(tmp_path: Path) -> None:
    rows = sample_rows(200)
    path = jobs.write_csv(tmp_path / "table.csv", rows, COLUMNS)
    arrow = pa.Table.from_pylist(rows)
    (tmp_path / "parts").mkdir()
    for i in range(4):
        pa.parquet.write_table(arrow.slice(i * 50, 50), tmp_path / "parts" / f"{i}.parquet")
    task = jobs.task_of(
        single_job(columns=columns(extra={"role": "plain"}) if "extra" in rows[0] else columns())
    )
    sources: list[Source] = [Csv(path), DuckDb(path, SMALL), DuckDb(tmp_path / "parts", SMALL)]
    out = []
    for i, source in enumerate(sources):
        folder = tmp_path / f"out{i}"
        release_to_folder(task, source, folder, NO_OPTIONS, Stopwatch(lambda name: None), Observer())
        out.append({name: (folder / name).read_bytes() for name in (TABLE,)})
        assert (folder / REPORT).is_file()
    assert out[0] == out[1] == out[2]


def test_a_path_says_which_source(tmp_path: Path) -> None:
    (tmp_path / "odd[1].csv").write_text("a\n1\n")
    kinds: dict[Any, type[FileSource] | type[DuckDb]] = {
        ("t.csv",): Csv,
        ("t.parquet",): Parquet,
        ("odd[1].csv",): Csv,
        ("odd*.csv",): DuckDb,
        ("t.parquet", ",", None, "2GB"): DuckDb,
        ("t.db", ",", "stays"): DuckDb,
        (".",): DuckDb,
    }
    for (name, *more), kind in kinds.items():
        assert type(source_of_path(tmp_path / name, *more)) is kind


# ---- files that would be left out


def in_folders(folder: Path) -> Path:
    for name in ("a", "b"):
        (folder / name).mkdir(parents=True)
        pa.parquet.write_table(pa.table({"x": [name]}), folder / name / "t.PARQUET")
    return folder


@pytest.mark.parametrize("pattern", ["", "**", "*/*", "**/*.PARQUET", "[ab]/t.PARQUET"])
def test_a_folder_and_its_patterns_have_all_files(tmp_path: Path, pattern: str) -> None:
    assert texts(DuckDb(in_folders(tmp_path / "t") / pattern, SMALL), "x") == {("a",): 1, ("b",): 1}


@pytest.mark.parametrize("pattern", ["", "**", "*/*"])
@pytest.mark.parametrize("to", ["nowhere", "elsewhere"])
def test_links_to_folders_and_to_nothing_are_refused(tmp_path: Path, pattern: str, to: str) -> None:
    in_folders(tmp_path / "elsewhere")
    link = in_folders(tmp_path / "t") / "c"
    link.symlink_to(tmp_path / to)
    with pytest.raises(DataError) as caught:
        DuckDb(tmp_path / "t" / pattern, SMALL).column_names()
    assert problem_of(caught.value).error_id == "data-unreadable"
    assert str(link) in problem_of(caught.value).cause


@pytest.mark.parametrize("pattern", ["", "**", "*/*"])
def test_a_folder_that_cannot_be_listed_is_refused(
    tmp_path: Path, pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a listing that fails: root, who may run the tests, can list every folder."""
    closed, listed = in_folders(tmp_path / "t") / "b", Path.iterdir

    def refused(folder: Path) -> Any:
        if folder == closed:
            raise PermissionError(13, "Permission denied", str(folder))
        return listed(folder)

    monkeypatch.setattr(Path, "iterdir", refused)
    with pytest.raises(DataError) as caught:
        DuckDb(tmp_path / "t" / pattern, SMALL).column_names()
    assert problem_of(caught.value).error_id == "data-unreadable"
    assert problem_of(caught.value).cause == f"{closed}: Permission denied"


def test_a_damaged_page_is_an_unreadable_table(tmp_path: Path) -> None:
    """Far from the first rows: what is met while rows are handed over has another error."""
    path = tmp_path / "t.parquet"
    table = pa.table({"x": [f"{n:09}" for n in range(500_000)]})
    pa.parquet.write_table(
        table, path, use_dictionary=False, compression="none", row_group_size=100_000, data_page_version="1.0"
    )
    at = pa.parquet.read_metadata(path).row_group(4).column(0).data_page_offset
    content = bytearray(path.read_bytes())
    content[at : at + 100] = b"\xff" * 100
    path.write_bytes(content)
    with pytest.raises(DataError) as caught:
        list(DuckDb(path, SMALL).batches(["x"]))
    assert problem_of(caught.value).error_id == "data-unreadable"
