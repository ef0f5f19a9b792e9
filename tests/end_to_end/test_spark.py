"""Jobs over tables that Spark reads, in real processes: a quiet driver, and a cluster whose executors are killed."""

from __future__ import annotations

import os
import signal
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from anonymize.errors import DataError
from coordinator.run import run_joint
from jobs.data import cluster
from jobs.data.sources import Csv
from jobs.data.spark import Spark
from jobs.errors import Exit
from jobs.release.csv import TABLE
from tests.support.commands import Ran, invoke
from tests.support.jobs import write_csv
from tests.support.network import call, processes, sample_network
from tests.support.parts import CODING, JOB, NAMES, ROWS, parquet, told
from tests.support.samples import PARTIES
from tests.support.spark import MASTER, QUICK, Standalone, needs_java, standalone

pytestmark = [needs_java, pytest.mark.more]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JDK_JAVA_OPTIONS", QUICK)


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quick: None) -> Iterator[Path]:
    """Give all programs an empty folder for temporary files. After the test the folder is empty."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    yield folder
    assert not [path for path in folder.iterdir() if path.name.startswith(("jointcut-", "spark", "blockmgr"))]


def job_of(folder: Path, master: str, **columns: Any) -> Path:
    data = {"name": "visits", "spark": {"master": master, "path": "visits"}}
    for number in range(4):
        parquet(folder / "visits" / f"{number}.parquet", ROWS[number::4])
    (folder / "job.yaml").write_text(
        yaml.safe_dump(JOB | {"data": data, "columns": JOB["columns"] | columns})
    )
    return folder / "job.yaml"


def of_csv(folder: Path, **columns: Any) -> list[str]:
    """Return the rows of the release of the CSV."""
    write_csv(folder / "visits.csv", ROWS)
    job = JOB | {"data": "visits.csv", "columns": JOB["columns"] | columns}
    (folder / "csv.yaml").write_text(yaml.safe_dump(job))
    done = invoke("coordinator", "run", folder / "csv.yaml", "--out", folder / "csv")
    assert done.code == 0, done.err
    return rows_of(folder / "csv")


def rows_of(folder: Path) -> list[str]:
    return sorted((folder / TABLE).read_text().splitlines())


def assert_quiet(ran: Ran) -> None:
    said = ran.out + ran.err
    assert not [
        word for word in ("WARN", "ERROR", "INFO", "Spark", "spark", "java", "pandas") if word in said
    ]


# ---- a driver alone


def test_a_run_in_a_process_of_its_own(tmp_path: Path, temporary: Path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    done = call("run", job_of(tmp_path, MASTER), "--out", tmp_path / "out", cwd=here)
    assert done.code == 0, done.err
    assert_quiet(done)
    assert rows_of(tmp_path / "out") == of_csv(tmp_path)
    assert list(here.iterdir()) == []
    (tmp_path / "visits" / "0.parquet").write_bytes(b"none")
    done = call("run", tmp_path / "job.yaml", "--out", tmp_path / "none", cwd=here)
    assert (done.code, "0.parquet" in done.err, "\tat " in done.err) == (Exit.DATA, True, False)
    assert not (tmp_path / "none").exists()
    assert list(here.iterdir()) == []


def test_a_daemon_reads_its_table_with_spark(tmp_path: Path, temporary: Path) -> None:
    net = sample_network(tmp_path / "net")
    name = PARTIES[1]
    data = {"name": "a", "spark": {"master": MASTER, "path": str(tmp_path / "net" / f"{name}.csv")}}
    net.change(name, lambda fields: fields.update(data=data))
    with processes(net) as running:
        for i in range(2):
            run_joint(net.task, net.coordinator, tmp_path / f"out-{i}")
        assert "spark" not in running.log(name).lower()


# ---- a cluster


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    with standalone(tmp_path_factory.mktemp("spark")) as made:
        yield made


def test_a_cluster_gives_the_release_of_the_csv(
    tmp_path: Path, workers: Standalone, quick: None, temporary: Path
) -> None:
    plain = {"ill": {"role": "plain"}}
    done = invoke("coordinator", "run", job_of(tmp_path, workers.master, **plain), "--out", tmp_path / "out")
    assert done.code == 0, done.err
    assert_quiet(done)
    assert rows_of(tmp_path / "out") == of_csv(tmp_path, **plain)


def test_killed_executors_change_nothing(tmp_path: Path, workers: Standalone, quick: None) -> None:
    for number in range(12):
        parquet(tmp_path / "visits" / f"{number}.parquet", ROWS[number::12] * 20)
    source = Spark("visits", tmp_path, master=workers.master, path=str(tmp_path / "visits"))
    wanted = told(Csv(write_csv(tmp_path / "all.csv", ROWS * 20)))
    counts, domains, rows, _ = told(source)
    assert (counts, domains, rows) == wanted[:3]
    first, killed = [], []
    for batch in source.batches(NAMES):
        first += batch.to_pylist()
        if not killed:
            killed = workers.executors()
            assert len(killed) == 2
            for pid in killed:
                os.kill(pid, signal.SIGKILL)
    assert Counter(map(str, first)) == Counter(str(row) for row in ROWS * 20)
    assert [row for batch in source.batches(NAMES) for row in batch.to_pylist()] == first
    assert source.collapse(CODING).rows == rows


def test_a_cluster_without_workers(tmp_path: Path, quick: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "_GRANTED_S", 1)
    (tmp_path / "spark").mkdir()
    with standalone(tmp_path / "spark", 0) as alone, pytest.raises(DataError) as caught:
        Spark("visits", tmp_path, master=alone.master, path=str(tmp_path)).column_names()
    assert "gives no executor within 1 s: the workers are busy, away, " in caught.value.private
