"""Tables that Spark reads: files and catalog give the table of the CSV, and errors are the owner's."""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from anonymize.errors import DataError
from coordinator.run import run_in_process
from jobs.data.cluster import Cluster, _end, _running, cluster
from jobs.data.coders import Unlisted
from jobs.data.coding import Coding
from jobs.data.duckdb import DuckDb
from jobs.data.sources import Csv, Source
from jobs.data.spark import _SETTINGS, Spark
from jobs.data.wording import Wording
from jobs.errors import Exit
from jobs.loading import open_task
from party.owner.data import Data
from tests.support import jobs
from tests.support.commands import invoke
from tests.support.jobs import write_csv
from tests.support.joint import sample_rows
from tests.support.network import released
from tests.support.parts import (
    CODING,
    FORMS,
    JOB,
    NAMES,
    ROWS,
    another_kind,
    cut_off,
    latin_1,
    latin_1_as_text,
    no_file,
    no_path,
    other_columns,
    parquet,
    run_with,
    told,
    too_few_values,
    two_kinds,
)
from tests.support.samples import PARTIES, joint_job
from tests.support.spark import MASTER, QUICK, needs_java

pytestmark = needs_java


@pytest.fixture(scope="module")
def running() -> Iterator[Cluster]:
    """Start Java once for all tests of the module."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JDK_JAVA_OPTIONS", QUICK)
        yield cluster(MASTER)


def at(path: Path, **words: Any) -> Spark:
    return Spark("visits", path.parent, Wording(**words), MASTER, path=str(path))


def rows_of(source: Source, *names: str) -> list[tuple[str, ...]]:
    columns = list(names) or source.column_names()
    return [tuple(row.values()) for batch in source.batches(columns) for row in batch.to_pylist()]


def error_of(source: Source) -> DataError:
    with pytest.raises(DataError) as caught:
        source.collapse(CODING)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return caught.value


# ---- before Java runs


def test_without_the_package_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    error = error_of(at(tmp_path / "a.parquet"))
    assert (error.error_id, error.remedy) == ("extra-missing", "pip install 'jointcut[spark]'")


@pytest.mark.parametrize(
    ("master", "home", "words"),
    [
        ("local[1]", "/nowhere", "Java is missing: Spark needs Java 17 or newer"),
        ("spark://127.0.0.1:1", None, "no master answers at spark://127.0.0.1:1; write spark://HOST:PORT"),
        ("spark://localhost", None, "no master answers at spark://localhost"),
    ],
)
def test_without_java_or_a_master(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, master: str, home: str | None, words: str
) -> None:
    if home:
        monkeypatch.setenv("JAVA_HOME", home)
    error = error_of(replace(at(tmp_path / "a.parquet"), master=master))
    assert error.error_id == "data-unreadable"
    assert error.private.startswith(f"visits: {words}")


# ---- cells and columns


@pytest.mark.some(1)
@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_the_table_of_the_csv(
    running: Cluster, tmp_path: Path, form: Callable[[Path], str]
) -> None:
    (tmp_path / "it").mkdir()
    source = at(tmp_path / "it" / form(tmp_path / "it"))
    assert source.column_names() == list(NAMES)
    ours, csv = (told(each) for each in (source, Csv(write_csv(tmp_path / "whole.csv", ROWS))))
    assert ours[:3] == csv[:3]
    assert [Counter(map(str, found[3])) for found in (ours,)] == [Counter(map(str, csv[3]))]


@pytest.mark.more
def test_cells_are_the_text_of_duckdb(running: Cluster, tmp_path: Path) -> None:
    cells = {
        "i": pa.array([1, None], pa.int64()),
        "d": pa.array([0.1, None], pa.float64()),
        "n": pa.array([Decimal("1.50"), None], pa.decimal128(20, 2)),
        "day": pa.array([date(2020, 1, 31), None]),
        "at": pa.array([datetime(2020, 1, 2, 3, 4, 5, 678000), None], pa.timestamp("us")),
        "yes": pa.array([True, None]),
        "t": pa.array(["ä \"'\n,", None]),
        "empty": pa.array([None, None], pa.string()),
        "list": pa.array([["a", "b"], None]),
    }
    pq.write_table(pa.table(cells), tmp_path / "a.parquet")
    duckdb = DuckDb("visits", tmp_path, path=tmp_path / "a.parquet")
    assert rows_of(at(tmp_path / "a.parquet")) == rows_of(duckdb)


@pytest.mark.more
def test_numbers_that_are_none_are_words(running: Cluster, tmp_path: Path) -> None:
    """No word is a missing cell. DuckDB has other words: nan and inf."""
    pq.write_table(pa.table({"x": [float("nan"), float("inf"), -0.0, 1e20]}), tmp_path / "a.parquet")
    assert rows_of(at(tmp_path / "a.parquet")) == [("NaN",), ("Infinity",), ("-0.0",), ("1.0E20",)]


@pytest.mark.more
def test_text_files_with_everything_inside(running: Cluster, tmp_path: Path) -> None:
    text = 'a,b,c\n"x\ny","say ""yes""","1,5"\n , x ,\n"",NULL,nan\n\\,\'," "\n'
    for name in ("a.csv", "b.csv"):
        lines = text if name == "a.csv" else text.replace("x\ny", "xy").replace("\n", "\r\n")
        (tmp_path / name).write_text(lines, newline="")
        assert rows_of(at(tmp_path / name)) == rows_of(Csv(tmp_path / name))
    (tmp_path / "c.csv").write_bytes(b"\xef\xbb\xbf" + "a\tb\nä\t1\n".encode())
    assert at(tmp_path / "c.csv").column_names() == ["a", "b"]
    (tmp_path / "d.csv").write_text("a,b\n")
    assert rows_of(at(tmp_path / "d.csv")) == []


