"""Tables of SQLite files through DuckDB: the table of the CSV, one snapshot, and a remedy for each wrong use."""

from __future__ import annotations

import gc
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from anonymize.errors import DataError
from jobs.data import duckdb as engine
from jobs.data.duckdb import DuckDb
from jobs.data.sources import Csv
from jobs.data.sqlite import SqliteTable
from jobs.data.wording import Wording
from jobs.errors import Exit
from jobs.release.report import BY_MAKER
from party.owner.data import Data
from tests.support.commands import invoke
from tests.support.jobs import write_csv
from tests.support.parts import CODING, JOB, NAMES, ROWS, parquet, run_with, told

CREATE = "CREATE TABLE patients (age INTEGER, city TEXT, ill TEXT)"


def written(file: Path, *statements: str, rows: Sequence[dict[str, str]] = ()) -> Path:
    """Run statements in a SQLite file, and put rows into the table `patients`."""
    with closing(sqlite3.connect(file)) as made:
        for statement in statements:
            made.execute(statement)
        cells = [(int(row["age"]) if row["age"] else None, row["city"] or None, row["ill"]) for row in rows]
        if cells:
            made.executemany("INSERT INTO patients VALUES (?, ?, ?)", cells)
        made.commit()
    return file


def patients(file: Path, rows: Sequence[dict[str, str]] = ROWS) -> Path:
    file.unlink(missing_ok=True)
    return written(file, CREATE, rows=rows)


def table_at(file: Path, table: str | None = None) -> DuckDb:
    return DuckDb("visits", file.parent, path=file, table=table)


def cells_of(source: DuckDb, columns: Sequence[str]) -> list[tuple[str, ...]]:
    with_rows = [batch.to_pylist() for batch in source.batches(columns)]
    return [tuple(row.values()) for batch in with_rows for row in batch]


def refused(source: DuckDb) -> DataError:
    """Return the error of a pass. No word of the owner is in the part for all."""
    with pytest.raises(DataError) as caught:
        source.collapse(CODING)
    public = f"{caught.value} {caught.value.remedy}"
    assert str(source.path.parent) not in public
    assert "patients" not in public
    return caught.value


# ---- cells


def test_both_passes_are_those_of_the_csv(tmp_path: Path) -> None:
    source = table_at(patients(tmp_path / "patients.sqlite"))
    assert source.column_names() == list(NAMES)
    assert told(source) == told(Csv(write_csv(tmp_path / "all.csv", ROWS)))
    assert source.n_rows_about() == len(ROWS)


@pytest.mark.parametrize(
    "changes", [{"ids": ("ill",)}, {"matched": True}, {"ids": ("ill",), "persons": True}]
)
def test_rows_with_ids_are_those_of_the_csv(tmp_path: Path, changes: dict[str, Any]) -> None:
    coding = replace(CODING, coders={"age": CODING.coders["age"]}, **changes)
    coded = table_at(patients(tmp_path / "patients.sqlite")).collapse(coding)
    plain = Csv(write_csv(tmp_path / "all.csv", ROWS)).collapse(coding)
    assert coded.rows == plain.rows
    assert (coded.n_ids, coded.ids) == (plain.n_ids, plain.ids)
    if coding.persons:
        assert coded.person is not None
        assert plain.person is not None
        assert coded.person.tolist() == plain.person.tolist()


def test_the_owners_words_hold(tmp_path: Path) -> None:
    wording = Wording(missing=("Köln",), rename={"city": "town"}, values={"ill": {"Flu": "flu"}})
    source = replace(table_at(patients(tmp_path / "patients.sqlite")), wording=wording)
    plain = Csv(write_csv(tmp_path / "all.csv", ROWS), wording)
    columns = ["town", "ill"]
    rows = [[row for batch in each.batches(columns) for row in batch.to_pylist()] for each in (source, plain)]
    assert rows[0] == rows[1]
    assert source.marks(columns) == plain.marks(columns) != {}


