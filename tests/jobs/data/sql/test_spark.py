"""Tables that Spark reads, on a real one of this machine: the texts, codes and rows of files, and what is refused."""

from __future__ import annotations

import datetime
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from anonymize.errors import DataError
from anonymize.tds import Observer
from coordinator.simulate import source_of_job
from jobs.data.coders import BAD, Categorical, Coder, Unlisted
from jobs.data.coding import Coding, Published
from jobs.data.sources import Csv, Parquet
from jobs.data.sql import spark_process
from jobs.data.sql.spark_process import PROCESS
from jobs.data.sql.spark_tables import Spark
from jobs.database import SparkTable
from jobs.errors import problem_of
from jobs.lkc.run_alone import release_to_folder
from jobs.options import NO_OPTIONS
from jobs.reading import load_columns
from jobs.release_csv import TABLE
from jobs.stopwatch import Stopwatch
from tests.support import jobs
from tests.support.bare import bare
from tests.support.joint import sample_rows
from tests.support.pushed import CODERS, InMemory, same_pass_1, same_pass_2
from tests.support.samples import COLUMNS, columns, single_job, vertical_job

HERE = "local[2]"
ROOT = Path(__file__).parents[4]

pytestmark = pytest.mark.skipif(
    shutil.which("java") is None, reason="needs Java (Debian: default-jre-headless), which is not here"
)