@pytest.mark.more
def test_names_that_sql_would_read_otherwise(running: Cluster, tmp_path: Path) -> None:
    names = ["a.b", "c`d", "my age", "x", "X", "select", "jointcut count", "c0", 'q"', "ä"]
    place = tmp_path / "a b [1] {x}" / "t *.parquet"
    place.parent.mkdir()
    pq.write_table(pa.table({name: [str(i)] for i, name in enumerate(names)}), place)
    source = at(place)
    assert source.column_names() == names
    assert rows_of(source, *reversed(names)) == [tuple(map(str, reversed(range(len(names)))))]
    coders = {name: Unlisted(None, distinct=True) for name in names}
    coded = source.collapse(Coding(coders, ("X", 'q"'), checked=True, outside=False))
    assert [column.domain for column in coded.columns.values()] == [(str(i),) for i in range(len(names))]
    assert (coded.weights.tolist(), coded.n_ids) == ([1], 1)
    assert rows_of(at(place.parent)) == rows_of(source)


@pytest.mark.more
@pytest.mark.parametrize("pattern", ["visits", "visits/*", "visits/place=*/*.parquet"])
def test_folders_named_by_a_value_are_a_column_of_text(
    running: Cluster, tmp_path: Path, pattern: str
) -> None:
    for city, rows in (("007", ROWS[:5]), ("Bonn", ROWS[5:9])):
        parquet(tmp_path / "visits" / f"place={city}" / "part.parquet", rows)
    source = at(tmp_path / pattern)
    assert source.column_names() == [*NAMES, "place"]
    found = Counter(rows_of(source, "place", "age"))
    assert found == Counter(("007" if i < 5 else "Bonn", row["age"]) for i, row in enumerate(ROWS[:9]))