@pytest.mark.parametrize(
    ("cells", "texts"),
    [
        (["1", "-9007199254740993", "NULL"], ["1", "-9007199254740993", ""]),
        (["0.1", "2.0", "1e300", "1 / 3.0"], ["0.1", "2.0", "1.0e+300", "0.33333333333333332"]),
        (["'2024-02-29'", "'29.02.2024 10:00'"], ["2024-02-29", "29.02.2024 10:00"]),
        (
            ["'a, b'", "'say \"no\"'", "'it''s'", "'Zoë'", "'日本'"],
            ["a, b", 'say "no"', "it's", "Zoë", "日本"],
        ),
        (["NULL", "NULL", "'last'"], ["", "", "last"]),
        (["NULL", "NULL"], ["", ""]),
        (["1", "'old'", "2.5", "''"], ["1", "old", "2.5", ""]),
        ([], []),
    ],
    ids=["whole", "fractions", "dates", "texts", "text after NULL", "NULL", "mixed", "no rows"],
)
def test_cells_are_the_texts_of_sqlite(tmp_path: Path, cells: list[str], texts: list[str]) -> None:
    inserts = (f"INSERT INTO t VALUES ({cell})" for cell in cells)  # noqa: S608
    file = written(tmp_path / "some.db", "CREATE TABLE t (a)", *inserts)
    assert cells_of(table_at(file), ["a"]) == [(text,) for text in texts]


def test_fractions_keep_their_digits(tmp_path: Path) -> None:
    numbers = [0.1 + 0.2, 1e-7, 123456789.123456789, 5e-324, 2.0**60]
    inserts = (f"INSERT INTO t VALUES ({number!r})" for number in numbers)  # noqa: S608
    file = written(tmp_path / "some.db", "CREATE TABLE t (a REAL)", *inserts)
    assert [float(text) for (text,) in cells_of(table_at(file), ["a"])] == numbers


def test_all_names_are_names_of_columns(tmp_path: Path) -> None:
    """SQLite and DuckDB disagree on names that differ in case alone. A name is no text, and no number."""
    names = ['say "no"', "it's", "Größe", "GRÖßE", "Ä", "ä", "select", "jointcut 1", "x;--", "rowid"]
    columns = ", ".join('"' + name.replace('"', '""') + '"' for name in names)
    values = ", ".join(map(str, range(len(names))))
    file = written(
        tmp_path / "a%b #1?.sqlite",
        f'CREATE TABLE "the ""new"" table" ({columns})',
        f'INSERT INTO "the ""new"" table" VALUES ({values})',  # noqa: S608
    )
    for table in (None, 'the "new" table'):
        source = table_at(file, table)
        assert source.column_names() == names
        assert cells_of(source, names[::-1]) == [tuple(str(i) for i in range(len(names)))[::-1]]


def test_an_index_changes_no_order(tmp_path: Path) -> None:
    file = patients(tmp_path / "patients.sqlite")
    written(file, "CREATE INDEX i ON patients (ill, city, age)")
    assert cells_of(table_at(file), NAMES) == [tuple(row[name] for name in NAMES) for row in ROWS]


def test_a_view_is_a_table(tmp_path: Path) -> None:
    file = patients(tmp_path / "patients.sqlite")
    written(file, "CREATE VIEW ages AS SELECT age, age AS AGE, 'x' AS b FROM patients")
    assert table_at(file).column_names() == list(NAMES)
    source = table_at(file, "ages")
    assert source.column_names() == ["age", "AGE:1", "b"]
    assert cells_of(source, ["AGE:1", "b"]) == [(row["age"], "x") for row in ROWS]


def test_the_first_bytes_tell_the_kind(tmp_path: Path) -> None:
    for name in ("patients.csv", "patients.parquet", "patients"):
        assert cells_of(table_at(patients(tmp_path / name)), ["ill"]) == [(row["ill"],) for row in ROWS]


def test_a_table_beyond_the_memory_of_the_engine(tmp_path: Path) -> None:
    written(
        tmp_path / "large.sqlite",
        "CREATE TABLE t (number INTEGER, word TEXT)",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000) "
        "INSERT INTO t SELECT i, hex(randomblob(500)) FROM n",
    )
    source = replace(table_at(tmp_path / "large.sqlite"), memory_limit="40MB")
    found = [text for batch in source.batches(["number"]) for text in batch.column(0).to_pylist()]
    assert found == [str(i) for i in range(1, 60_001)]


# ---- BLOBs


