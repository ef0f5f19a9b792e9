"""Check of a DP release by its own statements: nothing in the release may show the occupied cells.

Every cell of the product of the cuts is there exactly once (beyond the limit: at most once, and at or above the
public threshold). Counts are integers and may be negative. The run is replayed: the whole report must follow from
specializations, counts and job. A release does not show whether the noise was drawn properly; the tests of the
program check the noise.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from anonymize.dp.noisy_table import NoisyTable
from anonymize.release import Release
from anonymize.table import Ints, QidColumn
from jobs.dp.counts import COUNTS, are_rows_of, counts_csv, read_counts
from jobs.dp.nodes import nodes_of
from jobs.dp.repetition import require_report
from jobs.dp.report import report_fields
from jobs.dp.reread import reread
from jobs.dp.result import DpResult
from jobs.errors import PartyError
from jobs.release.checking import read_report, require_this_job
from jobs.release.csv import REPORT, TABLE
from jobs.task import Checked, Task


@dataclass(frozen=True)
class Verified:
    """Checked counts.

    results:  the results of the run, by every reading of the report; empty without a report.
    untold:   the keys of the report without an expectation.
    """

    table: NoisyTable
    results: Sequence[DpResult] = ()
    undetermined: Sequence[str] = ()


def verify_counts(task: Task, out: Path) -> Checked:
    """Verify counts, the report, and the rows made of the counts, if present. Raises PartyError."""
    path = out / COUNTS if out.is_dir() else out
    if not path.is_file():
        raise PartyError("file-missing", f"there are no counts at {path}")
    report = out / REPORT
    found = read_report(report.read_bytes()) if out.is_dir() and report.is_file() else None
    content, joint = path.read_bytes(), bool(task.job.roster)
    verified = require_verified_counts(task, content, found)
    table = verified.table
    if found is not None and content != counts_csv(table, task.job.published):
        raise PartyError("verification-failed", f"{path} has counts, but not in the prescribed bytes")
    complete = "all cells" if table.threshold is None else f"cells with counts from {table.threshold} on"
    lines = [
        f"{path}: {table.cells.n_rows} cells, {complete}, as {task.job.name} requires; counts are noisy, so only "
        f"the digest {'and the signatures of the parties ' * joint}can show a changed count"
    ]
    if found is not None:
        lines.append(
            f"{report}: agrees with job and counts, and the account adds up to epsilon. Not compared, because job "
            f"and counts do not determine them: {', '.join(verified.undetermined)}"
        )
    records = out / TABLE
    if out.is_dir() and records.is_file():
        if not are_rows_of(records.read_bytes(), table, task.job.published):
            raise PartyError("verification-failed", f"{records} does not follow from the counts")
        lines.append(f"{records}: made of these counts")
    fields = {"cells": table.cells.n_rows, "verified": True, "job_sha256": task.digest.hex()}
    left = [f"report.{name}" for name in verified.undetermined]
    is_sure = joint and len(verified.results) == 1
    result = hashlib.sha256(verified.results[0].encoded).hexdigest() if is_sure else None
    return Checked("\n".join(lines), fields | ({"not_verified": left} if left else {}), result)


def require_verified_counts(task: Task, content: bytes, report: Mapping[str, Any] | None) -> Verified:
    """Check counts with their report. Raises PartyError for the first error."""
    cells, counts = read_counts(content, task.job.published)
    if report is None:
        table = NoisyTable(cells, counts, cells.n_rows)
        _require_cells_of_cut(task, table, {})
        return Verified(table)
    require_this_job(task, report, "counts")
    table = _told_table(task, cells, counts, report)
    _require_cells_of_cut(task, table, report["cut"])
    results = reread(task, table, report)
    readings = (report_fields(task, result) for result in results)
    return Verified(table, results, require_report(task, readings, report, [COUNTS]))


def _told_table(task: Task, cells: Release, counts: Ints, report: Mapping[str, Any]) -> NoisyTable:
    """Return the table with the report's statements: the number of cells, and the least listed count.

    Raises PartyError.
    """
    cut, n_cells, threshold = (report.get(name) for name in ("cut", "cells", "threshold"))
    if not isinstance(cut, dict) or not all(_is_texts(labels) for labels in cut.values()):
        raise _wrong(f"{REPORT}: `cut` does not have the labels of each column")
    if type(n_cells) is not int:
        raise _wrong(f"{REPORT}: `cells` is no number of cells")
    if report.get("cells_listed") != cells.n_rows:
        raise _wrong(f"{REPORT}: `cells_listed` is not the number of rows of {COUNTS}")
    if "threshold" not in report:
        raise _wrong(f"{REPORT}: `threshold` is missing; write null if all cells are listed")
    if threshold is None:
        return NoisyTable(cells, counts, cells.n_rows)
    if task.job.roster or type(threshold) is not int:
        raise _wrong(f"{REPORT}: `threshold` is no number, or the release is not a single holder's")
    if (counts < threshold).any():
        raise _wrong(f"{COUNTS}: a count is below the threshold of the report")
    return NoisyTable(cells, counts, n_cells, threshold)


def _require_cells_of_cut(task: Task, table: NoisyTable, cuts: Mapping[str, Sequence[str]]) -> None:
    """Raise PartyError unless the cells of a table are the product of a cut. cuts: from the report."""
    schema, columns = task.schema, table.cells.columns
    labels = {c.name: _labels_of(c, columns[c.name].labels, cuts.get(c.name)) for c in schema.qid}
    assert schema.class_name is not None
    whole = {**labels, schema.class_name: schema.classes}
    _require_cells(table.cells, whole, complete=table.threshold is None)


def _labels_of(column: QidColumn, labels: Sequence[str], cut: Sequence[str] | None) -> Sequence[str]:
    """Return the possible labels of a column: of its cut, in order; for a set-valued column its combinations.

    cut:  from the report; otherwise the labels found must make up a cut.
    """
    if column.sets is not None:
        for label in labels:
            nodes_of(column, label.split(column.sets.separator))
        return labels
    nodes = nodes_of(column, labels if cut is None else cut)
    if cut is None:
        found = sorted({node for alike in nodes.values() for node in alike})
        cut = [column.label(node) for node in found]
    ends = {0}
    for label in cut:
        ends = {node.last for node in nodes[label] if node.first in ends}
    if column.n_leaves not in ends:
        raise _wrong(f"the values of column {column.name} do not make up a cut")
    return cut


def _require_cells(cells: Release, labels: Mapping[str, Sequence[str]], *, complete: bool) -> None:
    """Require every cell of the product once, empty or not; beyond the limit, at most once.

    If two nodes of a cut print alike, a cell may stand as often as there are such nodes. Raises PartyError.
    """
    times = []
    for name, column in cells.columns.items():
        often = Counter(labels[name])
        if not often.keys() >= set(column.labels):
            raise _wrong(f"column {name} has a value outside its cut")
        times.append([often[label] for label in column.labels])
    rows = Counter(zip(*(c.codes.tolist() for c in cells.columns.values()), strict=True))
    for row, n in rows.items():
        most = prod(of[code] for of, code in zip(times, row, strict=True))
        if n > most:
            raise _wrong("a cell stands twice")
        if complete and n < most:
            raise _wrong("a cell is missing")
    if complete and cells.n_rows != prod(map(len, labels.values())):
        raise _wrong("the table does not have exactly one row for every cell of the product of the cuts")


def _is_texts(labels: object) -> bool:
    return isinstance(labels, list) and all(isinstance(label, str) for label in labels)


def _wrong(what: str) -> PartyError:
    return PartyError("verification-failed", what)