@pytest.fixture(scope="module", autouse=True)
def _java_ends() -> Iterator[None]:
    """Java compiles in haste: most of what it compiles here runs once."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1")
        yield
        PROCESS.end()


def in_a_file(folder: Path, table: pa.Table) -> Spark:
    pa.parquet.write_table(table, folder / "t.parquet")
    return Spark(HERE, path=str(folder / "t.parquet"))


def every_text(*names: str) -> Coding:
    return Coding({name: Unlisted(None) for name in names}, (), checked=True, outside=False)


def refused(ask: Callable[[], Any]) -> DataError:
    with pytest.raises(DataError) as caught:
        ask()
    return caught.value


# ---- the same as a Parquet file

NAN = float("nan")
EVERY: dict[str, tuple[pa.DataType, list[Any]]] = {
    "micro`seconds": (pa.timestamp("us"), [0, 1_234_567_890_123_456, -1]),
    "in UTC": (pa.timestamp("us", "UTC"), [0, 1_234_567_890_123_456, -62_000_000_000_000_000]),
    "date.day": (
        pa.date32(),
        [datetime.date(1, 1, 1), datetime.date(2024, 2, 29), datetime.date(1500, 3, 1)],
    ),
    "decimal": (
        pa.decimal128(38, 2),
        [Decimal("5.00"), Decimal("-0.05"), Decimal("0.00"), Decimal(10) ** 35],
    ),
    "bytes": (pa.binary(), [b"a", b"", "é".encode()]),
    "bool": (pa.bool_(), [True, False, True]),
    "big": (pa.uint64(), [2**64 - 1, 0, 2**53 + 1]),
    "tiny": (pa.int8(), [-128, 127, 0]),
    "text": (pa.string(), ["a", "", "e\u0301", "a ", " a", "A"]),
    "Text": (pa.string(), ["é", "x'\"`\\", "a\nb", "?"]),
    "real": (
        pa.float64(),
        [NAN, -0.0, 0.0, float("-inf"), 1e300, 2e-3, 1e16, 5e-324, 2.0**-44, 123456789012345680.0, 2e23],
    ),
    "short real": (pa.float32(), [0.1, 16777216.0, -0.0, 0.0, 1e-45, 3.4028235e38]),
    "nothing": (pa.int32(), []),
}
N = 12
TYPES = {name: pa.array(cells + [None] * (N - len(cells)), kind) for name, (kind, cells) in EVERY.items()}


def test_cells_of_every_type_have_the_texts_of_a_parquet_file(tmp_path: Path) -> None:
    table = pa.concat_tables([pa.table(TYPES)] * 2)
    source = in_a_file(tmp_path, table)
    assert source.column_names() == table.column_names
    assert source.column_names() == Parquet(tmp_path / "t.parquet").column_names()
    coded = same_pass_1(source, Parquet(tmp_path / "t.parquet"), every_text(*table.column_names))
    assert coded.weights.tolist() == [2] * N
    same_pass_2(source, Parquet(tmp_path / "t.parquet"), {}, table.column_names)


@pytest.mark.parametrize("column", [pa.array([[5], [6]]), pa.array([{"x": 1}]), pa.array([b"\xff", b"a"])])
def test_cells_without_a_text_are_refused(tmp_path: Path, column: pa.Array) -> None:
    source = in_a_file(tmp_path, pa.table({"x": column}))
    problem = refused(lambda: source.collapse(every_text("x")))
    assert problem.error_id == "data-unreadable"


RNG = np.random.default_rng(5)
REALS = [-0.0, 0.0, NAN, None, 5.0, 1e300, 99.5, 100.0]
ROWS = pa.table(
    {
        "id": [1, 2, 2, None, *range(4, 40)],
        "text": [["a", "", None, "e\u0301", "é", "a;b", "?", "5"][i] for i in RNG.integers(0, 8, 40)],
        "real": [REALS[i] for i in RNG.integers(0, 8, 40)],
        "whole": [[5, None, 200, -1, 2**53 + 1][i] for i in RNG.integers(0, 5, 40)],
        "plain": [["p", None, "", "?", "é", "e\u0301"][i] for i in RNG.integers(0, 6, 40)],
    }
)
CODINGS: dict[str, Coder] = {
    "text": CODERS["taxonomy"],
    "real": CODERS["clamped with a cell for missing"],
    "whole": CODERS["clamped"],
}


@pytest.mark.parametrize("many_cells", [100, 3])
def test_spark_tells_what_streaming_tells(tmp_path: Path, many_cells: int) -> None:
    """With few cells they are counted there; with more, numbers by intervals, or rows are streamed."""
    source = in_a_file(tmp_path, ROWS)
    object.__setattr__(source, "many_cells", many_cells)
    coding = Coding(CODINGS, ("id",), checked=True, outside=True)
    coded = same_pass_1(source, InMemory(ROWS), coding)
    assert coded.n_ids is not None
    numbers = Coding({n: CODINGS[n] for n in ("real", "whole")}, (), checked=False, outside=True)
    same_pass_1(source, InMemory(ROWS), numbers)
    labels = pa.array([f"label {i}" for i in range(12)])
    published = {n: Published(c, np.arange(12, dtype=np.int64)[::-1], labels) for n, c in CODINGS.items()}
    same_pass_2(source, InMemory(ROWS), published, ["plain", "text", "real", "whole"])


def test_columns_of_a_vertical_job_come_in_the_order_of_their_ids(tmp_path: Path) -> None:
    """The same order at any time, whatever files the rows are in."""
    rows = sample_rows(60)
    task = jobs.task_of(vertical_job())
    (tmp_path / "parts").mkdir()
    table = pa.Table.from_pylist(rows)
    order = np.random.default_rng(3).permutation(60)
    pa.parquet.write_table(table, tmp_path / "t.parquet")
    for i in range(3):
        part = table.take(pa.array(order[i * 20 : i * 20 + 20]))
        pa.parquet.write_table(part, tmp_path / "parts" / f"{i}.parquet")
    one = load_columns(Spark(HERE, path=str(tmp_path / "t.parquet")), task, "bank")
    many = load_columns(Spark(HERE, path=str(tmp_path / "parts")), task, "bank")
    assert one.holding.same_as(many.holding)
    assert one.canonical() == load_columns(Parquet(tmp_path / "t.parquet"), task, "bank").canonical()


def test_a_release_is_that_of_the_csv(tmp_path: Path) -> None:
    rows = sample_rows(200)
    path = jobs.write_csv(tmp_path / "table.csv", rows, COLUMNS)
    (tmp_path / "parts").mkdir()
    for i in range(2):
        part = pa.Table.from_pylist(rows[i * 100 : i * 100 + 100])
        pa.parquet.write_table(part, tmp_path / "parts" / f"{i}.parquet")
    task = jobs.task_of(single_job(columns=columns()))
    released = []
    for i, source in enumerate((Csv(path), Spark(HERE, path=str(tmp_path / "parts")))):
        out = tmp_path / f"out{i}"
        release_to_folder(task, source, out, NO_OPTIONS, Stopwatch(lambda name: None), Observer())
        released.append(sorted((out / TABLE).read_text().splitlines()))
    assert released[0] == released[1]


# ---- tables of a catalog


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Any]:
    """Spark's own session, with a database that has the sample rows as `clinic.stays`, and views."""
    spark = PROCESS.session(HERE)
    in_a_file(tmp_path, ROWS)
    spark.sql("CREATE DATABASE clinic")
    spark.read.parquet(str(tmp_path / "t.parquet")).write.saveAsTable("clinic.stays")
    yield spark
    spark.sql("DROP DATABASE clinic CASCADE")