def test_a_blob_is_refused_where_the_column_is_read(tmp_path: Path) -> None:
    file = patients(tmp_path / "patients.sqlite")
    written(file, "UPDATE patients SET city = x'ff00' WHERE rowid = 7", "ALTER TABLE patients ADD photo")
    written(file, "UPDATE patients SET photo = x'ff'")
    assert cells_of(table_at(file), ["ill"]) == [(row["ill"],) for row in ROWS]
    error = refused(table_at(file))
    assert (error.error_id, "name a view" in error.remedy) == ("data-unreadable", True)
    assert error.private == (
        "visits: row 7 of the column city is a BLOB, and only texts and numbers can be read"
    )
    written(file, "CREATE VIEW v AS SELECT age, CAST(hex(city) AS TEXT) AS city, ill FROM patients")
    assert cells_of(table_at(file, "v"), ["city"])[6] == ("FF00",)


def test_text_in_no_encoding_is_refused(tmp_path: Path) -> None:
    file = patients(tmp_path / "patients.sqlite")
    written(file, "UPDATE patients SET city = CAST(x'ff41' AS TEXT) WHERE rowid = 7")
    assert "the column city has a text that is no UTF-8" in refused(table_at(file)).private


# ---- wrong uses


def test_the_table_is_asked_for_if_there_are_several(tmp_path: Path) -> None:
    file = patients(tmp_path / "patients.sqlite")
    written(file, *(f"CREATE TABLE t{i} (a)" for i in range(10, 25)))
    error = refused(table_at(file))
    assert error.remedy == "write the name of the table beside the path: `duckdb: {path: FILE, table: NAME}`"
    ten = "patients, " + ", ".join(f"t{i}" for i in range(10, 19))
    assert error.private == f"visits: {file} has {ten} and 6 more: which is the table of this job?"
    assert told(table_at(file, "patients")) == told(Csv(write_csv(tmp_path / "all.csv", ROWS)))


def test_a_table_that_is_not_there(tmp_path: Path) -> None:
    error = refused(table_at(patients(tmp_path / "patients.sqlite"), "Patients"))
    assert error.remedy == "correct `table` beside the path"
    assert "there is no table Patients: " in error.private
    assert error.private.endswith("patients.sqlite has patients")


def test_a_file_without_a_table(tmp_path: Path) -> None:
    file = written(tmp_path / "empty.sqlite", "PRAGMA user_version = 1")
    assert "empty.sqlite has no table" in refused(table_at(file)).private


@pytest.mark.parametrize("name", ["all.parquet", "all.csv", "encrypted.sqlite"])
def test_a_table_of_another_file_is_refused(tmp_path: Path, name: str) -> None:
    parquet(tmp_path / "all.parquet", ROWS)
    write_csv(tmp_path / "all.csv", ROWS)
    (tmp_path / "encrypted.sqlite").write_bytes(bytes(range(256)) * 16)
    error = refused(table_at(tmp_path / name, "patients"))
    assert f"`table: patients` is for a SQLite file, and {tmp_path / name} does not" in error.private
    assert "leave `table` out for Parquet and CSV files; give a plain copy of an encrypted" in error.remedy


def test_an_encrypted_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "encrypted.sqlite").write_bytes(bytes(range(256)) * 16)
    error = refused(table_at(tmp_path / "encrypted.sqlite"))
    assert "encrypted.sqlite: DuckDB is asked for Parquet, CSV and SQLite files only" in error.private
    assert "for an encrypted SQLite file give a plain copy" in error.remedy


def test_a_pattern_that_fits_several_files(tmp_path: Path) -> None:
    for name in ("a.sqlite", "b.sqlite"):
        patients(tmp_path / name)
    error = refused(table_at(tmp_path / "*.sqlite"))
    assert error.remedy == "write the path of a single SQLite file"
    assert "a.sqlite is a SQLite file, and " in error.private
    (tmp_path / "b.sqlite").unlink()
    assert cells_of(table_at(tmp_path / "*.sqlite"), ["ill"]) == [(row["ill"],) for row in ROWS]


def half(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def magic_alone(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:16])


def torn_in_the_middle(file: Path) -> None:
    whole = file.read_bytes()
    file.write_bytes(whole[:8192] + b"\xa5" * 8192 + whole[16384:])


@pytest.mark.parametrize("tear", [half, magic_alone, torn_in_the_middle])
def test_a_torn_file_is_refused(tmp_path: Path, tear: Callable[[Path], None]) -> None:
    file = patients(tmp_path / "patients.sqlite", ROWS * 20)
    tear(file)
    error = refused(table_at(file))
    assert error.remedy == "give a whole copy of the file, such as a backup: this file is damaged"
    assert "query" not in error.private
    assert "SELECT" not in error.private


def in_wal_mode(file: Path) -> Path:
    patients(file)
    return written(file, "PRAGMA journal_mode = WAL")


