"""A DP release checked by what it says: nothing in it may show which cells are occupied.

Every cell of the product of the cuts is there exactly once (beyond the limit: at most once, and at or above the
public threshold), counts are integers and may be negative, the account adds up to ε, and δ is small. Whether
the noise was drawn as it should cannot be seen in a release; the tests of this program are for that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import prod
from pathlib import Path
from typing import Any

from anonymize.dp.noisy_table import NoisyTable
from anonymize.joint.dp.noise import DELTA
from anonymize.release import Release
from anonymize.table import QidColumn
from jobs.dp.asked import settings
from jobs.dp.counts import COUNTS, are_rows_of, counts_csv, read_counts
from jobs.dp.nodes import nodes_of
from jobs.dp.report import PRIVACY_KEYS, keys_of
from jobs.dp.reread import signed_result
from jobs.dp.result import read_amount, read_delta
from jobs.errors import PartyError, printable
from jobs.release.checking import read_report, require_this_job
from jobs.release.csv import REPORT, TABLE
from jobs.release.report import first_added
from jobs.task import Checked, Task


def verify_counts(task: Task, out: Path) -> Checked:
    """Verify counts, the report, and the rows made of the counts, where they are. Raises PartyError."""
    path = out / COUNTS if out.is_dir() else out
    if not path.is_file():
        raise PartyError("file-missing", f"there are no counts at {path}")
    report = out / REPORT
    found = read_report(report.read_bytes()) if out.is_dir() and report.is_file() else None
    content, joint = path.read_bytes(), bool(task.job.roster)
    table = require_verified_counts(task, content, found)
    if found is not None and content != counts_csv(table, task.job.published):
        raise PartyError(
            "verification-failed", f"{path} has counts, but not the bytes that are written of them"
        )
    result = signed_result(task, content, found) if joint and found is not None else None
    complete = "all cells" if table.threshold is None else f"cells with counts from {table.threshold} on"
    lines = [
        f"{path}: {table.cells.n_rows} cells, {complete}, as {task.job.name} requires; counts are noisy, so "
        f"whether one was changed can be told by its digest {'and what parties signed ' * joint}only"
    ]
    if found is not None:
        lines.append(
            f"{report}: names this job, this cut and this number of cells; its account adds up to epsilon"
        )
    records = out / TABLE
    if out.is_dir() and records.is_file():
        if not are_rows_of(records.read_bytes(), table, task.job.published):
            raise PartyError("verification-failed", f"{records} is not made of these counts")
        lines.append(f"{records}: made of these counts")
    fields = {"cells": table.cells.n_rows, "verified": True, "job_sha256": task.digest.hex()}
    return Checked("\n".join(lines), fields, result)


def require_verified_counts(task: Task, content: bytes, report: Mapping[str, Any] | None) -> NoisyTable:
    """Check counts, and the report that came with them. Raises PartyError for the first thing that is wrong."""
    cells, counts = read_counts(content, task.job.published)
    schema = task.schema
    fields = None if report is None else _checked_report(task, report, cells.n_rows)
    threshold = None if fields is None else fields["threshold"]
    if threshold is not None and (counts < threshold).any():
        raise _wrong("a count is below the threshold of the report")
    cuts = {} if fields is None else fields["cut"]
    labels = {c.name: _labels_of(c, cells.columns[c.name].labels, cuts.get(c.name)) for c in schema.qid}
    assert schema.class_name is not None
    _require_cells(cells, {**labels, schema.class_name: schema.classes}, complete=threshold is None)
    n_cells = cells.n_rows if fields is None else int(fields["cells"])
    return NoisyTable(cells, counts, n_cells, threshold)


def _labels_of(column: QidColumn, labels: Sequence[str], cut: Sequence[str] | None) -> Sequence[str]:
    """What a column may have: the labels of its cut, in order; a set-valued one the combinations that it has.

    cut:  as the report has it; else the labels found must make it up.
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
    """Every cell of the product is there once, empty or not; beyond the limit, cells of the product at most once.

    Where two nodes of a cut print alike, cells stand as often as there are such nodes. Raises PartyError.
    """
    times = []
    for name, column in cells.columns.items():
        often = Counter(labels[name])
        if not often.keys() >= set(column.labels):
            raise _wrong(f"column {name} has a value that is not in its cut")
        times.append([often[label] for label in column.labels])
    rows = Counter(zip(*(c.codes.tolist() for c in cells.columns.values()), strict=True))
    for row, n in rows.items():
        most = prod(of[code] for of, code in zip(times, row, strict=True))
        if n > most:
            raise _wrong("a cell stands twice")
        if complete and n < most:
            raise _wrong("a cell is missing")
    if complete and cells.n_rows != prod(map(len, labels.values())):
        raise _wrong("there is not one row for every cell of the product of the cuts")


def _checked_report(task: Task, fields: Mapping[str, Any], n_rows: int) -> Mapping[str, Any]:
    require_this_job(task, fields, "counts")
    if (added := first_added(fields, keys_of(task))) is not None:
        raise _wrong(f"the report has `{printable(added)}`, which no report of this job has")
    try:
        privacy = fields["privacy"]
        spent = sum((read_amount(charge["epsilon"]) for charge in privacy["account"]), Fraction(0))
        delta, epsilon = read_delta(privacy["delta"]), read_amount(privacy["epsilon"])
        listed, threshold, cut = fields["cells_listed"], fields["threshold"], fields["cut"]
    except (LookupError, TypeError, ValueError, ArithmeticError) as error:
        raise _wrong("the report has no account of privacy") from error
    if not isinstance(cut, dict) or not all(_is_texts(labels) for labels in cut.values()):
        raise _wrong("the report has no cut")
    if listed != n_rows or not isinstance(fields.get("cells"), int):
        raise _wrong("the report speaks of another number of cells")
    if not PRIVACY_KEYS >= privacy.keys():
        raise _wrong("the account of privacy in the report says more than any does")
    if not spent == epsilon == settings(task.job).epsilon or delta > DELTA:
        raise _wrong("the account does not add up to the job's epsilon, or delta is too large")
    if threshold is not None and (task.job.roster or not isinstance(threshold, int)):
        raise _wrong("only a single holder's release may have a threshold")
    return fields


def _is_texts(labels: object) -> bool:
    return isinstance(labels, list) and all(isinstance(label, str) for label in labels)


def _wrong(what: str) -> PartyError:
    return PartyError("verification-failed", what)
