"""The files of a DP release: made and written by the coordinator or a single holder, checked by the parties."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jobs.dp.counts import COUNTS, counts_csv, rows_csv
from jobs.dp.report import report_fields
from jobs.dp.result import DpResult
from jobs.dp.verify import require_verified_counts
from jobs.errors import PartyError
from jobs.options import Options
from jobs.release.compared import delivered_report
from jobs.release.csv import REPORT, TABLE
from jobs.release.report import BY_MAKER, as_text, check_sums, finished_now, versions
from jobs.release.signatures import SIGNATURES
from jobs.release.sums import SUMS, file_fields, read_sums, write_sums
from jobs.stopwatch import Stopwatch
from jobs.task import Collected, Task

BY_COORDINATOR = frozenset({*BY_MAKER, SIGNATURES})
"""What of a report does not follow from the job and the release; parties compare signatures by themselves."""


def release_files(
    task: Task,
    result: DpResult,
    parties: Mapping[str, Mapping[str, Any]],
    signatures: Mapping[str, Any] | None = None,
) -> dict[str, bytes]:
    """Counts and report of a release."""
    counts = {COUNTS: counts_csv(result.table, task.job.published)}
    return with_report(task, report_fields(task, result), counts, parties, signatures)


def with_report(
    task: Task,
    following: Mapping[str, Any],
    tables: Mapping[str, bytes],
    parties: Mapping[str, Mapping[str, Any]],
    signatures: Mapping[str, Any] | None,
) -> dict[str, bytes]:
    """The tables of a release, and its report. following: what of it follows from job and result."""
    made: dict[str, Any] = {"versions": versions(), "cost": {"parties": dict(parties)}}
    if task.job.roster:
        made[SIGNATURES] = signatures
    report = {**following, "files": file_fields(tables), **finished_now(), **made}
    text = json.dumps(report, indent=1, ensure_ascii=False) + "\n"
    return {**tables, REPORT: text.encode()}


def write_release(folder: Path, task: Task, files: Mapping[str, bytes], *, as_rows: bool) -> bytes:
    """Verify, then write counts, report, rows if they are wanted, and digests; return the digest of the release."""
    table = require_verified_counts(task, files[COUNTS], files[REPORT])
    for name, content in files.items():
        (folder / name).write_bytes(content)
    if as_rows:
        (folder / TABLE).write_bytes(rows_csv(table, task.job.published))
    return write_sums(folder, (*files, TABLE) if as_rows else tuple(files))


def write_joint_release(
    task: Task, folder: Path, collected: Collected, options: Options, watch: Stopwatch
) -> bytes:
    """Make, verify and write the files of a joint run; return the digest of the release."""
    with watch.phase("release"):
        files = release_files(task, collected.result, collected.parties, collected.signatures)
        return write_release(folder, task, files, as_rows=options.as_records)


def check_delivery(task: Task, result: DpResult, files: Mapping[str, bytes]) -> None:
    """Check files the coordinator delivers against what we computed ourselves. Raises PartyError.

    Of the report everything but what the coordinator alone can say: the time, the versions, the costs.
    """
    report = delivered_report(task, files)
    following = report_fields(task, result) | {"files": file_fields({COUNTS: files[COUNTS]})}
    ours = {name: as_text(value) for name, value in following.items()}
    told = {name: as_text(value) for name, value in report.items() if name not in BY_COORDINATOR}
    for name in ours:
        if told.pop(name, None) != ours[name]:
            message = f"the delivered report says of {name} what does not follow from the release"
            raise PartyError("result-mismatch", message)
    if told:
        raise PartyError("result-mismatch", "the delivered report says more than follows from the release")
    if files[COUNTS] != counts_csv(result.table, task.job.published):
        raise PartyError("result-mismatch", "the delivered counts are not those that were computed")
    listed = {name: files[name] for name in (COUNTS, REPORT)}
    if TABLE in read_sums(files[SUMS]):  # the coordinator made rows of the counts, for itself
        listed[TABLE] = rows_csv(result.table, task.job.published)
    check_sums(files, listed)
