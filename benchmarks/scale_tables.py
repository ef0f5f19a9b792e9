"""Tables of any number of rows, made on the fly: 13 quasi-identifiers, a class and a sensitive column.

A record is one of 50,000 made-up profiles with one number of its own, so that rows repeat about as often as in tables
of people. Rows come in blocks of a million, each from its own seed: a table of ten million begins with that of one.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from benchmarks.shared_jobs import OUT

BLOCK_ROWS = 1_000_000
_PROFILES = 50_000
_NUMBERS = {"age": 75, "weight": 128, "years": 16, "gain": 14, "loss": 120, "hours": 99}
"""By numeric column how many numbers it has."""
_VALUES = {"work": 8, "school": 16, "job": 14, "family": 6, "origin": 5, "sex": 2, "country": 40}
"""By other quasi-identifier how many values it has."""
_CLASSES, _STATES = ("high", "low"), 7


def job_fields(data: str, L: int, score: str) -> dict[str, Any]:
    """One holder's job: K=20, C=1."""
    numbers = {
        name: {"role": "qid", "numeric": {"min": 0, "max": n, "step": 1}} for name, n in _NUMBERS.items()
    }
    values = {name: {"role": "qid", "taxonomy": {"*": _taxonomy(name, n)}} for name, n in _VALUES.items()}
    states = [f"state-{i}" for i in range(_STATES)]
    others = {
        "income": {"role": "class", "domain": list(_CLASSES)},
        "state": {"role": "sensitive", "domain": states, "values": states[:1]},
    }
    return {
        "version": "1",
        "name": "scale",
        "partition": "single",
        "data": data,
        "model": {"lkc": {"L": L, "K": 20, "C": 1}},
        "goal": "classification",
        "score": score,
        "columns": {**numbers, **values, **others},
    }


def _taxonomy(name: str, n: int) -> Any:
    """Values in groups of four, where there are more."""
    values = [f"{name}-{i}" for i in range(n)]
    if n <= 4:
        return values
    return {f"{name}s-{start}": values[start : start + 4] for start in range(0, n, 4)}


def table(n_rows: int, form: str) -> Path:
    """The table as a file, csv or parquet; kept between runs.

    Made by a process of its own: what a process holds when it starts another counts as the other's peak, too.
    """
    path = OUT / "scale" / f"{n_rows}.{form}"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, "-m", "benchmarks.scale_tables", str(n_rows), str(path)], check=True)
    return path


def main() -> None:
    """Write a table of so many rows to a file that ends in csv or parquet."""
    n_rows, path = int(sys.argv[1]), Path(sys.argv[2])
    blocks, part = _blocks(n_rows), path.with_suffix(".part")
    first = next(blocks)
    kind = pyarrow.csv.CSVWriter if path.suffix == ".csv" else pq.ParquetWriter
    with kind(str(part), first.schema) as writer:
        writer.write_table(first)
        for block in blocks:
            writer.write_table(block)
    part.rename(path)


def written_job(n_rows: int, form: str, L: int, score: str) -> Path:
    """A job file beside the table."""
    data = table(n_rows, form)
    path = data.with_name(f"{n_rows}-{form}-L{L}-{score}.yaml")
    path.write_text(json.dumps(job_fields(data.name, L, score)))
    return path


def _blocks(n_rows: int) -> Iterator[pa.Table]:
    profiles = _profiles()
    for number, start in enumerate(range(0, n_rows, BLOCK_ROWS)):
        rng, size = np.random.default_rng([1, number]), min(BLOCK_ROWS, n_rows - start)
        whose = (_PROFILES * rng.random(size) ** 2).astype(np.int64)  # some profiles are frequent
        columns = {name: of[whose] for name, of in profiles.items()}
        own = rng.random(size) < 0.3
        columns["weight"][own] = rng.integers(0, _NUMBERS["weight"], int(own.sum()))
        yield _labelled(columns)


def _profiles() -> dict[str, np.ndarray[Any, Any]]:
    """What all columns say of a profile goes with one number behind it, more or less."""
    rng = np.random.default_rng(0)
    behind = rng.random(_PROFILES)
    sizes: Mapping[str, int] = {**_NUMBERS, **_VALUES, "income": len(_CLASSES), "state": _STATES}
    columns = {}
    for place, (name, n) in enumerate(sizes.items()):
        noise = 0.1 + 0.05 * (place % 7)
        columns[name] = (n * np.clip(behind + noise * rng.standard_normal(_PROFILES), 0, 0.999)).astype(
            np.int64
        )
    return columns


def _labelled(columns: Mapping[str, np.ndarray[Any, Any]]) -> pa.Table:
    arrays: dict[str, pa.Array] = {}
    for name, codes in columns.items():
        if name in _NUMBERS:
            arrays[name] = pa.array(codes)
        else:
            prefix = {"income": _CLASSES}.get(name) or [f"{name}-{i}" for i in range(int(codes.max()) + 1)]
            arrays[name] = pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(prefix)).cast(pa.string())
    return pa.table(arrays)


if __name__ == "__main__":
    main()
