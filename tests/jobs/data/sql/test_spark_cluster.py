"""Tables that Spark reads, on a real cluster: a master, a worker and its executors are processes of their own."""

from __future__ import annotations

import csv
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet
import pytest

from anonymize.errors import DataError
from coordinator.run import run_joint
from coordinator.simulate import parties_on_loopback
from jobs.data.coders import Unlisted
from jobs.data.coding import Coding
from jobs.data.sources import Csv, Source
from jobs.data.sql import spark_process
from jobs.data.sql.spark_process import PROCESS
from jobs.data.sql.spark_tables import Spark
from jobs.loading import load_task
from jobs.release_csv import TABLE
from tests.support import spark_cluster
from tests.support.commands import invoke
from tests.support.example import EXAMPLE, example_tables
from tests.support.pushed import InMemory, same_pass_1, same_pass_2

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        shutil.which("java") is None, reason="needs Java (Debian: default-jre-headless), which is not here"
    ),
]


@pytest.fixture(autouse=True)
def _java_ends(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1")
    yield
    PROCESS.end()


def as_parquet(table: Path, folder: Path) -> Path:
    """A CSV as a folder of two Parquet files, all columns text."""
    rows = pyarrow.csv.read_csv(table)
    text = rows.cast(pyarrow.schema([(name, pyarrow.string()) for name in rows.column_names]))
    folder.mkdir()
    half = text.num_rows // 2
    for i, part in enumerate((text.slice(0, half), text.slice(half))):
        pyarrow.parquet.write_table(part, folder / f"part-{i}.parquet")
    return folder


def rows(path: Path) -> Counter[tuple[str, ...]]:
    with path.open(newline="") as file:
        return Counter(map(tuple, csv.reader(file)))


def test_a_cluster_reads_what_files_hold_and_a_party_of_a_joint_job_may_use_it(tmp_path: Path) -> None:
    tables = example_tables()
    path = as_parquet(tables["hospital-a"], tmp_path / "stays")
    with spark_cluster.cluster(tmp_path) as master:
        source = Spark(master, path=str(path))
        expected = InMemory(pyarrow.parquet.read_table(path))
        names = source.column_names()
        assert names == expected.table.column_names
        coders = {name: Unlisted(None) for name in names}
        same_pass_1(source, expected, Coding(coders, (), checked=True, outside=False))
        same_pass_2(source, expected, {}, names)
        assert executors(master) == 1
        PROCESS.end()  # the worker has room for one application, and the party's daemon is another
        sources: dict[str, Source] = {name: Csv(table) for name, table in tables.items()}
        task = load_task(EXAMPLE / "job.yaml")
        with parties_on_loopback(task, sources | {"hospital-a": source}) as config:
            run_joint(task, config, tmp_path / "out")
    alone = invoke("coordinator", "simulate", EXAMPLE / "job.yaml", "--in-process", "--out", tmp_path / "csv",
                   *(word for name, table in tables.items() for word in ("--data", f"{name}={table}")))  # fmt: skip
    assert alone.code == 0, alone.err
    assert rows(tmp_path / "out" / TABLE) == rows(tmp_path / "csv" / TABLE)


def executors(master: str) -> int:
    """Who computes besides the driver."""
    return int(PROCESS.session(master).sparkContext._jsc.sc().getExecutorMemoryStatus().size()) - 1


def test_a_cluster_without_a_worker_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_process, "WORKERS_S", 1)
    with spark_cluster.master(tmp_path) as master, pytest.raises(DataError) as caught:
        Spark(master, path="/stays").column_names()
    assert caught.value.error_id == "data-unreachable"
    assert caught.value.cause == f"no worker of {master} took the work within 1 s"
