"""Sources that fail under a job of a single holder: one clear error or the whole release, and no file in between."""

from __future__ import annotations

import gc
import os
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.data.streaming import Streamed
from jobs.errors import Exit
from tests.support.commands import Ran, invoke, listing
from tests.support.jobs import write_csv
from tests.support.joint import sample_rows
from tests.support.kinds import KINDS, VARIABLE, Places, Rows
from tests.support.loan import table_of
from tests.support.network import write_job
from tests.support.postgres import Server, serving
from tests.support.samples import COLUMNS, single_job

WITH_PLAIN = {**COLUMNS, "ward": {"role": "plain"}}
"""Only plain columns need pass 2."""
AT_ONE_SNAPSHOT = {"postgres"}
"""Kinds for which a run never sees a change."""
COPIED = {"sqlite"}
"""Kinds for which a run sees that the table has changed, and not what."""
each_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving() as made:
        yield made


@pytest.fixture
def places(tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> Places:
    """Places of tables. All temporary files are in a folder of the test."""
    for name in ("tables", "temporary"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.setenv(VARIABLE, server.reader())
    return Places(tmp_path / "tables", server)


def some_rows(n: int = 60) -> list[dict[str, str]]:
    return [{**row, "ward": f"ward {i % 3}"} for i, row in enumerate(sample_rows(n))]


def run(folder: Path, data: Mapping[str, Any], columns: Any = WITH_PLAIN, out: str | Path = "out") -> Ran:
    """Run the sample job of a single holder. The job of a CSV file has the path alone."""
    fields = single_job(data=data.get("csv", data), columns=columns, goal="general")
    job = write_job(folder / "job", fields)
    return invoke("coordinator", "run", job, "--out", folder / out, "--format", "json")


def assert_nothing_is_left(folder: Path) -> None:
    """Assert that a failed run has left neither a release nor a temporary file."""
    gc.collect()
    assert listing(folder / "temporary") == []
    assert sorted(path.name for path in folder.iterdir()) == ["job", "tables", "temporary"]
    assert [path.name for path in (folder / "job").iterdir()] == ["job.yaml"]


@pytest.fixture
def before_pass_2(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Return what does a thing once pass 2 begins."""

    def do(thing: Callable[[], object]) -> None:
        plain = Streamed.relabel

        def relabel(self: Streamed, *given: Any) -> Iterator[pa.RecordBatch]:
            thing()
            return plain(self, *given)

        monkeypatch.setattr(Streamed, "relabel", relabel)

    return do


# ---- tables that change between the passes


CHANGES: Mapping[str, Callable[[list[dict[str, str]]], Rows]] = {
    "a value": lambda rows: [{**rows[0], "surgery": "Rare"}, *rows[1:]],
    "a number": lambda rows: [{**rows[0], "age": str((int(rows[0]["age"]) + 50) % 100)}, *rows[1:]],
    "a row less": lambda rows: rows[:-1],
    "a row more": lambda rows: [*rows, {**rows[0], "patient": "new"}],
    "another order": lambda rows: rows[::-1],
    "a plain cell": lambda rows: [{**rows[0], "ward": "ward 4711"}, *rows[1:]],
    "a value outside": lambda rows: [*rows[:-1], {**rows[-1], "job": "Zebra-4711"}],
}


@pytest.mark.by_lot(4)
@each_kind
@pytest.mark.parametrize("what", CHANGES)
def test_a_table_that_changes_between_the_passes(
    tmp_path: Path,
    kind: str,
    what: str,
    places: Places,
    before_pass_2: Callable[[Callable[[], object]], None],
) -> None:
    rows = some_rows()
    data = KINDS[kind](places, "one", rows)
    undisturbed = run(tmp_path, data, out="tables/undisturbed")
    assert undisturbed.code == 0, undisturbed.err
    before_pass_2(lambda: KINDS[kind](places, "one", CHANGES[what](rows)))
    done = run(tmp_path, data)
    if kind in AT_ONE_SNAPSHOT:
        assert done.code == 0, done.err
        tables = [table_of(tmp_path / out) for out in ("out", "tables/undisturbed")]
        assert Counter(map(str, tables[0])) == Counter(map(str, tables[1]))
        return
    assert done.code == Exit.DATA
    is_seen = what == "a value outside" and kind not in COPIED
    found = "data-unknown-value" if is_seen else "data-unreadable"
    assert done.problem["error"] == found
    assert found != "data-unreadable" or "the table changed while it was read" in done.err
    assert_nothing_is_left(tmp_path)


@pytest.mark.some(2)
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in AT_ONE_SNAPSHOT])
@pytest.mark.parametrize("how", ["gone", "cut off"])
def test_a_file_that_goes_between_the_passes(
    tmp_path: Path,
    kind: str,
    how: str,
    places: Places,
    before_pass_2: Callable[[Callable[[], object]], None],
) -> None:
    data = KINDS[kind](places, "one", some_rows())
    last = max(path for path in places.folder.rglob("*") if path.is_file())
    half = last.read_bytes()[: last.stat().st_size // 2]
    before_pass_2(last.unlink if how == "gone" else lambda: last.write_bytes(half))
    done = run(tmp_path, data)
    assert done.problem["error"] == ("file-missing" if how == "gone" else "data-unreadable")
    assert_nothing_is_left(tmp_path)


# ---- wrong types


ARROW: Mapping[str, pa.Array] = {
    "text": pa.array(["old"] * 9),
    "bytes": pa.array([b"\0\xff"] * 9, pa.binary()),
    "bool": pa.array([True] * 9),
    "list": pa.array([[1, 2]] * 9),
    "struct": pa.array([{"a": 1}] * 9),
    "no number": pa.array([float("nan")] * 9),
}
SQL = {
    "text": "'old'::text",
    "bytes": "'\\x00ff'::bytea",
    "bool": "true",
    "list": "ARRAY[1, 2]",
    "struct": "'{\"a\": 1}'::jsonb",
    "no number": "'NaN'::float8",
}


def in_parquet(tmp_path: Path, what: str) -> dict[str, Any]:
    pq.write_table(pa.table({"age": ARROW[what]}), tmp_path / "tables" / "all.parquet")
    return {"name": "one", "duckdb": {"path": str(tmp_path / "tables")}}


def in_server(tmp_path: Path, what: str) -> dict[str, Any]:
    query = f"SELECT {SQL[what]} AS age FROM generate_series(1, 9)"  # noqa: S608
    return {"name": "one", "postgres": {"dsn_env": VARIABLE, "query": query}}


@pytest.mark.some(4)
@pytest.mark.usefixtures("places")
@pytest.mark.parametrize("made", [in_parquet, in_server])
@pytest.mark.parametrize("what", ARROW)
def test_a_number_of_another_type_is_refused_with_its_row(
    tmp_path: Path, made: Callable[[Path, str], dict[str, Any]], what: str
) -> None:
    done = run(tmp_path, made(tmp_path, what), {"age": COLUMNS["age"]})
    assert done.code == Exit.DATA, done.err
    assert (done.problem["error"], done.problem["column"]) == ("data-outside-domain", "age")
    assert "row 1: " in done.err
    assert_nothing_is_left(tmp_path)


# ---- a server that goes


@pytest.mark.more
def test_a_server_that_restarts_between_the_passes(
    tmp_path: Path, places: Places, before_pass_2: Callable[[Callable[[], object]], None]
) -> None:
    data = KINDS["postgres"](places, "one", some_rows())

    def restart() -> None:
        places.server.stop()
        places.server.start()

    before_pass_2(restart)
    done = run(tmp_path, data)
    assert (done.code, done.problem["error"]) == (Exit.DATA, "data-unreadable")
    assert "the connection to the server was lost" in done.err
    assert_nothing_is_left(tmp_path)


CUT = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'jointcut'"


@pytest.mark.more
@pytest.mark.usefixtures("places")
def test_a_connection_that_is_cut_within_pass_2(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows are more than the connection holds: after the first batch most are still in the server."""
    plain, seen = Streamed.relabel, list[int]()

    def relabel(self: Streamed, *given: Any) -> Iterator[pa.RecordBatch]:
        for batch in plain(self, *given):
            seen.append(batch.num_rows)
            yield batch
            server.sql(CUT)

    monkeypatch.setattr(Streamed, "relabel", relabel)
    query = "SELECT g % 100 AS age, repeat('x', 500) AS ward FROM generate_series(1, 100000) g"
    columns = {"age": COLUMNS["age"], "ward": {"role": "plain"}}
    data = {"name": "one", "postgres": {"dsn_env": VARIABLE, "query": query}}
    done = run(tmp_path, data, columns)
    assert (done.code, done.problem["error"]) == (Exit.DATA, "data-unreadable")
    assert "the connection to the server was lost" in done.err
    assert 0 < sum(seen) < 100_000
    assert_nothing_is_left(tmp_path)


# ---- full disks


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Callable[[int], Path]]:
    """Return what mounts a disk of so many bytes, or skip the test."""
    mounted = []

    def make(size: int) -> Path:
        if os.geteuid() != 0:
            pytest.skip("only root can mount a small disk")
        folder = tmp_path / "temporary" if (tmp_path / "temporary").exists() else tmp_path / "disk"
        folder.mkdir(exist_ok=True)
        mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
        if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
            pytest.skip("this machine does not let us mount a small disk")
        mounted.append(folder)
        return folder

    yield make
    gc.collect()
    for folder in mounted:
        subprocess.run(["umount", str(folder)], check=True)  # noqa: S607


def test_a_disk_that_is_full_when_duckdb_outgrows_its_memory(
    tmp_path: Path, places: Places, disk: Callable[[int], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nearly all rows differ, so DuckDB has more to count than it can hold."""
    disk(2 << 20)
    monkeypatch.setattr("jobs.file.table._LEAST_MB", 40)
    rng = np.random.default_rng(0)
    table = pa.table({name: rng.integers(0, 4000, 2_000_000) for name in "ab"})
    pq.write_table(table, places.folder / "all.parquet")
    duckdb = {"path": str(places.folder), "memory_limit": "40MB"}
    columns = {name: {"role": "qid", "numeric": {"min": "0", "max": "4000", "step": "1"}} for name in "ab"}
    done = run(tmp_path, {"name": "one", "duckdb": duckdb}, columns)
    assert (done.code, done.problem["error"]) == (Exit.DATA, "data-unreadable")
    assert f"`memory_limit: 40MB` and the free space in {tmp_path / 'temporary'}" in done.err
    assert "set TMPDIR to a folder with more free space" in done.problem["remedy"]
    assert "PRAGMA" not in done.err
    assert_nothing_is_left(tmp_path)


@pytest.mark.some(2)
@pytest.mark.parametrize("part", [0.1, 0.5, 0.9])
def test_a_disk_that_is_full_while_a_release_is_written(
    tmp_path: Path, disk: Callable[[int], Path], part: float
) -> None:
    """The disk has room for some files of the release. Whatever file fails, none is left."""
    data = {"csv": {"path": str(write_csv(tmp_path / "table.csv", some_rows(3000)))}}
    assert run(tmp_path, data, out="whole").code == 0
    needed = sum(path.stat().st_size for path in (tmp_path / "whole").iterdir())
    folder = disk(int(needed * part))
    done = run(tmp_path, data, out="disk/out")
    assert (done.code, done.problem["error"]) == (Exit.FAILED, "io-failed"), done.err
    assert "No space left on device" in done.err
    assert listing(folder) == []
