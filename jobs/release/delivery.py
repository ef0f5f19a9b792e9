"""Delivery of the coordinator: each party compares the delivery with the expected release of its own result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobs.errors import PartyError, json_object
from jobs.release.csv import REPORT
from jobs.release.maker import first_malformed
from jobs.release.report import check_sums, following, require_report
from jobs.task import Task


def delivered_report(task: Task, files: Mapping[str, bytes]) -> dict[str, Any]:
    """Return the report in the coordinator's delivery. Raises PartyError unless a report of this job."""
    report = json_object(files[REPORT])
    if report is None or report.get("job_sha256") != task.digest.hex():
        raise PartyError("result-mismatch", "the delivered report is about another job")
    if (key := first_malformed(report, task.job.roster)) is not None:
        raise PartyError("result-mismatch", f"the delivered report has no `{key}` as reports have it")
    return report


def check_delivery(task: Task, result: Any, files: Mapping[str, bytes], parts: Mapping[str, bytes]) -> None:
    """Check that the coordinator delivers the expected files, apart from the maker's keys.

    parts:  our parts, as sent.

    Raises PartyError (result-mismatch) for the first different file or key.
    """
    report = delivered_report(task, files)
    expected = task.model.expected_of(task, result, files, parts)
    delivered = {name: files[name] for name in (*expected.tables, REPORT)}
    check_sums(files, {**delivered, **expected.beside})
    for name, content in expected.tables.items():
        if files[name] != content:
            raise PartyError("result-mismatch", f"the delivered {name} is not the one that was computed")
    require_report(following(expected), report)
