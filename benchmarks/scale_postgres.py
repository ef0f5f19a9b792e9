"""A table in PostgreSQL beside the same table copied to a file and read there: whole runs, verified, in turn.

A case of :mod:`benchmarks.bench_scale`. The server is one of its own, on a socket, with what it needs in a temporary
folder (about 0.4 GB a million rows).
"""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

from benchmarks.bench_lkc import Process, run_process
from benchmarks.support import Row
from jointcut.launcher import command
from tests.support.databases import DSN_ENV, Database, serving

_ROWS = 5_000_000
_TURNS = 3
TARGET = 2.0
"""At most so much of the wall time of `COPY` to a file and the same run on that."""
_VALUES = ("Private", "Self-employed", "Government", "Never", "Without pay", "Local", "State", "Federal")
_FEW, _MANY = 5, 10


def _columns(n: int) -> list[str]:
    """SQL of columns of the names c0, c1, …: skewed, with 3 to 7 values each."""
    values = ", ".join(f"'{value}'" for value in _VALUES)
    skewed = "random() * random() * random()"
    return [f"(ARRAY[{values}])[1 + ({skewed} * {3 + i % 5})::int] AS c{i}" for i in range(n)]


def made(database: Database, n_rows: int) -> None:
    """The table: an age, a date of 300, an amount, and ten columns of few values."""
    others = [
        "(10 + random() * random() * 80)::int AS age",
        "DATE '2025-01-01' + (random() * 300)::int AS day",
    ]
    others.append("(random() * random() * 1000)::numeric(10, 2) AS amount")
    sql = ", ".join([*_columns(_MANY), *others])
    database.run(
        f"CREATE TABLE patients AS SELECT {sql} FROM generate_series(1, {n_rows}); VACUUM ANALYZE patients"  # noqa: S608
    )


def job(folder: Path, name: str, columns: Sequence[str], data: Any) -> Path:
    """An LKC job of some columns."""
    flat = {"role": "qid", "taxonomy": {"Any": list(_VALUES)}}
    grid = {"amount": {"min": 0, "max": 1000, "step": 10}, "age": {"min": 0, "max": 100, "step": 1}}
    own = {c: {"role": "qid", "numeric": grid[c]} if c in grid else flat for c in columns}
    fields = {
        "version": 1,
        "name": name,
        "partition": "single",
        "goal": "general",
        "data": data,
        "columns": own,
    }
    fields["model"] = {"lkc": {"L": 2, "K": 100}}
    path = folder / f"{name}.yaml"
    path.write_text(json.dumps(fields))
    return path


def _turns(works: dict[str, Callable[[], Sequence[Process]]]) -> dict[str, list[Sequence[Process]]]:
    """What each of several works took, one after the other."""
    found: dict[str, list[Sequence[Process]]] = {name: [] for name in works}
    for _ in range(_TURNS):
        for name, work in works.items():
            found[name].append(work())
    return found


def compared(folder: Path, database: Database, name: str, columns: Sequence[str], n_rows: int) -> Row:
    """One job, on the table and on its copy."""
    file = folder / "copy.csv"
    database_job = job(
        folder, "database", columns, {"postgres": {"dsn_env": DSN_ENV, "table": "public.patients"}}
    )
    file_job = job(folder, "file", columns, "copy.csv")
    psql = [str(database.server.programs / "psql"), "--quiet", database.dsn(), "--command"]
    copy = f"\\copy (SELECT {', '.join(columns)} FROM patients) TO '{file}' (FORMAT csv, HEADER)"  # noqa: S608

    def run(path: Path) -> Process:
        out = Path(mkdtemp(dir=folder)) / "out"
        return run_process([*command("coordinator"), "run", str(path), "--out", str(out)])

    found = _turns(
        {
            "database": lambda: [run(database_job)],
            "file": lambda: [run_process([*psql, copy]), run(file_job)],
        },
    )
    wall, cpu = (
        {
            side: statistics.median(sum(getattr(p, kind) for p in turn) for turn in turns)
            for side, turns in found.items()
        }
        for kind in ("wall_s", "cpu_s")
    )
    said = f"{wall['database']:.1f} s ({cpu['database']:.1f} CPU s of ours); {wall['file']:.1f} s ({cpu['file']:.1f})"
    label = f"{n_rows / 1e6:g} M rows in PostgreSQL, {name}: of COPY and reading that"
    return Row(label, wall["database"] / wall["file"], "", TARGET, anchor=said)


def postgres() -> list[Row]:
    """Five million rows in PostgreSQL, few and most of them different."""
    with serving() as server, TemporaryDirectory() as folder:
        database = server.database()
        os.environ[DSN_ENV] = database.dsn()
        os.environ["XDG_STATE_HOME"] = folder
        made(database, _ROWS)
        many = [f"c{i}" for i in range(_MANY)]
        cases = {
            "5 columns, few different rows": many[:_FEW],
            "12 columns, most rows differ": [*many, "age", "amount"],
        }
        return [compared(Path(folder), database, name, columns, _ROWS) for name, columns in cases.items()]