@pytest.mark.more
def test_the_owners_words_hold(running: Cluster, tmp_path: Path) -> None:
    words: dict[str, Any] = {
        "missing": ("Köln",),
        "rename": {"city": "town"},
        "values": {"ill": {"Flu": "flu"}},
    }
    parquet(tmp_path / "all.parquet", ROWS)
    source = at(tmp_path / "all.parquet", **words)
    plain = Csv(write_csv(tmp_path / "all.csv", ROWS), Wording(**words))
    columns = ["town", "ill"]
    assert rows_of(source, *columns) == rows_of(plain, *columns)
    assert source.marks(columns) == plain.marks(columns) != {}


# ---- the catalog, and the order of rows


@pytest.fixture
def catalog(running: Cluster, tmp_path: Path) -> Iterator[Path]:
    """Put a table and views of the rows into the catalog. Return the folder of its files."""
    sql = running.session({}).sql
    parquet(tmp_path / "files" / "all.parquet", ROWS)
    sql("CREATE SCHEMA clinic")
    sql(f"CREATE TABLE clinic.visits USING parquet LOCATION '{tmp_path / 'files'}'")
    sql("CREATE VIEW clinic.plain AS SELECT * FROM clinic.visits WHERE ill <> 'x'")
    sql("CREATE VIEW clinic.shuffled AS SELECT /*+ REPARTITION(7) */ *, uuid() AS id FROM clinic.visits")
    sql(
        "CREATE VIEW clinic.two AS SELECT a.*, concat(a.age, a.ill, a.city, b.n) AS id FROM clinic.visits a "
        "JOIN (SELECT age, count(*) AS n FROM clinic.visits GROUP BY age) b USING (age)"
    )
    yield tmp_path / "files"
    sql("DROP SCHEMA clinic CASCADE")


def of(table: str) -> Spark:
    return Spark("visits", Path(), master=MASTER, table=table)


@pytest.mark.more
def test_a_table_of_the_catalog_in_csv_files_is_refused(running: Cluster, catalog: Path) -> None:
    """An unclosed quote would make the rows behind it one value, and the catalog has its own options."""
    place, sql = catalog.parent / "texts", running.session({}).sql
    place.mkdir()
    write_csv(place / "all.csv", ROWS)
    sql(f"CREATE TABLE clinic.texts USING csv OPTIONS (header true) LOCATION '{place}'")
    sql("CREATE VIEW clinic.counted AS SELECT age, count(*) AS n FROM clinic.texts GROUP BY age")
    for name in ("clinic.texts", "clinic.counted", f"csv.`{place}`"):
        assert "stands in CSV files, whose quotes the catalog does not check" in error_of(of(name)).private


@pytest.mark.more
def test_tables_of_the_catalog(catalog: Path) -> None:
    whole = Counter(rows_of(at(catalog)))
    for name in ("clinic.visits", "`clinic`.`plain`"):
        assert Counter(rows_of(of(name))) == whole
        assert of(name).collapse(CODING).rows.read == len(ROWS)
    for name in ("nowhere", "Clinic.plain"):
        error = error_of(of(name))
        assert (error.error_id, error.private) == ("file-missing", f"visits: {name} is not there")
        assert error.remedy.startswith("correct `path` or `table` under `data` in the configuration of")
    for name in ("a b", "a;b", "", "(SELECT 1)", "parquet.`/etc`; x"):
        assert "is no name of a table; write table or schema.table" in error_of(of(name)).private


@pytest.mark.more
def test_rows_that_spark_may_shuffle_are_sorted(catalog: Path) -> None:
    """Plain columns of a second pass stand beside the records of the first, whatever Spark does between."""
    coding = replace(
        CODING, coders={"ill": Unlisted(None, distinct=True)}, ids=("id",), checked=False, matched=True
    )
    first, *others = (
        of("clinic.two").collapse(replace(coding, plain=plain)) for plain in ((), ("city",), ("age",))
    )
    assert len(first.ids[0]) > len(ROWS) / 2
    for each in others:
        assert each.ids == first.ids
        assert each.columns["ill"].codes.tolist() == first.columns["ill"].codes.tolist()
        assert each.plain is not None
        texts = zip(first.ids[0].to_pylist(), each.plain.column(0).to_pylist(), strict=True)
        assert all(text in ident for ident, text in texts)
    assert [of(f"clinic.{name}")._is_in_order for name in ("plain", "shuffled", "two")] == [
        True,
        False,
        False,
    ]


