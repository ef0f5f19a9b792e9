"""From job fields and rows to bundles, coded tables and runs."""

from __future__ import annotations

import csv
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from anonymize.joint.lkc.request import Request
from anonymize.lkc.requirement import AskedList
from anonymize.lkc.single import anonymize_single
from anonymize.release import Release, release_of_rows
from anonymize.table import CodedTable, coded_table
from anonymize.tds import Outcome
from jobs.data.sources import Csv
from jobs.file.bundle import Bundle
from jobs.lkc.joint_score import joint_score
from jobs.lkc.requirement import job_score
from jobs.lkc.requirement import requirement as lkc_requirement
from jobs.loading import open_task, parse_job
from jobs.reading import load_table
from jobs.task import Task
from tests.support.placed import placed


def bundle_of(fields: Mapping[str, Any], files: Mapping[str, str] | None = None) -> Bundle:
    return Bundle(parse_job(placed(fields), "job"), files or {})


def task_of(fields: Mapping[str, Any], files: Mapping[str, str] | None = None) -> Task:
    return open_task(bundle_of(fields, files))


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
        return load_table(Csv(path), open_task(bundle)).table


def dense(table: CodedTable) -> CodedTable:
    """The same rows with cells numbered as the parties of a joint run do."""
    axes = [table.axis(i) for i in range(len(table.schema.cell_shape))]
    sets, schema = dict(table.sets), replace(table.schema, occurring=None)
    return replace(coded_table(schema, list(table.qid), axes[0], axes[1:], sets), weights=table.weights)


def part_of(table: CodedTable, rows: np.ndarray[Any, Any]) -> CodedTable:
    """Some rows of a coded table, as a party has them."""
    table = dense(table)
    return CodedTable(table.schema, tuple(c[rows] for c in table.qid), table.cells[rows], table.weights[rows])


def split_among(table: CodedTable, owner_of_record: np.ndarray[Any, Any], n: int) -> list[CodedTable]:
    """Share the records of a table out among ``n`` parties; a party may get none."""
    rows = np.repeat(np.arange(len(table.weights)), table.weights)
    records = part_of(table, rows)
    units = CodedTable(records.schema, records.qid, records.cells, np.ones(len(rows), np.int64))
    return [part_of(units, np.flatnonzero(owner_of_record == i)).collapsed() for i in range(n)]


def requirement_of(bundle: Bundle) -> AskedList:
    return lkc_requirement(open_task(bundle))


def request_of(bundle: Bundle) -> Request:
    return Request(open_task(bundle).schema, requirement_of(bundle), joint_score(bundle.job), bundle.digest)


def run_single(bundle: Bundle, table: CodedTable) -> tuple[Outcome, Release]:
    outcome = anonymize_single(table, requirement_of(bundle), job_score(bundle.job))
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
    columns = [
        [column.labels[code] for code in column.codes] for column in release.in_rows().columns.values()
    ]
    return Counter(zip(*columns, strict=True))