def test_tables_and_views(catalog: Any) -> None:
    catalog.sql("CREATE VIEW clinic.some AS SELECT id, text, real FROM clinic.stays WHERE id < 20")
    coding = Coding({"text": CODERS["taxonomy"]}, (), checked=True, outside=False)
    table, view = Spark(HERE, "clinic.stays"), Spark(HERE, "clinic.some")
    same_pass_1(table, InMemory(ROWS), coding)
    some = ROWS.filter(pa.compute.less(ROWS["id"], 20)).select(["id", "text", "real"])
    same_pass_1(view, InMemory(some), coding)
    assert view.column_names() == ["id", "text", "real"]
    assert not [each.name for each in catalog.catalog.listTables() if each.name.startswith("jointcut")]
    first = (table.version(), view.version())
    assert first == (table.version(), view.version())
    catalog.sql("INSERT INTO clinic.stays SELECT * FROM clinic.stays")
    assert table.version() != first[0]
    assert view.version() != first[1]
    assert refused(Spark(HERE, "clinic.none").column_names).error_id == "file-missing"


def test_texts_that_a_collation_takes_for_equal(catalog: Any) -> None:
    catalog.sql("CREATE TABLE clinic.bent (t STRING COLLATE UTF8_LCASE) USING parquet")
    catalog.sql("INSERT INTO clinic.bent VALUES ('a'), ('A'), ('A'), (NULL)")
    coded = Spark(HERE, "clinic.bent").collapse(every_text("t"))
    assert coded.columns["t"].domain == ("?", "A", "a")
    assert sorted(coded.weights.tolist()) == [1, 1, 2]


# ---- what changes, and what is not there


def test_a_table_that_changes_while_it_is_read(tmp_path: Path) -> None:
    source = in_a_file(tmp_path, ROWS)
    before = source.version()
    assert before == source.version()

    def change() -> None:
        with source.session(["text"]):
            in_a_file(tmp_path, ROWS.slice(0, 20))

    problem = refused(change)
    assert (problem.error_id, "changed" in str(problem)) == ("data-unreadable", True)
    assert source.version() != before


