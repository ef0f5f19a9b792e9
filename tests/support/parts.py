"""A table as files for engines: one file, parts, folders; files that are wrong; a job over the table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from anonymize.grid import from_step
from jobs.data.coders import BAD, DROPPED, Categorical, Numeric, Unlisted
from jobs.data.coding import Coding, Published
from jobs.data.sources import Source
from tests.support.commands import invoke
from tests.support.jobs import write_csv

NAMES = ("age", "city", "ill")
CITIES = ("München", "Köln", 'He said "no"', "a, b", "")
ROWS = [
    {
        "age": str(i * 7 % 90) if i % 13 else "",
        "city": CITIES[i * i % 5],
        "ill": "Flu" if i % 2 else "Cold",
    }
    for i in range(120)
]
CODING = Coding(
    {
        "age": Numeric(from_step(Decimal(0), Decimal(100), Decimal("12.5"), "age")),
        "city": Categorical({city: i for i, city in enumerate(CITIES) if city}, DROPPED),
        "ill": Unlisted(BAD),
    },
    (),
    checked=True,
    outside=False,
)


def cut(rows: Sequence[Any], n: int) -> list[Sequence[Any]]:
    size = -(-len(rows) // n)
    return [rows[i : i + size] for i in range(0, len(rows), size)]


def parquet(path: Path, rows: Sequence[dict[str, str]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    ages = pa.array([int(row["age"]) if row["age"] else None for row in rows], pa.int32())
    texts = {name: pa.array([row[name] or None for row in rows], pa.string()) for name in ("city", "ill")}
    pq.write_table(pa.table({"age": ages, **texts}), path)


def one_parquet(folder: Path) -> str:
    parquet(folder / "all.parquet", ROWS)
    return "all.parquet"


def parquet_parts(folder: Path) -> str:
    for number, rows in enumerate(cut(ROWS, 7)):
        parquet(folder / f"part-{number}.parquet", rows)
    return "part-*.parquet"


def a_folder(folder: Path) -> str:
    for number, rows in enumerate(cut(ROWS, 3)):
        parquet(folder / "visits" / str(number) / "part.parquet", rows)
    (folder / "visits" / "_SUCCESS").touch()
    return "visits"


def csv_parts(folder: Path) -> str:
    for number, rows in enumerate(cut(ROWS, 3)):
        write_csv(folder / f"{number}.csv", rows)
    return "*.csv"


def semicolons(folder: Path) -> str:
    lines = [";".join(f'"{row[name]}"'.replace('d "no"', 'd ""no""') for name in NAMES) for row in ROWS]
    (folder / "all.csv").write_text("\r\n".join([";".join(NAMES), *lines]) + "\r\n", encoding="utf-8-sig")
    return "all.csv"


FORMS: list[Callable[[Path], str]] = [one_parquet, parquet_parts, a_folder, csv_parts, semicolons]


def told(source: Source, coding: Coding = CODING) -> Any:
    """Return the outcome of both passes over a source."""
    coded = source.collapse(coding)
    columns = coded.columns.values()
    counts: Counter[tuple[int, ...]] = Counter()
    for *codes, weight in zip(
        *(column.codes.tolist() for column in columns), coded.weights.tolist(), strict=True
    ):
        counts[tuple(codes)] += weight
    coder = coding.coders["age"]
    published = {"age": Published(coder, np.arange(9), pa.array([f"age {i}" for i in range(9)]))}
    rows = [row for batch in source.relabel(published, NAMES) for row in batch.to_pylist()]
    return counts, [column.domain for column in columns], coded.rows, rows


def no_file(folder: Path) -> str:
    return "nothing-*.parquet"


def no_path(folder: Path) -> str:
    return "nothing.parquet"


def two_kinds(folder: Path) -> str:
    parquet(folder / "a.parquet", ROWS)
    write_csv(folder / "b.csv", ROWS)
    return "."


def another_kind(folder: Path) -> str:
    (folder / "a.xlsx").write_bytes(b"x")
    return "a.xlsx"


def other_columns(folder: Path) -> str:
    parquet(folder / "a.parquet", ROWS)
    pq.write_table(pa.table({"age": [1], "ill": ["Flu"], "city": ["Kiel"]}), folder / "b.parquet")
    return "*.parquet"


def cut_off(folder: Path) -> str:
    parquet(folder / "a.parquet", ROWS)
    whole = (folder / "a.parquet").read_bytes()
    (folder / "b.parquet").write_bytes(whole[: len(whole) // 2])
    return "*.parquet"


def latin_1(folder: Path) -> str:
    (folder / "a.csv").write_bytes("age,city,ill\n1,Köln,Flu\n".encode("latin-1"))
    return "a.csv"


def latin_1_as_text(folder: Path) -> str:
    """Write a Parquet file whose text is no UTF-8, as writers that check no text do."""
    cities = pa.array([b"Kiel", "Köln".encode("latin-1")]).view(pa.string())
    pq.write_table(pa.table({"age": [1, 2], "city": cities, "ill": ["Flu", "Flu"]}), folder / "a.parquet")
    return "a.parquet"


def too_few_values(folder: Path) -> str:
    (folder / "a.csv").write_text("age,city,ill\n1,Kiel,Flu\n2,Kiel\n")
    return "a.csv"


# ---- a job

JOB: dict[str, Any] = {
    "version": 1,
    "name": "visits",
    "partition": "single",
    "model": {"lkc": {"L": 2, "K": 4}},
    "goal": "general",
    "columns": {
        "age": {"role": "qid", "numeric": {"min": 0, "max": 100, "step": 12.5}},
        "city": {"role": "qid", "taxonomy": {"Any": {"Süd": ["München", "Köln"], "Nord": CITIES[2:4]}}},
        "ill": {"role": "sensitive", "domain": ["Flu", "Cold"], "C": "0.9"},
    },
}


def run_with(folder: Path, data: Any) -> Path:
    job, out = folder / "job.yaml", folder / "out"
    job.write_text(yaml.safe_dump(JOB | {"data": data}))
    done = invoke("coordinator", "run", job, "--out", out)
    assert done.code == 0, done.err
    assert invoke("coordinator", "verify", job, out).code == 0
    return out
