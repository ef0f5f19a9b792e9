"""From job fields and rows to bundles, coded tables and runs."""

from __future__ import annotations

import csv
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from anonymize.joint.horizontal import Request
from anonymize.release import Release, release_of_rows
from anonymize.single import anonymize_alone
from anonymize.table import CodedTable
from anonymize.tds import Outcome
from party.bundle import Bundle
from party.data import Source, load_table
from party.job import parse_job


def bundle_of(fields: Mapping[str, Any], files: Mapping[str, str] | None = None) -> Bundle:
    return Bundle(parse_job(fields, "job"), files or {})


def write_csv(path: Path, rows: Sequence[Mapping[str, str]], names: Iterable[str] | None = None) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(names or rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def coded(bundle: Bundle, rows: Sequence[Mapping[str, str]]) -> CodedTable:
    """Load rows through the same path as a party: a CSV file."""
    with tempfile.TemporaryDirectory() as folder:
        path = write_csv(Path(folder) / "table.csv", rows, bundle.job.columns)
        return load_table(Source("csv", path), bundle).table


def part_of(table: CodedTable, rows: np.ndarray[Any, Any]) -> CodedTable:
    """Some rows of a coded table."""
    return CodedTable(table.schema, tuple(c[rows] for c in table.qid), table.cells[rows], table.weights[rows])


def split_among(table: CodedTable, owner_of_record: np.ndarray[Any, Any], n: int) -> list[CodedTable]:
    """Share the records of a table out among ``n`` parties; a party may get none."""
    rows = np.repeat(np.arange(len(table.weights)), table.weights)
    records = part_of(table, rows)
    units = CodedTable(table.schema, records.qid, records.cells, np.ones(len(rows), np.int64))
    return [part_of(units, np.flatnonzero(owner_of_record == i)).collapsed() for i in range(n)]


def request_of(bundle: Bundle) -> Request:
    return Request(bundle.schema(), bundle.requirement, bundle.job.goal, bundle.digest)


def run_single(bundle: Bundle, table: CodedTable) -> tuple[Outcome, Release]:
    outcome = anonymize_alone(table, bundle.requirement, bundle.job.goal)
    return outcome, release_of_rows(table, outcome.cut)


def turns(outcome: Outcome) -> list[tuple[str, str, list[str], bool]]:
    """The turns of a run in the form of the slow reference."""
    columns = outcome.schema.qid
    return [
        (
            columns[step.candidate.column].name,
            columns[step.candidate.column].label(step.candidate.node),
            [columns[step.candidate.column].label(child) for child in step.candidate.children],
            step.applied,
        )
        for step in outcome.steps
    ]


def multiset(release: Release) -> Counter[tuple[str, ...]]:
    """The rows of a release, without their order."""
    columns = [[column.labels[code] for code in column.codes] for column in release.columns.values()]
    return Counter(zip(*columns, strict=True))