@pytest.mark.more
def test_a_large_text_file_comes_in_parts(
    running: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_csv(tmp_path / "all.csv", ROWS)
    monkeypatch.setattr("jobs.data.spark._WHOLE_BYTES", 100)
    assert rows_of(at(path)) == sorted(rows_of(Csv(path)))


# ---- what changes, and what is wrong


@pytest.mark.more
def test_only_the_name_identifies_the_table(catalog: Path) -> None:
    source = at(catalog)
    assert (source.identity, source.ledger) == ("visits", catalog.parent / "visits.privacy.sqlite")
    tables = [source, of("clinic.visits"), of("clinic.two")]
    before = [each.version() for each in tables]
    assert [each.version() for each in tables] == before
    parquet(catalog / "all.parquet", ROWS[1:])
    assert [old == each.version() for old, each in zip(before, tables, strict=True)] == [False] * 3
    for each in tables:
        told_by = Data.model_validate(each.settings()).source
        assert (told_by, told_by.held_at) == (replace(each, home=Path()), each.held_at)
    assert len({each.held_at for each in tables}) == 3


@pytest.mark.more
def test_files_that_change_between_the_passes_are_refused(
    running: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parquet(tmp_path / "all.parquet", ROWS)
    relabel = Spark.relabel

    def later(source: Spark, *given: Any) -> Any:
        os.utime(tmp_path / "all.parquet", (1, 1))  # the rows do not tell
        return relabel(source, *given)

    monkeypatch.setattr(Spark, "relabel", later)
    data = {"name": "visits", "spark": {"master": MASTER, "path": "all.parquet"}}
    columns = JOB["columns"] | {"ill": {"role": "plain"}}  # only plain columns need a second pass
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(JOB | {"data": data, "columns": columns}))
    done = invoke("coordinator", "run", tmp_path / "job.yaml", "--out", tmp_path / "out")
    assert done.code == Exit.DATA, done.err
    assert "the table changed while it was read" in done.err
    assert not (tmp_path / "out").exists()


@pytest.mark.more
def test_a_write_between_the_names_and_the_first_pass_is_refused(running: Cluster, tmp_path: Path) -> None:
    parquet(tmp_path / "all.parquet", ROWS)
    source = at(tmp_path / "all.parquet")
    assert "age" in source.column_names()
    os.utime(tmp_path / "all.parquet", (1, 1))
    with pytest.raises(DataError) as caught:
        source.collapse(CODING)
    assert str(caught.value).startswith("the table changed while it was read")


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("wrong", "error_id", "private"),
    [
        (no_file, "file-missing", "nothing-*.parquet is not there"),
        (no_path, "file-missing", "nothing.parquet is not there"),
        (two_kinds, "data-unreadable", "holds Parquet and text files; name one kind, as *.parquet"),
        (another_kind, "data-unreadable", "Spark is asked for Parquet and CSV files only"),
        (other_columns, "data-unreadable", "[CANNOT_MERGE_SCHEMAS] Failed merging schemas"),
        (cut_off, "data-unreadable", "b.parquet is not a Parquet file"),
        (latin_1, "data-unreadable", "a.csv holds text that is no UTF-8; convert the file"),
        (latin_1_as_text, "data-unreadable", "a.parquet holds text that is no UTF-8; write the file again"),
        (too_few_values, "data-unreadable", "Malformed CSV record: more or fewer values than"),
    ],
)
def test_what_is_wrong_is_told_to_the_owner(
    running: Cluster,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    wrong: Callable[[Path], str],
    error_id: str,
    private: str,
) -> None:
    (tmp_path / "it").mkdir()
    error = error_of(at(tmp_path / "it" / wrong(tmp_path / "it")))
    assert (error.error_id, str(tmp_path) in str(error)) == (error_id, False)
    assert private in error.private
    assert "\n" not in error.private
    assert "Kiel" not in error.private
    assert capfd.readouterr() == ("", "")


