"""Tables beyond memory: Parquet to Parquet through DuckDB, and through Spark, from the files to the verified release.

    python -m benchmarks.bench_beyond [rows=10000000] [large=100000000] [spark=5000000]

The rows are Adult's, drawn with replacement, with a tenth of the cells of each column drawn again from the column; a
part of a million rows is drawn at a time. Figures are of whole processes. A number of rows of 0 leaves a part out.
Spark runs on two cores of this machine, and on a standalone cluster of two workers with a core each. The Java
processes of Spark are no children of the run, so only the wall seconds hold their work.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import yaml

from benchmarks.shared_jobs import shared_job
from benchmarks.support import Process, Row, publish, run_process
from jobs.release.csv import PARTS_OF_TABLE
from jobs.release.parts import PARTS
from jointcut.launcher import command
from tests.support.spark import standalone

ROWS, LARGE, SPARK = 10_000_000, 100_000_000, 5_000_000
MOST_S, MOST_MB, MOST_RATIO = 30.0, 2000.0, 1.5
_PART = 1 << 20
_MODEL = {"lkc": {"L": 4, "K": 20, "C": 1, "score": "infogain", "files": "parquet"}}


def drawn(adult: pa.Table, n: int, part: int) -> pa.Table:
    """Return ``n`` rows of text. part: number of the part, the seed."""
    rng = np.random.default_rng([0, part])
    rows, columns = rng.integers(0, adult.num_rows, n), {}
    for name in adult.column_names:
        places = np.where(rng.random(n) < 0.1, rng.integers(0, adult.num_rows, n), rows)
        columns[name] = adult.column(name).take(pa.array(places))
    return pa.table(columns)


def write_parts(folder: Path, n: int) -> None:
    """Write ``n`` rows as Parquet files."""
    path = shared_job("adult") / "raw.csv"
    with path.open() as file:
        names = file.readline().strip().split(",")
    text = pa_csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()))
    raw = pa_csv.read_csv(path, convert_options=text)
    folder.mkdir()
    for number, start in enumerate(range(0, n, _PART)):
        pq.write_table(drawn(raw, min(_PART, n - start), number), folder / f"part-{number:04}.parquet")


def write_job(folder: Path, name: str, data: dict[str, Any]) -> Path:
    """Write the job of Adult on a table in the folder; return its file."""
    adult = shared_job("adult")
    fields: dict[str, Any] = yaml.safe_load((adult / "job.yaml").read_text())
    for column in fields["columns"].values():
        if isinstance(column.get("taxonomy"), str):
            column["taxonomy"] = Path(shutil.copy(adult / column["taxonomy"], folder)).name
    job = folder / f"{name}.yaml"
    job.write_text(yaml.safe_dump(fields | {"model": _MODEL, "data": {"name": name, **data}}))
    return job


def run(job: Path, out: Path) -> Process:
    return run_process([*command("coordinator"), "run", str(job), "--out", str(out)])


def verify(job: Path, out: Path) -> Process:
    return run_process([*command("coordinator"), "verify", str(job), str(out)])


def through_duckdb(folder: Path, n: int, millions: float) -> tuple[list[Row], Process, Process]:
    """Measure run and verification; return the rows of the table, and both costs."""
    parts = folder / f"rows-{n}"
    write_parts(parts, n)
    job = write_job(folder, f"duckdb-{n}", {"duckdb": {"path": parts.name, "memory_limit": "2GB"}})
    made, checked = run(job, folder / f"out-{n}"), verify(job, folder / f"out-{n}")
    title = f"{millions:g} M rows, DuckDB at 2 GB"
    rows = [
        Row(f"{title}: run", made.wall_s, "s", MOST_S if n == ROWS else None, detail=vars(made)),
        Row(f"{title}: run", made.cpu_s, "CPU s"),
        Row(f"{title}: peak", made.peak_mb, "MiB", MOST_MB if n == ROWS else None),
        Row(f"{title}: verification", checked.cpu_s, "CPU s", detail=vars(checked)),
        Row(f"{title}: peak of the verification", checked.peak_mb, "MiB"),
    ]
    return rows, made, checked


def through_spark(folder: Path, n: int) -> list[Row]:
    """Measure Spark beside DuckDB and beside each other, on the same files; compare the releases."""
    parts = folder / f"rows-{n}"
    write_parts(parts, n)
    kinds: dict[str, dict[str, Any]] = {
        "DuckDB": {"duckdb": {"path": parts.name, "memory_limit": "2GB"}},
        "Spark, local[2]": {"spark": {"master": "local[2]", "path": parts.name}},
    }
    (folder / "cluster").mkdir()
    with standalone(folder / "cluster") as cluster:
        kinds["Spark, two workers"] = {"spark": {"master": cluster.master, "path": parts.name}}
        costs, digests = {}, set()
        for number, (kind, data) in enumerate(kinds.items()):
            out = folder / f"out-{n}-{number}"
            costs[kind] = run(write_job(folder, f"kind-{number}", data), out)
            files = PARTS.files(out, PARTS_OF_TABLE)
            digests.add(b"".join((out / file).read_bytes() for file in files))
    if len(digests) != 1:
        raise SystemExit("the releases differ")
    of_duckdb = costs["DuckDB"].wall_s
    return [
        Row(
            f"{n / 1e6:g} M rows, {kind}",
            cost.wall_s,
            "s",
            anchor=f"{cost.wall_s / of_duckdb:.1f} of DuckDB, the same release",
            detail=vars(cost),
        )
        for kind, cost in costs.items()
    ]


def main(arguments: Sequence[str]) -> None:
    given = {key: int(n) for key, n in (word.split("=") for word in arguments)}
    n, large, spark = given.get("rows", ROWS), given.get("large", LARGE), given.get("spark", SPARK)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        rows, *costs = through_duckdb(folder, n, n / 1e6)
        if large:
            more, *of_large = through_duckdb(folder, large, large / 1e6)
            a_row = [sum(each.cpu_s for each in those) / m for those, m in ((costs, n), (of_large, large))]
            ratio = a_row[1] / a_row[0]
            rows += [*more, Row("CPU a row, with verification, against fewer rows", ratio, "x", MOST_RATIO)]
        if spark:
            rows += through_spark(folder, spark)
    publish("tables beyond memory", rows, Path("out/beyond.json"))


if __name__ == "__main__":
    main(sys.argv[1:])
