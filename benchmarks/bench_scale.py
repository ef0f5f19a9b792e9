"""Large tables in files: each engine on the same rows, from the table to the verified release.

    python -m benchmarks.bench_scale [rows=1000000] [runs=3]

The rows are Adult's, drawn with replacement, with a tenth of the cells of each column drawn again from the column.
Figures are of whole processes: CPU seconds, wall seconds, and the peak of memory. pandas reads and writes the same
CSV in the same run: a measure of the machine, not a competitor.
"""

from __future__ import annotations

import shutil
import statistics
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

from benchmarks.bench_lkc import Process, run_process
from benchmarks.shared_jobs import shared_job
from benchmarks.support import Row, publish
from jointcut.launcher import command

ROWS = 1_000_000
_PANDAS = "import sys, pandas; pandas.read_csv(sys.argv[1]).to_csv(sys.argv[2], index=False)"
_PART = 1 << 20
"""Rows of a part of the Parquet files."""


def generated(adult: pa.Table, n: int) -> pa.Table:
    """Return ``n`` rows of text."""
    rng = np.random.default_rng(0)
    rows, columns = rng.integers(0, adult.num_rows, n), {}
    for name in adult.column_names:
        places = np.where(rng.random(n) < 0.1, rng.integers(0, adult.num_rows, n), rows)
        columns[name] = adult.column(name).take(pa.array(places))
    return pa.table(columns)


def write_tables(folder: Path, n: int) -> dict[str, Any]:
    """Write the table as one CSV and as parts of Parquet; return the job of Adult without its table."""
    adult = shared_job("adult")
    text = pa_csv.ConvertOptions(column_types=dict.fromkeys(_header(adult / "raw.csv"), pa.string()))
    raw = pa_csv.read_csv(adult / "raw.csv", convert_options=text)
    (folder / "parts").mkdir()
    with pa_csv.CSVWriter(folder / "table.csv", raw.schema) as one:
        for number, start in enumerate(range(0, n, _PART)):
            part = generated(raw, min(_PART, n - start))
            one.write_table(part)
            pq.write_table(part, folder / "parts" / f"part-{number:04}.parquet")
    fields: dict[str, Any] = yaml.safe_load((adult / "job.yaml").read_text())
    for column in fields["columns"].values():
        if isinstance(column.get("taxonomy"), str):
            column["taxonomy"] = shutil.copy(adult / column["taxonomy"], folder).removeprefix(f"{folder}/")
    return fields


def _header(path: Path) -> list[str]:
    with path.open() as file:
        return file.readline().strip().split(",")


def measured(
    folder: Path, fields: dict[str, Any], data: Any, at_most: int, runs: int, name: str
) -> list[Process]:
    """Measure the job on a table with a bound L."""
    job = folder / f"{name}-{at_most}.yaml"
    model = {"lkc": {"L": at_most, "K": 20, "C": 1, "score": "infogain"}}
    job.write_text(yaml.safe_dump(fields | {"model": model, "data": data}))
    costs = []
    for i in range(runs):
        out = folder / f"out-{name}-{at_most}-{i}"
        costs.append(run_process([*command("coordinator"), "run", str(job), "--out", str(out)]))
    return costs


def median(costs: Sequence[Process]) -> Process:
    """Return the median of each figure."""
    return Process(
        *(
            statistics.median(each)
            for each in zip(*((c.wall_s, c.peak_mb, c.cpu_s) for c in costs), strict=True)
        )
    )


def main(arguments: Sequence[str]) -> None:
    given = dict(word.split("=") for word in arguments)
    n, runs = int(given.get("rows", ROWS)), int(given.get("runs", 3))
    tables = {
        "CSV": "table.csv",
        "Parquet, DuckDB": {"name": "table", "duckdb": {"path": "parts", "memory_limit": "2GB"}},
        "CSV, DuckDB": {"name": "table", "duckdb": {"path": "table.csv", "memory_limit": "2GB"}},
    }
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fields = write_tables(folder, n)
        pandas = median(
            [
                run_process(
                    [sys.executable, "-c", _PANDAS, str(folder / "table.csv"), str(folder / "copy.csv")]
                )
                for _ in range(runs)
            ]
        )
        rows.append(Row("pandas reads and writes the CSV", pandas.cpu_s, "CPU s", detail=vars(pandas)))
        for title, data in tables.items():
            for at_most in (4, 2):
                found = median(measured(folder, fields, data, at_most, runs, title.replace(", ", "-")))
                said = f"wall {found.wall_s:.1f} s, {found.cpu_s / pandas.cpu_s:.2f} of pandas"
                row = Row(f"{title}, L={at_most}", found.cpu_s, "CPU s", anchor=said, detail=vars(found))
                rows += [row, Row(f"{title}, L={at_most}: peak", found.peak_mb, "MiB")]
    publish(f"large tables: {n:,} rows", rows, Path("out/scale.json"))


if __name__ == "__main__":
    main(sys.argv[1:])