LINES = ["name,age,ill", *(f"Person {i},{i % 90},Flu" for i in range(40))]


def quoted_before(name: str, line: int, *, end: str = "\n", pipe: int | None = None) -> str:
    """Return text with a quote that never closes, before a column. pipe: a line with a quote inside a plain value."""
    lines = list(LINES)
    values = lines[line].split(",")
    values[LINES[0].split(",").index(name)] = '"' + values[LINES[0].split(",").index(name)]
    lines[line] = ",".join(values)
    if pipe is not None:
        lines[pipe] = '5" pipe,5,Flu'
    return end.join(lines) + end


@pytest.mark.more
@pytest.mark.parametrize(
    "text",
    [
        quoted_before("ill", 20),
        quoted_before("ill", 40),
        quoted_before("name", 40),
        quoted_before("name", 20),
        quoted_before("ill", 20, end="\r\n"),
        quoted_before("ill", 20, end="\r"),
        quoted_before("ill", 20, pipe=7),
        quoted_before("ill", 20, pipe=7).rstrip(),
        'name,age,ill\n"a ""b""\nc",1,Flu\nd,2,"Flu ""x""\n',
        'name,age,ill\n5" pipe,1,"Flu\nx,"5" y,"\n',
    ],
)
def test_a_quote_that_never_closes_is_refused(running: Cluster, tmp_path: Path, text: str) -> None:
    (tmp_path / "it").mkdir()
    (tmp_path / "it" / "a.csv").write_text("\n".join(LINES))
    (tmp_path / "it" / "b.csv").write_text(text, newline="")
    source = at(tmp_path / "it")
    with pytest.raises(DataError) as caught:
        rows_of(source, "age")
    assert 'b.csv has a quote (") without a closing quote; write' in caught.value.private
    assert "Flu" not in caught.value.private