def test_a_value_that_is_refused_is_told_to_the_owner_alone(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    source = in_a_file(tmp_path, pa.table({"job": ["Mover", "S3CRET"]}))
    coding = Coding({"job": Categorical({"Mover": 0}, BAD)}, (), checked=True, outside=False)
    problem = refused(lambda: source.collapse(coding))
    assert (problem.error_id, problem.column) == ("data-unknown-value", "job")
    assert problem.private == "in a row: 'S3CRET'"
    with source.session(["job"]) as session:
        problem = refused(lambda: list(session.query(f"SELECT CAST(job AS INT) FROM {session.table}")))  # noqa: S608
    assert problem.error_id == "data-unreadable"
    assert "'Mover'" in problem.private
    assert "Mover" not in json.dumps(problem_of(problem).shared()) + str(problem)
    assert capfd.readouterr() == ("", "")


def test_what_is_not_there_or_no_table(tmp_path: Path) -> None:
    assert refused(Spark(HERE, path=str(tmp_path / "none")).version).error_id == "file-missing"
    (tmp_path / "t.parquet").write_bytes(b"no table")
    assert refused(Spark(HERE, path=str(tmp_path / "t.parquet")).version).error_id == "data-unreadable"


def test_a_master_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not waited for, and what runs goes on."""
    before = PROCESS.session(HERE).sparkContext
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        master = f"spark://127.0.0.1:{nobody.getsockname()[1]}"
        problem = refused(Spark(master, "clinic.stays").column_names)
    assert (problem.error_id, problem.cause) == ("data-unreachable", f"nobody answers at {master}")
    assert PROCESS.session(HERE).sparkContext is before


def test_without_the_extra_or_java(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setenv("PATH", "/nowhere")
        problem = refused(Spark(HERE, "a.b").column_names)
        assert (problem.error_id, "Java" in str(problem)) == ("extra-missing", True)
    monkeypatch.setitem(sys.modules, "pyspark", None)
    problem = refused(Spark(HERE, "a.b").column_names)
    assert (problem.error_id, problem.remedy) == (
        "extra-missing",
        "its owner: pip install 'jointcut[spark]'",
    )


# ---- names


def test_a_data_set_is_its_path_or_its_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "t.parquet")
    here = Spark(HERE, path=str(tmp_path / "link"))
    assert here.identity == Parquet(tmp_path / "link").identity
    assert here.ledger == Parquet(tmp_path / "link").ledger
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    for source, identity in (
        (Spark("local[4]", "a.b"), "local?table=a.b"),
        (Spark("spark://h:7077", "a.b"), "spark://h:7077?table=a.b"),
        (Spark("spark://h:7077", path="/t"), "spark://h:7077?path=/t"),
        (Spark("spark://h:7077", path="hdfs://n/t/"), "hdfs://n/t"),
    ):
        assert source.identity == identity
        assert source.ledger == Path("/state/jointcut/privacy.sqlite")


def test_a_job_names_a_table() -> None:
    data = {"spark": {"master": HERE, "table": "clinic.stays"}}
    table = jobs.task_of(single_job(data=data)).job.table
    assert isinstance(table, SparkTable)
    assert source_of_job(ROOT, table) == Spark(HERE, "clinic.stays")
    assert table.source.settings() == data


# ---- a machine that is not ours

ALONE = """
import sys
from jobs.data.sql.spark_process import PROCESS
from jobs.data.sql.spark_tables import Spark
print(Spark("local[1]", path=sys.argv[1]).column_names())
print(PROCESS._gateway.proc.pid)
"""


def test_java_ends_with_us_and_leaves_nothing(tmp_path: Path) -> None:
    """In an environment with nothing in it."""
    in_a_file(tmp_path, ROWS)
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    command = [sys.executable, "-c", ALONE, str(tmp_path / "t.parquet")]
    env = {name: bare()[name] for name in ("PATH", "HOME") if name in bare()} | {"TMPDIR": str(temporary)}
    ran = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert (ran.stderr, ran.returncode) == ("", 0)
    names, pid = ran.stdout.splitlines()
    assert names == str(ROWS.column_names)
    assert not os.path.exists(f"/proc/{pid}")
    assert list(temporary.iterdir()) == []
    assert not (ROOT / "metastore_db").exists()
    assert not (ROOT / "spark-warehouse").exists()


def test_spark_that_went_away_comes_back(tmp_path: Path) -> None:
    source = in_a_file(tmp_path, ROWS)
    source.column_names()

    def cut() -> None:
        with source.session(["text"]) as session:
            PROCESS._gateway.proc.kill()
            list(session.query(f"SELECT text FROM {session.table}"))  # noqa: S608

    problem = refused(cut)
    assert (problem.error_id, problem.cause) == ("data-unreachable", "Spark went away")
    assert source.column_names() == ROWS.column_names
    assert spark_process.is_local(HERE)
