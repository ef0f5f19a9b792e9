"""Tables in a PostgreSQL server, against `COPY` to a file and the same job on the file.

    python -m benchmarks.bench_postgres [rows=5000000] [runs=3]

The rows are those of :mod:`benchmarks.bench_scale`. The server is the tests' own, behind a socket on this machine.
Both ways alternate. CPU seconds are of our process; beside `COPY` they hold psql's. The work of the server shows in
wall seconds alone.
"""

from __future__ import annotations

import csv
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import yaml

from benchmarks.bench_scale import write_tables
from benchmarks.support import Process, Row, median, publish, run_process
from jointcut.launcher import command
from tests.support.postgres import Server, serving

ROWS = 5_000_000
TARGET = 2.0
VARIABLE = "JOINTCUT_BENCH_DSN"
MODEL = {"lkc": {"L": 4, "K": 20, "C": 1, "score": "infogain"}}
HELD = {"name": "rows", "postgres": {"dsn_env": VARIABLE, "table": "rows"}}


def load_server(server: Server, table: Path, fields: dict[str, Any]) -> None:
    """Copy the CSV into the server: numbers as integers, everything else as text."""
    with table.open(newline="") as file:
        names = next(csv.reader(file))
    types = {name: "integer" if "numeric" in column else "text" for name, column in fields["columns"].items()}
    server.load("rows", ", ".join(f'"{name}" {types.get(name, "text")}' for name in names), table)
    server.sql("VACUUM (ANALYZE) rows")


def copied(server: Server, table: Path) -> Process:
    """Copy the rows out of the server into a file."""
    copy = f"\\copy rows TO '{table}' (FORMAT csv, HEADER)"
    return run_process([str(server.binaries / "psql"), "-qX", "-d", server.dsn, "-c", copy])


def both(first: Process, second: Process) -> Process:
    """Return the cost of a process after another."""
    return Process(
        first.wall_s + second.wall_s, max(first.peak_mb, second.peak_mb), first.cpu_s + second.cpu_s
    )


Command = Callable[[Path, Path], list[str]]
"""Function from a job file and a new folder to the words of a process."""


def reading(job: Path, out: Path) -> list[str]:
    """Return the command that runs pass 1 and no more."""
    return [*command("coordinator"), "check", str(job)]


def running(job: Path, out: Path) -> list[str]:
    """Return the command that makes a release."""
    return [*command("coordinator"), "run", str(job), "--out", str(out)]


def measured(server: Server, folder: Path, words: Command, runs: int) -> dict[str, Process]:
    """Return the medians of both ways."""
    found: dict[str, list[Process]] = {"server": [], "COPY": [], "file": []}
    for _ in range(runs):
        with tempfile.TemporaryDirectory(dir=folder) as outs:
            found["server"].append(run_process(words(folder / "server.yaml", Path(outs) / "server")))
            found["COPY"].append(copied(server, folder / "copy.csv"))
            found["file"].append(run_process(words(folder / "file.yaml", Path(outs) / "file")))
    return {way: median(costs) for way, costs in found.items()}


def rows_of(name: str, found: dict[str, Process]) -> list[Row]:
    """Return the rows about a command: both ways, and the ratios."""
    held, by_file = found["server"], both(found["COPY"], found["file"])
    told = f"COPY {found['COPY'].wall_s:.1f} s wall, {found['COPY'].cpu_s:.1f} CPU"
    return [
        Row(f"{name}: from the server", held.wall_s, "s", detail=vars(held)),
        Row(f"{name}: COPY, then the file", by_file.wall_s, "s", anchor=told, detail=vars(by_file)),
        Row(f"{name}: wall", held.wall_s / by_file.wall_s, "times", TARGET),
        Row(
            f"{name}: CPU of our process",
            held.cpu_s / by_file.cpu_s,
            "times",
            TARGET,
            anchor=f"{held.cpu_s:.1f} beside {by_file.cpu_s:.1f} CPU s",
        ),
        Row(f"{name}: peak", held.peak_mb, "MiB", anchor=f"{by_file.peak_mb:.0f} of the file"),
    ]


def main(arguments: Sequence[str]) -> None:
    given = dict(word.split("=") for word in arguments)
    n, runs = int(given.get("rows", ROWS)), int(given.get("runs", 3))
    with tempfile.TemporaryDirectory() as name, serving() as server:
        folder = Path(name)
        fields = write_tables(folder, n) | {"model": MODEL}
        load_server(server, folder / "table.csv", fields)
        (folder / "server.yaml").write_text(yaml.safe_dump(fields | {"data": HELD}))
        (folder / "file.yaml").write_text(yaml.safe_dump(fields | {"data": "copy.csv"}))
        os.environ[VARIABLE] = server.dsn
        rows = rows_of("pass 1", measured(server, folder, reading, runs))
        rows += rows_of("job, L=4", measured(server, folder, running, runs))
    publish(f"PostgreSQL: {n:,} rows", rows, Path("out/postgres.json"))


if __name__ == "__main__":
    main(sys.argv[1:])
