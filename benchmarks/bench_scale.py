"""Large tables of one holder: whole processes from file to verified file, and what they hold in memory.

    python -m benchmarks.bench_scale [CASE ...]

Each case is one function that gives rows. Figures of pandas are of whole processes in the same run, taken in turn
with ours; CPU seconds are medians.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.csv

from benchmarks.bench_lkc import Process, run_process
from benchmarks.scale_postgres import postgres
from benchmarks.scale_tables import table, written_job
from benchmarks.shared_jobs import OUT
from benchmarks.support import Row, publish
from jobs.release_csv import TABLE
from jointcut.launcher import command

_PANDAS = "import sys, pandas; pandas.read_csv(sys.argv[1]).to_csv(sys.argv[2], index=False)"
_MILLION = 1_000_000
TARGETS = {("infogain", 4): 0.8, ("infogain", 2): 1.0, ("added", 4): None, ("added", 2): None}
"""By score and L at most how much of the CPU seconds of pandas."""


def _out(name: str) -> Path:
    path = OUT / "scale" / f"out-{name}"
    shutil.rmtree(path, ignore_errors=True)
    return path


def released(job: Path, *more: str) -> tuple[Process, Path]:
    """A run from file to verified file, and its folder."""
    out = _out(job.stem)
    return run_process([*command("coordinator"), "run", str(job), "--out", str(out), *more]), out


def of_pandas(data: Path) -> Process:
    """Reading and writing the same table."""
    out = OUT / "scale" / "pandas.csv"
    return run_process([sys.executable, "-c", _PANDAS, str(data), str(out)])


def csv_to_csv() -> list[Row]:
    """One million rows, against pandas."""
    data = table(_MILLION, "csv")
    jobs = {key: written_job(_MILLION, "csv", key[1], key[0]) for key in TARGETS}
    pandas: list[Process] = []
    ours: dict[tuple[str, int], list[Process]] = {key: [] for key in jobs}
    for _ in range(3):
        pandas.append(of_pandas(data))
        for key, job in jobs.items():
            ours[key].append(released(job)[0])
    base = statistics.median(each.cpu_s for each in pandas)
    rows = []
    for (score, L), runs in ours.items():
        cpu_s, name = statistics.median(run.cpu_s for run in runs), f"1 M rows, CSV to CSV, {score}, L={L}"
        said = f"{cpu_s:.2f} CPU s; pandas read + write {base:.2f}"
        rows.append(Row(f"{name}: of pandas", cpu_s / base, "", TARGETS[score, L], anchor=said))
        rows.append(Row(f"{name}: peak memory", max(run.peak_mb for run in runs), "MB", 500))
    return rows


def _verified(name: str, job: Path, out: Path, target_mb: float | None) -> list[Row]:
    """What verifying a folder takes."""
    run = run_process([*command("coordinator"), "verify", str(job), str(out)])
    return [
        Row(f"{name}: verify", run.cpu_s, "CPU s"),
        Row(f"{name}: verify, peak memory", run.peak_mb, "MB", target_mb),
    ]


def _of_form(n_rows: int, form: str, more: Sequence[str], target_mb: float | None) -> list[Row]:
    name = f"{n_rows // _MILLION} M rows, {form} to {'parquet' if more else 'csv'}, infogain, L=4"
    job = written_job(n_rows, form, 4, "infogain")
    run, out = released(job, *more)
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file()) / 1e6
    return [
        Row(
            f"{name}: whole process, verified",
            run.cpu_s,
            "CPU s",
            anchor=f"{run.wall_s:.1f} s; {size:.0f} MB",
        ),
        Row(f"{name}: peak memory", run.peak_mb, "MB", target_mb),
        *_verified(name, job, out, target_mb),
    ]


def million_in_parts() -> list[Row]:
    """One million rows as Parquet in parts."""
    return _of_form(_MILLION, "parquet", ["--parquet", "--part-rows", "250000"], 500)


def ten_million() -> list[Row]:
    """Ten million rows."""
    return _of_form(10 * _MILLION, "csv", [], 1200)


def ten_million_in_parts() -> list[Row]:
    """The same from and to Parquet."""
    return _of_form(10 * _MILLION, "parquet", ["--parquet"], 1200)


def _within_memory(n_rows: int) -> tuple[Process, float]:
    """The same with DuckDB and `memory_limit: 2GB`; with CPU seconds per million rows."""
    data = {"path": table(n_rows, "parquet").name, "memory_limit": "2GB"}
    run, _ = released(_job_of(n_rows, "duckdb", data), "--parquet")
    return run, run.cpu_s / (n_rows / _MILLION)


def _job_of(n_rows: int, source: str, data: Mapping[str, Any]) -> Path:
    """The job of so many rows, with the table elsewhere."""
    job = written_job(n_rows, "parquet", 4, "infogain")
    other = job.with_stem(f"{job.stem}-{source}")
    other.write_text(json.dumps({**json.loads(job.read_text()), "data": data}))
    return other


def duckdb() -> list[Row]:
    """Ten and a hundred million rows with DuckDB."""
    name = "rows, parquet to parquet, DuckDB, 2 GB, infogain, L=4"
    ten, base = _within_memory(10 * _MILLION)
    hundred, each = _within_memory(100 * _MILLION)
    return [
        Row(f"10 M {name}", ten.wall_s, "s", 30, anchor=f"{ten.cpu_s:.1f} CPU s"),
        Row(f"10 M {name}: peak memory", ten.peak_mb, "MB", 2000),
        Row(f"100 M {name}", hundred.wall_s, "s", anchor=f"{hundred.cpu_s:.1f} CPU s"),
        Row(f"100 M {name}: peak memory", hundred.peak_mb, "MB"),
        Row(f"100 M {name}: CPU of a row, of 10 M", each / base, "", 1.5),
    ]


def spark() -> list[Row]:
    """Five million rows of Parquet that Spark reads in this machine, against the same rows as CSV."""
    n_rows = 5 * _MILLION
    data = {"spark": {"master": "local[2]", "path": str(table(n_rows, "parquet").resolve())}}
    run, out = released(_job_of(n_rows, "spark", data))
    base, expected = released(written_job(n_rows, "csv", 4, "infogain"))
    different = _records(out) != _records(expected)
    name = "5 M rows, Spark local[2], infogain, L=4"
    said = f"{run.cpu_s:.1f} CPU s, of Java most; of CSV {base.wall_s:.1f} s, {base.cpu_s:.1f} CPU s"
    return [
        Row(f"{name}: whole process, verified", run.wall_s, "s", anchor=said),
        Row(f"{name}: tables that are not the same multiset of records", float(different), "", 0),
    ]


def _records(out: Path) -> list[dict[str, Any]]:
    """The different records of a release, in order, each with how often it is there."""
    found = pyarrow.csv.read_csv(out / TABLE)
    counted = found.group_by(found.column_names).aggregate([([], "count_all")])
    order = [(name, "ascending") for name in counted.column_names]
    records: list[dict[str, Any]] = counted.sort_by(order).to_pylist()
    return records


CASES: dict[str, Callable[[], list[Row]]] = {
    each.__name__: each
    for each in (csv_to_csv, million_in_parts, ten_million, ten_million_in_parts, duckdb, postgres, spark)
}


def main() -> None:
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115  progress lines of the runs
    rows: list[Row] = []
    for name in sys.argv[1:] or CASES:
        rows += CASES[name]()
        print(f"done: {name}", flush=True)
    publish("large tables", rows, OUT.parent / "bench-scale.json")


if __name__ == "__main__":
    main()