def a_log_that_cannot_be_opened(folder: Path) -> Path:
    (folder / "patients.sqlite-wal").mkdir()
    return in_wal_mode_without_log(folder)


def in_wal_mode_without_log(folder: Path) -> Path:
    made = in_wal_mode(folder / "other.sqlite")
    return made.rename(folder / "patients.sqlite")


def a_write_that_crashed(folder: Path) -> Path:
    """Copy file and journal in the middle of a write."""
    file = patients(folder / "other.sqlite", ROWS * 20)
    with closing(sqlite3.connect(file, isolation_level=None)) as writer:
        writer.execute("PRAGMA cache_size = 1")
        writer.execute("BEGIN")
        writer.execute("UPDATE patients SET city = city || 'x'")
        for end in ("", "-journal"):
            shutil.copy(f"{file}{end}", folder / f"patients.sqlite{end}")
    return folder / "patients.sqlite"


@pytest.mark.parametrize("made", [a_log_that_cannot_be_opened, a_write_that_crashed])
def test_a_file_that_only_a_writer_can_open_is_refused(tmp_path: Path, made: Callable[[Path], Path]) -> None:
    error = refused(table_at(made(tmp_path)))
    assert "sqlite3 FILE 'PRAGMA journal_mode=DELETE'; or give a copy that VACUUM INTO made" in error.remedy


def test_a_log_with_writes_is_read(tmp_path: Path) -> None:
    file = in_wal_mode(tmp_path / "patients.sqlite")
    with closing(sqlite3.connect(file)) as writer:
        writer.execute("DELETE FROM patients WHERE rowid > 10")
        writer.commit()
        assert (tmp_path / "patients.sqlite-wal").stat().st_size
        source = table_at(file)
        assert len(cells_of(source, ["ill"])) == 10
        before = source.version()
        writer.execute("DELETE FROM patients WHERE rowid > 9")
        writer.commit()
        assert source.version() != before


LOCK = (
    "import sqlite3, sys; made = sqlite3.connect(sys.argv[1], isolation_level=None); "
    "made.execute('BEGIN EXCLUSIVE'); print('locked', flush=True); sys.stdin.read()"
)


