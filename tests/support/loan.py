"""The loan example for tests: its job bent, its tables with canaries planted, a single holder of the join."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from jobs.file.bundle import Bundle
from jobs.loading import load_task
from jobs.release.csv import TABLE
from tests.support.jobs import write_csv
from tests.support.network import write_job

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "loan"
LOAN, BANK = "loan-company", "bank"

Rows = list[dict[str, str]]


def loan_fields() -> dict[str, Any]:
    """The example's job as text-only fields; taxonomy files by absolute path."""
    fields: dict[str, Any] = yaml.load((EXAMPLE / "job.yaml").read_text(), Loader=yaml.BaseLoader)  # noqa: S506
    for column in fields["columns"].values():
        if isinstance(column.get("taxonomy"), str):
            column["taxonomy"] = str(EXAMPLE / column["taxonomy"])
    return fields


def loan_job(
    folder: Path, change: Callable[[dict[str, Any]], object] = lambda fields: None, **changes: Any
) -> Path:
    """Write the example's job with some keys replaced (None removes one)."""
    fields = loan_fields()
    change(fields)
    fields = {key: value for key, value in {**fields, **changes}.items() if value is not None}
    return write_job(folder, fields)


def loan_rows(party: str) -> Rows:
    with (EXAMPLE / f"{party}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def loan_sample(n: int) -> dict[str, Rows]:
    """Part of the example's rows by party: those of n people that both have, and of all that one has."""
    tables = {party: loan_rows(party) for party in (LOAN, BANK)}
    common = set.intersection(*({row["person"] for row in rows} for rows in tables.values()))
    kept = set(sorted(common)[:n])
    return {
        party: [row for row in rows if row["person"] in kept or row["person"] not in common]
        for party, rows in tables.items()
    }


def loan_tables(folder: Path, tables: Mapping[str, Rows] | None = None) -> dict[str, Path]:
    """Write a table for each party; the example's own if none are given."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = tables or {party: loan_rows(party) for party in (LOAN, BANK)}
    return {party: write_csv(folder / f"{party}.csv", part) for party, part in rows.items()}


def joined(tables: Mapping[str, Rows]) -> Rows:
    """Return the table of a single holder: one row for each id that all parties have."""
    by_id = [{row["person"].strip(): row for row in rows} for rows in tables.values()]
    common = sorted(set.intersection(*(set(rows) for rows in by_id)))
    return [{key: value for rows in by_id for key, value in rows[person].items()} for person in common]


def single_job(folder: Path, rows: Rows, path: Path, **said: Any) -> tuple[Path, Bundle]:
    """The same job for a single holder of the join; said: what it says besides."""
    fields = yaml.load(path.read_text(), Loader=yaml.BaseLoader)  # noqa: S506
    for key in ("disclosure", "parties", "leader", "deputy"):
        fields.pop(key, None)
    fields["model"]["lkc"].pop("insider", None)
    for column in fields["columns"].values():
        column.pop("shared_by", None)
        if isinstance(column.get("taxonomy"), str):
            column["taxonomy"] = str(path.parent / column["taxonomy"])
    if contexts := load_task(path).job.lkc.contexts:
        fields["contexts"] = contexts
    single = {**fields, **said, "partition": "single", "data": "joined.csv"}
    found = write_job(folder, single, "single.yaml")
    write_csv(folder / "joined.csv", rows, fields["columns"])
    return found, load_task(found).bundle


def table_of(folder: Path) -> Rows:
    """The rows of a result folder."""
    with (folder / TABLE).open(newline="") as file:
        return list(csv.DictReader(file))