@pytest.mark.more
def test_quotes_of_a_file_in_many_parts(
    running: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key in ("maxPartitionBytes", "openCostInBytes"):
        monkeypatch.setitem(_SETTINGS, f"spark.sql.files.{key}", "60")
    closed = [LINES[0], *(f'5" x,{i},"Flu\n{i}, ""x"""' for i in range(30))]
    (tmp_path / "a.csv").write_text("\n".join(closed))
    assert len(rows_of(at(tmp_path / "a.csv"), "ill")) == 30
    (tmp_path / "a.csv").write_text("\n".join(closed) + '\nx,5,"Flu\n' + "y,5,Flu\n" * 20)
    with pytest.raises(DataError) as caught:
        rows_of(at(tmp_path / "a.csv"), "age")
    assert "without a closing quote" in caught.value.private


@pytest.mark.more
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_quotes_that_close_are_read(running: Cluster, tmp_path: Path, end: str) -> None:
    rows = [
        ('5" pipe', "1", "Flu"),
        ("a\nb", '""\n"', 'x, "5"\n'),
        ('"', ",", '\n"\n'),
        ('5""', "", '"x"'),
        ("", '",x,"', ""),
    ]
    cells = [
        ('5" pipe', "1", "Flu"),
        *(['"' + cell.replace('"', '""') + '"' for cell in row] for row in rows[1:]),
    ]
    text = "\n".join([LINES[0], *map(",".join, cells)])
    (tmp_path / "a.csv").write_text(text.replace("\n", end), newline="")
    assert rows_of(at(tmp_path / "a.csv")) == rows


@pytest.mark.more
def test_a_quote_inside_a_quoted_value_is_refused_without_the_row(running: Cluster, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('name,age,ill\nSecret,1,"Flu" x\nb,2,Flu\n')
    source = at(tmp_path / "a.csv")
    with pytest.raises(DataError) as caught:
        rows_of(source, "age")
    assert "Unexpected character 'x' following quoted value" in caught.value.private
    assert "Secret" not in caught.value.private


@pytest.mark.more
def test_a_value_that_fits_nothing_is_told_without_a_row(running: Cluster, tmp_path: Path) -> None:
    rows = [*ROWS[:7], {"age": "4", "city": "Zebra-4711", "ill": "Flu"}]
    parquet(tmp_path / "all.parquet", rows)
    with pytest.raises(DataError, match="city") as caught:
        at(tmp_path / "all.parquet").collapse(CODING)
    assert caught.value.private == "a row: 'Zebra-4711'"


def test_a_second_cluster_is_refused(running: Cluster, tmp_path: Path) -> None:
    parquet(tmp_path / "a.parquet", ROWS)
    error = error_of(replace(at(tmp_path / "a.parquet"), master="local[1]"))
    assert error.private == f"visits: this process already runs Spark at {MASTER}"


# ---- jobs


def test_a_job_gives_the_release_of_the_csv(
    running: Cluster, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in ("engine", "file"):
        (tmp_path / name).mkdir()
    for number in range(3):
        parquet(tmp_path / "engine" / "visits" / f"{number}.parquet", ROWS[number::3])
    write_csv(tmp_path / "file" / "visits.csv", ROWS)
    engine = {"name": "visits-2026", "spark": {"master": MASTER, "path": "visits/*.parquet"}}
    outs = [run_with(tmp_path / "engine", engine), run_with(tmp_path / "file", "visits.csv")]
    tables = [sorted((out / "anonymized.csv").read_text().splitlines()) for out in outs]
    assert tables[0] == tables[1]
    everything = "".join(path.read_text(errors="replace") for path in outs[0].iterdir() if path.is_file())
    assert "parquet" not in everything
    assert capfd.readouterr() == ("", "")


@pytest.mark.more
def test_the_application_ends_with_its_last_table(running: Cluster) -> None:
    """A thread that waits with the end does not end what another thread began meanwhile."""
    (application,) = _running
    _running.clear()
    _end(application)  # another thread has ended the application
    assert running.session({}).sql("SELECT 1").count() == 1
    _running.add(application)


@pytest.mark.more
def test_a_party_reads_its_table_with_spark(running: Cluster, tmp_path: Path) -> None:
    job = joint_job()
    bundle = jobs.bundle_of(job)
    rows = sample_rows(60)
    sources: dict[str, Source] = {
        name: Csv(write_csv(tmp_path / f"{name}.csv", rows[i::3], job["columns"]))
        for i, name in enumerate(PARTIES)
    }
    task = open_task(bundle)
    run_in_process(task, sources, tmp_path / "files")
    shutil.copy(tmp_path / f"{PARTIES[1]}.csv", tmp_path / "surgeries.csv")
    sources[PARTIES[1]] = at(tmp_path / "surgeries.csv")
    run_in_process(task, sources, tmp_path / "engine")
    tables = [released(tmp_path / out, bundle) for out in ("files", "engine")]
    assert tables[0] == tables[1]
    assert b"surgeries" not in bundle.encoded


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"master": MASTER}, "give `table` or `path`: neither is there"),
        ({"master": MASTER, "table": "a", "path": "b"}, "give `table` or `path`: table and path is there"),
        ({"path": "b"}, "master"),
        ({"master": "sc://host", "path": "b"}, "master"),
    ],
)
def test_wrong_keys(tmp_path: Path, given: dict[str, str], said: str) -> None:
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(JOB | {"data": {"name": "a", "spark": given}}))
    done = invoke("coordinator", "validate", tmp_path / "job.yaml")
    assert done.code == 2
    assert said in done.err