@pytest.fixture
def lock() -> Iterator[Callable[[Path], None]]:
    """Return what locks a file from another process: locks of one process do not meet."""
    running = []

    def lock(file: Path) -> None:
        made = subprocess.Popen(
            [sys.executable, "-c", LOCK, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        running.append(made)
        assert made.stdout is not None
        assert made.stdout.readline() == b"locked\n"

    yield lock
    for made in running:
        made.communicate()


def test_a_file_that_another_program_writes(tmp_path: Path, lock: Callable[[Path], None]) -> None:
    file = patients(tmp_path / "patients.sqlite")
    lock(file)
    error = refused(table_at(file))
    assert error.remedy == "run the job again when nobody writes the table"
    assert error.private.endswith("database is locked")


@pytest.mark.parametrize("package", ["adbc_driver_sqlite", "adbc_driver_manager"])
def test_without_the_driver_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    error = refused(table_at(patients(tmp_path / "patients.sqlite")))
    assert (error.error_id, error.remedy) == ("extra-missing", "pip install 'jointcut[duckdb]'")
    assert str(error) == "the table needs the package adbc-driver-sqlite"
    parquet(tmp_path / "all.parquet", ROWS)
    assert len(cells_of(table_at(tmp_path / "all.parquet"), ["ill"])) == len(ROWS)


# ---- one snapshot


def test_a_value_that_fits_nothing_is_told_with_its_row(tmp_path: Path) -> None:
    rows = [*ROWS[:7], {"age": "4", "city": "Zebra-4711", "ill": "Flu"}]
    with pytest.raises(DataError, match="city") as caught:
        table_at(patients(tmp_path / "patients.sqlite", rows)).collapse(CODING)
    assert caught.value.private == "row 8: 'Zebra-4711'"


def test_the_rows_are_copied_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    n_copies = []
    fill = SqliteTable.fill

    def counted(self: SqliteTable, connection: Any) -> None:
        n_copies.append(1)
        fill(self, connection)

    monkeypatch.setattr(SqliteTable, "fill", counted)
    told(table_at(patients(tmp_path / "patients.sqlite")))
    assert n_copies == [1]


def test_a_write_during_the_copy_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = patients(tmp_path / "patients.sqlite")
    fill = SqliteTable.fill

    def written_after(self: SqliteTable, connection: Any) -> None:
        fill(self, connection)
        written(file, "DELETE FROM patients WHERE rowid > 10")

    monkeypatch.setattr(SqliteTable, "fill", written_after)
    with pytest.raises(DataError, match="the table changed while it was read"):
        cells_of(table_at(file), ["ill"])


def test_a_write_between_the_notes_and_the_passes_is_refused(tmp_path: Path) -> None:
    file = patients(tmp_path / "patients.sqlite")
    source = replace(table_at(file), wording=Wording(values={"ill": {"Rare": "Flu"}}))
    assert len(source.notes()) == 1
    written(file, "DELETE FROM patients WHERE rowid > 10")
    assert str(refused(source)) == "the table changed while it was read"


def test_a_table_that_changes_between_the_passes_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = patients(tmp_path / "patients.sqlite")
    relabel = DuckDb.relabel

    def later(source: DuckDb, *given: Any) -> Any:
        written(file, "UPDATE patients SET ill = 'Cold'")
        return relabel(source, *given)

    monkeypatch.setattr(DuckDb, "relabel", later)
    columns = JOB["columns"] | {"ill": {"role": "plain"}}  # only plain columns need a second pass
    data = {"name": "visits", "duckdb": {"path": "patients.sqlite"}}
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(JOB | {"data": data, "columns": columns}))
    done = invoke("coordinator", "run", tmp_path / "job.yaml", "--out", tmp_path / "out")
    assert done.code == Exit.DATA, done.err
    assert "the table changed while it was read" in done.err
    assert not (tmp_path / "out").exists()


def test_a_file_that_goes_is_not_there(tmp_path: Path) -> None:
    source = table_at(patients(tmp_path / "patients.sqlite"))
    assert source.version()
    (tmp_path / "patients.sqlite").unlink()
    assert refused(source).error_id == "file-missing"


def test_a_read_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tmp").mkdir()
    (tmp_path / "own").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    file = patients(tmp_path / "own" / "patients.sqlite")
    before = file.read_bytes(), file.stat().st_mtime_ns
    source = table_at(file)
    told(source)
    del source
    gc.collect()
    assert (file.read_bytes(), file.stat().st_mtime_ns) == before
    assert os.listdir(tmp_path / "own") == ["patients.sqlite"]
    assert os.listdir(tmp_path / "tmp") == []
    assert engine._NO_FETCHING["autoload_known_extensions"] == "false"


# ---- jobs


@pytest.mark.parametrize("table", [None, "patients"])
def test_a_job_gives_the_release_of_the_csv(tmp_path: Path, table: str | None) -> None:
    for name in ("engine", "file"):
        (tmp_path / name).mkdir()
    patients(tmp_path / "engine" / "patients.sqlite")
    write_csv(tmp_path / "file" / "visits.csv", ROWS)
    keys = {"path": "patients.sqlite"} | ({} if table is None else {"table": table})
    data = {"name": "visits-2026", "duckdb": keys}
    outs = [run_with(tmp_path / "engine", data), run_with(tmp_path / "file", "visits.csv")]
    tables = [sorted((out / "anonymized.csv").read_text().splitlines()) for out in outs]
    assert tables[0] == tables[1]
    reports = [json.loads((out / "report.json").read_text()) for out in outs]
    for report in reports:
        for key in (*BY_MAKER, "job_sha256", "files"):
            report.pop(key, None)
    assert reports[0] == reports[1]
    everything = "".join(path.read_text(errors="replace") for path in outs[0].iterdir() if path.is_file())
    assert "patients" not in everything


def test_the_key_of_the_table_is_that_of_the_source(tmp_path: Path) -> None:
    source = table_at(patients(tmp_path / "patients.sqlite"), "patients")
    assert source.settings()["duckdb"]["table"] == "patients"
    made = Data.model_validate(source.settings())
    assert made.source == replace(source, home=Path())
    assert source.held_at != table_at(tmp_path / "patients.sqlite").held_at
    assert "table" not in table_at(tmp_path / "patients.sqlite").settings()["duckdb"]


def test_a_folder_with_a_sqlite_file_is_still_its_parquet_files(tmp_path: Path) -> None:
    patients(tmp_path / "catalog.sqlite")
    pq.write_table(pa.table({"age": [1]}), tmp_path / "all.parquet")
    assert cells_of(table_at(tmp_path), ["age"]) == [("1",)]
