"""Large tables in files: each engine on the same rows, from the table to the verified release.

    python -m benchmarks.bench_scale [rows=1000000] [runs=3]

The rows are those of ``shared_job("adult", "rows=...")``. Figures are of whole processes: CPU seconds, wall seconds,
and the peak of memory. pandas reads and writes the same CSV in the same run: a measure of the machine, not a
competitor.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import yaml

from benchmarks.shared_jobs import shared_job
from benchmarks.support import Process, Row, median, publish, run_process
from jointcut.launcher import command

ROWS = 1_000_000
TARGETS = {4: 0.6, 2: 0.75}
"""Most CPU seconds from CSV to CSV, by L, of those of pandas."""
_PANDAS = "import sys, pandas; pandas.read_csv(sys.argv[1]).to_csv(sys.argv[2], index=False)"
_PART_BYTES = 1 << 26
"""Text of a part of the Parquet files."""


def write_tables(folder: Path, n: int) -> dict[str, Any]:
    """Write the table as one CSV and as parts of Parquet; return the job of Adult without its table."""
    adult = shared_job("adult", f"rows={n}")
    table = folder / "table.csv"
    shutil.copyfile(adult / "raw.csv", table)
    (folder / "parts").mkdir()
    text = pa_csv.ConvertOptions(column_types=dict.fromkeys(_header(table), pa.string()))
    with pa_csv.open_csv(table, pa_csv.ReadOptions(block_size=_PART_BYTES), convert_options=text) as batches:
        for number, batch in enumerate(batches):
            part = pa.Table.from_batches([batch])
            pq.write_table(part, folder / "parts" / f"part-{number:04}.parquet")
    fields: dict[str, Any] = yaml.safe_load((adult / "job.yaml").read_text())
    for column in fields["columns"].values():
        if isinstance(column.get("taxonomy"), str):
            column["taxonomy"] = Path(shutil.copy(adult / column["taxonomy"], folder)).name
    return fields


def _header(path: Path) -> list[str]:
    with path.open() as file:
        return file.readline().strip().split(",")


def measured(
    folder: Path, fields: dict[str, Any], data: Any, at_most: int, score: str, runs: int, name: str
) -> list[Process]:
    """Measure the job on a table with a bound L and a score."""
    job = folder / f"{name}-{at_most}-{score}.yaml"
    model = {"lkc": {"L": at_most, "K": 20, "C": 1, "score": score}}
    job.write_text(yaml.safe_dump(fields | {"model": model, "data": data}))
    costs = []
    for i in range(runs):
        out = folder / f"out-{name}-{at_most}-{score}-{i}"
        costs.append(run_process([*command("coordinator"), "run", str(job), "--out", str(out)]))
    return costs


def main(arguments: Sequence[str]) -> None:
    given = dict(word.split("=") for word in arguments)
    n, runs = int(given.get("rows", ROWS)), int(given.get("runs", 3))
    tables = {
        "CSV": "table.csv",
        "Parquet, DuckDB": {"name": "table", "duckdb": {"path": "parts", "memory_limit": "2GB"}},
        "CSV, DuckDB": {"name": "table", "duckdb": {"path": "table.csv", "memory_limit": "2GB"}},
    }
    rows = []
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
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
        for (title, data), score, at_most in (
            *product(tables.items(), ["infogain"], (4, 2)),
            *product([("CSV", tables["CSV"])], ["added"], (4, 2)),
        ):
            costs = measured(folder, fields, data, at_most, score, runs, title.replace(", ", "-"))
            found = median(costs)
            name, said = f"{title}, {score}, L={at_most}", f"wall {found.wall_s:.1f} s"
            target = TARGETS[at_most] if (title, score) == ("CSV", "infogain") else None
            rows += [
                Row(name, found.cpu_s, "CPU s", anchor=said, detail=vars(found)),
                Row(f"{name}: CPU", found.cpu_s / pandas.cpu_s, "of pandas", target),
                Row(f"{name}: peak", found.peak_mb, "MiB"),
            ]
    publish(f"large tables: {n:,} rows", rows, Path("out/scale.json"))


if __name__ == "__main__":
    main(sys.argv[1:])
